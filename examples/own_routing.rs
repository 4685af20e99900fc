//! A routing policy of one's own, as a closure: flows take turns over four spines, or all share one.
//!
//!     cargo run --release --example own_routing

#![forbid(unsafe_code)]

use std::error::Error;

use hyperfold::{EngineChoice, FlowList, FlowSpec, NodeId, Session, SweepBuilder, TopologyBuilder};

const HOSTS: usize = 4;

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut net = TopologyBuilder::new();
    let hosts: Vec<NodeId> = (0..2 * HOSTS).map(|_| net.host()).collect();
    let leaves = [net.switch(), net.switch()];
    let spines = [net.switch(), net.switch(), net.switch(), net.switch()];
    for (i, &host) in hosts.iter().enumerate() {
        net.link(host, leaves[i / HOSTS], 100, 1000);
    }
    for &spine in &spines {
        leaves.iter().for_each(|&leaf| net.link(leaf, spine, 100, 1000));
    }
    let mut flows = FlowList::new();
    for i in 0..HOSTS {
        flows.add(hosts[i], hosts[HOSTS + i], 200_000, 0);
    }

    let folder = std::env::temp_dir().join(format!("hyperfold-own-routing-{}", std::process::id()));
    let over = |spine: fn(&FlowSpec) -> usize| {
        move |flow: &FlowSpec| vec![flow.src, leaves[0], spines[spine(flow)], leaves[1], flow.dst]
    };
    println!("policy,fct_mean_ns,max_queue_bytes");
    for (name, spine) in [("turns", (|flow| flow.id % 4) as fn(&FlowSpec) -> usize), ("one", |_| 0)] {
        flows.route_by(over(spine));
        let sweep = SweepBuilder::new(name).topology(&net).flows(&flows).build_in(&folder)?;
        for result in Session::new(EngineChoice::Cpu).run(&sweep)? {
            let record = result?.record;
            let queue = record.max_queue_bytes.unwrap_or(0);
            println!("{name},{},{queue}", record.fct_mean.ok_or(record.error)?);
        }
    }
    Ok(std::fs::remove_dir_all(&folder)?)
}
