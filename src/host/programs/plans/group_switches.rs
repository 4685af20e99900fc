//! The switches that reduce for a group of ranks: those inside its servers, and trees between them.
//!
//! Layer: host. Combines topology and `collective`.

use std::collections::BTreeMap;

use hyperfold_llm::collective::{Algorithm, ReducingSwitches, Shape, SwitchTree};
use hyperfold_llm::workload::lower::ReducingSwitch;
use hyperfold_network::topology::{ArcIdx, Network, NodeIdx, fabric_ports, reduction_tree};

/// Least payload of a message to or from a switch in bytes, if the data are not less. Our choice: NCCL's chunks for NVLS have 16 to 128 KiB. SHARP reduces
/// packet by packet, so here a piece waits longer in each switch than there.
const MIN_CHUNK: u64 = 64 << 10;

/// Messages into which the data of a member are cut at most, unless `workload.chunk_kib` says otherwise. Our choice: filling the pipeline through five
/// switches then takes 2 % of the time of the bytes.
const MAX_PIECES: u64 = 256;

/// Transfers of a schedule that are aimed at, at most. Our choice: planning so many takes about a second.
const MAX_TRANSFERS: u64 = 1 << 20;

/// Pieces of a part at most where `workload.chunk_kib` says their size. Our choice: planning and simulating take time for each.
const MAX_GIVEN_PIECES: u64 = 1024;

/// Fewest pieces into which the limit on transfers cuts the data of a member.
const MIN_PIECES: u64 = 16;

/// The switches that reduce for a group.
pub(crate) struct GroupSwitches {
    /// As schedules number them.
    pub in_schedule: ReducingSwitches,
    /// The node of each.
    pub nodes: Vec<ReducingSwitch>,
    /// Parts of the data that go separate ways: places in a server, by ports of a NIC.
    parts: u64,
    /// Transfers of one piece of one part, about.
    transfers_a_piece: u64,
}

impl GroupSwitches {
    /// Payload of a message for a collective of so many bytes: `given`, or what suits where NCCL would take `chunk_bytes`. Not less than what keeps the number of
    /// messages within bounds.
    pub(crate) fn chunk_bytes(&self, bytes: u64, given: Option<u64>, chunk_bytes: u64) -> u64 {
        let part_bytes = bytes.div_ceil(self.parts);
        let pieces =
            |at_most: u64| (MAX_TRANSFERS / (self.parts * self.transfers_a_piece).max(1)).clamp(MIN_PIECES, at_most);
        match given {
            Some(given) => given.max(part_bytes.div_ceil(pieces(MAX_GIVEN_PIECES))),
            None => chunk_bytes.min(MIN_CHUNK).max(part_bytes.div_ceil(pieces(MAX_PIECES))),
        }
        .max(1)
    }
}

/// Numbers switches in the order in which they are met.
#[derive(Default)]
struct Numbers {
    known: BTreeMap<NodeIdx, u32>,
    nodes: Vec<ReducingSwitch>,
}

impl Numbers {
    fn add(&mut self, switch: ReducingSwitch) -> u32 {
        self.nodes.push(switch);
        self.nodes.len() as u32 - 1
    }

    fn of_fabric(&mut self, node: NodeIdx) -> u32 {
        if let Some(&number) = self.known.get(&node) {
            return number;
        }
        let number = self.add(ReducingSwitch { server: None, node: Some(node) });
        self.known.insert(node, number);
        number
    }
}

/// Finds the switches that reduce for the group `members`, whose places are `shape`. `out`: [`Network::working_arcs`]. `nvls`: whether the switches inside servers reduce. `None`: no switch takes
/// part.
///
/// # Errors
/// Why the network's switches cannot reduce for this group, in words for the user.
pub(crate) fn group_switches(
    net: &Network,
    out: &[Vec<ArcIdx>],
    shape: &Shape,
    members: &[u32],
    algorithm: Algorithm,
    nvls: bool,
) -> Result<Option<GroupSwitches>, String> {
    let servers = shape.by_server();
    let places = servers[0].len();
    let place_of = |m: u32| shape.members[m as usize].1;
    let first_places: Vec<u32> = servers[0].iter().map(|&m| place_of(m)).collect();
    let are_equal = |own: &Vec<u32>| own.iter().map(|&m| place_of(m)).eq(first_places.iter().copied());
    if !servers.iter().all(are_equal) {
        return Err("its servers do not have the same places; a placement that takes the same GPUs of each server has trees of switches".to_string());
    }
    let host = |m: u32| net.ranks[members[m as usize] as usize];
    let mut numbers = Numbers::default();
    let mut inside = Vec::new();
    if nvls && places > 1 && algorithm != Algorithm::CollnetChain {
        for own in &servers {
            let server = net.nodes[host(own[0]) as usize].server;
            // Without packets inside servers there is no such node.
            let node = net.switch_inside(server).filter(|_| net.nvlink.is_none());
            if node.is_none() && algorithm == Algorithm::Nvls {
                // Across servers NVLS without packets inside is a hierarchical collective.
                return Ok(None);
            }
            inside.push(numbers.add(ReducingSwitch { server: Some(server), node }));
        }
    }
    let mut trees = Vec::new();
    if algorithm.reduces_in_network() {
        if servers.len() < 2 {
            return Ok(None);
        }
        for place in 0..places {
            let hosts: Vec<NodeIdx> = servers.iter().map(|own| host(own[place])).collect();
            let ports = fabric_ports(net, out, hosts[0]);
            if hosts.iter().any(|&host| fabric_ports(net, out, host) != ports) {
                return Err("its NICs do not have the same number of links to switches".to_string());
            }
            // Trees of groups and places lie apart.
            let first = members[servers[0][place] as usize] as usize;
            let tree_of = |port: usize| reduction_tree(net, out, &hosts, port, first + port);
            let of_place: Option<Vec<_>> = (0..ports).map(tree_of).collect();
            let Some(of_place) = of_place.filter(|trees| !trees.is_empty()) else {
                return Err(
                    "no tree of switches joins its NICs; each needs a link to a switch between servers".to_string()
                );
            };
            let numbered = of_place.into_iter().map(|tree| SwitchTree {
                switches: tree.switches.iter().map(|&(node, parent)| (numbers.of_fabric(node), parent)).collect(),
                leaf_of: tree.leaf_of,
            });
            trees.push(numbered.collect::<Vec<_>>());
        }
    }
    let (ports, switches_between) = match trees.first() {
        Some(ports) => (ports.len(), ports[0].switches.len()),
        None => (1, 0),
    };
    let transfers_inside = match algorithm {
        _ if places < 2 => 0,
        Algorithm::CollnetChain => 2 * servers.len() * (places - 1),
        _ => 2 * servers.len() * (places + 1),
    };
    let transfers_between = 2 * (servers.len() + switches_between);
    Ok(Some(GroupSwitches {
        in_schedule: ReducingSwitches { n: numbers.nodes.len() as u32, inside, trees },
        nodes: numbers.nodes,
        parts: (places * ports) as u64,
        transfers_a_piece: (transfers_inside + transfers_between) as u64,
    }))
}
