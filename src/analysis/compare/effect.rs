//! Effect of each axis: its main effect, and the best configuration of each of its levels.
//!
//! Layer: compare. It passes a study's configurations to `fit`, which defines an effect, and makes a table of the results.

use super::fit::{AxisEffect, Grid, LEVELS_UP_TO, Point, Scale};
use super::levels::Levels;
use super::unmodelled::Unmodelled;
use super::{RankingMetric, Sample, Section, Study, fit};
use hyperfold_results::Cell;

/// An axis and its effects.
#[derive(Clone, Debug)]
pub struct MeasuredAxis {
    /// Effects of the axis. `effect.axis` is its index among the study's axes.
    pub effect: AxisEffect,
    /// Names of its levels.
    pub names: Vec<String>,
    /// For each level, the mean over its configurations, whatever their values on other axes.
    pub means: Vec<f64>,
    /// For each level, the best configuration by its index, and its mean.
    pub best: Vec<Option<(usize, f64)>>,
}

/// Effects of all axes that say how work is done, not which work.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Axes, strongest effect first.
    pub axes: Vec<MeasuredAxis>,
    /// Axes with too many levels for a table.
    pub left_out: Vec<String>,
    /// Axes that were not simulated.
    pub unmodelled: Unmodelled,
}

/// Effect of every axis that takes several values and says how work is done.
pub fn effects(study: &Study, metric: &RankingMetric) -> Effects {
    let samples: Vec<Option<Sample>> = study.configurations.iter().map(|c| study.sample(c, &metric.name)).collect();
    let levels_of =
        |axis: usize| Levels::of(&study.configurations.iter().map(|c| c.values[axis].to_string()).collect::<Vec<_>>());
    let axes: Vec<Levels> = (0..study.axes.len()).map(levels_of).collect();
    let group_of = study.group_of();
    // Folders do not divide blocks, because a difference between folders is an axis of its own.
    let point = |index: usize| Point {
        levels: axes.iter().map(|a| a.level[index]).collect(),
        values: axes.iter().map(|a| a.value[index]).collect(),
        group: group_of[index],
    };
    let n = study.configurations.len();
    let grid = Grid::of(axes.iter().map(|a| a.names.len()).collect(), (0..n).map(point).collect());
    let tries = |axis: usize| !study.asks(&study.axes[axis]);
    // What a value changes is seen only where its axis was simulated.
    let unmodelled = study.unmodelled();
    let shows = |axis: usize, c: usize| unmodelled.shows(axis, c);
    let found = fit::effects(&grid, &samples, 0..n, shows).into_iter().filter(|e| tries(e.axis));
    let of_level = |axis: usize, l: usize| -> Vec<(usize, f64)> {
        let members = (0..n).filter(|&c| axes[axis].level[c] as usize == l && shows(axis, c));
        members.filter_map(|c| Some((c, samples[c]?.mean))).collect()
    };
    let axis = |effect: AxisEffect| {
        let names = &axes[effect.axis].names;
        let members: Vec<Vec<(usize, f64)>> = (0..names.len()).map(|l| of_level(effect.axis, l)).collect();
        // Among equally good configurations, the first.
        let best = |members: &Vec<(usize, f64)>| members.iter().copied().min_by(|a, b| metric.order(a.1, b.1));
        let mean = |members: &Vec<(usize, f64)>| members.iter().map(|m| m.1).sum::<f64>() / members.len() as f64;
        MeasuredAxis {
            effect,
            names: names.clone(),
            means: members.iter().map(mean).collect(),
            best: members.iter().map(best).collect(),
        }
    };
    let left_out =
        (0..axes.len()).filter(|&a| tries(a) && axes[a].names.len() > LEVELS_UP_TO).map(|a| study.axes[a].clone());
    let (left_out, axes) = (left_out.collect(), found.map(axis).collect());
    Effects { left_out, axes, unmodelled }
}

/// Table of effects, one row per level.
pub fn section(study: &Study, metric: &RankingMetric, effects: &Effects) -> Section {
    let relative = effects.axes.iter().all(|a| a.effect.scale == Scale::Ratio);
    let with_unit = |word: &str| if relative { format!("{word} %") } else { format!("{word} {}", metric.name) };
    let several = study.runs.len() > 1;
    let mut columns = ["axis", "value", "configurations"].map(String::from).to_vec();
    columns.push(format!("mean {}", metric.name));
    columns.extend(["effect", "low", "high"].map(with_unit));
    columns.push(format!("best {}", metric.name));
    columns.extend(several.then(|| "best dir".into()));
    columns.push("best exp_id".into());
    let mut section = Section::new("axis", format!("axes by their effect on {}", metric.name), columns);
    let shown = |v: f64| Cell::from(if relative { v * 100.0 } else { v });
    let unmodelled = &effects.unmodelled;
    let simulated = effects.axes.iter().filter(|a| unmodelled.everywhere(a.effect.axis).is_none());
    let (negligible, told): (Vec<&MeasuredAxis>, Vec<&MeasuredAxis>) =
        simulated.partition(|a| a.effect.is_negligible());
    for axis in told {
        for level in &axis.effect.levels {
            let mut row: Vec<Cell> = vec![
                study.axes[axis.effect.axis].as_str().into(),
                axis.names[level.level].as_str().into(),
                (level.n as u64).into(),
                axis.means[level.level].into(),
                shown(level.effect),
            ];
            row.extend(level.interval.map_or([Cell::Empty, Cell::Empty], |(low, high)| [shown(low), shown(high)]));
            let best = axis.best[level.level];
            row.push(best.map(|b| b.1).into());
            let best = best.map(|b| &study.configurations[b.0]);
            row.extend(several.then(|| best.map(|c| study.dir(c.run)).into()));
            row.push(best.map(|c| c.exp_id).into());
            section.rows.push(row);
        }
    }
    for axis in effects.axes.iter().map(|a| a.effect.axis) {
        if let Some(why) = unmodelled.everywhere(axis) {
            section.notes.push(format!("not simulated, so nothing is said of it: {} ({why})", study.axes[axis]));
        }
    }
    section.notes.extend(study.not_compared().map(|(key, why)| format!("not compared: {key} ({why})")));
    let partial: Vec<&str> = effects
        .axes
        .iter()
        .filter(|a| unmodelled.is_partial(a.effect.axis))
        .map(|a| study.axes[a.effect.axis].as_str())
        .collect();
    if !partial.is_empty() {
        section.notes.push(format!("taken only over ways of simulating that simulate it: {}", partial.join(", ")));
    }
    if !negligible.is_empty() {
        let names: Vec<&str> = negligible.iter().map(|a| study.axes[a.effect.axis].as_str()).collect();
        section.notes.push(format!("does not matter here (below 0.01 % all else equal): {}", names.join(", ")));
    }
    let plain: Vec<&str> =
        effects.axes.iter().filter(|a| !a.effect.matched).map(|a| study.axes[a.effect.axis].as_str()).collect();
    if !plain.is_empty() {
        let plain = plain.join(", ");
        section.notes.push(format!("too few experiments differ in one of these alone, so plain means are compared, which other axes may explain: {plain}"));
    }
    if !effects.left_out.is_empty() {
        section
            .notes
            .push(format!("left out, having more than {LEVELS_UP_TO} values: {}", effects.left_out.join(", ")));
    }
    if !effects.axes.is_empty() {
        let unit = if relative { "in per cent of it (logarithms are averaged)" } else { "in its unit" };
        section.notes.push(format!(
            "effect: distance from the average of the axis' values, all else equal, averaged over all values of the other axes, {unit}; low and high: its 95 % interval over replicas, where there are any; best: with the other axes at their best"
        ));
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};
    use hyperfold_results::Finished;

    fn study(axes: &[&str], rows: &[(&[&str], u64)]) -> (Folder, Study) {
        let rows =
            rows.iter().enumerate().map(|(i, (values, ps))| ok(i as u64, &format!("k{i}"), values, *ps)).collect();
        let folder = Folder::new(axes, rows);
        let study = Study::open(&[folder.path()]).unwrap();
        (folder, study)
    }

    #[test]
    fn effects_are_taken_where_all_else_is_equal() {
        // `slow` takes eight times as long and did not run with 100, so plain means would make 100 the best.
        let rows: [(&[&str], u64); 5] = [
            (&["100", "fast"], 160_000),
            (&["400", "fast"], 80_000),
            (&["400", "slow"], 640_000),
            (&["800", "fast"], 40_000),
            (&["800", "slow"], 320_000),
        ];
        let (_folder, study) = study(&["topology.link_gbps", "transport.cc"], &rows);
        let axes = effects(&study, &RankingMetric::of("makespan_ns")).axes;
        assert_eq!(
            axes.iter().map(|a| study.axes[a.effect.axis].as_str()).collect::<Vec<_>>(),
            ["transport.cc", "topology.link_gbps"]
        );
        assert!(axes.iter().all(|a| a.effect.matched));
        let rates: Vec<f64> = axes[1].effect.levels.iter().map(|l| l.effect).collect();
        assert!((rates[0] - 1.0).abs() < 1e-6 && rates[1].abs() < 1e-6 && (rates[2] + 0.5).abs() < 1e-6, "{rates:?}");
        assert_eq!((axes[0].best[0], axes[0].best[1]), (Some((3, 40.0)), Some((4, 320.0))));
        assert_eq!(axes[1].means, [160.0, 360.0, 180.0], "of whatever there is");
    }

    #[test]
    fn axes_that_do_not_matter_are_said_once() {
        let rows: [(&[&str], u64); 4] = [
            (&["fat-tree", "100"], 100_000_000),
            (&["clos", "100"], 100_009_000),
            (&["fat-tree", "400"], 50_000_000),
            (&["clos", "400"], 50_004_000),
        ];
        let (_folder, study) = study(&["topology.kind", "topology.link_gbps"], &rows);
        let metric = RankingMetric::of("makespan_ns");
        let section = section(&study, &metric, &effects(&study, &metric));
        let told: Vec<String> = section.rows.iter().map(|row| row[0].to_string()).collect();
        assert_eq!(told, ["topology.link_gbps", "topology.link_gbps"]);
        let said = "does not matter here (below 0.01 % all else equal): topology.kind";
        assert!(section.notes.iter().any(|n| n == said), "{:?}", section.notes);
    }

    /// At flow level no congestion control acts, so its effect is that of packets.
    #[test]
    fn effects_are_taken_where_the_axis_was_simulated() {
        let at_level = |mut f: Finished, hops: Option<u64>| {
            (f.record.packet_hops, f.record.max_link_utilisation) = (hops, Some(hyperfold_results::Micro(500_000)));
            f
        };
        let rows = vec![
            at_level(ok(0, "a", &["packet", "hpcc"], 100_000), Some(9)),
            at_level(ok(1, "b", &["packet", "dcqcn"], 200_000), Some(9)),
            at_level(ok(2, "c", &["flow", "hpcc"], 90_000), None),
            at_level(ok(3, "d", &["flow", "dcqcn"], 90_000), None),
        ];
        let folder = Folder::new(&["fidelity.mode", "transport.cc"], rows);
        let study = Study::open(&[folder.path()]).unwrap();
        let metric = RankingMetric::of("makespan_ns");
        let effects = effects(&study, &metric);
        let cc = &effects.axes[0];
        assert_eq!((study.axes[cc.effect.axis].as_str(), &cc.means), ("transport.cc", &vec![100.0, 200.0]));
        assert!((cc.effect.span - 1.0).abs() < 1e-6, "twice as long by packets: {cc:?}");
        let section = section(&study, &metric, &effects);
        let said = "taken only over ways of simulating that simulate it: transport.cc";
        assert!(section.notes.iter().any(|n| n == said), "{:?}", section.notes);
    }

    #[test]
    fn zipped_axes_are_said_to_be_confounded() {
        let (_folder, study) =
            study(&["topology.link_gbps", "transport.cc"], &[(&["100", "a"], 2_000), (&["400", "b"], 1_000)]);
        let effects = effects(&study, &RankingMetric::of("makespan_ns"));
        assert!(effects.axes.iter().all(|a| !a.effect.matched));
        assert!(
            section(&study, &RankingMetric::of("makespan_ns"), &effects).notes[0]
                .contains("topology.link_gbps, transport.cc")
        );
    }

    #[test]
    fn many_numbers_become_bins() {
        let values: Vec<String> = (0..40).map(|i| (i * 10).to_string()).collect();
        let texts: Vec<[&str; 1]> = values.iter().map(|v| [v.as_str()]).collect();
        let rows: Vec<(&[&str], u64)> =
            texts.iter().enumerate().map(|(i, t)| (t.as_slice(), 1_000 + i as u64)).collect();
        let (_folder, study) = study(&["topology.link_gbps"], &rows);
        let axis = &effects(&study, &RankingMetric::of("makespan_ns")).axes[0];
        assert_eq!((axis.names.len(), axis.names[0].as_str(), axis.names[7].as_str()), (8, "0 to 40", "350 to 390"));
        assert_eq!(axis.effect.levels[0].n, 5);
    }

    #[test]
    fn replicas_give_error_bars() {
        let rows = vec![
            ok(0, "a", &["x"], 90_000),
            ok(1, "a", &["x"], 110_000),
            ok(2, "b", &["y"], 180_000),
            ok(3, "b", &["y"], 220_000),
        ];
        let folder = Folder::new(&["transport.cc"], rows);
        let study = Study::open(&[folder.path()]).unwrap();
        let metric = RankingMetric::of("makespan_ns");
        let section = section(&study, &metric, &effects(&study, &metric));
        assert_eq!(section.columns[4..7], ["effect %", "low %", "high %"]);
        // 100 and 200, whose middle is 141.4: 29.3 % below and 41.4 % above.
        let number = |row: usize, column: usize| section.rows[row][column].number().unwrap();
        assert!((number(0, 4) + 29.289).abs() < 1e-3 && (number(1, 4) - 41.421).abs() < 1e-3);
        // Relative deviations of sqrt(0.02) make a variance of 0.02; t of two degrees of freedom is 4.303.
        let half = 4.303 * (0.02_f64 / 2.0 / 2.0).sqrt();
        assert!((number(0, 5) - 100.0 * (0.5_f64.sqrt() * (-half).exp() - 1.0)).abs() < 1e-6);
        assert!((number(0, 6) - 100.0 * (0.5_f64.sqrt() * half.exp() - 1.0)).abs() < 1e-6);
    }
}
