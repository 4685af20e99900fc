//! Marking by averages of queues, as a user sees it.

use crate::support::program::Folder;

/// An incast under DCQCN whose queue grows and shrinks within the time that a slow average needs.
const SWEEP: &str = "name = \"averages\"\n[base]\ncluster = { gpus = 16, gpus_per_server = 1 }\n\
    topology = { kind = \"clos\", hosts_per_leaf = 8, spines = 2, link_gbps = 100 }\ntransport.cc = \"dcqcn\"\n\
    workload = { kind = \"traffic\", pattern = \"incast\", bytes = 300000 }\ntransport.ecn_kmin_kb = 20\ntransport.ecn_kmax_kb = 80\n\
    [axes]\n\"transport.ecn_average_weight\" = [0, 4, 12]\n";

#[test]
fn a_slow_average_marks_less_of_a_short_burst() {
    for classes in ["", "transport.classes = [\"a\", \"b\"]\n"] {
        let folder = Folder::new(&[("s.toml", &SWEEP.replace("[axes]", &format!("{classes}[axes]")))]);
        let mut bytes = Vec::new();
        for (out, how) in [("exact", "\"exact\""), ("off", "\"off\"")] {
            let set = format!("fidelity.fast_forward={how}");
            let ran = folder.run(&["run", "s.toml", "--out", out, "--set", &set, "--quiet"]);
            assert_eq!(ran.code, 0, "{out}: {}", ran.stderr);
            let columns = ["ecn_marks", "makespan_ns", "fct_p99_ns", "max_queue_bytes"];
            bytes.push(columns.map(|name| folder.column(&format!("{out}/results.csv"), name)));
        }
        assert_eq!(bytes[0], bytes[1], "{classes}");
        let marks: Vec<u64> = bytes[0][0].iter().map(|text| text.parse().expect("a number")).collect();
        assert!(marks[0] > marks[1] && marks[1] > marks[2], "{classes}: {marks:?} with weights 0, 4, 12");
    }
}

#[test]
fn weights_that_mean_nothing_are_told() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let unused = folder.run(&["plan", "s.toml", "--set", "transport.ecn=false"]);
    assert!((unused.stdout.clone() + &unused.stderr).contains("transport.ecn_average_weight"), "{}", unused.stderr);
    let sweep = SWEEP.replace("[0, 4, 12]", "[0, 16]");
    let large = Folder::new(&[("s.toml", &sweep)]).run(&["plan", "s.toml"]);
    assert!(large.code != 0 && large.stderr.contains("15"), "{}", large.stderr);
}

/// Classes that may lose packets are dropped early, others are marked as before.
#[test]
fn early_drops_are_those_of_lossy_classes() {
    let (folder, said, code) = Folder::with_run(
        "name = \"early\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 8, spines = 1, link_gbps = 100, link_delay_ns = 500 }\n\
         workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 7, bytes = 400000 }\n\
         transport = { cc = \"dcqcn\", loss_recovery = \"selective\", ecn_kmin_kb = 20, ecn_kmax_kb = 80 }\n\
         [axes]\n\"transport.classes\" = [\"\", [\"all lossy\", \"rest\"], [\"all\", \"rest lossy\"]]\n\
         \"transport.pfc\" = [true, false]\n\"transport.wred_drops\" = [false, true]\n",
    );
    assert_eq!(code, 0, "{said}");
    let column = |name: &str| folder.numbers("results", name);
    let (drops, marks) = (column("drops"), column("ecn_marks"));
    // With pauses, one class and lossless ones are marked; without them, and in lossy ones, the same packets are dropped.
    let drops_early = |k: usize| drops[k + 1] > drops[k] && marks[k + 1] == 0.0 && marks[k] > 0.0;
    let changes_nothing = |k: usize| drops[k + 1] == drops[k] && marks[k + 1] == marks[k] && marks[k] > 0.0;
    assert!(changes_nothing(0) && drops_early(2), "one class: {drops:?} {marks:?}");
    assert!(drops_early(4) && drops_early(6), "a lossy class: {drops:?} {marks:?}");
    assert!(changes_nothing(8) && drops_early(10), "a lossless class: {drops:?} {marks:?}");
    folder.write("none.toml", "name = \"none\"\n[base]\nworkload = { kind = \"traffic\", pattern = \"incast\" }\ntransport.wred_drops = true\n");
    let none = folder.run(&["plan", "none.toml"]);
    assert!((none.stdout.clone() + &none.stderr).contains("transport.wred_drops"), "{}", none.stderr);
}
