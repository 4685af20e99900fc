//! Queue pairs and flows as carriers: those that cross the same links are one.
//!
//! Layer: flow level. Flows of one carrier have the same rate whenever they have bytes to send, so each ends when the carrier has served every one of them so much:
//! a carrier keeps that sum, and its flows by where they end on it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::crossings::{ack_share, links};
use super::joined;
use super::latency::{Latency, Path};
use super::maxmin::{LinkShare, MaxMin, SHARE_BITS, WHOLE};
use crate::columns::{FlowIdx, FlowTx, NEVER, NicIdx, PortIdx, Tables, TaskIdx, qp};

/// Flows that cross the same links.
#[derive(Debug)]
pub(super) struct Carrier {
    pub path: Path,
    /// The last size that was asked for, and its latency: messages of a collective have one size or two.
    known: Option<(u64, Latency)>,
    /// Units of rate, as [`MaxMin::rate`], times ps that every flow has been served, up to `since`.
    pub served: u128,
    pub since: u64,
    pub rate: u64,
    /// Its flows that send, by where they end.
    pub sending: BinaryHeap<Reverse<(u128, u32)>>,
    /// When its flows are looked at next: at the first end of one, or before it if rates have fallen since.
    pub next_look: u64,
    pub is_touched: bool,
    /// Flows of its rate that cross its most loaded link, in units of [`WHOLE`]: more than one where queue pairs are joined.
    pub scale: u64,
    /// The rate of a flow alone, in the units of `rate`, where that is needed.
    pub alone: u64,
    /// Whether acknowledgements, not data, fill the link that decides the rate of a flow alone.
    filled_by_acks: bool,
    /// Wire bytes on its most loaded link of messages that were sent.
    pub wire_bytes: u64,
}

impl Carrier {
    fn new(path: Path, scale: u64) -> Carrier {
        Carrier {
            path,
            known: None,
            served: 0,
            since: 0,
            rate: 0,
            sending: BinaryHeap::new(),
            next_look: NEVER,
            is_touched: false,
            scale,
            alone: 0,
            filled_by_acks: false,
            wire_bytes: 0,
        }
    }

    /// Bytes on its most loaded link of a message of so many on each.
    pub(super) fn scaled(&self, wire_bytes: u64) -> u64 {
        ((u128::from(wire_bytes) * u128::from(self.scale)) >> SHARE_BITS) as u64
    }

    /// Serves its flows until `now`.
    pub(super) fn serve(&mut self, now: u64) {
        self.served += u128::from(self.rate) * u128::from(now - self.since);
        self.since = now;
    }

    /// When the first of its flows ends, at its rate; `None`: it has none, or they stand still.
    pub(super) fn next_end(&self) -> Option<u64> {
        let Reverse((end, _)) = self.sending.peek()?;
        let left = end.saturating_sub(self.served);
        // What takes longer than times can be ends the run before.
        let lasts = |rate: u64| u64::try_from(left.div_ceil(u128::from(rate))).unwrap_or(NEVER);
        (self.rate > 0).then(|| self.since.saturating_add(lasts(self.rate)).min(NEVER - 1))
    }

    /// Latency of a message; of a collective, what it takes alone beyond its transmission.
    pub(super) fn latency(&mut self, t: &Tables, message: TaskIdx, bytes: u64, service: u128) -> Latency {
        if let Some(alone_ps) = message.is_some().then(|| joined::alone(t, message)).flatten() {
            let sent = service.div_ceil(u128::from(self.alone.max(1))) as u64;
            return Latency { arrival_ps: alone_ps.saturating_sub(sent), back_ps: self.path.back_ps };
        }
        match self.known {
            Some((known_bytes, latency)) if known_bytes == bytes => latency,
            _ => {
                let sent_ps = self.filled_by_acks.then(|| service.div_ceil(u128::from(self.alone)) as u64);
                let latency = self.path.latency(t, bytes, sent_ps);
                self.known = Some((bytes, latency));
                latency
            }
        }
    }
}

/// The carriers of an experiment, their rates, and which carries each flow.
#[derive(Debug)]
pub(super) struct Carriers {
    pub all: Vec<Carrier>,
    /// By row of `flow_tx`.
    pub of_flow: Vec<u32>,
    pub rates: MaxMin,
}

/// What a carrier crosses: data, then acknowledgements; and the weight of its flows.
type Crossings = (Box<[LinkShare]>, Box<[LinkShare]>, u32);

/// By how many times more of a full link a flow gets than one without a weight.
fn weight(tx: &FlowTx) -> u32 {
    (tx.flags >> qp::WEIGHT_SHIFT) + 1
}

impl Carriers {
    /// Those of an experiment's rows.
    pub(super) fn of(t: &Tables) -> Carriers {
        let capacities: Vec<u64> = t.nics.iter().map(|n| n.rate).chain(t.ports.iter().map(|p| p.rate)).collect();
        let acks = ack_share(t);
        let parts = t.flow_tx.iter().any(|f| f.n_paths > 1 || f.joined > 0 || weight(f) > 1);
        let acks_may_fill = may_fill(&capacities, acks) && any_filled_by_acks(t, &capacities, acks);
        let mut rates = MaxMin::new(&capacities, parts || acks_may_fill);
        let mut known: HashMap<Crossings, u32> = HashMap::new();
        let mut all = Vec::new();
        let mut of_flow = Vec::with_capacity(t.flow_tx.len());
        let mut joined: BTreeMap<u32, Vec<FlowIdx>> = BTreeMap::new();
        for flow in FlowIdx::all(t.flow_tx.len() as u32) {
            let (tx, rx) = (&t.flow_tx[flow], &t.flow_rx[flow]);
            if let Some(leader) = tx.joined.checked_sub(1) {
                joined.entry(leader).or_default().push(flow);
                of_flow.push(NO_CARRIER);
                continue;
            }
            // It takes so many shares of its links, so its own rate is as many times that of its carrier.
            let weight = weight(tx);
            let data = links(t, tx.nic, tx.path_first, tx.path_len, tx.n_paths, WHOLE * weight);
            let back = links(t, rx.nic, rx.path_first, rx.path_len, rx.n_paths, acks * weight);
            let filled_by_acks = acks_may_fill && acks_fill(&capacities, &data, &back);
            let (data, back) = if filled_by_acks { (together(&data, &back), Box::default()) } else { (data, back) };
            let next = all.len() as u32;
            let carrier = *known.entry((data.clone(), back.clone(), weight)).or_insert(next);
            if carrier == next {
                rates.add(&data, &back);
                let mut carrier = Carrier::new(Path::of(t, flow), u64::from(WHOLE / weight));
                carrier.filled_by_acks = filled_by_acks;
                if filled_by_acks {
                    let taken = |c: &LinkShare| alone_rate(&rates, capacities[c.link as usize], c.share.into());
                    carrier.alone = data.iter().map(taken).min().unwrap_or(1);
                }
                all.push(carrier);
            }
            of_flow.push(carrier);
        }
        for (leader, rows) in joined {
            let mut loads = joined::loads(t, rows.iter().copied());
            if acks_may_fill {
                joined::acks_as_data(&mut loads, &capacities);
            }
            let scale = loads.values().map(|l| l[0]).max().unwrap_or(0).max(u64::from(WHOLE));
            let scale = scale / u64::from(weight(&t.flow_tx[FlowIdx(leader)]));
            let share = |load: u64| (u128::from(load) * u128::from(WHOLE) / u128::from(scale)).max(1) as u32;
            let of = |which: usize| -> Vec<LinkShare> {
                let loaded = loads.iter().filter(|(_, l)| l[which] > 0);
                loaded.map(|(&link, l)| LinkShare { link, share: share(l[which]) }).collect()
            };
            of_flow[leader as usize] = rates.add(&of(0), &of(1));
            let mut carrier = Carrier::new(Path::of(t, longest(t, &rows)), scale);
            let alone = |(&link, l): (&u32, &[u64; 2])| {
                alone_rate(&rates, capacities[link as usize], u64::from(share(l[0])) + u64::from(share(l[1])))
            };
            carrier.alone = loads.iter().filter(|(_, l)| l[0] > 0).map(alone).min().unwrap_or(1);
            all.push(carrier);
        }
        if all.len() > MOST_EXACT {
            rates.tolerate(TOLERANCE_SHIFT);
        }
        Carriers { all, of_flow, rates }
    }

    /// Bytes on the heap, about.
    pub(super) fn bytes(&self) -> u64 {
        let per = size_of::<Carrier>() + 2 * 64;
        (self.all.len() * per + size_of_val(&*self.of_flow)) as u64 + self.rates.bytes()
    }

    /// Adds what carriers have sent to the rows of the links that they cross.
    pub(super) fn count_link_bytes(&mut self, t: &mut Tables) {
        for (id, carrier) in (0..).zip(&mut self.all) {
            let bytes = std::mem::take(&mut carrier.wire_bytes);
            for crossing in self.rates.crossings(id) {
                let here = ((u128::from(bytes) * u128::from(crossing.share)) >> SHARE_BITS) as u64;
                match crossing.link.checked_sub(t.nics.len() as u32) {
                    None => t.nics[NicIdx(crossing.link)].tx_bytes += here,
                    Some(port) => t.ports[PortIdx(port)].tx_bytes += here,
                }
            }
        }
    }
}

/// The rate, in the units of `rates`, of a flow that alone takes `share` of itself on a link.
fn alone_rate(rates: &MaxMin, capacity_bps: u64, share: u64) -> u64 {
    (((u128::from(capacity_bps) << rates.rate_bits()) * u128::from(WHOLE)) / u128::from(share.max(1))) as u64
}

/// Whether acknowledgements of any flow could fill a link on their own: they take more than the data that they answer, or links are as much slower than others.
fn may_fill(capacities: &[u64], acks: u32) -> bool {
    let (most, least) = (capacities.iter().max(), capacities.iter().min());
    let (Some(&most), Some(&least)) = (most, least) else { return false };
    u128::from(most) * u128::from(acks) > u128::from(least) * u128::from(WHOLE)
}

/// Whether there is such a flow.
fn any_filled_by_acks(t: &Tables, capacities: &[u64], acks: u32) -> bool {
    FlowIdx::all(t.flow_tx.len() as u32).any(|flow| {
        let (tx, rx) = (&t.flow_tx[flow], &t.flow_rx[flow]);
        let data = links(t, tx.nic, tx.path_first, tx.path_len, tx.n_paths, WHOLE);
        acks_fill(capacities, &data, &links(t, rx.nic, rx.path_first, rx.path_len, rx.n_paths, acks))
    })
}

/// Whether a flow alone would have a link filled by its acknowledgements before one is full of its data.
fn acks_fill(capacities: &[u64], data: &[LinkShare], back: &[LinkShare]) -> bool {
    let capacity = |c: &LinkShare| u128::from(capacities[c.link as usize]);
    back.iter().any(|b| data.iter().all(|d| capacity(d) * u128::from(b.share) > capacity(b) * u128::from(d.share)))
}

/// What data and acknowledgements take of each link, so that both together are fair.
///
/// Acknowledgements come first elsewhere, and data take what they leave. Where acknowledgements alone fill a link, that leaves no data to be slowed down.
fn together(data: &[LinkShare], back: &[LinkShare]) -> Box<[LinkShare]> {
    let mut shares: BTreeMap<u32, u32> = BTreeMap::new();
    for c in data.iter().chain(back) {
        *shares.entry(c.link).or_default() += c.share;
    }
    shares.into_iter().map(|(link, share)| LinkShare { link, share }).collect()
}

/// Carriers whose rates are solved exactly. Our choice: with more, each end of a flow would change the rates of nearly all by less than anybody asks for.
const MOST_EXACT: usize = 4096;
/// Rates of more carriers may be off by this part, as a shift: 6e-5.
const TOLERANCE_SHIFT: u32 = 14;

/// Those of a flow that go with another's.
const NO_CARRIER: u32 = u32::MAX;

/// The queue pair with the most links; of several the first.
fn longest(t: &Tables, rows: &[FlowIdx]) -> FlowIdx {
    let links = |row: FlowIdx| t.flow_tx[row].path_len + t.flow_rx[row].path_len;
    rows.iter().copied().reduce(|a, b| if links(b) > links(a) { b } else { a }).unwrap_or(FlowIdx(0))
}
