//! Failures, repairs and spares: what fails, which server replaces it, and what happens to the jobs on it.
//!
//! Layer: cluster. A part that fails stops its servers. As long as there are spares, a spare replaces each of these servers. Jobs on a stopped server go back
//! to their last checkpoint. They go on with the spare, or with fewer GPUs where they can, or they go back to the queue.

use std::collections::BTreeMap;

use super::event::Event;
use super::failing_parts::{Part, PartKind};
use super::failure::{FailureModel, failure_model};
use super::fixed_point::exponential;
use super::registered::GuardedFailureModel;
use super::servers::{GpuShare, ServerUse};
use super::state::{ClusterState, JobPhase};
use crate::jobs::trace::ListedFailure;
use hyperfold_config::spec::FailureKeys;
use hyperfold_llm::workload::random::RandomStream;

/// State of failures and repairs of the whole cluster.
pub(super) struct Breakage {
    model: Option<Box<dyn FailureModel>>,
    listed: Vec<ListedFailure>,
    /// Parts whose failures are drawn, each with the random stream of its draws.
    parts: Vec<(Part, RandomStream)>,
    /// Version of each server's return. A return event with an older version is void, because another failure came after it.
    versions: Vec<u32>,
    /// When each server that is down comes back, in ms.
    back_ms: Vec<u64>,
    /// Version of each server's slow phase. A mend event with an older version is void.
    straggling: Vec<u32>,
    maintenance: RandomStream,
    next_drained: u32,
    pub(super) failures: u64,
    pub(super) drains: u64,
}

impl Breakage {
    /// Makes the spares, and enters the first failure of every part.
    pub(super) fn new(state: &mut ClusterState, listed: Vec<ListedFailure>) -> Breakage {
        let keys = &state.run.failures;
        let n = state.servers.len() as usize;
        for spare in 0..keys.hot_spares + keys.cold_spares {
            let spare_use = if spare < keys.hot_spares { ServerUse::HotSpare } else { ServerUse::ColdSpare };
            // Spares are the last servers, so that jobs fill the cluster from its front.
            state.servers.set_use(state.servers.len() - 1 - spare, spare_use);
        }
        let mut breakage = Breakage {
            model: match &keys.own_model {
                Some(own) => Some(Box::new(GuardedFailureModel(own.clone()))),
                None => failure_model(keys),
            },
            listed,
            parts: Vec::new(),
            versions: vec![0; n],
            back_ms: vec![0; n],
            straggling: vec![0; n],
            maintenance: RandomStream::new(keys.seed, 2 << 60),
            next_drained: 0,
            failures: 0,
            drains: 0,
        };
        for (number, failure) in breakage.listed.iter().enumerate() {
            state.events.add(failure.at_ms, Event::Listed { failure: number as u32 });
        }
        if breakage.model.is_some() {
            for kind in PartKind::ALL {
                if mtbf_ms(keys, kind) == 0 {
                    continue;
                }
                for index in 0..Part::count(state.machine, kind) {
                    let stream = RandomStream::new(keys.seed, ((kind as u64 + 1) << 40) + u64::from(index));
                    breakage.parts.push((Part { kind, index }, stream));
                    breakage.expect(state, breakage.parts.len() - 1, 0);
                }
            }
        }
        if let Some(drain) = &state.run.failures.drain {
            state.events.add(drain.every_ms, Event::Drains { nth: 1 });
        }
        breakage
    }

    /// Draws the next failure of a part, counted from `after_ms` after now, and enters it.
    fn expect(&mut self, state: &mut ClusterState, part: usize, after_ms: u64) {
        let Some(model) = &self.model else { return };
        let (part_of, stream) = &mut self.parts[part];
        let gap = model.gap(&mut || exponential(stream)) * mtbf_ms(&state.run.failures, part_of.kind) as f64;
        let at_ms = state.now_ms.saturating_add(after_ms).saturating_add((gap.round() as u64).max(1));
        state.events.add(at_ms, Event::Fails { part: part as u32 });
    }

    /// Handles a drawn failure of a part, and draws its next one.
    pub(super) fn fails(&mut self, state: &mut ClusterState, part: u32) {
        let failed_part = self.parts[part as usize].0;
        let keys = &state.run.failures;
        let repair_ms = match failed_part.kind {
            PartKind::Switch => keys.switch_repair_ms,
            PartKind::Straggler => keys.straggler_ms,
            _ => keys.repair_ms,
        };
        self.strike(state, failed_part, repair_ms);
        self.expect(state, part as usize, repair_ms);
    }

    /// Handles a failure that a trace lists.
    pub(super) fn listed(&mut self, state: &mut ClusterState, failure: u32) {
        let listed_failure = self.listed[failure as usize];
        self.strike(state, listed_failure.part, listed_failure.repair_ms);
    }

    fn strike(&mut self, state: &mut ClusterState, part: Part, repair_ms: u64) {
        self.failures += 1;
        let back_ms = state.now_ms.saturating_add(repair_ms);
        let servers = part.stops(state.machine);
        if part.kind == PartKind::Straggler {
            for server in servers {
                self.straggling[server as usize] += 1;
                set_speed(state, server, state.run.failures.straggler_ppm);
                state.events.add(back_ms, Event::Mended { server, version: self.straggling[server as usize] });
            }
            return;
        }
        // A server that is already down stays down until the last of its parts is repaired.
        for &server in &servers {
            if state.servers.use_of(server) == ServerUse::Down && back_ms > self.back_ms[server as usize] {
                self.takes_out(state, server, ServerUse::Down, back_ms);
            }
        }
        // A server that is already down or in maintenance has nothing more to lose.
        let up = |s: &u32| !matches!(state.servers.use_of(*s), ServerUse::Down | ServerUse::Maintenance);
        let stopped: Vec<u32> = servers.into_iter().filter(up).collect();
        for &server in &stopped {
            self.takes_out(state, server, ServerUse::Down, back_ms);
        }
        self.replace_and_resume(state, &stopped);
    }

    fn takes_out(&mut self, state: &mut ClusterState, server: u32, new_use: ServerUse, back_ms: u64) {
        if state.servers.use_of(server) != new_use {
            state.servers.set_use(server, new_use);
        }
        self.back_ms[server as usize] = back_ms;
        let version = &mut self.versions[server as usize];
        *version += 1;
        state.events.add(back_ms, Event::Returns { server, version: *version });
    }

    /// Puts a spare into service, a hot one first. Returns its server and the time of the swap in ms.
    fn spare(state: &mut ClusterState) -> Option<(u32, u64)> {
        let keys = &state.run.failures;
        if keys.hot_spares + keys.cold_spares == 0 {
            return None;
        }
        let first_with = |kind: ServerUse| (0..state.servers.len()).find(|&s| state.servers.use_of(s) == kind);
        let hot = first_with(ServerUse::HotSpare).map(|s| (s, keys.hot_swap_ms));
        let found = hot.or_else(|| first_with(ServerUse::ColdSpare).map(|s| (s, keys.cold_swap_ms)))?;
        state.servers.set_use(found.0, ServerUse::InService);
        Some(found)
    }

    /// Replaces servers that have just stopped by spares, and interrupts the jobs on them.
    fn replace_and_resume(&mut self, state: &mut ClusterState, stopped: &[u32]) {
        let mut spares: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
        for &server in stopped {
            // A spare that fails needs no spare.
            if state.servers.count(ServerUse::InService) < nominal(state)
                && let Some(spare) = Self::spare(state)
            {
                spares.insert(server, spare);
            }
        }
        let mut hit: Vec<u32> = stopped.iter().flat_map(|s| state.jobs_on[*s as usize].iter().copied()).collect();
        hit.sort_unstable();
        hit.dedup();
        for job in hit {
            interrupt(state, job, stopped, &spares);
        }
    }

    /// Brings a server back from repair or maintenance, into service or as a spare.
    pub(super) fn returns(&mut self, state: &mut ClusterState, server: u32, version: u32) {
        if self.versions[server as usize] != version {
            return;
        }
        let keys = &state.run.failures;
        let new_use = if state.servers.count(ServerUse::InService) < nominal(state) {
            ServerUse::InService
        } else if state.servers.count(ServerUse::HotSpare) < keys.hot_spares {
            ServerUse::HotSpare
        } else if state.servers.count(ServerUse::ColdSpare) < keys.cold_spares {
            ServerUse::ColdSpare
        } else {
            ServerUse::InService
        };
        state.servers.set_use(server, new_use);
    }

    /// Ends the slow phase of a server.
    pub(super) fn mended(&mut self, state: &mut ClusterState, server: u32, version: u32) {
        if self.straggling[server as usize] == version {
            set_speed(state, server, 1_000_000);
        }
    }

    /// Begins the `nth` drain, of the servers that follow those drained before.
    pub(super) fn drains(&mut self, state: &mut ClusterState, nth: u32) {
        let Some(drain) = &state.run.failures.drain else { return };
        state.events.add(state.now_ms.saturating_add(drain.every_ms), Event::Drains { nth: nth.wrapping_add(1) });
        for _ in 0..drain.servers.min(state.servers.len()) {
            let server = self.next_drained;
            self.next_drained = (server + 1) % state.servers.len();
            if state.servers.use_of(server) != ServerUse::InService {
                continue;
            }
            self.drains += 1;
            state.servers.set_use(server, ServerUse::Draining);
            self.versions[server as usize] += 1;
            let version = self.versions[server as usize];
            state.events.add(state.now_ms.saturating_add(drain.wait_ms), Event::DrainEnds { server, version });
        }
    }

    /// Ends the grace time of a drained server: its jobs save their state and go back to the queue, and maintenance begins.
    pub(super) fn drain_ends(&mut self, state: &mut ClusterState, server: u32, version: u32) {
        let Some(drain) = &state.run.failures.drain else { return };
        if self.versions[server as usize] != version {
            return;
        }
        let restart_ms = state.run.checkpoint.restart_ms;
        for job in state.jobs_on[server as usize].clone() {
            state.send_back(job, true, restart_ms);
        }
        let fails = u64::from(self.maintenance.below(1_000_000)) < drain.risk_ppm;
        let more_ms = if fails { state.run.failures.repair_ms } else { 0 };
        let back_ms = state.now_ms.saturating_add(drain.takes_ms).saturating_add(more_ms);
        self.takes_out(state, server, ServerUse::Maintenance, back_ms);
    }
}

/// Number of servers in service when nothing is broken.
fn nominal(state: &ClusterState) -> u32 {
    state.servers.len() - state.run.failures.hot_spares - state.run.failures.cold_spares
}

fn mtbf_ms(keys: &FailureKeys, kind: PartKind) -> u64 {
    match kind {
        PartKind::Gpu => keys.gpu_mtbf_ms,
        PartKind::Host => keys.host_mtbf_ms,
        PartKind::Link => keys.link_mtbf_ms,
        PartKind::Switch => keys.switch_mtbf_ms,
        PartKind::Straggler => keys.straggler_mtbf_ms,
    }
}

fn set_speed(state: &mut ClusterState, server: u32, ppm: u64) {
    state.slowdown.set_straggling(server, ppm);
    for job in state.jobs_on[server as usize].clone() {
        state.rerate(job);
    }
}

/// The first `gpus` GPUs of these shares, by server and GPU number.
fn first_of(mut shares: Vec<GpuShare>, gpus: u32) -> Vec<GpuShare> {
    shares.sort_unstable_by_key(|share| share.server);
    let mut left = gpus;
    for share in &mut shares {
        while share.count() > left {
            share.gpus &= !(1 << share.gpus.ilog2());
        }
        left -= share.count();
    }
    shares.retain(|share| share.gpus != 0);
    shares
}

/// Handles a running job that has lost servers: it moves to spares, shrinks, goes back to the queue, or is given up.
fn interrupt(state: &mut ClusterState, job: u32, stopped: &[u32], spares: &BTreeMap<u32, (u32, u64)>) {
    let keys = &state.run.failures;
    let job_state = &mut state.job_states[job as usize];
    debug_assert_eq!(job_state.phase, JobPhase::Running);
    job_state.restarts += 1;
    if job_state.restarts > keys.max_restarts {
        return state.give_up(job);
    }
    let restart_ms = state.run.checkpoint.restart_ms;
    let (lost, left): (Vec<GpuShare>, Vec<GpuShare>) =
        job_state.shares.iter().partition(|s| stopped.contains(&s.server));
    if lost.iter().all(|s| spares.contains_key(&s.server)) {
        let swap_ms = lost.iter().map(|s| spares[&s.server].1).max().unwrap_or(0);
        let instead = lost.iter().map(|s| GpuShare { server: spares[&s.server].0, gpus: s.gpus });
        let new_shares = left.iter().copied().chain(instead).collect();
        return state.relocate(job, new_shares, false, swap_ms + restart_ms);
    }
    let remains: u32 = left.iter().map(|s| s.count()).sum();
    if let Some(gpus) = state.goes_on_with(job, remains) {
        state.shrinks += 1;
        return state.relocate(job, first_of(left, gpus), false, restart_ms);
    }
    state.send_back(job, false, restart_ms);
}
