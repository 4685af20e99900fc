//! Spread placement: as many servers as possible. It takes one GPU of each of the emptiest servers, and repeats that until there are enough.
//!
//! Layer: cluster.

use super::{Placement, Request};
use crate::servers::{GpuShare, Servers};

/// Placement `scheduler.placement = "spread"`.
pub(super) struct Spread;

impl Placement for Spread {
    fn whole_servers(&self) -> bool {
        false
    }

    fn place(&self, servers: &Servers, request: &mut Request<'_>) -> Option<Vec<GpuShare>> {
        if servers.free_gpus() < u64::from(request.gpus) {
            return None;
        }
        let emptiest =
            (1..=servers.per_server()).rev().flat_map(|free| servers.with_free(free).iter().map(move |s| (*s, free)));
        let mut chosen: Vec<(u32, u32, u32)> = emptiest
            .filter(|(s, _)| !request.is_kept(*s))
            .take(request.gpus as usize)
            .map(|(s, free)| (s, free, 0))
            .collect();
        let mut left = request.gpus;
        while left > 0 {
            let before = left;
            for (_, free, n) in &mut chosen {
                if left > 0 && *n < *free {
                    *n += 1;
                    left -= 1;
                }
            }
            if left == before {
                return None;
            }
        }
        Some(
            chosen
                .into_iter()
                .filter(|(_, _, n)| *n > 0)
                .map(|(s, _, n)| servers.lowest(s, n))
                .collect::<Vec<GpuShare>>(),
        )
    }
}
