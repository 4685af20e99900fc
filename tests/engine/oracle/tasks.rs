//! Task graphs: releases, ends, posts of messages on queue pairs, gates and their servers.

use std::collections::{BTreeSet, VecDeque};

use hyperfold_llm::workload::tasks::Target;
use hyperfold_network::topology::ArcIdx;

use super::graph::{Expanded, GateSpec, TaskSpec};
use super::{Event, Lineage, Sim};

/// When what became of a task; `None`: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Its time came; a message was posted.
    pub at: Option<u64>,
    /// It ended; a message was acknowledged whole.
    pub done: Option<u64>,
    /// A message had arrived whole.
    pub got: Option<u64>,
}

/// Messages of one flow, in the order they are posted in.
#[derive(Clone, Debug, Default)]
struct Messages {
    tasks: Vec<u32>,
    /// How many of them were posted, had arrived, were acknowledged.
    posted: usize,
    arrived: usize,
    acknowledged: usize,
}

#[derive(Default)]
pub struct Tasks {
    specs: Vec<TaskSpec>,
    /// The NICs at which tasks began.
    homes: Vec<ArcIdx>,
    own: usize,
    waits: Vec<u32>,
    /// Messages that may be posted once those before them are.
    ready: Vec<bool>,
    times: Vec<Times>,
    gates: Vec<GateSpec>,
    gate_waits: Vec<u32>,
    /// Gates whose signals are all given, by time and number.
    complete: BTreeSet<(u64, u32)>,
    /// When each server is free.
    servers: Vec<u64>,
    /// By flow.
    messages: Vec<Messages>,
    /// Tasks that end in the event being handled and have not yet.
    ending: VecDeque<u32>,
    fresh: bool,
}

impl Tasks {
    pub fn new(graph: Expanded, fresh: bool) -> Self {
        let mut messages = vec![Messages::default(); graph.flows];
        for (i, task) in graph.tasks.iter().enumerate() {
            if let Some((flow, _)) = task.message {
                messages[flow as usize].tasks.push(i as u32);
            }
        }
        Tasks {
            own: graph.own_tasks,
            waits: graph.tasks.iter().map(|t| t.waits).collect(),
            ready: vec![false; graph.tasks.len()],
            times: vec![Times::default(); graph.tasks.len()],
            homes: graph.tasks.iter().map(|t| t.nic).collect(),
            specs: graph.tasks,
            gate_waits: graph.gates.iter().map(|g| g.waits).collect(),
            gates: graph.gates,
            complete: BTreeSet::new(),
            servers: vec![0; graph.servers],
            messages,
            ending: VecDeque::new(),
            fresh,
        }
    }

    /// Owners.
    pub fn nics(&self) -> impl Iterator<Item = ArcIdx> {
        self.specs.iter().map(|t| t.nic)
    }

    /// What began at NIC `home` is at `place` from now on.
    pub fn are_at(&mut self, home: ArcIdx, place: ArcIdx) {
        for (spec, _) in self.specs.iter_mut().zip(&self.homes).filter(|(_, own)| **own == home) {
            spec.nic = place;
        }
    }

    pub fn all_ended(&self) -> bool {
        self.times.iter().all(|t| t.done.is_some())
    }

    /// Returns the times of the graph's own tasks.
    pub fn times(mut self) -> Vec<Times> {
        self.times.truncate(self.own);
        self.times
    }
}

impl Sim<'_> {
    /// Releases what waits for nothing.
    pub(super) fn first_tasks(&mut self) {
        for task in 0..self.tasks.specs.len() as u32 {
            let spec = &self.tasks.specs[task as usize];
            if spec.waits == 0 {
                self.schedule_task(task, spec.delay_ps);
            }
        }
    }

    fn schedule_task(&mut self, task: u32, t: u64) {
        let root = self.tasks.specs[task as usize].message.map(|(flow, _)| flow);
        self.queue.push(Lineage::of_start(root), t, Event::Due(task));
    }

    pub(super) fn task_due(&mut self, task: u32) {
        let spec = &self.tasks.specs[task as usize];
        let nic = spec.nic;
        match spec.message {
            None => {
                self.tasks.ending.push_back(task);
                self.end_all();
            }
            Some((flow, _)) => {
                self.tasks.ready[task as usize] = true;
                let mut news = false;
                while let Some(next) = self.next_ready(flow) {
                    let sender = &self.senders[flow as usize];
                    news |= self.tasks.fresh || sender.snd_nxt >= sender.size;
                    self.post(next);
                }
                if news {
                    self.kick(nic);
                }
            }
        }
    }

    /// The message to be posted next on `flow`, if its time has come.
    fn next_ready(&self, flow: u32) -> Option<u32> {
        let messages = &self.tasks.messages[flow as usize];
        messages.tasks.get(messages.posted).copied().filter(|&next| self.tasks.ready[next as usize])
    }

    /// Its queue pair's messages that have been acknowledged whole end.
    pub(super) fn messages_acknowledged(&mut self, flow: u32) {
        let una = self.senders[flow as usize].snd_una;
        while let Some(task) = self.next_message(flow, una, |m| &mut m.acknowledged) {
            self.tasks.times[task as usize].done = Some(self.now);
            self.follow(task, |spec| &spec.on_end);
        }
        self.end_all();
    }

    /// The receiver has everything before `expected`.
    pub(super) fn messages_arrived(&mut self, flow: u32, expected: u64) {
        while let Some(task) = self.next_message(flow, expected, |m| &mut m.arrived) {
            self.tasks.times[task as usize].got = Some(self.now);
            self.follow(task, |spec| &spec.on_arrival);
        }
        self.end_all();
    }

    /// The next message of `flow` if it ends at or before byte `at`; `count` tells how many came before.
    fn next_message(&mut self, flow: u32, at: u64, count: fn(&mut Messages) -> &mut usize) -> Option<u32> {
        let messages = self.tasks.messages.get_mut(flow as usize)?;
        let n = *count(messages);
        let task = messages.tasks.get(n).copied()?;
        if self.senders[flow as usize].ends.get(n).is_none_or(|&end| end > at) {
            return None;
        }
        *count(messages) += 1;
        Some(task)
    }

    /// Takes one dependency from everything along the edges.
    fn follow(&mut self, task: u32, edges: fn(&TaskSpec) -> &Vec<Target>) {
        for to in edges(&self.tasks.specs[task as usize]).clone() {
            match to {
                Target::Task(to) => {
                    self.tasks.waits[to as usize] -= 1;
                    if self.tasks.waits[to as usize] == 0 {
                        self.release(to);
                    }
                }
                Target::Gate(gate) => {
                    self.tasks.gate_waits[gate as usize] -= 1;
                    if self.tasks.gate_waits[gate as usize] == 0 {
                        self.tasks.complete.insert((self.now, gate));
                    }
                }
            }
        }
    }

    /// Only what is no message and takes no time is part of the event that releases it.
    fn release(&mut self, task: u32) {
        let spec = &self.tasks.specs[task as usize];
        if spec.message.is_none() && spec.delay_ps == 0 {
            self.tasks.ending.push_back(task);
        } else {
            self.schedule_task(task, self.now + spec.delay_ps);
        }
    }

    /// Ends everything whose time has come, and what that releases without delay.
    fn end_all(&mut self) {
        while let Some(task) = self.tasks.ending.pop_front() {
            let times = &mut self.tasks.times[task as usize];
            (times.at, times.done) = (Some(self.now), Some(self.now));
            self.follow(task, |spec| &spec.on_end);
        }
    }

    fn post(&mut self, task: u32) {
        self.tasks.times[task as usize].at = Some(self.now);
        let (flow, bytes) = self.tasks.specs[task as usize].message.expect("only messages are posted");
        let sender = &mut self.senders[flow as usize];
        let messages = &mut self.tasks.messages[flow as usize];
        let used = messages.posted > 0;
        messages.posted += 1;
        sender.is_created = true;
        if used && self.tasks.fresh {
            sender.rate = sender.rate_max;
            sender.cc.renew(&self.case.transport, sender.rate_max, sender.rtt_ps);
            sender.entropies.forget_good_ones();
        } else if used && sender.snd_una >= sender.size {
            sender.cc.resume();
        }
        let order = &mut self.nics[sender.nic as usize].order;
        if !order.contains(&flow) {
            sender.next_avail = sender.next_avail.max(self.now);
            order.push(flow);
        }
        sender.finish_ps = None;
        sender.post(bytes);
    }

    /// Serves the gates that are complete. PRECONDITION: no event is left at this instant.
    pub(super) fn serve_gates(&mut self) {
        while let Some((t, gate)) = self.tasks.complete.pop_first() {
            let gate = &self.tasks.gates[gate as usize];
            let served = match gate.server {
                None => t,
                Some(server) => {
                    let free = &mut self.tasks.servers[server as usize];
                    *free = t.max(*free) + gate.serial_ps;
                    *free
                }
            };
            let end = served + gate.latency_ps;
            for task in gate.releases.clone() {
                self.schedule_task(task, end + self.tasks.specs[task as usize].delay_ps);
            }
        }
    }
}
