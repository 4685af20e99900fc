//! Max-min fair rates: all rates rise together until a link is full, whose flows stop there; the others go on.
//!
//! Layer: flow level. Integers alone, so that sums do not depend on their order, and flows that are alike have the same rate to the bit.
//! Knows no time and no tables. `fill` does the filling; here are the rows and what changes them.
//!
//! A *carrier* is a number of flows that cross the same links. A flow crosses a link with a *share* of its rate: below 1 where it is sprayed.
//! Acknowledgements cross other links and take what they need of them first: a link has for data what they leave.

mod fill;

use crate::engine::fair_rates::{CarrierCrossings, FlowsChange, MOST_ROUNDS, RateNetwork, SLACK_SHIFT};
pub use crate::engine::fair_rates::{NONE, SHARE_BITS, WHOLE};

/// Shift of the tolerance where rates are solved exactly: what is left of any rate is less than a unit.
const EXACT: u32 = 63;

/// A link that a carrier's flows cross, with their share there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkShare {
    pub link: u32,
    /// Of [`SHARE_BITS`] behind the point.
    pub share: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    /// Units of rate.
    capacity: u64,
    /// Of that, what is kept for acknowledgements, and what they take.
    reserved: u64,
    acks: u64,
    /// What its carriers' data take, in units of rate and share.
    load: u64,
    /// Sum of flows times shares.
    weight: u64,
    /// No carrier with flows is faster; none that is kept back here is slower. Bounds: what they bound may have changed since.
    fastest: u64,
    slowest: u64,
    dirty: bool,
    unsettled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Carrier {
    /// Places in `crossings`.
    first: u32,
    n: u32,
    /// Places in `ack_crossings`.
    first_ack: u32,
    n_ack: u32,
    flows: u32,
    /// Of each flow.
    rate: u64,
    /// The link that keeps it from being faster.
    bottleneck: u32,
}

/// Rates of carriers over links.
#[derive(Debug)]
pub struct MaxMin {
    links: Vec<Link>,
    carriers: Vec<Carrier>,
    crossings: Vec<LinkShare>,
    /// The carrier of each crossing, and where it is among its link's members.
    owner: Vec<u32>,
    place: Vec<u32>,
    ack_crossings: Vec<LinkShare>,
    /// Crossings of carriers with flows, by link.
    members: Vec<Vec<u32>>,
    dirty: Vec<u32>,
    /// Links whose acknowledgements may be others than those that they keep room for.
    unsettled: Vec<u32>,
    /// Bits of a share in use: none where no flow is sprayed.
    share_bits: u32,
    /// A unit of rate is 2^-`rate_bits` bps.
    rate_bits: u32,
    /// Rates may be off by this part of themselves, as a shift.
    tolerance_shift: u32,
    /// Carriers with flows.
    n_active: usize,
    /// The largest share of an acknowledgement.
    ack_share: u32,
    fill: fill::Fill,
}

impl MaxMin {
    /// Links of these capacities, bps. `sprayed`: shares other than [`WHOLE`] will come.
    pub fn new(capacities_bps: &[u64], sprayed: bool) -> MaxMin {
        let share_bits = if sprayed { SHARE_BITS } else { 0 };
        let largest = capacities_bps.iter().copied().max().unwrap_or(1).max(1);
        // The capacity of the largest link times a share has 62 bits.
        let rate_bits = (62 - share_bits).saturating_sub(64 - largest.leading_zeros());
        let link = |&bps: &u64| Link {
            capacity: bps << rate_bits,
            reserved: 0,
            acks: 0,
            load: 0,
            weight: 0,
            fastest: 0,
            slowest: u64::MAX,
            dirty: false,
            unsettled: false,
        };
        MaxMin {
            links: capacities_bps.iter().map(link).collect(),
            carriers: Vec::new(),
            crossings: Vec::new(),
            owner: Vec::new(),
            place: Vec::new(),
            ack_crossings: Vec::new(),
            members: vec![Vec::new(); capacities_bps.len()],
            dirty: Vec::new(),
            unsettled: Vec::new(),
            share_bits,
            rate_bits,
            tolerance_shift: EXACT,
            n_active: 0,
            ack_share: 0,
            fill: fill::Fill::new(capacities_bps.len()),
        }
    }

    /// From now on rates that are off by no more than 2^-`shift` of themselves, and room of no more than that part of a link, stay as they are.
    pub fn tolerate(&mut self, shift: u32) {
        self.tolerance_shift = shift;
    }

    /// Adds a carrier without flows. `acks`: the links that its acknowledgements cross, with their part of its rate as share.
    ///
    /// PRECONDITION: it crosses a link, and no link twice.
    pub fn add(&mut self, data: &[LinkShare], acks: &[LinkShare]) -> u32 {
        let id = self.carriers.len() as u32;
        self.carriers.push(Carrier {
            first: self.crossings.len() as u32,
            n: data.len() as u32,
            first_ack: self.ack_crossings.len() as u32,
            n_ack: acks.len() as u32,
            flows: 0,
            rate: 0,
            bottleneck: NONE,
        });
        self.crossings.extend_from_slice(data);
        self.owner.extend(data.iter().map(|_| id));
        self.place.extend(data.iter().map(|_| NONE));
        self.ack_crossings.extend_from_slice(acks);
        self.ack_share = acks.iter().map(|c| c.share).fold(self.ack_share, u32::max);
        self.fill.add();
        id
    }

    /// The links that a carrier's data and acknowledgements cross.
    pub fn crossings(&self, carrier: u32) -> impl Iterator<Item = &LinkShare> {
        let c = &self.carriers[carrier as usize];
        let data = &self.crossings[c.first as usize..(c.first + c.n) as usize];
        data.iter().chain(&self.ack_crossings[c.first_ack as usize..(c.first_ack + c.n_ack) as usize])
    }

    /// Bits behind the point of a rate in bps.
    pub fn rate_bits(&self) -> u32 {
        self.rate_bits
    }

    /// The rate of each flow of a carrier, in units of 2^-[`Self::rate_bits`] bps; as of the last [`Self::solve`].
    pub fn rate(&self, carrier: u32) -> u64 {
        self.carriers[carrier as usize].rate
    }

    /// Bytes that it has on the heap, about.
    pub fn bytes(&self) -> u64 {
        let members: usize = self.members.iter().map(|m| m.capacity() * size_of::<u32>()).sum();
        let links = self.links.len() * (size_of::<Link>() + size_of::<Vec<u32>>());
        let crossings = self.crossings.len() * (size_of::<LinkShare>() + 2 * size_of::<u32>());
        let acks = self.ack_crossings.len() * size_of::<LinkShare>();
        (members + links + crossings + acks + self.carriers.len() * size_of::<Carrier>()) as u64 + self.fill.bytes()
    }

    /// How many flows a carrier has.
    pub fn flows(&self, carrier: u32) -> u32 {
        self.carriers[carrier as usize].flows
    }

    /// All that a device needs to solve in its place. Nobody may have flows yet.
    pub fn network(&self) -> RateNetwork {
        let n_data = self.crossings.len() as u32;
        let carrier =
            |c: &Carrier| CarrierCrossings { first: c.first, n: c.n, first_ack: n_data + c.first_ack, n_ack: c.n_ack };
        RateNetwork {
            capacities: self.links.iter().map(|l| l.capacity).collect(),
            carriers: self.carriers.iter().map(carrier).collect(),
            crossings: self.crossings.iter().chain(&self.ack_crossings).map(|c| [c.link, c.share]).collect(),
            share_bits: self.share_bits,
            tolerance_shift: self.tolerance_shift,
            ack_share: self.ack_share,
        }
    }

    /// Notes how many flows a carrier has, where a device solves: sums of links are kept there alone, so [`Self::solve`] is of no use any more.
    pub fn note_flows(&mut self, change: FlowsChange) {
        let c = &mut self.carriers[change.carrier as usize];
        c.flows = change.flows;
        if change.flows == 0 {
            (c.rate, c.bottleneck) = (0, NONE);
        }
    }

    /// Notes the rate that a device has found.
    pub fn note_rate(&mut self, carrier: u32, rate: u64) {
        self.carriers[carrier as usize].rate = rate;
    }

    /// Sets how many flows a carrier has. Their rate follows with [`Self::solve`].
    pub fn set_flows(&mut self, carrier: u32, flows: u32) {
        let c = self.carriers[carrier as usize];
        if c.flows == flows {
            return;
        }
        self.count_acks(&c, false);
        for at in c.first..c.first + c.n {
            let LinkShare { link, share } = self.crossings[at as usize];
            let share = u64::from(share >> (SHARE_BITS - self.share_bits));
            let l = &mut self.links[link as usize];
            l.weight = l.weight + share * u64::from(flows) - share * u64::from(c.flows);
            l.load = l.load + share * u64::from(flows) * c.rate - share * u64::from(c.flows) * c.rate;
            let members = &mut self.members[link as usize];
            if c.flows == 0 {
                self.place[at as usize] = members.len() as u32;
                members.push(at);
            } else if flows == 0 {
                let place = self.place[at as usize];
                members.swap_remove(place as usize);
                if let Some(&moved) = members.get(place as usize) {
                    self.place[moved as usize] = place;
                }
            }
            self.soil(link);
        }
        self.n_active += usize::from(c.flows == 0);
        self.n_active -= usize::from(flows == 0);
        let c = &mut self.carriers[carrier as usize];
        c.flows = flows;
        if flows == 0 {
            (c.rate, c.bottleneck) = (0, NONE);
        }
        let c = *c;
        self.count_acks(&c, true);
        self.unsettle(&c);
    }

    /// Whether anything has changed since rates were solved.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.unsettled.is_empty()
    }

    fn soil(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if !l.dirty {
            l.dirty = true;
            self.dirty.push(link);
        }
    }

    /// Adds what acknowledgements of a carrier take to its links, or takes it away.
    fn count_acks(&mut self, c: &Carrier, add: bool) {
        for at in c.first_ack..c.first_ack + c.n_ack {
            let LinkShare { link, share } = self.ack_crossings[at as usize];
            let takes = ((u128::from(c.rate) * u128::from(c.flows) * u128::from(share)) >> SHARE_BITS) as u64;
            let l = &mut self.links[link as usize];
            l.acks = if add { l.acks + takes } else { l.acks - takes };
        }
    }

    /// What is kept on the links of a carrier's acknowledgements may not be right any more.
    fn unsettle(&mut self, c: &Carrier) {
        for at in c.first_ack..c.first_ack + c.n_ack {
            let link = self.ack_crossings[at as usize].link;
            if !std::mem::replace(&mut self.links[link as usize].unsettled, true) {
                self.unsettled.push(link);
            }
        }
    }

    /// Where acknowledgements take more than is kept for them, or clearly less, links keep what they take. If that is more than before, a part of the difference:
    /// it slows down data, whose acknowledgements are fewer then.
    fn settle(&mut self) {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        unsettled.retain(|&link| {
            let l = &mut self.links[link as usize];
            let slack = l.capacity >> SLACK_SHIFT;
            l.unsettled = l.acks > l.reserved;
            if !l.unsettled && l.acks + slack >= l.reserved {
                return false;
            }
            let whole = u128::from(WHOLE);
            let kept = match l.acks.checked_sub(l.reserved) {
                Some(more) => l.reserved + (u128::from(more) * whole / (whole + u128::from(self.ack_share))) as u64,
                None => l.acks,
            };
            let before = std::mem::replace(&mut l.reserved, (kept + slack / 2).min(l.capacity));
            let (reserved, unsettled) = (l.reserved, l.unsettled);
            let full = l.load + (reserved << self.share_bits) > l.capacity << self.share_bits;
            if full || (reserved < before && self.is_bottleneck(link)) {
                self.soil(link);
            }
            unsettled
        });
        self.unsettled.append(&mut unsettled);
    }

    /// Whether a carrier would be faster if the link were.
    fn is_bottleneck(&self, link: u32) -> bool {
        self.members[link as usize].iter().any(|&at| self.carriers[self.owner[at as usize] as usize].bottleneck == link)
    }

    /// Solves anew what changes reach. `changed` takes every carrier with flows whose rate is another one than before, once for each time that it changes.
    pub fn solve(&mut self, changed: &mut impl FnMut(u32)) {
        for _ in 0..MOST_ROUNDS {
            self.settle();
            if !self.is_dirty() {
                return;
            }
            let solved = self.refill();
            for &carrier in &solved {
                let c = self.carriers[carrier as usize];
                let (rate, bottleneck) = (self.fill.rate(carrier), self.fill.bottleneck(carrier));
                self.carriers[carrier as usize].bottleneck = bottleneck;
                if rate != c.rate {
                    self.count_acks(&c, false);
                    let c = Carrier { rate, bottleneck, ..c };
                    self.count_acks(&c, true);
                    self.unsettle(&c);
                    self.carriers[carrier as usize] = c;
                    changed(carrier);
                }
            }
            self.fill.give_back(solved);
        }
        // What is left is far below the slack of any link but those that acknowledgements alone fill.
        for link in std::mem::take(&mut self.dirty) {
            self.links[link as usize].dirty = false;
        }
        for link in std::mem::take(&mut self.unsettled) {
            self.links[link as usize].unsettled = false;
        }
    }
}
