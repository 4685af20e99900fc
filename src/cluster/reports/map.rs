//! Map of what servers do over time, by groups of servers and bins of time. Its size is limited, whatever the size of the cluster.
//!
//! Layer: cluster. All servers are sampled at regular times; each bin sums its samples ("looks").

use crate::servers::{ServerUse, Servers};

/// Largest number of groups of servers.
const GROUPS: usize = 48;
/// Largest number of bins. Above it, pairs of bins are merged and the time between looks doubles.
const BINS: usize = 128;

/// GPUs of a group of servers by state, summed over the looks of a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerGroupUse {
    /// GPUs that jobs hold.
    pub used: u64,
    /// GPUs in service that no job holds.
    pub idle: u64,
    /// GPUs on servers under repair.
    pub down: u64,
    /// GPUs without a job on servers that are drained or in maintenance.
    pub drained: u64,
    /// GPUs of spare servers.
    pub spare: u64,
}

impl ServerGroupUse {
    fn add(&mut self, other: &ServerGroupUse) {
        self.used += other.used;
        self.idle += other.idle;
        self.down += other.down;
        self.drained += other.drained;
        self.spare += other.spare;
    }
}

/// One bin of time of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMapBin {
    /// Begin of the bin, in ms.
    pub from_ms: u64,
    /// End of the bin, in ms.
    pub to_ms: u64,
    /// How often the servers were looked at.
    pub looks: u64,
    /// Sums of each group of servers.
    pub groups: Vec<ServerGroupUse>,
}

/// The map so far.
pub(crate) struct ClusterMap {
    bin_ms: u64,
    every_ms: u64,
    next_ms: u64,
    n_servers: u32,
    bins: Vec<ClusterMapBin>,
}

/// Number of groups for so many servers.
fn n_groups(n_servers: u32) -> usize {
    GROUPS.min(n_servers as usize).max(1)
}

/// First server of a group. For the group after the last, it is the number of servers.
pub(crate) fn first_of_group(group: usize, n_servers: u32) -> u32 {
    (group as u64 * u64::from(n_servers) / n_groups(n_servers) as u64) as u32
}

impl ClusterMap {
    /// An empty map with at least `every_ms` between looks.
    pub(crate) fn new(every_ms: u64, n_servers: u32) -> ClusterMap {
        let every_ms = every_ms.max(1);
        ClusterMap { bin_ms: every_ms, every_ms, next_ms: 0, n_servers, bins: Vec::new() }
    }

    /// Adds looks for all times before `ms`. PRECONDITION: nothing changes until then.
    pub(crate) fn record_until(&mut self, servers: &Servers, ms: u64) {
        if self.next_ms >= ms {
            return;
        }
        let now = look(servers, self.n_servers);
        while self.next_ms < ms {
            let bin_idx = (self.next_ms / self.bin_ms) as usize;
            if bin_idx == BINS {
                self.halve();
                continue;
            }
            if self.bins.len() <= bin_idx {
                let from_ms = bin_idx as u64 * self.bin_ms;
                let groups = vec![ServerGroupUse::default(); now.len()];
                self.bins.push(ClusterMapBin { from_ms, to_ms: from_ms + self.bin_ms, looks: 0, groups });
            }
            let bin = &mut self.bins[bin_idx];
            bin.looks += 1;
            bin.groups.iter_mut().zip(&now).for_each(|(sum, more)| sum.add(more));
            self.next_ms += self.every_ms;
        }
    }

    fn halve(&mut self) {
        self.bin_ms *= 2;
        // Two looks in each bin are enough.
        self.every_ms = self.bin_ms / 2;
        let pairs = self.bins.chunks(2).map(|pair| {
            let mut sum = pair[0].clone();
            sum.to_ms = sum.from_ms + self.bin_ms;
            for other in &pair[1..] {
                sum.looks += other.looks;
                sum.groups.iter_mut().zip(&other.groups).for_each(|(sum, more)| sum.add(more));
            }
            sum
        });
        self.bins = pairs.collect();
        self.next_ms = self.bins.len() as u64 * self.bin_ms;
    }

    /// The bins. The last one ends with the run.
    pub(crate) fn bins(mut self, end_ms: u64) -> Vec<ClusterMapBin> {
        if let Some(last) = self.bins.last_mut() {
            last.to_ms = last.to_ms.min(end_ms.max(last.from_ms));
        }
        self.bins
    }
}

fn look(servers: &Servers, n_servers: u32) -> Vec<ServerGroupUse> {
    let per_server = u64::from(servers.per_server());
    let of_group = |group: usize| {
        let mut sum = ServerGroupUse::default();
        for server in first_of_group(group, n_servers)..first_of_group(group + 1, n_servers) {
            let free = u64::from(servers.free_of(server).count_ones());
            match servers.use_of(server) {
                ServerUse::InService => {
                    sum.used += per_server - free;
                    sum.idle += free;
                }
                ServerUse::Draining => {
                    sum.used += per_server - free;
                    sum.drained += free;
                }
                ServerUse::Maintenance => sum.drained += per_server,
                ServerUse::Down => sum.down += per_server,
                ServerUse::HotSpare | ServerUse::ColdSpare => sum.spare += per_server,
            }
        }
        sum
    };
    (0..n_groups(n_servers)).map(of_group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::GpuShare;

    #[test]
    fn bins_keep_every_look_and_stay_few() {
        let mut servers = Servers::new(100, 8);
        servers.take(&[GpuShare { server: 0, gpus: 0xff }, GpuShare { server: 99, gpus: 0xf }]);
        servers.set_use(50, ServerUse::Down);
        servers.set_use(99, ServerUse::Draining);
        let mut map = ClusterMap::new(1_000, 100);
        map.record_until(&servers, 500_000);
        servers.give(&[GpuShare { server: 0, gpus: 0xff }]);
        map.record_until(&servers, 1_000_000);
        let bins = map.bins(1_000_000);
        assert!(bins.len() <= BINS && bins.iter().all(|b| b.groups.len() == GROUPS && b.looks > 0));
        for bin in &bins {
            let gpus: u64 = bin.groups.iter().map(|g| g.used + g.idle + g.down + g.drained + g.spare).sum();
            assert_eq!(gpus, 800 * bin.looks);
        }
        assert!(bins.windows(2).all(|pair| pair[0].to_ms == pair[1].from_ms));
        let (first, last) = (&bins[0], &bins[bins.len() - 1]);
        assert_eq!((first.from_ms, last.to_ms), (0, 1_000_000));
        assert_eq!((first.groups[0].used, last.groups[0].used), (8 * first.looks, 0));
        assert_eq!((first.groups[47].used, first.groups[47].drained), (4 * first.looks, 4 * first.looks));
    }
}
