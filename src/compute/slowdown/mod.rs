//! Kernels that run beside communication take longer: by the GPU's specification, by a table (Multiverse, section 4.1) or by boosted trees (Moye, section 6).
//!
//! Part of compute. It is told how much of a kernel overlaps; what overlaps with what is the workload's.

mod features;
mod table;
mod trees;

pub use features::{FEATURES, KernelFeatures};
pub use table::SlowdownTable;
pub use trees::Trees;

/// How to find the slowdown of a kernel beside communication.
#[derive(Clone, Debug, PartialEq)]
pub enum Slowdown {
    /// Overlap costs nothing.
    None,
    /// As the GPU's specification says.
    Own,
    /// Where no row applies, as the GPU's specification says.
    Table(SlowdownTable),
    /// The model predicts time beside communication over time alone; a prediction below 1 counts as 1.
    Trees(Trees),
}

impl Slowdown {
    /// Time beside communication over time alone, at least 1.
    pub fn factor(&self, features: &KernelFeatures) -> f64 {
        match self {
            Slowdown::None => 1.0,
            Slowdown::Own => features.own,
            Slowdown::Table(table) => table.factor(features).unwrap_or(features.own),
            Slowdown::Trees(trees) => {
                let predicted = trees.predict(features) as f64;
                // NaN, which a broken model may predict, counts as no slowdown as well.
                if predicted > 1.0 { predicted } else { 1.0 }
            }
        }
    }

    /// Duration of a kernel of `kernel_ps` alone, `overlap_ratio` (0 to 1) of which has communication beside it: that share is stretched.
    pub fn stretched_ps(&self, kernel_ps: u64, overlap_ratio: f64, features: &KernelFeatures) -> u64 {
        let ratio = overlap_ratio.clamp(0.0, 1.0);
        if ratio == 0.0 {
            return kernel_ps;
        }
        let extra = kernel_ps as f64 * ratio * (self.factor(features) - 1.0);
        kernel_ps + (extra + 0.5) as u64
    }
}

/// Share of a kernel that communication which starts with it covers.
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
