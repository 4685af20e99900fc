//! Which GPUs are free, by server, and which servers run jobs at all.
//!
//! Layer: cluster. Knows no jobs.

use std::collections::BTreeSet;

/// GPUs of one server, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuShare {
    pub server: u32,
    pub gpus: u64,
}

impl GpuShare {
    /// How many.
    pub fn count(self) -> u32 {
        self.gpus.count_ones()
    }
}

/// What a server is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerUse {
    /// Runs jobs.
    InService,
    /// Gets no new jobs; those that it has go on.
    Draining,
    /// In maintenance.
    Maintenance,
    /// Being mended.
    Down,
    HotSpare,
    ColdSpare,
}

/// All servers.
#[derive(Clone, Debug)]
pub struct Servers {
    per_server: u32,
    free: Vec<u64>,
    uses: Vec<ServerUse>,
    /// Those in service, by how many GPUs are free.
    by_free: Vec<BTreeSet<u32>>,
    free_gpus: u64,
    /// Servers by their use, in the order of its variants.
    of_use: [u32; 6],
    /// Free GPUs of servers that are drained.
    draining_free: u64,
    /// Changes of uses, where they are recorded.
    changes: Option<Vec<(u32, ServerUse)>>,
}

impl Servers {
    /// All free and in service. PRECONDITION: 1 to 64 GPUs a server.
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
            of_use: [n, 0, 0, 0, 0, 0],
            draining_free: 0,
            changes: None,
        }
    }

    /// Servers of any use.
    pub fn len(&self) -> u32 {
        self.free.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    /// GPUs of a server.
    pub fn per_server(&self) -> u32 {
        self.per_server
    }

    /// Free GPUs of servers in service.
    pub fn free_gpus(&self) -> u64 {
        self.free_gpus
    }

    /// Free GPUs of a server, one bit each.
    pub fn free_of(&self, server: u32) -> u64 {
        self.free[server as usize]
    }

    /// What a server is there for.
    pub fn use_of(&self, server: u32) -> ServerUse {
        self.uses[server as usize]
    }

    /// Servers in service with exactly so many free GPUs, ascending.
    pub fn with_free(&self, count: u32) -> &BTreeSet<u32> {
        &self.by_free[count as usize]
    }

    /// Servers that are there for this.
    pub fn count(&self, of: ServerUse) -> u32 {
        self.of_use[of as usize]
    }

    /// Free GPUs of servers that are drained.
    pub fn draining_free(&self) -> u64 {
        self.draining_free
    }

    /// The lowest `count` of a server's free GPUs. PRECONDITION: it has so many.
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
        let (at, before) = (server as usize, self.free[server as usize]);
        self.free[at] = free;
        if self.uses[at] == ServerUse::InService && before != free {
            self.by_free[before.count_ones() as usize].remove(&server);
            self.by_free[free.count_ones() as usize].insert(server);
            self.free_gpus += u64::from(free.count_ones());
            self.free_gpus -= u64::from(before.count_ones());
        }
        if self.uses[at] == ServerUse::Draining {
            self.draining_free += u64::from(free.count_ones());
            self.draining_free -= u64::from(before.count_ones());
        }
    }

    /// Takes GPUs.
    ///
    /// # Panics
    /// One of them is not free: a scheduler that gives a GPU twice must not go on.
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

    /// Records changes of uses from now on.
    pub(super) fn record_uses(&mut self) {
        self.changes = Some(Vec::new());
    }

    /// Changes since the last call, where they are recorded.
    pub(super) fn take_changes(&mut self) -> Vec<(u32, ServerUse)> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Changes what a server is there for.
    pub fn set_use(&mut self, server: u32, to: ServerUse) {
        let at = server as usize;
        let (from, free) = (self.uses[at], self.free[at].count_ones());
        if from == to {
            return;
        }
        match from {
            ServerUse::InService => {
                self.by_free[free as usize].remove(&server);
                self.free_gpus -= u64::from(free);
            }
            ServerUse::Draining => self.draining_free -= u64::from(free),
            _ => {}
        }
        match to {
            ServerUse::InService => {
                self.by_free[free as usize].insert(server);
                self.free_gpus += u64::from(free);
            }
            ServerUse::Draining => self.draining_free += u64::from(free),
            _ => {}
        }
        if let Some(changes) = &mut self.changes {
            changes.push((server, to));
        }
        self.of_use[from as usize] -= 1;
        self.of_use[to as usize] += 1;
        self.uses[at] = to;
    }
}
