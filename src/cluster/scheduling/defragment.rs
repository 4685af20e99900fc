//! Defragmentation: packs jobs that do not fill a server, so that other servers become empty.
//!
//! Layer: cluster.

use crate::servers::GpuShare;
use crate::state::ClusterState;
use crate::stop_check::StopCheck;

/// Move of one job from a server to another one.
struct Move {
    job: u32,
    from_server: u32,
    to_server: u32,
    count: u32,
}

/// Empties as many servers as a job of `gpus` GPUs needs, and returns whether it did. It moves jobs only if that makes enough servers empty. Each job that
/// moves saves its state and stands still for `scheduler.move_s`. If `stop` fires meanwhile, no job moves.
pub(super) fn make_room(state: &mut ClusterState, gpus: u32, stop: &StopCheck) -> bool {
    let per_server = state.servers.per_server();
    let needed = gpus.div_ceil(per_server);
    let empty = state.servers.with_free(per_server).len() as u32;
    if empty >= needed || state.servers.free_gpus() < u64::from(gpus) {
        return false;
    }
    // The least used servers come first. Their jobs must fit on servers that are in use already.
    let used: Vec<u32> = (1..per_server).rev().flat_map(|free| state.servers.with_free(free).iter().copied()).collect();
    let mut room: Vec<(u32, u32)> = used.iter().rev().map(|&s| (s, state.servers.free_of(s).count_ones())).collect();
    let mut moves: Vec<Move> = Vec::new();
    let mut emptied = Vec::new();
    for &server in &used {
        if empty + emptied.len() as u32 == needed || stop.step() {
            break;
        }
        let jobs: Vec<u32> = state.jobs_on[server as usize].iter().copied().collect();
        let small = |job: &u32| state.job_states[*job as usize].shares.len() == 1;
        let filled = moves.iter().any(|m| m.to_server == server);
        if filled || !jobs.iter().all(small) {
            continue;
        }
        let (before, first) = (room.clone(), moves.len());
        let fits = jobs.iter().all(|&job| {
            let count = state.job_states[job as usize].held;
            let open = |(s, free): &&mut (u32, u32)| *s != server && !emptied.contains(s) && *free >= count;
            // The fullest server on which the job fits.
            match room.iter_mut().find(open) {
                Some((to_server, free)) => {
                    *free -= count;
                    moves.push(Move { job, from_server: server, to_server: *to_server, count });
                    true
                }
                None => false,
            }
        });
        if fits {
            emptied.push(server);
        } else {
            room = before;
            moves.truncate(first);
        }
    }
    if empty + (emptied.len() as u32) < needed {
        return false;
    }
    for m in moves {
        debug_assert_eq!(state.job_states[m.job as usize].shares[0].server, m.from_server);
        let new_share: GpuShare = state.servers.lowest(m.to_server, m.count);
        let stands_ms = state.run.scheduler.move_ms;
        state.relocate(m.job, vec![new_share], true, stands_ms);
        state.migrations += 1;
    }
    true
}
