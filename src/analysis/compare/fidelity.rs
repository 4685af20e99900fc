//! Compares experiments that were simulated both as packets and as flows: how far flow level is off, and what packets met there.
//!
//! Layer: compare. It pairs configurations that differ only in `fidelity.mode`. That can be an axis, or a difference between folders.

use std::collections::BTreeMap;

use super::unmodelled::POLICY;
use super::{RankingMetric, Section, Study, StudyConfiguration, unmodelled};
use hyperfold_results::{Cell, ReadError};

const MODE: &str = "fidelity.mode";
/// Slowdown of one flow in a hundred above which sharing matters. Our choice.
const SHARES: f64 = 1.05;

/// Worst thing that packets met where flow level may mislead. Variants are in order of severity, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Met {
    Losses,
    Reordering,
    Pauses,
    Incast,
    Collision,
    Marks,
    Nothing,
}

impl Met {
    fn text(self) -> &'static str {
        match self {
            Met::Losses => "losses",
            Met::Reordering => "reordering",
            Met::Pauses => "pauses",
            Met::Incast => "incast",
            Met::Collision => "collision",
            Met::Marks => "marks",
            Met::Nothing => "no contention",
        }
    }
}

/// A configuration simulated as packets and as flows.
struct LevelPair {
    packet: usize,
    flow: usize,
    met: Met,
    /// Means of the metric, with packets and with flows.
    values: [f64; 2],
}

impl LevelPair {
    fn off(&self) -> f64 {
        (self.values[1] - self.values[0]) / self.values[0]
    }
}

/// Table of the pairs, largest difference first. `None`: no experiment was simulated at both levels.
///
/// # Errors
/// `stats.csv` cannot be read.
pub fn section(study: &Study, metric: &RankingMetric, top: usize) -> Result<Option<Section>, ReadError> {
    let Some(mode) = study.axes.iter().position(|a| a == MODE) else { return Ok(None) };
    let mut pairs = pairs(study, metric, mode);
    if pairs.is_empty() {
        return Ok(None);
    }
    pairs.sort_by(|a, b| b.off().abs().total_cmp(&a.off().abs()).then_with(|| a.packet.cmp(&b.packet)));
    let seconds = seconds(study)?;
    let mut columns: Vec<String> = vec!["exp_id packet".into(), "exp_id flow".into()];
    columns.extend(others(study, mode).map(|a| study.axes[a].clone()));
    columns.extend([format!("{} packet", metric.name), format!("{} flow", metric.name)]);
    columns.extend(["difference %", "packets met", "times as fast"].map(String::from));
    let title = format!("flow level beside packets: {} that differ most", metric.name);
    let mut section = Section::new("fidelity", title, columns);
    for pair in pairs.iter().take(top) {
        let [packet, flow] = [pair.packet, pair.flow].map(|c| &study.configurations[c]);
        let mut row: Vec<Cell> = vec![packet.exp_id.into(), flow.exp_id.into()];
        row.extend(others(study, mode).map(|a| packet.values[a].clone()));
        row.extend(pair.values.map(Cell::from));
        row.extend([Cell::from(100.0 * pair.off()), pair.met.text().into()]);
        let took = |c: &StudyConfiguration| seconds.get(&(c.run, c.exp_id)).copied().filter(|s| *s > 0.0);
        row.push(took(packet).zip(took(flow)).map(|(packet, flow)| packet / flow).into());
        section.rows.push(row);
    }
    section.notes.extend(by_what_was_met(&pairs));
    section.notes.push(best_of_both(study, metric, &pairs, mode));
    Ok(Some(section))
}

/// Indices of the axes other than the level that vary.
fn others(study: &Study, mode: usize) -> impl Iterator<Item = usize> {
    let varies =
        move |a: &usize| study.configurations.iter().any(|c| c.values[*a] != study.configurations[0].values[*a]);
    (0..study.axes.len()).filter(move |&a| a != mode).filter(varies)
}

fn pairs(study: &Study, metric: &RankingMetric, mode: usize) -> Vec<LevelPair> {
    let mut flows: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let point =
        |c: &StudyConfiguration| -> Vec<String> { others(study, mode).map(|a| c.values[a].to_string()).collect() };
    let of_level = |level: &'static str| {
        let is_of = move |c: &(usize, &StudyConfiguration)| c.1.values[mode].to_string() == level;
        study.configurations.iter().enumerate().filter(is_of)
    };
    for (index, c) in of_level("flow") {
        flows.entry(point(c)).or_insert(index);
    }
    let pair = |(packet, c): (usize, &StudyConfiguration)| {
        let flow = *flows.get(&point(c))?;
        let mean = |index: usize| study.sample(&study.configurations[index], &metric.name).map(|s| s.mean);
        let values = [mean(packet)?, mean(flow)?];
        (values[0] != 0.0).then(|| LevelPair { packet, flow, met: met(study, packet, flow), values })
    };
    of_level("packet").filter_map(pair).collect()
}

/// Whether packets of one queue pair take several paths, so that they can overtake each other.
pub(super) fn sprays(study: &Study, configuration: usize) -> bool {
    let c = &study.configurations[configuration];
    if let Some(axis) = study.axes.iter().position(|a| a == POLICY) {
        return unmodelled::sprays(&c.values[axis].to_string());
    }
    let sweep = study.runs[c.run].sweep();
    let policy = sweep.as_ref().and_then(|s| s.get("base")?.get("routing")?.get("policy")?.as_str());
    policy.is_some_and(unmodelled::sprays)
}

/// The events that packets of a configuration met, by the result columns of both levels.
fn met(study: &Study, packet: usize, flow: usize) -> Met {
    let highest =
        |index: usize, column: &str| study.sample(&study.configurations[index], column).map_or(0.0, |s| s.high);
    if highest(packet, "drops") > 0.0 {
        return Met::Losses;
    }
    if sprays(study, packet) {
        return Met::Reordering;
    }
    if highest(packet, "pfc_pauses") > 0.0 {
        return Met::Pauses;
    }
    let shares = highest(flow, "fct_slowdown_p99") > SHARES;
    let run = &study.runs[study.configurations[packet].run];
    let row = study.configurations[packet].rows[0];
    let bottleneck = run.column("bottleneck_link").map(|c| run.rows[row][c].to_string()).unwrap_or_default();
    let ends = bottleneck.split_once("->");
    match ends {
        // The last link of a path ends at a host, and the first link begins at one.
        Some((_, to_end)) if shares && to_end.starts_with("host") => Met::Incast,
        Some((from_end, _)) if shares && !from_end.starts_with("host") => Met::Collision,
        _ if highest(packet, "ecn_marks") > 0.0 => Met::Marks,
        _ => Met::Nothing,
    }
}

/// One line for each thing that packets met: the number of pairs, and how far they are off.
fn by_what_was_met(pairs: &[LevelPair]) -> Vec<String> {
    let mut by_met: BTreeMap<Met, Vec<f64>> = BTreeMap::new();
    pairs.iter().for_each(|p| by_met.entry(p.met).or_default().push(p.off().abs()));
    let line = |(met, off): (&Met, &Vec<f64>)| {
        let mean = off.iter().sum::<f64>() / off.len() as f64;
        let max_off = off.iter().copied().fold(0.0, f64::max);
        format!(
            "{}: flow level is off by {:.2} % on average, {:.2} % at most, in {}",
            met.text(),
            100.0 * mean,
            100.0 * max_off,
            hyperfold_base::units::counted(off.len() as u64, "pair")
        )
    };
    by_met.iter().map(line).collect()
}

/// Whether flow level finds the same best configurations as packets, in words.
fn best_of_both(study: &Study, metric: &RankingMetric, pairs: &[LevelPair], mode: usize) -> String {
    let questions: Vec<usize> = study.questions().into_iter().filter(|&q| q != mode).collect();
    let mut groups: BTreeMap<Vec<String>, Vec<&LevelPair>> = BTreeMap::new();
    for pair in pairs {
        let values = &study.configurations[pair.packet].values;
        groups.entry(questions.iter().map(|&q| values[q].to_string()).collect()).or_default().push(pair);
    }
    let (mut same, mut n_questions, mut costs) = (0u64, 0u64, 0f64);
    for group in groups.values().filter(|g| g.len() > 1) {
        let best = |level: usize| {
            group.iter().min_by(|a, b| metric.order(a.values[level], b.values[level])).expect("a group has members")
        };
        let (by_packets, by_flows) = (best(0), best(1));
        n_questions += 1;
        let cost = (by_flows.values[0] - by_packets.values[0]).abs() / by_packets.values[0];
        same += u64::from(cost <= super::TIE_SHARE);
        costs = costs.max(cost);
    }
    match n_questions {
        0 => "each question has one configuration: levels cannot disagree about the best".to_string(),
        _ => format!(
            "the best at flow level is the best of packets too for {same} of {}; taking it costs {:.2} % at most",
            hyperfold_base::units::counted(n_questions, "question"),
            100.0 * costs
        ),
    }
}

/// Wall time in seconds of the replicas of each configuration, by folder and first experiment.
fn seconds(study: &Study) -> Result<BTreeMap<(usize, u64), f64>, ReadError> {
    let mut by_experiment: BTreeMap<(usize, u64), f64> = BTreeMap::new();
    for (run_idx, run) in study.runs.iter().enumerate() {
        run.each_stats(|exp_id, stats| {
            by_experiment.insert((run_idx, exp_id), stats.wall_s);
        })?;
    }
    let sum_of_replicas = |c: &StudyConfiguration| {
        let run = &study.runs[c.run];
        let sum = c.rows.iter().filter_map(|&row| by_experiment.get(&(c.run, run.exp_id(row)))).sum();
        ((c.run, c.exp_id), sum)
    };
    Ok(study.configurations.iter().map(sum_of_replicas).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};
    use hyperfold_results::Finished;

    /// Two workloads with two controls each, at both levels.
    fn folder() -> Folder {
        let with_pauses = |mut f: Finished, pauses: u64, bottleneck: &str| {
            f.record.pfc_pauses = Some(pauses);
            f.record.bottleneck_link = Some(bottleneck.into());
            f
        };
        let flow = |mut f: Finished, slowdown: u64| {
            f.record.fct_slowdown_p99 = Some(hyperfold_results::Micro(slowdown));
            f
        };
        Folder::new(
            &["workload.pattern", "transport.cc", MODE],
            vec![
                with_pauses(ok(0, "a", &["ring", "hpcc", "packet"], 1000), 0, "host0->leaf0"),
                flow(ok(1, "b", &["ring", "hpcc", "flow"], 990), 1_000_000),
                with_pauses(ok(2, "c", &["ring", "dcqcn", "packet"], 1100), 7, "host0->leaf0"),
                flow(ok(3, "d", &["ring", "dcqcn", "flow"], 980), 1_000_000),
                with_pauses(ok(4, "e", &["incast", "hpcc", "packet"], 5000), 0, "leaf0->host3"),
                flow(ok(5, "f", &["incast", "hpcc", "flow"], 4000), 7_000_000),
            ],
        )
    }

    #[test]
    fn pairs_say_how_far_off_flows_are_and_what_packets_met() {
        let folder = folder();
        let study = Study::open(&[folder.path()]).unwrap();
        let metric = RankingMetric::of("makespan_ns");
        let section = section(&study, &metric, 10).unwrap().unwrap();
        let cells = |column: &str| -> Vec<String> {
            let column_idx = section.columns.iter().position(|c| c == column).unwrap();
            section.rows.iter().map(|row| row[column_idx].to_string()).collect()
        };
        assert_eq!(cells("exp_id packet"), ["4", "2", "0"]);
        assert_eq!(cells("packets met"), ["incast", "pauses", "no contention"]);
        assert_eq!(cells("difference %")[0], "-20");
        let last = section.notes.last().unwrap();
        assert!(last.contains("for 0 of 1 question") && last.contains("costs 10.00 % at most"), "{last}");
    }

    #[test]
    fn one_level_has_no_pairs() {
        let folder = Folder::new(&["transport.cc"], vec![ok(0, "a", &["dcqcn"], 1)]);
        let study = Study::open(&[folder.path()]).unwrap();
        assert!(section(&study, &RankingMetric::of("makespan_ns"), 10).unwrap().is_none());
    }
}
