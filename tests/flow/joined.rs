//! Collectives as one flow each, and ranks of a class as one: beside messages of every step and tasks of every rank.

use super::closed_forms::simulate;
use crate::support::program::Folder;

/// Times of an iteration, ps, with each value of `fidelity.join`.
fn times(base: &str) -> [u64; 3] {
    ["none", "collectives", "ranks"].map(|join| {
        let out = simulate(&format!("base.fidelity.join = \"{join}\"\n{base}"));
        out.iteration.expect("a program has iterations").time.total
    })
}

fn agree(what: &str, base: &str, within: f64) {
    let [messages, collectives, ranks] = times(base);
    let off = collectives as f64 / messages as f64 - 1.0;
    println!("{what}: {messages} ps as messages, {:+.4} % off as one flow", 100.0 * off);
    assert!(off.abs() < within, "{what}: {collectives} ps as one flow, {messages} as messages");
    assert_eq!(collectives, ranks, "{what}: ranks of a class");
}

#[test]
fn a_collective_alone_takes_what_its_messages_take() {
    for per_server in [1, 4] {
        for (op, algorithm) in
            [("all-reduce", "ring"), ("all-gather", "ring"), ("reduce-scatter", "ring"), ("all-to-all", "direct")]
        {
            for bytes in [100_000, 3_000_000, 100_000_000] {
                let base = format!(
                    "base.cluster = {{ gpus = 16, gpus_per_server = {per_server} }}\nbase.topology = {{ kind = \"clos\", hosts_per_leaf = 16, link_gbps = 100 }}\n\
                     base.workload = {{ kind = \"collective\", op = \"{op}\", algorithm = \"{algorithm}\", bytes = {bytes} }}"
                );
                agree(&format!("{op} of {bytes} bytes, servers of {per_server}"), &base, 1e-3);
            }
        }
    }
}

/// Software's costs of messages are fitted to these times on links without headers, so messages take a little longer.
#[test]
fn on_a_named_server_a_collective_takes_what_measured_runs_take() {
    for bytes in [1_000_000, 64_000_000] {
        let base = format!(
            "base.cluster = {{ gpus = 32, server = \"dgx-h100\" }}\nbase.topology = {{ kind = \"rail-optimized\" }}\n\
             base.workload = {{ kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", bytes = {bytes} }}"
        );
        agree(&format!("a measured all-reduce of {bytes} bytes"), &base, 4e-2);
    }
}

/// Both rings leave each leaf by its only uplink.
#[test]
fn a_ring_moves_at_the_pace_of_its_slowest_edge() {
    let of = |uplink_gbps: u32| {
        format!(
            "base.cluster = {{ gpus = 16, gpus_per_server = 1 }}\n\
             base.topology = {{ kind = \"clos\", hosts_per_leaf = 4, spines = 1, link_gbps = 100, uplink_gbps = {uplink_gbps} }}\n\
             base.workload = {{ kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", channels = 2, bytes = 100000000 }}"
        )
    };
    for uplink_gbps in [100, 25] {
        agree(&format!("uplinks of {uplink_gbps} Gb/s"), &of(uplink_gbps), 1e-2);
    }
    let slower = times(&of(25))[1] as f64 / times(&of(100))[1] as f64;
    assert!((3.8..4.0).contains(&slower), "a fourth of the rate takes {slower} times as long");
}

#[test]
fn an_iteration_is_the_same_with_one_rank_of_each_class() {
    let base = "base.cluster = { gpus = 32, gpus_per_server = 4, gpu = \"H100\" }\nbase.topology = { kind = \"rail-optimized\" }\n\
                base.workload = { kind = \"model\", model = \"gpt3-1.7b\", tp = 4, pp = 2, dp = 4, global_batch = 16, seq = 256, algorithm = \"ring\" }";
    agree("GPT-3 1.7B, TP4 PP2 DP4", base, 1e-3);
    let flows = |join: &str| simulate(&format!("base.fidelity.join = \"{join}\"\n{base}")).flows.len();
    assert!(100 * flows("ranks") < flows("none"), "{} and {} flows", flows("ranks"), flows("none"));
}

#[test]
fn what_is_not_one_flow_is_said_where_ranks_should_be_one() {
    let sweep = "name = \"t\"\nbase.fidelity = { mode = \"flow\", join = \"ranks\" }\nbase.cluster = { gpus = 8, gpus_per_server = 1 }\n\
                 base.topology.kind = \"clos\"\nbase.workload = { kind = \"collective\", op = \"all-reduce\", algorithm = \"tree\", bytes = 1000000 }\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    let ran = folder.run(&["run", "s.toml", "--out", "out", "--quiet"]);
    let said = format!("{}{}", ran.stderr, ran.stdout);
    assert!(ran.code != 0 && said.contains("is not one flow") && said.contains("workload.algorithm"), "{said}");
    let ran = folder.run(&["run", "s.toml", "--out", "out2", "--quiet", "--set", "fidelity.join=collectives"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
