//! What changed since the base: the same configurations in the first folder and in another, side by side.
//!
//! Layer: compare.

use super::pairs::{differences, partners};
use super::rank::percent;
use super::{Metric, Sample, Section, Study};
use crate::results::Cell;

/// Configurations that a later folder shares with the first, those that changed most first. A change that is at most either's uncertainty is marked as
/// a tie. `None` where there is one folder, or none shares anything.
pub fn section(study: &Study, metric: &Metric, top: usize) -> Option<Section> {
    let partners = partners(study);
    let mut columns = vec!["dir".to_string(), "exp_id".into(), "base exp_id".into()];
    columns.extend(study.axes.iter().cloned());
    columns.extend([metric.name.clone(), format!("base.{}", metric.name), "change %".into(), "tied".into()]);
    let mut section = Section::new("changes", format!("{} against {}", metric.name, study.dir(0)), columns);
    let mut changes: Vec<(f64, Vec<Cell>, bool)> = Vec::new();
    let value = |index: usize| -> Option<(Sample, f64)> {
        let c = &study.configurations[index];
        study.sample(c, &metric.name).map(|s| (s, study.uncertainty(c, metric, &s)))
    };
    for (index, c) in study.configurations.iter().enumerate().filter(|(_, c)| c.run > 0) {
        let Some(of_base) = partners[index].map(|p| p.of_base) else { continue };
        let (Some((now, u)), Some((then, v))) = (value(index), value(of_base)) else { continue };
        let change = percent(now.mean, then.mean);
        let tied = (now.mean - then.mean).abs() <= u.max(v);
        let mut row: Vec<Cell> =
            vec![study.dir(c.run).into(), c.exp_id.into(), study.configurations[of_base].exp_id.into()];
        row.extend(c.values.iter().cloned());
        row.extend([now.mean.into(), then.mean.into(), change.into(), tied.into()]);
        changes.push((change.map_or(f64::INFINITY, f64::abs), row, now.mean == then.mean));
    }
    if changes.is_empty() {
        return None;
    }
    let (n, same) = (changes.len(), changes.iter().filter(|c| c.2).count());
    changes.retain(|c| !c.2);
    changes.sort_by(|a, b| b.0.total_cmp(&a.0));
    section.notes.push(format!("{same} of {n} shared configurations are exactly as in the base"));
    section.notes.extend(differences(study, &partners));
    if changes.len() > top {
        section.notes.push(format!("{} more changes are not shown; --top says how many are", changes.len() - top));
    }
    section.rows.extend(changes.into_iter().take(top).map(|c| c.1));
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
        let section = section(&study, &Metric::of("makespan_ns"), 10).unwrap();
        let change: Vec<(String, String)> = section.rows.iter().map(|r| (r[1].to_string(), r[6].to_string())).collect();
        assert_eq!(change, [("4".into(), "-20".into()), ("3".into(), "1".into())]);
        assert_eq!(section.notes, ["1 of 3 shared configurations are exactly as in the base"]);
        let alone = Study::open(&[base.path()]).unwrap();
        assert!(super::section(&alone, &Metric::of("makespan_ns"), 10).is_none());
    }
}
