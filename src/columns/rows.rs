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
/// Words of a lineage: two ages, the changes, their distances, the root.
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
    /// A window limits the bytes that a queue pair may have in flight.
    pub const WINDOW: u32 = 1;
    /// The window in force shrinks with the rate.
    pub const VAR_WINDOW: u32 = 2;
    /// Packets are paced at the queue pair's rate, not only at the line rate.
    pub const RATE_BOUND: u32 = 4;
    /// ACKs are also sent while the NIC is paused.
    pub const ACK_HIGH_PRIO: u32 = 8;
    /// HPCC reacts to every acknowledgement, not only once a round trip.
    pub const FAST_REACT: u32 = 16;
    /// DCQCN's target falls to the rate at every decrease, also if nothing has increased it since the last.
    pub const DCQCN_CLAMP: u32 = 32;
    /// Switches mark packets.
    pub const ECN: u32 = 64;
    /// Switches pause their peers before a buffer overflows.
    pub const PFC: u32 = 128;
    /// Integrate queue lengths over time, for links.csv.
    pub const LINKS: u32 = 256;
    /// Every message starts with fresh congestion-control state.
    pub const FRESH_QP: u32 = 512;
    /// The CPU engine may fold where that changes no bit.
    pub const FOLD: u32 = 1024;
    /// With [`FOLD`]: it may also remember what it has simulated.
    pub const MEMO: u32 = 2048;
    /// Events of messages are traced, for folding: `Tables::fold_trace`.
    pub const TRACED: u32 = 4096;
    /// Folding also skips steady phases. The bits at `METRIC_SHIFT` select one of [`super::metric`].
    pub const STEADY: u32 = 8192;
    /// Position of the metric's first bit.
    pub const METRIC_SHIFT: u32 = 14;
    /// Bits of the metric, before the shift.
    pub const METRIC_MASK: u32 = 7;
    /// With [`STEADY`]: where skips gain too little (`fold/run/skips/gain.rs`), the experiment starts over without them.
    pub const MUST_GAIN: u32 = 1 << 20;
    /// Flows have max-min fair rates instead of packets. No packet engine steps the experiment.
    pub const FLOW: u32 = 1 << 17;
    /// With [`STEADY`]: where senders meet at a port, skips continue the measured rates although shares wander.
    pub const RATES: u32 = 1 << 18;
    /// Loss recovery as in the reference simulator (ns-3), instead of that of network adapters.
    pub const NS3_LOSS: u32 = 1 << 19;
    /// Receivers take packets in any order, and senders send only those again that are missing.
    pub const SELECTIVE: u32 = 1 << 21;
    /// Packets of a queue pair take its paths in turn, not at random.
    pub const IN_TURN: u32 = 1 << 22;
    /// Links fail or come back, or flows get other paths, while the experiment runs.
    pub const CHANGES: u32 = 1 << 23;
    /// Egress ports have queues of their own instead of a shared buffer.
    pub const PORT_QUEUES: u32 = 1 << 24;
    /// With [`PORT_QUEUES`]: a packet that finds no place in a queue loses its payload only.
    pub const TRIMMING: u32 = 1 << 25;
    /// With [`SELECTIVE`]: acknowledgements name several packets, and NACKs name packets that were trimmed.
    pub const UEC: u32 = 1 << 26;
    /// With [`UEC`]: senders choose paths again on which packets arrived without a mark.
    pub const REPS: u32 = 1 << 27;
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
    /// No congestion control: queue pairs send at line rate.
    pub const NONE: u32 = 0;
    /// DCQCN (Zhu et al., SIGCOMM 2015).
    pub const DCQCN: u32 = 1;
    /// HPCC (Li et al., SIGCOMM 2019).
    pub const HPCC: u32 = 3;
    /// TIMELY (Mittal et al., SIGCOMM 2015).
    pub const TIMELY: u32 = 7;
    /// DCTCP (Alizadeh et al., SIGCOMM 2010), with a rate in place of its window.
    pub const DCTCP: u32 = 8;
    /// Swift (Kumar et al., SIGCOMM 2020), with a rate in place of its window.
    pub const SWIFT: u32 = 9;
    /// NSCC (UEC specification 1.0, 2025).
    pub const NSCC: u32 = 10;
}

/// Packet kinds, bits 16..18 of [`Packet::meta`].
pub mod kind {
    /// Data of a queue pair.
    pub const DATA: u32 = 0;
    /// An acknowledgement of all bytes before its `seq`.
    pub const ACK: u32 = 1;
    /// An acknowledgement that also asks for what follows again.
    pub const NACK: u32 = 2;
    /// A pause or resume frame.
    pub const FRAME: u32 = 3;
}

/// Layout of [`Packet::meta`].
pub mod meta {
    /// Bits that hold the packet's bytes on the wire.
    pub const WIRE_MASK: u32 = 0xffff;
    /// Position of the first bit of its [`super::kind`].
    pub const KIND_SHIFT: u32 = 16;
    /// Bits of the kind, before the shift.
    pub const KIND_MASK: u32 = 3;
    /// Data: marked by ECN.
    pub const MARKED: u32 = 1 << 18;
    /// ACK: carries a congestion notification.
    pub const CNP: u32 = 1 << 19;
    /// Frame: resume, otherwise pause.
    pub const RESUME: u32 = 1 << 20;
    /// Data of Ultra Ethernet: the sender asks for an acknowledgement at once.
    pub const ASKS: u32 = 1 << 21;
    /// Data that a switch has trimmed to its header.
    pub const TRIMMED: u32 = 1 << 23;
    /// Data of Ultra Ethernet, and the answer to it: it was trimmed at the port that leads to its receiver.
    pub const LAST_HOP: u32 = 1 << 22;
    /// Position of the first bit of the path's number in data of Ultra Ethernet and in the answers to it, where paths are chosen again. It has 8 bits.
    pub const ENTROPY_SHIFT: u32 = 24;
    /// Position of the first bit of the number of hops in its INT vector.
    pub const INT_SHIFT: u32 = 24;
    /// Bits of that number, before the shift.
    pub const INT_MASK: u32 = 7;
}

/// The sequence number of an ACK where packets are taken in any order.
pub mod psn {
    /// Position of the first bit of the offset, which counts packets.
    pub const OFFSET_SHIFT: u32 = 44;
    /// Bits that hold the next byte expected.
    pub const BYTE_MASK: u64 = (1 << 44) - 1;
}

/// Bits of [`FlowTx::flags`].
pub mod qp {
    /// All bytes posted so far are acknowledged.
    pub const FINISHED: u32 = 1;
    /// DCQCN: timers run.
    pub const STARTED: u32 = 2;
    /// DCQCN: a congestion notification came after alpha's last update.
    pub const A_SEEN: u32 = 4;
    /// DCQCN: a congestion notification came after the last check for a decrease.
    pub const D_SEEN: u32 = 8;
    /// The queue pair has sent a message before, so its congestion-control state is valid.
    pub const CREATED: u32 = 16;
    /// DCTCP: congestion window reduced.
    pub const CWR: u32 = 32;
    /// The queue pair is in its NIC's `order`.
    pub const QUEUED: u32 = 64;
    /// Folding (CPU only): the next post or start on this queue pair stops its NIC, because the rows that it will cross belong to no partition yet.
    pub const HELD: u32 = 128;
    /// NSCC: fast increase.
    pub const RISING: u32 = 256;
    /// NSCC: a NACK came since the last quick adaptation.
    pub const ARMED: u32 = 512;
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
/// With queues of ports: number of control packets after which a data packet goes first. Our choice: few enough that data never starves.
pub const CONTROL_TURNS: u32 = 100;
/// Maximum number of hops in an INT header.
pub const INT_HOPS: u32 = 5;
/// Unit of the queue in an INT header, in bytes, times `int_multi`.
pub const INT_Q_UNIT: u32 = 80;
/// Unit of the transmitted bytes in an INT header, in bytes, times `int_multi`.
pub const INT_TX_UNIT: u32 = 128;
/// Bit of an edge that says that it releases a signal, not a task.
pub const EDGE_SIGNAL: u32 = 1 << 31;
/// Shared word with the experiment's flags.
pub const SHARED_FLAGS: u32 = 0;
/// Shared word with the number of flows and tasks that have not finished.
pub const SHARED_FLOWS_LEFT: u32 = 1;
/// Number of shared words before the words of ports.
pub const SHARED_HEADER: u32 = 2;

rows! {
    /// One experiment: where its rows are, its parameters, and its progress.
    Exp {
        // First row of the experiment in each shared table, and number of its rows.
        /// First row in `nics`.
        nic_base: u32,
        /// Number of NICs.
        nic_len: u32,
        /// First row in `ports`.
        port_base: u32,
        /// Number of switch ports.
        port_len: u32,
        /// First row in `switches`.
        switch_base: u32,
        /// Number of switches.
        switch_len: u32,
        /// First row in `flow_tx`, `flow_rx` and `order`.
        flow_base: u32,
        /// Number of queue pairs.
        flow_len: u32,
        /// First row in `packets` and `details`.
        packet_base: u32,
        /// Number of packet records, free ones included.
        packet_len: u32,
        /// First row in `ints`: one INT vector per flow (the remembered one), then one per packet.
        int_base: u32,
        /// Number of INT vectors; 0 without HPCC.
        int_len: u32,
        /// First row in `paths`.
        path_base: u32,
        /// Number of egress ports in all paths.
        path_len: u32,
        /// First row in `plans`.
        plan_base: u32,
        /// Number of plan entries: the squares of the switches' numbers of ports, added up.
        plan_len: u32,
        /// First row in `shared`: the header, one word per port with the bytes held by its ingress, then `mask_words` words of wanted ingresses per
        /// port.
        shared_base: u32,
        /// Number of shared words.
        shared_len: u32,
        /// First row in `rtts`.
        rtt_base: u32,
        /// Number of RTT samples that there is space for: `rtt_cap` per queue pair.
        rtt_len: u32,
        /// First word in `psn_bits`.
        bits_base: u32,
        /// Number of words in `psn_bits`; 0 unless packets are taken in any order.
        bits_len: u32,
        /// First row in `tasks`.
        task_base: u32,
        /// Number of tasks.
        task_len: u32,
        /// First row in `edges`.
        edge_base: u32,
        /// Number of edges.
        edge_len: u32,
        /// First row in `signals`.
        signal_base: u32,
        /// Number of signals.
        signal_len: u32,
        /// First row in `gates`.
        gate_base: u32,
        /// Number of gates.
        gate_len: u32,
        /// First row in `servers`.
        server_base: u32,
        /// Number of servers of gates.
        server_len: u32,
        /// Index of the experiment in the sweep, low word: the ExpId of all its rows.
        exp_id: u32,
        /// Number of words in a port's mask of wanted ingresses: a bit per port of the largest switch.
        mask_words: u32,
        /// First row in `wires`, and half of the first row in `clocks`.
        end_base: u32,
        /// Number of link ends, `nic_len + port_len`. It is also the number of wires, and half the number of clocks.
        end_len: u32,
        /// List of the gates that fired, by (time, gate); passed from `schedule` to `analytical`.
        fired: u32,
        /// Folding: upper limit of the fluctuation of a metric in the steady state (Wormhole, Eq. 6), in millionths; 0: chosen automatically.
        theta_ppm: u32,

        // Progress.
        /// How far the experiment is: one of [`status`].
        status: u32,
        /// 1 if the step stopped between `classify` and `forward`.
        phase: u32,
        /// Simulated time, in ps: the beginning of the next step.
        now: u64,
        /// Length of a step in ps: at most the minimum link delay.
        step: u64,
        /// Simulated time at which the experiment ends at the latest.
        time_limit: u64,
        /// Number of steps so far.
        steps: u64,

        // Parameters.
        /// Congestion control: one of [`cc`].
        cc: u32,
        /// Switches of the model: bits of [`mode`].
        modes: u32,
        /// Time unit to which transmissions are rounded, in ps.
        clock_ps: u32,
        /// Payload of a full data packet, in bytes.
        payload: u32,
        /// Bytes of a data packet on the wire beside its payload.
        data_overhead: u32,
        /// Bytes of an ACK or NACK on the wire.
        ack_bytes: u32,
        /// Seed of ECN marking.
        seed: u32,
        /// Seed of packet spraying.
        routing_seed: u32,
        /// Number of timeouts without progress that a queue pair survives.
        rto_retries: u32,
        /// DCQCN: number of increases of a queue pair towards its target before the target rises.
        fast_recovery: u32,
        /// HPCC: number of additive stages after which a multiplicative one comes (`maxStage`).
        mi_thresh: u32,
        /// Factor of the units of an INT header.
        int_multi: u32,
        /// Distance between the milestones at which a receiver acknowledges, in bytes.
        ack_interval: u64,
        /// A receiver acknowledges at every multiple of this many bytes.
        chunk: u64,
        /// Loss recovery of ns-3: least time between two NACKs for the same byte, in ps.
        nack_interval: u64,
        /// Packets in any order: most packets between the oldest that is not acknowledged and the next new one; a multiple of 32.
        psn_range: u32,
        /// Packets in any order: number of packets after which a missing one is lost; 0: chosen by the number of paths.
        packet_threshold: u32,
        /// Least time between two congestion notifications of a queue pair, in ps.
        cnp_interval: u64,
        /// Retransmission timeout, in ps.
        rto: u64,
        /// Least rate of a queue pair, in bps.
        min_rate: u64,
        /// Additive increase, in bps.
        rai: u64,
        /// Larger (hyper) additive increase, in bps.
        rhai: u64,
        /// Gain of the moving average alpha of DCQCN and DCTCP, in q32.
        g_q32: u64,
        /// DCQCN: period of the updates of alpha, in ps.
        p_alpha: u64,
        /// DCQCN: period of the checks for a decrease, in ps.
        p_dec: u64,
        /// DCQCN: period of increases, in ps.
        p_inc: u64,
        /// HPCC: target utilisation, in q40.
        eta_q40: u64,
        /// HPCC: target utilisation, in q48.
        eta_q48: u64,
        /// TIMELY: weight of the newest RTT difference, in q32.
        timely_alpha_q32: u64,
        /// TIMELY: factor of the decrease, in q32.
        timely_beta_q32: u64,
        /// TIMELY: RTT below which the rate always rises, in ps.
        tlow: u64,
        /// TIMELY: RTT above which the rate always falls, in ps.
        thigh: u64,
        /// TIMELY: RTT by which gradients are divided, in ps.
        min_rtt: u64,
        /// Swift: target of the round trip without hops and flows, in ps; 0: five quarters of the base round trip.
        swift_target: u64,
        /// Swift: share of the target for each switch of the path, in ps.
        swift_hop: u64,
        /// Swift: most that a small window adds to the target, in ps.
        swift_range: u64,
        /// Swift: what a window of one packet adds, before `swift_fs_floor` is taken off, in ps.
        swift_fs_alpha: u64,
        /// Swift: taken off, so that the largest window adds nothing, in ps.
        swift_fs_floor: u64,
        /// Swift: additive increase a round trip, in packets, in q16.
        swift_ai_q16: u64,
        /// Swift: strength of a decrease, in q32.
        swift_beta_q32: u64,
        /// Swift: most that one decrease takes off, in q32.
        swift_max_mdf_q32: u64,
        /// NSCC: round trip of the network, in ps.
        nscc_rtt: u64,
        /// NSCC: target of the queueing delay, in ps.
        nscc_target: u64,
        /// NSCC: queueing delay below which the window rises fast, in ps.
        nscc_low: u64,
        /// NSCC: increase a round trip where the queueing delay is 0, in bytes.
        nscc_near: u64,
        /// NSCC: increase a round trip where the delay is above the target and nothing is marked, in bytes.
        nscc_far: u64,
        /// NSCC: increase a round trip in any case, in bytes.
        nscc_eta: u64,
        /// NSCC: fast increase a byte, in q16.
        nscc_fast_q16: u64,
        /// NSCC: strength of a decrease, in q32.
        nscc_md_q32: u64,
        /// Bytes of a switch's buffer reserved for each port.
        reserve: u32,
        /// Bytes below the pause threshold at which a port resumes its peer.
        resume_offset: u32,
        /// Largest shared buffer of any switch.
        buffer: u64,
        /// Number of RTT samples kept per flow; 0: none.
        rtt_cap: u32,
        /// Folding: number of samples in the window of the steadiness test; 0: chosen automatically.
        samples: u32,
        /// Folding: time between two of these samples, in ns; 0: chosen automatically.
        interval_ns: u32,
        /// Folding: share of skips that is also simulated, to measure their error, in millionths.
        audit_ppm: u32,
        /// Link rates that an INT header can name, in Mb/s: indices 0 to 3.
        rates_mbps_lo: [u32; 4],
        /// Link rates that an INT header can name, in Mb/s: indices 4 to 7.
        rates_mbps_hi: [u32; 4],
    }

    /// A host's network port: transmitter, ACK queue, pool of packets, clocks.
    #[repr(align(64))]
    Nic {
        /// Index of its experiment in the sweep, low word.
        exp: u32,
        /// The link end that receives what this NIC sends.
        peer: LinkEndIdx,
        /// Rate of its link, in bps.
        rate: u64,
        /// Propagation delay of its link, in ps.
        delay: u64,
        /// Transmission time of a full data packet, in ps.
        tx_full: u64,
        /// Transmission time of an ACK, in ps.
        tx_ack: u64,
        /// First of its flows, which are consecutive, in the order of their start.
        flow_first: FlowIdx,
        /// Number of its flows.
        flow_n: u32,
        /// Index of the next flow to start.
        flow_next: u32,
        /// Maximum number of packets that it may start to send in one step.
        worst: u32,
        /// End of the transmission in progress; `NEVER` if idle.
        busy_until: u64,
        /// Lineage of the end of that transmission.
        busy_d: Lineage,
        /// Time at which it looks again for a queue pair that may send, in ps; `NEVER` if it need not.
        timer: u64,
        /// Lineage of that event.
        timer_d: Lineage,
        /// Lower bound of the retransmission deadlines of its queue pairs.
        rto: u64,
        /// Time at which its next flow starts, in ps.
        next_start: u64,
        /// Time at which the first of its running tasks is due, in ps.
        next_task: u64,
        /// List of its running tasks, by time.
        task_head: TaskIdx,
        /// List of the signals given in this step.
        signals: u32,
        /// First packet of its queue of ACKs and NACKs.
        ack_head: PacketIdx,
        /// Last packet of that queue.
        ack_tail: PacketIdx,
        /// 1 if its peer has paused its data; [`HOLDS`](super::HOLDS) while its link is down.
        paused: u32,
        /// Number of queue pairs in its part of `order`.
        qp_n: u32,
        /// Index of the queue pair in `order`, from `flow_first` on, that was served last.
        rr: u32,
        /// List of its free packet records.
        free_head: PacketIdx,
        /// Number of its free packet records.
        free_n: u32,
        /// List of used pause frames; `advance` returns them to their switches.
        to_return: PacketIdx,
        /// Bytes sent so far.
        tx_bytes: u64,
        /// Packets sent so far.
        hops: u64,
        /// Number of times that it was paused.
        pauses: u32,
        /// Fills the row; always 0.
        pad0: u32,
    }

    /// A switch port: egress queue and transmitter, ingress accounting.
    #[repr(align(64))]
    Port {
        /// Index of its experiment in the sweep, low word.
        exp: u32,
        /// The switch that it belongs to.
        switch_idx: SwitchIdx,
        /// The link end that receives what this port sends, with the bit [`LINK_DOWN`](super::LINK_DOWN) while its link is down.
        peer: LinkEndIdx,
        /// Index of its link's rate in the INT header.
        rate_idx: u32,
        /// Rate of its link, in bps.
        rate: u64,
        /// Propagation delay of its link, in ps.
        delay: u64,
        /// Transmission time of a full data packet, in ps.
        tx_full: u64,
        /// Transmission time of an ACK, in ps.
        tx_ack: u64,
        /// Queue up to which no packet is marked, in bytes.
        kmin: u32,
        /// Queue above which every packet is marked, in bytes.
        kmax: u32,
        /// Probability of a mark at `kmax`, in q32.
        pmax_q32: u64,
        /// Bytes that it must still take in after it has sent a pause. With queues of ports: size of the egress queue, in bytes.
        headroom: u32,
        /// Shift of its dynamic pause threshold: the free shared buffer is shifted right by it.
        shift: u32,

        /// 1 while a transmission is in progress, or its end has not been noticed.
        busy: u32,
        /// 1 if the peer has paused this port's queue.
        paused: u32,
        /// End of the transmission in progress, in ps.
        busy_until: u64,
        /// Lineage of that end.
        busy_d: Lineage,
        /// First packet of the egress queue.
        q_head: PacketIdx,
        /// Last packet of the egress queue.
        q_tail: PacketIdx,
        /// Bytes in the egress queue.
        q_bytes: u32,
        /// First pause frame that waits to be sent. With queues of ports: first control packet.
        frame_head: PacketIdx,
        /// Last pause frame that waits to be sent.
        frame_tail: PacketIdx,
        /// Number of pause frames that wait to be sent.
        frames: u32,
        /// 1 if this port has paused its peer. With queues of ports: control packets sent since data last went before one, at most [`CONTROL_TURNS`].
        pausing: u32,
        /// Headroom used by packets that came in by this port.
        headroom_used: u32,
        /// Bytes of the packets that arrive here in this step; set by `plan`, used until `forward`.
        arr_bytes: u32,
        /// Number of these packets, data and ACKs.
        arr_n: u32,
        /// List of pause frames that arrive here in this step.
        in_frames: PacketIdx,
        /// Arrivals for this egress, merged by time. Used only inside `forward_joint`.
        merged: PacketIdx,
        /// List of dropped packets and used pause frames; `advance` returns them to their owners.
        to_return: PacketIdx,
        /// Number of times that its peer has paused it.
        pauses: u32,
        /// Packets dropped so far.
        drops: u32,
        /// Largest `q_bytes` so far.
        max_q: u32,
        /// Bytes of the packets dropped so far.
        dropped_bytes: u64,
        /// Number of random numbers drawn for marking so far.
        draws: u64,
        /// Packets marked so far.
        marks: u64,
        /// Bytes sent so far.
        tx_bytes: u64,
        /// Packets sent so far.
        hops: u64,
        /// Integral of `q_bytes` over time up to `q_since`, in units of 1024 byte-picoseconds.
        q_area: u64,
        /// Time of the last change of `q_bytes` that `q_area` has, in ps.
        q_since: u64,
    }

    /// A switch: its ports, its shared buffer, its pool of pause frames.
    Switch {
        /// Index of its experiment in the sweep, low word.
        exp: u32,
        /// First of its ports, which are consecutive.
        port_first: PortIdx,
        /// Number of its ports.
        port_n: u32,
        /// First of its `port_n * port_n` plan entries.
        plan_first: u32,
        /// Set by `classify`. 1: nothing can pause, resume or drop here in this step, so the ports do not affect each other. 0: `forward_joint`
        /// processes all ports together.
        independent: u32,
        /// Number of ports that have paused their peer or use headroom.
        congested_n: u32,
        /// List of its free records for pause frames.
        free_head: PacketIdx,
        /// Number of these records.
        free_n: u32,
        /// Number of pause frames that the step needs at worst.
        need: u32,
        /// Bytes of the largest packet on the wire.
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
        size: u64,
        /// Next byte to send.
        snd_nxt: u64,
        /// Oldest byte that is not acknowledged.
        snd_una: u64,
        /// Rate in force, in bps.
        rate: u64,
        /// Time from which the rate allows the next packet, in ps.
        next_avail: u64,
        /// Window in force (`W'`), 0 for none. The full window `W` is `window`. NSCC: `cwnd`, in bytes on the wire.
        win: u64,
        /// Maximum number of outstanding bytes after a loss, until all bytes are acknowledged; 0: no limit.
        loss_window: u64,
        /// Bytes of the last packet sent, on the wire.
        last_wire: u32,
        /// Bits of [`qp`].
        flags: u32,
        /// First entry of its paths in `paths`.
        path_first: u32,
        /// Number of entries of one path.
        path_len: u32,
        /// Number of paths, which lie one behind the other.
        n_paths: u32,
        /// Number of data packets sent, for spraying.
        n_sent: u32,
        /// DCQCN, DCTCP: moving average of congestion, in q32. REPS: the paths to choose again, 8 bits each, the oldest in the lowest.
        alpha: u64,
        /// DCQCN: target rate, in bps. NSCC: bytes since the last quick adaptation.
        target: u64,
        /// DCQCN: time of the next update of alpha, in ps. NSCC: time of the last timed adjustment of the window.
        t_alpha: u64,
        /// DCQCN: time of the next check for a decrease, in ps. Swift: time before which there is no further decrease. NSCC: time of the last decrease. `NEVER`: there was none.
        t_dec: u64,
        /// DCQCN: time of the next increase, in ps. NSCC: end of this period of quick adaptation.
        t_inc: u64,
        /// DCQCN, TIMELY: number of increases since the last decrease. HPCC: number of additive stages since the last multiplicative one. REPS:
        /// number of paths to choose again.
        stage: u32,
        /// Base RTT, in ns.
        base_rtt_ns: u32,
        /// HPCC: moving average of the utilisation, in q48. NSCC: average of the queueing delay, in 1/256 ps.
        u: u64,
        /// HPCC: reference rate, in bps. NSCC: increase that has not been applied to the window.
        rc: u64,
        /// Byte at which the current round of the congestion control ends.
        last_seq: u64,
        /// DCTCP: byte beyond which an acknowledgement allows the next decrease. HPCC: acknowledgements up to this byte tell of paths that the queue pair has no more.
        /// NSCC: bytes in flight at the last quick adaptation.
        high_seq: u64,
        /// TIMELY: smoothed difference between RTTs, in ps with 22 fraction bits. NSCC: bytes towards fast increase.
        diff: i64,
        /// TIMELY: the RTT before, in ps. NSCC: least round trip so far.
        last_rtt: u64,
        /// DCTCP: marked acknowledgements in this round. NSCC: bytes since the last adjustment of the window.
        cnt: u32,
        /// DCTCP: packets of this round. NSCC: bytes of this period of quick adaptation.
        batch: u32,
        /// Full window `W`, in bytes.
        window: u64,
        /// Deadline of the retransmission timeout, in ps.
        rto_at: u64,
        /// With a loss window: time of the last step back, in ps.
        back_at: u64,
        /// With a loss window: time of the window's last change, in ps.
        window_at: u64,
        /// Packets in any order: the search for lost packets goes on from this byte.
        rtx_next: u64,
        /// Packets in any order: what is missing below this byte is lost.
        rtx_end: u64,
        /// Packets in any order: `snd_nxt` when it last sent a packet again.
        resent: u64,
        /// Packets in any order: number of packets beyond `snd_una` that have arrived.
        sacked: u32,
        /// Packets in any order: number of lost packets that wait to be sent again.
        lost: u32,
        /// Time at which it starts, in ps.
        start: u64,
        /// Time of its last acknowledgement, in ps.
        finish: u64,
        /// Payload bytes sent so far, again ones included.
        sent_bytes: u64,
        /// Timeouts since the last progress.
        retries: u32,
        /// Its source NIC.
        nic: NicIdx,
        /// The flow's number that users see.
        flow_id: u32,
        /// Index of its experiment in the sweep, low word.
        exp: u32,
        /// RTT samples taken so far.
        rtt_seen: u32,
        /// One of this many samples is kept.
        rtt_stride: u32,
        /// RTT samples kept so far.
        rtt_n: u32,
        /// Number of steps back for a NACK since the last progress.
        stalls: u32,
        /// The next message to post.
        msg_post: TaskIdx,
        /// The message that `snd_nxt` is in.
        msg_send: TaskIdx,
        /// The oldest message that is not acknowledged.
        msg_ack: TaskIdx,
        /// Flow level: index + 1 of the queue pair that carries this one's bytes together with its own; 0: it is not joined.
        joined: u32,
        /// End byte of `msg_send`.
        send_end: u64,
        /// End byte of `msg_ack`.
        ack_end: u64,
    }

    /// A queue pair at its receiver. Only its destination NIC writes it.
    FlowRx {
        /// End byte of the message that is arriving.
        msg_end: u64,
        /// Next byte expected.
        expected: u64,
        /// Byte at which the next acknowledgement is due. Ultra Ethernet: value of `arrived_bytes` at which it is.
        milestone: u64,
        /// Time from which the next NACK may be sent, in ps.
        nack_t: u64,
        /// Loss recovery of adapters: first byte of the last packet beyond a gap. Loss recovery of ns-3: byte that the last NACK asked for.
        nack_seq: u64,
        /// Time from which the next congestion notification may be sent, in ps.
        cnp_t: u64,
        /// Payload bytes that arrived, again ones included.
        arrived_bytes: u64,
        /// Records of data packets that needed no answer; they return with the next answer.
        held: PacketIdx,
        /// First entry of the paths of its answers in `paths`.
        path_first: u32,
        /// Number of entries of one path.
        path_len: u32,
        /// Number of paths, which lie one behind the other.
        n_paths: u32,
        /// Number of answers sent, for spraying.
        n_acks: u32,
        /// The flow's number that users see.
        flow_id: u32,
        /// Index of its experiment in the sweep, low word.
        exp: u32,
        /// Its destination NIC.
        nic: NicIdx,
        /// The message that is arriving.
        msg: TaskIdx,
        /// Packets in any order: number of packets beyond the expected one that have arrived.
        beyond: u32,
    }

    /// An action of a rank: it takes time, or posts a message. Only its owner writes it, except `got`, which the receiving NIC writes.
    Task {
        /// Index of its experiment in the sweep, low word.
        exp: u32,
        /// NIC whose invocation runs it.
        owner: NicIdx,
        /// Bits of [`task`].
        flags: u32,
        /// Number of dependencies that are not met yet.
        waits: u32,
        /// Next task in its owner's list of running tasks.
        next: TaskIdx,
        /// Message: its queue pair.
        flow: FlowIdx,
        /// Message: the next one on its queue pair.
        follow: TaskIdx,
        /// First of the edges to what waits for its end (for a message: its last acknowledgement).
        done_first: u32,
        /// Number of these edges.
        done_n: u32,
        /// First of the edges to what waits for a message's arrival.
        got_first: u32,
        /// Number of these edges.
        got_n: u32,
        /// Message: number of its queue pair, counted from 1. It is the root of the lineage of what its post causes.
        root: u32,
        /// Time from its release to its end, in ps; for a message: to its post.
        delay: u64,
        /// Message: its size, in bytes.
        bytes: u64,
        /// Time of its release plus its delay, in ps; for a message: time of its post. `NEVER` before.
        at: u64,
        /// Time of its end, in ps. Flow level: before a message that stands for a whole collective is sent, the time that the collective takes alone.
        done: u64,
        /// Time at which a message had arrived whole, in ps. Flow level: as for `done`.
        got: u64,
    }

    /// An edge to a gate.
    Signal {
        /// The gate that is signalled.
        gate: u32,
        /// Next signal in a list.
        next: u32,
        /// Time of the signal, in ps.
        at: u64,
    }

    /// A synchronisation of ranks, or a transfer that is not simulated as packets. When all have signalled, the gate is served and releases tasks of
    /// any owner.
    Gate {
        /// Index of its experiment in the sweep, low word.
        exp: u32,
        /// Number of signals that are missing.
        waits: u32,
        /// Next of the gates that fired.
        next: u32,
        /// Server of the gate, which serves one gate after another. NONE: it needs no server, because its capacity is not shared.
        server: u32,
        /// First of the edges to the tasks that it releases.
        first: u32,
        /// Number of these edges.
        n: u32,
        /// Time of the last signal.
        latest: u64,
        /// Time for which it occupies its server, in ps.
        serial: u64,
        /// Time from then to the release of its tasks, in ps: at least one step.
        latency: u64,
    }

    /// The part of a packet that every hop reads and writes; two packets share a cache line.
    #[repr(align(32))]
    Packet {
        /// Arrival time at the far end of the wire it is on.
        t: u64,
        /// Next packet in its list.
        next: PacketIdx,
        /// Index of the next entry of its path.
        path: u32,
        /// Kind, marks and sizes: see [`meta`].
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
        /// Data: first payload byte; ACK, NACK: next byte expected. Packets in any order: an ACK has in the bits from [`psn::OFFSET_SHIFT`] on how many
        /// packets after that byte the data packet is that it answers.
        seq: u64,
        /// Data: time at which its sender began to send it. ACK, NACK: the same time of the data packet that it answers.
        sent_at: u64,
    }

    /// INT telemetry of a packet, or remembered by a queue pair. One word per hop: time 24 bits, transmitted bytes 20, queue 17, rate index 3.
    IntVec {
        /// One word per hop: time in its low 24 bits, then transmitted bytes (20), queue (17), rate index (3).
        hop: [u64; 5],
    }

    /// Packets on their way to one link end, in order of arrival.
    Wire {
        /// First packet of the list.
        head: PacketIdx,
        /// Last packet of the list.
        tail: PacketIdx,
        /// Number of packets in the list.
        n: u32,
        /// Fills the row; always 0.
        pad0: u32,
    }

    /// List of the packets that one ingress has for one egress in this step.
    Plan {
        /// First packet of the list.
        head: PacketIdx,
        /// Last packet of the list.
        tail: PacketIdx,
    }

    /// A sampled round-trip time.
    RttSample {
        /// Time of the acknowledgement, in ps.
        at: u64,
        /// Round-trip time, in ps.
        rtt: u64,
    }
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
    /// Time at which the current step ends, in ps.
    #[inline]
    pub fn step_end(&self) -> u64 {
        (self.now + self.step).min(self.time_limit)
    }

    /// Whether folding knows all of the state: not samples of round-trip times, not the bits of packets in any order, not queues of ports, and not changes
    /// of the network.
    #[inline]
    pub fn may_fold(&self) -> bool {
        self.rtt_cap == 0 && self.modes & (mode::SELECTIVE | mode::CHANGES | mode::PORT_QUEUES) == 0
    }

    /// Number of bits in `psn_bits` that each queue pair has: of packets that its receiver has, of packets that its sender knows to have arrived, and in Ultra
    /// Ethernet of packets that are lost.
    #[inline]
    pub fn bits_of_qp(&self) -> u32 {
        let sets = if self.modes & mode::UEC == 0 { 2 } else { 3 };
        sets * self.psn_range
    }

    /// Whether round-trip times are needed.
    #[inline]
    pub fn measures_rtts(&self) -> bool {
        matches!(self.cc, cc::TIMELY | cc::SWIFT | cc::NSCC) || self.rtt_cap > 0
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

    /// Memory grows by these sizes; docs/explanation/performance.md quotes these.
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
