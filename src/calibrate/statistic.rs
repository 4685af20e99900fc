//! One time of several measurements of the same.
//!
//! Layer: calibrate.

/// Which of several times of the same is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfilerStatistic {
    /// The middle one.
    #[default]
    Median,
    /// The shortest: of collectives the one that waited least for other ranks.
    Min,
    /// All of them.
    Mean,
}

impl ProfilerStatistic {
    /// Of times above 0; there is one.
    pub(super) fn of(self, times: &mut [f64]) -> f64 {
        times.sort_by(f64::total_cmp);
        match self {
            ProfilerStatistic::Median => times[times.len() / 2],
            ProfilerStatistic::Min => times[0],
            ProfilerStatistic::Mean => times.iter().sum::<f64>() / times.len() as f64,
        }
    }
}
