//! The benchmark of one collective, as nccl-tests runs it: its programs, and the factor from algorithm bandwidth to bus bandwidth.
//!
//! Layer: host.

use hyperfold_config::spec;
use hyperfold_llm::collective::{CollectiveOp, ExpertDirection, ExpertExchange};
use hyperfold_llm::workload::program::{Dim, Group, OpKind, Peer, Program, Rank, Stream, Workload};

/// The operation of a dispatch or combine.
fn exchange(direction: ExpertDirection, experts: Option<spec::ExpertsSpec>) -> CollectiveOp {
    let Some(spec::ExpertsSpec { dispatcher, experts, top_k, groups, top_groups }) = experts else {
        return CollectiveOp::AllToAll;
    };
    let dispatcher = super::training::dispatcher(dispatcher);
    CollectiveOp::Experts(ExpertExchange { dispatcher, direction, experts, top_k, groups, top_groups })
}

/// Builds the workload that runs one collective on `n` ranks, `times` times one after another.
pub(crate) fn benchmark(
    op: spec::OpChoice,
    experts: Option<spec::ExpertsSpec>,
    bytes: u64,
    n: u32,
    times: u32,
) -> Workload {
    let mut w = Workload { groups: vec![Group { members: (0..n).collect(), dim: Dim::Other }], ..Workload::default() };
    let name = w.name(name_of(op));
    let stream = Stream::comm(Dim::Other);
    let collective =
        |op: CollectiveOp| OpKind::Collective { op, slot: 0, bytes, dim: Dim::Other, algorithm: None, shares: None };
    let kind = match op {
        spec::OpChoice::AllReduce => collective(CollectiveOp::AllReduce),
        spec::OpChoice::AllGather => collective(CollectiveOp::AllGather),
        spec::OpChoice::ReduceScatter => collective(CollectiveOp::ReduceScatter),
        spec::OpChoice::AllToAll => collective(CollectiveOp::AllToAll),
        spec::OpChoice::Broadcast => collective(CollectiveOp::Broadcast),
        spec::OpChoice::Reduce => collective(CollectiveOp::Reduce),
        spec::OpChoice::Barrier => collective(CollectiveOp::Barrier),
        spec::OpChoice::Dispatch => collective(exchange(ExpertDirection::Dispatch, experts)),
        spec::OpChoice::Combine => collective(exchange(ExpertDirection::Combine, experts)),
        spec::OpChoice::SendRecv => {
            // Every rank has its own neighbours, so each has its own program.
            for rank in 0..n {
                let mut p = Program::default();
                for _ in 0..times {
                    let first = p.ops.len() as u32;
                    let next_rank = Peer { slot: 0, member: (rank + 1) % n };
                    let previous_rank = Peer { slot: 0, member: (rank + n - 1) % n };
                    let last: &[u32] = if first == 0 { &[] } else { &[first - 1, first - 2] };
                    p.push(OpKind::Send { peer: next_rank, bytes, tag: 0, dim: Dim::Other }, Stream::FREE, name, last);
                    p.push(
                        OpKind::Recv { peer: previous_rank, bytes, tag: 0, dim: Dim::Other },
                        Stream::FREE,
                        name,
                        last,
                    );
                    p.iteration_ends.push(p.ops.len() as u32);
                }
                w.programs.push(p);
                w.ranks.push(Rank { program: rank, groups: vec![0] });
            }
            return w;
        }
    };
    let mut p = Program::default();
    for _ in 0..times {
        p.push(kind, stream, name, &[]);
        p.iteration_ends.push(p.ops.len() as u32);
    }
    w.programs.push(p);
    w.ranks = (0..n).map(|_| Rank { program: 0, groups: vec![0] }).collect();
    w
}

fn name_of(op: spec::OpChoice) -> &'static str {
    match op {
        spec::OpChoice::AllReduce => "all-reduce",
        spec::OpChoice::AllGather => "all-gather",
        spec::OpChoice::ReduceScatter => "reduce-scatter",
        spec::OpChoice::AllToAll => "all-to-all",
        spec::OpChoice::Broadcast => "broadcast",
        spec::OpChoice::Reduce => "reduce",
        spec::OpChoice::SendRecv => "send-recv",
        spec::OpChoice::Barrier => "barrier",
        spec::OpChoice::Dispatch => "dispatch",
        spec::OpChoice::Combine => "combine",
    }
}

/// Bus bandwidth over algorithm bandwidth of a collective on `n` ranks, as (numerator, denominator). Source: nccl-tests' PERFORMANCE.md.
pub(crate) fn bus_factor(op: spec::OpChoice, n: u64) -> (u64, u64) {
    match op {
        spec::OpChoice::AllReduce => (2 * (n - 1), n),
        spec::OpChoice::AllGather
        | spec::OpChoice::ReduceScatter
        | spec::OpChoice::AllToAll
        | spec::OpChoice::Dispatch
        | spec::OpChoice::Combine => (n - 1, n),
        spec::OpChoice::Broadcast | spec::OpChoice::Reduce | spec::OpChoice::SendRecv | spec::OpChoice::Barrier => {
            (1, 1)
        }
    }
}
