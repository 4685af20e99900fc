//! Rows of `jobs.csv` and `shared_links.csv`, and their columns, declared once.
//!
//! Layer: results. Plain data, as in [`super::record`].

use super::value::{Cell, Micro, Ps};

/// One of several jobs of an experiment. Fields that do not apply are `None` and shown empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobRecord {
    pub job: String,
    /// Value of `workload.kind`.
    pub kind: String,
    pub background: bool,
    pub gpus: u64,
    /// GPUs in the order of ranks, as text: `0-7,16`.
    pub gpu_list: String,
    pub placement: String,
    pub start: Ps,
    /// Time of its last completion; `None`: a part of it did not end.
    pub end: Option<Ps>,
    pub iteration_time: Option<Ps>,
    pub compute: Option<Ps>,
    pub comm_exposed_tp: Option<Ps>,
    pub comm_exposed_pp: Option<Ps>,
    pub comm_exposed_dp: Option<Ps>,
    pub comm_exposed_ep: Option<Ps>,
    pub comm_exposed_cp: Option<Ps>,
    pub bubble: Option<Ps>,
    pub optimizer: Option<Ps>,
    pub other: Option<Ps>,
    /// The rank whose timeline these parts describe.
    pub critical_rank: Option<u64>,
    pub tokens_per_s: Option<f64>,
    pub mfu: Option<f64>,
    pub algbw_gbps: Option<f64>,
    pub busbw_gbps: Option<f64>,
    pub peak_memory_bytes: Option<u64>,
    pub algorithm: Option<String>,
    /// Id of its first flow or message. Those of a job have consecutive ids.
    pub first_flow: Option<u64>,
    pub flows: u64,
    /// Payload, bytes.
    pub bytes: u64,
    pub fct_mean: Option<Ps>,
    pub fct_p50: Option<Ps>,
    pub fct_p99: Option<Ps>,
    pub fct_max: Option<Ps>,
    pub packet_hops: u64,
    /// Jobs whose data cross links that its data cross, each with the number of these links: `b:4 c:1`.
    pub shares_with: String,
    pub shared_links: u64,
    pub shared_bytes: u64,
    pub busiest_shared_link: Option<String>,
    /// Makespan of the same job without the others; the next one: its iteration time.
    pub alone_makespan: Option<Ps>,
    pub alone_iteration_time: Option<Ps>,
    /// Each other job with the factor by which it slows this one: time with it over time without it, `b:1.25 c:1`.
    pub slowed_by: String,
}

impl JobRecord {
    /// Time from its start to its end.
    pub fn makespan(&self) -> Option<Ps> {
        self.end.map(|end| Ps(end.0 - self.start.0))
    }

    /// Time beside the others over time alone: of an iteration if there are any, else of the whole job.
    pub fn slowdown(&self) -> Option<Micro> {
        self.slowdown_against(self.alone_iteration_time, self.alone_makespan)
    }

    /// Its time over that of another run of the same job: of an iteration if both have one, else of the whole job.
    pub fn slowdown_against(&self, iteration_time: Option<Ps>, makespan: Option<Ps>) -> Option<Micro> {
        let ratio = |own: Option<Ps>, other: Option<Ps>| match (own, other) {
            (Some(own), Some(other)) if other.0 > 0 => Some(Micro::ratio(own.0.into(), other.0.into())),
            _ => None,
        };
        ratio(self.iteration_time, iteration_time).or_else(|| ratio(self.makespan(), makespan))
    }
}

/// A column of `jobs.csv`: its name, and the cell of a job.
pub type JobColumn = (&'static str, fn(&JobRecord) -> Cell);

/// The columns of `jobs.csv` after `exp_id`.
pub const JOBS: &[JobColumn] = &[
    ("job", |j| j.job.as_str().into()),
    ("kind", |j| j.kind.as_str().into()),
    ("background", |j| Cell::Flag(j.background)),
    ("gpus", |j| j.gpus.into()),
    ("gpu_list", |j| j.gpu_list.as_str().into()),
    ("placement", |j| j.placement.as_str().into()),
    ("start_ns", |j| j.start.into()),
    ("end_ns", |j| j.end.into()),
    ("makespan_ns", |j| j.makespan().into()),
    ("iteration_time_ns", |j| j.iteration_time.into()),
    ("compute_ns", |j| j.compute.into()),
    ("comm_exposed_tp_ns", |j| j.comm_exposed_tp.into()),
    ("comm_exposed_pp_ns", |j| j.comm_exposed_pp.into()),
    ("comm_exposed_dp_ns", |j| j.comm_exposed_dp.into()),
    ("comm_exposed_ep_ns", |j| j.comm_exposed_ep.into()),
    ("comm_exposed_cp_ns", |j| j.comm_exposed_cp.into()),
    ("bubble_ns", |j| j.bubble.into()),
    ("optimizer_ns", |j| j.optimizer.into()),
    ("other_ns", |j| j.other.into()),
    ("critical_rank", |j| j.critical_rank.into()),
    ("tokens_per_s", |j| j.tokens_per_s.into()),
    ("mfu", |j| j.mfu.into()),
    ("algbw_gbps", |j| j.algbw_gbps.into()),
    ("busbw_gbps", |j| j.busbw_gbps.into()),
    ("peak_memory_bytes", |j| j.peak_memory_bytes.into()),
    ("algorithm", |j| j.algorithm.as_deref().into()),
    ("first_flow", |j| j.first_flow.into()),
    ("flows", |j| j.flows.into()),
    ("bytes", |j| j.bytes.into()),
    ("fct_mean_ns", |j| j.fct_mean.into()),
    ("fct_p50_ns", |j| j.fct_p50.into()),
    ("fct_p99_ns", |j| j.fct_p99.into()),
    ("fct_max_ns", |j| j.fct_max.into()),
    ("packet_hops", |j| j.packet_hops.into()),
    ("shares_with", |j| j.shares_with.as_str().into()),
    ("shared_links", |j| j.shared_links.into()),
    ("shared_bytes", |j| j.shared_bytes.into()),
    ("busiest_shared_link", |j| j.busiest_shared_link.as_deref().into()),
    ("alone_makespan_ns", |j| j.alone_makespan.into()),
    ("alone_iteration_time_ns", |j| j.alone_iteration_time.into()),
    ("slowdown", |j| j.slowdown().into()),
    ("slowed_by", |j| j.slowed_by.as_str().into()),
];

/// One row of `shared_links.csv`: bytes of a job on a direction of a link that data of others cross, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedLinkRecord {
    /// Name of the link, as in `links.csv`.
    pub link: String,
    pub job: String,
    /// Payload of the job on the link, bytes.
    pub job_bytes: u64,
    /// Payload of all other jobs on the link, bytes.
    pub other_bytes: u64,
    /// The other jobs, in the order of the sweep file: `b c`.
    pub shared_with: String,
}

/// A column of `shared_links.csv`: its name, and the cell of a row.
pub type SharedLinkColumn = (&'static str, fn(&SharedLinkRecord) -> Cell);

/// The columns of `shared_links.csv` after `exp_id`.
pub const SHARED_LINKS: &[SharedLinkColumn] = &[
    ("link", |s| s.link.as_str().into()),
    ("job", |s| s.job.as_str().into()),
    ("job_bytes", |s| s.job_bytes.into()),
    ("other_bytes", |s| s.other_bytes.into()),
    ("shared_with", |s| s.shared_with.as_str().into()),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowdown_is_of_iterations_where_there_are_any() {
        let whole =
            JobRecord { start: Ps(10), end: Some(Ps(40)), alone_makespan: Some(Ps(20)), ..JobRecord::default() };
        assert_eq!(whole.slowdown(), Some(Micro(1_500_000)));
        let each = JobRecord { iteration_time: Some(Ps(12)), alone_iteration_time: Some(Ps(6)), ..whole };
        assert_eq!(each.slowdown(), Some(Micro(2_000_000)));
        assert_eq!(JobRecord { end: None, iteration_time: None, ..each }.slowdown(), None);
    }
}
