//! Hierarchical schedules: within servers first, between them by rail, and back within servers. Every byte crosses the network only between members of equal
//! places. All-to-all goes over NVLink to the GPU on the destination's rail, then over the network, as in NCCL's PXN.
//!
//! Layer: collective.

use super::super::CollectiveOp;
use super::direct::{self, Shares};
use super::error::ScheduleError;
use super::ring;
use super::shape::Shape;
use super::writer::{How, Range, ScheduleWriter, span};

/// Servers with equal places: rows are servers, columns are rails.
pub(super) struct ServerGrid {
    /// Members of each server, in the order of their places.
    pub servers: Vec<Vec<u32>>,
    /// Number of members of a server.
    pub places: usize,
}

impl ServerGrid {
    pub(super) fn new(op: CollectiveOp, shape: &Shape) -> Result<ServerGrid, ScheduleError> {
        let servers = shape.by_server();
        let place = |m: u32| shape.members[m as usize].1;
        let first: Vec<u32> = servers[0].iter().map(|&m| place(m)).collect();
        for members in &servers {
            if !members.iter().map(|&m| place(m)).eq(first.iter().copied()) {
                return Err(ScheduleError::Uneven { op, member: members[0] });
            }
        }
        Ok(ServerGrid { servers, places: first.len() })
    }

    /// Members of place index `p`, server by server, beginning with server `first`.
    pub(super) fn rail(&self, p: usize, first: usize) -> Vec<u32> {
        let n = self.servers.len();
        (0..n).map(|s| self.servers[(first + s) % n][p]).collect()
    }
}

pub(super) fn write(
    w: &mut ScheduleWriter,
    op: CollectiveOp,
    bytes: u64,
    shape: &Shape,
    channels: u16,
    root: u32,
) -> Result<(), ScheduleError> {
    let grid = ServerGrid::new(op, shape)?;
    for c in 0..channels {
        match op {
            CollectiveOp::AllReduce => {
                all_reduce(w, &grid, c, span(Range { start: 0, end: bytes }, c as u64, channels as u64))
            }
            CollectiveOp::Broadcast | CollectiveOp::Reduce => {
                rooted(w, &grid, op, c, span(Range { start: 0, end: bytes }, c as u64, channels as u64), root)
            }
            _ => sharded(w, &grid, op, c, channels, bytes),
        }
    }
    Ok(())
}

fn all_reduce(w: &mut ScheduleWriter, grid: &ServerGrid, c: u16, range: Range) {
    let parts: Vec<Vec<Range>> = (0..grid.places).map(|p| vec![span(range, p as u64, grid.places as u64)]).collect();
    for members in &grid.servers {
        direct::reduce_scatter(w, members, c, &parts);
    }
    for (p, part) in parts.iter().enumerate() {
        let rail = grid.rail(p, 0);
        let blocks: Vec<Range> = (0..rail.len()).map(|s| span(part[0], s as u64, rail.len() as u64)).collect();
        ring::reduce_scatter(w, &rail, c, &blocks);
        ring::all_gather(w, &rail, c, &blocks);
    }
    for members in &grid.servers {
        direct::all_gather(w, members, c, &parts);
    }
}

/// Reduce-scatter and all-gather, whose shards belong to members. Place p of a server handles the shards of its whole rail.
fn sharded(w: &mut ScheduleWriter, grid: &ServerGrid, op: CollectiveOp, c: u16, channels: u16, bytes: u64) {
    let n = w.n() as u64;
    let shard = |m: u32| span(span(Range { start: 0, end: bytes }, m as u64, n), c as u64, channels as u64);
    let rails: Vec<Vec<u32>> = (0..grid.places).map(|p| grid.rail(p, 0)).collect();
    let rail_shards: Vec<Vec<Range>> = rails.iter().map(|rail| rail.iter().map(|&m| shard(m)).collect()).collect();
    if op == CollectiveOp::ReduceScatter {
        for members in &grid.servers {
            direct::reduce_scatter(w, members, c, &rail_shards);
        }
        for (rail, shards) in rails.iter().zip(&rail_shards) {
            ring::reduce_scatter(w, rail, c, shards);
        }
    } else {
        for (rail, shards) in rails.iter().zip(&rail_shards) {
            ring::all_gather(w, rail, c, shards);
        }
        for members in &grid.servers {
            direct::all_gather(w, members, c, &rail_shards);
        }
    }
}

/// Broadcast and reduction: the root's server divides the work over its rails.
fn rooted(w: &mut ScheduleWriter, grid: &ServerGrid, op: CollectiveOp, c: u16, range: Range, root: u32) {
    let home = grid.servers.iter().position(|m| m.contains(&root)).expect("the root is in a server");
    let parts: Vec<Vec<Range>> = (0..grid.places).map(|p| vec![span(range, p as u64, grid.places as u64)]).collect();
    if op == CollectiveOp::Broadcast {
        for (p, &member) in grid.servers[home].iter().enumerate().filter(|(_, m)| **m != root) {
            w.send(root, member, c, parts[p][0], How::Copy);
        }
        for (p, part) in parts.iter().enumerate() {
            ring::chain_down(w, &grid.rail(p, home), c, part[0]);
        }
        for members in &grid.servers {
            for turn in 1..grid.places {
                for (p, part) in parts.iter().enumerate() {
                    let dst = members[(p + turn) % grid.places];
                    if dst != root {
                        w.send(members[p], dst, c, part[0], How::Copy);
                    }
                }
            }
        }
    } else {
        for members in &grid.servers {
            direct::reduce_scatter(w, members, c, &parts);
        }
        for (p, part) in parts.iter().enumerate() {
            ring::chain_up(w, &grid.rail(p, home), c, part[0]);
        }
        for (p, &member) in grid.servers[home].iter().enumerate().filter(|(_, m)| **m != root) {
            w.send(member, root, c, parts[p][0], How::Copy);
        }
    }
}

/// All-to-all as in PXN: data leaves a server from the member with the destination's place. If the server has no such member, it leaves from the sender.
pub(super) fn all_to_all(w: &mut ScheduleWriter, shares: &Shares, shape: &Shape, channels: u16) {
    let member_at: std::collections::BTreeMap<(u32, u32), u32> =
        shape.members.iter().enumerate().map(|(i, &place)| (place, i as u32)).collect();
    direct::each_pair(w, shares, |w, src, dst| {
        let (here, there) = (shape.members[src as usize], shape.members[dst as usize]);
        let proxy = if here.0 == there.0 { src } else { member_at.get(&(here.0, there.1)).copied().unwrap_or(src) };
        for c in 0..channels {
            let range = span(shares.range(src, dst), c as u64, channels as u64);
            if proxy != src {
                w.send(src, proxy, c, range, How::Copy);
            }
            w.send(proxy, dst, c, range, How::Copy);
        }
    });
}
