//! Estimates how long a run still takes, from the work that is done and the time that it took.
//!
//! Layer: cli. `run` is told about the work, and `watch` reads about it.

/// Share of the work below which there is no estimate, because the first work is rarely like the rest.
const MIN_SHARE: f64 = 0.005;

/// Work that is done, and all work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WorkShare {
    pub(super) done: u64,
    pub(super) total: u64,
}

impl WorkShare {
    /// Share that is done, from 0 to 1.
    pub(super) fn share(&self) -> f64 {
        if self.total == 0 { 0.0 } else { (self.done as f64 / self.total as f64).min(1.0) }
    }

    /// Seconds that are left, if the work so far took `elapsed_s`. `None`: too little or all of the work is done.
    pub(super) fn seconds_left(&self, elapsed_s: f64) -> Option<f64> {
        let share = self.share();
        (MIN_SHARE..1.0).contains(&share).then(|| elapsed_s * (1.0 - share) / share)
    }

    /// The share in words.
    pub(super) fn percent(&self) -> String {
        // 100 % is shown only if nothing is left.
        let percent = (self.share() * 100.0).floor();
        format!("{percent:.0} % of the work")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_by_work() {
        let work = WorkShare { done: 20, total: 1000 };
        assert_eq!(work.seconds_left(10.0), Some(490.0));
        assert_eq!(work.percent(), "2 % of the work");
        assert_eq!(WorkShare { done: 999_999, total: 1_000_000 }.percent(), "99 % of the work");
    }

    #[test]
    fn of_little_nothing_is_said() {
        assert_eq!(WorkShare { done: 1, total: 1000 }.seconds_left(10.0), None);
        assert_eq!(WorkShare::default().seconds_left(10.0), None);
        assert_eq!(WorkShare { done: 7, total: 7 }.seconds_left(10.0), None);
    }
}
