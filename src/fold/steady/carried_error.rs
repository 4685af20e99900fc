//! Computes how far times are off because measured rates were carried on. For that, copies of the experiment have run without carried rates for a
//! while.
//!
//! Layer: fold/steady. Only arithmetic; makes no copies.

/// The number 1 in millionths.
const WHOLE: f64 = 1e6;

/// Error that is assumed where nothing was compared: Eq. 6 accepts rates that differ by this share (Wormhole, section 7).
const UNKNOWN: f64 = 0.05;

/// A copy of the experiment, compared with the experiment itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ComparedCopy {
    /// Time in ps for which the experiment carried rates on while the copy ran.
    pub covered: u64,
    /// Lateness of the experiment in the end, in ps.
    pub late: f64,
    /// Lateness of the experiment's messages in total, and total duration of these messages within the copy's time, in ps.
    pub messages_late: f64,
    pub messages_took: f64,
}

/// Possible errors of the makespan and of the mean time of messages, in millionths. `covered`: total time for which rates were carried on, in ps.
/// `unsettled`: the same, each time weighted by the share of sent bytes whose congestion control had not settled. Copies begin with rates as skips
/// left them, and are too short to see those recover.
///
/// Copies are a sample. The common part of their errors continues over the other time; the differing part adds up as random steps do.
pub(crate) fn carried_error(copies: &[ComparedCopy], covered: u64, unsettled: u64, makespan: u64) -> (u64, u64) {
    let whole = makespan.max(1) as f64;
    let ppm = |share: f64| (share * WHOLE).ceil() as u64;
    let seen: u64 = copies.iter().map(|copy| copy.covered).sum();
    if covered == 0 {
        return (0, 0);
    }
    let unseen = UNKNOWN * unsettled.min(covered) as f64 / whole;
    if seen == 0 {
        return (ppm(UNKNOWN * covered as f64 / whole), ppm(UNKNOWN));
    }
    let rest = covered.max(seen) as f64 / seen as f64;
    let sum: f64 = copies.iter().map(|copy| copy.late).sum();
    let squares: f64 = copies.iter().map(|copy| copy.late * copy.late).sum();
    let late = (sum.abs() * rest).max((squares * rest).sqrt());
    let messages = copies.iter().fold((0.0, 0.0), |sum, x| (sum.0 + x.messages_late, sum.1 + x.messages_took));
    let of_messages = if messages.1 > 0.0 { f64::abs(messages.0 / messages.1) } else { UNKNOWN };
    (ppm((late / whole).max(unseen)), ppm(of_messages.max(unseen)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(covered: u64, late: f64) -> ComparedCopy {
        ComparedCopy { covered, late, messages_late: 2.0 * late, messages_took: 1000.0 }
    }

    #[test]
    fn what_copies_have_in_common_goes_on() {
        let copies = [copy(1000, 10.0), copy(1000, 12.0)];
        // 22 of 2,000, so 55 of 5,000.
        assert_eq!(carried_error(&copies, 5000, 0, 10_000), (5500, 22_000));
        // Nothing else was carried on.
        assert_eq!(carried_error(&copies, 2000, 0, 10_000), (2200, 22_000));
    }

    #[test]
    fn what_differs_adds_up_as_random_steps_do() {
        let copies = [copy(1000, 30.0), copy(1000, -30.0)];
        // The root of 2 times 900 times 2.
        assert_eq!(carried_error(&copies, 4000, 0, 10_000), (6000, 0));
    }

    #[test]
    fn copies_do_not_see_what_recovers_slowly() {
        let copies = [copy(1000, 1.0)];
        assert_eq!(carried_error(&copies, 1000, 0, 10_000), (100, 2000));
        assert_eq!(carried_error(&copies, 1000, 500, 10_000), (2500, 2500));
    }

    #[test]
    fn what_nobody_looked_at_may_be_off_by_theta() {
        assert_eq!(carried_error(&[], 5000, 0, 10_000), (25_000, 50_000));
        assert_eq!(carried_error(&[], 0, 0, 10_000), (0, 0));
    }
}
