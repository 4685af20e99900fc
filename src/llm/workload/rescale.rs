//! Gives a workload other sizes or durations, for what-if questions about a trace that cannot be recorded again.
//!
//! Layer: workload. The number of ranks is not changed here, because a program does not say how it depends on it. Importers can change it where the format
//! allows (`import::ImportOptions::ranks`).

use super::import::{MAX_BYTES, MAX_PS};
use super::program::{OpKind, Workload};

/// A factor as a fraction, so that rescaling is exact on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Dividend of the factor.
    pub numerator: u64,
    /// Divisor of the factor; at least 1.
    pub denominator: u64,
}

impl Factor {
    /// The factor that changes nothing.
    pub const ONE: Factor = Factor { numerator: 1, denominator: 1 };
}

/// Parses a decimal such as `0.5` or `2`, or a fraction such as `1/3`.
impl std::str::FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Factor, String> {
        let wrong = || format!("`{text}` is not a factor above 0 and up to a million; write for example 2, 0.5 or 1/3");
        let factor = match text.split_once('/') {
            Some((n, d)) => {
                Factor { numerator: n.parse().map_err(|_| wrong())?, denominator: d.parse().map_err(|_| wrong())? }
            }
            None => Factor {
                numerator: super::flows::decimal::scaled(text, 9).ok_or_else(wrong)?,
                denominator: 1_000_000_000,
            },
        };
        let sensible = factor.numerator > 0
            && factor.denominator > 0
            && u128::from(factor.numerator) <= u128::from(factor.denominator) * 1_000_000;
        if sensible { Ok(factor) } else { Err(wrong()) }
    }
}

/// Why a workload cannot be rescaled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RescaleError {
    /// A value becomes too large.
    #[error("operation {op} of program {program}: {value} {unit} times the factor is more than {max}")]
    TooLarge {
        /// Index of the program.
        program: usize,
        /// Number of the op in it.
        op: usize,
        /// Value before it is multiplied.
        value: u64,
        /// Unit of the value.
        unit: &'static str,
        /// Largest value that fits.
        max: u64,
    },
}

/// Multiplies the bytes of all communication and the durations of all compute, rounded to the nearest. Sizes above 0 stay at least 1.
///
/// # Errors
/// A result is larger than the importers accept.
pub fn rescale(w: &mut Workload, bytes: Factor, compute: Factor) -> Result<(), RescaleError> {
    for (program, p) in w.programs.iter_mut().enumerate() {
        for (op, o) in p.ops.iter_mut().enumerate() {
            let (value, factor, min_value, max, unit) = match &mut o.kind {
                OpKind::Compute { ps, .. } => (ps, compute, 0, MAX_PS, "ps"),
                OpKind::Collective { bytes: b, .. } | OpKind::Send { bytes: b, .. } | OpKind::Recv { bytes: b, .. } => {
                    let min_value = u64::from(*b > 0);
                    (b, bytes, min_value, MAX_BYTES, "bytes")
                }
                OpKind::Join => continue,
            };
            let product = u128::from(*value) * u128::from(factor.numerator);
            let scaled = (product + u128::from(factor.denominator) / 2) / u128::from(factor.denominator);
            let too_large = || RescaleError::TooLarge { program, op, value: *value, unit, max };
            *value = u64::try_from(scaled).ok().filter(|&v| v <= max).ok_or_else(too_large)?.max(min_value);
        }
    }
    Ok(())
}
