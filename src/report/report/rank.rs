//! Order of configurations by a metric, and which of them cannot be told apart.
//!
//! Layer: report. The rule is that of [`hyperfold_analysis::compare`]. Three or more replicas are compared in pairs of equal seeds, and a difference whose 95 % interval
//! contains 0 is a tie. Fewer replicas are compared by their standard deviation. A difference up to the audited error or 0.01 % is a tie, too. It chooses no
//! metric and compares no groups.

use hyperfold_analysis::compare::spread::tied_in_pairs;
use hyperfold_analysis::compare::{Sample, TIE_SHARE};

use super::design::{Configuration, Design};
use super::metric::Metric;
use super::sheet::{Sheet, SheetColumn};

/// Samples of a metric, one for each configuration.
#[derive(Clone, Debug)]
pub struct MetricSamples {
    /// Sample over the replicas that have a value. `None`: no replica has one.
    pub samples: Vec<Option<Sample>>,
    /// Uncertainty of each mean in the metric's unit: the deviation of its replicas, or the audited error if that is larger.
    pub uncertainty: Vec<f64>,
    /// Audited error of each mean, in the metric's unit.
    pub audited: Vec<f64>,
    /// Values of the replicas with their seeds.
    pub by_seed: Vec<Vec<(u64, f64)>>,
    /// Cost of each configuration in US dollars, if it is known.
    pub cost_usd: Vec<Option<f64>>,
    /// Whether more of the metric is better.
    pub more: bool,
}

impl MetricSamples {
    /// Reads a metric from the sheet. `audits` is the audited relative error of each row, if there is one. Experiments that did not complete have no value,
    /// whatever the table shows.
    pub fn of(sheet: &Sheet, design: &Design, metric: &Metric, audits: Option<&SheetColumn>) -> MetricSamples {
        let column = sheet.column(&metric.name);
        let value = |row: usize| column.filter(|_| sheet.ok(row)).and_then(|c| c.number(row));
        let sample = |rows: &[usize]| Sample::of(&rows.iter().filter_map(|&r| value(r)).collect::<Vec<f64>>());
        let samples: Vec<Option<Sample>> = design.configurations.iter().map(|c| sample(&c.rows)).collect();
        let audits = audits.filter(|_| metric.is_timed());
        let audit = |rows: &[usize]| rows.iter().filter_map(|&r| audits?.number(r)).map(f64::abs).fold(0.0, f64::max);
        let of_audit = |(c, s): (&Configuration, &Option<Sample>)| s.map_or(0.0, |s| audit(&c.rows) * s.mean.abs());
        let audited: Vec<f64> = design.configurations.iter().zip(&samples).map(of_audit).collect();
        let uncertainty = samples.iter().zip(&audited).map(|(s, a)| s.map_or(0.0, |s| s.deviation.max(*a))).collect();
        let seeded = |rows: &[usize]| -> Vec<(u64, f64)> {
            rows.iter().filter_map(|&r| Some((sheet.text("seed", r).parse().ok()?, value(r)?))).collect()
        };
        let by_seed = design.configurations.iter().map(|c| seeded(&c.rows)).collect();
        let costs = sheet.column("cost_usd");
        let cost = |c: &Configuration| c.rows.iter().find_map(|&row| costs?.number(row));
        let cost_usd = design.configurations.iter().map(cost).collect();
        MetricSamples { samples, uncertainty, audited, by_seed, cost_usd, more: metric.more }
    }

    /// Order of two samples, the better one first.
    fn order(&self, a: &Sample, b: &Sample) -> std::cmp::Ordering {
        if self.more { b.mean.total_cmp(&a.mean) } else { a.mean.total_cmp(&b.mean) }
    }

    /// Logarithm of the factor by which a configuration is worse, from the relative difference `worse`. The result is not a number if there is no such
    /// factor.
    pub(super) fn log_ratio(&self, worse: f64) -> f64 {
        libm::log(if self.more { 1.0 / (1.0 - worse) } else { 1.0 + worse })
    }

    /// Whether `a` is known to cost less than `b`.
    pub(super) fn is_cheaper(&self, a: usize, b: usize) -> bool {
        self.cost_usd[a].zip(self.cost_usd[b]).is_some_and(|(a, b)| a < b)
    }

    /// Difference up to which replicas and audits count two configurations as tied. [`TIE_SHARE`] applies in addition.
    pub fn threshold(&self, a: usize, b: usize) -> f64 {
        self.uncertainty[a].max(self.uncertainty[b])
    }

    /// Whether the replicas of the two are compared in pairs of the same seed.
    pub fn are_paired(&self, a: usize, b: usize) -> bool {
        tied_in_pairs(&self.by_seed[a], &self.by_seed[b]).is_some()
    }

    /// Whether the two cannot be told apart. It is decided by pairs of replicas with the same seed if there are three or more, else by the uncertainty of
    /// each. PRECONDITION: both have a sample.
    pub fn tied(&self, a: usize, b: usize) -> bool {
        let mean = |c: usize| self.samples[c].expect("what is compared has a sample").mean;
        let (difference, negligible) = ((mean(a) - mean(b)).abs(), TIE_SHARE * mean(a).abs().max(mean(b).abs()));
        if difference <= self.audited[a].max(self.audited[b]).max(negligible) {
            return true;
        }
        tied_in_pairs(&self.by_seed[a], &self.by_seed[b]).unwrap_or_else(|| difference <= self.threshold(a, b))
    }
}

/// Configurations of one group, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// Configurations that have a value of the metric.
    pub order: Vec<usize>,
    /// Indices in `order` at which ties begin: all configurations up to the next entry are tied with the first of them.
    pub starts: Vec<usize>,
}

impl Ranking {
    /// Ranks the configurations of a group.
    pub fn of(design: &Design, measured: &MetricSamples, group: usize) -> Ranking {
        let has = |&c: &usize| design.configurations[c].group == group && measured.samples[c].is_some();
        let sample = |c: usize| measured.samples[c].as_ref().expect("the order holds those that have a sample");
        let mut order: Vec<usize> = (0..design.configurations.len()).filter(has).collect();
        // The sort is stable: equal ones stay in the order of their experiments.
        order.sort_by(|&a, &b| measured.order(sample(a), sample(b)));
        Ranking::in_order(order, measured)
    }

    /// The ranking without configurations that spray where that cannot be judged.
    pub(super) fn trusted(&self, design: &Design, measured: &MetricSamples) -> Ranking {
        let order: Vec<usize> = self.order.iter().copied().filter(|&c| !design.is_distrusted(c)).collect();
        if order.is_empty() || order.len() == self.order.len() {
            return self.clone();
        }
        Ranking::in_order(order, measured)
    }

    /// Finds the ties of configurations in this order.
    fn in_order(order: Vec<usize>, measured: &MetricSamples) -> Ranking {
        let mut starts: Vec<usize> = Vec::new();
        for (index, &c) in order.iter().enumerate() {
            let tied = starts.last().is_some_and(|&s: &usize| measured.tied(order[s], c));
            if !tied {
                starts.push(index);
            }
        }
        Ranking { order, starts }
    }

    /// The first configuration after the leaders, and all that are tied with it. Empty if there is none.
    pub(super) fn second(&self) -> &[usize] {
        let start = |index: usize| self.starts.get(index).copied().unwrap_or(self.order.len());
        &self.order[start(1)..start(2)]
    }

    /// The best configuration, and all that are tied with it.
    pub fn leaders(&self) -> &[usize] {
        &self.order[..self.starts.get(1).copied().unwrap_or(self.order.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(text: &str, more: bool, audits: [&str; 5]) -> (Design, MetricSamples) {
        let s = Sheet::from_lines(text);
        let d = Design::of(&s);
        let m = Metric { name: "makespan_ns".into(), label: String::new(), unit: "ns", more };
        let measured = MetricSamples::of(
            &s,
            &d,
            &m,
            Some(&SheetColumn::infer("audit_fct_error", audits.map(String::from).to_vec())),
        );
        (d, measured)
    }

    const NONE: [&str; 5] = [""; 5];
    const ONE_EACH: &str = "exp_id,config_key,seed,a.b,status,makespan_ns
        0,k0,1,x,ok,110
        1,k1,1,y,ok,100
        2,k2,1,z,ok,100
        3,k3,1,u,failed,1
        4,k4,1,v,ok,101";

    #[test]
    fn without_replicas_only_equal_results_are_tied_and_failures_have_no_place() {
        let (d, m) = measured(ONE_EACH, false, NONE);
        let r = Ranking::of(&d, &m, 0);
        assert_eq!((r.order.as_slice(), r.starts.as_slice()), (&[1, 2, 4, 0][..], &[0, 2, 3][..]));
        assert_eq!(r.leaders(), [1, 2]);
        assert_eq!(Ranking::of(&d, &measured(ONE_EACH, true, NONE).1, 0).order, [0, 4, 1, 2], "more is better");
    }

    #[test]
    fn less_than_a_ten_thousandth_is_a_tie() {
        let (d, m) = measured(&ONE_EACH.replace("z,ok,100", "z,ok,100.009"), false, NONE);
        assert_eq!(Ranking::of(&d, &m, 0).leaders(), [1, 2]);
        let (d, m) = measured(&ONE_EACH.replace("z,ok,100", "z,ok,100.02"), false, NONE);
        assert_eq!(Ranking::of(&d, &m, 0).leaders(), [1]);
    }

    #[test]
    fn differences_below_the_audited_error_are_ties() {
        let (d, m) = measured(ONE_EACH, false, ["", "", "", "", "0.02"]);
        assert_eq!(Ranking::of(&d, &m, 0).leaders(), [1, 2, 4]);
        let (d, m) = measured(ONE_EACH, false, ["-0.2", "", "", "", ""]);
        assert_eq!(Ranking::of(&d, &m, 0).starts, [0, 2], "100 and 100; 101 and 110, which may be 20 % off");
    }

    #[test]
    fn differences_below_the_replicas_spread_are_ties() {
        let text = "exp_id,config_key,seed,a.b,status,makespan_ns
            0,k0,1,x,ok,100
            1,k0,2,x,ok,104
            2,k1,1,y,ok,103
            3,k1,2,y,ok,105
            4,k2,1,z,ok,120";
        let (d, m) = measured(text, false, NONE);
        let r = Ranking::of(&d, &m, 0);
        assert_eq!(
            (r.order.as_slice(), r.leaders()),
            (&[0, 1, 2][..], &[0, 1][..]),
            "102 and 104, deviations 2.8 and 1.4"
        );
    }
}
