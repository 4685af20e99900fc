//! Which GPUs a job gets.
//!
//! Layer: cluster. A placement is one file here that implements [`Placement`], and one line of the registry (`src/spec/registries.rs`). It sees which GPUs are free
//! and nothing else, so it cannot use a GPU twice: what it returns is taken by [`Servers::take`], which checks.
//!
//! An example, the last servers first:
//!
//! ```
//! use hyperfold::cluster::{Placement, Request, Servers, GpuShare};
//!
//! struct LastFirst;
//!
//! impl Placement for LastFirst {
//!     fn whole_servers(&self) -> bool {
//!         false
//!     }
//!     fn place(&self, servers: &Servers, request: &mut Request<'_>) -> Option<Vec<GpuShare>> {
//!         let mut left = request.gpus;
//!         let mut shares = Vec::new();
//!         for server in (0..servers.len()).rev().filter(|s| request.may_use(servers, *s)) {
//!             let n = servers.free_of(server).count_ones().min(left);
//!             if n > 0 {
//!                 shares.push(servers.lowest(server, n));
//!                 left -= n;
//!             }
//!         }
//!         (left == 0).then_some(shares)
//!     }
//! }
//!
//! let servers = Servers::new(4, 8);
//! let shares = LastFirst.place(&servers, &mut Request::plain(12, &[0, 0, 1, 1])).unwrap();
//! assert_eq!(shares.iter().map(|s| s.server).collect::<Vec<_>>(), [3, 2]);
//! ```

mod packed;
mod rail;
mod random;
mod spread;
mod topology;

use super::servers::{GpuShare, ServerUse, Servers};
use crate::spec::registries::{by_name, for_each_placement};
use crate::workload::random::RandomStream;

/// What is asked for.
pub struct Request<'a> {
    pub gpus: u32,
    /// Rack of each server.
    pub rack: &'a [u32],
    /// Servers that are kept for another job; `None`: none.
    pub kept: Option<&'a [bool]>,
    pub(super) random: RandomStream,
}

impl<'a> Request<'a> {
    /// So many GPUs, anywhere.
    pub fn plain(gpus: u32, rack: &'a [u32]) -> Request<'a> {
        Request { gpus, rack, kept: None, random: RandomStream::new(0, 0) }
    }

    /// Whether a server runs jobs and is kept for nobody else.
    pub fn may_use(&self, servers: &Servers, server: u32) -> bool {
        servers.use_of(server) == ServerUse::InService && !self.is_kept(server)
    }

    fn is_kept(&self, server: u32) -> bool {
        self.kept.is_some_and(|kept| kept[server as usize])
    }
}

/// A way to choose GPUs.
pub trait Placement: Send + Sync {
    /// Whether jobs get as many whole servers as they fill, and what is left over in one more; else any free GPUs will do.
    fn whole_servers(&self) -> bool;

    /// GPUs for a job, free ones of servers in service that are not kept; `None`: it has to wait.
    fn place(&self, servers: &Servers, request: &mut Request<'_>) -> Option<Vec<GpuShare>>;
}

/// All placements by name.
pub const PLACEMENTS: &[(&str, &dyn Placement)] = for_each_placement!(by_name);

/// The placement of this name.
pub(super) fn placement(name: &str) -> Option<&'static dyn Placement> {
    PLACEMENTS.iter().find(|(known, _)| *known == name).map(|(_, placement)| *placement)
}

/// What is left over when whole servers are taken: of the servers with enough free GPUs the fullest, the lowest number first; of those that are
/// equally full one in `near` where there is one.
fn left_over(
    servers: &Servers,
    request: &Request<'_>,
    taken: &[GpuShare],
    near: Option<u32>,
) -> Option<Option<GpuShare>> {
    let left = request.gpus % servers.per_server();
    if left == 0 {
        return Some(None);
    }
    for free in left..=servers.per_server() {
        let fits = |s: &&u32| !request.is_kept(**s) && !taken.iter().any(|t| t.server == **s);
        let mut found = servers.with_free(free).iter().filter(fits).copied();
        let first = found.next();
        let close = near.and_then(|rack| first.into_iter().chain(found).find(|s| request.rack[*s as usize] == rack));
        if let Some(server) = close.or(first) {
            return Some(Some(servers.lowest(server, left)));
        }
    }
    None
}
