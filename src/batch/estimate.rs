//! What an experiment comes to, without simulating a packet: the lowest level of detail at which a search compares candidates.
//!
//! Layer: batch. Good for ranking, not for reporting: queues, congestion control, pauses and losses do not exist here.
//!
//! - A model: [`job::evaluated`], a closed form. It knows no topology beyond the servers.
//! - Flows: each takes as long as its most loaded link needs for all that crosses it, at least what it takes alone. Starts are kept.
//! - One collective: what the cost model says of it on an idle cluster, and what the most loaded link adds to that beyond the most loaded NIC.
//! - Other programs: their graph is run with every communication at what it takes on an idle cluster.

use crate::engine::EngineError;
use crate::engine::fold::FoldEngine;
use crate::spec::{Analytic, Config, Source, Workload};
use crate::topology::NodeKind;
use crate::units::PS_PER_S;

use super::job;
use super::outcome::{Ending, FlowOutcome, Outcome};
use super::prepare::{PrepareError, Routed, ideal_ps, network_of, nvlink_ps, routed};
use super::runner::{News, RunOptions, Task, run};

/// Estimates an experiment. What an estimate cannot know is empty or zero in the outcome.
///
/// # Errors
/// As an experiment ends that does not fit its GPUs or cannot be prepared.
pub fn estimate(config: &Config) -> Result<Outcome, Ending> {
    match &config.workload {
        Workload::Program(program) => match &program.source {
            Source::Model(training) => Ok(model(config, program, training)?),
            Source::Collective { .. } => {
                let mut outcome = idle(config)?;
                if let Some(i) = &mut outcome.iteration {
                    let added = contention_ps(&routed(config)?) / u64::from(program.warmup + program.iterations).max(1);
                    i.time.total += added;
                    i.time.exposed[5] += added;
                    outcome.makespan_ps += added * u64::from(program.warmup + program.iterations);
                }
                Ok(outcome)
            }
            Source::File { .. } => idle(config),
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

/// A program's graph, every communication at its cost on an idle cluster.
fn idle(config: &Config) -> Result<Outcome, Ending> {
    let mut config = config.clone();
    if let Workload::Program(program) = &mut config.workload {
        program.communication.analytic = Analytic::ALL;
    }
    let mut result = None;
    let task = Task { exp_id: 0, config };
    let tell = &mut |news: News| -> Result<(), EngineError> {
        if let News::Ended(ended) = news {
            result = Some(ended.result);
        }
        Ok(())
    };
    run(std::iter::once(task), Box::new(FoldEngine::default()), &RunOptions::default(), || false, tell).map_err(|e| Ending::Failed(e.to_string()))?;
    result.unwrap_or_else(|| Err(Ending::Failed("it ended without a result".to_string())))
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
    match &r.job {
        Some(job) => job.graph.messages().filter_map(|(_, qp, bytes)| Some((r.packet_of[qp as usize]?, bytes))).for_each(|(p, bytes)| add(p, bytes)),
        None => r.flows.iter().zip(&r.packet_of).filter_map(|(f, p)| Some(((*p)?, f.bytes))).for_each(|(p, bytes)| add(p, bytes)),
    }
    loads
}

/// Time that an arc's load takes, with headers.
fn drain_ps(r: &Routed, loads: &[u64], arc: usize) -> u64 {
    let wire = u128::from(r.transport.payload + r.transport.data_overhead);
    let bits = u128::from(loads[arc]) * 8 * wire / u128::from(r.transport.payload.max(1));
    (bits * u128::from(PS_PER_S) / u128::from(r.network.links[arc / 2].rate_bps.max(1))) as u64
}

/// What the most loaded link takes longer than the most loaded link of a host.
fn contention_ps(r: &Routed) -> u64 {
    let loads = loads(r);
    let host = |arc: usize| [r.network.arc_from(arc as u32), r.network.arc_to(arc as u32)].iter().any(|&n| r.network.nodes[n as usize].kind == NodeKind::Host);
    let (mut hosts, mut inner) = (0, 0);
    for arc in (0..loads.len()).filter(|&a| loads[a] > 0) {
        let ps = drain_ps(r, &loads, arc);
        let most = if host(arc) { &mut hosts } else { &mut inner };
        *most = (*most).max(ps);
    }
    u64::saturating_sub(inner, hosts)
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
