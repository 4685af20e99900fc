//! Row types of every table. Times ps, rates bps, sizes bytes; indices count from the experiment's own first row.
//!
//! A *link end* is a NIC or a switch port: NICs first, then ports, numbered together (`end = n_nic + port`). A *wire* is a direction of a
//! link, named by the link end that receives.

use super::index::{FlowIdx, LinkEndIdx, NicIdx, PacketIdx, PortIdx, SwitchIdx, TaskIdx, indexed_by};
use super::row::rows;

/// How an event came about, for the order of simultaneous events: newest two ages, [`CHANGES`] changes of pattern, their distances (two a word), the root.
/// docs/explanation/model-semantics.md, "Events and their order".
pub type Lineage = [u32; LINEAGE_WORDS];
/// Changes of pattern that a lineage remembers. Six cost no more bytes a packet than five.
pub const CHANGES: usize = 6;
/// The farthest that a lineage sees a change of pattern from the one before it. The golden cases come out the same with 1,023 as with 65,535, with 255 they do not; and the less
/// of the past matters, the sooner a pattern that comes again is the same to the bit.
pub const FARTHEST: u32 = 1023;
pub const LINEAGE_WORDS: usize = 2 + CHANGES + CHANGES / 2 + 1;

/// Values of [`Exp::status`].
pub mod status {
    /// Has events to process.
    pub const RUNNING: u32 = 0;
    /// Nothing is left to happen.
    pub const DONE: u32 = 1;
    /// Stopped at a boundary until the host has grown a pool of packets.
    pub const NEEDS_PACKETS: u32 = 2;
    /// The limit of simulated time was reached.
    pub const TIME_LIMIT: u32 = 3;
    /// A queue pair gave up retransmitting.
    pub const GAVE_UP: u32 = 4;
    /// An invariant was violated.
    pub const VIOLATION: u32 = 5;
    /// Ended by the host, which knows why: a limit of packet-hops or wall time, or no room.
    pub const ENDED_BY_HOST: u32 = 6;
}

/// Bits of the experiment's flag word (the first of its shared words).
pub mod flag {
    /// A switch lacks records for pause frames; set in `classify`, before anything was forwarded.
    pub const NEEDS_FRAMES: u32 = 1;
    /// A NIC's pool may not last another step.
    pub const NEEDS_PACKETS: u32 = 2;
    /// Some row has packet records that `advance` must return to their owners.
    pub const TO_RETURN: u32 = 4;
    /// A queue pair gave up.
    pub const GAVE_UP: u32 = 8;
    /// A buffer held more than its size.
    pub const OVER_BUFFER: u32 = 16;
    /// A pool was empty although its worst case had been checked.
    pub const POOL_EMPTY: u32 = 32;
    /// Some NIC has signals for gates.
    pub const SIGNALS: u32 = 64;
}

/// Bits of [`Exp::modes`].
pub mod mode {
    pub const WINDOW: u32 = 1;
    pub const VAR_WINDOW: u32 = 2;
    pub const RATE_BOUND: u32 = 4;
    pub const ACK_HIGH_PRIO: u32 = 8;
    pub const FAST_REACT: u32 = 16;
    pub const DCQCN_CLAMP: u32 = 32;
    pub const ECN: u32 = 64;
    pub const PFC: u32 = 128;
    /// Integrate queue lengths over time, for links.csv.
    pub const LINKS: u32 = 256;
    /// Every message starts with fresh congestion-control state.
    pub const FRESH_QP: u32 = 512;
    /// The CPU engine may fold what it can without changing any bit; and remember what it has simulated.
    pub const FOLD: u32 = 1024;
    pub const MEMO: u32 = 2048;
    /// What happens to messages is traced, for folding: `Tables::fold_trace`.
    pub const TRACED: u32 = 4096;
    /// Folding skips what is steady, too; by which of [`super::metric`].
    pub const STEADY: u32 = 8192;
    pub const METRIC_SHIFT: u32 = 14;
    pub const METRIC_MASK: u32 = 7;
    /// With [`STEADY`]: where skips gain too little (`fold/run/gain.rs`), the experiment starts over without them.
    pub const MUST_GAIN: u32 = 1 << 20;
    /// Flows have max-min fair rates in place of packets; no engine of packets steps it.
    pub const FLOW: u32 = 1 << 17;
    /// With [`STEADY`]: where senders meet at a port, measured rates are carried on although shares wander.
    pub const RATES: u32 = 1 << 18;
    /// After a loss the reference's rules, in place of those of adapters.
    pub const NS3_LOSS: u32 = 1 << 19;
}

/// What a partition must be steady in to be skipped.
pub mod metric {
    /// Bytes acknowledged in an interval.
    pub const RATE: u32 = 0;
    /// The window in force; the rate where there is none.
    pub const WINDOW: u32 = 1;
    /// Bytes sent and not acknowledged.
    pub const INFLIGHT: u32 = 2;
    /// Bytes in the queues of its path.
    pub const QUEUE: u32 = 3;
    /// Bytes in flight over the rate.
    pub const RTT: u32 = 4;
}

/// Values of [`Exp::cc`], those of the reference's `CC_MODE`.
pub mod cc {
    pub const NONE: u32 = 0;
    pub const DCQCN: u32 = 1;
    pub const HPCC: u32 = 3;
    pub const TIMELY: u32 = 7;
    pub const DCTCP: u32 = 8;
}

/// Packet kinds, bits 16..18 of [`Packet::meta`].
pub mod kind {
    pub const DATA: u32 = 0;
    pub const ACK: u32 = 1;
    pub const NACK: u32 = 2;
    /// A pause or resume frame.
    pub const FRAME: u32 = 3;
}

/// Layout of [`Packet::meta`].
pub mod meta {
    pub const WIRE_MASK: u32 = 0xffff;
    pub const KIND_SHIFT: u32 = 16;
    pub const KIND_MASK: u32 = 3;
    /// Data: marked by ECN.
    pub const MARKED: u32 = 1 << 18;
    /// ACK: carries a congestion notification.
    pub const CNP: u32 = 1 << 19;
    /// Frame: resume (else pause).
    pub const RESUME: u32 = 1 << 20;
    pub const INT_SHIFT: u32 = 24;
    pub const INT_MASK: u32 = 7;
}

/// Bits of [`FlowTx::flags`].
pub mod qp {
    pub const FINISHED: u32 = 1;
    /// DCQCN: timers run.
    pub const STARTED: u32 = 2;
    pub const A_SEEN: u32 = 4;
    pub const D_SEEN: u32 = 8;
    /// Has sent a message before: its congestion-control state is of use.
    pub const CREATED: u32 = 16;
    /// DCTCP: congestion window reduced.
    pub const CWR: u32 = 32;
    /// Is in its NIC's `order`.
    pub const QUEUED: u32 = 64;
    /// Folding (CPU only): its next post or start stops its NIC, because what it will cross belongs to no partition yet.
    pub const HELD: u32 = 128;
    /// Flow level: one less than by how many times more of a full link it gets than others do, from this bit on.
    pub const WEIGHT_SHIFT: u32 = 24;
}

/// Bits of [`Task::flags`].
pub mod task {
    /// Posts `bytes` on its queue pair; else it only takes time.
    pub const MESSAGE: u32 = 1;
    /// A message that may be posted once those before it on its queue pair have been.
    pub const READY: u32 = 2;
}

/// Bytes of a pause frame on the wire (9 + 20 + 14, the reference's).
pub const FRAME_BYTES: u32 = 43;
/// Doublings of the longest pause after a NACK without progress.
pub const STALL_DOUBLINGS: u32 = 6;
/// NACKs without progress that weigh as much as one timeout.
pub const STALLS_A_RETRY: u32 = 16;
/// Full packets that may be outstanding after any loss: the second tells the receiver that the first is missing.
pub const LOSS_WINDOW_PACKETS: u64 = 2;
/// A round trip without loss adds this part of the bandwidth-delay product to the loss window, at least a packet.
pub const WINDOW_STEPS: u64 = 20;
/// Hops an INT header has room for.
pub const INT_HOPS: u32 = 5;
/// Bytes an INT queue field counts by, times `int_multi`; the transmitted-bytes field likewise.
pub const INT_Q_UNIT: u32 = 80;
pub const INT_TX_UNIT: u32 = 128;
/// In an edge: what is released is a signal, not a task.
pub const EDGE_SIGNAL: u32 = 1 << 31;
/// The first shared words of an experiment: flags, then flows and tasks that have not finished.
pub const SHARED_FLAGS: u32 = 0;
pub const SHARED_FLOWS_LEFT: u32 = 1;
pub const SHARED_HEADER: u32 = 2;

rows! {
    /// One experiment: where its rows are, what governs it, where it stands.
    Exp {
        // Where its rows start in the shared tables, and how many there are.
        nic_base: u32, nic_len: u32,
        port_base: u32, port_len: u32,
        switch_base: u32, switch_len: u32,
        flow_base: u32, flow_len: u32,
        packet_base: u32, packet_len: u32,
        /// INT vectors: one a flow (the remembered one), then one a packet. Length 0 without HPCC.
        int_base: u32, int_len: u32,
        path_base: u32, path_len: u32,
        plan_base: u32, plan_len: u32,
        /// Shared words: header, then `ingress` bytes a port, then `mask_words` words of wanted ingresses a port.
        shared_base: u32, shared_len: u32,
        rtt_base: u32, rtt_len: u32,
        task_base: u32, task_len: u32,
        edge_base: u32, edge_len: u32,
        signal_base: u32, signal_len: u32,
        gate_base: u32, gate_len: u32,
        server_base: u32, server_len: u32,
        /// The index of the experiment in the sweep, low word: the ExpId of all its rows.
        exp_id: u32,
        mask_words: u32,
        /// Link ends: `nic_len + port_len`; the experiment's wires, and its two clocks in the table of clocks.
        end_base: u32, end_len: u32,
        /// Gates that everybody has reached, by (time, gate), from `schedule` to `analytical`.
        fired: u32,
        /// Folding: what Eq. 6 of Wormhole may be at most, in millionths; samples in its window, and the time between two; 0: chosen.
        theta_ppm: u32,

        // Where it stands.
        status: u32,
        /// 1: stopped between `classify` and `forward`.
        phase: u32,
        now: u64,
        /// Length of a step: at most the least link delay.
        step: u64,
        /// Simulation ends here at the latest.
        time_limit: u64,
        steps: u64,

        // What governs it.
        cc: u32, modes: u32,
        clock_ps: u32, payload: u32,
        data_overhead: u32, ack_bytes: u32,
        seed: u32, routing_seed: u32,
        rto_retries: u32, fast_recovery: u32,
        mi_thresh: u32, int_multi: u32,
        ack_interval: u64, chunk: u64,
        nack_interval: u64, cnp_interval: u64,
        rto: u64,
        min_rate: u64, rai: u64, rhai: u64,
        g_q32: u64,
        p_alpha: u64, p_dec: u64, p_inc: u64,
        eta_q40: u64, eta_q48: u64,
        timely_alpha_q32: u64, timely_beta_q32: u64,
        tlow: u64, thigh: u64, min_rtt: u64,
        reserve: u32, resume_offset: u32,
        /// Of the switch with the largest one.
        buffer: u64,
        /// RTT samples kept a flow; 0: none.
        rtt_cap: u32,
        samples: u32, interval_ns: u32,
        /// Folding: the share of what is skipped that is simulated all the same, to see how far off it is, in millionths.
        audit_ppm: u32,
        /// Link rates that an INT header can name, Mb/s.
        rates_mbps_lo: [u32; 4], rates_mbps_hi: [u32; 4],
    }

    /// A host's port: transmitter, ACK queue, pool of packets, clocks.
    #[repr(align(64))]
    Nic {
        exp: u32,
        /// The link end that receives what it sends.
        peer: LinkEndIdx,
        rate: u64, delay: u64,
        /// Transmission time of a full data packet and of an ACK.
        tx_full: u64, tx_ack: u64,
        /// Its flows, consecutive, in order of start; the next to start.
        flow_first: FlowIdx, flow_n: u32, flow_next: u32,
        /// Packets it may start to send in one step, at worst.
        worst: u32,
        /// End of the transmission in progress, `NEVER` when idle.
        busy_until: u64,
        busy_d: Lineage,
        timer: u64,
        timer_d: Lineage,
        /// No retransmission deadline of its queue pairs lies before this.
        rto: u64,
        next_start: u64,
        /// Its tasks that are under way, by time; when the first is due; signals it gave in this step, a list.
        next_task: u64,
        task_head: TaskIdx, signals: u32,
        ack_head: PacketIdx, ack_tail: PacketIdx,
        paused: u32,
        /// Queue pairs in its part of `order`; index of the last served.
        qp_n: u32, rr: u32,
        free_head: PacketIdx, free_n: u32,
        /// Used pause frames, a list; `advance` returns them to their switches.
        to_return: PacketIdx,
        tx_bytes: u64, hops: u64,
        pauses: u32, pad0: u32,
    }

    /// A switch port: egress queue and transmitter, ingress accounting.
    #[repr(align(64))]
    Port {
        exp: u32,
        switch_idx: SwitchIdx,
        peer: LinkEndIdx,
        /// Index of its link's rate in the INT header.
        rate_idx: u32,
        rate: u64, delay: u64,
        tx_full: u64, tx_ack: u64,
        kmin: u32, kmax: u32,
        pmax_q32: u64,
        headroom: u32, shift: u32,

        /// 1 while a transmission is in progress or its end has not been looked at.
        busy: u32,
        /// 1: the peer has paused this port's queue.
        paused: u32,
        busy_until: u64,
        busy_d: Lineage,
        q_head: PacketIdx, q_tail: PacketIdx,
        q_bytes: u32,
        frame_head: PacketIdx, frame_tail: PacketIdx, frames: u32,
        /// 1: this port has paused its peer.
        pausing: u32,
        /// Headroom in use by packets that came in here.
        headroom_used: u32,
        /// Bytes and packets that arrive here in this step (data and ACKs); `plan` to `forward`.
        arr_bytes: u32, arr_n: u32,
        /// Pause frames that arrive here in this step, a list.
        in_frames: PacketIdx,
        /// Arrivals for this egress, merged by time; used inside `forward_joint` only.
        merged: PacketIdx,
        /// Dropped packets and used pause frames, a list; `advance` returns them to their owners.
        to_return: PacketIdx,
        pauses: u32,
        drops: u32, max_q: u32,
        dropped_bytes: u64,
        draws: u64,
        marks: u64,
        tx_bytes: u64, hops: u64,
        /// Integral of `q_bytes` over time, in units of 1024 byte-picoseconds, up to `q_since`.
        q_area: u64, q_since: u64,
    }

    /// A switch: its ports, its shared buffer, its pool of pause frames.
    Switch {
        exp: u32,
        port_first: PortIdx, port_n: u32,
        /// First of its `port_n * port_n` plan entries.
        plan_first: u32,
        /// Set by `classify`. 1: nothing can pause, resume or drop here in this step, so the ports do not affect each other.
        /// 0: `forward_joint` processes all ports together.
        independent: u32,
        /// Ports that have paused their peer or use headroom.
        congested_n: u32,
        free_head: PacketIdx, free_n: u32,
        /// Frames missing when a step had to wait.
        need: u32,
        max_wire: u32,
        /// Shared bytes to give away: buffer less headrooms less reserves.
        shared_size: u64,
        /// Most bytes it has held (exact after a joint step, an upper bound after an independent one).
        max_held: u64,
    }

    /// A queue pair at its sender. Written by its source NIC only. One of a plain flow has no messages: all its bytes are there from the start.
    FlowTx {
        /// Bytes posted so far.
        size: u64, snd_nxt: u64, snd_una: u64,
        rate: u64, next_avail: u64,
        /// Window in force (`W'`), 0 for none; and the full window `W`.
        win: u64,
        /// After a loss: what may be outstanding until all is acknowledged; 0: no limit.
        loss_window: u64,
        last_wire: u32, flags: u32,
        path_first: u32, path_len: u32, n_paths: u32,
        /// Data packets sent, for spraying.
        n_sent: u32,
        // DCQCN (alpha: DCTCP too)
        alpha: u64, target: u64, t_alpha: u64, t_dec: u64, t_inc: u64,
        // HPCC, TIMELY, DCTCP
        stage: u32, base_rtt_ns: u32,
        u: u64, rc: u64, last_seq: u64, high_seq: u64,
        diff: i64, last_rtt: u64,
        cnt: u32, batch: u32,
        window: u64,
        rto_at: u64,
        /// With a loss window: when it last stepped back, and when that window last changed.
        back_at: u64, window_at: u64,
        start: u64, finish: u64,
        sent_bytes: u64,
        retries: u32,
        nic: NicIdx,
        /// The flow's number as users know it.
        flow_id: u32,
        exp: u32,
        rtt_seen: u32, rtt_stride: u32, rtt_n: u32,
        /// Steps back for a NACK since the last progress.
        stalls: u32,
        /// Messages: the next to be posted, the one that `snd_nxt` is in, the oldest not acknowledged; and where the latter two end.
        msg_post: TaskIdx, msg_send: TaskIdx, msg_ack: TaskIdx,
        /// Flow level: one more than the queue pair that carries what this one would, together with others; 0: it is alone.
        joined: u32,
        send_end: u64, ack_end: u64,
    }

    /// A queue pair at its receiver. Written by its destination NIC only.
    FlowRx {
        /// End of the message that is arriving.
        msg_end: u64, expected: u64, milestone: u64,
        nack_t: u64, nack_seq: u64, cnp_t: u64,
        arrived_bytes: u64,
        /// Records of data packets that needed no answer; they go home with the next one.
        held: PacketIdx,
        path_first: u32, path_len: u32, n_paths: u32,
        n_acks: u32,
        flow_id: u32,
        exp: u32, nic: NicIdx,
        /// The message that is arriving.
        msg: TaskIdx, pad0: u32,
    }

    /// Something a rank does: takes time, or posts a message. Written by its owner, but `got` by the NIC that receives.
    Task {
        exp: u32,
        /// NIC whose invocation runs it.
        owner: NicIdx,
        flags: u32,
        /// Dependencies that are missing.
        waits: u32,
        /// Next in its owner's list of tasks under way.
        next: TaskIdx,
        /// Message: its queue pair, and the message after it there.
        flow: FlowIdx, follow: TaskIdx,
        /// Edges to what waits for it: for its end (a message's last acknowledgement), for a message's arrival.
        done_first: u32, done_n: u32, got_first: u32, got_n: u32,
        /// Message: number of its queue pair, counted from 1: the root of what its post causes.
        root: u32,
        /// From its release to its end; of a message to its post.
        delay: u64,
        bytes: u64,
        /// Release plus delay; of a message when it was posted. `NEVER` before.
        at: u64,
        /// When it ended; when a message had arrived whole. Flow level: before a message has gone that is a whole collective, what that takes alone.
        done: u64, got: u64,
    }

    /// An edge to a gate.
    Signal { gate: u32, next: u32, at: u64 }

    /// A meeting of ranks, or a transfer that is no packets': when all have signalled, it is served and releases tasks of any owner.
    Gate {
        exp: u32,
        waits: u32,
        /// Next of the gates that fired.
        next: u32,
        /// What serves it, one after another; NONE: nothing does, it has all the room it needs.
        server: u32,
        first: u32, n: u32,
        /// When the last signal was given.
        latest: u64,
        /// Time it keeps its server; and from then to the release of its tasks, at least a step.
        serial: u64, latency: u64,
    }

    /// A packet: what every hop reads and writes, two a cache line.
    #[repr(align(32))]
    Packet {
        /// Arrival at the far end of the wire it is on.
        t: u64,
        next: PacketIdx,
        /// Next entry of its path.
        path: u32,
        meta: u32,
        /// The switch port it came in by.
        in_port: PortIdx,
        /// Flow; of a pause frame: the switch it belongs to.
        flow: FlowIdx,
        /// Data: payload bytes. ACK, NACK: list of records that travel home with it.
        payload: u32,
    }

    /// The rest of a packet, a cache line: read where two events happen at one time, and at the ends of a path.
    #[repr(align(64))]
    PacketDetails {
        /// Lineage of the arrival at [`Packet::t`].
        d: Lineage,
        /// Data: first payload byte; ACK, NACK: next byte expected.
        seq: u64,
        /// Data: when its sender began to send it. ACK, NACK: that of the data packet it answers.
        sent_at: u64,
    }

    /// Telemetry of a packet or remembered by a queue pair: a word a hop: time 24 bits, transmitted 20, queue 17, rate index 3.
    IntVec { hop: [u64; 5] }

    /// Packets on their way to one link end, in order of arrival.
    Wire { head: PacketIdx, tail: PacketIdx, n: u32, pad0: u32 }

    /// What one ingress has for one egress in this step: a list.
    Plan { head: PacketIdx, tail: PacketIdx }

    /// A sampled round-trip time.
    RttSample { at: u64, rtt: u64 }
}

indexed_by! {
    NicIdx: Nic;
    LinkEndIdx: Wire;
    PortIdx: Port;
    SwitchIdx: Switch;
    FlowIdx: FlowTx, FlowRx;
    TaskIdx: Task;
    PacketIdx: Packet, PacketDetails;
}

impl Exp {
    /// Whether round-trip times are of use.
    #[inline]
    pub fn measures_rtts(&self) -> bool {
        self.cc == cc::TIMELY || self.rtt_cap > 0
    }
}

impl Packet {
    /// The list of records that travel home with an ACK or NACK. It is kept in place of the payload.
    #[inline]
    pub fn records(&self) -> PacketIdx {
        PacketIdx(self.payload)
    }

    /// Lets the list `head` of records travel home with an ACK or NACK.
    #[inline]
    pub fn set_records(&mut self, head: PacketIdx) {
        self.payload = head.0;
    }

    /// The switch that a pause frame belongs to. It is kept in place of the flow.
    #[inline]
    pub fn frame_switch(&self) -> SwitchIdx {
        SwitchIdx(self.flow.0)
    }

    /// Makes a pause frame belong to switch `s`.
    #[inline]
    pub fn set_frame_switch(&mut self, s: SwitchIdx) {
        self.flow = FlowIdx(s.0);
    }
}

impl Switch {
    /// Its ports.
    #[inline]
    pub fn ports(&self) -> impl DoubleEndedIterator<Item = PortIdx> + ExactSizeIterator + Clone + use<> {
        self.port_first.run(self.port_n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What memory grows by; docs/explanation/performance.md quotes these.
    #[test]
    fn row_sizes() {
        let sizes = [
            ("Nic", size_of::<Nic>()),
            ("Port", size_of::<Port>()),
            ("Switch", size_of::<Switch>()),
            ("FlowTx", size_of::<FlowTx>()),
            ("FlowRx", size_of::<FlowRx>()),
            ("Packet", size_of::<Packet>()),
            ("PacketDetails", size_of::<PacketDetails>()),
            ("IntVec", size_of::<IntVec>()),
            ("Wire", size_of::<Wire>()),
            ("Plan", size_of::<Plan>()),
            ("Task", size_of::<Task>()),
            ("Signal", size_of::<Signal>()),
            ("Gate", size_of::<Gate>()),
        ];
        insta::assert_debug_snapshot!(sizes);
    }
}
