//! Experiments that differ in nothing an engine sees: one of them is simulated, the others come to the same.
//!
//! Layer: batch. A seed of paths where there is one path, a price, a key that this cluster does not heed: sweeps are full of axes that change nothing for some of
//! their values. Alike is what is equal in everything tables are built from, compared value by value; nothing is hashed. Only what may be remembered takes part
//! (`fidelity.memo`), and only outcomes are shared, never failures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::job::Job;
use super::outcome::{FlowOutcome, LinkOutcome, Outcome};
use super::prepare::{PrepareError, Prepared, Routed, routed, tabled};
use super::runner::Task;
use super::world::{Ended, Limits};
use crate::cost::Bill;
use crate::engine::fold::FoldStats;
use crate::routing::FlowPaths;
use crate::spec::Steady;
use crate::topology::{Link, Network, Node};
use crate::transport::{RttWindow, Transport};

/// Bytes of outcomes kept, about: our choice, some hundred experiments of ten thousand messages.
const MOST_BYTES: usize = 256 << 20;
/// Experiments kept, which each new one is compared with.
const MOST_KEPT: usize = 1024;

/// Everything that decides what an experiment comes to, but for what its cluster costs.
#[derive(Debug)]
struct Likeness {
    job: Arc<Job>,
    transport: Transport,
    limits: Limits,
    time_limit_ps: Option<u64>,
    links: bool,
    rtt_samples: bool,
    fresh_qp: bool,
    steady: Option<Steady>,
    rtt: Vec<RttWindow>,
    paths: Vec<FlowPaths>,
    network: Network,
}

impl PartialEq for Likeness {
    fn eq(&self, other: &Likeness) -> bool {
        let Likeness {
            job,
            transport,
            limits,
            time_limit_ps,
            links,
            rtt_samples,
            fresh_qp,
            steady,
            rtt,
            paths,
            network,
        } = self;
        // Jobs that are equal are one: they are kept by what decides them.
        Arc::ptr_eq(job, &other.job)
            && *transport == other.transport
            && *limits == other.limits
            && *time_limit_ps == other.time_limit_ps
            && (*links, *rtt_samples, *fresh_qp) == (other.links, other.rtt_samples, other.fresh_qp)
            && *steady == other.steady
            && *rtt == other.rtt
            && *paths == other.paths
            && *network == other.network
    }
}

impl Likeness {
    /// Of an experiment that may be remembered and whose job others may have.
    fn of(r: &Routed, limits: Limits) -> Option<Likeness> {
        let config = &*r.config;
        let job = r.job.as_ref().filter(|job| job.rows.is_some() && config.folding() == Some(true))?;
        let mut transport = r.transport.clone();
        if r.paths.iter().all(|p| p.data.len() <= 1 && p.ack.len() <= 1) {
            // Nobody draws a path.
            transport.routing_seed = 0;
        }
        Some(Likeness {
            job: Arc::clone(job),
            transport,
            limits,
            time_limit_ps: config.limits.sim_ps,
            links: config.output.links,
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
        arcs + self.network.nodes.len() * size_of::<Node>() + self.network.links.len() * size_of::<Link>()
    }
}

/// One that is simulated, for all that are like it.
#[derive(Debug)]
pub(super) struct First {
    exp_id: u64,
    like: Likeness,
    end: Mutex<End>,
}

#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one of these stands for thousands of experiments; a box would only add a step"
)]
enum End {
    /// Not yet.
    Open,
    /// The outcome, its packet-hops, and what is told of its folding.
    Known(Arc<Outcome>, u64, FoldStats),
    /// There will be none.
    Failed,
}

impl First {
    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An experiment that is like another.
pub(super) struct Alike {
    task: Task,
    first: Arc<First>,
    bill: Bill,
    pub notes: Vec<String>,
}

/// What has become of [`Alike`].
pub(super) enum Fate {
    Ended(Box<Ended>),
    /// The other has not ended.
    Waits(Box<Alike>),
    /// The other failed: it has to find out by itself.
    Alone(Box<Task>),
}

impl Alike {
    pub fn exp_id(&self) -> u64 {
        self.task.exp_id
    }

    /// Where it stands.
    pub fn fate(self) -> Fate {
        let end = self.first.end().clone();
        match end {
            End::Open => Fate::Waits(Box::new(self)),
            End::Failed => Fate::Alone(Box::new(self.task)),
            End::Known(outcome, packet_hops, folds) => Fate::Ended(Box::new(Ended {
                exp_id: self.task.exp_id,
                result: Ok(Outcome { bill: Some(self.bill), ..(*outcome).clone() }),
                packet_hops,
                folds: Some(folds),
                seconds: 0.0,
            })),
        }
    }
}

/// What preparing comes to.
pub(super) enum Made {
    Prepared(Box<Prepared>),
    Alike(Box<Alike>),
}

/// Those that were or are being simulated, the oldest first.
#[derive(Default)]
pub(super) struct Firsts {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    firsts: Vec<Arc<First>>,
    /// Of their outcomes and likenesses.
    bytes: usize,
}

impl Firsts {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares an experiment, unless it is like one that has been prepared.
    ///
    /// # Errors
    /// As [`super::prepare()`].
    pub fn prepare(&self, task: Task, limits: Limits) -> Result<Made, PrepareError> {
        let mut routed = routed(&task.config)?;
        let Some(like) = Likeness::of(&routed, limits) else {
            return tabled(routed, task.exp_id as u32).map(|p| Made::Prepared(Box::new(p)));
        };
        let mut kept = self.lock();
        if let Some(first) = kept.firsts.iter().find(|first| first.like == like && !matches!(*first.end(), End::Failed))
        {
            let (first, bill, notes) = (Arc::clone(first), routed.bill, std::mem::take(&mut routed.notes));
            drop((kept, routed));
            return Ok(Made::Alike(Box::new(Alike { task, first, bill, notes })));
        }
        kept.bytes += like.bytes();
        kept.firsts.push(Arc::new(First { exp_id: task.exp_id, like, end: Mutex::new(End::Open) }));
        drop(kept);
        match tabled(routed, task.exp_id as u32) {
            Ok(p) => Ok(Made::Prepared(Box::new(p))),
            Err(e) => {
                self.failed(task.exp_id);
                Err(e)
            }
        }
    }

    /// An experiment has ended: those that are like it may hear how.
    pub fn ended(&self, ended: &Ended) {
        let Ok(outcome) = &ended.result else { return self.failed(ended.exp_id) };
        let mut kept = self.lock();
        let Some(first) =
            kept.firsts.iter().find(|first| first.exp_id == ended.exp_id && matches!(*first.end(), End::Open))
        else {
            return;
        };
        let of = ended.folds.unwrap_or_default();
        let told = FoldStats { hits: 1, skips: of.skips, rounded: of.rounded, audit: of.audit, ..FoldStats::default() };
        *first.end() = End::Known(Arc::new(outcome.clone()), ended.packet_hops, told);
        kept.bytes += bytes(outcome);
        // Who waits for one of them has it still.
        while kept.bytes > MOST_BYTES || kept.firsts.len() > MOST_KEPT {
            let Some(at) = kept.firsts.iter().position(|first| matches!(*first.end(), End::Known(..))) else { return };
            let gone = kept.firsts.remove(at);
            if let End::Known(outcome, ..) = &*gone.end() {
                kept.bytes -= bytes(outcome) + gone.like.bytes();
            }
        }
    }

    fn failed(&self, exp_id: u64) {
        let mut kept = self.lock();
        if let Some(at) =
            kept.firsts.iter().position(|first| first.exp_id == exp_id && matches!(*first.end(), End::Open))
        {
            let gone = kept.firsts.remove(at);
            kept.bytes -= gone.like.bytes();
            *gone.end() = End::Failed;
        }
    }
}

fn bytes(o: &Outcome) -> usize {
    o.flows.len() * size_of::<FlowOutcome>() + o.links.len() * (size_of::<LinkOutcome>() + 16) + size_of_val(&*o.rtts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::super::{News, RunOptions, run};
    use super::*;
    use crate::engine::EngineError;
    use crate::engine::fold::FoldEngine;
    use crate::sweep::{self, SetOverrides};

    /// All-reduces of 16 GPUs by seed of paths, kind of network and size of packets.
    fn tasks(base: &str) -> Vec<Task> {
        let text = format!(
            "name = \"t\"\nbase.cluster = {{ gpus = 16, gpus_per_server = 2 }}\nbase.workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 300000 }}\n{base}\n\
             [axes]\n\"routing.seed\" = [1, 2, 3]\n\"topology.kind\" = [\"rail-only\", \"fat-tree\"]\n\"transport.payload_bytes\" = [1000, 4000]\n"
        );
        let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).unwrap();
        sweep.experiments.iter().map(|e| Task { exp_id: e.exp_id, config: sweep.config(e).unwrap() }).collect()
    }

    /// What each experiment came to, and how many packet-hops were simulated for it.
    fn ends(base: &str, once: bool, batch: usize) -> BTreeMap<u64, (Result<Outcome, String>, u64)> {
        let mut ends = BTreeMap::new();
        let options = RunOptions { once, batch, ..RunOptions::default() };
        run::<EngineError>(tasks(base).into_iter(), Box::new(FoldEngine::default()), &options, || false, &mut |news| {
            if let News::Ended(e) = news {
                let end = (e.result.map_err(|why| format!("{why:?}")), e.folds.map_or(0, |f| f.hops_simulated));
                assert!(ends.insert(e.exp_id, end).is_none(), "experiment {} ended twice", e.exp_id);
            }
            Ok(())
        })
        .unwrap();
        ends
    }

    #[test]
    fn what_is_alike_is_simulated_once_and_comes_to_the_same() {
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
    fn who_is_like_one_that_failed_finds_out_by_itself() {
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
