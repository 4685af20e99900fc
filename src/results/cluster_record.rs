//! Results of a cluster over days: columns of `results.csv`, and the rows of `cluster_*.csv`.
//!
//! Layer: results. Plain data, as in [`super::record`]. Only sweeps with an experiment of `fidelity.mode = "job"` have these columns and files.

use super::value::Cell;

/// Results of a cluster. Shares are of all its GPU time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterRecord {
    /// Time that was simulated, ms.
    pub span_ms: u64,
    pub jobs: u64,
    pub jobs_done: u64,
    pub jobs_given_up: u64,
    /// Share of GPU time that jobs held.
    pub utilisation: f64,
    /// Share of GPU time of work that counts, at full speed.
    pub goodput: f64,
    pub idle_share: f64,
    /// Part of `idle_share` in which enough GPUs for the first job of the queue were idle, but not where the job can use them.
    pub stranded_share: f64,
    pub slowdown_share: f64,
    pub checkpoint_share: f64,
    pub restart_share: f64,
    pub rollback_share: f64,
    pub down_share: f64,
    pub drained_share: f64,
    pub spare_share: f64,
    /// Time from arrival to the first start; `None`: no job has started.
    pub waiting_mean_ms: Option<u64>,
    pub waiting_p50_ms: Option<u64>,
    pub waiting_p99_ms: Option<u64>,
    /// Time from arrival to the end; `None`: no job has ended.
    pub turnaround_mean_ms: Option<u64>,
    pub turnaround_p99_ms: Option<u64>,
    /// Jain's index over users.
    pub fairness: Option<f64>,
    pub failures: u64,
    pub restarts: u64,
    pub preemptions: u64,
    pub migrations: u64,
    pub drains: u64,
    pub useful_gpu_hours: f64,
    pub usd_per_useful_gpu_hour: Option<f64>,
    /// Number of times that a job continued with fewer GPUs.
    pub shrinks: u64,
    pub grows: u64,
    /// Time of writes to storage over their time alone; `None`: writes share nothing, or there were none.
    pub write_slowdown: Option<f64>,
    /// Part of `slowdown_share` that is caused by other jobs.
    pub company_share: f64,
    /// If iterations are simulated: sets of jobs that were simulated.
    pub iteration_sets: Option<u64>,
    pub iteration_sets_asked: Option<u64>,
    pub iteration_set_most_jobs: Option<u64>,
    pub iteration_audits: Option<u64>,
    /// Mean relative difference of iteration times in audits.
    pub iteration_error_mean: Option<f64>,
    pub iteration_error_max: Option<f64>,
    /// Share of GPU time that checkpoint writes could have cost jobs that send over the same links; `None`: no writes were simulated.
    pub beside_writes_share: Option<f64>,
    /// Sequences on which models were trained, over the simulated time.
    pub samples_per_s: Option<f64>,
}

/// One row of `cluster_timeline.csv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterSampleRecord {
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
    pub slowed_gpus: u64,
}

/// One row of `cluster_jobs.csv`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterJobRecord {
    pub job: String,
    pub user: String,
    pub priority: u64,
    pub gpus: u64,
    pub submit_ms: u64,
    pub start_ms: Option<u64>,
    pub end_ms: Option<u64>,
    pub duration_ms: u64,
    /// `done`, `running`, `waiting`, `ahead` or `given up`.
    pub ended: String,
    pub queued_ms: u64,
    pub restarts: u64,
    pub preemptions: u64,
    pub lost_work_ms: u64,
    /// Its time over its nominal duration; `None`: it has done nothing. The next two are relative to the same places without other jobs, on average and at the
    /// worst; `None` also if no job slowed it down.
    pub slowdown: Option<f64>,
    pub company_slowdown: Option<f64>,
    pub worst_company_slowdown: Option<f64>,
    /// Names of the other jobs at the worst moment, separated by spaces; the next one: the most crowded link or rack then.
    pub worst_beside: Option<String>,
    pub worst_link: Option<String>,
    /// The class of the job; the next one: time of its iterations while it worked.
    pub class: Option<String>,
    pub iteration_s: Option<f64>,
    /// Sequences per second while it worked, if it trains a model.
    pub samples_per_s: Option<f64>,
}

/// One row of `cluster_congestion.csv`: a job that others slowed down on a link for a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterCongestionRecord {
    pub job: String,
    pub from_ms: u64,
    pub to_ms: u64,
    pub link: String,
    /// The job whose arrival began the slowdown.
    pub set_off_by: Option<String>,
    /// Mean of its time over its time in the same places alone; the next one: the worst.
    pub slowdown: f64,
    pub worst_slowdown: f64,
    /// At the worst moment: the rate at which it sent over that of its NICs. The next one: names of the others that sent over the link, separated by spaces.
    pub nic_share: f64,
    pub sharing: String,
}

/// One row of `cluster_map.csv`: mean GPUs of a group of servers in a bin of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterMapRecord {
    pub from_ms: u64,
    pub to_ms: u64,
    pub first_server: u64,
    pub servers: u64,
    pub used_gpus: f64,
    pub idle_gpus: f64,
    pub down_gpus: f64,
    pub drained_gpus: f64,
    pub spare_gpus: f64,
}

/// Converts milliseconds to a cell in seconds.
fn seconds(ms: u64) -> Cell {
    Cell::Real(ms as f64 / 1e3)
}

fn seconds_if(ms: Option<u64>) -> Cell {
    ms.map_or(Cell::Empty, seconds)
}

/// A column of a companion file: its name, and the cell of a row.
type Column<T> = (&'static str, fn(&T) -> Cell);

/// The columns of `cluster_timeline.csv` after `exp_id`.
pub const CLUSTER_TIMELINE: &[Column<ClusterSampleRecord>] = &[
    ("time_s", |s| seconds(s.at_ms)),
    ("waiting_jobs", |s| s.waiting_jobs.into()),
    ("waiting_gpus", |s| s.waiting_gpus.into()),
    ("running_jobs", |s| s.running_jobs.into()),
    ("busy_gpus", |s| s.busy_gpus.into()),
    ("free_gpus", |s| s.free_gpus.into()),
    ("stranded_gpus", |s| s.stranded_gpus.into()),
    ("down_gpus", |s| s.down_gpus.into()),
    ("drained_gpus", |s| s.drained_gpus.into()),
    ("spare_gpus", |s| s.spare_gpus.into()),
    ("slowed_gpus", |s| s.slowed_gpus.into()),
];

/// The columns of `cluster_jobs.csv` after `exp_id`.
pub const CLUSTER_JOBS: &[Column<ClusterJobRecord>] = &[
    ("job", |j| j.job.as_str().into()),
    ("user", |j| j.user.as_str().into()),
    ("priority", |j| j.priority.into()),
    ("gpus", |j| j.gpus.into()),
    ("submit_s", |j| seconds(j.submit_ms)),
    ("start_s", |j| seconds_if(j.start_ms)),
    ("end_s", |j| seconds_if(j.end_ms)),
    ("duration_s", |j| seconds(j.duration_ms)),
    ("ended", |j| j.ended.as_str().into()),
    ("queued_s", |j| seconds(j.queued_ms)),
    ("restarts", |j| j.restarts.into()),
    ("preemptions", |j| j.preemptions.into()),
    ("lost_work_s", |j| seconds(j.lost_work_ms)),
    ("slowdown", |j| j.slowdown.into()),
    ("company_slowdown", |j| j.company_slowdown.into()),
    ("worst_company_slowdown", |j| j.worst_company_slowdown.into()),
    ("worst_beside", |j| j.worst_beside.as_deref().into()),
    ("worst_link", |j| j.worst_link.as_deref().into()),
    ("class", |j| j.class.as_deref().into()),
    ("iteration_s", |j| j.iteration_s.into()),
    ("samples_per_s", |j| j.samples_per_s.into()),
];

/// The columns of `cluster_congestion.csv` after `exp_id`.
pub const CLUSTER_CONGESTION: &[Column<ClusterCongestionRecord>] = &[
    ("job", |c| c.job.as_str().into()),
    ("from_s", |c| seconds(c.from_ms)),
    ("to_s", |c| seconds(c.to_ms)),
    ("link", |c| c.link.as_str().into()),
    ("set_off_by", |c| c.set_off_by.as_deref().into()),
    ("slowdown", |c| c.slowdown.into()),
    ("worst_slowdown", |c| c.worst_slowdown.into()),
    ("nic_share", |c| c.nic_share.into()),
    ("sharing", |c| c.sharing.as_str().into()),
];

/// The columns of `cluster_map.csv` after `exp_id`.
pub const CLUSTER_MAP: &[Column<ClusterMapRecord>] = &[
    ("from_s", |m| seconds(m.from_ms)),
    ("to_s", |m| seconds(m.to_ms)),
    ("first_server", |m| m.first_server.into()),
    ("servers", |m| m.servers.into()),
    ("used_gpus", |m| m.used_gpus.into()),
    ("idle_gpus", |m| m.idle_gpus.into()),
    ("down_gpus", |m| m.down_gpus.into()),
    ("drained_gpus", |m| m.drained_gpus.into()),
    ("spare_gpus", |m| m.spare_gpus.into()),
];
