//! Moves jobs that fill no server together, so that servers become empty.
//!
//! Layer: cluster.

use super::servers::GpuShare;
use super::state::ClusterState;
use super::stop_check::StopCheck;

/// One job, from a server to another.
struct Move {
    job: u32,
    from: u32,
    to: u32,
    count: u32,
}

/// Empties as many servers as a job of `gpus` needs, if moving can do it and there is room for it; each moved job saves its state and stands still for
/// `scheduler.move_s`. Nobody moves where `stop` says so meanwhile.
pub(super) fn make_room(state: &mut ClusterState, gpus: u32, stop: &StopCheck) -> bool {
    let per_server = state.servers.per_server();
    let needed = gpus.div_ceil(per_server);
    let empty = state.servers.with_free(per_server).len() as u32;
    if empty >= needed || state.servers.free_gpus() < u64::from(gpus) {
        return false;
    }
    // The least used first; what they free must go where there is room already.
    let used: Vec<u32> = (1..per_server).rev().flat_map(|free| state.servers.with_free(free).iter().copied()).collect();
    let mut room: Vec<(u32, u32)> = used.iter().rev().map(|&s| (s, state.servers.free_of(s).count_ones())).collect();
    let mut moves: Vec<Move> = Vec::new();
    let mut emptied = Vec::new();
    for &server in &used {
        if empty + emptied.len() as u32 == needed || stop.step() {
            break;
        }
        let jobs: Vec<u32> = state.jobs_on[server as usize].iter().copied().collect();
        let small = |job: &u32| state.of[*job as usize].shares.len() == 1;
        let filled = moves.iter().any(|m| m.to == server);
        if filled || !jobs.iter().all(small) {
            continue;
        }
        let (before, first) = (room.clone(), moves.len());
        let fits = jobs.iter().all(|&job| {
            let count = state.of[job as usize].held;
            let open = |(s, free): &&mut (u32, u32)| *s != server && !emptied.contains(s) && *free >= count;
            // The fullest server that has room.
            match room.iter_mut().find(open) {
                Some((to, free)) => {
                    *free -= count;
                    moves.push(Move { job, from: server, to: *to, count });
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
        debug_assert_eq!(state.of[m.job as usize].shares[0].server, m.from);
        let to: GpuShare = state.servers.lowest(m.to, m.count);
        let stands_ms = state.run.scheduler.move_ms;
        state.relocate(m.job, vec![to], true, stands_ms);
        state.migrations += 1;
    }
    true
}
