//! Links and nodes that fail while packets cross the network, as a user sees them.

use crate::support::program::Folder;

fn is_near(found: f64, wanted: f64, share: f64) -> bool {
    (found / wanted - 1.0).abs() < share
}

/// Sixteen hosts of a fat tree, two on each leaf, which has two links upward.
const FAT_TREE: &str = "cluster = { gpus = 16, gpus_per_server = 1 }\n\
    topology.kind = \"fat-tree\"\ntopology.k = 4\ntopology.link_gbps = 400\ntopology.link_delay_ns = 500\n";

#[test]
fn the_links_that_are_left_share_the_load() {
    let (folder, said, code) = Folder::with_run(&format!(
        "name = \"share\"\n[base]\n{FAT_TREE}\
         workload = {{ kind = \"traffic\", pattern = \"permutation\", bytes = 4000000 }}\n\
         transport = {{ cc = \"dcqcn\", payload_bytes = 4096, loss_recovery = \"selective\" }}\n\
         routing = {{ policy = \"round-robin\", reroute_us = 0 }}\n\
         [axes]\n\"topology.outages\" = [\"\", \"leaf0 agg0\", \"leaf0 agg0 down 40us\"]\n"
    ));
    assert_eq!(code, 0, "{said}");
    let slowest = folder.numbers("results", "fct_max_ns");
    // Two hosts send over one link what they sent over two. The way there and back takes as long as before.
    let sending_ns = 4_000_000.0 * (4144.0 / 4096.0) * 8.0 / 400.0;
    let way_ns = slowest[0] - sending_ns;
    assert!(is_near(slowest[1], 2.0 * sending_ns + way_ns, 0.01), "{slowest:?}");
    // From 40 us on. What was lost is sent again, at most what a round trip holds, over the link that is left.
    let least = 40_000.0 + 2.0 * (sending_ns - 40_000.0) + way_ns;
    assert!((least..least + 2.0 * way_ns).contains(&slowest[2]), "{least}: {slowest:?}");
    let drops = folder.numbers("results", "drops");
    let again = folder.numbers("results", "retransmissions");
    assert_eq!((drops[0], again[0], drops[1]), (0.0, 0.0, 0.0));
    assert!(drops[2] > 0.0 && again[2] > 0.0, "{drops:?} {again:?}");
}

#[test]
fn a_flow_loses_a_timeout_and_sends_again_what_was_lost() {
    let (folder, said, code) = Folder::with_run(
        "name = \"cut\"\n[base]\n\
         cluster = { gpus = 2, gpus_per_server = 1 }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 1, spines = 2, link_gbps = 100, link_delay_ns = 500 }\n\
         workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 1, bytes = 4000000 }\n\
         transport = { cc = \"none\", payload_bytes = 4096, rto_us = 200 }\n\
         routing.reroute_us = 150\noutput = { flows = true, links = true }\n\
         [axes]\n\"transport.loss_recovery\" = [\"adapter\", \"selective\"]\n\
         \"topology.outages\" = [\"\", \"leaf1 spine0 down 100us\", \"leaf1 spine1 down 100us\"]\n",
    );
    assert_eq!(code, 0, "{said}");
    let times = folder.numbers("results", "fct_max_ns");
    let drops = folder.numbers("results", "drops");
    let again = folder.numbers("results", "retransmissions");
    assert_eq!(folder.numbers("flows", "retransmissions"), again, "the one flow of each experiment");
    let rtt = 4.0 * 2.0 * 500.0 + 3.0 * 340.0;
    for receivers in 0..2 {
        let [whole, cuts @ ..] = [0, 1, 2].map(|outage| 3 * receivers + outage);
        // One of the two spines carries the data.
        let cut = if drops[cuts[0]] > 0.0 { cuts[0] } else { cuts[1] };
        assert!(drops[cut] > 0.0, "{drops:?}");
        // Without a window packets go on into the void, until the new path brings one beyond the gap: a NACK. With a range of sequence numbers the
        // sender stands still, and goes on after a timeout from the last acknowledgement.
        let lost = times[cut] - times[whole];
        let least = if receivers == 0 { 150_000.0 } else { 200_000.0 };
        assert!((least..least + 2.0 * rtt).contains(&lost), "{lost}: {times:?}");
        assert!(again[cut] > 0.0, "{again:?}");
        if receivers == 1 {
            let acks = folder.numbers("links", "drops");
            assert!(again[cut] <= drops[cut] && acks.iter().sum::<f64>() > 0.0, "{again:?} {drops:?}");
        }
    }
}

#[test]
fn a_link_that_flaps_does_what_its_outages_do_one_by_one() {
    let (folder, said, code) = Folder::with_run(&format!(
        "name = \"flaps\"\n[base]\n{FAT_TREE}\
         workload = {{ kind = \"traffic\", pattern = \"permutation\", bytes = 4000000 }}\n\
         transport = {{ cc = \"dcqcn\", payload_bytes = 4096, loss_recovery = \"selective\", rto_us = 50 }}\n\
         routing = {{ policy = \"round-robin\", reroute_us = 5 }}\noutput.flows = true\n\
         [axes]\n\"topology.outages\" = [\"\", \"leaf0 agg0 down 20us up 30us every 40us until 110us\", \
         [\"leaf0 agg0 down 20us up 30us\", \"leaf0 agg0 down 60us up 70us\", \"leaf0 agg0 down 100us up 110us\"]]\n"
    ));
    assert_eq!(code, 0, "{said}");
    let times = folder.numbers("flows", "fct_ns");
    let [whole, flaps, listed]: [&[f64]; 3] =
        times.chunks(16).collect::<Vec<_>>().try_into().expect("three experiments");
    assert_eq!(flaps, listed);
    assert_ne!(flaps, whole);
    let again = folder.numbers("results", "retransmissions");
    assert!(again[0] == 0.0 && again[1] > 0.0 && again[1] == again[2], "{again:?}");
}

#[test]
fn a_host_waits_for_its_link_and_gives_up_without_it() {
    let (folder, said, code) = Folder::with_run(&format!(
        "name = \"host\"\n[base]\n{FAT_TREE}\
         workload = {{ kind = \"traffic\", pattern = \"permutation\", bytes = 400000 }}\n\
         transport = {{ rto_us = 100, rto_retries = 3 }}\n\
         [axes]\n\"topology.outages\" = [\"host3 down 4us up 90us\", \"host3 down 4us\"]\n"
    ));
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains(
            "topology.outages = \"host3 down 4us\" leaves 2 of 16 flows without a path between their NICs for some time"
        ),
        "{said}"
    );
    let slowest: f64 = folder.column("out/results.csv", "fct_max_ns")[0].parse().unwrap();
    assert!(slowest > 90_000.0, "{slowest}");
    let why = folder.text("out/failed.csv");
    assert!(why.contains("gave up after 3 retransmission timeouts"), "{why}");
    assert!(why.contains("links that are down: leaf1->host3"), "{why}");
}

#[test]
fn a_collective_goes_on_around_a_failed_link() {
    let (folder, said, code) = Folder::with_run(
        "name = \"job\"\n[base]\n\
         cluster = { gpus = 16, gpus_per_server = 2, nvlink_gbps = 3600 }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 4, link_gbps = 100 }\n\
         workload = { kind = \"collective\", op = \"all-reduce\", bytes = 16777216 }\n\
         transport = { cc = \"dcqcn\", payload_bytes = 4096, rto_us = 400 }\n\
         [axes]\n\"topology.outages\" = [\"\", \"leaf0 spine0 down 200us\", \"leaf0 spine0 down 200us up 3ms\"]\n",
    );
    assert_eq!(code, 0, "{said}");
    let times = folder.numbers("results", "makespan_ns");
    assert!(times[1] > times[0] && times[2] > times[0], "{times:?}");
    assert_eq!(folder.column("out/results.csv", "validated_error")[1], "not validated");
}

#[test]
fn what_the_network_does_not_have_is_said() {
    let refused = |outage: &str| {
        let (folder, said, code) = Folder::with_run(&format!(
            "name = \"wrong\"\n[base]\n{FAT_TREE}\
             workload = {{ kind = \"traffic\", pattern = \"ring\", bytes = 4000 }}\n\
             [axes]\n\"topology.outages\" = [\"\", \"{outage}\"]\n"
        ));
        assert_eq!(code, 1, "{outage}: {said}");
        folder.text("out/failed.csv")
    };
    for (outage, why) in [
        (
            "leaf99 agg0",
            "no node is called `leaf99`; there are host0 to host15, leaf0 to leaf7, agg0 to agg7, core0 to core3",
        ),
        ("leaf0 leaf1", "no packet link is there; leaf0 is linked to host0, host1, agg0, agg1"),
        ("leaf0 agg0#2", "there are 1 links between these nodes"),
        ("random 99", "the network has 32 links between switches"),
        ("leaf0 agg0 down 5", "`5` is no time with a unit"),
        ("leaf0 agg0 down 5us up 4us", "it must come back after it fails"),
    ] {
        let said = refused(outage);
        assert!(said.contains(why), "{outage}: {said}");
    }
}

#[test]
fn what_failed_before_the_beginning_is_avoided_at_both_levels_of_detail() {
    let sweep = |mode: &str, outage: &str| {
        format!(
            "name = \"before\"\n[base]\n{FAT_TREE}fidelity.mode = \"{mode}\"\n\
             workload = {{ kind = \"traffic\", pattern = \"permutation\", bytes = 4000000 }}\n\
             transport = {{ cc = \"none\", payload_bytes = 4096, loss_recovery = \"selective\" }}\n\
             routing.policy = \"round-robin\"\n[axes]\n\"topology.outages\" = [\"\", \"{outage}\"]\n"
        )
    };
    let slowest = |mode: &str| {
        let (folder, said, code) = Folder::with_run(&sweep(mode, "leaf0 agg0"));
        assert_eq!(code, 0, "{mode}: {said}");
        folder.numbers("results", "fct_max_ns")
    };
    let (packets, flows) = (slowest("packet"), slowest("flow"));
    assert!(is_near(packets[1], flows[1], 0.02) && packets[1] > 1.8 * packets[0], "{packets:?} {flows:?}");
    let meanwhile = |mode: &str| {
        let sweep = sweep(mode, "leaf0 agg0 down 20us").replace("[axes]", "routing.reroute_us = 0\n[axes]");
        let (folder, said, code) = Folder::with_run(&sweep);
        assert_eq!(
            (code, said.contains("at flow level flows on a link that has failed wait")),
            (0, mode == "flow"),
            "{said}"
        );
        folder.numbers("results", "fct_max_ns")
    };
    let (packets, flows) = (meanwhile("packet"), meanwhile("flow"));
    // Four hosts share three links from 20 us on, or none.
    assert!(packets[1] > 1.2 * packets[0] && flows[1] > 1.2 * flows[0], "{packets:?} {flows:?}");
    assert!(flows[1] < packets[1], "packets that were lost take a timeout: {packets:?} {flows:?}");
    let (folder, said, code) = Folder::with_run(&sweep("flow", "host3 down 5us"));
    assert_eq!(code, 1, "{said}");
    let failed = folder.text("out/failed.csv");
    assert!(failed.contains("no progress: 2 of 16 flows cannot finish"), "{failed}");
    assert!(failed.contains("links that are down: leaf1->host3"), "{failed}");
    let (_, said, code) = Folder::with_run(&sweep("packet", "host3"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("no path is left between rank 3 and rank"), "{said}");
}

/// Four hosts with two ports of 200 Gb/s each, and a leaf for each port. One flow takes one of the two.
const TWO_LEAVES: &str = "cluster = { gpus = 4, gpus_per_server = 1 }\n\
    topology = { kind = \"dcn-plus\", servers_per_pod = 4, link_gbps = 400, link_delay_ns = 500 }\n\
    workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 1, bytes = 4000000 }\n\
    transport = { cc = \"none\", payload_bytes = 4096, loss_recovery = \"selective\" }\nrouting.reroute_us = 20\n";

#[test]
fn a_flow_whose_leaf_fails_goes_on_over_the_other_port() {
    for level in ["packet", "flow"] {
        let (folder, said, code) = Folder::with_run(&format!(
            "name = \"ports\"\n[base]\n{TWO_LEAVES}fidelity.mode = \"{level}\"\n[axes]\n\
             \"topology.outages\" = [\"\", \"segment0.tor0 down 50us\", \"segment0.tor1 down 50us\", \"segment0.tor0 down 50us up 80us\", \"segment0.tor1 down 50us up 80us\"]\n\
             \"routing.port_failover\" = [true, false]\n"
        ));
        assert_eq!(code, 1, "one experiment fails without failover\n{said}");
        assert!(said.contains("1 of 1 flows wait although another port of their NICs has a path: routing.port_failover = true moves them"), "{said}");
        let status = folder.column("out/results.csv", "status");
        let fct_us: Vec<Option<f64>> = folder
            .column("out/results.csv", "fct_max_ns")
            .iter()
            .map(|ns| ns.parse().ok().map(|ns: f64| ns / 1e3))
            .collect();
        let healthy = fct_us[0].unwrap();
        // The leaf of the flow is the first or the second one. Rows of it, with failover and without, for good and for 30 us.
        let leaf = if status[3] == "failed" { 0 } else { 1 };
        let [moves, stays, returns, waits] = [2, 3, 6, 7].map(|row| row + 2 * leaf);
        assert_eq!(status.iter().filter(|s| *s == "failed").count(), 1, "{status:?}");
        assert_eq!(status[stays], "failed");
        let later = |row: usize| fct_us[row].unwrap() - healthy;
        for row in (2..10).filter(|row| ![moves, stays, returns, waits].contains(row)) {
            assert_eq!(later(row), 0.0, "{level}: the other leaf matters to nobody");
        }
        // As flows nothing is lost. As packets it is what was under way when the leaf failed, less than 2 us; it is sent again. A port that works loses
        // nothing, but packets of the two ports overtake each other when the flow returns.
        let most_lost_us = if level == "packet" { 4.0 } else { 0.01 };
        let is_about = |row: usize, us: f64| (us - 0.01..us + most_lost_us).contains(&later(row));
        assert!(is_about(moves, 20.0) && is_about(waits, 30.0), "{level}: {fct_us:?}");
        assert!((20.0 - 0.01..20.0 + 2.0 * most_lost_us).contains(&later(returns)), "{level}: {fct_us:?}");
    }
}

#[test]
fn both_ends_move_where_planes_meet_at_the_nics() {
    let (folder, said, code) = Folder::with_run(
        "name = \"planes\"\n[base]\ncluster = { gpus = 4, gpus_per_server = 1, nic_ports = 2 }\n\
         topology = { kind = \"multi-plane\", planes = 2, hosts_per_leaf = 2, link_gbps = 400, link_delay_ns = 500 }\n\
         workload = { kind = \"traffic\", pattern = \"ring\", stride = 2, bytes = 4000000 }\n\
         transport = { cc = \"dcqcn\", payload_bytes = 4096, loss_recovery = \"selective\" }\n\
         routing = { reroute_us = 20, port_failover = true }\noutput.links = true\n[axes]\n\
         \"topology.outages\" = [\"\", \"plane0.leaf0 down 50us\"]\n\"fidelity.mode\" = [\"packet\", \"flow\"]\n",
    );
    assert_eq!(code, 0, "{said}");
    let links = folder.column("out/links.csv", "link");
    let (ids, bytes) = (folder.column("out/links.csv", "exp_id"), folder.numbers("links", "bytes"));
    let sum = |id: &str, part: &str| -> f64 {
        (0..links.len()).filter(|&i| ids[i] == id && links[i].contains(part)).map(|i| bytes[i]).sum()
    };
    for (healthy, broken) in [("0", "2"), ("1", "3")] {
        // What the first plane does not carry any more, the second one does.
        let (first, second) =
            (sum(healthy, "plane0.") - sum(broken, "plane0."), sum(broken, "plane1.") - sum(healthy, "plane1."));
        assert!(first > 1e6 && (second / first - 1.0).abs() < 0.1, "{healthy} {broken}: {first} {second}");
    }
}

/// A switch fails during an all-reduce whose NICs have two leaves. With three tiers each server is in a pod of its own.
#[test]
fn messages_of_collectives_move_with_their_port() {
    let sweep = |topology: &str, switch: &str| {
        format!(
            "name = \"messages\"\n[base]\ncluster.gpus = 16\ntopology = {{ {topology} }}\n\
             workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 8000000, algorithm = \"ring\" }}\nrouting.reroute_us = 5\n\
             transport.loss_recovery = \"selective\"\noutput.links = true\n[axes]\n\"routing.port_failover\" = [true, false]\n\
             \"topology.outages\" = [\"\", \"{switch} down 20us\", \"{switch} down 20us up 60us\"]\n"
        )
    };
    for (kind, switch) in [
        ("kind = \"dcn-plus\", servers_per_pod = 2", "segment0.tor0"),
        ("kind = \"hpn\", servers_per_pod = 2", "segment0.rail0.tor0"),
        ("kind = \"dcn-plus\", servers_per_pod = 1, tiers = 3", "pod0.segment0.tor0"),
        ("kind = \"hpn\", servers_per_pod = 1, tiers = 3", "pod1.segment0.rail0.tor0"),
        // The leaves of a plane and a pod have no other way to other pods.
        ("kind = \"hpn\", servers_per_pod = 1, tiers = 3, spines = 1", "pod0.plane0.agg0"),
    ] {
        let (folder, said, code) = Folder::with_run(&sweep(kind, switch));
        assert_eq!(code, 1, "{said}");
        let (status, time) =
            (folder.column("out/results.csv", "status"), folder.column("out/results.csv", "iteration_time_ns"));
        let time: Vec<Option<f64>> = time.iter().map(|text| text.parse().ok()).collect();
        // Failover comes first in the order of experiments, and without it a leaf that stays down ends the job.
        assert_eq!(status, ["ok", "ok", "ok", "ok", "failed", "ok"], "{said}");
        let [healthy, moved, returned, same, _, waited] = time[..] else { panic!("{time:?}") };
        assert!(healthy.is_some() && healthy == same, "{kind}: {time:?}");
        assert!(moved > healthy && returned > healthy && moved < waited.map(|ns| ns + 300e3), "{kind}: {time:?}");
        assert!(moved < healthy.map(|ns| 3.0 * ns), "{kind}: half of the rate, and a timeout: {time:?}");
    }
}

/// Two pods of two servers under a third tier, which has one core in each plane. Nothing of a plane leaves a pod without its core.
#[test]
fn flows_leave_a_plane_whose_core_fails() {
    let (folder, said, code) = Folder::with_run(
        "name = \"cores\"\n[base]\ncluster = { gpus = 4, gpus_per_server = 1 }\n\
         topology = { kind = \"hpn\", servers_per_pod = 1, pods = 2, tiers = 3, link_gbps = 400, link_delay_ns = 500 }\n\
         workload = { kind = \"traffic\", pattern = \"ring\", stride = 2, bytes = 4000000 }\n\
         transport = { cc = \"none\", payload_bytes = 4096, loss_recovery = \"selective\" }\nrouting.reroute_us = 20\n[axes]\n\
         \"fidelity.mode\" = [\"packet\", \"flow\"]\n\"routing.port_failover\" = [true, false]\n\
         \"topology.outages\" = [\"\", \"plane0.core0 down 50us\", \"plane1.core0 down 50us\"]\n",
    );
    assert_eq!(code, 1, "without failover they wait for ever\n{said}");
    let (status, fct_ns) = (folder.column("out/results.csv", "status"), folder.column("out/results.csv", "fct_max_ns"));
    for (level, rows) in [("packet", 0..6), ("flow", 6..12)] {
        let status: Vec<&str> = status[rows.clone()].iter().map(String::as_str).collect();
        assert_eq!(status, ["ok", "ok", "ok", "ok", "failed", "failed"], "{level}: flows cross both planes\n{said}");
        let us: Vec<f64> = fct_ns[rows].iter().map(|ns| ns.parse().unwrap_or(0.0) / 1e3).collect();
        // Flows that move stand still for 20 us, and share the other plane's links at no more than their port's rate. Packets under way are lost.
        assert!(us[1..3].iter().all(|moved| (20.0..27.0).contains(&(moved - us[0]))), "{level}: {us:?}");
    }
}

/// A planned outage of a link loses nothing, and paths return to it at once, long before routing would notice by itself.
#[test]
fn planned_outages_lose_nothing() {
    let (folder, said, code) = Folder::with_run(&format!(
        "name = \"planned\"\n[base]\n{FAT_TREE}\
         workload = {{ kind = \"traffic\", pattern = \"permutation\", bytes = 8000000 }}\n\
         transport = {{ cc = \"none\", payload_bytes = 4096, loss_recovery = \"selective\" }}\nrouting.policy = \"spray\"\n\
         [axes]\n\"topology.outages\" = [\"leaf0 agg0 down 80us up 100us drain 60us\", \"leaf0 agg0 down 80us up 100us\", \"leaf0 agg0\"]\n"
    ));
    assert_eq!(code, 0, "{said}");
    let (drops, slowest) = (folder.numbers("results", "drops"), folder.numbers("results", "fct_max_ns"));
    assert!(drops[0] == 0.0 && drops[1] > 0.0, "{drops:?}");
    // Routing takes 1 ms to notice by itself, so without the link until then it would be as if it never came back.
    assert!(slowest[0] + 40_000.0 < slowest[2], "{slowest:?}");
}

/// Leaves that circuits join two by two. Each circuit that goes dark has been drained long enough, or not at all.
#[test]
fn circuits_that_are_drained_lose_nothing() {
    let sweep = "name = \"circuits\"\n[base]\ncluster = { gpus = 32, gpus_per_server = 1 }\n\
        topology = { kind = \"optical\", hosts_per_leaf = 4, spines = 3, link_gbps = 100, uplink_gbps = 200 }\n\
        workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 2000000 }\n\
        transport = { cc = \"dcqcn\", payload_bytes = 4096, loss_recovery = \"selective\" }\noutput.links = true\n[axes]\n\
        \"topology.circuits\" = [\"mesh\", \"rotate every 300us dark 10us drain 150us until 5ms\", \"rotate every 300us dark 10us until 5ms\"]\n\
        \"fidelity.mode\" = [\"packet\", \"flow\"]\n";
    let (folder, said, code) = Folder::with_run(sweep);
    assert_eq!(code, 0, "{said}");
    let drops = folder.column("out/results.csv", "drops");
    assert_eq!([0, 2].map(|row: usize| drops[row].as_str()), ["0", "0"], "{drops:?}");
    assert!(drops[4].parse::<u32>().is_ok_and(|n| n > 100), "{drops:?}");
    let (ids, links) = (folder.column("out/links.csv", "exp_id"), folder.column("out/links.csv", "link"));
    let circuits = |id: &str| {
        let of_run = ids.iter().zip(&links).filter(|(own, _)| *own == id);
        of_run.filter(|(_, link)| link.starts_with("leaf") && link.contains("->leaf")).count()
    };
    assert!(circuits("0") <= 2 * 12 && circuits("2") > 2 * 12, "others come: {} and {}", circuits("0"), circuits("2"));
    let again = folder.run(&["run", "s.toml", "--out", "again", "--jobs", "1", "--engine", "cpu"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(folder.bytes("again/results.csv"), folder.bytes("out/results.csv"));
}

/// Patterns of circuits are one after the other, and who has none waits.
#[test]
fn patterns_of_circuits_follow_each_other() {
    let (folder, said, code) = Folder::with_run(
        "name = \"patterns\"\n[base]\ncluster = { gpus = 4, gpus_per_server = 1 }\n\
         topology = { kind = \"optical\", hosts_per_leaf = 1, spines = 1, link_gbps = 100 }\n\
         workload = { kind = \"traffic\", pattern = \"ring\", stride = 2, bytes = 400000 }\n\
         transport = { cc = \"none\", loss_recovery = \"selective\" }\n[axes]\n\
         \"topology.circuits\" = [[\"leaf0 leaf2\", \"leaf1 leaf3\"],\n\
         [\"leaf0 leaf2\", \"leaf1 leaf3\", \"at 20us dark 5us\", \"leaf0 leaf1\", \"leaf2 leaf3\", \"at 60us dark 5us\", \"leaf0 leaf2\", \"leaf1 leaf3\"],\n\
         [\"leaf0 leaf1\", \"leaf2 leaf3\", \"at 20us dark 5us\", \"leaf0 leaf2\", \"leaf1 leaf3\"]]\n\
         \"fidelity.mode\" = [\"packet\", \"flow\"]\n",
    );
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("leaves 4 of 4 flows without a path between their NICs for some time"), "{said}");
    let us: Vec<f64> =
        folder.column("out/results.csv", "fct_max_ns").iter().map(|ns| ns.parse::<f64>().unwrap() / 1e3).collect();
    // At flow level nothing goes on from 20 us until 65 us, or before 25 us. Packets wait for a timeout besides.
    let later = |row: usize| us[row] - us[row % 2];
    assert!((later(3) - 45.0).abs() < 1.0 && (later(5) - 25.0).abs() < 1.0, "{us:?}");
    assert!(later(2) > 45.0 && later(4) > 20.0, "{us:?}");
}

#[test]
fn failures_at_drawn_times_are_those_of_their_seed() {
    let run = |jobs: &str| {
        let folder = Folder::new(&[(
            "s.toml",
            &format!(
                "name = \"drawn\"\nsweep.replicas = 3\n[base]\n{FAT_TREE}\
                 workload = {{ kind = \"traffic\", pattern = \"permutation\", bytes = 4000000 }}\n\
                 transport = {{ cc = \"dcqcn\", payload_bytes = 4096, loss_recovery = \"selective\" }}\nrouting.reroute_us = 5\n\
                 topology.outages = \"random 8 mtbf 100us mttr 20us until 400us\"\n"
            ),
        )]);
        let ran = folder.run(&["run", "s.toml", "--out", "out", "--engine", "cpu", "--jobs", jobs]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        (folder.bytes("out/results.csv"), folder.numbers("results", "drops"))
    };
    let (bytes, drops) = run("1");
    assert_eq!(run("2").0, bytes);
    assert!(drops.iter().all(|&n| n > 0.0) && drops[0] != drops[1] && drops[1] != drops[2], "{drops:?}");
}

/// A NIC whose timer waits for answers to a queue pair looks again when that one moves away.
#[test]
fn flows_that_stay_on_a_port_go_on_when_others_return_from_it() {
    let sweep = "name = \"return\"\n[base]\ncluster = { gpus = 32, server = \"dgx-h100\" }\n\
        topology = { kind = \"hpn\", servers_per_pod = 2, planes = 1, uplink_gbps = 100, outages = \"segment0.rail0.tor0 down 4us up 30us\" }\n\
        workload = { kind = \"flows\", path = \"flows.txt\", start_unit = \"ns\" }\nrouting.reroute_us = 10\n[axes]\n\
        \"routing.policy\" = [\"spray\", \"round-robin\", \"ecmp\"]\n\"transport.cc\" = [\"none\", \"dcqcn\", \"hpcc\", \"swift\"]\n\
        \"transport.loss_recovery\" = [\"adapter\", \"ns3\"]\n\"transport.pfc\" = [true, false]\n";
    let flows = "3\n0 16 3 100 200000 0\n0 16 3 101 200000 0\n0 16 3 102 200000 0\n";
    let folder = Folder::new(&[("s.toml", sweep), ("flows.txt", flows)]);
    let ran = folder.run(&["run", "s.toml", "--out", "out", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(folder.column("out/results.csv", "status").len(), 48);
}
