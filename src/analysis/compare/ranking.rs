//! Order of values of a metric, and which of them cannot be told apart. Every ranking, of the console, the report and the gates, is made here.
//!
//! Layer: compare. Three or more replicas are compared in pairs of equal seeds, and a difference whose 95 % interval contains 0 is a tie. Fewer replicas are
//! compared by their standard deviation. A difference up to the audited error or 0.01 % is a tie, too. It chooses no metric and compares no groups.

use super::better::Better;
use super::spread::{Sample, tied_in_pairs};

/// Relative difference up to which values count as equal, whatever replicas and audits say: 0.01 %. Our choice: no model of a network is nearly as accurate.
pub const TIE_SHARE: f64 = 1e-4;

/// A metric of one configuration, with all that says how well it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredValue {
    /// Statistics over the replicas that have a value.
    pub sample: Sample,
    /// Audited error of the mean, in the metric's unit.
    audited: f64,
    /// Values of the replicas with their seeds.
    by_seed: Vec<(u64, f64)>,
}

impl MeasuredValue {
    /// A metric with this sample. `audited` is the largest relative error that an audit found, or 0.
    pub fn new(sample: Sample, by_seed: Vec<(u64, f64)>, audited: f64) -> MeasuredValue {
        MeasuredValue { sample, audited: audited * sample.mean.abs(), by_seed }
    }

    /// Uncertainty of the mean in the metric's unit: the deviation of the replicas, or the audited error if that is larger.
    pub fn uncertainty(&self) -> f64 {
        self.sample.deviation.max(self.audited)
    }

    /// Difference up to which replicas and audits count two values as tied. A difference of 0.01 % is a tie in addition.
    pub fn threshold(&self, other: &MeasuredValue) -> f64 {
        self.uncertainty().max(other.uncertainty())
    }

    /// Whether the replicas of the two are compared in pairs of the same seed.
    pub fn is_paired_with(&self, other: &MeasuredValue) -> bool {
        tied_in_pairs(&self.by_seed, &other.by_seed).is_some()
    }

    /// Whether the two cannot be told apart. It is decided by pairs of replicas with the same seed if there are three or more, else by the uncertainty of
    /// each.
    pub fn is_tied_with(&self, other: &MeasuredValue) -> bool {
        let (a, b) = (self.sample.mean, other.sample.mean);
        let (difference, negligible) = ((a - b).abs(), TIE_SHARE * a.abs().max(b.abs()));
        if difference <= self.audited.max(other.audited).max(negligible) {
            return true;
        }
        tied_in_pairs(&self.by_seed, &other.by_seed).unwrap_or_else(|| difference <= self.threshold(other))
    }
}

/// Configurations that do the same work, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// Configurations that have a value of the metric.
    pub order: Vec<usize>,
    /// Indices in `order` at which ties begin: all configurations up to the next entry are tied with the first of them.
    pub starts: Vec<usize>,
}

impl Ranking {
    /// Ranks those of `members` that have a value. `values` holds each configuration's value at its index.
    pub fn of(values: &[Option<MeasuredValue>], better: Better, members: impl IntoIterator<Item = usize>) -> Ranking {
        let mut order: Vec<(usize, &MeasuredValue)> =
            members.into_iter().filter_map(|c| Some((c, values[c].as_ref()?))).collect();
        // The sort is stable: equal means stay in the order of the members.
        order.sort_by(|a, b| better.order(a.1.sample.mean, b.1.sample.mean));
        let mut starts: Vec<usize> = Vec::new();
        for (index, (_, value)) in order.iter().enumerate() {
            let is_tied = starts.last().is_some_and(|&start: &usize| order[start].1.is_tied_with(value));
            if !is_tied {
                starts.push(index);
            }
        }
        Ranking { order: order.into_iter().map(|(c, _)| c).collect(), starts }
    }

    /// The configurations by rank, best first. All of one rank are tied with the first of it.
    pub fn ties(&self) -> impl Iterator<Item = &[usize]> {
        let ends = self.starts.iter().skip(1).copied().chain([self.order.len()]);
        self.starts.iter().zip(ends).map(move |(&start, end)| &self.order[start..end])
    }

    /// The best configuration, and all that are tied with it. Empty if there is none.
    pub fn leaders(&self) -> &[usize] {
        self.ties().next().unwrap_or_default()
    }

    /// The first configuration after the leaders, and all that are tied with it. Empty if there is none.
    pub fn second(&self) -> &[usize] {
        self.ties().nth(1).unwrap_or_default()
    }
}
