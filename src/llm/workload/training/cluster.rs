//! Makes a [`Machine`] of a cluster, with the cost models of `compute` and `collective`.
//!
//! Layer: workload.

use std::sync::Arc;

use super::machine::{CommCost, KernelCost, Machine};
use super::placement::ServerSpan;
use crate::collective::{CollectiveOp, CollectiveSystem, Env, MemberPlacement, cost_ps, send_ps};
use crate::compute::{Dtype, Kernel, KernelFeatures, Slowdown, Timing};

/// Equal servers with one type of GPU and one network, whose collectives are NCCL's.
pub struct Cluster {
    /// Times of kernels.
    pub timing: Arc<Timing>,
    /// Servers and network, as collectives see them.
    pub system: CollectiveSystem,
    /// Settings of NCCL.
    pub env: Env,
    /// Slowdown of kernels that run at the same time as communication.
    pub slowdown: Slowdown,
}

impl Cluster {
    /// The machine that training jobs are timed on. `dtype` is the type whose peak rate is the reference of mfu.
    pub fn machine(&self, dtype: Dtype) -> Machine<'_> {
        let dtype_idx = Dtype::ALL.iter().position(|&d| d == dtype).expect("ALL lists every type");
        Machine {
            kernels: self,
            comm: self,
            gpus_per_server: self.system.gpus_per_server,
            host_bps: self.timing.gpu().host_bps as u64,
            host_op_ps: self.timing.gpu().host_op_ps,
            peak_flops: self.timing.gpu().peak_flops[dtype_idx] as u64,
        }
    }
}

impl KernelCost for Cluster {
    fn kernel_ps(&self, kernel: &Kernel) -> u64 {
        self.timing.in_layer_ps(kernel)
    }

    fn stretched_ps(&self, kernel: &Kernel, ps: u64, comm_op: CollectiveOp, bytes: u64, ratio: f64) -> u64 {
        self.slowdown.stretched_ps(ps, ratio, &KernelFeatures::new(&self.timing, kernel, comm_op, bytes))
    }
}

impl CommCost for Cluster {
    /// Time in ps of a collective. All groups of a kind communicate at once, so the groups of a server share its NICs.
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
