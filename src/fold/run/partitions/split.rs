//! Splits a partition when the queue pairs that connected it have finished. Rows that still work together become a partition each; unused rows become
//! idle.
//!
//! Layer: fold/run.

use super::partition::Partition;
use crate::memo::outcome::PartitionPiece;
use crate::rows::coupling::{coupled_rows, pauses};
use crate::rows::index::PartitionIdx;
use crate::rows::partition_rows::{Member, PartitionRows, is_idle};
use crate::run::fold_run::{FoldRun, new_partition};
use hyperfold_columns::{EndOwner, NEVER, NONE, NicIdx, Tables, kind, meta, qp};

/// Disjoint sets (union-find).
struct Sets(Vec<usize>);

impl Sets {
    fn find(&mut self, x: usize) -> usize {
        let mut x = x;
        while self.0[x] != x {
            self.0[x] = self.0[self.0[x]];
            x = self.0[x];
        }
        x
    }

    /// Joins two sets. The lower number represents both, so that pieces come in the order of their first NICs.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// The pieces of simulated partition `p`, by local numbers: those that work, then at most one of all unused rows. A single piece stands for the whole
/// partition and lists nothing.
pub(crate) fn pieces(run: &FoldRun, t: &Tables, p: PartitionIdx, at_ps: u64) -> Vec<PartitionPiece> {
    let partition = &run.partitions[p];
    let n = partition.rows.nics.len();
    // An intermittent queue pair keeps its rows.
    let patience = partition.detector.rule.map_or(0, |rule| rule.patience);
    let works = |m: &Member| m.routed && (!is_idle(t, m.flow) || m.idle_for(at_ps) < patience);
    let mut working: Vec<bool> = partition.rows.members.iter().map(works).collect();
    if partition.rows.members.iter().zip(&working).any(|(m, working)| m.routed && !working) {
        under_way(run, t, p, &mut working);
    }
    // Coupled switches come after the ports.
    let first_switch = n + partition.rows.ports.len();
    let mut sets = Sets((0..first_switch + partition.rows.switches.len()).collect());
    let mut used = vec![false; n + partition.rows.ports.len()];
    for (m, _) in partition.rows.members.iter().zip(&working).filter(|(_, w)| **w) {
        let (tx, rx) = (&t.flow_tx[m.flow], &t.flow_rx[m.flow]);
        let sender = run.index.nic_local[tx.nic.usize()] as usize;
        let nics = [sender, run.index.nic_local[rx.nic.usize()] as usize];
        let paths = [(tx.path_first, tx.path_len), (rx.path_first, rx.path_len)];
        let ports = paths
            .iter()
            .flat_map(|&(first, len)| &t.paths[first as usize..(first + len) as usize])
            .map(|&q| n + run.index.port_local[q.usize()] as usize);
        for row in nics.into_iter().chain(ports) {
            used[row] = true;
            sets.join(sender, row);
        }
        if partition.rows.switches.is_empty() {
            continue;
        }
        let (switches, ingresses) = coupled_rows(t, m.flow, &|s| run.guard.is_coupled(s));
        for port in ingresses {
            let row = n + run.index.port_local[port.usize()] as usize;
            used[row] = true;
            sets.join(sender, row);
        }
        for (k, _) in partition.rows.switches.iter().enumerate().filter(|(_, s)| switches.contains(s)) {
            sets.join(sender, first_switch + k);
        }
    }
    if pauses_idle_rows(run, t, p, &mut used, &mut sets) {
        return vec![PartitionPiece::default()];
    }
    // A NIC stays if it has something left to do that no message needs (a timer of a finished queue pair).
    let busy =
        |k: usize| t.nics[partition.rows.nics[k]].busy_until != NEVER || t.nics[partition.rows.nics[k]].timer != NEVER;
    let busy_unused = (0..n).any(|k| !used[k] && busy(k))
        || partition.rows.ports.iter().enumerate().any(|(k, &q)| !used[n + k] && t.ports[q].q_head.is_some());
    let mut roots: Vec<usize> = Vec::new();
    for (row, &is_used) in used.iter().enumerate() {
        let root = sets.find(row);
        if is_used && !roots.contains(&root) {
            roots.push(root);
        }
    }
    if busy_unused || (roots.len() == 1 && used.iter().all(|&u| u)) {
        return vec![PartitionPiece::default()];
    }
    let idle = roots.len();
    let place = |sets: &mut Sets, row: usize| {
        if used[row] {
            let root = sets.find(row);
            roots.iter().position(|&r| r == root).unwrap_or(idle)
        } else {
            idle
        }
    };
    let mut pieces: Vec<PartitionPiece> = (0..=idle).map(|_| PartitionPiece::default()).collect();
    let nics = t.exps[0].nic_len;
    let mut of_end = vec![idle; partition.rows.ends.len()];
    for (k, &nic) in partition.rows.nics.iter().enumerate() {
        let piece_idx = place(&mut sets, k);
        pieces[piece_idx].nics.push(k as u32);
        if let Some(end) = t.nics[nic].peer.port(nics) {
            of_end[run.index.end_local[end.usize()] as usize] = piece_idx;
        }
    }
    for (k, &q) in partition.rows.ports.iter().enumerate() {
        let piece_idx = place(&mut sets, n + k);
        pieces[piece_idx].ports.push(k as u32);
        if let Some(end) = t.ports[q].peer.port(nics) {
            of_end[run.index.end_local[end.usize()] as usize] = piece_idx;
        }
    }
    for (k, &piece_idx) in of_end.iter().enumerate() {
        pieces[piece_idx].ends.push(k as u32);
    }
    for (k, m) in partition.rows.members.iter().enumerate() {
        let nic = run.index.nic_local[t.flow_tx[m.flow].nic.usize()] as usize;
        let stands = t.flow_tx[m.flow].flags & qp::QUEUED != 0;
        let piece_idx = if working[k] || stands { place(&mut sets, nic) } else { idle };
        pieces[piece_idx].members.push(k as u32);
        if working[k] {
            pieces[piece_idx].working.push(k as u32);
        }
    }
    if pieces[idle].is_empty() {
        pieces.pop();
    }
    pieces
}

/// Joins what a coupled switch has paused with what has paused it. Returns whether a pause concerns rows that no queue pair uses any more: then the
/// partition cannot split yet.
fn pauses_idle_rows(run: &FoldRun, t: &Tables, p: PartitionIdx, used: &mut [bool], sets: &mut Sets) -> bool {
    let partition = &run.partitions[p];
    if partition.rows.switches.is_empty() {
        return false;
    }
    let n = partition.rows.nics.len();
    for (k, &port) in partition.rows.ports.iter().enumerate() {
        if !run.guard.is_coupled(t.ports[port].switch_idx) || !pauses(t, port) {
            continue;
        }
        let peer = match t.ports[port].peer.owner(t.exps[0].nic_len) {
            EndOwner::Nic(nic) => run.index.local_nic(p, nic),
            EndOwner::Port(peer) => match run.index.local_port(p, peer) {
                NONE => NONE,
                local => n as u32 + local,
            },
        };
        if peer == NONE || !used[n + k] || !used[peer as usize] {
            return true;
        }
        sets.join(n + k, peer as usize);
    }
    false
}

/// Sets the entries of `in_flight` for the queue pairs of `p` that have packets in flight. These need their rows even if nothing is outstanding: packets
/// sent again after a timeout, and their acknowledgements, may still be in queues or on wires.
pub(crate) fn under_way(run: &FoldRun, t: &Tables, p: PartitionIdx, in_flight: &mut [bool]) {
    let partition = &run.partitions[p];
    let nics = t.exps[0].nic_len;
    let wires = partition
        .rows
        .nics
        .iter()
        .map(|n| n.end())
        .chain(partition.rows.ends.iter().map(|&e| e.end(nics)))
        .map(|end| t.wires[end].head);
    let answers = partition.rows.nics.iter().map(|&n| t.nics[n].ack_head);
    let queues = partition.rows.ports.iter().map(|&q| t.ports[q].q_head);
    for head in wires.chain(answers).chain(queues) {
        let mut packet = head;
        while packet.is_some() {
            let row = &t.packets[packet];
            if (row.meta >> meta::KIND_SHIFT) & meta::KIND_MASK != kind::FRAME {
                in_flight[run.index.member[row.flow.usize()] as usize] = true;
            }
            packet = row.next;
        }
    }
}

/// Splits partition `p` into `pieces`. Returns the numbers of the new partitions, `p` first.
pub(crate) fn fall_apart(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    pieces: &[PartitionPiece],
) -> Vec<PartitionIdx> {
    if let [piece] = pieces {
        let partition = &mut run.partitions[p];
        partition.rows.ancestors = ancestors(&partition.rows, piece);
        return vec![p];
    }
    let Partition { rows: whole, start, covered, reached, .. } =
        std::mem::replace(&mut run.partitions[p], Partition::new(0));
    for &s in &whole.switches {
        run.index.switch_partition[s.usize()] = PartitionIdx::NONE;
    }
    let mut numbers = Vec::new();
    for piece in pieces {
        let q = if numbers.is_empty() { p } else { new_partition(run, start) };
        numbers.push(q);
        let partition = &mut run.partitions[q];
        partition.start = start;
        partition.covered = covered;
        partition.reached = reached;
        partition.rows.nics = take_places(&piece.nics, &whole.nics);
        partition.rows.nic_base = piece.nics.iter().map(|&k| whole.nic_base[k as usize]).collect();
        partition.rows.last_post_at = piece.nics.iter().map(|&k| whole.last_post_at[k as usize]).collect();
        partition.rows.ports = take_places(&piece.ports, &whole.ports);
        partition.rows.port_base = piece.ports.iter().map(|&k| whole.port_base[k as usize]).collect();
        partition.rows.ends = take_places(&piece.ends, &whole.ends);
        partition.rows.peaks = take_places(&piece.ends, &whole.peaks);
        if !piece.working.is_empty() {
            for &port in &partition.rows.ports {
                let s = t.ports[port].switch_idx;
                if run.guard.is_coupled(s) && !partition.rows.switches.contains(&s) {
                    partition.rows.switches.push(s);
                    run.index.switch_partition[s.usize()] = q;
                }
            }
        }
        partition.rows.members = piece.members.iter().map(|&k| whole.members[k as usize].clone()).collect();
        partition.rows.flow_ids = take_places(&piece.members, &whole.flow_ids);
        partition.rows.ancestors = ancestors(&whole, piece);
        partition.first = partition.rows.nics.iter().copied().min().unwrap_or(NicIdx::NONE);
        for (k, &local) in piece.members.iter().enumerate() {
            let m = &mut partition.rows.members[k];
            if !piece.working.contains(&local) {
                m.routed = false;
                t.flow_tx[m.flow].flags |= qp::HELD;
            }
            run.index.member[m.flow.usize()] = k as u32;
        }
        for (k, &n) in partition.rows.nics.iter().enumerate() {
            run.index.nic_partition[n.usize()] = q;
            run.index.nic_local[n.usize()] = k as u32;
        }
        for (k, &port) in partition.rows.ports.iter().enumerate() {
            run.index.port_partition[port.usize()] = q;
            run.index.port_local[port.usize()] = k as u32;
        }
        for (k, &end) in partition.rows.ends.iter().enumerate() {
            run.index.end_local[end.usize()] = k as u32;
        }
    }
    numbers
}

/// The elements of `from` at `places`.
fn take_places<T: Copy>(places: &[u32], from: &[T]) -> Vec<T> {
    places.iter().map(|&k| from[k as usize]).collect()
}

/// The ancestors of `piece` of `whole`.
fn ancestors(whole: &PartitionRows, piece: &PartitionPiece) -> Vec<u32> {
    let members = whole.flow_ids.len();
    piece
        .ancestors
        .iter()
        .map(|&k| k as usize)
        .map(|k| if k < members { whole.flow_ids[k] } else { whole.ancestors[k - members] })
        .collect()
}
