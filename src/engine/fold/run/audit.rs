//! How far off sleep is: some partitions that slept are simulated all the same, on a copy, and what was said of them is compared with what they did.
//!
//! Changes nothing but counts. Which ones goes by the states that they fell asleep in.

use std::collections::HashMap;
use std::time::Instant;

use crate::columns::{Exp, FoldTrace, NEVER, NONE, Tables, Task, qp, task as bits};
use crate::engine::cpu::math::hash32;
use crate::engine::cpu::{nic, task};
use crate::engine::fold::Stop;
use crate::engine::fold::rows::snapshot;
use crate::engine::fold::run::partition::Partition;
use crate::engine::fold::run::turns::Run;
use crate::engine::fold::steady::skip::Skip;

/// A million of millionths.
const WHOLE: u64 = 1_000_000;

/// What audits found. Errors in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Partitions that slept and were simulated all the same; messages that arrived meanwhile, and queue pairs of which none did.
    pub skips: u64,
    pub messages: u64,
    /// Errors of their times from post to arrival, or of how far they came: the sum, the largest, how many are above 1 %.
    pub error_sum: u64,
    pub error_max: u64,
    pub above: u64,
    /// Queue pairs whose rate was further off than theta / (1 - theta), and whose time to send what they sent was further off than theta (Wormhole's Theorems 2 and 3).
    pub theorem2: u64,
    pub theorem3: u64,
}

impl Audit {
    fn message(&mut self, said: u64, did: u64, posted: u64) {
        let took = did.saturating_sub(posted).max(1);
        let error = (u128::from(said.abs_diff(did)) * u128::from(WHOLE) / u128::from(took))
            .min(u128::from(u64::from(u32::MAX))) as u64;
        self.messages += 1;
        self.error_sum += error;
        self.error_max = self.error_max.max(error);
        self.above += u64::from(error > WHOLE / 100);
    }

    /// Of a queue pair none of whose messages ended meanwhile: how far it came.
    fn progress(&mut self, said: u64, did: u64) {
        // What is in flight as it begins and ends may be a packet more or less.
        let off = said.abs_diff(did).saturating_sub(1);
        self.message(did + off, did, 0);
    }

    /// A queue pair sent `did` packets where `said` were said.
    fn rate(&mut self, said: u64, did: u64, theta_ppm: u64) {
        // What is in flight as it begins and ends may be a packet more or less.
        let off = u128::from(said.abs_diff(did).saturating_sub(1));
        let (said, did, theta, whole) =
            (u128::from(said), u128::from(did), u128::from(theta_ppm.min(WHOLE)), u128::from(WHOLE));
        self.theorem2 += u64::from(off > 0 && off * (whole - theta) >= did * theta);
        self.theorem3 += u64::from(off > 0 && off * whole >= said * theta);
    }
}

/// A copy of `t` without its graph; the tasks, most of all rows, are moved there. Nothing is released where all messages are said to have arrived and ended.
fn copy_but_for_tasks(t: &mut Tables) -> Tables {
    let tasks = std::mem::take(&mut t.tasks);
    let graph = (std::mem::take(&mut t.edges), std::mem::take(&mut t.signals), std::mem::take(&mut t.gates));
    let copy = Tables { tasks, ..t.clone() };
    (t.edges, t.signals, t.gates) = graph;
    copy
}

/// Whether a nap of which `draw` was drawn is one of those that are simulated all the same.
pub fn is_audited(e: &Exp, draw: u32) -> bool {
    u64::from(hash32(draw, 0, 0, e.seed)) * WHOLE < u64::from(e.audit_ppm) << 32
}

impl Run {
    /// Simulates partition `p`, which wakes from `nap` at `at`, over that time, on a copy of the tables.
    /// `by`: how many packets each is said to have gone on by.
    pub(in crate::engine::fold) fn audit(
        &mut self,
        t: &mut Tables,
        p: u32,
        skip: &Skip,
        before_skip: &[[usize; 3]],
        by: &[u64],
        at: u64,
    ) -> Result<(), Stop> {
        let began = Instant::now();
        let posted: Vec<(u32, Task)> = self.partitions[p as usize]
            .members
            .iter()
            .flat_map(|m| &m.posted)
            .map(|&(i, _)| (i, t.tasks[i as usize]))
            .collect();
        let c = &mut copy_but_for_tasks(t);
        // Nobody is waited for on a copy, and what is claimed stays so.
        let may_wait = std::mem::take(&mut self.ticket.may_wait);
        let cursor = self.partitions[p as usize].cursor.take();
        let partition = Partition { cursor, ..self.partitions[p as usize].clone() };
        let delivered = self.simulate_skip(c, p, skip, before_skip, at);
        // Of the tasks only those posted were touched.
        std::mem::swap(&mut t.tasks, &mut c.tasks);
        for &(i, row) in &posted {
            t.tasks[i as usize] = row;
        }
        let (before, delivered) = delivered?;
        self.stats.audit.skips += 1;
        self.stats.audit_hops += crate::engine::packet_hops(c) - crate::engine::packet_hops(t);
        for (m, member) in partition.members.iter().enumerate().filter(|(m, _)| skip.goes_on(*m)) {
            let reported = &member.posted[before_skip[m][2]..member.delivered];
            for &(i, _) in reported {
                let row = &t.tasks[i as usize];
                // Those that have not arrived yet do so later than this.
                let did = delivered.get(&i).copied().unwrap_or(at);
                self.stats.audit.message(row.got, did, row.at);
            }
            let did = skip.packets(m, before[m], c.flow_tx[member.flow as usize].snd_una);
            if reported.is_empty() {
                self.stats.audit.progress(by[m], did);
            }
            self.stats.audit.rate(by[m], did, skip.plan.theta_ppm);
        }
        self.partitions[p as usize] = partition;
        self.ticket.may_wait = may_wait;
        self.stats.auditing += began.elapsed();
        Ok(())
    }

    /// Simulates `p` from the beginning of `nap` to `at`. Gives how far each queue pair had been acknowledged, and what was heard to arrive.
    fn simulate_skip(
        &mut self,
        c: &mut Tables,
        p: u32,
        skip: &Skip,
        before_skip: &[[usize; 3]],
        at: u64,
    ) -> Result<(Vec<u64>, HashMap<u32, u64>), Stop> {
        self.prepare(c, p, skip, before_skip)?;
        let before = self.partitions[p as usize].members.iter().map(|m| c.flow_tx[m.flow as usize].snd_una).collect();
        let mut delivered: HashMap<u32, u64> = HashMap::new();
        loop {
            let from = self.partitions[p as usize].next_events(c).at;
            if from >= at {
                break;
            }
            // What cannot be folded after all was not heard to arrive either.
            if self.window(c, p, from, (from + self.step).min(at)).is_err() {
                break;
            }
            for noted in c.fold_trace.drain(..) {
                if let FoldTrace::DeliveredAgain { task, at } = noted {
                    delivered.entry(task).or_insert(at);
                }
            }
        }
        Ok((before, delivered))
    }

    /// The rows of `p` as they fell asleep; what was posted since is under way, what was told is not told again.
    fn prepare(&mut self, c: &mut Tables, p: u32, skip: &Skip, before_skip: &[[usize; 3]]) -> Result<(), Stop> {
        let nics = self.partitions[p as usize].nics.clone();
        for &n in &nics {
            let row = &mut c.nics[n as usize];
            // Signals that have not reached their gates yet do so once, in the tables themselves.
            (row.task_head, row.next_task, row.signals) = (NONE, NEVER, NONE);
        }
        let mut posts: Vec<u32> = Vec::new();
        for (m, &[given, posted, _]) in self.partitions[p as usize].members.iter_mut().zip(before_skip) {
            for &(i, first) in &m.posted {
                let row = &mut c.tasks[i as usize];
                (row.got, row.done) = (row.got.min(NEVER - 1), row.done.min(NEVER - 1));
                if first && m.posted[posted..].contains(&(i, first)) {
                    row.flags &= !bits::READY;
                    posts.push(i);
                }
            }
            if let Some(&(i, _)) = m.posted.get(given) {
                c.flow_tx[m.flow as usize].msg_post = i;
            }
            (m.given, m.posts_in_rows) = (given, posted);
        }
        snapshot::read(c, &skip.plan.state, self.names(p, None), skip.since, self.limit)
            .map_err(crate::engine::fold::run::checkpoint::full)?;
        for (m, &[given, posted, _]) in self.partitions[p as usize].members.iter().zip(before_skip) {
            let tx = &mut c.flow_tx[m.flow as usize];
            for &(i, _) in &m.posted[given..posted] {
                tx.size += c.tasks[i as usize].bytes;
                tx.msg_post = c.tasks[i as usize].follow;
            }
            if m.routed {
                tx.flags &= !qp::HELD;
            }
        }
        // Latest first, so that each goes to the head of its NIC's list.
        posts.sort_by_key(|&i| std::cmp::Reverse((c.tasks[i as usize].at, c.tasks[i as usize].root, i)));
        for i in posts {
            task::under_way(c, c.tasks[i as usize].owner, i);
        }
        for &n in &nics {
            nic::set_clock(c, n);
        }
        let partition = &mut self.partitions[p as usize];
        (partition.looked_up, partition.cursor) = (false, None);
        c.fold_trace.clear();
        Ok(())
    }
}
