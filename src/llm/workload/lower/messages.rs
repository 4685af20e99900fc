//! Sends and receives become tasks: a send is matched with the receive of the same tag.
//!
//! Layer: workload.

use std::collections::{BTreeMap, BTreeSet};

use super::error::LowerError;
use super::joined_flows;
use super::lowerer::Lowerer;
use super::machine::alone;
use super::transfer::Arrival;
use crate::workload::program::{Dim, OpKind, Stream};

/// One end of a message between programs.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// Op in the program of its rank.
    pub(super) op: u32,
    pub(super) bytes: u64,
    pub(super) tag: u32,
    pub(super) dim: Dim,
    pub(super) free: bool,
}

/// Sends and receives of a tag from one rank to another.
#[derive(Default)]
pub(super) struct MessageEnds {
    pub(super) sends: Vec<End>,
    pub(super) recvs: Vec<End>,
}

/// Communicator number of sends and receives on streams, plus the dimension.
const P2P: u32 = 1 << 30;
/// Communicator number of sends and receives on no stream, plus the tag.
const P2P_FREE: u32 = 1 << 31;

/// Makes the tasks of messages: matches sends with receives, tag by tag. The messages of a queue pair go in the order of the sender's program.
pub(super) fn messages(l: &mut Lowerer, matches: &BTreeMap<(u32, u32, u32), MessageEnds>) -> Result<(), LowerError> {
    let mut pairs: Vec<(u32, u32, u32, End, End)> = Vec::new();
    for (&(src, dst, tag), m) in matches {
        if m.sends.len() != m.recvs.len() {
            return Err(LowerError::Unmatched { src, dst, tag, sends: m.sends.len(), recvs: m.recvs.len() });
        }
        for (nth, (&send, &recv)) in m.sends.iter().zip(&m.recvs).enumerate() {
            if send.bytes != recv.bytes {
                return Err(LowerError::Size { src, dst, tag, nth, sent: send.bytes, received: recv.bytes });
            }
            pairs.push((src, send.op, dst, send, recv));
        }
    }
    pairs.sort_by_key(|&(src, op, ..)| (src, op));
    for (src, _, dst, send, recv) in pairs {
        let dst_own = l.stands_for(dst);
        let send_tasks = l.graph.ops[src as usize][send.op as usize];
        let recv_tasks = l.graph.ops[dst_own as usize][recv.op as usize];
        let comm = if send.free { P2P_FREE | send.tag } else { P2P | send.dim as u32 };
        let overhead = l.overhead_ps(src, dst, &l.machine.p2p_overheads);
        if (l.machine.analytic_p2p)(send.dim).is_none() {
            joined_flows::join_sends(l, comm, src, dst, send.op);
        }
        let (post, arrival) = if src == dst {
            l.through_gate(src, dst_own, send.bytes, alone(u64::MAX, l.machine.local_ps), overhead)
        } else {
            let inside = l.machine.intra.filter(|_| l.machine.servers[src as usize] == l.machine.servers[dst as usize]);
            match (l.machine.analytic_p2p)(send.dim) {
                Some(_) if let Some(way) = inside => l.through_gate(src, dst_own, send.bytes, way, overhead),
                Some((rate, latency)) => l.through_gate(src, dst_own, send.bytes, alone(rate, latency), overhead),
                None => match relay(l, src, dst, send.dim) {
                    Some(relay) => relayed(l, comm, (src, relay, dst), send.bytes, overhead),
                    None => l.transfer(comm, src, dst, 0, send.bytes, overhead),
                },
            }
        };
        l.graph.after(send_tasks.begin, post);
        l.weigh(send.dim);
        l.wait_sent(arrival, send_tasks.end);
        l.wait(arrival, recv_tasks.end);
        // For the receiver, its data is under way from the post on.
        l.graph.ops[dst_own as usize][recv.op as usize].go = post;
    }
    Ok(())
}

/// Whether NCCL's PXN carries sends of a dimension: those between stages, and those of rings of context.
fn is_relayed(dim: Dim) -> bool {
    matches!(dim, Dim::Pp | Dim::Cp)
}

/// The rank that relays a send of a dimension, if one does. A flow that stands for the sends of several ranks is not relayed.
fn relay(l: &Lowerer, src: u32, dst: u32, dim: Dim) -> Option<u32> {
    let relays = l.machine.relays.filter(|_| is_relayed(dim) && l.machine.representatives.is_none())?;
    relays.relay(src, dst)
}

/// Makes the tasks of a message that a rank of the sender's server relays. Returns the task that posts it and how its arrival is waited for.
///
/// The relay sends while more comes in, so its message waits for the first chunk alone. The links inside a server are faster than its NICs.
fn relayed(
    l: &mut Lowerer,
    comm: u32,
    (src, relay, dst): (u32, u32, u32),
    bytes: u64,
    overhead_ps: u64,
) -> (u32, Arrival) {
    let bytes = bytes.max(1);
    let first_bytes = l.machine.relays.map_or(bytes, |relays| relays.chunk_bytes.min(bytes));
    // What is relayed has queue pairs of its own: it never waits for what the relay sends for itself.
    let (inner_lane, outer_lane) = (1 + dst, 1 + src);
    let (post, first) = l.transfer(comm, src, relay, inner_lane, first_bytes, overhead_ps);
    let rest = (bytes > first_bytes).then(|| {
        let (rest_post, rest) = l.transfer(comm, src, relay, inner_lane, bytes - first_bytes, 0);
        l.graph.after(post, rest_post);
        rest
    });
    let (net_post, net) = l.transfer(comm, relay, dst, outer_lane, bytes, 0);
    l.wait(first, net_post);
    let (sent, arrived) = (l.graph.join(src), l.graph.join(dst));
    l.wait_sent(net, sent);
    l.wait(net, arrived);
    if let Some(rest) = rest {
        l.wait(rest, sent);
        l.wait(rest, arrived);
    }
    (post, Arrival { sent, arrived, message: false })
}

/// Replaces the receives of `matches`. Only representatives were lowered, and a rank that they send to may have no tasks. So the matching receives are read
/// from the receivers' programs.
pub(super) fn receives_of_those_stood_for(l: &Lowerer, matches: &mut BTreeMap<(u32, u32, u32), MessageEnds>) {
    matches.retain(|_, m| !m.sends.is_empty());
    matches.values_mut().for_each(|m| m.recvs.clear());
    let receivers: BTreeSet<u32> = matches.keys().map(|&(_, dst, _)| dst).collect();
    for dst in receivers {
        let info = &l.workload.ranks[dst as usize];
        for (i, op) in l.workload.programs[info.program as usize].ops.iter().enumerate() {
            let OpKind::Recv { peer, bytes, tag, dim } = op.kind else { continue };
            let group = info.groups[peer.slot as usize];
            let src = l.workload.groups[group as usize].members[peer.member as usize];
            if let Some(m) = matches.get_mut(&(src, dst, tag)) {
                m.recvs.push(End { op: i as u32, bytes, tag, dim, free: op.stream == Stream::FREE });
            }
        }
    }
}
