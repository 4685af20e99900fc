//! Which GPUs are free, by server, and what each server is used for.
//!
//! Layer: cluster. It knows nothing of jobs.

use std::collections::BTreeSet;

/// Some GPUs of one server, as one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuShare {
    /// Number of the server.
    pub server: u32,
    /// The GPUs, a bit each.
    pub gpus: u64,
}

impl GpuShare {
    /// Number of GPUs.
    pub fn count(self) -> u32 {
        self.gpus.count_ones()
    }
}

/// Use of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerUse {
    /// The server runs jobs.
    InService,
    /// The server gets no new jobs; its running jobs go on.
    Draining,
    /// The server is in maintenance.
    Maintenance,
    /// The server is under repair.
    Down,
    /// The server is a spare that takes over at once.
    HotSpare,
    /// The server is a spare that must be switched on first.
    ColdSpare,
}

/// Free GPUs and uses of all servers.
#[derive(Clone, Debug)]
pub struct Servers {
    per_server: u32,
    free: Vec<u64>,
    uses: Vec<ServerUse>,
    /// Servers in service by their number of free GPUs.
    by_free: Vec<BTreeSet<u32>>,
    free_gpus: u64,
    /// Number of servers of each use, in the order of the variants of [`ServerUse`].
    n_by_use: [u32; 6],
    /// Number of free GPUs on servers that are drained.
    draining_free: u64,
    /// Changes of uses since the last `take_changes`. `None`: they are not recorded.
    changes: Option<Vec<(u32, ServerUse)>>,
}

impl Servers {
    /// Makes `n` servers, all in service and free. PRECONDITION: there are 1 to 64 GPUs per server.
    pub fn new(n: u32, per_server: u32) -> Servers {
        let all = u64::MAX >> (64 - per_server);
        let mut by_free = vec![BTreeSet::new(); per_server as usize + 1];
        by_free[per_server as usize] = (0..n).collect();
        Servers {
            per_server,
            free: vec![all; n as usize],
            uses: vec![ServerUse::InService; n as usize],
            by_free,
            free_gpus: u64::from(n) * u64::from(per_server),
            n_by_use: [n, 0, 0, 0, 0, 0],
            draining_free: 0,
            changes: None,
        }
    }

    /// Number of servers of any use.
    pub fn len(&self) -> u32 {
        self.free.len() as u32
    }

    /// Whether there are no servers.
    pub fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    /// Number of GPUs of a server.
    pub fn per_server(&self) -> u32 {
        self.per_server
    }

    /// Number of free GPUs on servers in service.
    pub fn free_gpus(&self) -> u64 {
        self.free_gpus
    }

    /// Free GPUs of a server, as one bit each.
    pub fn free_of(&self, server: u32) -> u64 {
        self.free[server as usize]
    }

    /// Use of a server.
    pub fn use_of(&self, server: u32) -> ServerUse {
        self.uses[server as usize]
    }

    /// Servers in service with exactly `count` free GPUs, ascending.
    pub fn with_free(&self, count: u32) -> &BTreeSet<u32> {
        &self.by_free[count as usize]
    }

    /// Number of servers with this use.
    pub fn count(&self, server_use: ServerUse) -> u32 {
        self.n_by_use[server_use as usize]
    }

    /// Number of free GPUs on servers that are drained.
    pub fn draining_free(&self) -> u64 {
        self.draining_free
    }

    /// The lowest `count` of the free GPUs of a server. PRECONDITION: it has as many.
    pub fn lowest(&self, server: u32, count: u32) -> GpuShare {
        let mut left = self.free[server as usize];
        let mut gpus = 0;
        for _ in 0..count {
            let bit = left & left.wrapping_neg();
            gpus |= bit;
            left ^= bit;
        }
        GpuShare { server, gpus }
    }

    fn set_free(&mut self, server: u32, free: u64) {
        let (idx, before) = (server as usize, self.free[server as usize]);
        self.free[idx] = free;
        if self.uses[idx] == ServerUse::InService && before != free {
            self.by_free[before.count_ones() as usize].remove(&server);
            self.by_free[free.count_ones() as usize].insert(server);
            self.free_gpus += u64::from(free.count_ones());
            self.free_gpus -= u64::from(before.count_ones());
        }
        if self.uses[idx] == ServerUse::Draining {
            self.draining_free += u64::from(free.count_ones());
            self.draining_free -= u64::from(before.count_ones());
        }
    }

    /// Takes free GPUs.
    ///
    /// # Panics
    /// One of the GPUs is not free: a scheduler that gives a GPU twice must not go on.
    pub fn take(&mut self, shares: &[GpuShare]) {
        for share in shares {
            let free = self.free[share.server as usize];
            assert!(share.gpus & !free == 0, "GPUs {:#x} of server {} are not all free", share.gpus, share.server);
            self.set_free(share.server, free & !share.gpus);
        }
    }

    /// Gives GPUs back.
    pub fn give(&mut self, shares: &[GpuShare]) {
        for share in shares {
            let free = self.free[share.server as usize];
            debug_assert!(share.gpus & free == 0, "GPUs were free already");
            self.set_free(share.server, free | share.gpus);
        }
    }

    /// Begins to record changes of uses.
    pub(super) fn record_uses(&mut self) {
        self.changes = Some(Vec::new());
    }

    /// Takes the changes since the last call. Empty if they are not recorded.
    pub(super) fn take_changes(&mut self) -> Vec<(u32, ServerUse)> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Changes the use of a server.
    pub fn set_use(&mut self, server: u32, new_use: ServerUse) {
        let idx = server as usize;
        let (old_use, free) = (self.uses[idx], self.free[idx].count_ones());
        if old_use == new_use {
            return;
        }
        match old_use {
            ServerUse::InService => {
                self.by_free[free as usize].remove(&server);
                self.free_gpus -= u64::from(free);
            }
            ServerUse::Draining => self.draining_free -= u64::from(free),
            _ => {}
        }
        match new_use {
            ServerUse::InService => {
                self.by_free[free as usize].insert(server);
                self.free_gpus += u64::from(free);
            }
            ServerUse::Draining => self.draining_free += u64::from(free),
            _ => {}
        }
        if let Some(changes) = &mut self.changes {
            changes.push((server, new_use));
        }
        self.n_by_use[old_use as usize] -= 1;
        self.n_by_use[new_use as usize] += 1;
        self.uses[idx] = new_use;
    }
}
