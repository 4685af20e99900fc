//! What a user is told of the dumps.
//!
//! Layer: workload. Text.

use super::dump::{Dump, Kind, Launch};
use super::groups::{RecordedGroups, ranks_shown};
use crate::collective::CollectiveOp;

/// Most calls that are named.
const MOST: usize = 3;

/// A call that some ranks made and others did not.
pub(super) struct Missing {
    /// When the first rank made it.
    pub(super) at_ns: u64,
    pub(super) text: String,
    /// Number of calls that are left out for it.
    pub(super) n_left_out: u64,
}

/// Names calls that some ranks lack, the earliest first.
pub(super) fn missing(mut found: Vec<Missing>, notes: &mut Vec<String>) {
    found.sort_by_key(|m| m.at_ns);
    let n_left_out: u64 = found.iter().map(|m| m.n_left_out).sum();
    for (i, one) in found.iter().take(MOST).enumerate() {
        let tail = if i > 0 {
            String::new()
        } else {
            format!(
                ". If the job hung, ranks wait for this call first. {n_left_out} call(s) that not all have made are left out"
            )
        };
        notes.push(format!("{}{tail}", one.text));
    }
    if found.len() > MOST {
        notes.push(format!("{} more groups or pairs of ranks lack calls that were made later", found.len() - MOST));
    }
}

/// Names the earliest collective that all members made and that did not end.
pub(super) fn in_flight(dumps: &[Dump], groups: &RecordedGroups, notes: &mut Vec<String>) {
    let open = |u: &&Launch| u.keep && !u.is_message && !u.has_completed;
    let all = dumps.iter().flat_map(|d| d.units.iter().filter(open).map(move |u| (d, u)));
    let Some((first_dump, first)) = all.min_by_key(|(_, u)| u.created_ns) else { return };
    let same = |d: &&Dump| d.units.iter().filter(open).any(|u| (u.group, u.sequence) == (first.group, first.sequence));
    let ranks: Vec<u32> = dumps.iter().filter(same).map(Dump::rank_or_first).collect();
    notes.push(format!(
        "{}: all ranks made collective {}, {}, but it had not ended on {} when the dumps were written; it is simulated as any other",
        groups.get(first.group).shown(),
        first.sequence,
        first_dump.told(first),
        ranks_shown(&ranks)
    ));
}

/// Notes on all dumps together.
pub(super) fn all_together(dumps: &[Dump], wait_for_calls: bool, notes: &mut Vec<String>) {
    let span_ns = |d: &Dump| {
        let mut kept = d.units.iter().filter(|u| u.keep).map(|u| u.created_ns);
        let first = kept.next().unwrap_or(0);
        kept.max().unwrap_or(first).saturating_sub(first)
    };
    let Some(longest) = dumps.iter().max_by_key(|d| span_ns(d)) else { return };
    let kept = |d: &Dump| {
        d.units.iter().filter(|u| u.keep).map(|u| d.calls_of(u).iter().filter(|c| c.keep).count()).sum::<usize>()
    };
    let n_calls: usize = dumps.iter().map(kept).sum();
    let n_dumps = if dumps.len() == 1 { "1 dump".to_string() } else { format!("{} dumps", dumps.len()) };
    let rule = if wait_for_calls {
        "Ranks wait for each call; what the recorded durations leave of the time between calls is compute"
    } else {
        "The host makes its calls when it made them and waits for none, as the recorder does not say what waits for a call; workload.wait_for_calls lets ranks wait for each"
    };
    notes.push(format!(
        "{n_dumps} with {n_calls} calls; the longest, {}, takes {:.1} us from its first call to its last. {rule}. What comes before the first call and after the last is not known. Times of calls are simulated",
        longest.path,
        span_ns(longest) as f64 / 1e3
    ));
    let sum = |count: fn(&Dump) -> u64| dumps.iter().map(count).sum::<u64>();
    let together = sum(|d| d.units.iter().filter(|u| u.keep && !u.is_message && u.calls.len() > 1).count() as u64);
    if together > 0 {
        notes.push(format!(
            "{together} time(s) several collectives are launched together; here they run one after the other"
        ));
    }
    let roots = sum(|d| {
        let kept = d.units.iter().filter(|u| u.keep).flat_map(|u| d.calls_of(u));
        kept.filter(|c| matches!(c.kind, Kind::Collective(CollectiveOp::Broadcast | CollectiveOp::Reduce))).count()
            as u64
    });
    if roots > 0 {
        notes.push(format!("{roots} broadcast(s) and reduction(s): the recorder does not say their root; the first rank of the group is taken"));
    }
    let open = sum(|d| d.n_open as u64);
    if open > 0 {
        notes.push(format!("{open} call(s) were about to be launched together with others; they are left out"));
    }
    let steps = sum(|d| d.n_clock_steps);
    if steps > 0 {
        notes.push(format!(
            "{steps} call(s) were made before the one before them by their machine's clock; they count as made with it"
        ));
    }
}
