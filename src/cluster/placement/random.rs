//! Random placement: any free GPUs.
//!
//! Layer: cluster.

use super::{Placement, Request};
use crate::servers::{GpuShare, Servers};

/// Placement `scheduler.placement = "random"`.
pub(super) struct Random;

impl Placement for Random {
    fn whole_servers(&self) -> bool {
        false
    }

    fn place(&self, servers: &Servers, request: &mut Request<'_>) -> Option<Vec<GpuShare>> {
        if servers.free_gpus() < u64::from(request.gpus) {
            return None;
        }
        let mut free: Vec<(u32, u64)> = Vec::with_capacity(servers.free_gpus() as usize);
        for server in (0..servers.len()).filter(|s| request.may_use(servers, *s)) {
            let mask = servers.free_of(server);
            free.extend((0..64).map(|gpu| 1u64 << gpu).filter(|bit| mask & bit != 0).map(|bit| (server, bit)));
        }
        let n = request.gpus as usize;
        if free.len() < n {
            return None;
        }
        // The first steps of a Fisher-Yates shuffle.
        for i in 0..n {
            let j = i + request.random.below((free.len() - i) as u32) as usize;
            free.swap(i, j);
        }
        free.truncate(n);
        free.sort_unstable();
        let join = |bits: &[(u32, u64)]| GpuShare {
            server: bits[0].0,
            gpus: bits.iter().fold(0, |mask, (_, bit)| mask | bit),
        };
        Some(free.chunk_by(|a, b| a.0 == b.0).map(join).collect())
    }
}
