//! Decides how partitions whose measured rates are carried on (`rates`) are sampled, and for how long rates are carried on.
//!
//! Layer: fold/steady.

use crate::memo::skip_plan::{CarriedRates, SkipPlan, SkipRate};
use crate::steady::detector::{DetectorRule, SteadyRates};
use hyperfold_base::units::PS_PER_NS;
use hyperfold_columns::{Exp, cc};

/// Default of theta in millionths (Wormhole, section 7).
const THETA_PPM: u64 = 50_000;
/// Number of samples in a window, and minimum time between two in ps (our choice: DESIGN measured 10 us). DCQCN's rates rise by timers of 300 us,
/// those of other controls within round trips.
const SAMPLES: u64 = 16;
const INTERVAL: u64 = 10_000_000;
const DCQCN_INTERVAL: u64 = 20_000_000;
/// Number of samples before the first window after a skip that nothing new ended (our choice). DCQCN's rates need a whole window.
const SETTLING: usize = 4;
/// A queue pair that has nothing to send for longer than this (ps), and longer than a window, is over (our choice: rings wait for milliseconds if
/// they share ports; a post after that counts as a new join, which ends skips).
const PATIENCE: u64 = 4_000_000_000;
/// A skip ends when the queue pairs that are over had sent more than this many times theta of the sum (our choice: the others' shares are known).
pub(super) const OVER: u128 = 2;
/// Number of parts of a window whose sums are compared.
pub(super) const PARTS: usize = 4;
/// The first skip is `FIRST` times as long as its window. Each following one, if the sum did not change, is twice as long, up to `DOUBLINGS`
/// doublings (our choice).
const FIRST: u64 = 4;
const DOUBLINGS: u32 = 4;

/// Rule by which a partition whose rates are carried on is sampled. `rtt`: its longest round trip, in ps.
pub(crate) fn rule(e: &Exp, rtt: u64) -> DetectorRule {
    let shortest = if e.cc == cc::DCQCN { DCQCN_INTERVAL } else { INTERVAL };
    let interval = if e.interval_ns > 0 { u64::from(e.interval_ns) * PS_PER_NS } else { shortest.max(rtt) };
    let samples = if e.samples > 0 { u64::from(e.samples) } else { SAMPLES }.max(PARTS as u64);
    let theta_ppm = if e.theta_ppm > 0 { u64::from(e.theta_ppm) } else { THETA_PPM };
    DetectorRule {
        theta_ppm,
        samples: samples as usize,
        few: samples as usize,
        interval,
        never_skips: false,
        patience: (samples * interval).max(PATIENCE),
    }
}

/// Number of samples before the first window: the transient. `ended_skip`: a skip has just ended, and nothing joined.
pub(super) fn settling(e: &Exp, samples: usize, ended_skip: bool) -> usize {
    if ended_skip && e.cc != cc::DCQCN { SETTLING.min(samples) } else { samples }
}

/// Time for which the rates are carried on, in ps.
pub(crate) fn length(steady: &SteadyRates) -> u64 {
    steady.window.saturating_mul(FIRST << steady.level.min(DOUBLINGS))
}

/// The plan of a skip at `rates`, whose work is still that of the whole window.
pub(crate) fn plan(steady: &SteadyRates, mut rates: Vec<SkipRate>, waiting: Vec<u32>) -> SkipPlan {
    for (rate, &active) in rates.iter_mut().zip(&steady.active) {
        rate.work = active;
    }
    SkipPlan {
        state: Default::default(),
        draw: 0,
        window: steady.window,
        until: length(steady),
        level: steady.level,
        theta_ppm: steady.theta_ppm,
        unsure: 0,
        rates,
        waiting,
        ports: steady.ports.clone(),
        round_trips: steady.round_trips.clone(),
        carried: Some(CarriedRates {
            patience: steady.patience,
            unsettled_ppm: steady.unsettled_ppm,
            sent: steady.work.clone(),
        }),
    }
}
