//! Errors of classes of experiments, computed from rows of suites. They are the content of `assets/validation/classes.toml`.
//!
//! Layer: validation.

use std::collections::{BTreeMap, BTreeSet};

use super::measured::Unit;
use super::row::ValidationRow;
use hyperfold_validated::{ClassError, ClassErrors, ExperimentClass, Use};

const HEADER: &str = "# How far times of each class of experiments are off measured machines: 0.05 is 5 %.
# Written by `hyperfold validate --write-classes assets/validation/classes.toml`; a test compares it with what `validate` computes.
# docs/explanation/fidelity.md says what decides a class.

";

/// Rows of a class: their errors, the number of rows without a result, and their GPUs.
type RowsOfClass<'a> = (Vec<f64>, u64, BTreeSet<&'a String>);

/// Errors of the classes of the rows, in the order of the classes. Doubtful rows belong to no class.
pub fn classes(rows: &[ValidationRow]) -> ClassErrors {
    let mut by_class: BTreeMap<(&ExperimentClass, Use), RowsOfClass> = BTreeMap::new();
    for row in rows.iter().filter(|r| r.used != Use::Doubtful) {
        let (Some(class), Some(unit)) = (&row.class, Unit::named(&row.unit)) else { continue };
        let (errors, without_result, gpus) = by_class.entry((class, row.used)).or_default();
        gpus.extend(&row.gpu);
        match row.simulated.map(|simulated| unit.time_error(row.measured, simulated)) {
            Some(Some(error)) => errors.push(error),
            Some(None) => {}
            None => *without_result += 1,
        }
    }
    let one = |((class, used), (errors, without_result, gpus)): (_, RowsOfClass<'_>)| {
        let class: &ExperimentClass = class;
        let gpus = gpus.into_iter().cloned().collect();
        ClassError { gpus, ..ClassError::new(class.clone(), used, &errors, without_result) }
    };
    ClassErrors { classes: by_class.into_iter().map(one).collect() }
}

/// Text of the asset.
pub fn classes_toml(errors: &ClassErrors) -> String {
    HEADER.to_string() + &toml::to_string(errors).expect("plain numbers and strings serialise")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_llm::collective::Arch;
    use hyperfold_validated::{NetworkClass, Parallelism, PrecisionClass, SizeClass, WorkloadClass};

    #[test]
    fn errors_are_of_times_and_by_class_and_use() {
        let class = ExperimentClass {
            workload: WorkloadClass::Training,
            gpu: Arch::Hopper,
            precision: PrecisionClass::Fp8,
            framework: "megatron".to_string(),
            parallelism: Parallelism::Moe,
            size: SizeClass::Any,
            network: NetworkClass::ClosedForm,
            server: String::new(),
        };
        let row = |used, unit, values| ValidationRow {
            class: Some(class.clone()),
            gpu: Some("h100-sxm".to_string()),
            ..ValidationRow::new("training", "t", used, "n", unit, values, "")
        };
        let rows = [
            row(Use::Checked, "s", [10.0, 11.0]),
            // Twice the tokens a second is half the time.
            row(Use::Checked, "tokens/s/GPU", [10.0, 20.0]),
            row(Use::Checked, "s", [10.0, f64::NAN]),
            row(Use::Checked, "GiB", [10.0, 99.0]),
            row(Use::Fitted, "s", [10.0, 10.0]),
            row(Use::Doubtful, "s", [10.0, 90.0]),
            ValidationRow::new("training", "t", Use::Checked, "n", "s", [1.0, 9.0], ""),
        ];
        let found = classes(&rows);
        let figures: Vec<(Use, u64, u64, f64, f64)> =
            found.classes.iter().map(|c| (c.used, c.n, c.without_result, c.mean, c.bias)).collect();
        assert_eq!(figures, [(Use::Fitted, 1, 0, 0.0, 0.0), (Use::Checked, 2, 1, 0.3, -0.2)]);
        assert!(found.classes.iter().all(|c| c.gpus == ["h100-sxm"] && c.p90.is_none()), "{found:?}");
        let text = classes_toml(&found);
        assert_eq!(toml::from_str::<ClassErrors>(&text).unwrap(), found, "{text}");
    }
}
