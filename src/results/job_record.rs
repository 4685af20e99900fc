//! Rows of `jobs.csv` and `shared_links.csv`.
//!
//! Layer: results. Plain data, as in [`super::record`].

use super::record_macro::record;
use super::value::{Micro, Ps};

record! {
    /// One of several jobs of an experiment. Fields that do not apply are `None` and shown empty.
    pub struct JobRecord {
        pub job: String => job,
        /// Value of `workload.kind`.
        pub kind: String => kind,
        pub background: bool => background,
        pub gpus: u64 => gpus,
        /// GPUs in the order of ranks, as text: `0-7,16`.
        pub gpu_list: String => gpu_list,
        pub placement: String => placement,
        pub start: Ps => start_ns,
        /// Time of its last completion; `None`: a part of it did not end.
        pub end: Option<Ps> => end_ns [makespan_ns: Option<Ps> = JobRecord::makespan],
        pub iteration_time: Option<Ps> => iteration_time_ns,
        pub compute: Option<Ps> => compute_ns,
        pub comm_exposed_tp: Option<Ps> => comm_exposed_tp_ns,
        pub comm_exposed_pp: Option<Ps> => comm_exposed_pp_ns,
        pub comm_exposed_dp: Option<Ps> => comm_exposed_dp_ns,
        pub comm_exposed_ep: Option<Ps> => comm_exposed_ep_ns,
        pub comm_exposed_cp: Option<Ps> => comm_exposed_cp_ns,
        pub bubble: Option<Ps> => bubble_ns,
        pub optimizer: Option<Ps> => optimizer_ns,
        pub other: Option<Ps> => other_ns,
        /// The rank whose timeline these parts describe.
        pub critical_rank: Option<u64> => critical_rank,
        pub tokens_per_s: Option<f64> => tokens_per_s,
        pub mfu: Option<f64> => mfu,
        pub algbw_gbps: Option<f64> => algbw_gbps,
        pub busbw_gbps: Option<f64> => busbw_gbps,
        pub peak_memory_bytes: Option<u64> => peak_memory_bytes,
        pub algorithm: Option<String> => algorithm,
        /// Id of its first flow or message. Those of a job have consecutive ids.
        pub first_flow: Option<u64> => first_flow,
        pub flows: u64 => flows,
        /// Payload, bytes.
        pub bytes: u64 => bytes,
        pub fct_mean: Option<Ps> => fct_mean_ns,
        pub fct_p50: Option<Ps> => fct_p50_ns,
        pub fct_p99: Option<Ps> => fct_p99_ns,
        pub fct_max: Option<Ps> => fct_max_ns,
        pub packet_hops: u64 => packet_hops,
        /// Jobs whose data cross links that its data cross, each with the number of these links: `b:4 c:1`.
        pub shares_with: String => shares_with,
        pub shared_links: u64 => shared_links,
        pub shared_bytes: u64 => shared_bytes,
        pub busiest_shared_link: Option<String> => busiest_shared_link,
        /// Makespan of the same job without the others; the next one: its iteration time.
        pub alone_makespan: Option<Ps> => alone_makespan_ns,
        pub alone_iteration_time: Option<Ps> => alone_iteration_time_ns [slowdown: Option<Micro> = JobRecord::slowdown],
        /// Each other job with the factor by which it slows this one: time with it over time without it, `b:1.25 c:1`.
        pub slowed_by: String => slowed_by,
    }
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

record! {
    /// One row of `shared_links.csv`: bytes of a job on a direction of a link that data of others cross, too.
    pub struct SharedLinkRecord {
        /// Name of the link, as in `links.csv`.
        pub link: String => link,
        pub job: String => job,
        /// Payload of the job on the link, bytes.
        pub job_bytes: u64 => job_bytes,
        /// Payload of all other jobs on the link, bytes.
        pub other_bytes: u64 => other_bytes,
        /// The other jobs, in the order of the sweep file: `b c`.
        pub shared_with: String => shared_with,
    }
}

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
