//! Samples over time as an outcome: counters become counts since the sample time before.
//!
//! Layer: host. Plain integer data; `results` formats it.

use hyperfold_base::budget;
use hyperfold_columns::{EndSample, FlowIdx, FlowSample, OwnedTables, Tables, TimeSeries};
use hyperfold_engine::series::MAX_ROWS;

/// The samples of an experiment, in order of time. What does not change between two sample times has no row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesOutcome {
    /// Time from one sample time to the next, ps.
    pub interval_ps: u64,
    /// Samples of directions of links.
    pub links: Vec<LinkSampleOutcome>,
    /// Samples of flows, or of queue pairs.
    pub flows: Vec<FlowSampleOutcome>,
}

/// A direction of a link at a sample time. Counts are since the sample time before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSampleOutcome {
    /// Sample time, ps.
    pub time_ps: u64,
    /// Index of the direction in the outcome's links.
    pub link: u32,
    /// Bytes in the queue before it.
    pub queue_bytes: u64,
    /// Whether the receiver has paused the sender.
    pub paused: bool,
    /// Wire bytes sent.
    pub tx_bytes: u64,
    /// Data packets marked by ECN.
    pub marks: u64,
    /// Pause frames that reached the transmitter.
    pub pauses: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Time for which it was paused, ps.
    pub paused_ps: u64,
}

/// A flow, or a queue pair, at a sample time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSampleOutcome {
    /// Sample time, ps.
    pub time_ps: u64,
    /// Number of the flow; in a job, of the queue pair.
    pub id: u32,
    /// Index, in the outcome's links, of the link that leaves its source.
    pub source_link: u32,
    /// Index, in the outcome's links, of the link that leaves its destination.
    pub target_link: u32,
    /// Rate in force, bps.
    pub rate_bps: u64,
    /// Window in force, bytes; `None`: there is none.
    pub window_bytes: Option<u64>,
    /// Bytes sent and not acknowledged.
    pub outstanding_bytes: u64,
    /// Bytes acknowledged since the sample time before.
    pub acked_bytes: u64,
}

/// Bytes of a row in all forms that it takes until it is written.
const ROW_BYTES: u64 = 300;

/// Expected memory for the samples of an experiment, bytes.
pub(crate) fn expected_bytes(t: &OwnedTables) -> u64 {
    let series = &t.series;
    let n_ends = match (series.links, series.sampled_ends.as_slice()) {
        (false, _) => 0,
        (true, []) => t.nics.len() + t.ports.len(),
        (true, chosen) => chosen.iter().filter(|is_sampled| **is_sampled).count(),
    };
    let n_flows = if series.flows { t.flow_tx.len() } else { 0 };
    let rows = (n_ends + n_flows).saturating_mul(series.cap).min(MAX_ROWS);
    rows as u64 * ROW_BYTES
}

/// Reads the samples of an experiment that has ended; `None`: there are none.
pub(crate) fn read(t: &Tables, series: &TimeSeries) -> Option<SeriesOutcome> {
    if !series.is_on() {
        return None;
    }
    let mut out = SeriesOutcome {
        interval_ps: series.interval,
        links: Vec::with_capacity(series.samples.iter().map(|sample| sample.ends.len()).sum()),
        flows: Vec::with_capacity(series.samples.iter().map(|sample| sample.flows.len()).sum()),
    };
    let mut ends_before: Vec<Option<EndSample>> = vec![None; t.exps[0].end_len as usize];
    let mut acked_before = vec![0; t.flow_tx.len()];
    for sample in &series.samples {
        budget::check("samples over time (output.series)");
        let time_ps = sample.number.saturating_mul(series.interval);
        for end in &sample.ends {
            let before = ends_before[end.end.usize()].replace(*end);
            out.links.push(link(time_ps, end, before));
        }
        for flow in &sample.flows {
            let before = std::mem::replace(&mut acked_before[flow.flow.usize()], flow.snd_una);
            out.flows.push(queue_pair(t, time_ps, flow, before));
        }
    }
    Some(out)
}

/// The row of a link end, whose last row was `before`.
fn link(time_ps: u64, end: &EndSample, before: Option<EndSample>) -> LinkSampleOutcome {
    let (tx_bytes, marks, pauses, drops) = before.map_or((0, 0, 0, 0), |b| (b.tx_bytes, b.marks, b.pauses, b.drops));
    let paused_before = before.map_or(0, |b| b.paused_ps);
    LinkSampleOutcome {
        time_ps,
        link: end.end.0,
        queue_bytes: end.queue_bytes.into(),
        paused: end.paused,
        tx_bytes: end.tx_bytes - tx_bytes,
        marks: end.marks - marks,
        pauses: (end.pauses - pauses).into(),
        drops: (end.drops - drops).into(),
        paused_ps: end.paused_ps - paused_before,
    }
}

/// The row of a queue pair, of which `acked` bytes were acknowledged at its last row.
fn queue_pair(t: &Tables, time_ps: u64, sample: &FlowSample, acked: u64) -> FlowSampleOutcome {
    let row: FlowIdx = sample.flow;
    let (tx, rx) = (&t.flow_tx[row], &t.flow_rx[row]);
    FlowSampleOutcome {
        time_ps,
        id: tx.flow_id,
        source_link: tx.nic.0,
        target_link: rx.nic.0,
        rate_bps: sample.rate,
        window_bytes: sample.window,
        outstanding_bytes: sample.snd_nxt.saturating_sub(sample.snd_una),
        acked_bytes: sample.snd_una.saturating_sub(acked),
    }
}
