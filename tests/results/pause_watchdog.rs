//! The watchdog of pauses, as a user sees it.

use crate::failures::{CLOCKWISE, OPPOSITE, RING_OF_SWITCHES};
use crate::support::program::Folder;

/// Four switches in a ring that wait for each other, with and without a watchdog.
const SWEEP: &str = "name = \"watched\"\n[base]\n\
    topology = { kind = \"file\", path = \"ring.txt\", buffer_mib = 0.2 }\nworkload = { kind = \"flows\", path = \"flows.txt\", start_unit = \"ns\" }\n\
    routing = { policy = \"file\", path = \"clockwise.txt\" }\ntransport.cc = \"none\"\ntransport.rto_us = 300\noutput.links = true\n\
    transport.pfc_watchdog_detect_us = 100\ntransport.pfc_watchdog_restore_us = 50\n\
    [axes]\n\"transport.pfc_watchdog\" = [\"off\", \"drop\", \"forward\"]\n";

fn folder(sweep: &str) -> Folder {
    Folder::new(&[
        ("s.toml", sweep),
        ("ring.txt", RING_OF_SWITCHES),
        ("flows.txt", OPPOSITE),
        ("clockwise.txt", CLOCKWISE),
    ])
}

#[test]
fn a_deadlock_costs_packets_and_not_the_run() {
    let folder = folder(SWEEP);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--jobs", "2"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(folder.column("o/results.csv", "status"), ["failed", "ok", "ok"]);
    let error = &folder.column("o/results.csv", "error")[0];
    assert!(error.contains("PFC deadlock: "), "{error}");
    let number = |text: &String| text.parse::<u64>().unwrap_or_else(|why| panic!("{text}: {why}"));
    let drops: Vec<u64> = folder.column("o/results.csv", "drops")[1..].iter().map(number).collect();
    assert!(drops[0] > 0, "the watchdog of experiment 1 dropped nothing");
    let (ids, of_links) = (folder.column("o/links.csv", "exp_id"), folder.column("o/links.csv", "drops"));
    let sum = |id: &str| ids.iter().zip(&of_links).filter(|(own, _)| *own == id).map(|(_, n)| number(n)).sum::<u64>();
    assert_eq!([sum("1"), sum("2")], drops[..], "links.csv has all drops");
    // A deadlock lasts until it is detected, and a timeout may follow.
    let makespans: Vec<f64> =
        folder.column("o/results.csv", "makespan_ns")[1..].iter().map(|text| text.parse().unwrap()).collect();
    assert!(makespans.iter().all(|&ns| ns > 100_000.0), "{makespans:?}");
    for words in ["the watchdog of pauses acted in 2 experiments (transport.pfc_watchdog)", "and it dropped "] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("headroom was exceeded"), "{}", ran.stderr);
}

#[test]
fn the_watchdog_leaves_the_same_bytes_however_a_run_goes() {
    let folder = folder(&SWEEP.replace("\"off\", ", ""));
    let mut bytes = Vec::new();
    for (out, more) in [
        ("one", vec!["--jobs", "1"]),
        ("two", vec!["--jobs", "2", "--memo", "off"]),
        ("exact", vec!["--set", "fidelity.fast_forward=\"exact\""]),
        ("off", vec!["--set", "fidelity.fast_forward=\"off\""]),
        ("sampled", vec!["--set", "output.series=\"links\"", "--set", "output.series_interval_us=7"]),
    ] {
        let mut arguments = vec!["run", "s.toml", "--out", out, "--quiet"];
        arguments.extend(more);
        let ran = folder.run(&arguments);
        assert_eq!(ran.code, 0, "{out}: {}", ran.stderr);
        let columns = ["makespan_ns", "fct_p99_ns", "drops", "pfc_pauses", "pfc_paused_ns", "packet_hops"];
        bytes.push((
            folder.bytes(&format!("{out}/links.csv")),
            columns.map(|name| folder.column(&format!("{out}/results.csv"), name)),
        ));
    }
    bytes.dedup();
    assert_eq!(bytes.len(), 1, "all ways to run come to the same");
}

#[test]
fn what_makes_no_sense_is_told() {
    let told = |set: &[&str]| {
        let folder = folder(&SWEEP.replace(
            "[axes]\n\"transport.pfc_watchdog\" = [\"off\", \"drop\", \"forward\"]",
            "transport.pfc_watchdog = \"drop\"",
        ));
        let mut arguments = vec!["plan", "s.toml"];
        set.iter().for_each(|set| arguments.extend(["--set", set]));
        let ran = folder.run(&arguments);
        ran.stdout + &ran.stderr
    };
    let late = told(&["transport.pfc_watchdog_detect_us=2400"]);
    assert!(late.contains("flows may give up before the watchdog acts, after 2400 us"), "{late}");
    assert!(!told(&[]).contains("may give up"));
    let long = told(&["transport.pfc_watchdog_restore_us=3000"]);
    assert!(long.contains("restore_us = 3000: flows may give up while the watchdog acts, after 2400 us"), "{long}");
    let unused = told(&["transport.pfc=false"]);
    assert!(unused.contains("transport.pfc_watchdog"), "{unused}");
    let credit = told(&["transport.cc=\"rccc\"", "transport.port_queue=false", "transport.pfc=true"]);
    assert!(credit.contains("may drop credit"), "{credit}");
    let short = told(&["transport.pfc_watchdog_detect_us=0.01"]);
    assert!(short.contains("transport.pfc_watchdog_detect_us") && short.contains("0.1"), "{short}");
}
