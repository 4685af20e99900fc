//! A session: the way to run sweeps from Rust.
//!
//! Layer: session. The command line runs the same steps one by one, because it shows what happens in between.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use hyperfold_cluster::{
    FailureModel, Placement, Scheduler, register_failure_model, register_placement, register_scheduler,
};
use hyperfold_config::spec::PolicyRegistry;
use hyperfold_config::sweep::{self, Selection, SetOverrides, Shard, Sweep};
use hyperfold_engine::gpu::DeviceChoice;
use hyperfold_host::register_routing_policy;
use hyperfold_network::routing::RoutingPolicy;
use hyperfold_report::page;
use hyperfold_results::{ExperimentRecord, Finished, Outcome, ResultDir};

use crate::builders::sweep_builder::SweepBuilder;
use crate::error::SessionError;
use crate::folders::folder::ClaimedFolder;
use crate::planning::plan::{self, LoadedSweep};
use crate::planning::planned::{PlanProgress, Planned};
use crate::running::interrupt::Interrupt;
use crate::running::simulate::BuiltIn;
use crate::running::simulator::Simulator;
use crate::running::update::{EngineUsed, Known, Update};
use crate::settings::{EngineChoice, MemoChoice, RunSettings};

/// Most finished results that wait for the iterator.
const WAITING: usize = 256;

/// Settings for running sweeps. They change no result, except keys that [`Session::set`] changes.
///
/// ```
/// use hyperfold_session::{EngineChoice, Session, SweepBuilder};
///
/// let sweep = SweepBuilder::new("incast")
///     .set("cluster.gpus", 8)
///     .set("cluster.gpus_per_server", 1)
///     .set("workload.kind", "traffic")
///     .set("workload.pattern", "incast")
///     .set("workload.fan_in", 4)
///     .set("workload.bytes", 20_000)
///     .axis("transport.cc", ["dcqcn", "hpcc"])
///     .build()?;
/// let mut slowest = 0;
/// for result in Session::new(EngineChoice::Cpu).threads(1).run(&sweep)? {
///     slowest = slowest.max(result?.record.makespan.expect("it ended well").0);
/// }
/// assert!(slowest > 0);
/// # Ok::<(), hyperfold_session::SessionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    settings: RunSettings,
    selection: Selection,
    set: Vec<String>,
    resume: bool,
    /// Policies that the program has registered.
    registry: PolicyRegistry,
}

impl Session {
    /// Creates a session on an engine, with all threads, a memo in memory, and every experiment.
    pub fn new(engine: EngineChoice) -> Session {
        let settings = RunSettings { engine, ..RunSettings::default() };
        Session {
            settings,
            selection: Selection::default(),
            set: Vec::new(),
            resume: false,
            registry: PolicyRegistry::default(),
        }
    }

    /// Sets the number of CPU threads; at least one.
    pub fn threads(mut self, threads: usize) -> Session {
        self.settings.threads = threads.max(1);
        self
    }

    /// Sets where simulated episodes are remembered.
    pub fn memo(mut self, memo: MemoChoice) -> Session {
        self.settings.memo = memo;
        self
    }

    /// Adds a GPU to use.
    pub fn device(mut self, device: DeviceChoice) -> Session {
        self.settings.devices.push(device);
        self
    }

    /// Sets a key for every experiment, as `--set KEY=VALUE` does: `fidelity.fast_forward=off`. A key that is an axis is refused.
    pub fn set(mut self, key_value: impl Into<String>) -> Session {
        self.set.push(key_value.into());
        self
    }

    /// Selects only experiments with an `exp_id` below `n`.
    pub fn limit(mut self, n: u64) -> Session {
        self.selection.limit = Some(n);
        self
    }

    /// Selects only experiments whose `exp_id` modulo `shard.of` is `shard.index`.
    pub fn shard(mut self, shard: Shard) -> Session {
        self.selection.shard = Some(shard);
        self
    }

    /// Sets whether [`Session::run_into`] continues the run in a folder.
    pub fn resume(mut self, resume: bool) -> Session {
        self.resume = resume;
        self
    }

    /// Sets a flag that asks a run to stop. Complete results are still written by [`Session::run_into`], and returned by [`Session::run`].
    pub fn interrupt(mut self, interrupt: Interrupt) -> Session {
        self.settings.interrupt = interrupt;
        self
    }

    /// Registers a scheduler as a value of `scheduler.policy`, for sweeps that this session loads or begins. The version is part of what identifies results:
    /// change it with the code and with the numbers in it.
    ///
    /// ```
    /// use hyperfold_cluster::{Behind, ClusterJob, QueueKey, Scheduler};
    /// use hyperfold_session::{EngineChoice, Session};
    ///
    /// struct LargestFirst;
    ///
    /// impl Scheduler for LargestFirst {
    ///     fn key(&self, job: &ClusterJob) -> QueueKey {
    ///         [u64::from(u32::MAX - job.gpus), job.submit_ms]
    ///     }
    ///     fn behind(&self) -> Behind {
    ///         Behind::Overtakes
    ///     }
    /// }
    ///
    /// let session = Session::new(EngineChoice::Cpu).scheduler("largest", "1", LargestFirst)?;
    /// let sweep = session
    ///     .sweep("queues")
    ///     .set("fidelity.mode", "job")
    ///     .set("cluster.gpus", 64)
    ///     .set("jobs.count", 20)
    ///     .axis("scheduler.policy", ["backfill", "largest"])
    ///     .build()?;
    /// assert_eq!(session.run(&sweep)?.count(), 2);
    /// # Ok::<(), hyperfold_session::SessionError>(())
    /// ```
    ///
    /// # Errors
    /// The name is taken, or name or version have characters that are not allowed.
    pub fn scheduler(
        mut self,
        name: &str,
        version: &str,
        scheduler: impl Scheduler + 'static,
    ) -> Result<Session, SessionError> {
        register_scheduler(&mut self.registry, (name, version), Box::new(scheduler)).map_err(SessionError::Input)?;
        Ok(self)
    }

    /// Registers a placement as a value of `scheduler.placement`, as [`Session::scheduler`] registers a scheduler.
    ///
    /// # Errors
    /// The name is taken, or name or version have characters that are not allowed.
    pub fn placement(
        mut self,
        name: &str,
        version: &str,
        placement: impl Placement + 'static,
    ) -> Result<Session, SessionError> {
        register_placement(&mut self.registry, (name, version), Box::new(placement)).map_err(SessionError::Input)?;
        Ok(self)
    }

    /// Registers a failure model as a value of `failures.model`, as [`Session::scheduler`] registers a scheduler.
    ///
    /// # Errors
    /// The name is taken, or name or version have characters that are not allowed.
    pub fn failure_model(
        mut self,
        name: &str,
        version: &str,
        model: impl FailureModel + 'static,
    ) -> Result<Session, SessionError> {
        register_failure_model(&mut self.registry, (name, version), Box::new(model)).map_err(SessionError::Input)?;
        Ok(self)
    }

    /// Registers a routing policy as a value of `routing.policy`, as [`Session::scheduler`] registers a scheduler.
    ///
    /// # Errors
    /// The name is taken, or name or version have characters that are not allowed.
    pub fn routing_policy(
        mut self,
        name: &str,
        version: &str,
        policy: impl RoutingPolicy + 'static,
    ) -> Result<Session, SessionError> {
        register_routing_policy(&mut self.registry, (name, version), Box::new(policy)).map_err(SessionError::Input)?;
        Ok(self)
    }

    /// Reads, expands and checks a sweep file, whose values may name policies that are registered.
    ///
    /// # Errors
    /// The sweep file is wrong, as for [`Sweep::load`].
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Sweep, SessionError> {
        Ok(sweep::load_with(path.as_ref(), &SetOverrides::default(), &self.registry)?)
    }

    /// Begins a sweep made in code, whose values may name policies that are registered.
    pub fn sweep(&self, name: impl Into<String>) -> SweepBuilder {
        SweepBuilder::with_registry(name, self.registry.clone())
    }

    /// Plans a run of the sweep, and estimates its time and memory. Only clusters over days are simulated for that, for a moment.
    ///
    /// # Errors
    /// Something is wrong with the sweep or its input files, or nothing is selected.
    pub fn plan(&self, sweep: &Sweep) -> Result<Planned, SessionError> {
        self.planned(sweep, true).map(|(planned, _)| planned)
    }

    /// Runs the sweep. Results come in the order of `exp_id`, while later experiments are simulated. Nothing is written.
    ///
    /// # Errors
    /// Fails as [`Session::plan`] does, or there is no such engine.
    pub fn run(&self, sweep: &Sweep) -> Result<ResultStream, SessionError> {
        let (planned, loaded) = self.planned(sweep, false)?;
        // Dropping the results stops only this run.
        let settings = RunSettings { interrupt: self.settings.interrupt.part(), ..self.settings.clone() };
        let (engine, devices) = BuiltIn.engine(&loaded, &settings)?;
        let interrupt = settings.interrupt.clone();
        let (sender, events) = sync_channel(WAITING);
        let thread = std::thread::spawn(move || {
            let sink = sender.clone();
            let ran = BuiltIn.run(loaded, devices, &settings, &Known::default(), &mut |update| {
                pass_on(&sink, update);
                Ok(())
            });
            // The receiver may be gone.
            let _ = sender.send(RunEvent::Over(ran));
        });
        Ok(ResultStream {
            expected: planned.selected.iter().copied().collect(),
            planned,
            engine,
            waiting: BTreeMap::new(),
            events: Some(events),
            thread: Some(thread),
            interrupt,
            warnings: Vec::new(),
        })
    }

    /// Runs the sweep into a folder, with the files that `hyperfold run` writes. The folder must be new or empty, unless the session resumes.
    ///
    /// Fails as [`Session::run`] does, or the folder is in use or cannot be written. Results that are complete by then are kept.
    pub fn run_into(&self, sweep: &Sweep, folder: impl AsRef<Path>) -> Result<RunSummary, SessionError> {
        let path = folder.as_ref();
        self.settings.memo.check_outside(path)?;
        ResultDir::check(path, self.resume).map_err(SessionError::Results)?;
        let expanding = Instant::now();
        let (planned, loaded) = self.planned(sweep, false)?;
        let (used, devices) = BuiltIn.engine(&loaded, &self.settings)?;
        let claimed = ClaimedFolder::open(path, self.resume, &planned, &self.selection)?;
        let seconds = expanding.elapsed().as_secs_f64();
        let (mut files, known) = claimed.start(&planned, &used, &self.settings, seconds)?;
        let simulating = Instant::now();
        let ran = BuiltIn.run(loaded, devices, &self.settings, &known, &mut |update| files.take(update));
        let wall = simulating.elapsed().as_secs_f64();
        let outcome = match &ran {
            Err(_) => Outcome::Aborted,
            Ok(_) if self.settings.interrupt.requested() => Outcome::Interrupted,
            Ok(_) => Outcome::Complete,
        };
        let late = ran.as_ref().map_or(Vec::new(), Clone::clone);
        let closed = files.close(outcome, late, wall);
        let late = ran?;
        let written = closed?;
        let report = page::write(path).err().map(|e| format!("no report was written: {e}"));
        Ok(RunSummary {
            outcome,
            expected: written.expected,
            records: written.records,
            warnings: planned.warnings.into_iter().chain(late).chain(report).collect(),
        })
    }

    fn planned(&self, sweep: &Sweep, estimates: bool) -> Result<(Planned, LoadedSweep), SessionError> {
        let sweep = match self.set.as_slice() {
            [] => sweep.clone(),
            set => sweep.with_set(set)?,
        };
        plan::plan(sweep, &self.selection, estimates, &PlanProgress::default())
    }
}

/// The summary of a run into a folder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunSummary {
    /// How the run ended.
    pub outcome: Outcome,
    /// Number of experiments that get a row.
    pub expected: usize,
    /// Records of the experiments that have one, by `exp_id`.
    pub records: Vec<ExperimentRecord>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// An event that the simulating thread reports to the iterator.
enum RunEvent {
    Finished(Box<Finished>),
    Chosen(Vec<u64>),
    Over(Result<Vec<String>, SessionError>),
}

/// Passes on the updates that the iterator needs. If the iterator is gone, the run has been asked to stop.
fn pass_on(sink: &SyncSender<RunEvent>, update: Update) {
    let event = match update {
        Update::Finished(finished) => RunEvent::Finished(finished),
        Update::Chosen { ids, .. } => RunEvent::Chosen(ids),
        Update::Compiled { .. }
        | Update::Started { .. }
        | Update::Progress { .. }
        | Update::Looked(_)
        | Update::Traced { .. }
        | Update::Defect { .. }
        | Update::Message(_) => return,
    };
    let _ = sink.send(event);
}

/// The results of a run while they come, in the order of `exp_id`. Dropping it stops the run.
///
/// A run that is over is read from its folder: [`crate::RunRecords`], [`hyperfold_results::RunColumns`].
pub struct ResultStream {
    planned: Planned,
    engine: EngineUsed,
    /// `exp_id`s still to come.
    expected: VecDeque<u64>,
    /// Results that finished before their predecessors.
    waiting: BTreeMap<u64, Finished>,
    events: Option<Receiver<RunEvent>>,
    thread: Option<JoinHandle<()>>,
    interrupt: Interrupt,
    warnings: Vec<String>,
}

impl ResultStream {
    /// Returns the plan of the run.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// Returns the engine, and why it was chosen.
    pub fn engine(&self) -> &EngineUsed {
        &self.engine
    }

    /// Returns warnings that appear only after the run, for example an axis without effect; empty until the iterator has ended.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the next result in order, if it has finished; after the run any result that is left.
    fn ready(&mut self) -> Option<Finished> {
        let exp_id = *self.expected.front()?;
        let finished = match self.events {
            Some(_) => self.waiting.remove(&exp_id)?,
            None => self.waiting.pop_first()?.1,
        };
        self.expected.pop_front();
        Some(finished)
    }
}

impl Iterator for ResultStream {
    type Item = Result<Finished, SessionError>;

    fn next(&mut self) -> Option<Result<Finished, SessionError>> {
        loop {
            if let Some(finished) = self.ready() {
                return Some(Ok(finished));
            }
            match self.events.as_ref()?.recv() {
                Ok(RunEvent::Finished(finished)) => drop(self.waiting.insert(finished.record.exp_id, *finished)),
                Ok(RunEvent::Chosen(ids)) => self.expected = ids.into(),
                Ok(RunEvent::Over(Ok(warnings))) => {
                    self.warnings = warnings;
                    self.events = None;
                }
                Ok(RunEvent::Over(Err(error))) => {
                    self.events = None;
                    return Some(Err(error));
                }
                Err(_) => {
                    self.events = None;
                    return Some(Err(SessionError::Internal(
                        "the run ended without a word; this is a bug in hyperfold",
                    )));
                }
            }
        }
    }
}

impl Drop for ResultStream {
    fn drop(&mut self) {
        self.interrupt.request();
        // Without the receiver, a thread that waits to send goes on.
        self.events = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by its own thread.
            let _ = thread.join();
        }
    }
}
