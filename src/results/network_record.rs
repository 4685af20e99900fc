//! Rows of `flows.csv`, `links.csv`, `rtt.csv` and `rtt_means.csv`.
//!
//! Layer: results. Plain data, as in [`super::record`].

use super::record_macro::record;
use super::value::{Micro, Ps};

record! {
    /// One row of `flows.csv`; the writer adds the experiment's id.
    #[derive(Copy, Eq)]
    pub struct FlowRecord {
        /// Number of the flow: those of a flow file from 0 in file order.
        pub flow_id: u32 => flow_id,
        /// Source of the flow: the host of a flow file, or a GPU rank. Numbers above the last GPU's are switches that reduce.
        pub src: u32 => src see "how-to/switches-that-reduce.md",
        /// Destination of the flow, numbered as sources are.
        pub dst: u32 => dst,
        /// Bytes of its payload.
        pub bytes: u64 => bytes,
        /// Time of its start.
        pub start: Ps => start_ns,
        /// Time from its start to the last ACK at the sender, exact to the picosecond; empty if unfinished.
        pub fct: Option<Ps> => fct_ns,
        /// Columns after that of the job, which some sweeps have.
        pub measures: FlowMeasures,
    }
}

record! {
    /// How a flow fared beside the time that it took.
    #[derive(Copy, Eq)]
    pub struct FlowMeasures (part of FlowRecord: |flow| Some(&flow.measures)) {
        /// Completion time over the time at line rate on an idle network, as `fct_slowdown_*` of `results.csv`; empty if unfinished.
        pub slowdown: Option<Micro> => slowdown,
        /// Number of data packets sent again, as in `results.csv`. Empty at flow level.
        /// Also empty if the queue pair carried several messages and sent some again: they share one counter.
        pub retransmissions: Option<u64> => retransmissions,
    }
}

record! {
    /// One row of `links.csv`: one direction of one link.
    #[derive(Eq)]
    pub struct LinkRecord {
        /// Names of the two nodes, such as `host12->leaf3`. The k-th of parallel links, from 1, has `#k` at its end.
        pub link: String => link,
        /// Bytes on the wire that the direction carried, pause frames included.
        pub bytes: u64 => bytes,
        /// Share of its rate that it carried, from 0 to the makespan.
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
        /// Rate of this direction in Gb/s, of a slow link its reduced one.
        pub capacity_gbps: Micro => capacity_gbps,
    }
}

record! {
    /// Counts of packets at a link's transmitting end.
    #[derive(Copy, Eq)]
    pub struct LinkPackets (part of LinkRecord: |link| link.packets.as_ref()) {
        /// Largest number of bytes in the queue of the switch port before it; of a NIC 0.
        pub max_queue_bytes: u64 => max_queue_bytes,
        /// Mean number of bytes in the queue of the switch port before it, over time from 0 to the makespan; of a NIC 0.
        pub mean_queue_bytes: Micro => mean_queue_bytes,
        /// Number of marks that the port put on data packets.
        pub ecn_marks: u64 => ecn_marks,
        /// Number of pause frames that its sender received.
        pub pfc_pauses: u64 => pfc_pauses,
        /// Number of packets dropped there.
        pub drops: u64 => drops,
    }
}

record! {
    /// How long pauses held a link.
    #[derive(Copy, Eq)]
    pub struct LinkPauses (part of LinkRecord: |link| Some(&link.pauses)) {
        /// Time for which its sender was paused; with several traffic classes the times of all of them, added up.
        pub paused: Option<Ps> => pfc_paused_ns see "explanation/model-semantics.md#paused-time",
    }
}

record! {
    /// One row of `rtt.csv`: a round-trip time that a sender measured.
    #[derive(Copy, Eq)]
    pub struct RttRecord {
        /// Number of the flow; of collectives and programs the queue pair.
        pub flow_id: u32 => flow_id,
        /// Time at which the sender measured the round-trip time.
        pub sample: Ps => sample_ns,
        /// The round-trip time that the sender measured.
        pub rtt: Ps => rtt_ns,
    }
}

record! {
    /// One row of `rtt_means.csv`: the round-trip times that a sender measured.
    #[derive(Copy, Eq)]
    pub struct MeanRttRecord {
        /// Number of the flow; of collectives and programs the queue pair.
        pub flow_id: u32 => flow_id,
        /// Source of the flow or queue pair, as in `flows.csv`; empty in rows of earlier builds.
        pub src: Option<u32> => src or default,
        /// Destination, numbered as sources are; empty in rows of earlier builds.
        pub dst: Option<u32> => dst or default,
        /// Number of round trips: answers that arrived before the flow was done, and those that skips stand for.
        pub round_trips: u32 => round_trips,
        /// Mean of these round trips.
        pub mean: Ps => rtt_mean_ns see "explanation/model-semantics.md#mean-round-trips",
    }
}
