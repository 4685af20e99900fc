//! Stored experiments step by step on a device, compared after every system: what differs first, and which system wrote it.
//!
//! Layer: host. It is slow, because all tables come back after every dispatch. A run does not need it; people who look for a fault do.

use std::fmt;

use hyperfold_base::isolation::isolated;
use hyperfold_columns::{OwnedTables, status};
use hyperfold_engine::gpu::device_tables::Resident;
use hyperfold_engine::gpu::{EntryPoint, GpuEngine, RunError};
use hyperfold_engine::systems::SYSTEMS;
use hyperfold_engine::{EngineError, cpu, grow};

use super::difference::difference;
use super::known::{KnownCase, PACKET_LIMIT};

/// Which kernels take a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteppedKernels {
    /// One dispatch per system, compared after each.
    Systems,
    /// One step of the fused kernel.
    Fused,
}

impl SteppedKernels {
    fn entries(self) -> Vec<EntryPoint> {
        match self {
            SteppedKernels::Systems => (0..SYSTEMS.len()).map(EntryPoint::System).collect(),
            SteppedKernels::Fused => vec![EntryPoint::Fused],
        }
    }
}

/// The first value that a device computes otherwise than the CPU engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongStep {
    /// Name of the case.
    pub case: String,
    /// Number of the step in its experiment, from 0.
    pub step: u64,
    /// Name of the system, or of the kernel of all systems.
    pub system: &'static str,
    /// The value that differs.
    pub what: String,
}

impl fmt::Display for WrongStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongStep { case, step, system, what } = self;
        write!(f, "case `{case}`, step {step}, after `{system}`: {what}")
    }
}

/// Runs at most `steps` steps of all cases side by side, each dispatch of `kernels` also on the CPU. Returns the first difference.
///
/// # Errors
/// The device failed, or the run is to stop.
pub fn first_difference(
    engine: &mut GpuEngine,
    kernels: SteppedKernels,
    known: &[KnownCase],
    steps: u64,
) -> Result<Option<WrongStep>, EngineError> {
    let mut on_cpu: Vec<OwnedTables> = known.iter().map(|case| case.before.clone()).collect();
    let mut resident = None;
    for _ in 0..steps {
        for t in on_cpu.iter_mut().filter(|t| t.exps[0].status == status::NEEDS_PACKETS) {
            if grow::grow(&mut t.view(), PACKET_LIMIT).is_err() {
                return Ok(None);
            }
            resident = None;
        }
        if on_cpu.iter().all(|t| t.exps[0].status != status::RUNNING) {
            return Ok(None);
        }
        let ran = step(engine, kernels, known, &mut on_cpu, &mut resident);
        if let Some(wrong) = ran.inspect_err(|error| engine.abandon_after(error))? {
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

/// Takes one step. `resident` holds the tables on the device, if they are there already.
fn step(
    engine: &mut GpuEngine,
    kernels: SteppedKernels,
    known: &[KnownCase],
    on_cpu: &mut [OwnedTables],
    resident: &mut Option<Resident>,
) -> Result<Option<WrongStep>, RunError> {
    let mut got = on_cpu.to_vec();
    let uploaded = match resident.take() {
        Some(uploaded) => uploaded,
        None => OwnedTables::with_views(&mut got, |all| engine.upload(&all.iter().collect::<Vec<_>>()))?,
    };
    let uploaded = resident.insert(uploaded);
    let takes_part: Vec<bool> = on_cpu.iter().map(|t| t.exps[0].status == status::RUNNING).collect();
    for entry in kernels.entries() {
        OwnedTables::with_views(&mut got, |all| {
            let mut all: Vec<_> = all.iter_mut().collect();
            engine.run_system(uploaded, entry, Some(&mut all))
        })?;
        for (i, t) in on_cpu.iter_mut().enumerate().filter(|(i, _)| takes_part[*i]) {
            let step = t.exps[0].steps;
            take(entry, t);
            if let Some(what) = difference(&got[i], t) {
                let (case, system) = (known[i].name.clone(), name(entry));
                return Ok(Some(WrongStep { case, step, system, what }));
            }
        }
    }
    Ok(None)
}

/// The function of `entry` on the CPU.
fn take(entry: EntryPoint, t: &mut OwnedTables) {
    match entry {
        EntryPoint::System(k) => {
            let rows = SYSTEMS[k].rows.count(&t.exps[0]);
            SYSTEMS[k].run(&mut t.view(), 0..rows);
        }
        EntryPoint::Fused => cpu::run(&mut t.view(), 1),
    }
}

fn name(entry: EntryPoint) -> &'static str {
    match entry {
        EntryPoint::System(k) => SYSTEMS[k].name,
        EntryPoint::Fused => EntryPoint::Fused.entry(),
    }
}

/// [`first_difference`] of one case to its end: first by the kernels of single systems, then by the fused kernel. `None`: whole runs differ, but no step
/// that is taken alone does.
///
/// # Errors
/// The device failed, or the run is to stop.
pub fn first_wrong_step(engine: &mut GpuEngine, case: &KnownCase) -> Result<Option<WrongStep>, EngineError> {
    let steps = case.want.exps[0].steps - case.before.exps[0].steps + IN_RESERVE;
    for kernels in [SteppedKernels::Systems, SteppedKernels::Fused] {
        let found = isolated(|| first_difference(engine, kernels, std::slice::from_ref(case), steps));
        if let Some(wrong) = found.unwrap_or(Ok(None))? {
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

/// Calls beyond the number of steps: a step that waits for packets is called again.
const IN_RESERVE: u64 = 64;
