//! Base round-trip times and windows.
//!
//! Layer: routing. They are defined in `transport::RttWindow`; the engine uses the window.

use std::collections::HashMap;

use super::path::FlowPaths;
use super::router::Router;
use super::table::NextHopTable;
use crate::topology::{ArcIdx, Network, NodeIdx, NodeKind};
use crate::transport::RttWindow;
use hyperfold_base::units::PS_PER_S;

/// The packet size, the clock and the kind of switches with which round trips are computed.
#[derive(Clone, Copy, Debug)]
pub struct PayloadClock {
    /// Bytes of a packet's payload, below 65,536.
    pub payload: u32,
    /// Bytes after which switches forward a packet if their egress is not faster than the link it comes by; 0: they store all of it first.
    pub cut_through: u32,
    /// Each hop's transmission time is rounded down to a multiple of this, in ps, as the reference rounds it down to whole ns; 1 for no rounding.
    pub clock_ps: u64,
}

impl PayloadClock {
    /// A payload whose transmission times are not rounded, over switches that store and forward.
    pub fn ps(payload: u32) -> PayloadClock {
        PayloadClock { payload, cut_through: 0, clock_ps: 1 }
    }

    /// Transmission time of `bytes` at `rate_bps` in ps, rounded down.
    fn tx_ps(self, bytes: u32, rate_bps: u64) -> u64 {
        let tx_ps = u64::from(bytes) * 8 * PS_PER_S / rate_bps;
        tx_ps - tx_ps % self.clock_ps.max(1)
    }
}

/// The sums over the end of a path, one way: delay, time on the wires, and the smallest rate; and the rate of the first of its arcs.
#[derive(Clone, Copy)]
struct Sum {
    delay_ps: u64,
    tx_ps: u64,
    rate_bps: u64,
    first_bps: u64,
}

impl Sum {
    /// The sum over no arcs. No switch follows, which could cut through.
    const EMPTY: Sum = Sum { delay_ps: 0, tx_ps: 0, rate_bps: u64::MAX, first_bps: u64::MAX };

    /// The sum with one more arc before the others.
    fn after(self, net: &Network, arc: ArcIdx, packet: PayloadClock) -> Sum {
        let l = net.arc_link(arc);
        let cuts_through = packet.cut_through > 0 && self.first_bps <= l.rate_bps;
        let bytes = if cuts_through { packet.payload.min(packet.cut_through) } else { packet.payload };
        Sum {
            delay_ps: self.delay_ps + l.delay_ps,
            tx_ps: self.tx_ps + packet.tx_ps(bytes, l.rate_bps),
            rate_bps: self.rate_bps.min(l.rate_bps),
            first_bps: l.rate_bps,
        }
    }

    fn window(self) -> RttWindow {
        let rtt_ps = 2 * self.delay_ps + self.tx_ps;
        let bits = u128::from(rtt_ps) * u128::from(self.rate_bps) / u128::from(8 * PS_PER_S);
        RttWindow { rtt_ps, window_bytes: u64::try_from(bits).unwrap_or(u64::MAX) }
    }
}

/// Base RTT and window of one data path.
pub fn path_rtt_window(net: &Network, path: &[ArcIdx], packet: PayloadClock) -> RttWindow {
    path.iter().rfold(Sum::EMPTY, |s, &arc| s.after(net, arc, packet)).window()
}

/// Base RTT and window of a flow: those of its data path, or with spraying the largest RTT and the largest window over its data paths.
pub fn flow_rtt_window(net: &Network, paths: &FlowPaths, packet: PayloadClock) -> RttWindow {
    let all = paths.data.iter().map(|p| path_rtt_window(net, p, packet));
    all.fold(RttWindow { rtt_ps: 0, window_bytes: 0 }, largest)
}

/// The larger RTT and the larger window of two.
fn largest(a: RttWindow, b: RttWindow) -> RttWindow {
    RttWindow { rtt_ps: a.rtt_ps.max(b.rtt_ps), window_bytes: a.window_bytes.max(b.window_bytes) }
}

/// The largest base RTT and the largest window over all pairs of hosts that can reach each other. A pair's path is the first of its equal-cost paths, as in the
/// reference. Hosts with equal attachments are computed once.
pub fn global_rtt_window(router: &Router, packet: PayloadClock) -> RttWindow {
    let net = router.net;
    let kinds = host_kinds(router);
    let mut best = RttWindow { rtt_ps: 0, window_bytes: 0 };
    for &(dst, n_equal) in &kinds {
        let mut memo = vec![None; router.graph().switches.len()];
        for &(src, _) in &kinds {
            // A pair of hosts with equal attachments needs two such hosts.
            let dst = match (src == dst, n_equal) {
                (false, _) => dst,
                (true, None) => continue,
                (true, Some(other)) => other,
            };
            let Some(&first) = router.first_arcs(src, dst).first() else { continue };
            let mut sum = Sum::EMPTY;
            if net.arc_to(first) != dst {
                let table = router.host_table(dst).expect("a first arc to a switch was found in this table");
                let switch = router.graph().switch_of[net.arc_to(first) as usize];
                sum = sum_to_host(router, table, dst, switch, packet, &mut memo);
            }
            best = largest(best, sum.after(net, first, packet).window());
        }
    }
    best
}

/// The sum from a switch (by number) to a host along first next hops.
fn sum_to_host(
    router: &Router,
    table: &NextHopTable,
    dst: NodeIdx,
    start: u32,
    packet: PayloadClock,
    memo: &mut [Option<Sum>],
) -> Sum {
    let net = router.net;
    let mut chain = Vec::new();
    let mut switch = start;
    let mut sum = loop {
        if let Some(known) = memo[switch as usize] {
            break known;
        }
        if table.n_next(switch) == 0 {
            let last =
                router.last_arcs(switch, dst).next().expect("the class's switches are those the host is attached to");
            let sum = Sum::EMPTY.after(net, last, packet);
            memo[switch as usize] = Some(sum);
            break sum;
        }
        let arc = router.next_arc(table, switch, 0);
        chain.push((switch, arc));
        switch = router.graph().switch_of[net.arc_to(arc) as usize];
    };
    for (switch, arc) in chain.into_iter().rev() {
        sum = sum.after(net, arc, packet);
        memo[switch as usize] = Some(sum);
    }
    sum
}

/// How a host is attached: far end, rate and delay of each of its links.
type Attachment = Vec<(NodeIdx, u64, u64)>;

/// One host of each kind of attachment, and a second host of that kind if there is one. A host linked to a host is a kind of its own.
fn host_kinds(router: &Router) -> Vec<(NodeIdx, Option<NodeIdx>)> {
    let net = router.net;
    let mut seen: HashMap<Attachment, usize> = HashMap::new();
    let mut kinds: Vec<(NodeIdx, Option<NodeIdx>)> = Vec::new();
    for (i, _) in net.nodes.iter().enumerate().filter(|(_, n)| n.kind == NodeKind::Host) {
        let host = i as NodeIdx;
        let arcs = router.graph().arcs(host);
        if arcs.iter().any(|&a| net.nodes[net.arc_to(a) as usize].kind == NodeKind::Host) {
            kinds.push((host, None));
            continue;
        }
        let key: Attachment = arcs
            .iter()
            .map(|&a| {
                let l = net.arc_link(a);
                (net.arc_to(a), l.rate_bps, l.delay_ps)
            })
            .collect();
        match seen.get(&key) {
            Some(&k) => {
                kinds[k].1.get_or_insert(host);
            }
            None => {
                seen.insert(key, kinds.len());
                kinds.push((host, None));
            }
        }
    }
    kinds
}
