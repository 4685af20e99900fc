//! Simulates a cluster: from a configuration to an outcome, event after event.
//!
//! Layer: cluster. One experiment runs on one thread. All events at one time are handled before the queue is looked at.

use std::borrow::Cow;
use std::time::Instant;

use rayon::prelude::*;

use super::error::ClusterError;
use super::event::Event;
use super::failing_parts::Part;
use super::failures_and_repairs::Breakage;
use super::iterations::{IterationFabric, KnownIteration, class_iteration};
use super::machine::ClusterMachine;
use super::placement::{Placement, placement};
use super::queue_order::{Scheduler, scheduler};
use super::registered::{GuardedPlacement, GuardedScheduler, guarded};
use super::state::{ClusterState, JobPhase, JobState};
use super::stop_check::StopCheck;
use crate::jobs::generate;
use crate::jobs::job::ClusterJob;
use crate::jobs::trace;
use crate::jobs::trace::ListedFailure;
use crate::reports::history::ClusterHistory;
use crate::reports::map::ClusterMap;
use crate::reports::outcome::{ClassIteration, ClusterOutcome, outcome};
use crate::reports::timeline::ClusterTimeline;
use crate::scheduling::grow::grow;
use crate::scheduling::pass::schedule;
use hyperfold_base::budget;
use hyperfold_config::spec::{ClusterRun, Config, JobSource};

/// Events between two checks of the memory in use.
const LOOK_EVERY: u64 = 1024;
const MS_PER_HOUR: f64 = 3.6e6;
/// Largest duration of a job: a million hours, which is also the limit of traces and of `jobs.max_hours`. Nanoseconds of work fit 64 bits then.
const MAX_WORK_MS: u64 = 3_600_000_000_000;
/// Events without lasting progress after which the run ends with an error (our choice): about one year of failures every two minutes.
const WITHOUT_PROGRESS: u64 = 1 << 18;

/// Forecast of the resources that simulating a cluster takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IterationForecast {
    /// Seconds of one thread.
    pub seconds: f64,
    /// Number of different sets of jobs. Sets of a single job count, too.
    pub sets: f64,
    /// Host memory in bytes for the sets that are simulated at a time.
    pub bytes: u64,
}

/// A cluster with its jobs, checked and ready to run.
pub struct PreparedCluster {
    run: ClusterRun,
    machine: ClusterMachine,
    jobs: Vec<ClusterJob>,
    listed: Vec<ListedFailure>,
    /// Settings of simulated iterations. `None`: speeds are assumed.
    fabric: Option<IterationFabric>,
}

impl PreparedCluster {
    /// Builds the network, and reads or draws the jobs. PRECONDITION: `config` is of job mode.
    ///
    /// # Errors
    /// A file is wrong, the network cannot be built, or a job could never run.
    pub fn new(config: &Config) -> Result<PreparedCluster, ClusterError> {
        let run = config.cluster_run().expect("only configurations of job mode come here").clone();
        let (machine, net) = ClusterMachine::new(config)?;
        let spares = u64::from(run.failures.hot_spares) + u64::from(run.failures.cold_spares);
        if spares >= u64::from(machine.servers()) {
            return Err(ClusterError::Spares { spares, servers: machine.servers() });
        }
        let in_service = machine.gpus() - spares * u64::from(machine.per_server);
        let jobs = match &run.jobs {
            JobSource::Trace { path } => trace::jobs(path, &run)?,
            JobSource::Generated(keys) => generate::jobs(keys, &run, in_service),
        };
        let listed = match &run.failures.path {
            Some(path) => trace::failures(path, |kind| Part::count(&machine, kind))?,
            None => Vec::new(),
        };
        let fabric =
            run.iterations.as_ref().map(|keys| IterationFabric::new(config, keys, net, &least_of_classes(&run, &jobs)));
        let fabric = fabric.transpose()?;
        Self::of(run, machine, jobs, listed, fabric)
    }

    /// Jobs with their durations, and an iteration of each of their classes. If a trace gives a number of iterations, the duration is the time of these. With
    /// `foresees`, lower bounds of iteration times are used and nothing is simulated.
    fn timed(
        &self,
        foresees: bool,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Cow<'_, [ClusterJob]>, Vec<KnownIteration>), ClusterError> {
        let mut classes: Vec<u32> = self.jobs.iter().filter_map(|job| job.class).collect();
        classes.sort_unstable();
        classes.dedup();
        let Some(fabric) = self.fabric.as_ref().filter(|_| !classes.is_empty()) else {
            return Ok((Cow::Borrowed(&self.jobs), Vec::new()));
        };
        let one = |&class: &u32| class_iteration(fabric, class, foresees, stop);
        let known: Vec<KnownIteration> = classes.par_iter().map(one).collect::<Result<_, _>>()?;
        if self.jobs.iter().all(|job| job.iterations.is_none()) {
            return Ok((Cow::Borrowed(&self.jobs), known));
        }
        let mut jobs = self.jobs.clone();
        for job in &mut jobs {
            let (Some(class), Some(n)) = (job.class, job.iterations) else { continue };
            let class_idx = classes.binary_search(&class).expect("classes of all such jobs are there");
            let ms = u128::from(known[class_idx].ps()) * u128::from(n) / 1_000_000_000;
            if ms > u128::from(MAX_WORK_MS) {
                return Err(ClusterError::TooLong { job: job.name.to_string(), iterations: n, ms });
            }
            job.duration_ms = (ms as u64).max(1);
            if job.estimate_ms == 0 {
                job.estimate_ms = job.duration_ms;
            }
        }
        Ok((Cow::Owned(jobs), known))
    }

    /// Checks jobs against quotas and the size of the cluster, and prepares them.
    fn of(
        run: ClusterRun,
        machine: ClusterMachine,
        jobs: Vec<ClusterJob>,
        listed: Vec<ListedFailure>,
        fabric: Option<IterationFabric>,
    ) -> Result<PreparedCluster, ClusterError> {
        let spares = run.failures.hot_spares + run.failures.cold_spares;
        let in_service = machine.gpus() - u64::from(spares) * u64::from(machine.per_server);
        for job in &jobs {
            let quota = run.scheduler.quotas.iter().find(|(user, _)| **user == *job.user);
            let quota = quota.or_else(|| run.scheduler.quotas.iter().find(|(user, _)| user == "*"));
            let limit = match quota {
                _ if u64::from(job.gpus) > in_service => {
                    format!(
                        "{in_service} run jobs; give it fewer, or raise cluster.gpus (generated sizes: lower jobs.min_gpus or jobs.max_gpus)"
                    )
                }
                Some((user, max_gpus)) if job.gpus > *max_gpus => {
                    let source = if user == "*" { " (as `*`)" } else { "" };
                    let user = &job.user;
                    format!(
                        "scheduler.quotas gives user {user} {max_gpus}{source}; raise the quota, or give the job fewer"
                    )
                }
                _ => continue,
            };
            return Err(ClusterError::TooLarge { job: job.name.to_string(), gpus: job.gpus, limit });
        }
        Ok(PreparedCluster { run, machine, jobs, listed, fabric })
    }

    /// Number of jobs.
    pub fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Simulates the cluster with the configured scheduler and placement. `stop` is asked now and then.
    ///
    /// # Errors
    /// It was stopped, or a scheduler or placement leaves jobs waiting for ever.
    ///
    /// # Panics
    /// A policy's name is in the key table and in no registry.
    pub fn simulate(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<ClusterOutcome, ClusterError> {
        self.by_policies(|order, place| self.simulate_with(order, place, stop))
    }

    /// Like [`PreparedCluster::simulate`], and also returns what every job and server did over time.
    ///
    /// # Errors
    /// Fails as [`PreparedCluster::simulate`] does.
    ///
    /// # Panics
    /// Fails as [`PreparedCluster::simulate`] does.
    pub fn recorded(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(ClusterOutcome, ClusterHistory), ClusterError> {
        let (outcome, history) = self.by_policies(|order, place| self.run_to_end(order, place, stop, true))?;
        Ok((outcome, history.unwrap_or_default()))
    }

    /// Does something with the configured scheduler and placement. A fault of one that a program registered becomes an error.
    fn by_policies<T>(
        &self,
        simulation: impl FnOnce(&dyn Scheduler, &dyn Placement) -> Result<T, ClusterError>,
    ) -> Result<T, ClusterError> {
        let keys = &self.run.scheduler;
        guarded(|| {
            let own_order = keys.own_policy.as_ref().map(GuardedScheduler::new);
            let own_place = keys.own_placement.as_ref().map(GuardedPlacement::new);
            let built_in = "a test compares choices with the registry";
            let order: &dyn Scheduler = match &own_order {
                Some(own) => own,
                None => scheduler(&keys.policy).expect(built_in),
            };
            let place: &dyn Placement = match &own_place {
                Some(own) => own,
                None => placement(&keys.placement).expect(built_in),
            };
            simulation(order, place)
        })
    }

    /// Like [`PreparedCluster::simulate`], with the given scheduler and placement.
    ///
    /// # Errors
    /// Fails as [`PreparedCluster::simulate`] does.
    pub fn simulate_with(
        &self,
        order: &dyn Scheduler,
        place: &dyn Placement,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<ClusterOutcome, ClusterError> {
        self.run_to_end(order, place, stop, false).map(|(outcome, _)| outcome)
    }

    /// Whether iterations of its jobs are simulated.
    pub fn measures(&self) -> bool {
        self.fabric.is_some()
    }

    /// Forecasts what the simulation takes if `at_a_time` sets of iterations are simulated at a time. It runs the cluster without simulating iterations until
    /// `stop` fires, then simulates some sets until `stop_sampling` fires.
    ///
    /// # Errors
    /// Fails as [`PreparedCluster::simulate`] does, except for being stopped.
    ///
    /// # Panics
    /// Fails as [`PreparedCluster::simulate`] does.
    pub fn foreseen(
        &self,
        at_a_time: usize,
        stop: &(dyn Fn() -> bool + Sync),
        stop_sampling: &(dyn Fn() -> bool + Sync),
    ) -> Result<IterationForecast, ClusterError> {
        self.by_policies(|order, place| self.foresee(order, place, at_a_time, stop, stop_sampling))
    }

    fn foresee(
        &self,
        order: &dyn Scheduler,
        place: &dyn Placement,
        at_a_time: usize,
        stop: &(dyn Fn() -> bool + Sync),
        stop_sampling: &(dyn Fn() -> bool + Sync),
    ) -> Result<IterationForecast, ClusterError> {
        let start = Instant::now();
        let (jobs, known) = self.timed(true, stop)?;
        let mut state = ClusterState::new(&self.run, &self.machine, &jobs, self.fabric.as_ref(), order);
        // The iterations known for durations are dropped, because simulating them is part of the forecast.
        drop(known);
        if let Some(measured) = &mut state.measured {
            measured.foresee();
        }
        let mut trackers = RunTrackers::new(self, &mut state);
        let ended = match self.play(&mut state, &mut trackers, place, stop) {
            Err(ClusterError::Interrupted) => false,
            other => other.map(|()| true)?,
        };
        let share = if ended { 1.0 } else { self.share_done(&state) };
        let took = start.elapsed().as_secs_f64();
        let sets = state.measured.as_mut().and_then(|measured| measured.take_foreseen());
        let n_sets = sets.as_ref().map_or(0, |sets| sets.len());
        let (simulating, bytes) = match (sets, &self.fabric) {
            (Some(sets), Some(fabric)) => {
                let bytes = sets.bytes(fabric, at_a_time);
                (sets.seconds(fabric, stop_sampling)?, bytes)
            }
            _ => (0.0, 0),
        };
        Ok(IterationForecast { seconds: (took + simulating) / share, sets: n_sets as f64 / share, bytes })
    }

    /// Estimate of the share of a stopped run that is done.
    fn share_done(&self, state: &ClusterState) -> f64 {
        if state.measured.is_some() {
            // Sets of jobs change as jobs start and end.
            let steps = |job: &JobState| u64::from(job.first_start_ms.is_some()) + u64::from(job.ended_ms.is_some());
            let done: u64 = state.job_states.iter().map(steps).sum();
            return done.max(1) as f64 / (2 * state.job_states.len().max(1)) as f64;
        }
        let done: f64 = state.job_states.iter().map(|job| job.progress.done_ns() as f64 / 1e6).sum();
        let all: f64 = state.jobs.iter().map(|job| job.duration_ms as f64).sum();
        let of_time = self.run.end_ms.map_or(0.0, |end| state.now_ms as f64 / end as f64);
        (done / all).max(of_time).clamp(1e-9, 1.0)
    }

    fn run_to_end(
        &self,
        order: &dyn Scheduler,
        place: &dyn Placement,
        stop: &(dyn Fn() -> bool + Sync),
        records: bool,
    ) -> Result<(ClusterOutcome, Option<ClusterHistory>), ClusterError> {
        let (jobs, known) = self.timed(false, stop)?;
        let mut state = ClusterState::new(&self.run, &self.machine, &jobs, self.fabric.as_ref(), order);
        if let Some(measured) = &mut state.measured {
            measured.remember(&known);
        }
        if records {
            state.record();
        }
        let mut trackers = RunTrackers::new(self, &mut state);
        self.play(&mut state, &mut trackers, place, stop)?;
        let RunTrackers { breakage, timeline, map } = trackers;
        let running: Vec<u32> = state.running.iter().map(|(_, job)| *job).collect();
        running.into_iter().for_each(|job| state.settle(job));
        let names = self.fabric.as_ref().map_or_else(Vec::new, |fabric| fabric.net.names());
        let place = |arc: u32| {
            let Some(net) = self.fabric.as_ref().map(|fabric| &fabric.net) else { return format!("rack {arc}") };
            let name = |node: u32| names.get(node as usize).map_or("", String::as_str);
            format!("{}->{}", name(net.arc_from(arc)), name(net.arc_to(arc)))
        };
        let map = map.map_or_else(Vec::new, |map| map.bins(state.now_ms));
        let history = state.take_history();
        let of_class = |known_iteration: &KnownIteration| ClassIteration {
            class: known_iteration.class,
            ps: known_iteration.ps(),
            samples: self.fabric.as_ref().and_then(|fabric| known_iteration.samples(fabric)),
        };
        let classes: Vec<ClassIteration> = known.iter().map(of_class).collect();
        let (failures, drains) = (breakage.failures, breakage.drains);
        Ok((outcome(&state, timeline.rows(), &map, failures, drains, &place, &classes), history))
    }

    /// Handles event after event until the end.
    fn play(
        &self,
        state: &mut ClusterState,
        trackers: &mut RunTrackers,
        place: &dyn Placement,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), ClusterError> {
        let RunTrackers { breakage, timeline, map } = trackers;
        let check = StopCheck::new(stop);
        let (mut left, mut events, mut lasting) = (self.jobs.len(), 0u64, None);
        if let Some(job) = self.jobs.first() {
            state.events.add(job.submit_ms, Event::Arrives { job: 0 });
        }
        while left > 0 {
            let next = state.events.next_ms().filter(|_| state.can_go_on());
            let Some(at_ms) = next else {
                let hours = state.now_ms as f64 / MS_PER_HOUR;
                return Err(ClusterError::Stuck { waiting: state.queue.len(), hours });
            };
            let at_ms = at_ms.min(self.run.end_ms.unwrap_or(u64::MAX));
            timeline.record_until(state, at_ms);
            if let Some(map) = map {
                map.record_until(&state.servers, at_ms);
            }
            state.pass(at_ms - state.now_ms);
            state.now_ms = at_ms;
            if self.run.end_ms == Some(at_ms) {
                break;
            }
            while let Some(event) = state.events.take_at(at_ms) {
                events += 1;
                match event {
                    Event::Ends { job, version } => left -= usize::from(state.end(job, version)),
                    Event::Returns { server, version } => breakage.returns(state, server, version),
                    Event::Mended { server, version } => breakage.mended(state, server, version),
                    Event::Arrives { job } => {
                        state.enqueue(job);
                        self.expects(state, job);
                    }
                    Event::Fails { part } => breakage.fails(state, part),
                    Event::Listed { failure } => breakage.listed(state, failure),
                    Event::Drains { nth } => breakage.drains(state, nth),
                    Event::DrainEnds { server, version } => breakage.drain_ends(state, server, version),
                    Event::Wakes { .. } => {}
                    Event::Turns { job, version } => state.turn(job, version),
                }
                left -= std::mem::take(&mut state.given_up);
                if events % LOOK_EVERY == 0 {
                    budget::check("jobs and events");
                }
                if check.step() {
                    return Err(ClusterError::Interrupted);
                }
                if events % WITHOUT_PROGRESS == 0 && self.run.end_ms.is_none() {
                    let now = Some(lasting_progress(state, left));
                    if now == lasting {
                        return Err(no_progress(state));
                    }
                    lasting = now;
                }
            }
            // First the running jobs get their speeds without the jobs that have gone. Then jobs grow and start.
            state.measure(stop)?;
            grow(state, place, &check);
            schedule(state, place, &check);
            grow(state, place, &check);
            if check.now() {
                return Err(ClusterError::Interrupted);
            }
            state.at_checkpoint.clear();
            state.record_uses();
            state.share_storage();
            state.measure(stop)?;
            debug_assert!(state.has_grown(), "free GPUs go back to jobs that lack some");
            debug_assert!(state.is_sound(), "GPUs are free, held, down, drained or spare");
        }
        Ok(())
    }

    /// Enters the arrival of the next job after `job`, and the time at which `job` may start if it is delayed.
    fn expects(&self, state: &mut ClusterState, job: u32) {
        let asked = &self.jobs[job as usize];
        if asked.priority == 0 && self.run.scheduler.low_delay_ms > 0 {
            let at_ms = asked.submit_ms + self.run.scheduler.low_delay_ms;
            state.events.add(at_ms, Event::Wakes { job });
        }
        if let Some(next) = self.jobs.get(job as usize + 1) {
            state.events.add(next.submit_ms, Event::Arrives { job: job + 1 });
        }
    }
}

/// The counts and records of a cluster while it is simulated.
struct RunTrackers {
    breakage: Breakage,
    timeline: ClusterTimeline,
    map: Option<ClusterMap>,
}

impl RunTrackers {
    fn new(cluster: &PreparedCluster, state: &mut ClusterState) -> RunTrackers {
        let run = &cluster.run;
        RunTrackers {
            breakage: Breakage::new(state, cluster.listed.clone()),
            timeline: ClusterTimeline::new(run.timeline_ms),
            map: run.map.then(|| ClusterMap::new(run.timeline_ms, cluster.machine.servers())),
        }
    }
}

/// For each class, the smallest number of GPUs with which one of its jobs may go on.
fn least_of_classes(run: &ClusterRun, jobs: &[ClusterJob]) -> Vec<u32> {
    let mut min_gpus: Vec<u32> = run.classes.iter().map(|class| class.gpus).collect();
    for job in jobs {
        if let Some(class) = job.class {
            min_gpus[class as usize] = min_gpus[class as usize].min(job.min_gpus);
        }
    }
    min_gpus
}

/// Progress that no failure takes away: jobs that are left, jobs that have arrived, and saved work in ns.
fn lasting_progress(state: &ClusterState, left: usize) -> (usize, usize, u128) {
    let arrived = state.job_states.iter().filter(|job| job.phase != JobPhase::Ahead).count();
    (left, arrived, state.job_states.iter().map(|job| u128::from(job.progress.safe_ns())).sum())
}

fn no_progress(state: &ClusterState) -> ClusterError {
    let first = state.queue.first().map(|(_, job)| *job).or_else(|| state.running.first().map(|(_, job)| *job));
    let job = &state.jobs[first.unwrap_or_default() as usize];
    ClusterError::NoProgress {
        hours: state.now_ms as f64 / MS_PER_HOUR,
        events: WITHOUT_PROGRESS,
        waiting: state.queue.len(),
        running: state.running.len(),
        job: job.name.to_string(),
        gpus: job.gpus,
    }
}

#[cfg(test)]
#[path = "simulate_tests.rs"]
mod tests;
