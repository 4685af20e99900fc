//! Recomputation selected by operation: everything cheap is computed again before a layer's backward pass, and every second matrix product.
//!
//! Part of compute. The model determines which products these are. Results of collectives and of attention are kept.

use crate::model::{Moe, ProductPlace, layer_products};

use super::attention::{norm_forward, residual_forward, rope_forward};
use super::mlp::activation_forward;
use super::moe::experts;
use super::part::Site;
use super::shape::Builder;

/// Adds the kernels that are computed again, in the order of the forward pass.
pub(super) fn again(b: &mut Builder, moe: Option<&Moe>) {
    norm_forward(b, Site::AttnNorm);
    products(b, moe, ProductPlace::Qkv);
    if !b.model.learned_positions {
        rope_forward(b);
    }
    // With tensor parallelism the sum over ranks was kept, so this rank's part of it is not needed.
    if b.tp == 1 {
        products(b, moe, ProductPlace::Proj);
    }
    residual_forward(b, Site::AttnResidual);
    norm_forward(b, Site::MlpNorm);
    products(b, moe, ProductPlace::Up);
    let (rows, inner) = match moe {
        Some(moe) => {
            let e = experts(b, moe);
            (e.n_experts * e.tokens_per_expert, e.inner)
        }
        None => (b.tokens, (b.model.ffn as u64).div_ceil(b.tp)),
    };
    activation_forward(b, Site::Activation, rows, inner);
}

/// Adds the products at a place that are computed again.
fn products(b: &mut Builder, moe: Option<&Moe>, place: ProductPlace) {
    let (tokens, hidden) = (b.tokens, b.hidden);
    for p in layer_products(b.model, b.layout.tp, moe.is_some()).iter().filter(|p| p.recomputed && p.place == place) {
        match (place, moe) {
            (ProductPlace::Up, Some(moe)) => {
                let e = experts(b, moe);
                b.linear_forward(Site::Up, e.tokens_per_expert, e.inner, hidden, e.n_experts);
            }
            (ProductPlace::Up, None) => b.linear_forward(Site::Up, tokens, p.columns, p.rows, 1),
            (ProductPlace::Qkv, _) => b.linear_forward(Site::Qkv, tokens, p.columns, p.rows, 1),
            (ProductPlace::Proj, _) => b.linear_forward(Site::Proj, tokens, p.columns, p.rows, 1),
            // The last product of a layer is never computed again.
            (ProductPlace::Down, _) => {}
        }
    }
}
