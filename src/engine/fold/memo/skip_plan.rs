//! What decides how a skipped partition goes on: a snapshot, and the rates of its queue pairs.
//!
//! Layer: fold/memo. Data; `steady::skip_plan` makes it.

use std::sync::Arc;

use crate::engine::cpu::math::hash32;
use crate::engine::fold::rows::advanced_rows::FRACTION;
use crate::engine::fold::rows::canonical_key::CanonicalKey;

/// How far the mean rate of a skip may differ from that of the window if it goes on drifting, in millionths (our
/// choice: a tenth of theta).
pub(crate) const DRIFT_PPM: u64 = 5_000;

/// The plan of a skip: all that decides how the partition goes on.
#[derive(Debug, PartialEq)]
pub struct SkipPlan {
    /// Its rows, as [`crate::engine::fold::rows::snapshot`] writes them.
    pub state: Arc<[u8]>,
    /// A hash of the snapshot: of skips that begin alike, one is audited.
    pub draw: u32,
    /// Rates are work in this time, ps.
    pub window: u64,
    /// The longest duration, ps; `NEVER`: until something happens.
    pub until: u64,
    /// How many skips in a row before this one found the rates unchanged.
    pub level: u32,
    /// The theta by which its rates were steady, in millionths.
    pub theta_ppm: u64,
    /// Bytes on the wire by which each queue pair's work in the window may be off, as the window begins and ends
    /// anywhere in a packet. 0: a transmitter that is always busy sets the rates, which are equal.
    pub unsure: u64,
    pub rates: Vec<SkipRate>,
    /// Of each queue pair, for each port of its path: how many of the data packets in flight the port has yet to send. A
    /// message's last packet may be shorter, so what a port sent goes by where it is in the stream.
    pub waiting: Vec<u32>,
    /// Of each port: what the integral of its queue and its marks gain in a window.
    pub ports: Vec<(u64, u64)>,
    /// Where measured rates are carried on; such a plan is not kept in the memo.
    pub carried: Option<CarriedRates>,
}

/// What a skip that carries measured rates on needs besides them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedRates {
    /// A queue pair that has nothing to send for longer than this, ps, is over.
    pub patience: u64,
    /// The part of what was sent whose congestion control is at work and takes milliseconds to settle, in millionths.
    pub unsettled_ppm: u64,
    /// Bytes on the wire of each queue pair in the window. Its rate is that over the time in which it had something to
    /// send.
    pub sent: Vec<u64>,
}

/// How a queue pair goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipRate {
    /// Bytes on the wire in a window, with [`FRACTION`] bits of fraction; 0: it is idle.
    pub work: u64,
    /// Bytes given to the network and not acknowledged.
    pub left: u64,
    /// Packets delivered, and packets sent, beyond those acknowledged.
    pub arrived: u64,
    pub sent: u64,
    /// Packets from one action of congestion control to the next, with [`FRACTION`] bits of fraction, where it acts
    /// once a round trip; else 0.
    pub turn: u64,
}

/// A hash of the snapshot, as good as random.
pub(crate) fn draw(state: &[u8]) -> u32 {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
    state
        .chunks(8)
        .fold(0, |draw, bytes| hash32(word(&bytes[..bytes.len().min(4)]), word(&bytes[bytes.len().min(4)..]), draw, 0))
}

impl SkipPlan {
    /// Adds to a key what the next steady phase is compared with.
    pub fn put(&self, form: &mut CanonicalKey) {
        form.u32(self.level);
        form.u64(self.window);
        self.rates.iter().for_each(|p| form.u64(p.work));
    }

    /// Whether the rates in a later `window`, in which each queue pair sent `work`, equal the planned ones except for
    /// some packets of `full` bytes.
    pub fn held(&self, work: &[u64], window: u64, full: u64) -> bool {
        // Both in work times windows.
        let scale = |x: u64, w: u64| u128::from(x) * u128::from(w);
        let near = |was: u64, is: u64, packets: u64| {
            let (was, is) = (scale(was, window) >> FRACTION, scale(is, self.window));
            was.abs_diff(is) * 1_000_000
                <= was * u128::from(DRIFT_PPM) + scale(packets * full, window.max(self.window)) * 1_000_000
        };
        let was = self.rates.iter().map(|p| p.work);
        // Each queue pair's packets in a window may be off by one at either end, their sum by less.
        let all = near(was.clone().sum(), work.iter().sum(), (work.len() as u64).isqrt());
        all && self.rates.len() == work.len() && was.zip(work).all(|(was, &is)| near(was, is, 2))
    }
}
