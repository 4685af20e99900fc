//! How long a kernel takes by the machine's limits: arithmetic, cache and memory, in whole waves of tiles.
//!
//! Layer: compute. Knows no measured kernel: `timing` asks here for what the database lacks, and for the shape of the curve between its rows.
//!
//! A product of matrices is cut into tiles of the result; each multiprocessor computes one tile at a time, so that the last wave may be ragged. A tile
//! proceeds at the slower of its arithmetic and of what the cache can deliver to a multiprocessor. The library is taken to choose the tile that is fastest.
//! Results are written after that, unless the GPU has room for the sums of tiles that are computed meanwhile.

use super::{Dtype, Gpu, Kernel};

/// Rows of a tile that libraries offer, and the most elements a tile's sums fill registers with: 256 x 160. Columns come in the GPU's `tile_step`.
const TILE_ROWS: [u64; 3] = [64, 128, 256];
const TILE_ELEMENTS: u64 = 256 * 160;

/// Depth that a tile's pipeline is filled by before it runs at its rate, elements of `k`: one stage of 64 (16-bit) elements. Stages behind it load meanwhile.
const FILL_K: f64 = 64.0;

/// Ways to split `k` over multiprocessors where tiles are few; partial sums cross the cache once in FP32.
const SPLITS: [u64; 5] = [1, 2, 4, 8, 16];

/// Efficiency of kernels known by FLOPs only, by their size in GFLOP: the matrix curve of calculon systems/*.json@caa4b11 (assumed there, not measured), whose
/// lowest step, below 1 GFLOP, we place at 10 MFLOP.
const WORK_EFFICIENCY: [(f64, f64); 4] = [(0.01, 0.1), (1.0, 0.6), (16.0, 0.9), (128.0, 0.95)];

/// Seconds of a kernel, without launch. Attention is the database's; here it counts as its two (or five) products at the sustained rate, or its memory traffic.
pub(super) fn seconds(gpu: &Gpu, kernel: &Kernel) -> f64 {
    let memory = kernel.bytes() as f64 / gpu.stream_bps();
    match *kernel {
        Kernel::Gemm { m, n, k, batch, dtype, .. } => {
            let products = gemm_seconds(gpu, m, n, k, batch, dtype);
            if gpu.results_overlap {
                return products.max(memory);
            }
            // All tiles of a wave end together, so that their results leave at the memory's rate.
            let results = kernel.result_bytes() as f64 / gpu.stream_bps();
            products.max(memory - results) + results
        }
        Kernel::Attention { dtype, .. } => (kernel.flops() as f64 / gpu.sustained_flops(dtype)).max(memory),
        Kernel::Memory { .. } => memory,
        Kernel::Work { flops, dtype, .. } => work_seconds(gpu, flops, dtype).max(memory),
    }
}

/// The fastest of the tiles and splits.
fn gemm_seconds(gpu: &Gpu, m: u64, n: u64, k: u64, batch: u64, dtype: Dtype) -> f64 {
    let sms = gpu.sms as f64;
    let flops = gpu.sustained_flops(dtype) / sms;
    let l2 = gpu.l2_bps / sms;
    let element = gpu.effective(dtype).bytes_of_32() as f64 / 32.0;
    let mut best = f64::INFINITY;
    for tm in TILE_ROWS {
        for tn in (gpu.tile_step..=256).step_by(gpu.tile_step as usize).filter(|tn| tm * tn <= TILE_ELEMENTS) {
            let tiles = m.div_ceil(tm) * n.div_ceil(tn) * batch;
            let loaded = loaded_per_step(tm as f64, tn as f64, gpu.cluster);
            // Seconds that a step of one element of k takes.
            let step = (2.0 * (tm * tn) as f64 / flops).max(loaded * element / l2);
            for split in SPLITS {
                if split > 1 && (tiles * split > 2 * gpu.sms || k < split * 64) {
                    break;
                }
                let waves = (tiles * split).div_ceil(gpu.sms) as f64;
                let sums = if split > 1 { (m * n * batch * split * 4) as f64 / gpu.l2_bps } else { 0.0 };
                best = best.min(waves * (k.div_ceil(split) as f64 + FILL_K) * step + sums);
            }
        }
    }
    best
}

/// Elements that a multiprocessor loads for one step of k: clusters of neighbours, arranged as serves best, load once what they share.
fn loaded_per_step(tm: f64, tn: f64, cluster: u64) -> f64 {
    let arrangements = (1..=cluster).filter(|rows| cluster.is_multiple_of(*rows));
    arrangements.map(|rows| tm / (cluster / rows) as f64 + tn / rows as f64).fold(f64::INFINITY, f64::min)
}

/// Between the curve's points efficiency is linear in the logarithm of the size, gently enough that time always grows with size.
fn work_seconds(gpu: &Gpu, flops: u64, dtype: Dtype) -> f64 {
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
    flops as f64 / (gpu.sustained_flops(dtype) * efficiency)
}
