//! Finds switch ports that drop packets before they mark any.
//!
//! Layer: host. Without PFC only: with it a full buffer pauses senders.

use std::collections::{BTreeMap, BTreeSet};

use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Network, NodeIdx};
use hyperfold_network::transport::{Cc, Transport};

use crate::tables::build_tables::alpha_shift;

/// Returns a note if queues at switch ports cannot grow to the size from which they mark. Senders that wait for marks then learn of congestion by loss alone.
pub(in crate::setup) fn unmarked(net: &Network, tr: &Transport, host_rate: u64, paths: &[FlowPaths]) -> Option<String> {
    if tr.pfc || !tr.ecn || !matches!(tr.cc, Cc::Dcqcn | Cc::Dctcp) {
        return None;
    }
    let tiers = if tr.tier_buffers.is_some() { net.tiers() } else { Vec::new() };
    let top = tiers.iter().copied().max().unwrap_or(0);
    let buffer = |node: NodeIdx| tr.tier_buffers.map_or(tr.buffer_bytes, |own| own.of(tiers[node as usize], top));
    let mut ports = vec![0u64; net.nodes.len()];
    for link in net.links.iter().filter(|link| net.is_packet_link(link)) {
        ports[link.a as usize] += 1;
        ports[link.b as usize] += 1;
    }
    // What a queue holds was admitted at the ports that feed it. Each takes at most a share of what the others left, and its reserve.
    let max_queue = |node: NodeIdx, feeding: &BTreeSet<ArcIdx>| {
        let shared = buffer(node).saturating_sub(ports[node as usize] * u64::from(tr.reserve_bytes)) as f64;
        let left = feeding.iter().fold(shared, |left, &arc| {
            let shift = alpha_shift(tr.pfc_alpha_shift, net.arc_rate(arc), host_rate);
            let parts = (1u64 << shift) as f64;
            left * parts / (parts + 1.0)
        });
        let packet = (tr.payload + tr.data_overhead).max(tr.ack_bytes);
        shared - left + feeding.len() as f64 * f64::from(tr.reserve_bytes + packet)
    };
    let mut feeds: BTreeMap<ArcIdx, BTreeSet<ArcIdx>> = BTreeMap::new();
    for pair in paths.iter().flat_map(|p| p.data.iter().chain(&p.ack)).flat_map(|path| path.windows(2)) {
        feeds.entry(pair[1]).or_default().insert(pair[0]);
    }
    let rate = |arc: ArcIdx| net.arc_rate(arc);
    feeds.retain(|&arc, feeding| feeding.iter().map(|&arc| rate(arc)).sum::<u64>() > rate(arc));
    let queues = feeds.len();
    feeds.retain(|&arc, feeding| {
        let own = tr.port_queue_for(rate(arc)).map(|bytes| bytes as f64);
        own.unwrap_or_else(|| max_queue(net.arc_from(arc), feeding)) <= tr.ecn_for(rate(arc)).kmin_bytes as f64
    });
    let (&arc, _) = feeds.first_key_value()?;
    let space = match tr.port_queue_for(rate(arc)) {
        Some(bytes) => format!("its queue can hold, {} kB (transport.port_queue_kb)", bytes as f64 / 1e3),
        None => {
            let mib = buffer(net.arc_from(arc)) as f64 / f64::from(1 << 20);
            format!("a queue can hold of a buffer of {mib} MiB (topology.buffer_mib)")
        }
    };
    Some(format!(
        "without PFC, {} switch ports where queues form drop packets before they mark any. Ports of {} Gb/s mark from {} kB (transport.ecn_kmin_kb), \
         more than {space}; a lower threshold or more space would be right",
        if feeds.len() == queues { "all" } else { "some" },
        rate(arc) as f64 / 1e9,
        tr.ecn_for(rate(arc)).kmin_bytes as f64 / 1e3,
    ))
}
