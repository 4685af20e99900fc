//! Main effect of each axis on a metric, with error bars from replicas.
//!
//! Layer: compare. Tables and the report's page use it alike. An effect is a level's distance from the average of all levels of its axis, everything else
//! equal. It is relative if all values are positive (logarithms are averaged), else in the metric's unit. Everything else is equal within a *block*:
//! configurations that differ in this axis alone. Levels and blocks are fitted together (least squares), so that holes in the grid (experiments that ran out
//! of memory, or that a constraint left out) favour no level. It ranks nothing.

use std::collections::BTreeMap;

use super::spread::{Pooled, t95};
use super::{Sample, TIE_SHARE};

/// Unit of effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Relative: 0.1 means ten per cent above the average.
    Ratio,
    /// Differences in the metric's unit.
    Difference,
}

/// Effect of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelEffect {
    /// Index of the level on its axis.
    pub level: usize,
    /// Number of configurations with this level.
    pub n: usize,
    /// The effect, on the scale of its axis: [`AxisEffect::scale`].
    pub effect: f64,
    /// The 95 % interval by replicas. `None`: nothing was repeated, or all repeats gave the same value.
    pub interval: Option<(f64, f64)>,
    /// Smallest and largest effect in any block: how much it depends on the other axes.
    pub range: (f64, f64),
}

/// Effects of the levels of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisEffect {
    /// Index of the axis among those of the study.
    pub axis: usize,
    /// Whether effects are ratios or differences.
    pub scale: Scale,
    /// Whether there are blocks that differ in this axis alone. If not, effects are differences of averages, which other axes may explain.
    pub matched: bool,
    /// Effects of the levels that have a configuration, in the axis's order.
    pub levels: Vec<LevelEffect>,
    /// Distance between the smallest and the largest effect: the length of the bar in a tornado chart.
    pub span: f64,
}

impl AxisEffect {
    /// Whether all of its levels are within a tie of the average in every block, so that the axis does not matter here.
    pub fn is_negligible(&self) -> bool {
        let limit = match self.scale {
            Scale::Ratio => TIE_SHARE,
            Scale::Difference => 0.0,
        };
        self.matched && self.levels.iter().all(|l| l.range.0.abs() <= limit && l.range.1.abs() <= limit)
    }
}

/// One observation: its block, its level, its value `y`, and one over the number of its replicas.
struct Seen {
    block: usize,
    level: usize,
    y: f64,
    per_replica: f64,
}

/// Maximum number of times that the fit averages. A balanced grid needs two.
const MAX_AVERAGES: usize = 200;
/// The fit stops when averages move effects by less than this, in logarithms or relative to the largest value.
const STILL: f64 = 1e-9;
/// Largest number of levels of an axis whose effects are shown. A list of files, for example, has as many levels as there are experiments.
pub const LEVELS_UP_TO: usize = 64;

/// A configuration as a point in the space of the axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Level on each axis.
    pub levels: Vec<u32>,
    /// Index of its value on each axis, among the values that occur. Equal to the level if values are not binned.
    pub values: Vec<u32>,
    /// Index of the question that it answers.
    pub group: usize,
}

/// Configurations as points, and their blocks: which of them differ in one axis alone.
pub struct Grid {
    points: Vec<Point>,
    /// Number of levels of each axis.
    n_levels: Vec<usize>,
    /// For each axis, the block of each configuration.
    blocks: Vec<Vec<usize>>,
}

impl Grid {
    /// Makes the grid of all configurations. `n_levels` is the number of levels of each axis.
    pub fn of(n_levels: Vec<usize>, points: Vec<Point>) -> Grid {
        let of_axis = |axis: usize| {
            let mut blocks: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
            let mut block = |values: &[u32]| {
                let fresh = blocks.len();
                *blocks.entry([&values[..axis], &values[axis + 1..]].concat()).or_insert(fresh)
            };
            points.iter().map(|p| block(&p.values)).collect()
        };
        let blocks = (0..n_levels.len()).map(of_axis).collect();
        Grid { points, n_levels, blocks }
    }
}

/// Effects of every axis that has at least two levels among the configurations `chosen`, largest span first. `samples` has an entry for each configuration of
/// the grid. `shows` says of an axis and a configuration whether it shows effects of the axis. Axes with more than [`LEVELS_UP_TO`] levels are left out.
pub fn effects(
    grid: &Grid,
    samples: &[Option<Sample>],
    chosen: impl IntoIterator<Item = usize>,
    shows: impl Fn(usize, usize) -> bool,
) -> Vec<AxisEffect> {
    let samples: Vec<(usize, Sample)> = chosen.into_iter().filter_map(|c| Some((c, samples[c]?))).collect();
    let ratio = samples.iter().all(|s| s.1.mean > 0.0);
    let scale = if ratio { Scale::Ratio } else { Scale::Difference };
    // The standard deviation of a logarithm is the relative standard deviation.
    let pooled = Pooled::over(samples.iter().map(|s| &s.1), |s| if ratio { s.mean } else { 1.0 });
    let shown = (0..grid.n_levels.len()).filter(|&a| grid.n_levels[a] <= LEVELS_UP_TO);
    let effect = |axis: usize| {
        let samples: Vec<(usize, Sample)> = samples.iter().copied().filter(|(c, _)| shows(axis, *c)).collect();
        of_axis(grid, &samples, axis, scale, &pooled)
    };
    let mut found: Vec<AxisEffect> = shown.filter_map(effect).collect();
    found.sort_by(|a, b| b.span.total_cmp(&a.span));
    found
}

fn of_axis(grid: &Grid, samples: &[(usize, Sample)], axis: usize, scale: Scale, pooled: &Pooled) -> Option<AxisEffect> {
    let value = |s: &Sample| {
        if scale == Scale::Ratio { libm::log(s.mean) } else { s.mean }
    };
    let level = |c: usize| grid.points[c].levels[axis] as usize;
    let seen = |block: &dyn Fn(usize) -> usize| -> Vec<Seen> {
        samples
            .iter()
            .map(|(c, s)| Seen { block: block(*c), level: level(*c), y: value(s), per_replica: 1.0 / s.n as f64 })
            .collect()
    };
    let mut present: Vec<bool> = vec![false; grid.n_levels[axis]];
    samples.iter().for_each(|(c, _)| present[level(*c)] = true);
    if present.iter().filter(|p| **p).count() < 2 {
        return None;
    }
    let by_block = seen(&|c| grid.blocks[axis][c]);
    let matched = linked(&by_block, &present);
    // Without blocks, all configurations that answer the same question form one block.
    let observations = if matched { by_block } else { seen(&|c| grid.points[c].group) };
    Some(fit(axis, scale, matched, &observations, &present, pooled))
}

/// Whether blocks connect all levels with each other, so that all effects are determined.
fn linked(seen: &[Seen], present: &[bool]) -> bool {
    let mut parents: Vec<usize> = (0..present.len()).collect();
    fn root(parents: &[usize], mut level: usize) -> usize {
        while parents[level] != level {
            level = parents[level];
        }
        level
    }
    let mut first: BTreeMap<usize, usize> = BTreeMap::new();
    for s in seen {
        let first_level = *first.entry(s.block).or_insert(s.level);
        let (a, b) = (root(&parents, first_level), root(&parents, s.level));
        parents[a.max(b)] = a.min(b);
    }
    let mut roots = (0..present.len()).filter(|&l| present[l]).map(|l| root(&parents, l));
    let one = roots.next();
    roots.all(|r| Some(r) == one)
}

/// Fits `y = block + level` by alternating averages, which converges to the least squares of this additive model.
fn fit(axis: usize, scale: Scale, matched: bool, seen: &[Seen], present: &[bool], pooled: &Pooled) -> AxisEffect {
    let n_blocks = seen.iter().map(|s| s.block + 1).max().unwrap_or(0);
    let (mut level, mut block) = (vec![0.0_f64; present.len()], vec![0.0_f64; n_blocks]);
    let mut n = vec![0_usize; present.len()];
    seen.iter().for_each(|s| n[s.level] += 1);
    let levels = n.iter().filter(|n| **n > 0).count() as f64;
    let scale_of = if scale == Scale::Ratio { 1.0 } else { seen.iter().map(|s| s.y.abs()).fold(0.0, f64::max) };
    for _ in 0..MAX_AVERAGES {
        block = averages(seen.iter().map(|s| (s.block, s.y - level[s.level])), n_blocks);
        let mut next = averages(seen.iter().map(|s| (s.level, s.y - block[s.block])), present.len());
        let middle = next.iter().sum::<f64>() / levels;
        next.iter_mut().zip(&n).filter(|(_, n)| **n > 0).for_each(|(e, _)| *e -= middle);
        let moved = next.iter().zip(&level).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        level = next;
        if moved <= STILL * scale_of {
            break;
        }
    }
    block = averages(seen.iter().map(|s| (s.block, s.y - level[s.level])), block.len());
    // Converts logarithms back to relative effects.
    let shown = |e: f64| {
        if scale == Scale::Ratio { libm::expm1(e) } else { e }
    };
    let each = |l: usize| {
        let mine = || seen.iter().filter(|s| s.level == l);
        let in_blocks = || mine().map(|s| s.y - block[s.block]);
        let range = (in_blocks().fold(f64::INFINITY, f64::min), in_blocks().fold(f64::NEG_INFINITY, f64::max));
        let interval = (pooled.variance > 0.0).then(|| {
            // The variance of the average of n configurations, less its share in the average of all levels.
            let shares: f64 = mine().map(|s| s.per_replica).sum();
            let variance = pooled.variance * shares / (n[l] * n[l]) as f64 * (1.0 - 1.0 / levels);
            let half = t95(pooled.freedom as f64) * variance.sqrt();
            (shown(level[l] - half), shown(level[l] + half))
        });
        LevelEffect { level: l, n: n[l], effect: shown(level[l]), interval, range: (shown(range.0), shown(range.1)) }
    };
    let levels: Vec<LevelEffect> = (0..present.len()).filter(|&l| n[l] > 0).map(each).collect();
    let ends = |f: fn(f64, f64) -> f64, start: f64| seen.iter().map(|s| level[s.level]).fold(start, f);
    let (low, high) = (ends(f64::min, f64::INFINITY), ends(f64::max, f64::NEG_INFINITY));
    AxisEffect { axis, scale, matched, levels, span: shown(high - low) }
}

/// Average of the values at each index, and 0 at an index without values.
fn averages(values: impl Iterator<Item = (usize, f64)>, n: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0_usize); n];
    for (index, value) in values {
        sums[index].0 += value;
        sums[index].1 += 1;
    }
    sums.into_iter().map(|(sum, n)| if n == 0 { 0.0 } else { sum / n as f64 }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::compare::levels::Levels;

    /// Effects of a table of `config_key`, axes and a result, a line a replica; axes in the order of the heading.
    fn effects_of(text: &str) -> Vec<AxisEffect> {
        let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|l| l.split(',').collect()).collect();
        let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        rows.iter().for_each(|r| values.entry(r[0]).or_default().push(r[r.len() - 1].parse().unwrap()));
        let mut once = std::collections::BTreeSet::new();
        let first: Vec<&Vec<&str>> = rows.iter().filter(|r| once.insert(r[0])).collect();
        let axes: Vec<Levels> =
            (1..first[0].len() - 1).map(|a| Levels::of(&first.iter().map(|r| r[a]).collect::<Vec<_>>())).collect();
        let point = |index: usize| Point {
            levels: axes.iter().map(|a| a.level[index]).collect(),
            values: axes.iter().map(|a| a.value[index]).collect(),
            group: 0,
        };
        let samples: Vec<Option<Sample>> = first.iter().map(|r| Sample::of(&values[r[0]])).collect();
        effects(
            &Grid::of(axes.iter().map(|a| a.names.len()).collect(), (0..first.len()).map(point).collect()),
            &samples,
            0..first.len(),
            |_, _| true,
        )
    }

    /// A grid of `a` (1, 2, 4 times as long) and `b` (1, 3 times), less the rows that `keep` refuses.
    fn grid(replicas: &[f64], keep: impl Fn(usize, usize) -> bool) -> String {
        let mut text = String::from("config_key,t.a,t.b,makespan_ns");
        for (i, a) in [1.0, 2.0, 4.0].iter().enumerate() {
            for (j, b) in [1.0, 3.0].iter().enumerate().filter(|j| keep(i, j.0)) {
                for wobble in replicas {
                    text += &format!("\nk{i}{j},a{i},b{j},{}", 1000.0 * a * b * wobble);
                }
            }
        }
        text
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn a_grid_gives_back_its_factors() {
        let e = effects_of(&grid(&[1.0], |_, _| true));
        assert_eq!(e.iter().map(|e| e.axis).collect::<Vec<_>>(), [0, 1], "largest span first");
        assert!(near(e[0].span, 3.0) && near(e[1].span, 2.0), "four times is three above once: {e:?}");
        // The middle of 1, 2 and 4 in logarithms is 2.
        let a: Vec<f64> = e[0].levels.iter().map(|l| l.effect).collect();
        assert!(near(a[0], -0.5) && near(a[1], 0.0) && near(a[2], 1.0), "{a:?}");
        assert!(e[0].matched && e[0].levels.iter().all(|l| l.interval.is_none() && l.n == 2));
        assert!(near(e[0].levels[2].range.0, 1.0) && near(e[0].levels[2].range.1, 1.0), "the factors do not interact");
    }

    #[test]
    fn holes_favour_no_level() {
        // a2 ran only with the slow b1: its plain average would be far too long.
        let e = effects_of(&grid(&[1.0], |a, b| !(a == 2 && b == 0)));
        let a: Vec<f64> = e.iter().find(|e| e.axis == 0).unwrap().levels.iter().map(|l| l.effect).collect();
        assert!(near(a[0], -0.5) && near(a[1], 0.0) && near(a[2], 1.0), "{a:?}");
    }

    #[test]
    fn replicas_make_error_bars() {
        let e = effects_of(&grid(&[0.99, 1.0, 1.01], |_, _| true));
        let level = &e[0].levels[1];
        let (low, high) = level.interval.unwrap();
        // s = 1 %, 3 replicas, 2 configurations, less a third; t of 12 degrees of freedom.
        let half = 2.179 * (0.0001_f64 / 3.0 / 2.0 * (2.0 / 3.0)).sqrt();
        assert!((high - half).abs() < 2e-4 && (low + half).abs() < 2e-4, "{low} {high} {half}");
        let exact = effects_of(&grid(&[1.0, 1.0], |_, _| true));
        assert_eq!(exact[0].levels[1].interval, None, "replicas that nothing varies in say nothing of the error");
    }

    #[test]
    fn what_can_be_zero_is_measured_in_its_unit() {
        let e = effects_of("config_key,t.a,makespan_ns\nk0,x,0\nk1,y,10");
        assert_eq!((e[0].scale, e[0].span, e[0].levels[1].effect), (Scale::Difference, 10.0, 5.0));
    }

    #[test]
    fn an_axis_of_many_values_does_not_hide_the_others() {
        let mut text = String::from("config_key,t.a,t.eta,makespan_ns");
        for eta in 0..20 {
            // The longer half of the etas ran with x only.
            for (a, factor) in [("x", 1.0), ("y", 3.0)].iter().take(if eta < 10 { 2 } else { 1 }) {
                text += &format!("\nk{eta}{a},{a},{eta},{}", factor * if eta < 10 { 100.0 } else { 1000.0 });
            }
        }
        let e = effects_of(&text);
        let a = e.iter().find(|e| e.axis == 0).unwrap();
        assert!(a.matched && near(a.span, 2.0), "{a:?}");
        assert_eq!(e.iter().find(|e| e.axis == 1).unwrap().levels.len(), 8);
    }

    #[test]
    fn without_blocks_averages_are_compared_and_it_is_said() {
        let text = "config_key,t.a,t.b,makespan_ns\nk0,x,u,10\nk1,y,v,20\nk2,y,w,40";
        let e = effects_of(text);
        assert!(e.iter().all(|e| !e.matched));
        assert!(near(e.iter().find(|e| e.axis == 0).unwrap().span, (800.0f64).sqrt() / 10.0 - 1.0));
    }
}
