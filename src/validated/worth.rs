//! Columns `validated_*`: how reliable the times of an experiment are.
//!
//! Layer: validated. It reads a configuration and the recorded errors.

use super::changed::{changed, is_unmeasured_network};
use super::class::{ExperimentClass, measured_gpu};
use super::error::ClassErrors;
use hyperfold_config::spec::Config;

/// Text of `validated_error` if nothing comparable was measured.
pub const NOT_VALIDATED: &str = "not validated";

/// Values of the columns `validated_*`: how reliable a result is. If nothing comparable was measured, only `text` is there. If no machine with the GPU was
/// measured, nothing is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worth {
    /// Column `validated_error`: a sentence.
    pub text: Option<String>,
    /// Column `validated_class`: the nearest measured class, and what differs.
    pub class: Option<String>,
    /// Mean of the absolute errors; 0.05 is 5 %.
    pub mean: Option<f64>,
    /// 90th percentile of the absolute errors; 0.05 is 5 %.
    pub p90: Option<f64>,
    /// Number of measured rows that are as near as the nearest class.
    pub rows: Option<u64>,
}

impl Worth {
    /// Values of the columns `validated_*` of an experiment that has a time, by the program's own recorded errors.
    pub fn of(config: &Config) -> Worth {
        let not_validated = Worth { text: Some(NOT_VALIDATED.to_string()), ..Worth::default() };
        let Some(class) = ExperimentClass::of(config).filter(|_| !is_unmeasured_network(config)) else {
            return not_validated;
        };
        // Reading them takes milliseconds, so what belongs to no class does without.
        let errors = ClassErrors::built_in();
        let measured = errors.gpus(class.workload);
        let Some(gpu_name) = measured_gpu(config).filter(|name| measured.contains(name.as_str())) else {
            return Worth::default();
        };
        let Some(stated) = errors.stated(&class, &gpu_name, &changed(config), None) else { return not_validated };
        Worth {
            text: Some(stated.text(&class, &gpu_name)),
            class: Some(stated.class_text()),
            mean: Some(rounded(stated.mean)),
            p90: Some(rounded(stated.p90)),
            rows: Some(stated.rows),
        }
    }
}

/// A value rounded to hundredths of a per cent, as recorded errors are.
fn rounded(x: f64) -> f64 {
    (x * 1e4).round() / 1e4
}
