//! Plans of models that are not transformers: lists of layers, and recommendation models.
//!
//! Layer: workload. Both are trained data-parallel. The tables of a recommendation model are spread over the ranks, which exchange looked-up rows in an
//! all-to-all.

use super::placement::Purpose;
use super::plan::{Held, JobPlan, LayerPlan};
use super::step::{Comm, Overlap, PassStep, Price};
use crate::collective::CollectiveOp;
use crate::compute::{DlrmPart, Kernel, LayerPart, Pass, dlrm_kernels, list_layer_kernels};
use crate::model::{Dlrm, Layer, Layout};

/// The plan of a list of layers: one stage.
pub(super) fn list_plan(layers: &[Layer], layout: &Layout, price: &Price) -> JobPlan {
    let plan = |layer: &Layer| {
        let pass =
            |name, pass| vec![PassStep::Kernel { name, ps: time(&list_layer_kernels(layer, layout, pass), price) }];
        let held = Held { dense: layer.params, expert: 0, sequence: 0 };
        LayerPlan::new(pass("layer", Pass::Forward), pass("layer", Pass::Backward), held, price)
    };
    one_stage(layers.iter().map(plan).collect())
}

/// The plan of a recommendation model. Tables are looked up for the samples of all ranks, then exchanged while the bottom network runs. The backward pass does
/// the same.
pub(super) fn dlrm_plan(dlrm: &Dlrm, layout: &Layout, price: &Price) -> JobPlan {
    let ranks = layout.dp;
    let samples = layout.microbatch as u64 * ranks as u64;
    let tables = DlrmPart::Embedding { tables: dlrm.tables.div_ceil(ranks), samples };
    let part_ps = |part, pass| time(&dlrm_kernels(dlrm, layout, part, pass), price);
    // Each rank begins and ends with the same number of vectors: all samples of its tables, then its samples of all tables.
    let bytes =
        layout.microbatch as u64 * dlrm.tables as u64 * dlrm.embedding_dim as u64 * layout.bytes.activations as u64;
    let exchange = Comm { name: "embedding-all-to-all", op: CollectiveOp::AllToAll, purpose: Purpose::Data, bytes };
    let bottom = |pass| {
        let kernels: Vec<Kernel> =
            dlrm_kernels(dlrm, layout, DlrmPart::Bottom, pass).into_iter().map(|(_, k)| k).collect();
        price.both("bottom-mlp", &kernels, exchange, Overlap::Beside)
    };
    let kernel = |name, part, pass| PassStep::Kernel { name, ps: part_ps(part, pass) };
    let weights =
        |widths: &[u64]| Held { dense: widths.windows(2).map(|w| w[0] * w[1] + w[1]).sum(), expert: 0, sequence: 0 };
    let [bottom_widths, top_widths] = dlrm.mlp_widths();
    one_stage(vec![
        LayerPlan::new(
            vec![kernel("embedding", tables, Pass::Forward), bottom(Pass::Forward)],
            vec![bottom(Pass::Backward), kernel("embedding", tables, Pass::Backward)],
            weights(&bottom_widths),
            price,
        ),
        LayerPlan::new(
            vec![kernel("top-mlp", DlrmPart::Top, Pass::Forward)],
            vec![kernel("top-mlp", DlrmPart::Top, Pass::Backward)],
            weights(&top_widths),
            price,
        ),
    ])
}

/// Time of kernels in ps.
fn time(kernels: &[(LayerPart, Kernel)], price: &Price) -> u64 {
    kernels.iter().map(|(_, k)| price.machine.kernels.kernel_ps(k)).sum()
}

fn one_stage(layers: Vec<LayerPlan>) -> JobPlan {
    let stage = (0..layers.len() as u16).collect();
    JobPlan { layers, stages: vec![stage], ..JobPlan::default() }
}
