//! The floating-point operations of a model, as the literature counts them for MFU and HFU.
//!
//! Layer: model. Only matrix products count (2 per multiply-add), and attention counts the whole square even if it is causal. This is the convention of
//! Megatron-LM (Korthikanti et al. 2022, arXiv 2205.05198, Appendix A). `compute` gives the time of kernels and the work that a causal kernel omits.

use super::{Dlrm, LayerProduct, Model, ModelFamily, Recompute, RecomputeModules, Transformer, layer_products};

/// Forward operations of one token, summed over layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenFlops {
    /// Queries, keys, values and the output projection.
    pub projections: u64,
    /// Scores and their product with the values.
    pub core: u64,
    /// Feed-forward parts; of experts only those that a token visits.
    pub mlp: u64,
    /// Scores of experts.
    pub router: u64,
    /// The output matrix, once for every predicted token.
    pub logits: u64,
}

impl TokenFlops {
    /// The operations that full recomputation repeats.
    pub fn layers(&self) -> u64 {
        self.projections + self.core + self.mlp + self.router
    }

    /// Sum of all parts.
    pub fn total(&self) -> u64 {
        self.layers() + self.logits
    }
}

/// Forward operations of one token in a sequence of `seq` tokens.
pub fn token_flops(t: &Transformer, seq: u32) -> TokenFlops {
    let [h, heads, layers] = [t.hidden, t.heads, t.layers + t.mtp].map(u64::from);
    let [dense_layers, moe_layers] = layers_by_kind(t);
    let windowed = t.windowed_layers() + if t.is_windowed(t.layers - 1) { t.mtp } else { 0 };
    let keys_seen =
        u64::from(windowed) * u64::from(seq.min(t.window)) + (layers - u64::from(windowed)) * u64::from(seq);
    let dense = 2 * dense_layers * matrices(t, t.ffn);
    let (experts, router) = match t.moe {
        Some(m) => (
            2 * moe_layers * (m.top_k + m.shared_experts) as u64 * matrices(t, m.expert_ffn),
            2 * moe_layers * h * m.experts as u64,
        ),
        None => (0, 0),
    };
    let (weights, per_key) = match t.mla {
        Some(m) => {
            let [q, kv, rope, nope, v] = [m.q_rank, m.kv_rank, m.rope_dim, m.nope_dim, m.v_dim].map(u64::from);
            let queries = if q == 0 { h * heads * (nope + rope) } else { (h + heads * (nope + rope)) * q };
            (queries + h * (kv + rope) + kv * heads * (nope + v) + heads * v * h, heads * (nope + rope + v))
        }
        None => {
            let d = t.head_dim as u64;
            (2 * h * d * (heads + t.kv_heads as u64), 2 * heads * d)
        }
    };
    TokenFlops {
        projections: 2 * layers * weights,
        core: 2 * keys_seen * per_key,
        mlp: dense + experts + u64::from(t.mtp) * 2 * 2 * h * h,
        router,
        logits: (1 + u64::from(t.mtp)) * 2 * h * t.vocab as u64,
    }
}

impl Dlrm {
    /// Forward operations of one sample: both networks and the dot products between them. Look-ups are not matrix products.
    pub fn sample_flops(&self) -> u64 {
        let vectors = self.tables as u64 + 1;
        let dots = vectors * (vectors - 1) / 2 * self.embedding_dim as u64;
        2 * (self.mlp_widths().iter().flat_map(|w| w.windows(2)).map(|w| w[0] * w[1]).sum::<u64>() + dots)
    }
}

/// Forward operations of one sample: a sequence of `seq` tokens, or one sample of a CNN or a recommender.
pub fn sample_flops(model: &Model, seq: u32) -> u128 {
    match &model.body {
        ModelFamily::Transformer(t) => seq as u128 * token_flops(t, seq).total() as u128,
        ModelFamily::Dlrm(d) => d.sample_flops() as u128,
        ModelFamily::Layers(layers) => layers.iter().map(|l| l.flops as u128).sum(),
    }
}

/// Operations of the model in one iteration of `batch` samples, for MFU. The backward pass takes twice as many as the forward pass.
pub fn model_flops(model: &Model, batch: u32, seq: u32) -> u128 {
    3 * batch as u128 * sample_flops(model, seq)
}

/// Number of layers that a token passes: (dense ones, those with experts). A module that predicts a further token has a layer like the last one.
fn layers_by_kind(t: &Transformer) -> [u64; 2] {
    let moe = t.moe_layers() + if t.is_moe(t.layers - 1) { t.mtp } else { 0 };
    [u64::from(t.layers + t.mtp - moe), u64::from(moe)]
}

/// Parameters of the matrices of a feed-forward part.
fn matrices(t: &Transformer, ffn: u32) -> u64 {
    (2 + u64::from(t.gated)) * u64::from(t.hidden) * u64::from(ffn)
}

/// Operations of one token that recomputed modules repeat. The attention core counts three times: forward and backward.
fn module_flops(t: &Transformer, seq: u32, modules: RecomputeModules) -> u64 {
    let all = token_flops(t, seq);
    let [dense, moe] = layers_by_kind(t);
    let up_projections = t.mla.map_or(0, |m| {
        let [q, kv, rope, nope, v] = [m.q_rank, m.kv_rank, m.rope_dim, m.nope_dim, m.v_dim].map(u64::from);
        let input = if q == 0 { u64::from(t.hidden) } else { q };
        (dense + moe) * u64::from(t.heads) * (input * (nope + rope) + kv * (nope + v))
    });
    let experts = |n: u32| t.moe.map_or(0, |m| moe * u64::from(n) * matrices(t, m.expert_ffn));
    let (top_k, shared) = t.moe.map_or((0, 0), |m| (m.top_k, m.shared_experts));
    let part = |chosen: bool, flops: u64| if chosen { flops } else { 0 };
    part(modules.core_attn, 3 * all.core)
        + part(modules.mla_up_proj, 2 * up_projections)
        + part(modules.mlp, 2 * dense * matrices(t, t.ffn))
        + part(modules.moe, 2 * experts(top_k + shared) + all.router)
        + part(modules.shared_experts && !modules.moe, 2 * experts(shared))
}

/// Operations of one iteration including recomputation, for HFU. Selective recomputation counts the attention core twice over forward and backward together, as
/// Korthikanti et al. do (their ratio 1 + s/6h), although a kernel repeats only the forward third. Full recomputation adds the layers' forward pass (Narayanan
/// et al., SC'21, Equation 3).
pub fn hardware_flops(model: &Model, batch: u32, seq: u32, recompute: Recompute) -> u128 {
    let repeated = match (&model.body, recompute) {
        (_, Recompute::None) => 0,
        (ModelFamily::Transformer(t), Recompute::Selective(modules)) => {
            seq as u128 * module_flops(t, seq, modules) as u128
        }
        (ModelFamily::Transformer(t), Recompute::Operations) => {
            let repeated = |p: LayerProduct| if p.recomputed { 2 * p.columns as u128 * p.rows as u128 } else { 0 };
            let layer = |l| layer_products(t, 1, t.is_moe(l)).into_iter().map(repeated).sum::<u128>();
            let further = u128::from(t.mtp) * layer(t.layers - 1);
            seq as u128 * ((0..t.layers).map(layer).sum::<u128>() + further)
        }
        (ModelFamily::Transformer(t), Recompute::Full) => seq as u128 * token_flops(t, seq).layers() as u128,
        // `Layout::check` rejects this case: no recomputation is defined for these models.
        (_, _) => 0,
    };
    model_flops(model, batch, seq) + batch as u128 * repeated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::parameters;

    /// L, h, v and s of a GPT.
    fn sizes(t: &Transformer) -> [f64; 4] {
        [t.layers, t.hidden, t.vocab, t.seq].map(f64::from)
    }

    #[test]
    fn iterations_cost_what_the_published_formulas_say() {
        for name in ["gpt3-1.7b", "gpt3-22b", "gpt3-175b", "gpt3-1t", "mcore-462b"] {
            let m = Model::named(name).unwrap();
            let t = m.transformer().unwrap();
            let [l, h, v, s] = sizes(t);
            let batch = 64;
            let base = batch as f64 * l * s * h * h;
            let near = |ours: u128, formula: f64| {
                assert!((ours as f64 / formula - 1.0).abs() < 1e-12, "{name}: {ours} {formula}")
            };
            near(model_flops(&m, batch, t.seq), 72.0 * base * (1.0 + s / (6.0 * h) + v / (12.0 * h * l)));
            near(
                hardware_flops(&m, batch, t.seq, Recompute::None),
                72.0 * base * (1.0 + s / (6.0 * h) + v / (12.0 * h * l)),
            );
            near(
                hardware_flops(&m, batch, t.seq, Recompute::CORE),
                72.0 * base * (1.0 + s / (3.0 * h) + v / (12.0 * h * l)),
            );
            near(
                hardware_flops(&m, batch, t.seq, Recompute::Full),
                96.0 * base * (1.0 + s / (6.0 * h) + v / (16.0 * h * l)),
            );
        }
    }

    /// MFU and HFU of Korthikanti et al., Table 5. Their ratio is the ratio of the operations.
    #[test]
    fn hardware_over_model_is_the_published_hfu_over_mfu() {
        for (name, mfu, hfu) in
            [("gpt3-22b", 41.5, 43.7), ("gpt3-175b", 51.4, 52.8), ("gpt3-530b", 56.0, 57.0), ("gpt3-1t", 56.3, 57.0)]
        {
            let m = Model::named(name).unwrap();
            let ratio = hardware_flops(&m, 1, 2048, Recompute::CORE) as f64 / model_flops(&m, 1, 2048) as f64;
            assert!((ratio / (hfu / mfu) - 1.0).abs() < 0.003, "{name}: {ratio}");
        }
    }

    #[test]
    fn active_experts_cost_two_operations_a_weight() {
        for name in ["mixtral-8x7b", "deepseek-v3"] {
            let m = Model::named(name).unwrap();
            // Without the modules that `active` leaves out.
            let (t, p) = (Transformer { mtp: 0, ..m.transformer().unwrap().clone() }, parameters(&m));
            let f = token_flops(&t, 1);
            let weights = (f.total() - f.core) / 2;
            let norms = p.active() - p.embedding - weights;
            assert!(norms < 2_000_000, "{name}: {norms} parameters are no matrices");
        }
    }

    /// 19.6 GMACs (VGG19) and 11.5 GMACs (ResNet-152), as torchvision lists them.
    #[test]
    fn convolutional_networks_cost_what_their_model_cards_say() {
        for (name, gmacs) in [("vgg19", 19.63), ("resnet-152", 11.51)] {
            let flops = sample_flops(&Model::named(name).unwrap(), 1) as f64;
            assert!((flops / (2e9 * gmacs) - 1.0).abs() < 0.01, "{name}: {flops}");
        }
    }
}
