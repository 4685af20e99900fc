//! Who is finding out what. A node of the memo that an experiment is recording is *claimed* by it; another one that comes to the end of what such a node knows *waits*, and so does one
//! that has found nothing of its own, for the experiment that goes before it. So each piece that the memo lacks is simulated once over a sweep, by whoever needs it first.
//!
//! Layer: engine. Decides who works, never what comes of it: whoever does not wait simulates. Nobody waits in a circle, as who waits for whom is decided under one lock;
//! claims end with what is recorded, and all of an experiment's when it is dropped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::engine::fold::Stop;
use crate::engine::fold::memo::table::{MemoNode, lock};
use crate::engine::fold::run::partition::Partition;
use crate::engine::fold::run::turns::Run;

/// Whose a node is, and when the partition that it belongs to came to life or was cut, ps of that experiment. The default: nobody's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorder {
    run: u64,
    start: u64,
}

/// Of a node: who made it, and who records what follows.
#[derive(Default)]
pub struct NodeOwner {
    maker: Recorder,
    /// 0: nobody.
    run: AtomicU64,
}

impl From<Recorder> for NodeOwner {
    fn from(by: Recorder) -> NodeOwner {
        NodeOwner { maker: by, run: by.run.into() }
    }
}

impl NodeOwner {
    /// Nobody records what follows any more.
    pub fn leave(&self) {
        self.run.store(0, Ordering::Release);
    }
}

/// A node that a partition records; released when dropped.
pub struct RecordingClaim {
    node: Arc<MemoNode>,
    run: u64,
}

impl Drop for RecordingClaim {
    fn drop(&mut self) {
        // Another partition of the same experiment may have let go of it already, and somebody else taken it.
        let _ = self.node.owner.run.compare_exchange(self.run, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Experiments under way that share a memo.
#[derive(Default)]
pub struct InFlight {
    runs: Mutex<HashMap<u64, Entry>>,
    last: AtomicU64,
}

struct Entry {
    /// All that it does before this is done, ps.
    clock: Arc<AtomicU64>,
    wait: Option<Wait>,
}

/// What an experiment waits for.
struct Wait {
    on: u64,
    until: Until,
}

enum Until {
    /// Its clock is later than this.
    Later(u64),
    /// It records something else, or more than this is known of the node, from the episode's start, ps.
    Known(Arc<MemoNode>, u64),
}

impl InFlight {
    /// A new experiment.
    pub fn enter(self: &Arc<Self>) -> ExperimentTicket {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let clock = Arc::<AtomicU64>::default();
        lock(&self.runs).insert(id, Entry { clock: Arc::clone(&clock), wait: None });
        ExperimentTicket {
            in_flight: Arc::clone(self),
            id,
            clock,
            forerunner: None,
            waits: false,
            may_wait: false,
            alone: false,
        }
    }

    /// Whether what experiment `id` waits for has not come yet.
    pub fn holds_up(&self, id: u64) -> bool {
        let runs = lock(&self.runs);
        waits_on(&runs, id).is_some()
    }
}

/// Whom experiment `id` waits for, unless that is over.
fn waits_on(runs: &HashMap<u64, Entry>, id: u64) -> Option<u64> {
    let wait = runs.get(&id)?.wait.as_ref()?;
    let owner = runs.get(&wait.on)?;
    let holds = match &wait.until {
        Until::Later(at) => owner.clock.load(Ordering::Acquire) <= *at,
        Until::Known(node, known) => {
            let body = node.body();
            body.known <= *known
                && body.end.is_none()
                && body.checkpoint.is_none()
                && node.owner.run.load(Ordering::Acquire) == wait.on
        }
    };
    holds.then_some(wait.on)
}

/// Lets `id` wait, unless that would be in a circle.
fn wait(runs: &mut HashMap<u64, Entry>, id: u64, wait: Wait) -> bool {
    let mut on = wait.on;
    // Longer chains than there are experiments do not exist.
    for _ in 0..=runs.len() {
        match waits_on(runs, on) {
            Some(next) if next == id => return false,
            Some(next) => on = next,
            None => break,
        }
    }
    if let Some(entry) = runs.get_mut(&id) {
        entry.wait = Some(wait);
    }
    true
}

/// An experiment's place among the others; they forget it when this is dropped.
pub struct ExperimentTicket {
    in_flight: Arc<InFlight>,
    id: u64,
    clock: Arc<AtomicU64>,
    forerunner: Option<Forerunner>,
    waits: bool,
    /// Nothing is half done: the turn can be taken again.
    pub may_wait: bool,
    /// Whoever would wait next does not: nobody else can go on.
    pub alone: bool,
}

/// An experiment that does the same a little earlier: as long as this one meets nothing new, it stays behind.
struct Forerunner {
    run: u64,
    clock: Arc<AtomicU64>,
    /// When both met, by its clock and by one's own, ps.
    theirs: u64,
    ours: u64,
}

/// What comes of asking for a node.
enum Answer {
    /// To be simulated, and claimed where nobody else does it already.
    Go(Option<RecordingClaim>),
    Wait,
}

impl Drop for ExperimentTicket {
    fn drop(&mut self) {
        lock(&self.in_flight.runs).remove(&self.id);
    }
}

impl ExperimentTicket {
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Itself, of a node of a partition that came to life at `start`.
    pub fn by(&self, start: u64) -> Recorder {
        Recorder { run: self.id, start }
    }

    /// Does something that nobody did before: from now on it follows nobody.
    pub fn goes_alone(&mut self) {
        self.forerunner = None;
    }

    /// Its earliest event is at `at`. Returns whether it waits with that.
    pub fn turn(&mut self, at: u64) -> bool {
        self.clock.store(at, Ordering::Release);
        if std::mem::take(&mut self.waits)
            && let Some(entry) = lock(&self.in_flight.runs).get_mut(&self.id)
        {
            entry.wait = None;
        }
        let Some(forerunner) = &self.forerunner else { return false };
        let behind = at.saturating_add(forerunner.theirs).saturating_sub(forerunner.ours);
        if forerunner.clock.load(Ordering::Acquire) > behind {
            return false;
        }
        let mut runs = lock(&self.in_flight.runs);
        self.waits = !self.alone
            && runs.contains_key(&forerunner.run)
            && wait(&mut runs, self.id, Wait { on: forerunner.run, until: Until::Later(behind) });
        drop(runs);
        if !self.waits {
            self.forerunner = None;
        }
        self.waits
    }

    /// Whether somebody else records what follows `node`.
    pub fn is_foreign(&self, node: &MemoNode) -> bool {
        let run = node.owner.run.load(Ordering::Acquire);
        run != 0 && run != self.id && lock(&self.in_flight.runs).contains_key(&run)
    }

    /// It meets `node`, of a partition that came to life or was cut at `start`. If `is_free`, as nothing of its own is under way, it stays behind whoever made it.
    pub fn meet(&mut self, node: &MemoNode, start: u64, is_free: impl FnOnce() -> bool) {
        let maker = node.owner.maker;
        if maker.run == 0 || maker.run == self.id {
            return;
        }
        let runs = lock(&self.in_flight.runs);
        if let Some(entry) = runs.get(&maker.run)
            && self.forerunner.as_ref().is_none_or(|l| !runs.contains_key(&l.run))
            && is_free()
        {
            self.forerunner =
                Some(Forerunner { run: maker.run, clock: Arc::clone(&entry.clock), theirs: maker.start, ours: start });
        }
    }

    /// The claim on `node`, unless it is somebody else's.
    pub fn adopt(&self, node: &Arc<MemoNode>) -> Option<RecordingClaim> {
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

    /// Nobody knows what follows `node` from `known` on.
    fn ask(&mut self, node: &Arc<MemoNode>, known: u64) -> Answer {
        let claim = self.adopt(node);
        if claim.is_some() || std::mem::take(&mut self.alone) {
            return Answer::Go(claim);
        }
        let on = node.owner.run.load(Ordering::Acquire);
        let until = Until::Known(Arc::clone(node), known);
        // Who let go of it meanwhile is waited for no longer than it takes to look again.
        self.waits = on == 0 || wait(&mut lock(&self.in_flight.runs), self.id, Wait { on, until });
        if self.waits { Answer::Wait } else { Answer::Go(None) }
    }
}

impl Run {
    /// Simulated partition `p` records the node where it stands, and nothing else any more.
    pub(in crate::engine::fold) fn update_claim(&mut self, p: u32) {
        let partition = &mut self.partitions[p as usize];
        let is_live = !partition.looked_up;
        let Some(cursor) = &mut partition.cursor else { return };
        if cursor.claim.as_ref().is_some_and(|claim| is_live && Arc::ptr_eq(&claim.node, &cursor.node)) {
            return;
        }
        cursor.claim = if is_live { self.ticket.adopt(&cursor.node) } else { None };
    }

    /// Whether `p`, which is looked up, is to be simulated from `at` on: nothing is known, and nobody else is finding out. If somebody is, the turn ends, to be taken again.
    pub(in crate::engine::fold) fn must_simulate(&mut self, p: u32, at: u64) -> Result<bool, Stop> {
        if !self.is_unknown_at(p, at) {
            return Ok(false);
        }
        let start = self.partitions[p as usize].start;
        let Some(node) = self.partitions[p as usize].cursor.as_ref().map(|s| Arc::clone(&s.node)) else {
            return Ok(true);
        };
        self.ticket.meet(&node, start, || is_free(&self.partitions, p));
        let Some(cursor) = &mut self.partitions[p as usize].cursor else { return Ok(true) };
        if !self.ticket.may_wait || node.unpredictable.load(Ordering::Relaxed) {
            return Ok(true);
        }
        match self.ticket.ask(&node, at - start) {
            Answer::Wait => Err(Stop::Wait),
            Answer::Go(None) => Ok(true),
            Answer::Go(claim) => {
                cursor.claim = claim;
                // Whoever had it may have told more before letting go.
                let lacks = self.is_unknown_at(p, at);
                if !lacks {
                    self.update_claim(p);
                }
                Ok(lacks)
            }
        }
    }
}

/// Whether none of `parts` but `p` is simulated: all that they do others have done, or are doing.
pub fn is_free(partitions: &[Partition], p: u32) -> bool {
    partitions
        .iter()
        .enumerate()
        .all(|(q, partition)| q == p as usize || partition.looked_up || partition.nics.is_empty())
}
