//! The number of parameters of a model, by component.
//!
//! Layer: model. Exact counts of the whole model; `memory` computes a rank's share.

use super::{Dlrm, Model, ModelFamily, Moe, Transformer};

/// Parameters of one transformer layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerParams {
    /// Projections of queries, keys, values and output, with biases, and with the norms between them in latent attention.
    pub attention: u64,
    /// The feed-forward part of a dense layer, or the experts that every token visits.
    pub mlp: u64,
    /// Both norms.
    pub norms: u64,
    /// All routed experts.
    pub experts: u64,
    /// The routed experts that a token visits.
    pub active_experts: u64,
    /// Scores of experts.
    pub router: u64,
}

impl LayerParams {
    /// Sum of all parts.
    pub fn total(&self) -> u64 {
        self.attention + self.mlp + self.norms + self.experts + self.router
    }

    /// Parameters that a token uses.
    pub fn active(&self) -> u64 {
        self.total() - self.experts + self.active_experts
    }
}

/// Parameters of a model by component, summed over its layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Input embedding with learned positions; a recommender's tables.
    pub embedding: u64,
    /// Output matrix, if it is not the input embedding.
    pub output: u64,
    /// Layers, summed by component. The dense layers of a CNN or a recommender count as `mlp`.
    pub layers: LayerParams,
    /// Norm after the last layer.
    pub final_norm: u64,
    /// Modules that predict further tokens, which are used in training only.
    pub mtp: u64,
}

impl Params {
    /// Sum of all parts.
    pub fn total(&self) -> u64 {
        self.embedding + self.output + self.layers.total() + self.final_norm + self.mtp
    }

    /// Parameters that a token's forward pass uses: of the routed experts those that it visits, and all others (Mixtral's count). Without [`Params::mtp`].
    pub fn active(&self) -> u64 {
        self.total() - self.mtp - self.layers.experts + self.layers.active_experts
    }
}

impl Transformer {
    /// Parameters of layer `layer`, from 0.
    pub fn layer_params(&self, layer: u32) -> LayerParams {
        let norms = 2 * self.norm_params();
        let attention = self.attention_params();
        if !self.is_moe(layer) {
            return LayerParams { attention, mlp: self.ffn_params(self.ffn), norms, ..LayerParams::default() };
        }
        let moe = self.moe.expect("is_moe is false without experts");
        let expert = self.ffn_params(moe.expert_ffn);
        LayerParams {
            attention,
            mlp: moe.shared_experts as u64 * expert,
            norms,
            experts: moe.experts as u64 * expert,
            active_experts: moe.top_k as u64 * expert,
            router: self.router_params(&moe),
        }
    }

    /// Parameters of one norm: a scale, and a shift in LayerNorm.
    pub fn norm_params(&self) -> u64 {
        self.hidden as u64 * (1 + !self.rms_norm as u64)
    }

    /// Parameters of a router over the experts.
    pub fn router_params(&self, moe: &Moe) -> u64 {
        (u64::from(self.hidden) + u64::from(moe.biases)) * u64::from(moe.experts)
    }

    /// Attention sinks, one per head.
    fn sink_params(&self) -> u64 {
        u64::from(self.attention_sink) * u64::from(self.heads)
    }

    /// Parameters of a feed-forward part with inner size `ffn`.
    pub fn ffn_params(&self, ffn: u32) -> u64 {
        let (h, f) = (self.hidden as u64, ffn as u64);
        let up = 1 + self.gated as u64;
        (up + 1) * h * f + self.biases as u64 * (up * f + h)
    }

    /// Parameters of the attention part of a layer.
    pub fn attention_params(&self) -> u64 {
        let (h, heads) = (self.hidden as u64, self.heads as u64);
        if let Some(m) = self.mla {
            let [q, kv, rope, nope, v] = [m.q_rank, m.kv_rank, m.rope_dim, m.nope_dim, m.v_dim].map(u64::from);
            let queries = if q == 0 { h * heads * (nope + rope) } else { h * q + q + q * heads * (nope + rope) };
            return queries + h * (kv + rope) + kv + kv * heads * (nope + v) + heads * v * h + self.sink_params();
        }
        let (q, kv) = (heads * self.head_dim as u64, self.kv_heads as u64 * self.head_dim as u64);
        h * (q + 2 * kv) + q * h + self.biases as u64 * (q + 2 * kv + h) + self.sink_params()
    }

    /// Parameters of a module that predicts a further token: norms of both hidden states, their projection, a layer like the last one, and a final norm.
    pub fn mtp_params(&self) -> u64 {
        let h = self.hidden as u64;
        2 * h * h + 3 * self.norm_params() + self.layer_params(self.layers - 1).total()
    }

    /// Parameters of the whole transformer.
    pub fn params(&self) -> Params {
        let (h, vocab) = (self.hidden as u64, self.vocab as u64);
        let mut layers = LayerParams::default();
        let moe = self.moe_layers() as u64;
        let first_moe = self.moe.map_or(0, |m| m.dense_layers);
        let first_dense = (0..self.layers).find(|&l| !self.is_moe(l)).unwrap_or(0);
        for (n, kind) in
            [(self.layers as u64 - moe, self.layer_params(first_dense)), (moe, self.layer_params(first_moe))]
        {
            layers.attention += n * kind.attention;
            layers.mlp += n * kind.mlp;
            layers.norms += n * kind.norms;
            layers.experts += n * kind.experts;
            layers.active_experts += n * kind.active_experts;
            layers.router += n * kind.router;
        }
        Params {
            embedding: vocab * h + self.learned_positions as u64 * self.seq as u64 * h,
            output: !self.tied as u64 * vocab * h,
            layers,
            final_norm: self.norm_params(),
            mtp: u64::from(self.mtp) * self.mtp_params(),
        }
    }
}

impl Dlrm {
    /// Widths of the bottom and the top network, each with its input first. The top network's input is the bottom's output and the dot products of all pairs of
    /// vectors.
    pub fn mlp_widths(&self) -> [Vec<u64>; 2] {
        let vectors = self.tables as u64 + 1;
        let pairs = vectors * (vectors - 1) / 2;
        let widths = |first: u64, rest: &[u32]| std::iter::once(first).chain(rest.iter().map(|&w| w as u64)).collect();
        [widths(self.dense_features as u64, &self.bottom_mlp), widths(self.embedding_dim as u64 + pairs, &self.top_mlp)]
    }

    /// Parameters of one embedding table.
    pub fn table_params(&self) -> u64 {
        self.rows_per_table * self.embedding_dim as u64
    }

    /// Parameters of both networks, with biases.
    pub fn mlp_params(&self) -> u64 {
        self.mlp_widths().iter().flat_map(|w| w.windows(2)).map(|w| w[0] * w[1] + w[1]).sum()
    }
}

/// Parameters of a model by component.
pub fn parameters(model: &Model) -> Params {
    let dense = |embedding: u64, mlp: u64| Params {
        embedding,
        layers: LayerParams { mlp, ..LayerParams::default() },
        ..Params::default()
    };
    match &model.body {
        ModelFamily::Transformer(t) => t.params(),
        ModelFamily::Dlrm(d) => dense(d.tables as u64 * d.table_params(), d.mlp_params()),
        ModelFamily::Layers(layers) => dense(0, layers.iter().map(|l| l.params).sum()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published counts in millions: total, and active if it differs. Sources: the papers and model cards in `assets/models`; torchvision for the CNNs.
    const PUBLISHED: [(&str, f64, f64); 28] = [
        ("gpt3-175b", 174_600.0, 174_600.0),
        ("gpt3-22b", 22_000.0, 22_000.0),
        ("gpt3-530b", 529_600.0, 529_600.0),
        ("gpt3-1t", 1_008_000.0, 1_008_000.0),
        ("gpt3-18.4b", 18_400.0, 18_400.0),
        ("mcore-462b", 462_000.0, 462_000.0),
        ("llama-7b", 6_738.0, 6_738.0),
        ("llama-65b", 65_286.0, 65_286.0),
        ("llama3-8b", 8_030.0, 8_030.0),
        ("llama3-70b", 70_553.0, 70_553.0),
        ("llama3-405b", 405_853.0, 405_853.0),
        ("mixtral-8x7b", 46_703.0, 12_880.0),
        ("mixtral-8x22b", 140_600.0, 39_100.0),
        ("llama2-7b", 6_738.0, 6_738.0),
        ("llama2-13b", 13_016.0, 13_016.0),
        ("llama2-70b", 68_977.0, 68_977.0),
        ("qwen3-8b", 8_191.0, 8_191.0),
        ("qwen3-14b", 14_768.0, 14_768.0),
        ("qwen3-32b", 32_762.0, 32_762.0),
        ("qwen3-235b-a22b", 235_094.0, 22_190.0),
        ("kimi-k2", 1_030_000.0, 32_860.0),
        // The card does not count the input embedding, 579 million, as active.
        ("gpt-oss-20b", 20_910.0, 3_610.0 + 579.0),
        ("gpt-oss-120b", 116_830.0, 5_130.0 + 579.0),
        ("nemotron4-340b", 341_000.0, 341_000.0),
        ("gpt2", 124.4, 124.4),
        ("bert-large", 335.1, 335.1),
        ("vgg19", 143.667, 143.667),
        ("resnet-152", 60.193, 60.193),
    ];

    #[test]
    fn counts_are_within_one_percent_of_the_published_ones() {
        for (name, total, active) in PUBLISHED {
            let p = parameters(&Model::named(name).unwrap());
            for (ours, theirs) in [(p.total(), total), (p.active(), active)] {
                let ours = ours as f64 / 1e6;
                assert!((ours / theirs - 1.0).abs() < 0.01, "{name}: {ours:.1} M, published {theirs} M");
            }
        }
    }

    #[test]
    fn some_counts_are_exact() {
        let total = |name| parameters(&Model::named(name).unwrap()).total();
        assert_eq!(total("gpt2"), 124_439_808);
        assert_eq!(total("llama3-8b"), 8_030_261_248);
        assert_eq!(total("llama3-70b"), 70_553_706_496);
        assert_eq!(total("mixtral-8x7b"), 46_702_792_704);
        // RMSNorm, sinks, and biases of projections, routers and experts.
        assert_eq!(total("gpt-oss-20b"), 20_914_757_184);
        assert_eq!(total("gpt-oss-120b"), 116_829_156_672);
        assert_eq!(total("vgg19"), 143_667_240);
        assert_eq!(total("resnet-152"), 60_192_808);
    }

    #[test]
    fn deepseek_v3_has_671_billion_of_which_37_are_active() {
        let p = parameters(&Model::named("deepseek-v3").unwrap());
        assert!(((p.total() - p.mtp) as f64 / 671e9 - 1.0).abs() < 0.01, "{}", p.total());
        // The module has 11.5 billion parameters of its own (README_WEIGHTS.md of deepseek-ai/DeepSeek-V3).
        assert!((p.mtp as f64 / 11.5e9 - 1.0).abs() < 0.01, "{}", p.mtp);
        // "37B" is rounded to whole billions. The layers and the output matrix have 36.63, 1.01 % less than 37. With the input embedding, of which a token
        // reads one row, `active` is 37.55, 1.5 % more. Mixtral's 12.9 counts the embedding.
        let without_embedding = p.active() - p.embedding;
        assert_eq!((without_embedding as f64 / 1e9).round(), 37.0);
        assert_eq!(p.active(), 37_552_282_624);
    }

    #[test]
    fn components_add_up() {
        let t = Model::named("deepseek-v3").unwrap();
        let t = t.transformer().unwrap();
        let layers: u64 = (0..t.layers).map(|l| t.layer_params(l).total()).sum();
        assert_eq!(layers, t.params().layers.total());
        let dlrm = parameters(&Model::named("dlrm").unwrap());
        assert!((dlrm.embedding as f64 / 24.03e9 - 1.0).abs() < 0.01);
    }
}
