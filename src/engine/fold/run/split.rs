//! Splits a partition when what connected it has finished. Rows that still work together become a partition each;
//! unused rows become idle.
//!
//! Layer: fold/run.

use crate::columns::{NEVER, NONE, Tables, qp};
use crate::engine::fold::memo::outcome::PartitionPiece;
use crate::engine::fold::rows::partition_rows::{PartitionRows, is_idle};
use crate::engine::fold::run::fold_run::{FoldRun, new_partition};
use crate::engine::fold::run::partition::Partition;

/// Disjoint sets that grow.
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

    /// The lower number represents both, so that pieces come in the order of their first NICs.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// The pieces of simulated partition `p`, by local numbers: those that work, then at most one of all unused rows. A
/// single piece stands for the whole and lists nothing.
pub fn pieces(run: &FoldRun, t: &Tables, p: u32) -> Vec<PartitionPiece> {
    let partition = &run.partitions[p as usize];
    let n = partition.rows.nics.len();
    let mut working: Vec<bool> = partition.rows.members.iter().map(|m| m.routed && !is_idle(t, m.flow)).collect();
    if partition.rows.members.iter().zip(&working).any(|(m, working)| m.routed && !working) {
        under_way(run, t, p, &mut working);
    }
    let mut sets = Sets((0..n + partition.rows.ports.len()).collect());
    let mut used = vec![false; n + partition.rows.ports.len()];
    for (m, _) in partition.rows.members.iter().zip(&working).filter(|(_, w)| **w) {
        let (tx, rx) = (&t.flow_tx[m.flow as usize], &t.flow_rx[m.flow as usize]);
        let at = run.index.nic_local[tx.nic as usize] as usize;
        let nics = [at, run.index.nic_local[rx.nic as usize] as usize];
        let paths = [(tx.path_first, tx.path_len), (rx.path_first, rx.path_len)];
        let ports = paths
            .iter()
            .flat_map(|&(first, len)| &t.paths[first as usize..(first + len) as usize])
            .map(|&q| n + run.index.port_local[q as usize] as usize);
        for row in nics.into_iter().chain(ports) {
            used[row] = true;
            sets.join(at, row);
        }
    }
    // A NIC stays that has something left to do which no message asks for (a timer of a finished queue pair).
    let busy = |k: usize| {
        t.nics[partition.rows.nics[k] as usize].busy_until != NEVER
            || t.nics[partition.rows.nics[k] as usize].timer != NEVER
    };
    let busy_unused = (0..n).any(|k| !used[k] && busy(k))
        || partition.rows.ports.iter().enumerate().any(|(k, &q)| !used[n + k] && t.ports[q as usize].q_head != NONE);
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
        let to = place(&mut sets, k);
        pieces[to].nics.push(k as u32);
        if t.nics[nic as usize].peer >= nics {
            of_end[run.index.end_local[(t.nics[nic as usize].peer - nics) as usize] as usize] = to;
        }
    }
    for (k, &q) in partition.rows.ports.iter().enumerate() {
        let to = place(&mut sets, n + k);
        pieces[to].ports.push(k as u32);
        if t.ports[q as usize].peer >= nics {
            of_end[run.index.end_local[(t.ports[q as usize].peer - nics) as usize] as usize] = to;
        }
    }
    for (k, &to) in of_end.iter().enumerate() {
        pieces[to].ends.push(k as u32);
    }
    for (k, m) in partition.rows.members.iter().enumerate() {
        let nic = run.index.nic_local[t.flow_tx[m.flow as usize].nic as usize] as usize;
        let stands = t.flow_tx[m.flow as usize].flags & qp::QUEUED != 0;
        let to = if working[k] || stands { place(&mut sets, nic) } else { idle };
        pieces[to].members.push(k as u32);
        if working[k] {
            pieces[to].working.push(k as u32);
        }
    }
    if pieces[idle].is_empty() {
        pieces.pop();
    }
    pieces
}

/// Marks in `of` the queue pairs of `p` that have packets in flight. These need their rows even if nothing is
/// outstanding: repetitions after a timeout, and their acknowledgements, may still be queued or fly.
pub fn under_way(run: &FoldRun, t: &Tables, p: u32, of: &mut [bool]) {
    let partition = &run.partitions[p as usize];
    let nics = t.exps[0].nic_len;
    let wires = partition
        .rows
        .nics
        .iter()
        .copied()
        .chain(partition.rows.ends.iter().map(|e| nics + e))
        .map(|end| t.wires[end as usize].head);
    let answers = partition.rows.nics.iter().map(|&n| t.nics[n as usize].ack_head);
    let queues = partition.rows.ports.iter().map(|&q| t.ports[q as usize].q_head);
    for head in wires.chain(answers).chain(queues) {
        let mut at = head;
        while at != NONE {
            let row = &t.packets[at as usize];
            of[run.index.member[row.flow as usize] as usize] = true;
            at = row.next;
        }
    }
}

/// Makes `pieces` of partition `p`; returns the numbers of the new partitions, `p` the first.
pub fn fall_apart(run: &mut FoldRun, t: &mut Tables, p: u32, pieces: &[PartitionPiece]) -> Vec<u32> {
    if let [piece] = pieces {
        let partition = &mut run.partitions[p as usize];
        partition.rows.ancestors = ancestors(&partition.rows, piece);
        return vec![p];
    }
    let Partition { rows: whole, start, covered, reached, .. } =
        std::mem::replace(&mut run.partitions[p as usize], Partition::new(0));
    let take = |list: &[u32], from: &[u32]| -> Vec<u32> { list.iter().map(|&k| from[k as usize]).collect() };
    let mut numbers = Vec::new();
    for piece in pieces {
        let q = if numbers.is_empty() { p } else { new_partition(run, start) };
        numbers.push(q);
        let partition = &mut run.partitions[q as usize];
        partition.start = start;
        partition.covered = covered;
        partition.reached = reached;
        partition.rows.nics = take(&piece.nics, &whole.nics);
        partition.rows.nic_base = piece.nics.iter().map(|&k| whole.nic_base[k as usize]).collect();
        partition.rows.last_post_at = piece.nics.iter().map(|&k| whole.last_post_at[k as usize]).collect();
        partition.rows.ports = take(&piece.ports, &whole.ports);
        partition.rows.port_base = piece.ports.iter().map(|&k| whole.port_base[k as usize]).collect();
        partition.rows.ends = take(&piece.ends, &whole.ends);
        partition.rows.peaks = take(&piece.ends, &whole.peaks);
        partition.rows.members = piece.members.iter().map(|&k| whole.members[k as usize].clone()).collect();
        partition.rows.flow_ids = take(&piece.members, &whole.flow_ids);
        partition.rows.ancestors = ancestors(&whole, piece);
        partition.first = partition.rows.nics.iter().copied().min().unwrap_or(u32::MAX);
        for (k, &local) in piece.members.iter().enumerate() {
            let m = &mut partition.rows.members[k];
            if !piece.working.contains(&local) {
                m.routed = false;
                t.flow_tx[m.flow as usize].flags |= qp::HELD;
            }
            run.index.member[m.flow as usize] = k as u32;
        }
        for (k, &n) in partition.rows.nics.iter().enumerate() {
            run.index.nic_partition[n as usize] = q;
            run.index.nic_local[n as usize] = k as u32;
        }
        for (k, &port) in partition.rows.ports.iter().enumerate() {
            run.index.port_partition[port as usize] = q;
            run.index.port_local[port as usize] = k as u32;
        }
        for (k, &end) in partition.rows.ends.iter().enumerate() {
            run.index.end_local[end as usize] = k as u32;
        }
    }
    numbers
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
