//! Outcome of a cluster: its figures, its jobs, and its state at regular times.
//!
//! Layer: cluster. Plain data in integers and fractions of them.

use std::sync::Arc;

use super::account::Account;
use super::congestion::CongestedTime;
use super::map::{ClusterMapBin, ServerGroupUse, first_of_group};
use crate::iterations::{IterationSummary, SlowestMoment};
use crate::jobs::job::ClusterJob;
use crate::state::{ClusterState, JobPhase, JobState};
use crate::storage::CheckpointStorage;
use hyperfold_host::cost::Bill;

/// Bound of the bounded slowdown, in ms: shorter jobs count as ten minutes, so that they do not dominate the mean (Feitelson et al. 1997).
const BOUND_MS: u64 = 600_000;

/// Outcome of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterJobOutcome {
    /// Name of the job.
    pub name: Arc<str>,
    /// User who submitted it.
    pub user: Arc<str>,
    /// Priority: a higher number is more important.
    pub priority: u32,
    /// GPUs that it asked for.
    pub gpus: u32,
    /// Time of its arrival, in ms.
    pub submit_ms: u64,
    /// Time of its first start, in ms. `None`: it never ran.
    pub start_ms: Option<u64>,
    /// Time at which it was done or given up, in ms. `None`: neither.
    pub end_ms: Option<u64>,
    /// Time that its work takes on all of its GPUs in one rack, without checkpoints, in ms.
    pub duration_ms: u64,
    /// The state of the job at the end.
    pub phase: JobPhase,
    /// Time in the queue in ms, including the time after restarts.
    pub queued_ms: u64,
    /// How often a failure made it start again.
    pub restarts: u64,
    /// How often the scheduler took its GPUs away.
    pub preemptions: u64,
    /// Time of work that was lost, in ns: on each of its GPUs.
    pub lost_ns: u128,
    /// How much slower than alone in one rack it was.
    pub speed: ClusterJobSpeed,
    /// Name of its class.
    pub class: Option<Arc<str>>,
    /// Mean time of its iterations while it worked, in ps. `None`: it has no class, or has done nothing.
    pub iteration_ps: Option<u64>,
    /// Sequences of an iteration, if it trains a model.
    pub samples_an_iteration: Option<u32>,
}

/// Speed of a job, from its simulated iterations or from the assumed slowdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterJobSpeed {
    /// Time of its work over its duration, in millionths. `None`: it has done nothing.
    pub slowdown_ppm: Option<u64>,
    /// Time of its work over the time that it would have taken alone in the same places, in millionths.
    pub by_company_ppm: Option<u64>,
    /// The moment when others slowed it down most: the slowdown, the names of the other jobs of its set, and the most crowded link or rack that it shared.
    pub worst: Option<(u64, Vec<Arc<str>>, String)>,
}

/// A period in which a job could not fill its NICs, because other jobs sent over the same link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterCongestion {
    /// Name of the job.
    pub job: Arc<str>,
    /// Begin of the period, in ms.
    pub from_ms: u64,
    /// End of the period, in ms.
    pub to_ms: u64,
    /// The most crowded link that the job shared.
    pub link: String,
    /// The job that arrived when the period began. `None`: no job arrived then.
    pub set_off_by: Option<Arc<str>>,
    /// Mean over the period of the job's time over its time alone in the same place, in millionths.
    pub slowdown_ppm: u64,
    /// Largest value of that ratio, in millionths.
    pub worst_slowdown_ppm: u64,
    /// At the worst moment: the rate at which the job sent over the rate of its NICs, in millionths.
    pub nic_ppm: u64,
    /// At the worst moment: the other jobs that sent over the link.
    pub sharing: Vec<Arc<str>>,
}

/// Use of a group of servers in a bin of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterMapRow {
    /// Begin of the bin, in ms.
    pub from_ms: u64,
    /// End of the bin, in ms.
    pub to_ms: u64,
    /// First server of the group.
    pub first_server: u32,
    /// Number of servers of the group.
    pub servers: u32,
    /// How often the servers were looked at in the bin.
    pub looks: u64,
    /// Sums over all looks of the bin.
    pub gpus: ServerGroupUse,
}

/// State of the cluster at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterSample {
    /// The moment, in ms.
    pub at_ms: u64,
    /// Jobs in the queue.
    pub waiting_jobs: u64,
    /// GPUs that the jobs in the queue ask for.
    pub waiting_gpus: u64,
    /// Jobs that hold GPUs.
    pub running_jobs: u64,
    /// GPUs that jobs hold.
    pub busy_gpus: u64,
    /// GPUs in service that no job holds.
    pub free_gpus: u64,
    /// Part of `free_gpus` that the first job of the queue cannot get where they are, although they would be enough.
    pub stranded_gpus: u64,
    /// GPUs on servers under repair.
    pub down_gpus: u64,
    /// GPUs without a job on servers that are drained or in maintenance.
    pub drained_gpus: u64,
    /// GPUs of spare servers.
    pub spare_gpus: u64,
    /// GPUs of jobs that other jobs slow down.
    pub slowed_gpus: u64,
}

/// Outcome of a simulated cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterOutcome {
    /// Time that was simulated, in ms.
    pub span_ms: u64,
    /// GPU time by what it was spent on.
    pub account: Account,
    /// Outcomes of the jobs, in the order of their arrival.
    pub jobs: Vec<ClusterJobOutcome>,
    /// States at regular times.
    pub samples: Vec<ClusterSample>,
    /// Congested periods. Empty if iterations are not simulated.
    pub congestion: Vec<ClusterCongestion>,
    /// Map of the servers over time. Empty if it is not asked for.
    pub map: Vec<ClusterMapRow>,
    /// Number of failures of servers.
    pub failures: u64,
    /// Number of drains of servers.
    pub drains: u64,
    /// How often a job was moved to other servers.
    pub migrations: u64,
    /// How often a job went on with fewer GPUs.
    pub shrinks: u64,
    /// How often a job got some of its GPUs back.
    pub grows: u64,
    /// Time of checkpoint writes over the time that they would have taken alone, in millionths. `None`: jobs do not share the storage.
    pub write_slowdown_ppm: Option<u64>,
    /// Jain's fairness index over users: 1 if all users are slowed down alike. `None`: no job is done.
    pub fairness: Option<f64>,
    /// Cost and energy.
    pub bill: Bill,
    /// Counts of simulated iterations. `None`: iterations are not simulated.
    pub iterations: Option<IterationSummary>,
    /// Sequences on which models were trained by work that counts, in thousandths. `None`: no job has a class that trains a model.
    pub samples_m: Option<u128>,
}

/// Mean, median and 99th percentile of some times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Mean, in ms.
    pub mean_ms: u64,
    /// Median, in ms.
    pub p50_ms: u64,
    /// 99th percentile, in ms.
    pub p99_ms: u64,
}

impl Distribution {
    /// Distribution of times in any order, by nearest rank. `None`: there are no times.
    pub fn of(mut ms: Vec<u64>) -> Option<Distribution> {
        ms.sort_unstable();
        let n = ms.len();
        let rank = |percent: usize| ms[(n * percent).div_ceil(100).max(1) - 1];
        let sum: u128 = ms.iter().map(|x| u128::from(*x)).sum();
        (n > 0).then(|| Distribution { mean_ms: (sum / n as u128) as u64, p50_ms: rank(50), p99_ms: rank(99) })
    }
}

impl ClusterOutcome {
    /// Times from arrival to the first start, of jobs that have started.
    pub fn waiting(&self) -> Option<Distribution> {
        Distribution::of(self.jobs.iter().filter_map(|j| Some(j.start_ms? - j.submit_ms)).collect())
    }

    /// Times from arrival to the end, of jobs that are done.
    pub fn turnaround(&self) -> Option<Distribution> {
        Distribution::of(self.done().filter_map(|j| Some(j.end_ms? - j.submit_ms)).collect())
    }

    /// Jobs that are done.
    pub fn done(&self) -> impl Iterator<Item = &ClusterJobOutcome> {
        self.jobs.iter().filter(|j| j.phase == JobPhase::Done)
    }
}

/// Time from arrival to end over the duration. Short jobs count as ten minutes.
fn bounded_slowdown(job: &ClusterJob, end_ms: u64) -> f64 {
    let took = (end_ms - job.submit_ms).max(BOUND_MS);
    took as f64 / job.duration_ms.max(BOUND_MS) as f64
}

/// Jain's index over users, from the mean bounded slowdown of each user's jobs.
fn fairness(state: &ClusterState) -> Option<f64> {
    let mut of_user = vec![(0.0, 0u64); state.quotas.users()];
    for (number, (job, job_state)) in (0..).zip(state.jobs.iter().zip(&state.job_states)) {
        if let (JobPhase::Done, Some(end)) = (job_state.phase, job_state.ended_ms) {
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

/// Time in ps of an iteration of a class in one rack, and the sequences that it trains on, if it trains a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassIteration {
    pub class: u32,
    pub ps: u64,
    pub samples: Option<u32>,
}

/// Makes the outcome from the final state. `place` names an arc or rack. `classes` has an iteration of each class, sorted by class.
pub(crate) fn outcome(
    state: &ClusterState,
    samples: Vec<ClusterSample>,
    map: &[ClusterMapBin],
    failures: u64,
    drains: u64,
    place: &dyn Fn(u32) -> String,
    classes: &[ClassIteration],
) -> ClusterOutcome {
    let name = |job: &u32| Arc::clone(&state.jobs[*job as usize].name);
    let congested = |period: &CongestedTime| ClusterCongestion {
        job: name(&period.job),
        from_ms: period.from_ms,
        to_ms: period.to_ms,
        link: period.arc.map_or_else(String::new, place),
        set_off_by: period.set_off_by.as_ref().map(name),
        slowdown_ppm: period.mean_ppm(),
        worst_slowdown_ppm: period.worst.ppm,
        nic_ppm: period.worst.nic_ppm,
        sharing: period.worst.sharing.iter().map(name).collect(),
    };
    let speed = |job_state: &JobState| {
        let working_ns = u128::from(job_state.working_ms) * 1_000_000;
        let slowdown_over = |ns: u128| (ns > 0).then(|| (working_ns * 1_000_000 / ns) as u64);
        let worst =
            |m: &SlowestMoment| (m.ppm, m.jobs.iter().map(name).collect(), m.place.map_or_else(String::new, place));
        ClusterJobSpeed {
            slowdown_ppm: slowdown_over(job_state.work_ns),
            by_company_ppm: slowdown_over(job_state.alone_ns),
            worst: job_state.slowest.as_ref().map(worst),
        }
    };
    let class_of = |job: &ClusterJob| {
        let idx = classes.binary_search_by_key(&job.class?, |iteration| iteration.class).ok()?;
        Some(classes[idx])
    };
    let iteration = |job: &ClusterJob, speed: &ClusterJobSpeed| {
        Some((u128::from(class_of(job)?.ps) * u128::from(speed.slowdown_ppm?) / 1_000_000) as u64)
    };
    // Sequences in thousandths that the work that counts has trained on.
    let trained = |(job, job_state): (&ClusterJob, &JobState)| {
        let class = class_of(job)?;
        let iterations_m = u128::from(job_state.progress.done_ns()) * 1_000_000 / u128::from(class.ps.max(1));
        let counts = job_state.phase != JobPhase::GivenUp;
        Some(if counts { iterations_m * u128::from(class.samples?) } else { 0 })
    };
    let of_jobs: Vec<u128> = state.jobs.iter().zip(&state.job_states).filter_map(trained).collect();
    let row = |(job, job_state): (&ClusterJob, &JobState)| ClusterJobOutcome {
        class: job.class.map(|class| Arc::clone(&state.run.classes[class as usize].name)),
        iteration_ps: iteration(job, &speed(job_state)),
        samples_an_iteration: class_of(job).and_then(|class| class.samples),
        name: Arc::clone(&job.name),
        user: Arc::clone(&job.user),
        priority: job.priority,
        gpus: job.gpus,
        submit_ms: job.submit_ms,
        start_ms: job_state.first_start_ms,
        end_ms: job_state.ended_ms,
        duration_ms: job.duration_ms,
        phase: job_state.phase,
        queued_ms: job_state.queued_ms,
        restarts: job_state.restarts,
        preemptions: job_state.preemptions,
        lost_ns: job_state.lost_ns,
        speed: speed(job_state),
    };
    ClusterOutcome {
        span_ms: state.now_ms,
        account: state.account,
        jobs: state.jobs.iter().zip(&state.job_states).map(row).collect(),
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
