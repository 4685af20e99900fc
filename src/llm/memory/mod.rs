//! Memory: what a rank's GPU holds during an iteration, and whether it fits.
//!
//! Layer: memory. Pure arithmetic on a model and its parallel layout, in microseconds per configuration. It knows no network and no durations. Ranks of one
//! pipeline stage hold the same, except for uneven expert load; the busiest rank counts. Activations follow Korthikanti et al. 2022 (arXiv 2205.05198, "the
//! paper" in this module), extended to what it does not cover: grouped-query and latent attention, gated feed-forward parts, experts, context parallelism,
//! fused attention.

mod activations;
mod buffers;
mod fit;
mod options;
mod shares;
mod stage;
pub mod validation;

pub use activations::LayerActivations;
pub use fit::{Estimate, OutOfMemory};
pub use options::MemoryOptions;
pub use stage::{Moment, StageMemory};

use crate::model::{Layout, Model, Transformer, pipeline_orders};
use stage::StageOrder;

/// The memory of each pipeline stage at its peak. PRECONDITION: `layout.check` accepts the model.
pub fn estimate(model: &Model, layout: &Layout, options: &MemoryOptions) -> Estimate {
    // The orders of split backward passes are found for all ranks at once.
    let mut listed = layout.schedule.splits_backward().then(|| pipeline_orders(layout));
    let peak = |stage: u32| {
        let order = match &mut listed {
            Some(orders) => StageOrder::Listed(std::mem::take(&mut orders[stage as usize])),
            None => StageOrder::new(layout, stage),
        };
        stage::Stage::new(model, layout, options, stage, order).peak()
    };
    Estimate { stages: (0..layout.pp).map(peak).collect() }
}

/// The memory of pipeline stage `stage` in each slot of its schedule, in order, and then in the optimizer's step. The largest total is [`estimate`]'s peak.
/// PRECONDITION: that of [`estimate`], and `stage < layout.pp`.
pub fn timeline(model: &Model, layout: &Layout, options: &MemoryOptions, stage: u32) -> Vec<Moment> {
    stage::Stage::new(model, layout, options, stage, StageOrder::new(layout, stage)).timeline()
}

/// Bytes that a layer, dense or with experts, keeps of one micro-batch on a rank for its backward pass.
pub fn kept_bytes(t: &Transformer, layout: &Layout, moe: bool) -> u64 {
    LayerActivations::new(t, layout, moe).kept
}

/// The bytes that one transformer layer keeps of one micro-batch on a rank, by component; `layer` counts from 0. `None` for other models.
pub fn layer_activations(model: &Model, layout: &Layout, layer: u32) -> Option<LayerActivations> {
    model.transformer().map(|t| LayerActivations::new(t, layout, t.is_moe(layer)))
}
