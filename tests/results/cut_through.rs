//! Switches that cut through, as a user sees them.

use crate::support::program::Folder;

/// Four leaves with four hosts each and two spines, at 100 Gb/s; packets of 4,096 bytes. Switches store and forward, then cut through.
fn sweep(cc: &str, workload: &str, more: &str) -> String {
    format!(
        "name = \"cut\"\n[base]\ncluster = {{ gpus = 16, gpus_per_server = 1 }}\n\
         topology = {{ kind = \"clos\", hosts_per_leaf = 4, spines = 2, link_gbps = 100, link_delay_ns = 500 }}\n\
         transport = {{ cc = \"{cc}\", payload_bytes = 4096 }}\nworkload = {{ {workload} }}\noutput.flows = true\n{more}\
         [axes]\n\"topology.cut_through_bytes\" = [0, 64]\n"
    )
}

#[test]
fn each_switch_saves_a_packet_less_its_header_once() {
    for (bytes, mode) in [(4096, "packet"), (4096, "flow"), (409_600, "packet"), (409_600, "flow")] {
        let workload = format!("kind = \"traffic\", pattern = \"incast\", fan_in = 1, bytes = {bytes}");
        let (folder, said, code) =
            Folder::with_run(&sweep("none", &workload, &format!("fidelity.mode = \"{mode}\"\n")));
        assert_eq!(code, 0, "{said}");
        let times = folder.numbers("results", "fct_max_ns");
        // 331.52 ns for a packet, 5.12 for a header, at each of the switches on the way: one, or three.
        let saved = times[0] - times[1];
        let wanted = [326.4, 3.0 * 326.4];
        assert!(wanted.iter().any(|w| (saved - w).abs() < 1.5), "{bytes} bytes, {mode}: {times:?}");
        assert_eq!(folder.numbers("results", "fct_slowdown_p99"), [1.0, 1.0], "{bytes} bytes, {mode}");
    }
}

#[test]
fn folding_changes_no_bit_and_no_slowdown_is_below_one() {
    let shift = "kind = \"traffic\", pattern = \"permutation\", bytes = 60000";
    let job = "kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", bytes = 4000000, iterations = 3";
    let all = "kind = \"collective\", op = \"all-to-all\", bytes = 800000";
    for (cc, workload) in
        [("dcqcn", job), ("hpcc", job), ("hpcc", all), ("swift", all), ("timely", job), ("dctcp", shift)]
    {
        let folder = Folder::new(&[("s.toml", &sweep(cc, workload, ""))]);
        let mut files = Vec::new();
        for (out, how) in [("exact", "\"exact\""), ("off", "\"off\"")] {
            let set = format!("fidelity.fast_forward={how}");
            let ran = folder.run(&["run", "s.toml", "--out", out, "--set", &set, "--quiet"]);
            assert_eq!(ran.code, 0, "{out}: {}", ran.stderr);
            let columns = ["makespan_ns", "fct_p50_ns", "fct_p99_ns", "max_queue_bytes", "packet_hops"];
            files.push(columns.map(|name| folder.column(&format!("{out}/results.csv"), name)));
            let slowdowns = folder.column(&format!("{out}/flows.csv"), "slowdown");
            assert!(slowdowns.iter().all(|text| text.parse::<f64>().expect("a number") >= 1.0), "{cc}: {slowdowns:?}");
        }
        assert_eq!(files[0], files[1], "{cc}, {workload}");
        let [stored, cut] = [0, 1].map(|i| files[0][0][i].parse::<f64>().expect("a number"));
        assert!(cut != stored, "{cc}, {workload}: {stored} ns and {cut}");
        assert_eq!(files[0][4][0], files[0][4][1], "{cc}: as many packets, whenever they arrive");
    }
}

/// A port of 200 Gb/s that falls to 100 makes its switch cut through, which is faster.
#[test]
fn a_link_that_becomes_slower_brings_no_slowdown_below_one() {
    for outage in ["\"leaf0 -> spine0 rate 50%\"", "\"leaf0 -> spine0 rate 50% from 1us to 3us\""] {
        let text = format!(
            "name = \"slow\"\n[base]\ncluster = {{ gpus = 2, gpus_per_server = 1 }}\n\
             topology = {{ kind = \"clos\", hosts_per_leaf = 1, spines = 1, link_gbps = 100, uplink_gbps = 200, link_delay_ns = 500, cut_through_bytes = 64 }}\n\
             transport = {{ cc = \"none\", payload_bytes = 4096 }}\nworkload = {{ kind = \"traffic\", pattern = \"ring\", bytes = 4096 }}\noutput.flows = true\n\
             [axes]\n\"topology.outages\" = [\"\", {outage}]\n"
        );
        let (folder, said, code) = Folder::with_run(&text);
        assert_eq!(code, 0, "{said}");
        let slowdowns = folder.numbers("flows", "slowdown");
        assert!(slowdowns.iter().all(|&slowdown| slowdown >= 1.0), "{outage}: {slowdowns:?}");
        assert!(slowdowns[..2].iter().all(|&slowdown| slowdown == 1.0), "{outage}: {slowdowns:?}");
    }
}

#[test]
fn switches_inside_servers_cut_through_too() {
    let text = "name = \"inside\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 8, nvlink = \"packet\", nvlink_gbps = 400 }\n\
        transport = { cc = \"none\", payload_bytes = 4096 }\nworkload = { kind = \"traffic\", pattern = \"incast\", fan_in = 1, bytes = 4096 }\n\
        [axes]\n\"topology.cut_through_bytes\" = [0, 64]\n";
    let (folder, said, code) = Folder::with_run(text);
    assert_eq!(code, 0, "{said}");
    let times = folder.numbers("results", "fct_max_ns");
    // 82.88 ns for a packet, 1.28 for a header.
    assert!((times[0] - times[1] - 81.6).abs() < 1.5, "{times:?}");
}

#[test]
fn numbers_that_mean_nothing_are_refused() {
    let traffic = "kind = \"traffic\", pattern = \"ring\", bytes = 4096";
    let plan = |more: &str, bytes: &str| {
        let text = sweep("dcqcn", traffic, more).replace("[0, 64]", &format!("[{bytes}]"));
        let ran = Folder::new(&[("s.toml", &text)]).run(&["plan", "s.toml"]);
        (ran.code, ran.stdout + &ran.stderr)
    };
    for (bytes, says) in [("13", "at least 14"), ("4145", "at most 4144"), ("70000", "65535")] {
        let (code, said) = plan("", bytes);
        assert!(code != 0 && said.contains(says), "{bytes}: {said}");
    }
    for bytes in ["0", "14", "4144"] {
        let (code, said) = plan("", bytes);
        assert_eq!(code, 0, "{bytes}: {said}");
    }
    let (code, said) = plan("routing.policy = \"adaptive\"\n", "64");
    assert!(code != 0 && said.contains("topology.cut_through_bytes") && said.contains("adaptive"), "{said}");
    let (code, said) = plan("routing.policy = \"adaptive\"\n", "0");
    assert_eq!(code, 0, "{said}");
}
