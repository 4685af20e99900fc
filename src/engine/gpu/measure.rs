//! Measures the device: the kernels' time by the device's own clock, and the time of both transfers.
//!
//! Layer: engine. It runs the same kernels as a run does, for a given number of steps, and decides nothing.

use std::time::Instant;

use super::batch_runner::{GpuEngine, Mode, kernels_of};
use super::faults::RunError;
use super::pack;
use hyperfold_columns::Tables;

/// Most timestamps of one submission: WebGPU's limit for a query set.
const MAX_TIMESTAMPS: u32 = 4096;

/// Time that steps of a batch took on a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceTimes {
    /// Wall time to copy the tables to the device, in s.
    pub upload_s: f64,
    /// Wall time to copy them back, in s.
    pub download_s: f64,
    /// Wall time from the submission of the steps to their end, in s.
    pub wall_s: f64,
    /// Time of each kernel by the device's own clock, in s: one entry for the fused kernel, or one for each system. Empty if the device has no
    /// timestamps.
    pub kernels: Vec<(&'static str, f64)>,
    /// Bytes of all tables.
    pub bytes: u64,
    /// Number of experiments.
    pub n: usize,
}

/// Takes `steps` steps of every experiment in `batch`, in one submission, and measures them. What does not fit one set of bindings goes to
/// several, side by side. Pools do not grow: an experiment that needs more packets waits from then on.
///
/// # Errors
/// The device failed or has too little memory.
pub fn measure(engine: &mut GpuEngine, batch: &mut [Tables], mode: Mode, steps: u32) -> Result<DeviceTimes, RunError> {
    let mut times =
        DeviceTimes { bytes: batch.iter().map(Tables::bytes).sum(), n: batch.len(), ..DeviceTimes::default() };
    engine.choose_kernels(batch)?;
    let clock = Instant::now();
    let mut residents = Vec::new();
    for range in pack::batches(batch, &engine.batch_limits()) {
        let rows: Vec<u32> = (0..range.len() as u32).collect();
        let resident = engine.upload(&batch[range.clone()].iter().collect::<Vec<_>>())?;
        engine.set_steps(&resident, if mode == Mode::Fused { steps } else { 1 }, &rows);
        residents.push((resident, range, rows));
    }
    engine.finish_transfers()?;
    times.upload_s = clock.elapsed().as_secs_f64();
    let gates = batch.iter().any(|t| t.exps[0].gate_len > 0);
    let kernels = kernels_of(mode, gates);
    for &kernel in &kernels {
        engine.prepare(kernel)?;
    }
    let repeats = if mode == Mode::Fused { 1 } else { steps };
    let passes = repeats * kernels.len() as u32;
    let timed = engine.has_timestamps() && 2 * passes <= MAX_TIMESTAMPS;
    let queries = timed.then(|| engine.timestamps(2 * passes));
    let clock = Instant::now();
    let mut encoder = engine.encoder("measured steps");
    for k in 0..passes {
        let kernel = kernels[k as usize % kernels.len()];
        let writes = queries.as_ref().map(|queries| wgpu::ComputePassTimestampWrites {
            query_set: queries,
            beginning_of_pass_write_index: Some(2 * k),
            end_of_pass_write_index: Some(2 * k + 1),
        });
        let mut pass =
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes: writes });
        for (resident, _, rows) in &residents {
            pass.set_bind_group(0, resident.group(), &[]);
            engine.dispatch(&mut pass, kernel, resident.exps(), rows);
        }
    }
    let ticks = engine.submit_and_read_timestamps(encoder, &kernels, queries.as_ref(), 2 * passes)?;
    times.wall_s = clock.elapsed().as_secs_f64();
    if timed {
        let second = 1e-9 * f64::from(engine.timestamp_period());
        times.kernels = kernels.iter().map(|kernel| (kernel.entry(), 0.0)).collect();
        for (k, pass) in ticks.chunks_exact(2).enumerate() {
            times.kernels[k % kernels.len()].1 += pass[1].saturating_sub(pass[0]) as f64 * second;
        }
    }
    let clock = Instant::now();
    for (resident, range, _) in &residents {
        engine.download(resident, &mut batch[range.clone()].iter_mut().collect::<Vec<_>>())?;
    }
    times.download_s = clock.elapsed().as_secs_f64();
    Ok(times)
}
