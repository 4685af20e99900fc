//! What switches tell each other of their queues, for the choices of adaptive routing.

use super::Sim;
use super::port::Packet;

/// What was reported last.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    next_ps: u64,
    /// By arc and class: whether the link is down, and the bytes that wait. Empty before the first report.
    queues: Vec<Vec<(bool, u64)>>,
}

impl Sim<'_> {
    /// Makes the reports that are due up to `t`. Nothing has happened between the first of them and `t`.
    pub(super) fn report_until(&mut self, t: u64) {
        let period_ps = self.case.transport.remote_queues_ps;
        if period_ps == 0 || self.reports.next_ps > t {
            return;
        }
        let queues = |port: &super::Port| port.queues.iter().map(|queue| (port.down, queue.bytes)).collect();
        self.reports =
            Reports { next_ps: t - t % period_ps + period_ps, queues: self.ports.iter().map(queues).collect() };
    }

    /// What waits at the switch after the next one for a packet that goes on by path `number`: whether all links there are down, and the bytes of the shortest queue.
    pub(super) fn further_on(&self, packet: &Packet, number: u32, class: usize) -> (bool, u64) {
        let hop = packet.hop as usize + 1;
        let routes = &self.routes[packet.flow as usize];
        if self.reports.queues.is_empty() || routes.path(packet.kind, number).len() <= hop {
            return (false, 0);
        }
        let ways = routes.ways_on(number, hop);
        ways.iter().map(|way| self.reports.queues[way.arc as usize][class]).min().unwrap_or_default()
    }
}
