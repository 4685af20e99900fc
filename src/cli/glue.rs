//! Connects the command line to the sweep loader, the batch runner and the benchmarks.
//!
//! Layer: cli. The only module of it that knows them.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use anyhow::Context;

use crate::batch::{self, News, PrepareError, RunOptions, Task};
use crate::engine::EngineError;
use crate::engine::gpu::GpuDevice;
use crate::results::{Axis, Cell, ExperimentRecord, InputFile, Outputs};
use crate::spec::{self, Config};
use crate::sweep::{self, Experiment, SetOverrides, Sweep};

use super::audits::Audits;
use super::convert::finished;
use super::effect::Effects;
use super::exit::CliError;
use super::memo::Remembering;
use super::optimize::{self, Searching};
use super::simulator::{
    BenchInfo, BenchRow, EngineUsed, Known, MemoChoice, Planned, RunSettings, Simulator, SweepRequest, Update,
    UpdateSink,
};
use super::{benchmarks, engine_choice, engines, resume, trace};

/// Distinct shapes of experiments (network, routes, traffic) whose inputs are checked before anything runs. Those beyond are checked
/// when their turn comes, and then end as failed.
const CHECKED_SHAPES: usize = 256;
/// Bytes of tables after which no more are: preparing is most of what a plan takes.
const CHECKED_BYTES: u64 = 2 << 30;
/// Packet-hops a second that estimates count on, a thread: what the CPU engine does at least.
const PACKET_HOPS_PER_S: f64 = 8e6;
/// Tasks of programs (kernels, collectives, messages) a second that they count on besides, a thread: 1.5 µs each, as measured on studies/parallelism.
const TASKS_PER_S: f64 = 650e3;
/// A batch pays for a GPU from this many experiments and packet-hops on.
const GPU_EXPERIMENTS: usize = 64;
const GPU_PACKET_HOPS: u64 = 2_000_000_000;

/// The real simulator.
pub struct Connected;

/// Types of the axis columns, from all values of the sweep, selected or not, so that shards agree on them.
fn axes(sweep: &Sweep) -> Vec<Axis> {
    let mut columns: Vec<Vec<Cell>> = vec![Vec::new(); sweep.axes.len()];
    for experiment in &sweep.experiments {
        for (column, value) in columns.iter_mut().zip(sweep.axis_values(experiment)) {
            // Only a change of type can matter, and a run of one type is the rule.
            let value = Cell::from(&value);
            if column.last().is_none_or(|last| std::mem::discriminant(last) != std::mem::discriminant(&value)) {
                column.push(value);
            }
        }
    }
    sweep.axes.iter().zip(&columns).map(|(key, values)| Axis::infer(key.as_str(), values)).collect()
}

/// The files the sweep asks for: those that any of its experiments asks for.
fn outputs(sweep: &Sweep) -> Outputs {
    let varies = sweep.axes.iter().any(|key| key.starts_with("output."));
    let asked = if varies { sweep.experiments.len() } else { 1 };
    let mut outputs = Outputs::default();
    for experiment in sweep.experiments.iter().take(asked) {
        let output = sweep.config(experiment).expect("loading has checked every experiment's configuration").output;
        outputs.flows |= output.flows;
        outputs.links |= output.links;
        outputs.rtt |= output.rtt;
    }
    outputs
}

/// A sweep, and what a look at its inputs has shown.
pub struct Loaded {
    sweep: Sweep,
    outputs: Outputs,
    /// Packet-hops of all selected experiments, at least.
    packet_hops: u64,
    axes: Vec<Axis>,
    searching: Option<Searching>,
}

/// What a look at the inputs of the selected experiments shows.
#[derive(Default)]
struct Look {
    packet_hops: u64,
    /// Tasks of their programs.
    tasks: u64,
    /// Bytes of the host's memory that the largest experiment takes.
    most_bytes: u64,
    warnings: Vec<String>,
    /// Experiments whose GPUs are too small for them, and why.
    cannot_fit: Vec<(u64, String)>,
}

/// What an experiment takes.
#[derive(Clone, Copy)]
struct Work {
    packet_hops: u64,
    tasks: u64,
}

/// Prepares one experiment of every shape and lets it go again: bad input is found before anything runs.
fn look(sweep: &Sweep) -> anyhow::Result<Look> {
    let mut shapes: HashMap<String, Option<Work>> = HashMap::new();
    let mut look = Look::default();
    let mut told = HashSet::new();
    // The same traffic on another network has about as many packet-hops.
    let mut work_of: HashMap<String, Work> = HashMap::new();
    let mut bytes = 0u64;
    for experiment in &sweep.experiments {
        let config = config(sweep, experiment);
        match batch::fits(&config) {
            Ok(()) => {}
            Err(e @ PrepareError::Oom { .. }) => {
                look.cannot_fit.push((experiment.exp_id, e.to_string()));
                continue;
            }
            Err(e) => return Err(named(sweep, experiment, e)),
        }
        let (net, traffic) = ((&config.cluster, &config.topology, &config.routing), &config.workload);
        let shape = format!("{net:?}{traffic:?}{:?}", config.values.text(spec::K::Cc));
        let work = match shapes.get(&shape) {
            Some(work) => *work,
            None if shapes.len() >= CHECKED_SHAPES || bytes >= CHECKED_BYTES => {
                work_of.get(&format!("{traffic:?}")).copied()
            }
            None => {
                let work = match batch::prepare(&config, 0) {
                    Ok(p) => {
                        look.most_bytes = look.most_bytes.max(p.host_bytes());
                        bytes += p.built.tables.bytes();
                        let work = Work { packet_hops: p.packet_hops, tasks: p.built.tables.tasks.len() as u64 };
                        work_of.insert(format!("{traffic:?}"), work);
                        look.warnings.extend(p.notes.into_iter().filter(|n| told.insert(n.clone())));
                        Some(work)
                    }
                    Err(e) if e.is_input() => return Err(named(sweep, experiment, e)),
                    Err(e) => {
                        let why = format!("some experiments will fail: {e}");
                        look.warnings.extend(told.insert(why.clone()).then_some(why));
                        None
                    }
                };
                shapes.insert(shape, work);
                work
            }
        };
        if let Some(work) = work {
            look.packet_hops += work.packet_hops;
            look.tasks += work.tasks;
        }
    }
    Ok(look)
}

/// An input error with the experiment it belongs to.
fn named(sweep: &Sweep, experiment: &Experiment, error: PrepareError) -> anyhow::Error {
    let axes = sweep.axes_text(experiment);
    let of = if axes.is_empty() { String::new() } else { format!(" (experiment with {axes})") };
    anyhow::Error::new(error).context(format!("{}{of}", sweep.path.display()))
}

pub(super) fn config(sweep: &Sweep, experiment: &Experiment) -> Config {
    sweep.config(experiment).expect("loading has checked every experiment's configuration")
}

pub(super) fn identity(sweep: &Sweep, e: &Experiment) -> ExperimentRecord {
    let axes = sweep.axis_values(e).iter().map(Cell::from).collect();
    ExperimentRecord::new(e.exp_id, e.config_key.to_string(), e.exp_key.to_string(), e.replica, e.seed, axes)
}

/// Why a run broke off.
pub(super) enum Broken {
    Engine(EngineError),
    Sink(anyhow::Error),
}

impl From<EngineError> for Broken {
    fn from(e: EngineError) -> Self {
        Broken::Engine(e)
    }
}

impl Simulator for Connected {
    type Sweep = Loaded;
    type Engine = Vec<GpuDevice>;

    fn load(&self, request: &SweepRequest) -> anyhow::Result<(Planned, Loaded)> {
        let mut sweep = sweep::load(&request.path, &SetOverrides(request.set.clone()))?;
        let (axes, outputs, digest) = (axes(&sweep), outputs(&sweep), resume::digest(&sweep));
        sweep.select(&request.selection)?;
        let searching = optimize::searching(&sweep, &request.selection)?;
        let look = look(&sweep)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let search = searching.as_ref().map(|s| s.plan(&sweep));
        let most = search.as_ref().map_or(sweep.experiments.len() as u64, |s| s.coarse.max(s.full));
        let side_by_side = most.min(RunOptions::default().batch as u64);
        let share = search.as_ref().map_or(1.0, |s| s.share());
        let input = |f: &sweep::InputFile| InputFile { path: f.path.display().to_string(), sha256: f.sha256.clone() };
        let planned = Planned {
            name: sweep.name.clone(),
            experiments: sweep.n_experiments,
            selected: sweep.experiments.iter().map(|e| e.exp_id).collect(),
            axes: axes.clone(),
            outputs,
            resolved: sweep.resolved_toml.clone(),
            digest,
            sweep_path: std::path::absolute(&sweep.path).unwrap_or_else(|_| sweep.path.clone()).display().to_string(),
            replicas: u64::from(sweep.replicas),
            inputs: sweep.inputs.iter().map(input).collect(),
            warnings: sweep.notes.iter().cloned().chain(look.warnings).collect(),
            cannot_fit: look.cannot_fit,
            memory_bytes: Some(
                (look.most_bytes * side_by_side).min(engines::host_bytes(threads, false)).max(look.most_bytes),
            ),
            seconds: Some(
                share * (look.packet_hops as f64 / PACKET_HOPS_PER_S + look.tasks as f64 / TASKS_PER_S)
                    / threads as f64,
            ),
            search,
            ..Planned::default()
        };
        Ok((planned, Loaded { sweep, outputs, packet_hops: look.packet_hops, axes, searching }))
    }

    fn engine(&self, loaded: &Loaded, settings: &RunSettings) -> anyhow::Result<(EngineUsed, Vec<GpuDevice>)> {
        engine_choice::choose(settings, || {
            loaded.sweep.experiments.len() >= GPU_EXPERIMENTS && loaded.packet_hops >= GPU_PACKET_HOPS
        })
    }

    fn run(
        &self,
        loaded: Loaded,
        devices: Vec<GpuDevice>,
        settings: &RunSettings,
        known: &Known,
        sink: &mut UpdateSink<'_>,
    ) -> Result<Vec<String>, CliError> {
        let Loaded { sweep, outputs, axes, searching, .. } = &loaded;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(settings.jobs)
            .build()
            .context("cannot start threads")
            .map_err(CliError::broken)?;
        let compiling = Instant::now();
        let remembering = Remembering::start(&settings.memo);
        let mut workers =
            engines::workers(&devices, settings.gpu_dispatch, &remembering).map_err(CliError::bad_input)?;
        if !workers.is_empty() {
            sink(Update::Compiled { seconds: compiling.elapsed().as_secs_f64() }).map_err(CliError::broken)?;
        }
        let mut lost_devices = Vec::new();
        let chosen: Option<HashSet<u64>> = match searching {
            None => None,
            Some(s) => match optimize::choose(sweep, s, axes, &mut workers, &pool, settings, &known.looks, sink)? {
                Some(choice) => {
                    lost_devices = choice.lost_devices;
                    Some(choice.ids)
                }
                None => return Ok(Vec::new()),
            },
        };
        let by_id: HashMap<u64, &Experiment> = sweep.experiments.iter().map(|e| (e.exp_id, e)).collect();
        let done: HashSet<u64> = known.records.iter().map(|r| r.exp_id).collect();
        let is_chosen = |e: &Experiment| chosen.as_ref().is_none_or(|c| c.contains(&e.exp_id));
        let open: Vec<&Experiment> =
            sweep.experiments.iter().filter(|e| !done.contains(&e.exp_id) && is_chosen(e)).collect();
        let tasks = open.into_iter().map(|e| Task { exp_id: e.exp_id, config: config(sweep, e) });
        let mut effects = Effects::default();
        let mut lost_with_pfc = 0u64;
        let mut look_at = |record: &ExperimentRecord| {
            effects.add(record);
            let e = by_id[&record.exp_id];
            if record.drops.is_some_and(|n| n > 0) && config(sweep, e).values.bool(spec::K::Pfc) {
                lost_with_pfc += 1;
            }
        };
        known.records.iter().for_each(&mut look_at);
        let mut audits = Audits::default();
        let mut started_over = 0u64;
        let (mut ended_now, mut remembered) = (0u64, 0u64);
        let bound = |exp_id: u64| config(sweep, by_id[&exp_id]).steady().map_or(f64::INFINITY, |s| s.audit_bound);
        for (&exp_id, stats) in &known.stats {
            started_over += u64::from(stats.batches > 1);
            audits.add(exp_id, stats, bound(exp_id));
        }
        let mut tell = |news: News| -> Result<(), Broken> {
            match news {
                News::Started(ids) => ids.into_iter().try_for_each(|exp_id| sink(Update::Started { exp_id })),
                News::Note(_) => Ok(()),
                News::Lost(text) => {
                    lost_devices.push(text.clone());
                    sink(Update::Message(text))
                }
                News::Ended(ended) => {
                    let (exp_id, configured) = (ended.exp_id, config(sweep, by_id[&ended.exp_id]));
                    if configured.output.trace {
                        let traced = trace::of_run(&configured, exp_id, &settings.interrupt);
                        // An interrupted timeline is none, and an experiment without its timeline is not finished.
                        if settings.interrupt.requested() {
                            return Ok(());
                        }
                        match traced {
                            Ok(trace) => sink(Update::Traced { exp_id, bytes: trace.bytes }).map_err(Broken::Sink)?,
                            // What cannot be prepared has no timeline; its row says why.
                            Err(_) => debug_assert!(ended.result.is_err()),
                        }
                    }
                    let done = finished(identity(sweep, by_id[&ended.exp_id]), *ended, outputs, &configured.cost);
                    look_at(&done.record);
                    started_over += u64::from(done.stats.batches > 1);
                    ended_now += 1;
                    remembered += u64::from(done.stats.memo_hits + done.stats.memo_misses > 0);
                    audits.add(exp_id, &done.stats, bound(exp_id));
                    sink(Update::Finished(Box::new(done)))
                }
            }
            .map_err(Broken::Sink)
        };
        let ran = engines::simulate(tasks, &mut workers, settings, &remembering, &pool, &mut tell);
        let of_memo = remembering.finish();
        if started_over > 0 {
            let text = format!(
                "{started_over} of {} experiments started over without folding (`batches` 2 in stats.csv), as with fidelity.fast_forward = \"off\": \
                 a switch came near pauses or drops, or a sender gave up",
                sweep.experiments.len()
            );
            sink(Update::Message(text)).map_err(CliError::broken)?;
        }
        if let MemoChoice::Kept { path, .. } = &settings.memo
            && ended_now > 0
            && remembered == 0
        {
            let text = format!(
                "--memo {}: nothing to remember; what is remembered are folded task graphs (fidelity.memo = true, fidelity.fast_forward = \"steady\" or \"exact\", no output.rtt, one path a flow)",
                path.display()
            );
            sink(Update::Message(text)).map_err(CliError::broken)?;
        }
        if let Some(text) = audits.note(sweep.experiments.len()) {
            sink(Update::Message(text)).map_err(CliError::broken)?;
        }
        match ran {
            Ok(()) if settings.interrupt.requested() => Ok(of_memo),
            Ok(()) => {
                // A search runs too few to tell what has no effect.
                let mut warnings = if chosen.is_none() { effects.warnings(&sweep.axes) } else { Vec::new() };
                warnings.extend(lost_devices);
                warnings.extend(of_memo);
                warnings.extend(audits.warning());
                if lost_with_pfc > 0 {
                    warnings.push(format!(
                        "{lost_with_pfc} experiments dropped packets although transport.pfc = true: headroom was exceeded, by ACKs that are never paused \
                         (transport.ack_high_prio = true) or by a pause that takes longer than 3/2 of the link's delay to act"
                    ));
                }
                Ok(warnings)
            }
            Err(Broken::Engine(e)) => Err(CliError::broken(e)),
            Err(Broken::Sink(e)) => Err(CliError::broken(e)),
        }
    }

    fn template(&self) -> String {
        spec::template()
    }

    fn benches(&self) -> Vec<BenchInfo> {
        benchmarks::list()
    }

    fn bench(&self, name: &str, sink: &mut dyn FnMut(BenchRow)) -> anyhow::Result<()> {
        benchmarks::run(name, sink)
    }
}
