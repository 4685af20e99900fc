//! Topology placement: as few servers as possible, in as few racks as possible. It takes the rack with the fewest empty servers in which the whole job fits,
//! else the racks with the most empty servers.
//!
//! Layer: cluster.

use std::cmp::Reverse;

use super::{Placement, Request, left_over};
use crate::servers::{GpuShare, Servers};

/// Placement `scheduler.placement = "topology"`.
pub(super) struct Topology;

impl Placement for Topology {
    fn whole_servers(&self) -> bool {
        true
    }

    fn place(&self, servers: &Servers, request: &mut Request<'_>) -> Option<Vec<GpuShare>> {
        let per_server = servers.per_server();
        let whole = (request.gpus / per_server) as usize;
        let mut shares: Vec<GpuShare> = Vec::with_capacity(whole + 1);
        if whole > 0 {
            let empty = servers.with_free(per_server);
            if empty.len() < whole {
                return None;
            }
            // Pairs of rack and empty server.
            let mut by_rack: Vec<(u32, u32)> =
                empty.iter().filter(|s| !request.is_kept(**s)).map(|&s| (request.rack[s as usize], s)).collect();
            if by_rack.len() < whole {
                return None;
            }
            by_rack.sort_unstable();
            let mut racks: Vec<&[(u32, u32)]> = by_rack.chunk_by(|a, b| a.0 == b.0).collect();
            match racks.iter().filter(|rack| rack.len() >= whole).min_by_key(|rack| (rack.len(), rack[0].0)) {
                Some(&best) => racks = vec![best],
                None => racks.sort_by_key(|rack| (Reverse(rack.len()), rack[0].0)),
            }
            let chosen = racks.into_iter().flatten().take(whole);
            shares.extend(chosen.map(|&(_, s)| servers.lowest(s, per_server)));
        }
        let near = shares.last().map(|s| request.rack[s.server as usize]);
        let last = left_over(servers, request, &shares, near)?;
        shares.extend(last);
        Some(shares)
    }
}
