//! What a run says at its end: one line an experiment, or one line an axis value.
//!
//! Layer: cli. Reads records; the files hold the exact values. Which is best, [`super::best`] says.

use std::collections::BTreeMap;

use crate::results::{Axis, ExperimentRecord, Ps, Status};

use super::table::{self, Table};

/// Up to so many experiments get a line each.
pub const EACH_UP_TO: usize = 40;
/// Values of one axis that get a line each.
const VALUES_UP_TO: usize = 12;

/// The lines for standard output. `records` in the order of `exp_id`.
pub fn lines(axes: &[Axis], records: &[ExperimentRecord]) -> Vec<String> {
    let mut lines = if records.len() <= EACH_UP_TO { each(axes, records) } else { per_value(axes, records) };
    // A run has told why as it happened.
    let failed = records.iter().filter(|r| r.status == Status::Failed).count();
    if failed > 0 {
        lines.push(format!("{failed} of {} experiments failed; failed.csv says why", records.len()));
    }
    lines.push(String::new());
    lines
}

/// The axes' names without the part that all have in common with nothing else: the last segment where that is unique.
fn short_names(axes: &[Axis]) -> Vec<String> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_string();
    let unique = |name: &String| axes.iter().filter(|a| &last(&a.key) == name).count() == 1;
    axes.iter().map(|a| Some(last(&a.key)).filter(unique).unwrap_or_else(|| a.key.clone())).collect()
}

fn each(axes: &[Axis], records: &[ExperimentRecord]) -> Vec<String> {
    let replicas = records.iter().any(|r| r.replica > 0);
    let mut header = vec!["exp".to_string()];
    header.extend(short_names(axes));
    header.extend(replicas.then(|| "replica".into()));
    let shown = Shown::of(records);
    header.push("status".into());
    header.extend(shown.header().iter().map(|h| h.to_string()));
    header.extend(["marks", "pauses", "drops", "max queue"].map(String::from));
    let mut table = Table::new(header);
    for r in records {
        let mut row = vec![r.exp_id.to_string()];
        row.extend(r.axis_values.iter().map(ToString::to_string));
        row.extend(replicas.then(|| r.replica.to_string()));
        row.push(r.status.as_str().into());
        row.extend(shown.row(r));
        row.extend([r.ecn_marks, r.pfc_pauses, r.drops].map(|n| n.map_or(String::new(), table::count)));
        row.push(r.max_queue_bytes.map_or(String::new(), table::bytes));
        table.row(row);
    }
    table.lines()
}

/// What the lines show of an experiment: flows, an iteration of training, or a collective.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Flows,
    Training,
    Iteration,
    Collective,
}

impl Shown {
    fn of(records: &[ExperimentRecord]) -> Shown {
        let any = |has: fn(&ExperimentRecord) -> bool| records.iter().any(has);
        match () {
            () if any(|r| r.tokens_per_s.is_some()) => Shown::Training,
            () if any(|r| r.busbw_gbps.is_some()) => Shown::Collective,
            () if any(|r| r.iteration_time.is_some()) => Shown::Iteration,
            () => Shown::Flows,
        }
    }

    fn header(self) -> &'static [&'static str] {
        match self {
            Shown::Flows => &["makespan", "FCT mean", "FCT p99"],
            Shown::Training => &["iteration", "compute", "exposed", "bubble", "tokens/s", "MFU"],
            Shown::Iteration => &["iteration", "compute", "exposed", "bubble"],
            Shown::Collective => &["time", "algbw Gb/s", "busbw Gb/s", "FCT p99"],
        }
    }

    fn row(self, r: &ExperimentRecord) -> Vec<String> {
        let time = |t: Option<Ps>| t.map_or(String::new(), |ps| table::time(ps.0));
        let exposed = r.iteration_time.map(|_| {
            let parts = [r.comm_exposed_tp, r.comm_exposed_pp, r.comm_exposed_dp, r.comm_exposed_ep, r.comm_exposed_cp];
            Ps(parts.iter().flatten().map(|ps| ps.0).sum())
        });
        let number = |x: Option<f64>, digits: usize| x.map_or(String::new(), |x| format!("{x:.digits$}"));
        let iteration = || vec![time(r.iteration_time), time(r.compute), time(exposed), time(r.bubble)];
        match self {
            Shown::Flows => [r.makespan, r.fct_mean, r.fct_p99].map(time).to_vec(),
            Shown::Iteration => iteration(),
            Shown::Training => {
                let mfu = r.mfu.map_or(String::new(), |m| format!("{:.1} %", m * 100.0));
                iteration().into_iter().chain([number(r.tokens_per_s, 0), mfu]).collect()
            }
            Shown::Collective => {
                vec![time(r.iteration_time), number(r.algbw_gbps, 1), number(r.busbw_gbps, 1), time(r.fct_p99)]
            }
        }
    }
}

fn per_value(axes: &[Axis], records: &[ExperimentRecord]) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, axis) in axes.iter().enumerate() {
        let mut groups: Vec<(String, Vec<&ExperimentRecord>)> = Vec::new();
        let mut places = BTreeMap::new();
        for r in records {
            let value = r.axis_values[at].to_string();
            let place = *places.entry(value.clone()).or_insert(groups.len());
            if place == groups.len() {
                groups.push((value, Vec::new()));
            }
            groups[place].1.push(r);
        }
        let programs = records.iter().any(|r| r.iteration_time.is_some());
        let what = if programs { ["best iteration", "worst iteration"] } else { ["best makespan", "worst makespan"] };
        let header = [axis.key.as_str(), "experiments", "failed", what[0], what[1], "mean of FCT means"];
        let mut table = Table::new(header);
        for (value, group) in groups.iter().take(VALUES_UP_TO) {
            let done: Vec<&ExperimentRecord> = group.iter().copied().filter(|r| r.status == Status::Ok).collect();
            let makespans = || done.iter().filter_map(|r| if programs { r.iteration_time } else { r.makespan });
            let show = |r: Option<Ps>| r.map_or(String::new(), |ps| table::time(ps.0));
            let fcts: Vec<u128> = done.iter().filter_map(|r| r.fct_mean).map(|ps| u128::from(ps.0)).collect();
            let mean = fcts.iter().sum::<u128>().checked_div(fcts.len() as u128);
            let failed = group.iter().filter(|r| r.status == Status::Failed).count();
            table.row(vec![
                value.clone(),
                group.len().to_string(),
                failed.to_string(),
                show(makespans().min()),
                show(makespans().max()),
                mean.map_or(String::new(), |ps| table::time(u64::try_from(ps).expect("a mean is at most the maximum"))),
            ]);
        }
        if at > 0 {
            lines.push(String::new());
        }
        lines.extend(table.lines());
        if groups.len() > VALUES_UP_TO {
            lines.push(format!("... and {} more values of {}", groups.len() - VALUES_UP_TO, axis.key));
        }
    }
    let oom = records.iter().filter(|r| r.status == Status::Oom).count();
    if oom > 0 {
        lines.push(format!(
            "{oom} of {} experiments need more memory than their GPUs have; the column `error` says for what",
            records.len()
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Kind};

    fn axes() -> Vec<Axis> {
        ["topology.kind", "transport.cc", "workload.pattern"]
            .map(|key| Axis { key: key.into(), kind: Kind::Text })
            .to_vec()
    }

    fn sweep(n: u64) -> Vec<ExperimentRecord> {
        let pick = |of: &[&str], at: u64| -> Cell { of[at as usize % of.len()].into() };
        (0..n)
            .map(|id| {
                let values = vec![
                    pick(&["fat-tree", "clos"], id),
                    pick(&["hpcc", "dcqcn", "none"], id / 2),
                    pick(&["ring", "incast"], id / 6),
                ];
                let mut r = ExperimentRecord::new(id, "c".into(), "e".into(), 0, 1, values);
                if id == 4 {
                    return r.failed("flow 3 gave up");
                }
                r.makespan = Some(Ps(1_000_000_000 + (id * 7919 % 13) * 10_000_000));
                r.fct_mean = Some(Ps(500_000_000 + id * 1_000_000));
                r.fct_p99 = Some(Ps(900_000_000));
                r.ecn_marks = Some(id * 1000);
                r.pfc_pauses = Some(0);
                r.drops = Some(0);
                r.max_queue_bytes = Some(id * 5000);
                r
            })
            .collect()
    }

    #[test]
    fn few_experiments_have_a_line_each() {
        insta::assert_snapshot!(lines(&axes(), &sweep(12)).join("\n"));
    }

    #[test]
    fn many_experiments_have_a_line_an_axis_value() {
        insta::assert_snapshot!(lines(&axes(), &sweep(60)).join("\n"));
    }

    #[test]
    fn ambiguous_names_stay_long() {
        let axes =
            ["topology.seed", "routing.seed", "transport.cc"].map(|key| Axis { key: key.into(), kind: Kind::Text });
        assert_eq!(short_names(&axes), ["topology.seed", "routing.seed", "cc"]);
    }
}
