//! Averages of queues, by which switch ports mark.

use hyperfold_network::topology::ArcIdx;

use super::Sim;
use super::arith::tx;

/// The average of one class of a port.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    /// In units of 2^-n bytes.
    scaled: u64,
    /// When the last test was, if it left the queue empty.
    empty_since: Option<u64>,
}

impl Default for Average {
    fn default() -> Self {
        Average { scaled: 0, empty_since: Some(0) }
    }
}

impl Sim<'_> {
    /// What WRED takes for the queue of the class as a packet arrives: the average as it was left, and less if the queue has been empty since.
    pub(super) fn queue_for_drops(&self, arc: ArcIdx, class: usize) -> u64 {
        let t = &self.case.transport;
        let n = t.ecn_average_weight;
        let port = &self.ports[arc as usize];
        let (queue, packet_ps) = (&port.queues[class], tx(t.payload + t.data_overhead, port.rate_bps, t.clock_ps));
        if n == 0 {
            return queue.bytes;
        }
        let idle_times = queue.average.empty_since.map_or(0, |since| (self.now - since) / (packet_ps * (1 << n)));
        (queue.average.scaled >> idle_times.min(63)) / (1 << n)
    }

    /// What marking takes for the queue of the class: the average with the queue as it is now.
    pub(super) fn queue_for_marking(&mut self, arc: ArcIdx, class: usize) -> u64 {
        let t = &self.case.transport;
        let n = t.ecn_average_weight;
        let port = &mut self.ports[arc as usize];
        let packet_ps = tx(t.payload + t.data_overhead, port.rate_bps, t.clock_ps);
        let queue = &mut port.queues[class];
        if n == 0 {
            return queue.bytes;
        }
        let average = &mut queue.average;
        let idle_times = average.empty_since.map_or(0, |since| (self.now - since) / (packet_ps * (1 << n)));
        self.halved += u64::from(idle_times > 0 && average.scaled > 0);
        for _ in 0..idle_times.min(64) {
            average.scaled /= 2;
        }
        average.scaled = average.scaled + queue.bytes - average.scaled / (1 << n);
        average.empty_since = (queue.bytes == 0).then_some(self.now);
        average.scaled / (1 << n)
    }
}
