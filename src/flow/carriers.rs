//! Carriers of flows: queue pairs and flows that cross the same links share one carrier.
//!
//! Layer: flow level. Flows of one carrier have equal rates whenever they have bytes to send. So a flow ends when its carrier has served every one of its flows
//! by a certain amount. A carrier stores this sum, and sorts its flows by the sum at which they end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::crossings::{ack_share, links};
use super::joined_flows;
use super::latency::{Latency, Path};
use super::maxmin::{LinkShare, MaxMin, SHARE_BITS, WHOLE};
use hyperfold_base::units::PS_PER_S;
use hyperfold_columns::{FlowIdx, FlowTx, NEVER, NicIdx, PortIdx, TableChange, Tables, TaskIdx, qp};

/// Flows that cross the same links.
#[derive(Debug)]
pub(super) struct Carrier {
    pub path: Path,
    /// The size of the last message, and its latency. Messages of a collective have one size or two.
    known: Option<(u64, Latency)>,
    /// Service that every flow has received up to `served_until_ps`: units of rate (see [`MaxMin::rate`]) times ps.
    pub served: u128,
    /// Time in ps up to which `served` is counted.
    pub served_until_ps: u64,
    /// Current rate of each flow, in units of [`MaxMin::rate`].
    pub rate: u64,
    /// Its sending flows: (value of `served` at which the flow ends, row of the flow).
    pub sending: BinaryHeap<Reverse<(u128, u32)>>,
    /// When its flows are checked next, in ps: at the end of the first flow, or earlier if rates have fallen since.
    pub next_look: u64,
    pub is_touched: bool,
    /// Number of flows of its rate that cross its most loaded link, in units of [`WHOLE`]. It is more than one if queue pairs are joined.
    pub scale: u64,
    /// The rate of a flow without other traffic, in the units of `rate`; set only where it is needed.
    pub rate_alone: u64,
    /// Whether acknowledgements, not data, fill the link that limits the rate of a flow without other traffic.
    filled_by_acks: bool,
    /// Wire bytes of sent messages on its most loaded link.
    pub wire_bytes: u64,
}

impl Carrier {
    fn new(path: Path, scale: u64) -> Carrier {
        Carrier {
            path,
            known: None,
            served: 0,
            served_until_ps: 0,
            rate: 0,
            sending: BinaryHeap::new(),
            next_look: NEVER,
            is_touched: false,
            scale,
            rate_alone: 0,
            filled_by_acks: false,
            wire_bytes: 0,
        }
    }

    /// Bytes of a message on its most loaded link, given its bytes on each link.
    pub(super) fn scaled(&self, wire_bytes: u64) -> u64 {
        ((u128::from(wire_bytes) * u128::from(self.scale)) >> SHARE_BITS) as u64
    }

    /// Serves its flows until `now`.
    pub(super) fn serve(&mut self, now: u64) {
        self.served += u128::from(self.rate) * u128::from(now - self.served_until_ps);
        self.served_until_ps = now;
    }

    /// When the first of its flows ends at the current rate, in ps. `None` if it has no flows, or if their rate is 0.
    pub(super) fn next_end(&self) -> Option<u64> {
        let Reverse((end, _)) = self.sending.peek()?;
        let left = end.saturating_sub(self.served);
        // A duration that is too long for a time ends the run before.
        let duration_ps = |rate: u64| u64::try_from(left.div_ceil(u128::from(rate))).unwrap_or(NEVER);
        (self.rate > 0).then(|| self.served_until_ps.saturating_add(duration_ps(self.rate)).min(NEVER - 1))
    }

    /// Latency of a message. For a collective it is the time that it takes without other traffic, minus its transmission.
    pub(super) fn latency(&mut self, t: &Tables, message: TaskIdx, bytes: u64, service: u128) -> Latency {
        if let Some(alone_ps) = message.is_some().then(|| joined_flows::alone(t, message)).flatten() {
            let sent = service.div_ceil(u128::from(self.rate_alone.max(1))) as u64;
            return Latency { arrival_ps: alone_ps.saturating_sub(sent), back_ps: self.path.back_ps };
        }
        match self.known {
            Some((known_bytes, latency)) if known_bytes == bytes => latency,
            _ => {
                let sent_ps = self.filled_by_acks.then(|| service.div_ceil(u128::from(self.rate_alone)) as u64);
                let latency = self.path.latency(t, bytes, sent_ps);
                self.known = Some((bytes, latency));
                latency
            }
        }
    }
}

/// The carriers of an experiment, their rates, and the carrier of each flow.
#[derive(Debug)]
pub(super) struct Carriers {
    pub all: Vec<Carrier>,
    /// Carrier of each row of `flow_tx`.
    pub of_flow: Vec<u32>,
    pub rates: MaxMin,
    /// Rates of link ends at first, in bps.
    capacities: Vec<u64>,
    /// Lowest rates that link ends ever have, in bps; 0 where a link fails.
    lowest: Vec<u64>,
    /// Bytes of acknowledgements for each byte of data, as a share.
    acks: u32,
    /// Whether acknowledgements may fill a link by themselves.
    acks_may_fill: bool,
    /// Carriers of flows that are not joined, by what they cross.
    known: HashMap<Crossings, u32>,
    /// Where links change, carriers of joined queue pairs by the first of them, their scale and what they cross. Links that fail again and again need no new
    /// ones.
    known_joined: HashMap<JoinedCrossings, u32>,
}

/// Links crossed by data and by acknowledgements, and the weight of the flows.
type Crossings = (Box<[LinkShare]>, Box<[LinkShare]>, u32);

/// First of joined queue pairs, scale of their carrier, and the links crossed by their data and by acknowledgements.
type JoinedCrossings = (FlowIdx, u64, Vec<LinkShare>, Vec<LinkShare>);

/// The share of a full link that a flow gets, relative to a flow without a weight.
fn weight(tx: &FlowTx) -> u32 {
    (tx.flags >> qp::WEIGHT_SHIFT) + 1
}

/// Joined queue pairs by the row of the first of them.
pub(super) fn joined_rows(t: &Tables) -> BTreeMap<FlowIdx, Vec<FlowIdx>> {
    let mut joined: BTreeMap<FlowIdx, Vec<FlowIdx>> = BTreeMap::new();
    for flow in FlowIdx::all(t.flow_tx.len() as u32) {
        if let Some(leader) = t.flow_tx[flow].joined.checked_sub(1) {
            joined.entry(FlowIdx(leader)).or_default().push(flow);
        }
    }
    joined
}

impl Carriers {
    /// The carriers of an experiment's rows.
    pub(super) fn of(t: &Tables) -> Carriers {
        let capacities: Vec<u64> = t.nics.iter().map(|n| n.rate).chain(t.ports.iter().map(|p| p.rate)).collect();
        let acks = ack_share(t);
        let is_partial = |f: &FlowTx| f.n_paths > 1 || f.joined > 0 || weight(f) > 1;
        let has_partial_shares = t.flow_tx.iter().any(is_partial) || t.changes.has_several_paths();
        let lowest = lowest_rates(t, &capacities);
        // Flows may cross other links later.
        let changes = !t.changes.list.is_empty();
        let acks_may_fill = may_fill(&lowest, acks) && (changes || any_filled_by_acks(t, &lowest, acks));
        let mut carriers = Carriers {
            all: Vec::new(),
            of_flow: vec![NO_CARRIER; t.flow_tx.len()],
            rates: MaxMin::new(&capacities, has_partial_shares || acks_may_fill),
            capacities,
            lowest,
            acks,
            acks_may_fill,
            known: HashMap::new(),
            known_joined: HashMap::new(),
        };
        for flow in FlowIdx::all(t.flow_tx.len() as u32) {
            if t.flow_tx[flow].joined == 0 {
                carriers.of_flow[flow.usize()] = carriers.of_own_paths(t, flow);
            }
        }
        for (leader, rows) in joined_rows(t) {
            carriers.of_flow[leader.usize()] = carriers.of_joined(t, leader, &rows);
        }
        if carriers.all.len() > MAX_EXACT_CARRIERS {
            carriers.rates.tolerate(TOLERANCE_SHIFT);
        }
        if t.changes.list.is_empty() {
            // No flow will ask again.
            carriers.known = HashMap::new();
        }
        carriers
    }

    /// The carrier of a flow that is not joined, by the paths that it has now.
    pub(super) fn of_own_paths(&mut self, t: &Tables, flow: FlowIdx) -> u32 {
        let (tx, rx) = (&t.flow_tx[flow], &t.flow_rx[flow]);
        // A flow with a weight takes that many shares of its links, so its rate is that many times the rate of its carrier.
        let weight = weight(tx);
        let data = links(t, tx.nic, tx.path_first, tx.path_len, tx.n_paths, WHOLE * weight);
        let back = links(t, rx.nic, rx.path_first, rx.path_len, rx.n_paths, self.acks * weight);
        let filled_by_acks = self.acks_may_fill && acks_fill(&self.lowest, &data, &back);
        let (data, back) = if filled_by_acks { (together(&data, &back), Box::default()) } else { (data, back) };
        let next = self.all.len() as u32;
        let carrier = *self.known.entry((data.clone(), back.clone(), weight)).or_insert(next);
        if carrier == next {
            self.rates.add(&data, &back);
            let mut carrier = Carrier::new(Path::of(t, flow), u64::from(WHOLE / weight));
            carrier.filled_by_acks = filled_by_acks;
            if filled_by_acks {
                let rate_alone = |c: &LinkShare| self.alone_rate(c.link, c.share.into());
                carrier.rate_alone = data.iter().map(rate_alone).min().unwrap_or(1);
            }
            self.all.push(carrier);
        }
        carrier
    }

    /// The carrier of joined queue pairs, by the paths that they have now. `leader`: the first of them.
    pub(super) fn of_joined(&mut self, t: &Tables, leader: FlowIdx, rows: &[FlowIdx]) -> u32 {
        let mut loads = joined_flows::loads(t, rows.iter().copied());
        if self.acks_may_fill {
            joined_flows::acks_as_data(&mut loads, &self.lowest);
        }
        let scale = loads.values().map(|l| l[0]).max().unwrap_or(0).max(u64::from(WHOLE));
        let scale = scale / u64::from(weight(&t.flow_tx[leader]));
        let share = |load: u64| (u128::from(load) * u128::from(WHOLE) / u128::from(scale)).max(1) as u32;
        let shares_of = |direction: usize| -> Vec<LinkShare> {
            let loaded = loads.iter().filter(|(_, l)| l[direction] > 0);
            loaded.map(|(&link, l)| LinkShare { link, share: share(l[direction]) }).collect()
        };
        let (data, back) = (shares_of(0), shares_of(1));
        let next = self.all.len() as u32;
        if !t.changes.list.is_empty() {
            let crossings = (leader, scale, data.clone(), back.clone());
            let number = *self.known_joined.entry(crossings).or_insert(next);
            if number != next {
                return number;
            }
        }
        self.rates.add(&data, &back);
        let mut carrier = Carrier::new(Path::of(t, longest(t, rows)), scale);
        let alone =
            |(&link, l): (&u32, &[u64; 2])| self.alone_rate(link, u64::from(share(l[0])) + u64::from(share(l[1])));
        carrier.rate_alone = loads.iter().filter(|(_, l)| l[0] > 0).map(alone).min().unwrap_or(1);
        self.all.push(carrier);
        next
    }

    /// The rate, in the units of `rates`, of a flow without other traffic that takes `share` of its rate on a link.
    fn alone_rate(&self, link: u32, share: u64) -> u64 {
        let capacity = u128::from(self.capacities[link as usize]) << self.rates.rate_bits();
        (capacity * u128::from(WHOLE) / u128::from(share.max(1))) as u64
    }

    /// Service of a carrier that a message of `wire_bytes` needs.
    pub(super) fn service(&self, carrier: u32, wire_bytes: u64) -> u128 {
        let wire = self.all[carrier as usize].scaled(wire_bytes);
        (u128::from(wire) * 8 * u128::from(PS_PER_S)) << self.rates.rate_bits()
    }

    /// Approximate bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        let per = size_of::<Carrier>() + 2 * 64;
        (self.all.len() * per + size_of_val(&*self.of_flow)) as u64 + self.rates.bytes()
    }

    /// Adds the bytes that carriers have sent to the rows of the links that they cross.
    pub(super) fn count_link_bytes(&mut self, t: &mut Tables) {
        for (id, carrier) in (0..).zip(&mut self.all) {
            let bytes = std::mem::take(&mut carrier.wire_bytes);
            for crossing in self.rates.crossings(id) {
                let link_bytes = ((u128::from(bytes) * u128::from(crossing.share)) >> SHARE_BITS) as u64;
                match crossing.link.checked_sub(t.nics.len() as u32) {
                    None => t.nics[NicIdx(crossing.link)].tx_bytes += link_bytes,
                    Some(port) => t.ports[PortIdx(port)].tx_bytes += link_bytes,
                }
            }
        }
    }
}

/// The lowest rates that link ends ever have in bps, where they have `capacities` at first; 0 where a link fails.
fn lowest_rates(t: &Tables, capacities: &[u64]) -> Vec<u64> {
    let mut lowest = capacities.to_vec();
    for (_, change) in &t.changes.list {
        match change {
            TableChange::LinkDown(ends) => ends.iter().for_each(|end| lowest[end.usize()] = 0),
            TableChange::Rate { end, columns } => lowest[end.usize()] = lowest[end.usize()].min(columns.rate),
            TableChange::LinkUp(_)
            | TableChange::NewPaths { .. }
            | TableChange::MoveTasks { .. }
            | TableChange::Loss { .. } => {}
        }
    }
    lowest
}

/// Whether acknowledgements of any flow could fill a link by themselves: either they take more than the data that they answer, or some links are slower than
/// others by as much.
fn may_fill(capacities: &[u64], acks: u32) -> bool {
    let (max, min) = (capacities.iter().max(), capacities.iter().min());
    let (Some(&max), Some(&min)) = (max, min) else { return false };
    u128::from(max) * u128::from(acks) > u128::from(min) * u128::from(WHOLE)
}

/// Whether such a flow exists.
fn any_filled_by_acks(t: &Tables, capacities: &[u64], acks: u32) -> bool {
    FlowIdx::all(t.flow_tx.len() as u32).any(|flow| {
        let (tx, rx) = (&t.flow_tx[flow], &t.flow_rx[flow]);
        let data = links(t, tx.nic, tx.path_first, tx.path_len, tx.n_paths, WHOLE);
        acks_fill(capacities, &data, &links(t, rx.nic, rx.path_first, rx.path_len, rx.n_paths, acks))
    })
}

/// Whether, for a flow without other traffic, acknowledgements fill a link before data fill one.
fn acks_fill(capacities: &[u64], data: &[LinkShare], back: &[LinkShare]) -> bool {
    let capacity = |c: &LinkShare| u128::from(capacities[c.link as usize]);
    back.iter().any(|b| data.iter().all(|d| capacity(d) * u128::from(b.share) > capacity(b) * u128::from(d.share)))
}

/// The shares of data and acknowledgements on each link, added up, so that both together are fair.
///
/// Elsewhere acknowledgements come first, and data take the rest. If acknowledgements alone fill a link, there are no data left to slow down.
fn together(data: &[LinkShare], back: &[LinkShare]) -> Box<[LinkShare]> {
    let mut shares: BTreeMap<u32, u32> = BTreeMap::new();
    for c in data.iter().chain(back) {
        *shares.entry(c.link).or_default() += c.share;
    }
    shares.into_iter().map(|(link, share)| LinkShare { link, share }).collect()
}

/// Maximum number of carriers whose rates are solved exactly. Our choice: with more carriers, each end of a flow would change nearly all rates, by amounts too
/// small to matter.
const MAX_EXACT_CARRIERS: usize = 4096;
/// Tolerance of rates if there are more carriers, as a shift: 2^-14 is 6e-5.
const TOLERANCE_SHIFT: u32 = 14;

/// Carrier of a flow that is part of another flow.
const NO_CARRIER: u32 = u32::MAX;

/// The queue pair with the most links; the first of equal ones.
fn longest(t: &Tables, rows: &[FlowIdx]) -> FlowIdx {
    let links = |row: FlowIdx| t.flow_tx[row].path_len + t.flow_rx[row].path_len;
    rows.iter().copied().reduce(|a, b| if links(b) > links(a) { b } else { a }).unwrap_or(FlowIdx(0))
}
