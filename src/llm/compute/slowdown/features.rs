//! The features of a kernel and the communication that overlaps with it, for slowdown models.

use crate::collective::CollectiveOp;

use super::super::{Class, Kernel, Timing};

/// Names of the features that models must use (Moye's Table 4, and three of our own at the end), with their meaning. Features that a specification does not
/// give are missing; trees treat them by their default direction.
///
/// | name | value |
/// |---|---|
/// | `protocol` | 0 LL, 1 LL128, 2 Simple |
/// | `algorithm` | 0 ring, 1 tree, 2 NVLS, 3 other |
/// | `collective` | 0 all-reduce, 1 all-gather, 2 reduce-scatter, 3 all-to-all, 4 broadcast, 5 reduce, 6 barrier |
/// | `bucket_size` | bytes of the collective |
/// | `channels` | channels of the collective |
/// | `running_time` | microseconds of the kernel alone |
/// | `compute_throughput` | achieved FLOP/s, percent of the dense peak |
/// | `memory_throughput` | achieved bytes/s, percent of the memory's bandwidth |
/// | `dram_throughput` | achieved 10^9 bytes/s |
/// | `achieved_occupancy`, `l1_hit_rate`, `l2_hit_rate` | percent, as profilers report them: missing unless set |
/// | `kernel_class` | 0 matrix product, 1 attention, 2 bound by memory |
/// | `sms` | streaming multiprocessors of the GPU |
/// | `overlap_ratio` | share of the kernel that overlaps: missing unless set |
pub const FEATURES: [&str; 15] = [
    "protocol",
    "algorithm",
    "collective",
    "bucket_size",
    "channels",
    "running_time",
    "compute_throughput",
    "memory_throughput",
    "dram_throughput",
    "achieved_occupancy",
    "l1_hit_rate",
    "l2_hit_rate",
    "kernel_class",
    "sms",
    "overlap_ratio",
];

/// The features of one kernel and the communication that overlaps with it.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelFeatures {
    /// Name of the GPU, for tables.
    pub gpu: String,
    /// The GPU's baseline, for tables.
    pub baseline: String,
    /// Class of the kernel.
    pub class: Class,
    /// Operation that overlaps with it.
    pub op: CollectiveOp,
    /// Slowdown of a kernel of this class during this operation, by the GPU's specification.
    pub own: f64,
    /// Values in the order of [`FEATURES`]; NaN if missing.
    values: [f32; FEATURES.len()],
}

impl KernelFeatures {
    /// The known features of `kernel` on the GPU of `timing`, overlapping with a collective of `bytes`.
    pub fn new(timing: &Timing, kernel: &Kernel, op: CollectiveOp, bytes: u64) -> KernelFeatures {
        // No slowdown beside other kernels that exchange tokens was measured.
        let op = if op.is_all_to_all() { CollectiveOp::AllToAll } else { op };
        let gpu = timing.gpu();
        let ps = timing.ps(kernel).max(1) as f64;
        let peak = kernel.dtype().map_or(f64::INFINITY, |d| gpu.peak(d) as f64);
        let bytes_per_s = kernel.bytes() as f64 / ps * 1e12;
        let mut features = KernelFeatures {
            gpu: gpu.name.clone(),
            baseline: gpu.baseline.clone(),
            class: kernel.class(),
            op,
            own: match kernel.class() {
                Class::Gemm | Class::Attention => gpu.slowdown,
                Class::Memory => gpu.slowdown_memory,
            },
            values: [f32::NAN; FEATURES.len()],
        };
        let known = [
            ("collective", f64::from(op.number())),
            ("bucket_size", bytes as f64),
            ("running_time", ps / 1e6),
            ("compute_throughput", kernel.flops() as f64 / ps * 1e12 / peak * 100.0),
            ("memory_throughput", bytes_per_s / gpu.memory_bps * 100.0),
            ("dram_throughput", bytes_per_s / 1e9),
            ("kernel_class", kernel.class() as u32 as f64),
            ("sms", gpu.sms as f64),
        ];
        for (name, value) in known {
            features.set(name, value);
        }
        features
    }

    /// Sets a feature by name. Returns whether the feature exists.
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        let index = FEATURES.iter().position(|f| *f == name);
        if let Some(i) = index {
            self.values[i] = value as f32;
        }
        index.is_some()
    }

    /// The feature at this index of [`FEATURES`]; NaN if missing.
    pub(super) fn value(&self, index: usize) -> f32 {
        self.values[index]
    }
}
