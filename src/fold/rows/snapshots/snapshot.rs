//! Snapshots: the whole state of a partition at an instant, that is packets in flight and in queues, and the state of queue pairs. A snapshot has
//! local numbers, times relative to the instant, and sequence numbers relative to what is acknowledged. It can be read into other rows, at another
//! time.
//!
//! One pass over the rows both writes and reads (`snapshot_walk`). A snapshot holds everything that decides the future. It leaves out what no longer
//! matters (past deadlines, counters), so that a repeated pattern has an equal snapshot.
//!
//! Layer: fold/rows.

use super::snapshot_members::member;
use super::snapshot_packets;
use super::snapshot_walk::{Pen, RowNames, SnapshotWalk};
use crate::rows::advanced_rows::AdvancedRows;
use crate::rows::bytes::{NumberReader, NumberWriter};
use crate::rows::cc_state;
use crate::rows::part_hashes::PartHashes;
use crate::rows::partition_rows::PartitionRows;
use hyperfold_columns::{NEVER, PacketIdx, SHARED_HEADER, Tables};
use hyperfold_engine::cpu::{advance, nic};
use hyperfold_engine::grow;

/// Weights of a queue pair and of a packet in flight in a snapshot's nominal size (our choice: about their bytes).
const MEMBER_WEIGHT: u64 = 150;
const PACKET_WEIGHT: u64 = 38;

/// Writes the snapshot of a partition at `now` (ps). Returns it, and the partition's ancestors then. PRECONDITION: everything before `now` has
/// happened, and nothing at or after it. Pauses are written for rows with a coupled switch.
pub(crate) fn write(t: &mut Tables, names: RowNames, now: u64) -> (Vec<u8>, Vec<u32>) {
    let mut walk = SnapshotWalk {
        pen: NumberWriter(Vec::with_capacity(4096)),
        names,
        now,
        limit: u64::MAX,
        advanced: &[],
        packets: 0,
        ancestors: Vec::new(),
    };
    // A writer leaves every row unchanged.
    let _ = all(&mut walk, t);
    let members = (names.to.members - names.from.members) as u64;
    let mut bytes = walk.pen.0;
    bytes.extend_from_slice(&(MEMBER_WEIGHT * members + PACKET_WEIGHT * walk.packets).to_le_bytes());
    (bytes, walk.ancestors)
}

/// A hash of each part of the snapshot that [`write`] just wrote.
pub(crate) fn hash_parts(t: &mut Tables, names: RowNames, now: u64) -> PartHashes {
    let mut walk = SnapshotWalk {
        pen: PartHashes::default(),
        names,
        now,
        limit: u64::MAX,
        advanced: &[],
        packets: 0,
        ancestors: Vec::new(),
    };
    // A hashing pen, like a writer, leaves every row unchanged.
    let _ = all(&mut walk, t);
    walk.pen
}

/// The nominal size of snapshot `bytes`, computed from its numbers of queue pairs and packets. Actual sizes vary with values that no longer matter.
pub(crate) fn weight(bytes: &[u8]) -> u64 {
    bytes.last_chunk().map_or(0, |last| u64::from_le_bytes(*last))
}

/// Sets the rows, which are idle, to the snapshot `bytes`, as of `now` (ps). Counters do not change. `limit`: maximum number of packet records.
pub(crate) fn read(
    t: &mut Tables,
    bytes: &[u8],
    names: RowNames,
    now: u64,
    limit: u64,
) -> Result<(), grow::TooManyPackets> {
    read_advanced(t, bytes, names, now, limit, &[])
}

/// Sets the rows, as [`read`] does, but with queue pairs that have gone on by `advanced` since the snapshot.
pub(crate) fn read_advanced(
    t: &mut Tables,
    bytes: &[u8],
    names: RowNames,
    now: u64,
    limit: u64,
    advanced: &[Option<AdvancedRows>],
) -> Result<(), grow::TooManyPackets> {
    let mut walk =
        SnapshotWalk { pen: NumberReader(bytes), names, now, limit, advanced, packets: 0, ancestors: Vec::new() };
    all(&mut walk, t)?;
    for (m, row) in advanced.iter().enumerate() {
        if let Some(AdvancedRows { stream, n_packets, .. }) = row {
            // All other values were counted from this one, so it is moved last.
            let una = &mut t.flow_tx[names.rows.members[m].flow].snd_una;
            *una = stream.moved(*una, *n_packets);
        }
    }
    Ok(())
}

/// Reads the queue pairs of a snapshot, but no packets.
pub(crate) fn read_members(t: &mut Tables, bytes: &[u8], names: RowNames, now: u64) {
    let mut walk = SnapshotWalk {
        pen: NumberReader(bytes),
        names,
        now,
        limit: u64::MAX,
        advanced: &[],
        packets: 0,
        ancestors: Vec::new(),
    };
    for m in names.from.members..names.to.members {
        cc_state::catch_up(t, names.rows.members[m].flow, now);
        member(&mut walk, t, m);
    }
}

/// Removes all packets from the rows of `rows`, which are at `now` (ps): records return to their pools, transmitters become idle. Paused times are up to `now`
/// then, and [`read`] begins the pauses again.
pub(crate) fn clear(t: &mut Tables, rows: &PartitionRows, now: u64) {
    let (nics, own) = (t.exps[0].nic_len, t.exps[0].end_len);
    for end in rows.nics.iter().map(|n| n.end()).chain(rows.ports.iter().map(|p| p.end(nics))) {
        t.count_pause(end, t.open_pauses(end), true, now);
    }
    let free = |t: &mut Tables, head: PacketIdx| {
        let mut p = head;
        while p.is_some() {
            p = advance::return_record(t, p);
        }
    };
    for m in &rows.members {
        let held = std::mem::replace(&mut t.flow_rx[m.flow].held, PacketIdx::NONE);
        free(t, held);
    }
    let wires = rows.nics.iter().map(|n| n.end()).chain(rows.ends.iter().map(|&e| e.end(nics)));
    for end in wires {
        let wire = &mut t.wires[end];
        let head = wire.head;
        (wire.head, wire.tail, wire.n) = (PacketIdx::NONE, PacketIdx::NONE, 0);
        t.clocks[end.usize()] = NEVER;
        free(t, head);
    }
    for &p in &rows.ports {
        let row = &mut t.ports[p];
        let (head, frames) = (row.q_head, row.frame_head);
        (row.q_head, row.q_tail, row.q_bytes, row.busy) = (PacketIdx::NONE, PacketIdx::NONE, 0, 0);
        (row.frame_head, row.frame_tail, row.frames, row.paused) = (PacketIdx::NONE, PacketIdx::NONE, 0, 0);
        t.switches[row.switch_idx].congested_n -= u32::from(row.pausing != 0 || row.headroom_used != 0);
        (row.pausing, row.headroom_used) = (0, 0);
        t.clocks[p.end(nics).own_clock(own)] = NEVER;
        free(t, head);
        free(t, frames);
    }
    for &e in &rows.ends {
        t.shared[(SHARED_HEADER + e.0) as usize] = 0;
    }
    for &n in &rows.nics {
        let row = &mut t.nics[n];
        let head = row.ack_head;
        (row.ack_head, row.ack_tail) = (PacketIdx::NONE, PacketIdx::NONE);
        (row.busy_until, row.timer, row.rto, row.paused) = (NEVER, NEVER, NEVER, 0);
        free(t, head);
        nic::set_clock(t, n);
    }
}

/// Writes or reads all rows of the snapshot.
fn all<P: Pen>(walk: &mut SnapshotWalk<P>, t: &mut Tables) -> Result<(), grow::TooManyPackets> {
    let (from, to) = (walk.names.from, walk.names.to);
    for m in from.members..to.members {
        cc_state::catch_up(t, walk.names.rows.members[m].flow, walk.now);
        member(walk, t, m);
    }
    for m in from.members..to.members {
        snapshot_packets::held(walk, t, m)?;
    }
    for k in from.nics..to.nics {
        snapshot_packets::nic(walk, t, walk.names.rows.nics[k])?;
    }
    for k in from.ports..to.ports {
        snapshot_packets::port(walk, t, walk.names.rows.ports[k])?;
    }
    let nics = t.exps[0].nic_len;
    for k in from.nics..to.nics {
        snapshot_packets::wire(walk, t, walk.names.rows.nics[k].end())?;
    }
    for k in from.ends..to.ends {
        snapshot_packets::wire(walk, t, walk.names.rows.ends[k].end(nics))?;
    }
    if P::READS {
        for &n in &walk.names.rows.nics[from.nics..to.nics] {
            // The pool has the records that the next step needs at worst, as after every step.
            if t.nics[n].free_n < t.nics[n].worst {
                grow::grow_pool(t, n, walk.limit)?;
            }
            nic::set_clock(t, n);
        }
    }
    Ok(())
}
