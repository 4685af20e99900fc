//! Whether less or more of a column is better: the one list, which rankings, searches, fronts and reports share.
//!
//! Layer: compare.

/// Whether less or more of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better, as of times.
    Less,
    /// More is better, as of throughputs.
    More,
}

/// Prefixes of the columns for which more is better. For all others (times, queues, marks, cost), less is better.
const MORE: &[&str] = &[
    "tokens_per_",
    "samples_per_",
    "mfu",
    "algbw_",
    "busbw_",
    "goodput",
    "utilisation",
    "fairness",
    "jobs_done",
    "useful_gpu_hours",
    "requests_done",
    "requests_per_s",
    "output_tokens_per_s",
    "within_bounds",
    "sequences_per_step",
    "kv_capacity_tokens",
];

impl Better {
    /// Order of two values, the better one first.
    pub fn order(self, a: f64, b: f64) -> std::cmp::Ordering {
        match self {
            Better::Less => a.total_cmp(&b),
            Better::More => b.total_cmp(&a),
        }
    }

    /// A value with a sign such that less is better.
    pub fn turned(self, value: f64) -> f64 {
        match self {
            Better::Less => value,
            Better::More => -value,
        }
    }

    /// The better direction of a column, by the name that it has without its job.
    pub fn of_column(name: &str) -> Better {
        if MORE.iter().any(|prefix| name.starts_with(prefix)) { Better::More } else { Better::Less }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_to_be_large_and_times_small() {
        let better = Better::of_column;
        assert_eq!([better("mfu"), better("tokens_per_s_per_gpu"), better("busbw_gbps")], [Better::More; 3]);
        assert_eq!([better("iteration_time_ns"), better("drops"), better("max_link_utilisation")], [Better::Less; 3]);
    }
}
