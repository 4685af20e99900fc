//! State of a cluster at a moment: its servers, jobs, queue, and events to come.
//!
//! Layer: cluster. It starts, stops and slows jobs, and counts where GPU time goes. It decides nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::error::ClusterError;
use super::event::{Event, Events};
use super::iterations::{IterationFabric, MeasuredIterations, SlowestMoment};
use super::machine::ClusterMachine;
use super::queue_order::{Behind, QueueKey, Scheduler};
use super::servers::{GpuShare, ServerUse, Servers};
use super::storage::CheckpointStorage;
use crate::jobs::interval::{cost, interval_ms};
use crate::jobs::job::ClusterJob;
use crate::jobs::progress::JobProgress;
use crate::jobs::slowdown::{PlacementSlowdown, Racks};
use crate::reports::account::{Account, UnheldGpus};
use crate::reports::congestion::CongestionLog;
use crate::reports::history::{ClusterHistory, HistoryLog, JobActivity};
use crate::scheduling::quota::Quotas;
use hyperfold_config::spec::{ClusterRun, GrowBack};

/// Phase of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobPhase {
    /// The job has not arrived.
    Ahead,
    /// The job is in the queue.
    Waiting,
    /// The job holds GPUs.
    Running,
    /// The job has done all of its work.
    Done,
    /// The job was given up after too many restarts.
    GivenUp,
}

/// State of one job.
#[derive(Clone, Debug)]
pub(super) struct JobState {
    pub phase: JobPhase,
    pub progress: JobProgress,
    /// GPUs that it holds. Empty while it does not run.
    pub shares: Vec<GpuShare>,
    pub racks: Racks,
    /// Number of GPUs that it holds.
    pub held: u32,
    factor_ppm: u64,
    /// `factor_ppm` if the job were alone in the same place.
    alone_ppm: u64,
    as_of_ms: u64,
    /// When it got the GPUs that it holds.
    has_since_ms: u64,
    /// When it ends, if nothing happens.
    pub ends_ms: u64,
    /// When the scheduler believes that it ends.
    believed_ends_ms: u64,
    version: u32,
    pub first_start_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    queued_since_ms: u64,
    pub queued_ms: u64,
    pub restarts: u64,
    pub preemptions: u64,
    pub lost_ns: u128,
    /// Work that it did, lost or not, in ns. The next fields are the time that this took, and the time that it would have taken without other jobs.
    pub work_ns: u128,
    pub working_ms: u64,
    pub alone_ns: u128,
    /// The moment when others slowed it down most.
    pub slowest: Option<SlowestMoment>,
    /// Time for which it stands still at its next start.
    restart_ms: u64,
}

/// State of the whole cluster.
pub(super) struct ClusterState<'a> {
    pub run: &'a ClusterRun,
    pub machine: &'a ClusterMachine,
    pub jobs: &'a [ClusterJob],
    /// The jobs that may start behind one that has to wait.
    pub behind: Behind,
    /// Sort key of each job in the queue.
    queue_keys: Vec<QueueKey>,
    pub now_ms: u64,
    pub servers: Servers,
    pub job_states: Vec<JobState>,
    pub queue: BTreeSet<(QueueKey, u32)>,
    /// Running jobs, with the time in ms at which they end.
    pub running: BTreeSet<(u64, u32)>,
    /// Running jobs, with the time in ms at which the scheduler believes that they end. That time has passed for jobs that have outrun their estimates.
    pub believed_ends: BTreeSet<(u64, u32)>,
    /// Running jobs with fewer GPUs than they asked for, in the order of the queue.
    pub shrunk: BTreeSet<(QueueKey, u32)>,
    /// Jobs that have completed a checkpoint at this moment.
    pub at_checkpoint: BTreeSet<u32>,
    pub jobs_on: Vec<BTreeSet<u32>>,
    pub slowdown: PlacementSlowdown,
    /// Simulated iterations. `None`: speeds are assumed.
    pub measured: Option<MeasuredIterations<'a>>,
    pub congestion: CongestionLog,
    /// Record of what jobs and servers do. `None`: it is not asked for.
    pub history: Option<HistoryLog>,
    /// Storage that jobs share for checkpoints. `None`: every job has the storage to itself.
    pub storage: Option<CheckpointStorage>,
    /// GPUs that work while others write, times the millionths of their rack uplinks that these writes take. `None`: it must be computed again, because jobs
    /// or writes have changed.
    beside_writes: Option<u128>,
    pub quotas: Quotas,
    pub events: Events,
    pub account: Account,
    /// See [`UnheldGpus::stranded`], as of the last scheduling pass.
    pub stranded: u64,
    pub waiting_gpus: u64,
    pub migrations: u64,
    pub shrinks: u64,
    pub grows: u64,
    /// Jobs that were given up since the main loop last took this number.
    pub given_up: usize,
    /// Number of jobs that have arrived.
    arrived: usize,
}

impl<'a> ClusterState<'a> {
    /// Makes the state in which no job has arrived.
    pub(super) fn new(
        run: &'a ClusterRun,
        machine: &'a ClusterMachine,
        jobs: &'a [ClusterJob],
        fabric: Option<&'a IterationFabric>,
        scheduler: &dyn Scheduler,
    ) -> ClusterState<'a> {
        let state = |job: &ClusterJob| {
            let interval = interval_ms(job, machine, &run.checkpoint, &run.failures);
            JobState {
                phase: JobPhase::Ahead,
                progress: JobProgress::new(job.duration_ms, interval, cost(job, machine, &run.checkpoint)),
                shares: Vec::new(),
                racks: Vec::new(),
                held: 0,
                factor_ppm: 1_000_000,
                alone_ppm: 1_000_000,
                as_of_ms: 0,
                has_since_ms: 0,
                ends_ms: 0,
                believed_ends_ms: 0,
                version: 0,
                first_start_ms: None,
                ended_ms: None,
                queued_since_ms: 0,
                queued_ms: 0,
                restarts: 0,
                preemptions: 0,
                lost_ns: 0,
                work_ns: 0,
                working_ms: 0,
                alone_ns: 0,
                slowest: None,
                restart_ms: 0,
            }
        };
        let curve = &run.scheduler.slowdown;
        let m = machine;
        ClusterState {
            run,
            machine,
            jobs,
            behind: scheduler.behind(),
            queue_keys: jobs.iter().map(|job| scheduler.key(job)).collect(),
            now_ms: 0,
            servers: Servers::new(m.servers(), m.per_server),
            job_states: jobs.iter().map(state).collect(),
            queue: BTreeSet::new(),
            running: BTreeSet::new(),
            believed_ends: BTreeSet::new(),
            shrunk: BTreeSet::new(),
            at_checkpoint: BTreeSet::new(),
            jobs_on: vec![BTreeSet::new(); m.rack.len()],
            slowdown: PlacementSlowdown::new(curve, m.oversubscription_ppm, &m.rack, m.racks, m.per_server),
            measured: fabric.map(MeasuredIterations::new),
            congestion: CongestionLog::default(),
            history: None,
            storage: CheckpointStorage::new(&run.checkpoint),
            beside_writes: None,
            quotas: Quotas::new(&run.scheduler.quotas, jobs),
            events: Events::default(),
            account: Account::default(),
            stranded: 0,
            waiting_gpus: 0,
            migrations: 0,
            shrinks: 0,
            grows: 0,
            given_up: 0,
            arrived: 0,
        }
    }

    /// Whether anything can still start or end: a job runs, a job is to arrive, servers are to come back, or a delayed job is to wake.
    pub(super) fn can_go_on(&self) -> bool {
        let out = [ServerUse::Draining, ServerUse::Maintenance, ServerUse::Down];
        let mends = out.into_iter().any(|server_use| self.servers.count(server_use) > 0);
        let last = self.jobs.last().map_or(0, |job| job.submit_ms);
        let wakes = self.now_ms < last.saturating_add(self.run.scheduler.low_delay_ms);
        !self.running.is_empty() || self.arrived < self.jobs.len() || mends || wakes
    }

    /// Whether every GPU is counted in exactly one place. Used by assertions.
    pub(super) fn is_sound(&self) -> bool {
        let moment = self.moment();
        let held: u64 = self.running.iter().map(|(_, job)| u64::from(self.job_states[*job as usize].held)).sum();
        held + moment.free + moment.down + moment.drained + moment.spare == self.machine.gpus()
    }

    /// Whether no job lacks GPUs that are free and that no job waits for, if jobs grow at once. Used by assertions.
    pub(super) fn has_grown(&self) -> bool {
        let could = self.run.grow == GrowBack::AtOnce && self.queue.is_empty() && self.servers.free_gpus() > 0;
        // Jobs of classes grow by whole replicas only.
        !could || self.shrunk.iter().all(|(_, job)| self.jobs[*job as usize].class.is_some())
    }

    /// Number of GPUs, at most `gpus`, with which a running job can go on. `None`: it cannot go on with so few.
    pub(super) fn goes_on_with(&self, job: u32, gpus: u32) -> Option<u32> {
        let asked = &self.jobs[job as usize];
        let max_size = match (asked.class, &self.measured) {
            (Some(class), Some(measured)) => measured.sizes(class).rev().find(|size| *size <= gpus),
            _ => Some(gpus),
        };
        max_size.filter(|max_size| *max_size >= asked.min_gpus.max(1))
    }

    /// Clock time in ms that a waiting job needs at full speed, by its estimate. `None`: it has done more work than the estimate already.
    pub(super) fn believed_ms(&self, job: u32) -> Option<u64> {
        let job_state = &self.job_states[job as usize];
        let left = job_state.progress.believed_left_ms(self.jobs[job as usize].estimate_ms, 1_000_000);
        left.map(|ms| ms.saturating_add(job_state.restart_ms))
    }

    fn key(&self, job: u32) -> (QueueKey, u32) {
        (self.queue_keys[job as usize], job)
    }

    /// Number of GPUs that no job holds, by state.
    pub(super) fn moment(&self) -> UnheldGpus {
        let servers = &self.servers;
        let gpus = |server_use: ServerUse| u64::from(servers.count(server_use)) * u64::from(servers.per_server());
        UnheldGpus {
            free: servers.free_gpus(),
            stranded: self.stranded,
            // GPUs of failed servers are taken from jobs at once, so no job holds any of them between two events.
            down: gpus(ServerUse::Down),
            drained: gpus(ServerUse::Maintenance) + servers.draining_free(),
            spare: gpus(ServerUse::HotSpare) + gpus(ServerUse::ColdSpare),
        }
    }

    /// Lets `ms` pass in which nothing changes.
    pub(super) fn pass(&mut self, ms: u64) {
        let moment = self.moment();
        self.account.pass(ms, &moment);
        if self.measured.is_some()
            && let Some(storage) = self.storage.as_ref().filter(|storage| storage.is_used())
        {
            // A job that writes stands still, and a job in one rack sends nothing over the rack's uplinks. So neither counts.
            let running = self.running.iter().map(|(_, job)| &self.job_states[*job as usize]);
            let filled = |job: &JobState| u128::from(job.held) * u128::from(storage.filled_ppm(&job.racks));
            let gpus_beside_writes =
                || running.filter(|job| job.racks.len() > 1 && !job.progress.is_writing()).map(filled).sum();
            let gpus_ppm = *self.beside_writes.get_or_insert_with(gpus_beside_writes);
            self.account.pass_beside_writes(ms, gpus_ppm);
        }
    }

    /// GPUs of jobs that other jobs slow down.
    pub(super) fn slowed_gpus(&self) -> u64 {
        let running = self.running.iter().map(|(_, job)| &self.job_states[*job as usize]);
        running.filter(|job| job.factor_ppm > job.alone_ppm).map(|job| u64::from(job.held)).sum()
    }

    /// Puts a job into the queue.
    pub(super) fn enqueue(&mut self, job: u32) {
        let key = self.key(job);
        self.queue.insert(key);
        self.waiting_gpus += u64::from(self.jobs[job as usize].gpus);
        let job_state = &mut self.job_states[job as usize];
        self.arrived += usize::from(job_state.phase == JobPhase::Ahead);
        job_state.phase = JobPhase::Waiting;
        job_state.queued_since_ms = self.now_ms;
        if let Some(history) = &mut self.history {
            history.job(job, Some(JobActivity::Waits), self.now_ms);
        }
    }

    /// Starts a waiting job on these GPUs.
    pub(super) fn start(&mut self, job: u32, shares: Vec<GpuShare>) {
        let key = self.key(job);
        let was_there = self.queue.remove(&key);
        debug_assert!(was_there, "a job that starts has waited");
        self.waiting_gpus -= u64::from(self.jobs[job as usize].gpus);
        self.quotas.add(job, self.jobs[job as usize].gpus);
        let now_ms = self.now_ms;
        let job_state = &mut self.job_states[job as usize];
        job_state.queued_ms += now_ms - job_state.queued_since_ms;
        job_state.first_start_ms.get_or_insert(now_ms);
        job_state.phase = JobPhase::Running;
        job_state.as_of_ms = now_ms;
        let restart_ms = std::mem::take(&mut job_state.restart_ms);
        job_state.progress.restart(restart_ms);
        self.occupy(job, shares);
    }

    /// Gives these GPUs to a running job. PRECONDITION: it holds none.
    fn occupy(&mut self, job: u32, shares: Vec<GpuShare>) {
        self.beside_writes = None;
        self.servers.take(&shares);
        let racks = PlacementSlowdown::racks(&self.machine.rack, &shares);
        for share in &shares {
            self.jobs_on[share.server as usize].insert(job);
        }
        let others = match &mut self.measured {
            Some(measured) => {
                measured.comes(job, &self.jobs[job as usize], &shares);
                BTreeSet::new()
            }
            None => self.slowdown.comes(job, &racks),
        };
        let job_state = &mut self.job_states[job as usize];
        job_state.held = shares.iter().map(|s| s.count()).sum();
        (job_state.shares, job_state.racks) = (shares, racks);
        debug_assert!(job_state.held <= self.jobs[job as usize].gpus, "a job has no more than it asked for");
        if job_state.held < self.jobs[job as usize].gpus {
            let key = self.key(job);
            self.shrunk.insert(key);
        }
        let job_state = &mut self.job_states[job as usize];
        job_state.has_since_ms = self.now_ms;
        // The time of its end is set by `rerate` below.
        (job_state.ends_ms, job_state.believed_ends_ms) = (u64::MAX, u64::MAX);
        self.running.insert((u64::MAX, job));
        self.believed_ends.insert((u64::MAX, job));
        self.rerate(job);
        others.into_iter().for_each(|other| self.rerate(other));
    }

    /// Takes all GPUs from a running job, and returns them.
    fn vacate(&mut self, job: u32) -> Vec<GpuShare> {
        self.beside_writes = None;
        self.settle(job);
        let key = self.key(job);
        self.shrunk.remove(&key);
        if let Some(storage) = &mut self.storage {
            storage.set(job, false, (&[], &Vec::new()), self.machine);
        }
        let job_state = &mut self.job_states[job as usize];
        self.running.remove(&(job_state.ends_ms, job));
        self.believed_ends.remove(&(job_state.believed_ends_ms, job));
        job_state.version += 1;
        job_state.held = 0;
        let (shares, racks) = (std::mem::take(&mut job_state.shares), std::mem::take(&mut job_state.racks));
        if let Some(history) = &mut self.history {
            history.had(job, &shares, job_state.has_since_ms, self.now_ms);
            history.job(job, None, self.now_ms);
        }
        self.servers.give(&shares);
        for share in &shares {
            self.jobs_on[share.server as usize].remove(&job);
        }
        let others = match &mut self.measured {
            Some(measured) => {
                measured.goes(job);
                self.congestion.now(job, None, self.now_ms);
                BTreeSet::new()
            }
            None => self.slowdown.goes(job, &racks),
        };
        others.into_iter().for_each(|other| self.rerate(other));
        shares
    }

    /// Counts what a running job has done until now.
    pub(super) fn settle(&mut self, job: u32) {
        let gpus = self.jobs[job as usize].gpus;
        let job_state = &mut self.job_states[job as usize];
        let spent = job_state.progress.advance(self.now_ms - job_state.as_of_ms, job_state.factor_ppm);
        job_state.as_of_ms = self.now_ms;
        job_state.work_ns += u128::from(spent.work_ns);
        job_state.working_ms += spent.working_ms;
        self.account.spend(&spent, job_state.held, gpus);
        if let Some(storage) = &mut self.storage {
            storage.count(job, spent.write_ms, spent.written_bits);
        }
        let alone_ns = u128::from(spent.work_ns) * u128::from(job_state.alone_ppm) / 1_000_000;
        job_state.alone_ns += alone_ns;
        let more_ns = (u128::from(spent.working_ms) * 1_000_000).saturating_sub(alone_ns);
        self.account.company += more_ns * u128::from(job_state.held);
    }

    /// Simulates iterations of the jobs that now run beside other jobs than before, and updates their speeds.
    ///
    /// # Errors
    /// Fails as [`MeasuredIterations::settle`] does.
    pub(super) fn measure(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), ClusterError> {
        let Some(measured) = &mut self.measured else { return Ok(()) };
        for job in measured.settle(stop)? {
            self.rerate(job);
        }
        Ok(())
    }

    /// Updates the speed and the end of a running job.
    pub(super) fn rerate(&mut self, job: u32) {
        self.settle(job);
        let asked = &self.jobs[job as usize];
        let job_state = &mut self.job_states[job as usize];
        let held = u128::from(job_state.held.max(1));
        // Fewer GPUs take longer for the same work. Iterations of classes were simulated with the GPUs that the job holds, so their factor includes that.
        let with_held = |factor: u64| match asked.class {
            Some(_) => factor,
            None => (u128::from(factor) * u128::from(asked.gpus)).div_ceil(held) as u64,
        };
        match &self.measured {
            Some(measured) => {
                let slowest = u128::from(self.slowdown.slowest_ppm(&job_state.shares));
                let speed = measured.speed(job);
                let on_servers = |ppm: u64| with_held((u128::from(ppm) * slowest / 1_000_000) as u64);
                job_state.factor_ppm = on_servers(speed.factor_ppm);
                job_state.alone_ppm = on_servers(speed.alone_ppm);
                self.congestion.now(job, speed.slowed_by_others.as_ref(), self.now_ms);
                if let Some(now) = &speed.slowed_by_others
                    && job_state.slowest.as_ref().is_none_or(|worst| now.ppm > worst.ppm)
                {
                    job_state.slowest = Some(now.clone());
                }
            }
            None => {
                let (factor, alone) =
                    self.slowdown.factors_ppm(&job_state.racks, &job_state.shares, asked.comm_share_ppm);
                (job_state.factor_ppm, job_state.alone_ppm) = (with_held(factor), with_held(alone));
                let ppm = (u128::from(factor) * 1_000_000 / u128::from(alone)) as u64;
                if ppm > job_state.slowest.as_ref().map_or(1_000_000, |worst| worst.ppm)
                    && let Some((rack, jobs)) = self.slowdown.most_crowded(job, &job_state.racks)
                {
                    job_state.slowest =
                        Some(SlowestMoment { ppm, jobs, place: Some(rack), ..SlowestMoment::default() });
                }
            }
        }
        if let Some(history) = &mut self.history {
            let runs = JobActivity::Runs { gpus: job_state.held, slowdown_ppm: job_state.factor_ppm };
            history.job(job, Some(runs), self.now_ms);
        }
        self.running.remove(&(job_state.ends_ms, job));
        job_state.ends_ms = self.now_ms.saturating_add(job_state.progress.left_ms(job_state.factor_ppm));
        job_state.version += 1;
        self.running.insert((job_state.ends_ms, job));
        self.believed_ends.remove(&(job_state.believed_ends_ms, job));
        job_state.believed_ends_ms = match job_state.progress.believed_left_ms(asked.estimate_ms, job_state.factor_ppm)
        {
            _ if asked.estimate_ms == asked.duration_ms => job_state.ends_ms,
            Some(ms) => self.now_ms.saturating_add(ms),
            None => self.now_ms,
        };
        self.believed_ends.insert((job_state.believed_ends_ms, job));
        if let Some(storage) = &mut self.storage {
            storage.set(job, job_state.progress.is_writing(), (&job_state.shares, &job_state.racks), self.machine);
        }
        let grows = self.run.grow == GrowBack::AtCheckpoint && job_state.held < asked.gpus;
        let turns = self.storage.is_some() || grows;
        match job_state.progress.next_turn_ms(job_state.factor_ppm).filter(|_| turns) {
            Some(ms) => {
                self.events.add(self.now_ms.saturating_add(ms), Event::Turns { job, version: job_state.version })
            }
            None => self.events.add(job_state.ends_ms, Event::Ends { job, version: job_state.version }),
        }
    }

    /// Handles a turn event: a job begins or ends writing a checkpoint. It does nothing if the event is void.
    pub(super) fn turn(&mut self, job: u32, version: u32) {
        if self.job_states[job as usize].version == version && self.job_states[job as usize].phase == JobPhase::Running
        {
            self.rerate(job);
            if self.job_states[job as usize].progress.is_safe() {
                self.at_checkpoint.insert(job);
            }
        }
    }

    /// Begins to record what jobs and servers do. PRECONDITION: nothing has happened yet.
    pub(super) fn record(&mut self) {
        self.history = Some(HistoryLog::default());
        self.servers.record_uses();
    }

    /// Records the changes of server uses, if recording is on.
    pub(super) fn record_uses(&mut self) {
        if let Some(history) = &mut self.history {
            history.uses(self.servers.take_changes(), self.now_ms);
        }
    }

    /// Takes the record. PRECONDITION: the run is over.
    pub(super) fn take_history(&mut self) -> Option<ClusterHistory> {
        let mut history = self.history.take()?;
        for (_, job) in &self.running {
            let job_state = &self.job_states[*job as usize];
            history.had(*job, &job_state.shares, job_state.has_since_ms, self.now_ms);
        }
        let name = |job: &ClusterJob| (Arc::clone(&job.name), Arc::clone(&job.user), job.gpus);
        Some(history.finished(self.jobs.iter().map(name).collect(), self.now_ms))
    }

    /// Sets the fair write rates of jobs that write checkpoints.
    pub(super) fn share_storage(&mut self) {
        while let Some(rates) = self.storage.as_mut().and_then(|storage| storage.new_rates(self.machine)) {
            self.beside_writes = None;
            for (job, bps) in rates {
                self.settle(job);
                if self.job_states[job as usize].progress.writes_at(bps) {
                    self.rerate(job);
                }
            }
        }
    }

    /// Ends a job whose end is due. Returns false if the event is void or the job is not done yet.
    pub(super) fn end(&mut self, job: u32, version: u32) -> bool {
        if self.job_states[job as usize].version != version || self.job_states[job as usize].phase != JobPhase::Running
        {
            return false;
        }
        self.settle(job);
        if !self.job_states[job as usize].progress.is_done() {
            // Rounding to whole milliseconds left some work.
            self.rerate(job);
            return false;
        }
        self.vacate(job);
        self.quotas.remove(job, self.jobs[job as usize].gpus);
        let job_state = &mut self.job_states[job as usize];
        job_state.phase = JobPhase::Done;
        job_state.ended_ms = Some(self.now_ms);
        true
    }

    /// Stops a running job and puts it back into the queue. With `saves` it saves its state first.
    pub(super) fn send_back(&mut self, job: u32, saves: bool, restart_ms: u64) {
        self.vacate(job);
        self.quotas.remove(job, self.jobs[job as usize].gpus);
        self.lose(job, saves);
        self.job_states[job as usize].restart_ms = restart_ms;
        self.enqueue(job);
    }

    /// Gives a running job up: none of its work counts.
    pub(super) fn give_up(&mut self, job: u32) {
        self.vacate(job);
        self.quotas.remove(job, self.jobs[job as usize].gpus);
        self.lose(job, false);
        let done = self.job_states[job as usize].progress.done_ns();
        self.account.lose(done, self.jobs[job as usize].gpus);
        let job_state = &mut self.job_states[job as usize];
        job_state.lost_ns += u128::from(done);
        job_state.phase = JobPhase::GivenUp;
        job_state.ended_ms = Some(self.now_ms);
        self.given_up += 1;
    }

    fn lose(&mut self, job: u32, saves: bool) {
        let job_state = &mut self.job_states[job as usize];
        if saves {
            return job_state.progress.save();
        }
        let lost = job_state.progress.roll_back();
        job_state.lost_ns += u128::from(lost);
        self.account.lose(lost, self.jobs[job as usize].gpus);
    }

    /// Moves a running job to other GPUs, where it stands still for `stands_ms` first. It goes on from where it was (`saves`) or from its last checkpoint.
    /// PRECONDITION: the GPUs of `new_shares` are free, or the job's own.
    pub(super) fn relocate(&mut self, job: u32, new_shares: Vec<GpuShare>, saves: bool, stands_ms: u64) {
        self.vacate(job);
        self.lose(job, saves);
        self.job_states[job as usize].progress.restart(stands_ms);
        self.occupy(job, new_shares);
    }
}
