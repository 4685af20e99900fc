//! The manifest of merged folders.
//!
//! Layer: session. Sums the parts' manifests. What decides results comes from the journals, not from here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hyperfold_base::input;
use hyperfold_results::{ExperimentRecord, Manifest, Outcome, RunIdentity, Seconds, Status};

use crate::running::axis_effects::{AxisEffects, no_effect};

/// Creates the manifest of the whole. `records`: all its results; `missing`: the missing experiments, in words.
pub(crate) fn joined(
    dirs: &[PathBuf],
    out: &Path,
    run: &RunIdentity,
    records: &[ExperimentRecord],
    missing: Option<&str>,
) -> Manifest {
    let read = |dir: &Path| -> Option<Manifest> {
        serde_json::from_slice(&input::read_anywhere(&dir.join("manifest.json"), input::max_table_bytes()).ok()?).ok()
    };
    let parts: Vec<Manifest> = dirs.iter().filter_map(|d| read(d)).collect();
    // An earlier merge into the same folder may have had parts that are not named this time.
    let name = parts.first().map(|m| m.name.clone()).or_else(|| read(out).map(|m| m.name)).unwrap_or_default();
    let count = |status| records.iter().filter(|r| r.status == status).count() as u64;
    let sum = |field: fn(&Seconds) -> f64| parts.iter().map(|m| field(&m.seconds)).sum();
    let mut adapters = Vec::new();
    for adapter in parts.iter().flat_map(|m| &m.adapters) {
        if !adapters.contains(adapter) {
            adapters.push(adapter.clone());
        }
    }
    let engines: BTreeSet<&str> = parts.iter().map(|m| m.engine.as_str()).filter(|e| !e.is_empty()).collect();
    Manifest {
        version: run.version.clone(),
        command_line: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
        outcome: if missing.is_some() { Outcome::Interrupted } else { Outcome::Complete },
        name,
        sweep: run.resolved.clone(),
        sweep_path: parts.first().map(|m| m.sweep_path.clone()).unwrap_or_default(),
        axes: run.axes.clone(),
        replicas: parts.first().map_or(1, |m| m.replicas),
        inputs: run.inputs.clone(),
        experiments: run.experiments,
        selected: (0..run.experiments).filter(|&id| run.selects(id)).count() as u64,
        ok: count(Status::Ok),
        oom: count(Status::Oom),
        failed: count(Status::Failed),
        from_journal: records.len() as u64,
        engine: engines.into_iter().collect::<Vec<_>>().join(", "),
        engine_reason: format!("merged from {} folders", dirs.len()),
        adapters,
        jobs: parts.iter().map(|m| m.jobs).max().unwrap_or(0),
        seconds: Seconds {
            expanding: sum(|s| s.expanding),
            compiling: sum(|s| s.compiling),
            simulating: sum(|s| s.simulating),
            writing: sum(|s| s.writing),
        },
        warnings: warnings(&parts, run, records, missing),
        // Each part judges the whole sweep.
        not_compared: parts.first().map(|m| m.not_compared.clone()).unwrap_or_default(),
    }
}

/// The text by which a warning of missing experiments is recognised.
pub(crate) const MISSING: &str = " missing: ";

/// Whether a warning is about missing experiments.
pub(crate) fn is_of_missing(warning: &str) -> bool {
    warning.split_once(MISSING).is_some_and(|(before, _)| before.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the warnings of the parts, except those about axes without effect or missing experiments: these must be judged for the whole.
fn warnings(parts: &[Manifest], run: &RunIdentity, records: &[ExperimentRecord], missing: Option<&str>) -> Vec<String> {
    let axes: Vec<String> = run.axes.iter().map(|a| a.key.clone()).collect();
    let effect_warnings: BTreeSet<String> = axes.iter().map(|key| no_effect(key)).collect();
    // A part that was merged before may have lacked experiments that are there now.
    let outdated = |w: &String| effect_warnings.contains(w) || is_of_missing(w);
    let earlier: BTreeSet<String> =
        parts.iter().flat_map(|m| m.warnings.iter().cloned()).filter(|w| !outdated(w)).collect();
    let mut effects = AxisEffects::default();
    records.iter().for_each(|r| effects.add(r));
    // Without all experiments nothing can be said about an axis.
    let new_effect_warnings = if missing.is_none() { effects.warnings(&axes) } else { Vec::new() };
    earlier.into_iter().chain(new_effect_warnings).chain(missing.map(String::from)).collect()
}
