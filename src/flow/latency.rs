//! What a message takes beside its transmission at its rate: links' delays, switches that store before they forward, and the acknowledgement's way back.
//!
//! Layer: flow level. Together with its transmission at the rate of the slowest link, it makes a message alone take what packets take on an idle network.

use crate::columns::{FlowIdx, NicIdx, Tables};
use crate::units::{PS_PER_S, tx_ps};

/// A link on a path: its rate in bps and its delay in ps.
pub type Hop = (u64, u64);

/// How messages become packets, and how these are answered.
#[derive(Clone, Copy, Debug)]
pub struct PacketSizes {
    /// Most bytes of a message in one packet.
    pub payload: u32,
    /// Header bytes of a packet.
    pub data_overhead: u32,
    pub ack_bytes: u32,
    /// Bytes from one acknowledgement to the next. Not above `payload`: every packet is answered.
    pub ack_interval: u64,
    /// Transmission times are multiples of this.
    pub clock_ps: u64,
}

/// When a message that begins at 0 is there, and when its last acknowledgement is back; ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AloneTimes {
    pub arrived_ps: u64,
    pub acked_ps: u64,
}

impl PacketSizes {
    /// What a message of `bytes` takes alone: its packets go one behind the other over the links of `data`, store and forward, their acknowledgements over those of `back`.
    ///
    /// Packets but the last are alike. So the packet before the last leaves link `m` as if the slowest link up to `m` had spaced all packets. The last packet may be shorter: it
    /// follows right behind from one link on, and that link is the one which makes it latest. Acknowledgements are alike, so the slowest link back spaces them.
    pub fn alone(&self, data: &[Hop], back: &[Hop], bytes: u64) -> AloneTimes {
        let payload = u64::from(self.payload);
        let packets = bytes.div_ceil(payload).max(1);
        let full = self.payload + self.data_overhead;
        let last = bytes.saturating_sub((packets - 1) * payload) as u32 + self.data_overhead;
        let over = |rate: u64, wire: u32| tx_ps(wire, rate, self.clock_ps);
        let delays = data.iter().map(|hop| hop.1).sum::<u64>();
        let mut of_last: u64 = data.iter().map(|hop| over(hop.0, last)).sum();
        if packets == 1 {
            let arrived_ps = of_last + delays;
            return AloneTimes { arrived_ps, acked_ps: arrived_ps + self.one_back_ps(back) };
        }
        let (mut first, mut slowest, mut arrived_ps) = (0, 0, 0);
        for &(rate, _) in data {
            first += over(rate, full);
            slowest = slowest.max(over(rate, full));
            arrived_ps = arrived_ps.max(first + (packets - 2) * slowest + of_last);
            of_last -= over(rate, last);
        }
        arrived_ps += delays;
        let answer_ps = back.iter().map(|hop| over(hop.0, self.ack_bytes)).max().unwrap_or(0);
        let (answers, answered) = self.answers(packets);
        // The acknowledgement that the last one waits for: of those before it, the first or the last.
        let waits = |nth: u64| first + delays + (answered(nth) - 1) * slowest + (answers - nth) * answer_ps;
        let queued = if answers > 1 { waits(1).max(waits(answers - 1)) } else { 0 };
        AloneTimes { arrived_ps, acked_ps: arrived_ps.max(queued) + self.one_back_ps(back) }
    }

    /// What one acknowledgement takes on its way back.
    fn one_back_ps(&self, back: &[Hop]) -> u64 {
        back.iter().map(|&(rate, delay)| tx_ps(self.ack_bytes, rate, self.clock_ps) + delay).sum()
    }

    /// How many acknowledgements so many packets get, and which packet the nth answers; both counted from 1. The last answers the last packet.
    fn answers(&self, packets: u64) -> (u64, impl Fn(u64) -> u64) {
        let (payload, interval) = (u64::from(self.payload), self.ack_interval.max(self.payload.into()));
        let before_last = (packets - 1) * payload / interval;
        (before_last + 1, move |nth: u64| (nth * interval).div_ceil(payload))
    }
}

/// The links of a path in order.
#[derive(Debug)]
pub(super) struct Path {
    /// Links that data cross.
    data: Vec<Hop>,
    /// Links that acknowledgements cross.
    back: Vec<Hop>,
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
        let links = |nic: NicIdx, first: u32, n: u32| -> Vec<Hop> {
            let nic = &t.nics[nic];
            let ports = t.paths[first as usize..(first + n) as usize].iter().map(|&port| &t.ports[port]);
            std::iter::once((nic.rate, nic.delay)).chain(ports.map(|p| (p.rate, p.delay))).collect()
        };
        let data = links(tx.nic, tx.path_first, tx.path_len);
        let back = links(rx.nic, rx.path_first, rx.path_len);
        let slowest_bps = data.iter().map(|l| l.0).min().unwrap_or(1);
        let back_ps = sizes(t).one_back_ps(&back);
        Path { data, back, back_ps, slowest_bps }
    }

    /// Of a message of `bytes`. `sent_ps`: what its transmission takes alone; `None`: what it takes at the rate of the slowest link.
    pub(super) fn latency(&self, t: &Tables, bytes: u64, sent_ps: Option<u64>) -> Latency {
        let alone = sizes(t).alone(&self.data, &self.back, bytes);
        let bits = u128::from(wire_bytes(t, bytes)) * 8;
        let at_slowest = || (bits * u128::from(PS_PER_S)).div_ceil(u128::from(self.slowest_bps)) as u64;
        let sent_ps = sent_ps.unwrap_or_else(at_slowest);
        // Where acknowledgements are the bottleneck, all data may be there before the flow counts as sent.
        let arrived_ps = alone.arrived_ps.max(sent_ps);
        Latency { arrival_ps: arrived_ps - sent_ps, back_ps: alone.acked_ps.saturating_sub(arrived_ps) }
    }
}

/// How an experiment's messages become packets.
fn sizes(t: &Tables) -> PacketSizes {
    let e = &t.exps[0];
    PacketSizes {
        payload: e.payload,
        data_overhead: e.data_overhead,
        ack_bytes: e.ack_bytes,
        ack_interval: e.ack_interval,
        clock_ps: e.clock_ps.into(),
    }
}

/// Bytes of a message on a link, headers included.
pub(super) fn wire_bytes(t: &Tables, bytes: u64) -> u64 {
    let e = &t.exps[0];
    bytes + bytes.div_ceil(u64::from(e.payload)).max(1) * u64::from(e.data_overhead)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Departures of packets from a line of links, each of which takes one packet after the other; `ready`: when each is there.
    fn line(mut ready: Vec<u64>, hops: &[Hop], wire: impl Fn(usize) -> u32) -> Vec<u64> {
        for &(rate, delay) in hops {
            let mut free = 0;
            for (k, there) in ready.iter_mut().enumerate() {
                free = free.max(*there) + tx_ps(wire(k), rate, 1);
                *there = free + delay;
            }
        }
        ready
    }

    #[test]
    fn a_message_alone_takes_what_its_packets_take_one_by_one() {
        let rates = [10, 25, 100, 400].map(|g| g * 1_000_000_000);
        let mut draw = 12345u64;
        let mut next = |n: u64| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (draw >> 33) % n
        };
        for case in 0..2000 {
            let mut hops = |n: u64| -> Vec<Hop> { (0..n).map(|_| (rates[next(4) as usize], 1 + next(5000))).collect() };
            let (data, back) = (hops(1 + case % 5), hops(1 + case % 4));
            let payload = 1 + next(2000) as u32;
            let sizes = PacketSizes { payload, data_overhead: 48, ack_bytes: 60, ack_interval: 1, clock_ps: 1 };
            let bytes = 1 + next(40 * u64::from(payload));
            let packets = bytes.div_ceil(payload.into()) as usize;
            let last = (bytes - (packets as u64 - 1) * u64::from(payload)) as u32;
            let wire = |k: usize| if k + 1 == packets { last + 48 } else { payload + 48 };
            let arrived = line(vec![0; packets], &data, wire);
            let acked = line(arrived.clone(), &back, |_| 60);
            let found = sizes.alone(&data, &back, bytes);
            assert_eq!(
                Some(&found.arrived_ps),
                arrived.last(),
                "case {case}: {bytes} bytes in {payload} over {data:?}"
            );
            assert_eq!(Some(&found.acked_ps), acked.last(), "case {case}: back over {back:?}");
        }
    }

    #[test]
    fn an_acknowledgement_answers_as_many_packets_as_its_interval_says() {
        let sizes = |interval| PacketSizes {
            payload: 1000,
            data_overhead: 48,
            ack_bytes: 60,
            ack_interval: interval,
            clock_ps: 1,
        };
        let answers_of = |interval, packets| {
            let sizes = sizes(interval);
            let (n, answered) = sizes.answers(packets);
            (n, (1..n).map(answered).collect::<Vec<u64>>())
        };
        assert_eq!(answers_of(1, 4), (4, vec![1, 2, 3]));
        assert_eq!(answers_of(2000, 6), (3, vec![2, 4]), "packets 2 and 4, then the last");
        assert_eq!(answers_of(2500, 7), (3, vec![3, 5]));
        assert_eq!(answers_of(100_000, 7), (1, vec![]), "the last packet alone");
    }
}
