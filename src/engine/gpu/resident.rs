//! Tables on the device: uploaded, run on, read back.
//!
//! Layer: engine. Moves bytes; what they mean is `pack`'s and the kernels'.

use super::faults::{Faults, RunError};
use super::source;
use crate::columns::{Exp, N_TABLES, TABLES, Tables};

/// Bytes moved at a time, so that staging memory stays small beside the tables.
const CHUNK: u64 = 64 << 20;

/// A batch's tables in device memory.
#[derive(Debug)]
pub struct Resident {
    buffers: Vec<wgpu::Buffer>,
    control: wgpu::Buffer,
    group: wgpu::BindGroup,
    /// Mappable; large enough for the headers and for a chunk of everything.
    staging: wgpu::Buffer,
    bytes: [u64; N_TABLES],
    /// Headers as they were uploaded: bases and lengths.
    exps: Vec<Exp>,
}

impl Resident {
    /// Copies `t` to the device.
    ///
    /// # Errors
    /// Out of memory, or a lost device.
    pub fn upload(
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        faults: &Faults,
        layout: &wgpu::BindGroupLayout,
        t: &Tables,
    ) -> Result<Self, RunError> {
        let tables = t.views();
        let bytes = tables.map(|v| v.len() as u64);
        let on_device = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let buffer = |label, size, usage| {
            device.create_buffer(&wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false })
        };
        // An empty table is bound as one row that nobody reads.
        let buffers: Vec<wgpu::Buffer> = TABLES
            .iter()
            .zip(bytes)
            .map(|(table, bytes)| buffer(table.name, bytes.max(table.row_bytes as u64), on_device))
            .collect();
        let control_bytes = 4 * (u64::from(source::CONTROL_ROWS) + t.exps.len() as u64);
        let control = buffer("control", control_bytes, on_device);
        let staging_bytes = bytes.iter().sum::<u64>().min(CHUNK).max(bytes[0]).max(4);
        let staging = buffer("staging", staging_bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        faults.check()?;
        for (target, data) in buffers.iter().zip(tables) {
            for (k, part) in data.chunks(CHUNK as usize).enumerate() {
                queue.write_buffer(target, k as u64 * CHUNK, part);
                if part.len() as u64 == CHUNK {
                    // Frees wgpu's own staging memory before the next chunk.
                    queue.submit([]);
                    faults.wait(device)?;
                }
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
        Ok(Resident { buffers, control, group, staging, bytes, exps: t.exps.clone() })
    }

    /// The experiments' headers as they were uploaded: bases and lengths still hold, where they stand does not.
    pub fn exps(&self) -> &[Exp] {
        &self.exps
    }

    /// The bind group of all tables.
    pub fn group(&self) -> &wgpu::BindGroup {
        &self.group
    }

    /// Says how many steps the next dispatch takes, and which rows of `exps` run in it.
    pub fn set_control(&self, queue: &wgpu::Queue, steps: u32, rows: &[u32]) {
        let mut words = vec![steps];
        words.extend_from_slice(rows);
        queue.write_buffer(&self.control, 0, bytemuck::cast_slice(&words));
    }

    /// Submits `encoder` and reads the experiments' headers after it.
    ///
    /// # Errors
    /// A device that hangs, was lost, or reported an error.
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

    /// Reads all tables back into `t`, which has the lengths of what was uploaded.
    ///
    /// # Errors
    /// A device that hangs, was lost, or reported an error.
    pub fn download(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        faults: &Faults,
        t: &mut Tables,
    ) -> Result<(), RunError> {
        let room = self.staging.size();
        let mut targets = t.views_mut();
        // Pieces (table, first byte, bytes) that share one trip.
        let mut trip: Vec<(usize, u64, u64)> = Vec::new();
        let mut filled = 0;
        for table in 0..N_TABLES {
            let mut from = 0;
            while from < self.bytes[table] {
                let len = (self.bytes[table] - from).min(room - filled);
                trip.push((table, from, len));
                from += len;
                filled += len;
                if filled == room {
                    self.trip(device, queue, faults, &trip, &mut targets)?;
                    trip.clear();
                    filled = 0;
                }
            }
        }
        if trip.is_empty() { Ok(()) } else { self.trip(device, queue, faults, &trip, &mut targets) }
    }

    fn trip(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        faults: &Faults,
        pieces: &[(usize, u64, u64)],
        targets: &mut [&mut [u8]; N_TABLES],
    ) -> Result<(), RunError> {
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("read back") });
        let mut at = 0;
        for &(table, from, len) in pieces {
            encoder.copy_buffer_to_buffer(&self.buffers[table], from, &self.staging, at, len);
            at += len;
        }
        queue.submit([encoder.finish()]);
        faults.read(device, &self.staging, at, |bytes| {
            let mut at = 0;
            for &(table, from, len) in pieces {
                let (from, len) = (from as usize, len as usize);
                targets[table][from..from + len].copy_from_slice(&bytes[at..at + len]);
                at += len;
            }
        })
    }
}
