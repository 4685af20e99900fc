//! The order of micro-batches on each pipeline rank: its schedule as a sequence of slots, and the number of passes that it holds at once.
//!
//! Layer: model. Order only, no durations. Schedules are GPipe, 1F1B, and 1F1B interleaved over virtual stages (Narayanan et al., SC'21, Section 2.2), as in
//! Megatron-LM. Virtual stage `chunk * pp + rank` follows the one on the rank before; the first of a chunk follows the one on the last rank. `split_backward`
//! has the schedules whose backward passes are split.

use super::{Layout, PipelineSchedule};
use hyperfold_base::budget;

/// The kind of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PassKind {
    /// The forward pass.
    Forward,
    /// A whole backward pass: gradients of inputs and weights.
    Backward,
    /// The first part of a split backward pass: gradients of inputs, which the stage before waits for.
    InputGrads,
    /// The second part of a split backward pass: gradients of the weights of linear layers, which nothing but the end of the iteration waits for.
    WeightGrads,
}

impl PassKind {
    /// Whether the pass takes a gradient from the stage after it and gives one to the stage before it.
    pub fn passes_gradients(self) -> bool {
        matches!(self, PassKind::Backward | PassKind::InputGrads)
    }

    /// Whether the gradients of weights are complete after the pass of the last micro-batch.
    pub fn completes_gradients(self) -> bool {
        matches!(self, PassKind::Backward | PassKind::WeightGrads)
    }
}

/// One pass of one micro-batch through one virtual stage of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Index of the virtual stage on this rank.
    pub chunk: u32,
    /// Number of the micro-batch.
    pub microbatch: u32,
    /// Kind of the pass.
    pub pass: PassKind,
}

/// A rank's schedule. PRECONDITION: with several virtual stages per rank, `pp` divides the micro-batches ([`Layout::check`] ensures it).
#[derive(Clone, Copy, Debug)]
pub struct StageSchedule {
    pp: u64,
    vpp: u64,
    /// Number of passes in each direction.
    pub passes: u64,
    /// Number of forward passes before the one that is followed by the first backward pass.
    pub warmup: u64,
    gpipe: bool,
}

impl StageSchedule {
    /// The schedule of pipeline rank `stage`.
    pub fn new(layout: &Layout, stage: u32) -> StageSchedule {
        let (pp, vpp) = (layout.pp as u64, layout.vpp.max(1) as u64);
        let passes = layout.microbatches() as u64 * vpp;
        let stages_after = pp - 1 - stage as u64;
        let gpipe = layout.schedule == PipelineSchedule::GPipe;
        let warmup = match gpipe {
            true => passes,
            false if vpp == 1 => stages_after,
            false => 2 * stages_after + (vpp - 1) * pp,
        };
        StageSchedule { pp, vpp, passes, warmup: warmup.min(passes), gpipe }
    }

    /// How many of the first `n` forward passes go through virtual stage `chunk`.
    fn forwards(&self, n: u64, chunk: u64) -> u64 {
        let group = self.pp * self.vpp;
        n / group * self.pp + (n % group).saturating_sub(chunk * self.pp).min(self.pp)
    }

    /// Number of passes through `chunk` that are held when the k-th backward pass (from 0) begins.
    pub fn held(&self, k: u64, chunk: u32) -> u64 {
        let done = self.forwards(k, self.vpp - 1 - chunk as u64);
        self.forwards((self.warmup + 1 + k).min(self.passes), chunk as u64) - done
    }

    /// Backward passes among which is the one with the highest memory use, whatever each virtual stage keeps. Between them, the held memory grows or shrinks
    /// steadily. After one group of `pp` micro-batches has gone through all virtual stages, everything repeats, and at the end less and less is held.
    pub fn candidates(self) -> impl Iterator<Item = u64> {
        let n_passes = (self.pp * self.vpp).min(self.passes);
        // The first and last of each run of backward passes through one virtual stage, and the points where the forward passes between them change their
        // virtual stage.
        let turn = (self.pp - (self.warmup + 1) % self.pp) % self.pp;
        let offsets = [0, turn.saturating_sub(1), turn, self.pp - 1];
        (0..n_passes).step_by(self.pp as usize).flat_map(move |k| offsets.map(|o| k + o)).filter(move |&k| k < n_passes)
    }

    /// The virtual stage of the k-th backward pass.
    pub fn backward_chunk(&self, k: u64) -> u32 {
        self.backward(k).chunk
    }

    /// The k-th forward pass. Micro-batches go in groups of `pp`; each group passes one virtual stage after the other.
    fn forward(&self, k: u64) -> Slot {
        if self.vpp == 1 {
            return Slot { chunk: 0, microbatch: k as u32, pass: PassKind::Forward };
        }
        let group = self.pp * self.vpp;
        Slot {
            chunk: (k % group / self.pp) as u32,
            microbatch: (k / group * self.pp + k % self.pp) as u32,
            pass: PassKind::Forward,
        }
    }

    fn backward(&self, k: u64) -> Slot {
        if self.gpipe {
            // The newest pass comes first, since its activations are most likely in the cache.
            return Slot { pass: PassKind::Backward, ..self.forward(self.passes - 1 - k) };
        }
        let forward = self.forward(k);
        Slot { chunk: self.vpp as u32 - 1 - forward.chunk, microbatch: forward.microbatch, pass: PassKind::Backward }
    }

    /// All slots in order, as a list.
    pub fn order(self) -> Vec<Slot> {
        budget::announce_rows::<Slot>("passes of micro-batches", 2 * self.passes);
        self.slots().collect()
    }

    /// All slots in order.
    pub fn slots(self) -> impl Iterator<Item = Slot> {
        let steady = (self.warmup..self.passes).flat_map(move |k| [self.forward(k), self.backward(k - self.warmup)]);
        let rest = (self.passes - self.warmup..self.passes).map(move |k| self.backward(k));
        (0..self.warmup).map(move |k| self.forward(k)).chain(steady).chain(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::layout::tests::layout;
    use crate::model::pipeline_orders;

    fn text(l: &Layout, rank: u32) -> String {
        let letter = |s: &Slot| if s.pass == PassKind::Backward { 'B' } else { 'F' };
        let slot = |s: &Slot| format!("{}{}.{}", letter(s), s.microbatch, s.chunk);
        pipeline_orders(l)[rank as usize].iter().map(slot).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn one_forward_one_backward() {
        let l = Layout { pp: 3, microbatch: 1, global_batch: 4, ..layout() };
        assert_eq!(text(&l, 0), "F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 B2.0 B3.0");
        assert_eq!(text(&l, 2), "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0");
        let l = Layout { schedule: PipelineSchedule::GPipe, ..l };
        assert_eq!(text(&l, 1), "F0.0 F1.0 F2.0 F3.0 B3.0 B2.0 B1.0 B0.0");
    }

    #[test]
    fn interleaved_warm_up_counts() {
        let l = Layout { pp: 2, vpp: 2, microbatch: 1, global_batch: 4, ..layout() };
        assert_eq!(text(&l, 0), "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
        assert_eq!(text(&l, 1), "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
    }

    #[test]
    fn every_pass_once_and_forward_first() {
        for (p, v, m) in [(1, 1, 3), (4, 1, 2), (4, 3, 8), (3, 2, 6), (2, 4, 2)] {
            for schedule in [PipelineSchedule::GPipe, PipelineSchedule::OneFOneB] {
                if v > 1 && schedule == PipelineSchedule::GPipe {
                    continue;
                }
                let l = Layout { pp: p, vpp: v, microbatch: 1, global_batch: m, schedule, ..layout() };
                for (rank, slots) in pipeline_orders(&l).into_iter().enumerate() {
                    assert_eq!(slots.len() as u32, 2 * m * v);
                    for (i, s) in slots.iter().enumerate() {
                        assert_eq!(slots.iter().filter(|x| *x == s).count(), 1);
                        let forward = Slot { pass: PassKind::Forward, ..*s };
                        assert!(slots[..=i].contains(&forward), "{p} {v} {m} rank {rank}: {s:?}");
                    }
                }
            }
        }
    }
}
