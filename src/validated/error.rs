//! Errors of measured rows by table and class, from which errors of other experiments are stated.
//!
//! Layer: validated. It reads the asset; `validation` computes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::class::ExperimentClass;
use super::parts::{ErrorQuantity, WorkloadClass};

const ASSET: &str = include_str!("../../assets/validation/classes.toml");

/// Whether a measurement was used to set constants of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Constants, or choices that its source does not state, were made with it in view.
    Fitted,
    /// No constant or choice was made with it in view.
    Checked,
    /// Its own source says that it is not the time of a healthy idle machine, or most of it is what no part of the simulator stands for.
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

/// Errors of times of a table's rows of one class against measurements. Relative; 0.05 is 5 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassError {
    /// Measured table. Tables of one publication or of one machine share a name and count as one.
    pub table: String,
    /// What the rows measure.
    #[serde(default, skip_serializing_if = "ErrorQuantity::is_time")]
    pub quantity: ErrorQuantity,
    /// Class of the rows.
    #[serde(flatten)]
    pub class: ExperimentClass,
    /// How the measured values were used: fitted, checked or doubtful.
    #[serde(rename = "use")]
    pub used: Use,
    /// GPU of the measured machine, by its name in the assets.
    pub gpu_name: String,
    /// Number of rows without a result.
    pub without_result: u64,
    /// One error for each row with a result, ascending. Above 0: the simulated time is too long.
    pub errors: Vec<f64>,
}

impl ClassError {
    /// Makes the record from the errors of times, rounded to hundredths of a per cent, as in the asset. The quantity is the first one of the kind of work.
    pub fn new(table: &str, class: ExperimentClass, used: Use, gpu_name: &str, errors: &[f64]) -> ClassError {
        let mut errors: Vec<f64> = errors.iter().map(|e| (e * 1e4).round() / 1e4).collect();
        errors.sort_by(f64::total_cmp);
        let (table, gpu_name) = (table.to_string(), gpu_name.to_string());
        let quantity = class.workload.quantities()[0];
        ClassError { table, quantity, class, used, gpu_name, without_result: 0, errors }
    }
}

/// 90th percentile of ascending values, by nearest rank; 0 if there are none.
pub fn nearest_rank_90(ascending: &[f64]) -> f64 {
    ascending.get((ascending.len() * 9).div_ceil(10).saturating_sub(1)).copied().unwrap_or(0.0)
}

/// A number for each quantity that has an error of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByQuantity {
    /// Number of the times of training.
    pub training: f64,
    /// Number of the times of collectives.
    pub collective: f64,
    /// Number of the throughputs of inference.
    pub throughput: f64,
    /// Number of the latencies of inference.
    pub latency: f64,
}

impl ByQuantity {
    /// The number of a quantity of a kind of work.
    pub fn of(&self, workload: WorkloadClass, quantity: ErrorQuantity) -> f64 {
        match (workload, quantity) {
            (WorkloadClass::Training, _) => self.training,
            (WorkloadClass::Collective, _) => self.collective,
            (WorkloadClass::Serving, ErrorQuantity::Latency) => self.latency,
            (WorkloadClass::Serving, ErrorQuantity::Throughput | ErrorQuantity::Time) => self.throughput,
        }
    }

    /// Gives every quantity the same number.
    pub fn all(number: f64) -> ByQuantity {
        ByQuantity { training: number, collective: number, throughput: number, latency: number }
    }
}

/// Errors of all measured tables, and the rule that states errors of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassErrors {
    /// Factors by which a stated error grows with each difference from what was measured. `validation` fits them.
    pub widening: ByQuantity,
    /// By how much stated errors of left-out tables are wider than needed, as a median over tables.
    pub median_width: ByQuantity,
    /// Errors by table, class and use.
    #[serde(rename = "class", default)]
    pub classes: Vec<ClassError>,
}

impl ClassErrors {
    /// The errors in the asset of the program.
    pub fn built_in() -> &'static ClassErrors {
        static READ: OnceLock<ClassErrors> = OnceLock::new();
        READ.get_or_init(|| toml::from_str(ASSET).expect("the asset is part of the program and a test reads it"))
    }

    /// GPUs of the machines on which a kind of work was measured, in alphabetical order.
    pub fn gpus(&self, workload: WorkloadClass) -> BTreeSet<&str> {
        self.of(workload).map(|c| c.gpu_name.as_str()).collect()
    }

    /// Errors of a kind of work that have a row with a result.
    fn of(&self, workload: WorkloadClass) -> impl Iterator<Item = &ClassError> {
        self.classes.iter().filter(move |c| c.class.workload == workload && !c.errors.is_empty())
    }

    /// Errors of a quantity of a kind of work by table. `left_out` is a table that is treated as if nobody had measured it.
    pub(super) fn by_table(
        &self,
        workload: WorkloadClass,
        quantity: ErrorQuantity,
        left_out: Option<&str>,
    ) -> BTreeMap<&str, Vec<&ClassError>> {
        let mut tables: BTreeMap<&str, Vec<&ClassError>> = BTreeMap::new();
        let own = self.of(workload).filter(|c| c.quantity == quantity && left_out != Some(c.table.as_str()));
        for error in own {
            tables.entry(&error.table).or_default().push(error);
        }
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_asset_reads() {
        let errors = ClassErrors::built_in();
        for workload in WorkloadClass::ALL {
            let min_tables = if workload == WorkloadClass::Serving { 4 } else { 8 };
            for quantity in workload.quantities() {
                assert!(errors.by_table(workload, *quantity, None).len() >= min_tables, "{workload:?} {quantity:?}");
                assert!(errors.widening.of(workload, *quantity) > 1.0, "{workload:?} {quantity:?}");
            }
        }
        assert!(errors.classes.iter().all(|c| c.used != Use::Doubtful && c.errors.is_sorted_by(|a, b| a <= b)));
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!((nearest_rank_90(&values), nearest_rank_90(&values[..1]), nearest_rank_90(&[])), (9.0, 1.0, 0.0));
    }
}
