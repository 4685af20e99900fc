//! Selective recomputation: the modules that are computed again before a layer's backward pass, each from its own input.
//!
//! Part of compute. It follows Megatron-Core: `CheckpointWithoutOutput` for norms, latent attention's vectors and the experts' activation function, and a whole
//! forward pass for the others.

use crate::model::Moe;

use super::attention::{core_forward, norm_forward, up_projections_forward};
use super::part::Site;
use super::shape::Builder;
use super::{mlp, moe};

/// Adds kernels and exchanges of the chosen modules of a layer, in the order of its forward pass.
pub(super) fn again(b: &mut Builder, experts: Option<&Moe>) {
    let chosen = b.layout.recompute.modules();
    let [attention_norm, mlp_norm] = b.layout.norms_alone(b.model, experts.is_some());
    if chosen.layernorm && attention_norm {
        norm_forward(b, Site::AttnNorm);
    }
    if chosen.mla_up_proj && b.model.mla.is_some() {
        up_projections_forward(b);
    }
    if chosen.core_attn {
        core_forward(b);
    }
    // If the norm of a dense part is fused with its first product, it is computed again together with the part.
    let dense = chosen.mlp && experts.is_none();
    if chosen.layernorm && mlp_norm || dense && !mlp_norm {
        norm_forward(b, Site::MlpNorm);
    }
    match experts {
        Some(experts) if chosen.moe => moe::experts_forward(b, experts),
        Some(experts) => {
            if chosen.moe_act {
                moe::activation_again(b, experts);
            }
            if chosen.shared_experts {
                moe::shared_forward(b, experts);
            }
        }
        None if dense => mlp::products_forward(b),
        None => {}
    }
}
