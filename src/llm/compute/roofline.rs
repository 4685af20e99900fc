//! The duration of a kernel by the machine's limits: arithmetic, cache and memory, in whole waves of tiles.
//!
//! Layer: compute. Knows no measured kernel. `timing` uses it for kernels that the database lacks, and for the shape of the curve between its rows.
//!
//! A matrix product is cut into tiles of the result. Each multiprocessor computes one tile at a time, so the last wave may be incomplete. A tile proceeds at
//! the slower of its arithmetic and the cache's delivery to a multiprocessor. The library is assumed to choose the fastest tile. Results are written
//! afterwards. If the GPU can hold the sums of tiles while it computes others, only those of the last wave are.

use super::{Dtype, Gpu, Kernel};

/// Numbers of rows of a tile that libraries offer. Columns are multiples of the GPU's `tile_step`.
const TILE_ROWS: [u64; 3] = [64, 128, 256];
/// The most elements of a tile, whose sums fill the registers: 256 x 160.
const TILE_ELEMENTS: u64 = 256 * 160;

/// Elements of `k` that fill a tile's pipeline before it runs at its rate: one stage of 64 (16-bit) elements. Later stages load meanwhile.
const FILL_K: f64 = 64.0;

/// Numbers of parts into which `k` is split over multiprocessors if there are few tiles. Partial sums cross the cache once in FP32.
const SPLITS: [u64; 5] = [1, 2, 4, 8, 16];

/// Efficiency of kernels known only by FLOPs, by their size in GFLOP: the matrix curve of calculon systems/*.json@caa4b11 (assumed there, not measured). We
/// place its lowest step, below 1 GFLOP, at 10 MFLOP.
const WORK_EFFICIENCY: [(f64, f64); 4] = [(0.01, 0.1), (1.0, 0.6), (16.0, 0.9), (128.0, 0.95)];

/// Duration of a kernel in seconds, without launch. Attention is measured in the database; here it takes the time of its two (or five) products at the
/// sustained rate, or of its memory traffic.
pub(super) fn seconds(gpu: &Gpu, kernel: &Kernel) -> f64 {
    seconds_at(gpu, kernel, kernel.dtype().map_or(0.0, |dtype| gpu.sustained_flops(dtype)))
}

/// Duration of a kernel in seconds, without launch, where long products sustain `sustained_flops` FLOP/s.
pub(super) fn seconds_at(gpu: &Gpu, kernel: &Kernel, sustained_flops: f64) -> f64 {
    let memory = kernel.bytes() as f64 / gpu.stream_bps();
    match *kernel {
        Kernel::Gemm { m, n, k, batch, dtype, .. } => {
            let (products, waves) = gemm_seconds(gpu, m, n, k, batch, dtype, sustained_flops);
            // All tiles of a wave end together, so their results leave at the memory's rate.
            let results = kernel.result_bytes() as f64 / gpu.stream_bps();
            let after = if gpu.results_overlap { results / waves } else { results };
            products.max(memory - after) + after
        }
        Kernel::Attention { .. } => (kernel.flops() as f64 / sustained_flops).max(memory),
        Kernel::Memory { .. } => memory,
        Kernel::Work { flops, .. } => work_seconds(flops, sustained_flops).max(memory),
    }
}

/// Duration in seconds with the fastest tile and split, and its number of waves.
fn gemm_seconds(gpu: &Gpu, m: u64, n: u64, k: u64, batch: u64, dtype: Dtype, sustained_flops: f64) -> (f64, f64) {
    let sms = gpu.sms as f64;
    let flops = sustained_flops / sms;
    let l2 = gpu.l2_bps / sms;
    let element = gpu.effective(dtype).bytes_of_32() as f64 / 32.0;
    let mut best = (f64::INFINITY, 1.0);
    for tm in TILE_ROWS {
        for tn in (gpu.tile_step..=256).step_by(gpu.tile_step as usize).filter(|tn| tm * tn <= TILE_ELEMENTS) {
            let tiles = m.div_ceil(tm) * n.div_ceil(tn) * batch;
            let loaded = loaded_per_step(tm as f64, tn as f64, gpu.cluster);
            // Seconds per element of k.
            let step = (2.0 * (tm * tn) as f64 / flops).max(loaded * element / l2);
            for split in SPLITS {
                if split > 1 && (tiles * split > 2 * gpu.sms || k < split * 64) {
                    break;
                }
                let waves = (tiles * split).div_ceil(gpu.sms) as f64;
                let sums = if split > 1 { (m * n * batch * split * 4) as f64 / gpu.l2_bps } else { 0.0 };
                let seconds = waves * (k.div_ceil(split) as f64 + FILL_K) * step + sums;
                if seconds < best.0 {
                    best = (seconds, waves);
                }
            }
        }
    }
    best
}

/// Elements that a multiprocessor loads per element of k. A cluster of multiprocessors, in its best arrangement, loads shared elements once.
fn loaded_per_step(tm: f64, tn: f64, cluster: u64) -> f64 {
    let arrangements = (1..=cluster).filter(|rows| cluster.is_multiple_of(*rows));
    arrangements.map(|rows| tm / (cluster / rows) as f64 + tn / rows as f64).fold(f64::INFINITY, f64::min)
}

/// Duration in seconds of a kernel known only by FLOPs. Between the curve's points, efficiency is linear in the logarithm of the size, so gently that time
/// always grows with size.
fn work_seconds(flops: u64, sustained_flops: f64) -> f64 {
    let size = libm::log2((flops as f64).max(1.0));
    let points = WORK_EFFICIENCY.map(|(gflop, efficiency)| (libm::log2(gflop * 1e9), efficiency));
    let efficiency = match points.iter().position(|p| size < p.0) {
        Some(0) => points[0].1,
        Some(i) => {
            let ((x0, y0), (x1, y1)) = (points[i - 1], points[i]);
            y0 + (y1 - y0) * (size - x0) / (x1 - x0)
        }
        None => points[points.len() - 1].1,
    };
    flops as f64 / (sustained_flops * efficiency)
}
