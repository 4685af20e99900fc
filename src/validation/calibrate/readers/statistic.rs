//! Reduces several measurements of the same time to one.
//!
//! Layer: calibrate.

/// Which of several measured times is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfilerStatistic {
    /// The median.
    #[default]
    Median,
    /// The minimum. For a collective, it is the run that waited least for other ranks.
    Min,
    /// The mean.
    Mean,
}

impl ProfilerStatistic {
    /// The statistic of some times. PRECONDITION: there is at least one, and all are above 0.
    pub(super) fn of(self, times: &mut [f64]) -> f64 {
        times.sort_by(f64::total_cmp);
        match self {
            ProfilerStatistic::Median => times[times.len() / 2],
            ProfilerStatistic::Min => times[0],
            ProfilerStatistic::Mean => times.iter().sum::<f64>() / times.len() as f64,
        }
    }
}
