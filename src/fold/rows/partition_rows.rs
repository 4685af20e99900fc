//! The rows of a partition: NICs, ports, link ends and queue pairs, and the values of their counters at the last checkpoint.
//!
//! Layer: fold/rows. Knows nothing of the partition's actions.

use hyperfold_columns::{FlowIdx, FlowRx, FlowTx, NEVER, NicIdx, PortIdx, SwitchIdx, Tables, TaskIdx, mode, qp};

/// Rows that step together. Each row keeps its place while the partition exists; these places are the local numbers.
#[derive(Clone, Default)]
pub struct PartitionRows {
    pub nics: Vec<NicIdx>,
    /// Counters of each NIC when it joined, or at the last checkpoint.
    pub nic_base: Vec<NicBase>,
    /// Time of each NIC's last post, in ps.
    pub last_post_at: Vec<u64>,
    /// Switch ports whose transmitters belong to the partition.
    pub ports: Vec<PortIdx>,
    pub port_base: Vec<PortBase>,
    /// Switch ports that receive from its NICs and ports, and the peak of each in bytes.
    pub ends: Vec<PortIdx>,
    pub peaks: Vec<u32>,
    /// Coupled switches that its queue pairs cross. All ports of these are processed together.
    pub switches: Vec<SwitchIdx>,
    pub members: Vec<Member>,
    /// The members' flow numbers in a list of their own, in which a queue pair that joins is ranked.
    pub flow_ids: Vec<u32>,
    /// Flow numbers of former members that are the roots of events in flight. They break ties, so a queue pair that joins is ranked among them too.
    pub ancestors: Vec<u32>,
}

/// A queue pair of a partition, or a finished one that is still in the round-robin order of one of its NICs.
#[derive(Clone)]
pub struct Member {
    pub flow: FlowIdx,
    /// Whether its path belongs to the partition.
    pub routed: bool,
    /// Messages posted in this episode, and for each whether it was the first that one event posted.
    pub posted: Vec<(TaskIdx, bool)>,
    /// How many of `posted` the rows contain: fewer than all while a looked-up partition is simulated again.
    pub posts_in_rows: usize,
    /// How many of `posted` were given to the network, and how many are reported as sent, delivered and acknowledged. If `given` equals `sent`, the
    /// next post sends at once. Otherwise it waits behind others and changes nothing until its turn.
    pub given: usize,
    pub sent: usize,
    pub delivered: usize,
    pub acked: usize,
    /// How many of the sent messages the rows have sent: fewer while a looked-up partition is simulated again.
    pub sent_in_rows: usize,
    /// Time in ps at which its last message was acknowledged, as reported; [`NEVER`] while a message is not acknowledged.
    pub idle_since: u64,
    /// Its progress at the last checkpoint.
    pub at_checkpoint: SendProgress,
    /// Whether its state is part of the partition's node. If not, it has only been in a round-robin order so far.
    pub known: bool,
    /// Its rows when it joined, or at the last checkpoint.
    pub tx: FlowTx,
    pub rx: FlowRx,
}

impl Member {
    /// Records that a message was acknowledged at `at_ps`, and that this is reported.
    pub(crate) fn note_acked(&mut self, at_ps: u64) {
        if self.acked == self.posted.len() {
            self.idle_since = at_ps;
        }
    }

    /// Bytes of its messages that wait behind those that the network was given.
    pub(crate) fn waiting(&self, t: &Tables) -> u64 {
        self.posted[self.given..].iter().map(|&(i, _)| t.tasks[i].bytes).sum()
    }

    /// Time in ps for which all its messages have been acknowledged at `at_ps`.
    pub(crate) fn idle_for(&self, at_ps: u64) -> u64 {
        if self.idle_since == NEVER { 0 } else { at_ps.saturating_sub(self.idle_since) }
    }
}

/// How many of a queue pair's messages had been posted, given to the network, and sent.
#[derive(Clone, Copy, Default)]
pub struct SendProgress {
    pub posted: usize,
    pub given: usize,
    pub sent: usize,
}

/// Counters of a port when it joined, or at the last checkpoint. Its longest queue is measured anew from then on.
#[derive(Clone, Copy)]
pub struct PortBase {
    pub tx_bytes: u64,
    pub hops: u64,
    pub max_q: u32,
    pub q_area: u64,
    pub marks: u64,
    pub pauses: u32,
    pub drops: u32,
    pub dropped_bytes: u64,
    pub paused_ps: u64,
}

impl PortBase {
    /// The counters of `port` at `at_ps`. `max_q`: the longest queue before then, in bytes.
    pub(crate) fn of(t: &Tables, port: PortIdx, max_q: u32, at_ps: u64) -> PortBase {
        let row = &t.ports[port];
        PortBase {
            tx_bytes: row.tx_bytes,
            hops: row.hops,
            max_q,
            q_area: row.q_area,
            marks: row.marks,
            pauses: row.pauses,
            drops: row.drops,
            dropped_bytes: row.dropped_bytes,
            paused_ps: t.paused_until(port.end(t.exps[0].nic_len), at_ps),
        }
    }
}

/// Counters of a NIC when it joined, or at the last checkpoint.
#[derive(Clone, Copy)]
pub struct NicBase {
    pub tx_bytes: u64,
    pub hops: u64,
    pub pauses: u32,
    pub paused_ps: u64,
}

impl NicBase {
    /// The counters of NIC `n` at `at_ps`.
    pub(crate) fn of(t: &Tables, n: NicIdx, at_ps: u64) -> NicBase {
        let row = &t.nics[n];
        let paused_ps = t.paused_until(n.end(), at_ps);
        NicBase { tx_bytes: row.tx_bytes, hops: row.hops, pauses: row.pauses, paused_ps }
    }
}

/// Number of rows of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    pub nics: usize,
    pub ports: usize,
    pub ends: usize,
    pub switches: usize,
    pub members: usize,
    pub ancestors: usize,
}

impl RowCounts {
    pub(crate) fn of(rows: &PartitionRows) -> RowCounts {
        RowCounts {
            nics: rows.nics.len(),
            ports: rows.ports.len(),
            ends: rows.ends.len(),
            switches: rows.switches.len(),
            members: rows.members.len(),
            ancestors: rows.ancestors.len(),
        }
    }
}

impl std::ops::Add for RowCounts {
    type Output = RowCounts;

    fn add(self, b: RowCounts) -> RowCounts {
        RowCounts {
            nics: self.nics + b.nics,
            ports: self.ports + b.ports,
            ends: self.ends + b.ends,
            switches: self.switches + b.switches,
            members: self.members + b.members,
            ancestors: self.ancestors + b.ancestors,
        }
    }
}

/// Whether queue pair `f` has nothing outstanding.
pub(crate) fn is_idle(t: &Tables, f: FlowIdx) -> bool {
    let tx = &t.flow_tx[f];
    tx.flags & qp::CREATED == 0 || tx.snd_una >= tx.size
}

/// Whether a post behind unsent bytes changes nothing until its turn. It does change something if it renews the queue pair. (If it would change
/// timers of other queue pairs, nothing is recorded.)
pub(crate) fn waits_its_turn(t: &Tables) -> bool {
    t.exps[0].modes & mode::FRESH_QP == 0
}

/// Number of packets that have left the ports of these rows since the episode began or the last checkpoint.
pub(crate) fn hops(t: &Tables, rows: &PartitionRows) -> u64 {
    let nics = rows.nics.iter().zip(&rows.nic_base).map(|(&n, base)| t.nics[n].hops - base.hops).sum::<u64>();
    nics + rows.ports.iter().zip(&rows.port_base).map(|(&q, base)| t.ports[q].hops - base.hops).sum::<u64>()
}
