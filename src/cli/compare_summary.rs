//! `hyperfold compare --summary`: Markdown for a pull request, at most one screen.
//!
//! Layer: cli. It chooses which findings get a line; `compare` and `report` find them. Names from users' files are made harmless as in
//! [`super::compare_render`].

use std::path::PathBuf;

use hyperfold_analysis::compare::changes::{Change, changes};
use hyperfold_analysis::compare::{RankingMetric, Section, Study};
use hyperfold_analysis::recommendation::load::load;
use hyperfold_analysis::recommendation::recommend::of_folder;
use hyperfold_base::printable::shortened;
use hyperfold_base::units::counted;
use hyperfold_config::spec::named_value;
use hyperfold_report::page::reasons::reasons;
use hyperfold_results::{Cell, Status};

use super::best;
use super::compare_render::{escaped, shown};

/// Largest number of lines of a summary.
pub(super) const LINES_UP_TO: usize = 25;
/// Largest numbers of axes of the recommendation, kinds of work, configurations that got worse, reasons of failures, and gates.
const AXES_UP_TO: usize = 4;
const BESTS_UP_TO: usize = 3;
const WORSE_UP_TO: usize = 4;
const REASONS_UP_TO: usize = 2;
const GATES_UP_TO: usize = 2;

/// Lines of the summary. `gates` is the table of gates, if there are any.
///
/// # Errors
/// The last folder cannot be read.
pub(super) fn lines(
    study: &Study,
    dirs: &[PathBuf],
    metric: Option<&RankingMetric>,
    gates: Option<&Section>,
) -> anyhow::Result<Vec<String>> {
    let last = study.runs.len() - 1;
    let against = if last > 0 { format!(" against {}", study.dir(0)) } else { String::new() };
    let mut lines = vec![format!("### {}{}", escaped(&study.dir(last)), escaped(&against)), String::new()];
    let recommended = of_folder(&dirs[last])?.filter(|r| !best::recommended(r).is_empty());
    let told = match &recommended {
        Some(r) => abridged(best::recommended(r)),
        None => best::of_workloads(study, last, metric, BESTS_UP_TO),
    };
    for (index, line) in told.iter().enumerate() {
        let (label, rest) = line.trim().split_once(':').unwrap_or((line.trim(), ""));
        let bullet = if index > 0 && recommended.is_some() { "- " } else { "" };
        let bold = if index == 0 || recommended.is_none() { "**" } else { "" };
        lines.push(format!("{bullet}{bold}{}:{bold}{}", escaped(label), escaped(rest)));
    }
    lines.push(String::new());
    if let Some(metric) = metric.filter(|_| last > 0) {
        lines.extend(since_base(study, metric));
    }
    lines.extend(failures(study, dirs, last)?);
    for row in gates.iter().flat_map(|g| &g.rows).take(GATES_UP_TO) {
        let passed = row[1] == Cell::Flag(true);
        let verdict = if passed { "passed".to_string() } else { format!("**hit** by {} of {}", row[3], row[2]) };
        lines.push(format!("Gate `{}`: {verdict}", row[0].to_string().replace('`', "'")));
    }
    debug_assert!(lines.len() <= LINES_UP_TO, "{} lines", lines.len());
    Ok(lines)
}

/// At most `3 + AXES_UP_TO` lines of a recommendation. Axes that were not simulated or compared, and the price, are always among them.
fn abridged(lines: Vec<String>) -> Vec<String> {
    let (unmodelled, mut lines): (Vec<String>, Vec<String>) =
        lines.into_iter().partition(|line| best::is_of_axes_left_out(line));
    let price = lines.pop_if(|line| line.starts_with("  price"));
    // The first lines are the design, the line that all else is the same, and the axes.
    lines.truncate((2 + AXES_UP_TO).saturating_sub(unmodelled.len()).max(1));
    lines.into_iter().chain(unmodelled).chain(price).collect()
}

/// How many configurations got worse than in the base, and the worst of them.
fn since_base(study: &Study, metric: &RankingMetric) -> Vec<String> {
    let all = changes(study, metric);
    if all.is_empty() {
        return vec!["**Against the base:** no configuration is in both folders.".into(), String::new()];
    }
    let moved = all.iter().filter(|c| !c.tied && c.now != c.then);
    let (mut worse, better): (Vec<&Change>, Vec<&Change>) = moved.partition(|c| metric.is_better(c.then, c.now));
    let same = all.len() - worse.len() - better.len();
    worse.sort_by(|a, b| b.size().total_cmp(&a.size()));
    let mut lines = vec![format!(
        "**Against the base**, by {}: of {}, {} worse, {} better, {same} as before.",
        escaped(&metric.name),
        counted(all.len(), "configuration"),
        worse.len(),
        better.len()
    )];
    lines.push(String::new());
    if worse.is_empty() {
        return lines;
    }
    lines.extend(["| worse | exp_id | before | now | change |".to_string(), "| :-- | --: | --: | --: | --: |".into()]);
    for change in worse.iter().take(WORSE_UP_TO) {
        let c = &study.configurations[change.configuration];
        let varied = (0..study.axes.len()).map(|a| named_value(&study.axes[a], &c.values[a]));
        let value = |v: f64| shown(&metric.name, &Cell::Real(v));
        let percent = change.percent().map_or(String::new(), |p| format!("{} %", shown("change %", &Cell::Real(p))));
        lines.push(format!(
            "| {} | {} | {} | {} | {percent} |",
            escaped(&varied.collect::<Vec<_>>().join(", ")),
            c.exp_id,
            value(change.then),
            value(change.now)
        ));
    }
    if worse.len() > WORSE_UP_TO {
        lines.push(format!("| and {} more | | | | |", worse.len() - WORSE_UP_TO));
    }
    lines.push(String::new());
    lines
}

/// Experiments without a result, and why.
fn failures(study: &Study, dirs: &[PathBuf], last: usize) -> anyhow::Result<Vec<String>> {
    let run = &study.runs[last];
    let n = |status: Status| (0..run.rows.len()).filter(|&row| run.status(row) == status).count();
    let (failed, oom, all) = (n(Status::Failed), n(Status::Oom), counted(run.rows.len(), "experiment"));
    let mut lines = vec![match (failed, oom) {
        (0, 0) => format!("**Failed:** none of {all}."),
        (failed, 0) => format!("**Failed:** {failed} of {all}."),
        (failed, oom) => format!("**Failed:** {failed} of {all}; {oom} need more memory than their GPUs have."),
    }];
    for reason in reasons(&load(&dirs[last])?.sheet).iter().filter(|r| r.status == "failed").take(REASONS_UP_TO) {
        let message = shortened(&reason.message, 160);
        lines.push(format!(
            "- {}, such as {}: {}",
            counted(reason.count, "experiment"),
            reason.named[0],
            escaped(&message)
        ));
    }
    lines.extend(run.incomplete().map(|why| format!("- {}", escaped(&why))));
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_recommendation_keeps_what_was_not_simulated_and_the_price() {
        let lines = |texts: &[&str]| -> Vec<String> { texts.iter().map(|t| t.to_string()).collect() };
        let nothing = lines(&["nothing is recommended: none", "  not simulated: a.b; x", "  not simulated: c.d; y"]);
        assert_eq!(abridged(nothing.clone()), nothing);
        let long = lines(&["r", "all", "1", "2", "3", "4", "5", "  not simulated: a.b; x", "  next", "  price: $1"]);
        let kept = lines(&["r", "all", "1", "2", "3", "  not simulated: a.b; x", "  price: $1"]);
        assert_eq!(abridged(long), kept);
    }
}
