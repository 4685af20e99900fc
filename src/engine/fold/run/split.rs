//! A partition falls apart when what connected it has finished: what still works together goes on by itself, rows that nothing uses any more rest.

use crate::columns::{NEVER, NONE, Tables, qp};
use crate::engine::fold::memo::table::PartitionPiece;
use crate::engine::fold::run::partition::{Partition, is_idle};
use crate::engine::fold::run::turns::Run;

/// Sets that grow together.
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

    /// The lower number stands for both, so that pieces come in the order of their first NICs.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}

impl Run {
    /// What live partition `p` consists of, by local numbers: pieces that work, then at most one of all rows that nothing uses. A single piece is all of it, without a list.
    pub(in crate::engine::fold) fn pieces(&self, t: &Tables, p: u32) -> Vec<PartitionPiece> {
        let partition = &self.partitions[p as usize];
        let n = partition.nics.len();
        let mut working: Vec<bool> = partition.members.iter().map(|m| m.routed && !is_idle(t, m.flow)).collect();
        if partition.members.iter().zip(&working).any(|(m, working)| m.routed && !working) {
            self.under_way(t, p, &mut working);
        }
        let mut sets = Sets((0..n + partition.ports.len()).collect());
        let mut used = vec![false; n + partition.ports.len()];
        for (m, _) in partition.members.iter().zip(&working).filter(|(_, w)| **w) {
            let (tx, rx) = (&t.flow_tx[m.flow as usize], &t.flow_rx[m.flow as usize]);
            let at = self.nic_local[tx.nic as usize] as usize;
            let nics = [at, self.nic_local[rx.nic as usize] as usize];
            let paths = [(tx.path_first, tx.path_len), (rx.path_first, rx.path_len)];
            let ports = paths
                .iter()
                .flat_map(|&(first, len)| &t.paths[first as usize..(first + len) as usize])
                .map(|&q| n + self.port_local[q as usize] as usize);
            for row in nics.into_iter().chain(ports) {
                used[row] = true;
                sets.join(at, row);
            }
        }
        // A NIC with something left to do that no message asks for (a timer of a queue pair that has finished) is not let go.
        let busy = |k: usize| {
            t.nics[partition.nics[k] as usize].busy_until != NEVER || t.nics[partition.nics[k] as usize].timer != NEVER
        };
        let busy_unused = (0..n).any(|k| !used[k] && busy(k))
            || partition.ports.iter().enumerate().any(|(k, &q)| !used[n + k] && t.ports[q as usize].q_head != NONE);
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
        let mut of_end = vec![idle; partition.ends.len()];
        for (k, &nic) in partition.nics.iter().enumerate() {
            let to = place(&mut sets, k);
            pieces[to].nics.push(k as u32);
            if t.nics[nic as usize].peer >= nics {
                of_end[self.end_local[(t.nics[nic as usize].peer - nics) as usize] as usize] = to;
            }
        }
        for (k, &q) in partition.ports.iter().enumerate() {
            let to = place(&mut sets, n + k);
            pieces[to].ports.push(k as u32);
            if t.ports[q as usize].peer >= nics {
                of_end[self.end_local[(t.ports[q as usize].peer - nics) as usize] as usize] = to;
            }
        }
        for (k, &to) in of_end.iter().enumerate() {
            pieces[to].ends.push(k as u32);
        }
        for (k, m) in partition.members.iter().enumerate() {
            let nic = self.nic_local[t.flow_tx[m.flow as usize].nic as usize] as usize;
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

    /// Marks in `of` the queue pairs of `p` that packets are under way of. They need their rows even if nothing of them is outstanding: what a timeout made a sender repeat
    /// in vain, and what the receiver says to that, may still be queued or fly.
    fn under_way(&self, t: &Tables, p: u32, of: &mut [bool]) {
        let partition = &self.partitions[p as usize];
        let nics = t.exps[0].nic_len;
        let wires = partition
            .nics
            .iter()
            .copied()
            .chain(partition.ends.iter().map(|e| nics + e))
            .map(|end| t.wires[end as usize].head);
        let answers = partition.nics.iter().map(|&n| t.nics[n as usize].ack_head);
        let queues = partition.ports.iter().map(|&q| t.ports[q as usize].q_head);
        for head in wires.chain(answers).chain(queues) {
            let mut at = head;
            while at != NONE {
                let row = &t.packets[at as usize];
                of[self.member[row.flow as usize] as usize] = true;
                at = row.next;
            }
        }
    }

    /// Partition `p` becomes `pieces`; gives the numbers of the partitions that these are, `p` the first.
    pub(in crate::engine::fold) fn fall_apart(
        &mut self,
        t: &mut Tables,
        p: u32,
        pieces: &[PartitionPiece],
    ) -> Vec<u32> {
        if let [piece] = pieces {
            let partition = &mut self.partitions[p as usize];
            partition.ancestors = ancestors(partition, piece);
            return vec![p];
        }
        let whole = std::mem::replace(&mut self.partitions[p as usize], Partition::new(0));
        let take = |list: &[u32], from: &[u32]| -> Vec<u32> { list.iter().map(|&k| from[k as usize]).collect() };
        let mut numbers = Vec::new();
        for piece in pieces {
            let q = if numbers.is_empty() { p } else { self.new_partition(whole.start) };
            numbers.push(q);
            let partition = &mut self.partitions[q as usize];
            partition.start = whole.start;
            partition.covered = whole.covered;
            partition.reached = whole.reached;
            partition.nics = take(&piece.nics, &whole.nics);
            partition.nic_base = piece.nics.iter().map(|&k| whole.nic_base[k as usize]).collect();
            partition.last_post_at = piece.nics.iter().map(|&k| whole.last_post_at[k as usize]).collect();
            partition.ports = take(&piece.ports, &whole.ports);
            partition.port_base = piece.ports.iter().map(|&k| whole.port_base[k as usize]).collect();
            partition.ends = take(&piece.ends, &whole.ends);
            partition.peaks = take(&piece.ends, &whole.peaks);
            partition.members = piece.members.iter().map(|&k| whole.members[k as usize].clone()).collect();
            partition.flow_ids = take(&piece.members, &whole.flow_ids);
            partition.ancestors = ancestors(&whole, piece);
            partition.first = partition.nics.iter().copied().min().unwrap_or(u32::MAX);
            for (k, &local) in piece.members.iter().enumerate() {
                let m = &mut partition.members[k];
                if !piece.working.contains(&local) {
                    m.routed = false;
                    t.flow_tx[m.flow as usize].flags |= qp::HELD;
                }
                self.member[m.flow as usize] = k as u32;
            }
            for (k, &n) in partition.nics.iter().enumerate() {
                self.nic_partition[n as usize] = q;
                self.nic_local[n as usize] = k as u32;
            }
            for (k, &port) in partition.ports.iter().enumerate() {
                self.port_partition[port as usize] = q;
                self.port_local[port as usize] = k as u32;
            }
            for (k, &end) in partition.ends.iter().enumerate() {
                self.end_local[end as usize] = k as u32;
            }
        }
        numbers
    }
}

/// The ancestors of `piece` of `whole`.
fn ancestors(whole: &Partition, piece: &PartitionPiece) -> Vec<u32> {
    let members = whole.flow_ids.len();
    piece
        .ancestors
        .iter()
        .map(|&k| k as usize)
        .map(|k| if k < members { whole.flow_ids[k] } else { whole.ancestors[k - members] })
        .collect()
}
