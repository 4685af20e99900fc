//! Rows of `jobs.csv` and `shared_links.csv`.
//!
//! Layer: results. Plain data, as in [`super::record`].

use super::record_macro::record;
use super::value::{Micro, Ps};

record! {
    /// One of several jobs of an experiment. Fields that do not apply are `None` and shown empty.
    pub struct JobRecord {
        /// Name of the job.
        pub job: String => job,
        /// Value of its `kind`.
        pub kind: String => kind,
        /// Whether it is a background job: `makespan_ns` of `results.csv` does not wait for it.
        pub background: bool => background,
        /// Number of its GPUs.
        pub gpus: u64 => gpus,
        /// Its GPUs, in the order of its ranks: `0-7,16`.
        pub gpu_list: String => gpu_list,
        /// How its GPUs were chosen, as in the sweep file.
        pub placement: String => placement,
        /// Time of its start.
        pub start: Ps => start_ns,
        /// Time of its last completion; empty if a part of it did not end.
        pub end: Option<Ps> => end_ns [
            /// Time from its start to its last completion; empty if a part of it did not end.
            makespan_ns: Option<Ps> = JobRecord::makespan,
        ],
        /// Mean time of its iteration, on its rank that ends last. The parts from `compute_ns` to `other_ns` add up to it.
        pub iteration_time: Option<Ps> => iteration_time_ns,
        /// Part of its iteration in kernels, without those of the optimizer.
        pub compute: Option<Ps> => compute_ns,
        /// Part of its iteration in communication of tensor parallelism that nothing hides.
        pub comm_exposed_tp: Option<Ps> => comm_exposed_tp_ns,
        /// Part of its iteration in communication of pipeline parallelism that nothing hides.
        pub comm_exposed_pp: Option<Ps> => comm_exposed_pp_ns,
        /// Part of its iteration in communication of data parallelism that nothing hides.
        pub comm_exposed_dp: Option<Ps> => comm_exposed_dp_ns,
        /// Part of its iteration in communication of expert parallelism that nothing hides.
        pub comm_exposed_ep: Option<Ps> => comm_exposed_ep_ns,
        /// Part of its iteration in communication of context parallelism that nothing hides.
        pub comm_exposed_cp: Option<Ps> => comm_exposed_cp_ns,
        /// Part of its iteration spent waiting for kernels of absent peers, of a pipeline or of other replicas.
        pub bubble: Option<Ps> => bubble_ns,
        /// Part of its iteration in kernels of the optimizer.
        pub optimizer: Option<Ps> => optimizer_ns,
        /// Rest of its iteration, as in `results.csv`.
        pub other: Option<Ps> => other_ns,
        /// Its rank that ends last, of several the lowest: `iteration_time_ns` and its parts are of the timeline of this rank.
        pub critical_rank: Option<u64> => critical_rank,
        /// Tokens a second that it trains on.
        pub tokens_per_s: Option<f64> => tokens_per_s,
        /// Model FLOPs utilisation: floating-point operations of its model a second, as a share of the peak of its GPUs.
        pub mfu: Option<f64> => mfu,
        /// Algorithm bandwidth of its collective as nccl-tests define it, but in Gb/s.
        pub algbw_gbps: Option<f64> => algbw_gbps,
        /// Bus bandwidth of its collective as nccl-tests define it, but in Gb/s.
        pub busbw_gbps: Option<f64> => busbw_gbps,
        /// Bytes of GPU memory that its fullest rank needs.
        pub peak_memory_bytes: Option<u64> => peak_memory_bytes,
        /// Algorithm of its collective that takes longest alone, in the words of `workload.algorithm`.
        pub algorithm: Option<String> => algorithm,
        /// The `flow_id` of its first flow or message in `flows.csv`. Its others follow one another.
        pub first_flow: Option<u64> => first_flow,
        /// Number of its flows or messages.
        pub flows: u64 => flows,
        /// Bytes of their payload.
        pub bytes: u64 => bytes,
        /// Mean of its flows' completion times.
        pub fct_mean: Option<Ps> => fct_mean_ns,
        /// Median of its flows' completion times, by nearest rank.
        pub fct_p50: Option<Ps> => fct_p50_ns,
        /// 99th percentile of its flows' completion times, by nearest rank.
        pub fct_p99: Option<Ps> => fct_p99_ns,
        /// Longest completion time of its flows.
        pub fct_max: Option<Ps> => fct_max_ns,
        /// Packet-hops that carrying each of its packets once takes.
        pub packet_hops: u64 => packet_hops,
        /// Jobs whose data cross links that its data cross, each with the number of these links: `b:4 c:1`. The paths decide, not the times.
        pub shares_with: String => shares_with,
        /// Number of links that its data and data of any other job cross, each direction for itself.
        pub shared_links: u64 => shared_links,
        /// Bytes of its payload over the links that it shares.
        pub shared_bytes: u64 => shared_bytes,
        /// Name of the shared link that carries most payload of all jobs.
        pub busiest_shared_link: Option<String> => busiest_shared_link,
        /// With `output.alone = true`: its time from start to end without the other jobs.
        pub alone_makespan: Option<Ps> => alone_makespan_ns,
        /// With `output.alone = true`: time of its iteration without the other jobs.
        pub alone_iteration_time: Option<Ps> => alone_iteration_time_ns [
            /// Its time over its time alone: of an iteration where there are any, else from start to end.
            slowdown: Option<Micro> = JobRecord::slowdown,
        ],
        /// With `output.leave_one_out = true`: each other job, with the job's time over its time when that one is left out: `b:1.25 c:1`.
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
        /// One of the jobs whose data cross it.
        pub job: String => job,
        /// Bytes of the job's payload over the link. A message that is sent again counts once.
        /// A sprayed one counts in equal parts over its paths, also with adaptive routing.
        pub job_bytes: u64 => job_bytes,
        /// Bytes of payload of all other jobs over the link.
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
