//! A cluster as the cost models of `compute` and `collective` know it, made into a [`Machine`].
//!
//! Layer: workload.

use super::machine::{CommCost, KernelCost, Machine};
use super::placement::Span;
use crate::collective::{Env, Op as CollectiveOp, Placement, System, cost_ps, send_ps};
use crate::compute::{Dtype, Kernel, Timing};

/// Equal servers of one GPU, joined by one network, on which collectives are NCCL's.
pub struct Cluster {
    pub timing: Timing,
    pub system: System,
    pub env: Env,
}

impl Cluster {
    /// The machine that training jobs are timed on; `dtype` is what mfu is held against.
    pub fn machine(&self, dtype: Dtype) -> Machine<'_> {
        let at = Dtype::ALL.iter().position(|&d| d == dtype).expect("ALL lists every type");
        Machine { kernels: self, comm: self, gpus_per_server: self.system.gpus_per_server, peak_flops: self.timing.gpu().peak_flops[at] as u64 }
    }
}

impl KernelCost for Cluster {
    fn kernel_ps(&self, kernel: &Kernel) -> u64 {
        self.timing.ps(kernel)
    }

    fn stretched_ps(&self, _: &'static str, ps: u64, _: CollectiveOp, _: f64) -> u64 {
        ps
    }
}

impl CommCost for Cluster {
    /// As all groups of a kind communicate at once, a server's groups share its NICs.
    fn collective_ps(&self, op: CollectiveOp, bytes: u64, span: Span) -> u64 {
        let per_server = span.per_server.max(1);
        let sharing = (self.system.gpus_per_server / per_server).max(1);
        cost_ps(op, bytes, &Placement { ranks: span.members, ranks_per_node: per_server, sharing }, &self.system, &self.env)
    }

    fn message_ps(&self, bytes: u64, same_server: bool) -> u64 {
        send_ps(bytes, same_server, self.system.gpus_per_server, &self.system, &self.env)
    }
}
