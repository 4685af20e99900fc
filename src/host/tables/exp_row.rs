//! The row of an experiment: its parameters, from the transport's.
//!
//! Layer: host.

use bytemuck::Zeroable;
use hyperfold_base::units::BPS_PER_MBPS;
use hyperfold_columns::{Exp, NONE, mode};
use hyperfold_network::changes::{NetworkChange, TimedChange};
use hyperfold_network::topology::{ArcIdx, Network};
use hyperfold_network::transport::{Cc, LossRecovery};

use crate::setup::error::BuildError;
use crate::tables::packet_case::PacketCase;

/// Returns the distinct rates of ports in Mb/s, ascending, for the INT header, those that `changes` bring among them; empty without HPCC.
pub(super) fn int_rates(
    net: &Network,
    cc: Cc,
    flow_level: bool,
    changes: &[TimedChange],
) -> Result<Vec<u32>, BuildError> {
    let arcs = 0..2 * net.links.len() as ArcIdx;
    let mut rates: Vec<u64> =
        arcs.filter(|&arc| net.is_packet_link(net.arc_link(arc))).map(|arc| net.arc_rate(arc)).collect();
    let later = changes.iter().filter_map(|timed| match timed.change {
        NetworkChange::Rate { rate_bps, .. } => Some(rate_bps),
        _ => None,
    });
    let n_own = rates.len();
    rates.extend(later);
    let reduced = !net.slow_arcs.is_empty() || rates.len() > n_own;
    rates.sort_unstable();
    rates.dedup();
    if let Some(&odd) = rates.iter().find(|r| *r % BPS_PER_MBPS != 0) {
        return Err(BuildError::OddRate(odd));
    }
    if cc != Cc::Hpcc || flow_level {
        return Ok(Vec::new());
    }
    if rates.len() > 8 {
        return Err(BuildError::TooManyRates { n: rates.len(), reduced });
    }
    Ok(rates.iter().map(|r| (r / BPS_PER_MBPS) as u32).collect())
}

/// The row of an experiment, without the places of its rows in shared tables.
pub(super) fn header(case: &PacketCase, rates: &[u32], step: u64) -> Exp {
    let tr = case.transport;
    let mut modes = 0;
    for (on, bit) in [
        (tr.window, mode::WINDOW),
        (tr.var_window, mode::VAR_WINDOW),
        (tr.rate_bound, mode::RATE_BOUND),
        (tr.ack_high_prio, mode::ACK_HIGH_PRIO),
        (tr.fast_react, mode::FAST_REACT),
        (tr.dcqcn_clamp, mode::DCQCN_CLAMP),
        (tr.ecn, mode::ECN),
        (tr.pfc, mode::PFC),
        (case.options.links, mode::LINKS),
        (case.graph.is_some_and(|g| g.fresh_qp), mode::FRESH_QP),
        (case.options.flow_level, mode::FLOW),
        (tr.loss_recovery == LossRecovery::Ns3, mode::NS3_LOSS),
        (tr.takes_any_order() && !case.options.flow_level, mode::SELECTIVE),
        (tr.loss_recovery == LossRecovery::Uec && !case.options.flow_level, mode::UEC),
        (tr.port_queue_per_100g > 0 && !case.options.flow_level, mode::PORT_QUEUES),
        (tr.trimming && !case.options.flow_level, mode::TRIMMING),
        (tr.recycles_paths && !case.options.flow_level, mode::REPS),
        (tr.credit.is_some() && !case.options.flow_level, mode::CREDIT),
        (tr.spray_in_turn, mode::IN_TURN),
        (tr.grade_packets.is_some() && !case.options.flow_level, mode::ADAPTIVE),
        (!tr.classes.is_empty() && !case.options.flow_level, mode::CLASSES),
    ] {
        modes |= if on { bit } else { 0 };
    }
    let mut e = Exp::zeroed();
    e.fired = NONE;
    e.exp_id = case.options.exp_id;
    e.step = step;
    e.time_limit = case.options.time_limit_ps;
    e.cc = tr.cc as u32;
    e.modes = modes;
    e.clock_ps = tr.clock_ps as u32;
    e.payload = tr.payload;
    e.data_overhead = tr.data_overhead;
    e.ack_bytes = tr.ack_bytes;
    e.cut_through = tr.cut_through_bytes;
    e.wred_drops = u32::from(tr.drops_early());
    e.seed = tr.seed;
    e.routing_seed = tr.routing_seed;
    e.adaptive_grade = tr.grade_packets.unwrap_or(0) * (tr.payload + tr.data_overhead);
    e.rto_retries = tr.rto_retries;
    e.fast_recovery = tr.dcqcn_fast_recovery;
    e.mi_thresh = tr.mi_thresh;
    e.int_multi = tr.int_multi;
    e.ack_interval = tr.ack_interval;
    e.chunk = tr.chunk;
    e.nack_interval = tr.nack_interval_ps;
    e.cnp_interval = tr.cnp_interval_ps;
    e.rto = tr.rto_ps;
    e.min_rate = tr.min_rate;
    e.rai = tr.rai;
    e.rhai = tr.rhai;
    e.g_q32 = tr.g_q32;
    e.p_alpha = tr.dcqcn_alpha_ps;
    e.p_dec = tr.dcqcn_decrease_ps;
    e.p_inc = tr.dcqcn_increase_ps;
    e.eta_q40 = tr.eta_q40;
    e.eta_q48 = tr.eta_q48;
    e.timely_alpha_q32 = tr.timely_alpha_q32;
    e.timely_beta_q32 = tr.timely_beta_q32;
    e.tlow = tr.timely_tlow_ps;
    e.thigh = tr.timely_thigh_ps;
    e.min_rtt = tr.timely_min_rtt_ps;
    e.swift_target = tr.swift.target_ps;
    e.swift_hop = tr.swift.hop_ps;
    e.swift_range = tr.swift.range_ps;
    e.swift_fs_alpha = tr.swift.fs_alpha_ps;
    e.swift_fs_floor = tr.swift.fs_floor_ps;
    e.swift_ai_q16 = tr.swift.ai_q16;
    e.swift_beta_q32 = tr.swift.beta_q32;
    e.swift_max_mdf_q32 = tr.swift.max_mdf_q32;
    e.nscc_rtt = tr.nscc.rtt_ps;
    e.nscc_target = tr.nscc.target_ps;
    e.nscc_low = tr.nscc.low_ps;
    e.nscc_near = tr.nscc.near_bytes;
    e.nscc_far = tr.nscc.far_bytes;
    e.nscc_eta = tr.nscc.eta_bytes;
    e.nscc_fast_q16 = tr.nscc.fast_q16;
    e.nscc_md_q32 = tr.nscc.md_q32;
    if let Some(credit) = tr.credit {
        e.credit_burst = credit.burst_packets;
        e.credit_window = credit.window_packets;
        e.credit_grant = credit.grant_packets;
        e.credit_stretch_q16 = credit.stretch_q16;
    }
    e.reserve = tr.reserve_bytes;
    e.resume_offset = tr.resume_offset_bytes;
    e.buffer = match tr.port_queue_per_100g {
        0 => tr.tier_buffers.map_or(tr.buffer_bytes, |tiers| tiers.largest()),
        // The queues limit what a switch holds.
        _ => u64::MAX,
    };
    e.rtt_cap = case.options.rtt_cap;
    e.sums_rtts = u32::from(case.options.rtt_means || case.options.rtt_cap > 0);
    for (i, &r) in rates.iter().enumerate() {
        if i < 4 {
            e.rates_mbps_lo[i] = r;
        } else {
            e.rates_mbps_hi[i - 4] = r;
        }
    }
    e
}
