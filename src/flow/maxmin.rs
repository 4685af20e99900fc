//! Max-min fair rates. All rates rise together until a link is full; flows on it stop there, and the others continue.
//!
//! Layer: flow level. Only integers are used, so that sums do not depend on their order and equal flows have equal rates to the bit. It knows no time and no
//! tables. `progressive_filling` does the filling; this file has the rows and their changes.
//!
//! A *carrier* is a number of flows that cross the same links. A flow crosses a link with a *share* of its rate, which is below 1 if the flow is sprayed.
//! Acknowledgements cross other links and take their rate first; a link's data get the rest.

mod fill_state;
mod progressive_filling;

use fill_state::Fill;
use hyperfold_engine::fair_rates::{CarrierCrossings, FlowsChange, MAX_PASSES, RateNetwork, SLACK_SHIFT};
pub use hyperfold_engine::fair_rates::{NONE, SHARE_BITS, WHOLE};

/// Tolerance shift if rates are solved exactly: the tolerance of any rate is less than a unit.
const EXACT: u32 = 63;

/// A link that a carrier's flows cross, with their share on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkShare {
    /// Number of the link.
    pub link: u32,
    /// Fixed-point share with [`SHARE_BITS`] fractional bits.
    pub share: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    /// Capacity in units of rate.
    capacity: u64,
    /// Part of the capacity that is reserved for acknowledgements.
    reserved: u64,
    /// Rate of the acknowledgements, in units of rate.
    acks: u64,
    /// Load of its carriers' data, in units of rate and share, modulo 2^64. When flows begin, they count with the old
    /// rate of their carrier until rates are solved. The sum may overflow then; the link is dirty meanwhile, so nothing is decided by it.
    load: u64,
    /// Sum of flows times shares.
    weight: u64,
    /// Upper bound of the rates of its carriers with flows. Carriers may have changed since it was computed.
    fastest: u64,
    /// Lower bound of the rates of carriers that this link limits. Carriers may have changed since it was computed.
    slowest: u64,
    /// Whether the link is in `MaxMin::dirty`.
    dirty: bool,
    /// Whether the link is in `MaxMin::unsettled`.
    unsettled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Carrier {
    /// First of its entries in `crossings`.
    first: u32,
    /// Number of its entries in `crossings`.
    n: u32,
    /// First of its entries in `ack_crossings`.
    first_ack: u32,
    /// Number of its entries in `ack_crossings`.
    n_ack: u32,
    flows: u32,
    /// Rate of each of its flows.
    rate: u64,
    /// The link that limits its rate.
    bottleneck: u32,
}

/// Max-min fair rates of carriers over links.
#[derive(Debug)]
pub struct MaxMin {
    links: Vec<Link>,
    carriers: Vec<Carrier>,
    crossings: Vec<LinkShare>,
    /// The carrier of each crossing.
    owner: Vec<u32>,
    /// The place of each crossing among its link's members.
    place: Vec<u32>,
    ack_crossings: Vec<LinkShare>,
    /// Crossings of carriers with flows, by link.
    members: Vec<Vec<u32>>,
    /// Links whose load has changed since rates were solved.
    dirty: Vec<u32>,
    /// Links whose acknowledgements may no longer match the reserved capacity.
    unsettled: Vec<u32>,
    /// Number of fractional bits of shares in use; 0 if no flow is sprayed.
    share_bits: u32,
    /// A unit of rate is 2^-`rate_bits` bps.
    rate_bits: u32,
    /// Relative tolerance of rates, as a shift.
    tolerance_shift: u32,
    /// Number of carriers with flows.
    n_active: usize,
    /// The largest share of an acknowledgement.
    ack_share: u32,
    fill: Fill,
}

impl MaxMin {
    /// Links of these capacities in bps. `sprayed` says whether shares other than [`WHOLE`] will be added.
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
            fill: Fill::new(capacities_bps.len()),
        }
    }

    /// From now on, a rate stays as it is if its relative error is at most 2^-`shift`, or the unused part of its link is at most that share of the capacity.
    pub fn tolerate(&mut self, shift: u32) {
        self.tolerance_shift = shift;
    }

    /// Adds a carrier without flows and returns its number. `acks` are the links that its acknowledgements cross, each with the acknowledgements' part of its
    /// rate as share.
    ///
    /// PRECONDITION: it crosses at least one link, and no link twice.
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

    /// Number of fractional bits of a rate in bps.
    pub fn rate_bits(&self) -> u32 {
        self.rate_bits
    }

    /// The rate of each flow of a carrier, in units of 2^-[`Self::rate_bits`] bps, as of the last [`Self::solve`].
    pub fn rate(&self, carrier: u32) -> u64 {
        self.carriers[carrier as usize].rate
    }

    /// Approximate bytes on the heap.
    pub fn bytes(&self) -> u64 {
        let members: usize = self.members.iter().map(|m| m.capacity() * size_of::<u32>()).sum();
        let links = self.links.len() * (size_of::<Link>() + size_of::<Vec<u32>>());
        let crossings = self.crossings.len() * (size_of::<LinkShare>() + 2 * size_of::<u32>());
        let acks = self.ack_crossings.len() * size_of::<LinkShare>();
        (members + links + crossings + acks + self.carriers.len() * size_of::<Carrier>()) as u64 + self.fill.bytes()
    }

    /// Number of flows of a carrier.
    pub fn flows(&self, carrier: u32) -> u32 {
        self.carriers[carrier as usize].flows
    }

    /// The network in the form that a device needs to solve rates. PRECONDITION: no carrier has flows yet.
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

    /// Notes the number of flows of a carrier if a device solves the rates. Link sums are then kept on the device only, so [`Self::solve`] must not be used any
    /// more.
    pub fn note_flows(&mut self, change: FlowsChange) {
        let c = &mut self.carriers[change.carrier as usize];
        c.flows = change.flows;
        if change.flows == 0 {
            (c.rate, c.bottleneck) = (0, NONE);
        }
    }

    /// Notes a rate that a device has computed.
    pub fn note_rate(&mut self, carrier: u32, rate: u64) {
        self.carriers[carrier as usize].rate = rate;
    }

    /// Sets the number of flows of a carrier. [`Self::solve`] computes their rate.
    pub fn set_flows(&mut self, carrier: u32, flows: u32) {
        let c = self.carriers[carrier as usize];
        if c.flows == flows {
            return;
        }
        self.count_acks(&c, false);
        for crossing_idx in c.first..c.first + c.n {
            let LinkShare { link, share } = self.crossings[crossing_idx as usize];
            let share = u64::from(share >> (SHARE_BITS - self.share_bits));
            let l = &mut self.links[link as usize];
            l.weight = l.weight + share * u64::from(flows) - share * u64::from(c.flows);
            let load = |flows: u32| (share * u64::from(flows)).wrapping_mul(c.rate);
            l.load = l.load.wrapping_add(load(flows)).wrapping_sub(load(c.flows));
            let members = &mut self.members[link as usize];
            if c.flows == 0 {
                self.place[crossing_idx as usize] = members.len() as u32;
                members.push(crossing_idx);
            } else if flows == 0 {
                let place = self.place[crossing_idx as usize];
                members.swap_remove(place as usize);
                if let Some(&moved) = members.get(place as usize) {
                    self.place[moved as usize] = place;
                }
            }
            self.mark_dirty(link);
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
        self.mark_unsettled(&c);
    }

    /// Gives a link another capacity, in bps: at most the largest that any link had at first.
    pub fn set_capacity(&mut self, link: u32, bps: u64) {
        let l = &mut self.links[link as usize];
        l.capacity = bps << self.rate_bits;
        l.reserved = l.reserved.min(l.capacity);
        if !std::mem::replace(&mut l.unsettled, true) {
            self.unsettled.push(link);
        }
        self.mark_dirty(link);
    }

    /// Whether anything has changed since rates were solved.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.unsettled.is_empty()
    }

    /// Marks a link for the next solution, since its load or capacity for data has changed.
    fn mark_dirty(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if !l.dirty {
            l.dirty = true;
            self.dirty.push(link);
        }
    }

    /// Adds the rate of a carrier's acknowledgements to its links, or subtracts it.
    fn count_acks(&mut self, c: &Carrier, add: bool) {
        for crossing_idx in c.first_ack..c.first_ack + c.n_ack {
            let LinkShare { link, share } = self.ack_crossings[crossing_idx as usize];
            let ack_rate = ((u128::from(c.rate) * u128::from(c.flows) * u128::from(share)) >> SHARE_BITS) as u64;
            let l = &mut self.links[link as usize];
            l.acks = if add { l.acks + ack_rate } else { l.acks - ack_rate };
        }
    }

    /// Marks the links of a carrier's acknowledgements, whose reserved capacity may no longer be right.
    fn mark_unsettled(&mut self, c: &Carrier) {
        for crossing_idx in c.first_ack..c.first_ack + c.n_ack {
            let link = self.ack_crossings[crossing_idx as usize].link;
            if !std::mem::replace(&mut self.links[link as usize].unsettled, true) {
                self.unsettled.push(link);
            }
        }
    }

    /// Adjusts the capacity that the links in `unsettled` reserve for acknowledgements, if these need more than is reserved, or clearly less. A smaller reserve
    /// is set at once. A larger one grows by a part of the difference only, because it slows down data, which then have fewer acknowledgements.
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
            let full = l.load.wrapping_add(reserved << self.share_bits) > l.capacity << self.share_bits;
            if full || (reserved < before && self.is_bottleneck(link)) {
                self.mark_dirty(link);
            }
            unsettled
        });
        self.unsettled.append(&mut unsettled);
    }

    /// Whether the link is the bottleneck of one of its carriers.
    fn is_bottleneck(&self, link: u32) -> bool {
        self.members[link as usize]
            .iter()
            .any(|&crossing_idx| self.carriers[self.owner[crossing_idx as usize] as usize].bottleneck == link)
    }

    /// Solves all rates that are affected by changes. `changed` is called with every carrier with flows whose rate has changed, once per change.
    pub fn solve(&mut self, changed: &mut impl FnMut(u32)) {
        for _ in 0..MAX_PASSES {
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
                    self.mark_unsettled(&c);
                    self.carriers[carrier as usize] = c;
                    changed(carrier);
                }
            }
            self.fill.give_back(solved);
        }
        // The remaining differences are far below the slack of any link, except links that acknowledgements alone fill.
        for link in std::mem::take(&mut self.dirty) {
            self.links[link as usize].dirty = false;
        }
        for link in std::mem::take(&mut self.unsettled) {
            self.links[link as usize].unsettled = false;
        }
    }
}
