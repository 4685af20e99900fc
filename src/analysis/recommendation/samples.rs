//! Samples of a metric, one for each configuration of the page. [`Ranking`] ranks them.
//!
//! Layer: recommendation. It reads the sheet and chooses no metric.

use crate::compare::{Better, MeasuredValue, Ranking, Sample};

use super::design::{Configuration, Design};
use super::metric::Metric;
use super::sheet::{Sheet, SheetColumn};

/// Values of a metric, one for each configuration.
#[derive(Clone, Debug)]
pub struct MetricSamples {
    /// The value over the replicas that have one. `None`: no replica has one.
    pub values: Vec<Option<MeasuredValue>>,
    /// Cost of each configuration in US dollars, if it is known.
    pub cost_usd: Vec<Option<f64>>,
    /// Whether less or more of it is better.
    pub better: Better,
}

impl MetricSamples {
    /// Reads a metric from the sheet. `audits` is the audited relative error of each row, if there is one. Experiments that did not complete have no value,
    /// whatever the table shows.
    pub fn of(sheet: &Sheet, design: &Design, metric: &Metric, audits: Option<&SheetColumn>) -> MetricSamples {
        let column = sheet.column(&metric.name);
        let value = |row: usize| column.filter(|_| sheet.ok(row)).and_then(|c| c.number(row));
        let audits = audits.filter(|_| metric.is_timed());
        let audit = |rows: &[usize]| rows.iter().filter_map(|&r| audits?.number(r)).map(f64::abs).fold(0.0, f64::max);
        let seeded = |rows: &[usize]| -> Vec<(u64, f64)> {
            rows.iter().filter_map(|&r| Some((sheet.text("seed", r).parse().ok()?, value(r)?))).collect()
        };
        let measured = |c: &Configuration| {
            let sample = Sample::of(&c.rows.iter().filter_map(|&r| value(r)).collect::<Vec<f64>>())?;
            Some(MeasuredValue::new(sample, seeded(&c.rows), audit(&c.rows)))
        };
        let costs = sheet.column("cost_usd");
        let cost = |c: &Configuration| c.rows.iter().find_map(|&row| costs?.number(row));
        MetricSamples {
            values: design.configurations.iter().map(measured).collect(),
            cost_usd: design.configurations.iter().map(cost).collect(),
            better: metric.better,
        }
    }

    /// Statistics of a configuration over its replicas. `None`: no replica has a value.
    pub fn sample(&self, c: usize) -> Option<Sample> {
        self.values[c].as_ref().map(|v| v.sample)
    }

    /// Mean of a configuration over its replicas. `None`: no replica has a value.
    pub fn mean(&self, c: usize) -> Option<f64> {
        self.sample(c).map(|s| s.mean)
    }

    /// Logarithm of the factor by which a configuration is worse, from the relative difference `worse`. The result is not a number if there is no such
    /// factor.
    pub(super) fn log_ratio(&self, worse: f64) -> f64 {
        libm::log(if self.better == Better::More { 1.0 / (1.0 - worse) } else { 1.0 + worse })
    }

    /// Whether `a` is known to cost less than `b`.
    pub(super) fn is_cheaper(&self, a: usize, b: usize) -> bool {
        self.cost_usd[a].zip(self.cost_usd[b]).is_some_and(|(a, b)| a < b)
    }

    /// Returns the answer of `question` for two configurations that both have a value. `None`: one of them has none.
    pub(super) fn of_both<T>(
        &self,
        a: usize,
        b: usize,
        question: impl Fn(&MeasuredValue, &MeasuredValue) -> T,
    ) -> Option<T> {
        Some(question(self.values[a].as_ref()?, self.values[b].as_ref()?))
    }

    /// Whether the two cannot be told apart.
    pub fn tied(&self, a: usize, b: usize) -> bool {
        self.of_both(a, b, MeasuredValue::is_tied_with).unwrap_or(false)
    }

    /// Ranks the configurations of a group.
    pub fn ranking(&self, design: &Design, group: usize) -> Ranking {
        let members = (0..design.configurations.len()).filter(|&c| design.configurations[c].group == group);
        Ranking::of(&self.values, self.better, members)
    }

    /// The ranking without configurations that spray where that cannot be judged.
    pub(super) fn trusted(&self, design: &Design, ranking: &Ranking) -> Ranking {
        let order: Vec<usize> = ranking.order.iter().copied().filter(|&c| !design.is_distrusted(c)).collect();
        if order.is_empty() || order.len() == ranking.order.len() {
            return ranking.clone();
        }
        Ranking::of(&self.values, self.better, order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(text: &str, better: Better, audits: [&str; 5]) -> (Design, MetricSamples) {
        let s = Sheet::from_lines(text);
        let d = Design::of(&s);
        let m = Metric { name: "makespan_ns".into(), label: String::new(), unit: "ns", better };
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
        let (d, m) = measured(ONE_EACH, Better::Less, NONE);
        let r = m.ranking(&d, 0);
        assert_eq!((r.order.as_slice(), r.starts.as_slice()), (&[1, 2, 4, 0][..], &[0, 2, 3][..]));
        assert_eq!(r.leaders(), [1, 2]);
        assert_eq!(measured(ONE_EACH, Better::More, NONE).1.ranking(&d, 0).order, [0, 4, 1, 2], "more is better");
    }

    #[test]
    fn less_than_a_ten_thousandth_is_a_tie() {
        let (d, m) = measured(&ONE_EACH.replace("z,ok,100", "z,ok,100.009"), Better::Less, NONE);
        assert_eq!(m.ranking(&d, 0).leaders(), [1, 2]);
        let (d, m) = measured(&ONE_EACH.replace("z,ok,100", "z,ok,100.02"), Better::Less, NONE);
        assert_eq!(m.ranking(&d, 0).leaders(), [1]);
    }

    #[test]
    fn differences_below_the_audited_error_are_ties() {
        let (d, m) = measured(ONE_EACH, Better::Less, ["", "", "", "", "0.02"]);
        assert_eq!(m.ranking(&d, 0).leaders(), [1, 2, 4]);
        let (d, m) = measured(ONE_EACH, Better::Less, ["-0.2", "", "", "", ""]);
        assert_eq!(m.ranking(&d, 0).starts, [0, 2], "100 and 100; 101 and 110, which may be 20 % off");
    }

    #[test]
    fn differences_below_the_replicas_spread_are_ties() {
        let text = "exp_id,config_key,seed,a.b,status,makespan_ns
            0,k0,1,x,ok,100
            1,k0,2,x,ok,104
            2,k1,1,y,ok,103
            3,k1,2,y,ok,105
            4,k2,1,z,ok,120";
        let (d, m) = measured(text, Better::Less, NONE);
        let r = m.ranking(&d, 0);
        assert_eq!(
            (r.order.as_slice(), r.leaders()),
            (&[0, 1, 2][..], &[0, 1][..]),
            "102 and 104, deviations 2.8 and 1.4"
        );
    }
}
