//! What each axis does: its main effect, and the best configuration of each of its values.
//!
//! Layer: compare. Values of an axis are compared where all else is equal: in blocks of configurations that differ in this axis alone. Only where a
//! sweep has no such block (zipped axes, random samples) are plain means compared, and that is said.

use std::collections::BTreeMap;

use super::{Metric, Section, Study, is_question};
use crate::results::Cell;

/// Numeric axes with more values than this are taken in [`BINS`] bins.
const VALUES_UP_TO: usize = 12;
const BINS: usize = 4;

/// One value of an axis, or a bin of values.
#[derive(Clone, Debug)]
pub struct Level {
    pub label: Cell,
    /// Configurations with a value of the metric.
    pub configurations: usize,
    /// Mean over the configurations that are compared; `None` if none is.
    pub mean: Option<f64>,
    /// How far this value is from the mean of its blocks, relative.
    pub effect: Option<f64>,
    /// Standard error of `effect` that replicas leave; 0 without replicas.
    pub error: f64,
    /// The best configuration, by index, and its mean.
    pub best: Option<(usize, f64)>,
}

/// An axis and what it does.
#[derive(Clone, Debug)]
pub struct AxisEffect {
    pub axis: String,
    pub levels: Vec<Level>,
    /// Blocks in which everything else is equal and every value occurs; 0: plain means are compared.
    pub blocks: usize,
    /// Largest less smallest `effect`.
    pub range: f64,
}

struct Point {
    configuration: usize,
    level: usize,
    mean: f64,
    /// Square of the standard error of the mean.
    variance: f64,
}

/// The effect of every axis that says how things are done and takes several values, strongest first.
pub fn effects(study: &Study, metric: &Metric) -> Vec<AxisEffect> {
    let mut effects: Vec<AxisEffect> = Vec::new();
    for (at, axis) in study.axes.iter().enumerate().filter(|(_, axis)| !is_question(axis)) {
        let (labels, level_of) = levels(study, at);
        if labels.len() > 1 {
            effects.push(effect(study, metric, at, axis, &labels, &level_of));
        }
    }
    effects.sort_by(|a, b| b.range.total_cmp(&a.range));
    effects
}

fn effect(study: &Study, metric: &Metric, at: usize, axis: &str, labels: &[Cell], level_of: &[usize]) -> AxisEffect {
    // Blocks by all other values. Folders do not divide them: that two folders differ is an axis of its own.
    let mut blocks: BTreeMap<Vec<String>, Vec<Point>> = BTreeMap::new();
    for (index, c) in study.configurations.iter().enumerate() {
        let Some(sample) = study.sample(c, &metric.name) else { continue };
        let others = (0..study.axes.len()).filter(|&a| a != at).map(|a| c.values[a].to_string()).collect();
        let variance = sample.deviation * sample.deviation / sample.n as f64;
        blocks.entry(others).or_default().push(Point { configuration: index, level: level_of[index], mean: sample.mean, variance });
    }
    let mut best: Vec<Option<(usize, f64)>> = vec![None; labels.len()];
    let mut counts = vec![0; labels.len()];
    for p in blocks.values().flatten() {
        counts[p.level] += 1;
        let better = |b: &Option<(usize, f64)>| b.is_none_or(|(i, m)| metric.is_better(p.mean, m) || (p.mean == m && p.configuration < i));
        if better(&best[p.level]) {
            best[p.level] = Some((p.configuration, p.mean));
        }
    }
    let is_complete = |block: &&Vec<Point>| (0..labels.len()).all(|l| block.iter().any(|p| p.level == l));
    let complete: Vec<&Vec<Point>> = blocks.values().filter(is_complete).collect();
    let n_blocks = complete.len();
    let everything: Vec<Point>;
    let compared: Vec<&[Point]> = if n_blocks > 0 {
        complete.into_iter().map(Vec::as_slice).collect()
    } else {
        everything = blocks.into_values().flatten().collect();
        vec![&everything]
    };
    let levels: Vec<Level> = labels
        .iter()
        .enumerate()
        .map(|(l, label)| {
            let parts: Vec<(f64, f64, f64)> = compared.iter().filter_map(|block| part(block, l)).collect();
            let n = parts.len() as f64;
            let mean = |f: fn(&(f64, f64, f64)) -> f64| (n > 0.0).then(|| parts.iter().map(f).sum::<f64>() / n);
            let error = if n > 0.0 { parts.iter().map(|p| p.2).sum::<f64>().sqrt() / n } else { 0.0 };
            Level { label: label.clone(), configurations: counts[l], mean: mean(|p| p.0), effect: mean(|p| p.1), error, best: best[l] }
        })
        .collect();
    let known: Vec<f64> = levels.iter().filter_map(|l| l.effect).collect();
    let (low, high) = known.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &e| (a.min(e), b.max(e)));
    AxisEffect { axis: axis.into(), levels, blocks: n_blocks, range: if known.is_empty() { 0.0 } else { high - low } }
}

/// Mean of a level in a block, its distance from the block's mean of levels, relative, and the square of that distance's standard error.
fn part(block: &[Point], level: usize) -> Option<(f64, f64, f64)> {
    let mut by_level: BTreeMap<usize, (f64, f64, f64)> = BTreeMap::new();
    for p in block {
        let (n, sum, variance) = by_level.entry(p.level).or_default();
        (*n, *sum, *variance) = (*n + 1.0, *sum + p.mean, *variance + p.variance);
    }
    let mean = |(n, sum, _): &(f64, f64, f64)| sum / n;
    let middle = by_level.values().map(mean).sum::<f64>() / by_level.len() as f64;
    let this = by_level.get(&level)?;
    let relative = if middle == 0.0 { 0.0 } else { mean(this) / middle - 1.0 };
    let error = if middle == 0.0 { 0.0 } else { this.2 / (this.0 * this.0) / (middle * middle) };
    Some((mean(this), relative, error))
}

/// The values of an axis in the order of their size, or bins of them; and the place of every configuration's.
fn levels(study: &Study, axis: usize) -> (Vec<Cell>, Vec<usize>) {
    let cells: Vec<&Cell> = study.configurations.iter().map(|c| &c.values[axis]).collect();
    let mut distinct: Vec<(Option<f64>, String, &Cell)> = cells.iter().map(|c| (c.number(), c.to_string(), *c)).collect();
    // Numbers by size, words as they come.
    if distinct.iter().all(|d| d.0.is_some()) {
        distinct.sort_by(|a, b| a.0.partial_cmp(&b.0).expect("cells hold no NaN").then_with(|| a.1.cmp(&b.1)));
    }
    let mut seen = std::collections::BTreeSet::new();
    distinct.retain(|d| seen.insert(d.1.clone()));
    let place: BTreeMap<&str, usize> = distinct.iter().enumerate().map(|(i, d)| (d.1.as_str(), i)).collect();
    let of: Vec<usize> = cells.iter().map(|c| place[c.to_string().as_str()]).collect();
    if distinct.len() <= VALUES_UP_TO || distinct.iter().any(|d| d.0.is_none()) {
        return (distinct.iter().map(|d| d.2.clone()).collect(), of);
    }
    let bin = |value: usize| value * BINS / distinct.len();
    let label = |b: usize| {
        let members: Vec<usize> = (0..distinct.len()).filter(|&v| bin(v) == b).collect();
        Cell::from(format!("{} to {}", distinct[members[0]].1, distinct[members[members.len() - 1]].1))
    };
    ((0..BINS).map(label).collect(), of.into_iter().map(bin).collect())
}

/// Effects as a table, a row a value.
pub fn section(study: &Study, metric: &Metric, effects: &[AxisEffect]) -> Section {
    let columns = ["axis", "value", "configurations", "mean", "effect %", "error %", "best", "best dir", "best exp_id"];
    let columns = columns.into_iter().map(|c| match c {
        "mean" => format!("mean {}", metric.name),
        "best" => format!("best {}", metric.name),
        other => other.to_string(),
    });
    let several = study.runs.len() > 1;
    let mut section = Section::new("axis", format!("axes by their effect on {}", metric.name), columns.filter(|c| several || c != "best dir"));
    for effect in effects {
        for level in &effect.levels {
            let mut row: Vec<Cell> = vec![
                effect.axis.as_str().into(),
                level.label.clone(),
                (level.configurations as u64).into(),
                level.mean.into(),
                level.effect.map(|e| e * 100.0).into(),
                (level.error * 100.0).into(),
                level.best.map(|b| b.1).into(),
            ];
            let best = level.best.map(|b| &study.configurations[b.0]);
            row.extend(several.then(|| best.map(|c| study.dir(c.run)).into()));
            row.push(best.map(|c| c.exp_id).into());
            section.rows.push(row);
        }
    }
    let plain: Vec<&str> = effects.iter().filter(|e| e.blocks == 0).map(|e| e.axis.as_str()).collect();
    if !plain.is_empty() {
        section
            .notes
            .push(format!("no experiments differ in one of these alone, so plain means are compared, which other axes may explain: {}", plain.join(", ")));
    }
    if !effects.is_empty() {
        section.notes.push("effect: distance from the mean over the axis' values, all else equal; error: its standard error over replicas".into());
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};

    fn study(axes: &[&str], rows: &[(&[&str], u64)]) -> (Folder, Study) {
        let rows = rows.iter().enumerate().map(|(i, (values, ps))| ok(i as u64, &format!("k{i}"), values, *ps)).collect();
        let folder = Folder::new(axes, rows);
        let study = Study::open(&[folder.path()]).unwrap();
        (folder, study)
    }

    #[test]
    fn effects_are_taken_where_all_else_is_equal() {
        // The lone experiment with 400 and `slow` would turn the plain means around.
        let rows: [(&[&str], u64); 5] =
            [(&["100", "fast"], 120_000), (&["400", "fast"], 80_000), (&["400", "slow"], 900_000), (&["800", "fast"], 40_000), (&["800", "slow"], 500_000)];
        let (_folder, study) = study(&["topology.link_gbps", "transport.cc"], &rows);
        let effects = effects(&study, &Metric::of("makespan_ns"));
        assert_eq!(effects.iter().map(|e| (e.axis.as_str(), e.blocks)).collect::<Vec<_>>(), [("transport.cc", 2), ("topology.link_gbps", 1)]);
        let rates: Vec<f64> = effects[1].levels.iter().map(|l| l.effect.unwrap()).collect();
        assert!((rates[0] - 0.5).abs() < 1e-12 && rates[1].abs() < 1e-12 && (rates[2] + 0.5).abs() < 1e-12, "{rates:?}");
        let best = effects[0].levels.iter().map(|l| l.best.unwrap().0).collect::<Vec<_>>();
        assert_eq!(best, [3, 4]);
    }

    #[test]
    fn zipped_axes_are_said_to_be_confounded() {
        let (_folder, study) = study(&["topology.link_gbps", "transport.cc"], &[(&["100", "a"], 2_000), (&["400", "b"], 1_000)]);
        let effects = effects(&study, &Metric::of("makespan_ns"));
        assert!(effects.iter().all(|e| e.blocks == 0));
        assert!(section(&study, &Metric::of("makespan_ns"), &effects).notes[0].contains("topology.link_gbps, transport.cc"));
    }

    #[test]
    fn many_numbers_become_bins() {
        let values: Vec<String> = (0..40).map(|i| (i * 10).to_string()).collect();
        let texts: Vec<[&str; 1]> = values.iter().map(|v| [v.as_str()]).collect();
        let rows: Vec<(&[&str], u64)> = texts.iter().enumerate().map(|(i, t)| (t.as_slice(), 1_000 + i as u64)).collect();
        let (_folder, study) = study(&["topology.link_gbps"], &rows);
        let effects = effects(&study, &Metric::of("makespan_ns"));
        assert_eq!(effects[0].levels.iter().map(|l| l.label.to_string()).collect::<Vec<_>>(), ["0 to 90", "100 to 190", "200 to 290", "300 to 390"]);
        assert_eq!(effects[0].levels[0].configurations, 10);
    }

    #[test]
    fn replicas_give_error_bars() {
        let rows = vec![ok(0, "a", &["x"], 90_000), ok(1, "a", &["x"], 110_000), ok(2, "b", &["y"], 200_000), ok(3, "b", &["y"], 200_000)];
        let folder = Folder::new(&["transport.cc"], rows);
        let study = Study::open(&[folder.path()]).unwrap();
        let effects = effects(&study, &Metric::of("makespan_ns"));
        // Mean 100 and 200, middle 150; deviation of 90 and 110 is sqrt(200), its error of the mean 10.
        assert!((effects[0].levels[0].error - 10.0 / 150.0).abs() < 1e-12 && effects[0].levels[1].error == 0.0);
    }
}
