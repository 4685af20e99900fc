//! A network of one's own: two switches joined by few or many links, and every host sends to one on the other side.
//!
//!     cargo run --release --example own_topology

#![forbid(unsafe_code)]

use std::error::Error;

use hyperfold::{EngineChoice, FlowList, NodeId, Session, SweepBuilder, TopologyBuilder};

const HOSTS_A_SIDE: usize = 4;

/// Two switches with four hosts each and `links` links between them.
fn dumbbell(links: usize) -> (TopologyBuilder, Vec<NodeId>) {
    let mut net = TopologyBuilder::new();
    let hosts: Vec<NodeId> = (0..2 * HOSTS_A_SIDE).map(|_| net.host()).collect();
    let switches = [net.switch(), net.switch()];
    for (i, &host) in hosts.iter().enumerate() {
        net.link(host, switches[i / HOSTS_A_SIDE], 100, 1000);
    }
    for _ in 0..links {
        net.link(switches[0], switches[1], 100, 1000);
    }
    (net, hosts)
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("hyperfold-own-topology-{}", std::process::id()));
    println!("links,fct_max_ns");
    for links in [1, 2, 4] {
        let (net, hosts) = dumbbell(links);
        let mut flows = FlowList::new();
        for (&left, &right) in hosts[..HOSTS_A_SIDE].iter().zip(&hosts[HOSTS_A_SIDE..]) {
            flows.add(left, right, 100_000, 0);
        }
        let sweep = SweepBuilder::new(format!("dumbbell-{links}")).topology(&net).flows(&flows).build_in(&folder)?;
        for result in Session::new(EngineChoice::Cpu).run(&sweep)? {
            let record = result?.record;
            println!("{links},{}", record.fct_max.ok_or(record.error)?);
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
