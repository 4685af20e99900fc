//! Columns `validated_*`: how reliable the times of an experiment are.
//!
//! Layer: validated. It reads a configuration and the recorded errors.

use super::changed::{changed, is_unmeasured_network};
use super::class::{ExperimentClass, measured_gpu};
use super::error::ClassErrors;
use super::parts::{ErrorQuantity, WorkloadClass};
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
    /// Columns `validated_latency_*` of inference: the error of latencies. The other columns are then those of throughput.
    pub latency: Option<LatencyWorth>,
}

/// The error of latencies of inference. Without numbers if nothing comparable was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyWorth {
    /// Column `validated_latency_error`: a sentence.
    pub text: String,
    /// Mean of the absolute errors; 0.05 is 5 %.
    pub mean: Option<f64>,
    /// 90th percentile of the absolute errors; 0.05 is 5 %.
    pub p90: Option<f64>,
}

impl LatencyWorth {
    fn of(errors: &ClassErrors, class: &ExperimentClass, gpu_name: &str, changed: &[&'static str]) -> LatencyWorth {
        let stated = errors.stated(class, ErrorQuantity::Latency, gpu_name, changed, None);
        let text = stated.as_ref().map_or(NOT_VALIDATED.to_string(), |s| s.text(class, gpu_name));
        let [mean, p90] = [stated.as_ref().map(|s| rounded(s.mean)), stated.as_ref().map(|s| rounded(s.p90))];
        LatencyWorth { text, mean, p90 }
    }
}

impl Worth {
    /// Values of the columns `validated_*` of an experiment that has a time, by the program's own recorded errors.
    pub fn of(config: &Config) -> Worth {
        let not_validated = Worth {
            text: Some(NOT_VALIDATED.to_string()),
            latency: Some(LatencyWorth { text: NOT_VALIDATED.to_string(), mean: None, p90: None }),
            ..Worth::default()
        };
        let Some(class) = ExperimentClass::of(config).filter(|_| !is_unmeasured_network(config)) else {
            return not_validated;
        };
        // Reading them takes milliseconds, so what belongs to no class does without.
        let errors = ClassErrors::built_in();
        let measured = errors.gpus(class.workload);
        let Some(gpu_name) = measured_gpu(config).filter(|name| measured.contains(name.as_str())) else {
            return Worth::default();
        };
        let changed = changed(config);
        let is_serving = class.workload == WorkloadClass::Serving;
        let latency = is_serving.then(|| LatencyWorth::of(errors, &class, &gpu_name, &changed));
        let first = class.workload.quantities()[0];
        let Some(stated) = errors.stated(&class, first, &gpu_name, &changed, None) else {
            return Worth { latency, ..not_validated };
        };
        Worth {
            text: Some(stated.text(&class, &gpu_name)),
            class: Some(stated.class_text()),
            mean: Some(rounded(stated.mean)),
            p90: Some(rounded(stated.p90)),
            rows: Some(stated.rows),
            latency,
        }
    }
}

/// A value rounded to hundredths of a per cent, as recorded errors are.
fn rounded(x: f64) -> f64 {
    (x * 1e4).round() / 1e4
}
