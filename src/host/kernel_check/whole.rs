//! The whole check of a device: stored experiments, by all kernels that they need.
//!
//! Layer: host.

use std::time::{Duration, Instant};

use hyperfold_base::isolation::isolated;
use hyperfold_engine::gpu::{GpuEngine, Mode};
use hyperfold_engine::systems::SYSTEMS;
use hyperfold_engine::{Engine, EngineError};

use super::cases::KernelCase;
use super::known::{KnownCase, digest};
use super::packets::{self, WrongCase};
use super::rates;
use super::steps::{self, SteppedKernels};

/// Steps of all cases that are compared system by system, also where nothing differs.
const FIRST_STEPS: u64 = 24;

/// Findings of the whole check of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCheck {
    /// Name of each case, with the digest of the tables that the fused kernel left. An empty digest: no tables came back.
    pub digests: Vec<(String, String)>,
    /// Number of systems that were compared one by one.
    pub systems: usize,
    /// Number of networks whose rates were compared.
    pub networks: usize,
    /// Wall time of the check.
    pub wall: Duration,
    /// First difference of each kind of kernel. Empty: all bytes are those of the CPU engine.
    pub differences: Vec<String>,
}

/// Checks a device with these cases.
///
/// # Errors
/// The device failed, or the check is to stop.
pub fn check(engine: &mut GpuEngine, cases: &[KernelCase]) -> Result<DeviceCheck, EngineError> {
    let begin = Instant::now();
    let known: Vec<KnownCase> = cases.iter().cloned().map(KnownCase::simulated).collect();
    let mut differences = Vec::new();
    let mut wrong: Vec<WrongCase> = Vec::new();
    let mut digests = Vec::new();
    for mode in [Mode::Fused, Mode::PerSystem] {
        let ends = packets::run(engine, mode, &known)?;
        if mode == Mode::Fused {
            let left = |i: usize| ends.tables.get(i).map(digest).unwrap_or_default();
            digests = known.iter().enumerate().map(|(i, case)| (case.name.clone(), left(i))).collect();
        }
        differences.extend(ends.wrong.iter().map(|wrong| format!("{}, {wrong}", packets::kernels_of(mode))));
        wrong.extend(ends.wrong);
    }
    let first = isolated(|| steps::first_difference(engine, SteppedKernels::Systems, &known, FIRST_STEPS));
    let mut step = first.unwrap_or(Ok(None))?;
    for wrong in &wrong {
        let Some(case) = known.iter().find(|case| step.is_none() && case.name == wrong.case) else { break };
        step = steps::first_wrong_step(engine, case)?;
    }
    differences.extend(step.map(|step| format!("step by step, {step}")));
    let solver = engine.rates().expect("a GPU engine solves rates");
    differences.extend(rates::first_difference(solver)?.map(|what| format!("the kernel of fair rates, {what}")));
    let (systems, networks) = (SYSTEMS.len(), rates::NETWORKS);
    Ok(DeviceCheck { digests, systems, networks, wall: begin.elapsed(), differences })
}
