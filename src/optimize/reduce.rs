//! The same experiment with less to simulate.
//!
//! Layer: optimize. Coarse packets: eight times the payload (up to 16 kB), an eighth of the packets, and everything that is in bytes (messages, windows, thresholds, buffers) as it was, so
//! paths, collisions and the shares of links stay what they are; what suffers is congestion control's grain. Long jobs are cut: one iteration, and of a training step's
//! micro-batches so many that every pipeline stage is busy; what cutting changes is known from the estimates of both sizes.

use crate::spec::{Config, KeyId, Source, Value, WorkloadSection};

/// Packets are this much longer.
const COARSER: i64 = 8;
/// But not beyond this: flows of few packets are no flows any more. Our choice.
const MOST_BYTES: i64 = 16_000;
/// Micro-batches kept for each pipeline stage, and at least.
const PER_STAGE: u32 = 2;
const AT_LEAST: u32 = 4;

/// What to change to have a coarse version of an experiment.
pub fn coarser(config: &Config) -> Vec<(KeyId, Value)> {
    let v = &config.values;
    let payload = v.int(KeyId::PayloadBytes);
    let mut changes = vec![(KeyId::PayloadBytes, Value::Int((payload * COARSER).min(MOST_BYTES.max(payload))))];
    let WorkloadSection::Program(program) = &config.workload else { return changes };
    if program.iterations > 1 {
        changes.push((KeyId::Iterations, Value::Int(1)));
    }
    if program.warmup > 1 {
        changes.push((KeyId::Warmup, Value::Int(1)));
    }
    if let Source::Model(t) = &program.source {
        let step = t.dp.saturating_mul(t.microbatch).max(1);
        // A multiple of the stages, which interleaved schedules need.
        let keep = (PER_STAGE * t.pp).max(AT_LEAST.next_multiple_of(t.pp));
        if t.global_batch / step > keep {
            changes.push((KeyId::GlobalBatch, Value::Int(i64::from(keep) * i64::from(step))));
        }
    }
    changes
}
