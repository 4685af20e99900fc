//! Encodes records of the journal as bytes: finished experiments, and evaluations of a search.
//!
//! Layer: results. A record is its fields, one after the other ([`super::declare`], [`super::bytes`]). The bytes do not describe themselves: the journal's first
//! record has [`layout`], and a journal of another layout is not read. Checks no sums, reads no files.

use super::bytes::Code;
use super::cluster_record::{ClusterCongestionRecord, ClusterJobRecord, ClusterMapRecord, ClusterSampleRecord};
use super::declare::Declared;
use super::job_record::{JobRecord, SharedLinkRecord};
use super::network_record::{FlowRecord, LinkPackets, LinkRecord, RttRecord};
use super::record::{ClusterRecord, ExperimentRecord, Finished, LookRecord, ServingRecord};
use super::serving_record::{RequestRecord, TimeStats};
use super::stats_record::{FoldingRecord, StatsRecord};

/// Describes the bytes: the records and their fields in order, then the meaning of an entry's first byte.
pub(super) fn layout() -> String {
    let records = [
        ExperimentRecord::LAYOUT,
        FlowRecord::LAYOUT,
        LinkRecord::LAYOUT,
        LinkPackets::LAYOUT,
        RttRecord::LAYOUT,
        StatsRecord::LAYOUT,
        FoldingRecord::LAYOUT,
        JobRecord::LAYOUT,
        SharedLinkRecord::LAYOUT,
        ClusterRecord::LAYOUT,
        ClusterSampleRecord::LAYOUT,
        ClusterJobRecord::LAYOUT,
        ClusterCongestionRecord::LAYOUT,
        ClusterMapRecord::LAYOUT,
        Finished::LAYOUT,
        TimeStats::LAYOUT,
        ServingRecord::LAYOUT,
        RequestRecord::LAYOUT,
        LookRecord::LAYOUT,
    ];
    records.concat() + "Entry(0 Finished,1 LookRecord)"
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
    use crate::record::Status;
    use crate::value::{Cell, Micro, Ms, Ps};
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
            cluster_timeline: vec![ClusterSampleRecord {
                at_ms: Ms(5),
                busy_gpus: 6,
                ..ClusterSampleRecord::default()
            }],
            cluster_jobs: vec![ClusterJobRecord {
                job: "j".into(),
                end_ms: Some(Ms(8)),
                ..ClusterJobRecord::default()
            }],
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
