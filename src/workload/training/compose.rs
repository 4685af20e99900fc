//! A pass through a layer as timed steps: which communication runs beside which kernels, which is cut in pieces with its product.
//!
//! Layer: workload. `compute` says which kernels and exchanges a layer consists of, in the order in which frameworks issue them; here they get their times and
//! their overlap.

use super::placement::Purpose;
use super::step::{Comm, Overlap, PassStep, Price};
use crate::collective::CollectiveOp;
use crate::compute::{self, Among, Kernel, KernelRole, LayerPart, Site};
use crate::model::Layout;

/// Steps of a pass of a layer.
pub(super) fn compose(steps: &[compute::LayerStep], layout: &Layout, price: &Price) -> Vec<PassStep> {
    let reordered = layout.overlap_ep.then(|| beside_kernels(steps));
    let steps = reordered.as_deref().unwrap_or(steps);
    let mut out = Vec::new();
    let mut i = 0;
    while i < steps.len() {
        i += match steps[i] {
            compute::LayerStep::Kernel { part, kernel } => {
                out.push(PassStep::Kernel { name: block(part.site), ps: price.machine.kernels.kernel_ps(&kernel) });
                1
            }
            compute::LayerStep::Exchange { among, op, bytes, needed_by } => {
                let comm = Comm { name: comm_name(among, op), op, purpose: purpose(among), bytes };
                let beside_all = layout.overlap_ep && among == Among::Ep;
                let needed_by =
                    if layout.async_tp || beside_all { needed_by } else { next_part(&steps[i + 1..]).or(needed_by) };
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

/// Steps in an order in which the all-to-all of experts runs beside kernels of its own pass. They stand for those of another micro-batch, which is as far in its layer in the
/// other direction: while tokens of one go to experts or come back, the other computes its attention or its experts. So a forward pass sends beside what comes before, a
/// backward pass beside what follows.
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
        let at = if backward { out.len() } else { out.len() - kernels };
        out.insert(at, compute::LayerStep::Exchange { among: Among::Ep, op, bytes, needed_by: None });
    }
    out
}

/// Adds a communication, and the kernels that share its time; gives how many steps after it these were.
fn exchange(
    comm: &Comm,
    needed_by: Option<LayerPart>,
    before: Option<Kernel>,
    rest: &[compute::LayerStep],
    layout: &Layout,
    price: &Price,
    out: &mut Vec<PassStep>,
) -> usize {
    let run = |wanted: &dyn Fn(LayerPart) -> bool| -> (Vec<Kernel>, &'static str) {
        let next = |s: &compute::LayerStep| match s {
            compute::LayerStep::Kernel { part, kernel } if wanted(*part) => Some((*part, *kernel)),
            _ => None,
        };
        let kernels: Vec<(LayerPart, Kernel)> = rest.iter().map_while(next).collect();
        let name = kernels.first().map_or("", |(p, _)| block(p.site));
        (kernels.into_iter().map(|(_, k)| k).collect(), name)
    };
    // Gradients of keys and values go round with the keys and values.
    if comm.purpose == Purpose::Context
        && comm.op == CollectiveOp::ReduceScatter
        && let Some(PassStep::Both { comm: ring, overlap: Overlap::Ring(_), .. }) = out.last_mut()
    {
        ring.bytes += comm.bytes;
        return 0;
    }
    // What stands between the communication and who needs it runs beside it.
    let (beside, name) = run(&|p| Some(p) != needed_by);
    let n = beside.len();
    let used_later =
        rest[n..].iter().any(|s| matches!(s, compute::LayerStep::Kernel { part, .. } if Some(*part) == needed_by))
            || needed_by.is_none();
    if n > 0 && used_later {
        out.push(price.both(name, &beside, *comm, Overlap::Beside));
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
        Purpose::Tensor if pieces > 1 && comm.op != CollectiveOp::AllToAll => {
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
        Among::Tp => Purpose::Tensor,
        Among::Ep => Purpose::Expert,
        Among::Cp => Purpose::Context,
    }
}

fn comm_name(among: Among, op: CollectiveOp) -> &'static str {
    match (among, op) {
        (Among::Tp, CollectiveOp::AllGather) => "tp-all-gather",
        (Among::Tp, CollectiveOp::ReduceScatter) => "tp-reduce-scatter",
        (Among::Tp, _) => "tp-all-reduce",
        (Among::Ep, _) => "ep-all-to-all",
        (Among::Cp, _) => "cp-ring",
    }
}

/// The name under which kernels of a site stand in a graph: neighbours of one name are one op.
pub(super) fn block(site: Site) -> &'static str {
    match site {
        Site::AttnNorm | Site::Qkv | Site::Rope | Site::Core | Site::Proj | Site::AttnResidual => "attention",
        Site::Router | Site::Permute | Site::Unpermute => "router",
        Site::MlpNorm | Site::Up | Site::Activation | Site::Down | Site::MlpResidual => "mlp",
        Site::SharedUp | Site::SharedActivation | Site::SharedDown => "shared-experts",
        Site::FinalNorm | Site::Logits | Site::CrossEntropy => "logits",
        Site::Embedding | Site::Prediction | Site::Optimizer | Site::Layer => site.name(),
    }
}

/// Joins kernels of one name that follow each other.
fn merge(steps: Vec<PassStep>) -> Vec<PassStep> {
    let mut merged: Vec<PassStep> = Vec::with_capacity(steps.len());
    for step in steps {
        match (merged.last_mut(), step) {
            (Some(PassStep::Kernel { name, ps }), PassStep::Kernel { name: next, ps: more }) if *name == next => {
                *ps += more
            }
            (_, step) => merged.push(step),
        }
    }
    merged
}
