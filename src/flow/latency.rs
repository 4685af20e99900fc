//! The latency of a message besides its transmission at its rate: delays of links, what switches wait for, and the path back of the acknowledgement.
//!
//! Layer: flow level. Together with the transmission at the rate of the slowest link, a message takes exactly the time that its packets take on an idle
//! network.

use hyperfold_base::units::{PS_PER_S, tx_ps};
use hyperfold_columns::{FlowIdx, NicIdx, Tables};

/// A link on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Rate in bps.
    pub rate_bps: u64,
    /// Propagation delay in ps.
    pub delay_ps: u64,
    /// Whether the switch at its far end forwards a packet once its header is there, and not only after its last bit.
    pub cuts_through: bool,
}

/// How messages are split into packets, and how these are acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct PacketSizes {
    /// The most bytes of a message in one packet.
    pub payload: u32,
    /// Header bytes of a packet.
    pub data_overhead: u32,
    /// Bytes of an acknowledgement on the wire.
    pub ack_bytes: u32,
    /// Bytes from one acknowledgement to the next. If this is at most `payload`, every packet is acknowledged.
    pub ack_interval: u64,
    /// Bytes of a packet after which a switch that cuts through forwards it; 0: none does.
    pub cut_through: u32,
    /// Transmission times are multiples of this, in ps.
    pub clock_ps: u64,
}

/// When a message that begins at 0 has arrived, and when its last acknowledgement has arrived back; ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AloneTimes {
    /// Time at which the message has arrived whole.
    pub arrived_ps: u64,
    /// Time at which its last acknowledgement has arrived back.
    pub acked_ps: u64,
}

impl PacketSizes {
    /// The links of a path, from their rates in bps and delays in ps.
    pub fn hops(&self, links: impl IntoIterator<Item = (u64, u64)>) -> Vec<Hop> {
        let mut hops: Vec<Hop> =
            links.into_iter().map(|(rate_bps, delay_ps)| Hop { rate_bps, delay_ps, cuts_through: false }).collect();
        for m in 1..hops.len() {
            hops[m - 1].cuts_through = self.cut_through > 0 && hops[m].rate_bps <= hops[m - 1].rate_bps;
        }
        hops
    }

    /// Time in ps from the beginning of a transmission over `hop` until its packet of `wire` bytes can be handled at the far end, without the delay.
    fn on_wire_ps(&self, hop: &Hop, wire: u32) -> u64 {
        let bytes = if hop.cuts_through { wire.min(self.cut_through) } else { wire };
        tx_ps(bytes, hop.rate_bps, self.clock_ps)
    }

    /// Times of a message of `bytes` on an idle network. Its packets go one after another over the links of `data`; their acknowledgements go over those of
    /// `back`.
    ///
    /// All packets except the last have equal size. So the packet before the last leaves link `m` as if the slowest link up to `m` had spaced all packets. The
    /// last packet may be shorter. From some link on it follows right after the packet before it; the link at which that makes it latest counts.
    /// Acknowledgements have equal size, so the slowest link back spaces them.
    pub fn alone(&self, data: &[Hop], back: &[Hop], bytes: u64) -> AloneTimes {
        let payload = u64::from(self.payload);
        let packets = bytes.div_ceil(payload).max(1);
        let full = self.payload + self.data_overhead;
        let last = bytes.saturating_sub((packets - 1) * payload) as u32 + self.data_overhead;
        let delays = data.iter().map(|hop| hop.delay_ps).sum::<u64>();
        let mut last_packet_ps: u64 = data.iter().map(|hop| self.on_wire_ps(hop, last)).sum();
        if packets == 1 {
            let arrived_ps = last_packet_ps + delays;
            return AloneTimes { arrived_ps, acked_ps: arrived_ps + self.one_back_ps(back) };
        }
        let (mut first, mut slowest, mut arrived_ps) = (0, 0, 0);
        for hop in data {
            let x = tx_ps(full, hop.rate_bps, self.clock_ps);
            slowest = slowest.max(x);
            arrived_ps = arrived_ps.max(first + x + (packets - 2) * slowest + last_packet_ps);
            first += self.on_wire_ps(hop, full);
            last_packet_ps -= self.on_wire_ps(hop, last);
        }
        arrived_ps += delays;
        let answer_ps = back.iter().map(|hop| tx_ps(self.ack_bytes, hop.rate_bps, self.clock_ps)).max().unwrap_or(0);
        let (answers, answered) = self.answers(packets);
        // The last acknowledgement queues behind those before it. The one that delays it most is either the first of them or the last.
        let queue_end_ps = |nth: u64| first + delays + (answered(nth) - 1) * slowest + (answers - nth) * answer_ps;
        let queued = if answers > 1 { queue_end_ps(1).max(queue_end_ps(answers - 1)) } else { 0 };
        AloneTimes { arrived_ps, acked_ps: arrived_ps.max(queued) + self.one_back_ps(back) }
    }

    /// Time in ps of one acknowledgement on its path back.
    fn one_back_ps(&self, back: &[Hop]) -> u64 {
        back.iter().map(|hop| self.on_wire_ps(hop, self.ack_bytes) + hop.delay_ps).sum()
    }

    /// Number of acknowledgements of `packets` packets, and a function that gives the packet that the nth one answers; both count from 1. The last
    /// acknowledgement answers the last packet.
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
    /// Time in ps of an acknowledgement on its path back: transmissions and delays.
    pub back_ps: u64,
    slowest_bps: u64,
}

/// Times of a message in ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Latency {
    /// Time from the end of the message's transmission to its arrival.
    pub arrival_ps: u64,
    /// Time from the message's arrival to its acknowledgement.
    pub back_ps: u64,
}

impl Path {
    /// The first path of a flow.
    pub(super) fn of(t: &Tables, flow: FlowIdx) -> Path {
        let (tx, rx, sizes) = (&t.flow_tx[flow], &t.flow_rx[flow], sizes(t));
        let links = |nic: NicIdx, first: u32, n: u32| -> Vec<Hop> {
            let nic = &t.nics[nic];
            let ports = t.paths[first as usize..(first + n) as usize].iter().map(|&port| &t.ports[port]);
            sizes.hops(std::iter::once((nic.rate, nic.delay)).chain(ports.map(|p| (p.rate, p.delay))))
        };
        let data = links(tx.nic, tx.path_first, tx.path_len);
        let back = links(rx.nic, rx.path_first, rx.path_len);
        let slowest_bps = data.iter().map(|hop| hop.rate_bps).min().unwrap_or(1);
        let back_ps = sizes.one_back_ps(&back);
        Path { data, back, back_ps, slowest_bps }
    }

    /// Latency of a message of `bytes`. `sent_ps` is the duration of its transmission without other traffic; with `None` it is that at the rate of the slowest
    /// link.
    pub(super) fn latency(&self, t: &Tables, bytes: u64, sent_ps: Option<u64>) -> Latency {
        let alone = sizes(t).alone(&self.data, &self.back, bytes);
        let bits = u128::from(wire_bytes(t, bytes)) * 8;
        let at_slowest = || (bits * u128::from(PS_PER_S)).div_ceil(u128::from(self.slowest_bps)) as u64;
        let sent_ps = sent_ps.unwrap_or_else(at_slowest);
        // If acknowledgements are the bottleneck, all data may have arrived before the flow counts as sent.
        let arrived_ps = alone.arrived_ps.max(sent_ps);
        Latency { arrival_ps: arrived_ps - sent_ps, back_ps: alone.acked_ps.saturating_sub(arrived_ps) }
    }
}

/// How an experiment's messages are split into packets.
fn sizes(t: &Tables) -> PacketSizes {
    let e = &t.exps[0];
    PacketSizes {
        payload: e.payload,
        data_overhead: e.data_overhead,
        ack_bytes: e.ack_bytes,
        ack_interval: e.ack_interval,
        cut_through: e.cut_through,
        clock_ps: e.clock_ps.into(),
    }
}

/// Bytes of a message on a link, including headers.
pub(super) fn wire_bytes(t: &Tables, bytes: u64) -> u64 {
    let e = &t.exps[0];
    bytes + bytes.div_ceil(u64::from(e.payload)).max(1) * u64::from(e.data_overhead)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times at which packets are at the end of a line of links, each of which sends one packet after another. `ready` is when each packet is there. Before
    /// the next link, which is not faster, `header` bytes of it are enough.
    fn line(mut ready: Vec<u64>, links: &[(u64, u64)], header: u32, wire: impl Fn(usize) -> u32) -> Vec<u64> {
        for (m, &(rate, delay)) in links.iter().enumerate() {
            let enough = links.get(m + 1).filter(|next| header > 0 && next.0 <= rate).map_or(u32::MAX, |_| header);
            let mut free = 0;
            for (k, there) in ready.iter_mut().enumerate() {
                let begin = free.max(*there);
                free = begin + tx_ps(wire(k), rate, 1);
                *there = begin + tx_ps(wire(k).min(enough), rate, 1) + delay;
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
            let mut links =
                |n: u64| -> Vec<(u64, u64)> { (0..n).map(|_| (rates[next(4) as usize], 1 + next(5000))).collect() };
            let (data, back) = (links(1 + case % 5), links(1 + case % 4));
            let payload = 1 + next(2000) as u32;
            let cut_through = [0, 0, 50, 64, 300][next(5) as usize];
            let sizes =
                PacketSizes { payload, data_overhead: 48, ack_bytes: 60, ack_interval: 1, cut_through, clock_ps: 1 };
            let bytes = 1 + next(40 * u64::from(payload));
            let packets = bytes.div_ceil(payload.into()) as usize;
            let last = (bytes - (packets as u64 - 1) * u64::from(payload)) as u32;
            let wire = |k: usize| if k + 1 == packets { last + 48 } else { payload + 48 };
            let arrived = line(vec![0; packets], &data, cut_through, wire);
            let acked = line(arrived.clone(), &back, cut_through, |_| 60);
            let found = sizes.alone(&sizes.hops(data.iter().copied()), &sizes.hops(back.iter().copied()), bytes);
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
            cut_through: 0,
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
