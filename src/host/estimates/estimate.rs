//! Estimates an experiment without simulating a packet: the lowest level of detail at which a search compares candidates.
//!
//! Layer: host. Good for ranking, not for reporting: it ignores queues, congestion control, pauses and losses.
//!
//! - A model: [`job::evaluated`], a closed form. It knows no topology beyond the servers.
//! - Flows: each takes its time on an idle network, plus the extra time that its most loaded link needs for all flows on it. Start times are kept.
//! - Other programs: their graph is followed message by message ([`crate::estimates::message_estimate`]).

use std::sync::Arc;

use hyperfold_base::budget;
use hyperfold_base::units::PS_PER_S;
use hyperfold_columns::NEVER;
use hyperfold_config::spec::{Config, Source, WorkloadSection};

use crate::estimates::message_estimate::estimate_messages;
use crate::estimates::worked_out::RanksWithTasks;
use crate::outcomes::flow_info::{IdleNetwork, nvlink_ps};
use crate::outcomes::job_outcomes::iteration;
use crate::outcomes::outcome::{Ending, ExperimentOutcome, FlowOutcome};
use crate::programs::job;
use crate::setup::error::PrepareError;
use crate::setup::network::network_of;
use crate::setup::prepare::guarded;
use crate::setup::route::{Routed, routed, routed_with};

/// Estimates an experiment. Fields that an estimate cannot know are empty or zero in the outcome.
///
/// # Errors
/// The ending of an experiment that does not fit its GPUs or cannot be prepared.
pub fn estimate(config: &Config) -> Result<ExperimentOutcome, Ending> {
    let allowance = budget::total() / 2 / rayon::current_num_threads() as u64;
    Ok(guarded(config, allowance, || estimated(config))?)
}

fn estimated(config: &Config) -> Result<ExperimentOutcome, PrepareError> {
    match &config.workload {
        WorkloadSection::Program(program) => match &program.source {
            Source::Model(training) => model(config, program, training),
            Source::Inference(_) | Source::Collective { .. } | Source::File { .. } => {
                Ok(walked(&routed_with(config, RanksWithTasks::Representatives)?))
            }
        },
        _ => Ok(flows(&routed(config)?)),
    }
}

fn model(
    config: &Config,
    program: &hyperfold_config::spec::ProgramSpec,
    training: &hyperfold_config::spec::Training,
) -> Result<ExperimentOutcome, PrepareError> {
    let (network, described, bill) = network_of(config)?;
    let (iteration, peak) = job::evaluated(config, program, training, &network, described.as_ref())?;
    Ok(ExperimentOutcome {
        makespan_ps: iteration.time.total.saturating_mul(u64::from(program.warmup + program.iterations)),
        iteration: Some(iteration),
        peak_memory_bytes: Some(peak),
        bill: Some(bill),
        ..ExperimentOutcome::default()
    })
}

/// Estimates a program by walking through its task graph.
fn walked(r: &Routed) -> ExperimentOutcome {
    let Some(job) = &r.job else { return ExperimentOutcome::default() };
    let rows = estimate_messages(r, &job.graph);
    let mut outcome = ExperimentOutcome {
        bill: Some(r.bill),
        iteration: iteration(job, &rows, 0),
        peak_memory_bytes: job.peak_bytes,
        longest_collective: job.longest,
        ..ExperimentOutcome::default()
    };
    let mut flows = Vec::new();
    let idle = IdleNetwork::new(&r.network, &r.transport, &r.changes);
    for (id, (task, qp, bytes)) in job.graph.messages().enumerate() {
        let (row, ends) = (&rows[task as usize], job.graph.qps[qp as usize]);
        let ideal_ps =
            r.packet_of[qp as usize].map_or_else(|| nvlink_ps(bytes, &r.network), |p| idle.flow_ps(bytes, &r.paths[p]));
        let fct_ps = (row.done != NEVER).then(|| row.done - row.at);
        flows.push(FlowOutcome {
            id: id as u32,
            src: ends.src,
            dst: ends.dst,
            bytes,
            start_ps: row.at,
            ideal_ps,
            fct_ps,
            retransmissions: None,
        });
    }
    outcome.flows = Arc::new(flows);
    outcome.makespan_ps = rows.iter().map(|t| if t.done == NEVER { 0 } else { t.done }).max().unwrap_or(0);
    outcome
}

/// Returns the bytes that cross each arc. Sprayed flows are spread evenly over their paths.
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

/// Returns the time that `bytes` of payload take with headers at a rate, ps.
fn drain_ps(r: &Routed, bytes: u64, rate_bps: u64) -> u64 {
    let wire = u128::from(r.transport.payload + r.transport.data_overhead);
    let bits = u128::from(bytes) * 8 * wire / u128::from(r.transport.payload.max(1));
    (bits * u128::from(PS_PER_S) / u128::from(rate_bps.max(1))) as u64
}

fn flows(r: &Routed) -> ExperimentOutcome {
    let loads = loads(r);
    let mut outcome = ExperimentOutcome { bill: Some(r.bill), ..ExperimentOutcome::default() };
    let mut flows = Vec::with_capacity(r.flows.len());
    let idle = IdleNetwork::new(&r.network, &r.transport, &r.changes);
    for (f, packet) in r.flows.iter().zip(&r.packet_of) {
        let (ideal_ps, fct) = match packet {
            None => (nvlink_ps(f.bytes, &r.network), nvlink_ps(f.bytes, &r.network)),
            Some(p) => {
                let paths = &r.paths[*p].data;
                let alone = idle.flow_ps(f.bytes, &r.paths[*p]);
                let arcs = || paths.iter().flatten().copied();
                // The time alone is that over links at their own rate, as is the part of it that is taken off again.
                let share = f.bytes / paths.len() as u64;
                let own = arcs().map(|arc| drain_ps(r, share, r.network.arc_link(arc).rate_bps)).max().unwrap_or(0);
                let all = arcs().map(|arc| drain_ps(r, loads[arc as usize], r.network.arc_rate(arc))).max();
                (alone, alone + all.unwrap_or(0).saturating_sub(own))
            }
        };
        outcome.makespan_ps = outcome.makespan_ps.max(f.start_ps + fct);
        flows.push(FlowOutcome {
            id: f.id,
            src: f.src_rank,
            dst: f.dst_rank,
            bytes: f.bytes,
            start_ps: f.start_ps,
            ideal_ps,
            fct_ps: Some(fct),
            retransmissions: None,
        });
    }
    outcome.flows = Arc::new(flows);
    outcome
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use hyperfold_config::sweep::{self, SetOverrides};

    fn estimated(workload: &str) -> ExperimentOutcome {
        let text = format!(
            "name = \"t\"\nbase.cluster = {{ gpus = 8, gpus_per_server = 1 }}\nbase.workload = {{ {workload} }}\n"
        );
        let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).unwrap();
        estimate(&sweep.config(&sweep.experiments[0]).unwrap()).unwrap()
    }

    #[test]
    fn a_message_alone_takes_what_it_takes_alone() {
        for bytes in [100, 1000, 100_000] {
            let o = estimated(&format!("kind = \"collective\", op = \"send-recv\", bytes = {bytes}"));
            assert_eq!(o.flows.len(), 8);
            for f in &*o.flows {
                // Whole messages are rounded once, packets one by one.
                assert!(f.fct_ps.unwrap().abs_diff(f.ideal_ps) <= bytes / 10 + 100, "{bytes}: {f:?}");
            }
            assert!(o.iteration.is_some() && o.makespan_ps >= o.flows[0].ideal_ps);
        }
    }

    #[test]
    fn slow_links_take_longer() {
        for workload in [
            "kind = \"collective\", op = \"send-recv\", bytes = 4000000",
            "kind = \"traffic\", pattern = \"ring\", bytes = 4000000",
        ] {
            let outages = |outages: &str| format!("{workload} }}\nbase.topology = {{ outages = \"{outages}\"");
            let (healthy, slow) = (estimated(&outages("")), estimated(&outages("host0 rate 25%")));
            let ratio =
                |flow: usize| slow.flows[flow].fct_ps.unwrap() as f64 / healthy.flows[flow].fct_ps.unwrap() as f64;
            // Rank 0 sends and receives at a quarter of the rate, ranks 3 and 4 do not notice.
            assert!((3.7..4.01).contains(&ratio(0)) && ratio(3) < 1.01, "{workload}: {} {}", ratio(0), ratio(3));
            assert_eq!(slow.flows[0].ideal_ps, healthy.flows[0].ideal_ps);
        }
    }

    #[test]
    fn senders_to_one_receiver_share_its_link() {
        let o = estimated("kind = \"traffic\", pattern = \"incast\", fan_in = 7, bytes = 1000000");
        // Seven megabytes at 400 Gb/s are 140 us; headers with HPCC's telemetry are 9 %, round trips 4 us.
        assert!((152_000_000..160_000_000).contains(&o.makespan_ps), "{}", o.makespan_ps);
        let alone = estimated("kind = \"traffic\", pattern = \"permutation\", bytes = 1000000");
        assert!((20_000_000..30_000_000).contains(&alone.makespan_ps), "{}", alone.makespan_ps);
    }

    #[test]
    fn a_ring_passes_its_chunks_on_one_after_the_other() {
        let o = estimated(
            "kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", channels = 1, chunk_kib = 125, bytes = 8000000",
        );
        // 2 x 7 steps of a megabyte each over the NIC: 280 us.
        assert!((280_000_000..360_000_000).contains(&o.makespan_ps), "{}", o.makespan_ps);
        let time = o.iteration.unwrap().time.total;
        assert!(time <= o.makespan_ps && time > o.makespan_ps / 2);
    }
}
