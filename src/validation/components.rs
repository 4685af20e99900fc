//! Rows that are not experiments: formulas, single kernels and layers, and memory of a rank. They come from the layers that predict them.
//!
//! Layer: validation. It converts them to one form.

use super::row::ValidationRow;
use hyperfold_host::estimates::closed_forms::ClosedFormError;
use hyperfold_llm::{compute, memory};
use hyperfold_validated::Use;

pub(super) fn closed_forms() -> Result<Vec<ValidationRow>, ClosedFormError> {
    let row = |r: &hyperfold_host::estimates::closed_forms::ClosedFormRow| {
        ValidationRow::new("closed-forms", r.table, Use::Checked, &r.name, r.unit, [r.formula, r.simulated], r.note)
    };
    Ok(hyperfold_host::estimates::closed_forms::rows()?.iter().map(row).collect())
}

/// Rows of `compute`. `table` returns the published table of a row.
fn computed(
    suite: &'static str,
    rows: &[compute::validation::ComputeValidationRow],
    table: fn(&compute::validation::ComputeValidationRow) -> (&'static str, Use),
) -> Vec<ValidationRow> {
    let row = |r: &compute::validation::ComputeValidationRow| {
        let (table, used) = table(r);
        ValidationRow::new(suite, table, used, &r.name, r.unit, [r.measured, r.simulated], &r.note)
    };
    rows.iter().map(row).collect()
}

pub(super) fn kernels() -> Vec<ValidationRow> {
    let table = |r: &compute::validation::ComputeValidationRow| {
        match &r.name {
            name if name.contains(" seq ") => ("flash_attention_tflops", Use::Fitted),
            // Hopper's and Blackwell's energy of a FLOP is from rows of these.
            name if name.contains("cuBLASLt FP8") => ("azure_gemm_cublaslt", Use::Fitted),
            name if name.contains("cuBLASLt") => ("azure_gemm_cublaslt", Use::Checked),
            _ => ("gemm_mamf and gemm_points", Use::Fitted),
        }
    };
    computed("kernels", &compute::validation::kernels(), table)
}

pub(super) fn layers() -> Vec<ValidationRow> {
    let table = |r: &compute::validation::ComputeValidationRow| {
        if r.unit == "ms" {
            ("seqsel_table4_layer_times", Use::Fitted)
        } else {
            ("aicb_aiob_a100_op_times", Use::Checked)
        }
    };
    computed("layers", &compute::validation::layers(), table)
}

pub(super) fn memory() -> Vec<ValidationRow> {
    let table = |name: &str| {
        ["seqsel Fig. 1", "seqsel Fig. 7", "Moye Table 8"].into_iter().find(|t| name.starts_with(t)).unwrap_or("others")
    };
    let row = |r: &memory::validation::MemoryValidationRow| {
        let values = [r.measured, r.simulated];
        ValidationRow::new("memory", table(&r.name), Use::Fitted, &r.name, r.unit, values, &r.note)
    };
    memory::validation::rows().iter().map(row).collect()
}
