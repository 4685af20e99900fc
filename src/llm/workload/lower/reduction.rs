//! Transfers to and from switches that reduce.
//!
//! Layer: workload. A switch between servers, and one whose server carries packets inside, has a rank for each neighbour: see [`Reducer`]. Inside a server
//! whose links carry no packets, its messages take times as those from GPU to GPU do.

use super::lowerer::Lowerer;
use super::machine::IntraServerPath;
use super::planner::ReducingSwitch;
use super::transfer::Arrival;
use crate::collective::{Overheads, Transfer};

/// Senders and receivers of a collective, by their numbers in its schedule: members, then switches.
pub(super) struct Parties<'a> {
    /// Rank of each member.
    pub members: &'a [u32],
    /// The switches.
    pub switches: &'a [ReducingSwitch],
}

/// One end of a transfer.
#[derive(Clone, Copy)]
enum Party {
    Member(u32),
    Switch(ReducingSwitch),
}

impl Parties<'_> {
    fn party(&self, number: u32) -> Party {
        match self.members.get(number as usize) {
            Some(&rank) => Party::Member(rank),
            None => Party::Switch(self.switches[number as usize - self.members.len()]),
        }
    }

    /// Makes the tasks of a transfer of `bytes` on the wire, `start_ps` later than its overheads say. Returns the task that posts it and how its arrival is
    /// waited for. What a switch sends has no software overhead.
    pub(super) fn transfer(
        &self,
        l: &mut Lowerer,
        group: u32,
        tr: &Transfer,
        bytes: u64,
        start_ps: u64,
        overheads: &Overheads,
    ) -> (u32, Arrival) {
        let lane = u32::from(tr.channel);
        match (self.party(tr.from), self.party(tr.to)) {
            (Party::Member(src), Party::Member(dst)) => {
                let overhead_ps = start_ps + l.overhead_ps(src, dst, overheads);
                l.transfer(group, src, dst, lane, bytes, overhead_ps)
            }
            (Party::Member(src), Party::Switch(switch)) => {
                let overhead_ps =
                    start_ps + if switch.server.is_some() { overheads.inside_ps } else { overheads.net_ps };
                match switch.node {
                    Some(node) => {
                        let dst = l.reducer(node, l.machine.hosts[src as usize]);
                        l.transfer(group, src, dst, lane, bytes, overhead_ps)
                    }
                    None => {
                        // A gate's server has one queue. With a queue for each channel, what is spread does not wait for all that is still to be summed.
                        let link = (src, if lane == 0 { 0 } else { u32::MAX - lane });
                        l.over_link(link, src, self.owner(l, switch), bytes, half_way(l), overhead_ps)
                    }
                }
            }
            (Party::Switch(switch), Party::Member(dst)) => match switch.node {
                Some(node) => {
                    let src = l.reducer(node, l.machine.hosts[dst as usize]);
                    l.transfer(group, src, dst, lane, bytes, 0)
                }
                None => {
                    // Each GPU has a link of its own from the switch. No rank has such a number.
                    let link = (u32::MAX - switch.server.unwrap_or(0), dst);
                    l.over_link(link, self.owner(l, switch), dst, bytes, half_way(l), 0)
                }
            },
            (Party::Switch(from), Party::Switch(to)) => {
                let (Some(from), Some(to)) = (from.node, to.node) else {
                    unreachable!("only switches of the network are linked to each other");
                };
                let (src, dst) = (l.reducer(from, to), l.reducer(to, from));
                l.transfer(group, src, dst, lane, bytes, 0)
            }
        }
    }

    /// The member whose NIC runs the tasks of a switch that has none: the first one of its server.
    fn owner(&self, l: &Lowerer, switch: ReducingSwitch) -> u32 {
        let is_there = |rank: &&u32| Some(l.machine.servers[**rank as usize]) == switch.server;
        *self.members.iter().find(is_there).expect("a switch inside a server has members there")
    }
}

/// The path between a GPU and the switch of its server, without packets.
fn half_way(l: &Lowerer) -> IntraServerPath {
    let way = l.machine.intra.unwrap_or(l.machine.shared_nic);
    IntraServerPath { latency_ps: (way.latency_ps / 2).max(1), ..way }
}
