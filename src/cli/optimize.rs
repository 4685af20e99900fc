//! `method = "optimize"` on the command line: looks at candidates for [`crate::optimize`], and says what it chose.
//!
//! Layer: cli. Candidates are points of the sweep; estimates and coarse simulations are made with a point's first replica, full runs with all of them.

use std::collections::{HashMap, HashSet};

use anyhow::Context;
use rayon::prelude::*;

use crate::batch::{self, Ended, News, Task};
use crate::engine::gpu::GpuDevice;
use crate::optimize::{Budget, Evaluate, Level, Objective, Verdict, coarser, search, table};
use crate::results::{Axis, Cell, Outputs, ResultsError, Status};
use crate::spec::{Config, Source, Workload};
use crate::sweep::{Experiment, Selection, Sweep};

use super::convert::finished;
use super::engines;
use super::exit::CliError;
use super::glue::{Broken, config, identity};
use super::memo::Remembering;
use super::simulator::{RunSettings, SearchPlan, Update, UpdateSink};

/// What is searched, decided when the sweep is read.
#[derive(Clone)]
pub(super) struct Searching {
    objectives: Vec<Objective>,
    budget: Budget,
}

/// Reads what a sweep asks for; `None`: it is no search.
///
/// # Errors
/// An objective that does not exist, or an option that a search cannot follow.
pub(super) fn searching(sweep: &Sweep, selection: &Selection) -> anyhow::Result<Option<Searching>> {
    let Some(asked) = &sweep.search else { return Ok(None) };
    if let Some(shard) = selection.shard {
        anyhow::bail!("--shard {}/{}: a search decides by all of its candidates, so it cannot be cut into shards; run it as a whole", shard.index, shard.of);
    }
    let mut objectives = Vec::with_capacity(asked.objectives.len());
    for name in &asked.objectives {
        let objective = Objective::named(name).with_context(|| format!("{}: `sweep.objectives`", asked.place))?;
        let needed = needed_by(objective.name());
        if !sweep.experiments.iter().any(|e| needed.1(&config(sweep, e).workload)) {
            anyhow::bail!("{}: `sweep.objectives`: `{name}` is empty for every experiment of this sweep; it needs {}", asked.place, needed.0);
        }
        objectives.push(objective);
    }
    if objectives.is_empty() {
        let programs = sweep.experiments.first().is_some_and(|e| matches!(config(sweep, e).workload, Workload::Program(_)));
        let name = if programs { "iteration_time_ns" } else { "makespan_ns" };
        objectives.push(Objective::named(name).expect("both are columns of numbers"));
    }
    Ok(Some(Searching { objectives, budget: Budget::new(points(sweep).len(), asked.samples) }))
}

/// The workloads that have a value in a column, in words and as a test.
fn needed_by(column: &str) -> (&'static str, fn(&Workload) -> bool) {
    let model = |w: &Workload| matches!(w, Workload::Program(p) if matches!(p.source, Source::Model(_)));
    let collective = |w: &Workload| matches!(w, Workload::Program(p) if matches!(p.source, Source::Collective { .. }));
    match column {
        "tokens_per_s" | "tokens_per_s_per_gpu" | "mfu" | "peak_memory_bytes" | "usd_per_mtoken" => ("workload.kind = \"model\"", model),
        "algbw_gbps" | "busbw_gbps" => ("workload.kind = \"collective\"", collective),
        "iteration_time_ns" | "compute_ns" | "bubble_ns" | "optimizer_ns" | "other_ns" => {
            ("a model, a collective or a program", |w| matches!(w, Workload::Program(_)))
        }
        c if c.starts_with("comm_exposed_") => ("a model, a collective or a program", |w| matches!(w, Workload::Program(_))),
        _ => ("any workload", |_| true),
    }
}

impl Searching {
    /// What `plan` says of it.
    pub(super) fn plan(&self, sweep: &Sweep) -> SearchPlan {
        let points = points(sweep);
        let replicas = points.first().map_or(1, |p| p.len());
        SearchPlan {
            candidates: points.len() as u64,
            coarse: self.budget.coarse as u64,
            full: (self.budget.full * replicas) as u64,
            objectives: self.objectives.iter().map(|o| o.name().to_string()).collect(),
        }
    }
}

/// The experiments of each candidate: replicas are neighbours.
fn points(sweep: &Sweep) -> Vec<&[Experiment]> {
    sweep.experiments.chunk_by(|a, b| a.point == b.point).collect()
}

/// Why a search broke off.
enum Stop {
    Interrupted,
    Failed(CliError),
}

/// What a search has come to.
pub(super) struct Choice {
    /// Experiments to run in full.
    pub ids: HashSet<u64>,
    /// Messages about devices that were lost on the way.
    pub lost_devices: Vec<String>,
}

/// Searches. `None`: it was interrupted.
pub(super) fn choose(
    sweep: &Sweep,
    searching: &Searching,
    axes: &[Axis],
    devices: &[GpuDevice],
    pool: &rayon::ThreadPool,
    settings: &RunSettings,
    sink: &mut UpdateSink<'_>,
) -> Result<Option<Choice>, CliError> {
    let points = points(sweep);
    let (ranks, ordered) = ranks(sweep, &points);
    let mut looking = Looking { view: View { sweep, points: &points, objectives: &searching.objectives, devices, pool, settings }, lost_devices: Vec::new(), sink };
    let (found, chosen) = match search(&ranks, &ordered, searching.budget, sweep.seed, &mut looking) {
        Ok(done) => done,
        Err(Stop::Interrupted) => return Ok(None),
        Err(Stop::Failed(e)) => return Err(e),
    };
    let ids: Vec<u64> = points.iter().map(|p| p[0].exp_id).collect();
    let values: Vec<Vec<Cell>> = points.iter().map(|p| sweep.axis_values(&p[0]).iter().map(Cell::from).collect()).collect();
    let csv = table(axes, &searching.objectives, &ids, &values, &found);
    let chosen: Vec<u64> = chosen.into_iter().flat_map(|i| points[i].iter().map(|e| e.exp_id)).collect();
    let choice = Choice { ids: chosen.iter().copied().collect(), lost_devices: looking.lost_devices };
    let refused = |e: anyhow::Error| e.downcast::<ResultsError>().map_or_else(CliError::broken, CliError::results);
    (looking.sink)(Update::Chosen { ids: chosen, csv }).map_err(refused)?;
    Ok(Some(choice))
}

/// Each candidate's values as their places among the axis' distinct values, and which axes have an order.
fn ranks(sweep: &Sweep, points: &[&[Experiment]]) -> (Vec<Vec<u32>>, Vec<bool>) {
    let values: Vec<Vec<Cell>> = points.iter().map(|p| sweep.axis_values(&p[0]).iter().map(Cell::from).collect()).collect();
    let mut ranks = vec![Vec::with_capacity(sweep.axes.len()); points.len()];
    let mut ordered = Vec::with_capacity(sweep.axes.len());
    let number = |c: &Cell| match c {
        Cell::Int(v) => Some(*v as f64),
        Cell::Real(v) => Some(*v),
        _ => None,
    };
    for axis in 0..sweep.axes.len() {
        let mut distinct: Vec<&Cell> = Vec::new();
        let mut place: HashMap<String, u32> = HashMap::new();
        for v in &values {
            if place.insert(format!("{:?}", v[axis]), 0).is_none() {
                distinct.push(&v[axis]);
            }
        }
        let numbers = distinct.iter().all(|c| number(c).is_some());
        if numbers {
            distinct.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
        }
        ordered.push(numbers);
        for (i, c) in distinct.iter().enumerate() {
            place.insert(format!("{c:?}"), i as u32);
        }
        ranks.iter_mut().zip(&values).for_each(|(r, v)| r.push(place[&format!("{:?}", v[axis])]));
    }
    (ranks, ordered)
}

/// Estimates and simulates candidates, and tells how far that is.
struct Looking<'a, 's> {
    view: View<'a>,
    lost_devices: Vec<String>,
    sink: &'a mut UpdateSink<'s>,
}

/// What is searched, and with what.
struct View<'a> {
    sweep: &'a Sweep,
    points: &'a [&'a [Experiment]],
    objectives: &'a [Objective],
    devices: &'a [GpuDevice],
    pool: &'a rayon::ThreadPool,
    settings: &'a RunSettings,
}

impl Evaluate for Looking<'_, '_> {
    type Stop = Stop;

    fn evaluate(&mut self, level: Level, candidates: &[usize]) -> Result<Vec<Verdict>, Stop> {
        let (verdicts, packet_hops) = match level {
            Level::Estimate | Level::CoarseEstimate => {
                let view = &self.view;
                let one = |&i: &usize| match view.settings.interrupt.requested() {
                    true => Err(Stop::Interrupted),
                    false => Ok(view.estimated(level, i)),
                };
                view.pool.install(|| candidates.par_iter().map(one).collect::<Result<Vec<_>, Stop>>()).map(|v| (v, 0))?
            }
            Level::Coarse => {
                let mut lost = |text: String| {
                    self.lost_devices.push(text.clone());
                    (self.sink)(Update::Message(text))
                };
                self.view.simulated(level, candidates, &mut lost)?
            }
        };
        let (n, without) = (candidates.len(), verdicts.iter().filter(|v| v.is_err()).count());
        let what = match level {
            Level::Estimate => "estimated".to_string(),
            Level::CoarseEstimate => return Ok(verdicts),
            Level::Coarse => format!("simulated with coarse packets ({packet_hops} packet-hops)"),
        };
        let lost = if without > 0 { format!(", {without} of them without a value") } else { String::new() };
        (self.sink)(Update::Message(format!("search: {n} candidates {what}{lost}"))).map_err(|e| Stop::Failed(CliError::broken(e)))?;
        Ok(verdicts)
    }
}

impl View<'_> {
    /// A candidate's configuration at a level. Coarse ones may have keys that do not go together; then they are looked at as they are.
    fn config(&self, level: Level, i: usize) -> Config {
        let experiment = &self.points[i][0];
        let own = config(self.sweep, experiment);
        match level {
            Level::Estimate => own,
            Level::Coarse | Level::CoarseEstimate => self.sweep.config_with(experiment, &coarser(&own)).unwrap_or(own),
        }
    }

    fn estimated(&self, level: Level, i: usize) -> Verdict {
        let config = self.config(level, i);
        let result = batch::estimate(&config);
        self.verdict(i, &config, Ended { exp_id: self.points[i][0].exp_id, result, packet_hops: 0, folds: None, seconds: 0.0 })
    }

    fn verdict(&self, i: usize, config: &Config, ended: Ended) -> Verdict {
        let record = finished(identity(self.sweep, &self.points[i][0]), ended, &Outputs::default(), &config.cost).record;
        match record.status {
            Status::Ok => Ok(self.objectives.iter().map(|o| o.value(&record)).collect()),
            Status::Oom | Status::Failed => Err(format!("{}: {}", record.status.as_str(), record.error)),
        }
    }

    /// Verdicts, and packet-hops of all together. `lost` is told of devices that are lost.
    fn simulated(
        &self,
        level: Level,
        candidates: &[usize],
        lost: &mut (dyn FnMut(String) -> anyhow::Result<()> + Send),
    ) -> Result<(Vec<Verdict>, u64), Stop> {
        let mut packet_hops = 0;
        let of_id: HashMap<u64, usize> = candidates.iter().enumerate().map(|(at, &i)| (self.points[i][0].exp_id, at)).collect();
        let failed = |e: anyhow::Error| Stop::Failed(CliError::broken(e));
        let workers = engines::workers(self.devices, self.settings.gpu_dispatch, &Remembering::within(&self.settings.memo)).map_err(|e| Stop::Failed(CliError::bad_input(e)))?;
        let configs: Vec<Config> = candidates.iter().map(|&i| self.config(level, i)).collect();
        let mut verdicts: Vec<Option<Verdict>> = vec![None; candidates.len()];
        let tasks: Vec<Task> = candidates.iter().zip(&configs).map(|(&i, config)| Task { exp_id: self.points[i][0].exp_id, config: config.clone() }).collect();
        let mut tell = |news: News| -> Result<(), Broken> {
            match news {
                News::Ended(ended) => {
                    let at = of_id[&ended.exp_id];
                    packet_hops += ended.packet_hops;
                    verdicts[at] = Some(self.verdict(candidates[at], &configs[at], ended));
                }
                News::Lost(text) => lost(text).map_err(Broken::Sink)?,
                News::Started(_) | News::Note(_) => {}
            }
            Ok(())
        };
        match engines::simulate(tasks.into_iter(), workers, self.settings, &Remembering::within(&self.settings.memo), self.pool, &mut tell) {
            _ if self.settings.interrupt.requested() => Err(Stop::Interrupted),
            Ok(()) => {
                let missing = || failed(anyhow::anyhow!("a candidate ended without a result"));
                let all: Result<Vec<Verdict>, Stop> = verdicts.into_iter().map(|v| v.ok_or_else(missing)).collect();
                Ok((all?, packet_hops))
            }
            Err(Broken::Engine(e)) => Err(failed(e.into())),
            Err(Broken::Sink(e)) => Err(failed(e)),
        }
    }
}
