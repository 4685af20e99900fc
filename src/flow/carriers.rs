//! Queue pairs and flows as carriers: those that cross the same links are one.
//!
//! Layer: flow level. Flows of one carrier have the same rate whenever they have bytes to send, so each ends when the carrier has served every one of them so much:
//! a carrier keeps that sum, and its flows by where they end on it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::latency::{Latency, Path};
use super::maxmin::{LinkShare, MaxMin, SHARE_BITS, WHOLE};
use crate::columns::{FlowIdx, LinkEndIdx, NEVER, NicIdx, PortIdx, Tables};

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
    /// Wire bytes of messages that were sent.
    pub wire_bytes: u64,
}

impl Carrier {
    /// Serves its flows until `now`.
    pub(super) fn serve(&mut self, now: u64) {
        self.served += u128::from(self.rate) * u128::from(now - self.since);
        self.since = now;
    }

    /// When the first of its flows ends, at its rate; `None`: it has none, or they stand still.
    pub(super) fn next_end(&self) -> Option<u64> {
        let Reverse((end, _)) = self.sending.peek()?;
        let left = end.saturating_sub(self.served);
        (self.rate > 0).then(|| self.since + left.div_ceil(u128::from(self.rate)) as u64)
    }

    /// Latency of a message.
    pub(super) fn latency(&mut self, t: &Tables, bytes: u64) -> Latency {
        match self.known {
            Some((of, latency)) if of == bytes => latency,
            _ => {
                let latency = self.path.latency(t, bytes);
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

/// What a carrier crosses: data, then acknowledgements.
type Crossings = (Box<[LinkShare]>, Box<[LinkShare]>);

impl Carriers {
    /// Those of an experiment's rows.
    pub(super) fn of(t: &Tables) -> Carriers {
        let capacities: Vec<u64> = t.nics.iter().map(|n| n.rate).chain(t.ports.iter().map(|p| p.rate)).collect();
        let sprayed = t.flow_tx.iter().any(|f| f.n_paths > 1);
        let mut rates = MaxMin::new(&capacities, sprayed);
        let mut known: HashMap<Crossings, u32> = HashMap::new();
        let mut all = Vec::new();
        let mut of_flow = Vec::with_capacity(t.flow_tx.len());
        let acks = ack_share(t);
        for flow in FlowIdx::all(t.flow_tx.len() as u32) {
            let (tx, rx) = (&t.flow_tx[flow], &t.flow_rx[flow]);
            let data = links(t, tx.nic, tx.path_first, tx.path_len, tx.n_paths, WHOLE);
            let back = links(t, rx.nic, rx.path_first, rx.path_len, rx.n_paths, acks);
            let next = all.len() as u32;
            let carrier = *known.entry((data.clone(), back.clone())).or_insert(next);
            if carrier == next {
                rates.add(&data, &back);
                all.push(Carrier {
                    path: Path::of(t, flow),
                    known: None,
                    served: 0,
                    since: 0,
                    rate: 0,
                    sending: BinaryHeap::new(),
                    next_look: NEVER,
                    is_touched: false,
                    wire_bytes: 0,
                });
            }
            of_flow.push(carrier);
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

/// Acknowledgements' bytes over those of full packets that they answer, as a share.
fn ack_share(t: &Tables) -> u32 {
    let e = &t.exps[0];
    let answered = e.ack_interval.div_ceil(e.payload.into()).max(1);
    let wire = u128::from(e.payload + e.data_overhead) * u128::from(answered);
    (u128::from(e.ack_bytes) * u128::from(WHOLE)).div_ceil(wire) as u32
}

/// Link ends of `n` paths that leave a NIC, each with its part of `whole`; ascending.
fn links(t: &Tables, nic: NicIdx, first: u32, len: u32, n: u32, whole: u32) -> Box<[LinkShare]> {
    let mut times: BTreeMap<LinkEndIdx, u64> = BTreeMap::new();
    times.insert(nic.end(), n.max(1).into());
    let n_nics = t.nics.len() as u32;
    for &port in &t.paths[first as usize..(first + len * n) as usize] {
        *times.entry(port.end(n_nics)).or_default() += 1;
    }
    let share = |times: u64| (u64::from(whole) * times / u64::from(n.max(1))).max(1) as u32;
    times.into_iter().map(|(end, times)| LinkShare { link: end.0, share: share(times) }).collect()
}
