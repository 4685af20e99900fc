//! A judgement of stated errors: each table is left out, and its rows are held against what is then stated for them.
//!
//! Layer: validated. It reads recorded errors and simulates nothing.

use super::error::{ClassError, ClassErrors, nearest_rank_90};
use super::parts::{ErrorQuantity, WorkloadClass};
use super::stated::{MAX_WIDTH, MIN_JUDGED_TABLES};

/// Least mean over tables of the share of rows that lie below their stated 90th percentile.
pub const MIN_COVERED: f64 = 0.9;

/// Rows of one table against errors that are stated without it.
#[derive(Clone, Debug, PartialEq)]
pub struct TableCoverage {
    /// Training, collectives or inference.
    pub workload: WorkloadClass,
    /// What its rows measure.
    pub quantity: ErrorQuantity,
    /// Name of the table.
    pub table: String,
    /// Number of rows with a result.
    pub rows: usize,
    /// Number of rows for which an error is stated.
    pub stated_rows: usize,
    /// Share of all rows whose error is at most the stated 90th percentile. Rows for which none is stated do not count as covered.
    pub covered: f64,
    /// Median of the stated 90th percentiles.
    pub stated: f64,
    /// 90th percentile of the absolute errors of the rows.
    pub actual: f64,
    /// Width: one over the 90th percentile of the rows' absolute errors, each divided by what is stated for it. It is stated over actual where all rows have
    /// the same stated error.
    pub width: f64,
}

impl TableCoverage {
    /// Judges `rows`, by table, against what `errors` state without that table.
    pub fn each(rows: &[ClassError], errors: &ClassErrors) -> Vec<TableCoverage> {
        let measured = ClassErrors { classes: rows.to_vec(), ..*errors };
        let one = |(workload, quantity)| {
            let tables = measured.by_table(workload, quantity, None).into_iter();
            tables.map(|(table, own)| TableCoverage::of(workload, quantity, table, &own, errors)).collect::<Vec<_>>()
        };
        judged_quantities().flat_map(one).collect()
    }

    fn of(
        workload: WorkloadClass,
        quantity: ErrorQuantity,
        table: &str,
        own: &[&ClassError],
        errors: &ClassErrors,
    ) -> TableCoverage {
        let (mut sizes, mut stated, mut ratios, mut covered) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for error in own {
            let p90 = errors.stated(&error.class, quantity, &error.gpu_name, &[], Some(table)).map(|s| s.p90);
            for size in error.errors.iter().map(|e| e.abs()) {
                sizes.push(size);
                let Some(p90) = p90 else { continue };
                stated.push(p90);
                ratios.push(size / p90);
                covered += usize::from(size <= p90);
            }
        }
        [&mut sizes, &mut stated, &mut ratios].into_iter().for_each(|v| v.sort_by(f64::total_cmp));
        TableCoverage {
            workload,
            quantity,
            table: table.to_string(),
            rows: sizes.len(),
            stated_rows: stated.len(),
            covered: covered as f64 / sizes.len() as f64,
            stated: median(&stated),
            actual: nearest_rank_90(&sizes),
            width: 1.0 / nearest_rank_90(&ratios),
        }
    }
}

/// Kinds of work and their quantities, in the order in which they are judged.
fn judged_quantities() -> impl Iterator<Item = (WorkloadClass, ErrorQuantity)> {
    WorkloadClass::ALL.into_iter().flat_map(|workload| workload.quantities().iter().map(move |q| (workload, *q)))
}

/// Coverage of all tables of a quantity of a kind of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Number of tables.
    pub tables: usize,
    /// Mean over tables of the share of covered rows.
    pub covered: f64,
    /// Median over tables of the width.
    pub width: f64,
}

impl Coverage {
    /// Sums up the tables of a quantity of a kind of work. `None`: there are none.
    pub fn of(tables: &[TableCoverage], workload: WorkloadClass, quantity: ErrorQuantity) -> Option<Coverage> {
        let own: Vec<&TableCoverage> =
            tables.iter().filter(|t| t.workload == workload && t.quantity == quantity).collect();
        let mut widths: Vec<f64> = own.iter().map(|t| t.width).collect();
        widths.sort_by(f64::total_cmp);
        let covered = own.iter().map(|t| t.covered).sum::<f64>() / own.len() as f64;
        (!own.is_empty()).then(|| Coverage { tables: own.len(), covered, width: median(&widths) })
    }

    /// Whether there are enough tables to judge by.
    pub fn is_judged(&self) -> bool {
        self.tables >= MIN_JUDGED_TABLES
    }

    /// Whether enough rows are covered, and the stated errors are not too wide.
    pub fn holds(&self) -> bool {
        self.covered >= MIN_COVERED && self.width <= MAX_WIDTH
    }
}

/// The middle one of ascending values, the upper one of two; 0 if there are none.
fn median(ascending: &[f64]) -> f64 {
    ascending.get(ascending.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_errors_hold_for_tables_that_are_left_out() {
        let errors = ClassErrors::built_in();
        let tables = TableCoverage::each(&errors.classes, errors);
        let coverage = |workload, quantity| Coverage::of(&tables, workload, quantity).unwrap();
        for workload in [WorkloadClass::Training, WorkloadClass::Collective] {
            let coverage = coverage(workload, ErrorQuantity::Time);
            assert!(coverage.tables >= 8 && coverage.holds(), "{workload:?}: {coverage:?}\n{tables:#?}");
        }
        let latency = coverage(WorkloadClass::Serving, ErrorQuantity::Latency);
        assert!(latency.is_judged() && latency.holds(), "{latency:?}\n{tables:#?}");
        // Half of the tables of throughput are far off, half are near: what covers the former is too wide for the latter, and the sentence says so.
        let throughput = coverage(WorkloadClass::Serving, ErrorQuantity::Throughput);
        assert!(throughput.is_judged() && throughput.covered >= MIN_COVERED, "{throughput:?}\n{tables:#?}");
        assert!(tables.iter().all(|t| t.stated_rows == t.rows), "an error is stated for every row: {tables:#?}");
    }
}
