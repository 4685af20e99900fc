//! Which configuration of a run is best, in a line for each kind of work.
//!
//! Layer: cli. Says what `hyperfold compare` finds in the folder: means over replicas, ties, and of a search for several objectives their front.

use std::path::Path;

use crate::compare::rank::Ranked;
use crate::compare::{Group, Metric, Study, front, rank};
use crate::results::Cell;

use super::compare::searched_by;
use super::compare_render::shown;

/// Workloads for which the best is told.
const BESTS_UP_TO: usize = 8;
/// Experiments that are named.
const NAMED_UP_TO: usize = 6;

/// The lines for standard output; `candidates` is how many experiments a search chose from.
pub fn lines(dir: &Path, candidates: Option<u64>) -> Vec<String> {
    let Some((study, metric)) = Study::open(&[dir]).ok().and_then(|s| Metric::default_of(&s).ok().map(|m| (s, m)))
    else {
        return vec!["no experiment completed".into()];
    };
    let mut lines = Vec::new();
    if let Some(candidates) = candidates {
        lines.push(format!(
            "a search: {} of {candidates} experiments were run in full; optimize.csv says how the others fared",
            study.runs[0].rows.len()
        ));
    }
    let groups: Vec<Group> = rank(&study, &metric).into_iter().filter(|g| !g.ranked.is_empty()).collect();
    let objectives = searched_by(&study);
    for group in groups.iter().take(BESTS_UP_TO) {
        lines.push(best(&study, &metric, group));
        if objectives.len() > 1 {
            lines.push(of_front(&study, &objectives, group));
        }
    }
    if groups.len() > BESTS_UP_TO {
        lines.push(format!("... and the best of {} more workloads", groups.len() - BESTS_UP_TO));
    }
    if groups.is_empty() {
        lines.push("no experiment completed".into());
    }
    lines
}

fn of(group: &Group) -> String {
    let label = group.label();
    if label.is_empty() { label } else { format!(" of {label}") }
}

fn best(study: &Study, metric: &Metric, group: &Group) -> String {
    let first = &group.ranked[0];
    let c = &study.configurations[first.configuration];
    let answers = (0..study.axes.len()).filter(|&a| !study.asks(&study.axes[a]));
    let values: Vec<String> = answers.map(|a| format!("{} {}", short(study, a), c.values[a])).collect();
    let values = if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) };
    let tokens = study
        .sample(c, "tokens_per_s")
        .filter(|_| metric.name == "iteration_time_ns")
        .map(|s| format!("{:.0} tokens/s, ", s.mean));
    let value = format!("{} {}", words(&metric.name), shown(&metric.name, &Cell::Real(first.sample.mean)));
    let mean = if first.sample.n > 1 { format!(", mean of {} replicas", first.sample.n) } else { String::new() };
    let tied: Vec<&Ranked> = group.ranked.iter().skip(1).take_while(|r| r.rank == first.rank).collect();
    let ties = match tied.len() {
        0 => String::new(),
        n => format!(
            "; {} cannot be told apart from it: {}",
            n,
            experiments(study, tied.iter().map(|r| r.configuration))
        ),
    };
    format!(
        "best{}: {}{values}, {}{value}{mean}{ties}",
        of(group),
        experiments(study, [first.configuration]),
        tokens.unwrap_or_default()
    )
}

fn of_front(study: &Study, objectives: &[Metric], group: &Group) -> String {
    let members = group.ranked.iter().map(|r| r.configuration).chain(group.without.iter().copied());
    let front = front(study, objectives, members);
    let names: Vec<String> = objectives.iter().map(|o| words(&o.name)).collect();
    let what = match front.len() {
        0 => "no experiment has all of them".to_string(),
        n => format!(
            "{n} of {} configurations: {}",
            group.ranked.len() + group.without.len(),
            experiments(study, front.iter().copied())
        ),
    };
    format!("Pareto front{} of {}: {what}; `hyperfold compare` shows their values", of(group), names.join(", "))
}

/// The first experiments of configurations by id.
fn experiments(study: &Study, configurations: impl IntoIterator<Item = usize>) -> String {
    let ids: Vec<String> = configurations.into_iter().map(|c| study.configurations[c].exp_id.to_string()).collect();
    let more = if ids.len() > NAMED_UP_TO { format!(" and {} more", ids.len() - NAMED_UP_TO) } else { String::new() };
    let named: Vec<&str> = ids.iter().take(NAMED_UP_TO).map(String::as_str).collect();
    format!("experiment{} {}{more}", if ids.len() > 1 { "s" } else { "" }, named.join(", "))
}

/// An axis' name without its section, where that is unique.
fn short(study: &Study, axis: usize) -> &str {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_string();
    let key = study.axes[axis].as_str();
    let unique = study.axes.iter().filter(|a| last(a) == last(key)).count() == 1;
    if unique { key.rsplit('.').next().unwrap_or(key) } else { key }
}

/// A column's name as words; its unit stands at the value.
fn words(column: &str) -> String {
    column.trim_end_matches("_ns").trim_end_matches("_bytes").replace('_', " ")
}
