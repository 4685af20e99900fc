//! `hyperfold compare`.
//!
//! Layer: cli. Decides which findings are asked for; `compare` finds them, [`super::compare_render`] shows them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::batch::timeline::{Timeline, Window};
use crate::compare::gate::Matches;
use crate::compare::metric::{available, objectives};
use crate::compare::{
    CompareError, Gate, Metric, Pick, Section, Study, changes, effect, effects, explain, incomplete, ops, pareto, rank,
};
use crate::session::{Interrupt, trace};

use super::compare_render::{json, markdown, text};
use super::exit::{CliError, Exit};
use super::say;

/// Rows of experiments that meet a condition or have no partner which people are shown at most; machines get all.
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
    /// Say why two experiments differ: exp_ids, or DIR:EXP_ID
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub explain: Vec<String>,
    /// With --explain: simulate both again, and compare their kernels, collectives, sends and receives
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
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "json")]
    pub format: Format,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// For terminals, or for pages that render Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Markdown,
}

/// Compares, prints, and says whether a gate was hit.
///
/// # Errors
/// Folders that are none, names that do not exist, conditions that are none.
pub fn execute(args: &CompareArgs, interrupt: &Interrupt) -> Result<Exit, CliError> {
    let (sections, hit) = findings(args, interrupt).map_err(CliError::bad_input)?;
    if interrupt.requested() {
        return Ok(Exit::Interrupted);
    }
    for section in &sections {
        let most = if matches!(section.kind, "fail_if" | "unmatched") { PROBLEMS_UP_TO } else { usize::MAX };
        let lines = match args.format {
            _ if args.json => json(section),
            Format::Text => text(section, most),
            Format::Markdown => markdown(section, most),
        };
        lines.iter().for_each(|line| say(line));
    }
    Ok(if hit { Exit::Condition } else { Exit::Ok })
}

fn findings(args: &CompareArgs, interrupt: &Interrupt) -> anyhow::Result<(Vec<Section>, bool)> {
    let study = Study::open(&args.dirs)?;
    let top = args.top as usize;
    let metric = args.metric.as_ref().map(|name| Metric::named(&study, "--metric", name)).transpose()?;
    let axes_of_front = match args.pareto.as_slice() {
        [only] => {
            return Err(CompareError::Pareto(format!(
                "`{only}` alone has no front; name two metrics, with a comma between"
            ))
            .into());
        }
        names if names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) => {
            return Err(CompareError::Pareto(format!(
                "{} names a metric twice; a front is of different ones",
                names.join(",")
            ))
            .into());
        }
        names => names.iter().map(|name| Metric::named(&study, "--pareto", name)).collect::<Result<Vec<_>, _>>()?,
    };
    let picks = match args.explain.as_slice() {
        [a, b] => Some((Pick::parse(&study, a, 0)?, Pick::parse(&study, b, 1)?)),
        _ => None,
    };
    let gates = args.fail_if.iter().map(|text| Gate::parse(&study, text)).collect::<Result<Vec<_>, _>>()?;

    let (mut sections, mut hit) = verdicts(&study, &gates, args.allow_unmatched)?;
    if let Some(mut incomplete) = incomplete::section(&study) {
        if !gates.is_empty() {
            hit = true;
            sections
                .iter_mut()
                .filter(|s| s.kind == "gates")
                .flat_map(|s| &mut s.rows)
                .for_each(|row| row[PASSED] = false.into());
            incomplete.notes.push(
                "no gate passes as long as experiments are missing; `hyperfold run` with --resume runs them".into(),
            );
        }
        sections.insert(0, incomplete);
    }
    if let Some((a, b)) = picks {
        sections.extend(explain(&study, a, b, top)?);
        if args.ops {
            sections.push(ops::section(&timeline(&study, a, interrupt)?, &timeline(&study, b, interrupt)?, top));
        }
        return Ok((sections, hit));
    }
    // A gate over what has no metric is a gate all the same.
    let metric = match metric.map_or_else(|| Metric::default_of(&study), Ok) {
        Err(CompareError::Nothing) if !gates.is_empty() => return Ok((sections, hit)),
        other => other?,
    };
    sections.extend(changes::section(&study, &metric, top));
    let groups = rank(&study, &metric);
    sections.push(rank::section(&study, &metric, &groups, top));
    let effects = effects(&study, &metric);
    if !effects.axes.is_empty() {
        sections.push(effect::section(&study, &metric, &effects));
    }
    // A search for several objectives is for their front.
    let axes_of_front = if axes_of_front.is_empty() { searched_by(&study) } else { axes_of_front };
    if axes_of_front.len() > 1 {
        sections.push(pareto::section(&study, &axes_of_front, &groups));
    }
    Ok((sections, hit))
}

/// The objectives of the first folder's search that any experiment has.
pub(super) fn searched_by(study: &Study) -> Vec<Metric> {
    let known = available(study);
    objectives(study.runs[0].sweep().as_ref()).iter().filter(|o| known.contains(o)).map(|o| Metric::of(o)).collect()
}

fn timeline(study: &Study, pick: Pick, interrupt: &Interrupt) -> anyhow::Result<Timeline> {
    let run = &study.runs[pick.run];
    let exp_id = run.exp_id(pick.row);
    let (_, config) = trace::experiment(run, exp_id)?;
    Ok(trace::timeline(&config, exp_id, Window { samples: 0, ..Window::default() }, interrupt)?)
}

/// Where the table of gates says whether one has passed.
const PASSED: usize = 1;

/// The gates' verdicts, and whether one was hit. A base that an experiment lacks cannot be held against it: unless that is allowed, it is a hit.
fn verdicts(study: &Study, gates: &[Gate], allow_unmatched: bool) -> Result<(Vec<Section>, bool), CompareError> {
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
    let based = gates.iter().any(Gate::uses_base);
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
