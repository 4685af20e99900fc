//! Counts of audits: how far skips are from a simulation of the same time.
//!
//! Layer: fold/steady. Chooses skips and compares; simulates nothing.

use crate::columns::Exp;
use crate::engine::cpu::math::hash32;

/// One, in millionths.
const WHOLE: u64 = 1_000_000;

/// What audits found. Errors in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Skips that were also simulated; messages delivered meanwhile, and queue pairs without any.
    pub skips: u64,
    pub messages: u64,
    /// Errors of their times from post to delivery, or of how far queue pairs came: the sum, the largest, how many are
    /// above 1 %.
    pub error_sum: u64,
    pub error_max: u64,
    pub above: u64,
    /// Queue pairs whose rate was off by more than theta / (1 - theta), and whose time to send was off by more than
    /// theta (Wormhole's Theorems 2 and 3).
    pub theorem2: u64,
    pub theorem3: u64,
}

impl Audit {
    pub fn message(&mut self, said: u64, did: u64, posted: u64) {
        let took = did.saturating_sub(posted).max(1);
        let error = (u128::from(said.abs_diff(did)) * u128::from(WHOLE) / u128::from(took))
            .min(u128::from(u64::from(u32::MAX))) as u64;
        self.messages += 1;
        self.error_sum += error;
        self.error_max = self.error_max.max(error);
        self.above += u64::from(error > WHOLE / 100);
    }

    /// A queue pair without a delivered message: how far it came.
    pub fn progress(&mut self, said: u64, did: u64) {
        // Packets in flight at the start and the end may differ by one.
        let off = said.abs_diff(did).saturating_sub(1);
        self.message(did + off, did, 0);
    }

    /// A queue pair sent `did` packets where the skip counted `said`.
    pub fn rate(&mut self, said: u64, did: u64, theta_ppm: u64) {
        // Packets in flight at the start and the end may differ by one.
        let off = u128::from(said.abs_diff(did).saturating_sub(1));
        let (said, did, theta, whole) =
            (u128::from(said), u128::from(did), u128::from(theta_ppm.min(WHOLE)), u128::from(WHOLE));
        self.theorem2 += u64::from(off > 0 && off * (whole - theta) >= did * theta);
        self.theorem3 += u64::from(off > 0 && off * whole >= said * theta);
    }
}

/// Whether the skip with this `draw` is audited.
pub(crate) fn is_audited(e: &Exp, draw: u32) -> bool {
    u64::from(hash32(draw, 0, 0, e.seed)) * WHOLE < u64::from(e.audit_ppm) << 32
}
