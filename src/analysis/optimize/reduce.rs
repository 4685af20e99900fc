//! Coarse version of an experiment, with less to simulate.
//!
//! Layer: optimize. Packets are coarse: eight times the payload (up to 16 kB), so an eighth of the packets. Everything in bytes (messages, windows,
//! thresholds, buffers) is unchanged, so paths, collisions and shares of links stay the same; only congestion control is less fine-grained. Long jobs are cut
//! to one iteration, and training steps to as many micro-batches as keep every pipeline stage busy. The effect of cutting is known from the estimates of both
//! sizes.

use hyperfold_config::spec::{Config, KeyId, Source, Value, WorkloadSection};

/// Factor of the packet payload.
const COARSER: i64 = 8;
/// Largest payload of coarse packets, in bytes: a flow of few packets is not like a flow any more. Our choice.
const MAX_BYTES: i64 = 16_000;
/// Micro-batches that are kept: per pipeline stage, and at least.
const PER_STAGE: u32 = 2;
const AT_LEAST: u32 = 4;

/// Changes of keys that make a coarse version of an experiment.
pub fn coarser(config: &Config) -> Vec<(KeyId, Value)> {
    let v = &config.values;
    let payload = v.int(KeyId::PayloadBytes);
    let mut changes = vec![(KeyId::PayloadBytes, Value::Int((payload * COARSER).min(MAX_BYTES.max(payload))))];
    let WorkloadSection::Program(program) = &config.workload else { return changes };
    if program.iterations > 1 {
        changes.push((KeyId::Iterations, Value::Int(1)));
    }
    if program.warmup > 1 {
        changes.push((KeyId::Warmup, Value::Int(1)));
    }
    if let Source::Model(t) = &program.source {
        let step = t.dp.saturating_mul(t.microbatch).max(1);
        // Interleaved schedules need a multiple of the number of stages.
        let keep = (PER_STAGE * t.pp).max(AT_LEAST.next_multiple_of(t.pp));
        if t.global_batch / step > keep {
            changes.push((KeyId::GlobalBatch, Value::Int(i64::from(keep) * i64::from(step))));
        }
    }
    changes
}
