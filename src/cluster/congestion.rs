//! When jobs could not fill their NICs for others: by whom it began, and on which link.
//!
//! Layer: cluster. Of simulated iterations; assumed speeds know no links.

use std::collections::BTreeMap;

use super::iterations::SlowestMoment;

/// A job that others slowed down on a link for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CongestedTime {
    pub job: u32,
    pub from_ms: u64,
    pub to_ms: u64,
    /// The most crowded arc; of it, and of who set it off, one time has one.
    pub arc: Option<u32>,
    pub set_off_by: Option<u32>,
    /// Its time over its time in the same place alone, millionths, times milliseconds.
    pub ppm_ms: u128,
    /// When that was largest.
    pub worst: SlowestMoment,
    /// What it is now, and since when.
    now_ppm: u64,
    since_ms: u64,
}

impl CongestedTime {
    /// The mean of its time over its time alone, millionths.
    pub(super) fn mean_ppm(&self) -> u64 {
        let ms = u128::from(self.to_ms - self.from_ms);
        self.ppm_ms.checked_div(ms).map_or(self.worst.ppm, |mean| mean as u64)
    }

    fn pass(&mut self, now_ms: u64) {
        self.ppm_ms += u128::from(self.now_ppm) * u128::from(now_ms - self.since_ms);
        self.since_ms = now_ms;
        self.to_ms = now_ms;
    }
}

/// Such times so far.
#[derive(Clone, Debug, Default)]
pub(super) struct CongestionLog {
    open: BTreeMap<u32, CongestedTime>,
    ended: Vec<CongestedTime>,
}

impl CongestionLog {
    /// What slows a job down from now on; `None`: nothing, or it does not run.
    pub(super) fn now(&mut self, job: u32, moment: Option<&SlowestMoment>, now_ms: u64) {
        let same = |of: &CongestedTime| moment.is_some_and(|m| (m.place, m.set_off_by) == (of.arc, of.set_off_by));
        if let Some(of) = self.open.get_mut(&job) {
            of.pass(now_ms);
            if !same(of) {
                self.ended.extend(self.open.remove(&job));
            }
        }
        let Some(moment) = moment else { return };
        let of = self.open.entry(job).or_insert_with(|| CongestedTime {
            job,
            from_ms: now_ms,
            to_ms: now_ms,
            arc: moment.place,
            set_off_by: moment.set_off_by,
            ppm_ms: 0,
            worst: moment.clone(),
            now_ppm: moment.ppm,
            since_ms: now_ms,
        });
        of.now_ppm = moment.ppm;
        if moment.ppm > of.worst.ppm {
            of.worst = moment.clone();
        }
    }

    /// All of them, by their beginning and job; what goes on ends now.
    pub(super) fn times(&self, now_ms: u64) -> Vec<CongestedTime> {
        let mut all = self.ended.clone();
        all.extend(self.open.values().cloned().map(|mut of| {
            of.pass(now_ms);
            of
        }));
        // What lasted no time slowed nobody down.
        all.retain(|of| of.to_ms > of.from_ms);
        all.sort_by_key(|of| (of.from_ms, of.job));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_ends_with_its_link_and_has_its_mean_and_worst() {
        let moment =
            |ppm, arc| SlowestMoment { ppm, place: Some(arc), set_off_by: Some(7), ..SlowestMoment::default() };
        let mut log = CongestionLog::default();
        log.now(1, Some(&moment(1_500_000, 3)), 100);
        log.now(2, None, 100);
        log.now(1, Some(&moment(2_000_000, 3)), 200);
        log.now(1, Some(&moment(1_200_000, 4)), 400);
        log.now(1, None, 400);
        log.now(1, Some(&moment(1_100_000, 4)), 500);
        let times = log.times(600);
        let told: Vec<_> = times.iter().map(|t| (t.from_ms, t.to_ms, t.arc, t.mean_ppm(), t.worst.ppm)).collect();
        assert_eq!(told, [(100, 400, Some(3), 1_833_333, 2_000_000), (500, 600, Some(4), 1_100_000, 1_100_000)]);
        assert_eq!(log.times(600), times);
    }
}
