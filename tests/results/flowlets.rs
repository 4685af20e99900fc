//! Adaptive routing by flowlets, as a user sees it.

use crate::support::program::Folder;

/// A permutation whose receivers go back N, so that packets that overtake each other are sent again.
const SWEEP: &str = "name = \"flowlets\"\n[base]\ncluster = { gpus = 16, gpus_per_server = 1 }\n\
    topology = { kind = \"fat-tree\", k = 4, link_gbps = 100 }\ntransport = { cc = \"dcqcn\", payload_bytes = 4096 }\n\
    workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 2000000 }\nrouting.policy = \"adaptive\"\n\
    [axes]\n\"routing.flowlet_gap_us\" = [0, 0.4, 1000000]\n";

#[test]
fn packets_of_a_flowlet_do_not_overtake_each_other() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let mut bytes = Vec::new();
    for jobs in ["1", "2"] {
        let ran = folder.run(&["run", "s.toml", "--out", jobs, "--jobs", jobs, "--quiet"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        bytes.push(folder.bytes(&format!("{jobs}/results.csv")));
    }
    assert!(bytes[0] == bytes[1], "results depend on threads");
    let again: Vec<u64> =
        folder.column("1/results.csv", "retransmissions").iter().map(|text| text.parse().expect("a number")).collect();
    assert!(again[0] > again[1] && again[1] > again[2] && again[2] == 0, "{again:?} with gaps of 0, 0.4 us and 1 s");
}

#[test]
fn a_gap_without_adaptive_routing_is_told() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let unused = folder.run(&["plan", "s.toml", "--set", "routing.policy=ecmp"]);
    assert!((unused.stdout.clone() + &unused.stderr).contains("routing.flowlet_gap_us"), "{}", unused.stderr);
}
