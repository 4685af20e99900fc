//! Transport parameters as integers, resolved once per experiment. Code below reads them and never derives them again.
//!
//! Layer: beside `columns`. `host` computes this from `spec`, which has units for people. The engine's tables and the oracle are both filled from
//! it. docs/explanation/model-semantics.md says what each parameter does.

/// Congestion control of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Cc {
    None = 0,
    Dcqcn = 1,
    Hpcc = 3,
    Timely = 7,
    Dctcp = 8,
}

/// How receivers and senders react to a packet loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossRecovery {
    /// Recovery of network adapters: one NACK per gap, one step back per round trip, and each step back halves the bytes that may be outstanding.
    Adapter,
    /// Recovery of the reference simulator (ns-3): one NACK every `nack_interval_ps`; each NACK is a step back; the rate stays the same.
    Ns3,
}

/// ECN thresholds of a port, which depend on its link rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EcnThresholds {
    pub kmin_bytes: u64,
    pub kmax_bytes: u64,
    /// Marking probability at `kmax`, in q32 (2^32 = always).
    pub pmax_q32: u64,
}

/// All parameters that decide how packets are sent, marked, paused and answered. Times are in ps, rates in bps, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transport {
    pub cc: Cc,
    /// Time unit to which transmissions are rounded: 1 ps, or 1000 ps (ns clock).
    pub clock_ps: u64,
    /// Seed for ECN marking.
    pub seed: u32,
    /// Seed for packet spraying.
    pub routing_seed: u32,
    pub payload: u32,
    pub data_overhead: u32,
    pub ack_bytes: u32,
    pub ack_interval: u64,
    pub chunk: u64,
    pub loss_recovery: LossRecovery,
    pub nack_interval_ps: u64,
    pub cnp_interval_ps: u64,
    pub rto_ps: u64,
    pub rto_retries: u32,
    pub ack_high_prio: bool,
    pub rate_bound: bool,
    /// Whether a window limits the bytes in flight. If false, there is no such limit (`W' = 0`).
    pub window: bool,
    pub var_window: bool,
    pub min_rate: u64,
    pub rai: u64,
    pub rhai: u64,
    // DCQCN, DCTCP
    pub g_q32: u64,
    pub dcqcn_alpha_ps: u64,
    pub dcqcn_decrease_ps: u64,
    pub dcqcn_increase_ps: u64,
    pub dcqcn_fast_recovery: u32,
    pub dcqcn_clamp: bool,
    // HPCC
    pub eta_q40: u64,
    pub eta_q48: u64,
    pub mi_thresh: u32,
    pub int_multi: u32,
    pub fast_react: bool,
    // TIMELY
    pub timely_alpha_q32: u64,
    pub timely_beta_q32: u64,
    pub timely_tlow_ps: u64,
    pub timely_thigh_ps: u64,
    pub timely_min_rtt_ps: u64,
    // switches
    pub ecn: bool,
    pub pfc: bool,
    /// Shared buffer of a switch whose tier has no entry in `tier_buffers`.
    pub buffer_bytes: u64,
    /// Shared buffers per tier, if tiers of a generated network differ.
    pub tier_buffers: Option<TierBuffers>,
    pub reserve_bytes: u32,
    pub resume_offset_bytes: u32,
    pub pfc_alpha_shift: u32,
    /// ECN thresholds for exact link rates in bps. Ports with a rate that is not listed scale from `ecn_per_100g`.
    pub ecn_by_rate: Vec<(u64, EcnThresholds)>,
    pub ecn_per_100g: EcnThresholds,
    /// Whether all flows have one base RTT and window. If false, each flow has those of its own path.
    pub global_rtt: bool,
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

/// Base RTT and window of a flow.
///
/// `rtt_ps`: twice the propagation of the data path plus the transmission of one payload on each of its hops (payload only, one way;
/// `payload*8*10^12/rate`, floor, ps, and cut off to whole ns under the ns clock). `window`: `rtt_ps * (minimum rate on the path) / 8 / 10^12`,
/// floor. With `global_rtt` both are maxima over all pairs of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttWindow {
    pub rtt_ps: u64,
    pub window_bytes: u64,
}
