//! Records a timeline of one experiment: ops of ranks, messages, queues, pauses.
//!
//! Layer: host. Simulates the experiment again on the CPU engine, unfolded, and samples its rows between steps. The engine itself records nothing, so a
//! timeline costs nothing unless it is asked for. This module does not decide what is shown, nor how.

use std::sync::Arc;
use std::time::Instant;

use hyperfold_base::budget;
use hyperfold_columns::{LinkEndIdx, NEVER, Tables, TaskIdx, status};
use hyperfold_config::spec::Config;
use hyperfold_engine::{cpu, go_on, is_final, packet_hops, stops};
use hyperfold_flow::is_flow_level;
use hyperfold_llm::workload::lower::OpTimes;
use hyperfold_network::topology::Network;

use crate::batches::runner::RunOptions;
use crate::outcomes::breakdown::{Breakdown, critical_rank, of_rank, span};
use crate::outcomes::flow_info::FlowCarrier;
use crate::outcomes::outcome::FlowOutcome;
use crate::outcomes::read_outcome::{OutcomeRows, read};
use crate::programs::job::Job;
use crate::setup::error::PrepareError;
use crate::setup::links::names::link_names;
use crate::setup::prepare::{can_run, guarded, prepare_every_rank};

/// Fewest widened bins that a timeline of queues may have.
const FEWEST_BINS: u64 = 8;

/// The kinds of events that a timeline records.
#[derive(Clone, Copy, Debug)]
pub struct RecordedSpan {
    /// Start of the recorded time, ps.
    pub from_ps: u64,
    /// End of the recorded time, ps; the simulation stops there.
    pub to_ps: u64,
    /// Most samples of queues. If there are more, bins get wider; if bins get too wide to be useful, queues are left out. 0: no queues.
    pub samples: usize,
}

impl Default for RecordedSpan {
    fn default() -> Self {
        RecordedSpan { from_ps: 0, to_ps: NEVER, samples: 50_000 }
    }
}

/// An op of a rank's program; times in ps, `NEVER` for what had not happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpSpan {
    /// Rank whose program has the op.
    pub rank: u32,
    /// Index into the rank's program.
    pub op: u32,
    /// Time when everything that it waits for on its rank was done.
    pub begin: u64,
    /// Time when its peers had arrived too.
    pub go: u64,
    /// Time of its end.
    pub end: u64,
}

/// A flow, or a message of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSpan {
    /// Its number, ends, size and times.
    pub flow: FlowOutcome,
    /// Index of its queue pair among those of its two ends.
    pub lane: u32,
    /// Time when it had arrived whole, ps, if that is known.
    pub got: Option<u64>,
}

/// Bytes that waited at a switch port within one bin of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBin {
    /// Index of the bin, counted from time 0.
    pub bin: u64,
    /// Maximum of the samples in the bin, in bytes.
    pub max: u32,
    /// Bytes at the last sample in the bin. They hold until the next bin in the list.
    pub last: u32,
}

/// A time in which a link end was not allowed to send, ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Index into [`Timeline::links`].
    pub link: u32,
    /// Time at which the pause began.
    pub begin: u64,
    /// `NEVER`: the pause had not ended.
    pub end: u64,
}

/// A recorded timeline. Ops, messages and pauses outside the recorded span are left out.
pub struct Timeline {
    /// The network, from which hosts and switches are named.
    pub network: Network,
    /// The program, for names and kinds of ops.
    pub job: Option<Arc<Job>>,
    /// For several jobs: GPUs, warm-up iterations and start (ps) of each program.
    programs: Vec<(Vec<u32>, u32, u64)>,
    /// Ops of all ranks.
    pub ops: Vec<OpSpan>,
    /// Flows and messages.
    pub messages: Vec<MessageSpan>,
    /// Names of the links that NICs and ports send on.
    pub links: Vec<String>,
    /// Bins of each link's queue; empty for links of NICs.
    pub queues: Vec<Vec<QueueBin>>,
    /// Whether there were queues, but more than the samples of the recorded span can show.
    pub queues_left_out: bool,
    /// Width of the queues' bins, ps.
    pub bin_ps: u64,
    /// Pauses of all link ends.
    pub pauses: Vec<Pause>,
    /// Longest time between two samples of queues and pauses, ps.
    pub step_ps: u64,
    /// Time up to which it was simulated, ps.
    pub until_ps: u64,
    /// Time of the last completion, ps.
    pub makespan_ps: u64,
    /// Reason why the simulation did not reach its end; `None`: it did.
    pub cut: Option<String>,
}

impl Timeline {
    /// Returns the rank of its program that ends last, the lowest of several. `None` if there are only flows, or a rank did not end.
    pub fn critical_rank(&self) -> Option<u32> {
        let job = self.job.as_ref().filter(|_| self.cut.is_none())?;
        let starts = self.starts();
        critical_rank(&job.workload, &|rank, op| self.times(&starts, rank, op), 0..job.workload.ranks.len() as u32)
    }

    /// Splits the iteration of one rank into parts. `None` where [`Timeline::critical_rank`] is, or if there is no such rank.
    pub fn breakdown(&self, rank: u32) -> Option<Breakdown> {
        let job = self.job.as_ref().filter(|_| self.cut.is_none())?;
        let starts = self.starts();
        let exists = (rank as usize) < job.workload.ranks.len();
        let own = self.programs.iter().find(|(gpus, ..)| gpus.contains(&rank));
        let (warmup, begin_ps) = own.map_or((job.warmup, 0), |(_, warmup, start_ps)| (*warmup, *start_ps));
        exists.then(|| of_rank(&job.workload, &|rank, op| self.times(&starts, rank, op), rank, warmup, begin_ps))
    }

    /// Returns, for each rank, the index of its first op in `ops`.
    fn starts(&self) -> Vec<usize> {
        let n_ranks = self.job.as_ref().map_or(0, |job| job.workload.ranks.len());
        (0..n_ranks).map(|rank| self.ops.partition_point(|s| (s.rank as usize) < rank)).collect()
    }

    fn times(&self, starts: &[usize], rank: u32, op: u32) -> OpTimes {
        // All ops are present if the simulation reached its end, unless the recorded span left them out.
        match self.ops.get(starts[rank as usize] + op as usize).filter(|s| (s.rank, s.op) == (rank, op)) {
            Some(s) => OpTimes { begin: s.begin, go: s.go, end: s.end },
            None => OpTimes { begin: NEVER, go: NEVER, end: NEVER },
        }
    }
}

/// Simulates an experiment and records its timeline.
///
/// # Errors
/// The experiment cannot be prepared, does not fit into its GPUs' memory, or takes more memory than there is.
pub fn record(
    config: &Config,
    exp_id: u64,
    recorded: RecordedSpan,
    stop: &dyn Fn() -> bool,
) -> Result<Timeline, PrepareError> {
    // Every rank has tasks here, so it may take far more memory than the run did.
    let prepared = guarded(config, budget::total() / 4 * 3, || prepare_every_rank(config, exp_id as u32))?;
    can_run(config, &prepared)?;
    let mut tables = prepared.built.tables;
    let mut t = tables.view();
    stops::stop_sampling(&mut t);
    let links = link_names(&prepared.network, &prepared.built.end_arcs);
    let mut looks = Looks::new(&t, recorded);
    let mut cut = simulate(&mut t, config, recorded, stop, &mut looks);
    let until_ps = t.exps[0].now;
    if cut.is_none() && t.exps[0].status != status::DONE {
        cut = Some(match t.exps[0].status {
            status::TIME_LIMIT => "limits.sim_ns was reached".to_string(),
            status::GAVE_UP => "a flow gave up retransmitting".to_string(),
            _ => "the simulation broke off".to_string(),
        });
    }
    let outcome = read(&OutcomeRows::of(&t), &prepared.flows, prepared.job.as_deref(), &prepared.jobs, &links, &t.rtts);
    let ops = prepared.job.as_deref().map_or(Vec::new(), |job| ops(job, &t));
    let is_within = |begin: u64, end: u64| begin != NEVER && begin < recorded.to_ps && end >= recorded.from_ps;
    let messages = outcome.flows.iter().copied().zip(&prepared.flows).filter_map(|(flow, info)| {
        let (lane, got) = match (info.carried, &prepared.job) {
            (FlowCarrier::Message(task), Some(job)) => {
                let row = &t.tasks[task];
                let lane = match job.graph.tasks[task.usize()].work {
                    hyperfold_llm::workload::tasks::Work::Message { qp, .. } => job.graph.qps[qp as usize].lane,
                    hyperfold_llm::workload::tasks::Work::Delay => 0,
                };
                (lane, (row.got != NEVER).then_some(row.got))
            }
            _ => (0, None),
        };
        let end = flow.fct_ps.map_or(NEVER, |fct| flow.start_ps.saturating_add(fct));
        is_within(flow.start_ps, end).then_some(MessageSpan { flow, lane, got })
    });
    let messages = messages.collect();
    let programs = prepared.jobs.iter().filter_map(|rows| {
        let program = rows.job.program.as_ref()?;
        Some((rows.job.gpus.clone(), program.warmup, rows.job.start_ps))
    });
    let programs = programs.collect();
    looks.pauses.retain(|p| is_within(p.begin, p.end));
    looks.end(until_ps);
    Ok(Timeline {
        messages,
        ops: ops.into_iter().filter(|o| is_within(o.begin, o.end)).collect(),
        network: prepared.network,
        job: prepared.job,
        programs,
        links,
        queues: looks.queues,
        queues_left_out: looks.left_out && recorded.samples > 0,
        bin_ps: looks.bin_ps,
        pauses: looks.pauses,
        step_ps: t.exps[0].step,
        until_ps,
        makespan_ps: outcome.makespan_ps,
        cut,
    })
}

/// Simulates to the end, or returns the reason why it stopped earlier.
fn simulate(
    t: &mut Tables,
    config: &Config,
    recorded: RecordedSpan,
    stop: &dyn Fn() -> bool,
    looks: &mut Looks,
) -> Option<String> {
    let limit = RunOptions::default().packet_limit;
    let start = Instant::now();
    if is_flow_level(t) {
        // At flow level there is nothing to sample between events: no queue, no window.
        return (!hyperfold_flow::run_to_end(t, stop)).then(|| "interrupted".to_string());
    }
    let mut steps = 0u64;
    let per_check = u64::from(cpu::engine::steps_per_check(t));
    while !is_final(t) {
        if let Err(e) = go_on(t, limit) {
            return Some(e.to_string());
        }
        if t.exps[0].now >= recorded.to_ps {
            return Some("the end of the window".to_string());
        }
        let end = t.exps[0].step_end();
        cpu::step(t);
        // A step that waits for records continues later, at the same time.
        if t.exps[0].phase == 0 {
            looks.look(t, end);
        }
        steps += 1;
        if steps.is_multiple_of(per_check) && stop() {
            return Some("interrupted".to_string());
        }
        if steps.is_multiple_of(1024) {
            if config.limits.packet_hops.is_some_and(|max_hops| packet_hops(t) > max_hops) {
                return Some("limits.packet_hops was reached".to_string());
            }
            if config.limits.wall_ms.is_some_and(|max_ms| start.elapsed().as_millis() > u128::from(max_ms)) {
                return Some("limits.wall_s was reached".to_string());
            }
        }
    }
    None
}

/// Returns the ops of all ranks that have begun.
fn ops(job: &Job, t: &Tables) -> Vec<OpSpan> {
    let mut ops = Vec::new();
    for (rank, rank_ops) in job.graph.ops.iter().enumerate() {
        for (op, tasks) in rank_ops.iter().enumerate() {
            let row = |i: u32| &t.tasks[TaskIdx(i)];
            let (begin, go, end) = if row(tasks.end).done != NEVER {
                let s = span(tasks, &t.tasks);
                (s.begin, s.go, s.end)
            } else if tasks.begin == tasks.end {
                // A kernel in progress ends at `at`.
                let begin = if row(tasks.end).at == NEVER {
                    NEVER
                } else {
                    row(tasks.end).at.saturating_sub(row(tasks.end).delay)
                };
                (begin, begin, NEVER)
            } else {
                (row(tasks.begin).done, NEVER, NEVER)
            };
            if begin != NEVER {
                ops.push(OpSpan { rank: rank as u32, op: op as u32, begin, go, end });
            }
        }
    }
    ops
}

/// Samples of queues and pauses between steps.
struct Looks {
    recorded: RecordedSpan,
    queues: Vec<Vec<QueueBin>>,
    /// Number of bins of all queues together.
    n: usize,
    bin_ps: u64,
    /// Width of bins before any widening, ps.
    step_ps: u64,
    /// Whether queues are not sampled, or no longer.
    left_out: bool,
    pauses: Vec<Pause>,
    /// For every link end: the index in `pauses` of its current pause, and the pause frames it has received.
    paused: Vec<(Option<usize>, u32)>,
    previous_ps: u64,
}

impl Looks {
    fn new(t: &Tables, recorded: RecordedSpan) -> Looks {
        let ends = t.nics.len() + t.ports.len();
        let bin_ps = t.exps[0].step.max(1);
        let (queues, paused) = (vec![Vec::new(); ends], vec![(None, 0); ends]);
        Looks {
            recorded,
            queues,
            n: 0,
            bin_ps,
            step_ps: bin_ps,
            left_out: recorded.samples == 0,
            pauses: Vec::new(),
            paused,
            previous_ps: 0,
        }
    }

    /// Takes samples after a step that ended at `now_ps`.
    fn look(&mut self, t: &Tables, now_ps: u64) {
        let begin = std::mem::replace(&mut self.previous_ps, now_ps);
        if now_ps < self.recorded.from_ps {
            return;
        }
        let nics = t.nics.len();
        for (n, nic) in t.nics.iter().enumerate() {
            self.pause(n, nic.paused != 0 || t.is_paused(LinkEndIdx::new(n)), nic.pauses, begin, now_ps);
        }
        for (p, port) in t.ports.iter().enumerate() {
            self.pause(nics + p, t.is_paused(LinkEndIdx::new(nics + p)), port.pauses, begin, now_ps);
            self.queue(nics + p, port.q_bytes, now_ps);
        }
    }

    /// Records a pause. It appears at the end of the step in which it began; a pause that came and went within a step appears as that step.
    fn pause(&mut self, link: usize, paused: bool, frames: u32, begin: u64, now_ps: u64) {
        let (open, seen) = self.paused[link];
        let more = frames > seen;
        let now = match (open, paused) {
            (Some(p), false) => {
                self.pauses[p].end = now_ps;
                None
            }
            (None, true) => {
                self.pauses.push(Pause { link: link as u32, begin: now_ps, end: NEVER });
                Some(self.pauses.len() - 1)
            }
            (None, false) if more => {
                self.pauses.push(Pause { link: link as u32, begin, end: now_ps });
                None
            }
            (open, _) => open,
        };
        self.paused[link] = (now, frames);
    }

    fn queue(&mut self, link: usize, bytes: u32, now_ps: u64) {
        if self.left_out {
            return;
        }
        let bin = now_ps / self.bin_ps;
        let bins = &mut self.queues[link];
        match bins.last_mut() {
            Some(last) if last.bin == bin => {
                last.max = last.max.max(bytes);
                last.last = bytes;
            }
            None if bytes == 0 => {}
            Some(last) if last.last == bytes => {}
            _ => {
                bins.push(QueueBin { bin, max: bytes, last: bytes });
                self.n += 1;
                // Every queue keeps a bin, however wide. With more queues than samples, no width is enough.
                while self.n > self.recorded.samples && self.bin_ps <= now_ps - self.recorded.from_ps {
                    self.coarsen();
                }
                if self.n > self.recorded.samples {
                    self.leave_out();
                }
            }
        }
    }

    /// Ends the recording after the last step, which ended at `until_ps`. If bins became so wide that few are left, they say nothing about when queues were
    /// long, and are left out.
    fn end(&mut self, until_ps: u64) {
        let is_coarser = self.n > 0 && self.bin_ps > self.step_ps;
        if is_coarser && until_ps.saturating_sub(self.recorded.from_ps) / self.bin_ps < FEWEST_BINS {
            self.leave_out();
        }
    }

    fn leave_out(&mut self) {
        self.left_out = true;
        self.n = 0;
        self.bin_ps = self.step_ps;
        self.queues.iter_mut().for_each(|bins| *bins = Vec::new());
    }

    /// Doubles the width of bins.
    fn coarsen(&mut self) {
        self.bin_ps *= 2;
        self.n = 0;
        for bins in &mut self.queues {
            bins.iter_mut().for_each(|b| b.bin /= 2);
            bins.dedup_by(|later, kept| {
                let same = later.bin == kept.bin;
                if same {
                    kept.max = kept.max.max(later.max);
                    kept.last = later.last;
                }
                same
            });
            self.n += bins.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(samples: usize) -> Looks {
        let recorded = RecordedSpan { samples, ..RecordedSpan::default() };
        let (queues, paused) = (vec![Vec::new(); 2], vec![(None, 0)]);
        Looks {
            recorded,
            queues,
            n: 0,
            bin_ps: 10,
            step_ps: 10,
            left_out: samples == 0,
            pauses: Vec::new(),
            paused,
            previous_ps: 0,
        }
    }

    #[test]
    fn queues_keep_their_peaks_when_they_get_coarser() {
        let mut l = looks(4);
        for (now_ps, bytes) in [(5, 0), (10, 3), (20, 9), (30, 1), (40, 0), (50, 0), (60, 7), (70, 0)] {
            l.queue(0, bytes, now_ps);
        }
        let bin = |bin, max, last| QueueBin { bin, max, last };
        assert_eq!(
            (l.bin_ps, l.queues[0].as_slice()),
            (20, &[bin(0, 3, 3), bin(1, 9, 1), bin(2, 0, 0), bin(3, 7, 0)][..])
        );
        assert_eq!(l.n, 4);
        l.end(159);
        assert_eq!((l.n, l.left_out), (0, true), "seven bins of 20 tell nothing any more");
    }

    #[test]
    fn queues_that_no_width_could_show_are_left_out() {
        for samples in [0, 1] {
            let mut l = looks(samples);
            (1..100).for_each(|k| (0..2).for_each(|link| l.queue(link, 1 + k % 3, 10 * u64::from(k))));
            assert!(
                l.left_out && l.queues.iter().all(Vec::is_empty) && l.bin_ps == 10,
                "{samples} samples for two queues"
            );
        }
        let mut l = looks(2);
        (1..100).for_each(|k| (0..2).for_each(|link| l.queue(link, 1 + k % 3, 10 * u64::from(k))));
        assert!(!l.left_out && l.n == 2 && l.bin_ps < 2_000, "as wide as the whole, and no wider: {}", l.bin_ps);
    }

    #[test]
    fn pauses_begin_and_end_with_steps() {
        let mut l = looks(4);
        for (paused, frames, now_ps) in
            [(false, 0, 10), (true, 1, 20), (true, 1, 30), (false, 1, 40), (false, 2, 50), (true, 3, 60)]
        {
            l.pause(0, paused, frames, now_ps - 10, now_ps);
        }
        let spans: Vec<(u64, u64)> = l.pauses.iter().map(|p| (p.begin, p.end)).collect();
        assert_eq!(spans, [(20, 40), (40, 50), (60, NEVER)]);
    }
}
