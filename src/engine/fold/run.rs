//! A folded run: who has the earliest event goes next, a partition for a step of its own time, an idle NIC for its tasks of that instant.
//!
//! Whatever one row sends another arrives at least a step later, packets and signals alike. So whoever is earliest of all may go on for a step, however far the others are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

use super::calm::Calm;
use super::carry;
use super::claims::Ticket;
use super::fresh::Fresh;
use super::part::Part;
use super::rise::Rise;
use super::tally::Tally;
use super::{FoldStats, Memo, Stop, because};
use crate::columns::{
    Aside, NEVER, NONE, SHARED_FLAGS, SHARED_FLOWS_LEFT, Tables, cc, flag, mode, qp, status, task as bits,
};
use crate::engine::cpu::key::{Key, START, TASK};
use crate::engine::cpu::{analytical, nic, schedule, task};
use crate::engine::grow;

/// Who goes first at one instant: idle NICs, as they may join; who is simulated; who is looked up, perhaps what was simulated just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Idle,
    Live,
    Replay,
}

/// One experiment that is being folded. Row numbers are those of its tables.
pub struct Run {
    fresh: Fresh,
    pub(super) step: u64,
    /// `None`: nothing is remembered.
    pub(super) memo: Option<Arc<Memo>>,
    /// Packets between cuts, at least; a nap must promise to skip twice as many.
    pub(super) cut_hops: u64,
    /// The partition of each NIC and port, `NONE` while idle; their places in it, and of each queue pair its place among the members.
    pub(super) nic_part: Vec<u32>,
    pub(super) port_part: Vec<u32>,
    /// When each NIC and port last came to life.
    pub(super) nic_woke: Vec<u64>,
    pub(super) port_woke: Vec<u64>,
    pub(super) nic_local: Vec<u32>,
    pub(super) port_local: Vec<u32>,
    /// Of each switch port its place among the link ends of the partition that it receives from.
    pub(super) end_local: Vec<u32>,
    pub(super) member: Vec<u32>,
    /// The queue pair of each number.
    pub(super) flow: Vec<u32>,
    pub(super) parts: Vec<Part>,
    pub(super) spare: Vec<u32>,
    /// A queue pair whose timers move windows joined: nothing of its partition is remembered.
    pub(super) unfit: bool,
    /// The partition whose turn it is, while it is simulated.
    pub(super) turning: u32,
    /// When each idle NIC was last said to have something to do.
    pub(super) idle_at: Vec<u64>,
    /// (when, rank, NIC): an idle NIC, or the first of a partition. An entry that says something else than the row does is void.
    heap: BinaryHeap<Reverse<(u64, Rank, u32)>>,
    /// (when, first NIC): looks at partitions that are simulated, where what is steady is skipped. One that the partition does not say is void.
    pub(super) looks: BinaryHeap<Reverse<(u64, u32)>>,
    /// Gates that everybody has reached, by time and number.
    fired: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) calm: Calm,
    /// Naps that were chosen to be audited, by what was drawn.
    pub(super) audited: HashSet<u32>,
    /// Of the window that is simulated.
    pub(super) rise: Rise,
    pub(super) limit: u64,
    pub(super) stats: FoldStats,
    pub(super) ticket: Ticket,
    pub(super) tally: Tally,
}

impl Run {
    /// Begins to fold `t`, if that is possible at all.
    ///
    /// PRECONDITION: `t` holds one experiment that has not taken a step.
    pub fn new(t: &mut Tables, memo: &Arc<Memo>, cut_hops: u64) -> Option<Run> {
        let e = &t.exps[0];
        if t.tasks.is_empty() || e.rtt_cap > 0 {
            return None;
        }
        let calm = Calm::new(t)?;
        let fresh = Fresh::of(t);
        t.exps[0].modes |= mode::NOTED;
        t.exps[0].steps = 1;
        t.aside.chance = carry::marks_by_chance(t);
        let hpcc = t.exps[0].cc == cc::HPCC;
        t.aside.rounds = Run::is_steadying(t) && (t.aside.chance || hpcc) && !carry::collide(t);
        if t.aside.rounds && hpcc {
            t.aside.telemetry = carry::free_phases(t).into_iter().map(|free| free.then_some((0, 0))).collect();
        }
        for tx in &mut t.flow_tx {
            tx.flags |= qp::HELD;
        }
        let mut run = Run {
            fresh,
            step: t.exps[0].step,
            memo: (t.exps[0].modes & mode::MEMO != 0).then(|| Arc::clone(memo)),
            cut_hops,
            nic_part: vec![NONE; t.nics.len()],
            port_part: vec![NONE; t.ports.len()],
            nic_woke: vec![NEVER; t.nics.len()],
            port_woke: vec![NEVER; t.ports.len()],
            nic_local: vec![NONE; t.nics.len()],
            port_local: vec![NONE; t.ports.len()],
            end_local: vec![NONE; t.ports.len()],
            member: vec![NONE; t.flow_tx.len()],
            flow: by_number(t),
            parts: Vec::new(),
            spare: Vec::new(),
            unfit: false,
            turning: NONE,
            idle_at: vec![NEVER; t.nics.len()],
            heap: BinaryHeap::new(),
            looks: BinaryHeap::new(),
            fired: BinaryHeap::new(),
            calm,
            audited: HashSet::new(),
            rise: Rise::default(),
            limit: 0,
            stats: FoldStats::default(),
            ticket: memo.claims.enter(),
            tally: Tally::default(),
        };
        for n in 0..t.nics.len() as u32 {
            run.call(t, n);
        }
        Some(run)
    }

    /// `t` is as it was again, not to be folded.
    pub fn start_over(self, t: &mut Tables) {
        self.fresh.put_back(t);
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
                return Err(Stop::Abandon(because::TIME));
            }
            let look = self.next_look().filter(|look| look.0 <= at);
            if !self.calm.was_kept(t, look.map_or(at, |look| look.0)) {
                return Err(Stop::Abandon(because::BUFFER));
            }
            // Before anything is done: who waits here takes neither a look nor a turn.
            if self.ticket.turn(look.map_or(at, |look| look.0)) {
                return Err(Stop::Wait);
            }
            if let Some((look, p)) = look {
                let sample = self.begin_turn(look);
                self.ticket.may_wait = false;
                self.inspect(t, p, look);
                self.end_turn(sample, Some(false));
                continue;
            }
            self.heap.pop();
            let sample = self.begin_turn(at);
            let p = self.nic_part[n as usize];
            let replay = (p != NONE).then(|| self.parts[p as usize].replay);
            self.ticket.may_wait = replay != Some(false);
            let done = match replay {
                None => self.idle_turn(t, n, at),
                Some(true) => self.replay_turn(t, p, at),
                Some(false) => self.live_turn(t, p, at),
            };
            self.end_turn(sample, replay);
            if let Err(Stop::Wait) = done {
                self.again(t, n, at);
            }
            done?;
        }
        Ok(())
    }

    /// The turn of NIC `n`, or of its partition, at `at` is to be taken again.
    fn again(&mut self, t: &mut Tables, n: u32, at: u64) {
        match self.nic_part[n as usize] {
            NONE => {
                nic::set_clock(t, n);
                self.call(t, n);
            }
            p => self.call_part(p, at),
        }
    }

    /// The earliest of all.
    fn peek(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((at, rank, n))) = self.heap.peek() {
            let valid = match self.nic_part[n as usize] {
                NONE => rank == Rank::Idle && self.idle_at[n as usize] == at,
                p => self.parts[p as usize].first == n && self.parts[p as usize].next == at && self.rank(p) == rank,
            };
            if valid {
                return Some((at, n));
            }
            self.heap.pop();
        }
        None
    }

    fn rank(&self, p: u32) -> Rank {
        if self.parts[p as usize].replay { Rank::Replay } else { Rank::Live }
    }

    /// NIC `n` may have something to do earlier than was said.
    pub(super) fn call(&mut self, t: &Tables, n: u32) {
        let row = &t.nics[n as usize];
        let at = row.next_task.min(row.next_start);
        match self.nic_part[n as usize] {
            NONE => {
                if at != NEVER && self.idle_at[n as usize] != at {
                    self.heap.push(Reverse((at, Rank::Idle, n)));
                }
                self.idle_at[n as usize] = at;
            }
            p => self.call_part(p, at),
        }
    }

    /// Partition `p` has something to do at `at`.
    pub(super) fn call_part(&mut self, p: u32, at: u64) {
        let rank = self.rank(p);
        let part = &mut self.parts[p as usize];
        part.next = part.next.min(at);
        if part.next != NEVER {
            self.heap.push(Reverse((part.next, rank, part.first)));
        }
    }

    /// The signals that NIC `n` gave reach their gates.
    pub(super) fn collect(&mut self, t: &mut Tables, n: u32) {
        let fired = &mut self.fired;
        schedule::collect_into(t, n, &mut |t, g| fired.push(Reverse((t.gates[g as usize].latest, g))));
    }

    /// The first gate that fired is served: nobody can fire an earlier one any more.
    fn serve(&mut self, t: &mut Tables, g: u32) {
        analytical::serve(t, g);
        let g = g as usize;
        for k in t.gates[g].first..t.gates[g].first + t.gates[g].n {
            let owner = t.tasks[t.edges[k as usize] as usize].owner;
            self.call(t, owner);
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
                _ => return Err(Stop::Abandon(because::KIND)),
            };
            match flow {
                Some(f) => {
                    let p = self.join(t, n, f, at)?;
                    self.call_part(p, at);
                    break;
                }
                None => {
                    task::due(t, n, &next);
                }
            }
        }
        nic::set_clock(t, n);
        self.collect(t, n);
        if self.nic_part[n as usize] == NONE {
            self.call(t, n);
        }
        t.exps[0].now = t.exps[0].now.max(at);
        Ok(())
    }

    /// What the flags of the experiment ask for after a turn.
    pub(super) fn heed(&mut self, t: &mut Tables) -> Result<(), Stop> {
        let flags = t.shared[SHARED_FLAGS as usize];
        if flags & (flag::OVER_BUFFER | flag::POOL_DRY | flag::GAVE_UP | flag::ORPHANS) != 0 {
            return Err(Stop::Abandon(because::FLAG));
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
            return Err(Stop::Abandon(because::STUCK));
        }
        if !self.calm.was_kept(t, NEVER) {
            return Err(Stop::Abandon(because::BUFFER));
        }
        for tx in &mut t.flow_tx {
            tx.flags &= !qp::HELD;
        }
        t.shared[SHARED_FLAGS as usize] &= !flag::SIGNALS;
        t.exps[0].modes &= !mode::NOTED;
        t.aside = Aside::default();
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
fn next_idle(t: &Tables, n: u32) -> Key {
    let row = &t.nics[n as usize];
    let others = row.busy_until.min(t.clocks[n as usize]).min(row.timer).min(row.rto).min(row.next_start);
    if row.next_task < others { task::key(t, row.task_head) } else { nic::next_event(t, n) }
}
