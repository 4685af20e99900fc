//! Transport parameters as integers, resolved once per experiment and never re-derived below.
//!
//! Layer: beside `columns`. `spec` (a person's units) is turned into this by `batch`; the engine's tables and the
//! oracle are both filled from it. docs/explanation/model-semantics.md says what each does.

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

/// What receivers and senders do after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossRecovery {
    /// One NACK a gap, one step back a round trip, and each halves what may be outstanding.
    Adapter,
    /// The reference's: a NACK every `nack_interval_ps`, each a step back, the rate as before.
    Ns3,
}

/// ECN thresholds of ports of one link rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EcnThresholds {
    pub kmin_bytes: u64,
    pub kmax_bytes: u64,
    /// Marking probability at `kmax`, q32 (2^32 = always).
    pub pmax_q32: u64,
}

/// Everything that decides how packets are sent, marked, paused and answered. Times ps, rates bps, sizes bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transport {
    pub cc: Cc,
    /// 1, or 1000 where every transmission is rounded to the nanosecond.
    pub clock_ps: u64,
    /// Seed of marking.
    pub seed: u32,
    /// Seed of spraying.
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
    /// `W' = 0` if false.
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
    /// Shared buffer of a switch that `tier_buffers` says nothing of.
    pub buffer_bytes: u64,
    /// Where tiers differ, of generated networks.
    pub tier_buffers: Option<TierBuffers>,
    pub reserve_bytes: u32,
    pub resume_offset_bytes: u32,
    pub pfc_alpha_shift: u32,
    /// Exact link rate in bps → thresholds; ports of a rate that is not listed scale from `ecn_per_100g`.
    pub ecn_by_rate: Vec<(u64, EcnThresholds)>,
    pub ecn_per_100g: EcnThresholds,
    /// Base RTT and window: one for all flows if true, else per flow from its own path.
    pub global_rtt: bool,
}

/// Shared buffers of the switches of each tier, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TierBuffers {
    /// Switches that have hosts.
    pub leaf: u64,
    /// The middle one of three tiers.
    pub agg: u64,
    /// The highest tier above the leaves.
    pub spine: u64,
}

impl TierBuffers {
    /// Of a switch so many links from the hosts, in a network whose highest switch is `top` links from them.
    pub fn of(&self, tier: u32, top: u32) -> u64 {
        match tier {
            0 | 1 => self.leaf,
            _ if tier == top => self.spine,
            _ => self.agg,
        }
    }

    /// The largest of the three.
    pub fn largest(&self) -> u64 {
        self.leaf.max(self.agg).max(self.spine)
    }
}

impl Transport {
    /// Thresholds of a port whose link runs at `rate_bps`.
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
/// `payload*8*10^12/rate`, floor, ps, and cut off to whole ns under the ns clock). `window`: `rtt_ps * (least rate on the path) / 8 / 10^12`, floor. With
/// `global_rtt` both are maxima over all pairs of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttWindow {
    pub rtt_ps: u64,
    pub window_bytes: u64,
}
