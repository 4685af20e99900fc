//! Composes a pass through a layer of timed steps: which communication runs at the same time as which kernels, and which is cut into pieces together with its
//! product.
//!
//! Layer: workload. `compute` gives the kernels and exchanges of a layer, in the order in which frameworks issue them. Here they get their times and their
//! overlap.

use super::placement::Purpose;
use super::step::{Comm, Overlap, PassStep, Price};
use crate::collective::{CollectiveOp, ExpertDirection};
use crate::compute::{self, Among, Kernel, KernelRole, LayerPart, Site};
use crate::model::Layout;

/// Names of steps with parameters that are gathered by themselves.
pub(super) const ATTENTION: &str = "attention";
pub(super) const PROJECTION: &str = "projection";
pub(super) const UP: &str = "mlp";
pub(super) const DOWN: &str = "mlp-down";
pub(super) const SHARED: &str = "shared-experts";

/// The timed steps of a pass through a layer.
pub(super) fn compose(steps: &[compute::LayerStep], layout: &Layout, price: &Price) -> Vec<PassStep> {
    let reordered = layout.overlap_ep.then(|| beside_kernels(steps));
    let steps = reordered.as_deref().unwrap_or(steps);
    let mut out = Vec::new();
    let mut i = 0;
    while i < steps.len() {
        i += match steps[i] {
            compute::LayerStep::Kernel { part, kernel } => {
                out.push(PassStep::Kernel {
                    name: block(part.site, layout),
                    ps: price.machine.kernels.kernel_ps(&kernel),
                });
                1
            }
            compute::LayerStep::Exchange { among, op, bytes, needed_by } => {
                let comm = Comm { name: comm_name(among, op), op, purpose: purpose(among), bytes };
                let overlaps_all = layout.overlap_ep && among == Among::Ep;
                let needed_by =
                    if layout.async_tp || overlaps_all { needed_by } else { next_part(&steps[i + 1..]).or(needed_by) };
                let before = match i.checked_sub(1).map(|b| steps[b]) {
                    Some(compute::LayerStep::Kernel { kernel, .. }) => Some(kernel),
                    _ => None,
                };
                1 + exchange(&comm, needed_by, before, &steps[i + 1..], layout, price, &mut out)
            }
        };
    }
    merge(out)
}

/// Reorders steps so that the all-to-all of experts runs at the same time as kernels of its own pass. These kernels stand for those of another micro-batch,
/// which is equally far in its layer in the other direction. While tokens of one micro-batch go to experts or come back, the other computes its attention or
/// its experts. So a forward pass sends during the kernels before the exchange, and a backward pass during the kernels after it.
fn beside_kernels(steps: &[compute::LayerStep]) -> Vec<compute::LayerStep> {
    let mut out: Vec<compute::LayerStep> = Vec::with_capacity(steps.len());
    for step in steps {
        let compute::LayerStep::Exchange { among: Among::Ep, op, bytes, .. } = *step else {
            out.push(*step);
            continue;
        };
        let kernels = out.iter().rev().take_while(|s| matches!(s, compute::LayerStep::Kernel { .. })).count();
        let grad = |role| matches!(role, KernelRole::InputGrad | KernelRole::WeightGrad);
        let backward = matches!(out.last(), Some(compute::LayerStep::Kernel { part, .. }) if grad(part.role));
        let position = if backward { out.len() } else { out.len() - kernels };
        out.insert(position, compute::LayerStep::Exchange { among: Among::Ep, op, bytes, needed_by: None });
    }
    out
}

/// Adds a communication and the kernels that overlap with it. Returns how many steps after the communication were consumed.
fn exchange(
    comm: &Comm,
    needed_by: Option<LayerPart>,
    before: Option<Kernel>,
    following: &[compute::LayerStep],
    layout: &Layout,
    price: &Price,
    out: &mut Vec<PassStep>,
) -> usize {
    let run = |wanted: &dyn Fn(LayerPart) -> bool| -> (Vec<Kernel>, &'static str) {
        let next = |s: &compute::LayerStep| match s {
            compute::LayerStep::Kernel { part, kernel } if wanted(*part) => Some((*part, *kernel)),
            _ => None,
        };
        let kernels: Vec<(LayerPart, Kernel)> = following.iter().map_while(next).collect();
        let name = kernels.first().map_or("", |(p, _)| block(p.site, layout));
        (kernels.into_iter().map(|(_, k)| k).collect(), name)
    };
    // Gradients of keys and values go around the ring together with the keys and values.
    if comm.purpose == Purpose::Context
        && comm.op == CollectiveOp::ReduceScatter
        && let Some(PassStep::Both { comm: ring, overlap: Overlap::Ring(_), .. }) = out.last_mut()
    {
        ring.bytes += comm.bytes;
        return 0;
    }
    // Kernels between the communication and the kernel that needs it overlap with it.
    let (overlapped, name) = run(&|p| Some(p) != needed_by);
    let n = overlapped.len();
    let used_later =
        following[n..].iter().any(|s| matches!(s, compute::LayerStep::Kernel { part, .. } if Some(*part) == needed_by))
            || needed_by.is_none();
    if n > 0 && used_later {
        out.push(price.both(name, &overlapped, *comm, Overlap::Beside));
        return n;
    }
    let pieces = layout.tp_overlap_pieces;
    match comm.purpose {
        Purpose::Context if comm.op == CollectiveOp::AllGather => {
            let (users, name) = run(&|p| Some(p) == needed_by);
            if !users.is_empty() {
                out.push(price.both(name, &users, *comm, Overlap::Ring(layout.cp)));
                return users.len();
            }
        }
        Purpose::Tensor if pieces > 1 && comm.op == CollectiveOp::AllGather => {
            let (users, name) = run(&|p| Some(p) == needed_by);
            if !users.is_empty() {
                out.push(price.both(name, &users, *comm, Overlap::Feeds(pieces)));
                return users.len();
            }
        }
        Purpose::Tensor if pieces > 1 && !comm.op.is_all_to_all() => {
            if let (Some(PassStep::Kernel { name, .. }), Some(kernel)) = (out.last().copied(), before) {
                out.pop();
                out.push(price.both(name, &[kernel], *comm, Overlap::Drains(pieces)));
                return 0;
            }
        }
        _ => {}
    }
    out.push(PassStep::Comm(*comm));
    0
}

/// The part of the next kernel.
fn next_part(steps: &[compute::LayerStep]) -> Option<LayerPart> {
    steps.iter().find_map(|s| match s {
        compute::LayerStep::Kernel { part, .. } => Some(*part),
        compute::LayerStep::Exchange { .. } => None,
    })
}

fn purpose(among: Among) -> Purpose {
    match among {
        Among::Tp | Among::ExpertTp => Purpose::Tensor,
        Among::Ep => Purpose::Expert,
        Among::Cp => Purpose::Context,
    }
}

fn comm_name(among: Among, op: CollectiveOp) -> &'static str {
    match (among, op) {
        (Among::Tp | Among::ExpertTp, CollectiveOp::AllGather) => "tp-all-gather",
        (Among::Tp | Among::ExpertTp, CollectiveOp::ReduceScatter) => "tp-reduce-scatter",
        (Among::Tp | Among::ExpertTp, _) => "tp-all-reduce",
        (Among::Ep, CollectiveOp::Experts(e)) if e.direction == ExpertDirection::Dispatch => "ep-dispatch",
        (Among::Ep, CollectiveOp::Experts(_)) => "ep-combine",
        (Among::Ep, _) => "ep-all-to-all",
        (Among::Cp, _) => "cp-ring",
    }
}

/// The name of a site's kernels in a graph. Consecutive kernels with the same name become one op. Where parameters are gathered module by module, the second
/// product of attention and of the feed-forward part has a name of its own.
fn block(site: Site, layout: &Layout) -> &'static str {
    match site {
        Site::Proj | Site::AttnResidual if layout.gathers_by_module() => PROJECTION,
        Site::Down | Site::MlpResidual if layout.gathers_by_module() => DOWN,
        Site::AttnNorm | Site::Qkv | Site::Rope | Site::Core | Site::Proj | Site::AttnResidual => ATTENTION,
        Site::Router | Site::Permute | Site::Unpermute => "router",
        Site::MlpNorm | Site::Up | Site::Activation | Site::Down | Site::MlpResidual => UP,
        Site::SharedUp | Site::SharedActivation | Site::SharedDown => SHARED,
        Site::FinalNorm | Site::Logits | Site::CrossEntropy => "logits",
        Site::Embedding | Site::Prediction | Site::Optimizer | Site::Layer => site.name(),
    }
}

/// Merges consecutive kernels with the same name.
fn merge(steps: Vec<PassStep>) -> Vec<PassStep> {
    let mut merged: Vec<PassStep> = Vec::with_capacity(steps.len());
    for step in steps {
        match (merged.last_mut(), step) {
            (Some(PassStep::Kernel { name, ps }), PassStep::Kernel { name: next_name, ps: next_ps })
                if *name == next_name =>
            {
                *ps += next_ps
            }
            (_, step) => merged.push(step),
        }
    }
    merged
}
