//! Times in which other jobs kept a job from filling its NICs: which job set it off, and on which link.
//!
//! Layer: cluster. Only for simulated iterations; assumed speeds know no links.

use std::collections::BTreeMap;

use crate::iterations::SlowestMoment;

/// A period in which other jobs slowed a job down on a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CongestedTime {
    pub job: u32,
    pub from_ms: u64,
    pub to_ms: u64,
    /// The most crowded arc. A period has one arc and one `set_off_by`; when either changes, a new period begins.
    pub arc: Option<u32>,
    pub set_off_by: Option<u32>,
    /// Integral over the period of the job's slowdown: its time over its time alone in the same place in millionths, times milliseconds.
    pub ppm_ms: u128,
    /// The moment of the period when the slowdown was largest.
    pub worst: SlowestMoment,
    /// The slowdown since `since_ms`, in millionths.
    now_ppm: u64,
    since_ms: u64,
}

impl CongestedTime {
    /// Mean over the period of the job's time over its time alone, in millionths.
    pub(crate) fn mean_ppm(&self) -> u64 {
        let ms = u128::from(self.to_ms - self.from_ms);
        self.ppm_ms.checked_div(ms).map_or(self.worst.ppm, |mean| mean as u64)
    }

    fn pass(&mut self, now_ms: u64) {
        self.ppm_ms += u128::from(self.now_ppm) * u128::from(now_ms - self.since_ms);
        self.since_ms = now_ms;
        self.to_ms = now_ms;
    }
}

/// All congested periods so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct CongestionLog {
    open: BTreeMap<u32, CongestedTime>,
    ended: Vec<CongestedTime>,
}

impl CongestionLog {
    /// Records what slows a job down from now on. `None`: nothing does, or the job does not run.
    pub(crate) fn now(&mut self, job: u32, moment: Option<&SlowestMoment>, now_ms: u64) {
        let same =
            |period: &CongestedTime| moment.is_some_and(|m| (m.place, m.set_off_by) == (period.arc, period.set_off_by));
        if let Some(period) = self.open.get_mut(&job) {
            period.pass(now_ms);
            if !same(period) {
                self.ended.extend(self.open.remove(&job));
            }
        }
        let Some(moment) = moment else { return };
        let period = self.open.entry(job).or_insert_with(|| CongestedTime {
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
        period.now_ppm = moment.ppm;
        if moment.ppm > period.worst.ppm {
            period.worst = moment.clone();
        }
    }

    /// All periods, sorted by begin and job. Periods that are still open end at `now_ms`.
    pub(crate) fn times(&self, now_ms: u64) -> Vec<CongestedTime> {
        let mut all = self.ended.clone();
        all.extend(self.open.values().cloned().map(|mut period| {
            period.pass(now_ms);
            period
        }));
        // A period without length slowed nobody down.
        all.retain(|period| period.to_ms > period.from_ms);
        all.sort_by_key(|period| (period.from_ms, period.job));
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
