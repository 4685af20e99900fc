//! Row types of every table. Times are in ps, rates in bps, sizes in bytes. Indices count from the experiment's own first row.
//!
//! A *link end* is a NIC or a switch port: NICs first, then ports, numbered together (`end = n_nic + port`). A *wire* is one direction of a link,
//! named by the link end that receives.

use super::index::{FlowIdx, LinkEndIdx, NicIdx, PacketIdx, PortIdx, SwitchIdx, TaskIdx, indexed_by};
use super::row::rows;

/// History of an event, which orders simultaneous events: its two newest ages, [`CHANGES`] changes of pattern, their distances (two per word), the
/// root. See docs/explanation/model-semantics.md, "Events and their order".
pub type Lineage = [u32; LINEAGE_WORDS];
/// Number of changes of pattern that a lineage remembers. Six cost no more bytes per packet than five.
pub const CHANGES: usize = 6;
/// Maximum distance between two changes of pattern that a lineage can tell. The golden cases have the same results with 1,023 as with 65,535, but not
/// with 255. The less of the past matters, the sooner a repeated pattern is equal bit by bit.
pub const FARTHEST: u32 = 1023;
pub const LINEAGE_WORDS: usize = 2 + CHANGES + CHANGES / 2 + 1;

/// Values of [`Exp::status`].
pub mod status {
    /// There are events to process.
    pub const RUNNING: u32 = 0;
    /// No event is left.
    pub const DONE: u32 = 1;
    /// Stopped between two steps until the host has grown a pool of packets.
    pub const NEEDS_PACKETS: u32 = 2;
    /// The limit of simulated time was reached.
    pub const TIME_LIMIT: u32 = 3;
    /// A queue pair gave up retransmitting.
    pub const GAVE_UP: u32 = 4;
    /// An invariant was violated.
    pub const VIOLATION: u32 = 5;
    /// Ended by the host, which knows the reason: a limit of packet-hops or wall time, or no memory.
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
    /// `FOLD`: the CPU engine may fold where that changes no bit. `MEMO`: it may also remember what it has simulated.
    pub const FOLD: u32 = 1024;
    pub const MEMO: u32 = 2048;
    /// Events of messages are traced, for folding: `Tables::fold_trace`.
    pub const TRACED: u32 = 4096;
    /// Folding also skips steady phases. The bits at `METRIC_SHIFT` select one of [`super::metric`].
    pub const STEADY: u32 = 8192;
    pub const METRIC_SHIFT: u32 = 14;
    pub const METRIC_MASK: u32 = 7;
    /// With [`STEADY`]: where skips gain too little (`fold/run/skips/gain.rs`), the experiment starts over without them.
    pub const MUST_GAIN: u32 = 1 << 20;
    /// Flows have max-min fair rates instead of packets. No packet engine steps the experiment.
    pub const FLOW: u32 = 1 << 17;
    /// With [`STEADY`]: where senders meet at a port, skips continue the measured rates although shares wander.
    pub const RATES: u32 = 1 << 18;
    /// Loss recovery as in the reference simulator (ns-3), instead of that of network adapters.
    pub const NS3_LOSS: u32 = 1 << 19;
}

/// The metric of a partition that must be steady before it is skipped.
pub mod metric {
    /// Bytes acknowledged in an interval.
    pub const RATE: u32 = 0;
    /// The window in force, or the rate if there is no window.
    pub const WINDOW: u32 = 1;
    /// Bytes sent and not acknowledged.
    pub const INFLIGHT: u32 = 2;
    /// Bytes in the queues on its path.
    pub const QUEUE: u32 = 3;
    /// Bytes in flight divided by the rate.
    pub const RTT: u32 = 4;
}

/// Values of [`Exp::cc`], equal to the reference's `CC_MODE`.
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
    /// Frame: resume, otherwise pause.
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
    /// The queue pair has sent a message before, so its congestion-control state is valid.
    pub const CREATED: u32 = 16;
    /// DCTCP: congestion window reduced.
    pub const CWR: u32 = 32;
    /// The queue pair is in its NIC's `order`.
    pub const QUEUED: u32 = 64;
    /// Folding (CPU only): the next post or start on this queue pair stops its NIC, because the rows that it will cross belong to no partition yet.
    pub const HELD: u32 = 128;
    /// Flow level: from this bit on, the weight minus 1. A flow of weight w gets w times as much of a full link as others.
    pub const WEIGHT_SHIFT: u32 = 24;
}

/// Bits of [`Task::flags`].
pub mod task {
    /// The task posts `bytes` on its queue pair. Without this bit it only takes time.
    pub const MESSAGE: u32 = 1;
    /// A message that may be posted as soon as those before it on its queue pair have been.
    pub const READY: u32 = 2;
}

/// Bytes of a pause frame on the wire (9 + 20 + 14, as in the reference).
pub const FRAME_BYTES: u32 = 43;
/// Maximum number of doublings of the longest pause after NACKs without progress.
pub const STALL_DOUBLINGS: u32 = 6;
/// Number of NACKs without progress that count as much as one timeout.
pub const STALLS_A_RETRY: u32 = 16;
/// Number of full packets that may be outstanding after any loss: the second tells the receiver that the first is missing.
pub const LOSS_WINDOW_PACKETS: u64 = 2;
/// A round trip without loss adds 1/`WINDOW_STEPS` of the bandwidth-delay product to the loss window, and at least one packet.
pub const WINDOW_STEPS: u64 = 20;
/// Maximum number of hops in an INT header.
pub const INT_HOPS: u32 = 5;
/// Units of an INT header in bytes, each times `int_multi`: of the queue field, and of the transmitted-bytes field.
pub const INT_Q_UNIT: u32 = 80;
pub const INT_TX_UNIT: u32 = 128;
/// Bit of an edge that says that it releases a signal, not a task.
pub const EDGE_SIGNAL: u32 = 1 << 31;
/// The first shared words of an experiment: flags, then the number of flows and tasks that have not finished.
pub const SHARED_FLAGS: u32 = 0;
pub const SHARED_FLOWS_LEFT: u32 = 1;
pub const SHARED_HEADER: u32 = 2;

rows! {
    /// One experiment: where its rows are, its parameters, and its progress.
    Exp {
        // First row of the experiment in each shared table, and number of its rows.
        nic_base: u32, nic_len: u32,
        port_base: u32, port_len: u32,
        switch_base: u32, switch_len: u32,
        flow_base: u32, flow_len: u32,
        packet_base: u32, packet_len: u32,
        /// INT vectors: one per flow (the remembered one), then one per packet. Length 0 without HPCC.
        int_base: u32, int_len: u32,
        path_base: u32, path_len: u32,
        plan_base: u32, plan_len: u32,
        /// Shared words: header, then one word per port with the bytes held by its ingress, then `mask_words` words of wanted ingresses per port.
        shared_base: u32, shared_len: u32,
        rtt_base: u32, rtt_len: u32,
        task_base: u32, task_len: u32,
        edge_base: u32, edge_len: u32,
        signal_base: u32, signal_len: u32,
        gate_base: u32, gate_len: u32,
        server_base: u32, server_len: u32,
        /// Index of the experiment in the sweep, low word: the ExpId of all its rows.
        exp_id: u32,
        mask_words: u32,
        /// Link ends: `nic_len + port_len`. This is also the number of wires, and half the number of clocks.
        end_base: u32, end_len: u32,
        /// List of the gates that fired, by (time, gate); passed from `schedule` to `analytical`.
        fired: u32,
        /// Folding: upper limit of the fluctuation of a metric in the steady state (Wormhole, Eq. 6), in millionths; 0: chosen automatically.
        theta_ppm: u32,

        // Progress.
        status: u32,
        /// 1 if the step stopped between `classify` and `forward`.
        phase: u32,
        now: u64,
        /// Length of a step in ps: at most the minimum link delay.
        step: u64,
        /// Simulated time at which the experiment ends at the latest.
        time_limit: u64,
        steps: u64,

        // Parameters.
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
        /// Largest shared buffer of any switch.
        buffer: u64,
        /// Number of RTT samples kept per flow; 0: none.
        rtt_cap: u32,
        /// Folding: number of samples in the window of the steadiness test, and time between two samples in ns; 0: chosen automatically.
        samples: u32, interval_ns: u32,
        /// Folding: share of skips that is also simulated, to measure their error, in millionths.
        audit_ppm: u32,
        /// Link rates that an INT header can name, in Mb/s.
        rates_mbps_lo: [u32; 4], rates_mbps_hi: [u32; 4],
    }

    /// A host's network port: transmitter, ACK queue, pool of packets, clocks.
    #[repr(align(64))]
    Nic {
        exp: u32,
        /// The link end that receives what this NIC sends.
        peer: LinkEndIdx,
        rate: u64, delay: u64,
        /// Transmission time of a full data packet and of an ACK, in ps.
        tx_full: u64, tx_ack: u64,
        /// Flows of the NIC, consecutive, in the order of their start; and the index of the next flow to start.
        flow_first: FlowIdx, flow_n: u32, flow_next: u32,
        /// Maximum number of packets that it may start to send in one step.
        worst: u32,
        /// End of the transmission in progress; `NEVER` if idle.
        busy_until: u64,
        busy_d: Lineage,
        timer: u64,
        timer_d: Lineage,
        /// Lower bound of the retransmission deadlines of its queue pairs.
        rto: u64,
        next_start: u64,
        /// Time at which the first of its running tasks is due; list of these tasks, by time; list of the signals given in this step.
        next_task: u64,
        task_head: TaskIdx, signals: u32,
        ack_head: PacketIdx, ack_tail: PacketIdx,
        paused: u32,
        /// Number of queue pairs in its part of `order`; index of the one served last.
        qp_n: u32, rr: u32,
        free_head: PacketIdx, free_n: u32,
        /// List of used pause frames; `advance` returns them to their switches.
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

        /// 1 while a transmission is in progress, or its end has not been noticed.
        busy: u32,
        /// 1 if the peer has paused this port's queue.
        paused: u32,
        busy_until: u64,
        busy_d: Lineage,
        q_head: PacketIdx, q_tail: PacketIdx,
        q_bytes: u32,
        frame_head: PacketIdx, frame_tail: PacketIdx, frames: u32,
        /// 1 if this port has paused its peer.
        pausing: u32,
        /// Headroom used by packets that came in by this port.
        headroom_used: u32,
        /// Bytes and packets (data and ACKs) that arrive here in this step; set by `plan`, used until `forward`.
        arr_bytes: u32, arr_n: u32,
        /// List of pause frames that arrive here in this step.
        in_frames: PacketIdx,
        /// Arrivals for this egress, merged by time. Used only inside `forward_joint`.
        merged: PacketIdx,
        /// List of dropped packets and used pause frames; `advance` returns them to their owners.
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
        /// Set by `classify`. 1: nothing can pause, resume or drop here in this step, so the ports do not affect each other. 0: `forward_joint`
        /// processes all ports together.
        independent: u32,
        /// Number of ports that have paused their peer or use headroom.
        congested_n: u32,
        free_head: PacketIdx, free_n: u32,
        /// Number of pause frames that the step needs at worst.
        need: u32,
        max_wire: u32,
        /// Size of the shared part of the buffer: buffer minus headrooms minus reserves.
        shared_size: u64,
        /// Maximum number of bytes that it has held (exact after a joint step, an upper bound after an independent one).
        max_held: u64,
    }

    /// A queue pair at its sender. Only its source NIC writes it. The queue pair of a plain flow has no messages: all its bytes are posted from the
    /// start.
    FlowTx {
        /// Bytes posted so far.
        size: u64, snd_nxt: u64, snd_una: u64,
        rate: u64, next_avail: u64,
        /// Window in force (`W'`), 0 for none. The full window `W` is `window`.
        win: u64,
        /// Maximum number of outstanding bytes after a loss, until all bytes are acknowledged; 0: no limit.
        loss_window: u64,
        last_wire: u32, flags: u32,
        path_first: u32, path_len: u32, n_paths: u32,
        /// Number of data packets sent, for spraying.
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
        /// With a loss window: time of the last step back, and of the window's last change.
        back_at: u64, window_at: u64,
        start: u64, finish: u64,
        sent_bytes: u64,
        retries: u32,
        nic: NicIdx,
        /// The flow's number that users see.
        flow_id: u32,
        exp: u32,
        rtt_seen: u32, rtt_stride: u32, rtt_n: u32,
        /// Number of steps back for a NACK since the last progress.
        stalls: u32,
        /// Messages: the next one to post, the one that `snd_nxt` is in, and the oldest unacknowledged one. `send_end` and `ack_end` are the end
        /// bytes of the latter two.
        msg_post: TaskIdx, msg_send: TaskIdx, msg_ack: TaskIdx,
        /// Flow level: index + 1 of the queue pair that carries this one's bytes together with its own; 0: it is not joined.
        joined: u32,
        send_end: u64, ack_end: u64,
    }

    /// A queue pair at its receiver. Only its destination NIC writes it.
    FlowRx {
        /// End byte of the message that is arriving.
        msg_end: u64, expected: u64, milestone: u64,
        nack_t: u64, nack_seq: u64, cnp_t: u64,
        arrived_bytes: u64,
        /// Records of data packets that needed no answer; they return with the next answer.
        held: PacketIdx,
        path_first: u32, path_len: u32, n_paths: u32,
        n_acks: u32,
        flow_id: u32,
        exp: u32, nic: NicIdx,
        /// The message that is arriving.
        msg: TaskIdx, pad0: u32,
    }

    /// An action of a rank: it takes time, or posts a message. Only its owner writes it, except `got`, which the receiving NIC writes.
    Task {
        exp: u32,
        /// NIC whose invocation runs it.
        owner: NicIdx,
        flags: u32,
        /// Number of dependencies that are not met yet.
        waits: u32,
        /// Next task in its owner's list of running tasks.
        next: TaskIdx,
        /// Message: its queue pair, and the next message on it.
        flow: FlowIdx, follow: TaskIdx,
        /// Edges to what waits for its end (for a message: its last acknowledgement), and for a message's arrival.
        done_first: u32, done_n: u32, got_first: u32, got_n: u32,
        /// Message: number of its queue pair, counted from 1. It is the root of the lineage of what its post causes.
        root: u32,
        /// Time from its release to its end, in ps; for a message: to its post.
        delay: u64,
        bytes: u64,
        /// Time of its release plus its delay, in ps; for a message: time of its post. `NEVER` before.
        at: u64,
        /// Time of its end, and time at which a message had arrived whole. Flow level: before a message that stands for a whole collective is sent,
        /// these hold the time that the collective takes alone.
        done: u64, got: u64,
    }

    /// An edge to a gate.
    Signal { gate: u32, next: u32, at: u64 }

    /// A synchronisation of ranks, or a transfer that is not simulated as packets. When all have signalled, the gate is served and releases tasks of
    /// any owner.
    Gate {
        exp: u32,
        waits: u32,
        /// Next of the gates that fired.
        next: u32,
        /// Server of the gate, which serves one gate after another. NONE: it needs no server, because its capacity is not shared.
        server: u32,
        first: u32, n: u32,
        /// Time of the last signal.
        latest: u64,
        /// Time that it occupies its server; and time from then to the release of its tasks, which is at least one step. In ps.
        serial: u64, latency: u64,
    }

    /// The part of a packet that every hop reads and writes; two packets share a cache line.
    #[repr(align(32))]
    Packet {
        /// Arrival time at the far end of the wire it is on.
        t: u64,
        next: PacketIdx,
        /// Index of the next entry of its path.
        path: u32,
        meta: u32,
        /// The switch port it came in by.
        in_port: PortIdx,
        /// Flow. Pause frame: the switch that it belongs to.
        flow: FlowIdx,
        /// Data: payload bytes. ACK, NACK: list of records that return with it.
        payload: u32,
    }

    /// The other part of a packet, one cache line. It is read where two events happen at the same time, and at the ends of a path.
    #[repr(align(64))]
    PacketDetails {
        /// Lineage of the arrival at [`Packet::t`].
        d: Lineage,
        /// Data: first payload byte; ACK, NACK: next byte expected.
        seq: u64,
        /// Data: time at which its sender began to send it. ACK, NACK: the same time of the data packet that it answers.
        sent_at: u64,
    }

    /// INT telemetry of a packet, or remembered by a queue pair. One word per hop: time 24 bits, transmitted bytes 20, queue 17, rate index 3.
    IntVec { hop: [u64; 5] }

    /// Packets on their way to one link end, in order of arrival.
    Wire { head: PacketIdx, tail: PacketIdx, n: u32, pad0: u32 }

    /// List of the packets that one ingress has for one egress in this step.
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
    /// Whether round-trip times are needed.
    #[inline]
    pub fn measures_rtts(&self) -> bool {
        self.cc == cc::TIMELY || self.rtt_cap > 0
    }
}

impl Packet {
    /// List of the records that return with an ACK or NACK. It is stored in the field of the payload.
    #[inline]
    pub fn records(&self) -> PacketIdx {
        PacketIdx(self.payload)
    }

    /// Sets the list `head` of records that return with an ACK or NACK.
    #[inline]
    pub fn set_records(&mut self, head: PacketIdx) {
        self.payload = head.0;
    }

    /// The switch that a pause frame belongs to. It is stored in the field of the flow.
    #[inline]
    pub fn frame_switch(&self) -> SwitchIdx {
        SwitchIdx(self.flow.0)
    }

    /// Sets the switch `s` that a pause frame belongs to.
    #[inline]
    pub fn set_frame_switch(&mut self, s: SwitchIdx) {
        self.flow = FlowIdx(s.0);
    }
}

impl Switch {
    /// The ports of this switch.
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
