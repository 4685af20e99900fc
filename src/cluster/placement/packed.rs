//! Packed placement: as few servers as possible. It takes whole servers from the lowest number on, and the rest on the fullest server that has enough free
//! GPUs.
//!
//! Layer: cluster.

use super::{Placement, Request, left_over};
use crate::servers::{GpuShare, Servers};

/// Placement `scheduler.placement = "packed"`.
pub(super) struct Packed;

impl Placement for Packed {
    fn whole_servers(&self) -> bool {
        true
    }

    fn place(&self, servers: &Servers, request: &mut Request<'_>) -> Option<Vec<GpuShare>> {
        let per_server = servers.per_server();
        let whole = (request.gpus / per_server) as usize;
        let empty = servers.with_free(per_server);
        if empty.len() < whole {
            return None;
        }
        let chosen = empty.iter().filter(|s| !request.is_kept(**s)).take(whole);
        let mut shares: Vec<GpuShare> = chosen.map(|&s| servers.lowest(s, per_server)).collect();
        if shares.len() < whole {
            return None;
        }
        let last = left_over(servers, request, &shares, None)?;
        shares.extend(last);
        Some(shares)
    }
}
