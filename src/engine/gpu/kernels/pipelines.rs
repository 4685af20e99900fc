//! Compiled kernels. Each is compiled when first used, because software Vulkan takes seconds for each.
//!
//! Layer: engine. Knows entry points and bindings, not the content of the tables.

use std::borrow::Cow;

use super::parts::KernelParts;
use super::source;
use crate::gpu::faults::{Faults, RunError};
use crate::systems::SYSTEMS;
use hyperfold_columns::{TABLES, Table};

/// An entry point of the WGSL module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryPoint {
    /// All systems, many steps, one workgroup per experiment.
    Fused,
    /// One system of one step, by its index in [`SYSTEMS`].
    System(usize),
}

impl EntryPoint {
    /// The entry point's name in WGSL.
    pub fn entry(self) -> &'static str {
        match self {
            EntryPoint::Fused => "fused",
            EntryPoint::System(k) => SYSTEMS[k].entry,
        }
    }

    /// Its index among the pipelines.
    fn slot(self) -> usize {
        match self {
            EntryPoint::Fused => SYSTEMS.len(),
            EntryPoint::System(k) => k,
        }
    }
}

/// How kernels of every kind bind the tables.
#[derive(Clone, Debug)]
pub struct KernelLayout {
    group: wgpu::BindGroupLayout,
    pipeline: wgpu::PipelineLayout,
}

impl KernelLayout {
    /// Makes the layout on a device.
    pub fn new(device: &wgpu::Device) -> Self {
        let entries: Vec<wgpu::BindGroupLayoutEntry> = (0..source::N_BINDINGS as u32)
            .map(|binding| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Storage { read_only: is_read_only(binding) },
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        let group = device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some("tables"), entries: &entries });
        let pipeline = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("tables"),
            bind_group_layouts: &[Some(&group)],
            immediate_size: 0,
        });
        KernelLayout { group, pipeline }
    }

    /// The layout of the bind group that holds the tables.
    pub fn group(&self) -> &wgpu::BindGroupLayout {
        &self.group
    }
}

/// The module of kernels with some parts, and the pipelines made of it so far.
#[derive(Debug)]
pub struct Kernels {
    module: wgpu::ShaderModule,
    layout: wgpu::PipelineLayout,
    pipelines: [Option<wgpu::ComputePipeline>; SYSTEMS.len() + 1],
    /// For each pipeline, whether it has run once: drivers have compiled all of it by then.
    warm: [bool; SYSTEMS.len() + 1],
    /// Invocations per workgroup.
    pub workgroup: u32,
    /// The parts that are in the module.
    pub parts: KernelParts,
}

impl Kernels {
    /// Checks the module of `text`, which has the entry points of [`source::compose`], and passes it to the driver. Compiles no entry point yet.
    ///
    /// # Errors
    /// The text is not valid, or the device refuses it.
    pub fn new(
        device: &wgpu::Device,
        faults: &Faults,
        layout: &KernelLayout,
        workgroup: u32,
        parts: KernelParts,
        text: &str,
    ) -> Result<Self, RunError> {
        let (module, _) = source::module(text, parts)?;
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("hyperfold systems"),
            source: wgpu::ShaderSource::Naga(Cow::Owned(module)),
        });
        faults.check()?;
        let (pipelines, warm) = (Default::default(), Default::default());
        Ok(Kernels { module, layout: layout.pipeline.clone(), pipelines, warm, workgroup, parts })
    }

    /// Compiles `kernel` if it is not compiled yet.
    ///
    /// # Errors
    /// The driver refuses it.
    pub fn prepare(&mut self, device: &wgpu::Device, faults: &Faults, kernel: EntryPoint) -> Result<(), RunError> {
        let slot = &mut self.pipelines[kernel.slot()];
        if slot.is_none() {
            let clock = std::time::Instant::now();
            let (device, layout, module) = (device.clone(), self.layout.clone(), self.module.clone());
            let pipeline = faults.compiled(move || {
                device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                    label: Some(kernel.entry()),
                    layout: Some(&layout),
                    module: &module,
                    entry_point: Some(kernel.entry()),
                    compilation_options: wgpu::PipelineCompilationOptions {
                        // `enter` sets private variables, and workgroup variables are set before they are read.
                        zero_initialize_workgroup_memory: false,
                        ..Default::default()
                    },
                    cache: None,
                })
            })?;
            faults.check()?;
            let seconds = clock.elapsed().as_secs_f64();
            log::info!("kernel {}: compiled in {seconds:.3} s, with {}", kernel.entry(), self.parts);
            *slot = Some(pipeline);
        }
        Ok(())
    }

    /// Whether any of `kernels` has not run yet.
    pub fn are_cold(&self, mut kernels: impl Iterator<Item = EntryPoint>) -> bool {
        kernels.any(|kernel| !self.warm[kernel.slot()])
    }

    /// Records that `kernels` have run.
    pub fn have_run(&mut self, kernels: impl Iterator<Item = EntryPoint>) {
        kernels.for_each(|kernel| self.warm[kernel.slot()] = true);
    }

    /// Appends a dispatch of `kernel`, which [`Kernels::prepare`] has compiled.
    pub fn dispatch(&self, pass: &mut wgpu::ComputePass, kernel: EntryPoint, x: u32, y: u32) {
        let pipeline = self.pipelines[kernel.slot()].as_ref().expect("prepare comes before dispatch");
        pass.set_pipeline(pipeline);
        pass.dispatch_workgroups(x, y, 1);
    }
}

/// Whether kernels only read the buffer at `binding`.
fn is_read_only(binding: u32) -> bool {
    TABLES.get(binding as usize).is_none_or(Table::is_read_only)
}
