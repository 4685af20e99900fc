//! Metrics of a page: each numeric outcome of `results.csv` that experiments can be ranked by, with its name in words and its unit.
//!
//! Layer: recommendation. It decides no ranking.

use crate::compare::metric::{DEFAULTS, NO_METRIC, PARTS};
use crate::compare::{self, Better};

use super::sheet::{Holds, Sheet};

/// A metric that experiments can be ranked by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name of the column.
    pub name: String,
    /// Name in words.
    pub label: String,
    /// Unit for the page to format numbers by: `ns`, `bytes`, `gbps`, `share`, or empty.
    pub unit: &'static str,
    /// Whether less or more of it is better.
    pub better: Better,
}

impl Metric {
    /// Whether an error of completion times is also an error of this metric.
    pub fn is_timed(&self) -> bool {
        compare::RankingMetric::of(&self.name).is_timed()
    }
}

/// Column, name in words, and unit of the known metrics, in the order in which a page offers them.
const KNOWN: &[(&str, &str, &str)] = &[
    ("iteration_time_ns", "iteration time", "ns"),
    ("tokens_per_s", "tokens per second", ""),
    ("tokens_per_s_per_gpu", "tokens per second and GPU", ""),
    ("mfu", "model FLOPs utilisation", "share"),
    ("busbw_gbps", "bus bandwidth", "gbps"),
    ("algbw_gbps", "algorithm bandwidth", "gbps"),
    ("makespan_ns", "makespan", "ns"),
    ("fct_mean_ns", "mean flow completion time", "ns"),
    ("fct_p50_ns", "median flow completion time", "ns"),
    ("fct_p99_ns", "99th percentile of flow completion times", "ns"),
    ("fct_max_ns", "longest flow completion time", "ns"),
    ("fct_slowdown_p50", "median slowdown", ""),
    ("fct_slowdown_p99", "99th percentile of slowdowns", ""),
    ("bubble_ns", "bubble", "ns"),
    ("peak_memory_bytes", "peak memory", "bytes"),
    ("max_queue_bytes", "largest queue", "bytes"),
    ("max_link_utilisation", "utilisation of the busiest link", "share"),
    ("goodput_rps", "goodput, requests per second", ""),
    ("within_bounds", "requests within the bounds", "share"),
    ("ttft_mean_ns", "mean time to the first token", "ns"),
    ("ttft_p50_ns", "median time to the first token", "ns"),
    ("ttft_p99_ns", "99th percentile of times to the first token", "ns"),
    ("tpot_mean_ns", "mean time per output token", "ns"),
    ("tpot_p50_ns", "median time per output token", "ns"),
    ("tpot_p99_ns", "99th percentile of times per output token", "ns"),
    ("e2e_mean_ns", "mean latency of requests", "ns"),
    ("e2e_p50_ns", "median latency of requests", "ns"),
    ("e2e_p99_ns", "99th percentile of latencies of requests", "ns"),
    ("requests_per_s", "requests per second", ""),
    ("output_tokens_per_s", "output tokens per second", ""),
    ("goodput", "goodput", "share"),
    ("samples_per_s", "samples per second", ""),
    ("utilisation", "utilisation", "share"),
    ("waiting_mean_s", "mean waiting, seconds", ""),
    ("waiting_p99_s", "99th percentile of waiting, seconds", ""),
    ("pfc_pauses", "PFC pauses", ""),
    ("pfc_paused_ns", "time paused by PFC", "ns"),
    ("ecn_marks", "ECN marks", ""),
    ("drops", "drops", ""),
    ("retransmissions", "retransmissions", ""),
];

/// Metrics in which the sheet's experiments differ, after the objectives of a search. Without objectives, the default metric comes first.
pub fn metrics(sheet: &Sheet, objectives: &[String]) -> Vec<Metric> {
    let distinct = |name: &str| {
        let column = sheet.column(name).filter(|c| c.holds == Holds::Number);
        let completed = (0..sheet.rows()).filter(|&row| sheet.ok(row));
        let mut values = completed.filter_map(|row| Some(&column?.text[row])).filter(|t| !t.is_empty());
        let first = values.next();
        (first.is_some(), values.any(|t| Some(t) != first))
    };
    let default = DEFAULTS.iter().find(|name| distinct(name).0);
    // A smaller number is earlier.
    let place = |name: &str| match objectives.iter().position(|o| o == name) {
        Some(index) => index,
        None if Some(&name) == default => objectives.len(),
        None => objectives.len() + 1,
    };
    let of_job = |name: &str| sheet.of_job.get(name).map(|job| format!(" of job {job}")).unwrap_or_default();
    let metric = |name: &str, label: &str, unit| Metric {
        name: name.into(),
        label: format!("{label}{}", of_job(name)),
        unit,
        better: compare::RankingMetric::of(name).better,
    };
    let known = KNOWN.iter().map(|&(name, label, unit)| metric(name, label, unit));
    // Parts of the iteration time are left out, because nobody chooses a design by them; they stay columns of the table. Unknown columns, from later
    // versions, have their names as labels.
    let is_known = |name: &str| KNOWN.iter().any(|k| k.0 == name) || PARTS.contains(&name) || NO_METRIC.contains(&name);
    let others = sheet.outcomes().iter().filter(|c| !is_known(&c.name));
    let others = others.map(|c| metric(&c.name, &c.name, ""));
    let mut found: Vec<Metric> = known
        .chain(others)
        .filter(|m| distinct(&m.name).1 || (distinct(&m.name).0 && place(&m.name) <= objectives.len()))
        .collect();
    found.sort_by_key(|m| place(&m.name));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_offered_and_the_default_comes_first() {
        let s = Sheet::from_lines(
            "exp_id,seed,a.b,status,error,makespan_ns,drops,mfu,cost_usd\n0,1,x,ok,,5,0,,3\n1,1,y,ok,,5,0,,4\n",
        );
        let names: Vec<String> = metrics(&s, &[]).into_iter().map(|m| m.name).collect();
        assert_eq!(names, ["makespan_ns", "cost_usd"], "drops do not vary, there is no mfu, status is text");
        let names: Vec<String> =
            metrics(&s, &["drops".into(), "cost_usd".into()]).into_iter().map(|m| m.name).collect();
        assert_eq!(
            names,
            ["drops", "cost_usd", "makespan_ns"],
            "what was searched by comes first, whether it varies or not"
        );
        assert!(metrics(&Sheet::from_lines("exp_id,seed,a.b,status\n0,1,x,failed"), &[]).is_empty());
        let how = Sheet::from_lines(
            "exp_id,seed,a.b,status,error,makespan_ns,critical_rank,channels\n0,1,x,ok,,5,3,8\n1,1,y,ok,,6,4,16\n",
        );
        let names: Vec<String> = metrics(&how, &[]).into_iter().map(|m| m.name).collect();
        assert_eq!(names, ["makespan_ns"], "more channels or a lower rank are neither better nor worse");
        let oom = Sheet::from_lines("exp_id,seed,a.b,status,peak_memory_bytes\n0,1,x,oom,5\n1,1,y,oom,6");
        assert!(metrics(&oom, &[]).is_empty(), "what did not complete is not ranked, so it offers no metric");
    }
}
