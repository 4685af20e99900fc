//! The overlay: a file with fitted values that a sweep includes.
//!
//! Layer: calibrate. It makes text only. The text has no date, so that equal fits give equal bytes.

use std::fmt::Write;

use super::calibration::Calibration;

/// Inputs of the fit, for reference.
#[derive(Clone, Debug)]
pub struct OverlaySource<'a> {
    /// The measured file, as the user named it.
    pub measured: &'a str,
    /// SHA-256 of its bytes, hexadecimal.
    pub measured_sha256: &'a str,
    /// The sweep file, as the user named it.
    pub sweep: &'a str,
    /// Hash of all experiments of the sweep, as in the manifest.
    pub sweep_digest: &'a str,
    /// Seed of the fit.
    pub seed: u64,
}

/// The overlay as TOML, without parameters that have no effect.
pub fn overlay(calibration: &Calibration, source: &OverlaySource<'_>) -> String {
    let text = |s: &str| toml::Value::String(s.to_string()).to_string();
    let number = |x: f64| toml::Value::Float((x * 1e6).round() / 1e6).to_string();
    let version = env!("CARGO_PKG_VERSION");
    let mut out = String::from(
        "# Fitted by `hyperfold calibrate`. A sweep has these values with include = [\"THIS FILE\"]; keys that it writes itself win.\n\n[base]\n",
    );
    for p in calibration.parameters.iter().filter(|p| p.has_effect) {
        let _ = writeln!(out, "{} = {}", p.key, p.toml);
    }
    let _ = write!(
        out,
        "\n[calibration]\nprogram = \"hyperfold {version}\"\nmeasured = {}\nmeasured_sha256 = \"{}\"\nsweep = {}\nsweep_digest = \"{}\"\nseed = {}\n",
        text(source.measured),
        source.measured_sha256,
        text(source.sweep),
        source.sweep_digest,
        source.seed,
    );
    if calibration.stopped {
        let _ = writeln!(out, "complete = false\ncandidates = {}", calibration.candidates);
    }
    let [before, after] = calibration.fitted.mean;
    let _ = writeln!(out, "weights = {}\nrows = {}", text(calibration.weights), calibration.fitted.rows);
    let _ = writeln!(out, "mean_error_before = {}\nmean_error = {}", number(before), number(after));
    let [before, after] = calibration.fitted.weighted_mean;
    let _ = writeln!(out, "weighted_error_before = {}\nweighted_error = {}", number(before), number(after));
    if !calibration.warnings.is_empty() {
        let warnings: Vec<String> = calibration.warnings.iter().map(|w| text(w)).collect();
        let _ = writeln!(out, "warnings = [{}]", warnings.join(", "));
    }
    if let Some(error) = calibration.cross_validation {
        let _ = writeln!(out, "cross_validation_error = {}", number(error));
    }
    if calibration.held_back.rows > 0 {
        let [before, after] = calibration.held_back.mean;
        let _ = writeln!(out, "held_back_rows = {}", calibration.held_back.rows);
        let _ = writeln!(out, "held_back_error_before = {}\nheld_back_error = {}", number(before), number(after));
    }
    for p in &calibration.parameters {
        let value = |x: f64| toml::Value::Float(x).to_string();
        let _ = write!(
            out,
            "\n[calibration.parameters.{:?}]\nbefore = {}\nvalue = {}\nlow = {}\nhigh = {}\nmin = {}\nmax = {}\n",
            p.key,
            value(p.before),
            value(p.value),
            value(p.low),
            value(p.high),
            value(p.min),
            value(p.max)
        );
        if !p.note.is_empty() {
            let _ = writeln!(out, "note = {}", text(&p.note));
        }
    }
    out
}
