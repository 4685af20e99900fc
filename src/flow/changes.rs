//! Changes of the network at flow level: rates of links, links that fail and come back, and flows that move to other paths.
//!
//! Layer: flow level. A link that is down has no capacity, so its flows wait. What they have sent stays sent.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use super::carriers::{Carriers, joined_rows};
use super::crossings::rate_bps;
use super::latency::{Latency, wire_bytes};
use hyperfold_columns::{EndOwner, FlowIdx, LINK_DOWN, LinkEndIdx, TableChange, Tables};

/// What changes of the network leave behind.
#[derive(Debug, Default)]
pub(super) struct ChangedNetwork {
    /// Link ends whose link is down.
    down: BTreeSet<LinkEndIdx>,
    /// Joined queue pairs, by the first of them.
    joined: BTreeMap<FlowIdx, Vec<FlowIdx>>,
    /// Wire bytes of the message under way that are counted for paths that its flow had before.
    counted: HashMap<u32, u64>,
    /// Latency of the message under way, on the paths where it began, of joined queue pairs that have moved since.
    begun: HashMap<u32, Latency>,
}

impl ChangedNetwork {
    /// The state at time 0.
    pub(super) fn of(t: &Tables) -> ChangedNetwork {
        let joined = if t.changes.list.is_empty() { BTreeMap::new() } else { joined_rows(t) };
        ChangedNetwork { joined, ..ChangedNetwork::default() }
    }

    /// Wire bytes of a message of flow `f`, which has been sent, that are not counted yet.
    pub(super) fn uncounted(&mut self, f: u32, wire_bytes: u64) -> u64 {
        if self.counted.is_empty() {
            return wire_bytes;
        }
        wire_bytes - self.counted.remove(&f).unwrap_or(0)
    }

    /// The latency of a message of flow `f` that has moved since it began, if it is of joined queue pairs: how long it takes beside its transmission does not
    /// change with its paths.
    pub(super) fn begun(&mut self, f: u32) -> Option<Latency> {
        if self.begun.is_empty() { None } else { self.begun.remove(&f) }
    }

    /// Makes the changes of `now`, the first of which has index `first`. Returns the carriers whose flows have changed.
    pub(super) fn make(&mut self, t: &mut Tables, carriers: &mut Carriers, now: u64, first: usize) -> Vec<u32> {
        let mut moved: BTreeSet<FlowIdx> = BTreeSet::new();
        for i in first..t.changes.list.len() {
            let (time, change) = t.changes.list[i];
            if time != now {
                break;
            }
            match change {
                TableChange::LinkDown(ends) => ends.into_iter().for_each(|end| self.set_down(t, carriers, end, true)),
                TableChange::LinkUp(ends) => ends.into_iter().for_each(|end| self.set_down(t, carriers, end, false)),
                TableChange::NewPaths { flow, data, answers } => {
                    let tx = &mut t.flow_tx[flow];
                    (tx.path_first, tx.path_len, tx.n_paths, tx.nic) = (data.first, data.len, data.n, data.nic);
                    let leader = tx.joined.checked_sub(1).map(FlowIdx);
                    let rx = &mut t.flow_rx[flow];
                    (rx.path_first, rx.path_len, rx.n_paths, rx.nic) =
                        (answers.first, answers.len, answers.n, answers.nic);
                    moved.insert(leader.unwrap_or(flow));
                }
                TableChange::Rate { end, columns } => {
                    match end.owner(t.exps[0].nic_len) {
                        EndOwner::Nic(n) => t.nics[n].rate = columns.rate,
                        EndOwner::Port(port) => t.ports[port].rate = columns.rate,
                    }
                    self.set_capacity(t, carriers, end);
                }
                // A task's NIC has no part at flow level.
                TableChange::MoveTasks { .. } => {}
                TableChange::Loss { .. } => unreachable!("at flow level links lose nothing"),
            }
        }
        let mut touched = Vec::new();
        for flow in moved {
            let carrier = match self.joined.get(&flow) {
                Some(rows) => carriers.of_joined(t, flow, rows),
                None => carriers.of_own_paths(t, flow),
            };
            touched.extend(self.move_flow(t, carriers, flow, carrier, now));
        }
        touched
    }

    /// Notes that the link of `end` is down, or no longer.
    fn set_down(&mut self, t: &mut Tables, carriers: &mut Carriers, end: LinkEndIdx, is_down: bool) {
        if is_down {
            self.down.insert(end);
        } else {
            self.down.remove(&end);
        }
        // Messages about experiments that do not end name these ports.
        if let EndOwner::Port(port) = end.owner(t.exps[0].nic_len) {
            let peer = &mut t.ports[port].peer;
            peer.0 = if is_down { peer.0 | LINK_DOWN } else { peer.0 & !LINK_DOWN };
        }
        self.set_capacity(t, carriers, end);
    }

    /// Gives the link of `end` the capacity that it has now.
    fn set_capacity(&self, t: &Tables, carriers: &mut Carriers, end: LinkEndIdx) {
        let bps = if self.down.contains(&end) { 0 } else { rate_bps(t, end.0) };
        carriers.rates.set_capacity(end.0, bps);
    }

    /// Moves a flow to another carrier, with what is left of its message. Returns the carriers whose flows have changed.
    fn move_flow(&mut self, t: &Tables, carriers: &mut Carriers, flow: FlowIdx, to: u32, now: u64) -> Vec<u32> {
        let from = std::mem::replace(&mut carriers.of_flow[flow.usize()], to);
        if from == to {
            return Vec::new();
        }
        let old = &mut carriers.all[from as usize];
        old.serve(now);
        let Some(end) = old.sending.iter().find(|sending| sending.0.1 == flow.0).map(|sending| sending.0.0) else {
            return Vec::new();
        };
        let others: BinaryHeap<_> = std::mem::take(&mut old.sending).into_iter().filter(|s| s.0.1 != flow.0).collect();
        old.sending = others;
        let left = end.saturating_sub(old.served);
        let message = t.flow_tx[flow].msg_send;
        let bytes = if message.is_some() { t.tasks[message].bytes } else { t.flow_tx[flow].size };
        let wire = wire_bytes(t, bytes);
        if t.flow_tx[flow].joined > 0 && !self.begun.contains_key(&flow.0) {
            let service = carriers.service(from, wire);
            let latency = carriers.all[from as usize].latency(t, message, bytes, service);
            self.begun.insert(flow.0, latency);
        }
        let whole = carriers.service(from, wire).max(1);
        // What is left of the message, in wire bytes. It has been counted up to there if the flow moves for a second time.
        let left_bytes = (left.min(whole) * u128::from(wire)).div_ceil(whole) as u64;
        let counted = self.counted.entry(flow.0).or_insert(0);
        let sent = (wire - left_bytes).saturating_sub(*counted);
        *counted += sent;
        let old = &mut carriers.all[from as usize];
        old.wire_bytes += old.scaled(sent);
        let old_scale = u128::from(old.scale);
        let new = &mut carriers.all[to as usize];
        new.serve(now);
        let scale = u128::from(new.scale);
        let service = left / old_scale * scale + left % old_scale * scale / old_scale;
        new.sending.push(Reverse((new.served + service, flow.0)));
        vec![from, to]
    }
}
