//! Devices become engines that experiments are handed to.
//!
//! Layer: cli. Which devices is decided in [`super::engine_choice`].

use anyhow::Context;

use crate::batch::Worker;
use crate::engine::fold::FoldEngine;
use crate::engine::gpu::{GpuDevice, GpuEngine, Mode};

use super::args::GpuDispatch;

/// An engine a device.
///
/// # Errors
/// A device that lacks what the kernels need, or refuses them.
pub fn workers(devices: Vec<GpuDevice>, dispatch: GpuDispatch) -> anyhow::Result<Vec<Worker>> {
    let worker = |(place, device): (usize, GpuDevice)| {
        let name = format!("device {} of this run, adapter {} ({})", place + 1, device.report.index, device.report.name);
        let mut engine = GpuEngine::on(&device).with_context(|| name.clone())?;
        engine.dispatch_as(match dispatch {
            GpuDispatch::Auto => None,
            GpuDispatch::Fused => Some(Mode::Fused),
            GpuDispatch::PerSystem => Some(Mode::PerSystem),
        });
        Ok(Worker { name, engine: Box::new(engine), on_pool: false })
    };
    devices.into_iter().enumerate().map(worker).collect()
}

/// The CPU engine, for what devices have left.
pub fn cpu() -> Worker {
    Worker { name: "CPU engine".into(), engine: Box::new(FoldEngine::default()), on_pool: true }
}
