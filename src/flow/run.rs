//! One experiment at flow level: its events in order of time. Rates are solved again after each instant that changes which flows send.
//!
//! Layer: flow level. Results do not depend on the order of events of one instant: queue pairs keep the order of their messages, gates of an instant are served
//! by number, and rates are integers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::carriers::Carriers;
use super::changes::ChangedNetwork;
use super::latency::wire_bytes;
use super::tasks::{Released, first_due, post, sent};
use hyperfold_columns::{FlowIdx, NEVER, SHARED_FLOWS_LEFT, Tables, TaskIdx, status, task};
use hyperfold_engine::fair_rates::{FlowsChange, RateNetwork};

/// Number of instants between two checks whether to stop.
const INSTANTS_PER_CHECK: u32 = 64;

/// An event, with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FlowEvent {
    /// The network changes; index of the first change of this instant. Changes come before all else.
    Changes(u32),
    /// Checks a carrier's flows, if this is its next check.
    Look(u32),
    Arrived(u32),
    Acknowledged(u32),
    /// Acknowledgement of a flow that is not a queue pair of tasks.
    FlowAcknowledged(u32),
    FlowStarts(u32),
    Due(u32),
}

/// State of an experiment besides its rows.
#[derive(Debug)]
pub(super) struct FlowRun {
    carriers: Carriers,
    network: ChangedNetwork,
    events: BinaryHeap<Reverse<(u64, FlowEvent)>>,
    released: Released,
    /// Carriers whose number of flows or rate has changed in this instant.
    touched: Vec<u32>,
    /// Carriers whose number of flows differs from that of the last solution. While there are any, the instant waits for rates.
    changes: Vec<FlowsChange>,
    instants: u32,
}

/// The latest end of a flow: 107 days. No sum of a time and a latency overflows.
const LATEST_PS: u64 = 1 << 63;

/// Why a run has paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowPause {
    /// The rates of the instant have to be solved.
    Rates,
    /// The experiment is over, or the slice is.
    Slice,
}

impl FlowRun {
    /// The state at time 0 of an experiment.
    pub(super) fn new(t: &Tables) -> FlowRun {
        let carriers = Carriers::of(t);
        let starts = FlowIdx::all(t.flow_tx.len() as u32).map(|f| (t.flow_tx[f].start, FlowEvent::FlowStarts(f.0)));
        let starts = starts.filter(|s| s.0 != NEVER);
        let due = first_due(t).map(|i| (t.tasks[i].at, FlowEvent::Due(i.0)));
        let times = (0..).zip(&t.changes.list).map(|(i, &(time, _))| (time, FlowEvent::Changes(i)));
        let mut changes: Vec<(u64, FlowEvent)> = times.collect();
        changes.dedup_by_key(|change| change.0);
        let events = starts.chain(due).chain(changes).map(Reverse).collect();
        let released = Released::default();
        let network = ChangedNetwork::of(t);
        FlowRun { carriers, network, events, released, touched: Vec::new(), changes: Vec::new(), instants: 0 }
    }

    /// Approximate bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        self.carriers.bytes() + (self.events.capacity() * size_of::<(u64, FlowEvent)>()) as u64
    }

    /// Advances until `end`, until `stop` returns true, or until the experiment is final. Solves rates itself.
    pub(super) fn advance(&mut self, t: &mut Tables, end: Instant, stop: &(dyn Fn() -> bool + Sync)) {
        while self.until_rates(t, end, stop) == FlowPause::Rates {
            self.solve();
            self.go_on(now(t));
        }
        self.end_slice(t);
    }

    /// Advances in the same way, but pauses when rates have to be solved: [`Self::changes`] says for which carriers, and [`Self::answer`] takes the rates.
    pub(super) fn until_rates(&mut self, t: &mut Tables, end: Instant, stop: &(dyn Fn() -> bool + Sync)) -> FlowPause {
        while self.is_solved() {
            let Some(&Reverse((now, event))) = self.events.peek() else {
                t.exps[0].status = status::DONE;
                return FlowPause::Slice;
            };
            if matches!(event, FlowEvent::Changes(_)) && t.shared[SHARED_FLOWS_LEFT as usize] == 0 {
                // An experiment does not last until its last change.
                self.events.pop();
                continue;
            }
            if now > t.exps[0].time_limit.min(LATEST_PS) && t.shared[SHARED_FLOWS_LEFT as usize] > 0 {
                t.exps[0].status = status::TIME_LIMIT;
                return FlowPause::Slice;
            }
            self.instants += 1;
            if self.instants > INSTANTS_PER_CHECK {
                self.instants = 0;
                if Instant::now() >= end || stop() {
                    return FlowPause::Slice;
                }
            }
            self.instant(t, now);
        }
        FlowPause::Rates
    }

    /// Updates the columns that experiments report after a slice.
    pub(super) fn end_slice(&mut self, t: &mut Tables) {
        // Counts of folds and packets have no meaning at flow level, but the end of events does.
        t.exps[0].steps += 1;
        if t.exps[0].status != status::RUNNING {
            self.carriers.count_link_bytes(t);
        }
    }

    /// Whether a device can solve its rates: no link changes.
    pub(super) fn has_fixed_links(t: &Tables) -> bool {
        t.changes.list.is_empty()
    }

    /// Its links and carriers, for a device that solves its rates. PRECONDITION: it has not begun, and has fixed links.
    pub(super) fn network(&self) -> RateNetwork {
        self.carriers.rates.network()
    }

    /// The changes for which rates have to be solved.
    pub(super) fn changes(&self) -> &[FlowsChange] {
        &self.changes
    }

    /// Takes the rates that a device has solved for [`Self::changes`], only those that have changed, and continues.
    pub(super) fn answer(&mut self, t: &Tables, rates: impl Iterator<Item = (u32, u64)>) {
        self.changes.iter().for_each(|&change| self.carriers.rates.note_flows(change));
        for (carrier, rate) in rates {
            self.carriers.rates.note_rate(carrier, rate);
            self.touch(carrier);
        }
        self.go_on(now(t));
    }

    /// Handles all events at `now`. If no rates have to be solved, the instant is over.
    fn instant(&mut self, t: &mut Tables, now: u64) {
        t.exps[0].now = now;
        while let Some(&Reverse((event_ps, event))) = self.events.peek()
            && event_ps == now
        {
            self.events.pop();
            self.happens(t, event, now);
            self.schedule(t);
            if self.events.peek().is_none_or(|next| next.0.0 > now) {
                self.released.serve(t);
                self.schedule(t);
            }
        }
        for &carrier in &self.touched {
            let flows = self.carriers.all[carrier as usize].sending.len() as u32;
            if flows != self.carriers.rates.flows(carrier) {
                self.changes.push(FlowsChange { carrier, flows });
            }
        }
        if self.is_solved() {
            self.go_on(now);
        }
    }

    /// Whether no rates have to be solved.
    fn is_solved(&self) -> bool {
        self.changes.is_empty() && !self.carriers.rates.is_dirty()
    }

    /// Solves rates for [`Self::changes`].
    fn solve(&mut self) {
        let Carriers { all, rates, .. } = &mut self.carriers;
        self.changes.iter().for_each(|change| rates.set_flows(change.carrier, change.flows));
        let touched = &mut self.touched;
        rates.solve(&mut |carrier| {
            let c = &mut all[carrier as usize];
            if !std::mem::replace(&mut c.is_touched, true) {
                touched.push(carrier);
            }
        });
    }

    /// Ends the instant: carriers have their new rates from now on.
    fn go_on(&mut self, now: u64) {
        self.changes.clear();
        for carrier in self.touched.drain(..) {
            let c = &mut self.carriers.all[carrier as usize];
            c.serve(now);
            c.rate = self.carriers.rates.rate(carrier);
            c.is_touched = false;
            // If a rate has fallen, the scheduled check comes too early and is followed by another one.
            if let Some(end_ps) = c.next_end().filter(|&end_ps| end_ps < c.next_look) {
                c.next_look = end_ps;
                self.events.push(Reverse((end_ps, FlowEvent::Look(carrier))));
            }
        }
    }

    /// Handles an event.
    fn happens(&mut self, t: &mut Tables, event: FlowEvent, now: u64) {
        match event {
            FlowEvent::Changes(first) => {
                let touched = self.network.make(t, &mut self.carriers, now, first as usize);
                touched.into_iter().for_each(|carrier| self.touch(carrier));
            }
            FlowEvent::Look(carrier) => {
                if self.carriers.all[carrier as usize].next_look == now {
                    self.carriers.all[carrier as usize].next_look = NEVER;
                    self.sent(t, carrier, now);
                }
            }
            FlowEvent::Arrived(i) => self.released.arrive(t, TaskIdx(i), now),
            FlowEvent::Acknowledged(i) => self.released.end(t, TaskIdx(i), now),
            FlowEvent::FlowAcknowledged(f) => {
                t.flow_tx[FlowIdx(f)].finish = now;
                t.shared[SHARED_FLOWS_LEFT as usize] -= 1;
            }
            FlowEvent::FlowStarts(f) => {
                let f = FlowIdx(f);
                let bytes = t.flow_tx[f].size;
                self.begins(t, f, bytes, now);
            }
            FlowEvent::Due(i) => {
                let i = TaskIdx(i);
                if t.tasks[i].flags & task::MESSAGE == 0 {
                    return self.released.end(t, i, now);
                }
                t.tasks[i].flags |= task::READY;
                let f = t.tasks[i].flow;
                if post(t, f, now) {
                    let bytes = t.tasks[t.flow_tx[f].msg_send].bytes;
                    self.begins(t, f, bytes, now);
                }
            }
        }
    }

    /// Adds the released tasks to the events.
    fn schedule(&mut self, t: &Tables) {
        for i in self.released.due.drain(..) {
            self.events.push(Reverse((t.tasks[i].at, FlowEvent::Due(i.0))));
        }
    }

    /// Service of its carrier that a message needs.
    fn service(&self, t: &Tables, carrier: u32, bytes: u64) -> u128 {
        self.carriers.service(carrier, wire_bytes(t, bytes))
    }

    fn touch(&mut self, carrier: u32) {
        if !std::mem::replace(&mut self.carriers.all[carrier as usize].is_touched, true) {
            self.touched.push(carrier);
        }
    }

    /// Lets flow `f`, which was not sending, begin to send `bytes`.
    fn begins(&mut self, t: &Tables, f: FlowIdx, bytes: u64, now: u64) {
        let carrier = self.carriers.of_flow[f.usize()];
        let service = self.service(t, carrier, bytes);
        let c = &mut self.carriers.all[carrier as usize];
        c.serve(now);
        c.sending.push(Reverse((c.served + service, f.0)));
        self.touch(carrier);
    }

    /// Ends the transmission of flows that have been served by now, and begins their next messages.
    fn sent(&mut self, t: &mut Tables, carrier: u32, now: u64) {
        self.carriers.all[carrier as usize].serve(now);
        loop {
            let c = &mut self.carriers.all[carrier as usize];
            let Some(&Reverse((end, f))) = c.sending.peek().filter(|first| first.0.0 <= c.served) else { break };
            c.sending.pop();
            let (message, bytes, next) = sent(t, FlowIdx(f));
            c.wire_bytes += c.scaled(self.network.uncounted(f, wire_bytes(t, bytes)));
            let service = self.service(t, carrier, bytes);
            let latency = match self.network.begun(f) {
                Some(latency) => latency,
                None => self.carriers.all[carrier as usize].latency(t, message, bytes, service),
            };
            let arrived = now + latency.arrival_ps;
            if message.is_some() {
                self.events.push(Reverse((arrived, FlowEvent::Arrived(message.0))));
                self.events.push(Reverse((arrived + latency.back_ps, FlowEvent::Acknowledged(message.0))));
            } else {
                self.events.push(Reverse((arrived + latency.back_ps, FlowEvent::FlowAcknowledged(f))));
            }
            if let Some(next) = next {
                let service = self.service(t, carrier, next);
                self.carriers.all[carrier as usize].sending.push(Reverse((end + service, f)));
            }
        }
        self.touch(carrier);
    }
}

/// The current instant of an experiment in ps.
fn now(t: &Tables) -> u64 {
    t.exps[0].now
}
