//! Transport parameters as integers, resolved once per experiment. Code below reads them and never derives them again.
//!
//! Layer: beside `columns`. `host` computes this from `spec`, which has units for people. The engine's tables and the oracle are both filled from
//! it. docs/explanation/model-semantics.md says what each parameter does.

/// Congestion control of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Cc {
    /// No congestion control: queue pairs send at line rate.
    None = 0,
    /// DCQCN (Zhu et al., SIGCOMM 2015).
    Dcqcn = 1,
    /// HPCC (Li et al., SIGCOMM 2019).
    Hpcc = 3,
    /// TIMELY (Mittal et al., SIGCOMM 2015).
    Timely = 7,
    /// DCTCP (Alizadeh et al., SIGCOMM 2010), with a rate in place of its window.
    Dctcp = 8,
    /// Swift (Kumar et al., SIGCOMM 2020), with a rate in place of its window.
    Swift = 9,
    /// NSCC, the sender's control of Ultra Ethernet (UEC specification 1.0, 2025).
    Nscc = 10,
    /// RCCC, the receivers' control of Ultra Ethernet: credit alone limits senders.
    Rccc = 11,
}

impl Cc {
    /// Whether it is a control of Ultra Ethernet, with that transport's packets, receivers and senders.
    pub fn is_ultra_ethernet(self) -> bool {
        matches!(self, Cc::Nscc | Cc::Rccc)
    }
}

/// Largest credit that a sender keeps or asks for, in packets: what data asks for has 20 bits, and half of them tell a late wish from a new one.
pub const LARGEST_CREDIT: u32 = 262_144;

/// Credit that receivers hand out, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReceiverCredit {
    /// Packets that a burst may send before its receiver gives any, at most `window_packets`.
    pub burst_packets: u32,
    /// Packets that a sender keeps and asks for at most.
    pub window_packets: u32,
    /// Packets of a grant.
    pub grant_packets: u32,
    /// Time from one grant to the next, as a multiple of what its packets take at line rate, in q16.
    pub stretch_q16: u32,
}

impl ReceiverCredit {
    /// Time from one grant to the next at a NIC, in ps, where a full data packet takes `tx_full_ps`.
    pub fn gap_ps(self, tx_full_ps: u64) -> u64 {
        let packets_ps = u128::from(u64::from(self.grant_packets) * tx_full_ps);
        ((packets_ps * u128::from(self.stretch_q16)) >> 16) as u64
    }
}

/// Constants of NSCC. Times in ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nscc {
    /// Round trip of the network.
    pub rtt_ps: u64,
    /// Target of the queueing delay.
    pub target_ps: u64,
    /// Queueing delay below which the window rises fast.
    pub low_ps: u64,
    /// Increase a round trip where the queueing delay is 0, in bytes.
    pub near_bytes: u64,
    /// Increase a round trip where the delay is above the target and nothing is marked, in bytes.
    pub far_bytes: u64,
    /// Increase of a round trip in any case, in bytes.
    pub eta_bytes: u64,
    /// Fast increase a byte, in q16.
    pub fast_q16: u64,
    /// Strength of a decrease, in q32.
    pub md_q32: u64,
}

impl Nscc {
    /// The constants for a network with round trip `rtt_ps`, whose NICs have the rate `rate_bps`, with packets of `payload` bytes. `target_ps` 0: three quarters
    /// of the round trip where switches trim packets, else all of it.
    ///
    /// Source: the constants of htsim's implementation, which scale from a network of 100 Gb/s and 12 us.
    pub fn of_network(rtt_ps: u64, rate_bps: u64, payload: u32, target_ps: u64, trimming: bool) -> Nscc {
        const REFERENCE_RTT_PS: f64 = 12e6;
        const REFERENCE_BPS: f64 = 100e9;
        let target_ps = match (target_ps, trimming) {
            (0, true) => rtt_ps * 3 / 4,
            (0, false) => rtt_ps,
            (given, _) => given,
        };
        let scale = rtt_ps as f64 * rate_bps as f64 / (REFERENCE_RTT_PS * REFERENCE_BPS);
        let bytes = |packets: f64| (packets * f64::from(payload) * scale).round() as u64;
        Nscc {
            rtt_ps,
            target_ps: target_ps.max(1),
            low_ps: 1_000_000,
            near_bytes: bytes(4.0 * target_ps as f64 / REFERENCE_RTT_PS),
            far_bytes: bytes(5.0),
            eta_bytes: bytes(0.15),
            fast_q16: (0.25 * scale * 65_536.0).round() as u64,
            md_q32: (0.8 * 4_294_967_296.0) as u64,
        }
    }
}

/// Parameters of Swift. Times in ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Swift {
    /// Target of the round trip, without hops and flows; 0: five quarters of the queue pair's base round trip.
    pub target_ps: u64,
    /// Share of the target for each switch on the path.
    pub hop_ps: u64,
    /// Most that few packets in flight add to the target (flow scaling); 0: nothing.
    pub range_ps: u64,
    /// What a window of one packet adds, before `fs_floor_ps` is taken off.
    pub fs_alpha_ps: u64,
    /// Taken off, so that a window of the largest size adds nothing.
    pub fs_floor_ps: u64,
    /// Additive increase a round trip, in packets, in q16.
    pub ai_q16: u64,
    /// Strength of a decrease, in q32.
    pub beta_q32: u64,
    /// Most that one decrease takes off, in q32.
    pub max_mdf_q32: u64,
}

/// How receivers and senders react to a packet loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossRecovery {
    /// Recovery of network adapters: one NACK per gap, one step back per round trip, and each step back halves the bytes that may be outstanding.
    Adapter,
    /// Recovery of the reference simulator (ns-3): one NACK every `nack_interval_ps`; each NACK is a step back; the rate stays the same.
    Ns3,
    /// Receivers take packets in any order, and senders send only those again that are missing.
    Selective,
    /// Ultra Ethernet takes packets in any order too: an ACK names several packets, and a NACK names one that a switch has trimmed.
    Uec,
}

/// Adaptive routing: what the share of packets that a port gets is in proportion to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortWeights {
    /// Nothing: all ports that lead on are alike.
    None,
    /// The number of paths that begin with the port.
    Paths,
    /// The sum over these paths of the rate of their slowest link from the port on.
    Rates,
}

/// Largest range of packets in any order. An ACK's offset has 20 bits.
const LARGEST_PSN_RANGE: u64 = 1_048_544;

/// Most packets between the oldest that is not acknowledged and the next new one, where packets are taken in any order. `window`: the largest bandwidth-delay
/// product in packets; `given`: the key, 0 if it is chosen.
pub fn psn_range(window: u64, given: u32) -> u64 {
    let packets = if given == 0 { window.saturating_mul(4).max(64) } else { u64::from(given) };
    packets.min(LARGEST_PSN_RANGE).next_multiple_of(32)
}

/// ECN thresholds of a port, which depend on its link rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EcnThresholds {
    /// Queue up to which no packet is marked.
    pub kmin_bytes: u64,
    /// Queue above which every packet is marked.
    pub kmax_bytes: u64,
    /// Marking probability at `kmax`, in q32 (2^32 = always).
    pub pmax_q32: u64,
}

/// A traffic class: its packets have queues of their own at every NIC and port, and pauses of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrafficClass {
    /// Classes of level 0 are served first, then those of level 1, and so on. Below [`TrafficClass::MOST`].
    pub level: u32,
    /// Bytes on the wire that it may send in its turn, among the classes of its level. At least the largest packet.
    pub quantum_bytes: u32,
    /// Whether switches pause its senders before a buffer overflows. Else they drop its packets.
    pub lossless: bool,
}

impl TrafficClass {
    /// Largest number of classes: an Ethernet frame has three bits for its priority.
    pub const MOST: usize = 8;
}

/// All parameters that decide how packets are sent, marked, paused and answered. Times are in ps, rates in bps, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transport {
    /// Congestion control of all queue pairs.
    pub cc: Cc,
    /// Time unit to which transmissions are rounded: 1 ps, or 1000 ps (ns clock).
    pub clock_ps: u64,
    /// Seed for ECN marking.
    pub seed: u32,
    /// Seed for packet spraying.
    pub routing_seed: u32,
    /// Whether packets of a flow take its paths in turn, not at random.
    pub spray_in_turn: bool,
    /// Whether senders choose paths again on which packets arrived without a mark. With `spray_in_turn` too, entropies are mixed: where none is kept, they come in
    /// turn but for those with a penalty.
    pub recycles_paths: bool,
    /// Adaptive routing: full data packets of queue by which a port's grade rises. `None`: no switch chooses among paths.
    pub grade_packets: Option<u32>,
    /// Adaptive routing: in proportion to what ports get packets.
    pub port_weights: PortWeights,
    /// Adaptive routing: time from one report of switches about their queues to the next, in ps; 0: they know their own queues only.
    pub remote_queues_ps: u64,
    /// Adaptive routing: a pause of a queue pair at a switch beyond this ends its flowlet, whose packets all leave by one port, in ps. 0: each packet is routed by
    /// itself.
    pub flowlet_gap_ps: u64,
    /// Payload of a full data packet.
    pub payload: u32,
    /// Bytes of a data packet on the wire beside its payload.
    pub data_overhead: u32,
    /// Bytes of an ACK or NACK on the wire.
    pub ack_bytes: u32,
    /// Distance between the milestones at which a receiver acknowledges, in bytes.
    pub ack_interval: u64,
    /// A receiver also acknowledges at every multiple of this many bytes.
    pub chunk: u64,
    /// How losses are recovered from.
    pub loss_recovery: LossRecovery,
    /// Loss recovery of ns-3: least time between two NACKs for the same byte.
    pub nack_interval_ps: u64,
    /// Packets in any order: most packets between the oldest that is not acknowledged and the next new one. 0: four bandwidth-delay products.
    pub psn_range: u32,
    /// Packets in any order: number of packets after which a missing one counts as lost. 0: 1 on a single path, else a bandwidth-delay product.
    pub packet_threshold: u32,
    /// Least time between two congestion notifications of a queue pair.
    pub cnp_interval_ps: u64,
    /// Time without progress after which a queue pair sends again.
    pub rto_ps: u64,
    /// Number of timeouts without progress that a queue pair survives.
    pub rto_retries: u32,
    /// Whether ACKs are also sent while the NIC is paused.
    pub ack_high_prio: bool,
    /// Whether packets are paced at the queue pair's rate, not only at the line rate.
    pub rate_bound: bool,
    /// Whether a window limits the bytes in flight. If false, there is no such limit (`W' = 0`).
    pub window: bool,
    /// Whether the window in force shrinks with the rate.
    pub var_window: bool,
    /// Least rate of a queue pair.
    pub min_rate: u64,
    /// Additive increase of a rate.
    pub rai: u64,
    /// Larger (hyper) additive increase of a rate.
    pub rhai: u64,
    // DCQCN, DCTCP
    /// Gain of the moving average alpha, in q32.
    pub g_q32: u64,
    /// Period of the updates of alpha.
    pub dcqcn_alpha_ps: u64,
    /// Period of the checks for a decrease.
    pub dcqcn_decrease_ps: u64,
    /// Period of increases.
    pub dcqcn_increase_ps: u64,
    /// Number of increases towards the target before the target rises.
    pub dcqcn_fast_recovery: u32,
    /// Whether the target falls to the rate at every decrease, also if nothing has increased it since the last.
    pub dcqcn_clamp: bool,
    // HPCC
    /// Target utilisation, in q40.
    pub eta_q40: u64,
    /// Target utilisation, in q48.
    pub eta_q48: u64,
    /// Number of additive stages after which a multiplicative one comes (`maxStage`).
    pub mi_thresh: u32,
    /// Factor of the units of an INT header.
    pub int_multi: u32,
    /// Whether HPCC reacts to every acknowledgement, not only once a round trip.
    pub fast_react: bool,
    // TIMELY
    /// Weight of the newest RTT difference, in q32.
    pub timely_alpha_q32: u64,
    /// Factor of the decrease, in q32.
    pub timely_beta_q32: u64,
    /// RTT below which the rate always rises.
    pub timely_tlow_ps: u64,
    /// RTT above which the rate always falls.
    pub timely_thigh_ps: u64,
    /// RTT by which gradients are divided.
    pub timely_min_rtt_ps: u64,
    /// Parameters of Swift.
    pub swift: Swift,
    /// Constants of NSCC.
    pub nscc: Nscc,
    /// Credit that senders need from their receivers; none: they need none.
    pub credit: Option<ReceiverCredit>,
    // switches
    /// Whether switches mark packets.
    pub ecn: bool,
    /// Whether switches pause their peers before a buffer overflows.
    pub pfc: bool,
    /// Size of each egress port's own queue at 100 Gb/s, from which those of other rates are scaled; 0: switches have a shared buffer instead.
    pub port_queue_per_100g: u64,
    /// Whether a packet that finds a port's own queue full is trimmed to its header. Else it is dropped.
    pub trimming: bool,
    /// Shared buffer of a switch whose tier has no entry in `tier_buffers`.
    pub buffer_bytes: u64,
    /// Shared buffers per tier, if tiers of a generated network differ.
    pub tier_buffers: Option<TierBuffers>,
    /// Bytes of a packet after which switches forward it if its egress is not faster than the link it comes by; 0: they store all of it first.
    pub cut_through_bytes: u32,
    /// Watchdog of pauses at switches; none: they wait for ever.
    pub watchdog: Option<PauseWatchdog>,
    /// Bytes of a switch's buffer reserved for each port.
    pub reserve_bytes: u32,
    /// Bytes below the pause threshold at which a port resumes its peer.
    pub resume_offset_bytes: u32,
    /// Shift of the dynamic pause threshold: the free shared buffer is shifted right by it.
    pub pfc_alpha_shift: u32,
    /// ECN thresholds for exact link rates in bps. Ports with a rate that is not listed scale from `ecn_per_100g`.
    pub ecn_by_rate: Vec<(u64, EcnThresholds)>,
    /// ECN thresholds of a port at 100 Gb/s, from which those of other rates are scaled.
    pub ecn_per_100g: EcnThresholds,
    /// Marking goes by an average of the queue in which the newest queue has the weight 2^-this; 0: by the queue itself.
    pub ecn_average_weight: u32,
    /// Whether a data packet that marking picks is dropped instead, where its class may lose packets.
    pub wred_drops: bool,
    /// Whether all flows have one base RTT and window. If false, each flow has those of its own path.
    pub global_rtt: bool,
    /// Traffic classes, from 2 to [`TrafficClass::MOST`] of them; empty: all packets are of one class, without queues of its own.
    pub classes: Vec<TrafficClass>,
}

impl Transport {
    /// Whether some data packets that marking picks are dropped: of classes that may lose packets, and of all where nothing pauses.
    pub fn drops_early(&self) -> bool {
        let some_may_be_lost = !self.pfc || self.classes.iter().any(|class| !class.lossless);
        self.wred_drops && self.ecn && self.port_queue_per_100g == 0 && some_may_be_lost
    }
}

/// What switches do about pauses that last too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PauseWatchdog {
    /// Time from a pause frame after which a port sends although it is paused.
    pub detect_ps: u64,
    /// Time from a resume frame after which it obeys pauses again.
    pub restore_ps: u64,
    /// Whether what it sends meanwhile is dropped. Else it is forwarded.
    pub drops: bool,
}

/// Shared buffer of the switches in each tier, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TierBuffers {
    /// Switches that connect to hosts.
    pub leaf: u64,
    /// Switches of the middle tier of three.
    pub agg: u64,
    /// Switches of the highest tier above the leaves.
    pub spine: u64,
}

impl TierBuffers {
    /// Buffer of a switch that is `tier` links from the hosts, in a network whose highest switch is `top` links from them; in bytes.
    pub fn of(&self, tier: u32, top: u32) -> u64 {
        match tier {
            0 | 1 => self.leaf,
            _ if tier == top => self.spine,
            _ => self.agg,
        }
    }

    /// The largest of the three, in bytes.
    pub fn largest(&self) -> u64 {
        self.leaf.max(self.agg).max(self.spine)
    }
}

impl Transport {
    /// Bytes that fit into the own queue of an egress port whose link runs at `rate_bps`, at least a full packet; `None`: switches have a shared buffer.
    pub fn port_queue_for(&self, rate_bps: u64) -> Option<u64> {
        let bytes = u128::from(self.port_queue_per_100g) * u128::from(rate_bps) / 100_000_000_000;
        let full_packet = u64::from(self.payload + self.data_overhead);
        (self.port_queue_per_100g > 0).then_some((bytes as u64).max(full_packet))
    }

    /// Number of classes whose senders switches pause before a buffer overflows: all packets are one of them where there are no classes, and PFC is on.
    pub fn lossless_classes(&self) -> u64 {
        match self.classes.as_slice() {
            [] => u64::from(self.pfc),
            classes => classes.iter().filter(|class| self.pfc && class.lossless).count() as u64,
        }
    }

    /// Whether receivers take packets in any order.
    pub fn takes_any_order(&self) -> bool {
        matches!(self.loss_recovery, LossRecovery::Selective | LossRecovery::Uec)
    }

    /// ECN thresholds of a port whose link runs at `rate_bps`.
    pub fn ecn_for(&self, rate_bps: u64) -> EcnThresholds {
        if let Some((_, t)) = self.ecn_by_rate.iter().find(|(r, _)| *r == rate_bps) {
            return *t;
        }
        let scale = |b: u64| (b as u128 * rate_bps as u128 / 100_000_000_000) as u64;
        let base = self.ecn_per_100g;
        EcnThresholds {
            kmin_bytes: scale(base.kmin_bytes),
            kmax_bytes: scale(base.kmax_bytes),
            pmax_q32: base.pmax_q32,
        }
    }
}

/// Base RTT and window of a flow. With `global_rtt` both are maxima over all pairs of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttWindow {
    /// Twice the propagation of the data path, plus the transmission of one payload on each of its hops one way. Before a switch that cuts through it is that
    /// of its header. A transmission takes `payload*8*10^12/rate` ps, rounded down, and is cut off to whole ns under the ns clock.
    pub rtt_ps: u64,
    /// `rtt_ps * (minimum rate on the path) / 8 / 10^12`, floor.
    pub window_bytes: u64,
}
