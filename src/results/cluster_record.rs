//! Rows of `cluster_*.csv`, which only sweeps with an experiment of `fidelity.mode = "job"` have.
//!
//! Layer: results. Plain data, as in [`super::record`].

use super::record_macro::record;
use super::value::Ms;

record! {
    /// One row of `cluster_timeline.csv`.
    #[derive(Copy, Eq)]
    pub struct ClusterSampleRecord {
        /// Time of the row.
        pub at_ms: Ms => time_s,
        /// Number of jobs in the queue.
        pub waiting_jobs: u64 => waiting_jobs,
        /// GPUs that the jobs in the queue ask for.
        pub waiting_gpus: u64 => waiting_gpus,
        /// Number of jobs that hold GPUs.
        pub running_jobs: u64 => running_jobs,
        /// GPUs that jobs hold.
        pub busy_gpus: u64 => busy_gpus,
        /// GPUs in service that no job holds.
        pub free_gpus: u64 => free_gpus,
        /// Part of `free_gpus`: all of them, if they are enough for the first job of the queue but it cannot have them where they are; else 0.
        pub stranded_gpus: u64 => stranded_gpus,
        /// GPUs of servers under repair.
        pub down_gpus: u64 => down_gpus,
        /// GPUs without a job on servers that are drained or in maintenance.
        pub drained_gpus: u64 => drained_gpus,
        /// GPUs of servers that stand by as spares.
        pub spare_gpus: u64 => spare_gpus,
        /// GPUs of jobs that other jobs slow down.
        pub slowed_gpus: u64 => slowed_gpus,
    }
}

record! {
    /// One row of `cluster_jobs.csv`.
    pub struct ClusterJobRecord {
        /// Name of the job.
        pub job: String => job,
        /// User who submitted it.
        pub user: String => user,
        /// Priority of the job; a higher number is more important.
        pub priority: u64 => priority,
        /// GPUs that it asks for.
        pub gpus: u64 => gpus,
        /// Time of its arrival.
        pub submit_ms: Ms => submit_s,
        /// Time of its first start; empty if it never ran.
        pub start_ms: Option<Ms> => start_s,
        /// Time at which it was done or given up; empty if it was neither.
        pub end_ms: Option<Ms> => end_s,
        /// Time that its work takes on all of its GPUs in one rack, without checkpoints.
        pub duration_ms: Ms => duration_s,
        /// State of the job at the end: `done`, `running`, `waiting`, `ahead` (it has not arrived) or `given up`.
        pub ended: String => ended,
        /// Time in the queue, restarts included.
        pub queued_ms: Ms => queued_s,
        /// Number of times that a failure made it start again.
        pub restarts: u64 => restarts,
        /// Number of times that the scheduler took its GPUs away for another job.
        pub preemptions: u64 => preemptions,
        /// Time of work that was lost, on each of its GPUs. A job that was given up has lost all of its work.
        pub lost_work_ms: Ms => lost_work_s,
        /// Time of its work over its duration, whether that work was lost or not. Waiting, checkpoints and restarts are not in it.
        /// Empty if it has done nothing.
        pub slowdown: Option<f64> => slowdown,
        /// Ratio of the time of its work to its time in the same places alone. Empty if it has done nothing.
        pub company_slowdown: Option<f64> => company_slowdown,
        /// Largest value of `company_slowdown` at a moment. Empty if nobody slowed it down.
        pub worst_company_slowdown: Option<f64> => worst_company_slowdown,
        /// Names of the other jobs at the moment of `worst_company_slowdown`, separated by spaces.
        pub worst_beside: Option<String> => worst_beside,
        /// The most crowded place that it shared at the moment of `worst_company_slowdown`: a link, or with assumed speeds a rack.
        pub worst_link: Option<String> => worst_link,
        /// Class of the job; empty if it has none.
        pub class: Option<String> => class see "how-to/clusters-of-models.md",
        /// Mean seconds of an iteration while it worked; empty for jobs of no class.
        pub iteration_s: Option<f64> => iteration_s,
        /// Sequences a second that it trained on while it worked; empty where its class trains no model.
        pub samples_per_s: Option<f64> => samples_per_s,
    }
}

record! {
    /// One row of `cluster_congestion.csv`: a job that others slowed down on a link for a time.
    pub struct ClusterCongestionRecord {
        /// Name of the job that was slowed down.
        pub job: String => job,
        /// Time at which the slowdown began.
        pub from_ms: Ms => from_s,
        /// Time at which the slowdown ended.
        pub to_ms: Ms => to_s,
        /// The most crowded link that it shared.
        pub link: String => link,
        /// The job that came when the slowdown began: one that sends over the link, itself perhaps. Empty if none came.
        pub set_off_by: Option<String> => set_off_by,
        /// Ratio of the time of its work to its time in the same places alone, as the mean from `from_s` to `to_s`.
        pub slowdown: f64 => slowdown,
        /// Largest value of `slowdown` at a moment between `from_s` and `to_s`.
        pub worst_slowdown: f64 => worst_slowdown,
        /// Rate at which it sent at the worst moment, over the rate of its NICs.
        pub nic_share: f64 => nic_share,
        /// Names of the other jobs that sent over the link at the worst moment, separated by spaces.
        pub sharing: String => sharing,
    }
}

record! {
    /// One row of `cluster_map.csv`: mean GPUs of a group of servers in a bin of time.
    pub struct ClusterMapRecord {
        /// Begin of the bin of time.
        pub from_ms: Ms => from_s,
        /// End of the bin of time.
        pub to_ms: Ms => to_s,
        /// Number of the group's first server, from 0.
        pub first_server: u64 => first_server,
        /// Number of servers of the group.
        pub servers: u64 => servers,
        /// Mean number of GPUs that jobs held.
        pub used_gpus: f64 => used_gpus,
        /// Mean number of GPUs in service that no job held.
        pub idle_gpus: f64 => idle_gpus,
        /// Mean number of GPUs of servers under repair.
        pub down_gpus: f64 => down_gpus,
        /// Mean number of GPUs without a job on servers that were drained or in maintenance.
        pub drained_gpus: f64 => drained_gpus,
        /// Mean number of GPUs of servers that stood by as spares.
        pub spare_gpus: f64 => spare_gpus,
    }
}
