//! A cluster at a moment: its servers, jobs, queue, and what is still to come.
//!
//! Layer: cluster. Starts, stops and slows jobs, and counts where GPU time goes; decides nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::account::{Account, UnheldGpus};
use super::congestion::CongestionLog;
use super::error::ClusterError;
use super::event::{Event, Events};
use super::history::{ClusterHistory, HistoryLog, JobActivity};
use super::interval::{cost, interval_ms};
use super::iterations::{IterationFabric, MeasuredIterations, SlowestMoment};
use super::job::ClusterJob;
use super::machine::ClusterMachine;
use super::progress::JobProgress;
use super::quota::Quotas;
use super::scheduler::{QueueKey, Scheduler};
use super::servers::{GpuShare, ServerUse, Servers};
use super::slowdown::{PlacementSlowdown, Racks};
use super::storage::CheckpointStorage;
use crate::spec::{ClusterRun, GrowBack};

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobPhase {
    /// It has not arrived.
    Ahead,
    Waiting,
    Running,
    Done,
    /// After too many restarts.
    GivenUp,
}

/// What has become of a job so far.
#[derive(Clone, Debug)]
pub(super) struct JobState {
    pub phase: JobPhase,
    pub progress: JobProgress,
    /// While it runs.
    pub shares: Vec<GpuShare>,
    pub racks: Racks,
    /// GPUs that it has.
    pub held: u32,
    factor_ppm: u64,
    /// What that were in the same place alone.
    alone_ppm: u64,
    as_of_ms: u64,
    /// Since when it has these GPUs.
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
    /// Work that it did, lost or not; the time that this took; and the time without others.
    pub work_ns: u128,
    pub working_ms: u64,
    pub alone_ns: u128,
    /// When others slowed it down most.
    pub slowest: Option<SlowestMoment>,
    /// Time to stand still at the next start.
    restart_ms: u64,
}

/// All of it.
pub(super) struct ClusterState<'a> {
    pub run: &'a ClusterRun,
    pub machine: &'a ClusterMachine,
    pub jobs: &'a [ClusterJob],
    pub scheduler: &'a dyn Scheduler,
    pub now_ms: u64,
    pub servers: Servers,
    pub of: Vec<JobState>,
    pub queue: BTreeSet<(QueueKey, u32)>,
    /// Jobs that run, by when they end.
    pub running: BTreeSet<(u64, u32)>,
    /// The same jobs by when the scheduler believes that they end: a time that has passed for those that have outrun their estimates.
    pub believed_ends: BTreeSet<(u64, u32)>,
    /// Of these, jobs with fewer GPUs than they asked for, in the order of the queue.
    pub shrunk: BTreeSet<(QueueKey, u32)>,
    /// Jobs that have written a checkpoint at this moment.
    pub at_checkpoint: BTreeSet<u32>,
    pub jobs_on: Vec<BTreeSet<u32>>,
    pub slowdown: PlacementSlowdown,
    /// `None`: speeds are assumed.
    pub measured: Option<MeasuredIterations<'a>>,
    pub congestion: CongestionLog,
    /// Where it is asked for.
    pub history: Option<HistoryLog>,
    /// `None`: every job has the storage to itself.
    pub storage: Option<CheckpointStorage>,
    /// GPUs that work beside writes, times millionths of the way out of their racks that these take; `None`: not known since jobs or writes changed.
    beside_writes: Option<u128>,
    pub quotas: Quotas,
    pub events: Events,
    pub account: Account,
    /// Of the last look at the queue.
    pub stranded: u64,
    pub waiting_gpus: u64,
    pub migrations: u64,
    pub shrinks: u64,
    pub grows: u64,
    /// Jobs that were given up and nobody has asked for yet.
    pub given_up: usize,
    /// Jobs that have.
    arrived: usize,
}

impl<'a> ClusterState<'a> {
    /// Nobody has arrived yet.
    pub(super) fn new(
        run: &'a ClusterRun,
        machine: &'a ClusterMachine,
        jobs: &'a [ClusterJob],
        fabric: Option<&'a IterationFabric>,
        scheduler: &'a dyn Scheduler,
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
            scheduler,
            now_ms: 0,
            servers: Servers::new(m.servers(), m.per_server),
            of: jobs.iter().map(state).collect(),
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

    /// Whether anything can still start or end: a job runs, or is to arrive, or servers are to come back, or a job is to wake.
    pub(super) fn can_go_on(&self) -> bool {
        let out = [ServerUse::Draining, ServerUse::Maintenance, ServerUse::Down];
        let mends = out.into_iter().any(|of| self.servers.count(of) > 0);
        let last = self.jobs.last().map_or(0, |job| job.submit_ms);
        let wakes = self.now_ms < last.saturating_add(self.run.scheduler.low_delay_ms);
        !self.running.is_empty() || self.arrived < self.jobs.len() || mends || wakes
    }

    /// Whether every GPU is in one place: used by assertions.
    pub(super) fn is_sound(&self) -> bool {
        let moment = self.moment();
        let held: u64 = self.running.iter().map(|(_, job)| u64::from(self.of[*job as usize].held)).sum();
        held + moment.free + moment.down + moment.drained + moment.spare == self.machine.gpus()
    }

    /// Whether nobody lacks GPUs that are free and that nobody waits for, where jobs grow at once: used by assertions.
    pub(super) fn has_grown(&self) -> bool {
        let could = self.run.grow == GrowBack::AtOnce && self.queue.is_empty() && self.servers.free_gpus() > 0;
        // Jobs of classes grow by whole replicas.
        !could || self.shrunk.iter().all(|(_, job)| self.jobs[*job as usize].class.is_some())
    }

    /// With how many of so many GPUs a running job can go on; `None`: with none of that number or less.
    pub(super) fn goes_on_with(&self, job: u32, gpus: u32) -> Option<u32> {
        let asked = &self.jobs[job as usize];
        let most = match (asked.class, &self.measured) {
            (Some(class), Some(measured)) => measured.sizes(class).rev().find(|size| *size <= gpus),
            _ => Some(gpus),
        };
        most.filter(|most| *most >= asked.min_gpus.max(1))
    }

    /// Clock time that a waiting job takes at full speed if its estimate is believed; `None`: it has done more work than that already.
    pub(super) fn believed_ms(&self, job: u32) -> Option<u64> {
        let of = &self.of[job as usize];
        let left = of.progress.believed_left_ms(self.jobs[job as usize].estimate_ms, 1_000_000);
        left.map(|ms| ms.saturating_add(of.restart_ms))
    }

    fn key(&self, job: u32) -> (QueueKey, u32) {
        (self.scheduler.key(&self.jobs[job as usize]), job)
    }

    /// What the GPUs do that no job has.
    pub(super) fn moment(&self) -> UnheldGpus {
        let servers = &self.servers;
        let gpus = |of: ServerUse| u64::from(servers.count(of)) * u64::from(servers.per_server());
        UnheldGpus {
            free: servers.free_gpus(),
            stranded: self.stranded,
            // What is taken off a failed server at once is never held there between two times.
            down: gpus(ServerUse::Down),
            drained: gpus(ServerUse::Maintenance) + servers.draining_free(),
            spare: gpus(ServerUse::HotSpare) + gpus(ServerUse::ColdSpare),
        }
    }

    /// Lets time pass in which nothing changes.
    pub(super) fn pass(&mut self, ms: u64) {
        let moment = self.moment();
        self.account.pass(ms, &moment);
        if self.measured.is_some()
            && let Some(storage) = self.storage.as_ref().filter(|storage| storage.is_used())
        {
            // A job that writes stands still, and one in a single rack sends nothing over its way out.
            let running = self.running.iter().map(|(_, job)| &self.of[*job as usize]);
            let of = |of: &JobState| u128::from(of.held) * u128::from(storage.filled_ppm(&of.racks));
            let beside = || running.filter(|of| of.racks.len() > 1 && !of.progress.is_writing()).map(of).sum();
            let gpus_ppm = *self.beside_writes.get_or_insert_with(beside);
            self.account.pass_beside_writes(ms, gpus_ppm);
        }
    }

    /// GPUs of jobs that others slow down.
    pub(super) fn slowed_gpus(&self) -> u64 {
        let running = self.running.iter().map(|(_, job)| &self.of[*job as usize]);
        running.filter(|of| of.factor_ppm > of.alone_ppm).map(|of| u64::from(of.held)).sum()
    }

    /// Puts a job into the queue.
    pub(super) fn enqueue(&mut self, job: u32) {
        let key = self.key(job);
        self.queue.insert(key);
        self.waiting_gpus += u64::from(self.jobs[job as usize].gpus);
        let of = &mut self.of[job as usize];
        self.arrived += usize::from(of.phase == JobPhase::Ahead);
        of.phase = JobPhase::Waiting;
        of.queued_since_ms = self.now_ms;
        if let Some(history) = &mut self.history {
            history.job(job, Some(JobActivity::Waits), self.now_ms);
        }
    }

    /// Gives a waiting job these GPUs.
    pub(super) fn start(&mut self, job: u32, shares: Vec<GpuShare>) {
        let key = self.key(job);
        let was_there = self.queue.remove(&key);
        debug_assert!(was_there, "a job that starts has waited");
        self.waiting_gpus -= u64::from(self.jobs[job as usize].gpus);
        self.quotas.add(job, self.jobs[job as usize].gpus);
        let now_ms = self.now_ms;
        let of = &mut self.of[job as usize];
        of.queued_ms += now_ms - of.queued_since_ms;
        of.first_start_ms.get_or_insert(now_ms);
        of.phase = JobPhase::Running;
        of.as_of_ms = now_ms;
        let restart_ms = std::mem::take(&mut of.restart_ms);
        of.progress.restart(restart_ms);
        self.occupy(job, shares);
    }

    /// A running job has these GPUs from now on. PRECONDITION: it has none.
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
        let of = &mut self.of[job as usize];
        of.held = shares.iter().map(|s| s.count()).sum();
        (of.shares, of.racks) = (shares, racks);
        debug_assert!(of.held <= self.jobs[job as usize].gpus, "a job has no more than it asked for");
        if of.held < self.jobs[job as usize].gpus {
            let key = self.key(job);
            self.shrunk.insert(key);
        }
        let of = &mut self.of[job as usize];
        of.has_since_ms = self.now_ms;
        // It has no time of its end yet.
        (of.ends_ms, of.believed_ends_ms) = (u64::MAX, u64::MAX);
        self.running.insert((u64::MAX, job));
        self.believed_ends.insert((u64::MAX, job));
        self.rerate(job);
        others.into_iter().for_each(|other| self.rerate(other));
    }

    /// A running job has no GPUs any more.
    fn vacate(&mut self, job: u32) -> Vec<GpuShare> {
        self.beside_writes = None;
        self.settle(job);
        let key = self.key(job);
        self.shrunk.remove(&key);
        if let Some(storage) = &mut self.storage {
            storage.set(job, false, (&[], &Vec::new()), self.machine);
        }
        let of = &mut self.of[job as usize];
        self.running.remove(&(of.ends_ms, job));
        self.believed_ends.remove(&(of.believed_ends_ms, job));
        of.version += 1;
        of.held = 0;
        let (shares, racks) = (std::mem::take(&mut of.shares), std::mem::take(&mut of.racks));
        if let Some(history) = &mut self.history {
            history.had(job, &shares, of.has_since_ms, self.now_ms);
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
        let of = &mut self.of[job as usize];
        let spent = of.progress.advance(self.now_ms - of.as_of_ms, of.factor_ppm);
        of.as_of_ms = self.now_ms;
        of.work_ns += u128::from(spent.work_ns);
        of.working_ms += spent.working_ms;
        self.account.spend(&spent, of.held, gpus);
        if let Some(storage) = &mut self.storage {
            storage.count(job, spent.write_ms, spent.written_bits);
        }
        let alone_ns = u128::from(spent.work_ns) * u128::from(of.alone_ppm) / 1_000_000;
        of.alone_ns += alone_ns;
        let more_ns = (u128::from(spent.working_ms) * 1_000_000).saturating_sub(alone_ns);
        self.account.company += more_ns * u128::from(of.held);
    }

    /// Simulates iterations of the jobs whose company has changed, and goes on at the speeds that these show.
    ///
    /// # Errors
    /// As [`MeasuredIterations::settle`].
    pub(super) fn measure(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), ClusterError> {
        let Some(measured) = &mut self.measured else { return Ok(()) };
        for job in measured.settle(stop)? {
            self.rerate(job);
        }
        Ok(())
    }

    /// Brings a running job's speed and end up to date.
    pub(super) fn rerate(&mut self, job: u32) {
        self.settle(job);
        let asked = &self.jobs[job as usize];
        let of = &mut self.of[job as usize];
        let held = u128::from(of.held.max(1));
        // Fewer GPUs take longer for the same work. Iterations of classes were simulated with those that a job has.
        let with_held = |factor: u64| match asked.class {
            Some(_) => factor,
            None => (u128::from(factor) * u128::from(asked.gpus)).div_ceil(held) as u64,
        };
        match &self.measured {
            Some(measured) => {
                let slowest = u128::from(self.slowdown.slowest_ppm(&of.shares));
                let speed = measured.speed(job);
                let on_servers = |ppm: u64| with_held((u128::from(ppm) * slowest / 1_000_000) as u64);
                of.factor_ppm = on_servers(speed.factor_ppm);
                of.alone_ppm = on_servers(speed.alone_ppm);
                self.congestion.now(job, speed.beside.as_ref(), self.now_ms);
                if let Some(now) = &speed.beside
                    && of.slowest.as_ref().is_none_or(|most| now.ppm > most.ppm)
                {
                    of.slowest = Some(now.clone());
                }
            }
            None => {
                let (factor, alone) = self.slowdown.factors_ppm(&of.racks, &of.shares, asked.comm_share_ppm);
                (of.factor_ppm, of.alone_ppm) = (with_held(factor), with_held(alone));
                let ppm = (u128::from(factor) * 1_000_000 / u128::from(alone)) as u64;
                if ppm > of.slowest.as_ref().map_or(1_000_000, |most| most.ppm)
                    && let Some((rack, jobs)) = self.slowdown.most_crowded(job, &of.racks)
                {
                    of.slowest = Some(SlowestMoment { ppm, jobs, place: Some(rack), ..SlowestMoment::default() });
                }
            }
        }
        if let Some(history) = &mut self.history {
            let runs = JobActivity::Runs { gpus: of.held, slowdown_ppm: of.factor_ppm };
            history.job(job, Some(runs), self.now_ms);
        }
        self.running.remove(&(of.ends_ms, job));
        of.ends_ms = self.now_ms.saturating_add(of.progress.left_ms(of.factor_ppm));
        of.version += 1;
        self.running.insert((of.ends_ms, job));
        self.believed_ends.remove(&(of.believed_ends_ms, job));
        of.believed_ends_ms = match of.progress.believed_left_ms(asked.estimate_ms, of.factor_ppm) {
            _ if asked.estimate_ms == asked.duration_ms => of.ends_ms,
            Some(ms) => self.now_ms.saturating_add(ms),
            None => self.now_ms,
        };
        self.believed_ends.insert((of.believed_ends_ms, job));
        if let Some(storage) = &mut self.storage {
            storage.set(job, of.progress.is_writing(), (&of.shares, &of.racks), self.machine);
        }
        let grows = self.run.grow == GrowBack::AtCheckpoint && of.held < asked.gpus;
        let turns = self.storage.is_some() || grows;
        match of.progress.next_turn_ms(of.factor_ppm).filter(|_| turns) {
            Some(ms) => self.events.add(self.now_ms.saturating_add(ms), Event::Turns { job, version: of.version }),
            None => self.events.add(of.ends_ms, Event::Ends { job, version: of.version }),
        }
    }

    /// A job begins to write a checkpoint, or has written it, if nothing has come between.
    pub(super) fn turn(&mut self, job: u32, version: u32) {
        if self.of[job as usize].version == version && self.of[job as usize].phase == JobPhase::Running {
            self.rerate(job);
            if self.of[job as usize].progress.is_safe() {
                self.at_checkpoint.insert(job);
            }
        }
    }

    /// Begins to record what jobs and servers do. PRECONDITION: nothing has happened yet.
    pub(super) fn record(&mut self) {
        self.history = Some(HistoryLog::default());
        self.servers.record_uses();
    }

    /// Records what servers are there for from now on, where that is asked for.
    pub(super) fn record_uses(&mut self) {
        if let Some(history) = &mut self.history {
            history.uses(self.servers.take_changes(), self.now_ms);
        }
    }

    /// What was recorded. PRECONDITION: it is over.
    pub(super) fn take_history(&mut self) -> Option<ClusterHistory> {
        let mut history = self.history.take()?;
        for (_, job) in &self.running {
            let of = &self.of[*job as usize];
            history.had(*job, &of.shares, of.has_since_ms, self.now_ms);
        }
        let name = |job: &ClusterJob| (Arc::clone(&job.name), Arc::clone(&job.user), job.gpus);
        Some(history.finished(self.jobs.iter().map(name).collect(), self.now_ms))
    }

    /// Gives jobs that write the rates that they have beside each other.
    pub(super) fn share_storage(&mut self) {
        while let Some(rates) = self.storage.as_mut().and_then(|storage| storage.new_rates(self.machine)) {
            self.beside_writes = None;
            for (job, bps) in rates {
                self.settle(job);
                if self.of[job as usize].progress.writes_at(bps) {
                    self.rerate(job);
                }
            }
        }
    }

    /// A job's end is due: false if something has come between.
    pub(super) fn end(&mut self, job: u32, version: u32) -> bool {
        if self.of[job as usize].version != version || self.of[job as usize].phase != JobPhase::Running {
            return false;
        }
        self.settle(job);
        if !self.of[job as usize].progress.is_done() {
            // Whole milliseconds leave a rest.
            self.rerate(job);
            return false;
        }
        self.vacate(job);
        self.quotas.remove(job, self.jobs[job as usize].gpus);
        let of = &mut self.of[job as usize];
        of.phase = JobPhase::Done;
        of.ended_ms = Some(self.now_ms);
        true
    }

    /// Stops a running job and puts it back into the queue. `saves`: it may save its state first.
    pub(super) fn send_back(&mut self, job: u32, saves: bool, restart_ms: u64) {
        self.vacate(job);
        self.quotas.remove(job, self.jobs[job as usize].gpus);
        self.lose(job, saves);
        self.of[job as usize].restart_ms = restart_ms;
        self.enqueue(job);
    }

    /// Gives a running job up: nothing of it counts.
    pub(super) fn give_up(&mut self, job: u32) {
        self.vacate(job);
        self.quotas.remove(job, self.jobs[job as usize].gpus);
        self.lose(job, false);
        let done = self.of[job as usize].progress.done_ns();
        self.account.lose(done, self.jobs[job as usize].gpus);
        let of = &mut self.of[job as usize];
        of.lost_ns += u128::from(done);
        of.phase = JobPhase::GivenUp;
        of.ended_ms = Some(self.now_ms);
        self.given_up += 1;
    }

    fn lose(&mut self, job: u32, saves: bool) {
        let of = &mut self.of[job as usize];
        if saves {
            return of.progress.save();
        }
        let lost = of.progress.roll_back();
        of.lost_ns += u128::from(lost);
        self.account.lose(lost, self.jobs[job as usize].gpus);
    }

    /// A running job goes on elsewhere, from where it was (`saves`) or from its last checkpoint, after standing still for so long.
    /// PRECONDITION: `to` is free, or the job's own.
    pub(super) fn relocate(&mut self, job: u32, to: Vec<GpuShare>, saves: bool, stands_ms: u64) {
        self.vacate(job);
        self.lose(job, saves);
        self.of[job as usize].progress.restart(stands_ms);
        self.occupy(job, to);
    }
}
