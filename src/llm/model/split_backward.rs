//! Schedules whose backward passes are split into gradients of inputs and gradients of weights: ZB-H1, V-ZB, V-Half and V-Min.
//!
//! Layer: model. Order only. The order of forward passes and of gradients of inputs is that of 1F1B, or of a building block that is repeated for each
//! micro-batch (Qi et al., arXiv 2405.15362, Section 3). Gradients of weights then fill the time in which a rank would wait, and come earlier where the memory
//! would be exceeded. For these decisions every pass takes one unit of time and messages take none. The papers' own schedules are drawn that way too; their
//! implementation may reorder by measured times, which is not modelled.

use std::collections::VecDeque;

use super::Layout;
use super::PipelineSchedule;
use super::pipeline::{PassKind, Slot, StageSchedule};

/// Units of time from one micro-batch to the next on a rank with two virtual stages: two passes of each kind.
const INTERVAL: u64 = 6;
/// A time that is not known yet.
const NOT_YET: u64 = u64::MAX;

/// The slots of each rank, in order.
pub(super) fn orders(layout: &Layout) -> Vec<Vec<Slot>> {
    let urgent: Vec<Vec<Slot>> = match layout.schedule {
        PipelineSchedule::ZbV => repeated(layout, Offsets { down: 4, up: 2 }),
        PipelineSchedule::VHalf => repeated(layout, Offsets { down: 2, up: 1 }),
        PipelineSchedule::VMin => repeated(layout, Offsets { down: 1, up: 1 }),
        PipelineSchedule::ZbH1 | PipelineSchedule::OneFOneB | PipelineSchedule::GPipe | PipelineSchedule::DualPipe => {
            (0..layout.pp).map(|rank| one_forward_one_backward(layout, rank)).collect()
        }
    };
    fill(layout, urgent, held_passes(layout.schedule, layout.pp))
}

/// The number of passes through a virtual stage whose activations a rank should hold at most.
///
/// V-Half holds (p / 2 + 1) of 1F1B's p micro-batches, and V-Min (p / 3 + 2) (Qi et al., arXiv 2405.15362, Table 1); each is two passes through half as many
/// layers.
pub(super) fn held_passes(schedule: PipelineSchedule, pp: u32) -> u64 {
    let p = u64::from(pp);
    match schedule {
        PipelineSchedule::ZbV => 2 * p,
        PipelineSchedule::VHalf => p + 2,
        PipelineSchedule::VMin => 2 * p / 3 + 4,
        PipelineSchedule::DualPipe => p + 1,
        PipelineSchedule::ZbH1 | PipelineSchedule::OneFOneB | PipelineSchedule::GPipe => p,
    }
}

/// Forward passes and gradients of inputs in the order of 1F1B.
fn one_forward_one_backward(layout: &Layout, rank: u32) -> Vec<Slot> {
    let split = |slot: Slot| match slot.pass {
        PassKind::Backward => Slot { pass: PassKind::InputGrads, ..slot },
        _ => slot,
    };
    StageSchedule::new(layout, rank).slots().map(split).collect()
}

/// Units of time from a pass on one rank to the same pass on the next: of passes that go from the first rank to the last, and of passes that go back. The
/// longest stay of an activation grows with them, and so does the memory: to 2 (down + up) / 6 of a pass for each rank.
#[derive(Clone, Copy)]
struct Offsets {
    down: u64,
    up: u64,
}

/// The times of one micro-batch's passes. Both forward passes and both passes of gradients are on every rank; the first and the third go down the ranks.
struct Block {
    offsets: Offsets,
    last_rank: u64,
    /// Begin of each of the four passes on the rank where it begins.
    begin: [u64; 4],
}

/// The passes of a block in the order of a micro-batch: virtual stage of the rank, and kind.
const PASSES: [(u32, PassKind); 4] =
    [(0, PassKind::Forward), (1, PassKind::Forward), (1, PassKind::InputGrads), (0, PassKind::InputGrads)];

impl Block {
    /// The block in which each pass begins as early as it can without two passes of a rank at the same time, whatever micro-batches they belong to.
    fn new(offsets: Offsets, pp: u32) -> Block {
        let last_rank = u64::from(pp) - 1;
        let (down, up) = (offsets.down * last_rank + 1, offsets.up * last_rank + 1);
        let waits = (0..INTERVAL).flat_map(|a| (0..INTERVAL).flat_map(move |b| (0..INTERVAL).map(move |c| [a, b, c])));
        waits
            .map(|[a, b, c]| {
                let second = down + a;
                let third = second + up + b;
                Block { offsets, last_rank, begin: [0, second, third, third + down + c] }
            })
            .find(Block::is_free_of_collisions)
            .expect("the offsets of this module leave each pass a unit of its own")
    }

    /// Begin of pass `i` of the first micro-batch on a rank.
    fn time(&self, rank: u64, i: usize) -> u64 {
        self.begin[i]
            + if i.is_multiple_of(2) { self.offsets.down * rank } else { self.offsets.up * (self.last_rank - rank) }
    }

    fn is_free_of_collisions(&self) -> bool {
        (0..=self.last_rank).all(|rank| {
            let units: Vec<u64> = (0..PASSES.len()).map(|i| self.time(rank, i) % INTERVAL).collect();
            (1..units.len()).all(|i| !units[..i].contains(&units[i]))
        })
    }
}

/// Forward passes and gradients of inputs of each rank, by a block that is repeated for each micro-batch.
fn repeated(layout: &Layout, offsets: Offsets) -> Vec<Vec<Slot>> {
    let block = Block::new(offsets, layout.pp);
    let of_rank = |rank: u32| {
        let mut timed: Vec<(u64, Slot)> = (0..layout.microbatches())
            .flat_map(|microbatch| {
                PASSES.into_iter().enumerate().map(move |(i, (chunk, pass))| (i, Slot { chunk, microbatch, pass }))
            })
            .map(|(i, slot)| (INTERVAL * u64::from(slot.microbatch) + block.time(u64::from(rank), i), slot))
            .collect();
        timed.sort_unstable_by_key(|&(time, _)| time);
        timed.into_iter().map(|(_, slot)| slot).collect()
    };
    (0..layout.pp).map(of_rank).collect()
}

/// A rank of [`fill`].
struct Rank {
    /// Passes whose order is given.
    urgent: std::vec::IntoIter<Slot>,
    next: Option<Slot>,
    /// Gradients of weights that can be computed, in order.
    waiting: VecDeque<Slot>,
    /// Passes whose activations, or what gradients of weights need of them, are held.
    held: u64,
    order: Vec<Slot>,
}

/// Adds gradients of weights to the other passes of each rank: where it would wait, at the end, and before a forward pass where `max_held` passes are held.
fn fill(layout: &Layout, urgent: Vec<Vec<Slot>>, max_held: u64) -> Vec<Vec<Slot>> {
    let (n_stages, m) = ((layout.pp * layout.vpp) as usize, layout.microbatches() as usize);
    // End of each pass by virtual stage and micro-batch.
    let mut forward = vec![NOT_YET; n_stages * m];
    let mut input_grads = vec![NOT_YET; n_stages * m];
    let mut ranks: Vec<Rank> = urgent
        .into_iter()
        .map(|slots| {
            let order = Vec::with_capacity(slots.len() / 2 * 3);
            let mut urgent = slots.into_iter();
            let next = urgent.next();
            Rank { urgent, next, waiting: VecDeque::new(), held: 0, order }
        })
        .collect();
    let mut now = 0;
    while ranks.iter().any(|r| r.next.is_some() || !r.waiting.is_empty()) {
        for (number, rank) in (0..).zip(&mut ranks) {
            let idx = |slot: Slot| layout.virtual_stage(number, slot.chunk) as usize * m + slot.microbatch as usize;
            let input_ends = |slot: Slot| {
                let pass_idx = idx(slot);
                match slot.pass {
                    PassKind::Forward if pass_idx < m => 0,
                    PassKind::Forward => forward[pass_idx - m],
                    _ if pass_idx >= (n_stages - 1) * m => forward[pass_idx],
                    _ => input_grads[pass_idx + m],
                }
            };
            let full = |slot: Slot| slot.pass == PassKind::Forward && rank.held >= max_held && !rank.waiting.is_empty();
            match rank.next {
                Some(slot) if !full(slot) && input_ends(slot) <= now => {
                    match slot.pass {
                        PassKind::Forward => {
                            forward[idx(slot)] = now + 1;
                            rank.held += 1;
                        }
                        _ => {
                            input_grads[idx(slot)] = now + 1;
                            rank.waiting.push_back(Slot { pass: PassKind::WeightGrads, ..slot });
                        }
                    }
                    rank.order.push(slot);
                    rank.next = rank.urgent.next();
                }
                _ => {
                    if let Some(slot) = rank.waiting.pop_front() {
                        rank.order.push(slot);
                        rank.held -= 1;
                    }
                }
            }
        }
        now += 1;
    }
    ranks.into_iter().map(|r| r.order).collect()
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::layout;
    use super::super::orders::pipeline_orders;
    use super::*;

    const SCHEDULES: [PipelineSchedule; 4] =
        [PipelineSchedule::ZbH1, PipelineSchedule::ZbV, PipelineSchedule::VHalf, PipelineSchedule::VMin];

    fn split(schedule: PipelineSchedule, pp: u32, m: u32) -> Layout {
        let vpp = if schedule.is_v_shaped() { 2 } else { 1 };
        Layout { pp, vpp, schedule, microbatch: 1, global_batch: m, ..layout() }
    }

    fn text(l: &Layout, rank: usize) -> String {
        let letter = |s: &Slot| match s.pass {
            PassKind::Forward => 'F',
            PassKind::InputGrads => 'B',
            PassKind::WeightGrads => 'W',
            PassKind::Backward => '?',
        };
        let slot = |s: &Slot| format!("{}{}.{}", letter(s), s.microbatch, s.chunk);
        pipeline_orders(l)[rank].iter().map(slot).collect::<Vec<_>>().join(" ")
    }

    /// Each rank delays gradients of weights by as many micro-batches as its number, as Figure 3 of arXiv 2401.10241 shows.
    #[test]
    fn zb_h1_is_one_forward_one_backward_with_late_gradients_of_weights() {
        let l = split(PipelineSchedule::ZbH1, 3, 4);
        assert_eq!(text(&l, 0), "F0.0 F1.0 F2.0 B0.0 W0.0 F3.0 B1.0 W1.0 B2.0 W2.0 B3.0 W3.0");
        assert_eq!(text(&l, 1), "F0.0 F1.0 B0.0 F2.0 B1.0 W0.0 F3.0 B2.0 W1.0 B3.0 W2.0 W3.0");
        assert_eq!(text(&l, 2), "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 W0.0 F3.0 B3.0 W1.0 W2.0 W3.0");
    }

    #[test]
    fn each_pass_once_in_an_order_that_ends_within_the_memory() {
        for schedule in SCHEDULES {
            for pp in (2..=9).chain([13, 16]) {
                for m in (1..=7).chain([pp, pp + 1, 2 * pp, 4 * pp + 3]) {
                    let l = split(schedule, pp, m);
                    let orders = pipeline_orders(&l);
                    assert_eq!(orders.len() as u32, pp);
                    for (rank, slots) in orders.iter().enumerate() {
                        let context = format!("{} {pp} {m} rank {rank}", schedule.name());
                        let mut sorted = slots.clone();
                        sorted.sort_by_key(|s| (s.pass, s.chunk, s.microbatch));
                        sorted.dedup();
                        assert_eq!(
                            (sorted.len(), slots.len()),
                            ((3 * m * l.vpp) as usize, (3 * m * l.vpp) as usize),
                            "{context}"
                        );
                        let (mut held, mut peak) = (0u64, 0);
                        let mut done = std::collections::HashMap::new();
                        for slot in slots {
                            let passed = done.entry((slot.chunk, slot.microbatch)).or_insert(PassKind::Forward);
                            let expected = match slot.pass {
                                PassKind::Forward => PassKind::Forward,
                                PassKind::InputGrads => PassKind::InputGrads,
                                _ => PassKind::WeightGrads,
                            };
                            assert_eq!(*passed, expected, "{context}: {slot:?}");
                            *passed = if expected == PassKind::Forward {
                                PassKind::InputGrads
                            } else {
                                PassKind::WeightGrads
                            };
                            held = held + u64::from(slot.pass == PassKind::Forward)
                                - u64::from(slot.pass == PassKind::WeightGrads);
                            peak = peak.max(held);
                        }
                        assert!(peak <= held_passes(schedule, pp), "{context}: {peak} passes held");
                    }
                }
            }
        }
    }
}
