//! Bubbles of pipelines of equal stages: (p - 1) / (m v) of the work (Narayanan et al., SC'21, Section 2.2).
//!
//! Layer: host. The vocabulary is tiny, so that the first and the last stage have almost no more work than the others. Kernels take a hundred times as long as
//! on the GPU, so that messages take almost no time, though they cross the network.

use super::row::{ClosedFormError, ClosedFormRow};
use super::simulate::{config, simulate, text};
use hyperfold_config::spec::{KeyId, Value};

/// Text of a model of 128 equal layers.
const MODEL: &str =
    "{ name = \"equal-stages\", transformer = { layers = 128, hidden = 4096, heads = 32, vocab = 128, seq = 512 } }";

pub(super) fn rows() -> Result<Vec<ClosedFormRow>, ClosedFormError> {
    let cases = [
        ("1f1b", 4, 1, 4),
        ("1f1b", 4, 1, 8),
        ("1f1b", 2, 1, 8),
        ("1f1b", 8, 1, 8),
        ("gpipe", 4, 1, 8),
        ("1f1b", 4, 2, 8),
        ("1f1b", 4, 4, 8),
    ];
    cases.into_iter().map(|(schedule, stages, chunks, batches)| row(schedule, stages, chunks, batches)).collect()
}

fn row(schedule: &'static str, stages: i64, chunks: i64, batches: i64) -> Result<ClosedFormRow, ClosedFormError> {
    let virtual_stages = if chunks > 1 { format!(" of {chunks} chunks") } else { String::new() };
    let name = format!("{schedule}, {stages} stages{virtual_stages}, {batches} micro-batches");
    let keys = [
        (KeyId::WorkloadKind, Value::Choice("model")),
        (KeyId::Model, text(MODEL)),
        (KeyId::Pp, Value::Int(stages)),
        (KeyId::Vpp, Value::Int(chunks)),
        (KeyId::Schedule, Value::Choice(schedule)),
        (KeyId::GlobalBatch, Value::Int(batches)),
        (KeyId::ComputeScale, Value::Float(100.0)),
        (KeyId::LinkGbps, Value::Float(400.0)),
        (KeyId::PayloadBytes, Value::Int(4000)),
        (KeyId::MemoryCheck, Value::Bool(false)),
    ];
    let outcome = simulate(&name, config(&name, stages, &keys)?)?;
    let time = outcome.iteration.map(|i| i.time).unwrap_or_default();
    let idle = time.total - time.compute - time.optimizer;
    let formula = (stages - 1) as f64 / (batches * chunks) as f64;
    Ok(ClosedFormRow {
        table: "pipelines",
        name,
        unit: "bubble / work",
        formula,
        simulated: idle as f64 / time.compute as f64,
        note: "(p-1) / (m v)",
    })
}
