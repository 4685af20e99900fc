//! Which experiment records what. An experiment that records a node holds a *claim* on it. Another experiment that needs what follows that node
//! waits.
//! An experiment that has found nothing new also waits: it follows another one that does the same a little earlier. Thus each missing piece is
//! simulated once in a sweep, by the experiment that needs it first.
//!
//! Layer: fold/memo. Decides who works, never a result: an experiment that does not wait simulates. There is no circular wait, because waits are
//! decided under one lock.
//! A claim ends when its part is recorded; all claims of an experiment end when it is dropped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::memo::admission::RunBalance;
use crate::memo::lock::lock;
use crate::memo::node::MemoNode;
use crate::memo::owner::{NodeMaker, Recorder};

/// A claim to record a node. Dropping it releases the node.
pub(crate) struct RecordingClaim {
    pub node: Arc<MemoNode>,
    run: u64,
}

impl Drop for RecordingClaim {
    fn drop(&mut self) {
        // Another partition of the same experiment may have released the node, and another experiment may have claimed it.
        let _ = self.node.owner.run.compare_exchange(self.run, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Experiments in flight that share a memo.
#[derive(Default)]
pub(crate) struct InFlight {
    runs: Mutex<HashMap<u64, Entry>>,
    last: AtomicU64,
}

struct Entry {
    /// Time in ps before which the experiment has done everything.
    clock: Arc<AtomicU64>,
    wait: Option<Wait>,
}

/// The condition that an experiment waits for: experiment `blocker`, until a condition holds.
struct Wait {
    blocker: u64,
    condition: WaitCondition,
}

enum WaitCondition {
    /// Its clock is later than this, in ps.
    Later(u64),
    /// It records another node, or more than this is known of the node, in ps from the episode's start.
    Known(Arc<MemoNode>, u64),
}

impl InFlight {
    /// Registers a new experiment.
    pub(crate) fn enter(self: &Arc<Self>) -> ExperimentTicket {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let clock = Arc::<AtomicU64>::default();
        lock(&self.runs).insert(id, Entry { clock: Arc::clone(&clock), wait: None });
        ExperimentTicket {
            in_flight: Arc::clone(self),
            id,
            clock,
            balance: Arc::default(),
            forerunner: None,
            waits: false,
            may_wait: false,
            alone: false,
        }
    }

    /// Whether experiment `id` must still wait.
    pub(crate) fn holds_up(&self, id: u64) -> bool {
        let runs = lock(&self.runs);
        waits_on(&runs, id).is_some()
    }
}

/// The experiment that `id` waits for. `None` if it does not wait, or the wait is over.
fn waits_on(runs: &HashMap<u64, Entry>, id: u64) -> Option<u64> {
    let wait = runs.get(&id)?.wait.as_ref()?;
    let owner = runs.get(&wait.blocker)?;
    let holds = match &wait.condition {
        WaitCondition::Later(at_ps) => owner.clock.load(Ordering::Acquire) <= *at_ps,
        WaitCondition::Known(node, known) => {
            let body = node.body();
            body.known <= *known
                && body.end.is_none()
                && body.checkpoint.is_none()
                && node.owner.run.load(Ordering::Acquire) == wait.blocker
        }
    };
    holds.then_some(wait.blocker)
}

/// Lets `id` wait, unless that would be circular. Returns whether it waits.
fn wait(runs: &mut HashMap<u64, Entry>, id: u64, wait: Wait) -> bool {
    let mut blocker = wait.blocker;
    // No chain of waits is longer than the number of experiments.
    for _ in 0..=runs.len() {
        match waits_on(runs, blocker) {
            Some(next) if next == id => return false,
            Some(next) => blocker = next,
            None => break,
        }
    }
    if let Some(entry) = runs.get_mut(&id) {
        entry.wait = Some(wait);
    }
    true
}

/// An experiment's registration in [`InFlight`]. It ends when this is dropped.
pub(crate) struct ExperimentTicket {
    in_flight: Arc<InFlight>,
    id: u64,
    clock: Arc<AtomicU64>,
    /// Totals of what it recorded and found, also before it started over.
    pub balance: Arc<RunBalance>,
    forerunner: Option<Forerunner>,
    waits: bool,
    /// No turn is half done, so the turn can be repeated after a wait.
    pub may_wait: bool,
    /// The next wait is refused, because no other experiment can go on.
    pub alone: bool,
}

/// Another experiment that does the same a little earlier. This one stays behind it as long as it meets nothing new.
struct Forerunner {
    run: u64,
    clock: Arc<AtomicU64>,
    /// Times at which both were at the same node, by the other experiment's clock and by its own, in ps.
    other_met_ps: u64,
    own_met_ps: u64,
}

/// Answer to a request for a node.
pub(crate) enum ClaimAnswer {
    /// Simulate it, with a claim unless another experiment holds it.
    Go(Option<RecordingClaim>),
    Wait,
}

impl Drop for ExperimentTicket {
    fn drop(&mut self) {
        lock(&self.in_flight.runs).remove(&self.id);
        let (recorded, found) = self.balance.so_far();
        log::debug!("memo: experiment in flight {} recorded {recorded} and found {found} bytes of keys", self.id);
    }
}

impl ExperimentTicket {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// This experiment as the recorder of a node of a partition that started at `start` (ps).
    pub(crate) fn by(&self, start: u64) -> Recorder<'_> {
        Recorder { maker: NodeMaker { run: self.id, start }, balance: Some(&self.balance) }
    }

    /// Stops following another experiment, because this one does something new.
    pub(crate) fn goes_alone(&mut self) {
        self.forerunner = None;
    }

    /// Begins a turn; the experiment's earliest event is at `at_ps`. Returns whether it must wait.
    pub(crate) fn turn(&mut self, at_ps: u64) -> bool {
        self.clock.store(at_ps, Ordering::Release);
        if std::mem::take(&mut self.waits)
            && let Some(entry) = lock(&self.in_flight.runs).get_mut(&self.id)
        {
            entry.wait = None;
        }
        let Some(forerunner) = &self.forerunner else { return false };
        let behind = at_ps.saturating_add(forerunner.other_met_ps).saturating_sub(forerunner.own_met_ps);
        if forerunner.clock.load(Ordering::Acquire) > behind {
            return false;
        }
        let mut runs = lock(&self.in_flight.runs);
        self.waits = !self.alone
            && runs.contains_key(&forerunner.run)
            && wait(&mut runs, self.id, Wait { blocker: forerunner.run, condition: WaitCondition::Later(behind) });
        drop(runs);
        if !self.waits {
            self.forerunner = None;
        }
        self.waits
    }

    /// Whether another experiment records what follows `node`.
    pub(crate) fn is_foreign(&self, node: &MemoNode) -> bool {
        let run = node.owner.run.load(Ordering::Acquire);
        run != 0 && run != self.id && lock(&self.in_flight.runs).contains_key(&run)
    }

    /// Meets `node`, of a partition that started or passed a checkpoint at `start` (ps). If `is_free` returns true (the experiment simulates
    /// nothing), it stays behind the experiment that created the node.
    pub(crate) fn meet(&mut self, node: &MemoNode, start: u64, is_free: impl FnOnce() -> bool) {
        let maker = node.owner.maker;
        if maker.run == 0 || maker.run == self.id {
            return;
        }
        let runs = lock(&self.in_flight.runs);
        if let Some(entry) = runs.get(&maker.run)
            && self.forerunner.as_ref().is_none_or(|l| !runs.contains_key(&l.run))
            && is_free()
        {
            self.forerunner = Some(Forerunner {
                run: maker.run,
                clock: Arc::clone(&entry.clock),
                other_met_ps: maker.start,
                own_met_ps: start,
            });
        }
    }

    /// The claim on `node`; `None` if another experiment holds it.
    pub(crate) fn adopt(&self, node: &Arc<MemoNode>) -> Option<RecordingClaim> {
        let owner = &node.owner;
        let mut run = owner.run.load(Ordering::Acquire);
        if run != self.id {
            let runs = lock(&self.in_flight.runs);
            run = owner.run.load(Ordering::Acquire);
            if !runs.contains_key(&run)
                && owner.run.compare_exchange(run, self.id, Ordering::AcqRel, Ordering::Acquire).is_ok()
            {
                run = self.id;
            }
        }
        (run == self.id).then(|| RecordingClaim { node: Arc::clone(node), run })
    }

    /// Requests what follows `node` from `known` (ps) on.
    pub(crate) fn ask(&mut self, node: &Arc<MemoNode>, known: u64) -> ClaimAnswer {
        let claim = self.adopt(node);
        if claim.is_some() || std::mem::take(&mut self.alone) {
            return ClaimAnswer::Go(claim);
        }
        let blocker = node.owner.run.load(Ordering::Acquire);
        let condition = WaitCondition::Known(Arc::clone(node), known);
        // If the claim was released meanwhile, the wait ends with the next check.
        self.waits = blocker == 0 || wait(&mut lock(&self.in_flight.runs), self.id, Wait { blocker, condition });
        if self.waits { ClaimAnswer::Wait } else { ClaimAnswer::Go(None) }
    }
}
