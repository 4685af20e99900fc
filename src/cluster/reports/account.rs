//! Accounts for the GPU time of a cluster. Every GPU-nanosecond is counted in exactly one place.
//!
//! Layer: cluster. The unit is GPU-nanoseconds.

use crate::jobs::progress::TimeSpent;

/// Nanoseconds in a millisecond.
const NS: u128 = 1_000_000;

/// Number of GPUs that no job holds at a moment, by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnheldGpus {
    /// GPUs in service that no job holds.
    pub free: u64,
    /// Part of `free`: all free GPUs, if they are enough for the first job of the queue but it cannot get them where they are; else 0.
    pub stranded: u64,
    /// GPUs on servers under repair.
    pub down: u64,
    /// GPUs without a job on servers that are drained or in maintenance.
    pub drained: u64,
    /// GPUs of spare servers.
    pub spare: u64,
}

/// GPU time by what it was spent on, in GPU-nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Work that counts, as the time that it takes at full speed.
    pub useful: u128,
    /// Extra time of that work, caused by placement, other jobs and slow servers. After a job has shrunk, it includes what the work takes longer on fewer
    /// GPUs. It is below 0 where fewer GPUs are better used.
    pub slowdown: i128,
    /// Part of `slowdown` that other jobs cause.
    pub company: u128,
    /// Writes of checkpoints.
    pub checkpoint: u128,
    /// Restarts, until work goes on.
    pub restart: u128,
    /// Work that was lost and had to be done again.
    pub rolled_back: u128,
    /// GPUs in service that no job holds.
    pub free: u128,
    /// Part of `free`: see [`UnheldGpus::stranded`].
    pub stranded: u128,
    /// GPUs on servers under repair.
    pub down: u128,
    /// GPUs without a job on servers that are drained or in maintenance.
    pub drained: u128,
    /// GPUs of spare servers.
    pub spare: u128,
    /// Share of the rack uplinks of running jobs that checkpoint writes of other jobs took, times the GPU time of these jobs, in millionths of a
    /// GPU-nanosecond. It is reported separately and is not part of `total`.
    pub beside_writes: u128,
}

impl Account {
    /// Counts `ms` milliseconds of the GPUs that no job holds.
    pub fn pass(&mut self, ms: u64, moment: &UnheldGpus) {
        let gpu_time = |gpus: u64| u128::from(gpus) * u128::from(ms) * NS;
        self.free += gpu_time(moment.free);
        self.stranded += gpu_time(moment.stranded);
        self.down += gpu_time(moment.down);
        self.drained += gpu_time(moment.drained);
        self.spare += gpu_time(moment.spare);
    }

    /// Counts `ms` milliseconds in which GPUs worked beside writes. `gpus_ppm` is their number times the millionths of their rack uplinks that the writes
    /// take.
    pub(crate) fn pass_beside_writes(&mut self, ms: u64, gpus_ppm: u128) {
        self.beside_writes += gpus_ppm * u128::from(ms) * NS;
    }

    /// Counts the time that a job spent on `held` GPUs. Its work is measured in the time that it takes on `gpus` GPUs.
    pub(crate) fn spend(&mut self, spent: &TimeSpent, held: u32, gpus: u32) {
        let gpu_time = |ms: u64| u128::from(held) * u128::from(ms) * NS;
        let useful = u128::from(spent.work_ns) * u128::from(gpus);
        self.useful += useful;
        self.slowdown += gpu_time(spent.working_ms) as i128 - useful as i128;
        self.checkpoint += gpu_time(spent.checkpoint_ms);
        self.restart += gpu_time(spent.restart_ms);
    }

    /// Moves `work_ns` of a job with `gpus` GPUs from useful work to lost work.
    pub fn lose(&mut self, work_ns: u64, gpus: u32) {
        let lost = u128::from(work_ns) * u128::from(gpus);
        self.useful -= lost;
        self.rolled_back += lost;
    }

    /// GPU time in which jobs held GPUs.
    pub fn held(&self) -> u128 {
        let sum = self.useful + self.checkpoint + self.restart + self.rolled_back;
        // Useful work and `slowdown` together are the time in which GPUs worked.
        sum.saturating_add_signed(self.slowdown)
    }

    /// Sum of all GPU time of the cluster.
    pub fn total(&self) -> u128 {
        self.held() + self.free + self.down + self.drained + self.spare
    }
}
