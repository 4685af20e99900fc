//! The link ends that a queue pair's data and acknowledgements cross, and the share of its rate on each.
//!
//! Layer: flow level.

use std::collections::BTreeMap;

use super::maxmin::{LinkShare, WHOLE};
use hyperfold_columns::{LinkEndIdx, NicIdx, PortIdx, Tables};

/// Rate of a link end in bps.
pub(super) fn rate_bps(t: &Tables, link: u32) -> u64 {
    match link.checked_sub(t.nics.len() as u32) {
        None => t.nics[NicIdx(link)].rate,
        Some(port) => t.ports[PortIdx(port)].rate,
    }
}

/// Bytes of acknowledgements divided by the wire bytes of the packets that they answer, as a share.
pub(super) fn ack_share(t: &Tables) -> u32 {
    let e = &t.exps[0];
    let answered = e.ack_interval.div_ceil(e.payload.into()).max(1);
    let wire = u128::from(e.payload + e.data_overhead) * u128::from(answered);
    (u128::from(e.ack_bytes) * u128::from(WHOLE)).div_ceil(wire) as u32
}

/// Link ends of `n` paths from a NIC, each with its part of `whole`; ascending.
pub(super) fn links(t: &Tables, nic: NicIdx, first: u32, len: u32, n: u32, whole: u32) -> Box<[LinkShare]> {
    let mut times: BTreeMap<LinkEndIdx, u64> = BTreeMap::new();
    times.insert(nic.end(), n.max(1).into());
    let n_nics = t.nics.len() as u32;
    for &port in &t.paths[first as usize..(first + len * n) as usize] {
        *times.entry(port.end(n_nics)).or_default() += 1;
    }
    let share = |times: u64| (u64::from(whole) * times / u64::from(n.max(1))).max(1) as u32;
    times.into_iter().map(|(end, times)| LinkShare { link: end.0, share: share(times) }).collect()
}
