//! Makes programs of the rows of a SimAI workload.
//!
//! Layer: workload. Programs do what ASTRA-sim (the version in SimAI) does. Forward runs over the rows, each collective blocking. Backward runs in reverse,
//! input gradient before weight gradient. Input-gradient collectives block, weight-gradient ones do not. `update_ns` follows each collective. A layer that
//! initiates recomputation first repeats the forward rows from its checkpoint.
//!
//! Ranks are placed as SimAI's groups are: tensor-parallel neighbours first, then the data-parallel dimension with expert-parallel neighbours inside, then
//! stages. SimAI has no groups for stages; Megatron places them outermost.
//!
//! With `pp` > 1 SimAI runs one stage's rows and adds `(pp - 1) / (ga vpp)` of them as bubble and `2 vpp ga pp_comm` bytes as exposed sends. Here the stages
//! are real. The rows of each micro-batch (`ga` runs that begin with `embedding_layer`) are scheduled as 1F1B, interleaved where `vpp` > 1. Between stages,
//! `pp_comm` bytes go from rank to rank. Rows before the first micro-batch and after the last run once. All stages run the same rows, except that
//! `embedding_layer` belongs to the first stage only, as in SimAI's bubble.

use super::simai_file::{SimaiFile, SimaiKind, SimaiLayer, SimaiPart, SimaiScope};
use super::{ImportError, ImportOptions, Imported, MAX_OPS, MAX_RANKS, check};
use crate::collective::CollectiveOp;
use crate::workload::program::{Dim, Group, OpKind, Peer, Phase, Program, Rank, Stream, Workload};

const TP: u16 = 0;
const DP: u16 = 1;
const EP: u16 = 2;
const DP_EP: u16 = 3;
const PP: u16 = 4;
/// Number of slots of a rank.
const N_SLOTS: usize = 5;
/// GPUs of one server. A file without a number of ranks gets at least so many.
const SERVER: u32 = 8;

/// Sizes of the parallel dimensions.
#[derive(Clone, Copy, Debug)]
struct Shape {
    tp: u32,
    dp: u32,
    ep: u32,
    pp: u32,
}

impl Shape {
    fn ranks(&self) -> u32 {
        self.tp * self.dp * self.pp
    }

    fn size(&self, slot: u16) -> u32 {
        match slot {
            TP => self.tp,
            DP => self.dp,
            EP => self.ep,
            DP_EP => self.dp / self.ep,
            _ => self.pp,
        }
    }
}

pub(super) fn build(path: &str, mut file: SimaiFile, options: &ImportOptions) -> Result<Imported, ImportError> {
    let mut notes = std::mem::take(&mut file.notes);
    let shape = shape(path, &file, options, &mut notes)?;
    let mut w = Workload::default();
    groups(&mut w, &shape);
    let plan = Plan::of(&file, &shape, &mut notes);
    // At most three operations per part, two parts per direction, forward twice; and the visits of a pipeline.
    let visits = if shape.pp > 1 { plan.micro.len().saturating_mul(plan.vpp as usize) } else { 0 };
    let max_ops = (12 * file.layers.len()).saturating_add(8usize.saturating_mul(visits));
    if max_ops.saturating_mul(shape.pp as usize) > MAX_OPS {
        return Err(ImportError::path(
            path,
            format!(
                "{} layers and {visits} visits on each of {} stages are too many operations",
                file.layers.len(),
                shape.pp
            ),
        ));
    }
    let unused = file.layers.iter().flat_map(|l| [l.fwd.comm, l.ig.comm]).flatten().count();
    if file.kind == SimaiKind::Micro && unused > 0 {
        notes.push(format!(
            "MICRO runs the weight-gradient collectives of its rows alone; {unused} other(s) are left out"
        ));
    }
    for stage in 0..shape.pp {
        let mut b = Builder {
            w: &mut w,
            file: &file,
            shape: &shape,
            stage,
            program: Program::default(),
            last: None,
            n_left_out: 0,
        };
        b.stage(&plan);
        let (n_left_out, mut program) = (b.n_left_out, b.program);
        if stage == 0 && n_left_out > 0 {
            notes.push(format!("{n_left_out} collective(s) of a group of one rank are left out"));
        }
        program.iteration_ends = vec![program.ops.len() as u32];
        w.programs.push(program);
    }
    let per_stage = shape.tp * shape.dp;
    w.ranks = std::mem::take(&mut w.ranks)
        .into_iter()
        .enumerate()
        .map(|(r, rank)| Rank { program: r as u32 / per_stage, ..rank })
        .collect();
    check::matching(path, &w)?;
    Ok(Imported { workload: w, flows: None, notes })
}

fn shape(path: &str, file: &SimaiFile, options: &ImportOptions, notes: &mut Vec<String>) -> Result<Shape, ImportError> {
    let transformer = matches!(file.kind, SimaiKind::Transformer | SimaiKind::Recompute);
    let (ep, pp) = if transformer { (file.ep, file.pp) } else { (1, 1) };
    let min_ranks = u64::from(file.tp) * u64::from(ep) * u64::from(pp);
    let ranks = match (options.ranks, file.all_gpus) {
        (Some(n), _) => n,
        (None, 0) => {
            let min_ranks = u32::try_from(min_ranks).ok().filter(|&n| n <= MAX_RANKS);
            let min_ranks = min_ranks
                .ok_or_else(|| ImportError::path(path, format!("its groups need more than {MAX_RANKS} ranks")))?;
            // A data-parallel collective needs at least two replicas.
            let over_dp = file.layers.iter().any(|l| l.wg.comm.is_some_and(|(_, scope, _)| scope != SimaiScope::Ep));
            let min_ranks = if over_dp && transformer { min_ranks.saturating_mul(2) } else { min_ranks };
            let n = min_ranks.saturating_mul(SERVER.div_ceil(min_ranks));
            notes.push(format!("the header names no all_gpus; {n} ranks are taken, the fewest of at least a server of {SERVER} that hold its groups"));
            n
        }
        (None, n) => n,
    };
    let bad = |problem: String| Err(ImportError::Ranks { path: path.to_string(), ranks, problem });
    if ranks == 0 || ranks > MAX_RANKS {
        return bad(format!("it must be from 1 to {MAX_RANKS}"));
    }
    match file.kind {
        SimaiKind::Model | SimaiKind::Inference => return Ok(Shape { tp: ranks, dp: 1, ep: 1, pp: 1 }),
        SimaiKind::Data | SimaiKind::Micro => return Ok(Shape { tp: 1, dp: ranks, ep: 1, pp: 1 }),
        SimaiKind::Transformer | SimaiKind::Recompute => {}
    }
    if !u64::from(ranks).is_multiple_of(min_ranks) {
        return bad(format!(
            "it must be a multiple of model_parallel_NPU_group {} times ep {ep} times pp {pp}, {min_ranks}",
            file.tp
        ));
    }
    Ok(Shape { tp: file.tp, dp: ranks / (file.tp * pp), ep, pp })
}

/// Adds all groups, and fills each rank's slots. Rank = tp + TP (dp + DP stage), where TP and DP are the sizes.
fn groups(w: &mut Workload, s: &Shape) {
    let rank = |tp: u32, dp: u32, stage: u32| tp + s.tp * (dp + s.dp * stage);
    w.ranks = vec![Rank { program: 0, groups: vec![0; N_SLOTS] }; s.ranks() as usize];
    let mut add = |slot: u16, dim: Dim, members: Vec<u32>| {
        for &m in &members {
            w.ranks[m as usize].groups[slot as usize] = w.groups.len() as u32;
        }
        w.groups.push(Group { members, dim });
    };
    for stage in 0..s.pp {
        for dp in 0..s.dp {
            add(TP, Dim::Tp, (0..s.tp).map(|tp| rank(tp, dp, stage)).collect());
        }
        for tp in 0..s.tp {
            add(DP, Dim::Dp, (0..s.dp).map(|dp| rank(tp, dp, stage)).collect());
            for block in 0..s.dp / s.ep {
                add(EP, Dim::Ep, (0..s.ep).map(|e| rank(tp, block * s.ep + e, stage)).collect());
            }
            for e in 0..s.ep {
                add(DP_EP, Dim::Dp, (0..s.dp / s.ep).map(|block| rank(tp, block * s.ep + e, stage)).collect());
            }
        }
    }
    for dp in 0..s.dp {
        for tp in 0..s.tp {
            add(PP, Dim::Pp, (0..s.pp).map(|stage| rank(tp, dp, stage)).collect());
        }
    }
}

/// Ranges of rows: those before the micro-batches, those of each micro-batch, and those after.
struct Plan {
    before: std::ops::Range<usize>,
    /// One range of rows per micro-batch.
    micro: Vec<std::ops::Range<usize>>,
    after: std::ops::Range<usize>,
    /// Number of model chunks per stage.
    vpp: u32,
}

impl Plan {
    fn of(file: &SimaiFile, shape: &Shape, notes: &mut Vec<String>) -> Plan {
        let n = file.layers.len();
        let whole = |vpp| Plan { before: 0..0, micro: std::iter::once(0..n).collect(), after: n..n, vpp };
        if shape.pp == 1 {
            return whole(1);
        }
        let starts: Vec<usize> = (0..n).filter(|&i| file.layers[i].name == "embedding_layer").collect();
        let ga = file.ga as usize;
        let length = match starts.as_slice() {
            [first, second, ..] => second - first,
            [first] => n - first,
            [] => 0,
        };
        let even = starts.len() == ga
            && starts.windows(2).all(|p| p[1] - p[0] == length)
            && starts.last().is_some_and(|s| s + length <= n);
        if !even {
            notes.push(format!(
                "the rows are not {ga} runs of one length that begin with `embedding_layer` (there are {}), so they count as one micro-batch",
                starts.len()
            ));
            return whole(1);
        }
        let mut vpp = file.vpp;
        if vpp > 1 && !file.ga.is_multiple_of(shape.pp) {
            notes.push(format!(
                "ga {} is no multiple of pp {}, which the interleaved schedule needs; vpp {vpp} is read as 1",
                file.ga, shape.pp
            ));
            vpp = 1;
        }
        let end = starts[ga - 1] + length;
        Plan { before: 0..starts[0], micro: starts.iter().map(|&s| s..s + length).collect(), after: end..n, vpp }
    }

    /// Rows of chunk `c` of a micro-batch. The rows after `embedding_layer` are divided evenly; `embedding_layer` goes with chunk 0.
    fn chunk(&self, micro: usize, c: u32) -> std::ops::Range<usize> {
        let r = &self.micro[micro];
        let first_row = |c: u32| match c {
            0 => r.start,
            _ => r.start + 1 + (r.len().saturating_sub(1) as u64 * u64::from(c) / u64::from(self.vpp)) as usize,
        };
        first_row(c)..first_row(c + 1).min(r.end)
    }
}

/// One visit of a stage to a chunk of a micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Visit {
    micro: u32,
    chunk: u32,
    forward: bool,
}

/// The visits of a stage in order, by Megatron's 1F1B schedule, interleaved for `vpp` > 1 (Narayanan et al., SC21, section 2.2).
fn visits(stage: u32, pp: u32, vpp: u32, n_micro: u32) -> Vec<Visit> {
    let total = n_micro * vpp;
    let warm_up = if vpp == 1 { pp - stage - 1 } else { (pp - stage - 1) * 2 + (vpp - 1) * pp };
    let warm_up = if vpp > 1 && n_micro == pp { total } else { warm_up.min(total) };
    let visit = |k: u32, forward: bool| {
        let (group, within) = (k / (pp * vpp), k % (pp * vpp));
        let chunk = within / pp;
        let micro = if vpp == 1 { k } else { group * pp + within % pp };
        let chunk = if vpp == 1 { 0 } else { chunk };
        Visit { micro, chunk: if forward { chunk } else { vpp - 1 - chunk }, forward }
    };
    let mut order = Vec::with_capacity(2 * total as usize);
    order.extend((0..warm_up).map(|k| visit(k, true)));
    for k in warm_up..total {
        order.push(visit(k, true));
        order.push(visit(k - warm_up, false));
    }
    order.extend((total - warm_up..total).map(|k| visit(k, false)));
    order
}

struct Builder<'a> {
    w: &'a mut Workload,
    file: &'a SimaiFile,
    shape: &'a Shape,
    stage: u32,
    program: Program,
    /// The operation that the next blocking operation waits for.
    last: Option<u32>,
    /// Number of collectives left out because their group has one rank.
    n_left_out: u32,
}

impl Builder<'_> {
    fn stage(&mut self, plan: &Plan) {
        let file = self.file;
        if file.kind == SimaiKind::Micro {
            for layer in &file.layers {
                self.part(layer, &layer.wg, DP, Phase::Other, true);
            }
            return;
        }
        if self.shape.pp == 1 {
            self.forward(0..file.layers.len());
            if file.kind != SimaiKind::Inference {
                self.backward(0..file.layers.len());
            }
            return;
        }
        self.forward(plan.before.clone());
        for visit in visits(self.stage, self.shape.pp, plan.vpp, plan.micro.len() as u32) {
            self.visit(plan, visit);
        }
        self.forward(plan.after.clone());
        self.backward(plan.after.clone());
        self.backward(plan.before.clone());
    }

    /// Adds one visit: receives from the neighbour before, computes, sends to the neighbour after.
    fn visit(&mut self, plan: &Plan, v: Visit) {
        let (stage, pp, vpp) = (self.stage, self.shape.pp, plan.vpp);
        let rows = plan.chunk(v.micro as usize, v.chunk);
        // Position of this chunk along the model, and its neighbours in either direction. Chunk c of stage s follows chunk c of stage s - 1, or for s = 0 chunk
        // c - 1 of the last stage.
        let position = v.chunk * pp + stage;
        let last = vpp * pp - 1;
        let tag = |sender: u32| (v.micro * (last + 1) + sender) * 2 + u32::from(!v.forward);
        let (before, after) = if v.forward {
            (position.checked_sub(1), (position < last).then_some(position + 1))
        } else {
            ((position < last).then_some(position + 1), position.checked_sub(1))
        };
        let name = self.w.name(if v.forward { "pp_forward" } else { "pp_backward" });
        let bytes = self.file.pp_comm;
        if let Some(before) = before.filter(|_| bytes > 0) {
            let peer = Peer { slot: PP, member: before % pp };
            let recv = self.program.push(
                OpKind::Recv { peer, bytes, tag: tag(before), dim: Dim::Pp },
                Stream::FREE,
                name,
                &[],
            );
            let deps: Vec<u32> = self.last.into_iter().chain([recv]).collect();
            self.last = Some(self.program.push(OpKind::Join, Stream::FREE, name, &deps));
        }
        if v.forward {
            self.forward(rows);
        } else {
            self.backward(rows);
        }
        if let Some(after) = after.filter(|_| bytes > 0) {
            let peer = Peer { slot: PP, member: after % pp };
            let deps: Vec<u32> = self.last.into_iter().collect();
            self.program.push(
                OpKind::Send { peer, bytes, tag: tag(position), dim: Dim::Pp },
                Stream::FREE,
                name,
                &deps,
            );
        }
    }

    /// Whether this stage runs a layer.
    fn ours(&self, layer: &SimaiLayer) -> bool {
        self.stage == 0 || layer.name != "embedding_layer"
    }

    fn forward(&mut self, rows: std::ops::Range<usize>) {
        let file = self.file;
        for layer in &file.layers[rows] {
            if self.ours(layer) {
                self.part(layer, &layer.fwd, TP, Phase::Forward, true);
            }
        }
    }

    fn backward(&mut self, rows: std::ops::Range<usize>) {
        let file = self.file;
        for i in rows.rev() {
            let layer = &file.layers[i];
            if !self.ours(layer) {
                continue;
            }
            if layer.initiates_recompute {
                let checkpoint = (0..=i).rev().find(|&c| file.layers[c].checkpoint).unwrap_or(i);
                for again in &file.layers[checkpoint..i] {
                    self.part(again, &again.fwd, TP, Phase::Backward, true);
                }
            }
            self.part(layer, &layer.ig, TP, Phase::Backward, true);
            self.part(layer, &layer.wg, DP, Phase::Backward, false);
        }
    }

    /// Adds a part: its compute, its collective, then the update time. `default` is the slot of an unsuffixed collective.
    fn part(&mut self, layer: &SimaiLayer, part: &SimaiPart, default: u16, phase: Phase, blocking: bool) {
        let name = self.w.name(&layer.name);
        if part.ps > 0 {
            let deps: Vec<u32> = self.last.into_iter().collect();
            self.last = Some(self.program.push(OpKind::Compute { ps: part.ps, phase }, Stream::COMPUTE, name, &deps));
        }
        let Some((op, slot, bytes)) = self.collective(part, default) else { return };
        let dim = self.dim(slot);
        let deps: Vec<u32> = self.last.into_iter().collect();
        let kind = OpKind::Collective { op, slot, bytes, dim, algorithm: None, shares: None };
        let mut done = self.program.push(kind, Stream::comm(dim), name, &deps);
        if layer.update_ps > 0 {
            let phase = if blocking { phase } else { Phase::Optimizer };
            done = self.program.push(OpKind::Compute { ps: layer.update_ps, phase }, Stream::FREE, name, &[done]);
        }
        if blocking {
            self.last = Some(done);
        }
    }

    fn dim(&self, slot: u16) -> Dim {
        match slot {
            TP => Dim::Tp,
            EP => Dim::Ep,
            _ => Dim::Dp,
        }
    }

    /// The collective of a part, or `None` if there is none or its group has only one rank.
    fn collective(&mut self, part: &SimaiPart, default: u16) -> Option<(CollectiveOp, u16, u64)> {
        let (op, scope, bytes) = part.comm?;
        let slot = match scope {
            SimaiScope::Default => default,
            SimaiScope::Ep => EP,
            SimaiScope::DpEp => DP_EP,
        };
        if self.shape.size(slot) > 1 {
            return Some((op, slot, bytes));
        }
        self.n_left_out += 1;
        None
    }
}
