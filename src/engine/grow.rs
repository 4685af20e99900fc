//! Growth of packet pools: it happens between steps, never inside one.

use crate::cpu::switch::whole_switch;
use hyperfold_columns::{IntVec, NicIdx, Packet, PacketIdx, SHARED_FLAGS, SwitchIdx, Tables, flag, status};

/// Number of records that a switch gets at once when it has none left for a pause frame (our choice).
const MORE_FRAMES: u32 = 64;

/// An experiment needs more packets in flight than the host has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "needs {wanted} packets in flight at once, more than the {limit} this run has room for: a smaller network, fewer flows, or congestion control would need fewer"
)]
pub struct TooManyPackets {
    /// Packet records that it would have.
    pub wanted: u64,
    /// Packet records that it may have.
    pub limit: u64,
}

/// Grows each pool that is too small to what it needs and some more, and lets the experiment run on.
///
/// PRECONDITION: `t` holds one experiment, stopped with `NEEDS_PACKETS`.
pub fn grow(t: &mut Tables, limit: u64) -> Result<(), TooManyPackets> {
    for n in 0..t.nics.len() {
        let row = &t.nics[n];
        if row.free_n < row.worst {
            let add = (2 * row.worst - row.free_n).max(64);
            let (head, added) = add_records(t, row.free_head, add, limit)?;
            t.nics[n].free_head = head;
            t.nics[n].free_n += added;
        }
    }
    for s in 0..t.switches.len() {
        let row = &t.switches[s];
        // A switch that has finished this step needs no frames for it.
        if row.independent & whole_switch::DONE == 0 && row.free_n < row.need {
            let (head, added) = add_records(t, row.free_head, row.need - row.free_n + 64, limit)?;
            t.switches[s].free_head = head;
            t.switches[s].free_n += added;
        }
    }
    t.shared[SHARED_FLAGS as usize] &= !(flag::NEEDS_FRAMES | flag::NEEDS_PACKETS);
    t.exps[0].status = status::RUNNING;
    Ok(())
}

/// Adds twice the records that a worst-case step of NIC `n` needs to its pool.
pub fn grow_pool(t: &mut Tables, n: NicIdx, limit: u64) -> Result<(), TooManyPackets> {
    let row = &t.nics[n];
    let (head, added) = add_records(t, row.free_head, (2 * row.worst).max(64), limit)?;
    t.nics[n].free_head = head;
    t.nics[n].free_n += added;
    Ok(())
}

/// Adds `MORE_FRAMES` records for pause frames to the pool of switch `s`.
pub fn grow_frames(t: &mut Tables, s: SwitchIdx, limit: u64) -> Result<(), TooManyPackets> {
    let (head, added) = add_records(t, t.switches[s].free_head, MORE_FRAMES, limit)?;
    t.switches[s].free_head = head;
    t.switches[s].free_n += added;
    Ok(())
}

/// Puts `add` new free records in front of the list `head`. Returns the new head and `add`.
fn add_records(t: &mut Tables, head: PacketIdx, add: u32, limit: u64) -> Result<(PacketIdx, u32), TooManyPackets> {
    let first = PacketIdx::new(t.packets.len());
    let wanted = first.0 as u64 + add as u64;
    if wanted > limit {
        return Err(TooManyPackets { wanted, limit });
    }
    t.packets.change(|rows| {
        rows.extend((0..add).map(|k| {
            let next = if k + 1 < add { first + k + 1 } else { head };
            Packet { next, ..bytemuck::Zeroable::zeroed() }
        }));
    });
    let n = t.packets.len();
    t.details.change(|rows| rows.resize(n, bytemuck::Zeroable::zeroed()));
    if !t.ints.is_empty() {
        let n = t.flow_tx.len() + n;
        t.ints.change(|rows| rows.resize(n, IntVec { hop: [0; 5] }));
        t.exps[0].int_len = t.ints.len() as u32;
    }
    t.exps[0].packet_len = t.packets.len() as u32;
    Ok((first, add))
}

/// Fills the pool of each NIC before the first step; `per_nic` has the number of records for each.
pub fn first_fill(t: &mut Tables, per_nic: &[u32]) {
    // All at once: a table that grows is there twice for a while.
    let total = per_nic.iter().map(|&count| count as usize).sum();
    t.packets.change(|rows| rows.reserve_exact(total));
    t.details.change(|rows| rows.reserve_exact(total));
    if !t.ints.is_empty() {
        t.ints.change(|rows| rows.reserve_exact(total));
    }
    for (n, &count) in per_nic.iter().enumerate() {
        if count > 0 {
            let (head, added) = add_records(t, PacketIdx::NONE, count, u64::from(u32::MAX))
                .expect("a first fill is far below the number of indices");
            t.nics[n].free_head = head;
            t.nics[n].free_n = added;
        }
    }
}
