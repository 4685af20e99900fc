//! Transport parameters: from a person's units to the engine's integers.
//!
//! Layer: spec. Defaults that scale with the NIC's rate are resolved here, because only the built network knows that rate.

use super::config::{Config, scaled};
use super::error::Conflict;
use super::keys::K;
use super::value::Values;
use crate::transport::{Cc, EcnThresholds, Transport};
use crate::units::{BPS_PER_GBPS, BPS_PER_MBPS, PS_PER_US};

/// A fraction with `bits` fraction bits, rounded once.
fn fixed(x: f64, bits: u32) -> u64 {
    scaled(x, (1u64 << bits) as f64)
}

impl Config {
    /// Everything the engine needs to know of the transport, for hosts whose NICs run at `nic_rate_bps` (the first host's; at least 1).
    /// The error names a key whose value does not go with that rate or with another key.
    pub fn transport(&self, nic_rate_bps: u64) -> Result<Transport, Conflict> {
        let v = &self.values;
        let cc = match v.text(K::Cc) {
            "dcqcn" => Cc::Dcqcn,
            "hpcc" => Cc::Hpcc,
            "timely" => Cc::Timely,
            "dctcp" => Cc::Dctcp,
            _ => Cc::None,
        };
        let us = |key: K| scaled(v.float(key), PS_PER_US as f64);
        let mbps = |key: K| scaled(v.float(key), BPS_PER_MBPS as f64);
        // `per_100g` in Mb/s scales with the NIC; at least 1 bps, so that an increase increases.
        let rate = |key: K, per_100g: u64| {
            let scaled = (nic_rate_bps as u128 * u128::from(per_100g) / 100_000) as u64;
            if v.given(key) { mbps(key) } else { scaled.max(1) }
        };
        let (rai, rhai) = match cc {
            Cc::Dcqcn => (rate(K::DcqcnRaiMbps, 20), rate(K::DcqcnRhaiMbps, 200)),
            Cc::Hpcc => (rate(K::HpccRaiMbps, 40), 0),
            Cc::Timely => (rate(K::TimelyRaiMbps, 100), rate(K::TimelyRhaiMbps, 500)),
            Cc::Dctcp => (mbps(K::DctcpRaiMbps), 0),
            Cc::None => (0, 0),
        };
        let min_rate = mbps(K::MinRateMbps);
        if cc != Cc::None && min_rate > nic_rate_bps {
            let nic = nic_rate_bps as f64 / BPS_PER_MBPS as f64;
            return Err(Conflict {
                key: K::MinRateMbps,
                why: format!("it must be at most the NIC's rate, {nic} Mb/s"),
            });
        }
        let int_multi = if v.given(K::HpccIntMulti) {
            v.int(K::HpccIntMulti) as u32
        } else {
            (nic_rate_bps / (25 * BPS_PER_GBPS)).clamp(1, 1024) as u32
        };
        let chunk = match v.int(K::AckChunkBytes) as u64 {
            // No sequence number but 0 is a multiple of it.
            0 => u64::MAX,
            n => n,
        };
        Ok(Transport {
            cc,
            clock_ps: if v.is(K::Clock, "ns") { 1000 } else { 1 },
            seed: self.marking_seed(),
            routing_seed: self.spray_seed(),
            payload: v.int(K::PayloadBytes) as u32,
            data_overhead: match cc {
                Cc::Hpcc => 90,
                Cc::Timely => 56,
                Cc::None | Cc::Dcqcn | Cc::Dctcp => 48,
            },
            ack_bytes: if cc == Cc::Hpcc { 88 } else { 60 },
            ack_interval: v.int(K::AckIntervalBytes) as u64,
            chunk,
            nack_interval_ps: us(K::NackIntervalUs),
            cnp_interval_ps: us(K::CnpIntervalUs),
            rto_ps: us(K::RtoUs),
            rto_retries: v.int(K::RtoRetries) as u32,
            ack_high_prio: v.bool(K::AckHighPrio),
            rate_bound: v.bool(K::RateBound),
            window: v.bool(K::Window),
            var_window: v.bool(K::Window) && v.bool(K::VarWindow),
            min_rate,
            rai,
            rhai,
            g_q32: fixed(v.float(if cc == Cc::Dctcp { K::DctcpG } else { K::DcqcnG }), 32),
            dcqcn_alpha_ps: us(K::DcqcnAlphaUs),
            dcqcn_decrease_ps: us(K::DcqcnDecreaseUs),
            dcqcn_increase_ps: us(K::DcqcnIncreaseUs),
            dcqcn_fast_recovery: v.int(K::DcqcnFastRecovery) as u32,
            dcqcn_clamp: v.bool(K::DcqcnClamp),
            eta_q40: fixed(v.float(K::HpccEta), 40),
            eta_q48: fixed(v.float(K::HpccEta), 48),
            mi_thresh: v.int(K::HpccMiThresh) as u32,
            int_multi,
            fast_react: v.bool(K::HpccFastReact),
            timely_alpha_q32: fixed(v.float(K::TimelyAlpha), 32),
            timely_beta_q32: fixed(v.float(K::TimelyBeta), 32),
            timely_tlow_ps: us(K::TimelyTLowUs),
            timely_thigh_ps: us(K::TimelyTHighUs),
            timely_min_rtt_ps: us(K::TimelyMinRttUs),
            ecn: v.bool(K::Ecn),
            pfc: v.bool(K::Pfc),
            buffer_bytes: self.topology.buffer_bytes,
            reserve_bytes: v.int(K::PfcReserveBytes) as u32,
            resume_offset_bytes: v.int(K::PfcResumeOffsetBytes) as u32,
            pfc_alpha_shift: v.int(K::PfcAlphaShift) as u32,
            ecn_by_rate: self.ecn_by_rate.clone(),
            ecn_per_100g: EcnThresholds {
                kmin_bytes: scaled(v.float(K::EcnKminKb), 1000.0),
                kmax_bytes: scaled(v.float(K::EcnKmaxKb), 1000.0),
                pmax_q32: fixed(v.float(K::EcnPmax), 32),
            },
            global_rtt: v.bool(K::GlobalRtt),
        })
    }
}

/// Reads `transport.ecn_by_rate`, `gbps kmin_kb kmax_kb pmax` groups separated by `;`, under what the single keys override.
pub(super) fn ecn_by_rate(v: &Values) -> Result<Vec<(u64, EcnThresholds)>, Conflict> {
    let text = v.text(K::EcnByRate);
    if text.is_empty() || !v.bool(K::Ecn) {
        return Ok(Vec::new());
    }
    let fail = |group: &str, why: &str| {
        let why = format!(
            "group `{}`: {why}; write `gbps kmin_kb kmax_kb pmax; ...`, for example \"100 400 1600 0.2; 400 1600 6400 0.2\"",
            group.trim()
        );
        Err(Conflict { key: K::EcnByRate, why })
    };
    let mut out: Vec<(u64, EcnThresholds)> = Vec::new();
    for group in text.split(';') {
        let numbers: Vec<f64> = group.split_whitespace().filter_map(|w| w.parse().ok()).collect();
        let [gbps, mut kmin, mut kmax, mut pmax] = numbers[..] else {
            return fail(group, "it must be four numbers");
        };
        if group.split_whitespace().count() != 4
            || !(0.001..=8796.0).contains(&gbps)
            || !(0.0..=1e7).contains(&kmin)
            || !(0.0..=1e7).contains(&kmax)
            || !(0.0..=1.0).contains(&pmax)
        {
            return fail(group, "a number is out of range");
        }
        let per_100g = gbps / 100.0;
        for (key, slot, scale) in
            [(K::EcnKminKb, &mut kmin, per_100g), (K::EcnKmaxKb, &mut kmax, per_100g), (K::EcnPmax, &mut pmax, 1.0)]
        {
            if v.given(key) {
                *slot = v.float(key) * scale;
            }
        }
        if kmin > kmax {
            return fail(group, "kmin is above kmax");
        }
        let rate = scaled(gbps, BPS_PER_GBPS as f64);
        if out.iter().any(|(r, _)| *r == rate) {
            return fail(group, "this rate is given twice");
        }
        out.push((
            rate,
            EcnThresholds {
                kmin_bytes: scaled(kmin, 1000.0),
                kmax_bytes: scaled(kmax, 1000.0),
                pmax_q32: fixed(pmax, 32),
            },
        ));
    }
    Ok(out)
}
