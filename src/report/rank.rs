//! The order of configurations by a metric, and which of them cannot be told apart.
//!
//! Layer: report. Two means are tied if they differ by no more than replicas alone explain, or than an audit found approximate results
//! to be off. Chooses no metric and compares no groups.

use super::design::Design;
use super::metric::Metric;
use super::sample::{Pooled, Sample, explained};
use super::sheet::Sheet;

/// A metric's samples, one a configuration.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Over the replicas that have a value; `None` where none has.
    pub samples: Vec<Option<Sample>>,
    pub pooled: Pooled,
    pub more: bool,
}

impl Measured {
    /// Reads a metric off the sheet. Experiments that did not complete have no value, whatever the table shows of them.
    pub fn of(sheet: &Sheet, design: &Design, metric: &Metric) -> Measured {
        let column = sheet.column(&metric.name);
        let value = |row: usize| column.filter(|_| sheet.ok(row)).and_then(|c| c.number(row));
        let sample = |rows: &[usize]| Sample::of(&rows.iter().filter_map(|&r| value(r)).collect::<Vec<f64>>());
        let samples: Vec<Option<Sample>> = design.configurations.iter().map(|c| sample(&c.rows)).collect();
        let pooled = Pooled::over(samples.iter().flatten());
        Measured { samples, pooled, more: metric.more }
    }

    /// Whether `a` is better than `b`, as an ordering: less means better.
    fn order(&self, a: &Sample, b: &Sample) -> std::cmp::Ordering {
        if self.more { b.mean.total_cmp(&a.mean) } else { a.mean.total_cmp(&b.mean) }
    }

    /// The difference below which two configurations are tied, and where it comes from. `audit` is a relative error.
    pub fn threshold(&self, a: &Sample, b: &Sample, audit: f64) -> f64 {
        let replicas = explained(a, b, &self.pooled).unwrap_or(0.0);
        replicas.max(audit * a.mean.abs().max(b.mean.abs()))
    }

    /// Whether the two cannot be told apart.
    pub fn tied(&self, a: &Sample, b: &Sample, audit: f64) -> bool {
        (a.mean - b.mean).abs() <= self.threshold(a, b, audit)
    }
}

/// Configurations of one group, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// Those that have the metric.
    pub order: Vec<usize>,
    /// Where in `order` a place is shared by all up to the next entry: configurations that are tied with the first of them.
    pub starts: Vec<usize>,
}

impl Ranking {
    /// Orders the configurations of a group. `audit` is the relative error of approximate results, 0 if there are none.
    pub fn of(design: &Design, measured: &Measured, group: usize, audit: f64) -> Ranking {
        let has = |&c: &usize| design.configurations[c].group == group && measured.samples[c].is_some();
        let sample = |c: usize| measured.samples[c].as_ref().expect("the order holds those that have a sample");
        let mut order: Vec<usize> = (0..design.configurations.len()).filter(has).collect();
        // Stable: equal ones stay in the order of their experiments.
        order.sort_by(|&a, &b| measured.order(sample(a), sample(b)));
        let mut starts: Vec<usize> = Vec::new();
        for (at, &c) in order.iter().enumerate() {
            let tied = starts.last().is_some_and(|&s: &usize| measured.tied(sample(order[s]), sample(c), audit));
            if !tied {
                starts.push(at);
            }
        }
        Ranking { order, starts }
    }

    /// The best, and those tied with it.
    pub fn leaders(&self) -> &[usize] {
        &self.order[..self.starts.get(1).copied().unwrap_or(self.order.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sheet::tests::sheet;

    fn measured(text: &str, more: bool) -> (Design, Measured) {
        let s = sheet(text);
        let d = Design::of(&s);
        let m = Metric { name: "makespan_ns".into(), label: String::new(), unit: "ns", more };
        let measured = Measured::of(&s, &d, &m);
        (d, measured)
    }

    const ONE_EACH: &str = "exp_id,config_key,seed,a.b,status,makespan_ns
        0,k0,1,x,ok,110
        1,k1,1,y,ok,100
        2,k2,1,z,ok,100
        3,k3,1,u,failed,1
        4,k4,1,v,ok,101";

    #[test]
    fn without_replicas_only_equal_results_are_tied_and_failures_have_no_place() {
        let (d, m) = measured(ONE_EACH, false);
        let r = Ranking::of(&d, &m, 0, 0.0);
        assert_eq!((r.order.as_slice(), r.starts.as_slice()), (&[1, 2, 4, 0][..], &[0, 2, 3][..]));
        assert_eq!(r.leaders(), [1, 2]);
        assert_eq!(Ranking::of(&d, &measured(ONE_EACH, true).1, 0, 0.0).order, [0, 4, 1, 2], "more is better");
    }

    #[test]
    fn differences_below_the_audited_error_are_ties() {
        let (d, m) = measured(ONE_EACH, false);
        assert_eq!(Ranking::of(&d, &m, 0, 0.02).leaders(), [1, 2, 4]);
        assert_eq!(Ranking::of(&d, &m, 0, 0.2).leaders(), [1, 2, 4, 0]);
    }

    #[test]
    fn differences_below_the_replicas_spread_are_ties() {
        let text = "exp_id,config_key,seed,a.b,status,makespan_ns
            0,k0,1,x,ok,100
            1,k0,2,x,ok,104
            2,k0,3,x,ok,102
            3,k1,1,y,ok,103
            4,k1,2,y,ok,105
            5,k1,3,y,ok,101
            6,k2,1,z,ok,120
            7,k2,2,z,ok,122
            8,k2,3,z,ok,121";
        let (d, m) = measured(text, false);
        let r = Ranking::of(&d, &m, 0, 0.0);
        assert_eq!((r.order.as_slice(), r.leaders()), (&[0, 1, 2][..], &[0, 1][..]));
    }
}
