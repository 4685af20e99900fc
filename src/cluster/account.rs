//! Where the GPU time of a cluster went. All of it is in exactly one place.
//!
//! Layer: cluster. GPU-nanoseconds.

use super::progress::TimeSpent;

/// Nanoseconds of a millisecond.
const NS: u128 = 1_000_000;

/// What the GPUs do at a moment, beside those of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnheldGpus {
    /// In service and without a job.
    pub free: u64,
    /// Of these, enough for the first of the queue, which cannot have them where they are.
    pub stranded: u64,
    pub down: u64,
    /// On servers that are drained or in maintenance, and without a job.
    pub drained: u64,
    pub spare: u64,
}

/// GPU time by what it went into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Work that counts, at full speed.
    pub useful: u128,
    /// What it took longer for placement, company and slow servers; after a job shrank, also what its fewer GPUs took longer. Below 0 where these are better used.
    pub slowdown: i128,
    /// Part of `slowdown`: for company alone.
    pub company: u128,
    pub checkpoint: u128,
    pub restart: u128,
    /// Work that was lost.
    pub rolled_back: u128,
    pub free: u128,
    /// Part of `free`.
    pub stranded: u128,
    pub down: u128,
    pub drained: u128,
    pub spare: u128,
    /// Beside all that, in millionths of a GPU-nanosecond: of the ways that jobs send over out of their racks, what writes of others took meanwhile.
    pub beside_writes: u128,
}

impl Account {
    /// Time passes over GPUs without jobs.
    pub fn pass(&mut self, ms: u64, moment: &UnheldGpus) {
        let of = |gpus: u64| u128::from(gpus) * u128::from(ms) * NS;
        self.free += of(moment.free);
        self.stranded += of(moment.stranded);
        self.down += of(moment.down);
        self.drained += of(moment.drained);
        self.spare += of(moment.spare);
    }

    /// Time passes over so many GPUs beside writes, times millionths of the way that these take.
    pub(super) fn pass_beside_writes(&mut self, ms: u64, gpus_ppm: u128) {
        self.beside_writes += gpus_ppm * u128::from(ms) * NS;
    }

    /// What a job has spent on `held` GPUs, whose work is that of `gpus`.
    pub(super) fn spend(&mut self, spent: &TimeSpent, held: u32, gpus: u32) {
        let of = |ms: u64| u128::from(held) * u128::from(ms) * NS;
        let useful = u128::from(spent.work_ns) * u128::from(gpus);
        self.useful += useful;
        self.slowdown += of(spent.working_ms) as i128 - useful as i128;
        self.checkpoint += of(spent.checkpoint_ms);
        self.restart += of(spent.restart_ms);
    }

    /// Work turns out to be lost.
    pub fn lose(&mut self, work_ns: u64, gpus: u32) {
        let lost = u128::from(work_ns) * u128::from(gpus);
        self.useful -= lost;
        self.rolled_back += lost;
    }

    /// GPU time that jobs held.
    pub fn held(&self) -> u128 {
        let sum = self.useful + self.checkpoint + self.restart + self.rolled_back;
        // Work and what it took longer are time that GPUs were held.
        sum.saturating_add_signed(self.slowdown)
    }

    /// All GPU time.
    pub fn total(&self) -> u128 {
        self.held() + self.free + self.down + self.drained + self.spare
    }
}
