//! Transport parameters for small experiments.
//!
//! Layer: host.

use hyperfold_network::transport::{Cc, EcnThresholds, LossRecovery, Nscc, Swift, Transport};

const US: u64 = 1_000_000;

/// Parameters that make marks, timers and windows act within a few packets.
pub fn transport(cc: Cc) -> Transport {
    let (data_overhead, ack_bytes) = match cc {
        Cc::Hpcc => (90, 88),
        Cc::Timely | Cc::Swift => (56, 60),
        Cc::Nscc | Cc::Rccc => (64, 64),
        _ => (48, 60),
    };
    Transport {
        cc,
        clock_ps: 1,
        seed: 7,
        routing_seed: 3,
        payload: 1000,
        data_overhead,
        ack_bytes,
        ack_interval: 1,
        chunk: 4_000,
        loss_recovery: LossRecovery::Adapter,
        nack_interval_ps: 20 * US,
        spray_in_turn: false,
        recycles_paths: false,
        psn_range: 0,
        packet_threshold: 0,
        cnp_interval_ps: 0,
        rto_ps: 60 * US,
        rto_retries: 7,
        ack_high_prio: false,
        rate_bound: !cc.is_ultra_ethernet(),
        window: matches!(cc, Cc::Hpcc | Cc::Dctcp | Cc::Swift),
        var_window: matches!(cc, Cc::Hpcc | Cc::Dctcp | Cc::Swift),
        min_rate: 100_000_000,
        rai: 40_000_000,
        rhai: 400_000_000,
        g_q32: 1 << 24,
        dcqcn_alpha_ps: US,
        dcqcn_decrease_ps: 4 * US,
        dcqcn_increase_ps: 10 * US,
        dcqcn_fast_recovery: 1,
        dcqcn_clamp: false,
        eta_q40: (95 << 40) / 100,
        eta_q48: (95 << 48) / 100,
        mi_thresh: 0,
        int_multi: 1,
        fast_react: true,
        timely_alpha_q32: (7 << 32) / 8,
        timely_beta_q32: (8 << 32) / 10,
        timely_tlow_ps: 8 * US,
        timely_thigh_ps: 40 * US,
        timely_min_rtt_ps: 6 * US,
        swift: Swift {
            target_ps: 0,
            hop_ps: US / 4,
            range_ps: 20 * US,
            fs_alpha_ps: 6 * US,
            fs_floor_ps: US,
            ai_q16: 1 << 16,
            beta_q32: 3_435_973_837,
            max_mdf_q32: 1 << 31,
        },
        nscc: Nscc::default(),
        credit: None,
        ecn: true,
        pfc: true,
        port_queue_per_100g: 0,
        trimming: false,
        buffer_bytes: 2 << 20,
        tier_buffers: None,
        reserve_bytes: 4096,
        resume_offset_bytes: 3072,
        pfc_alpha_shift: 3,
        ecn_by_rate: Vec::new(),
        ecn_per_100g: EcnThresholds { kmin_bytes: 8_000, kmax_bytes: 60_000, pmax_q32: 1 << 31 },
        global_rtt: true,
    }
}
