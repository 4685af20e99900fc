//! The event queue: one heap, and the two orders of simultaneous events.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use hyperfold_network::topology::ArcIdx;

use super::Case;

/// What an event remembers of its ancestors' ages, as docs/explanation/model-semantics.md tells it: the newest two, and up to six places of the history that differ from
/// the one two places nearer; and whose start it all goes back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lineage {
    newest: [u32; 2],
    /// Place in the history and the age there, nearest first.
    changes: [Option<(u32, u32)>; 6],
    root: u32,
}

/// A change further back than this is forgotten, and all older ones with it.
const FARTHEST: u32 = 1_023;

impl Lineage {
    /// Lineage of a flow's start, or of a task's event, whose past does not matter: its `flow` is its queue pair, if it has one. The root counts flows from 1.
    pub fn of_start(flow: Option<u32>) -> Self {
        Lineage { newest: [0; 2], changes: [None; 6], root: flow.map_or(0, |flow| flow + 1) }
    }

    /// Lineage of a timer that has always been there with the period `age`.
    pub fn periodic(age: u32) -> Self {
        Lineage { newest: [age; 2], changes: [None; 6], root: 0 }
    }

    /// Lineage of an event that this one schedules for `ahead` later.
    pub fn child(&self, ahead: u64) -> Self {
        let age = u32::try_from(ahead).unwrap_or(u32::MAX);
        let newest = [age, self.newest[0]];
        let older = |c: (u32, u32)| (c.0 + 1, c.1);
        let changes = if age != self.newest[1] {
            {
                let [a, b, c, d, e, _] = self.changes.map(|c| c.map(older));
                [Some((2, self.newest[1])), a, b, c, d, e]
            }
        } else if self.changes[0].is_some_and(|(place, _)| place > FARTHEST) {
            [None; 6]
        } else {
            self.changes.map(|c| c.map(older))
        };
        Lineage { newest, changes, root: self.root }
    }

    /// Ages at the places where either history changes, in order: what decides between two histories.
    fn compare(&self, other: &Self) -> Ordering {
        // Larger ages were scheduled earlier.
        let earlier = other.newest.cmp(&self.newest);
        if earlier != Ordering::Equal {
            return earlier;
        }
        let mut ages = [self.newest, other.newest];
        let mut places: Vec<u32> = self.changes.iter().chain(&other.changes).flatten().map(|c| c.0).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let side = (place % 2) as usize;
            for (ages, lineage) in ages.iter_mut().zip([self, other]) {
                if let Some((_, age)) = lineage.changes.iter().flatten().find(|c| c.0 == place) {
                    ages[side] = *age;
                }
            }
            let earlier = ages[1][side].cmp(&ages[0][side]);
            if earlier != Ordering::Equal {
                return earlier;
            }
        }
        self.root.cmp(&other.root)
    }
}

/// How simultaneous events are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By a global scheduling counter, as the reference simulator does.
    Reference,
    /// By time, lineage, kind and entity, as docs/explanation/model-semantics.md says.
    Lineage,
}

#[derive(Clone, Copy, Debug)]
pub enum Event {
    Complete(ArcIdx),
    /// The oldest packet on the arc's wire arrives: so arrivals on a link keep the order they were sent in. Void if the link has failed more often by now.
    Arrive(ArcIdx, u32),
    /// A packet, by its number, that another NIC hands over arrives at this one.
    HandOver(ArcIdx, u32),
    /// A NIC's pacing timer; void unless the generation is the current one.
    Pace(ArcIdx, u64),
    CcTimer(u32, CcTimer, u64),
    Rto(u32),
    Start(u32),
    /// A task is due.
    Due(u32),
}

/// DCQCN's timers, in the order they run in where even their lineages tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CcTimer {
    Increase,
    Decrease,
    Alpha,
}

/// Kind, entity, and which of an entity's timers.
type Who = (u32, u32, u32);

fn who(event: Event) -> Who {
    match event {
        Event::Complete(arc) => (0, arc, 0),
        // The port it arrives at; links are in the same order at both ends.
        Event::Arrive(arc, _) => (1, arc ^ 1, 0),
        Event::HandOver(nic, _) => (1, nic, 0),
        Event::Pace(nic, _) => (2, nic, 0),
        Event::CcTimer(flow, timer, _) => (3, flow, timer as u32),
        Event::Rto(flow) => (4, flow, 0),
        Event::Start(flow) => (5, flow, 0),
        Event::Due(task) => (6, task, 0),
    }
}

/// Node (events of different nodes do not meet, so any order will do); who; the counter.
type Rest = (u32, Who, u64);

pub struct Queued {
    t: u64,
    order: Order,
    pub lineage: Lineage,
    rest: Rest,
    pub event: Event,
}

impl Queued {
    pub fn time(&self) -> u64 {
        self.t
    }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_time = self.t.cmp(&other.t);
        match self.order {
            Order::Reference => by_time.then(self.rest.2.cmp(&other.rest.2)),
            Order::Lineage => {
                by_time.then_with(|| self.lineage.compare(&other.lineage)).then_with(|| self.rest.cmp(&other.rest))
            }
        }
    }
}

pub struct Queue {
    order: Order,
    /// Node of each arc's transmitting port, of each flow's sender and of each task's owner.
    arc_node: Vec<u32>,
    flow_node: Vec<u32>,
    task_node: Vec<u32>,
    heap: BinaryHeap<Reverse<Queued>>,
    scheduled: u64,
    /// Events other than congestion-control timers, which by themselves never send anything.
    live: u64,
}

impl Queue {
    pub fn new(case: &Case, order: Order, task_nics: impl Iterator<Item = ArcIdx>) -> Self {
        let net = &case.network;
        let arc_node: Vec<u32> = (0..2 * net.links.len() as ArcIdx).map(|arc| net.arc_from(arc)).collect();
        let flow_node = case.paths.iter().map(|p| arc_node[p.data[0][0] as usize]).collect();
        let task_node = task_nics.map(|nic| arc_node[nic as usize]).collect();
        Queue { order, arc_node, flow_node, task_node, heap: BinaryHeap::new(), scheduled: 0, live: 0 }
    }

    pub fn push(&mut self, lineage: Lineage, t: u64, event: Event) {
        self.scheduled += 1;
        let who = who(event);
        let node = match event {
            Event::Complete(_) | Event::Arrive(..) | Event::HandOver(..) | Event::Pace(..) => {
                self.arc_node[who.1 as usize]
            }
            Event::CcTimer(..) | Event::Rto(_) | Event::Start(_) => self.flow_node[who.1 as usize],
            Event::Due(task) => self.task_node[task as usize],
        };
        self.live += u64::from(!matches!(event, Event::CcTimer(..)));
        self.heap.push(Reverse(Queued { t, order: self.order, lineage, rest: (node, who, self.scheduled), event }));
    }

    /// When the next event is; `None` once only congestion-control timers are left.
    pub fn next_time(&self) -> Option<u64> {
        if self.live == 0 { None } else { self.heap.peek().map(|Reverse(next)| next.t) }
    }

    /// When the next event is, congestion-control timers included.
    pub fn next_time_of_all(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(next)| next.t)
    }

    /// The next event; `None` once only congestion-control timers are left, unless those matter too: `all`.
    pub fn pop(&mut self, all: bool) -> Option<Queued> {
        if self.live == 0 && !all {
            return None;
        }
        let Reverse(next) = self.heap.pop()?;
        self.live -= u64::from(!matches!(next.event, Event::CcTimer(..)));
        Some(next)
    }
}
