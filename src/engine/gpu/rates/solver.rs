//! A solver of rates on a device: decides which networks fit, and compiles the kernel when first used.
//!
//! Layer: engine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::resident::{DeviceHandles, NetworksOnDevice};
use super::rows::{NetworkBytes, NetworkRows};
use super::source;
use crate::EngineError;
use crate::fair_rates::{NumberedNetworks, RateNetwork, RateSolver};
use crate::gpu::faults::{Faults, RunError};
use crate::gpu::pack::DeviceLimits;

/// Invocations per workgroup.
const WORKGROUP: u32 = 256;
/// Maximum number of carriers per network. A workgroup walks over all carriers several times per solution, however few have changed. For larger
/// networks the CPU, which solves for changes only, is better, and dispatches stay short. Our choice, not measured on a real GPU.
const MAX_CARRIERS: usize = 1 << 14;
/// Minimum number of experiments in a batch for one dispatch per instant to pay, where the engine is chosen automatically. Our choice, not measured
/// on a real GPU: a dispatch and its answer cost some 0.1 ms there, a solution on a CPU thread some 10 us.
pub const FEWEST_THAT_PAY: usize = 512;

/// The compiled kernel.
#[derive(Debug)]
struct FillKernel {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    /// Whether it has run once: drivers have compiled all of it by then.
    is_warm: Arc<AtomicBool>,
}

/// Solver of rates on a device.
#[derive(Debug)]
pub struct DeviceRates {
    handles: DeviceHandles,
    limits: DeviceLimits,
    workgroup: u32,
    kernel: Option<FillKernel>,
    /// Text of the kernel in place of the composed one, in tests.
    changed_text: Option<String>,
    fewest: usize,
}

impl DeviceRates {
    /// Makes a solver on an open device. `workgroup`: maximum number of invocations that the device allows per workgroup.
    pub(in crate::gpu) fn new(
        device: wgpu::Device,
        queue: wgpu::Queue,
        faults: Faults,
        limits: DeviceLimits,
        workgroup: u32,
    ) -> DeviceRates {
        let workgroup = WORKGROUP.min(workgroup) / 16 * 16;
        let handles = DeviceHandles { device, queue, faults };
        DeviceRates { handles, limits, workgroup, kernel: None, changed_text: None, fewest: 1 }
    }

    /// Leaves batches with fewer experiments at flow level to the CPU.
    pub(in crate::gpu) fn set_fewest(&mut self, fewest: usize) {
        self.fewest = fewest;
    }

    /// Replaces the text of the kernel.
    pub(in crate::gpu) fn change_kernel(&mut self, change: impl FnOnce(String) -> String) -> Result<(), RunError> {
        self.changed_text = Some(change(source::compose(self.workgroup)?));
        self.kernel = None;
        Ok(())
    }

    /// Leaves networks to the CPU that exceed these limits: bytes of one buffer, and of all.
    pub(in crate::gpu) fn limit_batches(&mut self, limits: DeviceLimits) {
        self.limits = limits;
    }

    /// The kernel; compiles it if it is not compiled yet.
    fn kernel(&mut self) -> Result<&FillKernel, RunError> {
        if self.kernel.is_none() {
            let clock = Instant::now();
            let text = match &self.changed_text {
                Some(text) => text.clone(),
                None => source::compose(self.workgroup)?,
            };
            source::validate(&text)?;
            let device = &self.handles.device;
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(source::ENTRY),
                source: wgpu::ShaderSource::Wgsl(text.into()),
            });
            let entries: Vec<wgpu::BindGroupLayoutEntry> = (0..source::N_BINDINGS)
                .map(|binding| wgpu::BindGroupLayoutEntry {
                    binding,
                    visibility: wgpu::ShaderStages::COMPUTE,
                    ty: wgpu::BindingType::Buffer {
                        ty: wgpu::BufferBindingType::Storage { read_only: source::is_read_only(binding) },
                        has_dynamic_offset: false,
                        min_binding_size: None,
                    },
                    count: None,
                })
                .collect();
            let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: Some("networks"),
                entries: &entries,
            });
            let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some("networks"),
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
            let compile_on = device.clone();
            let pipeline = self.handles.faults.compiled(move || {
                compile_on.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                    label: Some(source::ENTRY),
                    layout: Some(&pipeline_layout),
                    module: &module,
                    entry_point: Some(source::ENTRY),
                    compilation_options: wgpu::PipelineCompilationOptions {
                        // Lane 0 sets workgroup variables before they are read.
                        zero_initialize_workgroup_memory: false,
                        ..Default::default()
                    },
                    cache: None,
                })
            })?;
            self.handles.faults.check()?;
            log::info!("kernel {}: compiled in {:.3} s", source::ENTRY, clock.elapsed().as_secs_f64());
            self.kernel = Some(FillKernel { pipeline, layout, is_warm: Arc::default() });
        }
        Ok(self.kernel.as_ref().expect("compiled above"))
    }
}

/// Number of each network that fits beside those before it; `None` if it does not fit.
fn numbers(networks: &[RateNetwork], limits: &DeviceLimits) -> Vec<Option<u32>> {
    let mut taken = NetworkBytes::default();
    let mut n = 0;
    let mut number = |network: &RateNetwork| {
        let sum = taken.plus(NetworkBytes::of(network));
        let fits = network.carriers.len() <= MAX_CARRIERS
            && n < limits.experiments
            && sum.0.iter().all(|&bytes| bytes <= limits.table_bytes)
            && sum.0.iter().sum::<u64>() <= limits.total_bytes;
        fits.then(|| {
            taken = sum;
            n += 1;
            n as u32 - 1
        })
    };
    networks.iter().map(&mut number).collect()
}

impl RateSolver for DeviceRates {
    fn fewest(&self) -> usize {
        self.fewest
    }

    fn load(&mut self, networks: &[RateNetwork]) -> Result<NumberedNetworks, EngineError> {
        let numbers = numbers(networks, &self.limits);
        let rows =
            NetworkRows::of(networks.iter().zip(&numbers).filter(|(_, n)| n.is_some()).map(|(network, _)| network));
        let handles = self.handles.clone();
        let kernel = self.kernel()?;
        let (pipeline, is_warm) = (kernel.pipeline.clone(), Arc::clone(&kernel.is_warm));
        let on_device = NetworksOnDevice::upload(handles, pipeline, is_warm, &kernel.layout, &rows)?;
        Ok((Box::new(on_device), numbers))
    }
}

impl From<RunError> for EngineError {
    fn from(error: RunError) -> EngineError {
        match error {
            RunError::Stopped => EngineError::Stopped,
            other => EngineError::Device(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_left_out() {
        let network = |n: usize| RateNetwork {
            capacities: vec![1; 4],
            carriers: vec![Default::default(); n],
            ..RateNetwork::default()
        };
        let networks = [network(10), network(MAX_CARRIERS + 1), network(30), network(10)];
        let limits = DeviceLimits { table_bytes: u64::MAX, total_bytes: u64::MAX, experiments: 9 };
        assert_eq!(numbers(&networks, &limits), [Some(0), None, Some(1), Some(2)]);
        assert_eq!(numbers(&networks, &DeviceLimits { experiments: 1, ..limits }), [Some(0), None, None, None]);
        let two_small = 20 * size_of::<super::super::rows::CarrierRow>() as u64;
        assert_eq!(
            numbers(&networks, &DeviceLimits { table_bytes: two_small, ..limits }),
            [Some(0), None, None, Some(1)]
        );
        assert_eq!(numbers(&networks, &DeviceLimits { total_bytes: 100, ..limits }), [None; 4]);
    }

    #[test]
    fn the_kernel_is_valid() {
        for workgroup in [64, 128, 256] {
            let text = source::compose(workgroup).expect("a usable size");
            if let Err(e) = source::validate(&text) {
                panic!("{e}");
            }
        }
    }
}
