//! Models that are not transformers: lists of layers known by their totals, and recommendation models.

use crate::model::{Dlrm, Layer, Layout};

use super::super::{Dtype, Kernel};
use super::Pass;
use super::part::{KernelRole, LayerPart, Site};
use super::shape::activation_dtype;

/// Kernels of one layer of a list. Forward reads its input (assumed as large as its output) and writes its output; norm and activation each read and write it
/// once more. Backward does twice the arithmetic and twice the traffic. Nothing is recomputed.
pub fn list_layer_kernels(layer: &Layer, layout: &Layout, pass: Pass) -> Vec<(LayerPart, Kernel)> {
    let (samples, dtype) = (layout.microbatch as u64, activation_dtype(layout));
    let activation = layer.activation_bytes * samples * dtype.bytes() / 2;
    let weights = layer.params * dtype.bytes();
    let work = |role| {
        let kernel = Kernel::Work { flops: layer.flops * samples, bytes: 2 * activation + weights, dtype };
        (LayerPart { site: Site::Layer, role }, kernel)
    };
    let streams =
        |role, name, times| (LayerPart { site: Site::Layer, role }, Kernel::Memory { name, bytes: times * activation });
    match pass {
        Pass::Forward => vec![work(KernelRole::Forward), streams(KernelRole::Forward, "norm-activation", 4)],
        Pass::Backward => {
            vec![
                streams(KernelRole::InputGrad, "norm-activation-backward", 6),
                work(KernelRole::InputGrad),
                work(KernelRole::WeightGrad),
            ]
        }
        Pass::Recompute => Vec::new(),
    }
}

/// Parts of a recommendation model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DlrmPart {
    /// Look-ups for a global batch, which a rank with these tables does before the all-to-all.
    Embedding {
        /// Number of tables of the rank.
        tables: u32,
        /// Samples of the global batch.
        samples: u64,
    },
    /// The MLP over dense features, for this rank's own samples.
    Bottom,
    /// Products of all pairs of embeddings, then the MLP over them.
    Top,
}

/// Kernels of one part of a recommendation model on one rank.
pub fn dlrm_kernels(dlrm: &Dlrm, layout: &Layout, part: DlrmPart, pass: Pass) -> Vec<(LayerPart, Kernel)> {
    let samples = layout.microbatch as u64;
    let (dtype, dim) = (activation_dtype(layout), dlrm.embedding_dim as u64);
    match part {
        DlrmPart::Embedding { tables, samples } => embedding(dlrm, tables as u64 * samples, dtype, pass),
        DlrmPart::Bottom => {
            let widths = [dlrm.dense_features].iter().chain(&dlrm.bottom_mlp).map(|w| *w as u64).collect::<Vec<_>>();
            mlp(samples, &widths, dtype, pass)
        }
        DlrmPart::Top => {
            let vectors = dlrm.tables as u64 + 1;
            let features = vectors * (vectors - 1) / 2 + dim;
            let widths = [features].into_iter().chain(dlrm.top_mlp.iter().map(|w| *w as u64)).collect::<Vec<_>>();
            let interaction = |role, m, n, k| {
                (
                    LayerPart { site: Site::Layer, role },
                    Kernel::Gemm { m, n, k, batch: samples, kept: 0, apart: false, dtype },
                )
            };
            let mut kernels = mlp(samples, &widths, dtype, pass);
            match pass {
                Pass::Forward => kernels.insert(0, interaction(KernelRole::Forward, vectors, vectors, dim)),
                Pass::Backward => kernels.push(interaction(KernelRole::InputGrad, vectors, dim, vectors)),
                Pass::Recompute => {}
            }
            kernels
        }
    }
}

/// Kernels of `bags` pooled look-ups: rows are read (tables are FP32) and sums written. Backward reads the gradients and updates the rows in place.
fn embedding(dlrm: &Dlrm, bags: u64, dtype: Dtype, pass: Pass) -> Vec<(LayerPart, Kernel)> {
    let rows = bags * dlrm.pooling as u64 * dlrm.embedding_dim as u64 * 4;
    let sums = bags * dlrm.embedding_dim as u64 * dtype.bytes();
    let part = |role| LayerPart { site: Site::Embedding, role };
    match pass {
        Pass::Forward => {
            vec![(part(KernelRole::Forward), Kernel::Memory { name: "embedding-lookup", bytes: rows + sums })]
        }
        Pass::Backward => {
            vec![(part(KernelRole::WeightGrad), Kernel::Memory { name: "embedding-update", bytes: 2 * rows + sums })]
        }
        Pass::Recompute => Vec::new(),
    }
}

/// Kernels of an MLP with these layer widths.
fn mlp(samples: u64, widths: &[u64], dtype: Dtype, pass: Pass) -> Vec<(LayerPart, Kernel)> {
    let part = |role| LayerPart { site: Site::Layer, role };
    let mut kernels = Vec::new();
    for pair in widths.windows(2) {
        let (k, n) = (pair[0], pair[1]);
        let relu = |times| Kernel::Memory { name: "relu", bytes: samples * n * dtype.bytes() * times };
        match pass {
            Pass::Forward => kernels.extend([
                (part(KernelRole::Forward), Kernel::gemm(samples, n, k, dtype)),
                (part(KernelRole::Forward), relu(2)),
            ]),
            // This list is reversed at the end: input gradient, then weight gradient, each after the gradient of its activation.
            Pass::Backward => kernels.extend([
                (part(KernelRole::WeightGrad), Kernel::gemm(n, k, samples, dtype)),
                (part(KernelRole::InputGrad), Kernel::gemm(samples, k, n, dtype)),
                (part(KernelRole::InputGrad), relu(3)),
            ]),
            Pass::Recompute => {}
        }
    }
    if pass == Pass::Backward {
        kernels.reverse();
    }
    kernels
}
