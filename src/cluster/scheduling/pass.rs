//! Scheduling pass: looks at the queue and starts the jobs that may start now.
//!
//! Layer: cluster. The pass is the same for every scheduler and placement. Under backfill, the first job that has to wait gets a reservation: the time at
//! which enough GPUs are free, by the estimates of the running jobs, and the servers that it will get then. Other jobs may start if they end before that
//! time, by their estimates, or if they leave these servers alone. This is EASY backfill (Lifka 1995; Mu'alem and Feitelson 2001).

use std::ops::Bound;

use super::defragment;
use super::scratch::{Scratch, is_empty_now};
use crate::placement::{Placement, Request};
use crate::queue_order::Behind;
use crate::servers::{GpuShare, Servers};
use crate::state::ClusterState;
use crate::stop_check::StopCheck;
use hyperfold_llm::workload::random::RandomStream;

/// Reservation for the first job of the queue.
struct Reservation {
    /// Time in ms at which enough GPUs are free, if all estimates are right. `u64::MAX`: not before something is repaired.
    at_ms: u64,
    /// Whether each server is reserved. `None`: the placement does not take whole servers.
    kept: Option<Vec<bool>>,
    /// Reserved servers that are empty already.
    kept_empty: Vec<u32>,
    /// GPUs that are free at that time beside those of the reservation.
    left_over: u64,
    /// Free GPUs at that time, before the first job of the queue takes its own.
    then: Scratch,
}

impl Reservation {
    /// Handles a started job that ends before the reservation. Servers of it that will be empty again can be reserved instead of servers that are empty now,
    /// so other jobs can have the latter.
    fn ends_before(&mut self, servers: &Servers, shares: &[GpuShare]) {
        let Some(kept) = &mut self.kept else { return };
        for share in shares.iter().filter(|share| self.then.is_empty(share.server)) {
            if kept[share.server as usize] {
                continue;
            }
            while let Some(empty) = self.kept_empty.pop() {
                if is_empty_now(servers, empty) {
                    kept[empty as usize] = false;
                    kept[share.server as usize] = true;
                    break;
                }
            }
        }
    }
}

/// GPUs for a waiting job. `None`: it cannot have them now.
fn find(state: &ClusterState, placement: &dyn Placement, job: u32, kept: Option<&[bool]>) -> Option<Vec<GpuShare>> {
    let gpus = state.jobs[job as usize].gpus;
    if u64::from(gpus) > state.servers.free_gpus() {
        return None;
    }
    // Each start of each job has its own random stream.
    let starts = state.job_states[job as usize].restarts + state.job_states[job as usize].preemptions;
    let random = RandomStream::new(state.run.failures.seed, (u64::from(job) << 20) + starts + (1 << 60));
    placement.place(&state.servers, &mut Request { gpus, rack: &state.machine.rack, kept, random })
}

/// Reserves GPUs for the first waiting job, from the ends of the running jobs by their estimates. Jobs that end at the same time end together. A job that has
/// outrun its estimate is believed to end at once.
fn reserve(state: &ClusterState, placement: &dyn Placement, job: u32) -> Reservation {
    let gpus = state.jobs[job as usize].gpus;
    let whole = placement.whole_servers();
    let mut then = Scratch::of(&state.servers);
    let mut at_ms = u64::MAX;
    let mut ends = state.believed_ends.iter().map(|&(ends, running)| (ends.max(state.now_ms), running)).peekable();
    while let Some((end, running)) = ends.next() {
        then.give(&state.job_states[running as usize].shares);
        let is_last_of_instant = ends.peek().is_none_or(|next| next.0 > end);
        if is_last_of_instant && then.fits(gpus, whole) {
            at_ms = end;
            break;
        }
    }
    if at_ms == u64::MAX {
        return Reservation { at_ms, kept: None, kept_empty: Vec::new(), left_over: 0, then };
    }
    let servers = if whole { then.servers_for(gpus, &state.servers) } else { Vec::new() };
    let kept = whole.then(|| {
        let mut kept = vec![false; state.servers.len() as usize];
        servers.iter().for_each(|&s| kept[s as usize] = true);
        kept
    });
    let kept_empty = servers.into_iter().filter(|&s| is_empty_now(&state.servers, s)).collect();
    Reservation { at_ms, kept, kept_empty, left_over: then.total() - u64::from(gpus), then }
}

/// Preempts jobs with a lower priority until `job` fits: the lowest priority first, then the latest start. Returns false, and preempts none, if it would not
/// fit.
fn preempt(state: &mut ClusterState, placement: &dyn Placement, job: u32) -> bool {
    let asked = &state.jobs[job as usize];
    let mut lower: Vec<u32> =
        state.running.iter().map(|(_, j)| *j).filter(|j| state.jobs[*j as usize].priority < asked.priority).collect();
    lower.sort_by_key(|&j| {
        let started = state.job_states[j as usize].first_start_ms.unwrap_or(0);
        (state.jobs[j as usize].priority, std::cmp::Reverse(started), std::cmp::Reverse(j))
    });
    let mut then = Scratch::of(&state.servers);
    let mut victims = Vec::new();
    for victim in lower {
        if then.fits(asked.gpus, placement.whole_servers()) {
            break;
        }
        then.give(&state.job_states[victim as usize].shares);
        victims.push(victim);
    }
    if victims.is_empty() || !then.fits(asked.gpus, placement.whole_servers()) {
        return false;
    }
    let restart_ms = state.run.checkpoint.restart_ms;
    for victim in victims {
        state.job_states[victim as usize].preemptions += 1;
        state.send_back(victim, false, restart_ms);
    }
    true
}

/// Whether a waiting job could start now if there were GPUs for it.
pub(crate) fn may_start(state: &ClusterState, job: u32) -> bool {
    may_start_ms(state, job) <= state.now_ms && state.quotas.allows(job, state.jobs[job as usize].gpus)
}

/// Earliest time in ms at which a job may start. Jobs of low priority are delayed.
fn may_start_ms(state: &ClusterState, job: u32) -> u64 {
    let asked = &state.jobs[job as usize];
    asked.submit_ms + if asked.priority == 0 { state.run.scheduler.low_delay_ms } else { 0 }
}

/// Starts all jobs that may start now. Ends early if `stop` fires.
pub(crate) fn schedule(state: &mut ClusterState, placement: &dyn Placement, stop: &StopCheck) {
    state.stranded = 0;
    let mut last = None;
    let keys = &state.run.scheduler;
    // Starts jobs in the order of the queue until one has to wait.
    let blocked = loop {
        let lower_bound = last.map_or(Bound::Unbounded, Bound::Excluded);
        let Some(&next) = state.queue.range((lower_bound, Bound::Unbounded)).next() else { return };
        let job = next.1;
        let gpus = state.jobs[job as usize].gpus;
        last = Some(next);
        if stop.step() {
            return;
        }
        if !may_start(state, job) {
            continue;
        }
        if let Some(shares) = find(state, placement, job, None) {
            state.start(job, shares);
            continue;
        }
        let preempts = keys.preempt && preempt(state, placement, job);
        let moves = !preempts && keys.defragment && defragment::make_room(state, gpus, stop);
        if (preempts || moves)
            && let Some(shares) = find(state, placement, job, None)
        {
            state.start(job, shares);
            continue;
        }
        break next;
    };
    let gpus = u64::from(state.jobs[blocked.1 as usize].gpus);
    if state.servers.free_gpus() >= gpus {
        state.stranded = state.servers.free_gpus();
    }
    if state.behind == Behind::Waits || state.servers.free_gpus() == 0 {
        return;
    }
    let behind: Vec<u32> =
        state.queue.range((Bound::Excluded(blocked), Bound::Unbounded)).take(keys.depth).map(|(_, job)| *job).collect();
    if state.behind == Behind::Overtakes {
        for job in behind {
            if stop.step() || state.servers.free_gpus() == 0 {
                break;
            }
            start_if(state, placement, job, None);
        }
    } else if behind.iter().any(|job| u64::from(state.jobs[*job as usize].gpus) <= state.servers.free_gpus()) {
        let mut reservation = reserve(state, placement, blocked.1);
        for job in behind {
            if stop.step() || state.servers.free_gpus() == 0 {
                break;
            }
            backfill(state, placement, job, &mut reservation);
        }
    }
    if state.servers.free_gpus() < gpus {
        state.stranded = 0;
    } else {
        state.stranded = state.servers.free_gpus();
    }
}

fn start_if(state: &mut ClusterState, placement: &dyn Placement, job: u32, kept: Option<&[bool]>) -> bool {
    if !may_start(state, job) {
        return false;
    }
    let found = find(state, placement, job, kept);
    found.map(|shares| state.start(job, shares)).is_some()
}

fn backfill(state: &mut ClusterState, placement: &dyn Placement, job: u32, reservation: &mut Reservation) {
    let asked = &state.jobs[job as usize];
    let ends = state.believed_ms(job).map(|ms| state.now_ms.saturating_add(ms));
    // If it is not known when the first job can start, no job can delay it.
    if reservation.at_ms == u64::MAX || ends.is_some_and(|ends| ends <= reservation.at_ms) {
        if start_if(state, placement, job, None) {
            reservation.ends_before(&state.servers, &state.job_states[job as usize].shares);
        }
        return;
    }
    match &reservation.kept {
        Some(kept) => {
            let started = start_if(state, placement, job, Some(kept));
            if started {
                reservation.then.take(&state.job_states[job as usize].shares);
            }
        }
        None if u64::from(asked.gpus) <= reservation.left_over => {
            let gpus = u64::from(asked.gpus);
            if start_if(state, placement, job, None) {
                reservation.left_over -= gpus;
            }
        }
        None => {}
    }
}
