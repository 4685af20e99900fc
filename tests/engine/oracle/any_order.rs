//! Packets in any order: what the two ends of a flow know of packets that came, or went, out of turn.
//!
//! Positions are sequence numbers of packets: multiples of the payload.

use std::collections::BTreeSet;

use super::Case;

/// What a sender knows of the packets between `snd_una` and `snd_nxt`.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    payload: u64,
    /// Most packets between `snd_una` and `snd_nxt`.
    range: u64,
    /// Packets after which a missing one counts as lost.
    threshold: u64,
    /// Positions above `snd_una` that have arrived.
    sacked: BTreeSet<u64>,
    /// What has not arrived from here on and is below `rtx_end` is lost.
    rtx_next: u64,
    rtx_end: u64,
    /// `snd_nxt` when a packet was last sent again.
    resent: u64,
}

/// What an ACK told a sender.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The sender's `snd_una` from now on.
    pub una: u64,
    /// Bytes that it was the first to acknowledge, whole packets.
    pub acked: u64,
    /// Positions became lost.
    pub newly_lost: bool,
}

impl Scoreboard {
    pub fn new(case: &Case, flow: usize) -> Self {
        let payload = case.transport.payload as u64;
        Scoreboard {
            payload,
            range: range(case),
            threshold: threshold(case, flow, case.paths[flow].data.len()),
            sacked: BTreeSet::new(),
            rtx_next: 0,
            rtx_end: 0,
            resent: 0,
        }
    }

    /// The flow has `n_paths` paths for its data from now on.
    pub fn choose_among(&mut self, case: &Case, flow: usize, n_paths: usize) {
        self.threshold = threshold(case, flow, n_paths);
    }

    /// Returns the next multiple of the payload at or above `x`.
    pub fn up(&self, x: u64) -> u64 {
        x.next_multiple_of(self.payload)
    }

    /// Positions of packets to send again, ascending.
    fn lost(&self, snd_una: u64) -> impl Iterator<Item = u64> {
        let from = snd_una.max(self.rtx_next);
        (from..self.rtx_end).step_by(self.payload as usize).filter(move |s| !self.sacked.contains(s))
    }

    /// Returns the packet to send again next, if there is one.
    pub fn first_lost(&self, snd_una: u64) -> Option<u64> {
        self.lost(snd_una).next()
    }

    /// New packets may be sent with this much between `snd_una` and `snd_nxt`.
    pub fn in_range(&self, between: u64) -> bool {
        between < self.range * self.payload
    }

    /// Bytes of packets that are known to have arrived, but for those before `snd_una`.
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked.len() as u64 * self.payload
    }

    /// Bytes of packets to send again.
    pub fn lost_bytes(&self, snd_una: u64) -> u64 {
        self.lost(snd_una).count() as u64 * self.payload
    }

    /// The packet at position `s` is sent again.
    pub fn resend(&mut self, s: u64, snd_nxt: u64) {
        self.rtx_next = s + self.payload;
        self.resent = snd_nxt;
    }

    /// Takes in an ACK. PRECONDITION: its queue pair is not finished.
    pub fn take(&mut self, snd_una: u64, seq: u64, offset: u64) -> Told {
        let una = snd_una.max(seq);
        let mut acked = self.pass(snd_una, una);
        let mut newly_lost = false;
        if offset > 0 {
            let s = seq + offset * self.payload;
            if s >= una && self.sacked.insert(s) {
                acked += self.payload;
            }
            newly_lost = self.suspect(s, una);
        }
        Told { una, acked, newly_lost }
    }

    /// `snd_una` moves on to `una`. Returns the bytes in between that were not known to have arrived.
    fn pass(&mut self, snd_una: u64, una: u64) -> u64 {
        let passed = (snd_una..una).step_by(self.payload as usize);
        let new = passed.filter(|s| !self.sacked.contains(s)).count() as u64;
        self.sacked = self.sacked.split_off(&una);
        self.rtx_next = self.rtx_next.max(una);
        new * self.payload
    }

    /// Position `s` has arrived, so what is missing far enough before it is lost. Returns whether positions became lost.
    fn suspect(&mut self, s: u64, una: u64) -> bool {
        let before = self.lost(una).count();
        let end = (s + self.payload).saturating_sub(self.threshold * self.payload);
        self.rtx_end = self.rtx_end.max(end);
        // What was sent again was lost again.
        if end > self.resent && self.rtx_next > una {
            self.rtx_next = una;
        }
        self.lost(una).count() > before
    }

    /// Everything that has not arrived is lost.
    pub fn lose_all(&mut self, snd_una: u64, snd_nxt: u64) {
        self.rtx_next = snd_una;
        self.rtx_end = snd_nxt;
    }

    /// All that was posted is acknowledged.
    pub fn finish(&mut self) {
        assert!(self.sacked.is_empty(), "packets arrived that were never sent");
        (self.rtx_next, self.rtx_end, self.resent) = (0, 0, 0);
    }
}

/// Number of packets after which a missing one of a flow with `n_paths` paths is lost.
fn threshold(case: &Case, flow: usize, n_paths: usize) -> u64 {
    let threshold = match case.transport.packet_threshold {
        0 if n_paths == 1 => 1,
        0 => case.rtt[flow].window_bytes.div_ceil(case.transport.payload as u64),
        given => given as u64,
    };
    threshold.min(range(case) / 2)
}

/// Most packets between `snd_una` and `snd_nxt`, for all queue pairs of the experiment.
pub fn range(case: &Case) -> u64 {
    let t = &case.transport;
    if t.psn_range > 0 {
        return (t.psn_range as u64).next_multiple_of(32);
    }
    let largest = case.rtt.iter().map(|rtt| rtt.window_bytes).max().unwrap_or(0);
    (4 * largest.div_ceil(t.payload as u64)).next_multiple_of(32).clamp(64, 1_048_544)
}

/// What a receiver has placed beyond the position that it expects.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    beyond: BTreeSet<u64>,
}

impl Placed {
    /// Places data at position `s`. Returns what is expected after it, and whether it has to be acknowledged in any case.
    pub fn place(&mut self, expected: u64, s: u64, payload: u64) -> (u64, bool) {
        if s != expected {
            if s > expected {
                self.beyond.insert(s);
            }
            return (expected, true);
        }
        let had_gap = !self.beyond.is_empty();
        let mut next = expected + payload;
        while self.beyond.remove(&next) {
            next += payload;
        }
        (next, had_gap)
    }
}
