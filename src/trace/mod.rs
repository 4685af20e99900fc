//! Timelines of experiments for Perfetto (<https://perfetto.dev>): TrackEvent packets of its protocol-buffer trace format.
//!
//! Layer: trace, above the command line, below batch, whose [`Timeline`] it shows. A server is a process, a GPU a thread with a track for
//! each of its streams; messages, pauses and queues of the network have processes of their own. Of a cluster over days, a job or a server has a track. Simulates nothing, opens no file.

mod cluster;
mod events;
mod proto;
#[cfg(test)]
mod tests;
mod tracks;

pub use cluster::perfetto_cluster;

use crate::batch::timeline::Timeline;

/// Events that a trace has at most where nothing is said: what Perfetto's page shows without effort.
pub const DEFAULT_LIMIT: usize = 200_000;

/// Samples of queues that a timeline should have, so that with both their edges they take at most a quarter of `limit` events.
pub fn samples(limit: usize) -> usize {
    limit / 8
}

/// A trace as a file's bytes, and what is in it.
#[derive(Clone, Debug)]
pub struct Trace {
    pub bytes: Vec<u8>,
    /// Ops, messages and pauses shown, and how many there were.
    pub slices: usize,
    pub slices_of: usize,
    /// Samples of queues.
    pub samples: usize,
    /// What was left out or is coarser than it could be, in words.
    pub notes: Vec<String>,
}

/// Shows a timeline with at most `limit` events: where there are more, the longest. Queues give way where all else fits without them.
pub fn perfetto(timeline: &Timeline, limit: usize) -> Trace {
    let mut samples = events::queue_samples(timeline);
    let mut notes = Vec::new();
    let all = events::count(timeline);
    if timeline.queues_left_out {
        notes.push(
            "queues are left out: there are too many of them for this many events; a higher --limit shows them".into(),
        );
    } else if all <= limit && all + samples.len() > limit {
        samples.clear();
        notes.push(format!(
            "queues are left out, so that all {all} ops, messages and pauses are shown; a higher --limit shows both"
        ));
    }
    let (slices, slices_of, shortest) = events::longest(timeline, limit.saturating_sub(samples.len()).max(1));
    if slices.len() < slices_of {
        let kept = slices.len();
        notes.push(format!("the {kept} longest of {slices_of} ops, messages and pauses are shown: none of the others takes longer than {shortest} ns"));
    }
    if !samples.is_empty() && timeline.bin_ps > timeline.step_ps {
        notes.push(format!("queues are shown as their maxima over {} ns", timeline.bin_ps / 1000));
    }
    if !samples.is_empty() || !timeline.pauses.is_empty() {
        notes.push(format!("queues and pauses are looked at every {} ns at most", timeline.step_ps.div_ceil(1000)));
    }
    notes.extend(timeline.cut.as_ref().map(|why| format!("ends at {} ns: {why}", timeline.until_ps / 1000)));
    let bytes = tracks::encode(timeline, &slices, &samples, &notes);
    Trace { bytes, slices: slices.len(), slices_of, samples: samples.len(), notes }
}
