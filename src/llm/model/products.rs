//! The matrix products of a layer's forward pass, in order, and which of them are computed again if recomputation is selected by operation.
//!
//! Layer: model.

use super::Transformer;

/// The place of a product in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductPlace {
    /// Queries, keys and values.
    Qkv,
    /// Output projection of attention.
    Proj,
    /// First product of the feed-forward part.
    Up,
    /// Last product of the feed-forward part.
    Down,
}

/// A product of an input of width `rows` with a matrix of `rows` x `columns` on one tensor-parallel rank. For experts it is one token's, for all experts that
/// it visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerProduct {
    /// Its place in the layer.
    pub place: ProductPlace,
    /// Width of its output.
    pub columns: u64,
    /// Width of its input.
    pub rows: u64,
    /// Whether its result is not kept but computed again: every second product. The last product of a layer is never recomputed, because only the next layer
    /// reads it.
    pub recomputed: bool,
}

/// Products of a layer, dense or with experts, over `tp` ranks. Llama's code, which gated models follow, has separate products for queries, keys, values, gate
/// and up. Other models have one for queries, keys and values. torchtitan keeps the first product's result, drops the second's, and so on
/// (pytorch/torchtitan@9dec370 parallelize_llama.py, `_save_list` and the policy below it).
pub fn layer_products(t: &Transformer, tp: u32, moe: bool) -> Vec<LayerProduct> {
    let (tp, h) = (u64::from(tp), u64::from(t.hidden));
    let (heads, kv_heads, d) = (u64::from(t.heads), u64::from(t.kv_heads), u64::from(t.head_dim));
    let mut list: Vec<(ProductPlace, u64, u64)> = Vec::new();
    match t.mla {
        Some(m) => {
            let [q, kv, rope, nope, v] = [m.q_rank, m.kv_rank, m.rope_dim, m.nope_dim, m.v_dim].map(u64::from);
            let wide = heads * (nope + rope) / tp;
            match q {
                0 => list.push((ProductPlace::Qkv, wide, h)),
                q => list.extend([(ProductPlace::Qkv, q, h), (ProductPlace::Qkv, wide, q)]),
            }
            list.extend([(ProductPlace::Qkv, kv + rope, h), (ProductPlace::Qkv, heads * (nope + v) / tp, kv)]);
            list.push((ProductPlace::Proj, h, heads * v / tp));
        }
        None => {
            let projection = |n: u64| (ProductPlace::Qkv, n * d / tp, h);
            if t.gated {
                list.extend([heads, kv_heads, kv_heads].map(projection));
            } else {
                list.push(projection(heads + 2 * kv_heads));
            }
            list.push((ProductPlace::Proj, h, heads * d / tp));
        }
    }
    let (inner, visited) = match t.moe {
        Some(m) if moe => (u64::from(m.expert_ffn) / tp, u64::from(m.top_k + m.shared_experts)),
        _ => (u64::from(t.ffn) / tp, 1),
    };
    list.extend((0..1 + u64::from(t.gated)).map(|_| (ProductPlace::Up, visited * inner, h)));
    list.push((ProductPlace::Down, visited * h, inner));
    let last = list.len() - 1;
    let product =
        |(i, (place, columns, rows))| LayerProduct { place, columns, rows, recomputed: i % 2 == 1 && i < last };
    list.into_iter().enumerate().map(product).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    #[test]
    fn llama_recomputes_keys_projection_and_the_second_half_of_the_gate() {
        let model = Model::named("llama3-8b").unwrap();
        let products = layer_products(model.transformer().unwrap(), 1, false);
        let again: Vec<_> = products.iter().filter(|p| p.recomputed).map(|p| (p.place, p.columns, p.rows)).collect();
        let (keys, output) = ((ProductPlace::Qkv, 1024, 4096), (ProductPlace::Proj, 4096, 4096));
        assert_eq!(again, [keys, output, (ProductPlace::Up, 14336, 4096)]);
    }
}
