//! Converts transport parameters from a person's units to the engine's integers.
//!
//! Layer: spec. Defaults that scale with the NIC's rate are resolved here, because only the built network knows that rate.

use super::config::Config;
use super::cut_through::{congestion_control, data_overhead};
use super::error::Conflict;
use super::key_id::KeyId;
use super::scale::{fixed, scaled};
use super::value::Values;
use hyperfold_base::units::{BPS_PER_GBPS, BPS_PER_MBPS, PS_PER_US};
use hyperfold_network::transport::{
    Cc, EcnThresholds, LARGEST_CREDIT, LossRecovery, Nscc, PauseWatchdog, PortWeights, ReceiverCredit, Swift, Transport,
};

impl Config {
    /// Returns all transport parameters for the engine. `nic_rate_bps`: rate of the hosts' NICs (the first host's; at least 1). The error names a key whose
    /// value contradicts that rate or another key.
    pub fn transport(&self, nic_rate_bps: u64) -> Result<Transport, Conflict> {
        let v = &self.values;
        let cc = congestion_control(v);
        let us = |key: KeyId| scaled(v.float(key), PS_PER_US as f64);
        let mbps = |key: KeyId| scaled(v.float(key), BPS_PER_MBPS as f64);
        // `per_100g` in Mb/s scales with the NIC; at least 1 bps, so that an increase increases.
        let rate = |key: KeyId, per_100g: u64| {
            let scaled = (nic_rate_bps as u128 * u128::from(per_100g) / 100_000) as u64;
            if v.given(key) { mbps(key) } else { scaled.max(1) }
        };
        let (rai, rhai) = match cc {
            Cc::Dcqcn => (rate(KeyId::DcqcnRaiMbps, 20), rate(KeyId::DcqcnRhaiMbps, 200)),
            Cc::Hpcc => (rate(KeyId::HpccRaiMbps, 40), 0),
            Cc::Timely => (rate(KeyId::TimelyRaiMbps, 100), rate(KeyId::TimelyRhaiMbps, 500)),
            Cc::Dctcp => (mbps(KeyId::DctcpRaiMbps), 0),
            // Swift increases by packets, NSCC by bytes of a window. RCCC has neither.
            Cc::None | Cc::Swift | Cc::Nscc | Cc::Rccc => (0, 0),
        };
        let mut min_rate = mbps(KeyId::MinRateMbps);
        if !v.given(KeyId::MinRateMbps) {
            min_rate = min_rate.min(nic_rate_bps);
        }
        if !matches!(cc, Cc::None | Cc::Nscc | Cc::Rccc) && min_rate > nic_rate_bps {
            let nic = nic_rate_bps as f64 / BPS_PER_MBPS as f64;
            return Err(Conflict {
                job: None,
                key: KeyId::MinRateMbps,
                why: format!("it must be at most the NIC's rate, {nic} Mb/s"),
            });
        }
        let int_multi = if v.given(KeyId::HpccIntMulti) {
            v.int(KeyId::HpccIntMulti) as u32
        } else {
            (nic_rate_bps / (25 * BPS_PER_GBPS)).clamp(1, 1024) as u32
        };
        let chunk = match v.int(KeyId::AckChunkBytes) as u64 {
            // No sequence number except 0 is a multiple of it.
            0 => u64::MAX,
            n => n,
        };
        let payload = v.int(KeyId::PayloadBytes) as u32;
        let data_overhead = data_overhead(cc);
        let ack_bytes = match cc {
            Cc::Hpcc => 88,
            Cc::Nscc | Cc::Rccc => 64,
            _ => 60,
        };
        Ok(Transport {
            cc,
            clock_ps: if v.is(KeyId::Clock, "ns") { 1000 } else { 1 },
            seed: self.marking_seed(),
            routing_seed: self.spray_seed(),
            spray_in_turn: false,
            recycles_paths: false,
            grade_packets: None,
            port_weights: PortWeights::None,
            remote_queues_ps: 0,
            flowlet_gap_ps: 0,
            payload,
            data_overhead,
            ack_bytes,
            ack_interval: v.int(KeyId::AckIntervalBytes) as u64,
            chunk,
            loss_recovery: match v.text(KeyId::LossRecovery) {
                "ns3" => LossRecovery::Ns3,
                "selective" => LossRecovery::Selective,
                "uec" => LossRecovery::Uec,
                _ => LossRecovery::Adapter,
            },
            nack_interval_ps: us(KeyId::NackIntervalUs),
            psn_range: v.int(KeyId::PsnRange) as u32,
            packet_threshold: v.int(KeyId::PacketThreshold) as u32,
            cnp_interval_ps: us(KeyId::CnpIntervalUs),
            rto_ps: us(KeyId::RtoUs),
            rto_retries: v.int(KeyId::RtoRetries) as u32,
            ack_high_prio: v.bool(KeyId::AckHighPrio),
            rate_bound: v.bool(KeyId::RateBound) && !cc.is_ultra_ethernet(),
            window: v.bool(KeyId::Window) && !cc.is_ultra_ethernet(),
            var_window: v.bool(KeyId::Window) && v.bool(KeyId::VarWindow) && !cc.is_ultra_ethernet(),
            min_rate,
            rai,
            rhai,
            g_q32: fixed(v.float(if cc == Cc::Dctcp { KeyId::DctcpG } else { KeyId::DcqcnG }), 32),
            dcqcn_alpha_ps: us(KeyId::DcqcnAlphaUs),
            dcqcn_decrease_ps: us(KeyId::DcqcnDecreaseUs),
            dcqcn_increase_ps: us(KeyId::DcqcnIncreaseUs),
            dcqcn_fast_recovery: v.int(KeyId::DcqcnFastRecovery) as u32,
            dcqcn_clamp: v.bool(KeyId::DcqcnClamp),
            eta_q40: fixed(v.float(KeyId::HpccEta), 40),
            eta_q48: fixed(v.float(KeyId::HpccEta), 48),
            mi_thresh: v.int(KeyId::HpccMiThresh) as u32,
            int_multi,
            fast_react: v.bool(KeyId::HpccFastReact),
            timely_alpha_q32: fixed(v.float(KeyId::TimelyAlpha), 32),
            timely_beta_q32: fixed(v.float(KeyId::TimelyBeta), 32),
            timely_tlow_ps: us(KeyId::TimelyTLowUs),
            timely_thigh_ps: us(KeyId::TimelyTHighUs),
            timely_min_rtt_ps: us(KeyId::TimelyMinRttUs),
            swift: swift(v),
            nscc: Nscc::default(),
            credit: None,
            cut_through_bytes: v.int(KeyId::CutThroughBytes) as u32,
            watchdog: watchdog(v),
            ecn: v.bool(KeyId::Ecn),
            pfc: v.bool(KeyId::Pfc),
            port_queue_per_100g: if v.bool(KeyId::PortQueue) { scaled(v.float(KeyId::PortQueueKb), 1000.0) } else { 0 },
            trimming: v.bool(KeyId::PortQueue) && v.bool(KeyId::Trimming),
            buffer_bytes: self.topology.buffer_bytes,
            tier_buffers: self.topology.tier_buffers,
            reserve_bytes: v.int(KeyId::PfcReserveBytes) as u32,
            resume_offset_bytes: v.int(KeyId::PfcResumeOffsetBytes) as u32,
            pfc_alpha_shift: v.int(KeyId::PfcAlphaShift) as u32,
            ecn_by_rate: self.ecn_by_rate.clone(),
            ecn_per_100g: EcnThresholds {
                kmin_bytes: scaled(v.float(KeyId::EcnKminKb), 1000.0),
                kmax_bytes: scaled(v.float(KeyId::EcnKmaxKb), 1000.0),
                pmax_q32: fixed(v.float(KeyId::EcnPmax), 32),
            },
            ecn_average_weight: v.int(KeyId::EcnAverageWeight) as u32,
            wred_drops: self.drops_early(),
            global_rtt: v.bool(KeyId::GlobalRtt),
            classes: self.classes.as_integers((payload + data_overhead).max(ack_bytes), v.bool(KeyId::Pfc)),
        })
    }
}

/// Sets what depends on the network's round trip, where keys leave it open: constants of NSCC, receiver credit, the ports' own queues, the thresholds of marking
/// and the timeout. `rtt_ps` is the largest base round trip, `nic_rate_bps` the rate of the first host's NIC.
///
/// Sources: htsim's defaults for Ultra Ethernet, whose queues hold one bandwidth-delay product, or five without trimming.
pub fn fit_to_network(config: &Config, transport: &mut Transport, rtt_ps: u64, nic_rate_bps: u64) {
    let v = &config.values;
    let mtu = u64::from(transport.payload + transport.data_overhead);
    let bits = u128::from(rtt_ps) * u128::from(nic_rate_bps) / 1_000_000_000_000;
    let bdp_packets = (bits as u64).div_ceil(8 * mtu).max(1);
    let per_100g =
        |packets: u64| (u128::from(packets * mtu) * 100_000_000_000).div_ceil(u128::from(nic_rate_bps)) as u64;
    if v.bool(KeyId::PortQueue) && transport.port_queue_per_100g == 0 {
        let products = if transport.trimming { 1 } else { 5 };
        transport.port_queue_per_100g = per_100g(products * bdp_packets);
    }
    if !transport.cc.is_ultra_ethernet() {
        return;
    }
    if transport.cc == Cc::Nscc {
        let target_ps = scaled(v.float(KeyId::NsccTargetUs), PS_PER_US as f64);
        transport.nscc = Nscc::of_network(rtt_ps, nic_rate_bps, transport.payload, target_ps, transport.trimming);
    }
    if v.bool(KeyId::ReceiverCredit) {
        let fitting = (bits as u64 * 3).div_ceil(16 * mtu).clamp(1, u64::from(LARGEST_CREDIT));
        let packets = |key: KeyId| match v.int(key) as u64 {
            0 => fitting,
            given => given,
        };
        let window_packets = packets(KeyId::CreditWindowPackets);
        transport.credit = Some(ReceiverCredit {
            burst_packets: packets(KeyId::CreditBurstPackets).min(window_packets) as u32,
            window_packets: window_packets as u32,
            grant_packets: v.int(KeyId::CreditGrantPackets) as u32,
            stretch_q16: (65_536.0 / v.float(KeyId::CreditRate)).round() as u32,
        });
    }
    if !v.given(KeyId::EcnKminKb) {
        transport.ecn_per_100g.kmin_bytes = per_100g(bdp_packets.div_ceil(5));
    }
    if !v.given(KeyId::EcnKmaxKb) {
        transport.ecn_per_100g.kmax_bytes = per_100g((4 * bdp_packets).div_ceil(5));
    }
    if config.default_rto()
        && let Some(queue) = transport.port_queue_for(nic_rate_bps)
    {
        transport.rto_ps =
            15 * PS_PER_US + (u128::from(6 * 8 * queue) * 1_000_000_000_000 / u128::from(nic_rate_bps)) as u64;
    }
}

/// The watchdog of pauses at switches; `None`: there is none.
fn watchdog(v: &Values) -> Option<PauseWatchdog> {
    let us = |key: KeyId| scaled(v.float(key), PS_PER_US as f64);
    let is_on = v.bool(KeyId::Pfc) && !v.is(KeyId::PfcWatchdog, "off");
    is_on.then(|| PauseWatchdog {
        detect_ps: us(KeyId::PfcWatchdogDetectUs),
        restore_ps: us(KeyId::PfcWatchdogRestoreUs),
        drops: v.is(KeyId::PfcWatchdog, "drop"),
    })
}

/// The parameters of Swift.
fn swift(v: &Values) -> Swift {
    let us = |key: KeyId| scaled(v.float(key), PS_PER_US as f64);
    let range_ps = us(KeyId::SwiftFsRangeUs);
    let [min, max] = [KeyId::SwiftFsMinCwnd, KeyId::SwiftFsMaxCwnd].map(|key| 1.0 / libm::sqrt(v.float(key)));
    let alpha = range_ps as f64 / (min - max);
    Swift {
        target_ps: us(KeyId::SwiftTargetUs),
        hop_ps: us(KeyId::SwiftHopUs),
        range_ps,
        fs_alpha_ps: alpha.round() as u64,
        fs_floor_ps: (alpha * max).round() as u64,
        ai_q16: fixed(v.float(KeyId::SwiftAiPackets), 16),
        beta_q32: fixed(v.float(KeyId::SwiftBeta), 32),
        max_mdf_q32: fixed(v.float(KeyId::SwiftMaxMdf), 32),
    }
}
