//! What an experiment comes to, without simulating a packet: the lowest level of detail at which a search compares candidates.
//!
//! Layer: batch. Good for ranking, not for reporting: queues, congestion control, pauses and losses do not exist here.
//!
//! - A model: [`job::evaluated`], a closed form. It knows no topology beyond the servers.
//! - Flows: each takes as long as its most loaded link needs for all that crosses it, at least what it takes alone. Starts are kept.
//! - Other programs: their graph is walked message by message ([`super::walk`]).

use crate::columns::NEVER;
use crate::spec::{Config, Source, Workload};
use crate::units::PS_PER_S;

use super::job;
use super::outcome::{Ending, FlowOutcome, Outcome, iteration};
use super::prepare::{PrepareError, Routed, ideal_ps, network_of, nvlink_ps, routed};
use super::walk::walk;

/// Estimates an experiment. What an estimate cannot know is empty or zero in the outcome.
///
/// # Errors
/// As an experiment ends that does not fit its GPUs or cannot be prepared.
pub fn estimate(config: &Config) -> Result<Outcome, Ending> {
    match &config.workload {
        Workload::Program(program) => match &program.source {
            Source::Model(training) => Ok(model(config, program, training)?),
            Source::Collective { .. } | Source::File { .. } => Ok(walked(&routed(config)?)),
        },
        _ => Ok(flows(&routed(config)?)),
    }
}

fn model(config: &Config, program: &crate::spec::Program, training: &crate::spec::Training) -> Result<Outcome, PrepareError> {
    let (network, described, bill) = network_of(config)?;
    let (iteration, peak) = job::evaluated(config, program, training, &network, described.as_ref())?;
    Ok(Outcome {
        makespan_ps: iteration.time.total.saturating_mul(u64::from(program.warmup + program.iterations)),
        iteration: Some(iteration),
        peak_memory_bytes: Some(peak),
        bill: Some(bill),
        ..Outcome::default()
    })
}

/// What a program's graph comes to when it is walked through.
fn walked(r: &Routed) -> Outcome {
    let Some(job) = &r.job else { return Outcome::default() };
    let rows = walk(r, &job.graph);
    let mut outcome = Outcome { bill: Some(r.bill), iteration: iteration(job, &rows), peak_memory_bytes: job.peak_bytes, ..Outcome::default() };
    for (id, (task, qp, bytes)) in job.graph.messages().enumerate() {
        let (row, ends) = (&rows[task as usize], job.graph.qps[qp as usize]);
        let ideal_ps = r.packet_of[qp as usize].map_or_else(|| nvlink_ps(bytes, &r.network), |p| ideal_ps(bytes, &r.network, &r.paths[p], &r.transport));
        let fct_ps = (row.done != NEVER).then(|| row.done - row.at);
        outcome.flows.push(FlowOutcome { id: id as u32, src: ends.src, dst: ends.dst, bytes, start_ps: row.at, ideal_ps, fct_ps });
    }
    outcome.makespan_ps = rows.iter().map(|t| if t.done == NEVER { 0 } else { t.done }).max().unwrap_or(0);
    outcome
}

/// Bytes that cross each arc; sprayed flows are spread evenly.
fn loads(r: &Routed) -> Vec<u64> {
    let mut loads = vec![0u64; 2 * r.network.links.len()];
    let mut add = |paths: usize, bytes: u64| {
        let data = &r.paths[paths].data;
        for path in data {
            path.iter().for_each(|&arc| loads[arc as usize] += bytes / data.len() as u64);
        }
    };
    r.flows.iter().zip(&r.packet_of).filter_map(|(f, p)| Some(((*p)?, f.bytes))).for_each(|(p, bytes)| add(p, bytes));
    loads
}

/// Time that an arc's load takes, with headers.
fn drain_ps(r: &Routed, loads: &[u64], arc: usize) -> u64 {
    let wire = u128::from(r.transport.payload + r.transport.data_overhead);
    let bits = u128::from(loads[arc]) * 8 * wire / u128::from(r.transport.payload.max(1));
    (bits * u128::from(PS_PER_S) / u128::from(r.network.links[arc / 2].rate_bps.max(1))) as u64
}

fn flows(r: &Routed) -> Outcome {
    let loads = loads(r);
    let mut outcome = Outcome { bill: Some(r.bill), ..Outcome::default() };
    for (f, packet) in r.flows.iter().zip(&r.packet_of) {
        let (ideal_ps, fct) = match packet {
            None => (nvlink_ps(f.bytes, &r.network), nvlink_ps(f.bytes, &r.network)),
            Some(p) => {
                let alone = ideal_ps(f.bytes, &r.network, &r.paths[*p], &r.transport);
                let busiest = r.paths[*p].data.iter().flatten().map(|&arc| drain_ps(r, &loads, arc as usize)).max().unwrap_or(0);
                (alone, alone.max(busiest))
            }
        };
        outcome.makespan_ps = outcome.makespan_ps.max(f.start_ps + fct);
        outcome.flows.push(FlowOutcome { id: f.id, src: f.src_rank, dst: f.dst_rank, bytes: f.bytes, start_ps: f.start_ps, ideal_ps, fct_ps: Some(fct) });
    }
    outcome
}
