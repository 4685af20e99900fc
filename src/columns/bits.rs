//! What the values and bits of columns mean, and the constants of the packet model that rows and systems share.

/// Values of [`Exp::status`](super::rows::Exp::status).
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

/// Bits of [`Exp::modes`](super::rows::Exp::modes).
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
    /// The network changes while the experiment runs: links fail, come back, get another rate or lose packets, or flows get other paths.
    pub const CHANGES: u32 = 1 << 23;
    /// Egress ports have queues of their own instead of a shared buffer.
    pub const PORT_QUEUES: u32 = 1 << 24;
    /// With [`PORT_QUEUES`]: a packet that finds no place in a queue loses its payload only.
    pub const TRIMMING: u32 = 1 << 25;
    /// With [`SELECTIVE`]: acknowledgements name several packets, and NACKs name packets that were trimmed.
    pub const UEC: u32 = 1 << 26;
    /// With [`UEC`]: senders choose paths again on which packets arrived without a mark.
    pub const REPS: u32 = 1 << 27;
    /// Both bits together: paths are chosen again, and where none is kept they come in turn but for those with a penalty.
    pub const MIXED: u32 = REPS | IN_TURN;
    /// With [`UEC`]: senders need credit from their receivers.
    pub const CREDIT: u32 = 1 << 28;
    /// Switches choose the egress ports of data packets by their queues.
    pub const ADAPTIVE: u32 = 1 << 29;
    /// The host takes samples over time while the experiment runs.
    pub const SAMPLED: u32 = 1 << 30;
    /// There are several traffic classes.
    pub const CLASSES: u32 = 1 << 31;
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

/// Values of [`Exp::cc`](super::rows::Exp::cc), equal to the reference's `CC_MODE`.
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
    /// No window: credit from receivers alone limits senders (RCCC of the UEC specification 1.0, 2025).
    pub const RCCC: u32 = 11;
    /// Every control with its name, which kernels have in capitals behind `CC_`.
    pub const ALL: [(&str, u32); 8] = [
        ("none", NONE),
        ("dcqcn", DCQCN),
        ("hpcc", HPCC),
        ("timely", TIMELY),
        ("dctcp", DCTCP),
        ("swift", SWIFT),
        ("nscc", NSCC),
        ("rccc", RCCC),
    ];
}

/// Packet kinds, bits 16..18 of [`Packet::meta`](super::rows::Packet::meta).
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

/// Layout of [`Packet::meta`](super::rows::Packet::meta).
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
    /// ACK: it acknowledges nothing but brings credit.
    pub const PULL: u32 = 1 << 20;
    /// Data of Ultra Ethernet: the sender asks for an acknowledgement at once.
    pub const ASKS: u32 = 1 << 21;
    /// Data of Ultra Ethernet, and the answer to it: it was trimmed at the port that leads to its receiver.
    pub const LAST_HOP: u32 = 1 << 22;
    /// Data that a switch has trimmed to its header.
    pub const TRIMMED: u32 = 1 << 23;
    /// Position of the first bit of the path's number in data of Ultra Ethernet and in the answers to it, where paths are chosen again. It has 8 bits.
    pub const ENTROPY_SHIFT: u32 = 24;
    /// Position of the first bit of the number of hops in its INT vector.
    pub const INT_SHIFT: u32 = 24;
    /// Bits of that number, before the shift.
    pub const INT_MASK: u32 = 7;
    /// Position of the first bit of the traffic class. Ultra Ethernet has one class, and other bits here.
    pub const CLASS_SHIFT: u32 = 27;
    /// Bits of the class, before the shift.
    pub const CLASS_MASK: u32 = 7;
    /// Bits of data that its answer takes over: the number of hops and the class.
    pub const ANSWERED: u32 = INT_MASK << INT_SHIFT | CLASS_MASK << CLASS_SHIFT;
}

/// The sequence number of an ACK where packets are taken in any order.
pub mod psn {
    /// Position of the first bit of the offset, which counts packets.
    pub const OFFSET_SHIFT: u32 = 44;
    /// Bits that hold the next byte expected.
    pub const BYTE_MASK: u64 = (1 << 44) - 1;
    /// With receiver credit: bits of the credit that data asks for, from [`OFFSET_SHIFT`] on.
    pub const WANT_MASK: u32 = (1 << 20) - 1;
}

/// What `psn_bits` has of each queue pair with [`mode::MIXED`], after its sets of bits: the entropy of each position in the range, 8 bits
/// each, then these words.
pub mod mixed {
    /// Words with the penalty of each entropy, 4 bits each.
    pub const PENALTY_WORDS: u32 = 256 / 8;
    /// Number of entropies that are kept to choose them again.
    pub const KEPT: u32 = 64;
    /// Words with the entropies that are kept, 8 bits each: a ring.
    pub const KEPT_WORDS: u32 = KEPT / 4;
    /// Number of all these words; the last has the number of the walk's next step.
    pub const WORDS: u32 = PENALTY_WORDS + KEPT_WORDS + 1;
}

/// Bits of [`FlowTx::flags`](super::rows::FlowTx::flags).
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

/// Bits of [`Task::flags`](super::rows::Task::flags).
pub mod task {
    /// The task posts `bytes` on its queue pair. Without this bit it only takes time.
    pub const MESSAGE: u32 = 1;
    /// A message that may be posted as soon as those before it on its queue pair have been.
    pub const READY: u32 = 2;
}

/// Bit of a choice among egress ports (the first word of its place in `paths`) that says that weights of the ports follow, which differ.
pub const WEIGHED_CHOICE: u32 = 1 << 31;
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
