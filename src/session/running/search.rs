//! Runs a search (`method = "optimize"`): evaluates candidates for [`hyperfold_analysis::optimize`], and reports its choice.
//!
//! Layer: session. Candidates are points of the sweep. [`crate::running::candidates`] evaluates the first replica of a point; full runs have all replicas.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hyperfold_analysis::optimize::{Budget, Fate, Objective, SearchLimit, WithinLimits, record_within, search, table};
use hyperfold_config::spec::{Source, WorkloadSection};
use hyperfold_config::sweep::{Experiment, Selection, Sweep};
use hyperfold_results::record::SERVING;
use hyperfold_results::{Axis, Cell, ExperimentRecord, LookRecord};

use crate::error::SessionError;
use crate::experiment::config;
use crate::planning::planned::SearchPlan;
use crate::running::candidates::{CandidateEvaluator, CandidateView, SearchStop};
use crate::running::update::{Update, UpdateSink};
use crate::running::workers::DeviceWorkers;
use crate::settings::RunSettings;
use hyperfold_base::units::counted;

/// The setup of a search, fixed when the sweep is read.
#[derive(Clone)]
pub(crate) struct SearchSetup {
    objectives: Vec<Objective>,
    limits: Arc<[SearchLimit]>,
    /// Place in the sweep file where limits are written.
    limits_place: String,
    budget: Budget,
}

/// Reads the search that a sweep asks for; `None`: it asks for none.
///
/// # Errors
/// An objective does not exist, or an option is impossible for a search.
pub(crate) fn setup(sweep: &Sweep, selection: &Selection) -> Result<Option<SearchSetup>, SessionError> {
    let Some(asked) = &sweep.search else { return Ok(None) };
    if let Some(shard) = selection.shard {
        return Err(SessionError::Input(format!(
            "--shard {}/{}: a search decides by all of its candidates, so it cannot be cut into shards; run it as a whole",
            shard.index, shard.of
        )));
    }
    if able(sweep).any(|e| config(sweep, e).jobs.is_some()) {
        return Err(SessionError::Input(format!(
            "{}: method = \"optimize\" knows experiments of one workload; run [[job]] tables with another method",
            asked.place
        )));
    }
    if able(sweep).any(|e| config(sweep, e).cluster_run().is_some()) {
        return Err(SessionError::Input(format!(
            "{}: method = \"optimize\" knows experiments of packets; run fidelity.mode = \"job\" with another method, such as lhs",
            asked.place
        )));
    }
    let mut objectives = Vec::with_capacity(asked.objectives.len());
    for name in &asked.objectives {
        let objective = Objective::named(name)
            .map_err(|e| SessionError::Objective { place: asked.place.to_string(), source: e.into() })?;
        let needed = needed_by(objective.name());
        if !able(sweep).any(|e| needed.1(&config(sweep, e).workload)) {
            return Err(SessionError::Input(format!(
                "{}: `sweep.objectives`: `{name}` is empty for every experiment of this sweep; it needs {}",
                asked.place, needed.0
            )));
        }
        objectives.push(objective);
    }
    if objectives.is_empty() {
        let programs =
            able(sweep).next().is_some_and(|e| matches!(config(sweep, e).workload, WorkloadSection::Program(_)));
        let name = if programs { "iteration_time_ns" } else { "makespan_ns" };
        objectives.push(Objective::named(name).expect("both are columns of numbers"));
    }
    let limits_place = asked.limits_place.to_string();
    let mut limits = Vec::with_capacity(asked.limits.len());
    for text in &asked.limits {
        let bad =
            |why: String| SessionError::Input(format!("{limits_place}: `sweep.limits`: `{}`: {why}", shown(text)));
        let limit = SearchLimit::parse(text).map_err(bad)?;
        for column in limit.columns() {
            let needed = needed_by(column.name());
            if !able(sweep).any(|e| needed.1(&config(sweep, e).workload)) {
                let name = column.name();
                return Err(bad(format!(
                    "`{name}` is empty for every experiment of this sweep; it needs {}",
                    needed.0
                )));
            }
        }
        limits.push(limit);
    }
    let budget = Budget::new(points(sweep).len(), asked.samples);
    Ok(Some(SearchSetup { objectives, limits: limits.into(), limits_place, budget }))
}

/// Returns the experiments whose keys do not contradict each other.
fn able(sweep: &Sweep) -> impl Iterator<Item = &Experiment> {
    sweep.experiments.iter().filter(|e| sweep.cannot_run(e).is_none())
}

/// Returns which workloads have a value in a column, in words and as a test.
fn needed_by(column: &str) -> (&'static str, fn(&WorkloadSection) -> bool) {
    let model = |w: &WorkloadSection| matches!(w, WorkloadSection::Program(p) if matches!(p.source, Source::Model(_)));
    let collective =
        |w: &WorkloadSection| matches!(w, WorkloadSection::Program(p) if matches!(p.source, Source::Collective { .. }));
    match column {
        "mfu" => ("workload.kind = \"model\"", model),
        "tokens_per_s" | "tokens_per_s_per_gpu" | "peak_memory_bytes" | "usd_per_mtoken" => (
            "workload.kind = \"model\" or \"inference\"",
            |w| matches!(w, WorkloadSection::Program(p) if matches!(p.source, Source::Model(_) | Source::Inference(_))),
        ),
        name if SERVING.iter().any(|c| c.name == name) => (
            "workload.kind = \"inference\"",
            |w| matches!(w, WorkloadSection::Program(p) if matches!(p.source, Source::Inference(_))),
        ),
        "algbw_gbps" | "busbw_gbps" => ("workload.kind = \"collective\"", collective),
        "iteration_time_ns" | "compute_ns" | "bubble_ns" | "optimizer_ns" | "other_ns" => {
            ("a model, a collective or a program", |w| matches!(w, WorkloadSection::Program(_)))
        }
        name if name.starts_with("comm_exposed_") => {
            ("a model, a collective or a program", |w| matches!(w, WorkloadSection::Program(_)))
        }
        _ => ("any workload", |_| true),
    }
}

/// Shortens a user's text for a message.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

impl SearchSetup {
    /// Returns the columns that are evaluated: objectives, then columns that only limits name.
    fn columns(&self) -> Vec<Objective> {
        let mut columns = self.objectives.clone();
        for column in self.limits.iter().flat_map(SearchLimit::columns) {
            if columns.iter().all(|c| c.name() != column.name()) {
                columns.push(column);
            }
        }
        columns
    }

    /// Returns a warning about experiments that ran in full and exceeded a limit.
    pub(crate) fn warning(&self, beyond: &[(u64, String)]) -> Option<String> {
        let (exp_id, why) = beyond.first()?;
        let others = if beyond.len() > 1 { format!(", and {} more", beyond.len() - 1) } else { String::new() };
        Some(format!("{}: `sweep.limits`: experiment {exp_id} ran in full and is {why}{others}", self.limits_place))
    }

    /// Returns why a result exceeds a limit; `None` if it does not.
    pub(crate) fn beyond(&self, record: &ExperimentRecord) -> Option<String> {
        match record_within(&self.limits, record) {
            WithinLimits::No(why) => Some(why),
            WithinLimits::Yes | WithinLimits::Unknown => None,
        }
    }

    /// Returns the plan of the search.
    pub(crate) fn plan(&self, sweep: &Sweep) -> SearchPlan {
        let points = points(sweep);
        let replicas = points.first().map_or(1, |p| p.len());
        SearchPlan {
            candidates: points.len() as u64,
            coarse: self.budget.coarse as u64,
            full: (self.budget.full * replicas) as u64,
            objectives: self.objectives.iter().map(|o| o.name().to_string()).collect(),
            limits: self.limits.iter().map(|l| l.text().to_string()).collect(),
        }
    }
}

/// Returns the experiments of each candidate. Replicas are neighbours.
fn points(sweep: &Sweep) -> Vec<&[Experiment]> {
    sweep.experiments.chunk_by(|a, b| a.point == b.point).collect()
}

/// The result of a search.
pub(crate) struct SearchChoice {
    /// Ids of experiments to run in full.
    pub(crate) ids: HashSet<u64>,
    /// Messages about devices that were lost during the search.
    pub(crate) lost_devices: Vec<String>,
}

/// Runs the search, starting from the results of an earlier run's search. `None`: it was interrupted.
#[expect(clippy::too_many_arguments, reason = "all that a run is made with")]
pub(crate) fn choose(
    sweep: &Sweep,
    setup: &SearchSetup,
    axes: &[Axis],
    workers: &mut DeviceWorkers,
    pool: &Arc<rayon::ThreadPool>,
    settings: &RunSettings,
    known: &[LookRecord],
    sink: &mut UpdateSink<'_>,
) -> Result<Option<SearchChoice>, SessionError> {
    let points = points(sweep);
    let (ranks, ordered) = ranks(sweep, &points);
    let columns = setup.columns();
    let n_objectives = setup.objectives.len();
    let view = CandidateView {
        sweep,
        points: &points,
        columns: &columns,
        n_objectives,
        limits: &setup.limits,
        pool,
        settings,
    };
    let mut evaluator = CandidateEvaluator::new(view, workers, known, sink);
    let (found, chosen) = match search(&ranks, &ordered, setup.budget, sweep.seed, &mut evaluator) {
        Ok(done) => done,
        Err(SearchStop::Interrupted) => return Ok(None),
        Err(SearchStop::Failed(e)) => return Err(*e),
    };
    let lost_devices = evaluator.lost_devices;
    if chosen.is_empty() {
        let why = found.iter().find_map(|f| match &f.fate {
            Fate::Out { why, .. } => Some(format!("; of the first: {why}")),
            _ => None,
        });
        return Err(SessionError::Input(format!(
            "{}: `sweep.limits`: none of {} is within them{}; loosen one, or widen an axis",
            setup.limits_place,
            counted(points.len(), "candidate"),
            why.unwrap_or_default()
        )));
    }
    let ids: Vec<u64> = points.iter().map(|p| p[0].exp_id).collect();
    let values: Vec<Vec<Cell>> =
        points.iter().map(|p| sweep.axis_values(&p[0]).iter().map(Cell::from).collect()).collect();
    let csv = table(axes, &setup.objectives, &ids, &values, &found);
    let chosen: Vec<u64> = chosen.into_iter().flat_map(|i| points[i].iter().map(|e| e.exp_id)).collect();
    let choice = SearchChoice { ids: chosen.iter().copied().collect(), lost_devices };
    sink(Update::Chosen { ids: chosen, csv })?;
    Ok(Some(choice))
}

/// Returns, for each candidate and axis, the rank of its value among the axis' distinct values, and for each axis whether its values are ordered.
fn ranks(sweep: &Sweep, points: &[&[Experiment]]) -> (Vec<Vec<u32>>, Vec<bool>) {
    let values: Vec<Vec<Cell>> =
        points.iter().map(|p| sweep.axis_values(&p[0]).iter().map(Cell::from).collect()).collect();
    let mut ranks = vec![Vec::with_capacity(sweep.axes.len()); points.len()];
    let mut ordered = Vec::with_capacity(sweep.axes.len());
    let number = |c: &Cell| match c {
        Cell::Int(v) => Some(*v as f64),
        Cell::Real(v) => Some(*v),
        _ => None,
    };
    for axis in 0..sweep.axes.len() {
        let mut distinct: Vec<&Cell> = Vec::new();
        let mut rank_of: HashMap<String, u32> = HashMap::new();
        for v in &values {
            if rank_of.insert(format!("{:?}", v[axis]), 0).is_none() {
                distinct.push(&v[axis]);
            }
        }
        let numbers = distinct.iter().all(|c| number(c).is_some());
        if numbers {
            distinct.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
        }
        ordered.push(numbers);
        for (i, c) in distinct.iter().enumerate() {
            rank_of.insert(format!("{c:?}"), i as u32);
        }
        ranks.iter_mut().zip(&values).for_each(|(r, v)| r.push(rank_of[&format!("{:?}", v[axis])]));
    }
    (ranks, ordered)
}
