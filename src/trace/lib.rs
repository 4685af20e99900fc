//! Timelines of experiments for Perfetto (<https://perfetto.dev>): TrackEvent packets of its protocol-buffer trace format.
//!
//! A server is a process, and a GPU is a thread with a track for each of its streams. Messages, pauses and queues of the network have processes of their own. In a
//! cluster over days, each job and each server has a track.
//!
//! The timeline itself comes from `hyperfold-host` ([`Timeline`]) and `hyperfold-cluster`. This crate simulates nothing and opens no file.
//! Start with `tracks.rs`.

#![forbid(unsafe_code)]

mod cluster;
mod events;
#[cfg(test)]
mod tests;
mod tracks;

pub use cluster::perfetto_cluster;

use hyperfold_host::outcomes::timeline::Timeline;

/// Default maximum of events in a trace, which Perfetto's page shows without effort.
pub const DEFAULT_LIMIT: usize = 200_000;

/// Number of queue samples that a timeline should have. With both of their edges they then take at most a quarter of `limit` events.
pub fn samples(limit: usize) -> usize {
    limit / 8
}

/// A trace as the bytes of a file, and its contents.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The trace as Perfetto reads it: a protobuf message.
    pub bytes: Vec<u8>,
    /// Number of ops, messages and pauses shown.
    pub slices: usize,
    /// Number of ops, messages and pauses of the timeline.
    pub slices_of: usize,
    /// Number of samples of queues.
    pub samples: usize,
    /// Notes about what was left out or is coarser than possible.
    pub notes: Vec<String>,
}

/// Shows a timeline with at most `limit` events. If there are more, the longest are shown. Queues are left out if everything else then fits.
pub fn perfetto(timeline: &Timeline, limit: usize) -> Trace {
    let mut samples = events::queue_samples(timeline);
    let mut notes = Vec::new();
    let n_spans = events::count(timeline);
    if timeline.queues_left_out {
        notes.push(
            "queues are left out: there are too many of them for this many events; a higher --limit shows them".into(),
        );
    } else if n_spans <= limit && n_spans + samples.len() > limit {
        samples.clear();
        notes.push(format!(
            "queues are left out, so that all {n_spans} ops, messages and pauses are shown; a higher --limit shows both"
        ));
    }
    let (spans, n_spans, shortest) = events::longest(timeline, limit.saturating_sub(samples.len()).max(1));
    if spans.len() < n_spans {
        let kept = spans.len();
        notes.push(format!("the {kept} longest of {n_spans} ops, messages and pauses are shown: none of the others takes longer than {shortest} ns"));
    }
    if !samples.is_empty() && timeline.bin_ps > timeline.step_ps {
        notes.push(format!("queues are shown as their maxima over {} ns", timeline.bin_ps / 1000));
    }
    if !samples.is_empty() || !timeline.pauses.is_empty() {
        notes.push(format!("queues and pauses are looked at every {} ns at most", timeline.step_ps.div_ceil(1000)));
    }
    notes.extend(timeline.cut.as_ref().map(|why| format!("ends at {} ns: {why}", timeline.until_ps / 1000)));
    let bytes = tracks::encode(timeline, &spans, &samples, &notes);
    Trace { bytes, slices: spans.len(), slices_of: n_spans, samples: samples.len(), notes }
}
