//! State of a cluster at regular times.
//!
//! Layer: cluster.

use super::outcome::ClusterSample;
use crate::state::ClusterState;

/// Largest number of rows. Above it, every other row is dropped and the time between rows doubles.
const MOST: usize = 20_000;

/// Rows so far.
pub(crate) struct ClusterTimeline {
    every_ms: u64,
    next_ms: u64,
    rows: Vec<ClusterSample>,
}

impl ClusterTimeline {
    pub(crate) fn new(every_ms: u64) -> ClusterTimeline {
        ClusterTimeline { every_ms: every_ms.max(1), next_ms: 0, rows: Vec::new() }
    }

    /// Adds rows for all times before `ms`. PRECONDITION: nothing changes until then.
    pub(crate) fn record_until(&mut self, state: &ClusterState, ms: u64) {
        if self.next_ms >= ms {
            return;
        }
        let moment = state.moment();
        let all = state.machine.gpus();
        let now = ClusterSample {
            at_ms: 0,
            waiting_jobs: state.queue.len() as u64,
            waiting_gpus: state.waiting_gpus,
            running_jobs: state.running.len() as u64,
            busy_gpus: all - moment.free - moment.down - moment.drained - moment.spare,
            free_gpus: moment.free,
            stranded_gpus: moment.stranded,
            down_gpus: moment.down,
            drained_gpus: moment.drained,
            spare_gpus: moment.spare,
            slowed_gpus: state.slowed_gpus(),
        };
        while self.next_ms < ms {
            self.rows.push(ClusterSample { at_ms: self.next_ms, ..now });
            self.next_ms = self.next_ms.saturating_add(self.every_ms);
            if self.rows.len() == MOST {
                let mut keep = [true, false].into_iter().cycle();
                self.rows.retain(|_| keep.next().unwrap_or(true));
                self.every_ms *= 2;
                self.next_ms = self.rows.len() as u64 * self.every_ms;
            }
        }
    }

    pub(crate) fn rows(self) -> Vec<ClusterSample> {
        self.rows
    }
}
