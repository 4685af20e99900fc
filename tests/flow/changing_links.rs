//! Links that change during a run, at flow level: times and bytes against algebra, and joined queue pairs against single ones.

use crate::closed_forms::simulate;
use hyperfold_host::ExperimentOutcome;

/// 4 MB in packets of 1,048 bytes at 100 Gb/s, in us.
const ALONE_US: f64 = 4_000_000.0 / 1000.0 * 1048.0 * 8.0 / 100e3;
/// Bytes of acknowledgements for each byte of data.
const ACKS: f64 = 60.0 / 1048.0;

fn slowest_us(out: &ExperimentOutcome) -> f64 {
    let times = out.flows.iter().map(|flow| flow.fct_ps.expect("it ends"));
    times.max().expect("there is a flow") as f64 / 1e6
}

/// Time in us of a flow from host 1 to host 0 below one switch.
fn one_flow(outages: &str) -> f64 {
    slowest_us(&simulate(&format!(
        "base.cluster = {{ gpus = 8, gpus_per_server = 1 }}\n\
         base.topology = {{ kind = \"clos\", hosts_per_leaf = 8, link_gbps = 100, uplink_gbps = 100, outages = {outages} }}\n\
         base.workload = {{ kind = \"traffic\", pattern = \"incast\", fan_in = 1, bytes = 4000000 }}"
    )))
}

#[test]
fn what_a_link_does_not_carry_meanwhile_comes_later() {
    let healthy = one_flow("\"\"");
    for (outages, later_us) in [
        ("\"leaf0 -> host0 rate 25% from 100us to 200us\"", 75.0),
        ("\"leaf0 -> host0 rate 25Gbps to 100us\"", 75.0),
        ("\"host0 rate 50% from 100us to 110us every 20us until 200us\"", 25.0),
        ("\"host1 -> leaf0 rate 10% from 300us\"", (ALONE_US - 300.0) * 9.0),
        ("\"host0 leaf0 down 100us up 200us\"", 100.0),
        ("\"host1 down 100us up 110us every 20us until 200us\"", 50.0),
        ("[\"host0 leaf0 down 100us up 200us\", \"host0 leaf0 rate 50% from 150us to 250us\"]", 125.0),
        ("[\"host0 leaf0 down 0us up 20us\", \"host5 down 3us\"]", 20.0),
        ("\"host1 leaf0 rate 50% from 1s\"", 0.0),
        ("\"host0 -> leaf0 rate 50% from 100us\"", 0.0),
    ] {
        let took = one_flow(outages);
        assert!((took - healthy - later_us).abs() < 0.01, "{outages}: {took}, {healthy} without");
    }
}

/// Two leaves of two hosts each, two spines. Every host sends to one of the other leaf, over both spines.
const TWO_SPINES: &str = "base.cluster = { gpus = 4, gpus_per_server = 1 }\n\
    base.routing = { policy = \"round-robin\", reroute_us = 50 }\n";

fn two_spines(outages: &str, workload: &str) -> ExperimentOutcome {
    simulate(&format!(
        "{TWO_SPINES}base.topology = {{ kind = \"clos\", hosts_per_leaf = 2, spines = 2, link_gbps = 100, uplink_gbps = 100, outages = {outages} }}\n\
         base.workload = {{ {workload} }}"
    ))
}

#[test]
fn flows_wait_and_then_share_what_is_left() {
    let ring = "kind = \"traffic\", pattern = \"ring\", stride = 2, bytes = 4000000";
    let (healthy, broken) = (two_spines("\"\"", ring), two_spines("\"leaf0 spine0 down 100us\"", ring));
    // Every link carries data of its own direction, and acknowledgements of the other.
    let alone_us = ALONE_US * (1.0 + ACKS);
    let latency_us = slowest_us(&healthy) - alone_us;
    assert!(latency_us > 8.0 && latency_us < 10.0, "{latency_us}");
    // Half of the data of each flow crosses the link, so all wait. After that each leaf has one link for two flows.
    let wanted_us = 150.0 + (alone_us - 100.0) * 2.0 + latency_us;
    let took_us = slowest_us(&broken);
    assert!((took_us / wanted_us - 1.0).abs() < 0.005, "{took_us} us, {wanted_us} by algebra");
    // A short outage is over before routing avoids the link: flows wait for it, and later for nothing.
    let short = slowest_us(&two_spines("\"leaf0 spine0 down 100us up 120us\"", ring));
    assert!(short > slowest_us(&healthy) + 19.9 && short < took_us, "{short}");

    // What was sent before the failure counts for the link that failed.
    let sent = |out: &ExperimentOutcome, link: &str| {
        let found = out.links.iter().find(|row| row.name == link).expect("the link is there");
        found.bytes as f64
    };
    let data = 4_000_000.0 / 1000.0 * 1048.0;
    let (spine0, spine1) = (sent(&broken, "leaf0->spine0"), sent(&broken, "leaf0->spine1"));
    let all = 2.0 * data * (1.0 + ACKS);
    assert!(((spine0 + spine1) / all - 1.0).abs() < 0.001, "{spine0} + {spine1}, {all} in all");
    let before = all / 2.0 * 100.0 / alone_us;
    assert!((spine0 / before - 1.0).abs() < 0.02, "{spine0}, {before} by algebra");
    let no_link = |out: &ExperimentOutcome| sent(out, "leaf0->spine0") / sent(out, "leaf0->spine1");
    assert!((no_link(&healthy) - 1.0).abs() < 0.001);
}

#[test]
fn joined_queue_pairs_wait_and_move_together() {
    let times = |join: &str| {
        ["\"\"", "\"leaf0 spine0 down 100us\"", "\"leaf0 spine0 down 100us up 1ms\"", "\"leaf0 spine0 rate 20% from 100us to 400us\""].map(|outages| {
            let out = simulate(&format!(
                "base.fidelity.join = \"{join}\"\n{TWO_SPINES}\
                 base.topology = {{ kind = \"clos\", hosts_per_leaf = 2, spines = 2, link_gbps = 100, uplink_gbps = 100, outages = {outages} }}\n\
                 base.workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 32000000, algorithm = \"ring\", channels = 1, chunk_kib = 500.0 }}"
            ));
            out.makespan_ps as f64 / 1e6
        })
    };
    let (joined, single) = (times("collectives"), times("none"));
    for (joined, single) in joined.iter().zip(single) {
        assert!((joined / single - 1.0).abs() < 0.02, "{joined} us joined, {single} us without");
    }
    assert!(single[1] > single[0] + 45.0 && single[3] > single[0] + 20.0, "{single:?}");
}

/// Acknowledgements fill the link by which they come back, so they decide how fast data go: for the whole run, and for a time that is as long.
#[test]
fn acknowledgements_on_a_slow_link_hold_data_up() {
    let (for_good, for_a_time) =
        (one_flow("\"leaf0 -> host1 rate 1Gbps\""), one_flow("\"leaf0 -> host1 rate 1Gbps to 100ms\""));
    assert!(
        for_good > 5.0 * one_flow("\"\"") && (for_a_time / for_good - 1.0).abs() < 0.001,
        "{for_a_time} {for_good}"
    );
    let healthy = one_flow("\"\"");
    let down = one_flow("\"leaf0 -> host1 rate 1Gbps from 100us to 200us\"");
    // At 1 Gb/s acknowledgements let pass 17.5 Gb/s of data.
    assert!((down - healthy - 100.0 * (1.0 - 0.175)).abs() < 1.0, "{down} {healthy}");
}

/// Rates of flows that begin together are those of fewer until they are solved: their sum may be more than 64 bits hold.
#[test]
fn many_flows_that_begin_at_once_on_fast_links_are_no_overflow() {
    for op in ["all-gather", "reduce-scatter"] {
        let out = simulate(&format!(
            "base.cluster = {{ gpus = 16, server = \"dgx-h100\", nvlink = \"packet\" }}\n\
             base.workload = {{ kind = \"collective\", op = \"{op}\", bytes = 1000000 }}"
        ));
        assert!(out.makespan_ps > 0, "{op}");
    }
}

/// A failure never makes a collective faster, and the later it comes the less it costs: what it takes beside its transmission is that of the healthy network.
#[test]
fn joined_queue_pairs_that_move_to_another_port_lose_time() {
    let took = |outages: &str| {
        let out = simulate(&format!(
            "base.cluster = {{ gpus = 64, server = \"dgx-h100\" }}\n\
             base.topology = {{ kind = \"hpn\", servers_per_pod = 4, outages = {outages} }}\nbase.routing.reroute_us = 20\n\
             base.fidelity.join = \"collectives\"\n\
             base.workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 16000000, algorithm = \"ring\" }}"
        ));
        out.makespan_ps as f64 / 1e6
    };
    let healthy = took("\"\"");
    let [early, later] = [10, 50].map(|us| took(&format!("\"segment0.rail0.tor0 down {us}us\"")));
    assert!(early > later && later > healthy + 20.0, "{healthy} healthy, {early} and {later} us");
}
