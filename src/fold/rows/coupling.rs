//! Coupled switches: their ports are processed together, because a pause, a resume or a drop may happen there. This file finds the rows that a queue
//! pair adds for that, the part of them that goes into a key, and what is still active of a pause.
//!
//! A pause frame leaves by the port that the packets came in by. So that port's transmitter belongs to the partition too, and so does the link end
//! that the frame reaches.
//!
//! Layer: fold/rows.

use std::collections::BTreeMap;

use crate::rows::canonical_key::CanonicalKey;
use crate::rows::partition_rows::PartitionRows;
use hyperfold_columns::{FlowIdx, NONE, PortIdx, SwitchIdx, Tables, kind, meta};

/// The coupled switches that queue pair `f` crosses in both directions, and the ports by which it enters them.
pub(crate) fn coupled_rows(
    t: &Tables,
    f: FlowIdx,
    is_coupled: &dyn Fn(SwitchIdx) -> bool,
) -> (Vec<SwitchIdx>, Vec<PortIdx>) {
    let (mut switches, mut ingresses) = (Vec::new(), Vec::new());
    let (tx, rx) = (&t.flow_tx[f], &t.flow_rx[f]);
    for (nic, first, len, n) in
        [(tx.nic, tx.path_first, tx.path_len, tx.n_paths), (rx.nic, rx.path_first, rx.path_len, rx.n_paths)]
    {
        for path in t.paths[first as usize..(first + len * n) as usize].chunks(len.max(1) as usize) {
            let mut receiver = t.nics[nic].peer;
            for &port in path {
                let switch = t.ports[port].switch_idx;
                if is_coupled(switch) {
                    if !switches.contains(&switch) {
                        switches.push(switch);
                    }
                    ingresses.extend(receiver.port(t.exps[0].nic_len).filter(|ingress| !ingresses.contains(ingress)));
                }
                receiver = t.ports[port].peer;
            }
        }
    }
    (switches, ingresses)
}

/// Adds the coupled switches of `rows` and the layout of their ports to a key, by local numbers. `end_local`: for each port, its place among the link
/// ends of its partition.
pub(crate) fn put_coupling(t: &Tables, rows: &PartitionRows, end_local: &[u32], form: &mut CanonicalKey) {
    let e = &t.exps[0];
    form.numbers([u32::from(b'W'), e.reserve, e.resume_offset, rows.switches.len() as u32].into_iter());
    form.u64(e.buffer);
    let places: BTreeMap<SwitchIdx, u32> = rows.switches.iter().copied().zip(0..).collect();
    for &s in &rows.switches {
        form.u64(t.switches[s].shared_size);
        form.u32(t.switches[s].max_wire);
    }
    let mut order: Vec<(u32, PortIdx, u32)> = Vec::new();
    for (local, &port) in rows.ports.iter().enumerate() {
        let row = &t.ports[port];
        let end = end_local[port.usize()];
        form.u32(if rows.ends.get(end as usize) == Some(&port) { end } else { NONE });
        match places.get(&row.switch_idx) {
            Some(&place) => {
                form.numbers([place, row.shift, row.headroom].into_iter());
                order.push((place, port, local as u32));
            }
            None => form.u32(NONE),
        }
    }
    // Ties between ports of a switch are broken by their numbers.
    order.sort_unstable();
    form.numbers(order.into_iter().map(|x| x.2));
}

/// Whether coupled port `port` has paused its peer or uses headroom, or one of its frames waits, is on the wire, or has paused the peer.
pub(crate) fn pauses(t: &Tables, port: PortIdx) -> bool {
    let row = &t.ports[port];
    if row.pausing != 0 || row.headroom_used != 0 || row.frame_head.is_some() {
        return true;
    }
    let paused = match row.peer.port(t.exps[0].nic_len) {
        Some(peer) => t.ports[peer].paused,
        None => t.nics[row.peer.usize()].paused,
    };
    let mut p = t.wires[row.peer].head;
    let mut flies = false;
    while p.is_some() && !flies {
        flies = (t.packets[p].meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::FRAME;
        p = t.packets[p].next;
    }
    paused != 0 || flies
}
