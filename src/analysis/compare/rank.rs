//! The ranking of a study by a metric, as a table.
//!
//! Layer: compare. Configurations that do different work (another model, other messages) are ranked in separate groups.

use super::ranking::{MeasuredValue, Ranking};
use super::{RankingMetric, Sample, Section, Study};
use hyperfold_base::units::counted;
use hyperfold_config::spec::named_value;
use hyperfold_results::Cell;

/// A configuration and its rank.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// Index in [`Study::configurations`].
    pub configuration: usize,
    /// Values of the metric over its replicas.
    pub sample: Sample,
    /// Rank, counted from 1. Tied configurations share the rank of the best of them.
    pub rank: usize,
    /// Whether another configuration has the same rank.
    pub tied: bool,
}

/// Configurations that do the same work, best first.
#[derive(Clone, Debug)]
pub struct RankedGroup {
    /// Axes that distinguish this group from others, and their values.
    pub question: Vec<(String, Cell)>,
    /// Configurations with a value of the metric, best first.
    pub ranked: Vec<Ranked>,
    /// Indices of the configurations without a value of the metric.
    pub without: Vec<usize>,
}

impl RankedGroup {
    /// The question in words. Empty if there is only one.
    pub fn label(&self) -> String {
        let part = |(axis, value): &(String, Cell)| named_value(axis, value);
        self.question.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

/// Ranks all configurations. A configuration that cannot be told apart from the best one of a rank ([`MeasuredValue::is_tied_with`]) shares that rank.
pub fn rank(study: &Study, metric: &RankingMetric) -> Vec<RankedGroup> {
    let values: Vec<Option<MeasuredValue>> = study.configurations.iter().map(|c| study.measured(c, metric)).collect();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (index, group_idx) in study.group_of().into_iter().enumerate() {
        if group_idx == members.len() {
            members.push(Vec::new());
        }
        members[group_idx].push(index);
    }
    let questions = study.questions();
    let group = |members: Vec<usize>| {
        let first = &study.configurations[members[0]].values;
        let ranking = Ranking::of(&values, metric.better, members.iter().copied());
        let mut ranked = Vec::new();
        for (start, equals) in ranking.starts.iter().zip(ranking.ties()) {
            for &configuration in equals {
                let sample = values[configuration].as_ref().expect("what is ranked has a value").sample;
                ranked.push(Ranked { configuration, sample, rank: start + 1, tied: equals.len() > 1 });
            }
        }
        RankedGroup {
            question: questions.iter().map(|&q| (study.axes[q].clone(), first[q].clone())).collect(),
            ranked,
            without: members.iter().copied().filter(|&c| values[c].is_none()).collect(),
        }
    };
    members.into_iter().map(group).collect()
}

/// Table of the `top` best configurations of every group.
pub fn section(study: &Study, metric: &RankingMetric, groups: &[RankedGroup], top: usize) -> Section {
    let several = study.runs.len() > 1;
    let mut columns = vec!["rank".to_string(), "tied".into()];
    columns.extend(several.then(|| "dir".into()));
    columns.push("exp_id".into());
    columns.extend(study.axes.iter().cloned());
    columns.push(metric.name.clone());
    let replicas = groups.iter().flat_map(|g| &g.ranked).any(|r| r.sample.n > 1);
    let spread = [
        "replicas".to_string(),
        format!("{} min", metric.name),
        format!("{} max", metric.name),
        format!("{} std", metric.name),
    ];
    columns.extend(replicas.then_some(spread).into_iter().flatten());
    columns.push("to best %".into());
    // Folders may have different first jobs; then the title names no job, and each row refers to its own.
    let mut jobs: Vec<Option<&str>> = study.runs.iter().map(|r| r.job_of_column(&metric.name)).collect();
    jobs.dedup();
    let of_job = match jobs[..] {
        [Some(job)] => format!(" of job {job}"),
        _ => String::new(),
    };
    let title = format!("ranking by {}{of_job} ({})", metric.name, metric.which());
    let mut section = Section::new("ranking", title, columns);
    for group in groups {
        let Some(best) = group.ranked.first().map(|r| r.sample.mean) else { continue };
        for r in group.ranked.iter().take(top) {
            let c = &study.configurations[r.configuration];
            let mut row: Vec<Cell> = vec![(r.rank as u64).into(), r.tied.into()];
            row.extend(several.then(|| study.dir(c.run).into()));
            row.push(c.exp_id.into());
            row.extend(c.values.iter().cloned());
            row.push(r.sample.mean.into());
            if replicas {
                row.extend([
                    (r.sample.n as u64).into(),
                    r.sample.low.into(),
                    r.sample.high.into(),
                    r.sample.deviation.into(),
                ]);
            }
            row.push(percent(r.sample.mean, best).into());
            section.rows.push(row);
        }
    }
    section.notes = notes(study, groups, top);
    section
}

fn notes(study: &Study, groups: &[RankedGroup], top: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let apart: Vec<String> =
        groups.first().map(|g| g.question.iter().map(|(axis, _)| axis.clone()).collect()).unwrap_or_default();
    if groups.len() > 1 {
        notes.push(format!("{} groups that do different work ({}) are ranked apart", groups.len(), apart.join(", ")));
    }
    let hidden: usize = groups.iter().map(|g| g.ranked.len().saturating_sub(top)).sum();
    if hidden > 0 {
        notes.push(format!("not shown: {}; --top says how many are", counted(hidden, "more configuration")));
    }
    if groups.iter().flat_map(|g| &g.ranked).any(|r| r.tied) {
        notes.push(
            "tied: replicas do not decide (three or more are compared in pairs of one seed, by a 95 % interval; fewer by their standard deviation), or the difference is at most the audited error or 0.01 %".into(),
        );
    }
    let n_without_spread =
        groups.iter().flat_map(|g| &g.ranked).filter(|r| r.sample.n > 1 && r.sample.deviation == 0.0).count();
    if n_without_spread > 0 {
        notes.push(format!(
            "all replicas of {} are alike: no seed decides this, so replicas do not say how sure it is (an axis of routing.seed varies paths)",
            counted(n_without_spread, "configuration")
        ));
    }
    let without: Vec<usize> = groups.iter().flat_map(|g| &g.without).copied().collect();
    if !without.is_empty() {
        let mut n_by_status = std::collections::BTreeMap::new();
        for &c in &without {
            let c = &study.configurations[c];
            *n_by_status.entry(study.runs[c.run].status(c.rows[0]).as_str()).or_insert(0) += 1;
        }
        let counts: Vec<String> = n_by_status.iter().map(|(status, n)| format!("{n} {status}")).collect();
        notes.push(format!(
            "without a value and a rank: {} ({})",
            counted(without.len(), "configuration"),
            counts.join(", ")
        ));
    }
    notes
}

/// Difference of a value from a reference, in percent of the reference. `None`: the reference is 0 and the value is not.
pub(super) fn percent(value: f64, reference: f64) -> Option<f64> {
    if value == reference {
        return Some(0.0);
    }
    (reference != 0.0).then(|| (value - reference) / reference.abs() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};

    fn ranks(study: &Study, metric: &RankingMetric) -> Vec<(u64, usize, bool)> {
        let groups = rank(study, metric);
        groups[0].ranked.iter().map(|r| (study.configurations[r.configuration].exp_id, r.rank, r.tied)).collect()
    }

    #[test]
    fn differences_below_the_spread_are_ties() {
        let rows = vec![
            ok(0, "a", &["a"], 100_000),
            ok(1, "a", &["a"], 104_000),
            ok(2, "b", &["b"], 101_000),
            ok(3, "b", &["b"], 105_000),
            ok(4, "c", &["c"], 120_000),
            ok(5, "c", &["c"], 120_000),
            ok(6, "d", &["d"], 120_000),
        ];
        let folder = Folder::new(&["transport.cc"], rows);
        let study = Study::open(&[folder.path()]).unwrap();
        assert_eq!(
            ranks(&study, &RankingMetric::of("makespan_ns")),
            [(0, 1, true), (2, 1, true), (4, 3, true), (6, 3, true)]
        );
        let section =
            section(&study, &RankingMetric::of("makespan_ns"), &rank(&study, &RankingMetric::of("makespan_ns")), 2);
        assert_eq!(section.rows.len(), 2);
        assert!(
            section.notes.iter().any(|n| n.starts_with("all replicas of 1 configuration are alike")),
            "c: {:?}",
            section.notes
        );
        assert!(section.notes.iter().any(|n| n.starts_with("not shown: 2 more configurations")), "{:?}", section.notes);
    }

    #[test]
    fn an_audited_error_widens_ties() {
        let mut rows = vec![ok(0, "a", &["a"], 100_000), ok(1, "b", &["b"], 102_000), ok(2, "c", &["c"], 110_000)];
        let folder = Folder::new(&["transport.cc"], rows.clone());
        let study = Study::open(&[folder.path()]).unwrap();
        assert_eq!(ranks(&study, &RankingMetric::of("makespan_ns")), [(0, 1, false), (1, 2, false), (2, 3, false)]);
        rows[1].stats.audit_fct_error = Some(0.03);
        let folder = Folder::new(&["transport.cc"], rows);
        let study = Study::open(&[folder.path()]).unwrap();
        assert_eq!(ranks(&study, &RankingMetric::of("makespan_ns")), [(0, 1, true), (1, 1, true), (2, 3, false)]);
    }

    #[test]
    fn other_work_is_another_ranking_and_failures_have_no_rank() {
        let mut failed = ok(3, "d", &["400", "1000"], 1);
        failed.record = failed.record.failed("why");
        failed.record.makespan = None;
        let rows = vec![
            ok(0, "a", &["100", "1000"], 5_000),
            ok(1, "b", &["400", "2000"], 9_000),
            ok(2, "c", &["100", "2000"], 8_000),
            failed,
        ];
        let folder = Folder::new(&["topology.link_gbps", "workload.bytes"], rows);
        let study = Study::open(&[folder.path()]).unwrap();
        let groups = rank(&study, &RankingMetric::of("makespan_ns"));
        assert_eq!(groups.iter().map(RankedGroup::label).collect::<Vec<_>>(), ["bytes 1000", "bytes 2000"]);
        assert_eq!((groups[0].ranked.len(), groups[0].without.len(), groups[1].ranked[0].configuration), (1, 1, 2));
    }

    #[test]
    fn less_than_a_ten_thousandth_is_a_tie() {
        let rows =
            vec![ok(0, "a", &["a"], 100_000_000), ok(1, "b", &["b"], 100_009_000), ok(2, "c", &["c"], 100_020_000)];
        let folder = Folder::new(&["transport.cc"], rows);
        let study = Study::open(&[folder.path()]).unwrap();
        let expected = [(0, 1, true), (1, 1, true), (2, 3, false)];
        assert_eq!(ranks(&study, &RankingMetric::of("makespan_ns")), expected);
    }

    #[test]
    fn more_is_better_where_it_is() {
        let mut rows = vec![ok(0, "a", &["a"], 1), ok(1, "b", &["b"], 1)];
        rows[1].record.mfu = Some(0.5);
        rows[0].record.mfu = Some(0.4);
        let folder = Folder::new(&["transport.cc"], rows);
        let study = Study::open(&[folder.path()]).unwrap();
        assert_eq!(ranks(&study, &RankingMetric::of("mfu")), [(1, 1, false), (0, 2, false)]);
    }
}
