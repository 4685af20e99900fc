//! Whether a configuration fits, and the text of the result `oom` if it does not.
//!
//! Layer: memory.

use std::fmt;

use thiserror::Error;

use super::stage::StageMemory;

/// The memory of each pipeline stage at its peak, in order of stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Memory of each stage.
    pub stages: Vec<StageMemory>,
}

/// The fullest stage of a configuration that exceeds a GPU's capacity.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Memory of a GPU that may be used.
    pub capacity_bytes: u64,
    /// Number of stages that exceed it.
    pub stages: usize,
    /// Boxed, so that results that fit stay small.
    pub fullest: Box<StageMemory>,
}

impl Estimate {
    /// The stage that needs most memory; the first of equal ones.
    pub fn fullest(&self) -> &StageMemory {
        self.stages
            .iter()
            .reduce(|a, b| if b.peak() > a.peak() { b } else { a })
            .expect("a layout has at least one stage")
    }

    /// Bytes of the fullest stage, `peak_memory_bytes` of the results.
    pub fn peak_bytes(&self) -> u64 {
        self.fullest().peak()
    }

    /// Checks whether every stage fits into a GPU of `capacity_bytes`. A stage may exceed the capacity by the uncertainty of the estimate, the share
    /// `margin_ppm` in millionths; the result is then the text of a warning.
    ///
    /// # Errors
    /// A stage needs more than that.
    /// A stage needs more.
    pub fn fits(&self, capacity_bytes: u64, margin_ppm: u64) -> Result<Option<String>, OutOfMemory> {
        let fullest = self.fullest();
        let peak = fullest.peak();
        if peak <= capacity_bytes {
            return Ok(None);
        }
        let margin = (u128::from(capacity_bytes) * u128::from(margin_ppm) / 1_000_000) as u64;
        if peak <= capacity_bytes.saturating_add(margin) {
            let (peak, capacity) = (gib(peak), gib(capacity_bytes));
            return Ok(Some(format!(
                "the estimate of its memory is {peak} GiB, and a GPU has {capacity} GiB; that is within workload.memory_margin"
            )));
        }
        Err(OutOfMemory { capacity_bytes, stages: self.stages.len(), fullest: Box::new(fullest.clone()) })
    }
}

/// Bytes as GiB with two decimals.
fn gib(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / (1u64 << 30) as f64)
}

/// The parts of the memory, without those that are 0.
impl fmt::Display for StageMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("parameters", self.params),
            ("gradients", self.grads),
            ("optimizer", self.optimizer),
            ("activations of layers", self.activations),
            ("embedding, norm and logits", self.ends),
            ("recomputation and gradients of activations", self.working),
            ("communication buffers", self.buffers),
            ("context and libraries", self.context),
            ("fragmentation", self.fragmentation),
        ];
        let text: Vec<String> = parts
            .iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(name, bytes)| format!("{name} {}", gib(*bytes)))
            .collect();
        f.write_str(&text.join(", "))
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StageMemory { stage, in_flight, .. } = *self.fullest;
        let (peak, capacity) = (gib(self.fullest.peak()), gib(self.capacity_bytes));
        write!(f, "out of memory: pipeline stage {stage} of {} needs {peak} GiB of {capacity} GiB", self.stages)?;
        write!(f, " at its peak with {in_flight} micro-batch passes in flight: {}", self.fullest)
    }
}
