//! Pareto front of several metrics: the configurations that no other configuration beats in all of them.
//!
//! Layer: compare.

use super::{RankedGroup, RankingMetric, Section, Study};
use crate::dominance::front_of;
use hyperfold_results::Cell;

/// Indices of the configurations of `candidates` on the front, best first by the first metric. Equal configurations are all on it; configurations without a
/// value of some metric are not.
pub fn front(study: &Study, metrics: &[RankingMetric], candidates: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mean = |c: usize, m: &RankingMetric| study.sample(&study.configurations[c], &m.name).map(|s| s.mean);
    let candidates = candidates.into_iter();
    front_of(candidates.filter_map(|c| {
        let turned = metrics.iter().map(|m| Some(m.better.turned(mean(c, m)?)));
        Some((c, turned.collect::<Option<Vec<f64>>>()?))
    }))
}

/// Table of the fronts of all groups.
pub fn section(study: &Study, metrics: &[RankingMetric], groups: &[RankedGroup]) -> Section {
    let several = study.runs.len() > 1;
    let mut columns: Vec<String> = several.then(|| "dir".into()).into_iter().collect();
    columns.push("exp_id".into());
    columns.extend(study.axes.iter().cloned());
    columns.extend(metrics.iter().map(|m| m.name.clone()));
    let names: Vec<String> = metrics.iter().map(|m| format!("{} ({})", m.name, m.which())).collect();
    let mut section = Section::new("pareto", format!("Pareto front of {}", names.join(" and ")), columns);
    for group in groups {
        let members = group.ranked.iter().map(|r| r.configuration).chain(group.without.iter().copied());
        for c in front(study, metrics, members) {
            let c = &study.configurations[c];
            let mut row: Vec<Cell> = several.then(|| study.dir(c.run).into()).into_iter().collect();
            row.push(c.exp_id.into());
            row.extend(c.values.iter().cloned());
            row.extend(metrics.iter().map(|m| Cell::from(study.sample(c, &m.name).map(|s| s.mean))));
            section.rows.push(row);
        }
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};
    use proptest::prelude::*;

    fn study(points: &[(u64, f64)]) -> (Folder, Study) {
        let rows = points.iter().enumerate().map(|(i, &(makespan, mfu))| {
            let mut f = ok(i as u64, &format!("k{i}"), &[&i.to_string()], makespan * 1000);
            f.record.mfu = Some(mfu);
            f
        });
        let folder = Folder::new(&["topology.link_gbps"], rows.collect());
        let study = Study::open(&[folder.path()]).unwrap();
        (folder, study)
    }

    #[test]
    fn nobody_on_the_front_is_beaten() {
        let (_folder, study) = study(&[(10, 0.5), (20, 0.6), (20, 0.4), (30, 0.6), (10, 0.5), (5, 0.1)]);
        let metrics = [RankingMetric::of("makespan_ns"), RankingMetric::of("mfu")];
        assert_eq!(front(&study, &metrics, 0..6), [5, 0, 4, 1]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn the_front_is_what_the_definition_says(points in prop::collection::vec((1u64..6, 1u32..6), 1..12)) {
            let points: Vec<(u64, f64)> = points.into_iter().map(|(a, b)| (a, f64::from(b))).collect();
            let (_folder, study) = study(&points);
            let mut found = front(&study, &[RankingMetric::of("makespan_ns"), RankingMetric::of("mfu")], 0..points.len());
            found.sort_unstable();
            let beaten = |p: &(u64, f64)| points.iter().any(|q| q.0 <= p.0 && q.1 >= p.1 && q != p);
            let expected: Vec<usize> = (0..points.len()).filter(|&i| !beaten(&points[i])).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
