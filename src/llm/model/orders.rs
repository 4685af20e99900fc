//! The order of passes on each pipeline rank, by the layout's schedule.
//!
//! Layer: model. `pipeline` has schedules with whole backward passes, `split_backward` the others.

use super::pipeline::{Slot, StageSchedule};
use super::{Layout, split_backward};
use hyperfold_base::budget;

/// The slots of each pipeline rank in an iteration, in order.
pub fn pipeline_orders(layout: &Layout) -> Vec<Vec<Slot>> {
    let slots_per_pass = if layout.schedule.splits_backward() { 3 } else { 2 };
    let slots = slots_per_pass * u64::from(layout.microbatches()) * u64::from(layout.vpp);
    if layout.schedule.splits_backward() {
        budget::announce_rows::<Slot>("passes of micro-batches", slots * u64::from(layout.pp));
        return split_backward::orders(layout);
    }
    let order = |rank| {
        budget::announce_rows::<Slot>("passes of micro-batches", slots);
        StageSchedule::new(layout, rank).slots().collect()
    };
    (0..layout.pp).map(order).collect()
}
