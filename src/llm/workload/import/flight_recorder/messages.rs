//! Whether each send has its receive, and which rank lacks which.
//!
//! Layer: workload.
//!
//! The k-th send from a rank to another one in a group belongs to the k-th receive there. Where a recorder was full, its first calls are gone; then messages are
//! counted from the last one, which needs that all of them have ended.

use std::collections::BTreeMap;

use super::dump::{Dump, Kind};
use super::groups::RecordedGroups;
use super::notes::Missing;
use crate::workload::import::ImportError;

/// A message of a dump: its unit, and its call.
type Place = (u32, u32);

/// Sends and receives of two members of a group, in one direction.
#[derive(Default)]
struct Ends {
    sends: Vec<Place>,
    receives: Vec<Place>,
}

/// Leaves out messages of which only one end is there. Returns which ranks lack which.
///
/// # Errors
/// Both ends of a message have different sizes, or cannot be told.
pub(super) fn agree(
    path: &str,
    dumps: &mut [Dump],
    groups: &RecordedGroups,
    notes: &mut Vec<String>,
) -> Result<Vec<Missing>, ImportError> {
    let mut found = Vec::new();
    let mut n_lost = 0u64;
    for ((index, from, to), ends) in pairs(dumps, groups) {
        let group = groups.get(index);
        let (n_sent, n_received) = (ends.sends.len(), ends.receives.len());
        let n_common = n_sent.min(n_received);
        let is_full = dumps[from as usize].has_lost || dumps[to as usize].has_lost;
        let ended = |rank: u32, list: &[Place]| {
            list.iter().all(|(unit, _)| dumps[rank as usize].units[*unit as usize].has_completed)
        };
        if is_full && n_sent != n_received && !(ended(from, &ends.sends) && ended(to, &ends.receives)) {
            let problem = format!(
                "{}: rank {from} has {n_sent} sends to rank {to}, which has {n_received} receives; a recorder was full and some have not ended, so it cannot be told which belong together. A larger TORCH_NCCL_TRACE_BUFFER_SIZE would be right",
                group.shown()
            );
            return Err(ImportError::graph(path, problem));
        }
        let (skip_sends, skip_receives) = if is_full { (n_sent - n_common, n_received - n_common) } else { (0, 0) };
        let bytes = |rank: u32, place: &Place| dumps[rank as usize].calls[place.1 as usize].bytes;
        for k in 0..n_common {
            let (sent, received) =
                (bytes(from, &ends.sends[skip_sends + k]), bytes(to, &ends.receives[skip_receives + k]));
            if sent != received {
                let problem = format!(
                    "{}: send {n} of rank {from} to rank {to} has {sent} bytes, but receive {n} there has {received}; both ends of one size would be right",
                    group.shown(),
                    n = k + 1
                );
                return Err(ImportError::graph(path, problem));
            }
        }
        if is_full {
            n_lost += (skip_sends + skip_receives) as u64;
        } else if n_sent != n_received {
            let (rank, other, what, list) = if n_sent > n_received {
                (to, from, "receive", &ends.sends)
            } else {
                (from, to, "send", &ends.receives)
            };
            let waiting = &dumps[other as usize];
            let unit = &waiting.units[list[n_common].0 as usize];
            let toward = if what == "receive" { "from" } else { "to" };
            found.push(Missing {
                at_ns: unit.created_ns,
                text: format!(
                    "{}: rank {rank} did not make {what} {} {toward} rank {other}, which made the other end, record_id {}, of {} bytes",
                    group.shown(),
                    n_common + 1,
                    unit.record_id,
                    waiting.calls[list[n_common].1 as usize].bytes
                ),
                n_left_out: n_sent.abs_diff(n_received) as u64,
            });
        }
        for (rank, list, skip) in [(from, &ends.sends, skip_sends), (to, &ends.receives, skip_receives)] {
            let dump = &mut dumps[rank as usize];
            for (_, call) in list[..skip].iter().chain(&list[skip + n_common..]) {
                dump.calls[*call as usize].keep = false;
            }
        }
    }
    for dump in dumps.iter_mut() {
        for i in 0..dump.units.len() {
            let any = dump.calls_of(&dump.units[i]).iter().any(|c| c.keep);
            dump.units[i].keep &= any;
        }
    }
    if n_lost > 0 {
        notes.push(format!(
            "a recorder was full; {n_lost} send(s) and receive(s) are left out whose other end is gone. Messages are counted from the last one"
        ));
    }
    Ok(found)
}

/// All messages by group, sender and receiver.
fn pairs(dumps: &[Dump], groups: &RecordedGroups) -> BTreeMap<(u32, u32, u32), Ends> {
    let mut pairs: BTreeMap<(u32, u32, u32), Ends> = BTreeMap::new();
    for (rank, dump) in dumps.iter().enumerate() {
        let rank = rank as u32;
        for (i, unit) in dump.units.iter().enumerate().filter(|(_, unit)| unit.keep) {
            let members = &groups.get(unit.group).members;
            for c in unit.calls.clone() {
                let place = (i as u32, c);
                match dump.calls[c as usize].kind {
                    Kind::Send(to) => {
                        pairs.entry((unit.group, rank, members[to as usize])).or_default().sends.push(place);
                    }
                    Kind::Recv(from) => {
                        pairs.entry((unit.group, members[from as usize], rank)).or_default().receives.push(place);
                    }
                    Kind::Collective(_) => {}
                }
            }
        }
    }
    pairs
}
