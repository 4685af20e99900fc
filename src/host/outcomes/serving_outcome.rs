//! Reads the outcome of inference from the rows of its tasks.
//!
//! Layer: host. Does not judge which requests met their bounds: that is for layers that know the bounds.

use crate::outcomes::outcome::{PoolOutcome, RequestOutcome, ServingOutcome};
use crate::programs::job::Job;
use hyperfold_columns::{NEVER, Task};
use hyperfold_llm::workload::serving::{RoundOps, ServedOps};

/// Reads the outcome of a job that started at `start_ps`; `None`: the job is no inference.
pub(crate) fn read(job: &Job, tasks: &[Task], start_ps: u64) -> Option<ServingOutcome> {
    let serving = job.serving.as_ref()?;
    let end = |rank: u32, op: u32| {
        let done = tasks[job.graph.op(rank, op).end as usize].done;
        (done != NEVER).then(|| done.saturating_sub(start_ps))
    };
    let end_of = |served: ServedOps| end(served.rank, served.op);
    let requests = serving.requests.iter().zip(&serving.ops).zip(&serving.instances);
    let requests = requests.map(|((r, ops), &(instance, decode_instance))| RequestOutcome {
        arrival_ps: match ops.arrival {
            Some(served) => end_of(served).unwrap_or(NEVER),
            None if serving.closed => 0,
            None => r.arrival_ps,
        },
        prompt: r.prompt,
        output: r.output,
        instance,
        decode_instance,
        begin_ps: end_of(ops.begin),
        first_token_ps: end_of(ops.first_token),
        last_token_ps: end_of(ops.last_token),
        received_ps: ops.received.iter().map(|served| end_of(*served)).max().flatten(),
        transferred_bytes: ops.transferred_bytes,
        preemptions: ops.preemptions,
        cached: ops.cached,
    });
    let pools = serving.pools.iter().map(|p| {
        let busy = |r: &RoundOps| end(r.rank, r.end).zip(end(r.rank, r.begin)).map_or(0, |(end, begin)| end - begin);
        PoolOutcome {
            role: p.pool.role,
            instances: p.pool.dp,
            stages: p.pool.pp,
            gpus: p.pool.ranks(),
            rounds: p.usage.rounds,
            sequences: p.usage.sequences,
            kv_capacity_tokens: p.pool.kv_tokens,
            kv_peak_tokens: p.usage.kv_peak_tokens,
            kv_token_ps: p.usage.kv_token_ps,
            kv_blocked_ps: p.usage.kv_blocked_ps,
            busy_ps: p.rounds.iter().map(busy).sum(),
            bound: p.usage.bound,
        }
    });
    Some(ServingOutcome { requests: requests.collect(), pools: pools.collect() })
}
