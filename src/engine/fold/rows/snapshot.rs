//! The whole state of a partition at an instant: packets in flight and in queues, and the state of queue pairs. It is
//! written with local numbers, times relative to the instant, and sequence numbers relative to what is acknowledged. It
//! can be read into other rows, at another time.
//!
//! One walk over the rows both writes and reads, so the two cannot differ. A snapshot holds everything that decides the
//! future. It leaves out what no longer matters (past deadlines, counters), so that a repeated pattern has an equal
//! snapshot.
//!
//! Layer: fold/rows.

use crate::columns::{
    FlowRx, FlowTx, INT_TX_UNIT, IntVec, LINEAGE_WORDS, Lineage, NEVER, NONE, Packet, SHARED_HEADER, Tables, cc, kind,
    meta, mode, qp,
};
use crate::engine::cpu::lists::wire_push;
use crate::engine::cpu::{advance, egress, nic};
use crate::engine::fold::rows::advanced_rows::AdvancedRows;
use crate::engine::fold::rows::bytes::{NumberReader, NumberWriter};
use crate::engine::fold::rows::cc_state;
use crate::engine::fold::rows::partition_rows::{PartitionRows, RowCounts};
use crate::engine::grow;

/// Writes numbers, or reads them.
trait Pen {
    const READS: bool;
    /// Writes `x`, or returns what was written in its place.
    fn word(&mut self, x: u64) -> u64;
}

impl Pen for NumberWriter {
    const READS: bool = false;

    #[inline]
    fn word(&mut self, x: u64) -> u64 {
        self.number(x);
        x
    }
}

impl Pen for NumberReader<'_> {
    const READS: bool = true;

    /// 0 where the bytes have ended.
    #[inline]
    fn word(&mut self, _: u64) -> u64 {
        self.number().unwrap_or(0)
    }
}

/// What local numbers stand for: the rows of a partition, or of the range of them that a snapshot was written of.
#[derive(Clone, Copy)]
pub struct RowNames<'a> {
    pub rows: &'a PartitionRows,
    /// The range of the partition's rows: those that had joined when the snapshot was written.
    pub from: RowCounts,
    pub to: RowCounts,
    /// Of each queue pair its place among the members; of each switch port its place among the ends.
    pub member: &'a [u32],
    /// The queue pair of each flow number.
    pub flow: &'a [u32],
    pub end: &'a [u32],
}

/// What a queue pair and a packet in flight add to a snapshot's weight (our choice: about their bytes).
const MEMBER_WEIGHT: u64 = 150;
const PACKET_WEIGHT: u64 = 38;

/// The snapshot of a partition at `now`, and its ancestors then. PRECONDITION: everything before `now` has happened,
/// nothing at or after it; nothing is paused.
pub fn write(t: &mut Tables, names: RowNames, now: u64) -> (Vec<u8>, Vec<u32>) {
    let mut walk = SnapshotWalk {
        pen: NumberWriter(Vec::with_capacity(4096)),
        names,
        now,
        limit: u64::MAX,
        advanced: &[],
        packets: 0,
        ancestors: Vec::new(),
    };
    // A writer leaves every row as it was.
    let _ = walk.all(t);
    let members = (names.to.members - names.from.members) as u64;
    let mut bytes = walk.pen.0;
    bytes.extend_from_slice(&(MEMBER_WEIGHT * members + PACKET_WEIGHT * walk.packets).to_le_bytes());
    (bytes, walk.ancestors)
}

/// The nominal size of snapshot `bytes`, from its numbers of queue pairs and packets. Actual sizes vary with numbers
/// that no longer matter.
pub fn weight(bytes: &[u8]) -> u64 {
    bytes.last_chunk().map_or(0, |last| u64::from_le_bytes(*last))
}

/// Puts the rows, which are idle, into the snapshot `bytes` as of `now`. Counters stay as they are. `limit`: most
/// packet records.
pub fn read(t: &mut Tables, bytes: &[u8], names: RowNames, now: u64, limit: u64) -> Result<(), grow::TooManyPackets> {
    read_advanced(t, bytes, names, now, limit, &[])
}

/// As [`read`], where queue pairs went on meanwhile.
pub fn read_advanced(
    t: &mut Tables,
    bytes: &[u8],
    names: RowNames,
    now: u64,
    limit: u64,
    advanced: &[Option<AdvancedRows>],
) -> Result<(), grow::TooManyPackets> {
    let mut walk =
        SnapshotWalk { pen: NumberReader(bytes), names, now, limit, advanced, packets: 0, ancestors: Vec::new() };
    walk.all(t)?;
    for (m, row) in advanced.iter().enumerate() {
        if let Some(AdvancedRows { stream, by, .. }) = row {
            // Everything else was counted from this until now.
            let una = &mut t.flow_tx[names.rows.members[m].flow as usize].snd_una;
            *una = stream.moved(*una, *by);
        }
    }
    Ok(())
}

/// Reads the queue pairs of a snapshot, and no packets.
pub fn read_members(t: &mut Tables, bytes: &[u8], names: RowNames, now: u64) {
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
        walk.member(t, m);
    }
}

/// Removes all packets from the rows of `rows`: records return to their pools, transmitters become idle.
pub fn clear(t: &mut Tables, rows: &PartitionRows) {
    let (nics, own) = (t.exps[0].nic_len, t.exps[0].end_len);
    let free = |t: &mut Tables, head: u32| {
        let mut p = head;
        while p != NONE {
            p = advance::return_record(t, p);
        }
    };
    for m in &rows.members {
        let held = std::mem::replace(&mut t.flow_rx[m.flow as usize].held, NONE);
        free(t, held);
    }
    let wires = rows.nics.iter().copied().chain(rows.ends.iter().map(|e| nics + e));
    for end in wires {
        let wire = &mut t.wires[end as usize];
        let head = wire.head;
        (wire.head, wire.tail, wire.n) = (NONE, NONE, 0);
        t.clocks[end as usize] = NEVER;
        free(t, head);
    }
    for &p in &rows.ports {
        let row = &mut t.ports[p as usize];
        let head = row.q_head;
        (row.q_head, row.q_tail, row.q_bytes, row.busy) = (NONE, NONE, 0, 0);
        t.clocks[(own + nics + p) as usize] = NEVER;
        free(t, head);
    }
    for &e in &rows.ends {
        t.shared[(SHARED_HEADER + e) as usize] = 0;
    }
    for &n in &rows.nics {
        let row = &mut t.nics[n as usize];
        let head = row.ack_head;
        (row.ack_head, row.ack_tail) = (NONE, NONE);
        (row.busy_until, row.timer, row.rto) = (NEVER, NEVER, NEVER);
        free(t, head);
        nic::set_clock(t, n);
    }
}

struct SnapshotWalk<'a, P> {
    pen: P,
    names: RowNames<'a>,
    now: u64,
    limit: u64,
    /// How far queue pairs went on since the snapshot was written; empty: none did.
    advanced: &'a [Option<AdvancedRows<'a>>],
    /// Packets met so far.
    packets: u64,
    /// Flow numbers met that belong to no member, while writing.
    ancestors: Vec<u32>,
}

impl<P: Pen> SnapshotWalk<'_, P> {
    fn all(&mut self, t: &mut Tables) -> Result<(), grow::TooManyPackets> {
        let (from, to) = (self.names.from, self.names.to);
        for m in from.members..to.members {
            cc_state::catch_up(t, self.names.rows.members[m].flow, self.now);
            self.member(t, m);
        }
        for m in from.members..to.members {
            self.held(t, m)?;
        }
        for k in from.nics..to.nics {
            self.nic(t, self.names.rows.nics[k])?;
        }
        for k in from.ports..to.ports {
            self.port(t, self.names.rows.ports[k])?;
        }
        let nics = t.exps[0].nic_len;
        for k in from.nics..to.nics {
            self.wire(t, self.names.rows.nics[k])?;
        }
        for k in from.ends..to.ends {
            self.wire(t, nics + self.names.rows.ends[k])?;
        }
        if P::READS {
            for &n in &self.names.rows.nics[from.nics..to.nics] {
                // As after a step: the records that the next step may need at worst are there.
                if t.nics[n as usize].free_n < t.nics[n as usize].worst {
                    grow::grow_pool(t, n as usize, self.limit)?;
                }
                nic::set_clock(t, n);
            }
        }
        Ok(())
    }

    fn word(&mut self, x: u64) -> u64 {
        self.pen.word(x)
    }

    fn half(&mut self, x: u32) -> u32 {
        self.pen.word(u64::from(x)) as u32
    }

    /// A number near `from`.
    fn near(&mut self, x: u64, from: u64) -> u64 {
        let d = x.wrapping_sub(from) as i64;
        let z = self.pen.word(((d << 1) ^ (d >> 63)) as u64);
        from.wrapping_add((z >> 1) ^ (z & 1).wrapping_neg())
    }

    fn time(&mut self, x: u64) -> u64 {
        if self.word(u64::from(x == NEVER)) != 0 { NEVER } else { self.near(x, self.now) }
    }

    /// A time before which something must not happen. All past times are equivalent.
    fn not_before(&mut self, x: u64) -> u64 {
        self.now.wrapping_add(self.pen.word(x.saturating_sub(self.now)))
    }

    /// A timer; 0: never set.
    fn timer(&mut self, x: u64) -> u64 {
        if self.word(u64::from(x == 0)) != 0 { 0 } else { self.time(x) }
    }

    /// A sequence number; 0 is a value of its own.
    fn seq(&mut self, x: u64, from: u64) -> u64 {
        if self.word(u64::from(x == 0)) != 0 { 0 } else { self.near(x, from) }
    }

    fn lineage(&mut self, d: &mut Lineage) {
        let (root, ages) = (d[LINEAGE_WORDS - 1], &mut d[..LINEAGE_WORDS - 1]);
        for w in ages {
            *w = self.half(*w);
        }
        d[LINEAGE_WORDS - 1] = self.root(root);
    }

    /// The root of a lineage: a flow number counted from 1, or 0 for none. It is a member's, else an ancestor's.
    fn root(&mut self, root: u32) -> u32 {
        let (names, from) = (self.names, self.names.from);
        if P::READS {
            return match self.half(0) {
                0 => 0,
                code if code % 2 == 1 => names.rows.flow_ids[from.members + (code / 2) as usize] + 1,
                code => names.rows.ancestors[from.ancestors + (code / 2) as usize - 1] + 1,
            };
        }
        let Some(id) = root.checked_sub(1) else { return self.half(0) };
        let f = names.flow[id as usize];
        let m = names.member[f as usize];
        let code = if names.rows.members.get(m as usize).is_some_and(|member| member.flow == f) {
            2 * m + 1
        } else {
            let known = self.ancestors.iter().position(|&other| other == id);
            let k = known.unwrap_or_else(|| {
                self.ancestors.push(id);
                self.ancestors.len() - 1
            });
            2 * k as u32 + 2
        };
        self.half(code);
        root
    }

    /// Queue pair `m`, sender and receiver, and its messages in flight.
    fn member(&mut self, t: &mut Tables, m: usize) {
        let member = &self.names.rows.members[m];
        let f = member.flow as usize;
        let e = t.exps[0];
        let (mut tx, mut rx) = (t.flow_tx[f], t.flow_rx[f]);
        let una = tx.snd_una;
        // Where no decrease is due, some values do not matter and stay as the row has them.
        let known = if t.fold_hints.random_marks {
            self.word(u64::from(cc_state::is_quiet(t, member.flow)) + u64::from(cc_state::is_recovered(t, member.flow)))
        } else {
            0
        };
        let own = if known > 0 { qp::HELD | qp::A_SEEN } else { qp::HELD };
        tx.flags = self.half(tx.flags & !own) | (tx.flags & own);
        // Bytes of messages that the network was not given yet do not matter.
        let behind: u64 = if P::READS {
            0
        } else {
            member.posted[member.given..].iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum()
        };
        tx.size = self.near(tx.size - behind, una);
        tx.snd_nxt = self.near(tx.snd_nxt, una);
        rx.expected = self.near(rx.expected, una);
        self.messages(t, m, &mut tx, &mut rx);
        // HPCC moves this time with every new rate, from its old value, even a past one. For a queue pair outside the
        // round-robin order the next post replaces it.
        let moves = e.cc == cc::HPCC && e.modes & mode::RATE_BOUND != 0 && tx.flags & qp::QUEUED != 0;
        tx.next_avail = if moves { self.near(tx.next_avail, self.now) } else { self.not_before(tx.next_avail) };
        rx.cnp_t = self.not_before(rx.cnp_t);
        rx.nack_t = self.not_before(rx.nack_t);
        rx.nack_seq = if self.word(u64::from(rx.nack_seq == NEVER)) != 0 { NEVER } else { self.near(rx.nack_seq, una) };
        if e.ack_interval > 1 {
            self.word(una % e.chunk);
            rx.milestone = self.near(rx.milestone, una);
        }
        tx.rto_at = self.time(tx.rto_at);
        tx.retries = self.half(tx.retries);
        tx.stalls = self.half(tx.stalls);
        self.control(t, f, &mut tx, known, member.routed);
        if let Some(Some(rows)) = self.advanced.get(m) {
            rows.advance(t, &mut tx, &mut rx);
        }
        if P::READS {
            t.flow_tx[f] = tx;
            t.flow_rx[f] = rx;
        }
    }

    /// Congestion control, all of it: rows read back are equal also where this algorithm leaves them alone. `known`:
    /// what is left out; 1 if no decrease is due, 2 if the rate has recovered as well. `routed`: its path belongs to
    /// the partition; otherwise it is idle and the next post replaces its telemetry.
    fn control(&mut self, t: &mut Tables, f: usize, tx: &mut FlowTx, known: u64, routed: bool) {
        let una = tx.snd_una;
        let e = t.exps[0];
        tx.rate = self.word(tx.rate);
        tx.win = self.word(tx.win);
        tx.last_wire = self.half(tx.last_wire);
        if known == 2 {
            return;
        }
        tx.target = self.word(tx.target);
        tx.stage = self.half(cc_state::stage(t, tx));
        tx.t_inc = self.timer(tx.t_inc);
        if known == 1 {
            return;
        }
        tx.alpha = self.word(tx.alpha);
        tx.t_alpha = self.timer(tx.t_alpha);
        tx.t_dec = self.timer(tx.t_dec);
        tx.u = self.word(tx.u);
        tx.rc = self.word(tx.rc);
        tx.last_seq = self.seq(tx.last_seq, una);
        tx.high_seq = self.seq(tx.high_seq, una);
        // The last post reset it, and nothing reads it before it is set again.
        let void = tx.last_seq == 0 && matches!(e.cc, cc::HPCC | cc::TIMELY);
        if !void {
            tx.last_rtt = self.word(tx.last_rtt);
        }
        tx.diff = self.near(tx.diff as u64, 0) as i64;
        tx.cnt = self.half(tx.cnt);
        tx.batch = self.half(tx.batch);
        if e.cc == cc::DCTCP && tx.last_seq == 0 {
            // The first batch is counted from the first byte of all.
            self.word(una);
        }
        if e.cc == cc::HPCC && !void && self.word(u64::from(routed)) != 0 {
            let mut int = t.ints[f];
            let hops = tx.path_len.min(crate::columns::INT_HOPS) as usize;
            self.telemetry(t, f as u32, hops, &mut int);
            if P::READS {
                t.ints[f] = int;
            }
        }
    }

    /// Posted messages that are not both delivered and acknowledged, and the pointers to them.
    fn messages(&mut self, t: &Tables, m: usize, tx: &mut FlowTx, rx: &mut FlowRx) {
        let member = &self.names.rows.members[m];
        let n = self.word(member.given as u64) as usize;
        let mut ends = Vec::with_capacity(n);
        let mut end = tx.size;
        for &(i, _) in member.posted[..n.min(member.posted.len())].iter().rev() {
            ends.push((end, i));
            end -= self.word(t.tasks[i as usize].bytes);
        }
        if P::READS {
            let next = tx.msg_post;
            let beyond = (tx.size + if next == NONE { 0 } else { t.tasks[next as usize].bytes }, next);
            let at = |seq: u64| ends.iter().rev().copied().find(|x| x.0 > seq).unwrap_or(beyond);
            (tx.send_end, tx.msg_send) = at(tx.snd_nxt);
            (tx.ack_end, tx.msg_ack) = at(tx.snd_una);
            (rx.msg_end, rx.msg) = at(rx.expected);
        }
    }

    /// Records that wait at the receiver to return to their pool.
    fn held(&mut self, t: &mut Tables, m: usize) -> Result<(), grow::TooManyPackets> {
        let f = self.names.rows.members[m].flow;
        let n = self.chain_len(t, t.flow_rx[f as usize].held);
        if P::READS {
            t.flow_rx[f as usize].held = self.chain(t, f, n)?;
        }
        Ok(())
    }

    /// The length of a chain of empty records.
    fn chain_len(&mut self, t: &Tables, head: u32) -> u64 {
        let mut n = 0;
        let mut p = head;
        while !P::READS && p != NONE {
            n += 1;
            p = t.packets[p as usize].next;
        }
        self.word(n)
    }

    fn chain(&mut self, t: &mut Tables, f: u32, n: u64) -> Result<u32, grow::TooManyPackets> {
        let mut head = NONE;
        for _ in 0..n {
            let p = self.record(t, f)?;
            t.packets[p as usize].next = head;
            t.packets[p as usize].flow = f;
            t.packets[p as usize].meta = kind::DATA << meta::KIND_SHIFT;
            head = p;
        }
        Ok(head)
    }

    /// A free record of queue pair `f`'s sender.
    fn record(&mut self, t: &mut Tables, f: u32) -> Result<u32, grow::TooManyPackets> {
        let n = t.flow_tx[f as usize].nic as usize;
        if t.nics[n].free_head == NONE {
            grow::grow_pool(t, n, self.limit)?;
        }
        let row = &mut t.nics[n];
        let p = row.free_head;
        row.free_head = t.packets[p as usize].next;
        row.free_n -= 1;
        Ok(p)
    }

    fn nic(&mut self, t: &mut Tables, n: u32) -> Result<(), grow::TooManyPackets> {
        let mut row = t.nics[n as usize];
        row.busy_until = self.time(row.busy_until);
        if row.busy_until != NEVER {
            self.lineage(&mut row.busy_d);
        }
        row.timer = self.time(row.timer);
        if row.timer != NEVER {
            self.lineage(&mut row.timer_d);
        }
        row.rr = self.half(row.rr);
        row.qp_n = self.half(row.qp_n);
        row.rto = NEVER;
        for k in 0..row.qp_n {
            let at = (row.flow_first + k) as usize;
            let m =
                if P::READS { 0 } else { self.names.member[t.order[at] as usize] as usize - self.names.from.members };
            let m = self.word(m as u64) as usize + self.names.from.members;
            let f = self.names.rows.members[m].flow;
            t.order[at] = f;
            // No deadline lies before this. One of a queue pair outside the round-robin order waits for nothing.
            row.rto = row.rto.min(t.flow_tx[f as usize].rto_at);
        }
        if P::READS {
            row.free_head = t.nics[n as usize].free_head;
            t.nics[n as usize] = row;
        }
        let (head, tail, _) = self.list(t, row.ack_head, false)?;
        if P::READS {
            (t.nics[n as usize].ack_head, t.nics[n as usize].ack_tail) = (head, tail);
        }
        Ok(())
    }

    fn port(&mut self, t: &mut Tables, p: u32) -> Result<(), grow::TooManyPackets> {
        let e = t.exps[0];
        let mut row = t.ports[p as usize];
        // The end of a transmission that nothing waited for.
        let over = row.q_head == NONE && row.busy_until < self.now;
        row.busy = self.half(if over { 0 } else { row.busy });
        if row.busy != 0 {
            row.busy_until = self.near(row.busy_until, self.now);
            self.lineage(&mut row.busy_d);
        }
        if e.cc == cc::HPCC {
            let (from_ps, from_bytes) = t.fold_hints.counts_from(p);
            self.word((row.tx_bytes - from_bytes) % (u64::from(INT_TX_UNIT) * u64::from(e.int_multi)));
            if !t.fold_hints.telemetry_from.is_empty() {
                self.word((self.now - from_ps) % 1000);
            }
        }
        if e.modes & mode::LINKS != 0 {
            let since = if row.q_bytes == 0 { self.now } else { row.q_since };
            row.q_since = self.near(since, self.now);
        }
        let (head, tail, bytes) = self.list(t, row.q_head, true)?;
        if P::READS {
            (row.q_head, row.q_tail, row.q_bytes) = (head, tail, bytes);
            row.max_q = row.max_q.max(bytes);
            t.ports[p as usize] = row;
            let clock = egress::completion(t, p).t;
            t.clocks[(e.end_len + e.nic_len + p) as usize] = clock;
        }
        Ok(())
    }

    /// A list of packets; `queued`: at a switch, where they count for their ingress. Returns its ends and bytes.
    fn list(&mut self, t: &mut Tables, head: u32, queued: bool) -> Result<(u32, u32, u32), grow::TooManyPackets> {
        let (mut first, mut last, mut bytes) = (NONE, NONE, 0);
        let mut p = head;
        loop {
            let more = self.word(u64::from(p != NONE && !P::READS));
            if more == 0 {
                return Ok((first, last, bytes));
            }
            let at = self.packet(t, p)?;
            if queued {
                let end = if P::READS {
                    0
                } else {
                    self.names.end[t.packets[at as usize].in_port as usize] as usize - self.names.from.ends
                };
                let end = self.word(end as u64) as usize + self.names.from.ends;
                if P::READS {
                    let port = self.names.rows.ends[end];
                    t.packets[at as usize].in_port = port;
                    t.shared[(SHARED_HEADER + port) as usize] += t.packets[at as usize].meta & meta::WIRE_MASK;
                }
            }
            if P::READS {
                t.packets[at as usize].next = NONE;
                match last {
                    NONE => first = at,
                    _ => t.packets[last as usize].next = at,
                }
                last = at;
                bytes += t.packets[at as usize].meta & meta::WIRE_MASK;
            } else {
                p = t.packets[p as usize].next;
            }
        }
    }

    /// The packets in flight towards link end `end`.
    fn wire(&mut self, t: &mut Tables, end: u32) -> Result<(), grow::TooManyPackets> {
        let mut p = t.wires[end as usize].head;
        loop {
            let more = self.word(u64::from(p != NONE && !P::READS));
            if more == 0 {
                return Ok(());
            }
            let at = self.packet(t, p)?;
            let mut pk = t.packets[at as usize];
            pk.t = self.near(pk.t, self.now);
            self.lineage(&mut pk.d);
            if P::READS {
                t.packets[at as usize] = pk;
                wire_push(t, end, at);
            } else {
                p = pk.next;
            }
        }
    }

    /// Packet `p`, or a new record when reading.
    fn packet(&mut self, t: &mut Tables, p: u32) -> Result<u32, grow::TooManyPackets> {
        let from = self.names.from.members;
        let m = if P::READS { 0 } else { self.names.member[t.packets[p as usize].flow as usize] as usize - from };
        let m = self.word(m as u64) as usize + from;
        let f = self.names.rows.members[m].flow;
        let at = if P::READS { self.record(t, f)? } else { p };
        self.packets += 1;
        let mut pk = if P::READS { Packet { flow: f, ..bytemuck::Zeroable::zeroed() } } else { t.packets[p as usize] };
        let (tx, rx) = (t.flow_tx[f as usize], t.flow_rx[f as usize]);
        pk.meta = self.half(pk.meta);
        pk.seq = self.near(pk.seq, tx.snd_una);
        let begins = pk.seq;
        let moving = self.advanced.get(m).copied().flatten();
        if let Some(AdvancedRows { stream, by, .. }) = moving {
            pk.seq = stream.moved(begins, by);
        }
        let data = (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::DATA;
        let path = if data { tx.path_first } else { rx.path_first };
        pk.path = path.wrapping_add(self.half(pk.path.wrapping_sub(path)));
        if data {
            pk.payload = self.half(pk.payload);
            if let Some(AdvancedRows { stream, by, .. }) = moving {
                let payload = (stream.moved(begins + u64::from(pk.payload), by) - pk.seq) as u32;
                pk.meta = (pk.meta & !meta::WIRE_MASK) | (payload + t.exps[0].data_overhead);
                pk.payload = payload;
            }
        } else {
            let n = self.chain_len(t, pk.payload);
            if P::READS {
                pk.payload = self.chain(t, f, n)?;
            }
        }
        if !t.stamps.is_empty() {
            let stamp = self.near(t.stamps[at as usize], self.now);
            if P::READS {
                t.stamps[at as usize] = stamp;
            }
        }
        if t.exps[0].cc == cc::HPCC {
            let slot = t.flow_tx.len() + at as usize;
            let mut int = t.ints[slot];
            let hops = ((pk.meta >> meta::INT_SHIFT) & meta::INT_MASK) as usize;
            self.telemetry(t, f, hops, &mut int);
            if P::READS {
                t.ints[slot] = int;
            }
        }
        if P::READS {
            t.packets[at as usize] = pk;
        }
        Ok(at)
    }

    /// Telemetry of the first `hops` hops of queue pair `f`'s path: times relative to now, bytes relative to what each
    /// port has sent.
    fn telemetry(&mut self, t: &Tables, f: u32, hops: usize, int: &mut IntVec) {
        let e = &t.exps[0];
        let path = t.flow_tx[f as usize].path_first as usize;
        for k in 0..hops {
            let q = t.paths[path + k];
            let port = &t.ports[q as usize];
            let (from_ps, from_bytes) = t.fold_hints.counts_from(q);
            let now = ((self.now - from_ps) / 1000) & 0xff_ffff;
            let sent = ((port.tx_bytes - from_bytes) / (u64::from(INT_TX_UNIT) * u64::from(e.int_multi))) & 0xf_ffff;
            let word = int.hop[k];
            let time = self.word(now.wrapping_sub(word) & 0xff_ffff);
            let tx = self.word(sent.wrapping_sub(word >> 24) & 0xf_ffff);
            let rest = self.word(word >> 44);
            int.hop[k] =
                (now.wrapping_sub(time) & 0xff_ffff) | ((sent.wrapping_sub(tx) & 0xf_ffff) << 24) | (rest << 44);
        }
    }
}
