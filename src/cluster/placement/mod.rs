//! Placements: which GPUs a job gets.
//!
//! Layer: cluster. A placement is one file here that implements [`Placement`], and one line of the registry (`src/base/registries.rs`). It sees which GPUs
//! are free and nothing else. It cannot use a GPU twice, because [`Servers::take`] checks what it returns.
//!
//! An example that takes the last servers first:
//!
//! ```
//! use hyperfold_cluster::{Placement, Request, Servers, GpuShare};
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
use hyperfold_base::{by_name, for_each_placement};
use hyperfold_llm::workload::random::RandomStream;

/// Request of a job for GPUs.
pub struct Request<'a> {
    /// Number of GPUs that the job asks for.
    pub gpus: u32,
    /// Rack of each server.
    pub rack: &'a [u32],
    /// Whether each server is reserved for another job. `None`: none is.
    pub kept: Option<&'a [bool]>,
    pub(super) random: RandomStream,
}

impl<'a> Request<'a> {
    /// A request for `gpus` GPUs on any servers, without a reservation.
    pub fn plain(gpus: u32, rack: &'a [u32]) -> Request<'a> {
        Request { gpus, rack, kept: None, random: RandomStream::new(0, 0) }
    }

    /// Whether a server is in service and not reserved for another job.
    pub fn may_use(&self, servers: &Servers, server: u32) -> bool {
        servers.use_of(server) == ServerUse::InService && !self.is_kept(server)
    }

    fn is_kept(&self, server: u32) -> bool {
        self.kept.is_some_and(|kept| kept[server as usize])
    }
}

/// A strategy that chooses GPUs for jobs.
pub trait Placement: Send + Sync {
    /// Whether jobs get whole servers, and the rest of their GPUs on one more server. If false, any free GPUs will do.
    fn whole_servers(&self) -> bool;

    /// Chooses GPUs for a job: free GPUs of servers in service that are not reserved. `None`: the job has to wait.
    fn place(&self, servers: &Servers, request: &mut Request<'_>) -> Option<Vec<GpuShare>>;
}

/// All placements by name.
pub const PLACEMENTS: &[(&str, &dyn Placement)] = for_each_placement!(by_name);

/// The placement with this name.
pub(super) fn placement(name: &str) -> Option<&'static dyn Placement> {
    PLACEMENTS.iter().find(|(known, _)| *known == name).map(|(_, placement)| *placement)
}

/// Places the GPUs that are left over when whole servers are taken. It takes the fullest server with enough free GPUs. Among equally full ones it prefers a
/// server in rack `near`, then the lowest number. `None`: there is no such server. `Some(None)`: nothing is left over.
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
