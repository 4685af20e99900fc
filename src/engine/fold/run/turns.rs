//! A folded run: who has the earliest event goes next, a partition for a step of its own time, an idle NIC for its tasks of that instant.
//!
//! Whatever one row sends another arrives at least a step later, packets and signals alike. So whoever is earliest of all may go on for a step, however far the others are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

use crate::columns::{
    FoldHints, NEVER, NONE, SHARED_FLAGS, SHARED_FLOWS_LEFT, Tables, cc, flag, mode, qp, status, task as bits,
};
use crate::engine::cpu::key::{EventKey, START, TASK};
use crate::engine::cpu::{analytical, nic, schedule, task};
use crate::engine::fold::memo::in_flight::ExperimentTicket;
use crate::engine::fold::rows::buffer_guard::BufferGuard;
use crate::engine::fold::rows::cc_state;
use crate::engine::fold::rows::ingress_peaks::IngressPeaks;
use crate::engine::fold::run::partition::Partition;
use crate::engine::fold::run::restart::Restart;
use crate::engine::fold::run::stats::TurnTimer;
use crate::engine::fold::{FoldStats, Memo, Stop, reason};
use crate::engine::grow;

/// Who goes first at one instant: idle NICs, as they may join; who is simulated; who is looked up, perhaps what was simulated just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TurnRank {
    Idle,
    Simulate,
    LookUp,
}

/// One experiment that is being folded. Row numbers are those of its tables.
pub struct Run {
    restart: Restart,
    pub(in crate::engine::fold) step: u64,
    /// `None`: nothing is remembered.
    pub(in crate::engine::fold) memo: Option<Arc<Memo>>,
    /// Packets between cuts, at least; a nap must promise to skip twice as many.
    pub(in crate::engine::fold) checkpoint_hops: u64,
    /// The partition of each NIC and port, `NONE` while idle; their places in it, and of each queue pair its place among the members.
    pub(in crate::engine::fold) nic_partition: Vec<u32>,
    pub(in crate::engine::fold) port_partition: Vec<u32>,
    /// When each NIC and port last came to life.
    pub(in crate::engine::fold) nic_active_since: Vec<u64>,
    pub(in crate::engine::fold) port_active_since: Vec<u64>,
    pub(in crate::engine::fold) nic_local: Vec<u32>,
    pub(in crate::engine::fold) port_local: Vec<u32>,
    /// Of each switch port its place among the link ends of the partition that it receives from.
    pub(in crate::engine::fold) end_local: Vec<u32>,
    pub(in crate::engine::fold) member: Vec<u32>,
    /// The queue pair of each number.
    pub(in crate::engine::fold) flow: Vec<u32>,
    pub(in crate::engine::fold) partitions: Vec<Partition>,
    pub(in crate::engine::fold) spare: Vec<u32>,
    /// A queue pair whose timers move windows joined: nothing of its partition is remembered.
    pub(in crate::engine::fold) joined_unrecordable: bool,
    /// The partition whose turn it is, while it is simulated.
    pub(in crate::engine::fold) turning: u32,
    /// When each idle NIC was last said to have something to do.
    pub(in crate::engine::fold) idle_at: Vec<u64>,
    /// (when, rank, NIC): an idle NIC, or the first of a partition. An entry that says something else than the row does is void.
    heap: BinaryHeap<Reverse<(u64, TurnRank, u32)>>,
    /// (when, first NIC): looks at partitions that are simulated, where what is steady is skipped. One that the partition does not say is void.
    pub(in crate::engine::fold) samplings: BinaryHeap<Reverse<(u64, u32)>>,
    /// Gates that everybody has reached, by time and number.
    fired: BinaryHeap<Reverse<(u64, u32)>>,
    pub(in crate::engine::fold) guard: BufferGuard,
    /// Naps that were chosen to be audited, by what was drawn.
    pub(in crate::engine::fold) audited: HashSet<u32>,
    /// Of the window that is simulated.
    pub(in crate::engine::fold) ingress_peaks: IngressPeaks,
    pub(in crate::engine::fold) limit: u64,
    pub(in crate::engine::fold) stats: FoldStats,
    pub(in crate::engine::fold) ticket: ExperimentTicket,
    pub(in crate::engine::fold) timer: TurnTimer,
}

impl Run {
    /// Begins to fold `t`, if that is possible at all.
    ///
    /// PRECONDITION: `t` holds one experiment that has not taken a step.
    pub fn new(t: &mut Tables, memo: &Arc<Memo>, checkpoint_hops: u64) -> Option<Run> {
        let e = &t.exps[0];
        if t.tasks.is_empty() || e.rtt_cap > 0 {
            return None;
        }
        let guard = BufferGuard::new(t)?;
        let restart = Restart::of(t);
        t.exps[0].modes |= mode::TRACED;
        t.exps[0].steps = 1;
        t.fold_hints.random_marks = cc_state::marks_by_chance(t);
        let hpcc = t.exps[0].cc == cc::HPCC;
        t.fold_hints.rounding = Run::is_steadying(t) && (t.fold_hints.random_marks || hpcc) && !cc_state::collide(t);
        if t.fold_hints.rounding && hpcc {
            t.fold_hints.telemetry_from =
                cc_state::free_phases(t).into_iter().map(|free| free.then_some((0, 0))).collect();
        }
        for tx in &mut t.flow_tx {
            tx.flags |= qp::HELD;
        }
        let mut run = Run {
            restart,
            step: t.exps[0].step,
            memo: (t.exps[0].modes & mode::MEMO != 0).then(|| Arc::clone(memo)),
            checkpoint_hops,
            nic_partition: vec![NONE; t.nics.len()],
            port_partition: vec![NONE; t.ports.len()],
            nic_active_since: vec![NEVER; t.nics.len()],
            port_active_since: vec![NEVER; t.ports.len()],
            nic_local: vec![NONE; t.nics.len()],
            port_local: vec![NONE; t.ports.len()],
            end_local: vec![NONE; t.ports.len()],
            member: vec![NONE; t.flow_tx.len()],
            flow: by_number(t),
            partitions: Vec::new(),
            spare: Vec::new(),
            joined_unrecordable: false,
            turning: NONE,
            idle_at: vec![NEVER; t.nics.len()],
            heap: BinaryHeap::new(),
            samplings: BinaryHeap::new(),
            fired: BinaryHeap::new(),
            guard,
            audited: HashSet::new(),
            ingress_peaks: IngressPeaks::default(),
            limit: 0,
            stats: FoldStats::default(),
            ticket: memo.in_flight.enter(),
            timer: TurnTimer::default(),
        };
        for n in 0..t.nics.len() as u32 {
            run.schedule_nic(t, n);
        }
        Some(run)
    }

    /// `t` is as it was again, not to be folded.
    pub fn start_over(self, t: &mut Tables) {
        self.restart.put_back(t);
    }

    /// Runs `turns` turns, or to the end.
    pub fn turns(&mut self, t: &mut Tables, turns: u32, limit: u64) -> Result<(), Stop> {
        self.limit = limit;
        for _ in 0..turns {
            let top = self.peek();
            let fired = self.fired.peek().map(|&Reverse((latest, g))| (latest, g));
            if let Some((latest, g)) = fired
                && top.is_none_or(|(at, _)| latest < at)
            {
                self.fired.pop();
                self.serve(t, g);
                continue;
            }
            let Some((at, n)) = top else { return self.finish(t) };
            if at >= t.exps[0].time_limit {
                return Err(Stop::Abandon(reason::TIME));
            }
            let sample_at = self.next_sampling().filter(|sample_at| sample_at.0 <= at);
            if !self.guard.held_until(t, sample_at.map_or(at, |sample_at| sample_at.0)) {
                return Err(Stop::Abandon(reason::BUFFER));
            }
            // Before anything is done: who waits here takes neither a look nor a turn.
            if self.ticket.turn(sample_at.map_or(at, |sample_at| sample_at.0)) {
                return Err(Stop::Wait);
            }
            if let Some((sample_at, p)) = sample_at {
                let timed_turn = self.begin_turn(sample_at);
                self.ticket.may_wait = false;
                self.sample_and_checkpoint(t, p, sample_at);
                self.end_turn(timed_turn, Some(false));
                continue;
            }
            self.heap.pop();
            let timed_turn = self.begin_turn(at);
            let p = self.nic_partition[n as usize];
            let looked_up = (p != NONE).then(|| self.partitions[p as usize].looked_up);
            self.ticket.may_wait = looked_up != Some(false);
            let done = match looked_up {
                None => self.idle_turn(t, n, at),
                Some(true) => self.lookup_turn(t, p, at),
                Some(false) => self.simulate_turn(t, p, at),
            };
            self.end_turn(timed_turn, looked_up);
            if let Err(Stop::Wait) = done {
                self.repeat_turn(t, n, at);
            }
            done?;
        }
        Ok(())
    }

    /// The turn of NIC `n`, or of its partition, at `at` is to be taken again.
    fn repeat_turn(&mut self, t: &mut Tables, n: u32, at: u64) {
        match self.nic_partition[n as usize] {
            NONE => {
                nic::set_clock(t, n);
                self.schedule_nic(t, n);
            }
            p => self.schedule_partition(p, at),
        }
    }

    /// The earliest of all.
    fn peek(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((at, rank, n))) = self.heap.peek() {
            let valid = match self.nic_partition[n as usize] {
                NONE => rank == TurnRank::Idle && self.idle_at[n as usize] == at,
                p => {
                    self.partitions[p as usize].first == n
                        && self.partitions[p as usize].next == at
                        && self.rank(p) == rank
                }
            };
            if valid {
                return Some((at, n));
            }
            self.heap.pop();
        }
        None
    }

    fn rank(&self, p: u32) -> TurnRank {
        if self.partitions[p as usize].looked_up { TurnRank::LookUp } else { TurnRank::Simulate }
    }

    /// NIC `n` may have something to do earlier than was said.
    pub(in crate::engine::fold) fn schedule_nic(&mut self, t: &Tables, n: u32) {
        let row = &t.nics[n as usize];
        let at = row.next_task.min(row.next_start);
        match self.nic_partition[n as usize] {
            NONE => {
                if at != NEVER && self.idle_at[n as usize] != at {
                    self.heap.push(Reverse((at, TurnRank::Idle, n)));
                }
                self.idle_at[n as usize] = at;
            }
            p => self.schedule_partition(p, at),
        }
    }

    /// Partition `p` has something to do at `at`.
    pub(in crate::engine::fold) fn schedule_partition(&mut self, p: u32, at: u64) {
        let rank = self.rank(p);
        let partition = &mut self.partitions[p as usize];
        partition.next = partition.next.min(at);
        if partition.next != NEVER {
            self.heap.push(Reverse((partition.next, rank, partition.first)));
        }
    }

    /// The signals that NIC `n` gave reach their gates.
    pub(in crate::engine::fold) fn collect(&mut self, t: &mut Tables, n: u32) {
        let fired = &mut self.fired;
        schedule::collect_into(t, n, &mut |t, g| fired.push(Reverse((t.gates[g as usize].latest, g))));
    }

    /// The first gate that fired is served: nobody can fire an earlier one any more.
    fn serve(&mut self, t: &mut Tables, g: u32) {
        analytical::serve(t, g);
        let g = g as usize;
        for k in t.gates[g].first..t.gates[g].first + t.gates[g].n {
            let owner = t.tasks[t.edges[k as usize] as usize].owner;
            self.schedule_nic(t, owner);
        }
    }

    /// Tasks of an idle NIC at one instant, up to the first that needs the network.
    fn idle_turn(&mut self, t: &mut Tables, n: u32, at: u64) -> Result<(), Stop> {
        self.idle_at[n as usize] = NEVER;
        loop {
            let next = next_idle(t, n);
            if next.t > at {
                break;
            }
            let flow = match next.kind {
                START => {
                    let row = &t.nics[n as usize];
                    Some(row.flow_first + row.flow_next)
                }
                TASK => {
                    let row = &t.tasks[t.nics[n as usize].task_head as usize];
                    (row.flags & bits::MESSAGE != 0).then_some(row.flow)
                }
                _ => return Err(Stop::Abandon(reason::KIND)),
            };
            match flow {
                Some(f) => {
                    let p = self.join(t, n, f, at)?;
                    self.schedule_partition(p, at);
                    break;
                }
                None => {
                    task::due(t, n, &next);
                }
            }
        }
        nic::set_clock(t, n);
        self.collect(t, n);
        if self.nic_partition[n as usize] == NONE {
            self.schedule_nic(t, n);
        }
        t.exps[0].now = t.exps[0].now.max(at);
        Ok(())
    }

    /// What the flags of the experiment ask for after a turn.
    pub(in crate::engine::fold) fn check_flags(&mut self, t: &mut Tables) -> Result<(), Stop> {
        let flags = t.shared[SHARED_FLAGS as usize];
        if flags & (flag::OVER_BUFFER | flag::POOL_EMPTY | flag::GAVE_UP | flag::TO_RETURN) != 0 {
            return Err(Stop::Abandon(reason::FLAG));
        }
        if flags & flag::NEEDS_PACKETS != 0 {
            grow::grow(t, self.limit).map_err(|e| Stop::Fail(e.to_string()))?;
        }
        Ok(())
    }

    /// Nothing is left to happen.
    fn finish(&mut self, t: &mut Tables) -> Result<(), Stop> {
        if t.shared[SHARED_FLOWS_LEFT as usize] > 0 {
            // Stuck: the unfolded engine stops where the diagnosis expects it.
            return Err(Stop::Abandon(reason::STUCK));
        }
        if !self.guard.held_until(t, NEVER) {
            return Err(Stop::Abandon(reason::BUFFER));
        }
        for tx in &mut t.flow_tx {
            tx.flags &= !qp::HELD;
        }
        t.shared[SHARED_FLAGS as usize] &= !flag::SIGNALS;
        t.exps[0].modes &= !mode::TRACED;
        t.fold_hints = FoldHints::default();
        t.exps[0].status = status::DONE;
        Ok(())
    }
}

/// The queue pair of each number; `NONE` where no queue pair has it.
fn by_number(t: &Tables) -> Vec<u32> {
    let mut flow = vec![NONE; t.flow_tx.iter().map(|tx| tx.flow_id as usize + 1).max().unwrap_or(0)];
    for (f, tx) in t.flow_tx.iter().enumerate() {
        flow[tx.flow_id as usize] = f as u32;
    }
    flow
}

/// The next event of NIC `n`, which is mostly a task.
#[inline]
fn next_idle(t: &Tables, n: u32) -> EventKey {
    let row = &t.nics[n as usize];
    let others = row.busy_until.min(t.clocks[n as usize]).min(row.timer).min(row.rto).min(row.next_start);
    if row.next_task < others { task::key(t, row.task_head) } else { nic::next_event(t, n) }
}
