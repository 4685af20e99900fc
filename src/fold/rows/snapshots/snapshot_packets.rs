//! Writes or reads packets in a snapshot: in queues of NICs and switch ports, on wires, and held at receivers; and the rows that hold them.
//!
//! Layer: fold/rows. A reader takes packet records from the pools of their senders.

use bytemuck::Zeroable;

use super::snapshot_members::telemetry;
use super::snapshot_walk::{Pen, SnapshotWalk};
use crate::rows::advanced_rows::AdvancedRows;
use crate::rows::key_parts::KeyPart;
use hyperfold_columns::{
    EndOwner, FRAME_BYTES, FlowIdx, INT_TX_UNIT, LinkEndIdx, NEVER, NicIdx, Packet, PacketDetails, PacketIdx, PortIdx,
    SHARED_HEADER, SwitchIdx, Tables, cc, kind, meta, mode,
};
use hyperfold_engine::cpu::lists::wire_push;
use hyperfold_engine::cpu::switch::egress;
use hyperfold_engine::grow;

/// Writes or reads the records that wait at the receiver to return to their pool.
pub(super) fn held<P: Pen>(walk: &mut SnapshotWalk<P>, t: &mut Tables, m: usize) -> Result<(), grow::TooManyPackets> {
    let f = walk.names.rows.members[m].flow;
    let n = chain_len(walk, t, t.flow_rx[f].held);
    if P::READS {
        t.flow_rx[f].held = chain(walk, t, f, n)?;
    }
    Ok(())
}

/// Writes or reads the length of a chain of empty records.
fn chain_len<P: Pen>(walk: &mut SnapshotWalk<P>, t: &Tables, head: PacketIdx) -> u64 {
    let mut n = 0;
    let mut p = head;
    while !P::READS && p.is_some() {
        n += 1;
        p = t.packets[p].next;
    }
    walk.word(n)
}

fn chain<P: Pen>(
    walk: &mut SnapshotWalk<P>,
    t: &mut Tables,
    f: FlowIdx,
    n: u64,
) -> Result<PacketIdx, grow::TooManyPackets> {
    let mut head = PacketIdx::NONE;
    for _ in 0..n {
        let p = record(walk, t, f)?;
        t.packets[p].next = head;
        t.packets[p].flow = f;
        t.packets[p].meta = kind::DATA << meta::KIND_SHIFT;
        head = p;
    }
    Ok(head)
}

/// A free record from the pool of queue pair `f`'s sender.
fn record<P: Pen>(walk: &mut SnapshotWalk<P>, t: &mut Tables, f: FlowIdx) -> Result<PacketIdx, grow::TooManyPackets> {
    let n = t.flow_tx[f].nic;
    if t.nics[n].free_head.is_none() {
        grow::grow_pool(t, n, walk.limit)?;
    }
    let row = &mut t.nics[n];
    let p = row.free_head;
    row.free_head = t.packets[p].next;
    row.free_n -= 1;
    Ok(p)
}

pub(super) fn nic<P: Pen>(walk: &mut SnapshotWalk<P>, t: &mut Tables, n: NicIdx) -> Result<(), grow::TooManyPackets> {
    let mut row = t.nics[n];
    walk.pen.part(KeyPart::Transmitters);
    row.busy_until = walk.time(row.busy_until);
    if row.busy_until != NEVER {
        walk.lineage(&mut row.busy_d);
    }
    row.timer = walk.time(row.timer);
    if row.timer != NEVER {
        walk.lineage(&mut row.timer_d);
    }
    if walk.has_pauses() {
        let before = walk.pen.part(KeyPart::Coupled);
        row.paused = paused(walk, t, n.end(), row.paused);
        walk.pen.part(before);
    }
    row.rr = walk.half(row.rr);
    row.qp_n = walk.half(row.qp_n);
    row.rto = NEVER;
    for k in 0..row.qp_n {
        let slot = (row.flow_first + k).usize();
        let m = if P::READS { 0 } else { walk.names.member[t.order[slot].usize()] as usize - walk.names.from.members };
        let m = walk.word(m as u64) as usize + walk.names.from.members;
        let f = walk.names.rows.members[m].flow;
        t.order[slot] = f;
        // No deadline lies before this. A queue pair outside the round-robin order has no deadline that matters.
        row.rto = row.rto.min(t.flow_tx[f].rto_at);
    }
    if P::READS {
        row.free_head = t.nics[n].free_head;
        t.nics[n] = row;
    }
    walk.pen.part(KeyPart::Queues);
    let (head, tail, _) = list(walk, t, row.ack_head, false)?;
    if P::READS {
        (t.nics[n].ack_head, t.nics[n].ack_tail) = (head, tail);
    }
    Ok(())
}

pub(super) fn port<P: Pen>(walk: &mut SnapshotWalk<P>, t: &mut Tables, p: PortIdx) -> Result<(), grow::TooManyPackets> {
    if walk.has_pauses() {
        pauses(walk, t, p)?;
    }
    let e = t.exps[0];
    let mut row = t.ports[p];
    // A transmission whose end nothing waited for.
    let has_ended = row.q_head.is_none() && row.busy_until < walk.now;
    walk.pen.part(KeyPart::Transmitters);
    row.busy = walk.half(if has_ended { 0 } else { row.busy });
    if row.busy != 0 {
        row.busy_until = walk.near(row.busy_until, walk.now);
        walk.lineage(&mut row.busy_d);
    }
    if e.cc == cc::HPCC {
        walk.pen.part(KeyPart::Phases);
        let (from_ps, from_bytes) = t.fold_hints.counts_from(p);
        walk.word((row.tx_bytes - from_bytes) % (u64::from(INT_TX_UNIT) * u64::from(e.int_multi)));
        if !t.fold_hints.telemetry_from.is_empty() {
            walk.word((walk.now - from_ps) % 1000);
        }
    }
    if e.modes & mode::LINKS != 0 {
        let since = if row.q_bytes == 0 { walk.now } else { row.q_since };
        row.q_since = walk.near(since, walk.now);
    }
    walk.pen.part(KeyPart::Queues);
    let (head, tail, bytes) = list(walk, t, row.q_head, true)?;
    if P::READS {
        (row.q_head, row.q_tail, row.q_bytes) = (head, tail, bytes);
        row.max_q = row.max_q.max(bytes);
        t.ports[p] = row;
        let clock = egress::completion_time(t, p);
        t.clocks[p.end(e.nic_len).own_clock(e.end_len)] = clock;
    }
    Ok(())
}

/// Writes or reads a list of packets. `queued`: it is at a switch, where its packets count for their ingress. Returns its ends and its bytes.
fn list<P: Pen>(
    walk: &mut SnapshotWalk<P>,
    t: &mut Tables,
    head: PacketIdx,
    queued: bool,
) -> Result<(PacketIdx, PacketIdx, u32), grow::TooManyPackets> {
    let (mut first, mut last, mut bytes) = (PacketIdx::NONE, PacketIdx::NONE, 0);
    let mut p = head;
    loop {
        let more = walk.word(u64::from(p.is_some() && !P::READS));
        if more == 0 {
            return Ok((first, last, bytes));
        }
        let added = packet(walk, t, p)?;
        if queued {
            let end = if P::READS {
                0
            } else {
                walk.names.end[t.packets[added].in_port.usize()] as usize - walk.names.from.ends
            };
            let end = walk.word(end as u64) as usize + walk.names.from.ends;
            if P::READS {
                let port = walk.names.rows.ends[end];
                t.packets[added].in_port = port;
                let word = (SHARED_HEADER + port.0) as usize;
                t.shared[word] = t.shared[word].wrapping_add(t.packets[added].meta & meta::WIRE_MASK);
            }
        }
        if P::READS {
            t.packets[added].next = PacketIdx::NONE;
            match last {
                PacketIdx::NONE => first = added,
                _ => t.packets[last].next = added,
            }
            last = added;
            bytes += t.packets[added].meta & meta::WIRE_MASK;
        } else {
            p = t.packets[p].next;
        }
    }
}

/// Writes or reads the packets in flight towards link end `end`.
pub(super) fn wire<P: Pen>(
    walk: &mut SnapshotWalk<P>,
    t: &mut Tables,
    end: LinkEndIdx,
) -> Result<(), grow::TooManyPackets> {
    walk.pen.part(KeyPart::InFlight);
    let mut p = t.wires[end].head;
    loop {
        let code = if P::READS || p.is_none() { 0 } else { 1 + u64::from(is_frame(t, p)) };
        let placed = match walk.word(code) {
            0 => return Ok(()),
            FRAME => frame_in_flight(walk, t, end, p)?,
            _ => packet(walk, t, p)?,
        };
        let (mut time, mut d) = (t.packets[placed].t, t.details[placed].d);
        time = walk.near(time, walk.now);
        walk.lineage(&mut d);
        if P::READS {
            (t.packets[placed].t, t.details[placed].d) = (time, d);
            wire_push(t, end, placed);
        } else {
            p = t.packets[placed].next;
        }
    }
}

/// Code of a pause frame in the place of a packet in flight.
const FRAME: u64 = 2;

fn is_frame(t: &Tables, p: PacketIdx) -> bool {
    (t.packets[p].meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::FRAME
}

/// Writes or reads whether `end` is paused. If it reads so, the pause begins now, as what was before is counted ([`snapshot::clear`](super::snapshot::clear)).
fn paused<P: Pen>(walk: &mut SnapshotWalk<P>, t: &mut Tables, end: LinkEndIdx, is: u32) -> u32 {
    let is = walk.half(is);
    if P::READS {
        t.count_pause(end, is, false, walk.now);
    }
    is
}

/// Writes or reads the pauses of port `p` in both directions, and its waiting frames. Headroom does not count as held by an ingress.
fn pauses<P: Pen>(walk: &mut SnapshotWalk<P>, t: &mut Tables, p: PortIdx) -> Result<(), grow::TooManyPackets> {
    let mut row = t.ports[p];
    walk.pen.part(KeyPart::Coupled);
    row.paused = paused(walk, t, p.end(t.exps[0].nic_len), row.paused);
    row.pausing = walk.half(row.pausing);
    row.headroom_used = walk.half(row.headroom_used);
    row.frames = walk.half(row.frames);
    let mut next_frame = row.frame_head;
    for k in 0..row.frames {
        let resume = if P::READS { 0 } else { t.packets[next_frame].meta & meta::RESUME };
        let resume = walk.half(resume);
        if P::READS {
            let frame = frame_record(walk, t, row.switch_idx, resume)?;
            if k == 0 {
                row.frame_head = frame;
            } else {
                t.packets[row.frame_tail].next = frame;
            }
            row.frame_tail = frame;
        } else {
            next_frame = t.packets[next_frame].next;
        }
    }
    if P::READS {
        let word = (SHARED_HEADER + p.0) as usize;
        t.shared[word] = t.shared[word].wrapping_sub(row.headroom_used);
        t.switches[row.switch_idx].congested_n += u32::from(row.pausing != 0 || row.headroom_used != 0);
        t.ports[p] = row;
    }
    Ok(())
}

/// A record of a pause or resume frame, from the pool of switch `s`.
fn frame_record<P: Pen>(
    walk: &SnapshotWalk<P>,
    t: &mut Tables,
    s: SwitchIdx,
    resume: u32,
) -> Result<PacketIdx, grow::TooManyPackets> {
    if t.switches[s].free_head.is_none() {
        grow::grow_frames(t, s, walk.limit)?;
    }
    let row = &mut t.switches[s];
    let p = row.free_head;
    row.free_head = t.packets[p].next;
    row.free_n -= 1;
    let mut frame = Packet { in_port: PortIdx::NONE, next: PacketIdx::NONE, ..Packet::zeroed() };
    frame.set_frame_switch(s);
    frame.set_records(PacketIdx::NONE);
    frame.meta = FRAME_BYTES | (kind::FRAME << meta::KIND_SHIFT) | resume;
    t.packets[p] = frame;
    Ok(p)
}

/// Writes pause frame `p` in flight towards `end`, or reads it into a new record. The frame belongs to the switch that it comes from.
fn frame_in_flight<P: Pen>(
    walk: &mut SnapshotWalk<P>,
    t: &mut Tables,
    end: LinkEndIdx,
    p: PacketIdx,
) -> Result<PacketIdx, grow::TooManyPackets> {
    let resume = if P::READS { 0 } else { t.packets[p].meta & meta::RESUME };
    let resume = walk.half(resume);
    if !P::READS {
        return Ok(p);
    }
    let nics = t.exps[0].nic_len;
    let sender = match end.owner(nics) {
        EndOwner::Nic(n) => t.nics[n].peer,
        EndOwner::Port(port) => t.ports[port].peer,
    };
    // Only switches send frames.
    let s = sender.port(nics).map_or(SwitchIdx(0), |port| t.ports[port].switch_idx);
    frame_record(walk, t, s, resume)
}

/// Writes packet `p`, or reads it into a new record.
fn packet<P: Pen>(walk: &mut SnapshotWalk<P>, t: &mut Tables, p: PacketIdx) -> Result<PacketIdx, grow::TooManyPackets> {
    let from = walk.names.from.members;
    let m = if P::READS { 0 } else { walk.names.member[t.packets[p].flow.usize()] as usize - from };
    let m = walk.word(m as u64) as usize + from;
    let f = walk.names.rows.members[m].flow;
    let target = if P::READS { record(walk, t, f)? } else { p };
    walk.packets += 1;
    let mut pk = if P::READS { Packet { flow: f, ..Packet::zeroed() } } else { t.packets[p] };
    let mut details = if P::READS { PacketDetails::zeroed() } else { t.details[p] };
    let (tx, rx) = (t.flow_tx[f], t.flow_rx[f]);
    pk.meta = walk.half(pk.meta);
    let begins = walk.near(details.seq, tx.snd_una);
    details.seq = begins;
    let moving = walk.advanced.get(m).copied().flatten();
    if let Some(AdvancedRows { stream, n_packets, .. }) = moving {
        details.seq = stream.moved(begins, n_packets);
    }
    let data = (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::DATA;
    let path = if data { tx.path_first } else { rx.path_first };
    pk.path = path.wrapping_add(walk.half(pk.path.wrapping_sub(path)));
    if data {
        pk.payload = walk.half(pk.payload);
        if let Some(AdvancedRows { stream, n_packets, .. }) = moving {
            let payload = (stream.moved(begins + u64::from(pk.payload), n_packets) - details.seq) as u32;
            pk.meta = (pk.meta & !meta::WIRE_MASK) | (payload + t.exps[0].data_overhead);
            pk.payload = payload;
        }
    } else {
        let n = chain_len(walk, t, pk.records());
        if P::READS {
            pk.set_records(chain(walk, t, f, n)?);
        }
    }
    if t.exps[0].measures_rtts() {
        details.sent_at = walk.near(details.sent_at, walk.now);
    }
    if t.exps[0].cc == cc::HPCC {
        let slot = t.flow_tx.len() + target.usize();
        let mut int = t.ints[slot];
        let hops = ((pk.meta >> meta::INT_SHIFT) & meta::INT_MASK) as usize;
        telemetry(walk, t, f, hops, &mut int);
        if P::READS {
            t.ints[slot] = int;
        }
    }
    if P::READS {
        (t.packets[target], t.details[target]) = (pk, details);
    }
    Ok(target)
}
