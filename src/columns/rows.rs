//! Row types of every table. Times are in ps, rates in bps, sizes in bytes. Indices count from the experiment's own first row.
//!
//! A *link end* is a NIC or a switch port: NICs first, then ports, numbered together (`end = n_nic + port`). A *wire* is one direction of a link,
//! named by the link end that receives.

use super::bits::{cc, mixed, mode};
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
        /// First row in `class_queues`.
        class_base: u32,
        /// Number of queues of classes: `class_n` for each link end. 0: all packets are of one class.
        class_len: u32,
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
        /// First row in `wires` and `pause_ps`, and half of the first row in `clocks`.
        end_base: u32,
        /// Number of link ends, `nic_len + port_len`. It is also the number of rows in `wires` and `pause_ps`, and half the number of clocks.
        end_len: u32,
        /// List of the gates that fired, by (time, gate); passed from `schedule` to `analytical`.
        fired: u32,
        /// Folding: upper limit of the fluctuation of a metric in the steady state (Wormhole, Eq. 6), in millionths; 0: chosen automatically.
        theta_ppm: u32,

        // Progress.
        /// How far the experiment is: one of [`status`](super::bits::status).
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
        /// Receiver credit: packets that a burst may send before its receiver gives any.
        credit_burst: u32,
        /// Receiver credit: packets that a sender keeps and asks for at most.
        credit_window: u32,
        /// Receiver credit: packets of a grant.
        credit_grant: u32,
        /// Receiver credit: time from one grant to the next, as a multiple of what its packets take at line rate, in q16.
        credit_stretch_q16: u32,
        /// Adaptive routing: bytes of queue by which a port's grade rises.
        adaptive_grade: u32,
        /// Number of traffic classes; 0 with one class, whose packets have no queues of their own.
        class_n: u32,
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
        /// Place of the first shared word about pauses ([`watch`](super::watch)); 0: no pause is watched.
        watch_first: u32,
        /// Place of the first shared word about averages of queues ([`average`](super::average)); 0: marking goes by the queues themselves.
        average_first: u32,
        /// Marking by averages: the newest queue has the weight 2^-`average_weight`.
        average_weight: u32,
        /// Bytes of a packet after which a switch may forward it; 0: after its last bit.
        cut_through: u32,
        /// Adaptive routing by flowlets: a pause of a queue pair at a switch beyond this ends its flowlet, in ps.
        flowlet_gap: u64,
        /// Place of the first shared word about flowlets ([`flowlet`](super::flowlet)); 0: each packet is routed by itself.
        flowlet_first: u32,
        /// 1: each queue pair adds up its round-trip times.
        sums_rtts: u32,
        /// Place of the first shared word about queues that switches report ([`remote_word`](Self::remote_word)); 0: none does.
        remote_first: u32,
        /// 1: data packets that marking picks are dropped, where their class may lose packets.
        wred_drops: u32,
        /// Fills the row; always 0.
        pad0: u32,
        /// Fills the row; always 0.
        pad1: u32,
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
        /// The link end that receives what this NIC sends, with the bits [`LINK_LOSES`](super::LINK_LOSES) while packets get lost on the way, and
        /// [`FLOWS_LEFT`](super::FLOWS_LEFT) once queue pairs have moved to another NIC.
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
        /// Receiver credit: the last of the queue pairs that wait for a grant, which form a ring.
        waiting: FlowIdx,
    }

    /// A switch port: egress queue and transmitter, ingress accounting.
    #[repr(align(64))]
    Port {
        /// Index of its experiment in the sweep, low word.
        exp: u32,
        /// The switch that it belongs to.
        switch_idx: SwitchIdx,
        /// The link end that receives what this port sends, with the bits [`LINK_TROUBLE`](super::LINK_TROUBLE) while its link is down or loses packets, or its
        /// watchdog drops them.
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
        /// Last pause frame that waits to be sent, or control packet.
        frame_tail: PacketIdx,
        /// Number of pause frames, or control packets, that wait to be sent.
        frames: u32,
        /// 1 if this port has paused its peer. With queues of ports: control packets sent since data last went before one, at most [`CONTROL_TURNS`](super::bits::CONTROL_TURNS).
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

    /// What a traffic class has at one link end. A NIC and a switch port have one such row for each class.
    #[repr(align(64))]
    ClassQueue {
        /// Port: first packet of the egress queue. NIC: first packet of its queue of ACKs and NACKs.
        q_head: PacketIdx,
        /// Last packet of that queue.
        q_tail: PacketIdx,
        /// Port: bytes in the egress queue.
        q_bytes: u32,
        /// 1 if the peer has paused the class.
        paused: u32,
        /// Port: 1 if it has paused the class at its peer.
        pausing: u32,
        /// Port: headroom used by packets of the class that came in by this port.
        headroom_used: u32,
        /// Port: bytes of the class that it must still take in after it has sent a pause; 0 for a class that may lose packets.
        headroom: u32,
        /// 1 if switches pause the class before a buffer overflows. 0: they drop its packets.
        lossless: u32,
        /// Level of the class; level 0 is served first.
        level: u32,
        /// Bytes by which its allowance grows when its turn comes.
        quantum: u32,
        /// Bytes that it may still send in its turn. At most the size of one packet below 0.
        allowance: i64,
        /// The class that was served last of the level that has the number of this class.
        last: u32,
        /// NIC: index in `order`, from `flow_first` on, of the queue pair of the class that was served last.
        rr: u32,
        /// Port: bytes of the class sent so far.
        tx_bytes: u64,
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
        /// Adaptive routing: 1 if data packets choose among egress ports here, so that the ports affect each other in each step in which something arrives.
        chooses: u32,
        /// Fills the row; always 0.
        pad0: u32,
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
        /// Bits of [`qp`](super::bits::qp).
        flags: u32,
        /// First entry of its paths in `paths`.
        path_first: u32,
        /// Number of entries of one path.
        path_len: u32,
        /// Number of paths, which lie one behind the other. Adaptive routing: its paths are a graph of choices, whose first one is at `path_first`.
        n_paths: u32,
        /// Number of data packets sent, for spraying.
        n_sent: u32,
        /// DCQCN, DCTCP: moving average of congestion, in q32. REPS: the paths to choose again, 8 bits each, the oldest in the lowest. Mixed
        /// entropies: place of the oldest that is kept.
        alpha: u64,
        /// DCQCN: target rate, in bps. NSCC: bytes since the last quick adaptation.
        target: u64,
        /// DCQCN: time of the next update of alpha, in ps. NSCC: time of the last timed adjustment of the window.
        t_alpha: u64,
        /// DCQCN: time of the next check for a decrease, in ps. Swift: time before which there is no further decrease. NSCC: time of the last decrease. `NEVER`: there was none.
        t_dec: u64,
        /// DCQCN: time of the next increase, in ps. NSCC: end of this period of quick adaptation.
        t_inc: u64,
        /// DCQCN, TIMELY: number of increases since the last decrease. HPCC: number of additive stages since the last multiplicative one. REPS
        /// and mixed entropies: number of paths to choose again.
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
        /// With a loss window: time of the last step back, in ps. Receiver credit: when the last packet was sent that left no credit, until the receiver has
        /// answered it; 0: it has.
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
        /// Sum of its round-trip times so far, in ps, where they are added up. There are `rtt_seen` of them.
        rtt_sum: u64,
        /// Timeouts since the last progress.
        retries: u32,
        /// Its source NIC.
        nic: NicIdx,
        /// The flow's number that users see.
        flow_id: u32,
        /// Index of its experiment in the sweep, low word.
        exp: u32,
        /// Number of round-trip times so far, where they are added up.
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
        /// Receiver credit: packets that it may send.
        credit: u32,
        /// Receiver credit: packets that its receiver has given credit for so far, as far as it knows.
        pulled: u32,
        /// Receiver credit: number of NACKs that have come.
        nacked: u32,
        /// Its traffic class.
        class: u32,
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
        /// Receiver credit: packets that it has given credit for so far.
        given: u32,
        /// Receiver credit: packets that the sender wants beyond that.
        wanted: u32,
        /// Receiver credit: the next queue pair of its NIC that waits for a grant.
        next_waiting: FlowIdx,
        /// Receiver credit: number of NACKs that it has sent.
        nacks: u32,
    }

    /// An action of a rank: it takes time, or posts a message. Only its owner writes it, except `got`, which the receiving NIC writes.
    Task {
        /// Index of its experiment in the sweep, low word.
        exp: u32,
        /// NIC whose invocation runs it.
        owner: NicIdx,
        /// Bits of [`task`](super::bits::task).
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
        /// Kind, marks and sizes: see [`meta`](super::bits::meta).
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
        /// Data: first payload byte; ACK, NACK: next byte expected; an ACK that brings credit: [`FlowRx::given`]. With receiver credit, data has in the bits
        /// from [`psn::OFFSET_SHIFT`](super::bits::psn::OFFSET_SHIFT) on the credit that it asks for. Packets in any order: an ACK has in the bits from [`psn::OFFSET_SHIFT`](super::bits::psn::OFFSET_SHIFT) on how many
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

    /// Whether folding knows all of the state: not samples of round-trip times, not the bits of packets in any order, not queues of ports or classes, not choices of switches, not changes
    /// of the network, not averages of queues, and not drops by WRED. Samples over time are known to skips of
    /// steady phases alone.
    #[inline]
    pub fn may_fold(&self) -> bool {
        let unknown = mode::SELECTIVE | mode::CHANGES | mode::PORT_QUEUES | mode::ADAPTIVE | mode::CLASSES;
        let is_sampled = self.modes & (mode::SAMPLED | mode::STEADY) == mode::SAMPLED;
        self.rtt_cap == 0 && self.average_first == 0 && self.wred_drops == 0 && self.modes & unknown == 0 && !is_sampled
    }

    /// Number of bits in `psn_bits` that each queue pair has: of packets that its receiver has, of packets that its sender knows to have arrived, and in Ultra
    /// Ethernet of packets that are lost. Then follows what [`mixed`] says, where entropies are mixed.
    #[inline]
    pub fn bits_of_qp(&self) -> u32 {
        if self.modes & mode::UEC == 0 {
            return 2 * self.psn_range;
        }
        let entropies =
            if self.modes & mode::MIXED == mode::MIXED { 8 * self.psn_range + 32 * mixed::WORDS } else { 0 };
        3 * self.psn_range + entropies
    }

    /// Whether round-trip times are needed.
    #[inline]
    pub fn measures_rtts(&self) -> bool {
        matches!(self.cc, cc::TIMELY | cc::SWIFT | cc::NSCC) || self.sums_rtts > 0
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
            ("ClassQueue", size_of::<ClassQueue>()),
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
