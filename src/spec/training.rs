//! `[base.workload]` with `kind = "model"`: what is trained, and how it is laid out over GPUs.
//!
//! Layer: spec. The same words as `model::Layout`, which it may not import. Whether layers and heads divide is checked where the model is known.

use std::path::{Path, PathBuf};

use super::config::scaled;
use super::error::Conflict;
use super::keys::K;
use super::program::{PPM, named};
use super::sections::Named;
use super::value::Values;

/// One training configuration. Degrees are at least 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Training {
    pub model: Named,
    pub framework: Framework,
    pub tp: u32,
    pub pp: u32,
    pub dp: u32,
    pub ep: u32,
    pub cp: u32,
    /// Virtual stages; 1 where the schedule has none.
    pub vpp: u32,
    pub microbatch: u32,
    pub global_batch: u32,
    /// `None`: the model's own.
    pub seq: Option<u32>,
    pub sequence_parallel: bool,
    pub schedule: Schedule,
    pub recompute: Recompute,
    pub zero: u8,
    pub param_bytes: u32,
    pub grad_bytes: u32,
    pub activation_bytes: u32,
    pub optimizer_bytes: u32,
    pub fp8: bool,
    pub flash_attention: bool,
    pub overlap_grad: bool,
    pub overlap_param: bool,
    pub tp_overlap_pieces: u32,
    pub overlap_p2p: bool,
    pub bucket_bytes: u64,
    /// Millionths; a million is even.
    pub expert_skew_ppm: u64,
    /// A permutation of `tp`, `cp`, `ep`, `dp`, `pp`, joined by `-`.
    pub rank_order: String,
    /// Measured kernels of the user.
    pub kernels: Option<PathBuf>,
    pub memory: MemoryBudget,
}

/// Whose habits the training follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    Megatron,
    DeepSpeed,
    Fsdp,
    Ddp,
}

/// Order of micro-batches on a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    OneFOneB,
    GPipe,
}

/// What the backward pass computes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recompute {
    None,
    Selective,
    Full,
}

/// What a GPU's memory must hold beside what the model's arithmetic says, and whether too much is `oom`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    pub check: bool,
    /// Driver, CUDA, libraries.
    pub reserve_bytes: u64,
    /// Share of activations and working memory, millionths.
    pub fragmentation_ppm: u64,
}

impl Training {
    /// Types the values. `dir` is what relative paths are relative to.
    pub(super) fn new(v: &Values, dir: &Path) -> Result<Training, Conflict> {
        if v.text(K::Model).is_empty() {
            let why =
                "it is required with workload.kind = \"model\": a preset such as \"gpt3-13b\", a .toml file or a table"
                    .to_string();
            return Err(Conflict { key: K::Model, why });
        }
        let u32_of = |key: K| v.int(key) as u32;
        let memory = MemoryBudget {
            check: v.bool(K::MemoryCheck),
            reserve_bytes: scaled(v.float(K::MemoryReserveGib), (1u64 << 30) as f64),
            fragmentation_ppm: scaled(v.float(K::MemoryFragmentation), PPM),
        };
        Ok(Training {
            model: named(v.text(K::Model), dir),
            framework: match v.text(K::Framework) {
                "deepspeed" => Framework::DeepSpeed,
                "fsdp" => Framework::Fsdp,
                "ddp" => Framework::Ddp,
                _ => Framework::Megatron,
            },
            tp: u32_of(K::Tp),
            pp: u32_of(K::Pp),
            dp: u32_of(K::Dp),
            ep: u32_of(K::Ep),
            cp: u32_of(K::Cp),
            vpp: if v.is(K::Schedule, "1f1b") && v.int(K::Pp) > 1 { u32_of(K::Vpp) } else { 1 },
            microbatch: u32_of(K::Microbatch),
            global_batch: u32_of(K::GlobalBatch),
            seq: (v.int(K::Seq) > 0).then(|| u32_of(K::Seq)),
            sequence_parallel: v.bool(K::SequenceParallel) && v.int(K::Tp) > 1,
            schedule: if v.is(K::Schedule, "gpipe") { Schedule::GPipe } else { Schedule::OneFOneB },
            recompute: match v.text(K::Recompute) {
                "selective" => Recompute::Selective,
                "full" => Recompute::Full,
                _ => Recompute::None,
            },
            zero: v.int(K::Zero) as u8,
            param_bytes: u32_of(K::ParamBytes),
            grad_bytes: u32_of(K::GradBytes),
            activation_bytes: u32_of(K::ActivationBytes),
            optimizer_bytes: u32_of(K::OptimizerBytes),
            fp8: v.bool(K::Fp8),
            flash_attention: v.bool(K::FlashAttention),
            overlap_grad: v.bool(K::OverlapGrad),
            overlap_param: v.bool(K::OverlapParam),
            tp_overlap_pieces: u32_of(K::TpOverlapPieces),
            overlap_p2p: v.bool(K::OverlapP2p),
            bucket_bytes: scaled(v.float(K::BucketMb), 1e6),
            expert_skew_ppm: scaled(v.float(K::ExpertSkew), PPM),
            rank_order: v.text(K::RankOrder).to_string(),
            kernels: v.has(K::Kernels).then(|| dir.join(v.text(K::Kernels))),
            memory,
        })
    }

    /// GPUs in all.
    pub fn gpus(&self) -> u64 {
        [self.tp, self.pp, self.dp, self.cp].into_iter().fold(1, |n, d| n.saturating_mul(u64::from(d)))
    }

    /// Degrees against the cluster, batches against each other.
    pub(super) fn check(&self, v: &Values, gpus: Option<u32>) -> Result<(), Conflict> {
        let fail = |key: K, why: String| Err(Conflict { key, why });
        let mut order: Vec<&str> = self.rank_order.split('-').collect();
        order.sort_unstable();
        if order != ["cp", "dp", "ep", "pp", "tp"] {
            return fail(
                K::RankOrder,
                "it must name each of tp, cp, ep, dp and pp once, joined by -, for example \"tp-cp-ep-dp-pp\""
                    .to_string(),
            );
        }
        let product = format!("tp {} x pp {} x dp {} x cp {}", self.tp, self.pp, self.dp, self.cp);
        if let Some(gpus) = gpus {
            let one = [self.tp, self.pp, self.cp].into_iter().fold(1u64, |n, d| n.saturating_mul(u64::from(d)));
            // Jobs smaller than a server leave the rest of it idle.
            let per_server = v.int(K::GpusPerServer).max(1) as u64;
            if !u64::from(gpus).is_multiple_of(per_server) {
                return fail(
                    K::Gpus,
                    format!(
                        "{gpus} must be a multiple of cluster.gpus_per_server = {per_server}: servers are whole; for less than one set cluster.gpus_per_server = {gpus}"
                    ),
                );
            }
            if self.gpus().div_ceil(per_server).saturating_mul(per_server) != u64::from(gpus) {
                let fit = u64::from(gpus) / one;
                let instead = if fit >= 1 && fit * one == u64::from(gpus) {
                    format!("workload.dp = {fit} would fit")
                } else {
                    format!(
                        "cluster.gpus must be a multiple of tp x pp x cp = {one}; or exclude such experiments by a constraint"
                    )
                };
                let key = if v.given(K::Dp) && v.int(K::Dp) > 0 { K::Dp } else { K::Gpus };
                return fail(key, format!("{product} are {} GPUs, but cluster.gpus = {gpus}; {instead}", self.gpus()));
            }
        }
        let step = u64::from(self.dp) * u64::from(self.microbatch);
        if !u64::from(self.global_batch).is_multiple_of(step) {
            let near = (u64::from(self.global_batch) / step).max(1) * step;
            return fail(
                K::GlobalBatch,
                format!(
                    "it must be a multiple of workload.dp {} x workload.microbatch {}, for example {near}",
                    self.dp, self.microbatch
                ),
            );
        }
        Ok(())
    }
}
