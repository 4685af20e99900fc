//! Finds experiments that look the same to an engine: one of them is simulated, the others get its outcome.
//!
//! Layer: host. Sweeps have many axes that change nothing for some of their values: a seed of paths where there is one path, a price, a key that this cluster
//! does not use. Experiments are duplicates if everything that tables are built from is equal, compared value by value; jobs are compared by their
//! [`JobKey`](crate::programs::job_key). Only experiments that may be remembered (`fidelity.memo`) take part, and only outcomes are shared, never failures.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::batches::dedup_key::DedupKey;
use crate::batches::world::{Ended, Limits, folds_of_duplicate};
use crate::cost::Bill;
use crate::outcomes::outcome::{ExperimentOutcome, FlowOutcome, LinkOutcome};
use crate::setup::error::PrepareError;
use crate::setup::experiment::QueuedExperiment;
use crate::setup::prepare::{Prepared, tabled};
use crate::setup::prepared_before::KeptExperiment;
use crate::setup::route::routed;
use hyperfold_engine::FoldStats;

/// Approximate limit on the outcomes and keys kept, in bytes. Our choice: some hundred experiments of ten thousand messages.
const MAX_BYTES: usize = 256 << 20;

/// An experiment that is simulated; its duplicates get its outcome.
#[derive(Debug)]
pub(crate) struct Original {
    key: DedupKey,
    end: Mutex<OriginalEnd>,
}

#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one of these stands for thousands of experiments; a box would only add a step"
)]
enum OriginalEnd {
    /// It has not ended yet.
    Running,
    /// Its outcome, its packet-hops, and the folding statistics that a duplicate reports.
    Known(Arc<ExperimentOutcome>, u64, FoldStats),
    /// It failed: there is no outcome to share.
    Failed,
}

impl Original {
    fn end(&self) -> MutexGuard<'_, OriginalEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An experiment that is equal to another, its original.
pub(crate) struct Duplicate {
    task: QueuedExperiment,
    original: Arc<Original>,
    bill: Bill,
    pub notes: Vec<String>,
}

/// The next step for a [`Duplicate`].
pub(crate) enum DuplicateState {
    Ended(Box<Ended>),
    /// Its original has not ended.
    Waiting(Box<Duplicate>),
    /// Its original failed, so this experiment must be simulated itself.
    Simulate(Box<QueuedExperiment>),
}

impl Duplicate {
    pub(crate) fn exp_id(&self) -> u64 {
        self.task.exp_id
    }

    /// Returns the outcome if the original has ended, or else what to do next.
    pub(crate) fn state(self) -> DuplicateState {
        let end = self.original.end().clone();
        match end {
            OriginalEnd::Running => DuplicateState::Waiting(Box::new(self)),
            OriginalEnd::Failed => DuplicateState::Simulate(Box::new(self.task)),
            OriginalEnd::Known(outcome, packet_hops, folds) => DuplicateState::Ended(Box::new(Ended {
                exp_id: self.task.exp_id,
                result: Ok(ExperimentOutcome { bill: Some(self.bill), ..(*outcome).clone() }),
                packet_hops,
                folds: Some(folds),
                seconds: 0.0,
            })),
        }
    }
}

/// A prepared experiment, or the duplicate of one.
pub(crate) enum Preparation {
    Prepared(Box<Prepared>),
    Duplicate(Box<Duplicate>),
}

/// The experiments that were or are being simulated, to find duplicates of them.
#[derive(Default)]
pub(crate) struct Dedup {
    kept: Mutex<Originals>,
}

#[derive(Default)]
struct Originals {
    by_id: HashMap<u64, Arc<Original>>,
    /// Experiment ids by the number of their keys.
    by_number: HashMap<u64, Vec<u64>>,
    /// Ids of the experiments that have ended, in the order in which they ended.
    ended: VecDeque<u64>,
    /// Approximate size of the kept outcomes and keys, in bytes.
    bytes: usize,
}

impl Originals {
    fn find(&self, key: &DedupKey) -> Option<&Arc<Original>> {
        let mut ids = self.by_number.get(&key.number)?.iter();
        ids.find_map(|id| Some(&self.by_id[id]).filter(|original| original.key == *key))
    }

    fn add(&mut self, exp_id: u64, key: DedupKey) {
        self.bytes += key.bytes();
        self.by_number.entry(key.number).or_default().push(exp_id);
        self.by_id.insert(exp_id, Arc::new(Original { key, end: Mutex::new(OriginalEnd::Running) }));
    }

    fn remove(&mut self, exp_id: u64) -> Option<Arc<Original>> {
        let removed = self.by_id.remove(&exp_id)?;
        if let Some(ids) = self.by_number.get_mut(&removed.key.number) {
            ids.retain(|&id| id != exp_id);
            if ids.is_empty() {
                self.by_number.remove(&removed.key.number);
            }
        }
        self.bytes -= removed.key.bytes();
        if let OriginalEnd::Known(outcome, ..) = &*removed.end() {
            self.bytes -= bytes(outcome);
        }
        Some(removed)
    }

    /// Returns an experiment that is being simulated.
    fn running(&self, exp_id: u64) -> Option<&Arc<Original>> {
        self.by_id.get(&exp_id).filter(|original| matches!(*original.end(), OriginalEnd::Running))
    }
}

impl Dedup {
    fn lock(&self) -> MutexGuard<'_, Originals> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares an experiment, unless it equals one that is already prepared. `known`: this experiment, if it was prepared before the run.
    ///
    /// # Errors
    /// Fails as [`crate::setup::prepare()`] does.
    pub(crate) fn prepare(
        &self,
        task: &QueuedExperiment,
        limits: Limits,
        known: Option<KeptExperiment>,
    ) -> Result<Preparation, PrepareError> {
        if let Some(KeptExperiment { mut prepared, key }) = known {
            let notes = std::mem::take(&mut prepared.notes);
            return Ok(match self.original(task, key, prepared.bill, notes) {
                Ok(duplicate) => duplicate,
                Err(notes) => Preparation::Prepared(Box::new(Prepared { notes, ..*prepared })),
            });
        }
        let mut routed = routed(&task.config)?;
        let (key, notes) = (DedupKey::of(&routed, limits), std::mem::take(&mut routed.notes));
        routed.notes = match self.original(task, key, routed.bill, notes) {
            Ok(duplicate) => return Ok(duplicate),
            Err(notes) => notes,
        };
        match tabled(routed, task.exp_id as u32) {
            Ok(p) => Ok(Preparation::Prepared(Box::new(p))),
            Err(e) => {
                self.failed(task.exp_id);
                Err(e)
            }
        }
    }

    /// Returns the duplicate of the original with this key. If there is no original, the experiment becomes one, and `notes` come back.
    fn original(
        &self,
        task: &QueuedExperiment,
        key: Option<DedupKey>,
        bill: Bill,
        notes: Vec<String>,
    ) -> Result<Preparation, Vec<String>> {
        let Some(key) = key else { return Err(notes) };
        let mut kept = self.lock();
        if let Some(original) = kept.find(&key) {
            let (task, original) = (task.clone(), Arc::clone(original));
            return Ok(Preparation::Duplicate(Box::new(Duplicate { task, original, bill, notes })));
        }
        kept.add(task.exp_id, key);
        Err(notes)
    }

    /// Records that an experiment has ended, for its duplicates.
    pub(crate) fn ended(&self, ended: &Ended) {
        let Ok(outcome) = &ended.result else { return self.failed(ended.exp_id) };
        let mut kept = self.lock();
        let Some(original) = kept.running(ended.exp_id) else { return };
        let shared = folds_of_duplicate(&ended.folds.unwrap_or_default());
        *original.end() = OriginalEnd::Known(Arc::new(outcome.clone()), ended.packet_hops, shared);
        kept.bytes += bytes(outcome);
        kept.ended.push_back(ended.exp_id);
        // A duplicate that still waits keeps its original alive by its own reference.
        while kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.ended.pop_front() else { return };
            kept.remove(oldest);
        }
    }

    /// Records that an experiment to be simulated has failed: its duplicates are then simulated themselves.
    pub(crate) fn failed(&self, exp_id: u64) {
        let mut kept = self.lock();
        if kept.running(exp_id).is_some()
            && let Some(removed) = kept.remove(exp_id)
        {
            *removed.end() = OriginalEnd::Failed;
        }
    }
}

fn bytes(o: &ExperimentOutcome) -> usize {
    let series = o.series.as_ref().map_or(0, |s| size_of_val(&*s.links) + size_of_val(&*s.flows));
    o.flows.len() * size_of::<FlowOutcome>()
        + o.links.len() * (size_of::<LinkOutcome>() + 16)
        + size_of_val(&*o.rtts)
        + size_of_val(&*o.rtt_means)
        + series
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::RunEvent;
    use crate::RunOptions;
    use crate::run;
    use hyperfold_config::sweep::{self, SetOverrides};
    use hyperfold_engine::EngineError;
    use hyperfold_engine::cpu::engine::CpuEngine;
    use hyperfold_fold::FoldEngine;

    const AXES: &str = "\"routing.seed\" = [1, 2, 3]\n\"topology.kind\" = [\"rail-only\", \"fat-tree\"]\n\"transport.payload_bytes\" = [1000, 4000]";

    /// Returns experiments with all-reduces of 16 GPUs.
    fn tasks(base: &str, axes: &str) -> Vec<QueuedExperiment> {
        let text = format!(
            "name = \"t\"\nbase.cluster = {{ gpus = 16, gpus_per_server = 2 }}\nbase.workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 300000 }}\n{base}\n\
             [axes]\n{axes}\n"
        );
        let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).unwrap();
        sweep
            .experiments
            .iter()
            .map(|e| QueuedExperiment { exp_id: e.exp_id, config: sweep.config(e).unwrap() })
            .collect()
    }

    /// Runs the experiments of `AXES`. Returns the outcome of each, and the packet-hops that were simulated for it.
    fn ends(base: &str, once: bool, batch: usize) -> BTreeMap<u64, (Result<ExperimentOutcome, String>, u64)> {
        let mut ends = BTreeMap::new();
        let options = RunOptions { once, batch, ..RunOptions::default() };
        run::<EngineError>(
            tasks(base, AXES).into_iter(),
            Box::new(FoldEngine::default()),
            &options,
            || false,
            &mut |news| {
                if let RunEvent::Ended(e) = news {
                    let end = (e.result.map_err(|why| format!("{why:?}")), e.folds.map_or(0, |f| f.hops_simulated));
                    assert!(ends.insert(e.exp_id, end).is_none(), "experiment {} ended twice", e.exp_id);
                }
                Ok(())
            },
        )
        .unwrap();
        ends
    }

    #[test]
    fn duplicates_are_simulated_once_and_have_the_same_outcome() {
        let each = ends("", false, 64);
        assert_eq!(each.len(), 12);
        let mut simulated = Vec::new();
        for batch in [1, 3, 64] {
            let once = ends("", true, batch);
            for (id, (outcome, _)) in &each {
                assert_eq!(&once[id].0, outcome, "experiment {id}");
            }
            // Without spines there is one path, whatever the seed. The threads that prepare decide which of the seeds is simulated.
            for payload in [0, 1] {
                simulated.push([0, 4, 8].iter().filter(|&id| once[&(id + payload)].1 > 0).count());
            }
        }
        assert_eq!(simulated, [1; 6], "of 3 each");
    }

    #[test]
    fn duplicates_are_found_though_many_experiments_lie_between() {
        // The last axis varies first, so all hundred jobs come before the first of them repeats.
        let axes = "\"routing.seed\" = [1, 2]\n\"workload.bytes\" = { start = 4000, stop = 103000, step = 1000 }";
        let tasks = tasks("base.topology = { kind = \"rail-only\" }", axes);
        assert_eq!(tasks.len(), 200);
        let (mut duplicates, mut ends) = (Vec::new(), BTreeMap::new());
        let options = RunOptions { batch: 32, ..RunOptions::default() };
        run::<EngineError>(tasks.into_iter(), Box::new(CpuEngine), &options, || false, &mut |news| {
            if let RunEvent::Ended(e) = news {
                // This engine remembers nothing: an experiment without simulated packets is a duplicate.
                let duplicate = e.folds.is_some_and(|folds| folds.hops_simulated == 0);
                duplicates.extend(duplicate.then_some(e.exp_id));
                ends.insert(e.exp_id, e.result.map_err(|why| format!("{why:?}")));
            }
            Ok(())
        })
        .unwrap();
        // Either of two experiments that are prepared side by side may be the first.
        duplicates.iter_mut().for_each(|id| *id %= 100);
        duplicates.sort_unstable();
        assert_eq!(duplicates, (0..100).collect::<Vec<u64>>());
        assert!((0..100).all(|id| ends[&id].is_ok() && ends[&id] == ends[&(id + 100)]));
    }

    #[test]
    fn duplicates_of_a_failed_experiment_are_simulated() {
        let each = ends("base.limits = { packet_hops = 100 }", true, 3);
        assert_eq!(each.len(), 12);
        assert!(
            each.values().all(|(result, _)| result.as_ref().is_err_and(|why| why.contains("packet_hops = 100"))),
            "{each:?}"
        );
    }

    #[test]
    fn what_may_not_be_remembered_is_simulated() {
        assert!(ends("base.fidelity = { memo = false }", true, 64).values().all(|(_, simulated)| *simulated > 0));
    }
}
