//! The order of passes on each pipeline rank, by the layout's schedule.
//!
//! Layer: model. `pipeline` has schedules with whole backward passes, `split_backward` the others.

use super::pipeline::{Slot, StageSchedule};
use super::{Layout, split_backward};
use hyperfold_base::budget;

/// The slots of each pipeline rank in an iteration, in order.
pub fn pipeline_orders(layout: &Layout) -> Vec<Vec<Slot>> {
    if layout.schedule.splits_backward() {
        let passes = u64::from(layout.pp) * u64::from(layout.vpp) * u64::from(layout.microbatches());
        budget::announce_rows::<Slot>("passes of micro-batches", 3 * passes);
        return split_backward::orders(layout);
    }
    (0..layout.pp).map(|rank| StageSchedule::new(layout, rank).order()).collect()
}
