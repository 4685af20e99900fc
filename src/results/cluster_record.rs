//! Rows of `cluster_*.csv`, which only sweeps with an experiment of `fidelity.mode = "job"` have.
//!
//! Layer: results. Plain data, as in [`super::record`].

use super::record_macro::record;
use super::value::Ms;

record! {
    /// One row of `cluster_timeline.csv`.
    #[derive(Copy, Eq)]
    pub struct ClusterSampleRecord {
        pub at_ms: Ms => time_s,
        pub waiting_jobs: u64 => waiting_jobs,
        pub waiting_gpus: u64 => waiting_gpus,
        pub running_jobs: u64 => running_jobs,
        pub busy_gpus: u64 => busy_gpus,
        pub free_gpus: u64 => free_gpus,
        pub stranded_gpus: u64 => stranded_gpus,
        pub down_gpus: u64 => down_gpus,
        pub drained_gpus: u64 => drained_gpus,
        pub spare_gpus: u64 => spare_gpus,
        pub slowed_gpus: u64 => slowed_gpus,
    }
}

record! {
    /// One row of `cluster_jobs.csv`.
    pub struct ClusterJobRecord {
        pub job: String => job,
        pub user: String => user,
        pub priority: u64 => priority,
        pub gpus: u64 => gpus,
        pub submit_ms: Ms => submit_s,
        pub start_ms: Option<Ms> => start_s,
        pub end_ms: Option<Ms> => end_s,
        pub duration_ms: Ms => duration_s,
        /// `done`, `running`, `waiting`, `ahead` or `given up`.
        pub ended: String => ended,
        pub queued_ms: Ms => queued_s,
        pub restarts: u64 => restarts,
        pub preemptions: u64 => preemptions,
        pub lost_work_ms: Ms => lost_work_s,
        /// Its time over its nominal duration; `None`: it has done nothing. The next two are relative to the same places without other jobs, on average and at the
        /// worst; `None` also if no job slowed it down.
        pub slowdown: Option<f64> => slowdown,
        pub company_slowdown: Option<f64> => company_slowdown,
        pub worst_company_slowdown: Option<f64> => worst_company_slowdown,
        /// Names of the other jobs at the worst moment, separated by spaces; the next one: the most crowded link or rack then.
        pub worst_beside: Option<String> => worst_beside,
        pub worst_link: Option<String> => worst_link,
        /// The class of the job; the next one: time of its iterations while it worked.
        pub class: Option<String> => class,
        pub iteration_s: Option<f64> => iteration_s,
        /// Sequences per second while it worked, if it trains a model.
        pub samples_per_s: Option<f64> => samples_per_s,
    }
}

record! {
    /// One row of `cluster_congestion.csv`: a job that others slowed down on a link for a time.
    pub struct ClusterCongestionRecord {
        pub job: String => job,
        pub from_ms: Ms => from_s,
        pub to_ms: Ms => to_s,
        pub link: String => link,
        /// The job whose arrival began the slowdown.
        pub set_off_by: Option<String> => set_off_by,
        /// Mean of its time over its time in the same places alone; the next one: the worst.
        pub slowdown: f64 => slowdown,
        pub worst_slowdown: f64 => worst_slowdown,
        /// At the worst moment: the rate at which it sent over that of its NICs. The next one: names of the others that sent over the link, separated by spaces.
        pub nic_share: f64 => nic_share,
        pub sharing: String => sharing,
    }
}

record! {
    /// One row of `cluster_map.csv`: mean GPUs of a group of servers in a bin of time.
    pub struct ClusterMapRecord {
        pub from_ms: Ms => from_s,
        pub to_ms: Ms => to_s,
        pub first_server: u64 => first_server,
        pub servers: u64 => servers,
        pub used_gpus: f64 => used_gpus,
        pub idle_gpus: f64 => idle_gpus,
        pub down_gpus: f64 => down_gpus,
        pub drained_gpus: f64 => drained_gpus,
        pub spare_gpus: f64 => spare_gpus,
    }
}
