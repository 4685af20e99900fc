//! Switches that reduce, as packets: what links carry, how long it takes, and what cannot be done so.

use crate::support::program::Folder;

/// Runs a sweep of one all-reduce, or of `jobs`, and returns the folder and what the program said.
fn ran(jobs: &str, more: &[&str]) -> (Folder, String) {
    let workload = match jobs {
        "" => {
            "workload = { kind = \"collective\", op = \"all-reduce\", bytes = 33554432, algorithm = \"in-network\" }\n"
        }
        _ => "",
    };
    let (folder, said, code) = run_of(workload, jobs, more);
    assert_eq!(code, 0, "{said}");
    (folder, said)
}

/// Runs a sweep of this workload or of these jobs, and returns the folder, what the program said, and its exit code.
fn run_of(workload: &str, jobs: &str, more: &[&str]) -> (Folder, String, i32) {
    let text = format!(
        "name = \"r\"\n[base]\ncluster = {{ gpu = \"h100\", gpus = 16, gpus_per_server = 4 }}\n\
         topology = {{ kind = \"rail-optimized\", servers_per_pod = 2, spines = 4, link_gbps = 400 }}\ntransport = {{ cc = \"none\" }}\n\
         output = {{ flows = true, links = true }}\n{workload}{jobs}"
    );
    let folder = Folder::new(&[("s.toml", &text)]);
    let args = [&["run", "s.toml", "--out", "out", "--engine", "cpu"], more].concat();
    let ran = folder.run(&args);
    (folder, ran.stderr + &ran.stdout, ran.code)
}

/// Time of the first experiment, us.
fn time_us(folder: &Folder) -> f64 {
    folder.numbers("results", "makespan_ns")[0] / 1000.0
}

/// Bytes that each direction of a link carried.
fn carried(folder: &Folder) -> Vec<(String, f64)> {
    folder.column("out/links.csv", "link").into_iter().zip(folder.numbers("links", "bytes")).collect()
}

#[test]
fn every_link_of_the_tree_carries_the_data_once_each_way() {
    let (folder, _) = ran("", &[]);
    let links = carried(&folder);
    // Each of four GPUs of a server has a quarter of the data; 4 % more are headers and acknowledgements of what comes back.
    let quarter = f64::from(32 << 20) / 4.0;
    let is_once = |bytes: f64| (1.0..1.12).contains(&(bytes / quarter));
    for host in 0..16 {
        let of_host: Vec<&(String, f64)> = links
            .iter()
            .filter(|(name, _)| {
                name.starts_with(&format!("host{host}->leaf")) || name.ends_with(&format!("->host{host}"))
            })
            .collect();
        assert_eq!(of_host.len(), 2, "{links:?}");
        assert!(of_host.iter().all(|(_, bytes)| is_once(*bytes)), "{of_host:?}");
    }
    // Two leaves of each rail meet in a spine, and the rails' roots are different ones.
    let up: Vec<&(String, f64)> = links
        .iter()
        .filter(|(name, bytes)| name.contains("->spine") && !name.contains("reducer") && *bytes > 0.0)
        .collect();
    assert!(up.len() == 8 && up.iter().all(|(_, bytes)| is_once(*bytes)), "{up:?}");
    let mut roots: Vec<&str> = up.iter().map(|(name, _)| name.split("->").nth(1).expect("a name")).collect();
    roots.sort_unstable();
    roots.dedup();
    assert_eq!(roots.len(), 4, "{up:?}");
    // 8 MiB at 400 Gb/s, once: 168 us. Up and down go on at the same time. Headers are 5 %, links, gates and pieces on the way 30 us.
    let us = time_us(&folder);
    assert!((168.0..215.0).contains(&us), "{us} us");
    let (ring, _) = ran("", &["--set", "workload.algorithm=ring"]);
    assert!(time_us(&ring) > 1.4 * us, "a ring carries 1.75 times as much");
}

#[test]
fn nvswitches_spread_what_they_summed() {
    let keys = ["--set", "cluster.gpus=4", "--set", "workload.algorithm=nvls", "--set", "cluster.nvlink=packet"];
    let (folder, _) = ran("", &keys);
    // Each GPU sends its data to be summed, and a quarter once more to be spread: 32 MiB x 5/4 at 450 GB/s is 93.2 us.
    let us = time_us(&folder);
    assert!((93.2..110.0).contains(&us), "{us} us");
    let links = carried(&folder);
    let own: Vec<&(String, f64)> = links.iter().filter(|(name, _)| name.starts_with("host")).collect();
    let expected = f64::from(32 << 20) * 1.25;
    assert!(own.iter().filter(|(_, bytes)| (1.0..1.12).contains(&(bytes / expected))).count() == 4, "{own:?}");
    assert_eq!(own.iter().filter(|(_, bytes)| *bytes > 0.0).count(), 4, "nothing leaves the server: {own:?}");
}

#[test]
fn chains_hand_their_sums_to_the_switches_of_their_heads() {
    let (folder, _) = ran("", &["--set", "workload.algorithm=collnet-chain", "--set", "cluster.nvlink=packet"]);
    let links = carried(&folder);
    let quarter = f64::from(32 << 20) / 4.0;
    let is_about = |bytes: f64, quarters: f64| (1.0..1.12).contains(&(bytes / quarter / quarters));
    // The switch inside a server is called a leaf, too.
    let mut sent: Vec<f64> = links
        .iter()
        .filter(|(name, bytes)| name.starts_with("host") && *bytes > 0.0)
        .map(|(_, bytes)| *bytes)
        .collect();
    sent.sort_by(f64::total_cmp);
    // Every GPU is the head of one chain, with a quarter of the data. Three chains lead through it or end at it in each direction.
    let (nics, inside) = sent.split_at(16);
    assert!(nics.iter().all(|&bytes| is_about(bytes, 1.0)), "{sent:?}");
    assert!(inside.len() == 16 && inside.iter().all(|&bytes| is_about(bytes, 6.0)), "{sent:?}");
    // 8 MiB at 400 Gb/s, once. NVLink is faster.
    let us = time_us(&folder);
    assert!((168.0..230.0).contains(&us), "{us} us");
}

#[test]
fn chains_are_of_all_reduces_across_servers() {
    let keys = |more: &[&'static str]| [&["--set", "workload.algorithm=collnet-chain"], more].concat();
    let (_, said, code) = run_of(
        "workload = { kind = \"collective\", op = \"all-gather\", bytes = 1000000, algorithm = \"collnet-chain\" }\n",
        "",
        &[],
    );
    assert!(code != 0 && said.contains("all-gather by collnet-chain does not exist"), "{said}");
    let (one, _) = ran("", &keys(&["--set", "cluster.gpus=4"]));
    assert_eq!(one.column("out/results.csv", "algorithm"), ["tree"]);
    let named = ["--set", "workload.algorithm=auto", "--set", "workload.nccl.NCCL_ALGO=CollnetChain"];
    let (by_name, _) = ran("", &named);
    assert_eq!(by_name.column("out/results.csv", "algorithm"), ["collnet-chain"]);
}

#[test]
fn a_measured_machine_takes_the_time_of_the_closed_form_when_idle() {
    for (algorithm, gpus) in [("in-network", "16"), ("nvls", "8"), ("collnet-chain", "16")] {
        for bytes in ["1024", "1048576", "33554432"] {
            let base = ["cluster.server=dgx-h100", "cluster.nvlink=packet"];
            let bytes = format!("workload.bytes={bytes}");
            let (gpus, algorithm) = (format!("cluster.gpus={gpus}"), format!("workload.algorithm={algorithm}"));
            let time = |analytic: &str| {
                let text = "name = \"r\"\n[base]\ntopology = { kind = \"rail-optimized\", servers_per_pod = 1 }\nworkload = { kind = \"collective\", op = \"all-reduce\" }\n";
                let folder = Folder::new(&[("s.toml", text)]);
                let mut args = vec!["run", "s.toml", "--out", "out", "--engine", "cpu"];
                for set in base.iter().copied().chain([bytes.as_str(), gpus.as_str(), algorithm.as_str(), analytic]) {
                    args.extend(["--set", set]);
                }
                let ran = folder.run(&args);
                assert_eq!(ran.code, 0, "{}", ran.stderr);
                time_us(&folder)
            };
            let (packets, closed) = (time("workload.analytic=intra"), time("workload.analytic=all"));
            let off = packets / closed;
            assert!(
                (0.9..1.25).contains(&off),
                "{algorithm} of {bytes}: {packets} us as packets, {closed} us by the closed form"
            );
        }
    }
}

#[test]
fn nothing_decides_but_the_sweep() {
    let results = |jobs: &str, more: &[&str]| {
        let (folder, _) = ran(jobs, more);
        ["results.csv", "flows.csv", "links.csv"].map(|name| folder.text(&format!("out/{name}")))
    };
    let job = |name: &str, start_us: u32| {
        format!(
            "[[job]]\nname = \"{name}\"\ngpus = 8\nplacement = \"spread\"\nstart_us = {start_us}.0\nkind = \"collective\"\nop = \"all-reduce\"\n\
             bytes = 1048576\nalgorithm = \"in-network\"\n"
        )
    };
    let jobs = format!("{}{}", job("a", 0), job("b", 5));
    for keys in ["", &jobs] {
        let one = results(keys, &["--jobs", "1"]);
        assert_eq!(results(keys, &["--jobs", "2"]), one);
        let memo = results(keys, &["--memo", "off"]);
        assert_eq!(memo, one);
    }
}

#[test]
fn what_has_no_tree_takes_the_closed_form_and_says_so() {
    let (_, said) = ran("", &["--set", "topology.kind=bcube", "--set", "cluster.gpus_per_server=1"]);
    assert!(
        said.contains(
            "all-reduce by in-network takes the time of an idle cluster and sends no packets: no tree of switches joins its NICs"
        ),
        "{said}"
    );
}

#[test]
fn trees_avoid_what_has_failed_before_the_beginning() {
    let spines = |more: &[&str]| {
        let (folder, _) = ran("", more);
        let links = carried(&folder);
        let used = links.into_iter().filter(|(name, bytes)| name.contains("->spine") && *bytes > 0.0);
        used.map(|(name, _)| name.split("->").nth(1).expect("a name").to_string()).collect::<Vec<_>>()
    };
    assert!(spines(&[]).contains(&"spine0".to_string()));
    let left = spines(&["--set", "topology.outages=spine0"]);
    assert!(!left.is_empty() && !left.contains(&"spine0".to_string()), "{left:?}");
}

#[test]
fn a_group_that_is_cut_off_from_its_switches_is_refused() {
    let all_reduce =
        "workload = { kind = \"collective\", op = \"all-reduce\", bytes = 1000000, algorithm = \"in-network\" }\n";
    for down in ["leaf0", "host3", "spine0,spine1,spine2,spine3"] {
        let (_, said, code) = run_of(all_reduce, "", &["--set", &format!("topology.outages={down}")]);
        assert_eq!(code, 2, "{down}: {said}");
        assert!(said.contains("without the links that topology.outages takes down from the start"), "{down}: {said}");
    }
}

#[test]
fn trees_over_one_link_do_not_wait_for_each_other() {
    // One NIC a server carries all four parts: 32 MiB at 400 Gb/s, 671 us, and 5 % of headers. All four trees cross the same leaves. One after the other they
    // would take half as long again.
    let (folder, _) = ran("", &["--set", "cluster.nics_per_server=1"]);
    let us = time_us(&folder);
    assert!((671.0..800.0).contains(&us), "{us} us");
}

#[test]
fn pieces_that_would_be_too_many_are_larger_and_told_of() {
    let keys = ["--set", "workload.bytes=65536", "--set", "workload.chunk_kib=0.015"];
    let (_, said) = ran("", &keys);
    assert!(
        said.contains("workload.chunk_kib: 65536 bytes by switches that reduce go in pieces of 16 bytes"),
        "{said}"
    );
}
