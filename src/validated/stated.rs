//! The error that is stated for an experiment: what it rests on, and how it is widened.
//!
//! Layer: validated. Arithmetic on recorded errors, in a fixed order. `docs/decisions/0050-errors-by-table.md` says why.

use std::collections::BTreeSet;

use super::class::ExperimentClass;
use super::difference::{FITTED, differences, words};
use super::error::{ClassError, ClassErrors};
use super::parts::{ErrorQuantity, word};

/// Factor on the weight of rows for each difference from the experiment. Our choice: between 0.5 and 0.7, coverage of left-out tables hardly changes.
const WEIGHT_PER_DIFFERENCE: f64 = 0.5;
/// `c` in the factor `1 + c/N` by which an error that rests on N tables of equal weight is widened. Our choice, as in conformal prediction: the new table is one of N + 1, so levels
/// of N samples are stretched by (N + 1) / N (Lee, Barber and Willett 2023, arXiv 2306.06342, of whole groups).
const WIDER_FOR_ONE_TABLE: f64 = 1.0;
/// Largest median over tables of the stated 90th percentile, divided by the actual one.
pub const MAX_WIDTH: f64 = 2.5;
/// Least number of tables of a kind of work by which the rule for its errors counts as judged: with fewer, one table left out leaves two. Our choice.
pub(super) const MIN_JUDGED_TABLES: usize = 4;

/// Error of times of an experiment, from measured tables. Relative; 0.05 is 5 %.
#[derive(Clone, Debug, PartialEq)]
pub struct StatedError<'a> {
    /// Mean of the absolute errors, widened as `p90` is.
    pub mean: f64,
    /// 90th percentile of the absolute errors, in which each table counts as one and near ones count more; widened for each difference.
    pub p90: f64,
    /// The measured class that is nearest.
    pub nearest: &'a ClassError,
    /// Features of the experiment that differ from the nearest class, one for each step.
    pub differs: Vec<&'static str>,
    /// Number of tables that count, near or far.
    pub tables: usize,
    /// What the error is of.
    pub quantity: ErrorQuantity,
    /// Whether there are enough tables of this quantity to judge the rule by.
    pub is_judged: bool,
    /// Set where stated errors are too wide for the rule to hold: the median over left-out tables of actual error over stated error.
    pub needed_share: Option<f64>,
    /// Number of tables with a class that is as near as the nearest, with the same differences.
    pub near_tables: usize,
    /// Number of rows of these classes.
    pub rows: u64,
    /// GPUs of these rows.
    pub gpus: BTreeSet<&'a str>,
    /// Precisions of these rows; empty for collectives.
    pub precisions: BTreeSet<String>,
}

/// A class of a table, seen from an experiment.
struct Seen<'a> {
    error: &'a ClassError,
    differs: Vec<&'static str>,
    weight: f64,
}

impl ClassErrors {
    /// Error of a quantity of an experiment of this class on this GPU. `changed` are its settings that differ from the machine it names. `left_out` is a table that is
    /// treated as if nobody had measured it. `None`: nothing comparable was measured.
    pub fn stated(
        &self,
        class: &ExperimentClass,
        quantity: ErrorQuantity,
        gpu_name: &str,
        changed: &[&'static str],
        left_out: Option<&str>,
    ) -> Option<StatedError<'_>> {
        let seen = |error: &'_ ClassError| differences(class, gpu_name, error);
        let measured = self.by_table(class.workload, quantity, left_out);
        let n_measured = measured.len() + usize::from(left_out.is_some());
        let tables: Vec<Vec<Seen>> = measured
            .into_values()
            .map(|errors| {
                let one = |error| {
                    let differs = seen(error)?;
                    Some(Seen { error, weight: power(WEIGHT_PER_DIFFERENCE, differs.len()), differs })
                };
                errors.into_iter().filter_map(one).collect::<Vec<_>>()
            })
            .filter(|table| !table.is_empty())
            .collect();
        let nearest = tables.iter().flatten().min_by_key(|s| s.differs.len())?;
        let as_near = |s: &&Seen| s.differs == nearest.differs;
        let near_rows = || tables.iter().flatten().filter(as_near);
        let widened = power(self.widening.of(class.workload, quantity), nearest.differs.len() + changed.len())
            * (1.0 + WIDER_FOR_ONE_TABLE / n_tables(&tables));
        let weighted = weighted_errors(&tables);
        Some(StatedError {
            mean: widened * mean(&weighted),
            p90: widened * percentile_90(weighted),
            nearest: nearest.error,
            tables: tables.len(),
            quantity,
            is_judged: n_measured >= MIN_JUDGED_TABLES,
            needed_share: Some(self.median_width.of(class.workload, quantity))
                .filter(|w| *w > MAX_WIDTH)
                .map(f64::recip),
            near_tables: tables.iter().filter(|table| table.iter().any(|s| as_near(&s))).count(),
            rows: near_rows().map(|s| s.error.errors.len() as u64).sum(),
            gpus: near_rows().map(|s| s.error.gpu_name.as_str()).collect(),
            precisions: near_rows().map(|s| word(&s.error.class.precision)).filter(|w| !w.is_empty()).collect(),
            differs: nearest.differs.iter().chain(changed).copied().collect(),
        })
    }
}

/// A small power by multiplication, which is the same on every machine.
fn power(base: f64, exponent: usize) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

/// A table's weight: that of its nearest class.
fn table_weight(table: &[Seen]) -> f64 {
    table.iter().map(|s| s.weight).fold(0.0, f64::max)
}

/// Number of tables that count: their number if all weigh the same, one if a single one outweighs the others.
fn n_tables(tables: &[Vec<Seen>]) -> f64 {
    let (sum, squares) = tables.iter().map(|t| table_weight(t)).fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
    sum * sum / squares
}

/// Absolute errors of all rows with their weights. The rows of a table share its weight, near ones more of it.
fn weighted_errors(tables: &[Vec<Seen>]) -> Vec<(f64, f64)> {
    let mut weighted = Vec::new();
    for table in tables {
        let shared: f64 = table.iter().map(|s| s.weight * s.error.errors.len() as f64).sum();
        for s in table {
            let weight = table_weight(table) * s.weight / shared;
            weighted.extend(s.error.errors.iter().map(|e| (e.abs(), weight)));
        }
    }
    weighted
}

fn mean(weighted: &[(f64, f64)]) -> f64 {
    let total: f64 = weighted.iter().map(|w| w.1).sum();
    weighted.iter().map(|(error, weight)| error * weight).sum::<f64>() / total
}

/// The smallest error at or below which nine tenths of the weight lie.
fn percentile_90(mut weighted: Vec<(f64, f64)>) -> f64 {
    weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = weighted.iter().map(|w| w.1).sum();
    // Sums of the same weights in another order may differ in the last digits.
    let enough = total * (0.9 - 1e-9);
    let mut sum = 0.0;
    let reached = weighted.iter().find(|(_, weight)| {
        sum += weight;
        sum >= enough
    });
    reached.or(weighted.last()).map_or(0.0, |w| w.0)
}

impl StatedError<'_> {
    /// Text of the column `validated_error`: the error, what it rests on, and what the experiment has otherwise.
    pub fn text(&self, class: &ExperimentClass, gpu_name: &str) -> String {
        let gpus = self.gpus.iter().copied().collect::<Vec<_>>().join(", ");
        let precisions = self.precisions.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let precisions = if precisions.is_empty() { precisions } else { format!(" in {precisions}") };
        let n_tables = if self.tables == 1 { "1 table".to_string() } else { format!("{} tables", self.tables) };
        let n_near = self.near_tables;
        let mut words: Vec<String> =
            self.differs.iter().filter(|d| **d != FITTED).map(|d| words(d, class, gpu_name)).collect();
        words.dedup();
        let fitted = if self.differs.contains(&FITTED) { ", to which constants were fitted" } else { "" };
        let differs =
            if words.is_empty() { String::new() } else { format!("; yours differs by {}", words.join(" and ")) };
        let judged = match (self.is_judged, self.needed_share) {
            (false, _) => ", too few to know how well such an error holds".to_string(),
            (true, Some(share)) => {
                format!(", which disagree: the middle one, left out, needs {} of such an error", percent(share))
            }
            (true, None) => String::new(),
        };
        let quantity = if self.quantity.is_time() { String::new() } else { format!("{}: ", self.quantity.as_str()) };
        format!(
            "{quantity}9 of 10 within {}, mean {}; measured in {n_tables}{judged}, nearest {n_near} of {gpus}{precisions}{fitted}{differs}",
            percent(self.p90),
            percent(self.mean)
        )
    }

    /// Text of the column `validated_class`: the nearest class, and what differs.
    pub fn class_text(&self) -> String {
        let class = format!("{}/{}", self.nearest.class, self.nearest.used.as_str());
        let mut differs: Vec<&str> = self.differs.iter().copied().filter(|d| *d != FITTED).collect();
        differs.dedup();
        match differs.as_slice() {
            [] => class,
            differs => format!("{class}; other {}", differs.join(" and ")),
        }
    }
}

/// A part of one in percent, with a digit after the point below 10 %.
fn percent(x: f64) -> String {
    if x < 0.0995 { format!("{:.1} %", x * 100.0) } else { format!("{:.0} %", x * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ByQuantity, Use};
    use crate::parts::{MachineClass, NetworkClass, Parallelism, PrecisionClass, ScaleClass, SizeClass, WorkloadClass};
    use hyperfold_llm::collective::Arch;

    fn class(gpu: Arch, precision: PrecisionClass, network: NetworkClass) -> ExperimentClass {
        ExperimentClass {
            workload: WorkloadClass::Training,
            gpu,
            precision,
            framework: "megatron".to_string(),
            parallelism: Parallelism::Model,
            size: SizeClass::Any,
            scale: ScaleClass::Upto64,
            machine: MachineClass::Any,
            network,
            server: String::new(),
        }
    }

    fn errors(classes: Vec<ClassError>) -> ClassErrors {
        let widening = ByQuantity { training: 1.2, ..ByQuantity::all(1.5) };
        ClassErrors { widening, median_width: ByQuantity { throughput: 4.0, ..ByQuantity::all(2.0) }, classes }
    }

    const CLOSED: NetworkClass = NetworkClass::ClosedForm;

    #[test]
    fn the_nearest_class_is_told_with_what_is_otherwise() {
        let bf16 = PrecisionClass::Bf16;
        let row = |table, gpu, gpu_name, used| ClassError::new(table, class(gpu, bf16, CLOSED), used, gpu_name, &[0.1]);
        let errors = errors(vec![
            row("a", Arch::Ampere, "a100-80g-sxm", Use::Fitted),
            row("b", Arch::Hopper, "h100-sxm", Use::Fitted),
            row("c", Arch::Hopper, "h100-sxm", Use::Checked),
            row("d", Arch::Hopper, "h100-sxm", Use::Checked),
        ]);
        let texts = |class: ExperimentClass, gpu_name| {
            errors
                .stated(&class, ErrorQuantity::Time, gpu_name, &[], None)
                .map(|s| (s.text(&class, gpu_name), s.class_text()))
        };
        let hopper = "training/hopper/bf16/megatron/model/up-to-64-gpus/closed-form/checked";
        let (text, nearest) = texts(class(Arch::Hopper, bf16, CLOSED), "h100-sxm").unwrap();
        assert_eq!(text, "9 of 10 within 13 %, mean 13 %; measured in 4 tables, nearest 2 of h100-sxm in bf16");
        assert_eq!(nearest, hopper);
        let (text, nearest) =
            texts(class(Arch::Blackwell, PrecisionClass::Fp8, NetworkClass::Packets), "b200-sxm").unwrap();
        assert!(
            text.ends_with("h100-sxm in bf16; yours differs by gpu b200-sxm and precision fp8 and network packets"),
            "{text}"
        );
        assert_eq!(nearest, format!("{hopper}; other gpu and precision and network"));
        let (text, _) = texts(class(Arch::Hopper, bf16, NetworkClass::Flows), "h100-sxm").unwrap();
        assert!(text.ends_with("h100-sxm in bf16; yours differs by network flows"), "{text}");
        let (text, _) = texts(class(Arch::Volta, bf16, CLOSED), "v100-sxm2").unwrap();
        assert!(
            text.contains("measured in 1 table, nearest 1 of a100-80g-sxm in bf16, to which constants were fitted;"),
            "{text}"
        );
        let other_work = ExperimentClass { workload: WorkloadClass::Collective, ..class(Arch::Hopper, bf16, CLOSED) };
        assert_eq!(texts(other_work, "h100-sxm"), None);
    }

    #[test]
    fn a_table_counts_as_one_however_many_rows_it_has() {
        let own = class(Arch::Hopper, PrecisionClass::Bf16, CLOSED);
        let row = |table, errors: &[f64]| ClassError::new(table, own.clone(), Use::Checked, "h100-sxm", errors);
        let p90 = |classes| errors(classes).stated(&own, ErrorQuantity::Time, "h100-sxm", &[], None).unwrap().p90;
        // One row of thirteen is below the 90th percentile; one table of two is not.
        let drowned = p90(vec![row("a", &[0.02; 12]), row("b", &[0.4])]);
        assert!((drowned - 0.4 * 1.5).abs() < 1e-9, "{drowned}");
        // A row alone is no percentile: it counts twice.
        assert!((p90(vec![row("a", &[0.1])]) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn a_rule_of_few_tables_is_called_that() {
        let own = ExperimentClass {
            workload: WorkloadClass::Serving,
            framework: "reserved".to_string(),
            ..class(Arch::Hopper, PrecisionClass::Bf16, CLOSED)
        };
        let row = |table: &str| ClassError::new(table, own.clone(), Use::Checked, "h100-sxm", &[0.1]);
        let other = ExperimentClass { framework: "on-demand".to_string(), ..own.clone() };
        let text = |tables: &[&str]| {
            let errors = errors(tables.iter().map(|table| row(table)).collect());
            errors.stated(&other, ErrorQuantity::Throughput, "h100-sxm", &[], None).unwrap().text(&other, "h100-sxm")
        };
        let three = text(&["a", "b", "c"]);
        assert!(
            three.contains("measured in 3 tables, too few to know how well such an error holds, nearest 3"),
            "{three}"
        );
        assert!(three.ends_with("; yours differs by admission on-demand"), "{three}");
        // The width of throughputs is 4 here.
        let four = text(&["a", "b", "c", "d"]);
        assert!(!four.contains("too few"), "{four}");
        assert!(
            four.starts_with("throughput: 9 of 10 within") && four.contains("left out, needs 25 % of such an error"),
            "{four}"
        );
    }

    #[test]
    fn every_difference_widens() {
        let own = class(Arch::Hopper, PrecisionClass::Bf16, CLOSED);
        let errors = errors(vec![ClassError::new("a", own.clone(), Use::Checked, "h100-sxm", &[0.1; 10])]);
        let p90 = |class: &ExperimentClass, gpu_name, changed: &[&'static str]| {
            errors.stated(class, ErrorQuantity::Time, gpu_name, changed, None).unwrap().p90
        };
        let base = p90(&own, "h100-sxm", &[]);
        let far = ExperimentClass { scale: ScaleClass::Upto4096, ..own.clone() };
        for (found, factor) in [
            (p90(&own, "h200-sxm", &[]), 1.2),
            (p90(&far, "h100-sxm", &[]), 1.44),
            (p90(&own, "h100-sxm", &["NVLink rate"]), 1.2),
        ] {
            assert!((found / base - factor).abs() < 1e-9, "{found} {factor}");
        }
        assert_eq!(
            errors.stated(&own, ErrorQuantity::Time, "h100-sxm", &[], Some("a")),
            None,
            "the only table is left out"
        );
    }
}
