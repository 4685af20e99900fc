//! Skip plans, which decide how a skipped partition goes on: a snapshot, and the rates of its queue pairs.
//!
//! Layer: fold/memo. Only data; `steady::skip_planning` makes it.

use std::sync::Arc;

use crate::rows::advanced_rows::FRACTION;
use crate::rows::canonical_key::CanonicalKey;
use hyperfold_engine::cpu::math::hash32;

/// Maximum difference between the mean rate of a skip and that of the window if the rate goes on drifting, in millionths (our choice: a tenth of
/// theta).
pub(crate) const DRIFT_PPM: u64 = 5_000;

/// The plan of a skip: everything that decides how the partition goes on.
#[derive(Debug, PartialEq)]
pub struct SkipPlan {
    /// Snapshot of its rows, as [`crate::rows::snapshots::snapshot`] writes them.
    pub state: Arc<[u8]>,
    /// A hash of the snapshot. Of several skips that begin with the same snapshot, only one is audited.
    pub draw: u32,
    /// Time to which rates refer: a rate is work per window. In ps.
    pub window: u64,
    /// Maximum duration in ps; `NEVER`: until something happens.
    pub until: u64,
    /// Number of consecutive skips before this one that found the rates unchanged.
    pub level: u32,
    /// The theta for which its rates were steady, in millionths.
    pub theta_ppm: u64,
    /// Possible error of each queue pair's work in the window, in bytes on the wire, because the window begins and ends within a packet. 0: a
    /// transmitter that is always busy sets the rates, which are equal.
    pub unsure: u64,
    pub rates: Vec<SkipRate>,
    /// For each queue pair and each port of its path, how many of the data packets in flight the port has yet to send. A message's last packet may be
    /// shorter, so the bytes that a port sent depend on its position in the stream.
    pub waiting: Vec<u32>,
    /// For each port, what the integral of its queue and its number of marks gain in a window.
    pub ports: Vec<(u64, u64)>,
    /// For each queue pair, the round trips of the window; empty where they are not added up.
    pub round_trips: Vec<RoundTrips>,
    /// Set if measured rates are carried on. Such a plan is not kept in the memo.
    pub carried: Option<CarriedRates>,
}

/// Round trips of a queue pair in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// Sum of the times, in ps.
    pub sum_ps: u64,
    /// Number of times.
    pub n: u64,
    /// Packets that were acknowledged by them.
    pub packets: u64,
}

impl RoundTrips {
    /// Sum and number of the round trips of `packets` packets, at the same mean and as many for a packet.
    pub(crate) fn of_packets(&self, packets: u64) -> (u64, u64) {
        let share = |x: u64| (u128::from(x) * u128::from(packets) / u128::from(self.packets.max(1))) as u64;
        (share(self.sum_ps), share(self.n))
    }
}

/// Further data of a skip that carries measured rates on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedRates {
    /// A queue pair that has nothing to send for longer than this, in ps, counts as over.
    pub patience: u64,
    /// Share of the sent bytes whose congestion control is active and takes milliseconds to settle, in millionths.
    pub unsettled_ppm: u64,
    /// Bytes on the wire that each queue pair sent in the window. Its rate is that, divided by the time in which it had something to send.
    pub sent: Vec<u64>,
}

/// How a queue pair goes on during a skip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipRate {
    /// Bytes on the wire per window, with [`FRACTION`] bits of fraction; 0: it is idle.
    pub work: u64,
    /// Bytes given to the network and not acknowledged.
    pub left: u64,
    /// Number of packets delivered, and of packets sent, beyond those acknowledged.
    pub arrived: u64,
    pub sent: u64,
    /// Number of packets from one action of congestion control to the next, with [`FRACTION`] bits of fraction, if it acts once per round trip;
    /// otherwise 0.
    pub turn: u64,
}

/// A hash of the snapshot, which serves as a random number.
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

    /// Whether the rates in a later window equal the planned ones, except for some packets of `full` bytes. `window`: length of that window in ps;
    /// `work`: what each queue pair sent in it.
    pub fn held(&self, work: &[u64], window: u64, full: u64) -> bool {
        // Both sides are compared as work times window.
        let scale = |x: u64, w: u64| u128::from(x) * u128::from(w);
        let near = |was: u64, is: u64, packets: u64| {
            let (was, is) = (scale(was, window) >> FRACTION, scale(is, self.window));
            was.abs_diff(is) * 1_000_000
                <= was * u128::from(DRIFT_PPM) + scale(packets * full, window.max(self.window)) * 1_000_000
        };
        let was = self.rates.iter().map(|p| p.work);
        // In one window each queue pair's packets may be off by one at either end; their sum is off by less.
        let all = near(was.clone().sum(), work.iter().sum(), (work.len() as u64).isqrt());
        all && self.rates.len() == work.len() && was.zip(work).all(|(was, &is)| near(was, is, 2))
    }
}
