//! Links at a reduced rate, and links that lose packets, as a user sees them.

use crate::support::program::Folder;

fn is_near(found: f64, wanted: f64, share: f64) -> bool {
    (found / wanted - 1.0).abs() < share
}

/// Two hosts, each at a leaf of its own, and one spine. Links of 100 Gb/s; one host sends 1,000 packets of 4,096 bytes to the other.
fn one_flow(more: &str, outages: &str) -> String {
    format!(
        "name = \"one\"\n[base]\ncluster = {{ gpus = 2, gpus_per_server = 1 }}\n\
         topology = {{ kind = \"clos\", hosts_per_leaf = 1, spines = 1, link_gbps = 100, link_delay_ns = 500 }}\n\
         workload = {{ kind = \"traffic\", pattern = \"incast\", fan_in = 1, bytes = 4096000 }}\n\
         transport = {{ cc = \"none\", payload_bytes = 4096 }}\noutput = {{ flows = true, links = true }}\n{more}\
         [axes]\n\"topology.outages\" = [{outages}]\n"
    )
}

/// Time in ns that `bytes` take at `gbps`.
fn sending_ns(bytes: f64, gbps: f64) -> f64 {
    bytes * 8.0 / gbps
}

#[test]
fn a_flow_takes_four_times_as_long_on_a_link_at_a_quarter_of_its_rate() {
    let sweep = |more: &str| {
        one_flow(
            more,
            "\"\", \"leaf1 spine0 rate 25%\", \"leaf1 -> spine0 rate 25%\", \"spine0 -> leaf1 rate 25Gbps\", \"spine0 rate 100%\", \
             \"host1 -> leaf1 rate 25%\"",
        )
    };
    let (folder, said, code) = Folder::with_run(&sweep(""));
    assert_eq!(code, 0, "{said}");
    let sources = folder.column("out/flows.csv", "src");
    assert_eq!(sources[0], "1", "the flow crosses leaf1 -> spine0");
    let times = folder.numbers("results", "fct_max_ns");
    let (packet, ack) = (sending_ns(4144.0, 100.0), sending_ns(60.0, 100.0));
    let healthy = 1003.0 * packet + 4.0 * ack + 8.0 * 500.0;
    // All packets go one behind the other over the slowest link, and once each over the others.
    let slow = 1000.0 * 4.0 * packet + 3.0 * packet + 4.0 * ack + 8.0 * 500.0;
    for (time, wanted) in times.iter().zip([healthy, slow + 3.0 * ack, slow, healthy + 3.0 * ack, healthy, slow]) {
        assert!((time - wanted).abs() < 2.0, "{wanted}: {times:?}");
    }
    // An ideal network has no slow links, so a slowdown shows what they cost.
    let slowdowns = folder.numbers("results", "fct_slowdown_p99");
    assert!(slowdowns[0] == 1.0 && is_near(slowdowns[2], 4.0, 0.02), "{slowdowns:?}");
    assert_eq!(folder.numbers("flows", "slowdown"), slowdowns, "the one flow of each experiment");
    assert_eq!(folder.numbers("flows", "retransmissions"), [0.0; 6]);
    let links = folder.column("out/links.csv", "link");
    let capacities = folder.numbers("links", "capacity_gbps");
    let ends = ["source", "target"].map(|column| folder.column("out/links.csv", column));
    let slow_row = links.iter().zip(&capacities).position(|(_, capacity)| *capacity < 100.0).expect("a slow link");
    assert_eq!(
        (ends[0][slow_row].as_str(), ends[1][slow_row].as_str(), capacities[slow_row]),
        ("leaf1", "spine0", 25.0)
    );
    let shares = folder.numbers("links", "utilisation");
    let busiest = links.iter().zip(&shares).skip(links.len() / 6 * 2).take(links.len() / 6);
    let of_link = |name: &str| *busiest.clone().find(|(link, _)| *link == name).expect("the link is there").1;
    assert!(is_near(of_link("leaf1->spine0"), 1.0, 0.02), "{}", of_link("leaf1->spine0"));
    assert!(is_near(of_link("spine0->leaf0"), 0.25, 0.02), "{}", of_link("spine0->leaf0"));

    let (folder, said, code) = Folder::with_run(&sweep("fidelity.mode = \"flow\"\n"));
    assert_eq!(code, 0, "{said}");
    assert!(folder.column("out/flows.csv", "retransmissions").iter().all(String::is_empty), "there are no packets");
    let flows = folder.numbers("results", "fct_max_ns");
    for (flow, packet) in flows.iter().zip(&times) {
        assert!(is_near(*flow, *packet, 0.001), "{flows:?} {times:?}");
    }
}

#[test]
fn spraying_and_fair_rates_run_into_a_slow_link_and_adaptive_routing_does_not() {
    let slowest = |mode: &str, policy: &str| {
        let (folder, said, code) = Folder::with_run(&format!(
            "name = \"spray\"\n[base]\ncluster = {{ gpus = 16, gpus_per_server = 1 }}\n\
             topology = {{ kind = \"fat-tree\", k = 4, link_gbps = 400, link_delay_ns = 500 }}\nfidelity.mode = \"{mode}\"\n\
             workload = {{ kind = \"traffic\", pattern = \"permutation\", bytes = 4000000 }}\n\
             transport = {{ cc = \"none\", payload_bytes = 4096, loss_recovery = \"selective\", pfc = true }}\n\
             routing.policy = \"{policy}\"\n\
             [axes]\n\"topology.outages\" = [\"\", \"leaf0 -> agg0 rate 25%\", \"leaf0 agg0\"]\n"
        ));
        assert_eq!(code, 0, "{mode}, {policy}: {said}");
        let is_noted = said.contains("with adaptive routing and topology.outages the parts differ");
        assert_eq!(is_noted, mode == "flow" && policy == "adaptive", "{said}");
        folder.numbers("results", "fct_max_ns")
    };
    let (packets, flows) = (slowest("packet", "round-robin"), slowest("flow", "round-robin"));
    // Each of two hosts sends half of its packets over the slow link: what one host sends, at a quarter of the rate.
    let wanted = 4.0 * sending_ns(4_000_000.0 * 4144.0 / 4096.0, 400.0);
    for times in [&packets, &flows] {
        assert!(is_near(times[1], wanted, 0.08), "{wanted}: {packets:?} {flows:?}");
        assert!(times[1] > 1.8 * times[2], "routing avoids a link that has failed: {packets:?} {flows:?}");
    }
    assert_eq!(slowest("flow", "adaptive"), flows);
    let chosen = slowest("packet", "adaptive");
    // Its switch sees the queue of the slow link. At best both links are full until the end, at 5/4 of one link's rate for two hosts.
    let least = sending_ns(2.0 * 4_000_000.0 * 4144.0 / 4096.0, 500.0);
    assert!(chosen[1] > least && chosen[1] < 0.6 * packets[1], "{least}: {chosen:?} {packets:?}");
    assert!(chosen[0] < 1.15 * packets[0], "{chosen:?} {packets:?}");
}

#[test]
fn nothing_is_lost_where_a_port_receives_faster_than_it_sends() {
    // The port sends data slowly, so a pause frame waits long behind a packet, while its host goes on sending.
    let (folder, said, code) = Folder::with_run(
        "name = \"lossless\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 4, spines = 1, link_gbps = 100, buffer_mib = 2 }\n\
         workload = { kind = \"traffic\", pattern = \"all-to-all\", bytes = 1000000 }\n\
         transport = { cc = \"none\", payload_bytes = 4096 }\n\
         [axes]\n\"topology.outages\" = [\"leaf0 -> host1 rate 5%\", \"leaf0 -> host1 rate 25%\"]\n\
         \"topology.link_delay_ns\" = [500, 50]\n",
    );
    assert_eq!(code, 0, "{said}");
    assert_eq!(folder.numbers("results", "drops"), [0.0; 4]);
    assert!(folder.numbers("results", "pfc_pauses").iter().all(|&n| n > 0.0), "without pauses this says nothing");
}

#[test]
fn wrong_rates_are_refused_and_useless_ones_noted() {
    let sweep = |outages: &str, more: &str| {
        format!(
            "name = \"wrong\"\n[base]\ncluster = {{ gpus = 16, gpus_per_server = 1 }}\n\
             topology = {{ kind = \"fat-tree\", k = 4, link_gbps = 400, link_delay_ns = 500 }}\n\
             workload = {{ kind = \"traffic\", pattern = \"ring\", bytes = 4000 }}\n{more}\
             [axes]\n\"topology.outages\" = [{outages}]\n"
        )
    };
    for (outages, more, why) in [
        ("leaf99 agg0 rate 25%", "", "no node is called `leaf99`; there are host0 to host15, leaf0 to leaf7"),
        ("leaf0 -> leaf1 rate 25%", "", "no packet link is there; leaf0 is linked to host0, host1, agg0, agg1"),
        ("leaf0 agg0#2 rate 25%", "", "there are 1 links between these nodes"),
        ("random 99 rate 25%", "", "the network has 32 links between switches"),
        ("leaf0 agg0 rate 401Gbps", "", "leaf0 -> agg0 has 400 Gb/s, and a rate cannot be above that of the link"),
        ("leaf0 agg0 rate 125%", "", "above the link's own rate"),
        ("leaf0 agg0 rate 0%", "", "carries nothing"),
        ("leaf0 agg0 rate 25% down 5us", "", "`down` and `up` stop a link"),
        ("leaf0 agg0 rate 25% from 5us to 1us", "", "over before it begins"),
        ("leaf0 agg0 rate 25% from 1us to 5us, agg0 rate 50% from 4us", "", "gives leaf0 -> agg0 a rate already"),
        ("leaf0 agg0 loss 1%, leaf0 -> agg0 loss 2% to 9us", "", "gives leaf0 -> agg0 a loss already"),
        ("leaf0 agg0 loss 100%", "", "loses every packet"),
        ("leaf0 agg0 loss 1%", "fidelity.mode = \"flow\"\n", "at flow level there are no packets to lose"),
        (
            "leaf0 agg0 loss 1%",
            "transport = { cc = \"rccc\", loss_recovery = \"uec\", receiver_credit = true }\n",
            "credit that is lost is never given again",
        ),
        ("leaf0 -> agg0 down 5us", "", "a link fails in both directions"),
        ("agg0 rate 50%, leaf0 agg0 rate 25%", "", "`agg0 rate 50%` gives leaf0 -> agg0 a rate already"),
        (
            "host0 rate 1Gbps, host1 rate 2Gbps, host2 rate 3Gbps, host3 rate 4Gbps, host4 rate 5Gbps, host5 rate 6Gbps, host6 rate 7Gbps, \
             host7 rate 8Gbps",
            "transport.cc = \"hpcc\"\n",
            "this network has 9, with the reduced rates of topology.outages",
        ),
    ] {
        let (folder, said, code) = Folder::with_run(&sweep(&format!("\"\", \"{outages}\""), more));
        assert_eq!(code, 1, "{outages}: {said}");
        let found = folder.text("out/failed.csv");
        assert!(found.contains(why), "{outages}: {found}");
    }
    for (outages, more, note) in [
        ("host0 rate 100%", "", "they are the links' own"),
        (
            "core0 rate 50%",
            "cluster.gpus_per_server = 16\ncluster.nvlink_gbps = 3600\n",
            "no packet crosses the network",
        ),
        ("core0 rate 50%", "workload.pattern = \"incast\"\nworkload.fan_in = 1\n", "no path crosses an impaired link"),
    ] {
        let text = sweep(&format!("\"{outages}\""), "");
        let folder = Folder::new(&[("s.toml", &text)]);
        let sets = more.lines().flat_map(|line| ["--set".to_string(), line.replace(" = ", "=").replace('"', "")]);
        let args = ["run", "s.toml", "--out", "out", "--engine", "cpu"].into_iter().map(String::from).chain(sets);
        let args: Vec<String> = args.collect();
        let ran = folder.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let said = ran.stderr + &ran.stdout;
        assert!(ran.code == 0 && said.contains(note), "{outages}: {said}");
    }
}

#[test]
fn a_rate_for_some_time_costs_what_is_not_sent_meanwhile() {
    let outages = [
        "",
        "leaf1 spine0 rate 25% from 100us to 200us",
        "leaf1 -> spine0 rate 25Gbps to 100us",
        "host1 -> leaf1 rate 25% from 100us to 200us",
        "leaf1 spine0 rate 25% from 100us to 110us every 20us until 200us",
        "leaf1 spine0 rate 25% from 100us to 200us, leaf1 spine0 rate 50% from 200us to 240us",
        "spine0 -> leaf1 rate 25% from 100us to 200us",
    ];
    let list = outages.map(|outage| format!("\"{outage}\"")).join(", ");
    let (folder, said, code) = Folder::with_run(&one_flow("", &list));
    assert_eq!(code, 0, "{said}");
    let times = folder.numbers("results", "fct_max_ns");
    // What the slowest link of the path could have sent meanwhile, in ns. A packet that is under way keeps its rate: a time may be wrong by three packets.
    for (time, lost_ns) in times.iter().zip([0.0, 75_000.0, 75_000.0, 75_000.0, 37_500.0, 95_000.0, 0.0]) {
        let wanted = times[0] + lost_ns;
        assert!((time - wanted).abs() < 3.0 * sending_ns(4144.0, 25.0), "{wanted}: {times:?}");
    }
    assert_eq!(folder.numbers("results", "drops"), [0.0; 7]);
    let capacities = folder.numbers("links", "capacity_gbps");
    assert!(capacities.iter().all(|&gbps| gbps == 100.0), "capacities are those of the links");
    assert!(folder.numbers("links", "utilisation").iter().all(|&share| share <= 1.0));

    // The order of work changes nothing, and a sweep says why nothing is folded.
    let text = folder.text("out/results.csv");
    let folder = Folder::new(&[("s.toml", &one_flow("", &list))]);
    let ran = folder.run(&["run", "s.toml", "--out", "out", "--engine", "cpu", "--jobs", "1", "--memo", "off"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(folder.text("out/results.csv"), text);
}

#[test]
fn lost_packets_are_sent_again_and_no_others() {
    let more = "transport = { loss_recovery = \"selective\", cc = \"none\", payload_bytes = 4096 }\nworkload.bytes = 40960000\n";
    let outages = [
        "",
        "leaf1 -> spine0 loss 1%",
        "host1 -> leaf1 loss 1%",
        "leaf1 -> spine0 loss 1% to 1ms",
        "spine0 -> leaf1 loss 1%",
    ];
    let list = outages.map(|outage| format!("\"{outage}\"")).join(", ");
    let sweep = one_flow("", &list).replace("transport = { cc = \"none\", payload_bytes = 4096 }\n", "");
    let sweep = sweep.replace("bytes = 4096000 }", "bytes = 40960000 }");
    let more = more.lines().next().expect("there is a line");
    let (folder, said, code) = Folder::with_run(&sweep.replace("output = {", &format!("{more}\noutput = {{")));
    assert_eq!(code, 0, "{said}");
    let (drops, again) = (folder.numbers("results", "drops"), folder.numbers("results", "retransmissions"));
    assert_eq!((drops[0], again[0]), (0.0, 0.0));
    // 10,000 packets and those sent again, each lost with 1 %: 101 on average, ten more or less.
    for i in [1, 2] {
        assert!((drops[i] - 101.0).abs() < 40.0, "{drops:?}");
        assert_eq!(drops[i], again[i], "each lost packet is sent again, and no other: {drops:?} {again:?}");
    }
    // About 3,000 of them in the first millisecond.
    assert!(drops[3] > 10.0 && drops[3] < 60.0 && drops[3] == again[3], "{drops:?} {again:?}");
    // Acknowledgements say all that was received, so later ones make up for those that get lost.
    assert!(drops[4] > 20.0 && again[4] < 0.1 * drops[4], "{drops:?} {again:?}");
    let links = folder.column("out/links.csv", "link");
    let lost_at = |experiment: usize| -> Vec<String> {
        let n = links.len() / 5;
        let of_links = links.iter().zip(folder.numbers("links", "drops")).skip(experiment * n).take(n);
        of_links.filter(|(_, drops)| *drops > 0.0).map(|(link, _)| link.clone()).collect()
    };
    assert_eq!(lost_at(1), ["leaf1->spine0"]);
    assert_eq!(lost_at(2), ["host1->leaf1"]);

    // Another seed draws other packets.
    let (other, said, code) = Folder::with_run(
        &sweep.replace("output = {", &format!("{more}\noutput = {{")).replace("[base]", "seed = 7\n[base]"),
    );
    assert_eq!(code, 0, "{said}");
    assert_ne!(other.numbers("results", "fct_max_ns")[1], folder.numbers("results", "fct_max_ns")[1]);
}

#[test]
fn what_knows_one_rate_only_says_so() {
    let said = |sets: &[&str]| {
        let folder = Folder::new(&[(
            "s.toml",
            "name = \"model\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\n\
             topology = { kind = \"clos\", hosts_per_leaf = 4, spines = 1, link_gbps = 100 }\n\
             workload = { kind = \"model\", tp = 2, microbatch = 1, global_batch = 8, model = { name = \"small\", source = \"our choice\", \
             transformer = { layers = 1, hidden = 256, heads = 8, vocab = 8192, seq = 64 } } }\n\
             [axes]\n\"topology.outages\" = [\"\", \"host0 rate 25%\"]\n",
        )]);
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let args: Vec<&str> = ["run", "s.toml", "--out", "out", "--engine", "cpu"].into_iter().chain(sets).collect();
        let ran = folder.run(&args);
        let said = ran.stderr + &ran.stdout;
        assert_eq!(ran.code, 0, "{said}");
        (folder.numbers("results", "iteration_time_ns"), said)
    };
    let (formula, joined) =
        ("communication that workload.analytic works out", "fidelity.join = \"ranks\" gives all ranks");
    let (times, by_packets) = said(&[]);
    assert!(times[1] > 1.1 * times[0] && !by_packets.contains(formula), "{times:?} {by_packets}");
    let (times, by_formula) = said(&["workload.analytic=dp"]);
    assert!(times[1] > times[0] && by_formula.contains(formula), "{times:?} {by_formula}");
    let (times, by_formulas) = said(&["workload.analytic=all"]);
    assert!(times[1] == times[0] && by_formulas.contains("no packet crosses the network"), "{times:?} {by_formulas}");
    let (times, by_classes) = said(&["fidelity.mode=flow", "fidelity.join=ranks"]);
    assert!(times[1] > 1.1 * times[0] && by_classes.contains(joined), "{times:?} {by_classes}");
}

/// A switch of the second tier has lost half of its links. Switches that weigh their ports send it half as much; where no link is lost, weights change no byte.
#[test]
fn weighed_ports_send_less_to_a_switch_that_has_lost_links() {
    let (folder, said, code) = Folder::with_run(
        "name = \"weighed\"\n[base]\ncluster = { gpus = 128, gpus_per_server = 1 }\n\
         topology = { kind = \"fat-tree\", k = 8, link_gbps = 400, link_delay_ns = 500 }\n\
         workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 1000000 }\n\
         transport = { cc = \"dcqcn\", loss_recovery = \"selective\", packet_threshold = 500, psn_range = 4096, payload_bytes = 4096 }\n\
         routing.policy = \"adaptive\"\n\
         [axes]\n\"topology.outages\" = [\"\", [\"agg0 core0\", \"agg0 core1\"]]\n\"routing.weigh_ports\" = [false, true]\n",
    );
    assert_eq!(code, 0, "{said}");
    let slowest = folder.numbers("results", "fct_max_ns");
    assert_eq!(slowest[0], slowest[1], "all ports are alike");
    assert!(slowest[3] < 0.9 * slowest[2] && slowest[3] < 1.25 * slowest[0], "{slowest:?}");
    let queues = folder.numbers("results", "max_queue_bytes");
    assert!(queues[3] < 0.7 * queues[2], "{queues:?}");
}

/// Links from cores down to a switch have a quarter of their rate. Switches two tiers before them send fewer packets there if they weigh ports by rates, or know of
/// the queues.
#[test]
fn slow_links_behind_the_next_switch_are_avoided() {
    let (folder, said, code) = Folder::with_run(
        "name = \"further-on\"\n[base]\ncluster = { gpus = 128, gpus_per_server = 1 }\n\
         topology = { kind = \"fat-tree\", k = 8, link_gbps = 400, link_delay_ns = 500 }\n\
         workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 1000000 }\n\
         transport = { cc = \"swift\", loss_recovery = \"selective\", packet_threshold = 500, psn_range = 4096, payload_bytes = 4096 }\n\
         routing = { policy = \"adaptive\", weigh_by = \"rates\" }\n\
         [axes]\n\"topology.outages\" = [\"\", [\"agg4 core0 rate 25%\", \"agg4 core1 rate 25%\"]]\n\
         \"routing.weigh_ports\" = [false, true]\n\"routing.remote_us\" = [0, 1]\n",
    );
    assert_eq!(code, 0, "{said}");
    let slowest = folder.numbers("results", "fct_max_ns");
    let [plain, reports, weights, both] = [4, 5, 6, 7].map(|k| slowest[k]);
    assert_eq!(slowest[0], slowest[2], "all ports are alike");
    assert!(weights < 0.9 * plain && reports < 0.9 * plain && both < 0.9 * plain, "{slowest:?}");
    for jobs in ["1", "2"] {
        let ran = folder.run(&["run", "s.toml", "--out", jobs, "--engine", "cpu", "--jobs", jobs]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(folder.bytes("out/results.csv") == folder.bytes(&format!("{jobs}/results.csv")), "{jobs} threads");
    }
}

/// Four hosts at two leaves, which two spines join, with the error rate of one host's link.
fn leaves_and_spines(error_rate: &str) -> String {
    format!(
        "8 4 8\n4 5 6 7\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us {error_rate}\n3 5 100Gbps 1us 0\n\
         4 6 100Gbps 1us 0\n4 7 100Gbps 1us 0\n5 6 100Gbps 1us 0\n5 7 100Gbps 1us 0\n"
    )
}

/// What files of HPCC say of losses and failures is what `topology.outages` says in their place.
#[test]
fn error_rates_and_failures_of_files_are_those_of_the_key() {
    let sweep = |path: &str, more: &str| {
        format!(
            "name = \"files\"\n[base]\ntopology.kind = \"file\"\ntopology.path = \"{path}\"\noutput = {{ flows = true, links = true }}\n\
             workload = {{ kind = \"flows\", path = \"flows.txt\" }}\n{more}"
        )
    };
    let config = "CC_MODE 1\nERROR_RATE_PER_LINK 0.0001\nLINK_DOWN 20 4 6\n";
    let entries = "[\"2 5 loss 0.001\", \"all loss 0.0001\", \"4 6 down 2000020us\"]";
    let folder = Folder::new(&[
        ("lossy.txt", &leaves_and_spines("0.001")),
        ("clean.txt", &leaves_and_spines("0")),
        ("flows.txt", "2\n0 2 3 100 2000000 2.0\n1 3 3 100 2000000 2.0\n"),
        ("config.txt", config),
        ("cc.txt", "CC_MODE 1\n"),
        ("by-files.toml", &sweep("lossy.txt", "transport.config = \"config.txt\"\n")),
        (
            "by-key.toml",
            &sweep(
                "clean.txt",
                &format!("transport.config = \"cc.txt\"\ntopology.outages = {entries}\nrouting.reroute_us = 0\n"),
            ),
        ),
    ]);
    for name in ["by-files", "by-key"] {
        let ran = folder.run(&["run", &format!("{name}.toml"), "--out", name, "--engine", "cpu"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        assert_eq!(ran.stderr.contains("down at 2.00002 s"), name == "by-files", "{}", ran.stderr);
    }
    for file in ["flows.csv", "links.csv"] {
        assert_eq!(folder.bytes(&format!("by-files/{file}")), folder.bytes(&format!("by-key/{file}")), "{file}");
    }
    let links = folder.column("by-files/links.csv", "link");
    let drops = folder.column("by-files/links.csv", "drops");
    let down =
        links.iter().zip(&drops).filter(|(link, _)| ["switch4->switch6", "switch6->switch4"].contains(&link.as_str()));
    let lost = drops.iter().map(|n| n.parse::<u64>().unwrap()).sum::<u64>();
    assert!(lost > 0 && down.count() == 2, "{links:?} {drops:?}");
    let refused = folder.run(&["plan", "by-files.toml", "--set", "fidelity.mode=flow", "--set", "topology.outages="]);
    assert!(refused.code == 2 && refused.stderr.contains("1 link with an error rate"), "{}", refused.stderr);
}
