//! Reads the outcome of each of several jobs from the rows of their experiment.
//!
//! Layer: host.

use std::sync::Arc;

use crate::outcomes::breakdown;
use crate::outcomes::outcome::{FlowOutcome, Iteration, JobOutcome, SharedLinkOutcome};
use crate::outcomes::serving_outcome;
use crate::programs::job::Job;
use crate::tables::job_rows::{JobRows, LinkShares};
use hyperfold_columns::{NEVER, Task};

/// Returns the iteration that the tasks of a program show. The program started at `start_ps`. Inference has none.
pub(crate) fn iteration(job: &Job, tasks: &[Task], start_ps: u64) -> Option<Iteration> {
    if job.serving.is_some() {
        return None;
    }
    let found = breakdown::iteration(&job.workload, &job.graph, tasks, job.warmup, start_ps)?;
    Some(Iteration::of(&job.workload, job.collective.map(|m| (m.bytes, m.bus)), found))
}

/// Returns each job's outcome. `flows` and `tasks` are the experiment's; `link_names` are the names of its link ends.
pub(crate) fn read(jobs: &[JobRows], flows: &[FlowOutcome], tasks: &[Task], link_names: &[String]) -> Vec<JobOutcome> {
    let outcome_of = |rows: &JobRows| {
        let JobRows { job, shared, .. } = rows;
        let own = &tasks[job.tasks.start as usize..job.tasks.end as usize];
        let flow_ends = flows[rows.flows.clone()].iter().map(|f| f.fct_ps.map(|fct| f.start_ps + fct));
        let task_ends = own.iter().map(|t| (t.done != NEVER).then_some(t.done));
        // A job that sends nothing ends when it starts.
        let ends: Option<Vec<u64>> = flow_ends.chain(task_ends).collect();
        let program = job.program.as_deref();
        JobOutcome {
            name: Arc::clone(&job.name),
            kind: job.kind.clone(),
            gpus: job.gpus.len() as u32,
            gpu_list: job.gpus_text(),
            placement: job.placement.clone(),
            background: job.background,
            start_ps: job.start_ps,
            end_ps: ends.map(|ends| ends.into_iter().max().unwrap_or(0).max(job.start_ps)),
            iteration: program.and_then(|program| iteration(program, own, job.start_ps)),
            serving: program.and_then(|program| serving_outcome::read(program, own, job.start_ps)).map(Arc::new),
            peak_memory_bytes: program.and_then(|program| program.peak_bytes),
            longest_collective: program.and_then(|program| program.longest),
            flows: rows.flows.clone(),
            bytes: rows.bytes,
            packet_hops: rows.packet_hops,
            shares_with: shared.other_jobs.iter().map(|(other, n)| (Arc::clone(&jobs[*other].job.name), *n)).collect(),
            shared_links: shared.links,
            shared_bytes: shared.bytes,
            busiest_shared_link: shared.busiest.and_then(|end| link_names.get(end).cloned()),
            alone: None,
            without: Vec::new(),
        }
    };
    jobs.iter().map(outcome_of).collect()
}

/// Returns shared links with their names.
pub(crate) fn shared_links(shared: &[LinkShares], link_names: &[String]) -> Vec<SharedLinkOutcome> {
    let named = |(end, jobs): &LinkShares| SharedLinkOutcome { name: link_names[*end].clone(), jobs: jobs.clone() };
    shared.iter().map(named).collect()
}

/// Returns when the last job that is not a background job has ended, ps. If all are background jobs, they count.
pub(crate) fn makespan_ps(jobs: &[JobOutcome]) -> u64 {
    let waits = |job: &&JobOutcome| !job.background || jobs.iter().all(|job| job.background);
    jobs.iter().filter(waits).filter_map(|job| job.end_ps).max().unwrap_or(0)
}
