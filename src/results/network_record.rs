//! Rows of `flows.csv`, `links.csv`, `rtt.csv` and `rtt_means.csv`.
//!
//! Layer: results. Plain data, as in [`super::record`].

use super::record_macro::record;
use super::value::{Micro, Ps};

record! {
    /// One row of `flows.csv`; the writer adds the experiment's id.
    #[derive(Copy, Eq)]
    pub struct FlowRecord {
        /// Number of the flow: for a flow file, from 0 in file order.
        pub flow_id: u32 => flow_id,
        /// Source: the host id of the file, or a GPU rank.
        pub src: u32 => src,
        pub dst: u32 => dst,
        pub bytes: u64 => bytes,
        pub start: Ps => start_ns,
        /// Time from start to the last ACK at the sender; `None` if unfinished.
        pub fct: Option<Ps> => fct_ns,
        /// Columns after that of the job, which some sweeps have.
        pub measures: FlowMeasures,
    }
}

record! {
    /// How a flow fared beside the time that it took.
    #[derive(Copy, Eq)]
    pub struct FlowMeasures (part of FlowRecord: |flow| Some(&flow.measures)) {
        /// Completion time over the time at line rate on an idle network; `None` if unfinished.
        pub slowdown: Option<Micro> => slowdown,
        /// Data packets sent again; `None` if no packets were simulated, or if they cannot be told apart from those of other messages.
        pub retransmissions: Option<u64> => retransmissions,
    }
}

record! {
    /// One row of `links.csv`: one direction of one link.
    #[derive(Eq)]
    pub struct LinkRecord {
        /// Name from the link's nodes, `host12->leaf3`; `host12->leaf3#k` for the k-th of parallel links (from 1).
        pub link: String => link,
        /// Wire bytes put on the link, pause frames included.
        pub bytes: u64 => bytes,
        /// Share of the link's rate from 0 to the makespan.
        pub utilisation: Micro => utilisation,
        /// Counts of packets; `None` if no packets were simulated.
        pub packets: Option<LinkPackets>,
        /// Ends and rate; `None` in rows of earlier builds.
        pub ends: Option<LinkEnds>,
        /// Columns after those of the ends.
        pub pauses: LinkPauses,
    }
}

record! {
    /// What a direction of a link connects, and how fast.
    #[derive(Eq)]
    pub struct LinkEnds (part of LinkRecord: |link| link.ends.as_ref()) {
        /// Name of the node that sends.
        pub source: String => source,
        /// Name of the node that receives.
        pub target: String => target,
        /// Rate of this direction in Gb/s: the reduced one of a slow link.
        pub capacity_gbps: Micro => capacity_gbps,
    }
}

record! {
    /// Counts of packets at a link's transmitting end.
    #[derive(Copy, Eq)]
    pub struct LinkPackets (part of LinkRecord: |link| link.packets.as_ref()) {
        pub max_queue_bytes: u64 => max_queue_bytes,
        /// Mean over time, from 0 to the makespan.
        pub mean_queue_bytes: Micro => mean_queue_bytes,
        pub ecn_marks: u64 => ecn_marks,
        /// Pause frames that arrived.
        pub pfc_pauses: u64 => pfc_pauses,
        pub drops: u64 => drops,
    }
}

record! {
    /// How long pauses held a link.
    #[derive(Copy, Eq)]
    pub struct LinkPauses (part of LinkRecord: |link| Some(&link.pauses)) {
        /// Time for which the transmitting end was paused; `None` if no packets were simulated, and in rows of earlier builds.
        pub paused: Option<Ps> => pfc_paused_ns,
    }
}

record! {
    /// One row of `rtt.csv`: a round-trip time that a sender measured.
    #[derive(Copy, Eq)]
    pub struct RttRecord {
        pub flow_id: u32 => flow_id,
        pub sample: Ps => sample_ns,
        pub rtt: Ps => rtt_ns,
    }
}

record! {
    /// One row of `rtt_means.csv`: the round-trip times that a sender measured.
    #[derive(Copy, Eq)]
    pub struct MeanRttRecord {
        pub flow_id: u32 => flow_id,
        /// Number of round trips: acknowledgements that arrived, and those that a skip stands for.
        pub round_trips: u32 => round_trips,
        pub mean: Ps => rtt_mean_ns,
    }
}
