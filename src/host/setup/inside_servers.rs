//! What is sent inside a server: notes on it, and its path where NVLink carries packets.
//!
//! Layer: host.

use std::collections::BTreeMap;

use hyperfold_base::units::PS_PER_S;
use hyperfold_config::spec::{self, Analytic, Config, KeyId, ProgramFormat, TopologyKind, WorkloadSection};
use hyperfold_llm::workload::Flow;
use hyperfold_network::routing::{FlowPaths, is_intra_server};
use hyperfold_network::topology::{ArcIdx, Network, NodeKind};

use crate::outcomes::flow_info::nvlink_ps;

/// Returns a note if it may surprise that traffic stays inside servers, as the user did not choose their size.
pub(super) fn surprises(config: &Config, network: &Network, sends: bool, no_packets: bool) -> Option<String> {
    let per_server = config.cluster.gpus_per_server;
    if per_server < 2 || !sends || config.values.given(KeyId::GpusPerServer) {
        return None;
    }
    let hosts = match &config.workload {
        WorkloadSection::Program(p) => {
            matches!(p.source, spec::Source::File { format: ProgramFormat::Htsim | ProgramFormat::Goal, .. })
        }
        WorkloadSection::Flows { .. } => true,
        WorkloadSection::Traffic { .. } | WorkloadSection::Jobs | WorkloadSection::Cluster(_) => false,
    };
    let generated = !matches!(config.topology.kind, TopologyKind::File { .. });
    let closed_form = |workload: &WorkloadSection| matches!(workload, WorkloadSection::Program(p) if p.communication.analytic == Analytic::ALL);
    let jobs_closed_form =
        config.jobs.as_ref().is_some_and(|jobs| jobs.jobs.iter().all(|job| closed_form(&job.workload)));
    let all_closed_form = closed_form(&config.workload) || jobs_closed_form;
    if hosts && generated {
        Some(format!(
            "ranks of this file share servers of {per_server} (cluster.gpus_per_server): what they send inside a server crosses no network; cluster.gpus_per_server = 1 gives each rank a server of its own"
        ))
    } else if no_packets && !all_closed_form && network.ranks.len() > 1 {
        Some(format!(
            "no packet crosses the network: all that is sent stays inside servers of {per_server} (cluster.gpus_per_server)"
        ))
    } else {
        None
    }
}

/// Returns the path over the server's own switch if NVLink carries packets. Two switches may join two GPUs equally well, so routing alone would not choose it.
pub(super) fn path(net: &Network, flow: &Flow) -> Option<FlowPaths> {
    let (a, b) = (net.host_of(flow.src_rank)?, net.host_of(flow.dst_rank)?);
    let server = net.nodes[a as usize].server;
    if a == b || net.nodes[b as usize].server != server || server == u32::MAX {
        return None;
    }
    // Only a server's own switch has the server's number.
    let link_of = |host: u32| {
        net.links.iter().rposition(|l| {
            l.a == host && net.nodes[l.b as usize].kind == NodeKind::Switch && net.nodes[l.b as usize].server == server
        })
    };
    let (up, down) = (2 * link_of(a)? as ArcIdx, 2 * link_of(b)? as ArcIdx);
    Some(FlowPaths { data: vec![vec![up, down ^ 1]], ack: vec![vec![down, up ^ 1]] })
}

/// Returns a note if flows share a GPU's NVLink at the same time, and some GPU has more to do for them than any NIC has for the network. In closed form each takes its
/// time as if it were alone.
pub(super) fn shared_nvlink<'f>(net: &Network, flows: impl Iterator<Item = &'f Flow>) -> Option<String> {
    let (inside, across): (Vec<&Flow>, Vec<&Flow>) = flows.partition(|flow| is_intra_server(net, *flow));
    let mut spans: BTreeMap<(bool, u32), Vec<(u64, u64)>> = BTreeMap::new();
    for flow in &inside {
        let span = (flow.start_ps, flow.start_ps.saturating_add(nvlink_ps(flow.bytes, net)));
        for end in [(true, flow.src_rank), (false, flow.dst_rank)] {
            spans.entry(end).or_default().push(span);
        }
    }
    let busy_ps = spans.values().map(|spans| spans.iter().map(|(from, to)| to - from).sum::<u64>()).max()?;
    if busy_ps <= nic_ps(net, &across) {
        return None;
    }
    let at_once = spans.into_values().map(most_at_once).max()?;
    (at_once > 1).then(|| {
        format!(
            "{} flows stay inside servers, up to {at_once} of them at one GPU at the same time: each takes its time as if it were alone there; cluster.nvlink = \"packet\" lets them share NVLink",
            inside.len()
        )
    })
}

/// The longest time that any host's links need for what `flows` send there or from there, in ps.
fn nic_ps(net: &Network, flows: &[&Flow]) -> u64 {
    let mut bytes: BTreeMap<(bool, u32), u64> = BTreeMap::new();
    for flow in flows {
        for end in [(true, flow.src_rank), (false, flow.dst_rank)] {
            *bytes.entry(end).or_default() += flow.bytes;
        }
    }
    let mut host_bps: BTreeMap<u32, u64> = BTreeMap::new();
    for link in net.links.iter().filter(|link| net.is_packet_link(link)) {
        for node in [link.a, link.b] {
            *host_bps.entry(node).or_default() += link.rate_bps;
        }
    }
    let time = |((_, rank), bytes): ((bool, u32), u64)| {
        let bps = net.host_of(rank).and_then(|host| host_bps.get(&host)).copied().unwrap_or(1);
        (u128::from(bytes) * 8 * u128::from(PS_PER_S) / u128::from(bps.max(1))) as u64
    };
    bytes.into_iter().map(time).max().unwrap_or(0)
}

/// Largest number of spans, each of a beginning and an end, that are under way at the same time.
fn most_at_once(spans: Vec<(u64, u64)>) -> usize {
    let mut changes: Vec<(u64, i64)> = spans.iter().flat_map(|&(from, to)| [(from, 1), (to, -1)]).collect();
    // What ends when another begins makes room first.
    changes.sort_unstable();
    let (mut now, mut highest) = (0, 0);
    for (_, change) in changes {
        now += change;
        highest = highest.max(now);
    }
    highest as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_touch_are_not_at_once() {
        assert_eq!(most_at_once(vec![(0, 10), (10, 20), (20, 30)]), 1);
        assert_eq!(most_at_once(vec![(0, 10), (9, 20), (5, 30)]), 3);
        assert_eq!(most_at_once(Vec::new()), 0);
    }
}
