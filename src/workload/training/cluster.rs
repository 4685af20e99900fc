//! A cluster as the cost models of `compute` and `collective` know it, made into a [`Machine`].
//!
//! Layer: workload.

use std::sync::Arc;

use super::machine::{CommCost, KernelCost, Machine};
use super::placement::ServerSpan;
use crate::collective::{CollectiveOp, CollectiveSystem, Env, MemberPlacement, cost_ps, send_ps};
use crate::compute::{Class, Dtype, Kernel, KernelFeatures, Slowdown, Timing};

/// Time of a matrix product inside a layer over its time in a benchmark of its own, where operands stay in the cache, clocks are at rest before and nothing else asks for
/// power. By hand from a component measurement: the 22B layer on eight A100 of Korthikanti et al., Table 4 (7.7 ms forward, 11.9 ms backward; with sequence parallelism
/// 7.2 and 11.8), less what its other kernels and its all-reduces are estimated to take, leaves 0.99 to 1.01 forward (4.2 ms of products) and 1.08 backward (8.4 ms): 1.05
/// over both. The same paper's 22B step is a row of the validation, so that row is not independent. Assumed to hold for other GPUs, of which no layer is published.
const IN_LAYER: f64 = 1.05;

/// Equal servers of one GPU, joined by one network, on which collectives are NCCL's.
pub struct Cluster {
    pub timing: Arc<Timing>,
    pub system: CollectiveSystem,
    pub env: Env,
    /// What communication beside a kernel costs it.
    pub slowdown: Slowdown,
}

impl Cluster {
    /// The machine that training jobs are timed on; `dtype` is what mfu is held against.
    pub fn machine(&self, dtype: Dtype) -> Machine<'_> {
        let at = Dtype::ALL.iter().position(|&d| d == dtype).expect("ALL lists every type");
        Machine {
            kernels: self,
            comm: self,
            gpus_per_server: self.system.gpus_per_server,
            peak_flops: self.timing.gpu().peak_flops[at] as u64,
        }
    }
}

impl KernelCost for Cluster {
    fn kernel_ps(&self, kernel: &Kernel) -> u64 {
        let alone = self.timing.ps(kernel);
        match kernel.class() {
            Class::Gemm => (alone as f64 * IN_LAYER) as u64,
            Class::Attention | Class::Memory => alone,
        }
    }

    fn stretched_ps(&self, kernel: &Kernel, ps: u64, beside: CollectiveOp, bytes: u64, ratio: f64) -> u64 {
        self.slowdown.stretched_ps(ps, ratio, &KernelFeatures::new(&self.timing, kernel, beside, bytes))
    }
}

impl CommCost for Cluster {
    /// As all groups of a kind communicate at once, a server's groups share its NICs.
    fn collective_ps(&self, op: CollectiveOp, bytes: u64, span: ServerSpan) -> u64 {
        let per_server = span.per_server.max(1);
        let sharing = (self.system.gpus_per_server / per_server).max(1);
        cost_ps(
            op,
            bytes,
            &MemberPlacement { ranks: span.members, ranks_per_node: per_server, sharing },
            &self.system,
            &self.env,
        )
    }

    fn message_ps(&self, bytes: u64, same_server: bool) -> u64 {
        send_ps(bytes, same_server, self.system.gpus_per_server, &self.system, &self.env)
    }
}
