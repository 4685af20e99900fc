//! Record of what every job and every server did over time.
//!
//! Layer: cluster. It is kept only where it is asked for, and does not change the simulation.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::servers::{GpuShare, ServerUse};

/// Activity of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobActivity {
    /// The job waits in the queue.
    Waits,
    /// The job runs on GPUs.
    Runs {
        /// GPUs that it holds.
        gpus: u32,
        /// Its time over its time at full speed, in millionths.
        slowdown_ppm: u64,
    },
}

/// Activity of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerActivity {
    /// The server runs a job.
    Job {
        /// Number of the job.
        job: u32,
        /// GPUs that the job holds of it.
        gpus: u32,
    },
    /// Any other use than running jobs.
    Apart(ServerUse),
}

/// Activity of a job or a server during a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityTime<T> {
    /// Number of the job or server.
    pub of: u32,
    /// Begin of the period, in ms.
    pub from_ms: u64,
    /// End of the period, in ms.
    pub to_ms: u64,
    /// Activity of the job or server.
    pub what: T,
}

/// Complete record, by job and by server, each in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterHistory {
    /// Activities of jobs, by job and time.
    pub jobs: Vec<ActivityTime<JobActivity>>,
    /// Activities of servers, by server and time.
    pub servers: Vec<ActivityTime<ServerActivity>>,
    /// Name, user and requested GPUs of each job.
    pub names: Vec<(Arc<str>, Arc<str>, u32)>,
    /// End of the record, in ms.
    pub end_ms: u64,
}

/// Record so far. Activities that still go on are in `jobs` and `uses`, with the time in ms when they began.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryLog {
    jobs: BTreeMap<u32, (u64, JobActivity)>,
    uses: BTreeMap<u32, (u64, ServerUse)>,
    ended: ClusterHistory,
}

impl HistoryLog {
    /// Records what a job does from now on. `None`: nothing.
    pub(crate) fn job(&mut self, job: u32, activity: Option<JobActivity>, now_ms: u64) {
        if let Some(&(from_ms, before)) = self.jobs.get(&job) {
            if Some(before) == activity {
                return;
            }
            if from_ms < now_ms {
                self.ended.jobs.push(ActivityTime { of: job, from_ms, to_ms: now_ms, what: before });
            }
        }
        match activity {
            Some(activity) => self.jobs.insert(job, (now_ms, activity)),
            None => self.jobs.remove(&job),
        };
    }

    /// Records the GPUs that a job held from `from_ms` until now.
    pub(crate) fn had(&mut self, job: u32, shares: &[GpuShare], from_ms: u64, now_ms: u64) {
        for share in shares.iter().filter(|_| from_ms < now_ms) {
            let activity = ServerActivity::Job { job, gpus: share.count() };
            self.ended.servers.push(ActivityTime { of: share.server, from_ms, to_ms: now_ms, what: activity });
        }
    }

    /// Records changes of the use of servers, from now on.
    pub(crate) fn uses(&mut self, changes: Vec<(u32, ServerUse)>, now_ms: u64) {
        for (server, new_use) in changes {
            if let Some((from_ms, before)) = self.uses.insert(server, (now_ms, new_use)) {
                self.record_use(server, from_ms, now_ms, before);
            }
        }
    }

    fn record_use(&mut self, server: u32, from_ms: u64, to_ms: u64, server_use: ServerUse) {
        if from_ms < to_ms && server_use != ServerUse::InService {
            self.ended.servers.push(ActivityTime {
                of: server,
                from_ms,
                to_ms,
                what: ServerActivity::Apart(server_use),
            });
        }
    }

    /// The complete record. Activities that still go on end at `now_ms`.
    pub(crate) fn finished(mut self, names: Vec<(Arc<str>, Arc<str>, u32)>, now_ms: u64) -> ClusterHistory {
        let open: Vec<u32> = self.jobs.keys().copied().collect();
        open.into_iter().for_each(|job| self.job(job, None, now_ms));
        for (server, (from_ms, server_use)) in std::mem::take(&mut self.uses) {
            self.record_use(server, from_ms, now_ms, server_use);
        }
        let mut all = ClusterHistory { names, end_ms: now_ms, ..self.ended };
        all.jobs.sort_by_key(|t| (t.of, t.from_ms));
        all.servers.sort_by_key(|t| (t.of, t.from_ms));
        all
    }
}
