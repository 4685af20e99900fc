//! What a message takes beside its transmission at its rate: links' delays, switches that store before they forward, and the acknowledgement's way back.
//!
//! Layer: flow level. Together with its transmission at the rate of the slowest link, it makes a message alone take what packets take on an idle network.

use crate::columns::{FlowIdx, NicIdx, Tables};
use crate::units::{PS_PER_S, tx_ps};

/// The links of a path in order, and what packets on it are.
#[derive(Debug)]
pub(super) struct Path {
    /// (rate in bps, delay in ps) of each link that data cross, then of each that acknowledgements cross.
    data: Vec<(u64, u64)>,
    /// Transmissions and delays of an acknowledgement.
    pub back_ps: u64,
    slowest_bps: u64,
}

/// Times of a message, ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Latency {
    /// From the end of its transmission to its arrival.
    pub arrival_ps: u64,
    /// From there to its acknowledgement.
    pub back_ps: u64,
}

impl Path {
    /// The first path of a flow.
    pub(super) fn of(t: &Tables, flow: FlowIdx) -> Path {
        let (tx, rx) = (&t.flow_tx[flow], &t.flow_rx[flow]);
        let e = &t.exps[0];
        let links = |nic: NicIdx, first: u32, n: u32| {
            let nic = &t.nics[nic];
            let ports = t.paths[first as usize..(first + n) as usize].iter().map(|&port| &t.ports[port]);
            std::iter::once((nic.rate, nic.delay)).chain(ports.map(|p| (p.rate, p.delay)))
        };
        let data: Vec<(u64, u64)> = links(tx.nic, tx.path_first, tx.path_len).collect();
        let back = links(rx.nic, rx.path_first, rx.path_len);
        let slowest_bps = data.iter().map(|l| l.0).min().unwrap_or(1);
        let back_ps = back.map(|(rate, delay)| tx_ps(e.ack_bytes, rate, e.clock_ps.into()) + delay).sum();
        Path { data, back_ps, slowest_bps }
    }

    /// Of a message of `bytes`.
    pub(super) fn latency(&self, t: &Tables, bytes: u64) -> Latency {
        let e = &t.exps[0];
        let payload = u64::from(e.payload);
        let packets = bytes.div_ceil(payload).max(1);
        let full = e.payload + e.data_overhead;
        let last = (bytes.saturating_sub((packets - 1) * payload)) as u32 + e.data_overhead;
        let first = if packets > 1 { full } else { last };
        let over = |rate: u64, wire: u32| tx_ps(wire, rate, e.clock_ps.into());
        // The last packet is at the far end of the link on which it waits longest, then of all others.
        let mut after: u64 = self.data.iter().map(|&(rate, delay)| over(rate, last) + delay).sum();
        let (mut before, mut whole) = (0, 0);
        for &(rate, delay) in &self.data {
            after -= over(rate, last) + delay;
            before += over(rate, first) + delay;
            let behind = if packets == 1 { 0 } else { (packets - 2) * over(rate, full) + over(rate, last) };
            whole = whole.max(before + behind + after);
        }
        let bits = u128::from(wire_bytes(t, bytes)) * 8;
        let sent = (bits * u128::from(PS_PER_S)).div_ceil(u128::from(self.slowest_bps)) as u64;
        Latency { arrival_ps: whole.saturating_sub(sent), back_ps: self.back_ps }
    }
}

/// Bytes of a message on a link, headers included.
pub(super) fn wire_bytes(t: &Tables, bytes: u64) -> u64 {
    let e = &t.exps[0];
    bytes + bytes.div_ceil(u64::from(e.payload)).max(1) * u64::from(e.data_overhead)
}
