//! DualPipe: a pipeline that is fed from both ends, with two copies of the parameters (DeepSeek-V3, arXiv 2412.19437, Section 3.2.1; deepseek-ai/DualPipe).
//!
//! Layer: model. Order only. Half of the micro-batches go down the ranks, through each rank's first virtual stage. The others go up, through the second one,
//! whose layers are those of the mirrored rank's first. A rank calls *near* the direction that begins at its own half of the pipeline, and *far* the other one.
//! Mirrored ranks so have the same order of near and far passes.
//!
//! A forward pass and a whole backward pass of the other direction make up a block. A block begins when both of its inputs are there, and sends both results
//! at its end, because kernels of both passes take turns in it.

use super::Layout;
use super::pipeline::{PassKind, Slot};

/// The direction of a micro-batch, as a rank sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Near,
    Far,
}

use Direction::{Far, Near};

/// The passes of a rank, while they are written.
struct Writer {
    /// Whether the rank is in the second half, where near passes go up the ranks.
    second_half: bool,
    slots: Vec<Slot>,
    /// Forward and backward passes so far, by virtual stage.
    n_forward: [u32; 2],
    n_backward: [u32; 2],
    /// Gradients of weights that are not computed yet.
    waiting: std::collections::VecDeque<Slot>,
}

impl Writer {
    fn chunk(&self, direction: Direction) -> usize {
        usize::from((direction == Far) != self.second_half)
    }

    fn forward(&mut self, direction: Direction) {
        let chunk = self.chunk(direction);
        self.slots.push(Slot { chunk: chunk as u32, microbatch: self.n_forward[chunk], pass: PassKind::Forward });
        self.n_forward[chunk] += 1;
    }

    /// A backward pass: whole, or without gradients of weights, which then wait.
    fn backward(&mut self, direction: Direction, whole: bool) {
        let chunk = self.chunk(direction);
        let pass = if whole { PassKind::Backward } else { PassKind::InputGrads };
        let slot = Slot { chunk: chunk as u32, microbatch: self.n_backward[chunk], pass };
        self.n_backward[chunk] += 1;
        self.slots.push(slot);
        if !whole {
            self.waiting.push_back(Slot { pass: PassKind::WeightGrads, ..slot });
        }
    }

    /// The gradients of weights that have waited longest.
    fn weights(&mut self) {
        let slot = self.waiting.pop_front().expect("each is written after the gradients of inputs that it belongs to");
        self.slots.push(slot);
    }
}

/// The slots of each rank, in order. PRECONDITION: an even number of ranks and of micro-batches, at least two micro-batches a rank ([`Layout::check`]).
pub(super) fn orders(layout: &Layout) -> Vec<Vec<Slot>> {
    (0..layout.pp).map(|rank| order(layout, rank)).collect()
}

fn order(layout: &Layout, rank: u32) -> Vec<Slot> {
    let (ranks, half) = (layout.pp, layout.pp / 2);
    // Distance from the nearer end, and to the middle.
    let from_end = rank.min(ranks - 1 - rank);
    let to_middle = half - 1 - from_end;
    let mut w = Writer {
        second_half: rank >= half,
        slots: Vec::with_capacity(3 * layout.microbatches() as usize),
        n_forward: [0; 2],
        n_backward: [0; 2],
        waiting: std::collections::VecDeque::new(),
    };
    // The pipeline fills: near micro-batches first, then both in turn.
    (0..2 * to_middle).for_each(|_| w.forward(Near));
    for _ in 0..=from_end {
        w.forward(Near);
        w.forward(Far);
    }
    // The first far micro-batches come back. Gradients of their weights follow at once, for the rank would wait.
    for _ in 0..to_middle {
        w.backward(Far, false);
        w.weights();
        w.forward(Far);
    }
    // Full: blocks of both directions.
    for _ in 0..layout.passes_of_chunk() + from_end + 1 - ranks {
        w.forward(Near);
        w.backward(Far, true);
        w.forward(Far);
        w.backward(Near, true);
    }
    // No near micro-batch is left.
    for _ in 0..to_middle {
        w.backward(Far, true);
        w.forward(Far);
        w.backward(Near, true);
    }
    // The pipeline drains. Gradients of weights of the second half of these passes wait.
    let drained = 2 * (from_end + 1);
    for i in 0..drained {
        w.backward(if i.is_multiple_of(2) { Far } else { Near }, i <= from_end);
    }
    for _ in 0..to_middle {
        w.weights();
        w.backward(Near, false);
    }
    (0..=from_end).for_each(|_| w.weights());
    w.slots
}

/// Whether a slot and the one after it are a block. The two ranks in the middle do not join their first such passes: the forward pass of one is the other's
/// input.
pub(super) fn is_block(layout: &Layout, rank: u32, slots: &[Slot], i: usize) -> bool {
    let pair = |i: usize| match slots.get(i..i + 2) {
        Some([a, b]) => a.pass == PassKind::Forward && b.pass == PassKind::Backward && a.chunk != b.chunk,
        _ => false,
    };
    let in_the_middle = rank + 1 == layout.pp / 2 || rank == layout.pp / 2;
    // The first forward pass that a whole backward pass follows comes after all that fill the pipeline: as many as there are ranks.
    let is_first = || !(0..i).any(pair);
    pair(i) && !(in_the_middle && is_first())
}

#[cfg(test)]
mod tests {
    use super::super::PipelineSchedule;
    use super::super::layout::tests::layout;
    use super::super::orders::pipeline_orders;
    use super::*;

    fn dual(pp: u32, m: u32) -> Layout {
        Layout { pp, vpp: 2, schedule: PipelineSchedule::DualPipe, microbatch: 1, global_batch: m, ..layout() }
    }

    fn text(l: &Layout, rank: usize) -> String {
        let slots = &pipeline_orders(l)[rank];
        let letter = |s: &Slot| match s.pass {
            PassKind::Forward => 'F',
            PassKind::Backward => 'B',
            PassKind::InputGrads => 'I',
            PassKind::WeightGrads => 'W',
        };
        let direction = |s: &Slot| if s.chunk == 0 { "v" } else { "^" };
        let slot = |(i, s): (usize, &Slot)| {
            let joined = if is_block(l, rank as u32, slots, i) { "+" } else { " " };
            format!("{}{}{}{joined}", letter(s), s.microbatch, direction(s))
        };
        slots.iter().enumerate().map(slot).collect::<String>().trim_end().to_string()
    }

    /// The first ten micro-batches of eight ranks are those of Figure 5 of arXiv 2412.19437; four ranks are shown here.
    #[test]
    fn both_ends_feed_the_pipeline() {
        let l = dual(4, 8);
        assert_eq!(text(&l, 0), "F0v F1v F2v F0^ I0^ W0^ F1^ F3v+B1^ F2^+B0v B2^ F3^+B1v B3^ I2v W2v I3v W3v");
        assert_eq!(text(&l, 1), "F0v F0^ F1v F1^ F2v B0^ F2^+B0v F3v+B1^ F3^+B1v B2^ B2v I3^ I3v W3^ W3v");
        // Mirrored ranks do the same in the other direction.
        for (rank, mirrored) in [(0, 3), (1, 2)] {
            let turned = text(&l, mirrored).replace('v', "x").replace('^', "v").replace('x', "^");
            assert_eq!(text(&l, rank), turned);
        }
    }

    #[test]
    fn each_pass_once_within_the_memory_of_one_pass_more_than_ranks() {
        for pp in [2, 4, 6, 8, 16] {
            for m in [2 * pp, 2 * pp + 2, 4 * pp, 6 * pp + 4] {
                for (rank, slots) in pipeline_orders(&dual(pp, m)).iter().enumerate() {
                    let context = format!("{pp} {m} rank {rank}");
                    let count = |pass| slots.iter().filter(|s| s.pass == pass).count() as u32;
                    assert_eq!(count(PassKind::Forward), m, "{context}");
                    assert_eq!(count(PassKind::Backward) + count(PassKind::InputGrads), m, "{context}");
                    assert_eq!(count(PassKind::InputGrads), count(PassKind::WeightGrads), "{context}");
                    let (mut held, mut peak) = (0u32, 0);
                    let mut done = std::collections::HashMap::new();
                    for slot in slots {
                        let before = done.insert((slot.chunk, slot.microbatch), slot.pass);
                        let follows = match slot.pass {
                            PassKind::Forward => None,
                            PassKind::Backward | PassKind::InputGrads => Some(PassKind::Forward),
                            PassKind::WeightGrads => Some(PassKind::InputGrads),
                        };
                        assert_eq!(before, follows, "{context} {slot:?}");
                        held += u32::from(slot.pass == PassKind::Forward);
                        held -= u32::from(slot.pass.completes_gradients());
                        peak = peak.max(held);
                    }
                    assert_eq!((done.len() as u32, peak), (m, pp + 1), "{context}");
                }
            }
        }
    }
}
