//! What cannot end well ends soon, says why, and takes nothing else with it.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::program::{Folder, command, seen};

/// Four hosts 0 to 3 on four switches 4 to 7 in a ring.
pub const RING_OF_SWITCHES: &str = "8 4 8\n4 5 6 7\n\
    0 4 100Gbps 1us 0\n1 5 100Gbps 1us 0\n2 6 100Gbps 1us 0\n3 7 100Gbps 1us 0\n\
    4 5 100Gbps 1us 0\n5 6 100Gbps 1us 0\n6 7 100Gbps 1us 0\n7 4 100Gbps 1us 0\n";

/// Everyone sends to the host opposite.
pub const OPPOSITE: &str = "4\n0 2 3 100 2000000 0\n1 3 3 100 2000000 0\n2 0 3 100 2000000 0\n3 1 3 100 2000000 0\n";

/// All clockwise: each link between switches waits for the next.
pub const CLOCKWISE: &str = "0 0 2 10000 100 | 0 4 5 6 2\n1 1 3 10000 100 | 1 5 6 7 3\n2 2 0 10000 100 | 2 6 7 4 0\n3 3 1 10000 100 | 3 7 4 5 1\n";

/// Two clockwise, two the other way: nothing waits in a circle.
const BOTH_WAYS: &str = "0 0 2 10000 100 | 0 4 5 6 2\n1 1 3 10000 100 | 1 5 6 7 3\n2 2 0 10000 100 | 2 6 5 4 0\n3 3 1 10000 100 | 3 7 6 5 1\n";

#[test]
fn a_deadlock_of_pauses_names_its_cycle_and_the_rest_goes_on() {
    // Three ports a switch need 0.12 MiB for headroom and reserves.
    let sweep = "name = \"deadlock\"\n[base]\n\
        topology = { kind = \"file\", path = \"ring.txt\", buffer_mib = 0.2 }\nworkload = { kind = \"flows\", path = \"flows.txt\", start_unit = \"ns\" }\n\
        routing.policy = \"file\"\ntransport.cc = \"none\"\noutput.flows = true\n\
        [axes]\n\"routing.path\" = [\"clockwise.txt\", \"both-ways.txt\"]\n";
    let folder = Folder::new(&[
        ("s.toml", sweep),
        ("ring.txt", RING_OF_SWITCHES),
        ("flows.txt", OPPOSITE),
        ("clockwise.txt", CLOCKWISE),
        ("both-ways.txt", BOTH_WAYS),
    ]);
    let ran = folder.run(&["run", "s.toml", "--out", "o"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(folder.column("o/results.csv", "status"), ["failed", "ok"]);
    let error = &folder.column("o/results.csv", "error")[0];
    assert!(error.contains("PFC deadlock: "), "{error}");
    for wait in [
        "switch4->switch5 waits for switch5->switch6",
        "switch5->switch6 waits for switch6->switch7",
        "switch6->switch7 waits for switch7->switch4",
    ] {
        assert!(error.contains(wait), "{error}");
    }
    assert!(error.contains("back to switch4->switch5"), "{error}");
    assert!(error.contains("4 of 4 flows cannot finish") && error.contains("transport.pfc = false"), "{error}");
    assert!(error.contains("a link between each two switches"), "a ring has no up and down: {error}");
    // The one that ended well has its flows, the other none.
    assert_eq!(folder.column("o/flows.csv", "exp_id"), ["1"; 4]);
    assert!(folder.column("o/flows.csv", "fct_ns").iter().all(|f| !f.is_empty()));
}

#[test]
fn a_flow_without_a_route_fails_its_experiment_only() {
    // Without links inside servers, a rail-only network joins GPUs of one rail and no others.
    let sweep = "name = \"no-route\"\n[base]\ncluster = { gpus = 16, gpus_per_server = 4, nics_per_server = 4, nvlink_gbps = 0 }\n\
        topology.kind = \"rail-only\"\nworkload = { kind = \"traffic\", pattern = \"ring\", bytes = 20000 }\n[axes]\n\"workload.stride\" = [4, 1, 8]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(folder.column("o/results.csv", "status"), ["ok", "failed", "ok"]);
    assert_eq!(folder.column("o/results.csv", "flows"), ["16", "", "16"]);

    let keys = folder.column("o/results.csv", "exp_key");
    assert_eq!(folder.column("o/failed.csv", "exp_id"), ["1"]);
    assert_eq!(folder.column("o/failed.csv", "exp_key"), [keys[1].as_str()]);
    assert_eq!(folder.column("o/failed.csv", "workload.stride"), ["1"]);
    let why = folder.column("o/failed.csv", "error");
    assert_eq!(folder.column("o/results.csv", "error"), ["", &why[0], ""]);
    assert!(why[0].contains("flow 0") && why[0].contains("no route"), "{}", why[0]);
    let manifest: serde_json::Value = serde_json::from_slice(&folder.bytes("o/manifest.json")).unwrap();
    assert_eq!(
        (&manifest["ok"], &manifest["failed"], &manifest["outcome"]),
        (&2.into(), &1.into(), &"complete".into())
    );
    assert!(ran.stdout.contains("failed"), "the table says so: {}", ran.stdout);
}

#[test]
fn limits_end_what_reaches_them() {
    // About ten million packet-hops: more than the 100 ms after which the clock on the wall is looked at.
    let sweep = "name = \"limits\"\n[base]\ncluster = { gpus = 64, gpus_per_server = 1, nics_per_server = 1 }\n\
        topology = { kind = \"clos\", hosts_per_leaf = 8, spines = 8 }\nworkload = { kind = \"traffic\", pattern = \"ring\", stride = 8, bytes = 20000000 }\n\
        [sweep]\nmethod = \"list\"\n[[experiment]]\nlimits.sim_ns = 50000\n[[experiment]]\nlimits.packet_hops = 100000\n\
        [[experiment]]\nlimits.wall_s = 0.001\n\
        [[experiment]]\nworkload.bytes = 1000\nlimits.sim_ns = 1000000\nlimits.packet_hops = 100000\nlimits.wall_s = 60\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "o", "--quiet"]).code, 1);
    assert_eq!(
        folder.column("o/results.csv", "status"),
        ["failed", "failed", "failed", "ok"],
        "{}",
        folder.text("o/failed.csv")
    );
    let errors = folder.column("o/results.csv", "error");
    for (error, limit) in errors.iter().zip([
        "limit: sim_ns = 50000 reached",
        "limit: packet_hops = 100000 reached",
        "limit: wall_s = 0.001 reached",
    ]) {
        assert!(error.starts_with(limit), "{error}");
    }
    assert_eq!(folder.column("o/failed.csv", "exp_id"), ["0", "1", "2"]);
    assert_eq!(folder.column("o/failed.csv", "error"), errors[..3]);
    // What failed has no result that could be taken for one.
    assert_eq!(folder.column("o/results.csv", "makespan_ns")[..3], [""; 3]);
}

/// 12 hosts send to each of two others below a leaf with little buffer to spare.
const LOSSY: &str = "name = \"lossy\"\n[base]\ncluster = { gpus = 16, gpus_per_server = 1, nics_per_server = 1 }\n\
    topology = { kind = \"clos\", hosts_per_leaf = 8, spines = 8, link_gbps = 100, uplink_gbps = 100, buffer_mib = 0.75 }\n\
    workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 12, receivers = 2, bytes = 120000 }\n\
    transport.pfc = false\noutput.flows = true\n";

#[test]
fn without_pfc_packets_are_lost_and_sent_again() {
    let folder = Folder::new(&[(
        "s.toml",
        &format!("{LOSSY}[axes]\n\"transport.cc\" = [\"none\", \"dcqcn\", \"hpcc\", \"timely\", \"dctcp\"]\n"),
    )]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", folder.text("o/results.csv"));
    let numbers = |column: &str| -> Vec<u64> {
        folder.column("o/results.csv", column).iter().map(|v| v.parse().expect("a whole number")).collect()
    };
    assert!(numbers("drops").iter().filter(|&&d| d > 0).count() >= 3, "drops {:?}", numbers("drops"));
    assert_eq!(numbers("pfc_pauses"), [0; 5]);
    let fct = folder.column("o/flows.csv", "fct_ns");
    assert_eq!(fct.len(), 5 * 24);
    assert!(fct.iter().all(|f| f.parse::<f64>().expect("every flow is complete") > 0.0));
}

#[test]
fn a_flow_that_gives_up_says_so() {
    let text = format!("{LOSSY}[base.transport]\ncc = \"none\"\npfc = false\nrto_us = 20\nrto_retries = 0\n")
        .replace("transport.pfc = false\n", "");
    let folder = Folder::new(&[("s.toml", &text)]);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "o", "--quiet"]).code, 1);
    let error = &folder.column("o/failed.csv", "error")[0];
    assert!(
        error.contains("gave up after 0 retransmission timeouts") && error.contains("transport.rto_retries"),
        "{error}"
    );
}

#[test]
fn a_folder_in_use_is_refused_and_kept() {
    let folder = Folder::new(&[("s.toml", LOSSY)]);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "o", "--quiet"]).code, 0);
    let before = (folder.bytes("o/results.csv"), folder.bytes("o/manifest.json"));
    let again = folder.run(&["run", "s.toml", "--out", "o", "--quiet"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("--out o"), "{}", again.stderr);
    assert_eq!((folder.bytes("o/results.csv"), folder.bytes("o/manifest.json")), before);
}

/// A real Ctrl-C in the middle of a run of minutes.
#[test]
#[cfg(unix)]
fn ctrl_c_keeps_what_is_complete() {
    let stride: Vec<String> = (1..=60).map(|s| s.to_string()).collect();
    let sweep = format!(
        "name = \"long\"\n[base]\ncluster = {{ gpus = 64, gpus_per_server = 1, nics_per_server = 1 }}\n\
         topology = {{ kind = \"clos\", hosts_per_leaf = 8, spines = 8 }}\nworkload = {{ kind = \"traffic\", pattern = \"ring\", bytes = 8000000 }}\n\
         output.flows = true\n[axes]\n\"workload.stride\" = [{}]\n",
        stride.join(", ")
    );
    let folder = Folder::new(&[("s.toml", &sweep)]);
    let args = ["run", "s.toml", "--out", "o", "--jobs", "1", "--engine", "cpu"];
    let mut child = command(folder.path(), &args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let started = Instant::now();
    // The signal is sent as soon as two experiments are in the file.
    while std::fs::read_to_string(folder.file("o/results.csv")).map_or(0, |t| t.lines().count()) < 3 {
        assert!(
            child.try_wait().unwrap().is_none() && started.elapsed() < Duration::from_secs(120),
            "no two experiments ended while it ran"
        );
        sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
    assert!(killed.success());
    let asked = Instant::now();
    let ran = seen(&args, child.wait_with_output().expect("it ends"));
    assert!(asked.elapsed() < Duration::from_secs(20), "it took {:?} to stop", asked.elapsed());
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("stopping") && ran.stderr.contains("interrupted; "), "{}", ran.stderr);

    let ids = folder.column("o/results.csv", "exp_id");
    assert!(ids.len() >= 2 && ids.len() < 60, "{} results", ids.len());
    assert!(
        folder.column("o/results.csv", "status").iter().all(|s| s == "ok"),
        "what was running is left out, not failed"
    );
    let with_flows = folder.column("o/flows.csv", "exp_id");
    let expected: Vec<String> = ids.iter().flat_map(|id| std::iter::repeat_n(id.clone(), 64)).collect();
    assert_eq!(with_flows, expected, "all flows of what ended, none of what did not");
    let parquet = folder.bytes("o/results.parquet");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let manifest: serde_json::Value = serde_json::from_slice(&folder.bytes("o/manifest.json")).unwrap();
    assert_eq!((&manifest["outcome"], &manifest["ok"]), (&"interrupted".into(), &ids.len().into()));
    let left: Vec<_> = std::fs::read_dir(folder.file("o"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .filter(|n| n.to_string_lossy().contains("part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A smaller buffer of one tier pauses more where that tier's switches are, and changes nothing that the other tier's does.
#[test]
fn each_tier_has_its_own_buffers() {
    let folder = Folder::new(&[(
        "s.toml",
        "name = \"t\"\n[base]\ncluster = { gpus = 32, gpus_per_server = 1 }\ntransport = { cc = \"none\", window = false }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 8, link_gbps = 100, uplink_gbps = 100 }\n\
         workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 24, bytes = 1000000 }\n\
         [axes]\n\"topology.leaf_buffer_mib\" = [8, 32]\n\"topology.spine_buffer_mib\" = [8, 32]\n",
    )]);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "o", "--quiet"]).code, 0);
    let numbers =
        |name: &str| -> Vec<u64> { folder.column("o/results.csv", name).iter().map(|v| v.parse().unwrap()).collect() };
    let (pauses, queues) = (numbers("pfc_pauses"), numbers("max_queue_bytes"));
    assert!(queues[0] == queues[1] && queues[2] == queues[3] && queues[0] * 2 < queues[2], "{queues:?}");
    assert!(pauses[0] > pauses[1] && pauses[2] > pauses[3] && pauses[1] > pauses[2], "{pauses:?}");
}
