//! Graphs written by users: both forms, sharing of programs, and every mistake with its place.

use crate::support::program::Folder;
use hyperfold_llm::workload::dag::{parse_dag_csv, parse_dag_toml};
use hyperfold_llm::workload::program::{Dim, OpKind, Phase};

const TOML: &str = r#"
ranks = 4
tokens = 2048

[groups]
left = "0-1"
right = [2, 3]

[[node]]
id = "forward"
kind = "compute"
duration_ns = 12.5
phase = "forward"

[[node]]
id = "left-grads"
ranks = "0-1"
kind = "all-reduce"
bytes = 4000
group = "left"
deps = ["forward"]

[[node]]
id = "right-grads"
ranks = "2 3"
kind = "all-reduce"
bytes = 4000
group = "right"
deps = ["forward"]

[[node]]
kind = "barrier"
"#;

#[test]
fn toml_becomes_programs_shared_by_equal_ranks() {
    let w = parse_dag_toml("g.toml", TOML, None).unwrap();
    assert_eq!((w.ranks.len(), w.programs.len(), w.tokens), (4, 2, 2048));
    assert_eq!(w.ranks[0].program, w.ranks[1].program);
    assert_eq!(w.programs[0].ops[0].kind, OpKind::Compute { ps: 12_500, phase: Phase::Forward });
    assert_eq!(w.programs[1].deps_of(1), [0]);
}

#[test]
fn csv_is_the_same_and_peers_may_be_relative() {
    let text = "# a ring\nid,ranks,kind,bytes,peer,deps,duration_ns\nwork,0-3,compute,,,,1e3\nto,0-3,send,64,+1,work,\nfrom,0-3,recv,64,-1,,\n";
    let w = parse_dag_csv("g.csv", text, None).unwrap();
    assert_eq!(w.programs.len(), 4);
    let OpKind::Send { peer, bytes: 64, tag: 0, dim: Dim::Pp } = w.programs[3].ops[1].kind else { panic!() };
    assert_eq!(peer.member, 0);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let csv = |lines: &str| {
        parse_dag_csv("g.csv", &format!("id,ranks,kind,duration_ns,bytes,group,peer,tag,deps\n{lines}"), None)
            .unwrap_err()
            .to_string()
    };
    for (lines, expected) in [
        ("a,0,compute,x,,,,,", "g.csv:2: node `a`: duration_ns `x` is not a time"),
        ("a,0,computes,1,,,,,", "g.csv:2: node `a`: kind `computes` is none of compute, send"),
        ("a,0,compute,1,,,,,b", "g.csv:2: node `a`: depends on `b`, which is no node above it"),
        ("a,0,compute,1,,,,,\nb,1,compute,1,,,,,a", "g.csv:3: node `b`: depends on `a`, which rank 1 does not do"),
        ("a,0,compute,1,,,,,\na,0,compute,1,,,,,", "g.csv:3: node `a`: the id stands twice"),
        ("a,0,compute,1,8,,,,", "g.csv:2: node `a`: `bytes` means nothing to kind `compute`"),
        ("a,3-1,compute,1,,,,,", "g.csv:2: node `a`: `3-1` is neither a rank nor a range of ranks below 1048576"),
        ("a,0-1,all-reduce,,8,0,,,", "g.csv:2: node `a`: rank 1 is not in its group"),
        (
            "a,0,send,,8,,1,,",
            "g.csv: from rank 0 to rank 1, tag 0: message 0 is 8 bytes at the sender but absent at the receiver",
        ),
        (
            "a,0,all-reduce,,8,0-1,,,\nb,1,all-reduce,,9,0-1,,,",
            "g.csv: group 1 (dp): collective 0 is AllReduce of 8 bytes on rank 0",
        ),
        ("", "g.csv: no node"),
    ] {
        let message = csv(lines);
        assert!(message.starts_with(expected), "{message}\n{expected}");
    }
    let toml = parse_dag_toml("g.toml", "ranks = 1\n[[node]]\nkind = \"compute\"\nduration = 1\n", None)
        .unwrap_err()
        .to_string();
    assert!(toml.starts_with("g.toml:") && toml.contains("unknown field `duration`"), "{toml}");
    assert!(parse_dag_csv("g.csv", "id,what\na,b\n", None).unwrap_err().to_string().contains("unknown column `what`"));
}

/// The number of ranks of a graph is part of what an experiment is.
#[test]
fn a_graph_on_fewer_ranks_is_another_experiment() {
    let sweep = "name = \"ranks\"\n[base]\ncluster = { gpus = 32, gpus_per_server = 1 }\n\
                 workload = { kind = \"dag\", path = \"g.csv\" }\n[axes]\n\"workload.ranks\" = [0, 3, 16]\n";
    let graph = "id,ranks,kind,duration_ns,bytes,deps\na,all,all-reduce,,1000000,\n";
    let folder = Folder::new(&[("s.toml", sweep), ("g.csv", graph)]);
    let ran = folder.run(&["run", "s.toml", "--out", "out", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("no effect"), "{}", ran.stderr);
    let (times, mut keys) =
        (folder.numbers("results", "iteration_time_ns"), folder.column("out/results.csv", "config_key"));
    assert!(times[1] < times[2] && times[2] < times[0], "{times:?}");
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 3);
}
