//! Rail placement: as few rails as possible. It takes GPU 0 of every server before GPU 1 of any, so that the servers of a job meet at few leaves of a rail
//! network.
//!
//! Layer: cluster.

use super::{Placement, Request};
use crate::servers::{GpuShare, Servers};

/// Placement `scheduler.placement = "rail"`.
pub(super) struct Rail;

impl Placement for Rail {
    fn whole_servers(&self) -> bool {
        false
    }

    fn place(&self, servers: &Servers, request: &mut Request<'_>) -> Option<Vec<GpuShare>> {
        if servers.free_gpus() < u64::from(request.gpus) {
            return None;
        }
        let usable: Vec<u32> = (0..servers.len()).filter(|s| request.may_use(servers, *s)).collect();
        let mut taken = vec![0u64; usable.len()];
        let mut left = request.gpus;
        for rail in 0..servers.per_server() {
            for (mask, &server) in taken.iter_mut().zip(&usable) {
                if left > 0 && servers.free_of(server) >> rail & 1 == 1 {
                    *mask |= 1 << rail;
                    left -= 1;
                }
            }
        }
        let used = usable.into_iter().zip(taken).filter(|(_, gpus)| *gpus != 0);
        (left == 0).then(|| used.map(|(server, gpus)| GpuShare { server, gpus }).collect())
    }
}
