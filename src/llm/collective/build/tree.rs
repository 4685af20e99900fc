//! Tree schedules: NCCL's double binary tree over servers, with chains inside them. All-reduce goes up and down, broadcast and reduction one way.
//!
//! Layer: collective. There are two trees. Nearly every inner node of one is a leaf of the other, so that each server sends about as much as it receives
//! (Sanders, Speck and Traeff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and scan").

use super::super::CollectiveOp;
use super::ring;
use super::shape::Shape;
use super::writer::{How, Range, ScheduleWriter, span};

/// Parent of rank `r` in the in-order binary tree on `n` ranks whose leaves are the odd ranks; `None` for the root, 0.
pub(super) fn parent(r: u32, n: u32) -> Option<u32> {
    if r == 0 {
        return None;
    }
    let bit = r & r.wrapping_neg();
    let up = (r ^ bit) | (bit << 1);
    Some(if up >= n { r ^ bit } else { up })
}

/// Parents in tree `t` (0 or 1). Tree 1 is tree 0 mirrored if `n` is even, and shifted by one if it is odd.
pub(super) fn parents(n: u32, t: u32) -> Vec<Option<u32>> {
    (0..n)
        .map(|r| match (t, n % 2) {
            (0, _) => parent(r, n),
            (_, 0) => parent(n - 1 - r, n).map(|p| n - 1 - p),
            _ => parent((r + n - 1) % n, n).map(|p| (p + 1) % n),
        })
        .collect()
}

/// Ranks from the root downwards, parents before children.
fn downwards(up: &[Option<u32>]) -> Vec<u32> {
    let mut children = vec![Vec::new(); up.len()];
    let mut order = Vec::with_capacity(up.len());
    for (r, p) in up.iter().enumerate() {
        match p {
            Some(p) => children[*p as usize].push(r as u32),
            None => order.push(r as u32),
        }
    }
    let mut next = 0;
    while next < order.len() {
        order.extend_from_slice(&children[order[next] as usize]);
        next += 1;
    }
    order
}

pub(super) fn write(w: &mut ScheduleWriter, op: CollectiveOp, bytes: u64, shape: &Shape, channels: u16, root: u32) {
    // An all-reduce uses both trees even on one channel. An operation with a root uses the tree that is rooted at the root's server.
    let trees: u16 = if op == CollectiveOp::AllReduce { 2 } else { 1 };
    let parts = (channels * trees) as u64;
    for c in 0..channels {
        let chains = chains(shape, c, (op != CollectiveOp::AllReduce).then_some(root));
        for t in 0..trees {
            let up = parents(chains.len() as u32, t as u32);
            let order = downwards(&up);
            let channel = c * trees + t;
            let range = span(Range { start: 0, end: bytes }, channel as u64, parts);
            if op != CollectiveOp::Broadcast {
                climb(w, &chains, &up, &order, channel, range);
            }
            if op != CollectiveOp::Reduce {
                descend(w, &chains, &up, &order, channel, range);
            }
        }
    }
}

/// Each server's members as a chain. It begins with the member that meets the network, which has place c for channel c. If there is a root, its server comes
/// first and the root leads its chain.
fn chains(shape: &Shape, c: u16, root: Option<u32>) -> Vec<Vec<u32>> {
    let mut servers = shape.by_server();
    for members in &mut servers {
        let lead = c as usize % members.len();
        members.rotate_left(lead);
    }
    if let Some(root) = root {
        let home = servers.iter().position(|m| m.contains(&root)).expect("the root is in a server");
        servers.rotate_left(home);
        let lead = servers[0].iter().position(|&m| m == root).expect("the root is in its server");
        servers[0].rotate_left(lead);
    }
    servers
}

/// Sends a range up a tree: each server's chain first, then to the parent server.
fn climb(w: &mut ScheduleWriter, chains: &[Vec<u32>], up: &[Option<u32>], order: &[u32], channel: u16, range: Range) {
    for &s in order.iter().rev() {
        let chain = &chains[s as usize];
        ring::chain_up(w, chain, channel, range);
        if let Some(p) = up[s as usize] {
            w.send(chain[0], chains[p as usize][0], channel, range, How::Reduce);
        }
    }
}

/// Sends a range down a tree: from the parent server, then along the server's chain.
fn descend(w: &mut ScheduleWriter, chains: &[Vec<u32>], up: &[Option<u32>], order: &[u32], channel: u16, range: Range) {
    for &s in order {
        let chain = &chains[s as usize];
        if let Some(p) = up[s as usize] {
            w.send(chains[p as usize][0], chain[0], channel, range, How::Copy);
        }
        ring::chain_down(w, chain, channel, range);
    }
}
