//! Highest request rate at which a model keeps its latency bounds: the conclusion of a sweep over load.
//!
//! Layer: compare. It reads columns of results; the command line and the page put the conclusion into words.

use std::collections::BTreeMap;

use super::Study;
use super::study::StudyConfiguration;
use hyperfold_config::spec::{JOB, named_value};
use hyperfold_results::Cell;

/// Share of requests that must keep both bounds for a rate to hold. MLPerf Inference, the source of the default bounds, asks the same of its 99th
/// percentiles.
pub const HOLDS_FROM: f64 = 0.99;
/// One and a half times the rounding step of a share in `results.csv`.
const ROUNDING: f64 = 1.5e-6;

/// A rate that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TriedRate {
    /// The rate, in requests per second.
    pub rate: f64,
    /// Share of requests that kept both bounds, as the mean over replicas.
    pub within: f64,
}

/// Result of the tried rates of one design.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    /// Index of its configuration with the lowest rate.
    pub configuration: usize,
    /// The highest rate that holds and below which all tried rates hold. `None`: the lowest rate does not hold.
    pub holds: Option<TriedRate>,
    /// The lowest rate that does not hold. `None`: all rates hold.
    pub fails: Option<TriedRate>,
}

impl Knee {
    /// The highest rate that holds, in requests per second; 0 if none does.
    pub fn rate(&self) -> f64 {
        self.holds.map_or(0.0, |tried| tried.rate)
    }
}

/// Designs that answer the same question, with their knees.
#[derive(Clone, Debug, PartialEq)]
pub struct KneeGroup {
    /// Axes that distinguish it from other groups, except for the rate, and their values.
    pub question: Vec<(String, Cell)>,
    /// Knees of the designs, highest first.
    pub knees: Vec<Knee>,
}

impl KneeGroup {
    /// The question in words. Empty if there is only one.
    pub fn label(&self) -> String {
        let part = |(axis, value): &(String, Cell)| named_value(axis, value);
        self.question.iter().map(part).collect::<Vec<_>>().join(", ")
    }

    /// Number of designs whose knee is as high as that of the first.
    pub fn n_best(&self) -> usize {
        self.knees.iter().take_while(|knee| knee.rate() == self.knees[0].rate()).count()
    }
}

/// Whether an axis is the request rate of a workload.
pub fn is_rate(axis: &str) -> bool {
    axis == "workload.request_rate" || (axis.starts_with(JOB) && axis.ends_with(".request_rate"))
}

/// A design without its rate: the index of its folder, and its values on all other axes.
type RatedDesign = (usize, Vec<String>);

/// Knees of a study in which one request rate is an axis. Empty if there is no such axis or several, or if no design was tried at two rates or more.
pub fn knees(study: &Study) -> Vec<KneeGroup> {
    let rates: Vec<usize> = (0..study.axes.len()).filter(|&axis| is_rate(&study.axes[axis])).collect();
    let [rate_axis] = rates[..] else { return Vec::new() };
    let questions: Vec<usize> = study.questions().into_iter().filter(|&axis| axis != rate_axis).collect();
    let texts = |c: &StudyConfiguration, axes: &[usize]| -> Vec<String> {
        axes.iter().map(|&axis| c.values[axis].to_string()).collect()
    };
    let others: Vec<usize> = (0..study.axes.len()).filter(|&axis| axis != rate_axis).collect();
    // Groups are by question, and designs by folder and all values except the rate. Both are in the order of the first experiment.
    let mut groups: Vec<(Vec<String>, KneeGroup)> = Vec::new();
    let mut designs: BTreeMap<RatedDesign, Vec<(TriedRate, usize)>> = BTreeMap::new();
    for (index, c) in study.configurations.iter().enumerate() {
        let rate = c.values[rate_axis].number().filter(|rate| *rate > 0.0);
        let within = study.sample(c, "within_bounds").map(|sample| sample.mean);
        if let (Some(rate), Some(within)) = (rate, within) {
            let design = (c.run, texts(c, &others));
            designs.entry(design).or_default().push((TriedRate { rate, within }, index));
        }
    }
    let mut tried: Vec<Vec<(TriedRate, usize)>> = designs.into_values().collect();
    tried.sort_by_key(|rates| rates.iter().map(|(_, index)| *index).min());
    for mut rates in tried {
        rates.sort_by(|a, b| a.0.rate.total_cmp(&b.0.rate));
        if rates.len() < 2 {
            continue;
        }
        let c = &study.configurations[rates[0].1];
        let asked = texts(c, &questions);
        let question = || questions.iter().map(|&axis| (study.axes[axis].clone(), c.values[axis].clone())).collect();
        let place = groups.iter().position(|(known, _)| *known == asked).unwrap_or_else(|| {
            groups.push((asked, KneeGroup { question: question(), knees: Vec::new() }));
            groups.len() - 1
        });
        groups[place].1.knees.push(knee(&rates));
    }
    for (_, group) in &mut groups {
        // The sort is stable: equal knees stay in the order of ids.
        group.knees.sort_by(|a, b| b.rate().total_cmp(&a.rate()));
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Knee of a design, from its rates in ascending order.
fn knee(rates: &[(TriedRate, usize)]) -> Knee {
    let n_hold = rates.iter().take_while(|(tried, _)| tried.within >= HOLDS_FROM - ROUNDING).count();
    Knee {
        configuration: rates[0].1,
        holds: n_hold.checked_sub(1).map(|last| rates[last].0),
        fails: rates.get(n_hold).map(|(tried, _)| *tried),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};
    use hyperfold_results::{Finished, Micro, ServingRecord};

    /// An experiment in which `within` millionths of the requests are within both bounds.
    fn served(exp_id: u64, axes: &[&str], within: u64) -> Finished {
        let mut experiment = ok(exp_id, &format!("k{}", axes.join("-")), axes, 5_000);
        let record = ServingRecord { requests: 1, within_bounds: Micro(within), ..ServingRecord::default() };
        experiment.record.serving = Some(Box::new(record));
        for value in &mut experiment.record.axis_values {
            // Rates are numbers, as a sweep file has them.
            if let Ok(number) = value.to_string().parse::<u64>() {
                *value = number.into();
            }
        }
        experiment
    }

    fn found(axes: &[&str], experiments: Vec<Finished>) -> Vec<KneeGroup> {
        let folder = Folder::new(axes, experiments);
        knees(&Study::open(&[folder.path()]).unwrap())
    }

    fn rates(knee: &Knee) -> (Option<f64>, Option<f64>) {
        (knee.holds.map(|t| t.rate), knee.fails.map(|t| t.rate))
    }

    #[test]
    fn the_knee_is_the_last_rate_before_the_first_that_fails() {
        let axes = ["workload.request_rate", "workload.serving"];
        let shares = [(1_000_000, 1_000_000), (990_000, 999_999), (700_000, 995_000), (999_000, 980_000)];
        let rows = (0..4).flat_map(|i| {
            let rate = (10 * (i + 1)).to_string();
            let experiment = |n, kind, shares| served(n, &[&rate, kind], shares);
            let of_rate = &shares[i as usize];
            [experiment(2 * i, "colocated", of_rate.0), experiment(2 * i + 1, "disaggregated", of_rate.1)]
        });
        let groups = found(&axes, rows.collect());
        assert_eq!(groups.len(), 1);
        let [best, other] = &groups[0].knees[..] else { panic!("{groups:?}") };
        assert_eq!((rates(best), best.configuration), ((Some(30.0), Some(40.0)), 1));
        assert_eq!(rates(other), (Some(20.0), Some(30.0)), "what holds above a rate that fails is noise");
        assert_eq!((groups[0].n_best(), groups[0].label().as_str()), (1, ""));
    }

    #[test]
    fn ends_of_the_rates_and_other_questions_are_told_apart() {
        let axes = ["workload.prompt_tokens", "workload.request_rate"];
        let rows = vec![
            served(0, &["100", "1"], 1_000_000),
            served(1, &["100", "2"], 1_000_000),
            served(2, &["900", "1"], 500_000),
            served(3, &["900", "2"], 100_000),
            // One rate alone has no knee.
            served(4, &["50", "2"], 1_000_000),
        ];
        let groups = found(&axes, rows);
        let labels: Vec<String> = groups.iter().map(KneeGroup::label).collect();
        assert_eq!(labels, ["prompt_tokens 100", "prompt_tokens 900"]);
        assert_eq!(rates(&groups[0].knees[0]), (Some(2.0), None));
        assert_eq!(rates(&groups[1].knees[0]), (None, Some(1.0)));
        assert!(
            found(&["workload.tp", "workload.dp"], vec![served(0, &["1", "2"], 9), served(1, &["2", "1"], 9)])
                .is_empty()
        );
    }
}
