//! Gives GPUs back to jobs that went on with fewer GPUs than they asked for.
//!
//! Layer: cluster. A job grows in its place in the queue: after the jobs that wait before it, and before those behind it. It takes free GPUs, up to all that
//! it asked for, saves its state, and stands still for as long as after a failure.

use std::collections::BTreeMap;

use super::pass::may_start;
use crate::placement::{Placement, Request};
use crate::servers::GpuShare;
use crate::state::ClusterState;
use crate::stop_check::StopCheck;
use hyperfold_config::spec::GrowBack;
use hyperfold_llm::workload::random::RandomStream;

/// Grows every job that may grow now. Ends early if `stop` fires.
pub(crate) fn grow(state: &mut ClusterState, placement: &dyn Placement, stop: &StopCheck) {
    if state.run.grow == GrowBack::Never || state.shrunk.is_empty() || state.servers.free_gpus() == 0 {
        return;
    }
    let first = state.queue.iter().find(|(_, job)| may_start(state, *job)).copied();
    let goes_before = |entry: &&_| first.is_none_or(|first| **entry < first);
    let shrunk: Vec<u32> = state.shrunk.iter().take_while(goes_before).map(|(_, job)| *job).collect();
    for job in shrunk {
        if stop.step() {
            return;
        }
        if state.run.grow == GrowBack::AtOnce || state.at_checkpoint.contains(&job) {
            grow_job(state, placement, job);
        }
    }
}

fn grow_job(state: &mut ClusterState, placement: &dyn Placement, job: u32) {
    let job_state = &state.job_states[job as usize];
    let writes_ms = if state.run.grow == GrowBack::AtOnce { job_state.progress.cost_ms() } else { 0 };
    let stands_ms = state.run.checkpoint.restart_ms + writes_ms;
    let mut grew = false;
    // Scattered free GPUs are added piece by piece.
    while let Some(more) = pieces(state, placement, job) {
        let mut gpus: BTreeMap<u32, u64> = BTreeMap::new();
        for share in state.job_states[job as usize].shares.iter().chain(&more) {
            *gpus.entry(share.server).or_default() |= share.gpus;
        }
        let new_shares = gpus.into_iter().map(|(server, gpus)| GpuShare { server, gpus }).collect();
        state.relocate(job, new_shares, true, stands_ms);
        grew = true;
    }
    state.grows += u64::from(grew);
}

/// Free GPUs for a job that has too few, at most as many as it lacks. A job of a class gets GPUs for as many replicas as possible. Other jobs get all that
/// they lack, else whole servers, else what one server has. `None`: nothing fits.
fn pieces(state: &ClusterState, placement: &dyn Placement, job: u32) -> Option<Vec<GpuShare>> {
    let (servers, job_state) = (&state.servers, &state.job_states[job as usize]);
    let lacks = u64::from(state.jobs[job as usize].gpus - job_state.held).min(servers.free_gpus());
    if let (Some(class), Some(measured)) = (state.jobs[job as usize].class, &state.measured) {
        let mut sizes = measured
            .sizes(class)
            .rev()
            .filter(|size| *size > job_state.held && u64::from(size - job_state.held) <= lacks);
        return sizes.find_map(|size| placed(state, placement, job, size - job_state.held));
    }
    let per_server = servers.per_server();
    let whole = servers.with_free(per_server).len() as u64 * u64::from(per_server);
    let max_on_one_server = (1..=per_server).rev().find(|&n| !servers.with_free(n).is_empty()).unwrap_or(0);
    for gpus in [lacks, whole, u64::from(max_on_one_server)].map(|n| n.min(lacks) as u32) {
        if gpus > 0
            && let Some(shares) = placed(state, placement, job, gpus)
        {
            return Some(shares);
        }
    }
    None
}

fn placed(state: &ClusterState, placement: &dyn Placement, job: u32, gpus: u32) -> Option<Vec<GpuShare>> {
    let random = RandomStream::new(state.run.failures.seed, (u64::from(job) << 20) + state.grows + (1 << 61));
    let mut request = Request { gpus, rack: &state.machine.rack, kept: None, random };
    placement.place(&state.servers, &mut request)
}
