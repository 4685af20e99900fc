//! Encodes records of the journal as bytes: finished experiments, and evaluations of a search.
//!
//! Layer: results. A record is its fields, one after the other ([`super::record_macro`], [`super::bytes`]). The bytes do not describe themselves: the journal's first
//! record has the [`layout`] that they were written in. One that only lacks fields is read, any other is refused. Checks no sums, reads no files.

use std::collections::BTreeMap;

use super::bytes::{ByteInput, Code, FieldNames};
use super::cluster_record::{ClusterCongestionRecord, ClusterJobRecord, ClusterMapRecord, ClusterSampleRecord};
use super::job_record::{JobRecord, SharedLinkRecord};
use super::network_record::{
    FlowMeasures, FlowRecord, LinkEnds, LinkPackets, LinkPauses, LinkRecord, MeanRttRecord, RttRecord,
};
use super::record::{ClusterRecord, ExperimentRecord, Finished, LookRecord, ServingRecord};
use super::record_macro::Declared;
use super::series_record::{FlowSampleRecord, LinkSampleRecord};
use super::serving_record::{RequestRecord, TimeStats};
use super::stats_record::{FoldingRecord, StatsRecord};

/// Describes the bytes: the records and their fields in order, then the meaning of an entry's first byte.
pub(super) fn layout() -> String {
    let records = [
        ExperimentRecord::LAYOUT,
        FlowRecord::LAYOUT,
        FlowMeasures::LAYOUT,
        LinkRecord::LAYOUT,
        LinkPackets::LAYOUT,
        LinkEnds::LAYOUT,
        LinkPauses::LAYOUT,
        RttRecord::LAYOUT,
        MeanRttRecord::LAYOUT,
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
        LinkSampleRecord::LAYOUT,
        FlowSampleRecord::LAYOUT,
        LookRecord::LAYOUT,
    ];
    records.concat() + "Entry(0 Finished,1 LookRecord)"
}

/// Returns the records of a layout with their fields, in order.
fn records(layout: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    layout
        .split_terminator(')')
        .filter_map(|record| record.split_once('('))
        .map(|(name, fields)| (name, fields.split_terminator(',').collect()))
}

/// Returns the fields that records written in the layout `written` lack. `None` if they cannot be read: they have a field that is not there any more, or
/// fields in another order.
pub(super) fn lacking(written: &str) -> Option<FieldNames> {
    let current = layout();
    let mut lacking = FieldNames::new();
    if written == current {
        return Some(lacking);
    }
    let earlier: BTreeMap<&str, Vec<&str>> = records(written).collect();
    for (record, fields) in records(&current) {
        // A record that is new altogether belongs to a field that is.
        let Some(earlier_fields) = earlier.get(record) else { continue };
        let mut left = earlier_fields.iter().peekable();
        for field in fields {
            if left.next_if(|earlier_field| **earlier_field == field).is_none() {
                lacking.insert((record.to_string(), field.to_string()));
            }
        }
        if left.next().is_some() {
            return None;
        }
    }
    let is_known = |record: &&str| records(&current).any(|(name, _)| name == *record);
    let is_whole = earlier.contains_key("Entry") && earlier.keys().all(is_known);
    is_whole.then_some(lacking)
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
    let samples = finished.series_links.len() + finished.series_flows.len();
    let mut out = Vec::with_capacity(512 + 48 * rows + 96 * samples);
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

/// Decodes a record that lacks some fields; `None` if the bytes are no output of [`encode`] or [`encode_look`].
pub(super) fn decode(bytes: &[u8], lacking: &FieldNames) -> Option<JournalEntry> {
    let mut input = ByteInput { rest: bytes, lacking };
    let entry = match u8::get(&mut input)? {
        EXPERIMENT => JournalEntry::Experiment(Box::new(Finished::get(&mut input)?)),
        LOOK => JournalEntry::Look(LookRecord::get(&mut input)?),
        _ => return None,
    };
    input.rest.is_empty().then_some(entry)
}

/// Whether the bytes are a valid record of a journal, read as a resumed run reads them.
pub fn is_journal_entry(bytes: &[u8]) -> bool {
    decode(bytes, &FieldNames::new()).is_some()
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
            ends: Some(LinkEnds { source: "a".into(), target: "b".into(), capacity_gbps: Micro(8) }),
            pauses: LinkPauses { paused: Some(Ps(9)) },
        };
        let measures = FlowMeasures { slowdown: Some(Micro(7)), retransmissions: Some(8) };
        let flow = |fct| FlowRecord { flow_id: 1, src: 2, dst: 3, bytes: 4, start: Ps(5), fct, measures };
        Finished {
            record,
            flows: vec![flow(None), flow(Some(Ps(6)))],
            links: vec![link("a->b"), link("")],
            rtt: vec![RttRecord { flow_id: 1, sample: Ps(2), rtt: Ps(3) }],
            rtt_means: vec![MeanRttRecord { flow_id: 1, src: Some(2), dst: Some(3), round_trips: 4, mean: Ps(5) }],
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
            series_links: vec![LinkSampleRecord { time: Ps(3), paused: true, ..LinkSampleRecord::default() }],
            series_flows: vec![FlowSampleRecord { window_bytes: Some(5), ..FlowSampleRecord::default() }],
            requests: vec![RequestRecord { job: Some("j".into()), ttft: Some(Ps(9)), ..RequestRecord::default() }],
            stats: StatsRecord { memo_hits: 4, wall_s: 0.25, audit_fct_error: Some(1e-9), ..StatsRecord::default() },
        }
    }

    fn read(bytes: &[u8]) -> Option<JournalEntry> {
        decode(bytes, &FieldNames::new())
    }

    #[test]
    fn what_goes_in_comes_out() {
        for status in [Status::Ok, Status::Oom, Status::Failed] {
            let mut finished = full();
            finished.record.status = status;
            assert_eq!(read(&encode(&finished)), Some(JournalEntry::Experiment(Box::new(finished))));
        }
        let look =
            LookRecord { level: 2, exp_id: 7, packet_hops: 9, values: vec![None, Some(-0.1)], why: Some("oom".into()) };
        assert_eq!(read(&encode_look(&look)), Some(JournalEntry::Look(look)));
    }

    #[test]
    fn neither_less_nor_more_is_an_experiment() {
        let mut bytes = encode(&full());
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), None, "{end} bytes");
        }
        bytes.push(0);
        assert_eq!(read(&bytes), None);
    }

    #[test]
    fn a_layout_that_only_lacks_fields_is_read() {
        let finished_with = |retransmissions| {
            let mut finished = full();
            finished.record.retransmissions = retransmissions;
            finished
        };
        // The two differ first where the option begins; without it, the record is as before there was such a field.
        let (mut bytes, some) = (encode(&finished_with(None)), encode(&finished_with(Some(5))));
        let place = bytes.iter().zip(&some).position(|(a, b)| a != b).expect("they differ");
        bytes.remove(place);
        let earlier = layout().replace("drops,retransmissions,", "drops,");
        let lacking = lacking(&earlier).expect("it lacks a field and nothing else");
        assert_eq!(lacking, FieldNames::from([("ExperimentRecord".into(), "retransmissions".into())]));
        assert_eq!(decode(&bytes, &lacking), Some(JournalEntry::Experiment(Box::new(finished_with(None)))));
    }

    #[test]
    fn other_layouts_are_refused() {
        assert_eq!(lacking(&layout()), Some(FieldNames::new()));
        assert_eq!((lacking(""), lacking("layout 7")), (None, None));
        for (from, to) in [
            ("RttRecord(flow_id,", "RttRecord(flow_id,hops,"),
            ("RttRecord(flow_id,sample,", "RttRecord(sample,flow_id,"),
            ("RttRecord(", "PingRecord("),
            ("0 Finished", "0 Begun"),
        ] {
            assert_eq!(lacking(&layout().replace(from, to)), None, "{to}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(position in 0usize..600, byte: u8) {
            let mut bytes = encode(&full());
            let position = position % bytes.len();
            bytes[position] = byte;
            // There is neither a panic nor memory allocated for impossible lengths.
            let _ = read(&bytes);
        }
    }
}
