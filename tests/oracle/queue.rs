//! The event queue: one heap, and the three orders of simultaneous events.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use hyperfold::topology::ArcIdx;

use super::Case;

/// Times between scheduling and happening: an event's own, its cause's, and so on. ps, saturated.
pub type Lineage = [u32; 4];

/// How simultaneous events are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By a global scheduling counter, as the reference simulator does.
    Reference,
    /// By time, lineage, kind and entity, as ARCHITECTURE.md says.
    Lineage,
    /// The same, but arrivals (and completions) whose lineages tie go in the order in which their ports' latest ones were handled: what
    /// runs in lock-step for longer than a lineage remembers keeps the order that the lineage once gave it.
    Ranked,
}

#[derive(Clone, Copy, Debug)]
pub enum Event {
    Complete(ArcIdx),
    /// The oldest packet on the arc's wire arrives: so arrivals on a link keep the order they were sent in.
    Arrive(ArcIdx),
    /// A NIC's pacing timer; void unless the generation is the current one.
    Pace(ArcIdx, u64),
    CcTimer(u32, CcTimer, u64),
    Rto(u32),
    Start(u32),
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
        Event::Arrive(arc) => (1, arc ^ 1, 0),
        Event::Pace(nic, _) => (2, nic, 0),
        Event::CcTimer(flow, timer, _) => (3, flow, timer as u32),
        Event::Rto(flow) => (4, flow, 0),
        Event::Start(flow) => (5, flow, 0),
    }
}

/// Time; the complement of the lineage, so that larger ones sort first; node (events of different nodes do not meet); who; the counter.
type Key = (u64, u128, u32, Who, u64);

pub struct Queued {
    key: Key,
    pub lineage: Lineage,
    pub event: Event,
}

impl Queued {
    pub fn time(&self) -> u64 {
        self.key.0
    }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

pub struct Queue {
    order: Order,
    /// Node of each arc's transmitting port, and of each flow's sender.
    arc_node: Vec<u32>,
    flow_node: Vec<u32>,
    heap: BinaryHeap<Reverse<Queued>>,
    scheduled: u64,
    /// Events other than congestion-control timers, which by themselves never send anything.
    live: u64,
    handled: u64,
    /// When (by `handled`) the latest arrival at a port, or completion of it, was handled. Only compared within a node.
    latest: HashMap<(u32, u32), u64>,
}

impl Queue {
    pub fn new(case: &Case, order: Order) -> Self {
        let net = &case.network;
        let arc_node: Vec<u32> = (0..2 * net.links.len() as ArcIdx).map(|arc| net.arc_from(arc)).collect();
        let flow_node = case.paths.iter().map(|p| arc_node[p.data[0][0] as usize]).collect();
        Queue { order, arc_node, flow_node, heap: BinaryHeap::new(), scheduled: 0, live: 0, handled: 0, latest: HashMap::new() }
    }

    pub fn push(&mut self, lineage: Lineage, t: u64, event: Event) {
        self.scheduled += 1;
        let key = match self.order {
            Order::Reference => (t, 0, 0, (0, 0, 0), self.scheduled),
            Order::Lineage | Order::Ranked => {
                let d = lineage.iter().fold(0u128, |acc, &d| acc << 32 | d as u128);
                let who = who(event);
                let node = if who.0 <= 2 { self.arc_node[who.1 as usize] } else { self.flow_node[who.1 as usize] };
                (t, !d, node, who, self.scheduled)
            }
        };
        self.live += u64::from(!matches!(event, Event::CcTimer(..)));
        self.heap.push(Reverse(Queued { key, lineage, event }));
    }

    /// The next event; `None` once only congestion-control timers are left.
    pub fn pop(&mut self) -> Option<Queued> {
        if self.live == 0 {
            return None;
        }
        let Reverse(mut next) = self.heap.pop()?;
        if self.order == Order::Ranked {
            next = self.first_of_ties(next);
        }
        self.live -= u64::from(!matches!(next.event, Event::CcTimer(..)));
        Some(next)
    }

    /// Of all events of its node that tie with `next` in time, lineage and kind, the one whose port comes first.
    fn first_of_ties(&mut self, next: Queued) -> Queued {
        let kind = next.key.3.0;
        if kind > 1 {
            return next;
        }
        let mut ties = vec![next];
        while let Some(Reverse(top)) = self.heap.peek() {
            if (top.key.0, top.key.1, top.key.2, top.key.3.0) != (ties[0].key.0, ties[0].key.1, ties[0].key.2, kind) {
                break;
            }
            ties.extend(self.heap.pop().map(|Reverse(q)| q));
        }
        let rank = |q: &Queued| self.latest.get(&(kind, q.key.3.1)).copied().unwrap_or(0);
        // Ties are in the order of their entities already, and the first of equals is taken.
        let first = (0..ties.len()).min_by_key(|&i| rank(&ties[i])).expect("there is at least `next`");
        let next = ties.swap_remove(first);
        self.heap.extend(ties.into_iter().map(Reverse));
        self.handled += 1;
        self.latest.insert((kind, next.key.3.1), self.handled);
        next
    }
}
