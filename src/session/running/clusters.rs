//! Runs the experiments of a sweep that simulate a cluster over days: one on each thread, reported as they end.
//!
//! Layer: session. Engines and batches are for packets; clusters need neither.

use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::time::Instant;

use rayon::prelude::*;

use hyperfold_base::budget::{self, Unfinished};
use hyperfold_base::isolation;
use hyperfold_cluster::{ClusterError, ClusterHistory, ClusterOutcome, PreparedCluster};
use hyperfold_config::spec::Config;
use hyperfold_config::sweep::{Experiment, Sweep};
use hyperfold_host::{Ending, MemoryRefusal, PrepareError};
use hyperfold_results::{Finished, StatsRecord};
use hyperfold_trace::{DEFAULT_LIMIT, perfetto_cluster};

use crate::error::SessionError;
use crate::experiment::{config, unmeasured};
use crate::records::convert_cluster::finished_cluster;
use crate::running::interrupt::Interrupt;

/// The result of an experiment and its run time in seconds; `None`: it was interrupted.
type Ended = Option<(Result<(ClusterOutcome, Option<ClusterHistory>), Ending>, f64)>;

fn simulated(config: &Config, interrupt: &Interrupt) -> Ended {
    let start = Instant::now();
    let too_long = || config.limits.wall_ms.filter(|ms| start.elapsed().as_millis() >= u128::from(*ms));
    let stop = || interrupt.requested() || too_long().is_some();
    let run = || {
        PreparedCluster::new(config).and_then(|cluster| {
            if config.output.trace {
                cluster.recorded(&stop).map(|(outcome, history)| (outcome, Some(history)))
            } else {
                cluster.simulate(&stop).map(|outcome| (outcome, None))
            }
        })
    };
    // Each thread runs one at a time.
    let allowance = budget::total() / rayon::current_num_threads() as u64;
    let allowance = config.limits.memory_bytes.map_or(allowance, |limit_bytes| limit_bytes.min(allowance));
    let bounded = || match budget::within(allowance, run) {
        Ok((ended, _)) => ended,
        Err(Unfinished::OverBudget(excess)) => Err(PrepareError::Memory(MemoryRefusal::of(config, &excess)).into()),
        Err(Unfinished::Interrupted) => Err(ClusterError::Interrupted),
    };
    let result = match isolation::isolated(bounded) {
        Ok(Err(ClusterError::Interrupted)) if interrupt.requested() => return None,
        Ok(Err(ClusterError::Interrupted)) => Err(Ending::Failed(format!(
            "limit: wall_s = {} reached; raise limits.wall_s, or simulate fewer jobs or hours",
            config.limits.wall_ms.unwrap_or_default() as f64 / 1e3
        ))),
        // The model of a class of jobs does not fit.
        Ok(Err(ClusterError::Network(PrepareError::Oom { peak_bytes, breakdown }))) => {
            Err(Ending::Oom { peak_bytes, breakdown })
        }
        Ok(ended) => ended.map_err(|e| Ending::Failed(e.to_string())),
        Err(defect) => Err(Ending::Failed(defect.to_string())),
    };
    Some((result, start.elapsed().as_secs_f64()))
}

/// Runs the experiments. Each result is taken also for the experiments that equal it (`same`, by id).
///
/// # Errors
/// Errors of `take`.
pub(crate) fn run(
    sweep: &Sweep,
    experiments: &[&Experiment],
    same: &HashMap<u64, Vec<&Experiment>>,
    pool: &rayon::ThreadPool,
    interrupt: &Interrupt,
    take: &mut (dyn FnMut(ClusterUpdate) -> Result<(), SessionError> + Send),
) -> Result<(), SessionError> {
    if experiments.is_empty() {
        return Ok(());
    }
    let (send, receive) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pool.install(|| {
                experiments.par_iter().for_each_with(send, |send, experiment| {
                    if interrupt.requested() || send.send(ClusterUpdate::Started(experiment.exp_id)).is_err() {
                        return;
                    }
                    let configured = config(sweep, experiment);
                    if let Some((result, seconds)) = simulated(&configured, interrupt) {
                        let others = same.get(&experiment.exp_id).map_or(&[][..], Vec::as_slice);
                        for e in std::iter::once(experiment).chain(others) {
                            if let Ok((_, Some(history))) = &result {
                                let trace = perfetto_cluster(history, 0, u64::MAX, DEFAULT_LIMIT);
                                let _ = send.send(ClusterUpdate::Traced { exp_id: e.exp_id, bytes: trace.bytes });
                            }
                            let record = unmeasured(sweep, e);
                            let done = match &result {
                                Ok((outcome, _)) => finished_cluster(record, outcome, &configured, seconds),
                                Err(Ending::Oom { peak_bytes, breakdown }) => {
                                    Finished::without_rows(record.oom(*peak_bytes, breakdown), StatsRecord::default())
                                }
                                Err(Ending::Failed(why) | Ending::MachineLimit(why)) => {
                                    Finished::without_rows(record.failed(why), StatsRecord::default())
                                }
                            };
                            // Sending fails if results cannot be written; then nobody listens any more.
                            let _ = send.send(ClusterUpdate::Finished(Box::new(done)));
                        }
                    }
                });
            });
        });
        receive.into_iter().try_for_each(take)
    })
}

/// Progress of a cluster experiment.
pub(crate) enum ClusterUpdate {
    Started(u64),
    /// The timeline of an experiment that will be finished next.
    Traced {
        exp_id: u64,
        bytes: Vec<u8>,
    },
    Finished(Box<Finished>),
}
