//! Jobs once more, each without the others: what a job's slowdown is held against.
//!
//! Layer: session. With `output.alone = true` an experiment of several jobs is queued with one more for each job. Their ids are of the queue
//! alone; the experiment ends when all of them have.

use std::collections::HashMap;

use crate::batch::{AloneTimes, Ended};
use crate::spec::Config;

/// What a place of the queue is: an experiment, or one of its jobs alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueRole {
    pub exp_id: u64,
    pub job: Option<usize>,
}

/// Experiments and jobs alone, by their ids in the queue.
pub(super) struct AloneRuns {
    /// Empty: no job runs alone, and ids are those of experiments.
    roles: Vec<QueueRole>,
    open: HashMap<u64, OpenExperiment>,
}

/// An experiment whose jobs also run alone.
struct OpenExperiment {
    ended: Option<Ended>,
    alone: Vec<Option<AloneTimes>>,
    /// Jobs that have not ended alone.
    left: usize,
}

impl AloneRuns {
    /// For experiments, each with the number of its jobs that also run alone.
    pub(super) fn new(experiments: &[(u64, usize)]) -> AloneRuns {
        if experiments.iter().all(|(_, jobs)| *jobs == 0) {
            return AloneRuns { roles: Vec::new(), open: HashMap::new() };
        }
        let of = |&(exp_id, jobs): &(u64, usize)| {
            std::iter::once(None).chain((0..jobs).map(Some)).map(move |job| QueueRole { exp_id, job })
        };
        let waits = |&(exp_id, jobs): &(u64, usize)| {
            (exp_id, OpenExperiment { ended: None, alone: vec![None; jobs], left: jobs })
        };
        AloneRuns {
            roles: experiments.iter().flat_map(of).collect(),
            open: experiments.iter().filter(|(_, jobs)| *jobs > 0).map(waits).collect(),
        }
    }

    /// What is queued, by its id there: `experiments` and their jobs.
    pub(super) fn queue(&self, experiments: &[(u64, usize)]) -> Vec<(u64, QueueRole)> {
        if self.roles.is_empty() {
            return experiments.iter().map(|&(exp_id, _)| (exp_id, QueueRole { exp_id, job: None })).collect();
        }
        (0..).zip(self.roles.iter().copied()).collect()
    }

    /// The experiment of an id of the queue; `None`: a job alone.
    pub(super) fn experiment(&self, id: u64) -> Option<u64> {
        match self.roles.get(usize::try_from(id).unwrap_or(usize::MAX)) {
            _ if self.roles.is_empty() => Some(id),
            Some(QueueRole { exp_id, job: None }) => Some(*exp_id),
            _ => None,
        }
    }

    /// Takes an end; the experiment's, once its jobs have ended alone too.
    pub(super) fn take(&mut self, ended: Ended) -> Option<Ended> {
        if self.roles.is_empty() {
            return Some(ended);
        }
        let QueueRole { exp_id, job } = self.roles[ended.exp_id as usize];
        let Some(open) = self.open.get_mut(&exp_id) else { return Some(Ended { exp_id, ..ended }) };
        match job {
            None => open.ended = Some(Ended { exp_id, ..ended }),
            Some(job) => {
                open.left -= 1;
                open.alone[job] = ended.result.ok().and_then(|outcome| {
                    let own = outcome.jobs.first()?;
                    Some(AloneTimes {
                        makespan_ps: own.end_ps.map(|end| end - own.start_ps),
                        iteration_ps: own.iteration.map(|i| i.time.total),
                    })
                });
            }
        }
        if open.left > 0 || open.ended.is_none() {
            return None;
        }
        let OpenExperiment { ended, alone, .. } = self.open.remove(&exp_id)?;
        let mut ended = ended?;
        if let Ok(outcome) = &mut ended.result {
            outcome.jobs.iter_mut().zip(alone).for_each(|(job, alone)| job.alone = alone);
        }
        Some(ended)
    }
}

/// The configuration of a place of the queue, given that of its experiment.
pub(super) fn config_of(role: QueueRole, mut config: Config) -> Config {
    if let Some(job) = role.job {
        config.jobs = config.jobs.map(|jobs| jobs.alone(job));
    }
    config
}

/// How many jobs of an experiment also run alone.
pub(super) fn jobs_alone(config: &Config) -> usize {
    config.jobs.as_ref().filter(|_| config.output.alone).map_or(0, |jobs| jobs.jobs.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Ending;

    fn ended(id: u64) -> Ended {
        let result = Err(Ending::Failed(String::new()));
        Ended { exp_id: id, result, packet_hops: 0, folds: None, seconds: 0.0 }
    }

    #[test]
    fn an_experiment_ends_with_the_last_of_its_jobs() {
        let of = [(5, 2), (9, 0)];
        let mut runs = AloneRuns::new(&of);
        assert_eq!(runs.queue(&of).len(), 4);
        assert_eq!([0, 1, 2, 3].map(|id| runs.experiment(id)), [Some(5), None, None, Some(9)]);
        assert_eq!([2, 0, 3].map(|id| runs.take(ended(id)).map(|e| e.exp_id)), [None, None, Some(9)]);
        assert_eq!(runs.take(ended(1)).map(|e| e.exp_id), Some(5));
    }

    #[test]
    fn without_jobs_alone_ids_are_those_of_experiments() {
        let mut runs = AloneRuns::new(&[(5, 0)]);
        assert_eq!((runs.experiment(5), runs.take(ended(5)).map(|e| e.exp_id)), (Some(5), Some(5)));
    }
}
