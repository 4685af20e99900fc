//! Networks that lose packets, reorder them, or do without PFC's headroom.

use crate::support::program::Folder;

/// A folder in which the sweep has run into `out`, with what the run said.
fn ran(sweep: &str, more: &[(&str, &str)]) -> (Folder, String) {
    let folder = Folder::new(&[&[("s.toml", sweep)], more].concat());
    let ran = folder.run(&["run", "s.toml", "--out", "out", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (folder, ran.stderr + &ran.stdout)
}

/// Senders into one port of a switch, without PFC and congestion control.
const INCAST: &str = r#"
name = "lossy"
[base]
cluster = { gpus = 17, gpus_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 17, link_gbps = 100, link_delay_ns = 500, buffer_mib = 5 }
workload = { kind = "traffic", pattern = "incast", bytes = 33554432 }
transport = { cc = "none", pfc = false, ecn = false, payload_bytes = 4096 }
output = { flows = true }
[axes]
"workload.fan_in" = [2, 4, 8, 16]
"#;

#[test]
fn ports_that_drop_before_they_mark_are_told_of() {
    // A queue of eight senders holds at most 1.3 MB here; DCQCN marks from 1.6 MB at 400 Gb/s.
    let sweep = |transport: &str| {
        format!(
            "name = \"marks\"\n[base]\ncluster = {{ gpus = 9, gpus_per_server = 1 }}\n\
             topology = {{ kind = \"clos\", hosts_per_leaf = 9, link_gbps = 400, buffer_mib = 2 }}\n\
             workload = {{ kind = \"traffic\", pattern = \"incast\", fan_in = 8, bytes = 100000 }}\n\
             transport = {{ {transport} }}\n[axes]\n\"transport.cc\" = [\"none\", \"dcqcn\"]\n"
        )
    };
    let told = |transport: &str| {
        let ran = Folder::new(&[("s.toml", &sweep(transport))]).run(&["plan", "s.toml"]);
        assert_eq!(ran.code, 0, "{transport}: {}", ran.stderr);
        ran.stdout + &ran.stderr
    };
    let said = "without PFC, all switch ports where queues form drop packets before they mark any. Ports of 400 Gb/s mark from 1600 kB";
    assert!(told("pfc = false").contains(said), "{}", told("pfc = false"));
    for right in ["pfc = true", "pfc = false, ecn_kmin_kb = 200", "pfc = false, ecn = false"] {
        assert!(!told(right).contains("before they mark"), "{right}: {}", told(right));
    }
}

#[test]
fn senders_that_lose_packets_share_most_of_a_port() {
    let (folder, said) = ran(INCAST, &[]);
    let warning = "warning: 4 experiments lost packets, as switch buffers overflowed and transport.pfc = false; experiment 3 lost most: ";
    assert!(said.contains(warning) && said.contains("(all of them had none)"), "{said}");
    let (ids, times) = (folder.numbers("flows", "exp_id"), folder.numbers("flows", "fct_ns"));
    for (row, senders) in [2.0, 4.0, 8.0, 16.0].into_iter().enumerate() {
        let packets = senders * 8192.0;
        let ideal_ns = packets * f64::from((4096 + 48) * 8) / 100.0;
        let of = |column: &str| folder.numbers("results", column)[row];
        let share = ideal_ns / of("makespan_ns");
        assert!(share > 0.7, "{senders} senders have {share} of the port's rate together");
        let (drops, again) = (of("drops") / packets, of("retransmissions") / packets);
        assert!(drops > 0.0 && drops < 0.5, "{senders} senders: {drops} drops a packet");
        assert!(again >= drops && again < 0.6, "{senders} senders: {again} retransmissions a packet, {drops} drops");
        let ends: Vec<f64> = ids.iter().zip(&times).filter(|(id, _)| **id == row as f64).map(|(_, t)| *t).collect();
        assert_eq!(ends.len(), senders as usize);
        let (first, last) = ends.iter().fold((f64::MAX, 0.0f64), |(a, b), &t| (a.min(t), b.max(t)));
        assert!(first > 0.75 * last, "{senders} senders end between {first} and {last} ns");
    }
}

#[test]
fn a_chip_gives_its_switches_their_buffer() {
    // 18 ports of 100 Gb/s at a leaf, 2 at a spine: a Tomahawk 2, of 42 MB, is the smallest chip that holds them.
    let results = |topology: &str, axis: &str| {
        let sweep = format!(
            "name = \"chips\"\n[base]\ncluster = {{ gpus = 18, gpus_per_server = 1 }}\n\
             topology = {{ kind = \"clos\", hosts_per_leaf = 9, link_gbps = 100, link_delay_ns = 500{topology} }}\n\
             workload = {{ kind = \"traffic\", pattern = \"incast\", fan_in = 17, bytes = 8388608 }}\n\
             transport = {{ cc = \"none\", pfc = false, ecn = false, payload_bytes = 4096 }}\n[axes]\n{axis}\n"
        );
        let (folder, said) = ran(&sweep, &[]);
        (folder.numbers("results", "drops"), folder.numbers("results", "makespan_ns"), said)
    };
    let (drops, times, _) = results("", "\"topology.buffer_mib\" = [32, 40.054, 157.356]");
    assert!(drops[0] > drops[1] && drops[1] > drops[2] && times[0] != times[1], "buffers matter: {drops:?} {times:?}");
    let axis = "\"topology.switch\" = [\"none\", \"tomahawk-2\", \"by-rate\", \"tomahawk-5\"]";
    let (chips, of_chips, said) = results("", axis);
    assert_eq!((chips, of_chips), ([0, 1, 1, 2].map(|i| drops[i]).to_vec(), [0, 1, 1, 2].map(|i| times[i]).to_vec()));
    let note = "topology.switch = \"by-rate\" chose leaf0 and 1 more of its tier: tomahawk-2, 40.054 MiB; spine0 and 8 more of its tier: tomahawk-2, 40.054 MiB";
    assert!(said.contains(note), "{said}");
    // Keys of buffers win over the chip, tier by tier.
    let axis = "\"topology.leaf_buffer_mib\" = [4, 16]";
    let (given, by_hand) = (results(", switch = \"by-rate\"", axis), results(", spine_buffer_mib = 40.054", axis));
    assert_eq!((&given.0, &given.1), (&by_hand.0, &by_hand.1));
    assert!(given.0[0] != given.0[1] && !given.0.contains(&drops[1]), "{:?}", given.0);
    let both = results(", switch = \"by-rate\"", "\"topology.buffer_mib\" = [32, 157.356]");
    assert_eq!(both.0, [drops[0], drops[2]]);
}

#[test]
fn the_references_rule_stays_as_a_value_of_a_key() {
    let ns3 = INCAST.replace("cc = \"none\"", "cc = \"none\", loss_recovery = \"ns3\"").replace("[2, 4, 8, 16]", "[2]");
    let (folder, _) = ran(&ns3.replace("33554432", "4194304"), &[]);
    assert!(folder.numbers("results", "drops")[0] > 2048.0, "each packet is dropped once and more");
}

/// Two pairs of switches; the link in the middle is 2,000 km long.
const LONG_LINK: &str = "6 2 5\n4 5\n0 4 400Gbps 0.0005ms 0\n1 4 400Gbps 0.0005ms 0\n2 5 400Gbps 0.0005ms 0\n3 5 400Gbps 0.0005ms 0\n4 5 400Gbps 10ms 0\n";

#[test]
fn a_long_link_needs_headroom_only_with_pfc() {
    let sweep = |pfc: bool| {
        format!(
            "name = \"long\"\n[base]\ncluster = {{ gpus = 4, gpus_per_server = 1 }}\n\
             topology = {{ kind = \"file\", path = \"t.txt\", format = \"ns3\" }}\n\
             workload = {{ kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", bytes = 4000000 }}\n\
             transport = {{ pfc = {pfc} }}\n[axes]\n\"transport.cc\" = [\"none\", \"dcqcn\", \"hpcc\", \"timely\", \"dctcp\"]\n"
        )
    };
    let (folder, _) = ran(&sweep(false), &[("t.txt", LONG_LINK)]);
    let times = folder.numbers("results", "makespan_ns");
    // What goes round crosses the long link in every second of six steps; the last acknowledgement crosses it too.
    assert!(times.iter().all(|t| (30e6..60e6).contains(t)), "{times:?}");
    assert_eq!(folder.numbers("results", "drops"), [0.0; 5]);
    let refused = Folder::new(&[("s.toml", &sweep(true)), ("t.txt", LONG_LINK)]);
    let ran = refused.run(&["run", "s.toml", "--out", "out"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("PFC's headroom") && ran.stderr.contains("transport.pfc = false"), "{}", ran.stderr);
}

/// Everyone to one host over four spines, by one path a flow and by all.
const SPRAYED: &str = r#"
name = "sprayed"
[base]
cluster = { gpus = 16, gpus_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 4, spines = 4, link_gbps = 10, uplink_gbps = 10, buffer_mib = 8 }
workload = { kind = "traffic", pattern = "incast", fan_in = 0, bytes = 80000 }
transport = { payload_bytes = 1000, cc = "none" }
[axes]
"routing.policy" = ["ecmp", "spray"]
"#;

#[test]
fn spraying_names_what_receivers_make_of_reordering() {
    let (folder, said) = ran(SPRAYED, &[]);
    let named = |text: &str| {
        let all = ["go-back-N", "routing.policy = \"spray\"", "transport.loss_recovery", "retransmissions"];
        all.iter().all(|word| text.contains(word))
    };
    assert!(named(&said), "{said}");
    let plan = folder.run(&["plan", "s.toml"]);
    assert!(named(&(plan.stdout + &plan.stderr)));
    let again = folder.numbers("results", "retransmissions");
    assert!(again[0] == 0.0 && again[1] > 100.0, "{again:?}");
    assert_eq!(folder.numbers("results", "drops"), [0.0, 0.0]);
    let explained = folder.run(&["compare", "out", "--explain", "0", "1"]);
    assert!(explained.stdout.contains("none was dropped: reordering"), "{}", explained.stdout);
    // Without the second policy nothing is said of it.
    let (_, said) = ran(&SPRAYED.replace(", \"spray\"", ""), &[]);
    assert!(!said.contains("go-back-N"), "{said}");
}

/// A permutation of 128 hosts over a fat tree at full load, whose packets take all paths; receivers take them in any order.
const PERMUTATION: &str = r#"
name = "permutation"
[base]
cluster = { gpus = 128, gpus_per_server = 1 }
topology = { kind = "fat-tree", k = 8, link_gbps = 400, link_delay_ns = 500 }
workload = { kind = "traffic", pattern = "permutation", bytes = 4000000 }
transport = { payload_bytes = 4096, loss_recovery = "selective", cc = "none" }
[axes]
"routing.policy" = ["spray", "round-robin"]
"#;

#[test]
fn packets_in_any_order_fill_all_paths() {
    let (folder, said) = ran(PERMUTATION, &[]);
    assert!(!said.contains("go-back-N"), "{said}");
    // 977 packets, each with 48 bytes of headers, at 400 Gb/s; six links there and back, and five switches that store and forward a packet.
    let (wire, delays, switches) = (4e6 + 977.0 * 48.0, 12.0 * 500.0, 5.0 * 4144.0 * 8.0 / 400.0);
    let ideal = wire * 8.0 / 400.0 + delays + switches;
    let [spray, in_turn] = folder.numbers("results", "makespan_ns").try_into().unwrap();
    assert!(in_turn > ideal && in_turn < 1.05 * ideal, "{in_turn} ns, ideal {ideal} ns");
    assert!(spray > in_turn && spray < 1.25 * ideal, "{spray} ns, ideal {ideal} ns");
    // HPCC reads telemetry of other switches each time, and a run says so.
    let (_, said) = ran(&PERMUTATION.replace("cc = \"none\"", "cc = \"hpcc\"").replace("4000000", "40000"), &[]);
    assert!(said.contains("HPCC compares the telemetry"), "{said}");
    // A threshold below what packets overtake each other by.
    let low = "loss_recovery = \"selective\", packet_threshold = 2";
    let (folder, said) =
        ran(&PERMUTATION.replace("loss_recovery = \"selective\"", low).replace("4000000", "400000"), &[]);
    assert!(folder.numbers("results", "retransmissions").iter().all(|&n| n > 0.0));
    assert!(said.contains("2 experiments sent packets again though none was dropped"), "{said}");
}

#[test]
fn only_missing_packets_are_sent_again() {
    // A sender has at most 64 packets out, so the buffer is a smaller one.
    let sweep = INCAST
        .replace("cc = \"none\"", "cc = \"none\", loss_recovery = \"selective\"")
        .replace("33554432", "8388608")
        .replace("buffer_mib = 5", "buffer_mib = 0.5")
        .replace("[2, 4, 8, 16]", "[4, 8, 16]");
    let (folder, _) = ran(&sweep, &[]);
    let columns = ["drops", "retransmissions", "makespan_ns"].map(|column| folder.numbers("results", column));
    for (i, senders) in [4.0, 8.0, 16.0].into_iter().enumerate() {
        let [drops, again, time] = columns.each_ref().map(|values| values[i]);
        let packets = senders * 2048.0;
        assert!(drops > 0.01 * packets, "{drops} drops of {packets} packets");
        // Nothing else is dropped on the way back, so each drop is sent again once.
        assert_eq!(again, drops, "{senders} senders");
        let ideal = packets * 4144.0 * 8.0 / 100.0;
        // Of four senders one loses its last packets twice, and waits for a timeout.
        let timeout = if senders == 4.0 { 4_194e3 } else { 0.0 };
        assert!(time < 1.1 * ideal + timeout, "{senders} senders take {time} ns, {ideal} ns at the port's rate");
    }
}

#[test]
fn marks_count_at_every_port() {
    let sweep = r#"
name = "marks"
[base]
cluster = { gpus = 8, gpus_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 4, spines = 1, link_gbps = 100, uplink_gbps = 100 }
transport = { cc = "timely", payload_bytes = 1000, ecn_kmin_kb = 1, ecn_kmax_kb = 1 }
workload = { kind = "traffic", pattern = "incast", fan_in = 0, bytes = 200000 }
output = { links = true }
"#;
    let (folder, _) = ran(sweep, &[]);
    let marks = folder.numbers("results", "ecn_marks")[0];
    let of_links: f64 = folder.numbers("links", "ecn_marks").iter().sum();
    let packets = 7.0 * 200.0;
    assert!(marks == of_links && marks > packets, "{marks} marks of {packets} packets, {of_links} by links");
}

#[test]
fn messages_that_share_a_queue_pair_share_its_count_of_retransmissions() {
    let sweep = |iterations: u32| {
        format!(
            "name = \"shared\"\n[base]\ncluster = {{ gpus = 8, gpus_per_server = 1 }}\n\
             topology = {{ kind = \"clos\", hosts_per_leaf = 4, spines = 2, link_gbps = 100, link_delay_ns = 500, buffer_mib = 0.2 }}\n\
             workload = {{ kind = \"collective\", op = \"all-to-all\", bytes = 800000, iterations = {iterations} }}\n\
             transport = {{ cc = \"none\", pfc = false, rto_us = 200 }}\noutput.flows = true\nfidelity.fast_forward = \"off\"\n"
        )
    };
    for (iterations, is_alone) in [(1, true), (3, false)] {
        let (folder, said, code) = Folder::with_run(&sweep(iterations));
        assert_eq!(code, 0, "{said}");
        let by_flow = folder.column("out/flows.csv", "retransmissions");
        let known: f64 = by_flow.iter().filter_map(|count| count.parse::<f64>().ok()).sum();
        let all = folder.numbers("results", "retransmissions")[0];
        let n_unknown = by_flow.iter().filter(|count| count.is_empty()).count();
        if is_alone {
            assert!(known == all && all > 0.0 && n_unknown == 0, "{known} of {all}; {n_unknown} unknown");
        } else {
            // Counts of queue pairs with several messages are left out unless they are 0.
            assert!(known < all && n_unknown > 0 && by_flow.iter().any(|count| count == "0"), "{by_flow:?}");
        }
    }
}
