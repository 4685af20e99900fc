//! Changes since the base: the same configurations in the first folder and in a later one, side by side.
//!
//! Layer: compare.

use super::pairs::{differences, partners};
use super::rank::percent;
use super::{RankingMetric, Section, Study};
use hyperfold_base::units::counted;
use hyperfold_results::Cell;

/// A configuration of a later folder and the configuration of the first folder that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the later configuration in [`Study::configurations`].
    pub configuration: usize,
    /// Index of its partner in the base in [`Study::configurations`].
    pub of_base: usize,
    /// Mean of the metric in the later folder.
    pub now: f64,
    /// Mean of the metric in the base.
    pub then: f64,
    /// Whether the change is at most the uncertainty of one of the two.
    pub tied: bool,
}

impl Change {
    /// Change in percent of the base. `None`: the base's mean is 0.
    pub fn percent(&self) -> Option<f64> {
        percent(self.now, self.then)
    }

    /// Absolute relative change, for sorting.
    pub fn size(&self) -> f64 {
        self.percent().map_or(f64::INFINITY, f64::abs)
    }
}

/// Configurations of later folders that have a partner in the first folder and for which both have the metric, in the study's order.
pub fn changes(study: &Study, metric: &RankingMetric) -> Vec<Change> {
    let partners = partners(study);
    let value = |index: usize| study.measured(&study.configurations[index], metric);
    let later = study.configurations.iter().enumerate().filter(|(_, c)| c.run > 0);
    later
        .filter_map(|(configuration, _)| {
            let of_base = partners[configuration]?.of_base;
            let (now, then) = (value(configuration)?, value(of_base)?);
            let tied = now.is_tied_with(&then);
            Some(Change { configuration, of_base, now: now.sample.mean, then: then.sample.mean, tied })
        })
        .collect()
}

/// Table of the configurations that later folders share with the first folder, largest change first. Changes that cannot be told apart from no change
/// ([`MeasuredValue::is_tied_with`](super::ranking::MeasuredValue::is_tied_with)) are marked as ties. `None`: there is only one folder, or no folder shares a configuration.
pub fn section(study: &Study, metric: &RankingMetric, top: usize) -> Option<Section> {
    let mut columns = vec!["dir".to_string(), "exp_id".into(), "base exp_id".into()];
    columns.extend(study.axes.iter().cloned());
    columns.extend([metric.name.clone(), format!("base.{}", metric.name), "change %".into(), "tied".into()]);
    let mut section = Section::new("changes", format!("{} against {}", metric.name, study.dir(0)), columns);
    let mut changes = changes(study, metric);
    let row = |change: &Change| {
        let c = &study.configurations[change.configuration];
        let mut row: Vec<Cell> =
            vec![study.dir(c.run).into(), c.exp_id.into(), study.configurations[change.of_base].exp_id.into()];
        row.extend(c.values.iter().cloned());
        row.extend([change.now.into(), change.then.into(), change.percent().into(), change.tied.into()]);
        row
    };
    if changes.is_empty() {
        return None;
    }
    let n = changes.len();
    changes.retain(|c| c.now != c.then);
    let same = n - changes.len();
    changes.sort_by(|a, b| b.size().total_cmp(&a.size()));
    section.notes.push(format!("exactly as in the base: {same} of {}", counted(n, "shared configuration")));
    section.notes.extend(differences(study, &partners(study)));
    if changes.len() > top {
        section
            .notes
            .push(format!("not shown: {}; --top says how many are", counted(changes.len() - top, "more change")));
    }
    section.rows.extend(changes.iter().take(top).map(row));
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};

    #[test]
    fn the_largest_change_comes_first_and_what_is_equal_is_counted() {
        let base = Folder::new(
            &["transport.cc"],
            vec![ok(0, "a", &["x"], 100_000), ok(1, "b", &["y"], 100_000), ok(2, "c", &["z"], 7_000)],
        );
        let new = Folder::new(
            &["transport.cc"],
            vec![ok(3, "a", &["x"], 101_000), ok(4, "b", &["y"], 80_000), ok(5, "c", &["z"], 7_000)],
        );
        let study = Study::open(&[base.path(), new.path()]).unwrap();
        let section = section(&study, &RankingMetric::of("makespan_ns"), 10).unwrap();
        let change: Vec<(String, String)> = section.rows.iter().map(|r| (r[1].to_string(), r[6].to_string())).collect();
        assert_eq!(change, [("4".into(), "-20".into()), ("3".into(), "1".into())]);
        assert_eq!(section.notes, ["exactly as in the base: 1 of 3 shared configurations"]);
        let alone = Study::open(&[base.path()]).unwrap();
        assert!(super::section(&alone, &RankingMetric::of("makespan_ns"), 10).is_none());
    }
}
