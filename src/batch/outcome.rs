//! What an experiment came to, read off its rows.
//!
//! Layer: batch. Plain data in integers; `results` formats it.

use crate::columns::{Exp, FlowTx, NEVER, Nic, Port, RttSample};

use super::prepare::FlowInfo;

/// A flow's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOutcome {
    pub id: u32,
    pub src: u32,
    pub dst: u32,
    pub bytes: u64,
    pub start_ps: u64,
    pub ideal_ps: u64,
    /// From start to the last ACK at the sender.
    pub fct_ps: Option<u64>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkOutcome {
    pub name: String,
    pub rate_bps: u64,
    /// Wire bytes sent, pause frames included.
    pub bytes: u64,
    pub max_queue_bytes: u64,
    /// Integral of the egress queue over time, units of 1024 byte-picoseconds.
    pub queue_area: u64,
    pub marks: u64,
    /// Pause frames that reached the transmitter.
    pub pauses: u64,
    pub drops: u64,
}

/// All that is known of an experiment that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// From 0 to the last completion.
    pub makespan_ps: u64,
    pub flows: Vec<FlowOutcome>,
    pub packet_hops: u64,
    /// Marked data packets.
    pub ecn_marks: u64,
    /// Pause frames received.
    pub pfc_pauses: u64,
    pub drops: u64,
    pub max_queue_bytes: u64,
    pub links: Vec<LinkOutcome>,
    /// (flow, when, round-trip time), by flow.
    pub rtts: Vec<(u32, u64, u64)>,
}

/// Why an experiment has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Failed(String),
    /// The fullest rank needs more memory than its GPU has: a result that costs nothing.
    Oom {
        peak_bytes: u64,
        /// What the bytes are, in words.
        breakdown: String,
    },
}

/// The rows of one experiment, as slices of the world's columns.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub exp: &'a Exp,
    pub nics: &'a [Nic],
    pub ports: &'a [Port],
    pub tx: &'a [FlowTx],
}

/// Reads an experiment's rows. `link_names` are those of its link ends, NICs first; `rtts` its samples, `rtt_cap` a flow.
pub fn read(rows: Rows, infos: &[FlowInfo], link_names: &[String], rtts: &[RttSample]) -> Outcome {
    let mut out = Outcome::default();
    let cap = rows.exp.rtt_cap as usize;
    for f in infos {
        let fct_ps = match f.row {
            None => Some(f.ideal_ps),
            Some(row) => {
                let tx = &rows.tx[row as usize];
                let first = row as usize * cap;
                out.rtts.extend(rtts[first..first + (tx.rtt_n as usize).min(cap)].iter().map(|s| (f.id, s.at, s.rtt)));
                (tx.finish != NEVER).then(|| tx.finish - tx.start)
            }
        };
        out.makespan_ps = out.makespan_ps.max(fct_ps.map_or(0, |fct| f.start_ps + fct));
        let FlowInfo { id, src, dst, bytes, start_ps, ideal_ps, .. } = *f;
        out.flows.push(FlowOutcome { id, src, dst, bytes, start_ps, ideal_ps, fct_ps });
    }
    for (nic, name) in rows.nics.iter().zip(link_names) {
        out.packet_hops += nic.hops;
        out.pfc_pauses += nic.pauses as u64;
        out.links.push(LinkOutcome {
            name: name.clone(),
            rate_bps: nic.rate,
            bytes: nic.tx_bytes,
            max_queue_bytes: 0,
            queue_area: 0,
            marks: 0,
            pauses: nic.pauses as u64,
            drops: 0,
        });
    }
    for (port, name) in rows.ports.iter().zip(&link_names[rows.nics.len()..]) {
        out.packet_hops += port.hops;
        out.pfc_pauses += port.pauses as u64;
        out.ecn_marks += port.marks;
        out.drops += port.drops as u64;
        out.max_queue_bytes = out.max_queue_bytes.max(port.max_q as u64);
        out.links.push(LinkOutcome {
            name: name.clone(),
            rate_bps: port.rate,
            bytes: port.tx_bytes,
            max_queue_bytes: port.max_q as u64,
            queue_area: port.q_area,
            marks: port.marks,
            pauses: port.pauses as u64,
            drops: port.drops as u64,
        });
    }
    out
}
