//! The parameters that a pipeline stage's rank holds.
//!
//! Layer: memory. Counts of parameters; `stage` computes bytes and sharding by ZeRO.

use crate::model::{Dlrm, Layout, Model, ModelFamily, Transformer};

/// Number of parameters on a rank, before ZeRO divides them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Parameters replicated over data- and context-parallel ranks.
    pub dense: u64,
    /// Parameters of routed experts, spread over `ep` of those ranks.
    pub experts: u64,
    /// Parameters of a recommender's tables, each on one rank and trained without Adam.
    pub tables: u64,
    /// Parameters in the layers' matrices, already counted in `dense` or `experts`. FP8 training keeps a second copy of them.
    pub matrices: u64,
    /// Parameters of the largest unit that ZeRO-3 gathers at once: a layer, or an embedding.
    pub unit: u64,
    /// Parameters of the largest layer.
    pub layer: u64,
    /// Parameters outside the layers: embedding, output matrix, final norm.
    pub outside_layers: u64,
}

/// The rank's part of one layer.
#[derive(Clone, Copy)]
struct LayerShare {
    dense: u64,
    experts: u64,
    vectors: u64,
}

/// A rank's parameters of one layer. Column- and row-parallel matrices are divided. Norms, the router, biases after the reduction and the down-projections of
/// latent attention are not.
fn layer(t: &Transformer, layout: &Layout, moe: bool) -> LayerShare {
    let (h, tp, bias) = (t.hidden as u64, layout.tp as u64, t.biases as u64);
    let divided_by = |ranks: u64, ffn: u32| (t.ffn_params(ffn) - bias * h) / ranks + bias * h;
    let feed_forward = |ffn: u32| divided_by(tp, ffn);
    let attention = match t.mla {
        Some(m) => {
            let [q, kv, rope] = [m.q_rank, m.kv_rank, m.rope_dim].map(u64::from);
            let down = (h + 1) * q + h * (kv + rope) + kv;
            down + (t.attention_params() - down) / tp
        }
        None => (t.attention_params() - bias * h) / tp + bias * h,
    };
    let vectors = 2 * t.norm_params() + 2 * bias * h;
    let common = attention + 2 * t.norm_params();
    match t.moe {
        Some(m) if moe => LayerShare {
            dense: common + t.router_params(&m) + m.shared_experts as u64 * feed_forward(m.expert_ffn),
            experts: (m.experts / layout.ep) as u64 * divided_by(u64::from(layout.expert_tp()), m.expert_ffn),
            vectors,
        },
        _ => LayerShare { dense: common + feed_forward(t.ffn), experts: 0, vectors },
    }
}

fn transformer(t: &Transformer, layout: &Layout, stage: u32, counts: &[(u32, u32)]) -> Share {
    let [dense, moe] = [false, true].map(|moe| layer(t, layout, moe));
    let mut share = Share::default();
    for &(dense_layers, moe_layers) in counts {
        for (n, l) in [(dense_layers as u64, dense), (moe_layers as u64, moe)] {
            share.dense += n * l.dense;
            share.experts += n * l.experts;
            share.matrices += n * (l.dense + l.experts - l.vectors);
            if n > 0 {
                share.layer = share.layer.max(l.dense + l.experts);
            }
        }
    }
    let h = t.hidden as u64;
    let words = (t.vocab as u64).div_ceil(layout.tp as u64) * h;
    let end = layout.rank_of_stage(layout.stages_of_microbatch() - 1);
    let (first, last) = match layout.schedule.is_fed_twice() {
        true => (stage == 0 || stage == end, stage == 0 || stage == end),
        false => (stage == 0, stage == end),
    };
    let layers = share.dense;
    if first {
        share.dense += words + t.learned_positions as u64 * t.seq as u64 * h;
    }
    // Both ends of a pipeline hold tied weights, and the embedding if further tokens are predicted.
    if last {
        share.dense += t.norm_params() + if t.tied && first { 0 } else { words };
        share.dense += if t.mtp > 0 && !t.tied && !first { words } else { 0 };
        share.dense += u64::from(t.mtp) * (2 * h * h / u64::from(layout.tp) + 3 * t.norm_params());
    }
    share.unit = if first || last { share.layer.max(words) } else { share.layer };
    share.outside_layers = share.dense - layers;
    share
}

fn dlrm(d: &Dlrm, layout: &Layout) -> Share {
    // Whole tables if there are enough of them, else rows of all tables.
    let ranks = layout.dp as u64;
    let (tables, one) = (d.tables as u64, d.table_params());
    let tables = if tables >= ranks { tables.div_ceil(ranks) * one } else { (tables * one).div_ceil(ranks) };
    Share { dense: d.mlp_params(), tables, unit: d.mlp_params(), layer: d.mlp_params(), ..Share::default() }
}

impl Share {
    /// The share of a rank. `counts` is (dense layers, layers with experts) of each of the stage's virtual stages.
    pub(super) fn new(model: &Model, layout: &Layout, stage: u32, counts: &[(u32, u32)]) -> Share {
        match &model.body {
            ModelFamily::Transformer(t) => transformer(t, layout, stage, counts),
            ModelFamily::Dlrm(d) => dlrm(d, layout),
            ModelFamily::Layers(layers) => {
                let dense = layers.iter().map(|l| l.params).sum();
                let largest = layers.iter().map(|l| l.params).max().unwrap_or(0);
                Share { dense, matrices: dense, unit: largest, layer: largest, ..Share::default() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::validation::seqsel;
    use crate::model::parameters;

    /// The shares of all ranks together are the model, apart from replicated parameters.
    #[test]
    fn shares_of_all_ranks_add_up_to_the_model() {
        for name in ["gpt3-22b", "llama3-8b", "mixtral-8x7b", "deepseek-v3"] {
            let model = Model::named(name).unwrap();
            let t = model.transformer().unwrap();
            let layout = Layout { tp: 8, ep: t.moe.map_or(1, |m| m.experts.min(8)), dp: 8, ..seqsel("22B", 1, 1, 1) };
            // A module that predicts a further token has a layer with experts, like the last one.
            let (dense, moe) = (t.layers - t.moe_layers(), t.moe_layers() + t.mtp);
            let share = Share::new(&model, &layout, 0, &[(dense, moe)]);
            let held = share.dense * 8 + share.experts * 8 * layout.ep as u64;
            let total = parameters(&model).total();
            assert!(held >= total && (held as f64) < 1.02 * total as f64, "{name}: {held} {total}");
            let alone = Layout { tp: 1, ep: 1, ..layout };
            let share = Share::new(&model, &alone, 0, &[(dense, moe)]);
            assert_eq!(share.dense + share.experts, total, "{name}");
        }
    }
}
