//! Transport parameters: defaults, configuration files of the reference, and which of them wins.

use std::path::{Path, PathBuf};

use hyperfold_config::spec::{SpecError, read_ns3_config};
use hyperfold_config::sweep::{self, SetOverrides, Sweep};
use hyperfold_network::transport::{Cc, EcnThresholds, LossRecovery, Transport};

const GBPS: u64 = 1_000_000_000;

/// A configuration file in the reference's form, with comments and without some keys.
const CONFIG: &str = "# HPCC on 100 and 400 Gb/s
CC_MODE 3
ENABLE_QCN 1
PACKET_PAYLOAD_SIZE 4000   # bytes
KMAX_MAP 2 100000000000 1600 400000000000 3200
KMIN_MAP 2 100000000000 400 400000000000 800
PMAX_MAP 2 100000000000 0.2 400000000000 0.5
U_TARGET 0.9
RATE_AI 50Mb/s
MIN_RATE 100Mb/s
INT_MULTI 2
TIMELY_TLOW 50000
BUFFER_SIZE 16
RNG_RUN 7
FCT_OUTPUT_FILE fct.txt
LINK_DOWN 0 0 0
";

fn transport_of(sweep: &Sweep, i: usize, nic: u64) -> Transport {
    sweep.config(&sweep.experiments[i]).unwrap().transport(nic).unwrap()
}

fn with_keys(keys: &str) -> Result<Sweep, SpecError> {
    let text =
        format!("name = \"t\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n[base.transport]\n{keys}");
    sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default())
}

#[test]
fn defaults_follow_congestion_control_and_nic_rate() {
    let t = |cc: &str, nic| transport_of(&with_keys(&format!("cc = \"{cc}\"\n")).unwrap(), 0, nic);
    let h = t("hpcc", 400 * GBPS);
    assert_eq!((h.cc, h.rai, h.int_multi, h.data_overhead, h.ack_bytes), (Cc::Hpcc, 160_000_000, 16, 90, 88));
    assert!(h.window && h.var_window && !h.ack_high_prio && h.fast_react);
    assert_eq!((h.eta_q40, h.eta_q48), (1_044_536_046_387, 267_401_227_875_123));
    let d = t("dcqcn", 100 * GBPS);
    assert_eq!((d.rai, d.rhai, d.g_q32, d.dcqcn_increase_ps), (20_000_000, 200_000_000, 1 << 24, 300_000_000));
    assert!(!d.window && d.ack_high_prio && !d.dcqcn_clamp);
    assert_eq!(
        d.ecn_for(400 * GBPS),
        EcnThresholds { kmin_bytes: 1_600_000, kmax_bytes: 6_400_000, pmax_q32: 858_993_459 }
    );
    let c = t("dctcp", 100 * GBPS);
    assert_eq!((c.rai, c.g_q32), (615_000_000, 1 << 28));
    assert_eq!(c.ecn_for(100 * GBPS), EcnThresholds { kmin_bytes: 300_000, kmax_bytes: 300_000, pmax_q32: 1 << 32 });
    assert_eq!(t("timely", 10 * GBPS).rai, 10_000_000);
    assert_eq!(t("hpcc", 10 * GBPS).int_multi, 1);
    assert_eq!(t("none", 100 * GBPS).rto_ps, 67_109_000_000);
    assert_eq!(transport_of(&with_keys("pfc = false\nrto_us = 0\n").unwrap(), 0, 100 * GBPS).rto_ps, 4_194_000_000);
}

#[test]
fn a_minimum_rate_above_the_nics_is_refused_when_the_nic_is_known() {
    let sweep = with_keys("min_rate_mbps = 1000").unwrap();
    let e = sweep.config(&sweep.experiments[0]).unwrap().transport(GBPS / 2).unwrap_err();
    assert!(e.why.contains("500 Mb/s"), "{}", e.why);
    // The default is the NIC's rate, where that is less.
    let sweep = with_keys("").unwrap();
    assert_eq!(transport_of(&sweep, 0, GBPS / 2).min_rate, GBPS / 2);
}

/// A folder with a configuration file and a sweep of the given transport keys over it.
fn over_config(keys: &str) -> (tempfile::TempDir, Sweep) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.txt"), CONFIG).unwrap();
    let text = format!(
        "name = \"t\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n[base.transport]\nconfig = \"config.txt\"\n{keys}"
    );
    let sweep = sweep::parse(&text, &dir.path().join("sweep.toml"), &SetOverrides::default()).unwrap();
    (dir, sweep)
}

#[test]
fn configuration_files_set_what_the_sweep_file_leaves_open() {
    let (_dir, sweep) = over_config("");
    let t = transport_of(&sweep, 0, 100 * GBPS);
    assert_eq!(
        (t.cc, t.payload, t.rai, t.min_rate, t.int_multi, t.buffer_bytes),
        (Cc::Hpcc, 4000, 50_000_000, 100_000_000, 2, 16 << 20)
    );
    assert_eq!(t.eta_q40, (0.9f64 * (1u64 << 40) as f64).round() as u64);
    assert_eq!(t.ecn_for(400 * GBPS), EcnThresholds { kmin_bytes: 800_000, kmax_bytes: 3_200_000, pmax_q32: 1 << 31 });
    assert_eq!(t.ecn_for(200 * GBPS).kmax_bytes, 3_200_000, "rates that are not listed scale from the defaults");
    assert_eq!(sweep.notes.len(), 1, "{:?}", sweep.notes);
    assert!(
        sweep.notes[0]
            .ends_with("config.txt:15: `FCT_OUTPUT_FILE` has no effect here: monitoring output; see [base.output]"),
        "{}",
        sweep.notes[0]
    );

    let (_dir, sweep) = over_config("payload_bytes = 1000\necn_kmax_kb = 2000\nhpcc.int_multi = 5\n");
    let t = transport_of(&sweep, 0, 100 * GBPS);
    assert_eq!((t.payload, t.int_multi), (1000, 5));
    assert_eq!(t.ecn_for(400 * GBPS), EcnThresholds { kmin_bytes: 800_000, kmax_bytes: 8_000_000, pmax_q32: 1 << 31 });
}

#[test]
fn axes_win_over_configuration_files_and_runs_are_other_seeds() {
    let (_dir, sweep) = over_config("[axes]\ntransport.cc = [\"dcqcn\", \"hpcc\"]\n");
    assert_eq!(transport_of(&sweep, 0, 100 * GBPS).cc, Cc::Dcqcn);
    assert_eq!(transport_of(&sweep, 0, 100 * GBPS).rai, 50_000_000, "RATE_AI is every congestion control's");
    assert!(!transport_of(&sweep, 0, 100 * GBPS).window, "defaults follow the congestion control that won");
    let plain = with_keys("cc = \"hpcc\"\n").unwrap();
    assert_ne!(
        transport_of(&sweep, 1, 100 * GBPS).seed,
        transport_of(&plain, 0, 100 * GBPS).seed,
        "RNG_RUN is mixed in"
    );
}

#[test]
fn comments_and_order_of_a_configuration_file_do_not_matter_to_keys() {
    let dir = tempfile::tempdir().unwrap();
    let mut lines: Vec<&str> = CONFIG.lines().collect();
    lines.reverse();
    std::fs::write(dir.path().join("a.txt"), CONFIG).unwrap();
    std::fs::write(dir.path().join("b.txt"), lines.join("\n")).unwrap();
    let text = "name = \"t\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n[axes]\ntransport.config = [\"a.txt\", \"b.txt\"]\n";
    let sweep = sweep::parse(text, &dir.path().join("sweep.toml"), &SetOverrides::default()).unwrap();
    assert_eq!(sweep.experiments[0].config_key, sweep.experiments[1].config_key);
}

/// The folder of reference cases beside the project or one of the folders above it.
fn golden() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|a| a.join("shared/golden")).find(|p| p.is_dir())
}

#[test]
fn every_reference_case_reads_and_equals_the_defaults_of_its_congestion_control() {
    let Some(golden) = golden() else {
        println!("the reference cases are not here; nothing compared");
        return;
    };
    let mut cases: Vec<PathBuf> = std::fs::read_dir(&golden)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.join("config.txt").is_file())
        .collect();
    cases.sort();
    let list = |file: &str| {
        format!("[{}]", cases.iter().map(|c| format!("\"{}/{file}\"", c.display())).collect::<Vec<_>>().join(", "))
    };
    let text = format!(
        "name = \"golden\"\n[base]\ntopology.kind = \"file\"\nworkload.kind = \"flows\"\nworkload.start_unit = \"ns\"\nrouting.policy = \"file\"\ntransport.clock = \"ns\"\n\
         [sweep]\nmethod = \"zip\"\n[axes]\ntopology.path = {}\nworkload.path = {}\nrouting.path = {}\ntransport.config = {}\n",
        list("topology.txt"),
        list("flows.txt"),
        list("routes.txt"),
        list("config.txt")
    );
    let sweep = sweep::parse(&text, Path::new("golden.toml"), &SetOverrides::default()).unwrap();
    assert_eq!(sweep.experiments.len(), cases.len());
    assert_eq!(sweep.inputs.len(), 4 * cases.len());
    for (i, case) in cases.iter().enumerate() {
        let name = case.file_name().unwrap().to_str().unwrap();
        let mut from_file = transport_of(&sweep, i, 100 * GBPS);
        let suffix = name.rsplit('_').next().unwrap();
        let cc = match suffix {
            "nocc" => "none",
            "dcqcnstep" => "dcqcn",
            other => other,
        };
        let step = if name == "c5_pfc_victim_dcqcnstep" {
            "ecn_kmin_kb = 60\necn_kmax_kb = 60\necn_pmax = 1\n"
        } else if suffix == "dcqcnstep" {
            "ecn_kmax_kb = 400\necn_pmax = 1\n"
        } else {
            ""
        };
        let buffer = match name {
            "c5_pfc_victim_dcqcnstep" => "[base.topology]\nbuffer_mib = 1\n",
            n if n.contains("_pfc_") => "[base.topology]\nbuffer_mib = 2\n",
            _ => "",
        };
        let defaults =
            transport_of(&with_keys(&format!("cc = \"{cc}\"\nclock = \"ns\"\n{step}{buffer}")).unwrap(), 0, 100 * GBPS);
        assert_eq!(from_file.ecn_for(100 * GBPS), defaults.ecn_for(100 * GBPS), "{name}");
        from_file.ecn_by_rate.clear();
        from_file.ecn_per_100g = defaults.ecn_per_100g;
        if cc != "hpcc" {
            from_file.int_multi = defaults.int_multi;
            from_file.fast_react = defaults.fast_react;
        }
        // These simulators resend in their own way; without a file, senders do as adapters.
        assert_eq!((from_file.loss_recovery, defaults.loss_recovery), (LossRecovery::Ns3, LossRecovery::Adapter));
        from_file.loss_recovery = defaults.loss_recovery;
        assert_eq!(from_file, defaults, "{name}");
    }
    println!("{} reference configurations read", cases.len());
}

#[test]
fn failures_and_losses_of_the_reference_are_outages() {
    let file = read_ns3_config("ERROR_RATE_PER_LINK 0.001\nLINK_DOWN 1500 3 7\n", Path::new("c.txt")).unwrap();
    let value = |name: &str| file.values.iter().find(|(key, _)| key.name() == name).map(|(_, value)| value.to_toml());
    assert_eq!(value("topology.outages").as_deref(), Some("\"all loss 0.001, 3 7 down 2001500us\""));
    assert_eq!(value("routing.reroute_us").as_deref(), Some("0.0"));
    let none = read_ns3_config("ERROR_RATE_PER_LINK 0.0000\nLINK_DOWN 0 3 7\n", Path::new("c.txt")).unwrap();
    assert!(none.outages.is_empty() && none.values.iter().all(|(key, _)| key.name() != "topology.outages"));

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.txt"), "ERROR_RATE_PER_LINK 0.001\nLINK_DOWN 1500 3 7\n").unwrap();
    let with_keys = |keys: &str| {
        let text = format!(
            "name = \"t\"\n[base]\nworkload = {{ kind = \"traffic\", pattern = \"ring\" }}\ntransport.config = \"c.txt\"\n{keys}"
        );
        sweep::parse(&text, &folder.path().join("sweep.toml"), &SetOverrides::default()).unwrap()
    };
    let sweep = with_keys("");
    let config = sweep.config(&sweep.experiments[0]).unwrap();
    assert_eq!((config.topology.outages.len(), config.topology.impairments.len()), (1, 1));
    assert_eq!(config.routing.reroute_ps, 0, "the reference finds new paths at once");
    assert!(
        sweep
            .notes
            .iter()
            .any(|note| note.contains("c.txt:2: `LINK_DOWN` takes the link between nodes 3 and 7 down at 2.0015 s")),
        "{:?}",
        sweep.notes
    );
    for own in ["topology.outages = \"leaf0\"", "[axes]\n\"topology.outages\" = [\"\", \"leaf0\"]"] {
        let sweep = with_keys(own);
        let config = sweep.config(sweep.experiments.last().unwrap()).unwrap();
        assert_eq!((config.topology.outages.len(), config.topology.impairments.len()), (1, 0), "{own}");
        assert_eq!(config.routing.reroute_ps, 1_000_000_000, "{own}: the default");
        let yields = sweep.notes.iter().filter(|note| note.contains("takes its place")).count();
        assert_eq!(yields, 2, "{own}: {:?}", sweep.notes);
    }
}

#[test]
fn byte_order_marks_and_carriage_returns_are_no_obstacle() {
    let file = read_ns3_config("\u{feff}CC_MODE 8\r\nDCTCP_RATE_AI 615Mb/s\r\n", Path::new("c.txt")).unwrap();
    let keys: Vec<&str> = file.values.iter().map(|(key, _)| key.name()).collect();
    assert_eq!(keys, ["transport.cc", "transport.dctcp.rai_mbps", "transport.loss_recovery"]);
    assert!(file.notes.is_empty());
}
