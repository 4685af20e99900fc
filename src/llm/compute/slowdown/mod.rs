//! The slowdown of kernels that overlap with communication: by the GPU's specification, by a table (Multiverse, section 4.1) or by boosted trees (Moye, section
//! 6).
//!
//! Part of compute. The caller gives the share of a kernel that overlaps; the workload decides what overlaps with what.

mod features;
mod table;
mod trees;

pub use features::{FEATURES, KernelFeatures};
pub use table::SlowdownTable;
pub use trees::Trees;

/// How to compute the slowdown of a kernel that overlaps with communication.
#[derive(Clone, Debug, PartialEq)]
pub enum Slowdown {
    /// Overlap costs nothing.
    None,
    /// The GPU's specification gives the slowdown.
    Own,
    /// A table gives the slowdown, or the GPU's specification if no row applies.
    Table(SlowdownTable),
    /// A model predicts time with communication divided by time alone. A prediction below 1 counts as 1.
    Trees(Trees),
}

impl Slowdown {
    /// Time of the kernel with communication divided by its time alone, at least 1.
    pub fn factor(&self, features: &KernelFeatures) -> f64 {
        match self {
            Slowdown::None => 1.0,
            Slowdown::Own => features.own,
            Slowdown::Table(table) => table.factor(features).unwrap_or(features.own),
            Slowdown::Trees(trees) => {
                let predicted = trees.predict(features) as f64;
                // NaN, which a broken model may predict, counts as no slowdown too.
                if predicted > 1.0 { predicted } else { 1.0 }
            }
        }
    }

    /// Duration in ps of a kernel that takes `kernel_ps` alone. The share `overlap_ratio` (0 to 1) that overlaps with communication is stretched.
    pub fn stretched_ps(&self, kernel_ps: u64, overlap_ratio: f64, features: &KernelFeatures) -> u64 {
        let ratio = overlap_ratio.clamp(0.0, 1.0);
        if ratio == 0.0 {
            return kernel_ps;
        }
        let extra = kernel_ps as f64 * ratio * (self.factor(features) - 1.0);
        kernel_ps + (extra + 0.5) as u64
    }
}

/// Share of a kernel that is covered by communication that starts with it.
pub fn overlap_ratio(kernel_ps: u64, communication_ps: u64) -> f64 {
    if kernel_ps == 0 { 0.0 } else { (communication_ps as f64 / kernel_ps as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::CollectiveOp;
    use crate::compute::{Dtype, Gpu, Kernel, Timing};

    #[test]
    fn only_what_overlaps_is_stretched() {
        let timing = Timing::new(&Gpu::named("a800").unwrap(), None).unwrap();
        let gemm = Kernel::gemm(4096, 4096, 4096, Dtype::Bf16);
        let features = KernelFeatures::new(&timing, &gemm, CollectiveOp::AllReduce, 1 << 20);
        assert_eq!(Slowdown::Own.stretched_ps(1_000_000, 1.0, &features), 1_178_000);
        assert_eq!(Slowdown::Own.stretched_ps(1_000_000, 0.5, &features), 1_089_000);
        assert_eq!(Slowdown::Own.stretched_ps(1_000_000, 0.0, &features), 1_000_000);
        let text = "gpu,kernel,communication,slowdown,source\na800,*,all-reduce,1.5,x\n";
        let table = Slowdown::Table(SlowdownTable::parse("t.csv", text).unwrap());
        assert_eq!(table.stretched_ps(1_000_000, 1.0, &features), 1_500_000);
        let other = KernelFeatures::new(&timing, &gemm, CollectiveOp::AllGather, 1 << 20);
        assert_eq!(table.stretched_ps(1_000_000, 1.0, &other), 1_178_000);
        assert_eq!(Slowdown::None.stretched_ps(1_000_000, 1.0, &features), 1_000_000);
        assert_eq!((overlap_ratio(100, 50), overlap_ratio(100, 500), overlap_ratio(0, 5)), (0.5, 1.0, 0.0));
    }
}
