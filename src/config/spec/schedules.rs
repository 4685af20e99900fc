//! Schedules of pipelines, as `workload.schedule` names them.
//!
//! Layer: spec. `model` has their orders.

use super::key_id::KeyId;
use super::value::Values;

/// Order of micro-batches on a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleChoice {
    /// One forward, one backward (1F1B).
    OneFOneB,
    /// All forwards, then all backwards.
    GPipe,
    /// 1F1B with split backward passes.
    ZbH1,
    /// Split backward passes in the shape of a V, with the memory of 1F1B.
    ZbV,
    /// Split backward passes in the shape of a V, with about half of the memory of 1F1B.
    VHalf,
    /// Split backward passes in the shape of a V, with about a third of the memory of 1F1B.
    VMin,
    /// Micro-batches from both ends, and two copies of the parameters.
    DualPipe,
}

impl ScheduleChoice {
    /// The schedule that is written.
    pub(super) fn of(v: &Values) -> ScheduleChoice {
        match v.text(KeyId::Schedule) {
            "gpipe" => ScheduleChoice::GPipe,
            "zb-h1" => ScheduleChoice::ZbH1,
            "zb-v" => ScheduleChoice::ZbV,
            "v-half" => ScheduleChoice::VHalf,
            "v-min" => ScheduleChoice::VMin,
            "dualpipe" => ScheduleChoice::DualPipe,
            _ => ScheduleChoice::OneFOneB,
        }
    }

    /// Whether backward passes, or some of them, are two: gradients of inputs, and later gradients of weights.
    pub fn splits_backward(self) -> bool {
        !matches!(self, ScheduleChoice::OneFOneB | ScheduleChoice::GPipe)
    }
}
