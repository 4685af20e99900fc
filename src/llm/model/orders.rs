//! The order of passes on each pipeline rank, by the layout's schedule.
//!
//! Layer: model. `pipeline` has schedules with whole backward passes, `split_backward` and `dualpipe` the others.

use super::pipeline::{Slot, StageSchedule};
use super::{Layout, dualpipe, split_backward};
use hyperfold_base::budget;

/// The slots of each pipeline rank in an iteration, in order.
pub fn pipeline_orders(layout: &Layout) -> Vec<Vec<Slot>> {
    if layout.schedule.splits_backward() {
        let passes = u64::from(layout.pp) * u64::from(layout.vpp) * u64::from(layout.microbatches());
        budget::announce_rows::<Slot>("passes of micro-batches", 3 * passes);
        if layout.schedule.is_fed_twice() {
            return dualpipe::orders(layout);
        }
        return split_backward::orders(layout);
    }
    (0..layout.pp).map(|rank| StageSchedule::new(layout, rank).order()).collect()
}

/// Whether a slot of a pipeline rank and the one after it are computed together: see [`dualpipe`].
pub fn is_block(layout: &Layout, rank: u32, slots: &[Slot], i: usize) -> bool {
    layout.schedule.is_fed_twice() && dualpipe::is_block(layout, rank, slots, i)
}
