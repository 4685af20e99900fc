//! Congestion controls settle where their papers say.

use crate::support::program::Folder;

/// Senders to one receiver at 100 Gb/s, all the time.
const INCAST: &str = r#"
name = "fixed point"
[base]
cluster = { gpus = 13, gpus_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 13, link_gbps = 100 }
workload = { kind = "traffic", pattern = "incast", bytes = 20000000 }
output = { flows = true, rtt = true }
fidelity = { fast_forward = "off" }
[base.transport]
cc = "swift"
swift.target_us = 20
[axes]
"workload.fan_in" = [6, 8, 12]
"transport.swift.fs_range_us" = [0, 50]
"#;

/// Gb/s and us to bits: 100 Gb/s carry 100,000 bits a us.
const BITS_A_US: f64 = 100_000.0;
/// A packet of 1,000 bytes on the wire, with what Swift adds.
const WIRE_BITS: f64 = 1056.0 * 8.0;

/// The round trip at which the windows of `senders` fill the path, in us: target plus flow scaling (Kumar et al., SIGCOMM 2020). The additive increases of
/// all senders add up beside it: with 24 of them the mean is 3.6 % above this.
fn settled_rtt(senders: f64, range: f64) -> f64 {
    let (min, max) = (0.1f64, 100f64);
    let alpha = range / (1.0 / min.sqrt() - 1.0 / max.sqrt());
    let mut rtt = 20.0;
    for _ in 0..100 {
        let window = BITS_A_US * rtt / WIRE_BITS / senders;
        rtt = 20.0 + (alpha / window.sqrt() - alpha / max.sqrt()).clamp(0.0, range);
    }
    rtt
}

#[test]
fn swift_keeps_the_round_trip_at_its_target() {
    let folder = Folder::new(&[("s.toml", INCAST)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let numbers = |file: &str, column: &str| -> Vec<f64> {
        folder.column(&format!("o/{file}"), column).iter().map(|text| text.parse().unwrap()).collect()
    };
    let (owners, at, rtts) =
        (numbers("rtt.csv", "exp_id"), numbers("rtt.csv", "sample_ns"), numbers("rtt.csv", "rtt_ns"));
    let (flow_owners, fcts) = (numbers("flows.csv", "exp_id"), numbers("flows.csv", "fct_ns"));
    let cases = [6.0, 8.0, 12.0].into_iter().flat_map(|senders| [0.0, 50.0].map(|range| (senders, range)));
    for (exp_id, (senders, range)) in cases.enumerate() {
        let is_own = |owner: f64| owner as usize == exp_id;
        let ends: Vec<f64> = flow_owners.iter().zip(&fcts).filter(|(e, _)| is_own(**e)).map(|(_, fct)| *fct).collect();
        let last = ends.iter().copied().fold(0.0, f64::max);
        // After the start, and before the first flow ends.
        let first = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let settled: Vec<f64> = (0..rtts.len())
            .filter(|&i| is_own(owners[i]) && at[i] > 0.2 * first && at[i] < 0.95 * first)
            .map(|i| rtts[i] / 1e3)
            .collect();
        assert!(settled.len() > 50, "{senders} senders: {} samples", settled.len());
        let mean = settled.iter().sum::<f64>() / settled.len() as f64;
        let expected = settled_rtt(senders, range);
        println!(
            "{senders} senders, range {range}: {mean:.2} us, by the paper {expected:.2}; flows end at {first:.0} to {last:.0} ns"
        );
        assert!(
            (mean / expected - 1.0).abs() < 0.03,
            "{senders} senders, range {range}: {mean} us, expected {expected}"
        );
        // All bytes leave over one link, which is never idle once the senders have begun.
        let busy = senders * 20_000.0 * WIRE_BITS / BITS_A_US * 1e3;
        assert!((last / busy - 1.0).abs() < 0.03, "{senders} senders: {last} ns, the link alone takes {busy}");
        assert!(first > 0.9 * last, "{senders} senders have equal shares: {first} to {last} ns");
    }
}
