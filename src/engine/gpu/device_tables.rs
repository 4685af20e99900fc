//! Tables in device memory: upload, run, read back.
//!
//! Layer: engine. Moves bytes. `pack` and the kernels know what they mean.

use super::faults::{Faults, RunError};
use super::pack::{DeviceLayout, pieces};
use super::source;
use hyperfold_columns::{Exp, N_TABLES, TABLES, Tables};

/// Maximum number of bytes per transfer, so that staging memory stays small compared with the tables.
const CHUNK: u64 = 64 << 20;

/// The tables of one batch in device memory.
#[derive(Debug)]
pub struct Resident {
    buffers: Vec<wgpu::Buffer>,
    control: wgpu::Buffer,
    group: wgpu::BindGroup,
    /// Mappable buffer, large enough for the headers, and for one chunk of the tables.
    staging: wgpu::Buffer,
    bytes: [u64; N_TABLES],
    /// Headers as they were uploaded, with bases and lengths.
    exps: Vec<Exp>,
}

impl Resident {
    /// Copies `experiments` to the device, side by side. Each table is copied straight from its place, without a second copy on the host.
    ///
    /// # Errors
    /// Out of memory, or a lost device.
    pub fn upload(
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        faults: &Faults,
        layout: &wgpu::BindGroupLayout,
        experiments: &[&Tables],
    ) -> Result<Self, RunError> {
        let DeviceLayout { exps, bytes } = DeviceLayout::of(experiments);
        let mut rows: Vec<[&[u8]; N_TABLES]> = experiments.iter().map(|t| t.as_bytes()).collect();
        for (rows, exp) in rows.iter_mut().zip(&exps) {
            rows[0] = bytemuck::bytes_of(exp);
        }
        let on_device = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let buffer = |label, size, usage| {
            device.create_buffer(&wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false })
        };
        // An empty table is bound as one row that no kernel reads.
        let buffers: Vec<wgpu::Buffer> = TABLES
            .iter()
            .zip(bytes)
            .map(|(table, bytes)| buffer(table.name, bytes.max(table.row_bytes as u64), on_device))
            .collect();
        let control_bytes = 4 * (u64::from(source::CONTROL_ROWS) + exps.len() as u64);
        let control = buffer("control", control_bytes, on_device);
        let staging_bytes = bytes.iter().sum::<u64>().min(CHUNK).max(bytes[0]).max(4);
        let staging = buffer("staging", staging_bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        faults.check()?;
        for (table, target) in buffers.iter().enumerate() {
            let mut start = 0;
            while let Some(len) = wgpu::BufferSize::new((bytes[table] - start).min(CHUNK)) {
                let mut run = queue.write_buffer_with(target, start, len).ok_or_else(|| faults.no_staging())?;
                let parts = rows.iter().map(|rows| rows[table].len());
                for (k, bytes, offset) in pieces(parts, start as usize, len.get() as usize) {
                    run.slice(offset..offset + bytes.len()).copy_from_slice(&rows[k][table][bytes]);
                }
                drop(run);
                if len.get() == CHUNK {
                    // Frees wgpu's own staging memory before the next chunk.
                    queue.submit([]);
                    faults.wait(device)?;
                }
                start += len.get();
            }
        }
        let entries: Vec<wgpu::BindGroupEntry> = buffers
            .iter()
            .chain([&control])
            .enumerate()
            .map(|(i, b)| wgpu::BindGroupEntry { binding: i as u32, resource: b.as_entire_binding() })
            .collect();
        let group =
            device.create_bind_group(&wgpu::BindGroupDescriptor { label: Some("tables"), layout, entries: &entries });
        faults.check()?;
        Ok(Resident { buffers, control, group, staging, bytes, exps })
    }

    /// The experiments' headers as they were uploaded. Bases and lengths are still valid; the progress in them is not.
    pub fn exps(&self) -> &[Exp] {
        &self.exps
    }

    /// The bind group of all tables.
    pub fn group(&self) -> &wgpu::BindGroup {
        &self.group
    }

    /// Sets how many steps the next dispatch takes, and which rows of `exps` run in it.
    pub fn set_control(&self, queue: &wgpu::Queue, steps: u32, rows: &[u32]) {
        let mut words = vec![steps];
        words.extend_from_slice(rows);
        queue.write_buffer(&self.control, 0, bytemuck::cast_slice(&words));
    }

    /// Submits `encoder` and reads the experiments' headers after it has run.
    ///
    /// # Errors
    /// The device hangs, was lost, or reported an error.
    pub fn submit_and_read_exps(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        faults: &Faults,
        mut encoder: wgpu::CommandEncoder,
    ) -> Result<Vec<Exp>, RunError> {
        encoder.copy_buffer_to_buffer(&self.buffers[0], 0, &self.staging, 0, self.bytes[0]);
        queue.submit([encoder.finish()]);
        let mut exps = Vec::with_capacity(self.exps.len());
        faults.read(device, &self.staging, self.bytes[0], |bytes| exps = bytemuck::pod_collect_to_vec(bytes))?;
        Ok(exps)
    }

    /// Reads all tables that kernels write back into `experiments`, whose lengths must equal those of the uploaded ones.
    ///
    /// # Errors
    /// The device hangs, was lost, or reported an error. The content of `experiments` is then useless.
    pub fn download(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        faults: &Faults,
        experiments: &mut [&mut Tables],
    ) -> Result<(), RunError> {
        let capacity = self.staging.size();
        let mut rows: Vec<[&mut [u8]; N_TABLES]> = experiments.iter_mut().map(|t| t.as_bytes_mut()).collect();
        // Ranges (table, first byte, bytes) that share one transfer.
        let mut trip: Vec<(usize, u64, u64)> = Vec::new();
        let mut filled = 0;
        for table in (0..N_TABLES).filter(|&i| !TABLES[i].is_read_only()) {
            let mut start = 0;
            while start < self.bytes[table] {
                let len = (self.bytes[table] - start).min(capacity - filled);
                trip.push((table, start, len));
                start += len;
                filled += len;
                if filled == capacity {
                    self.trip(device, queue, faults, &trip, &mut rows)?;
                    trip.clear();
                    filled = 0;
                }
            }
        }
        if !trip.is_empty() {
            self.trip(device, queue, faults, &trip, &mut rows)?;
        }
        for t in experiments {
            t.exps[0] = t.exps[0].without_bases();
        }
        Ok(())
    }

    fn trip(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        faults: &Faults,
        runs: &[(usize, u64, u64)],
        rows: &mut [[&mut [u8]; N_TABLES]],
    ) -> Result<(), RunError> {
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("read back") });
        let mut offset = 0;
        for &(table, start, len) in runs {
            encoder.copy_buffer_to_buffer(&self.buffers[table], start, &self.staging, offset, len);
            offset += len;
        }
        queue.submit([encoder.finish()]);
        faults.read(device, &self.staging, offset, |bytes| {
            let mut offset = 0;
            for &(table, start, len) in runs {
                let (start, len) = (start as usize, len as usize);
                let run = &bytes[offset..offset + len];
                let parts: Vec<usize> = rows.iter().map(|rows| rows[table].len()).collect();
                for (k, bytes, offset) in pieces(parts, start, len) {
                    let n = bytes.len();
                    rows[k][table][bytes].copy_from_slice(&run[offset..offset + n]);
                }
                offset += len;
            }
        })
    }
}
