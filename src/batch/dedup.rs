//! Experiments that differ in nothing an engine sees: one of them is simulated, the others come to the same.
//!
//! Layer: batch. A seed of paths where there is one path, a price, a key that this cluster does not heed: sweeps are full of axes that change nothing for some of
//! their values. Duplicate is what is equal in everything tables are built from, compared value by value; nothing is hashed. Only what may be remembered takes part
//! (`fidelity.memo`), and only outcomes are shared, never failures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::PrepareError;
use super::experiment::QueuedExperiment;
use super::job::Job;
use super::jobs::PlacedJob;
use super::outcome::{ExperimentOutcome, FlowOutcome, LinkOutcome};
use super::prepare::{Prepared, tabled};
use super::route::{Routed, routed};
use super::world::{Ended, Limits, folds_of_duplicate};
use crate::columns::NEVER;
use crate::cost::Bill;
use crate::engine::fold::FoldStats;
use crate::routing::FlowPaths;
use crate::spec::Steady;
use crate::topology::{Link, Network, Node};
use crate::transport::{RttWindow, Transport};
use crate::workload::Flow;

/// Bytes of outcomes kept, about: our choice, some hundred experiments of ten thousand messages.
const MOST_BYTES: usize = 256 << 20;
/// Experiments kept; each new one is compared with all of them.
const MOST_KEPT: usize = 1024;

/// Everything that decides the outcome of an experiment, except for what its cluster costs.
#[derive(Debug)]
struct DedupKey {
    /// Of one workload its job; of several jobs the programs among them, in their order.
    programs: Vec<Arc<Job>>,
    /// Of several jobs what else they are.
    placed: Vec<PlacedKey>,
    /// Of several jobs the flows of traffic.
    flows: Vec<Flow>,
    transport: Transport,
    limits: Limits,
    time_limit_ps: Option<u64>,
    flow_level: bool,
    links: bool,
    shared_links: bool,
    rtt_samples: bool,
    fresh_qp: bool,
    steady: Option<Steady>,
    rtt: Vec<RttWindow>,
    paths: Vec<FlowPaths>,
    network: Network,
}

/// A job among several: name, kind and placement as its row names them, GPUs by rank, start, whether nobody waits for it, its first flow.
type PlacedKey = (Arc<str>, [String; 2], Vec<u32>, u64, bool, u32);

impl PartialEq for DedupKey {
    fn eq(&self, other: &DedupKey) -> bool {
        let DedupKey {
            programs,
            placed,
            flows,
            transport,
            limits,
            time_limit_ps,
            flow_level,
            links,
            shared_links,
            rtt_samples,
            fresh_qp,
            steady,
            rtt,
            paths,
            network,
        } = self;
        // Jobs that are equal are one: they are kept by what decides them.
        programs.len() == other.programs.len()
            && programs.iter().zip(&other.programs).all(|(a, b)| Arc::ptr_eq(a, b))
            && (placed, flows) == (&other.placed, &other.flows)
            && *transport == other.transport
            && *limits == other.limits
            && *time_limit_ps == other.time_limit_ps
            && *flow_level == other.flow_level
            && (*links, *shared_links) == (other.links, other.shared_links)
            && (*rtt_samples, *fresh_qp) == (other.rtt_samples, other.fresh_qp)
            && *steady == other.steady
            && *rtt == other.rtt
            && *paths == other.paths
            && *network == other.network
    }
}

impl DedupKey {
    /// Of an experiment that may be remembered and whose job others may have.
    fn of(r: &Routed, limits: Limits) -> Option<DedupKey> {
        let config = &*r.config;
        let programs: Vec<Arc<Job>> = match &config.jobs {
            None => vec![Arc::clone(r.job.as_ref()?)],
            Some(_) => r.placed.iter().filter_map(|job| job.program.clone()).collect(),
        };
        if !config.shares_outcomes() || programs.iter().any(|job| job.rows.is_none()) {
            return None;
        }
        let n_plain = if config.jobs.is_some() { r.flows.iter().filter(|f| f.start_ps != NEVER).count() } else { 0 };
        let mut transport = r.transport.clone();
        if r.paths.iter().all(|p| p.data.len() <= 1 && p.ack.len() <= 1) {
            // Nobody draws a path.
            transport.routing_seed = 0;
        }
        Some(DedupKey {
            programs,
            placed: r.placed.iter().map(placed_key).collect(),
            flows: r.flows[..n_plain].to_vec(),
            transport,
            limits,
            time_limit_ps: config.limits.sim_ps,
            flow_level: config.is_flow_level(),
            links: config.output.links,
            shared_links: config.output.shared_links,
            rtt_samples: config.output.rtt,
            fresh_qp: config.fresh_qp(),
            steady: config.steady(),
            rtt: r.rtt.clone(),
            paths: r.paths.clone(),
            network: r.network.clone(),
        })
    }

    fn bytes(&self) -> usize {
        let arcs: usize =
            self.paths.iter().flat_map(|p| p.data.iter().chain(&p.ack)).map(|path| size_of_val(&**path)).sum();
        arcs + size_of_val(&*self.flows)
            + self.network.nodes.len() * size_of::<Node>()
            + self.network.links.len() * size_of::<Link>()
    }
}

fn placed_key(job: &PlacedJob) -> PlacedKey {
    let words = [job.kind.clone(), job.placement.clone()];
    (Arc::clone(&job.name), words, job.gpus.clone(), job.start_ps, job.background, job.first_flow)
}

/// An experiment that is simulated; its duplicates get its outcome.
#[derive(Debug)]
pub(super) struct Original {
    exp_id: u64,
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
pub(super) struct Duplicate {
    task: QueuedExperiment,
    original: Arc<Original>,
    bill: Bill,
    pub notes: Vec<String>,
}

/// What a [`Duplicate`] can do next.
pub(super) enum DuplicateState {
    Ended(Box<Ended>),
    /// Its original has not ended.
    Waiting(Box<Duplicate>),
    /// Its original failed: it is simulated itself.
    Simulate(Box<QueuedExperiment>),
}

impl Duplicate {
    pub(super) fn exp_id(&self) -> u64 {
        self.task.exp_id
    }

    /// Its end, if its original has ended.
    pub(super) fn state(self) -> DuplicateState {
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
pub(super) enum Preparation {
    Prepared(Box<Prepared>),
    Duplicate(Box<Duplicate>),
}

/// Those that were or are being simulated, the oldest original.
#[derive(Default)]
pub(super) struct Dedup {
    kept: Mutex<Originals>,
}

#[derive(Default)]
struct Originals {
    originals: Vec<Arc<Original>>,
    /// Of their outcomes and keys.
    bytes: usize,
}

impl Dedup {
    fn lock(&self) -> MutexGuard<'_, Originals> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares an experiment, unless it equals one that has been prepared.
    ///
    /// # Errors
    /// As [`super::prepare()`].
    pub(super) fn prepare(&self, task: QueuedExperiment, limits: Limits) -> Result<Preparation, PrepareError> {
        let mut routed = routed(&task.config)?;
        let Some(key) = DedupKey::of(&routed, limits) else {
            return tabled(routed, task.exp_id as u32).map(|p| Preparation::Prepared(Box::new(p)));
        };
        let mut kept = self.lock();
        if let Some(original) = kept
            .originals
            .iter()
            .find(|original| original.key == key && !matches!(*original.end(), OriginalEnd::Failed))
        {
            let (original, bill, notes) = (Arc::clone(original), routed.bill, std::mem::take(&mut routed.notes));
            drop((kept, routed));
            return Ok(Preparation::Duplicate(Box::new(Duplicate { task, original, bill, notes })));
        }
        kept.bytes += key.bytes();
        kept.originals.push(Arc::new(Original { exp_id: task.exp_id, key, end: Mutex::new(OriginalEnd::Running) }));
        drop(kept);
        match tabled(routed, task.exp_id as u32) {
            Ok(p) => Ok(Preparation::Prepared(Box::new(p))),
            Err(e) => {
                self.failed(task.exp_id);
                Err(e)
            }
        }
    }

    /// Records that an experiment has ended, for its duplicates.
    pub(super) fn ended(&self, ended: &Ended) {
        let Ok(outcome) = &ended.result else { return self.failed(ended.exp_id) };
        let mut kept = self.lock();
        let Some(original) = kept
            .originals
            .iter()
            .find(|original| original.exp_id == ended.exp_id && matches!(*original.end(), OriginalEnd::Running))
        else {
            return;
        };
        let shared = folds_of_duplicate(&ended.folds.unwrap_or_default());
        *original.end() = OriginalEnd::Known(Arc::new(outcome.clone()), ended.packet_hops, shared);
        kept.bytes += bytes(outcome);
        // A duplicate that still waits keeps its original alive by its own reference.
        while kept.bytes > MOST_BYTES || kept.originals.len() > MOST_KEPT {
            let Some(at) = kept.originals.iter().position(|original| matches!(*original.end(), OriginalEnd::Known(..)))
            else {
                return;
            };
            let evicted = kept.originals.remove(at);
            if let OriginalEnd::Known(outcome, ..) = &*evicted.end() {
                kept.bytes -= bytes(outcome) + evicted.key.bytes();
            }
        }
    }

    /// Records that an experiment has failed, if it was to be simulated: its duplicates are then simulated themselves.
    pub(super) fn failed(&self, exp_id: u64) {
        let mut kept = self.lock();
        if let Some(at) = kept
            .originals
            .iter()
            .position(|original| original.exp_id == exp_id && matches!(*original.end(), OriginalEnd::Running))
        {
            let evicted = kept.originals.remove(at);
            kept.bytes -= evicted.key.bytes();
            *evicted.end() = OriginalEnd::Failed;
        }
    }
}

fn bytes(o: &ExperimentOutcome) -> usize {
    o.flows.len() * size_of::<FlowOutcome>() + o.links.len() * (size_of::<LinkOutcome>() + 16) + size_of_val(&*o.rtts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::super::{RunEvent, RunOptions, run};
    use super::*;
    use crate::engine::EngineError;
    use crate::engine::fold::FoldEngine;
    use crate::sweep::{self, SetOverrides};

    /// All-reduces of 16 GPUs by seed of paths, kind of network and size of packets.
    fn tasks(base: &str) -> Vec<QueuedExperiment> {
        let text = format!(
            "name = \"t\"\nbase.cluster = {{ gpus = 16, gpus_per_server = 2 }}\nbase.workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 300000 }}\n{base}\n\
             [axes]\n\"routing.seed\" = [1, 2, 3]\n\"topology.kind\" = [\"rail-only\", \"fat-tree\"]\n\"transport.payload_bytes\" = [1000, 4000]\n"
        );
        let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).unwrap();
        sweep
            .experiments
            .iter()
            .map(|e| QueuedExperiment { exp_id: e.exp_id, config: sweep.config(e).unwrap() })
            .collect()
    }

    /// The outcome of each experiment, and how many packet-hops were simulated for it.
    fn ends(base: &str, once: bool, batch: usize) -> BTreeMap<u64, (Result<ExperimentOutcome, String>, u64)> {
        let mut ends = BTreeMap::new();
        let options = RunOptions { once, batch, ..RunOptions::default() };
        run::<EngineError>(tasks(base).into_iter(), Box::new(FoldEngine::default()), &options, || false, &mut |news| {
            if let RunEvent::Ended(e) = news {
                let end = (e.result.map_err(|why| format!("{why:?}")), e.folds.map_or(0, |f| f.hops_simulated));
                assert!(ends.insert(e.exp_id, end).is_none(), "experiment {} ended twice", e.exp_id);
            }
            Ok(())
        })
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
            // Without spines there is one path, whatever the seed. Which of the seeds is simulated is up to the threads that prepare; two that make their job at the same time
            // may both be.
            for payload in [0, 1] {
                simulated.push([0, 4, 8].iter().filter(|&id| once[&(id + payload)].1 > 0).count());
            }
        }
        assert!(
            simulated.iter().all(|&n| n > 0) && simulated.iter().sum::<usize>() < 3 * simulated.len(),
            "{simulated:?} of 3 each"
        );
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
