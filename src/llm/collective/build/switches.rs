//! Schedules whose data is summed and spread by switches: NVLink SHARP inside a server, SHARP between servers, or both.
//!
//! Layer: collective. Which switches there are is the caller's to say. A switch is numbered behind the members. It waits for a piece from everyone below it,
//! and sends the sum on as one message of the same size.

use super::super::CollectiveOp;
use super::direct;
use super::error::ScheduleError;
use super::hierarchical::ServerGrid;
use super::reducing::{ReducingSwitches, SwitchTree};
use super::ring;
use super::shape::Shape;
use super::writer::{How, Range, ScheduleWriter, span};

/// A communicator and its switches, with the numbers that they have in the schedule.
struct Reduction<'a> {
    grid: ServerGrid,
    /// Number of members.
    n: u32,
    /// Number of parallel rings between servers, where no tree leads from one to another.
    channels: u16,
    switches: &'a ReducingSwitches,
}

/// Writes `op` by switches. Members of a server without a switch exchange directly, and servers without trees go in rings, rail by rail.
///
/// # Errors
/// Servers have members in different places.
pub(super) fn write(
    w: &mut ScheduleWriter,
    op: CollectiveOp,
    bytes: u64,
    shape: &Shape,
    channels: u16,
    switches: &ReducingSwitches,
) -> Result<(), ScheduleError> {
    let r = Reduction { grid: ServerGrid::new(op, shape)?, n: shape.n(), channels, switches };
    let whole = Range { start: 0, end: bytes };
    let places = r.grid.places;
    match op {
        CollectiveOp::AllReduce => {
            let parts: Vec<Vec<Range>> = (0..places).map(|p| vec![span(whole, p as u64, places as u64)]).collect();
            r.reduce_inside(w, &parts);
            for (p, part) in parts.iter().enumerate() {
                r.all_reduce_between(w, p, part[0]);
            }
            r.spread_inside(w, &parts);
        }
        _ => {
            // The shards of the members of each place, server by server.
            let shards: Vec<Vec<Range>> = (0..places)
                .map(|p| r.grid.rail(p, 0).iter().map(|&m| span(whole, u64::from(m), u64::from(r.n))).collect())
                .collect();
            if op == CollectiveOp::ReduceScatter {
                r.reduce_inside(w, &shards);
                for (p, of_servers) in shards.iter().enumerate() {
                    r.reduce_scatter_between(w, p, of_servers);
                }
            } else {
                for (p, of_servers) in shards.iter().enumerate() {
                    r.all_gather_between(w, p, of_servers);
                }
                r.spread_inside(w, &shards);
            }
        }
    }
    Ok(())
}

/// Writes an all-reduce by chains: the GPUs of a server sum along a chain, whose head hands the sum to its tree, and the result comes back the same way.
///
/// Each tree has a chain of its own, with the tree's part of the data. Its head is the GPU of the tree's place, so that heads are spread over the NICs.
///
/// # Errors
/// Servers have members in different places.
pub(super) fn write_chains(
    w: &mut ScheduleWriter,
    bytes: u64,
    shape: &Shape,
    switches: &ReducingSwitches,
) -> Result<(), ScheduleError> {
    let op = CollectiveOp::AllReduce;
    let r = Reduction { grid: ServerGrid::new(op, shape)?, n: shape.n(), channels: 1, switches };
    let whole = Range { start: 0, end: bytes };
    for place in 0..r.grid.places {
        let of_place = span(whole, place as u64, r.grid.places as u64);
        for (c, tree, part) in r.trees(place) {
            let range = part(of_place);
            let chains = r.grid.servers.iter().map(|members| chain_from(members, place));
            for chain in chains.clone() {
                ring::chain_up(w, &chain, c, range);
            }
            r.climb(w, place, c, tree, range);
            r.descend(w, place, (c, tree), range, &[], &|_| true);
            for chain in chains {
                ring::chain_down(w, &chain, c, range);
            }
        }
    }
    Ok(())
}

/// The members of a server as a chain that begins at `place`.
fn chain_from(members: &[u32], place: usize) -> Vec<u32> {
    let (before, from_head) = members.split_at(place);
    [from_head, before].concat()
}

/// Channel inside servers of what is summed.
const SUMMED: u16 = 0;
/// Channel inside servers of what is spread. It has connections of its own, so that it does not queue behind data that are still to be summed.
const SPREAD: u16 = 1;

/// The messages of all parts, each with the number of its part: first the first message of each part, then the second ones. So all parts progress together.
fn in_turn(w: &ScheduleWriter, parts: &[Vec<Range>]) -> Vec<(usize, Vec<Range>)> {
    let messages: Vec<Vec<Vec<Range>>> = parts.iter().map(|part| w.messages(part)).collect();
    let rounds = messages.iter().map(Vec::len).max().unwrap_or(0);
    let of_round = |i: usize| {
        let nth = move |(p, own): (usize, &Vec<Vec<Range>>)| Some((p, own.get(i)?.clone()));
        messages.iter().enumerate().filter_map(nth)
    };
    (0..rounds).flat_map(of_round).collect()
}

impl Reduction<'_> {
    /// Sums inside each server: the member of place p gets the sum of `parts[p]`. Each member's own data goes through the switch too, as with `multimem.ld_reduce`.
    fn reduce_inside(&self, w: &mut ScheduleWriter, parts: &[Vec<Range>]) {
        if parts.len() < 2 {
            return;
        }
        for (s, members) in self.grid.servers.iter().enumerate() {
            let Some(&switch) = self.switches.inside.get(s) else {
                direct::reduce_scatter(w, members, SUMMED, parts);
                continue;
            };
            for (p, message) in in_turn(w, parts) {
                for &m in members {
                    w.message(m, &[self.n + switch], SUMMED, &message, How::Reduce);
                }
                w.message(self.n + switch, &[members[p]], SUMMED, &message, How::Copy);
            }
        }
    }

    /// Spreads inside each server: everyone gets `parts[p]` from the member of place p. The switch sends it to that member too, as a multicast does.
    fn spread_inside(&self, w: &mut ScheduleWriter, parts: &[Vec<Range>]) {
        if parts.len() < 2 {
            return;
        }
        for (s, members) in self.grid.servers.iter().enumerate() {
            let Some(&switch) = self.switches.inside.get(s) else {
                direct::all_gather(w, members, SPREAD, parts);
                continue;
            };
            for (p, message) in in_turn(w, parts) {
                w.message(members[p], &[self.n + switch], SPREAD, &message, How::Copy);
                w.message(self.n + switch, members, SPREAD, &message, How::Copy);
            }
        }
    }

    /// The trees of a place with their channels: one a port of a NIC, each with its part of every range. Trees of several places may share links between
    /// switches, so each has connections of its own: else a sum would wait for another one before it.
    fn trees(&self, place: usize) -> impl Iterator<Item = (u16, &SwitchTree, impl Fn(Range) -> Range)> {
        let trees = self.switches.trees.get(place).map_or(&[][..], Vec::as_slice);
        let n = trees.len() as u64;
        (0u64..).zip(trees).map(move |(c, tree)| {
            let channel = (place as u64 * n + c) as u16;
            (channel, tree, move |range| span(range, c, n))
        })
    }

    /// Sends `range` from each server's member of this place to its switch, and the sums up to the root.
    fn climb(&self, w: &mut ScheduleWriter, place: usize, c: u16, tree: &SwitchTree, range: Range) {
        for (members, &leaf) in self.grid.servers.iter().zip(&tree.leaf_of) {
            w.send(members[place], self.n + tree.switches[leaf].0, c, range, How::Reduce);
        }
        for &(switch, parent) in &tree.switches {
            if let Some(parent) = parent {
                w.send(self.n + switch, self.n + tree.switches[parent].0, c, range, How::Reduce);
            }
        }
    }

    /// Sends `range` down a tree to all members of this place whose server `wants` it. `knows`: switches that have it already, the root among them.
    fn descend(
        &self,
        w: &mut ScheduleWriter,
        place: usize,
        (c, tree): (u16, &SwitchTree),
        range: Range,
        knows: &[usize],
        wants: &dyn Fn(usize) -> bool,
    ) {
        // Which switches lead to somebody who wants it.
        let mut leads = vec![false; tree.switches.len()];
        for (s, _) in self.grid.servers.iter().enumerate().filter(|(s, _)| wants(*s)) {
            tree.way_up(s).into_iter().for_each(|at_switch| leads[at_switch] = true);
        }
        for at_switch in (0..tree.switches.len()).rev().filter(|&at_switch| leads[at_switch]) {
            let below = (0..at_switch)
                .filter(|&child| tree.switches[child].1 == Some(at_switch) && leads[child] && !knows.contains(&child));
            let hosts = (0..tree.leaf_of.len()).filter(|&s| tree.leaf_of[s] == at_switch && wants(s));
            let to: Vec<u32> = below
                .map(|child| self.n + tree.switches[child].0)
                .chain(hosts.map(|s| self.grid.servers[s][place]))
                .collect();
            if !to.is_empty() {
                w.spread(self.n + tree.switches[at_switch].0, &to, c, &[range]);
            }
        }
    }

    /// The rings of a place: members server by server, and for each channel its part of every range. None if there are trees.
    fn rings(&self, place: usize) -> impl Iterator<Item = (u16, Vec<u32>, impl Fn(Range) -> Range)> {
        let are_needed = self.switches.trees.is_empty() && self.grid.servers.len() > 1;
        let n = u64::from(self.channels);
        let channels = 0..if are_needed { self.channels } else { 0 };
        channels.map(move |c| (c, self.grid.rail(place, 0), move |range| span(range, u64::from(c), n)))
    }

    fn all_reduce_between(&self, w: &mut ScheduleWriter, place: usize, range: Range) {
        for (c, members, part) in self.rings(place) {
            let n = members.len() as u64;
            let blocks: Vec<Range> = (0..n).map(|s| span(part(range), s, n)).collect();
            ring::reduce_scatter(w, &members, c, &blocks);
            ring::all_gather(w, &members, c, &blocks);
        }
        for (c, tree, part) in self.trees(place) {
            self.climb(w, place, c, tree, part(range));
            self.descend(w, place, (c, tree), part(range), &[], &|_| true);
        }
    }

    fn reduce_scatter_between(&self, w: &mut ScheduleWriter, place: usize, shards: &[Range]) {
        for (c, members, part) in self.rings(place) {
            ring::reduce_scatter(w, &members, c, &shards.iter().copied().map(part).collect::<Vec<_>>());
        }
        for (c, tree, part) in self.trees(place) {
            for (owner, &shard) in shards.iter().enumerate() {
                self.climb(w, place, c, tree, part(shard));
                self.descend(w, place, (c, tree), part(shard), &[], &|s| s == owner);
            }
        }
    }

    fn all_gather_between(&self, w: &mut ScheduleWriter, place: usize, shards: &[Range]) {
        for (c, members, part) in self.rings(place) {
            ring::all_gather(w, &members, c, &shards.iter().copied().map(part).collect::<Vec<_>>());
        }
        for (c, tree, part) in self.trees(place) {
            for (owner, &shard) in shards.iter().enumerate() {
                let up = tree.way_up(owner);
                let switch = |at_switch: usize| self.n + tree.switches[at_switch].0;
                w.send(self.grid.servers[owner][place], switch(up[0]), c, part(shard), How::Copy);
                for pair in up.windows(2) {
                    w.send(switch(pair[0]), switch(pair[1]), c, part(shard), How::Copy);
                }
                self.descend(w, place, (c, tree), part(shard), &up, &|s| s != owner);
            }
        }
    }
}
