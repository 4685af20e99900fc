//! What every job and server did when, where that is asked for.
//!
//! Layer: cluster. Recorded while the cluster is simulated; changes nothing of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::servers::{GpuShare, ServerUse};

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobActivity {
    Waits,
    /// On so many GPUs, at its time over its time at full speed, millionths.
    Runs {
        gpus: u32,
        slowdown_ppm: u64,
    },
}

/// What a server is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerActivity {
    /// A job, by its number, on so many of its GPUs.
    Job { job: u32, gpus: u32 },
    /// Anything but running jobs.
    Apart(ServerUse),
}

/// An activity of a job or a server, by its number, for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityTime<T> {
    pub of: u32,
    pub from_ms: u64,
    pub to_ms: u64,
    pub what: T,
}

/// All of it, by job and by server, each in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterHistory {
    pub jobs: Vec<ActivityTime<JobActivity>>,
    pub servers: Vec<ActivityTime<ServerActivity>>,
    /// Of each job: its name, its user, and the GPUs that it asked for.
    pub names: Vec<(Arc<str>, Arc<str>, u32)>,
    pub end_ms: u64,
}

/// What is known so far.
#[derive(Clone, Debug, Default)]
pub(super) struct HistoryLog {
    jobs: BTreeMap<u32, (u64, JobActivity)>,
    uses: BTreeMap<u32, (u64, ServerUse)>,
    ended: ClusterHistory,
}

impl HistoryLog {
    /// What a job does from now on; `None`: nothing.
    pub(super) fn job(&mut self, job: u32, what: Option<JobActivity>, now_ms: u64) {
        if let Some(&(from_ms, before)) = self.jobs.get(&job) {
            if Some(before) == what {
                return;
            }
            if from_ms < now_ms {
                self.ended.jobs.push(ActivityTime { of: job, from_ms, to_ms: now_ms, what: before });
            }
        }
        match what {
            Some(what) => self.jobs.insert(job, (now_ms, what)),
            None => self.jobs.remove(&job),
        };
    }

    /// A job had these GPUs until now.
    pub(super) fn had(&mut self, job: u32, shares: &[GpuShare], from_ms: u64, now_ms: u64) {
        for share in shares.iter().filter(|_| from_ms < now_ms) {
            let what = ServerActivity::Job { job, gpus: share.count() };
            self.ended.servers.push(ActivityTime { of: share.server, from_ms, to_ms: now_ms, what });
        }
    }

    /// What servers are there for from now on.
    pub(super) fn uses(&mut self, changes: Vec<(u32, ServerUse)>, now_ms: u64) {
        for (server, to) in changes {
            if let Some((from_ms, before)) = self.uses.insert(server, (now_ms, to)) {
                self.apart(server, from_ms, now_ms, before);
            }
        }
    }

    fn apart(&mut self, server: u32, from_ms: u64, to_ms: u64, what: ServerUse) {
        if from_ms < to_ms && what != ServerUse::InService {
            self.ended.servers.push(ActivityTime { of: server, from_ms, to_ms, what: ServerActivity::Apart(what) });
        }
    }

    /// All of it at the end.
    pub(super) fn finished(mut self, names: Vec<(Arc<str>, Arc<str>, u32)>, now_ms: u64) -> ClusterHistory {
        let open: Vec<u32> = self.jobs.keys().copied().collect();
        open.into_iter().for_each(|job| self.job(job, None, now_ms));
        for (server, (from_ms, what)) in std::mem::take(&mut self.uses) {
            self.apart(server, from_ms, now_ms, what);
        }
        let mut all = ClusterHistory { names, end_ms: now_ms, ..self.ended };
        all.jobs.sort_by_key(|t| (t.of, t.from_ms));
        all.servers.sort_by_key(|t| (t.of, t.from_ms));
        all
    }
}
