//! `hyperfold compare`.
//!
//! Layer: cli. It decides which findings are shown. `compare` finds them, and [`super::compare_render`] renders them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use hyperfold_analysis::compare::explain::packet_hops;
use hyperfold_analysis::compare::gate::Matches;
use hyperfold_analysis::compare::metric::searched_by;
use hyperfold_analysis::compare::{
    CompareError, GateCondition, Pick, RankingMetric, Section, Study, carried_rates, changes, effect, effects, explain,
    explain_one, fidelity, incomplete, ops, pareto, rank,
};
use hyperfold_host::outcomes::timeline::{RecordedSpan, Timeline};
use hyperfold_session::{Interrupt, trace};

use super::compare_render::{json, markdown, text};
use super::exit::{CliError, Exit};
use super::table::number;
use super::{compare_summary, say, say_json, tell_approximate, tell_losses};

/// Largest number of packet-hops of two experiments that are simulated again without being asked for: it takes seconds.
const AGAIN_UP_TO: f64 = 20e6;

/// Largest number of rows in text and Markdown of experiments that meet a condition or have no partner. JSON has all rows.
const PROBLEMS_UP_TO: usize = 50;

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Folders of results; the first of several is the base of the others
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Rank by this column [default: iteration_time_ns, else makespan_ns, else fct_p99_ns]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Rows of a table
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    /// Pareto front of two or more columns [default: a search's objectives, if it has several]
    #[arg(long, value_name = "METRIC,METRIC", value_delimiter = ',')]
    pub pareto: Vec<String>,
    /// Say where the time of one experiment goes, or why two differ: exp_ids, or DIR:EXP_ID
    #[arg(long, num_args = 1..=2, value_names = ["A", "B"])]
    pub explain: Vec<String>,
    /// With --explain: simulate both again however long that takes, and compare the same rank, kernels, collectives, sends and receives [default: if it takes seconds]
    #[arg(long, requires = "explain")]
    pub ops: bool,
    /// Exit with 3 if an experiment meets this condition over its columns; `base` is the value of the first folder's experiment with the same
    /// axes' values and replica, `base.NAME` another column of it (repeatable)
    #[arg(long, value_name = "EXPR")]
    pub fail_if: Vec<String>,
    /// With --fail-if: let a condition over `base` pass although experiments have no partner in the other folder
    #[arg(long, requires = "fail_if")]
    pub allow_unmatched: bool,
    /// How tables look
    #[arg(long, value_enum, default_value_t = CompareFormat::Text, conflicts_with = "json")]
    pub format: CompareFormat,
    /// Markdown for a pull request, at most 25 lines: what is best, what got worse than in the first folder, what failed
    #[arg(long, conflicts_with_all = ["json", "format", "explain", "pareto"])]
    pub summary: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// For terminals, or for pages that render Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    Text,
    Markdown,
}

/// Compares folders, prints the findings, and returns whether a gate was hit.
///
/// # Errors
/// A folder is no result folder, a name does not exist, or a condition is not valid.
pub fn execute(args: &CompareArgs, interrupt: &Interrupt) -> Result<Exit, CliError> {
    if args.summary {
        return summarised(args).map_err(CliError::bad_input);
    }
    let (sections, hit) = findings(args, interrupt).map_err(CliError::bad_input)?;
    args.dirs.iter().for_each(|dir| tell_losses(dir));
    args.dirs.iter().for_each(|dir| tell_approximate(dir));
    if interrupt.requested() {
        return Ok(Exit::Interrupted);
    }
    for section in &sections {
        let max_rows = if matches!(section.kind, "fail_if" | "unmatched") { PROBLEMS_UP_TO } else { usize::MAX };
        let lines = match args.format {
            _ if args.json => json(section),
            CompareFormat::Text => text(section, max_rows),
            CompareFormat::Markdown => markdown(section, max_rows),
        };
        lines.iter().for_each(|line| if args.json { say_json(line) } else { say(line) });
    }
    Ok(if hit { Exit::Condition } else { Exit::Ok })
}

/// Prints the summary, and returns whether a gate was hit.
fn summarised(args: &CompareArgs) -> anyhow::Result<Exit> {
    let study = Study::open(&args.dirs)?;
    let metric = match &args.metric {
        Some(name) => Some(RankingMetric::named(&study, "--metric", name)?),
        None => RankingMetric::default_of(&study).ok(),
    };
    let gates = args.fail_if.iter().map(|text| GateCondition::parse(&study, text)).collect::<Result<Vec<_>, _>>()?;
    let (mut sections, mut hit) = verdicts(&study, &gates, args.allow_unmatched)?;
    if !gates.is_empty() && incomplete::section(&study).is_some() {
        hit = true;
        pass_none(&mut sections);
    }
    let gates = sections.iter().find(|s| s.kind == "gates");
    compare_summary::lines(&study, &args.dirs, metric.as_ref(), gates)?.iter().for_each(|line| say(line));
    Ok(if hit { Exit::Condition } else { Exit::Ok })
}

fn findings(args: &CompareArgs, interrupt: &Interrupt) -> anyhow::Result<(Vec<Section>, bool)> {
    let study = Study::open(&args.dirs)?;
    let top = args.top as usize;
    let metric = args.metric.as_ref().map(|name| RankingMetric::named(&study, "--metric", name)).transpose()?;
    let axes_of_front = match args.pareto.as_slice() {
        [only] => {
            return Err(CompareError::Pareto(format!(
                "`{only}` alone has no front; name two metrics, with a comma between"
            ))
            .into());
        }
        names if names.iter().enumerate().any(|(index, name)| names[..index].contains(name)) => {
            return Err(CompareError::Pareto(format!(
                "{} names a metric twice; a front is of different ones",
                names.join(",")
            ))
            .into());
        }
        names => {
            names.iter().map(|name| RankingMetric::named(&study, "--pareto", name)).collect::<Result<Vec<_>, _>>()?
        }
    };
    let named = args.explain.iter().enumerate().map(|(nth, text)| Pick::parse(&study, text, nth));
    let picks = named.collect::<Result<Vec<Pick>, _>>()?;
    let gates = args.fail_if.iter().map(|text| GateCondition::parse(&study, text)).collect::<Result<Vec<_>, _>>()?;

    let (mut sections, mut hit) = verdicts(&study, &gates, args.allow_unmatched)?;
    if let Some(carried) = carried_rates::section(&study) {
        sections.insert(0, carried);
    }
    if let Some(mut incomplete) = incomplete::section(&study) {
        if !gates.is_empty() {
            hit = true;
            pass_none(&mut sections);
            incomplete.notes.push(
                "no gate passes as long as experiments are missing; `hyperfold run` with --resume runs them".into(),
            );
        }
        sections.insert(0, incomplete);
    }
    match picks[..] {
        [a, b] => sections.extend(explained(&study, a, b, args.ops, top, interrupt)?),
        [one] if args.ops => {
            let id = one.name(&study);
            anyhow::bail!(
                "--ops compares two experiments: name another beside {id}; `hyperfold trace` shows the operations of one"
            );
        }
        [one] => sections.extend(explain_one(&study, one, top)?),
        _ => {}
    }
    if !picks.is_empty() {
        return Ok((sections, hit));
    }
    // Gates are evaluated even if no experiment has a metric.
    let metric = match metric.map_or_else(|| RankingMetric::default_of(&study), Ok) {
        Err(CompareError::Nothing) if !gates.is_empty() => return Ok((sections, hit)),
        other => other?,
    };
    sections.extend(changes::section(&study, &metric, top));
    sections.extend(fidelity::section(&study, &metric, top)?);
    let groups = rank(&study, &metric);
    sections.push(rank::section(&study, &metric, &groups, top));
    let effects = effects(&study, &metric);
    if !effects.axes.is_empty() {
        sections.push(effect::section(&study, &metric, &effects));
    }
    // A search for several objectives shows their Pareto front.
    let axes_of_front = if axes_of_front.is_empty() { searched_by(&study) } else { axes_of_front };
    if axes_of_front.len() > 1 {
        sections.push(pareto::section(&study, &axes_of_front, &groups));
    }
    Ok((sections, hit))
}

/// Explains why two experiments differ. Their operations are compared if that takes seconds, or if `always`.
fn explained(
    study: &Study,
    a: Pick,
    b: Pick,
    always: bool,
    top: usize,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Section>> {
    let hops = packet_hops(study, a, b);
    let again = always || hops.is_some_and(|hops| hops <= AGAIN_UP_TO);
    // Inputs of moved folders may be missing. Then only the files of the folders are compared.
    let recorded = match again.then(|| Ok((timeline(study, a, interrupt)?, timeline(study, b, interrupt)?))) {
        Some(Err(why)) if always => return Err(why),
        Some(recorded) => Some(recorded.map_err(|why: anyhow::Error| format!("{why:#}"))),
        None => None,
    };
    let timelines = recorded.as_ref().and_then(|r| r.as_ref().ok()).map(|(a, b)| (a, b));
    let mut sections = explain(study, a, b, timelines, top)?;
    match &recorded {
        Some(Ok((a, b))) if a.job.is_some() || b.job.is_some() || always => sections.push(ops::section(a, b, top)),
        Some(Ok(_)) => {}
        Some(Err(why)) => {
            let note = format!("their operations are not compared, because they cannot be simulated again: {why}");
            sections.last_mut().expect("settings come first").notes.push(note);
        }
        None => {
            let millions = hops.map(|hops| format!(" {} million packet-hops", number(hops / 1e6)));
            let note =
                format!("--ops compares their operations; it simulates both again{}", millions.unwrap_or_default());
            sections.last_mut().expect("settings come first").notes.push(note);
        }
    }
    Ok(sections)
}

fn timeline(study: &Study, pick: Pick, interrupt: &Interrupt) -> anyhow::Result<Timeline> {
    let run = &study.runs[pick.run];
    let exp_id = run.exp_id(pick.row);
    let (_, config) = trace::experiment(run, exp_id)?;
    Ok(trace::timeline(&config, exp_id, RecordedSpan { samples: 0, ..RecordedSpan::default() }, interrupt)?)
}

/// Column of the gate table that says whether a gate has passed.
const PASSED: usize = 1;

/// Marks all gates as not passed, because experiments are missing.
fn pass_none(sections: &mut [Section]) {
    let gates = sections.iter_mut().filter(|s| s.kind == "gates");
    gates.flat_map(|s| &mut s.rows).for_each(|row| row[PASSED] = false.into());
}

/// Verdicts of the gates, and whether one was hit. A gate over the base is also hit if experiments have no partner, unless `allow_unmatched`.
fn verdicts(
    study: &Study,
    gates: &[GateCondition],
    allow_unmatched: bool,
) -> Result<(Vec<Section>, bool), CompareError> {
    let matches = Matches::of(study);
    let mut summary = Section::new("gates", "gates", ["condition", "passed", "checked", "hits", "without partner"]);
    let (mut details, mut hit) = (Vec::new(), false);
    for gate in gates {
        let verdict = gate.check(study, &matches)?;
        let (checked, hits) = (verdict.checked as u64, verdict.hits.len() as u64);
        let alone = if gate.uses_base() { matches.unmatched() as u64 } else { 0 };
        let passed = hits == 0 && (alone == 0 || allow_unmatched);
        summary.rows.push(vec![gate.text().into(), passed.into(), checked.into(), hits.into(), alone.into()]);
        let mut section = gate.section(study, &verdict);
        summary.notes.append(&mut section.notes);
        details.extend((hits > 0).then_some(section));
        hit |= !passed;
    }
    let based = gates.iter().any(GateCondition::uses_base);
    if based {
        summary.notes.extend(matches.differences.clone());
        if matches.unmatched() > 0 && !allow_unmatched {
            summary
                .notes
                .push("experiments without a partner fail a gate over `base`; --allow-unmatched lets them pass".into());
        }
    }
    let mut sections: Vec<Section> = (!gates.is_empty()).then_some(summary).into_iter().chain(details).collect();
    sections.extend(based.then(|| matches.section(study)).flatten());
    Ok((sections, hit))
}
