//! A key that is fitted: its bounds, its scale, and its possible values.
//!
//! Layer: calibrate.

use super::error::CalibrateError;
use hyperfold_config::spec::{Key, KeyId, KeyKind, Value, find, hint};
use hyperfold_config::sweep::Sweep;

/// Default bounds: the sweep's value divided by `TIMES_BELOW`, and multiplied by `TIMES_ABOVE`. Our choice.
const TIMES_BELOW: f64 = 8.0;
const TIMES_ABOVE: f64 = 4.0;
/// Upper bound of a latency whose value in the sweep is 0, in ns. Our choice: more than any software overhead of a message.
const MAX_LATENCY_NS: f64 = 100_000.0;
/// Number of digits of a value, more than measurements justify.
const DIGITS: i32 = 4;

/// A key to fit. Its place goes from 0, the lower bound, to 1, the upper bound.
#[derive(Clone)]
pub struct FitParameter {
    /// The key.
    pub key: &'static Key,
    /// Value in the sweep.
    pub before: f64,
    /// Lower bound.
    pub min: f64,
    /// Upper bound.
    pub max: f64,
    /// Whether the scale is logarithmic, so that equal steps are equal factors.
    pub log: bool,
}

impl FitParameter {
    /// Parses `KEY[=MIN..MAX][,log|linear]`. Defaults depend on the sweep's value and its server.
    ///
    /// # Errors
    /// The key has no numbers, it is an axis of the sweep, or the bounds are not valid.
    pub fn parse(text: &str, sweep: &Sweep) -> Result<FitParameter, CalibrateError> {
        let bad = |why: String| CalibrateError::Parameter { text: text.to_string(), why };
        let (rest, scale) = match text.rsplit_once(',') {
            Some((rest, scale)) => (rest, Some(scale.trim())),
            None => (text, None),
        };
        let (name, bounds) = match rest.split_once('=') {
            Some((name, bounds)) => (name.trim(), Some(bounds.trim())),
            None => (rest.trim(), None),
        };
        let key = find(name).ok_or_else(|| bad(format!("unknown key `{name}`; {}", hint(name))))?;
        let (key_min, key_max) = match key.kind {
            KeyKind::Float { min, max, .. } => (min, max),
            KeyKind::Int { min, max } => (min as f64, max as f64),
            _ => {
                return Err(bad(format!("`{name}` is no number: it is {}; only numbers can be fitted", key.accepts())));
            }
        };
        if sweep.axes.iter().any(|axis| axis == name) {
            return Err(bad(format!("`{name}` is an axis of the sweep; what is varied cannot be fitted")));
        }
        let (before, by_server) = before(sweep, key).map_err(&bad)?;
        let (min, max) = match bounds {
            Some(bounds) => {
                let pair =
                    bounds.split_once("..").and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
                pair.filter(|(a, b): &(f64, f64)| a < b && a.is_finite() && b.is_finite())
                    .ok_or_else(|| bad("bounds are MIN..MAX, for example topology.link_gbps=50..400".to_string()))?
            }
            None => usual_bounds(key, before, by_server).ok_or_else(|| {
                bad(format!("the sweep has 0 there, which says no bounds; write --fit {name}=MIN..MAX"))
            })?,
        };
        let explicit = bounds.is_some();
        if explicit && (min < key_min || max > key_max) {
            return Err(bad(format!("the bounds leave what the key may be: {}", key.accepts())));
        }
        let (min, max) = (min.max(key_min), max.min(key_max));
        let log = match scale {
            None => min > 0.0,
            Some("log") if min > 0.0 => true,
            Some("log") => return Err(bad("a logarithmic scale needs a lower bound above 0".to_string())),
            Some("linear") => false,
            Some(other) => return Err(bad(format!("the scale `{other}` is none; write log or linear"))),
        };
        if key.check_number(before, None).is_err() || min >= max {
            return Err(bad(format!("`{name}` = {before} leaves no room to fit; write --fit {name}=MIN..MAX")));
        }
        Ok(FitParameter { key, before: before.clamp(min, max), min, max, log })
    }

    /// The value at a place, rounded to a few digits and to the key's grid.
    pub fn value(&self, place: f64) -> f64 {
        let place = place.clamp(0.0, 1.0);
        let exact = match self.log {
            true => self.min * libm::pow(self.max / self.min, place),
            false => self.min + (self.max - self.min) * place,
        };
        let rounded: f64 = match self.key.kind {
            KeyKind::Int { .. } => exact.round(),
            KeyKind::Float { quantum, .. } => {
                let digits = format!("{exact:.*e}", DIGITS as usize - 1).parse().unwrap_or(exact);
                // It is rounded in decimal digits, so that 0.1 does not become 0.1000000001.
                if quantum > 0.0 { format!("{digits:.*}", decimals(quantum)).parse().unwrap_or(digits) } else { digits }
            }
            _ => exact,
        };
        rounded.clamp(self.min, self.max)
    }

    /// The place of a value.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.log {
            true => libm::log(value / self.min) / libm::log(self.max / self.min),
            false => (value - self.min) / (self.max - self.min),
        };
        place.clamp(0.0, 1.0)
    }

    /// The value as TOML.
    pub fn toml(&self, value: f64) -> String {
        match self.key.kind {
            KeyKind::Int { .. } => Value::Int(value as i64).to_toml(),
            _ => Value::Float(value).to_toml(),
        }
    }

    /// The argument of `--set` for the value.
    pub fn set(&self, value: f64) -> String {
        format!("{}={}", self.key.name, self.toml(value))
    }
}

/// Number of digits after the point of a grid such as 0.001.
fn decimals(quantum: f64) -> usize {
    (-libm::log10(quantum)).ceil().max(0.0) as usize
}

/// The value in the sweep's experiments, and whether it comes from the server's data sheet.
fn before(sweep: &Sweep, key: &Key) -> Result<(f64, bool), String> {
    let mut found: Option<(f64, bool)> = None;
    for e in sweep.experiments.iter().filter(|e| sweep.cannot_run(e).is_none()) {
        let Ok(config) = sweep.config(e) else { continue };
        let value = config.values.float(key.id);
        let by_server = config.values.has(KeyId::Server) && !config.values.given(key.id);
        match found {
            None => found = Some((value, by_server)),
            Some((other, _)) if other != value => {
                return Err(format!(
                    "experiments of the sweep have {other} and {value}; write one value in [base] to start from"
                ));
            }
            Some(_) => {}
        }
    }
    found.ok_or_else(|| "no experiment of the sweep can run".to_string())
}

/// Default bounds around a value. A rate from a server's data sheet is never exceeded.
fn usual_bounds(key: &Key, before: f64, by_server: bool) -> Option<(f64, f64)> {
    let latency = key.name.ends_with("_ns");
    match before {
        x if x > 0.0 => {
            let upper = match by_server && key.name.ends_with("_gbps") {
                true => x,
                false if latency => (x * TIMES_ABOVE).max(MAX_LATENCY_NS),
                false => x * TIMES_ABOVE,
            };
            Some((x / TIMES_BELOW, upper))
        }
        _ if latency => Some((0.0, MAX_LATENCY_NS)),
        _ => None,
    }
}
