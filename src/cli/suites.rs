//! The validation suites: what each is held against, the bound, and where its rows come from.
//!
//! Layer: cli. Converts the rows of the layers below into one form.

use super::validation_row::ValidationRow;
use crate::workload::training;
use crate::{batch, collective, compute, memory};

/// A suite of `hyperfold validate`.
pub struct Suite {
    pub name: &'static str,
    pub about: &'static str,
    /// On the mean absolute relative error of each of its tables.
    pub bound: f64,
    /// `None`: not available in this version.
    pub rows: Option<fn() -> anyhow::Result<Vec<ValidationRow>>>,
}

/// All suites, in the order in which they are printed.
pub static SUITES: [Suite; 7] = [
    Suite {
        name: "reference",
        about: "flow completion times against the packet-level reference",
        bound: 0.01,
        rows: None,
    },
    Suite {
        name: "closed-forms",
        about: "collectives and pipelines against their formulas",
        bound: 0.005,
        rows: Some(closed_forms),
    },
    Suite {
        name: "kernels",
        about: "times of single kernels against published measurements",
        bound: 0.15,
        rows: Some(kernels),
    },
    Suite {
        name: "layers",
        about: "times of transformer layers against published measurements",
        bound: 0.1,
        rows: Some(layers),
    },
    Suite {
        name: "collectives",
        about: "collective operations against runs of nccl-tests, above 1 MiB",
        bound: 0.08,
        rows: Some(collectives),
    },
    Suite {
        name: "training",
        about: "training steps against published measurements",
        bound: 0.05,
        rows: Some(training),
    },
    Suite {
        name: "memory",
        about: "memory of training against published measurements",
        bound: 0.03,
        rows: Some(memory),
    },
];

/// Sizes of at most this are shown but do not count.
const SMALL: u64 = 1 << 20;

fn closed_forms() -> anyhow::Result<Vec<ValidationRow>> {
    let row = |r: &batch::closed_forms::ClosedFormRow| {
        ValidationRow::new("closed-forms", r.table, &r.name, r.unit, [r.formula, r.simulated], r.note)
    };
    Ok(batch::closed_forms::rows()?.iter().map(row).collect())
}

fn collectives() -> anyhow::Result<Vec<ValidationRow>> {
    let row = |r: &collective::validation::CollectiveValidationRow| {
        let table = if r.unit == "us" { "nccl_tests_sweeps" } else { "nccl_point_values" };
        let row = ValidationRow::new("collectives", table, &r.name, r.unit, [r.measured, r.simulated], &r.note);
        ValidationRow { counts: r.bytes > SMALL, ..row }
    };
    Ok(collective::validation::rows().iter().map(row).collect())
}

fn training() -> anyhow::Result<Vec<ValidationRow>> {
    let row = |r: &training::validation::TrainingValidationRow| {
        ValidationRow::new(
            "training",
            r.suite,
            &format!("{}/{}", r.suite, r.name),
            r.unit,
            [r.measured, r.simulated],
            &r.note,
        )
    };
    Ok(training::validation::rows().iter().map(row).collect())
}

/// Rows of `compute`; the unit tells the published table.
fn computed(
    suite: &'static str,
    rows: &[compute::validation::ComputeValidationRow],
    table: fn(&compute::validation::ComputeValidationRow) -> &'static str,
) -> Vec<ValidationRow> {
    rows.iter()
        .map(|r| ValidationRow::new(suite, table(r), &r.name, r.unit, [r.measured, r.simulated], &r.note))
        .collect()
}

fn kernels() -> anyhow::Result<Vec<ValidationRow>> {
    let table = |r: &compute::validation::ComputeValidationRow| {
        if r.name.contains(" seq ") { "flash_attention_tflops" } else { "gemm_mamf and gemm_points" }
    };
    Ok(computed("kernels", &compute::validation::kernels(), table))
}

fn layers() -> anyhow::Result<Vec<ValidationRow>> {
    let table = |r: &compute::validation::ComputeValidationRow| {
        if r.unit == "ms" { "seqsel_table4_layer_times" } else { "aicb_aiob_a100_op_times" }
    };
    Ok(computed("layers", &compute::validation::layers(), table))
}

fn memory() -> anyhow::Result<Vec<ValidationRow>> {
    let table = |name: &str| {
        ["seqsel Fig. 1", "seqsel Fig. 7", "Moye Table 8"].into_iter().find(|t| name.starts_with(t)).unwrap_or("others")
    };
    Ok(memory::validation::rows()
        .iter()
        .map(|r| ValidationRow::new("memory", table(&r.name), &r.name, r.unit, [r.measured, r.simulated], &r.note))
        .collect())
}
