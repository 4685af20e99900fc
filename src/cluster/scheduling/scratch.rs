//! Free GPUs as they would be if jobs ended. Only numbers are kept, so that a copy is cheap.
//!
//! Layer: cluster.

use crate::servers::{GpuShare, ServerUse, Servers};

/// Numbers of free GPUs by server.
pub(super) struct Scratch {
    free: Vec<u8>,
    /// `n_with_free[n]` is the number of servers with `n` free GPUs.
    n_with_free: Vec<u32>,
    total: u64,
    per_server: u32,
    in_service: Vec<bool>,
}

impl Scratch {
    /// Counts the GPUs that are free now.
    pub(super) fn of(servers: &Servers) -> Scratch {
        let per_server = servers.per_server();
        let in_service: Vec<bool> = (0..servers.len()).map(|s| servers.use_of(s) == ServerUse::InService).collect();
        Scratch {
            free: (0..servers.len()).map(|s| servers.free_of(s).count_ones() as u8).collect(),
            n_with_free: (0..=per_server).map(|n| servers.with_free(n).len() as u32).collect(),
            total: servers.free_gpus(),
            per_server,
            in_service,
        }
    }

    /// Adds GPUs that a job would give back.
    pub(super) fn give(&mut self, shares: &[GpuShare]) {
        for share in shares.iter().filter(|s| self.in_service[s.server as usize]) {
            let free = &mut self.free[share.server as usize];
            self.n_with_free[usize::from(*free)] -= 1;
            *free += share.count() as u8;
            self.n_with_free[usize::from(*free)] += 1;
            self.total += u64::from(share.count());
        }
    }

    /// Removes GPUs that a job keeps for longer. PRECONDITION: they are free, and their servers are in service.
    pub(super) fn take(&mut self, shares: &[GpuShare]) {
        for share in shares {
            let free = &mut self.free[share.server as usize];
            self.n_with_free[usize::from(*free)] -= 1;
            *free -= share.count() as u8;
            self.n_with_free[usize::from(*free)] += 1;
            self.total -= u64::from(share.count());
        }
    }

    /// Whether all GPUs of a server are free.
    pub(super) fn is_empty(&self, server: u32) -> bool {
        self.in_service[server as usize] && u32::from(self.free[server as usize]) == self.per_server
    }

    /// Number of free GPUs.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Whether a job of `gpus` GPUs fits, on whole servers or on any GPUs.
    pub(super) fn fits(&self, gpus: u32, whole_servers: bool) -> bool {
        if !whole_servers {
            return self.total >= u64::from(gpus);
        }
        let (whole, left) = (gpus / self.per_server, gpus % self.per_server);
        let empty = self.n_with_free[self.per_server as usize];
        let room = || self.n_with_free[left as usize..self.per_server as usize].iter().any(|n| *n > 0);
        empty >= whole && (left == 0 || empty > whole || room())
    }

    /// Servers to reserve for a job of `gpus` GPUs that takes whole servers. Servers that are not empty `now` come first: no other job could have them
    /// before, and the empty ones stay free for jobs that start now. PRECONDITION: the job fits.
    pub(super) fn servers_for(&self, gpus: u32, now: &Servers) -> Vec<u32> {
        let (whole, left) = ((gpus / self.per_server) as usize, gpus % self.per_server);
        let usable = || (0..self.free.len()).filter(|&s| self.in_service[s]);
        let then_empty = || (0..self.free.len() as u32).filter(|&s| self.is_empty(s));
        let empty = |is_now: bool| then_empty().filter(move |&s| is_empty_now(now, s) == is_now);
        let mut chosen: Vec<u32> = empty(false).chain(empty(true)).take(whole).collect();
        if left > 0 {
            let room = |&s: &usize| u32::from(self.free[s]) >= left && !chosen.contains(&(s as u32));
            // The fullest server with enough free GPUs.
            let last = usable().filter(room).min_by_key(|&s| (self.free[s], s));
            chosen.extend(last.map(|s| s as u32));
        }
        chosen
    }
}

/// Whether a server is in service and all of its GPUs are free.
pub(super) fn is_empty_now(servers: &Servers, server: u32) -> bool {
    servers.with_free(servers.per_server()).contains(&server)
}
