//! Runs one span of a partition on several threads, with the same bytes as on one.
//!
//! Layer: fold/run. Phases: the switches of each group, and the NICs, in the order of the stages. Threads take blocks of rows. Measured time decides whether several threads are
//! used at all.

use std::mem::take;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::span_rows::{SpanLeft, StepSpan, SwitchBlock};
use crate::memo::lock::lock;
use crate::rows::ingress_peaks::IngressPeaks;
use crate::rows::partition_rows::PartitionRows;
use crate::rows::rows_by_switch::{GroupOfSwitch, RowsBySwitch};
use hyperfold_columns::{ClaimTable, SwitchIdx, Tables};
use hyperfold_engine::cpu::parallel::phases;
use hyperfold_engine::cpu::parallel::phases::{SharedPieces, own_part};
use hyperfold_engine::cpu::parallel::threads::SpareThreads;
use hyperfold_engine::cpu::parallel::trial::{ThreadTrial, WORTH};
use hyperfold_engine::systems::{STAGES, StepStage};

/// Minimum number of link ends of a partition that is processed switch by switch (our choice).
const MIN_ENDS: usize = 64;
/// Minimum number of arriving packets in a span that may be shared among threads: some tenths of a millisecond (our choice).
const MIN_ARRIVALS: u64 = 1_000;
/// Approximate number of blocks of NICs per thread: enough that all threads end a phase at about the same time.
const BLOCKS_A_THREAD: usize = 16;

/// How spans of one experiment are stepped.
pub(crate) struct SpanThreads {
    /// Threads that have nothing else to do. `None`: there are none to use.
    pub spare: Option<Arc<SpareThreads>>,
    trial: ThreadTrial,
    groups: OnceLock<GroupOfSwitch>,
    /// Peaks of ingresses, one per thread.
    peaks: Vec<IngressPeaks>,
    /// In debug builds: which thread claims which row, for how many packets that table is, and the number of phases so far.
    claims: (usize, Vec<ClaimTable>),
    n_phases: u32,
}

impl Default for SpanThreads {
    fn default() -> SpanThreads {
        SpanThreads {
            spare: None,
            trial: ThreadTrial::new(WORTH),
            groups: OnceLock::new(),
            peaks: vec![IngressPeaks::default()],
            claims: (usize::MAX, Vec::new()),
            n_phases: 0,
        }
    }
}

/// The data that one thread works with.
struct Worker<'t> {
    t: Tables<'t>,
    peaks: IngressPeaks,
    left: SpanLeft,
}

impl SpanThreads {
    /// Lets spans that take at least `worth` use threads of `spare`; with `worth` zero, all spans may.
    pub(crate) fn lend(&mut self, spare: Arc<SpareThreads>, worth: Duration) {
        if self.spare.is_none() {
            self.trial = ThreadTrial::new(worth);
        }
        self.spare = Some(spare);
    }

    /// The rows of a large partition by switch, for [`SpanThreads::step`]. `known`: the previous result for it.
    pub(crate) fn by_switch(
        &self,
        t: &Tables,
        rows: &PartitionRows,
        known: Option<Arc<RowsBySwitch>>,
    ) -> Option<Arc<RowsBySwitch>> {
        if rows.ends.len() < MIN_ENDS && !self.trial.always() {
            return None;
        }
        known.filter(|known| known.are_all_of(rows)).or_else(|| {
            let groups = self.groups.get_or_init(|| GroupOfSwitch::of(t));
            Some(Arc::new(RowsBySwitch::of(t, rows, groups)))
        })
    }

    /// Runs the systems over the rows of `span`. Coupled switches that lack pause frames are left; then NICs are, too.
    pub(crate) fn step(&mut self, t: &mut Tables, span: &StepSpan, by_switch: Option<&RowsBySwitch>) -> SpanLeft {
        let Some(by_switch) = by_switch else {
            let rows = span.rows;
            let ends = rows.ends.iter().copied().enumerate();
            let block = SwitchBlock { ends, ports: &rows.ports, coupled: rows.switches.iter().copied() };
            let mut left = SpanLeft::default();
            span.stages(t, &mut left, |t, left| span.switches(t, &mut self.peaks[0], block.clone(), left));
            return left;
        };
        let arrivals = if self.spare.is_some() { arrivals(t, span) } else { 0 };
        if arrivals < MIN_ARRIVALS && !self.trial.always() {
            return self.on_one(t, span, by_switch);
        }
        let began = Instant::now();
        let shareable = self.groups.get().is_some_and(|groups| groups.shareable);
        let taken = match &self.spare {
            Some(spare) if shareable && self.trial.wants_several() => spare.take(),
            _ => 0,
        };
        let left =
            if taken == 0 { self.on_one(t, span, by_switch) } else { self.on_several(t, span, by_switch, 1 + taken) };
        if let Some(spare) = &self.spare {
            spare.put(taken);
        }
        self.trial.took(1, arrivals, began.elapsed(), taken > 0);
        left
    }

    fn on_one(&mut self, t: &mut Tables, span: &StepSpan, by_switch: &RowsBySwitch) -> SpanLeft {
        let mut left = SpanLeft::default();
        span.stages(t, &mut left, |t, left| {
            for k in 0..by_switch.n_switches() {
                switch(t, &mut self.peaks[0], span, by_switch, k, left);
            }
        });
        left
    }

    /// Goes on with a step whose `lacking` switches have the pause frames now that they lacked.
    pub(crate) fn resume(&mut self, t: &mut Tables, span: &StepSpan, lacking: &[SwitchIdx], left: &mut SpanLeft) {
        let block = SwitchBlock { ends: std::iter::empty(), ports: &[], coupled: lacking.iter().copied() };
        span.stages(t, left, |t, left| span.switches(t, &mut self.peaks[0], block.clone(), left));
    }

    fn on_several(&mut self, t: &mut Tables, span: &StepSpan, by_switch: &RowsBySwitch, threads: usize) -> SpanLeft {
        if self.claims.0 != t.packets.len() {
            self.claims = (t.packets.len(), t.claim_tables());
        }
        let claims = &self.claims.1;
        self.peaks.resize_with(self.peaks.len().max(threads), IngressPeaks::default);
        let n_nics = span.rows.nics.len();
        let nics_a_block = (n_nics / (threads * BLOCKS_A_THREAD)).max(1);
        let phases = Phase::all(by_switch, n_nics);
        let shares: Vec<SharedPieces> = phases.iter().map(|phase| SharedPieces::of(phase.len(), threads)).collect();
        let first = rayon::current_thread_index().unwrap_or(0);
        let lacking = AtomicUsize::new(0);
        // Switches and NICs may read ports of the switches at their links, where these cut through. Nobody writes these in the phase.
        // SAFETY: nothing grows, and `t` is not used until all threads have ended. Within a phase of `share`, a thread has the rows of the blocks it took. For
        // switches of a group these are their own ports, plans, wires and words, the packets on these, and the far ends of their links; no two switches of a
        // group are joined by a link, and no other thread touches wires to NICs in this phase. For NICs they are their own wires, queue pairs, tasks and
        // pools, and the wires to their switches; of an arriving message the receiver only reads words that nobody writes. `tests/fold/cores.rs` checks it.
        #[allow(unsafe_code)]
        let lent: Vec<Tables> = (0..threads).map(|k| unsafe { t.lend(claims, k as u32) }).collect();
        let peaks = self.peaks.iter_mut().map(take);
        let workers: Vec<Mutex<Worker>> = lent
            .into_iter()
            .zip(peaks)
            .map(|(t, peaks)| Mutex::new(Worker { t, peaks, left: SpanLeft::default() }))
            .collect();
        let work = |k: usize, phase: u32| {
            let Worker { t, peaks, left } = &mut *lock(&workers[k]);
            let (phase, own) = (phase as usize, own_part(first, threads));
            match &phases[phase] {
                Phase::Group(group) => {
                    while let Some(one) = shares[phase].take(own, 1) {
                        switch(t, peaks, span, by_switch, group.start + one.start, left);
                    }
                    lacking.fetch_add(left.lacking.len(), Ordering::Relaxed);
                }
                Phase::Nics(_) if lacking.load(Ordering::Relaxed) > 0 => {}
                Phase::Nics(_) => {
                    while let Some(places) = shares[phase].take(own, nics_a_block) {
                        span.nics(t, places, left);
                    }
                }
            }
        };
        let n_phases = &mut self.n_phases;
        phases::share(threads, phases.len() as u32, &work, &mut |_| {
            *n_phases = n_phases.wrapping_add(1);
            claims.iter().for_each(|table| table.next_phase(*n_phases));
        });
        let mut all = SpanLeft::default();
        for (k, worker) in workers.into_iter().enumerate() {
            let worker = worker.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            self.peaks[k] = worker.peaks;
            all.add(worker.left);
        }
        all
    }
}

/// A phase of a step that threads share.
enum Phase {
    /// The switches of a group, by their places in `RowsBySwitch`.
    Group(Range<usize>),
    /// All NICs, and how many there are.
    Nics(usize),
}

impl Phase {
    /// The phases that the stages of a step make, in their order.
    fn all(by_switch: &RowsBySwitch, n_nics: usize) -> Vec<Phase> {
        let of_stage = |stage: &StepStage| match stage {
            StepStage::Switches => by_switch.groups.iter().cloned().map(Phase::Group).collect(),
            StepStage::Nics => vec![Phase::Nics(n_nics)],
            StepStage::Gates | StepStage::Clocks => Vec::new(),
        };
        STAGES.iter().flat_map(of_stage).collect()
    }

    /// Number of rows.
    fn len(&self) -> usize {
        match self {
            Phase::Group(group) => group.len(),
            Phase::Nics(n) => *n,
        }
    }
}

impl SpanLeft {
    fn add(&mut self, mut more: SpanLeft) {
        self.drew |= more.drew;
        self.peaks.append(&mut more.peaks);
        self.lacking.append(&mut more.lacking);
        self.nics.append(&mut more.nics);
    }
}

/// Processes the `k`-th switch of `by_switch`.
fn switch(
    t: &mut Tables,
    peaks: &mut IngressPeaks,
    span: &StepSpan,
    by_switch: &RowsBySwitch,
    k: usize,
    left: &mut SpanLeft,
) {
    let rows_there = by_switch.rows_at(k);
    let coupled = span.rows.switches.iter().copied().filter(|&s| s == rows_there.switch);
    let block = SwitchBlock { ends: rows_there.ends.iter().copied(), ports: rows_there.ports, coupled };
    span.switches(t, peaks, block, left);
}

/// Approximate number of packets that arrive at switches in the span: all packets on wires whose first packet arrives in it.
fn arrivals(t: &Tables, span: &StepSpan) -> u64 {
    let nics = t.exps[0].nic_len;
    let ends = span.rows.ends.iter().map(|end| end.end(nics));
    ends.filter(|end| t.clocks[end.usize()] < span.end_ps).map(|end| u64::from(t.wires[end].n)).sum()
}
