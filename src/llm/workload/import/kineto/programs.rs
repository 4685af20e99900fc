//! The kernels of a rank as a program.
//!
//! Layer: workload.

use super::calls::NcclCall;
use super::events::{CommArgs, GpuWork, KinetoTrace};
use super::members::ProcessGroups;
use super::order::KernelOrder;
use super::rank_program::{GroupCall, RankProgram, Seen};
use crate::collective::CollectiveOp;
use crate::workload::import::torch::{self, calls::CallKind};
use crate::workload::import::{ImportError, MAX_PS};
use crate::workload::program::{Dim, NameTable, OpKind, Peer, Phase, Program, Stream};
use hyperfold_base::units::PS_PER_NS;

/// Most streams with work: as many as a program has, without copies and what has no stream.
const MAX_STREAMS: usize = torch::MAX_COMM_STREAMS + 1;

/// Makes the program of a rank.
///
/// # Errors
/// The trace has no kernels, those of several GPUs, or an NCCL kernel that lacks what a workload needs.
pub(super) fn rank(
    path: &str,
    rank: Option<u32>,
    trace: &KinetoTrace,
    groups: &mut ProcessGroups,
    names: &mut NameTable,
) -> Result<RankProgram, ImportError> {
    let Some(first) = trace.work.first() else {
        return Err(ImportError::path(path, "it has no GPU kernels; profile with ProfilerActivity.CUDA"));
    };
    if let Some(other) = trace.work.iter().find(|w| w.device != first.device) {
        let problem = format!(
            "it has kernels of GPU {} and of GPU {}; one process for each GPU would be right",
            first.device, other.device
        );
        return Err(ImportError::path(path, problem));
    }
    let order = KernelOrder::of(&trace.work, &trace.waits);
    if order.streams.len() > MAX_STREAMS {
        let problem = format!("it has work on {} streams; at most {MAX_STREAMS} would be right", order.streams.len());
        return Err(ImportError::path(path, problem));
    }
    let mut builder = RankBuilder {
        path,
        rank,
        trace,
        streams: streams(&trace.work, &order),
        names: Names { kernels: names.of("kernels"), host: names.of("host") },
        out: RankProgram {
            path: path.to_string(),
            rank,
            world_size: trace.world_size,
            program: Program::default(),
            slots: Vec::new(),
            calls: Vec::new(),
            has_messages: false,
            uneven: 0,
            seen: Seen::default(),
        },
        op_of: vec![0; trace.work.len()],
        open: vec![None; order.streams.len()],
        host_ns: 0,
    };
    groups.begin_trace();
    builder.all(&order, groups, names)?;
    let mut out = builder.out;
    out.program.iteration_ends = vec![out.program.ops.len() as u32];
    let span_ns = order.times.iter().map(|t| t.1).max().unwrap_or(0);
    let n_kernels = trace.work.len() as u64;
    out.seen =
        Seen { n_kernels, span_ns, host_ns: builder.host_ns, by_events: order.by_events, overlaps: order.overlaps };
    Ok(out)
}

/// The program's stream of each stream of the trace: the one with most kernels' time computes, the others communicate.
fn streams(work: &[GpuWork], order: &KernelOrder) -> Vec<Stream> {
    let mut busy_ns = vec![0u64; order.streams.len()];
    for (i, w) in work.iter().enumerate().filter(|(_, w)| w.call.is_none()) {
        busy_ns[order.lane[i] as usize] += w.end_ns - w.begin_ns;
    }
    let computing = (0..busy_ns.len()).rev().max_by_key(|lane| busy_ns[*lane]).unwrap_or(0);
    let mut free = torch::comm_streams();
    let stream = |lane| if lane == computing { Stream::COMPUTE } else { free.next().expect("streams were counted") };
    (0..busy_ns.len()).map(stream).collect()
}

/// Names of ops that several kernels share.
struct Names {
    kernels: u32,
    host: u32,
}

struct RankBuilder<'a> {
    path: &'a str,
    rank: Option<u32>,
    trace: &'a KinetoTrace,
    streams: Vec<Stream>,
    names: Names,
    out: RankProgram,
    /// For each work, the op that it is part of.
    op_of: Vec<u32>,
    /// For each stream, the op to which a further kernel may be added.
    open: Vec<Option<u32>>,
    /// Idle time of streams that nothing in the trace explains.
    host_ns: u64,
}

impl RankBuilder<'_> {
    fn all(
        &mut self,
        order: &KernelOrder,
        groups: &mut ProcessGroups,
        names: &mut NameTable,
    ) -> Result<(), ImportError> {
        let mut is_target = vec![false; self.trace.work.len()];
        order.waits.iter().for_each(|(_, target)| is_target[*target as usize] = true);
        let mut waits = order.waits.as_slice();
        for (i, work) in self.trace.work.iter().enumerate() {
            let n = waits.iter().take_while(|(waiting, _)| *waiting as usize == i).count();
            let mut deps: Vec<u32> = waits[..n].iter().map(|(_, target)| self.op_of[*target as usize]).collect();
            deps.sort_unstable();
            deps.dedup();
            waits = &waits[n..];
            let lane = order.lane[i] as usize;
            let (begin_ns, end_ns) = order.times[i];
            let host_ns = begin_ns - order.ready_ns[i];
            self.host_ns += host_ns;
            self.op_of[i] = match &work.call {
                None => self.kernel(lane, host_ns + (end_ns - begin_ns), &deps),
                Some(args) => {
                    self.call(lane, host_ns, end_ns - begin_ns, args, &deps, groups, names).map_err(|why| {
                        let problem = format!("event at ts {}, `{}`: {why}", args.ts_us, args.kernel);
                        ImportError::path(self.path, problem)
                    })?
                }
            };
            if is_target[i] {
                // Others wait for the end of this kernel, so that no further one may be added to its op.
                self.open[lane] = None;
            }
        }
        Ok(())
    }

    /// Adds a kernel to the last op of its stream, or as an op of its own.
    fn kernel(&mut self, lane: usize, ns: u64, deps: &[u32]) -> u32 {
        let ps = ns.saturating_mul(PS_PER_NS).min(MAX_PS);
        if let (Some(op_idx), true) = (self.open[lane], deps.is_empty())
            && let OpKind::Compute { ps: sum, .. } = &mut self.out.program.ops[op_idx as usize].kind
            && *sum + ps <= MAX_PS
        {
            *sum += ps;
            return op_idx;
        }
        let kind = if ps == 0 { OpKind::Join } else { OpKind::Compute { ps, phase: Phase::Other } };
        let op_idx = self.out.program.push(kind, self.streams[lane], self.names.kernels, deps);
        self.open[lane] = Some(op_idx);
        op_idx
    }

    #[expect(clippy::too_many_arguments, reason = "a call has a time, arguments and an order, and names what it meets")]
    fn call(
        &mut self,
        lane: usize,
        host_ns: u64,
        ns: u64,
        args: &CommArgs,
        deps: &[u32],
        groups: &mut ProcessGroups,
        names: &mut NameTable,
    ) -> Result<u32, String> {
        let call = NcclCall::of(args)?;
        let (group, members) = groups.of(args, self.trace, self.rank)?;
        if members == 1 {
            // Nobody else takes part: a copy.
            return Ok(self.kernel(lane, host_ns + ns, deps));
        }
        let slot = self.slot_of(group)?;
        let kind = match call.kind {
            CallKind::Collective(op) => {
                let bytes = call.collective_bytes(members as u64);
                let bytes = bytes.ok_or_else(|| format!("{members} ranks gather more than a petabyte"))?;
                // A call without data still waits for all members.
                let bytes = if op == CollectiveOp::Barrier { 0 } else { bytes.max(1) };
                OpKind::Collective { op, slot, bytes, dim: Dim::Other, algorithm: None, shares: None }
            }
            CallKind::Send | CallKind::Recv => {
                let peer = self.peer(slot, args, call.kind, groups.members(group))?;
                let (bytes, tag, dim) = (call.message_bytes().max(1), 0, Dim::Other);
                self.out.has_messages = true;
                match call.kind {
                    CallKind::Send => OpKind::Send { peer, bytes, tag, dim },
                    _ => OpKind::Recv { peer, bytes, tag, dim },
                }
            }
        };
        let mut deps = deps;
        let stream = self.streams[lane];
        if host_ns > 0 {
            let ps = host_ns.saturating_mul(PS_PER_NS).min(MAX_PS);
            let phase = Phase::Other;
            self.out.program.push(OpKind::Compute { ps, phase }, stream, self.names.host, deps);
            deps = &[];
        }
        let name = names.of(args.collective.as_deref().unwrap_or("collective"));
        let op_idx = self.out.program.push(kind, stream, name, deps);
        self.open[lane] = None;
        if let OpKind::Collective { op, slot, bytes, .. } = kind {
            self.out.uneven += u64::from(call.is_uneven && op == CollectiveOp::AllToAll);
            let (in_bytes, sequence) = (call.in_bytes, args.sequence);
            self.out.calls.push(GroupCall { slot, op, bytes, in_bytes, sequence, op_idx });
        }
        Ok(op_idx)
    }

    fn slot_of(&mut self, group: u32) -> Result<u16, String> {
        let slots = &mut self.out.slots;
        let slot = slots.iter().position(|g| *g == group).unwrap_or_else(|| {
            slots.push(group);
            slots.len() - 1
        });
        u16::try_from(slot).map_err(|_| "its rank is in more than 65,536 process groups".to_string())
    }

    /// The other end of a message.
    fn peer(&self, slot: u16, args: &CommArgs, kind: CallKind, members: &[u32]) -> Result<Peer, String> {
        let (field, rank) = if kind == CallKind::Send { ("Dst Rank", args.target) } else { ("Src Rank", args.source) };
        let rank = rank.ok_or_else(|| format!("it has no `{field}`; a message needs its other end"))?;
        let member = members.iter().position(|m| u64::from(*m) == rank && Some(*m) != self.rank);
        let member =
            member.ok_or_else(|| format!("{field} {rank} is not another rank of its group `{}`", args.group_name))?;
        Ok(Peer { slot, member: member as u32 })
    }
}
