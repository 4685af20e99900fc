//! The sending end of a flow: what it has sent, what it may send, what it keeps after a loss.

use hyperfold_network::topology::ArcIdx;
use hyperfold_network::transport::{LossRecovery, Transport};

use super::Case;
use super::any_order::Scoreboard;
use super::arith::mul_div;
use super::cc::CcState;
use super::credit::Purse;
use super::port;
use super::uec::{Books, Entropies};

/// What a sender keeps after a loss, unless it is the reference's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// Bytes that may be outstanding.
    pub(super) window: u64,
    /// When it last stepped back, or last took note of losses.
    pub(super) stepped_back: u64,
    /// Since when packets count whose acknowledgement widens the window.
    pub(super) round: u64,
}

/// The sending end of a flow, or of a queue pair of a task graph.
#[derive(Clone, Debug)]
pub struct Sender {
    pub nic: ArcIdx,
    /// Gets messages one by one.
    pub is_qp: bool,
    /// Bytes posted: all of a flow's. With packets in any order, the end of the last message as a sequence number.
    pub size: u64,
    /// Ends of the posted messages in bytes, ascending; a flow is one message.
    pub ends: Vec<u64>,
    pub snd_nxt: u64,
    pub snd_una: u64,
    /// Whether its queue pair has been created: a flow has started, or a first message is posted.
    pub is_created: bool,
    pub rate: u64,
    /// Line rate of the NIC.
    pub rate_max: u64,
    pub next_avail: u64,
    pub last_wire: u32,
    /// The window before it is scaled; also what HPCC divides by.
    pub base_window: u64,
    pub rtt_ps: u64,
    pub rtt_ns: u64,
    /// Switches on its first data path.
    pub hops: u64,
    /// Packets sent so far.
    pub sent: u32,
    pub retries: u32,
    /// NACKs without progress since the last progress.
    pub(super) stalls: u32,
    /// Since the first loss since everything was acknowledged.
    pub(super) recovery: Option<Recovery>,
    pub deadline: Option<u64>,
    /// An event for the deadline, or an earlier one, is in the heap.
    pub(super) deadline_queued: bool,
    /// Where packets may arrive in any order.
    pub(super) any_order: Option<Scoreboard>,
    /// Under Ultra Ethernet.
    pub uec: Option<Books>,
    /// With receiver credit.
    pub purse: Option<Purse>,
    pub entropies: Entropies,
    pub cc: CcState,
    /// Sum of the round-trip times of all answers that arrived before it was done, in ps, and their number.
    pub round_trips: (u64, u32),
    pub finish_ps: Option<u64>,
}

impl Sender {
    pub fn new(case: &Case, flow: usize, is_qp: bool) -> Self {
        let size = if is_qp { 0 } else { case.flows[flow].bytes };
        let nic = case.paths[flow].data[0][0];
        let rate_max = port::rate(&case.network, nic);
        Sender {
            nic,
            is_qp,
            size,
            ends: if is_qp { Vec::new() } else { vec![size] },
            snd_nxt: 0,
            snd_una: 0,
            is_created: false,
            rate: rate_max,
            rate_max,
            next_avail: 0,
            last_wire: 0,
            base_window: case.rtt[flow].window_bytes,
            rtt_ps: case.rtt[flow].rtt_ps,
            rtt_ns: case.rtt[flow].rtt_ps / 1000,
            // Every arc but the first leaves a switch.
            hops: case.paths[flow].data[0].len() as u64 - 1,
            sent: 0,
            retries: 0,
            stalls: 0,
            recovery: None,
            deadline: None,
            deadline_queued: false,
            any_order: (case.transport.loss_recovery == LossRecovery::Selective).then(|| Scoreboard::new(case, flow)),
            uec: (case.transport.loss_recovery == LossRecovery::Uec).then(|| Books::new(case)),
            purse: Purse::new(&case.transport),
            entropies: Entropies::default(),
            cc: CcState::new(&case.transport, rate_max, case.rtt[flow].rtt_ps),
            round_trips: (0, 0),
            finish_ps: None,
        }
    }

    /// Its data takes these paths from now on.
    pub fn has_paths(&mut self, case: &Case, flow: usize, data: &[Vec<ArcIdx>]) {
        self.hops = data[0].len() as u64 - 1;
        self.cc.change_paths(self.snd_nxt);
        if let Some(scoreboard) = &mut self.any_order {
            scoreboard.choose_among(case, flow, data.len());
        }
    }

    /// A queue pair is never done; its messages are tasks.
    pub fn is_unfinished_flow(&self) -> bool {
        !self.is_qp && self.finish_ps.is_none()
    }

    /// Returns the end of the message that byte `at` belongs to. PRECONDITION: that message is posted.
    pub(super) fn message_end(&self, at: u64) -> u64 {
        self.ends[self.ends.partition_point(|&end| end <= at)]
    }

    /// A message of `bytes` is posted. Where packets may arrive in any order, it begins with a packet's position.
    pub fn post(&mut self, bytes: u64) {
        self.before_post();
        let mut begin = self.size;
        if let Some(scoreboard) = &self.any_order {
            begin = scoreboard.up(begin);
        } else if let Some(books) = &self.uec {
            begin = books.up(begin);
        }
        self.size = begin + bytes;
        self.ends.push(self.size);
    }

    /// All that was posted is acknowledged.
    pub fn is_finished(&self) -> bool {
        self.snd_una >= self.size
    }

    /// Something is left to send, and sequence numbers allow it.
    pub(super) fn has_next(&self) -> bool {
        let new = self.snd_nxt < self.size;
        if let Some(books) = &self.uec {
            return books.first_lost().is_some() || (new && books.in_range(self.snd_nxt - self.snd_una));
        }
        match &self.any_order {
            None => new,
            Some(scoreboard) => {
                let allowed = scoreboard.in_range(self.snd_nxt - self.snd_una);
                scoreboard.first_lost(self.snd_una).is_some() || (new && allowed)
            }
        }
    }

    /// Where the packet to send next begins.
    pub(super) fn next_position(&self) -> u64 {
        let lost = self.any_order.as_ref().and_then(|scoreboard| scoreboard.first_lost(self.snd_una));
        let lost_by_books = self.uec.as_ref().and_then(Books::first_lost);
        lost.or(lost_by_books).unwrap_or(self.snd_nxt)
    }

    /// The packet that begins at `seq` is sent.
    pub(super) fn note_sent(&mut self, seq: u64, payload: u32) {
        match &mut self.any_order {
            None if self.uec.is_some() => self.note_sent_by_books(seq, payload),
            None => self.snd_nxt += payload as u64,
            Some(scoreboard) if seq < self.snd_nxt => scoreboard.resend(seq, self.snd_nxt),
            Some(scoreboard) => self.snd_nxt = scoreboard.up(seq + payload as u64),
        }
    }

    /// A packet that is sent now sets the retransmission deadline.
    pub(super) fn sets_deadline(&self) -> bool {
        if self.any_order.is_some() || self.uec.is_some() {
            self.deadline.is_none()
        } else {
            self.snd_una == self.snd_nxt
        }
    }

    /// Bytes sent that are not known to have arrived.
    pub(super) fn not_arrived(&self) -> u64 {
        self.snd_nxt - self.snd_una - self.any_order.as_ref().map_or(0, Scoreboard::sacked_bytes)
    }

    /// Bytes that windows bound: those that may be on their way.
    pub(super) fn outstanding(&self) -> u64 {
        let lost = self.any_order.as_ref().map_or(0, |scoreboard| scoreboard.lost_bytes(self.snd_una));
        self.not_arrived() - lost
    }

    pub(super) fn window(&self, t: &Transport) -> u64 {
        match (t.window, t.var_window) {
            (false, _) => 0,
            (true, false) => self.base_window,
            (true, true) => mul_div(self.base_window, self.rate, self.rate_max).max(1),
        }
    }

    pub(super) fn window_bound(&self, t: &Transport) -> bool {
        if let Some(books) = &self.uec {
            return self.is_full(books);
        }
        let w = self.window(t);
        let outstanding = self.outstanding();
        (w != 0 && outstanding >= w) || self.recovery.is_some_and(|r| outstanding >= r.window)
    }

    /// Goes back to what is not acknowledged, at `now`. An adapter then has half as much outstanding.
    pub(super) fn step_back(&mut self, t: &Transport, now: u64) {
        if t.loss_recovery == LossRecovery::Adapter {
            self.halve(t, now);
        }
        self.snd_nxt = self.snd_una;
    }

    /// Half of what has not arrived may be outstanding from `now` on.
    pub(super) fn halve(&mut self, t: &Transport, now: u64) {
        let window = (self.not_arrived() / 2).max(2 * t.payload as u64);
        self.recovery = Some(Recovery { window, stepped_back: now, round: now });
    }

    /// The acknowledgement of a packet that was sent at `ts` widens the loss window, once a round trip.
    pub(super) fn widen(&mut self, t: &Transport, ts: u64, now: u64) {
        if let Some(recovery) = self.recovery.as_mut().filter(|r| ts >= r.round) {
            recovery.window += (self.base_window.max(1) / 20).max(t.payload as u64);
            recovery.round = now;
        }
    }

    /// The deadline came, at `now`: what has not arrived is lost, and the next packet sent sets a new deadline.
    pub(super) fn lose_all(&mut self, t: &Transport, now: u64) {
        self.halve(t, now);
        self.deadline = None;
        if let Some(scoreboard) = &mut self.any_order {
            scoreboard.lose_all(self.snd_una, self.snd_nxt);
        }
    }
}
