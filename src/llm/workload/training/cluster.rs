//! Makes a [`Machine`] of a cluster, with the cost models of `compute` and `collective`.
//!
//! Layer: workload.

use std::sync::Arc;

use super::machine::{CommCost, KernelCost, Machine};
use super::placement::ServerSpan;
use crate::collective::{CollectiveOp, CollectiveSystem, Env, MemberPlacement, cost_ps, send_ps};
use crate::compute::{Class, Dtype, Kernel, KernelFeatures, Slowdown, Timing};

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
    /// Factors on times of kernels.
    pub scales: KernelScales,
}

/// Factors on times of kernels, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelScales {
    /// Factor on matrix products.
    pub gemm_ppm: u64,
    /// Factor on fused attention.
    pub attention_ppm: u64,
    /// Factor on kernels that memory bounds.
    pub memory_ppm: u64,
    /// Factor on what a kernel loses beside communication.
    pub slowdown_ppm: u64,
}

impl KernelScales {
    /// Times as the model of the GPU has them.
    pub const NONE: KernelScales =
        KernelScales { gemm_ppm: ONE, attention_ppm: ONE, memory_ppm: ONE, slowdown_ppm: ONE };

    fn of(&self, class: Class) -> u64 {
        match class {
            Class::Gemm => self.gemm_ppm,
            Class::Attention => self.attention_ppm,
            Class::Memory => self.memory_ppm,
        }
    }
}

/// A factor of one, in millionths.
const ONE: u64 = 1_000_000;

/// A time in ps, times a factor in millionths.
fn scaled(ps: u64, ppm: u64) -> u64 {
    if ppm == ONE {
        return ps;
    }
    let product = u128::from(ps) * u128::from(ppm) / u128::from(ONE);
    u64::try_from(product).unwrap_or(u64::MAX)
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
        scaled(self.timing.in_layer_ps(kernel), self.scales.of(kernel.class()))
    }

    fn stretched_ps(&self, kernel: &Kernel, ps: u64, comm_op: CollectiveOp, bytes: u64, ratio: f64) -> u64 {
        let stretched_ps =
            self.slowdown.stretched_ps(ps, ratio, &KernelFeatures::new(&self.timing, kernel, comm_op, bytes));
        ps.saturating_add(scaled(stretched_ps - ps, self.scales.slowdown_ppm))
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
