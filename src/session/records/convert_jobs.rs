//! Converts outcomes of several jobs to rows of `jobs.csv` and `shared_links.csv`.
//!
//! Layer: session.

use std::sync::Arc;

use crate::records::convert_iteration::measured_iteration;
use hyperfold_host::{ExperimentOutcome, JobOutcome, JobTimes, SharedLinkOutcome};
use hyperfold_results::{Cell, ExperimentRecord, JobRecord, Ps, SharedLinkRecord, fct_stats};

/// Returns a row for each job of an experiment; none if there is one workload.
pub(crate) fn jobs(outcome: &ExperimentOutcome) -> Vec<JobRecord> {
    outcome.jobs.iter().map(|job| row(outcome, job)).collect()
}

/// Returns a row for each shared link and job that sends over it.
pub(crate) fn shared_links(outcome: &ExperimentOutcome) -> Vec<SharedLinkRecord> {
    let name = |job: usize| &*outcome.jobs[job].name;
    let rows_of = |link: &SharedLinkOutcome| -> Vec<SharedLinkRecord> {
        let all: u64 = link.jobs.iter().map(|(_, bytes)| bytes).sum();
        let row = |&(own, job_bytes): &(usize, u64)| {
            let others = link.jobs.iter().filter(|(job, _)| *job != own).map(|(job, _)| name(*job));
            SharedLinkRecord {
                link: link.name.clone(),
                job: name(own).to_string(),
                job_bytes,
                other_bytes: all - job_bytes,
                shared_with: others.collect::<Vec<_>>().join(" "),
            }
        };
        link.jobs.iter().map(row).collect()
    };
    outcome.shared_links.iter().flat_map(rows_of).collect()
}

fn row(outcome: &ExperimentOutcome, job: &JobOutcome) -> JobRecord {
    // Columns of an iteration are the same as in results.csv.
    let mut columns = ExperimentRecord::new(0, String::new(), String::new(), 0, 0, Vec::new());
    if let Some(iteration) = &job.iteration {
        measured_iteration(&mut columns, iteration);
    }
    let flows = &outcome.flows[job.flows.clone()];
    let fct = fct_stats(flows.iter().filter_map(|f| f.fct_ps.map(|fct| (fct, f.ideal_ps))));
    let shares: Vec<String> = job.shares_with.iter().map(|(name, links)| format!("{name}:{links}")).collect();
    let mut record = JobRecord {
        job: job.name.to_string(),
        kind: job.kind.clone(),
        background: job.background,
        gpus: u64::from(job.gpus),
        gpu_list: job.gpu_list.clone(),
        placement: job.placement.clone(),
        start: Ps(job.start_ps),
        end: job.end_ps.map(Ps),
        iteration_time: columns.iteration_time,
        compute: columns.compute,
        comm_exposed_tp: columns.comm_exposed_tp,
        comm_exposed_pp: columns.comm_exposed_pp,
        comm_exposed_dp: columns.comm_exposed_dp,
        comm_exposed_ep: columns.comm_exposed_ep,
        comm_exposed_cp: columns.comm_exposed_cp,
        bubble: columns.bubble,
        optimizer: columns.optimizer,
        other: columns.other,
        critical_rank: columns.critical_rank,
        tokens_per_s: columns.tokens_per_s,
        mfu: columns.mfu,
        algbw_gbps: columns.algbw_gbps,
        busbw_gbps: columns.busbw_gbps,
        peak_memory_bytes: job.peak_memory_bytes,
        algorithm: job.longest_collective.map(|l| l.algorithm.name().to_string()),
        first_flow: flows.first().map(|f| u64::from(f.id)),
        flows: flows.len() as u64,
        bytes: job.bytes,
        fct_mean: fct.map(|s| s.mean),
        fct_p50: fct.map(|s| s.p50),
        fct_p99: fct.map(|s| s.p99),
        fct_max: fct.map(|s| s.max),
        packet_hops: job.packet_hops,
        shares_with: shares.join(" "),
        shared_links: u64::from(job.shared_links),
        shared_bytes: job.shared_bytes,
        busiest_shared_link: job.busiest_shared_link.clone(),
        alone_makespan: job.alone.and_then(|alone| alone.makespan_ps).map(Ps),
        alone_iteration_time: job.alone.and_then(|alone| alone.iteration_ps).map(Ps),
        slowed_by: String::new(),
    };
    let factor = |(other, times): &(Arc<str>, JobTimes)| {
        let factor = record.slowdown_against(times.iteration_ps.map(Ps), times.makespan_ps.map(Ps))?;
        Some(format!("{other}:{}", Cell::from(factor)))
    };
    record.slowed_by = job.without.iter().filter_map(factor).collect::<Vec<_>>().join(" ");
    record
}
