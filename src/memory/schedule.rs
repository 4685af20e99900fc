//! How many micro-batches a pipeline rank holds at once: its schedule as a sequence of slots.
//!
//! Layer: memory. Order only, no durations. GPipe, 1F1B, and 1F1B interleaved over virtual stages (Narayanan et al., SC'21, Section 2.2), as Megatron-LM runs them.

use crate::model::{Layout, PipelineSchedule};

/// One pass of one micro-batch through one virtual stage of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Virtual stage of this rank, from 0.
    pub chunk: u32,
    pub microbatch: u32,
    pub backward: bool,
}

/// A rank's schedule.
#[derive(Clone, Copy)]
pub(super) struct Schedule {
    pp: u64,
    vpp: u64,
    /// Passes in each direction.
    pub passes: u64,
    /// Forward passes before the first backward pass's own one.
    pub warmup: u64,
    gpipe: bool,
}

impl Schedule {
    pub fn new(layout: &Layout, stage: u32) -> Schedule {
        let (pp, vpp) = (layout.pp as u64, layout.vpp as u64);
        let passes = layout.microbatches() as u64 * vpp;
        let after = pp - 1 - stage as u64;
        let gpipe = layout.schedule == PipelineSchedule::GPipe;
        let warmup = match gpipe {
            true => passes,
            false if vpp == 1 => after,
            false => 2 * after + (vpp - 1) * pp,
        };
        Schedule { pp, vpp, passes, warmup: warmup.min(passes), gpipe }
    }

    /// The most passes whose activations are held at once.
    pub fn most_in_flight(&self) -> u64 {
        (self.warmup + 1).min(self.passes)
    }

    /// The k-th forward pass: micro-batches in groups of `pp`, each group through one virtual stage after the other.
    fn forward(&self, k: u64) -> Slot {
        if self.vpp == 1 {
            return Slot { chunk: 0, microbatch: k as u32, backward: false };
        }
        let group = self.pp * self.vpp;
        Slot { chunk: (k % group / self.pp) as u32, microbatch: (k / group * self.pp + k % self.pp) as u32, backward: false }
    }

    fn backward(&self, k: u64) -> Slot {
        if self.gpipe {
            // The newest first: its activations are the warmest.
            return Slot { backward: true, ..self.forward(self.passes - 1 - k) };
        }
        let forward = self.forward(k);
        Slot { chunk: self.vpp as u32 - 1 - forward.chunk, microbatch: forward.microbatch, backward: true }
    }

    /// All slots in order.
    pub fn slots(self) -> impl Iterator<Item = Slot> {
        let steady = (self.warmup..self.passes).flat_map(move |k| [self.forward(k), self.backward(k - self.warmup)]);
        let rest = (self.passes - self.warmup..self.passes).map(move |k| self.backward(k));
        (0..self.warmup).map(move |k| self.forward(k)).chain(steady).chain(rest)
    }

    /// Enough of the slots to see every state: the steady part repeats after a group has gone through all virtual stages.
    pub fn period(self) -> impl Iterator<Item = Slot> {
        let n = self.warmup + 2 * (self.pp * self.vpp + 1);
        self.slots().take(n as usize)
    }
}
