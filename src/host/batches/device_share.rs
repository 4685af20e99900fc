//! Counts how many packet-hops of experiments a device would simulate if it worked beside the cores. Cores stand in for the device, so none is needed.
//!
//! Layer: host. Formats nothing.

use std::sync::Arc;

use hyperfold_engine::EngineError;
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_fold::beside_device::Beside;
use hyperfold_fold::{FoldEngine, HandOver};

use crate::batches::runner::{RunEvent, RunOptions, run};
use crate::batches::world::Ended;
use crate::outcomes::outcome::Ending;
use crate::setup::experiment::QueuedExperiment;

/// Packet-hops of one experiment, by who accounts for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceShare {
    /// Index in the sweep.
    pub exp_id: u64,
    /// All that the experiment stands for.
    pub packet_hops: u64,
    /// What steady phases left out.
    pub skipped: u64,
    /// What was simulated on the host. What an experiment simulates again counts again.
    pub on_host: u64,
    /// What the device simulated: all of an experiment that is not folded, or what followed after it was handed over.
    pub on_device: u64,
}

impl DeviceShare {
    /// Packet-hops that were looked up.
    pub fn known(&self) -> u64 {
        self.packet_hops.saturating_sub(self.skipped + self.on_host + self.on_device)
    }

    /// The counts of an experiment that has ended.
    fn of(ended: &Ended) -> DeviceShare {
        let folds = ended.folds.unwrap_or_default();
        DeviceShare {
            exp_id: ended.exp_id,
            packet_hops: ended.packet_hops,
            skipped: folds.hops_skipped,
            on_host: folds.hops_simulated - folds.hops_plain,
            on_device: folds.hops_plain,
        }
    }
}

/// Simulates experiments as a run with a device does, with cores in the device's place; `pool` has the host's threads. Calls `tell` with the counts of each experiment that has ended, or with
/// how it ended otherwise. Equal experiments are simulated once. Stops early when `stop` returns true.
///
/// # Errors
/// `tell` fails.
pub fn device_shares<E: From<EngineError>>(
    tasks: impl Iterator<Item = QueuedExperiment>,
    pool: Arc<rayon::ThreadPool>,
    stop: impl Fn() -> bool + Send + Sync + Clone + 'static,
    tell: &mut dyn FnMut(u64, Result<DeviceShare, Ending>) -> Result<(), E>,
) -> Result<(), E> {
    let fold = FoldEngine::default().handing_over(HandOver::FindsLittle);
    let engine = Beside::new(Box::new(CpuEngine), fold, pool);
    run(tasks, Box::new(engine), &RunOptions::default(), stop, &mut |event| match event {
        RunEvent::Ended(ended) => {
            let share = DeviceShare::of(&ended);
            tell(ended.exp_id, ended.result.map(|_| share))
        }
        _ => Ok(()),
    })
}
