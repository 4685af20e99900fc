//! Changes of an experiment's network that are still to come, and the watchdog of its pauses. No column: the host does both between two steps.

use super::SHARED_HEADER;
use super::index::{FlowIdx, LinkEndIdx, NicIdx, PortIdx};
use super::rows::{Exp, Nic, Port};

/// Bit of [`Port::peer`](super::Port::peer) that says that the port's link is down.
pub const LINK_DOWN: u32 = 1 << 31;
/// Bit of [`Port::peer`](super::Port::peer) and [`Nic::peer`](super::Nic::peer): what is sent there may get lost at random.
pub const LINK_LOSES: u32 = 1 << 30;
/// Bit of [`Port::peer`](super::Port::peer) that says that the watchdog drops packets of some traffic class of the port.
pub const LINK_DROPS: u32 = 1 << 29;
/// Bit of [`Nic::peer`](super::Nic::peer): queue pairs have moved from this NIC to another one, so packets of theirs may still arrive.
pub const FLOWS_LEFT: u32 = 1 << 31;
/// Value of [`FlowTx::flow_id`](super::FlowTx::flow_id) of a row that holds no queue pair, but a place in the order of its NIC for one that moves there.
pub const NO_FLOW: u32 = u32::MAX;
/// Value of [`Packet::path`](super::Packet::path) of a packet that a NIC hands over to the NIC where its queue pair is now.
pub const HANDED_OVER: u32 = u32::MAX;
/// The bits of a peer that are not part of its index. At a NIC the first of them is [`FLOWS_LEFT`].
pub const LINK_TROUBLE: u32 = LINK_DOWN | LINK_LOSES | LINK_DROPS;
/// Value of [`Nic::paused`](super::Nic::paused) while the NIC's link is down.
pub const HOLDS: u32 = 2;

impl Port {
    /// Whether its link is down. PRECONDITION: it has a link.
    #[inline(always)]
    pub fn is_cut_off(&self) -> bool {
        self.peer.0 & LINK_DOWN != 0
    }

    /// Whether its link is down or loses packets, or its watchdog drops them. PRECONDITION: it has a link.
    #[inline(always)]
    pub fn has_trouble(&self) -> bool {
        self.peer.0 & LINK_TROUBLE != 0
    }

    /// The link end at the other end of its link, whether the link is up or down; `NONE`: it has no link.
    #[inline]
    pub fn other_end(&self) -> LinkEndIdx {
        without_bits(self.peer)
    }
}

impl Nic {
    /// The link end at the other end of its link; `NONE`: it has no link.
    #[inline]
    pub fn other_end(&self) -> LinkEndIdx {
        without_bits(self.peer)
    }
}

/// The index in a column `peer`.
#[inline(always)]
fn without_bits(peer: LinkEndIdx) -> LinkEndIdx {
    if peer.is_none() { peer } else { LinkEndIdx(peer.0 & !LINK_TROUBLE) }
}

/// Shared words that a link end has where links lose packets: [`loss`].
pub const LOSS_WORDS: u32 = 5;

/// Places of the words of a link end in an experiment where links lose packets at random, from [`Exp::loss_words`] on.
pub mod loss {
    /// Share of packets that are lost, in units of 2^-32.
    pub const SHARE: u32 = 0;
    /// Number of the direction of its link in the network, for the draws.
    pub const ARC: u32 = 1;
    /// Packets of a NIC that were lost. A switch port counts its losses among its drops.
    pub const LOST: u32 = 2;
    /// Payload of these packets in bytes, low word.
    pub const BYTES_LO: u32 = 3;
    /// Its high word.
    pub const BYTES_HI: u32 = 4;
}

/// Shared words that a traffic class of a switch port has where pauses are watched: [`watch`].
pub const WATCH_WORDS: u32 = 5;

/// Places of the words of a traffic class of a switch port in an experiment whose pauses are watched, from [`Exp::watch_words`] on.
pub mod watch {
    /// Time at which the last pause or resume frame for the class arrived, in ps, low word.
    pub const SINCE_LO: u32 = 0;
    /// Its high word.
    pub const SINCE_HI: u32 = 1;
    /// [`ACTS`] and [`ASKED`].
    pub const STATE: u32 = 2;
    /// Packets that the watchdog has dropped.
    pub const DROPS: u32 = 3;
    /// Number of times that the watchdog began to act.
    pub const STARTS: u32 = 4;
    /// Bit of [`STATE`]: the watchdog acts, so the class is not paused.
    pub const ACTS: u32 = 1;
    /// Bit of [`STATE`], beside [`ACTS`] only: the peer asks the class to be silent.
    pub const ASKED: u32 = 2;
}

/// Shared words that a traffic class of a switch port has where marking goes by averages of queues: [`average`].
pub const AVERAGE_WORDS: u32 = 4;

/// Places of the words of a traffic class of a switch port in an experiment whose marking goes by averages, from [`Exp::average_words`] on.
pub mod average {
    /// The average in units of 2^-`average_weight` bytes, low word.
    pub const SUM_LO: u32 = 0;
    /// Its high word.
    pub const SUM_HI: u32 = 1;
    /// Time of the last marking test in ps, if it left the queue empty, else [`NEVER`](crate::NEVER); low word.
    pub const EMPTY_LO: u32 = 2;
    /// Its high word.
    pub const EMPTY_HI: u32 = 3;
}

/// Bit of the shared word of a port that switches report ([`Exp::remote_word`]): its link is down. The other bits are the bytes of the queue.
pub const REMOTE_DOWN: u32 = 1 << 31;

/// Shared words of a queue pair at a switch that chooses ports of its data, where it does so by flowlets: [`flowlet`].
pub const FLOWLET_WORDS: u32 = 3;

/// Places of the words of a queue pair at a switch, from [`Exp::flowlet_first`] and [`FLOWLET_WORDS`] times the number in a choice on.
pub mod flowlet {
    /// The egress port of its last packet, plus 1; 0: there was none.
    pub const PORT: u32 = 0;
    /// Time of the last packet's arrival in ps, low word.
    pub const LAST_LO: u32 = 1;
    /// Its high word.
    pub const LAST_HI: u32 = 2;
}

impl Exp {
    /// Place of the first shared word about flowlet `number`. PRECONDITION: there are flowlets.
    #[inline]
    pub fn flowlet_words(&self, number: u32) -> usize {
        (self.flowlet_first + number * FLOWLET_WORDS) as usize
    }

    /// Place of the shared word with what was reported last of the queue of `class` at `port`, in bytes. PRECONDITION: switches report their queues.
    #[inline]
    pub fn remote_word(&self, port: PortIdx, class: u32) -> usize {
        (self.remote_first + port.0 * self.class_n.max(1) + class) as usize
    }

    /// Place of the first shared word about the average of `class` of `port`. PRECONDITION: there are averages.
    #[inline]
    pub fn average_words(&self, port: PortIdx, class: u32) -> usize {
        (self.average_first + (port.0 * self.class_n.max(1) + class) * AVERAGE_WORDS) as usize
    }

    /// Place of the first shared word about pauses of `class` of `port`. PRECONDITION: pauses are watched.
    #[inline]
    pub fn watch_words(&self, port: PortIdx, class: u32) -> usize {
        (self.watch_first + (port.0 * self.class_n.max(1) + class) * WATCH_WORDS) as usize
    }

    /// Place of the first shared word about losses of link end `end`.
    #[inline]
    pub fn loss_words(&self, end: LinkEndIdx) -> usize {
        (SHARED_HEADER + self.port_len * (1 + self.mask_words + self.class_n) + end.0 * LOSS_WORDS) as usize
    }
}

/// Entries of `paths` that hold some paths one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSpan {
    /// First entry.
    pub first: u32,
    /// Number of entries of one path.
    pub len: u32,
    /// Number of paths.
    pub n: u32,
    /// The NIC at which they begin.
    pub nic: NicIdx,
}

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableChange {
    /// The link between these two ends fails.
    LinkDown([LinkEndIdx; 2]),
    /// The link between these two ends comes back.
    LinkUp([LinkEndIdx; 2]),
    /// Packets of a queue pair take other paths from now on.
    NewPaths {
        /// The queue pair.
        flow: FlowIdx,
        /// Paths of its data.
        data: PathSpan,
        /// Paths of the answers to it.
        answers: PathSpan,
    },
    /// The tasks that began at a NIC are at another one from now on, or back.
    MoveTasks {
        /// The NIC at which they began.
        home: NicIdx,
        /// The NIC where they are from now on.
        to: NicIdx,
    },
    /// A link end sends at another rate.
    Rate {
        /// The link end.
        end: LinkEndIdx,
        /// Its new columns.
        columns: RateColumns,
    },
    /// From now on packets that a link end sends get lost at random.
    Loss {
        /// The link end.
        end: LinkEndIdx,
        /// Share of packets that are lost, in units of 2^-32; 0: none.
        share_q32: u32,
    },
}

/// Columns of a NIC or a port that its rate decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateColumns {
    /// Rate in bps.
    pub rate: u64,
    /// Transmission time of a full data packet, in ps.
    pub tx_full: u64,
    /// Transmission time of an ACK, in ps.
    pub tx_ack: u64,
    /// Index of the rate in the INT header. A NIC has none.
    pub rate_idx: u32,
}

/// The watchdog of pauses at the ports of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// Time from the last pause frame after which it begins to act, in ps.
    pub detect: u64,
    /// Time from the last resume frame after which it ends, in ps.
    pub restore: u64,
    /// Whether it drops what a class sends while it acts.
    pub drops: bool,
    /// Time in ps of the next stop at which it looks at the ports: nothing begins or ends before.
    pub next: u64,
}

/// Reports of switches about their queues, which the switches before them use in their choice of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueReports {
    /// Time from one report to the next, in ps.
    pub period: u64,
    /// Time of the next report, in ps.
    pub next: u64,
}

/// The changes of an experiment's network. Until the next one, `Exp::time_limit` is its time at the latest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkChanges {
    /// Time in ps and kind of each change, in the order in which they happen.
    pub list: Vec<(u64, TableChange)>,
    /// Index of the next change.
    pub next: usize,
    /// Simulated time at which the experiment ends at the latest, in ps: the time limit after the last change.
    pub time_limit: u64,
    /// Link ends whose rate changes, ascending, with their rate in bps before the first change. It is the highest that they have.
    pub own_rates: Vec<(LinkEndIdx, u64)>,
    /// Whether packets get lost at random at some time, so that there are [`LOSS_WORDS`] for each link end.
    pub has_losses: bool,
    /// The NIC at which each task began; empty if no tasks move.
    pub task_homes: Vec<NicIdx>,
    /// The watchdog of pauses. If there is one, [`Exp::watch_first`] is not 0.
    pub watchdog: Option<Watchdog>,
    /// Reports about queues. If there are any, [`Exp::remote_first`] is not 0.
    pub reports: Option<QueueReports>,
}

impl NetworkChanges {
    /// Time of the next change, in ps; `None`: there is none.
    #[inline]
    pub fn next_time(&self) -> Option<u64> {
        self.list.get(self.next).map(|&(time, _)| time)
    }

    /// Whether the experiment may stop for a change of its network, for the watchdog or for a report.
    #[inline]
    pub fn may_stop(&self) -> bool {
        self.next_time().is_some() || self.watchdog.is_some() || self.reports.is_some()
    }

    /// Highest rate of link end `end` in bps, which now has `rate`.
    pub fn own_rate(&self, end: LinkEndIdx, rate: u64) -> u64 {
        match self.own_rates.binary_search_by_key(&end.0, |&(changed, _)| changed.0) {
            Ok(place) => self.own_rates[place].1,
            Err(_) => rate,
        }
    }

    /// Packets that NIC `n` sent and that got lost at random, in an experiment with header `e` and shared words `shared`.
    pub fn lost_of_nic(&self, e: &Exp, shared: &[u32], n: NicIdx) -> u32 {
        if self.has_losses { shared[e.loss_words(n.end()) + loss::LOST as usize] } else { 0 }
    }

    /// Payload of all packets of NICs that got lost at random, in bytes.
    pub fn bytes_lost_of_nics(&self, e: &Exp, shared: &[u32]) -> u64 {
        let bytes = |n: NicIdx| {
            let words = e.loss_words(n.end());
            let word = |place: u32| u64::from(shared[words + place as usize]);
            word(loss::BYTES_HI) << 32 | word(loss::BYTES_LO)
        };
        if self.has_losses { NicIdx::all(e.nic_len).map(bytes).sum() } else { 0 }
    }

    /// Whether a flow gets several paths at some time.
    pub fn has_several_paths(&self) -> bool {
        let several = |change: &TableChange| matches!(change, TableChange::NewPaths { data, answers, .. } if data.n > 1 || answers.n > 1);
        self.list.iter().any(|(_, change)| several(change))
    }
}
