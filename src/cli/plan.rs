//! `hyperfold plan`.
//!
//! Layer: cli.

use std::time::Instant;

use anyhow::anyhow;
use serde_json::json;

use hyperfold_session::{Excluded, MemoryForecast, Planned, SLOWED_BY_PAUSES, Simulator, SweepRequest, TimeForecast};

use super::args::PlanArgs;
use super::exit::{CliError, Exit};
use super::patience::Patience;
use super::{say, say_json, table};

/// Prints what a run would do.
///
/// # Errors
/// The input is bad, or there is nothing to run.
pub fn execute<S: Simulator>(args: &PlanArgs, simulator: &S) -> Result<Exit, CliError> {
    args.sweep.limit_memory();
    let began = Instant::now();
    let request = SweepRequest { estimates: true, ..args.sweep.request() };
    let patience = Patience::with(&request.progress, false);
    let (mut planned, sweep) = simulator.load(&request)?;
    if args.probe {
        // A run needs the planning time as well.
        let planning = began.elapsed().as_secs_f64();
        planned.seconds = simulator.probe(&sweep).map(|time| time.after(planning)).or(planned.seconds);
    }
    drop(patience);
    match args.json {
        true => say_json(&as_json(&planned)),
        false => as_text(&planned).iter().for_each(|line| say(line)),
    }
    if planned.selected.is_empty() {
        let error = anyhow!("{}: no experiments; check constraints, --shard and --limit", args.sweep.sweep.display());
        return Err(CliError::bad_input(error));
    }
    Ok(Exit::Ok)
}

fn as_text(planned: &Planned) -> Vec<String> {
    let mut lines = vec![format!("experiments: {}", planned.experiments)];
    if planned.selected.len() as u64 != planned.experiments {
        lines.push(format!("selected: {}", planned.selected.len()));
    }
    let axes: Vec<&str> = planned.axes.iter().map(|a| a.key.as_str()).collect();
    lines.push(format!("axes: {}", if axes.is_empty() { "none".to_string() } else { axes.join(", ") }));
    lines.extend(planned.search.as_ref().map(|s| format!("search: {s}")));
    lines.push(format!("duplicates: {}", planned.duplicates));
    lines.extend(planned.duplicates_note.iter().map(|note| format!("  {note}")));
    for (heading, excluded) in [("cannot run", &planned.cannot_run), ("cannot fit", &planned.cannot_fit)] {
        lines.push(format!("{heading}: {}", excluded.experiments.len()));
        lines.extend(excluded.lines().iter().map(|line| format!("  {line}")));
    }
    lines.extend(planned.memory.map(|m| format!("estimated memory: {}", memory(&m))));
    lines.extend(planned.seconds.map(|t| format!("estimated time: {}", range(&t))));
    lines.extend(planned.warnings.iter().map(|w| format!("warning: {w}")));
    lines
}

/// Total memory, and the terms that are more than a twentieth of it.
fn memory(memory: &MemoryForecast) -> String {
    let total = memory.total();
    let terms = [
        ("process", memory.process),
        ("batch", memory.batch),
        ("jobs", memory.jobs),
        ("memo", memory.memo),
        ("outcomes", memory.outcomes),
    ];
    let counts = terms.into_iter().filter(|(_, bytes)| *bytes > total / 20);
    let terms: Vec<String> = counts.map(|(name, bytes)| format!("{name} {}", table::bytes(bytes))).collect();
    format!("{} ({})", table::bytes(total), terms.join(", "))
}

/// The probed time, if there is one. Otherwise the range from shortest to longest time, or a single time if folding makes little difference.
fn range(time: &TimeForecast) -> String {
    let (shortest, longest) = (table::seconds(time.least), table::seconds(time.most));
    if let Some(about) = time.about {
        let pauses = if time.may_pause {
            format!("; switches may pause (PFC) later, and then it takes up to {SLOWED_BY_PAUSES} times as long")
        } else {
            String::new()
        };
        return format!("about {}, by simulating some experiments for a moment{pauses}", table::seconds(about));
    }
    if time.may_pause {
        return format!(
            "{shortest} to {longest}; how often switches pause (PFC) cannot be known before, and much of it is slow"
        );
    }
    if time.most < 1.25 * time.least || shortest == longest {
        return longest;
    }
    format!("{shortest} to {longest}, by how much folding saves; --probe says it more closely")
}

fn as_json(planned: &Planned) -> String {
    let each = |excluded: &Excluded| -> Vec<_> {
        excluded.experiments.iter().map(|(id, why)| json!({"exp_id": id, "why": &**why})).collect()
    };
    json!({
        "name": planned.name,
        "experiments": planned.experiments,
        "selected": planned.selected.len(),
        "axes": planned.axes.iter().map(|a| a.key.as_str()).collect::<Vec<_>>(),
        "duplicates": planned.duplicates_note.iter().collect::<Vec<_>>(),
        "duplicate_experiments": planned.duplicates,
        "cannot_run": each(&planned.cannot_run),
        "cannot_fit": each(&planned.cannot_fit),
        "memory_bytes": planned.memory.map(|m| m.total()),
        "memory": planned.memory,
        "seconds": planned.seconds.map(|t| t.about.unwrap_or(t.most)),
        "seconds_range": planned.seconds.map(|t| [t.least, t.most]),
        "may_pause": planned.seconds.map(|t| t.may_pause),
        "warnings": planned.warnings,
        "search": planned.search,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_results::{Axis, ColumnKind};
    use hyperfold_session::ExcludedGroup;

    fn planned() -> Planned {
        Planned {
            name: "p".into(),
            experiments: 12,
            selected: (0..6).collect(),
            axes: vec![Axis { key: "transport.cc".into(), kind: ColumnKind::Text }],
            cannot_fit: Excluded {
                experiments: vec![(3, "needs 90 GiB, the GPU has 80".into())],
                groups: vec![ExcludedGroup {
                    values: Vec::new(),
                    n: 1,
                    in_others: 0,
                    exp_id: 3,
                    why: "needs 90 GiB, the GPU has 80".into(),
                    reasons_differ: false,
                }],
            },
            memory: Some(MemoryForecast {
                process: 20 << 20,
                batch: 300 << 20,
                jobs: 40 << 20,
                memo: 1 << 20,
                outcomes: 0,
            }),
            seconds: Some(TimeForecast { least: 4.0, about: None, most: 61.0, may_pause: false }),
            warnings: vec!["w".into()],
            ..Planned::default()
        }
    }

    #[test]
    fn text_begins_with_the_number_of_experiments() {
        insta::assert_snapshot!(as_text(&planned()).join("\n"));
    }

    #[test]
    fn json_is_one_line() {
        insta::assert_snapshot!(as_json(&planned()));
    }
}
