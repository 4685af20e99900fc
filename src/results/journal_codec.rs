//! Encodes records of the journal as bytes: finished experiments, and evaluations of a search.
//!
//! Layer: results. Numbers are little-endian and of fixed width, doubles keep their bits, an option is a byte and its value, a list is its length and its
//! items. The bytes do not describe themselves: the journal's first record has [`LAYOUT`], and a journal of another layout is not read. Checks no sums, reads
//! no files.

use super::cluster_record::{
    ClusterCongestionRecord, ClusterJobRecord, ClusterMapRecord, ClusterRecord, ClusterSampleRecord,
};
use super::job_record::{JobRecord, SharedLinkRecord};
use super::record::{
    ExperimentRecord, Finished, FlowRecord, FoldingRecord, LinkPackets, LinkRecord, LookRecord, RttRecord, StatsRecord,
    Status,
};
use super::serving_record::{RequestRecord, ServingRecord, TimeStats};
use super::value::{Cell, Micro, Ps};

/// A value that can be written to and read from bytes.
trait Code: Sized {
    fn put(&self, out: &mut Vec<u8>);
    /// Reads a value and removes it from the front of `input`. `None` if the bytes are not such a value.
    fn get(input: &mut &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Code for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn get(input: &mut &[u8]) -> Option<Self> {
                let (first, rest) = input.split_first_chunk()?;
                *input = rest;
                Some(<$number>::from_le_bytes(*first))
            }
        })*
    };
}
numbers!(u8, u32, u64, i64, f64);

macro_rules! wrapped {
    ($($outer:ident),*) => {
        $(impl Code for $outer {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
            fn get(input: &mut &[u8]) -> Option<Self> {
                Code::get(input).map($outer)
            }
        })*
    };
}
wrapped!(Ps, Micro);

impl Code for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }
    fn get(input: &mut &[u8]) -> Option<Self> {
        match u8::get(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Code> Code for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn get(input: &mut &[u8]) -> Option<Self> {
        if bool::get(input)? { T::get(input).map(Some) } else { Some(None) }
    }
}

impl<T: Code> Code for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_ref().put(out);
    }
    fn get(input: &mut &[u8]) -> Option<Self> {
        T::get(input).map(Box::new)
    }
}

impl<T: Code> Code for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|item| item.put(out));
    }
    fn get(input: &mut &[u8]) -> Option<Self> {
        let items = u64::get(input)?;
        // Every item has at least one byte, so an impossible length allocates nothing.
        if items > input.len() as u64 {
            return None;
        }
        (0..items).map(|_| T::get(input)).collect()
    }
}

impl Code for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(input: &mut &[u8]) -> Option<Self> {
        let bytes = usize::try_from(u64::get(input)?).ok()?;
        let (text, rest) = input.split_at_checked(bytes)?;
        *input = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl Code for Status {
    fn put(&self, out: &mut Vec<u8>) {
        let tag: u8 = match self {
            Status::Ok => 0,
            Status::Oom => 1,
            Status::Failed => 2,
        };
        tag.put(out);
    }
    fn get(input: &mut &[u8]) -> Option<Self> {
        [Status::Ok, Status::Oom, Status::Failed].get(usize::from(u8::get(input)?)).copied()
    }
}

impl Code for Cell {
    fn put(&self, out: &mut Vec<u8>) {
        fn tagged(out: &mut Vec<u8>, tag: u8, value: &impl Code) {
            tag.put(out);
            value.put(out);
        }
        match self {
            Cell::Empty => 0u8.put(out),
            Cell::Int(v) => tagged(out, 1, v),
            Cell::Unsigned(v) => tagged(out, 2, v),
            Cell::Ps(v) => tagged(out, 3, v),
            Cell::Micro(v) => tagged(out, 4, v),
            Cell::Real(v) => tagged(out, 5, v),
            Cell::Flag(v) => tagged(out, 6, v),
            Cell::Text(v) => tagged(out, 7, v),
        }
    }
    fn get(input: &mut &[u8]) -> Option<Self> {
        Some(match u8::get(input)? {
            0 => Cell::Empty,
            1 => Cell::Int(Code::get(input)?),
            2 => Cell::Unsigned(Code::get(input)?),
            3 => Cell::Ps(Code::get(input)?),
            4 => Cell::Micro(Code::get(input)?),
            5 => Cell::Real(Code::get(input)?),
            6 => Cell::Flag(Code::get(input)?),
            7 => Cell::Text(Code::get(input)?),
            _ => return None,
        })
    }
}

/// Encodes records field by field. A field that is missing here does not compile, so none can be forgotten.
macro_rules! records {
    ($($record:ident { $($field:ident),* $(,)? })*) => {
        $(impl Code for $record {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn get(input: &mut &[u8]) -> Option<Self> {
                Some($record { $($field: Code::get(input)?),* })
            }
        })*

        /// Description of the bytes: the records and their fields in order, then the meaning of an entry's first byte.
        pub(super) const LAYOUT: &str = concat!($(stringify!($record), "(", $(stringify!($field), ",",)* ")",)* "Entry(0 Finished,1 LookRecord)");
    };
}

records! {
    ExperimentRecord {
        exp_id, config_key, exp_key, replica, seed, axis_values, status, error, machine_limit, makespan, iteration_time, compute, comm_exposed_tp,
        comm_exposed_pp, comm_exposed_dp, comm_exposed_ep, comm_exposed_cp, bubble, optimizer, other, critical_rank, tokens_per_s, tokens_per_s_per_gpu, mfu,
        algbw_gbps, busbw_gbps, peak_memory_bytes, flows, fct_mean, fct_p50, fct_p99, fct_max, fct_slowdown_p50, fct_slowdown_p99, packet_hops,
        ecn_marks, pfc_pauses, drops, retransmissions, max_queue_bytes, max_link_utilisation, bottleneck_link, algorithm, protocol, channels, validated_error, validated_class,
        validated_mean_error, validated_p90_error, validated_rows, cost_usd, power_kw, usd_per_mtoken, cluster, serving,
    }
    FlowRecord { flow_id, src, dst, bytes, start, fct }
    LinkRecord { link, bytes, utilisation, packets }
    LinkPackets { max_queue_bytes, mean_queue_bytes, ecn_marks, pfc_pauses, drops }
    RttRecord { flow_id, sample, rtt }
    StatsRecord { packet_hops_simulated, packet_hops_skipped, memo_hits, memo_misses, steady_skips, batches, wall_s, audit_fct_error, steady_error, folding }
    FoldingRecord {
        episodes, episodes_known, snapshots, snapshots_known, partitions, partitions_max, partitions_mean, memo_bytes, hops_steady,
        skipped_mean, rounded, switches_coupled, couplings, carried_skips, carried_drift, carried_audits, carried_messages_error, pauses_left_out, exact_instead, audited, audit_hops, audit_messages, audit_fct_error_max, audit_above_1pct, theorem2_violations, theorem3_violations,
        simulating_s, looking_up_s, checkpointing_s, auditing_s,
    }
    JobRecord {
        job, kind, background, gpus, gpu_list, placement, start, end, iteration_time, compute, comm_exposed_tp, comm_exposed_pp, comm_exposed_dp,
        comm_exposed_ep, comm_exposed_cp, bubble, optimizer, other, critical_rank, tokens_per_s, mfu, algbw_gbps, busbw_gbps, peak_memory_bytes, algorithm,
        first_flow, flows, bytes, fct_mean, fct_p50, fct_p99, fct_max, packet_hops, shares_with, shared_links, shared_bytes, busiest_shared_link,
        alone_makespan, alone_iteration_time, slowed_by,
    }
    SharedLinkRecord { link, job, job_bytes, other_bytes, shared_with }
    ClusterRecord {
        span_ms, jobs, jobs_done, jobs_given_up, utilisation, goodput, idle_share, stranded_share, slowdown_share, checkpoint_share, restart_share,
        rollback_share, down_share, drained_share, spare_share, waiting_mean_ms, waiting_p50_ms, waiting_p99_ms, turnaround_mean_ms,
        turnaround_p99_ms, fairness, failures, restarts, preemptions, migrations, drains, useful_gpu_hours, usd_per_useful_gpu_hour,
        shrinks, grows, write_slowdown, company_share, iteration_sets, iteration_sets_asked, iteration_set_most_jobs, iteration_audits, iteration_error_mean, iteration_error_max, beside_writes_share, samples_per_s,
    }
    ClusterSampleRecord {
        at_ms, waiting_jobs, waiting_gpus, running_jobs, busy_gpus, free_gpus, stranded_gpus, down_gpus, drained_gpus, spare_gpus, slowed_gpus,
    }
    ClusterJobRecord {
        job, user, priority, gpus, submit_ms, start_ms, end_ms, duration_ms, ended, queued_ms, restarts, preemptions, lost_work_ms,
        slowdown, company_slowdown, worst_company_slowdown, worst_beside, worst_link, class, iteration_s, samples_per_s,
    }
    ClusterCongestionRecord { job, from_ms, to_ms, link, set_off_by, slowdown, worst_slowdown, nic_share, sharing }
    ClusterMapRecord { from_ms, to_ms, first_server, servers, used_gpus, idle_gpus, down_gpus, drained_gpus, spare_gpus }
    Finished { record, flows, links, rtt, jobs, shared_links, cluster_timeline, cluster_jobs, cluster_congestion, cluster_map, requests, stats }
    TimeStats { mean, p50, p99 }
    ServingRecord {
        requests, requests_done, ttft, tpot, e2e, queue, kv_transfer, kv_transfer_bytes, requests_per_s, output_tokens_per_s, goodput_rps,
        within_bounds, steps, sequences_per_step, kv_capacity_tokens, kv_use_mean, kv_use_peak, kv_blocked_share, compute_bound_share,
        memory_bound_share, launch_share, network_share, unused_share, limited_by,
    }
    RequestRecord {
        job, request, arrival, prompt_tokens, output_tokens, instance, decode_instance, queue, ttft, kv_transfer, tpot, e2e, within_bounds,
    }
    LookRecord { level, exp_id, packet_hops, values, why }
}

/// A record of the journal.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JournalEntry {
    Experiment(Box<Finished>),
    Look(LookRecord),
}

const EXPERIMENT: u8 = 0;
const LOOK: u8 = 1;

/// Encodes an experiment.
pub(super) fn encode(finished: &Finished) -> Vec<u8> {
    let rows = finished.flows.len() + finished.links.len() + finished.rtt.len();
    let mut out = Vec::with_capacity(512 + 48 * rows);
    EXPERIMENT.put(&mut out);
    finished.put(&mut out);
    out
}

/// Encodes an evaluation of a search.
pub(super) fn encode_look(look: &LookRecord) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    LOOK.put(&mut out);
    look.put(&mut out);
    out
}

/// Decodes a record; `None` if the bytes are no output of [`encode`] or [`encode_look`].
pub(super) fn decode(mut bytes: &[u8]) -> Option<JournalEntry> {
    let entry = match u8::get(&mut bytes)? {
        EXPERIMENT => JournalEntry::Experiment(Box::new(Finished::get(&mut bytes)?)),
        LOOK => JournalEntry::Look(LookRecord::get(&mut bytes)?),
        _ => return None,
    };
    bytes.is_empty().then_some(entry)
}

/// Whether the bytes are a valid record of a journal, read as a resumed run reads them.
pub fn is_journal_entry(bytes: &[u8]) -> bool {
    decode(bytes).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns an experiment in which every kind of value occurs.
    fn full() -> Finished {
        let cells = vec![
            Cell::Empty,
            Cell::Int(-5),
            Cell::Unsigned(u64::MAX),
            Cell::Ps(Ps(1)),
            Cell::Micro(Micro(2)),
            Cell::Real(-0.0),
            Cell::Flag(true),
            "fat-tree, \u{3b1}".into(),
        ];
        let mut record = ExperimentRecord::new(7, "c".into(), "e".into(), 3, u64::MAX, cells).failed("why");
        record.mfu = Some(0.1 + 0.2);
        record.makespan = Some(Ps(9));
        record.cluster =
            Some(Box::new(ClusterRecord { goodput: 0.5, fairness: Some(1.0), ..ClusterRecord::default() }));
        record.max_link_utilisation = Some(Micro(11));
        record.bottleneck_link = Some("1->2".into());
        let link = |link: &str| LinkRecord {
            link: link.into(),
            bytes: 1,
            utilisation: Micro(2),
            packets: Some(LinkPackets {
                max_queue_bytes: 3,
                mean_queue_bytes: Micro(4),
                ecn_marks: 5,
                pfc_pauses: 6,
                drops: 7,
            }),
        };
        let flow = |fct| FlowRecord { flow_id: 1, src: 2, dst: 3, bytes: 4, start: Ps(5), fct };
        Finished {
            record,
            flows: vec![flow(None), flow(Some(Ps(6)))],
            links: vec![link("a->b"), link("")],
            rtt: vec![RttRecord { flow_id: 1, sample: Ps(2), rtt: Ps(3) }],
            jobs: vec![JobRecord { job: "a".into(), end: Some(Ps(4)), mfu: Some(0.5), ..JobRecord::default() }],
            shared_links: vec![SharedLinkRecord { link: "a->b".into(), job_bytes: 5, ..SharedLinkRecord::default() }],
            cluster_timeline: vec![ClusterSampleRecord { at_ms: 5, busy_gpus: 6, ..ClusterSampleRecord::default() }],
            cluster_jobs: vec![ClusterJobRecord { job: "j".into(), end_ms: Some(8), ..ClusterJobRecord::default() }],
            cluster_congestion: vec![ClusterCongestionRecord {
                link: "l".into(),
                ..ClusterCongestionRecord::default()
            }],
            cluster_map: vec![ClusterMapRecord { servers: 3, used_gpus: 0.5, ..ClusterMapRecord::default() }],
            requests: vec![RequestRecord { job: Some("j".into()), ttft: Some(Ps(9)), ..RequestRecord::default() }],
            stats: StatsRecord { memo_hits: 4, wall_s: 0.25, audit_fct_error: Some(1e-9), ..StatsRecord::default() },
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        for status in [Status::Ok, Status::Oom, Status::Failed] {
            let mut finished = full();
            finished.record.status = status;
            assert_eq!(decode(&encode(&finished)), Some(JournalEntry::Experiment(Box::new(finished))));
        }
        let look =
            LookRecord { level: 2, exp_id: 7, packet_hops: 9, values: vec![None, Some(-0.1)], why: Some("oom".into()) };
        assert_eq!(decode(&encode_look(&look)), Some(JournalEntry::Look(look)));
    }

    #[test]
    fn neither_less_nor_more_is_an_experiment() {
        let mut bytes = encode(&full());
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "{end} bytes");
        }
        bytes.push(0);
        assert_eq!(decode(&bytes), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(position in 0usize..600, byte: u8) {
            let mut bytes = encode(&full());
            let position = position % bytes.len();
            bytes[position] = byte;
            // There is neither a panic nor memory allocated for impossible lengths.
            let _ = decode(&bytes);
        }
    }
}
