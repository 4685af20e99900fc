//! Counts of audits, which measure how far skips are from a simulation of the same time.
//!
//! Layer: fold/steady. Chooses skips to audit and compares results; simulates nothing.

use crate::columns::Exp;

/// The number 1 in millionths.
const WHOLE: u64 = 1_000_000;

/// Packet-hops after which an audit ends, unless everything is to be audited (our choice: a hundredth of a second).
const MOST_HOPS: u64 = 1 << 15;

/// A skip is audited if it is this many times as large as any skip audited before (our choice).
const LARGER: u64 = 4;

/// Number of standard errors that are added to what audits found (our choice: the usual two, 95 % of cases).
const ERRORS: f64 = 2.0;

/// Results of audits. Errors are in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Number of skips that were also simulated; number of messages delivered in them, counting a queue pair without any delivery as one.
    pub skips: u64,
    pub messages: u64,
    /// Errors of the messages' times from post to delivery, or of the progress of queue pairs: the sum, the maximum, and how many are above 1 %.
    pub error_sum: u64,
    pub error_max: u64,
    pub above: u64,
    /// Number of queue pairs whose rate was off by more than theta / (1 - theta), and number of those whose time to send was off by more than theta
    /// (Wormhole's Theorems 2 and 3).
    pub theorem2: u64,
    pub theorem3: u64,
    /// Audits that measure how far skips drift: their number; the sum of packets that skips counted beyond those sent, except one per queue pair; the
    /// sum of packets sent; and the sums of their squares and of their product.
    pub drifts: u64,
    pub ahead: i64,
    pub sent: u64,
    pub ahead_squares: u128,
    pub ahead_sent: i128,
    pub sent_squares: u128,
    /// Packet-hops of the largest audit.
    pub largest: u64,
}

impl Audit {
    /// Counts a message that was posted at `posted`: a skip reported its delivery at `reported`, but it was at `simulated` (all in ps).
    pub fn message(&mut self, reported: u64, simulated: u64, posted: u64) {
        let took = simulated.saturating_sub(posted).max(1);
        let error = (u128::from(reported.abs_diff(simulated)) * u128::from(WHOLE) / u128::from(took))
            .min(u128::from(u64::from(u32::MAX))) as u64;
        self.messages += 1;
        self.error_sum += error;
        self.error_max = self.error_max.max(error);
        self.above += u64::from(error > WHOLE / 100);
    }

    /// Counts a queue pair without a delivered message, by its packets: `reported` in the skip, `simulated` in the simulation.
    pub fn progress(&mut self, reported: u64, simulated: u64) {
        // Packets in flight at the start and the end may differ by one.
        let off = reported.abs_diff(simulated).saturating_sub(1);
        self.message(simulated + off, simulated, 0);
    }

    /// Relative drift of skips from what was sent: the drift that audits found, plus [`ERRORS`] standard errors, because other skips may differ.
    /// `audited`: the share that was audited.
    ///
    /// The drift is a ratio of sums over a sample of skips. Its standard error is that of Cochran's *Sampling Techniques*, equation 6.13. A single
    /// audit does not tell how much others differ, so what it found counts twice.
    pub fn drift(&self, audited: f64) -> f64 {
        let (n, ahead, sent) = (self.drifts as f64, self.ahead as f64, self.sent.max(1) as f64);
        let ratio = ahead / sent;
        if self.drifts < 2 {
            return 2.0 * ratio.abs();
        }
        let squares =
            self.ahead_squares as f64 - 2.0 * ratio * self.ahead_sent as f64 + ratio * ratio * self.sent_squares as f64;
        let error = (n / (n - 1.0) * squares.max(0.0) * (1.0 - audited.clamp(0.0, 1.0))).sqrt() / sent;
        ratio.abs() + ERRORS * error
    }

    /// Counts an audit in which the skip counted `ahead` packets beyond the `sent` ones, over all queue pairs.
    pub fn drifted(&mut self, ahead: i64, sent: u64) {
        self.drifts += 1;
        self.ahead += ahead;
        self.sent += sent;
        self.ahead_squares += u128::from(ahead.unsigned_abs()).pow(2);
        self.ahead_sent += i128::from(ahead) * i128::from(sent);
        self.sent_squares += u128::from(sent).pow(2);
    }

    /// Counts a queue pair that sent `simulated` packets while the skip counted `reported`. Returns how many packets the skip was ahead, not counting one.
    pub fn rate(&mut self, reported: u64, simulated: u64, theta_ppm: u64) -> i64 {
        // Packets in flight at the start and the end may differ by one.
        let off = reported.abs_diff(simulated).saturating_sub(1);
        let ahead = if reported > simulated { off as i64 } else { -(off as i64) };
        let off = u128::from(off);
        let (reported, simulated, theta, whole) =
            (u128::from(reported), u128::from(simulated), u128::from(theta_ppm.min(WHOLE)), u128::from(WHOLE));
        self.theorem2 += u64::from(off > 0 && off * (whole - theta) >= simulated * theta);
        self.theorem3 += u64::from(off > 0 && off * whole >= reported * theta);
        ahead
    }
}

/// Packet-hops up to which a skip of `hops` is audited; `None`: it is not audited. So far, `done` packet-hops were audited of `skipped`. The first
/// skip is audited, and each one that is several times as large as any before, because large skips show errors; others are audited up to the
/// requested share.
pub(crate) fn due(e: &Exp, audit: &Audit, hops: u64, done: u64, skipped: u64) -> Option<u64> {
    let share = |x: u64| (u128::from(x) * u128::from(e.audit_ppm) / u128::from(WHOLE)) as u64;
    let upto = if u64::from(e.audit_ppm) < WHOLE { hops.min(MOST_HOPS) } else { hops };
    let in_share = done + upto <= share(skipped + hops);
    let larger = audit.skips == 0 || upto >= LARGER * audit.largest;
    (e.audit_ppm > 0 && hops > 0 && (in_share || larger)).then_some(upto)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drift(audits: &[(i64, u64)], audited: f64) -> f64 {
        let mut audit = Audit::default();
        audits.iter().for_each(|&(ahead, sent)| audit.drifted(ahead, sent));
        (audit.drift(audited) * 1e6).round() / 1e6
    }

    #[test]
    fn what_audits_differ_by_is_reckoned_with() {
        assert_eq!(drift(&[], 0.0), 0.0);
        // One says nothing of others.
        assert_eq!(drift(&[(-3, 1000)], 0.1), 0.006);
        assert_eq!(drift(&[(3, 1000), (6, 2000)], 0.0), 0.003);
        // 3 of 1,000, and each is 3 packets off that: the standard error is 3 of 1,000, too.
        assert_eq!(drift(&[(0, 1000), (6, 1000)], 0.0), 0.009);
        assert_eq!(drift(&[(0, 1000), (6, 1000)], 0.75), 0.006);
        assert_eq!(drift(&[(0, 1000), (6, 1000)], 1.0), 0.003);
    }
}
