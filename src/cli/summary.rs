//! Summary at the end of a run: one line per experiment, or one line per axis value.
//!
//! Layer: cli. It reads records; the files have the exact values. [`super::best`] says which experiment is best.

use std::collections::BTreeMap;

use hyperfold_config::spec::short_name;
use hyperfold_results::{Axis, ClusterRecord, ExperimentRecord, Ms, Ps, Status};

use super::table::{self, TextTable};
use hyperfold_base::printable::shortened;
use hyperfold_base::units::counted;

/// Largest number of characters of an error in a table with other columns.
const MAX_ERROR_CHARACTERS: usize = 120;

/// Largest number of experiments of which each gets a line.
pub const EACH_UP_TO: usize = 40;
/// Number of classes of experiments that get a line.
const CLASSES_UP_TO: usize = 4;
/// Number of values of an axis that get a line.
const VALUES_UP_TO: usize = 12;

/// Lines for standard output. `records` are in the order of `exp_id`.
pub fn lines(axes: &[Axis], records: &[ExperimentRecord]) -> Vec<String> {
    // An interrupted run may have no records; it has its own message.
    if records.is_empty() {
        return Vec::new();
    }
    let mut lines = if records.len() <= EACH_UP_TO { each(axes, records) } else { per_value(axes, records) };
    // The reasons were printed during the run.
    let failed = records.iter().filter(|r| r.status == Status::Failed).count();
    if failed > 0 {
        lines.push(format!("{failed} of {} failed; failed.csv says why", counted(records.len(), "experiment")));
    }
    lines.extend(worth(records));
    lines.push(String::new());
    lines
}

/// Lines about the error of simulated times: one per class, for the classes with most experiments.
fn worth(records: &[ExperimentRecord]) -> Vec<String> {
    type Class<'a> = (&'a str, &'a str, Option<&'a str>);
    let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
    for r in records {
        if let Some(error) = &r.validated_error {
            let class = r.validated_class.as_deref().unwrap_or_default();
            // Inference that is compared with nothing has one sentence for both.
            let latency = r.serving.as_ref().and_then(|serving| serving.validated_latency_error.as_deref());
            *classes.entry((error, class, latency.filter(|_| !class.is_empty()))).or_default() += 1;
        }
    }
    let mut classes: Vec<(Class, usize)> = classes.into_iter().collect();
    classes.sort_by_key(|c| std::cmp::Reverse(c.1));
    let line = |((error, class, latency), n): &(Class, usize)| {
        let n_text = counted(*n, "experiment");
        let latency = latency.map_or(String::new(), |latency| {
            format!("\nerror of simulated latencies: {}", latency.trim_start_matches("latency: "))
        });
        let (what, error) = match error.strip_prefix("throughput: ") {
            Some(error) => ("throughput", error),
            None => ("times", *error),
        };
        match *class {
            "" => format!("error of simulated {what}: {error}, as nobody measured such experiments ({n_text})"),
            class => format!("error of simulated {what}: {error} ({n_text}; nearest class: {class}){latency}"),
        }
    };
    let more = classes.len().saturating_sub(CLASSES_UP_TO);
    let rest =
        (more > 0).then(|| format!("... and {more} more classes: see the column `validated_class` of results.csv"));
    let lines = classes.iter().take(CLASSES_UP_TO).map(line).chain(rest);
    lines.flat_map(|text| text.lines().map(str::to_string).collect::<Vec<_>>()).collect()
}

/// Text of the column `validated error`: the 90th percentile, of inference those of throughput and of latencies; or that there is none.
fn validated(r: &ExperimentRecord) -> String {
    let latency = r.serving.as_ref().and_then(|serving| serving.validated_latency_p90);
    match (r.validated_p90_error, latency) {
        (Some(p90), Some(latency)) => {
            format!("throughput {:.0} %, latency {:.0} %", p90 * 100.0, latency.0 as f64 / 1e4)
        }
        (Some(p90), None) => format!("{:.0} %", p90 * 100.0),
        (None, _) => r.validated_error.as_deref().unwrap_or_default().split(';').next().unwrap_or_default().to_string(),
    }
}

/// Names of the axes: the last segment where that is unique, else the whole key.
fn short_names(axes: &[Axis]) -> Vec<String> {
    let unique = |name: &&str| axes.iter().filter(|a| short_name(&a.key) == *name).count() == 1;
    axes.iter().map(|a| Some(short_name(&a.key)).filter(unique).unwrap_or(&a.key).to_string()).collect()
}

fn each(axes: &[Axis], records: &[ExperimentRecord]) -> Vec<String> {
    let replicas = records.iter().any(|r| r.replica > 0);
    let mut header = vec!["exp".to_string()];
    header.extend(short_names(axes));
    header.extend(replicas.then(|| "replica".into()));
    let columns = Shown::of(records).columns(records);
    header.push("status".into());
    header.extend(columns.iter().map(|(name, _)| name.to_string()));
    let packets = !matches!(Shown::of(records), Shown::Cluster | Shown::Nothing);
    let resent = packets && records.iter().any(|r| r.retransmissions.is_some_and(|n| n > 0));
    if packets {
        header.extend(["marks", "pauses", "drops"].map(String::from));
        header.extend(resent.then(|| "retransmissions".into()));
        header.push("max queue".into());
    }
    let worth = records.iter().any(|r| r.validated_class.is_some());
    header.extend(worth.then(|| "validated error".into()));
    let mut table = TextTable::new(header);
    for r in records {
        let mut row = vec![r.exp_id.to_string()];
        row.extend(r.axis_values.iter().map(ToString::to_string));
        row.extend(replicas.then(|| r.replica.to_string()));
        row.push(r.status.as_str().into());
        row.extend(columns.iter().map(|(_, content)| content.text(r)));
        if packets {
            row.extend([r.ecn_marks, r.pfc_pauses, r.drops].map(|n| n.map_or(String::new(), table::count)));
            row.extend(resent.then(|| r.retransmissions.map_or(String::new(), table::count)));
            row.push(r.max_queue_bytes.map_or(String::new(), table::bytes));
        }
        row.extend(worth.then(|| validated(r)));
        table.row(row);
    }
    table.lines()
}

/// Kind of columns in the summary. `Nothing` shows why no experiment completed.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Cluster,
    Serving,
    Flows,
    Training,
    Iteration,
    Collective,
    Nothing,
}

impl Shown {
    fn of(records: &[ExperimentRecord]) -> Shown {
        let any = |has: fn(&ExperimentRecord) -> bool| records.iter().any(has);
        match () {
            () if any(|r| r.cluster.is_some()) => Shown::Cluster,
            () if any(|r| r.serving.is_some()) => Shown::Serving,
            () if any(|r| r.tokens_per_s.is_some()) => Shown::Training,
            () if any(|r| r.busbw_gbps.is_some()) => Shown::Collective,
            () if any(|r| r.iteration_time.is_some()) => Shown::Iteration,
            () if !any(|r| r.makespan.is_some() || r.error.is_empty()) => Shown::Nothing,
            () => Shown::Flows,
        }
    }

    /// Names and contents of the columns. Parts of an iteration that no experiment has are left out; the shown parts still add up.
    fn columns(self, records: &[ExperimentRecord]) -> Vec<(&'static str, Content)> {
        let parts: &[(&str, Part)] = &[
            ("compute", |r| r.compute),
            ("exposed", exposed),
            ("bubble", |r| r.bubble),
            ("optimizer", |r| r.optimizer),
            ("other", |r| r.other),
        ];
        let some = |part: &Part| records.iter().any(|r| part(r).is_some_and(|ps| ps.0 > 0));
        let parts = parts.iter().filter(|(_, part)| some(part)).map(|&(name, part)| (name, Content::Time(part)));
        let iteration: (_, Content) = ("iteration", Content::Time(|r| r.iteration_time));
        let tokens = Content::Number(|r| r.tokens_per_s);
        let mfu = Content::Percent(|r| r.mfu);
        let fct_p99 = ("FCT p99", Content::Time(|r| r.fct_p99));
        match self {
            Shown::Cluster => vec![
                ("utilisation", Content::Percent(|r| Some(r.cluster.as_ref()?.utilisation))),
                ("goodput", Content::Percent(|r| Some(r.cluster.as_ref()?.goodput))),
                ("jobs done", Content::Number(|r| Some(r.cluster.as_ref()?.jobs_done as f64))),
                ("wait mean h", Content::Number(|r| hours(r.cluster.as_ref()?.waiting_mean_ms))),
                ("wait p99 h", Content::Number(|r| hours(r.cluster.as_ref()?.waiting_p99_ms))),
                ("restarts", Content::Number(|r| Some(r.cluster.as_ref()?.restarts as f64))),
            ],
            Shown::Serving => vec![
                ("TTFT p50", Content::Time(|r| r.serving.as_ref()?.ttft.p50)),
                ("TTFT p99", Content::Time(|r| r.serving.as_ref()?.ttft.p99)),
                ("TPOT p50", Content::Time(|r| r.serving.as_ref()?.tpot.p50)),
                ("TPOT p99", Content::Time(|r| r.serving.as_ref()?.tpot.p99)),
                ("tokens/s", tokens),
                ("goodput req/s", Content::Number(|r| Some(r.serving.as_ref()?.goodput_rps.0 as f64 / 1e6))),
                ("within bounds", Content::Percent(|r| Some(r.serving.as_ref()?.within_bounds.0 as f64 / 1e6))),
                ("limited by", Content::Text(|r| Some(r.serving.as_ref()?.limited_by.clone()))),
            ],
            Shown::Flows => {
                vec![("makespan", Content::Time(|r| r.makespan)), ("FCT mean", Content::Time(|r| r.fct_mean)), fct_p99]
            }
            Shown::Iteration => [iteration].into_iter().chain(parts).collect(),
            Shown::Training => {
                let memory = ("memory", Content::Bytes(|r| r.peak_memory_bytes));
                [iteration].into_iter().chain(parts).chain([("tokens/s", tokens), ("MFU", mfu), memory]).collect()
            }
            Shown::Collective => vec![
                ("time", Content::Time(|r| r.iteration_time)),
                ("algbw Gb/s", Content::Number(|r| r.algbw_gbps)),
                ("busbw Gb/s", Content::Number(|r| r.busbw_gbps)),
                fct_p99,
            ],
            Shown::Nothing => {
                vec![("why", Content::Text(|r| Some(shortened(&r.error, MAX_ERROR_CHARACTERS).into_owned())))]
            }
        }
    }
}

fn hours(time: Option<Ms>) -> Option<f64> {
    time.map(|time| time.0 as f64 / 3.6e6)
}

type Part = fn(&ExperimentRecord) -> Option<Ps>;

/// Content of a column.
#[derive(Clone, Copy)]
enum Content {
    Time(Part),
    Number(fn(&ExperimentRecord) -> Option<f64>),
    Bytes(fn(&ExperimentRecord) -> Option<u64>),
    /// A share of one.
    Percent(fn(&ExperimentRecord) -> Option<f64>),
    Text(fn(&ExperimentRecord) -> Option<String>),
}

impl Content {
    fn text(self, r: &ExperimentRecord) -> String {
        match self {
            Content::Time(read) => read(r).map(|ps| table::time(ps.0)),
            Content::Number(read) => read(r).map(table::number),
            Content::Bytes(read) => read(r).map(table::bytes),
            Content::Percent(read) => read(r).map(|x| format!("{} %", table::number(x * 100.0))),
            Content::Text(read) => read(r),
        }
        .unwrap_or_default()
    }
}

/// Exposed communication of all dimensions together.
fn exposed(r: &ExperimentRecord) -> Option<Ps> {
    let parts = [r.comm_exposed_tp, r.comm_exposed_pp, r.comm_exposed_dp, r.comm_exposed_ep, r.comm_exposed_cp];
    r.iteration_time.map(|_| Ps(parts.iter().flatten().map(|ps| ps.0).sum()))
}

/// Table of a sweep over clusters: goodput and waiting by value of an axis.
fn per_value_of_clusters(axis: &Axis, groups: &[(String, Vec<&ExperimentRecord>)]) -> TextTable {
    let header = [axis.key.as_str(), "experiments", "failed", "best goodput", "worst goodput", "mean of mean waits h"];
    let mut table = TextTable::new(header);
    for (value, group) in groups.iter().take(VALUES_UP_TO) {
        let clusters: Vec<&ClusterRecord> = group.iter().filter_map(|r| r.cluster.as_deref()).collect();
        let goodputs = || clusters.iter().map(|c| c.goodput);
        let percent = |x: Option<f64>| x.map_or(String::new(), |x| format!("{} %", table::number(x * 100.0)));
        let waits: Vec<f64> = clusters.iter().filter_map(|c| hours(c.waiting_mean_ms)).collect();
        let mean = (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64);
        table.row(vec![
            value.clone(),
            group.len().to_string(),
            group.iter().filter(|r| r.status == Status::Failed).count().to_string(),
            percent(goodputs().reduce(f64::max)),
            percent(goodputs().reduce(f64::min)),
            mean.map_or(String::new(), table::number),
        ]);
    }
    table
}

fn per_value(axes: &[Axis], records: &[ExperimentRecord]) -> Vec<String> {
    let mut lines = Vec::new();
    for (axis_idx, axis) in axes.iter().enumerate() {
        let mut groups: Vec<(String, Vec<&ExperimentRecord>)> = Vec::new();
        let mut places = BTreeMap::new();
        for r in records {
            let value = r.axis_values[axis_idx].to_string();
            let place = *places.entry(value.clone()).or_insert(groups.len());
            if place == groups.len() {
                groups.push((value, Vec::new()));
            }
            groups[place].1.push(r);
        }
        if records.iter().any(|r| r.cluster.is_some()) {
            lines.extend(per_value_of_clusters(axis, &groups).lines());
            continue;
        }
        let programs = records.iter().any(|r| r.iteration_time.is_some());
        let headings =
            if programs { ["best iteration", "worst iteration"] } else { ["best makespan", "worst makespan"] };
        let header = [axis.key.as_str(), "experiments", "failed", headings[0], headings[1], "mean of FCT means"];
        let mut table = TextTable::new(header);
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
        if axis_idx > 0 {
            lines.push(String::new());
        }
        lines.extend(table.lines());
        if groups.len() > VALUES_UP_TO {
            lines.push(format!("... and {} more values of {}", groups.len() - VALUES_UP_TO, axis.key));
        }
    }
    if axes.len() > 1 {
        lines.push("best, worst: over all other axes".into());
    }
    let oom = records.iter().filter(|r| r.status == Status::Oom).count();
    if oom > 0 {
        lines.push(format!(
            "{oom} of {} without a result, for want of GPU memory; the column `error` says for what",
            counted(records.len(), "experiment")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_results::{Cell, ColumnKind};

    fn axes() -> Vec<Axis> {
        ["topology.kind", "transport.cc", "workload.pattern"]
            .map(|key| Axis { key: key.into(), kind: ColumnKind::Text })
            .to_vec()
    }

    fn sweep(n: u64) -> Vec<ExperimentRecord> {
        let pick = |values: &[&str], index: u64| -> Cell { values[index as usize % values.len()].into() };
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
    fn parts_of_an_iteration_that_are_shown_add_up() {
        let mut r = ExperimentRecord::new(0, "c".into(), "e".into(), 0, 1, Vec::new());
        r.iteration_time = Some(Ps(213_000_000));
        (r.compute, r.bubble, r.optimizer, r.other) =
            (Some(Ps(0)), Some(Ps(0)), Some(Ps(13_000_000)), Some(Ps(200_000_000)));
        let lines = lines(&[], &[r]);
        let words = |line: &str| {
            line.split("  ").map(str::trim).filter(|w| !w.is_empty()).map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(words(&lines[0])[..5], ["exp", "status", "iteration", "optimizer", "other"].map(String::from));
        assert_eq!(words(&lines[1])[..5], ["0", "ok", "213.0 us", "13.00 us", "200.0 us"].map(String::from));
    }

    #[test]
    fn what_times_are_worth_is_told() {
        let class = "training/ampere/bf16/megatron/model/closed-form/fitted";
        let record = |id, error: &str, class: Option<&str>| {
            let mut r = ExperimentRecord::new(id, "c".into(), "e".into(), 0, 1, Vec::new());
            (r.validated_error, r.validated_class) = (Some(error.into()), class.map(String::from));
            r.validated_p90_error = class.map(|_| 0.05);
            r
        };
        let known = "9 of 10 within 5.0 %, mean 3.0 %; measured in 9 tables, nearest 2 of a100-80g-sxm in bf16";
        let lines = lines(
            &[],
            &[record(0, known, Some(class)), record(1, known, Some(class)), record(2, "not validated", None)],
        );
        assert!(lines[0].ends_with("validated error") && lines[1].ends_with(" 5 %"), "{lines:?}");
        assert!(lines[3].ends_with(" not validated"), "{lines:?}");
        assert_eq!(lines[4], format!("error of simulated times: {known} (2 experiments; nearest class: {class})"));
        assert_eq!(
            lines[5],
            "error of simulated times: not validated, as nobody measured such experiments (1 experiment)"
        );
    }

    #[test]
    fn packets_that_were_sent_again_have_a_column() {
        let mut records = sweep(2);
        assert!(!lines(&axes(), &records)[0].contains("retransmissions"));
        (records[1].drops, records[1].retransmissions) = (Some(7), Some(42));
        let lines = lines(&axes(), &records);
        assert!(lines[0].ends_with("drops  retransmissions  max queue"), "{}", lines[0]);
        assert!(lines[2].split_whitespace().any(|word| word == "42"), "{}", lines[2]);
    }

    #[test]
    fn ambiguous_names_stay_long() {
        let axes = ["topology.seed", "routing.seed", "transport.cc"]
            .map(|key| Axis { key: key.into(), kind: ColumnKind::Text });
        assert_eq!(short_names(&axes), ["topology.seed", "routing.seed", "cc"]);
    }
}
