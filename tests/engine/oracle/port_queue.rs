//! Switch ports with queues of their own: a FIFO of data, before it one of control packets; what finds no space is trimmed or dropped.
//! There are no classes then.

use hyperfold_network::topology::ArcIdx;

use super::Sim;
use super::port::{Item, Kind, Packet, Trim};

/// Control packets after which data goes first.
const CONTROL_TURNS: u32 = 100;

impl Packet {
    /// ACKs, NACKs, PULLs and trimmed data.
    fn is_control(&self) -> bool {
        self.kind != Kind::Data || self.trim != Trim::Not
    }
}

impl Sim<'_> {
    /// A packet arrived that leaves by `egress`, whose queue has space for `limit` bytes of data.
    pub(super) fn join_own_queue(&mut self, egress: ArcIdx, packet: Packet, limit: u64) {
        let port = &mut self.ports[egress as usize];
        if packet.is_control() {
            port.control.push_back(packet);
        } else if port.queues[0].bytes + packet.wire as u64 <= limit {
            self.append(egress, packet);
        } else {
            self.overflow(egress, packet);
        }
        self.kick(egress);
    }

    fn append(&mut self, egress: ArcIdx, packet: Packet) {
        let port = &mut self.ports[egress as usize];
        port.queues[0].bytes += packet.wire as u64;
        port.queues[0].fifo.push_back(packet);
        self.max_queue_bytes = self.max_queue_bytes.max(port.queue_bytes());
    }

    /// Data finds no space: it or the last packet of the queue is the victim.
    fn overflow(&mut self, egress: ArcIdx, packet: Packet) {
        let has_data = !self.ports[egress as usize].queues[0].fifo.is_empty();
        let mut victim = packet;
        if has_data && !self.draw(egress).is_multiple_of(2) {
            let port = &mut self.ports[egress as usize];
            let last = port.queues[0].fifo.pop_back().expect("the queue holds data");
            port.queues[0].bytes -= last.wire as u64;
            self.append(egress, std::mem::replace(&mut victim, last));
        }
        self.drops += 1;
        if self.case.transport.trimming {
            self.trim(egress, victim);
        }
    }

    fn trim(&mut self, egress: ArcIdx, mut victim: Packet) {
        victim.trim = if self.leads_to_host(egress) { Trim::LastHop } else { Trim::Midway };
        victim.wire = self.case.transport.ack_bytes;
        victim.payload = 0;
        self.ports[egress as usize].control.push_back(victim);
    }

    /// The port is idle: sends what it has.
    pub(super) fn send_from_own_queue(&mut self, arc: ArcIdx) {
        let port = &mut self.ports[arc as usize];
        let data_first =
            port.control_turns == CONTROL_TURNS && !port.queues[0].fifo.is_empty() && !port.control.is_empty();
        if data_first {
            port.control_turns = 0;
        } else if let Some(packet) = port.control.pop_front() {
            port.control_turns = (port.control_turns + 1).min(CONTROL_TURNS);
            self.transmit(arc, Item::Packet(packet));
            return;
        }
        let Some(mut packet) = port.queues[0].fifo.pop_front() else { return };
        port.queues[0].bytes -= packet.wire as u64;
        if self.draw_mark(arc, 0) {
            packet.marked = true;
            self.ecn_marks += 1;
        }
        self.record(arc, &mut packet);
        self.transmit(arc, Item::Packet(packet));
    }
}
