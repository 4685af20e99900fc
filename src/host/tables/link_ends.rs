//! Numbers the link ends of an experiment, and stores paths over them.
//!
//! Layer: host.

use hyperfold_columns::{FlowIdx, LinkEndIdx, NicIdx, OwnedTables, PathSpan, PortIdx, mode};
use hyperfold_network::topology::{ArcIdx, Network, NodeKind};

use crate::tables::packet_case::GraphCase;
use crate::tables::path_choices::PathChoices;

/// The numbering of link ends.
pub(super) struct Ends {
    /// The arc that each end transmits on.
    pub arcs: Vec<ArcIdx>,
    /// The end that transmits on each arc; NONE outside the packet network.
    pub end_of_arc: Vec<LinkEndIdx>,
    /// Number of NICs.
    pub n_nics: u32,
    /// Every switch as (node, first port, number of ports).
    pub switches: Vec<(u32, PortIdx, u32)>,
}

impl Ends {
    pub(super) fn new(net: &Network) -> Self {
        let out = net.out_arcs();
        let mut arcs = Vec::new();
        let mut end_of_arc = vec![LinkEndIdx::NONE; net.links.len() * 2];
        let mut add = |node: usize, arcs: &mut Vec<ArcIdx>| {
            for &arc in &out[node] {
                if net.is_packet_link(net.arc_link(arc)) {
                    end_of_arc[arc as usize] = LinkEndIdx::new(arcs.len());
                    arcs.push(arc);
                }
            }
        };
        for (v, node) in net.nodes.iter().enumerate() {
            if node.is_end() {
                add(v, &mut arcs);
            }
        }
        let n_nics = arcs.len() as u32;
        let mut switches = Vec::new();
        for (v, node) in net.nodes.iter().enumerate() {
            if node.kind == NodeKind::Switch {
                let first = PortIdx(arcs.len() as u32 - n_nics);
                add(v, &mut arcs);
                switches.push((v as u32, first, arcs.len() as u32 - n_nics - first.0));
            }
        }
        Ends { arcs, end_of_arc, n_nics, switches }
    }

    /// Numbers only the NICs that tasks belong to, without the network behind them: for an experiment in which no packet crosses the network. Nothing there
    /// would ever happen, and steps look at all rows.
    pub(super) fn of_tasks(net: &Network, case: &GraphCase) -> Self {
        let mut owns = vec![false; net.nodes.len()];
        let host_of = |rank: u32| net.host_of(rank).expect("tasks belong to ranks of the network");
        case.graph.tasks.iter().for_each(|t| owns[host_of(t.rank) as usize] = true);
        let first = |out: &[ArcIdx]| out.iter().copied().find(|&arc| net.is_packet_link(net.arc_link(arc)));
        let out = net.out_arcs();
        let arcs: Vec<ArcIdx> = (0..owns.len()).filter(|&v| owns[v]).filter_map(|v| first(&out[v])).collect();
        let mut end_of_arc = vec![LinkEndIdx::NONE; net.links.len() * 2];
        for (end, &arc) in arcs.iter().enumerate() {
            end_of_arc[arc as usize] = LinkEndIdx::new(end);
        }
        Ends { n_nics: arcs.len() as u32, arcs, end_of_arc, switches: Vec::new() }
    }
}

/// Returns the NIC that runs each rank's tasks, those of reducers after those of GPUs: the first NIC of its host.
pub(super) fn owners(net: &Network, ends: &Ends) -> Vec<NicIdx> {
    let mut first = vec![NicIdx::NONE; net.nodes.len()];
    for (nic, &arc) in ends.arcs[..ends.n_nics as usize].iter().enumerate() {
        let first_nic = &mut first[net.arc_from(arc) as usize];
        *first_nic = (*first_nic).min(NicIdx::new(nic));
    }
    let hosts = net.ranks.iter().copied().chain(net.reducers.iter().map(|&(node, _)| node));
    hosts.map(|host| first[host as usize]).collect()
}

/// Appends the paths of data of the flow in row `flow`: as lists, or where switches choose as a graph of choices.
pub(super) fn add_data_paths(
    t: &mut OwnedTables,
    (flow, paths): (FlowIdx, &[Vec<ArcIdx>]),
    ends: &Ends,
    choices: &mut PathChoices,
) -> PathSpan {
    if t.exps[0].modes & mode::ADAPTIVE == 0 {
        return add_paths(t, paths, ends);
    }
    let ports: Vec<Vec<PortIdx>> = paths.iter().map(|path| egress_ports(path, ends).collect()).collect();
    let first = choices.add(t, flow, &ports);
    PathSpan {
        first,
        len: ports.first().map_or(0, |path| path.len() as u32),
        n: paths.len() as u32,
        nic: first_nic(paths, ends),
    }
}

/// The egress ports of the switches that a path crosses. Its first arc leaves the NIC; every later one leaves a switch.
fn egress_ports<'p>(path: &'p [ArcIdx], ends: &'p Ends) -> impl Iterator<Item = PortIdx> + 'p {
    path.iter().skip(1).map(|&arc| PortIdx(ends.end_of_arc[arc as usize].0 - ends.n_nics))
}

/// Appends paths as egress ports of the switches they cross.
pub(super) fn add_paths(t: &mut OwnedTables, paths: &[Vec<ArcIdx>], ends: &Ends) -> PathSpan {
    let first = t.paths.len() as u32;
    for path in paths {
        t.paths.extend(egress_ports(path, ends));
    }
    let len = paths.first().map_or(0, |p| p.len() as u32 - 1);
    PathSpan { first, len, n: paths.len() as u32, nic: first_nic(paths, ends) }
}

/// The NIC at which `paths` begin.
fn first_nic(paths: &[Vec<ArcIdx>], ends: &Ends) -> NicIdx {
    let arc = paths.first().and_then(|path| path.first());
    arc.map_or(NicIdx::NONE, |&arc| NicIdx(ends.end_of_arc[arc as usize].0))
}
