//! Rows of networks in the kernel's layout, the rows of all networks side by side.
//!
//! Layer: engine. Layouts only, no device.

use bytemuck::{Pod, Zeroable};

use crate::fair_rates::{NONE, RateNetwork};

/// Words of a link that several lanes change: five sums of two halves each, five marks, and one unused word.
pub(super) const LINK_WORDS: u32 = 16;
/// Index, among these words, of the turn in which the link was touched. Its initial value is [`NONE`].
const TOUCHED: usize = 12;

/// Header of a network: where its rows are, and its parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(super) struct NetworkRow {
    link_first: u32,
    n_links: u32,
    carrier_first: u32,
    n_carriers: u32,
    crossing_first: u32,
    touched_first: u32,
    share_bits: u32,
    tolerance_shift: u32,
    ack_share: u32,
}

/// Columns of a link that only one lane changes at a time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(super) struct LinkRow {
    capacity: u64,
    reserved: u64,
    free: u64,
    level: u64,
    stopped_at: u64,
    fastest: u64,
}

/// A carrier: its links, its flows and its rates.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(super) struct CarrierRow {
    first: u32,
    n: u32,
    first_ack: u32,
    n_ack: u32,
    flows: u32,
    bottleneck: u32,
    new_bottleneck: u32,
    state: u32,
    tie: u32,
    unused: u32,
    rate: u64,
    new_rate: u64,
    told: u64,
}

/// Rows of several networks.
#[derive(Debug, Default)]
pub(super) struct NetworkRows {
    pub networks: Vec<NetworkRow>,
    pub links: Vec<LinkRow>,
    pub link_words: Vec<u32>,
    pub carriers: Vec<CarrierRow>,
    pub crossings: Vec<[u32; 2]>,
}

impl NetworkRows {
    /// Rows of the given networks, in this order.
    pub(super) fn of<'a>(networks: impl IntoIterator<Item = &'a RateNetwork>) -> NetworkRows {
        let mut rows = NetworkRows::default();
        for network in networks {
            rows.networks.push(NetworkRow {
                link_first: rows.links.len() as u32,
                n_links: network.capacities.len() as u32,
                carrier_first: rows.carriers.len() as u32,
                n_carriers: network.carriers.len() as u32,
                crossing_first: rows.crossings.len() as u32,
                touched_first: 0,
                share_bits: network.share_bits,
                tolerance_shift: network.tolerance_shift,
                ack_share: network.ack_share,
            });
            rows.links.extend(network.capacities.iter().map(|&capacity| LinkRow { capacity, ..LinkRow::default() }));
            rows.carriers.extend(network.carriers.iter().map(|c| CarrierRow {
                first: c.first,
                n: c.n,
                first_ack: c.first_ack,
                n_ack: c.n_ack,
                bottleneck: NONE,
                new_bottleneck: NONE,
                ..CarrierRow::default()
            }));
            rows.crossings.extend_from_slice(&network.crossings);
        }
        // Lists of touched links come after all lists of carriers.
        for network in &mut rows.networks {
            network.touched_first = rows.carriers.len() as u32 + network.link_first;
        }
        rows.link_words = vec![0; rows.links.len() * LINK_WORDS as usize];
        rows.link_words.iter_mut().skip(TOUCHED).step_by(LINK_WORDS as usize).for_each(|turn| *turn = NONE);
        rows
    }
}

/// Bytes that networks take on the device, per buffer in the order of bindings. Buffers that the host rewrites for each solution are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NetworkBytes(pub [u64; 9]);

impl NetworkBytes {
    /// Bytes that one network takes.
    pub(super) fn of(network: &RateNetwork) -> NetworkBytes {
        let [links, carriers, crossings] =
            [network.capacities.len(), network.carriers.len(), network.crossings.len()].map(|n| n as u64);
        NetworkBytes([
            size_of::<NetworkRow>() as u64,
            links * size_of::<LinkRow>() as u64,
            links * 4 * u64::from(LINK_WORDS),
            carriers * size_of::<CarrierRow>() as u64,
            crossings * 8,
            (links + carriers) * 4,
            carriers * 8,
            16,
            carriers * 16 + TOLD_HEAD,
        ])
    }

    /// Bytes that both together take.
    pub(super) fn plus(self, other: NetworkBytes) -> NetworkBytes {
        NetworkBytes(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

/// Bytes in front of the changed rates: their count.
pub(super) const TOLD_HEAD: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair_rates::RateChange;
    use crate::gpu::rates::source;

    #[test]
    fn rows_have_one_layout_in_rust_and_wgsl() {
        let text = source::compose(256).expect("a usable size");
        let (module, _) = source::validate(&text).unwrap_or_else(|e| panic!("{e}"));
        let rust = [
            ("NetworkRow", size_of::<NetworkRow>(), vec![std::mem::offset_of!(NetworkRow, ack_share)]),
            ("LinkRow", size_of::<LinkRow>(), vec![std::mem::offset_of!(LinkRow, fastest)]),
            (
                "CarrierRow",
                size_of::<CarrierRow>(),
                [
                    std::mem::offset_of!(CarrierRow, state),
                    std::mem::offset_of!(CarrierRow, rate),
                    std::mem::offset_of!(CarrierRow, told),
                ]
                .into(),
            ),
            ("RateRow", size_of::<RateChange>(), vec![std::mem::offset_of!(RateChange, rate)]),
        ];
        for (name, bytes, offsets) in rust {
            let found = module.types.iter().find(|(_, t)| t.name.as_deref() == Some(name));
            let Some(naga::TypeInner::Struct { members, span }) = found.map(|(_, t)| &t.inner) else {
                panic!("no struct {name}")
            };
            assert_eq!(*span as usize, bytes, "size of {name}");
            for offset in offsets {
                assert!(members.iter().any(|m| m.offset as usize == offset), "{name} has nothing at {offset}");
            }
        }
        assert_eq!(size_of::<[u32; 2]>(), 8);
    }

    #[test]
    fn rows_of_networks_lie_side_by_side() {
        let one = RateNetwork { capacities: vec![5, 6], carriers: vec![Default::default()], ..RateNetwork::default() };
        let two = RateNetwork { crossings: vec![[0, 1]; 3], ..one.clone() };
        let rows = NetworkRows::of([&two, &one]);
        let last = rows.networks[1];
        assert_eq!((last.link_first, last.carrier_first, last.crossing_first, last.touched_first), (2, 1, 3, 4));
        assert_eq!(rows.link_words.iter().filter(|&&w| w == NONE).count(), 4);
        let NetworkBytes(bytes) = NetworkBytes::of(&one).plus(NetworkBytes::of(&two));
        let row_bytes = [
            size_of_val(&*rows.networks),
            size_of_val(&*rows.links),
            size_of_val(&*rows.link_words),
            size_of_val(&*rows.carriers),
            size_of_val(&*rows.crossings),
        ];
        assert_eq!(bytes[..5], row_bytes.map(|n| n as u64));
    }
}
