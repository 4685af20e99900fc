//! Further runs of an experiment with several jobs: each job without the others, and all jobs but one. Slowdowns are relative to them.
//!
//! Layer: session. With `output.alone = true` an experiment of several jobs is queued with one more run for each job, and with `output.leave_one_out = true`
//! with another. Ids of further runs exist only in the queue. The experiment ends when all its runs have ended.

use std::collections::HashMap;
use std::sync::Arc;

use hyperfold_config::spec::{Config, RunningJobs};
use hyperfold_host::{Ended, JobTimes};

/// The role of an entry of the queue: an experiment, or the same experiment with only some of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueRole {
    pub exp_id: u64,
    pub running: RunningJobs,
}

/// An experiment and its further runs, as they are queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuedRuns {
    pub exp_id: u64,
    pub further: Vec<RunningJobs>,
}

/// Experiments and their further runs, by their ids in the queue.
pub(crate) struct AloneRuns {
    /// Role of each id. Empty: no experiment has further runs, and ids are those of experiments.
    roles: Vec<QueueRole>,
    open: HashMap<u64, OpenExperiment>,
}

/// Times of each job, with its name.
type TimesByJob = Vec<(Arc<str>, JobTimes)>;

/// An experiment whose runs have not all ended.
struct OpenExperiment {
    ended: Option<Ended>,
    /// The further runs that have ended, with each job's times.
    further: Vec<(RunningJobs, TimesByJob)>,
    /// Number of further runs that have not ended.
    left: usize,
}

impl AloneRuns {
    pub(crate) fn new(experiments: &[QueuedRuns]) -> AloneRuns {
        if experiments.iter().all(|e| e.further.is_empty()) {
            return AloneRuns { roles: Vec::new(), open: HashMap::new() };
        }
        let roles = |e: &QueuedRuns| {
            let exp_id = e.exp_id;
            let running = std::iter::once(RunningJobs::All).chain(e.further.clone());
            running.map(move |running| QueueRole { exp_id, running })
        };
        let waits =
            |e: &QueuedRuns| (e.exp_id, OpenExperiment { ended: None, further: Vec::new(), left: e.further.len() });
        AloneRuns {
            roles: experiments.iter().flat_map(roles).collect(),
            open: experiments.iter().filter(|e| !e.further.is_empty()).map(waits).collect(),
        }
    }

    /// Whether ids of the queue differ from those of experiments.
    pub(crate) fn renumbers(&self) -> bool {
        !self.roles.is_empty()
    }

    /// Returns the entries of the queue by id: `experiments` and their further runs.
    pub(crate) fn queue(&self, experiments: &[QueuedRuns]) -> Vec<(u64, QueueRole)> {
        if self.roles.is_empty() {
            let role = |e: &QueuedRuns| (e.exp_id, QueueRole { exp_id: e.exp_id, running: RunningJobs::All });
            return experiments.iter().map(role).collect();
        }
        (0..).zip(self.roles.iter().copied()).collect()
    }

    /// Returns the experiment of an id of the queue; `None`: it is a further run.
    pub(crate) fn experiment(&self, id: u64) -> Option<u64> {
        match self.roles.get(usize::try_from(id).unwrap_or(usize::MAX)) {
            _ if self.roles.is_empty() => Some(id),
            Some(QueueRole { exp_id, running: RunningJobs::All }) => Some(*exp_id),
            _ => None,
        }
    }

    /// Takes the end of a run. Returns the experiment's end once its further runs have ended too.
    pub(crate) fn take(&mut self, ended: Ended) -> Option<Ended> {
        if self.roles.is_empty() {
            return Some(ended);
        }
        let QueueRole { exp_id, running } = self.roles[ended.exp_id as usize];
        let Some(open) = self.open.get_mut(&exp_id) else { return Some(Ended { exp_id, ..ended }) };
        match running {
            RunningJobs::All => open.ended = Some(Ended { exp_id, ..ended }),
            _ => {
                open.left -= 1;
                // A run that failed leaves its cells empty.
                open.further.extend(ended.result.ok().map(|outcome| (running, outcome.job_times())));
            }
        }
        if open.left > 0 || open.ended.is_none() {
            return None;
        }
        let OpenExperiment { ended, mut further, .. } = self.open.remove(&exp_id)?;
        let mut ended = ended?;
        // In the order of the sweep file, whichever run ended first.
        further.sort_by_key(|(running, _)| match running {
            RunningJobs::All => (0, 0),
            RunningJobs::Only(job) => (1, *job),
            RunningJobs::AllBut(job) => (2, *job),
        });
        if let Ok(outcome) = &mut ended.result {
            let names: Vec<Arc<str>> = outcome.jobs.iter().map(|job| Arc::clone(&job.name)).collect();
            for job in &mut outcome.jobs {
                for (running, times) in &further {
                    let Some((_, times)) = times.iter().find(|(name, _)| *name == job.name) else { continue };
                    match running {
                        RunningJobs::Only(_) => job.alone = Some(*times),
                        RunningJobs::AllBut(left_out) => job.without.push((Arc::clone(&names[*left_out]), *times)),
                        RunningJobs::All => {}
                    }
                }
            }
        }
        Some(ended)
    }
}

/// Returns the configuration of an entry of the queue, from that of its experiment.
pub(crate) fn config_of(role: QueueRole, mut config: Config) -> Config {
    if role.running != RunningJobs::All {
        config.jobs = config.jobs.map(|jobs| jobs.with_running(role.running));
    }
    config
}

/// Returns the further runs that an experiment asks for.
pub(crate) fn further_runs(config: &Config) -> Vec<RunningJobs> {
    let n_jobs = config.jobs.as_ref().map_or(0, |jobs| jobs.jobs.len());
    let alone = (0..n_jobs).filter(|_| config.output.alone).map(RunningJobs::Only);
    let leave_one_out = (0..n_jobs).filter(|_| config.output.leave_one_out && n_jobs > 1).map(RunningJobs::AllBut);
    alone.chain(leave_one_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_host::Ending;

    fn ended(id: u64) -> Ended {
        let result = Err(Ending::Failed(String::new()));
        Ended { exp_id: id, result, packet_hops: 0, folds: None, seconds: 0.0 }
    }

    fn queued(exp_id: u64, further: &[RunningJobs]) -> QueuedRuns {
        QueuedRuns { exp_id, further: further.to_vec() }
    }

    #[test]
    fn an_experiment_ends_with_the_last_of_its_further_runs() {
        let experiments = [queued(5, &[RunningJobs::Only(0), RunningJobs::AllBut(1)]), queued(9, &[])];
        let mut runs = AloneRuns::new(&experiments);
        assert_eq!(runs.queue(&experiments).len(), 4);
        assert_eq!([0, 1, 2, 3].map(|id| runs.experiment(id)), [Some(5), None, None, Some(9)]);
        assert_eq!([2, 0, 3].map(|id| runs.take(ended(id)).map(|e| e.exp_id)), [None, None, Some(9)]);
        assert_eq!(runs.take(ended(1)).map(|e| e.exp_id), Some(5));
    }

    #[test]
    fn without_further_runs_ids_are_those_of_experiments() {
        let mut runs = AloneRuns::new(&[queued(5, &[])]);
        assert_eq!((runs.experiment(5), runs.take(ended(5)).map(|e| e.exp_id)), (Some(5), Some(5)));
    }
}
