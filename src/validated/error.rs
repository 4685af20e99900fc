//! Errors of classes, and the class whose error applies best to an experiment.
//!
//! Layer: validated. It reads the asset; `validation` computes it.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::changed::{changed, is_unmeasured_network};
use super::class::{ExperimentClass, measured_gpu};
use hyperfold_config::spec::Config;

const ASSET: &str = include_str!("../../assets/validation/classes.toml");

/// Whether a measurement was used to set constants of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Constants, or choices that its source does not state, were made with it in view.
    Fitted,
    /// No constant or choice was made with it in view.
    Checked,
    /// Its own source says that it is not the time of a healthy idle machine.
    Doubtful,
}

impl Use {
    /// Name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Use::Fitted => "fitted",
            Use::Checked => "checked",
            Use::Doubtful => "doubtful",
        }
    }
}

/// Error of times of a class against measurements. Relative; 0.05 is 5 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassError {
    /// Class that the error is of.
    #[serde(flatten)]
    pub class: ExperimentClass,
    /// How the measured values were used: fitted, checked or doubtful.
    #[serde(rename = "use")]
    pub used: Use,
    /// GPUs of the measured machines, by their names in the assets, in alphabetical order.
    #[serde(default)]
    pub gpus: Vec<String>,
    /// Number of rows with a result.
    pub n: u64,
    /// Number of rows without a result.
    pub without_result: u64,
    /// Mean of the absolute errors.
    pub mean: f64,
    /// Mean of the errors. Above 0: simulated times are too long.
    pub bias: f64,
    /// 90th percentile of the absolute errors, by nearest rank. `None`: there are fewer than [`MIN_FOR_P90`] rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<f64>,
}

/// Minimum number of rows for a 90th percentile; below it, the percentile is just one of the largest values.
const MIN_FOR_P90: usize = 10;

impl ClassError {
    /// Makes the error from the errors of times, one for each row with a result. Values are rounded to hundredths of a per cent, as in the asset.
    pub fn new(class: ExperimentClass, used: Use, errors: &[f64], without_result: u64) -> ClassError {
        let round = |x: f64| (x * 1e4).round() / 1e4;
        let n = errors.len();
        let mean = |sum: f64| if n == 0 { 0.0 } else { round(sum / n as f64) };
        let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        ClassError {
            class,
            used,
            gpus: Vec::new(),
            n: n as u64,
            without_result,
            mean: mean(sizes.iter().sum()),
            bias: mean(errors.iter().sum()),
            p90: (n >= MIN_FOR_P90).then(|| round(nearest_rank_90(&sizes))),
        }
    }

    /// Whether a machine with that GPU was measured. `None` is a GPU that no measured machine has.
    pub fn saw(&self, gpu: Option<&str>) -> bool {
        gpu.is_some_and(|gpu| self.gpus.iter().any(|seen| seen == gpu))
    }

    /// Text of the column `validated_error`.
    pub fn text(&self) -> String {
        let percent = |x: f64| format!("{:.1} %", x * 100.0);
        let p90 = self.p90.map_or(String::new(), |p90| format!("90th percentile {}; ", percent(p90)));
        format!("mean {}; {p90}n {}", percent(self.mean), self.n)
    }
}

/// 90th percentile of ascending values, by nearest rank; 0 if there are none.
pub fn nearest_rank_90(ascending: &[f64]) -> f64 {
    ascending.get((ascending.len() * 9).div_ceil(10).saturating_sub(1)).copied().unwrap_or(0.0)
}

/// The measured class that is nearest to an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct NearestClass<'a> {
    /// Error of that class against measurements.
    pub error: &'a ClassError,
    /// The differences: names of features, or of settings that differ from the machine. Empty: the experiment is exactly of that class.
    pub differs: Vec<&'static str>,
}

impl NearestClass<'_> {
    /// Text of the column `validated_class`.
    pub fn text(&self) -> String {
        let class = format!("{}/{}", self.error.class, self.error.used.as_str());
        match self.differs.as_slice() {
            [] => class,
            differs => format!("{class}; other {}", differs.join(" and ")),
        }
    }
}

/// Errors of all classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassErrors {
    /// Every measured class, by its features.
    #[serde(rename = "class", default)]
    pub classes: Vec<ClassError>,
}

impl ClassErrors {
    /// The errors in the asset of the program.
    pub fn built_in() -> &'static ClassErrors {
        static READ: OnceLock<ClassErrors> = OnceLock::new();
        READ.get_or_init(|| toml::from_str(ASSET).expect("the asset is part of the program and a test reads it"))
    }

    /// The class that is nearest to an experiment's class. Workload, framework, parallelism and size must be the same, and GPUs at most one generation apart.
    /// Among those, the nearest GPU generation is preferred, then the same server, precision and network, then checked rows over fitted ones.
    pub fn nearest(&self, class: &ExperimentClass) -> Option<NearestClass<'_>> {
        let generations = |c: &ExperimentClass| (c.gpu as i32 - class.gpu as i32).abs();
        let comparable = |e: &&ClassError| {
            let c = &e.class;
            (c.workload, &c.framework, c.parallelism, c.size)
                == (class.workload, &class.framework, class.parallelism, class.size)
                && e.n > 0
                && generations(c) <= 1
        };
        let distance = |e: &&ClassError| {
            let c = &e.class;
            let others = (c.server != class.server, c.precision != class.precision, c.network != class.network);
            (generations(c), others, e.used == Use::Fitted)
        };
        let error = self.classes.iter().filter(comparable).min_by_key(distance)?;
        let of_both = error.class.features().into_iter().zip(class.features());
        let differs = of_both.filter(|(a, b)| a.1 != b.1).map(|(a, _)| a.0).collect();
        Some(NearestClass { error, differs })
    }

    /// Values of the columns `validated_*` of an experiment that has a time.
    pub fn worth(&self, config: &Config) -> Worth {
        let class = ExperimentClass::of(config).filter(|_| !is_unmeasured_network(config));
        let Some(mut nearest) = class.as_ref().and_then(|class| self.nearest(class)) else {
            return Worth { text: Some(NOT_VALIDATED.to_string()), ..Worth::default() };
        };
        nearest.differs.extend(changed(config));
        let error = nearest.error;
        if !error.saw(measured_gpu(config).as_deref()) {
            return Worth::default();
        }
        Worth {
            text: Some(error.text()),
            class: Some(nearest.text()),
            mean: Some(error.mean),
            p90: error.p90,
            rows: Some(error.n),
        }
    }
}

/// Values of the columns `validated_*`: how reliable a result is. If nothing comparable was measured, only `text` is there. If no machine with the GPU was
/// measured, nothing is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worth {
    /// Column `validated_error`.
    pub text: Option<String>,
    /// Column `validated_class`: the nearest measured class, and what differs.
    pub class: Option<String>,
    /// Mean of the absolute errors; 0.05 is 5 %.
    pub mean: Option<f64>,
    /// 90th percentile of the absolute errors; 0.05 is 5 %.
    pub p90: Option<f64>,
    /// Number of measured rows of that class.
    pub rows: Option<u64>,
}

/// Text of `validated_error` if nothing comparable was measured.
pub const NOT_VALIDATED: &str = "not validated";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{NetworkClass, Parallelism, PrecisionClass, SizeClass, WorkloadClass};
    use hyperfold_llm::collective::Arch;

    fn class(gpu: Arch, precision: PrecisionClass, network: NetworkClass) -> ExperimentClass {
        ExperimentClass {
            workload: WorkloadClass::Training,
            gpu,
            precision,
            framework: "megatron".to_string(),
            parallelism: Parallelism::Model,
            size: SizeClass::Any,
            network,
            server: String::new(),
        }
    }

    #[test]
    fn the_nearest_class_is_told_with_what_is_otherwise() {
        let (packets, closed) = (NetworkClass::Packets, NetworkClass::ClosedForm);
        let class_error =
            |gpu, precision, used, error| ClassError::new(class(gpu, precision, closed), used, &[error, -error], 1);
        let errors = ClassErrors {
            classes: vec![
                class_error(Arch::Ampere, PrecisionClass::Bf16, Use::Fitted, 0.02),
                class_error(Arch::Hopper, PrecisionClass::Bf16, Use::Fitted, 0.03),
                class_error(Arch::Hopper, PrecisionClass::Bf16, Use::Checked, 0.04),
            ],
        };
        let text = |gpu, precision, network| errors.nearest(&class(gpu, precision, network)).map(|n| n.text());
        let hopper = "training/hopper/bf16/megatron/model/closed-form/checked";
        assert_eq!(text(Arch::Hopper, PrecisionClass::Bf16, closed).as_deref(), Some(hopper));
        let blackwell = text(Arch::Blackwell, PrecisionClass::Fp8, packets);
        assert_eq!(blackwell, Some(format!("{hopper}; other gpu and precision and network")));
        let volta = text(Arch::Volta, PrecisionClass::Bf16, closed);
        assert_eq!(volta.as_deref(), Some("training/ampere/bf16/megatron/model/closed-form/fitted; other gpu"));
        let other =
            ExperimentClass { framework: "ddp".to_string(), ..class(Arch::Hopper, PrecisionClass::Bf16, closed) };
        assert_eq!(errors.nearest(&other), None);
        assert_eq!(errors.classes[2].text(), "mean 4.0 %; n 2", "a percentile of two rows says nothing");
    }

    #[test]
    fn a_percentile_needs_ten_rows() {
        let class_error = |n: usize| {
            let errors: Vec<f64> = (1..=n).map(|i| i as f64 / 100.0).collect();
            ClassError::new(class(Arch::Hopper, PrecisionClass::Bf16, NetworkClass::Packets), Use::Fitted, &errors, 0)
        };
        assert_eq!((class_error(9).p90, class_error(10).p90), (None, Some(0.09)));
        assert_eq!(class_error(9).text(), "mean 5.0 %; n 9");
        assert_eq!(class_error(10).text(), "mean 5.5 %; 90th percentile 9.0 %; n 10");
    }

    #[test]
    fn the_asset_reads() {
        let classes = &ClassErrors::built_in().classes;
        assert!(!classes.is_empty() && classes.iter().all(|c| c.n == 0 || !c.gpus.is_empty()));
    }
}
