//! Checks whether a layout fits its model and cluster.
//!
//! Layer: model. The error is the first value that does not fit, with its key in the sweep file. `memory` computes the memory of a layout.

use super::{Fp8Scaling, Framework, Layout, Model, ModelError, ModelFamily, PipelineSchedule, Recompute, Transformer};

/// An error about a key, unless the condition holds.
fn must(holds: bool, key: &'static str, value: impl ToString, expected: impl ToString) -> Result<(), ModelError> {
    if holds {
        return Ok(());
    }
    Err(ModelError::Layout { key, value: value.to_string(), expected: expected.to_string() })
}

impl Layout {
    /// Checks whether this layout can train `model` on `gpus` GPUs. All code that takes a layout relies on it.
    pub fn check(&self, model: &Model, gpus: u64) -> Result<(), ModelError> {
        self.check_ranges()?;
        self.check_framework()?;
        match &model.body {
            ModelFamily::Transformer(t) => self.check_transformer(t)?,
            ModelFamily::Dlrm(_) | ModelFamily::Layers(_) => self.check_data_parallel(model)?,
        }
        self.check_batch()?;
        let Layout { tp, pp, dp, cp, .. } = *self;
        let need = [tp, pp, dp, cp].iter().map(|&d| d as u128).product::<u128>();
        let product = format!("tp {tp} x pp {pp} x cp {cp} x dp {dp} = {need} GPUs; the cluster has {gpus}");
        let others = need / dp as u128;
        let whole = (gpus as u128).is_multiple_of(others) && gpus as u128 >= others;
        let right = if whole {
            format!("{}: {product}", gpus as u128 / others)
        } else {
            format!("such that the degrees' product is the cluster: {product}")
        };
        must(need == gpus as u128, "workload.dp", dp, right)
    }

    fn check_ranges(&self) -> Result<(), ModelError> {
        for (key, value) in [
            ("workload.tp", self.tp),
            ("workload.pp", self.pp),
            ("workload.dp", self.dp),
            ("workload.ep", self.ep),
            ("workload.cp", self.cp),
            ("workload.vpp", self.vpp),
            ("workload.microbatch", self.microbatch),
            ("workload.global_batch", self.global_batch),
            ("workload.seq", self.seq),
            ("workload.tp_overlap_pieces", self.tp_overlap_pieces),
        ] {
            must((1..=1 << 24).contains(&value), key, value, "from 1 to 16777216")?;
        }
        must(self.zero <= 3, "workload.zero", self.zero, "0, 1, 2 or 3")?;
        must(self.bucket_bytes >= 1, "workload.bucket_mb", self.bucket_bytes, "more than nothing")?;
        must(
            self.expert_skew.is_finite() && self.expert_skew >= 1.0,
            "workload.expert_skew",
            self.expert_skew,
            "at least 1, which is even",
        )?;
        for (key, value) in [
            ("workload.param_bytes", self.bytes.params),
            ("workload.grad_bytes", self.bytes.grads),
            ("workload.activation_bytes", self.bytes.activations),
        ] {
            must(matches!(value, 1 | 2 | 4), key, value, "1, 2 or 4")?;
        }
        must(self.bytes.optimizer <= 64, "workload.optimizer_bytes", self.bytes.optimizer, "at most 64")?;
        let mut dims: Vec<&str> = self.order.split('-').collect();
        dims.sort_unstable();
        let all = ["cp", "dp", "ep", "pp", "tp"];
        let without_ep = ["cp", "dp", "pp", "tp"];
        let orders = dims == all || (dims == without_ep && self.ep == 1);
        must(
            orders,
            "workload.rank_order",
            format!("\"{}\"", self.order),
            "an order of tp, cp, ep, dp and pp, fastest first, such as \"tp-cp-ep-dp-pp\"",
        )
    }

    fn check_framework(&self) -> Result<(), ModelError> {
        let zero = self.zero;
        match self.framework {
            Framework::Ddp => must(
                zero == 0,
                "workload.zero",
                zero,
                "0 with framework \"ddp\", which shards nothing; \"fsdp\" and \"deepspeed\" do",
            )?,
            Framework::Fsdp | Framework::Fsdp2 => must(
                zero >= 2,
                "workload.zero",
                zero,
                "3 (full shard) or 2 (shard gradients and optimizer) with framework \"fsdp\" or \"fsdp2\"",
            )?,
            Framework::Megatron => {
                must(zero <= 1, "workload.zero", zero, "0, or 1 (distributed optimizer) with framework \"megatron\"")?
            }
            Framework::DeepSpeed => {}
        }
        let whole =
            self.shard_ranks == 0 || (self.shard_ranks > 1 && self.dense_replicas().is_multiple_of(self.shard_ranks));
        must(
            whole,
            "workload.shard_ranks",
            self.shard_ranks,
            format!(
                "0, or a divisor of dp x cp = {} above 1: groups of ranks hold copies of each other",
                self.dense_replicas()
            ),
        )?;
        must(!self.hybrid() || self.ep == 1, "workload.ep", self.ep, "1 with hybrid sharding (workload.shard_ranks)")?;
        let pipeline = !matches!(self.framework, Framework::Ddp | Framework::Fsdp);
        must(
            self.pp == 1 || pipeline,
            "workload.pp",
            self.pp,
            "1 with framework \"ddp\" or \"fsdp\"; \"megatron\", \"deepspeed\" and \"fsdp2\" have pipelines",
        )?;
        must(
            self.pp == 1 || zero <= 1 || self.fsdp(),
            "workload.zero",
            zero,
            "0 or 1 with a pipeline: each micro-batch would gather or reduce everything; framework \"fsdp2\" keeps them",
        )?;
        let defers = self.framework == Framework::Megatron && self.pp > 1 && !self.schedule.splits_backward();
        must(
            !self.defer_embedding_wgrad || defers,
            "workload.defer_embedding_wgrad",
            true,
            "false: it is for framework \"megatron\" with a pipeline (workload.pp above 1) and schedule \"1f1b\" or \"gpipe\"",
        )?;
        if self.schedule.splits_backward() {
            return self.check_split_backward();
        }
        must(self.vpp == 1 || self.pp > 1, "workload.vpp", self.vpp, "1 without a pipeline (workload.pp = 1)")?;
        let interleaves = self.schedule == PipelineSchedule::OneFOneB;
        must(
            self.vpp == 1 || interleaves,
            "workload.vpp",
            self.vpp,
            "1 with schedule \"gpipe\"; interleaving is 1F1B's",
        )
    }

    /// Checks what schedules with split backward passes need.
    fn check_split_backward(&self) -> Result<(), ModelError> {
        let name = self.schedule.name();
        let quoted = format!("\"{name}\"");
        must(self.pp > 1, "workload.schedule", &quoted, "\"1f1b\" without a pipeline (workload.pp = 1)")?;
        must(
            self.framework == Framework::Megatron,
            "workload.schedule",
            &quoted,
            format!(
                "\"1f1b\" or \"gpipe\" with framework \"{}\": split backward passes are modelled for \"megatron\" alone",
                self.framework.name()
            ),
        )?;
        let chunks = if self.schedule.is_v_shaped() { 2 } else { 1 };
        must(self.vpp == chunks, "workload.vpp", self.vpp, format!("{chunks} with schedule {quoted}"))?;
        must(
            self.offload_layers == 0,
            "workload.offload_layers",
            self.offload_layers,
            format!("0 with schedule {quoted}: what gradients of weights need is not offloaded"),
        )?;
        if self.schedule.is_fed_twice() {
            must(self.pp.is_multiple_of(2), "workload.pp", self.pp, format!("even with schedule {quoted}"))?;
        }
        must(
            !self.overlap_ep || self.schedule.is_fed_twice(),
            "workload.overlap_ep",
            true,
            format!(
                "false with schedule {quoted}; with \"dualpipe\", or \"1f1b\" and workload.vpp above 1 it may be true"
            ),
        )
    }

    fn check_data_parallel(&self, model: &Model) -> Result<(), ModelError> {
        let expected = format!("1: {} is trained data-parallel only", model.name);
        for (key, value) in
            [("workload.tp", self.tp), ("workload.pp", self.pp), ("workload.ep", self.ep), ("workload.cp", self.cp)]
        {
            must(value == 1, key, value, &expected)?;
        }
        let recompute = match self.recompute {
            Recompute::None => "none",
            Recompute::Selective(_) => "selective",
            Recompute::Operations => "operations",
            Recompute::Full => "full",
        };
        must(
            self.recompute == Recompute::None,
            "workload.recompute",
            recompute,
            "none: only transformers' layers are recomputed",
        )?;
        let per_sample = match &model.body {
            ModelFamily::Dlrm(d) => {
                f64::from(d.tables) * f64::from(d.embedding_dim) * f64::from(d.pooling.max(2))
                    + f64::from(d.tables).powi(2)
            }
            ModelFamily::Layers(layers) => layers.iter().map(|l| l.activation_bytes as f64).sum(),
            ModelFamily::Transformer(_) => 0.0,
        };
        self.few_enough(per_sample)
    }

    fn check_transformer(&self, t: &Transformer) -> Result<(), ModelError> {
        let Layout { tp, pp, dp, ep, cp, vpp, seq, .. } = *self;
        must(t.heads.is_multiple_of(tp), "workload.tp", tp, format!("a divisor of the model's {} heads", t.heads))?;
        let kv = t.mla.is_some() || t.kv_heads.is_multiple_of(tp);
        must(kv, "workload.tp", tp, format!("a divisor of the model's {} key/value heads", t.kv_heads))?;
        must(
            t.ffn.is_multiple_of(tp),
            "workload.tp",
            tp,
            format!("a divisor of the feed-forward part's inner size {}", t.ffn),
        )?;
        let chunks = self.stages_of_microbatch() as u64;
        // The embedding and the loss may each have a stage of their own.
        let max_chunks = t.layers + if t.mtp > 0 { 1 } else { 2 };
        let by_pp = pp > max_chunks || self.schedule.is_v_shaped();
        let key = if by_pp { "workload.pp" } else { "workload.vpp" };
        let product = if self.schedule.is_fed_twice() { "pp" } else { "pp x vpp" };
        let stages = format!(
            "such that each of the {product} = {chunks} virtual stages has one of the model's {} layers, the embedding or the loss",
            t.layers
        );
        must(chunks <= u64::from(max_chunks), key, if by_pp { pp } else { vpp }, stages)?;
        let folds = self.expert_tp() == tp || (self.expert_tp() == 1 && self.sequence_parallel);
        let expected = format!("{tp} (workload.tp), or 1 with workload.sequence_parallel");
        must(folds, "workload.etp", self.etp, expected)?;
        self.check_modules(t)?;
        let chunk_layers = self.chunk_layers(t.layers, t.mtp);
        let max_layers = chunk_layers.iter().copied().max().unwrap_or(0);
        let expected = format!("at most {max_layers}, the layers of a virtual stage; 0: all of them");
        must(self.recompute_layers <= max_layers, "workload.recompute_layers", self.recompute_layers, expected)?;
        let layers_of_rank = |rank: u32| chunk_layers.iter().skip(rank as usize).step_by(pp as usize).sum::<u32>();
        let max_layers = (0..pp).map(layers_of_rank).max().unwrap_or(0) + t.mtp;
        let expected = format!("at most {max_layers}, the layers of a pipeline rank");
        must(self.offload_layers <= max_layers, "workload.offload_layers", self.offload_layers, expected)?;
        must(
            !self.fused_grouped_mlp || t.moe.is_some(),
            "workload.fused_grouped_mlp",
            true,
            "false: the model has no experts",
        )?;
        must(
            self.fp8_scaling != Fp8Scaling::DelayedTensor || self.framework == Framework::Megatron,
            "workload.fp8_scaling",
            "delayed-tensor",
            "\"delayed\" or \"current\": which ranks agree on factors is known with framework = \"megatron\" alone",
        )?;
        must(
            self.fused_permute || (t.moe.is_some() && self.expert_dispatcher.is_none()),
            "workload.fused_permute",
            false,
            "true: the model has no experts, or tokens go to them by DeepEP's kernels, whose single operations are not known here",
        )?;
        must(
            !self.overlap_shared_experts
                || t.moe.is_some_and(|m| m.shared_experts > 0) && self.expert_dispatcher.is_none() && !self.overlap_ep,
            "workload.overlap_shared_experts",
            true,
            "false: it needs experts that every token visits, NCCL's all-to-all, and no workload.overlap_ep (Megatron rejects both together)",
        )?;
        must(
            self.fused_rope || (t.mla.is_none() && !t.learned_positions),
            "workload.fused_rope",
            false,
            "true: the model has learned positions, or latent attention, whose single operations are not known here",
        )?;
        must(
            !self.router_fp32 || t.moe.is_some_and(|m| m.biases),
            "workload.router_fp32",
            true,
            "false: it sets the type in which biases of experts are weighted, and the model's experts have none (moe.biases)",
        )?;
        let alternate = !self.overlap_ep || pp == 1 || vpp > 1;
        must(alternate, "workload.overlap_ep", true, "used with workload.vpp above 1, or without a pipeline")?;
        match t.moe {
            None => must(ep == 1, "workload.ep", ep, "1: the model has no experts")?,
            Some(moe) => {
                must(
                    moe.experts.is_multiple_of(ep),
                    "workload.ep",
                    ep,
                    format!("a divisor of the model's {} experts", moe.experts),
                )?;
                must(
                    moe.expert_ffn.is_multiple_of(self.expert_tp()),
                    "workload.tp",
                    tp,
                    format!("a divisor of an expert's inner size {}", moe.expert_ffn),
                )?;
                let (replicas, formula) =
                    (dp as u64 * cp as u64, if self.folded_experts() { "tp x dp x cp" } else { "dp x cp" });
                let ranks = replicas * u64::from(tp / self.expert_tp());
                let fold = ranks == replicas && (replicas * u64::from(tp)).is_multiple_of(u64::from(ep));
                let hint = if fold { "; workload.etp = 1 spreads them over tensor parallel ranks, too" } else { "" };
                must(
                    ranks.is_multiple_of(ep as u64),
                    "workload.ep",
                    ep,
                    format!("a divisor of {formula} = {ranks}: experts are spread over those ranks{hint}"),
                )?;
                let max_skew = moe.experts as f64 / moe.top_k as f64;
                must(
                    self.expert_skew <= max_skew,
                    "workload.expert_skew",
                    self.expert_skew,
                    format!("at most experts / top_k = {max_skew}: one that every token visits"),
                )?;
            }
        }
        // Causal attention is balanced over context-parallel ranks by giving each rank a slice from both ends.
        let slices = if cp > 1 { 2 * cp as u64 } else { 1 };
        must(
            (seq as u64).is_multiple_of(slices),
            "workload.cp",
            cp,
            format!("such that 2 x cp divides the sequence length {seq}"),
        )?;
        let local = if self.sequence_parallel { tp as u64 } else { 1 };
        let expected = format!(
            "such that tp divides a context-parallel rank's sequence of {} (workload.sequence_parallel)",
            seq / cp
        );
        must((seq as u64 / cp as u64).is_multiple_of(local), "workload.seq", seq, expected)?;
        self.check_magnitude(t)
    }

    /// Checks that the model has the modules that are to be computed again.
    fn check_modules(&self, t: &Transformer) -> Result<(), ModelError> {
        let chosen = self.recompute.modules();
        let dense = t.moe_layers() < t.layers;
        let norms = [dense.then_some(false), t.moe.map(|_| true)]
            .into_iter()
            .flatten()
            .flat_map(|moe| self.norms_alone(t, moe))
            .any(|alone| alone);
        for (name, chosen, exists, why) in [
            ("mla_up_proj", chosen.mla_up_proj, t.mla.is_some(), "its attention is not latent"),
            ("layernorm", chosen.layernorm, norms, "each norm is one kernel with the product after it"),
            ("mlp", chosen.mlp, dense, "all its layers have experts"),
            ("moe", chosen.moe, t.moe.is_some(), "it has no experts"),
            ("moe_act", chosen.moe_act, t.moe.is_some(), "it has no experts"),
            ("shared_experts", chosen.shared_experts, t.moe.is_some_and(|m| m.shared_experts > 0), "it has none"),
        ] {
            let expected = format!("without {name} with this model: {why}");
            must(exists || !chosen, "workload.recompute_modules", name, expected)?;
        }
        Ok(())
    }

    /// Checks that bytes of memory fit into 64 bits: an upper bound, in floating point, of what a rank would keep of all micro-batches.
    fn check_magnitude(&self, t: &Transformer) -> Result<(), ModelError> {
        let [layers, h, ffn, heads, d, vocab] =
            [t.layers, t.hidden, t.ffn, t.heads, t.head_dim, t.vocab].map(f64::from);
        let experts = t.moe.map_or(0.0, |m| {
            f64::from(m.top_k) * self.expert_skew * (2.0 * h + 3.0 * f64::from(m.expert_ffn))
                + 8.0 * f64::from(m.experts)
        });
        let latent = t.mla.map_or(0.0, |m| {
            f64::from(2 * m.q_rank + 2 * m.kv_rank) + heads * f64::from(2 * (m.nope_dim + m.rope_dim) + 2 * m.v_dim)
        });
        let per_token = (layers + f64::from(t.mtp))
            * (8.0 * h + 3.0 * ffn + 4.0 * heads * d + latent + experts + heads * f64::from(self.seq))
            + 4.0 * vocab * f64::from(1 + t.mtp);
        self.few_enough(f64::from(self.seq) * per_token)
    }

    /// Checks that the activations fit into 64 bits, at `per_sample` elements per sample.
    fn few_enough(&self, per_sample: f64) -> Result<(), ModelError> {
        let bytes = 8.0 * f64::from(self.global_batch) * per_sample;
        must(
            bytes < (1u64 << 62) as f64,
            "workload.global_batch",
            self.global_batch,
            "less: with this model and sequence length it counts exabytes of activations",
        )
    }

    fn check_batch(&self) -> Result<(), ModelError> {
        let Layout { dp, pp, vpp, microbatch, global_batch, .. } = *self;
        let one = dp as u64 * microbatch as u64;
        let expected = format!("a multiple of dp x microbatch = {one}");
        must((global_batch as u64).is_multiple_of(one), "workload.global_batch", global_batch, expected)?;
        let m = self.microbatches();
        let expected = format!(
            "such that global_batch / (dp x microbatch), now {m}, is a multiple of pp = {pp}: interleaving goes round in groups of pp"
        );
        let halves = format!(
            "such that global_batch / (dp x microbatch), now {m}, is even and at least 2 x pp = {}: half of the micro-batches begin at each end",
            2 * u64::from(pp)
        );
        let fed = !self.schedule.is_fed_twice() || (m.is_multiple_of(2) && u64::from(m) >= 2 * u64::from(pp));
        must(fed, "workload.global_batch", global_batch, halves)?;
        let in_groups = vpp > 1 && self.schedule == PipelineSchedule::OneFOneB;
        must(!in_groups || m.is_multiple_of(pp), "workload.global_batch", global_batch, expected)
    }
}

#[cfg(test)]
mod tests {
    use super::super::RecomputeModules;
    use super::super::layout::tests::layout;
    use super::*;

    fn error(name: &str, gpus: u64, change: impl Fn(&mut Layout)) -> String {
        let mut l = Layout { tp: 8, pp: 4, dp: 4, global_batch: 32, ..layout() };
        change(&mut l);
        l.check(&Model::named(name).unwrap(), gpus).map_or_else(|e| e.to_string(), |()| "fits".into())
    }

    #[test]
    fn what_papers_train_is_accepted() {
        assert_eq!(error("gpt3-13b", 128, |_| {}), "fits");
        assert_eq!(error("gpt3-175b", 1024, |l| (l.pp, l.dp, l.vpp, l.global_batch) = (8, 16, 3, 16 * 64)), "fits");
        assert_eq!(error("llama3-405b", 1024, |l| (l.pp, l.dp, l.global_batch, l.seq) = (16, 8, 512, 8192)), "fits");
        assert_eq!(error("gpt3-485b", 8192, |l| (l.pp, l.dp, l.global_batch) = (64, 16, 640)), "fits");
        assert_eq!(
            error("deepseek-v3", 2048, |l| (l.tp, l.pp, l.dp, l.ep, l.global_batch) = (1, 16, 128, 64, 15360)),
            "fits"
        );
        // A V takes any number of micro-batches.
        let v = |l: &mut Layout| (l.vpp, l.global_batch, l.schedule) = (2, 28, PipelineSchedule::ZbV);
        assert_eq!(error("gpt3-13b", 128, v), "fits");
        assert_eq!(error("vgg19", 32, |l| (l.tp, l.pp, l.dp, l.framework) = (1, 1, 32, Framework::Ddp)), "fits");
    }

    #[test]
    fn each_mistake_names_its_key_and_what_would_be_right() {
        type Change = fn(&mut Layout);
        let cases: [(&str, u64, Change, &str); 28] = [
            (
                "gpt3-13b",
                256,
                |_| {},
                "`workload.dp = 4`: it must be 8: tp 8 x pp 4 x cp 1 x dp 4 = 128 GPUs; the cluster has 256",
            ),
            (
                "gpt3-13b",
                100,
                |_| {},
                "`workload.dp = 4`: it must be such that the degrees' product is the cluster: tp 8",
            ),
            ("gpt3-13b", 128, |l| l.tp = 0, "`workload.tp = 0`: it must be from 1"),
            ("gpt3-13b", 128, |l| l.tp = 3, "`workload.tp = 3`: it must be a divisor of the model's 40 heads"),
            (
                "llama3-8b",
                128,
                |l| l.tp = 16,
                "`workload.tp = 16`: it must be a divisor of the model's 8 key/value heads",
            ),
            ("gpt3-13b", 128, |l| l.pp = 43, "`workload.pp = 43`: it must be such that each"),
            ("gpt3-13b", 128, |l| l.vpp = 11, "`workload.vpp = 11`: it must be such that each"),
            ("gpt3-13b", 128, |l| l.ep = 2, "`workload.ep = 2`: it must be 1"),
            ("mixtral-8x7b", 128, |l| l.ep = 3, "`workload.ep = 3`: it must be a divisor of the model's 8 experts"),
            ("mixtral-8x7b", 128, |l| l.ep = 8, "`workload.ep = 8`: it must be a divisor of dp x cp = 4"),
            (
                "gpt3-13b",
                128,
                |l| l.global_batch = 33,
                "`workload.global_batch = 33`: it must be a multiple of dp x microbatch = 4",
            ),
            ("gpt3-13b", 128, |l| (l.vpp, l.global_batch) = (2, 24), "`workload.global_batch = 24`"),
            (
                "gpt3-13b",
                128,
                |l| (l.vpp, l.schedule) = (2, PipelineSchedule::GPipe),
                "`workload.vpp = 2`: it must be 1 with schedule \"gpipe\"",
            ),
            (
                "gpt3-13b",
                128,
                |l| (l.pp, l.dp, l.schedule) = (1, 16, PipelineSchedule::ZbH1),
                "`workload.schedule = \"zb-h1\"`: it must be \"1f1b\" without a pipeline (workload.pp = 1)",
            ),
            (
                "gpt3-13b",
                128,
                |l| (l.vpp, l.schedule) = (2, PipelineSchedule::ZbH1),
                "`workload.vpp = 2`: it must be 1 with schedule \"zb-h1\"",
            ),
            (
                "gpt3-13b",
                128,
                |l| l.schedule = PipelineSchedule::ZbV,
                "`workload.vpp = 1`: it must be 2 with schedule \"zb-v\"",
            ),
            (
                "gpt3-13b",
                128,
                |l| (l.framework, l.schedule) = (Framework::DeepSpeed, PipelineSchedule::ZbH1),
                "`workload.schedule = \"zb-h1\"`: it must be \"1f1b\" or \"gpipe\" with framework \"deepspeed\"",
            ),
            (
                "gpt3-13b",
                128,
                |l| (l.offload_layers, l.schedule) = (1, PipelineSchedule::ZbH1),
                "`workload.offload_layers = 1`: it must be 0 with schedule \"zb-h1\"",
            ),
            (
                "mixtral-8x7b",
                128,
                |l| (l.ep, l.overlap_ep, l.vpp, l.schedule) = (4, true, 2, PipelineSchedule::VHalf),
                "`workload.overlap_ep = true`: it must be false with schedule \"v-half\"",
            ),
            (
                "gpt3-13b",
                1408,
                |l| (l.pp, l.vpp, l.schedule) = (44, 2, PipelineSchedule::VMin),
                "`workload.pp = 44`: it must be such that each of the pp x vpp = 88 virtual stages",
            ),
            ("gpt3-13b", 128, |l| l.zero = 2, "`workload.zero = 2`: it must be 0, or 1"),
            (
                "gpt3-13b",
                128,
                |l| (l.zero, l.framework) = (2, Framework::DeepSpeed),
                "`workload.zero = 2`: it must be 0 or 1 with a pipeline",
            ),
            ("gpt3-13b", 128, |l| l.order = "tp-dp".into(), "`workload.rank_order = \"tp-dp\"`"),
            ("gpt3-13b", 128, |l| l.expert_skew = 0.5, "`workload.expert_skew = 0.5`: it must be at least 1"),
            (
                "gpt3-13b",
                128,
                |l| (l.seq, l.global_batch) = (1 << 24, 1 << 20),
                "`workload.global_batch = 1048576`: it must be less",
            ),
            (
                "llama3-8b",
                128,
                |l| {
                    l.recompute = Recompute::Selective(RecomputeModules { mla_up_proj: true, ..RecomputeModules::NONE })
                },
                "`workload.recompute_modules = mla_up_proj`: it must be without mla_up_proj with this model",
            ),
            (
                "mixtral-8x7b",
                128,
                |l| l.recompute = Recompute::Selective(RecomputeModules { mlp: true, ..RecomputeModules::NONE }),
                "`workload.recompute_modules = mlp`: it must be without mlp with this model: all its layers have experts",
            ),
            ("vgg19", 128, |_| {}, "`workload.tp = 8`: it must be 1: vgg19 is trained data-parallel only"),
        ];
        for (name, gpus, change, expected) in cases {
            let message = error(name, gpus, change);
            assert!(message.starts_with(expected), "{message}\n{expected}");
        }
    }
}
