//! Switches that cut through.

use hyperfold_network::topology::ArcIdx;

use super::Sim;
use super::arith::tx;
use super::port::Item;

impl Sim<'_> {
    /// How long from the beginning of its transmission on `arc` until the far end may handle `item`, without the delay, if that is before its last bit is there.
    pub(super) fn header_time(&self, arc: ArcIdx, item: &Item) -> Option<u64> {
        let header = self.case.transport.cut_through_bytes;
        let Item::Packet(packet) = item else { return None };
        if header == 0 || packet.wire <= header || self.leads_to_host(arc) {
            return None;
        }
        let (came_by, goes_by) = (&self.ports[arc as usize], &self.ports[self.next_arc(packet) as usize]);
        (goes_by.rate_bps <= came_by.rate_bps).then(|| tx(header, came_by.rate_bps, self.case.transport.clock_ps))
    }
}
