//! Networks in device memory: sends changes there, and reads the changed rates back.
//!
//! Layer: engine. Moves bytes; the kernel knows what they mean.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::rows::{NetworkRows, TOLD_HEAD};
use super::source;
use crate::EngineError;
use crate::fair_rates::{FlowsChange, RateChange, ResidentRates};
use crate::gpu::faults::{Faults, RunError};

/// Minimum number of rates that are read back together with their count. Any further rates take a second transfer.
const FEWEST_READ: u64 = 256;

/// A device with its queue and its faults.
#[derive(Clone, Debug)]
pub(super) struct DeviceHandles {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub faults: Faults,
}

/// Totals of what was transferred, and the wall time of that.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    dispatches: u64,
    solutions: u64,
    bytes_there: u64,
    bytes_back: u64,
    /// Dispatches whose rates took a second transfer.
    second_trips: u64,
    wall: Duration,
}

/// Several networks, side by side in device memory.
#[derive(Debug)]
pub(super) struct NetworksOnDevice {
    handles: DeviceHandles,
    pipeline: wgpu::ComputePipeline,
    /// Whether the kernel has run once.
    is_warm: Arc<AtomicBool>,
    group: wgpu::BindGroup,
    changes: wgpu::Buffer,
    solutions: wgpu::Buffer,
    told: wgpu::Buffer,
    /// Mappable; as large as `told`.
    staging: wgpu::Buffer,
    /// Estimated maximum number of rates in the next answer.
    expected: u64,
    traffic: Traffic,
}

impl NetworksOnDevice {
    /// Copies `rows` to the device.
    pub(super) fn upload(
        handles: DeviceHandles,
        pipeline: wgpu::ComputePipeline,
        is_warm: Arc<AtomicBool>,
        layout: &wgpu::BindGroupLayout,
        rows: &NetworkRows,
    ) -> Result<NetworksOnDevice, RunError> {
        let DeviceHandles { device, queue, faults } = &handles;
        let buffer = |label, bytes: u64, usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                // An empty table is bound as one row that no kernel reads.
                size: bytes.max(64),
                usage,
                mapped_at_creation: false,
            })
        };
        let on_device = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let filled = |label, bytes: &[u8]| {
            let buffer = buffer(label, bytes.len() as u64, on_device);
            queue.write_buffer(&buffer, 0, bytes);
            buffer
        };
        let (n_carriers, n_links) = (rows.carriers.len() as u64, rows.links.len() as u64);
        let told_bytes = TOLD_HEAD + n_carriers * size_of::<RateChange>() as u64;
        let networks = filled("networks", bytemuck::cast_slice(&rows.networks));
        let links = filled("links", bytemuck::cast_slice(&rows.links));
        let link_words = filled("link words", bytemuck::cast_slice(&rows.link_words));
        let carriers = filled("carriers", bytemuck::cast_slice(&rows.carriers));
        let crossings = filled("crossings", bytemuck::cast_slice(&rows.crossings));
        let lists = buffer("lists", 4 * (n_carriers + n_links), on_device);
        let changes = buffer("changes", n_carriers * size_of::<FlowsChange>() as u64, on_device);
        let solutions = buffer("solutions", rows.networks.len() as u64 * 16, on_device);
        let told = buffer("told rates", told_bytes, on_device);
        let staging = buffer("staging", told_bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let bound = [&networks, &links, &link_words, &carriers, &crossings, &lists, &changes, &solutions, &told];
        let entries: Vec<wgpu::BindGroupEntry> = bound
            .iter()
            .enumerate()
            .map(|(i, b)| wgpu::BindGroupEntry { binding: i as u32, resource: b.as_entire_binding() })
            .collect();
        let group =
            device.create_bind_group(&wgpu::BindGroupDescriptor { label: Some("networks"), layout, entries: &entries });
        faults.check()?;
        let bytes = bound.iter().map(|b| b.size()).sum::<u64>() + staging.size();
        let bytes_there = bound[..5].iter().map(|b| b.size()).sum();
        log::debug!(
            "fair rates: {} networks, {n_links} links and {n_carriers} carriers on the device, {bytes} bytes",
            rows.networks.len()
        );
        let traffic = Traffic { bytes_there, ..Traffic::default() };
        Ok(NetworksOnDevice {
            handles,
            pipeline,
            is_warm,
            group,
            changes,
            solutions,
            told,
            staging,
            expected: 0,
            traffic,
        })
    }

    fn run(&mut self, changes: &[(u32, &[FlowsChange])]) -> Result<Vec<RateChange>, RunError> {
        let clock = Instant::now();
        let DeviceHandles { device, queue, faults } = &self.handles;
        let mut ranges: Vec<[u32; 4]> = Vec::with_capacity(changes.len());
        let mut all: Vec<FlowsChange> = Vec::with_capacity(changes.iter().map(|c| c.1.len()).sum());
        for &(network, changes) in changes {
            ranges.push([network, all.len() as u32, changes.len() as u32, 0]);
            all.extend_from_slice(changes);
        }
        queue.write_buffer(&self.solutions, 0, bytemuck::cast_slice(&ranges));
        queue.write_buffer(&self.changes, 0, bytemuck::cast_slice(&all));
        queue.write_buffer(&self.told, 0, &[0; TOLD_HEAD as usize]);
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some(source::ENTRY) });
        {
            let mut pass =
                encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes: None });
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.group, &[]);
            pass.dispatch_workgroups(changes.len() as u32, 1, 1);
        }
        let row = size_of::<RateChange>() as u64;
        let max_rates = (self.told.size() - TOLD_HEAD) / row;
        let first = self.expected.max(FEWEST_READ).min(max_rates);
        let bytes = TOLD_HEAD + first * row;
        encoder.copy_buffer_to_buffer(&self.told, 0, &self.staging, 0, bytes);
        queue.submit([encoder.finish()]);
        let mut n = 0;
        let mut rates: Vec<RateChange> = Vec::new();
        faults.expect_compilation(!self.is_warm.load(Ordering::Relaxed));
        faults.read(device, &self.staging, bytes, |bytes| {
            n = u64::from(u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")));
            let told = &bytes[TOLD_HEAD as usize..][..(n.min(first) * row) as usize];
            rates = bytemuck::pod_collect_to_vec(told);
        })?;
        faults.expect_compilation(false);
        self.is_warm.store(true, Ordering::Relaxed);
        if n > max_rates {
            return Err(RunError::ReadBack(format!("{n} rates told, of at most {max_rates}")));
        }
        if n > first {
            let mut encoder =
                device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("read back") });
            let bytes = (n - first) * row;
            encoder.copy_buffer_to_buffer(&self.told, TOLD_HEAD + first * row, &self.staging, 0, bytes);
            queue.submit([encoder.finish()]);
            faults.read(device, &self.staging, bytes, |bytes| {
                rates.extend(bytemuck::pod_collect_to_vec::<u8, RateChange>(bytes));
            })?;
            self.traffic.second_trips += 1;
        }
        self.expected = 2 * n;
        self.traffic.dispatches += 1;
        self.traffic.solutions += changes.len() as u64;
        self.traffic.bytes_there += (size_of_val(&*ranges) + size_of_val(&*all)) as u64 + TOLD_HEAD;
        self.traffic.bytes_back += TOLD_HEAD + first.max(n) * row;
        self.traffic.wall += clock.elapsed();
        Ok(rates)
    }
}

impl ResidentRates for NetworksOnDevice {
    fn solve(&mut self, changes: &[(u32, &[FlowsChange])]) -> Result<Vec<RateChange>, EngineError> {
        Ok(self.run(changes).inspect_err(|error| {
            if error.leaves_work_behind() {
                // Dropping a device that is still at work would wait for it.
                std::mem::forget(self.handles.clone());
            }
        })?)
    }
}

impl Drop for NetworksOnDevice {
    fn drop(&mut self) {
        let Traffic { dispatches, solutions, bytes_there, bytes_back, second_trips, wall } = self.traffic;
        log::debug!(
            "fair rates: {dispatches} dispatches, {solutions} solutions, {bytes_there} bytes there, {bytes_back} back, {second_trips} second trips, {:.3} s",
            wall.as_secs_f64()
        );
    }
}
