//! Order of micro-batches on each pipeline rank: GPipe, one forward one backward, and the latter interleaved over virtual stages, as Megatron orders them.
//!
//! Layer: workload. Virtual stage `chunk * pp + rank` follows the one before it on the rank before (the first of a chunk: on the last rank). Knows no durations.

use crate::model::{Layout, PipelineSchedule};

/// One pass of one micro-batch through one virtual stage of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub chunk: u32,
    pub microbatch: u32,
    pub backward: bool,
}

/// What pipeline rank `rank` does in an iteration, in order.
pub fn order(layout: &Layout, rank: u32) -> Vec<Slot> {
    let (p, v, m) = (layout.pp, layout.vpp.max(1), layout.microbatches());
    let total = m * v;
    let forwards = passes(p, v, m, false);
    let mut backwards = passes(p, v, m, true);
    let warmup = match layout.schedule {
        PipelineSchedule::GPipe => {
            // The newest activations are at hand first.
            backwards = forwards.iter().rev().map(|s| Slot { backward: true, ..*s }).collect();
            total
        }
        PipelineSchedule::OneFOneB if v == 1 => (p - rank - 1).min(total),
        PipelineSchedule::OneFOneB => ((p - rank - 1) * 2 + (v - 1) * p).min(total),
    } as usize;
    let mut slots = forwards[..warmup].to_vec();
    for (f, b) in forwards[warmup..].iter().zip(&backwards) {
        slots.extend([*f, *b]);
    }
    slots.extend(&backwards[forwards.len() - warmup..]);
    slots
}

/// Forward (or backward) passes of a rank in order: `p` micro-batches through one chunk, then the same through the next; the rest of `m / p` likewise.
fn passes(p: u32, v: u32, m: u32, backward: bool) -> Vec<Slot> {
    let mut passes = Vec::with_capacity((m * v) as usize);
    let run = if v == 1 { m.max(1) } else { p };
    for first in (0..m).step_by(run as usize) {
        for chunk in 0..v {
            let chunk = if backward { v - 1 - chunk } else { chunk };
            passes.extend((first..m.min(first + run)).map(|microbatch| Slot { chunk, microbatch, backward }));
        }
    }
    passes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::training::tests::layout;

    fn text(l: &Layout, rank: u32) -> String {
        let slot = |s: &Slot| format!("{}{}.{}", if s.backward { 'B' } else { 'F' }, s.microbatch, s.chunk);
        order(l, rank).iter().map(slot).collect::<Vec<_>>().join(" ")
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
        for (p, v, m) in [(1, 1, 3), (4, 1, 2), (4, 3, 8), (3, 2, 7), (2, 4, 1)] {
            for schedule in [PipelineSchedule::GPipe, PipelineSchedule::OneFOneB] {
                let l = Layout { pp: p, vpp: v, microbatch: 1, global_batch: m, schedule, ..layout() };
                for rank in 0..p {
                    let slots = order(&l, rank);
                    assert_eq!(slots.len() as u32, 2 * m * v);
                    for (i, s) in slots.iter().enumerate() {
                        assert_eq!(slots.iter().filter(|x| *x == s).count(), 1);
                        let forward = Slot { backward: false, ..*s };
                        assert!(slots[..=i].contains(&forward), "{p} {v} {m} rank {rank}: {s:?}");
                    }
                }
            }
        }
    }
}
