//! Tables in device memory: upload, run, read back.
//!
//! Layer: engine. Moves bytes. `pack` and the kernels know what they mean.

use hyperfold_base::printable::one_line;

use super::faults::{Faults, RunError};
use super::pack::pieces;
use super::source;
use hyperfold_columns::{Exp, N_TABLES, Spans, TABLES, Tables};

/// Maximum number of bytes per transfer, so that staging memory stays small compared with the tables.
const CHUNK: u64 = 64 << 20;

/// Tables that are all zeros before an experiment's first step, as are new buffers of a device.
const ZERO_AT_FIRST: [&str; 2] = ["details", "ints"];

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
    /// Rows of each experiment in each table.
    spans: Spans,
    /// Bytes that were copied to the device.
    pub copied: u64,
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
        let spans = Spans::of(experiments.iter().map(|t| &t.exps[0]));
        let exps: Vec<Exp> = experiments.iter().enumerate().map(|(k, t)| spans.place(k, t.exps[0])).collect();
        let bytes = spans.table_bytes();
        for (k, one) in experiments.iter().enumerate() {
            let lengths = one.table_bytes();
            let is_whole = |i: usize| spans.bytes_in(k, i).end - spans.bytes_in(k, i).start == lengths[i];
            assert!((0..N_TABLES).all(is_whole), "tables have as many rows as their header says");
        }
        let mut rows: Vec<[&[u8]; N_TABLES]> = experiments.iter().map(|t| t.as_bytes()).collect();
        for (rows, exp) in rows.iter_mut().zip(&exps) {
            rows[0] = bytemuck::bytes_of(exp);
        }
        let on_device = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let buffer = |label, size, usage| {
            device.create_buffer(&wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false })
        };
        // A lack of memory is an answer, not a fault: the device goes on with what it holds. Nothing is written to buffers that it did not give.
        let scope = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
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
        if let Some(error) = pollster::block_on(scope.pop()) {
            return Err(RunError::OutOfMemory(one_line(&error.to_string())));
        }
        faults.check()?;
        let all_new = exps.iter().all(|e| e.steps == 0 && e.phase == 0);
        let mut copied = 0;
        for (table, target) in buffers.iter().enumerate() {
            if all_new && ZERO_AT_FIRST.contains(&TABLES[table].name) {
                debug_assert!(rows.iter().all(|rows| rows[table].iter().all(|byte| *byte == 0)));
                continue;
            }
            copied += bytes[table];
            let mut start = 0;
            while let Some(len) = wgpu::BufferSize::new((bytes[table] - start).min(CHUNK)) {
                let mut run = queue.write_buffer_with(target, start, len).ok_or_else(|| faults.no_staging())?;
                for (k, bytes, offset) in pieces(&spans, table, start..start + len.get()) {
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
        Ok(Resident { buffers, control, group, staging, bytes, exps, spans, copied })
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

    /// Bytes of device memory that it takes, staging included.
    pub fn memory(&self) -> u64 {
        self.bytes.iter().sum::<u64>() + self.staging.size()
    }

    /// Appends a copy of the headers, for [`Resident::read_exps`] after the submission.
    pub fn copy_exps(&self, encoder: &mut wgpu::CommandEncoder) {
        encoder.copy_buffer_to_buffer(&self.buffers[0], 0, &self.staging, 0, self.bytes[0]);
    }

    /// Reads the headers that were copied.
    ///
    /// # Errors
    /// The device hangs, was lost, or reported an error.
    pub fn read_exps(&self, device: &wgpu::Device, faults: &Faults) -> Result<Vec<Exp>, RunError> {
        let mut exps = Vec::with_capacity(self.exps.len());
        faults.read(device, &self.staging, self.bytes[0], |bytes| exps = bytemuck::pod_collect_to_vec(bytes))?;
        Ok(exps)
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
        self.copy_exps(&mut encoder);
        queue.submit([encoder.finish()]);
        self.read_exps(device, faults)
    }

    /// Reads what kernels write of some experiments: pairs of its place here and its own tables, whose lengths are those of the uploaded ones. `tables`:
    /// indices in [`TABLES`]; read-only ones are left out. Returns how many bytes came.
    ///
    /// # Errors
    /// The device hangs, was lost, or reported an error. The content of the tables is then useless.
    pub fn download_some(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        faults: &Faults,
        tables: impl Iterator<Item = usize>,
        experiments: &mut [(usize, &mut Tables)],
    ) -> Result<u64, RunError> {
        let mut came = 0;
        let capacity = self.staging.size();
        let places: Vec<usize> = experiments.iter().map(|e| e.0).collect();
        let mut rows: Vec<[&mut [u8]; N_TABLES]> = experiments.iter_mut().map(|e| e.1.as_bytes_mut()).collect();
        // Pieces that share one transfer: number of the experiment, table, first byte within its part, bytes.
        let mut pieces: Vec<(usize, usize, u64, u64)> = Vec::new();
        let mut filled = 0;
        for table in tables.filter(|&i| !TABLES[i].is_read_only()) {
            for (k, &place) in places.iter().enumerate() {
                let span = self.spans.bytes_in(place, table);
                let bytes = span.end - span.start;
                assert_eq!(rows[k][table].len() as u64, bytes, "{} of an experiment on the device", TABLES[table].name);
                came += bytes;
                let mut start = 0;
                while start < bytes {
                    let len = (bytes - start).min(capacity - filled);
                    pieces.push((k, table, start, len));
                    start += len;
                    filled += len;
                    if filled == capacity {
                        self.carry(device, queue, faults, &pieces, &places, &mut rows)?;
                        pieces.clear();
                        filled = 0;
                    }
                }
            }
        }
        if !pieces.is_empty() {
            self.carry(device, queue, faults, &pieces, &places, &mut rows)?;
        }
        for (_, t) in experiments {
            t.exps[0] = t.exps[0].without_bases();
        }
        Ok(came)
    }

    /// Moves some pieces in one transfer. Neighbours on the device are copied together.
    fn carry(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        faults: &Faults,
        pieces: &[(usize, usize, u64, u64)],
        places: &[usize],
        rows: &mut [[&mut [u8]; N_TABLES]],
    ) -> Result<(), RunError> {
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("read back") });
        let mut offset = 0;
        // Table, first byte and bytes of what is copied next.
        let mut run: Option<(usize, u64, u64)> = None;
        let mut copy = |run: (usize, u64, u64)| {
            encoder.copy_buffer_to_buffer(&self.buffers[run.0], run.1, &self.staging, offset, run.2);
            offset += run.2;
        };
        for &(k, table, start, len) in pieces {
            let first = self.spans.bytes_in(places[k], table).start + start;
            run = match run {
                Some((same, from, bytes)) if same == table && from + bytes == first => Some((table, from, bytes + len)),
                other => {
                    other.into_iter().for_each(&mut copy);
                    Some((table, first, len))
                }
            };
        }
        run.into_iter().for_each(&mut copy);
        queue.submit([encoder.finish()]);
        faults.read(device, &self.staging, offset, |bytes| {
            let mut offset = 0;
            for &(k, table, start, len) in pieces {
                let (start, len) = (start as usize, len as usize);
                rows[k][table][start..start + len].copy_from_slice(&bytes[offset..offset + len]);
                offset += len;
            }
        })
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
        let mut all: Vec<(usize, &mut Tables)> = experiments.iter_mut().map(|t| &mut **t).enumerate().collect();
        self.download_some(device, queue, faults, 0..N_TABLES, &mut all).map(|_| ())
    }
}
