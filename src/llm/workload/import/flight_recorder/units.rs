//! Entries as calls, of which several may be launched together.
//!
//! Layer: workload.
//!
//! The recorder writes an entry a call. Of calls that are launched together, in one group of NCCL's, it writes an entry each and then one for their end. They
//! share their number in the process group, and only the end has times.

use std::collections::BTreeMap;

use super::dump::{Dump, Kind, Launch, RecordedCall};
use super::entries::{DumpFile, Entry, What};
use super::groups::RecordedGroups;
use crate::collective::CollectiveOp;
use crate::workload::import::torch::calls::CallKind;
use crate::workload::import::{ImportError, MAX_BYTES};
use crate::workload::program::NameTable;

/// Makes the calls of a dump.
///
/// # Errors
/// Entries are missing between others, or calls that are launched together lack what a workload needs.
pub(super) fn dump(
    path: &str,
    rank: Option<u32>,
    file: DumpFile,
    groups: &mut RecordedGroups,
    names: &mut NameTable,
) -> Result<Dump, ImportError> {
    let bad = |problem: String| ImportError::path(path, problem);
    let entries = &file.entries;
    if let Some(pair) = entries.windows(2).find(|pair| pair[0].record_id.checked_add(1) != Some(pair[1].record_id)) {
        return Err(bad(format!(
            "record_id {} follows {}; a dump of all calls, not only of those that were active, would be right",
            pair[1].record_id, pair[0].record_id
        )));
    }
    let world_size = file.groups.values().flatten().max().map_or(0, |last| last + 1);
    let has_lost = entries.first().is_some_and(|e| e.record_id > 0);
    let mut out = Dump {
        path: path.to_string(),
        rank,
        world_size,
        has_lost,
        units: Vec::new(),
        calls: Vec::new(),
        n_open: 0,
        n_clock_steps: entries.windows(2).filter(|pair| pair[1].created_ns < pair[0].created_ns).count() as u64,
    };
    let mut index_of: Vec<Option<u32>> = vec![None; file.named.len()];
    for entry in entries {
        if index_of[entry.named as usize].is_none() {
            index_of[entry.named as usize] = Some(groups.of(&file, entry.named, rank).map_err(&bad)?);
        }
    }
    let group_of = |entry: &Entry| index_of[entry.named as usize].expect("each group of an entry was looked up");
    let mut units = Vec::new();
    // For each group, the entries of which more may follow that are launched with them.
    let mut open: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (i, entry) in entries.iter().enumerate() {
        let run = open.entry(group_of(entry)).or_default();
        let continues = run.last().is_some_and(|last| {
            let last = &entries[*last];
            (last.is_message, last.sequence) == (entry.is_message, entry.sequence)
        });
        if let What::End(composite) = entry.what {
            let run = std::mem::take(run);
            // The recorder lost the first of them, or all: calls that are launched together follow each other.
            let is_cut = has_lost && run.first().map_or(i == 0, |first| continues && *first == 0);
            match (is_cut, continues) {
                (true, _) => {}
                (false, true) => units.push((run, Some((i, composite)))),
                (false, false) => {
                    return Err(bad(format!(
                        "entry record_id {} ends calls that were launched together, which are not there (version {}); a newer PyTorch records them",
                        entry.record_id, file.version
                    )));
                }
            }
            continue;
        }
        if !continues {
            units.extend(alone(path, entries, run)?);
        }
        run.push(i);
    }
    for (_, mut run) in open {
        match run.len() {
            0 | 1 => units.extend(alone(path, entries, &mut run)?),
            n => out.n_open += n,
        }
    }
    // In the order of their launch.
    units.sort_by_key(|(run, end)| end.map_or(run[0], |(i, _)| i));
    for (run, end) in units {
        let last = &entries[end.map_or(run[0], |(i, _)| i)];
        let begin = out.calls.len();
        for i in run {
            let entry = &entries[i];
            let members = &groups.get(group_of(entry)).members;
            let call = call(entry, members, rank, names);
            out.calls.push(call.map_err(|why| bad(format!("entry record_id {}: {why}", entry.record_id)))?);
        }
        let group = group_of(last);
        if let Some((_, Some(op))) = end {
            let made = composite(op, &out.calls[begin..], groups.get(group).members.len());
            out.calls.truncate(begin);
            out.calls.push(made.map_err(|why| bad(format!("entry record_id {}: {why}", last.record_id)))?);
        }
        out.units.push(Launch {
            group,
            sequence: last.sequence,
            is_message: last.is_message,
            created_ns: last.created_ns,
            duration_ns: last.duration_ns,
            has_completed: last.has_completed,
            record_id: last.record_id,
            calls: begin as u32..out.calls.len() as u32,
            keep: true,
        });
    }
    Ok(out)
}

/// A run of entries without an end: one call, or calls whose end is missing.
#[expect(clippy::type_complexity, reason = "a run, and the end that it may have")]
fn alone(
    path: &str,
    entries: &[Entry],
    run: &mut Vec<usize>,
) -> Result<Option<(Vec<usize>, Option<(usize, Option<CollectiveOp>)>)>, ImportError> {
    let run = std::mem::take(run);
    match run.as_slice() {
        [] => Ok(None),
        [_] => Ok(Some((run, None))),
        [first, .., last] => Err(ImportError::path(
            path,
            format!(
                "entries record_id {} to {} have the same number, but `coalesced` does not follow; a whole dump would be right",
                entries[*first].record_id, entries[*last].record_id
            ),
        )),
    }
}

/// The call of an entry.
fn call(entry: &Entry, members: &[u32], rank: Option<u32>, names: &mut NameTable) -> Result<RecordedCall, String> {
    let What::Call { kind, name, in_bytes, out_bytes, ends } = &entry.what else {
        unreachable!("an end is no part of its own run");
    };
    let (in_bytes, out_bytes) = (*in_bytes, *out_bytes);
    let largest = in_bytes.max(out_bytes).max(1);
    let peer = || {
        let (own, other) = *ends;
        if rank.is_some_and(|rank| members.get(own as usize) != Some(&rank)) {
            return Err(format!("it says that its rank is member {own} of its group, whose ranks are {members:?}"));
        }
        if other == own || other as usize >= members.len() {
            return Err(format!("its other end is member {other} of a group of {} ranks", members.len()));
        }
        Ok(other)
    };
    let (kind, bytes) = match kind {
        CallKind::Send => (Kind::Send(peer()?), largest),
        CallKind::Recv => (Kind::Recv(peer()?), largest),
        CallKind::Collective(op) => {
            let bytes = match op {
                CollectiveOp::Barrier => 0,
                CollectiveOp::AllGather if out_bytes == 0 => in_bytes
                    .checked_mul(members.len() as u64)
                    .filter(|bytes| *bytes <= MAX_BYTES)
                    .ok_or_else(|| format!("{} ranks gather more than a petabyte", members.len()))?,
                CollectiveOp::AllGather => out_bytes,
                CollectiveOp::AllReduce | CollectiveOp::Broadcast | CollectiveOp::Reduce if in_bytes == 0 => out_bytes,
                _ => in_bytes,
            };
            // A call without data still waits for all members.
            (Kind::Collective(*op), if *op == CollectiveOp::Barrier { 0 } else { bytes.max(1) })
        }
    };
    Ok(RecordedCall { kind, bytes, in_bytes, name: names.of(name), keep: true })
}

/// The collective that broadcasts or reductions make up: one from each member, or to each.
fn composite(op: CollectiveOp, calls: &[RecordedCall], members: usize) -> Result<RecordedCall, String> {
    let part = if op == CollectiveOp::AllGather { CollectiveOp::Broadcast } else { CollectiveOp::Reduce };
    if calls.len() != members || calls.iter().any(|c| c.kind != Kind::Collective(part)) {
        return Err(format!(
            "it ends {} calls as one {op:?} of {members} ranks; one {part:?} for each rank would be right",
            calls.len()
        ));
    }
    let bytes: u64 = calls.iter().map(|c| c.bytes).sum();
    let in_bytes = if op == CollectiveOp::AllGather { 0 } else { bytes };
    Ok(RecordedCall { kind: Kind::Collective(op), bytes, in_bytes, name: calls[0].name, keep: true })
}
