//! What became of a cluster: figures, its jobs, and how it was at regular times.
//!
//! Layer: cluster. Plain data in integers and fractions of them.

use std::sync::Arc;

use super::account::Account;
use super::congestion::CongestedTime;
use super::iterations::{IterationSummary, SlowestMoment};
use super::job::ClusterJob;
use super::map::{ClusterMapBin, ServerGroupUse, first_of_group};
use super::state::{ClusterState, JobPhase, JobState};
use super::storage::CheckpointStorage;
use crate::cost::Bill;

/// Short jobs do not decide a mean of slowdowns alone: the usual bound (Feitelson et al. 1997) of ten minutes, in milliseconds.
const BOUND_MS: u64 = 600_000;

/// A job's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterJobOutcome {
    pub name: Arc<str>,
    pub user: Arc<str>,
    pub priority: u32,
    pub gpus: u32,
    pub submit_ms: u64,
    pub start_ms: Option<u64>,
    pub end_ms: Option<u64>,
    pub duration_ms: u64,
    pub phase: JobPhase,
    /// In the queue, after restarts too.
    pub queued_ms: u64,
    pub restarts: u64,
    pub preemptions: u64,
    pub lost_ns: u128,
    pub speed: ClusterJobSpeed,
    /// The class that it is of.
    pub class: Option<Arc<str>>,
    /// Mean time of its iterations while it worked; `None`: it is of no class, or has done nothing.
    pub iteration_ps: Option<u64>,
    /// Sequences of an iteration, where it trains a model.
    pub samples_an_iteration: Option<u32>,
}

/// How fast a job was, by its iterations or as was assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterJobSpeed {
    /// Time of its work over its duration, millionths; `None`: it has done nothing.
    pub slowdown_ppm: Option<u64>,
    /// The same over the time that it had taken in the same places alone.
    pub by_company_ppm: Option<u64>,
    /// The second when it was largest, the others of its set then by their names, and the most crowded link or way out of a rack that it shared.
    pub worst: Option<(u64, Vec<Arc<str>>, String)>,
}

/// A job that could not fill its NICs for a time, as others sent over the same link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterCongestion {
    pub job: Arc<str>,
    pub from_ms: u64,
    pub to_ms: u64,
    /// The most crowded link that it shared.
    pub link: String,
    /// The job that came when it began; `None`: none came.
    pub set_off_by: Option<Arc<str>>,
    /// Its time over its time in the same places alone, millionths: the mean, and the worst.
    pub slowdown_ppm: u64,
    pub worst_slowdown_ppm: u64,
    /// At the worst: rate at which it sent over that of its NICs, millionths; the other jobs that sent over the link.
    pub nic_ppm: u64,
    pub sharing: Vec<Arc<str>>,
}

/// What a group of servers did in a bin of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterMapRow {
    pub from_ms: u64,
    pub to_ms: u64,
    pub first_server: u32,
    pub servers: u32,
    pub looks: u64,
    /// Sums over looks.
    pub gpus: ServerGroupUse,
}

/// The cluster at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterSample {
    pub at_ms: u64,
    pub waiting_jobs: u64,
    pub waiting_gpus: u64,
    pub running_jobs: u64,
    pub busy_gpus: u64,
    pub free_gpus: u64,
    pub stranded_gpus: u64,
    pub down_gpus: u64,
    pub drained_gpus: u64,
    pub spare_gpus: u64,
    /// GPUs of jobs that others slow down.
    pub slowed_gpus: u64,
}

/// All that is known at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterOutcome {
    pub span_ms: u64,
    pub account: Account,
    pub jobs: Vec<ClusterJobOutcome>,
    pub samples: Vec<ClusterSample>,
    /// Where iterations are simulated.
    pub congestion: Vec<ClusterCongestion>,
    /// Where it is asked for.
    pub map: Vec<ClusterMapRow>,
    pub failures: u64,
    pub drains: u64,
    pub migrations: u64,
    /// Times that a job went on with fewer GPUs, and that it got some back.
    pub shrinks: u64,
    pub grows: u64,
    /// Time of writes to storage over their time alone, millionths, where they share it.
    pub write_slowdown_ppm: Option<u64>,
    /// Jain's index over users: 1 where all users are slowed down alike. `None`: nobody has ended a job.
    pub fairness: Option<f64>,
    pub bill: Bill,
    /// Where iterations are simulated.
    pub iterations: Option<IterationSummary>,
    /// Sequences on which models were trained by work that counts, thousandths; `None`: no job is of a class that trains one.
    pub samples_m: Option<u128>,
}

/// Some numbers in short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    pub mean_ms: u64,
    pub p50_ms: u64,
    pub p99_ms: u64,
}

impl Distribution {
    /// Of times in any order; nearest rank. `None`: there are none.
    pub fn of(mut ms: Vec<u64>) -> Option<Distribution> {
        ms.sort_unstable();
        let n = ms.len();
        let rank = |percent: usize| ms[(n * percent).div_ceil(100).max(1) - 1];
        let sum: u128 = ms.iter().map(|x| u128::from(*x)).sum();
        (n > 0).then(|| Distribution { mean_ms: (sum / n as u128) as u64, p50_ms: rank(50), p99_ms: rank(99) })
    }
}

impl ClusterOutcome {
    /// From arrival to the first start, of jobs that have started.
    pub fn waiting(&self) -> Option<Distribution> {
        Distribution::of(self.jobs.iter().filter_map(|j| Some(j.start_ms? - j.submit_ms)).collect())
    }

    /// From arrival to the end, of jobs that are done.
    pub fn turnaround(&self) -> Option<Distribution> {
        Distribution::of(self.done().filter_map(|j| Some(j.end_ms? - j.submit_ms)).collect())
    }

    /// Jobs that are done.
    pub fn done(&self) -> impl Iterator<Item = &ClusterJobOutcome> {
        self.jobs.iter().filter(|j| j.phase == JobPhase::Done)
    }
}

/// Time from arrival to end over the duration, short jobs counting as ten minutes.
fn bounded_slowdown(job: &ClusterJob, end_ms: u64) -> f64 {
    let took = (end_ms - job.submit_ms).max(BOUND_MS);
    took as f64 / job.duration_ms.max(BOUND_MS) as f64
}

/// Jain's index over users of their jobs' mean bounded slowdown.
fn fairness(state: &ClusterState) -> Option<f64> {
    let mut of_user = vec![(0.0, 0u64); state.quotas.users()];
    for (number, (job, of)) in (0..).zip(state.jobs.iter().zip(&state.of)) {
        if let (JobPhase::Done, Some(end)) = (of.phase, of.ended_ms) {
            let user = &mut of_user[state.quotas.user_of(number)];
            user.0 += bounded_slowdown(job, end);
            user.1 += 1;
        }
    }
    let means: Vec<f64> = of_user.into_iter().filter(|(_, n)| *n > 0).map(|(sum, n)| sum / n as f64).collect();
    let (sum, squares) = means.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    (!means.is_empty()).then(|| sum * sum / (means.len() as f64 * squares))
}

fn map_rows(bin: &ClusterMapBin, n_servers: u32) -> impl Iterator<Item = ClusterMapRow> {
    bin.groups.iter().enumerate().map(move |(group, gpus)| {
        let first_server = first_of_group(group, n_servers);
        let servers = first_of_group(group + 1, n_servers) - first_server;
        ClusterMapRow { from_ms: bin.from_ms, to_ms: bin.to_ms, first_server, servers, looks: bin.looks, gpus: *gpus }
    })
}

/// What an iteration of a class takes in one rack, and how many sequences it trains on, if it trains a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassIteration {
    pub class: u32,
    pub ps: u64,
    pub samples: Option<u32>,
}

/// The outcome of a state at its end. `classes`: an iteration of each class, ascending.
pub(super) fn outcome(
    state: &ClusterState,
    samples: Vec<ClusterSample>,
    map: &[ClusterMapBin],
    failures: u64,
    drains: u64,
    place: &dyn Fn(u32) -> String,
    classes: &[ClassIteration],
) -> ClusterOutcome {
    let name = |job: &u32| Arc::clone(&state.jobs[*job as usize].name);
    let congested = |of: &CongestedTime| ClusterCongestion {
        job: name(&of.job),
        from_ms: of.from_ms,
        to_ms: of.to_ms,
        link: of.arc.map_or_else(String::new, place),
        set_off_by: of.set_off_by.as_ref().map(name),
        slowdown_ppm: of.mean_ppm(),
        worst_slowdown_ppm: of.worst.ppm,
        nic_ppm: of.worst.nic_ppm,
        sharing: of.worst.sharing.iter().map(name).collect(),
    };
    let speed = |of: &JobState| {
        let working_ns = u128::from(of.working_ms) * 1_000_000;
        let over = |ns: u128| (ns > 0).then(|| (working_ns * 1_000_000 / ns) as u64);
        let worst =
            |m: &SlowestMoment| (m.ppm, m.jobs.iter().map(name).collect(), m.place.map_or_else(String::new, place));
        ClusterJobSpeed {
            slowdown_ppm: over(of.work_ns),
            by_company_ppm: over(of.alone_ns),
            worst: of.slowest.as_ref().map(worst),
        }
    };
    let class_of = |job: &ClusterJob| {
        let at = classes.binary_search_by_key(&job.class?, |of| of.class).ok()?;
        Some(classes[at])
    };
    let iteration = |job: &ClusterJob, speed: &ClusterJobSpeed| {
        Some((u128::from(class_of(job)?.ps) * u128::from(speed.slowdown_ppm?) / 1_000_000) as u64)
    };
    // Work that counts, in sequences.
    let trained = |(job, of): (&ClusterJob, &JobState)| {
        let class = class_of(job)?;
        let iterations_m = u128::from(of.progress.done_ns()) * 1_000_000 / u128::from(class.ps.max(1));
        let counts = of.phase != JobPhase::GivenUp;
        Some(if counts { iterations_m * u128::from(class.samples?) } else { 0 })
    };
    let of_jobs: Vec<u128> = state.jobs.iter().zip(&state.of).filter_map(trained).collect();
    let row = |(job, of): (&ClusterJob, &JobState)| ClusterJobOutcome {
        class: job.class.map(|class| Arc::clone(&state.run.classes[class as usize].name)),
        iteration_ps: iteration(job, &speed(of)),
        samples_an_iteration: class_of(job).and_then(|class| class.samples),
        name: Arc::clone(&job.name),
        user: Arc::clone(&job.user),
        priority: job.priority,
        gpus: job.gpus,
        submit_ms: job.submit_ms,
        start_ms: of.first_start_ms,
        end_ms: of.ended_ms,
        duration_ms: job.duration_ms,
        phase: of.phase,
        queued_ms: of.queued_ms,
        restarts: of.restarts,
        preemptions: of.preemptions,
        lost_ns: of.lost_ns,
        speed: speed(of),
    };
    ClusterOutcome {
        span_ms: state.now_ms,
        account: state.account,
        jobs: state.jobs.iter().zip(&state.of).map(row).collect(),
        samples,
        congestion: state.congestion.times(state.now_ms).iter().map(congested).collect(),
        map: map.iter().flat_map(|bin| map_rows(bin, state.machine.servers())).collect(),
        failures,
        drains,
        migrations: state.migrations,
        shrinks: state.shrinks,
        grows: state.grows,
        write_slowdown_ppm: state.storage.as_ref().and_then(CheckpointStorage::slowdown_ppm),
        fairness: fairness(state),
        bill: state.machine.bill,
        iterations: state.measured.as_ref().map(|measured| measured.summary()),
        samples_m: (!of_jobs.is_empty()).then(|| of_jobs.into_iter().sum()),
    }
}
