//! Reads `transport.ecn_by_rate`: marking thresholds by link rate.
//!
//! Layer: spec. Results are in bytes and fixed point.

use super::error::Conflict;
use super::key_id::KeyId;
use super::scale::{fixed, scaled};
use super::value::Values;
use hyperfold_base::units::BPS_PER_GBPS;
use hyperfold_network::transport::EcnThresholds;

/// Reads groups of `gbps kmin_kb kmax_kb pmax` separated by `;`. Keys for single thresholds override their values.
pub(super) fn ecn_by_rate(v: &Values) -> Result<Vec<(u64, EcnThresholds)>, Conflict> {
    let text = v.text(KeyId::EcnByRate);
    if text.is_empty() || !v.bool(KeyId::Ecn) {
        return Ok(Vec::new());
    }
    let fail = |group: &str, why: &str| {
        let why = format!(
            "group `{}`: {why}; write `gbps kmin_kb kmax_kb pmax; ...`, for example \"100 400 1600 0.2; 400 1600 6400 0.2\"",
            group.trim()
        );
        Err(Conflict { job: None, key: KeyId::EcnByRate, why })
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
        for (key, slot, scale) in [
            (KeyId::EcnKminKb, &mut kmin, per_100g),
            (KeyId::EcnKmaxKb, &mut kmax, per_100g),
            (KeyId::EcnPmax, &mut pmax, 1.0),
        ] {
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
