//! A switch: shared buffer, pause frames, marking, telemetry, and its egress queues.

use hyperfold_network::topology::{ArcIdx, NodeIdx, NodeKind};

use super::arith::{PS_PER_S, hash32};
use super::port::{self, Hop, INT_HOPS, Item, Kind, PAUSE_BYTES, Packet};
use super::{Case, Sim};

/// Accounting of one in-port.
#[derive(Clone, Debug)]
struct Ingress {
    arc: ArcIdx,
    bytes: u64,
    headroom_used: u64,
    headroom: u64,
    shift: u32,
    /// This port has paused its peer.
    has_paused: bool,
}

/// Memory management of one switch.
#[derive(Clone, Debug, Default)]
pub struct Mmu {
    ingress: Vec<Ingress>,
    /// Without, each in-port has a share of the buffer and no more.
    pfc: bool,
    reserve: u64,
    /// Buffer less all headrooms and reserves; negative where the buffer is too small for them.
    pool: i128,
    /// Sum over in-ports of what they hold beyond their reserve.
    shared: u64,
}

/// By node; empty for hosts.
pub fn mmus(case: &Case) -> Vec<Mmu> {
    let net = &case.network;
    let t = &case.transport;
    let out = net.out_arcs();
    let packet_arcs = |node: usize| out[node].iter().copied().filter(|&a| net.is_packet_link(net.arc_link(a)));
    let host_rate = net
        .nodes
        .iter()
        .position(|n| n.kind == NodeKind::Host)
        .and_then(|host| packet_arcs(host).next())
        .map_or(0, |arc| net.arc_link(arc).rate_bps);
    let tiers = net.tiers();
    let mmu = |node: usize| -> Mmu {
        if net.nodes[node].kind != NodeKind::Switch {
            return Mmu::default();
        }
        let ingress: Vec<Ingress> = packet_arcs(node)
            .map(|arc| {
                let (rate_in, rate_out) = (port::rate(net, arc ^ 1) as u128, port::rate(net, arc) as u128);
                let (mut rate, mut shift) = (rate_in as u64, t.pfc_alpha_shift);
                while rate > host_rate && shift > 0 {
                    rate /= 2;
                    shift -= 1;
                }
                let in_flight = rate_in * net.arc_link(arc).delay_ps as u128;
                let largest = (t.payload + t.data_overhead).max(t.ack_bytes) as u128;
                // While a packet and the pause frame leave slowly, more than as much comes in.
                let leaving = largest + PAUSE_BYTES as u128;
                let more = (leaving * rate_in).div_ceil(rate_out).saturating_sub(leaving);
                let headroom = (3 * in_flight / 8 / PS_PER_S).max(2 * in_flight / 8 / PS_PER_S + 3 * largest + more);
                // Without pauses nothing comes in after one.
                let headroom = if t.pfc { headroom as u64 } else { 0 };
                Ingress { arc, bytes: 0, headroom_used: 0, headroom, shift, has_paused: false }
            })
            .collect();
        let reserve = t.reserve_bytes as u64;
        let buffer = t.tier_buffers.map_or(t.buffer_bytes, |b| match tiers[node] {
            1 => b.leaf,
            tier if Some(&tier) == tiers.iter().max() => b.spine,
            _ => b.agg,
        });
        let taken: i128 = ingress.iter().map(|i| (i.headroom + reserve) as i128).sum();
        Mmu { ingress, pfc: t.pfc, reserve, pool: buffer as i128 - taken, shared: 0 }
    };
    (0..net.nodes.len()).map(mmu).collect()
}

impl Mmu {
    fn index(&self, arc: ArcIdx) -> usize {
        self.ingress.iter().position(|i| i.arc == arc).expect("packets come in by packet links of this switch")
    }

    fn threshold(&self, i: usize) -> u64 {
        ((self.pool - self.shared as i128).max(0) >> self.ingress[i].shift) as u64
    }

    fn shared_of(&self, i: usize) -> u64 {
        self.ingress[i].bytes.saturating_sub(self.reserve)
    }

    fn set_bytes(&mut self, i: usize, bytes: u64) {
        self.shared -= self.shared_of(i);
        self.ingress[i].bytes = bytes;
        self.shared += self.shared_of(i);
    }

    fn admits(&self, i: usize, x: u64) -> bool {
        let port = &self.ingress[i];
        if !self.pfc {
            let n = port.bytes + x;
            return n <= self.reserve || n - self.reserve <= self.threshold(i);
        }
        !(x + port.headroom_used > port.headroom && x + self.shared > self.threshold(i))
    }

    fn charge(&mut self, i: usize, x: u64) {
        let n = self.ingress[i].bytes + x;
        if n > self.reserve && n - self.reserve > self.threshold(i) {
            self.ingress[i].headroom_used += x;
        } else {
            self.set_bytes(i, n);
        }
    }

    fn release(&mut self, i: usize, x: u64) {
        let h = x.min(self.ingress[i].headroom_used);
        self.ingress[i].headroom_used -= h;
        self.set_bytes(i, self.ingress[i].bytes - (x - h));
    }

    fn must_pause(&self, i: usize) -> bool {
        !self.ingress[i].has_paused && (self.ingress[i].headroom_used > 0 || self.shared_of(i) >= self.threshold(i))
    }

    fn may_resume(&self, i: usize, offset: u64) -> bool {
        let shared = self.shared_of(i);
        self.ingress[i].has_paused
            && self.ingress[i].headroom_used == 0
            && (shared == 0 || shared + offset <= self.threshold(i))
    }

    /// In-port `arc` has not paused its peer.
    fn forget_pause(&mut self, arc: ArcIdx) {
        let i = self.index(arc);
        self.ingress[i].has_paused = false;
    }

    /// Bytes held, headroom included.
    pub fn held(&self) -> u64 {
        self.ingress.iter().map(|i| i.bytes + i.headroom_used).sum()
    }
}

impl Sim<'_> {
    fn node_of(&self, arc: ArcIdx) -> NodeIdx {
        self.case.network.arc_from(arc)
    }

    /// The port's peer knows nothing of a pause any more.
    pub(super) fn forget_pause(&mut self, arc: ArcIdx) {
        let node = self.node_of(arc) as usize;
        self.mmus[node].forget_pause(arc);
    }

    /// A data packet or ACK arrived at a switch by `in_port`.
    pub(super) fn forward(&mut self, in_port: ArcIdx, mut packet: Packet) {
        packet.in_port = in_port;
        self.turn(&mut packet);
        let egress = self.next_arc(&packet);
        let node = self.node_of(in_port) as usize;
        assert_eq!(self.node_of(egress) as usize, node, "flow {}: the path is not connected", packet.flow);
        packet.hop += 1;
        if let Some(limit) = self.case.transport.port_queue_for(self.ports[egress as usize].rate_bps) {
            self.join_own_queue(egress, packet, limit);
            return;
        }
        let mmu = &mut self.mmus[node];
        let i = mmu.index(in_port);
        let x = packet.wire as u64;
        if !mmu.admits(i, x) {
            self.drops += 1;
            return;
        }
        mmu.charge(i, x);
        if self.case.transport.pfc && mmu.must_pause(i) {
            mmu.ingress[i].has_paused = true;
            self.ports[in_port as usize].frames.push_back(true);
            self.kick(in_port);
        }
        let port = &mut self.ports[egress as usize];
        port.fifo.push_back(packet);
        port.queue_bytes += x;
        self.max_queue_bytes = self.max_queue_bytes.max(port.queue_bytes);
        self.kick(egress);
    }

    /// The port is idle: sends what it has.
    pub(super) fn kick_switch_port(&mut self, arc: ArcIdx) {
        if self.case.transport.port_queue_per_100g > 0 {
            self.send_from_own_queue(arc);
            return;
        }
        let port = &mut self.ports[arc as usize];
        if let Some(pause) = port.frames.pop_front() {
            self.transmit(arc, Item::Pause(pause));
            return;
        }
        if port.paused {
            return;
        }
        let Some(mut packet) = port.fifo.pop_front() else { return };
        // Busy from here on: the resume test below may kick another port, and must not start this one.
        port.busy = true;
        port.queue_bytes -= packet.wire as u64;
        let node = self.node_of(arc) as usize;
        let i = self.mmus[node].index(packet.in_port);
        self.mmus[node].release(i, packet.wire as u64);
        if self.draw_mark(arc) && packet.kind == Kind::Data {
            packet.marked = true;
            self.ecn_marks += 1;
        }
        if self.mmus[node].may_resume(i, self.case.transport.resume_offset_bytes as u64) {
            self.mmus[node].ingress[i].has_paused = false;
            self.ports[packet.in_port as usize].frames.push_back(false);
            self.kick(packet.in_port);
        }
        if packet.kind == Kind::Data {
            self.record(arc, &mut packet);
        }
        self.transmit(arc, Item::Packet(packet));
    }

    /// The marking test with the queue as it is now; a draw is made only on the slope.
    pub(super) fn draw_mark(&mut self, arc: ArcIdx) -> bool {
        if !self.case.transport.ecn || self.never_marks(arc) {
            return false;
        }
        let port = &self.ports[arc as usize];
        let (q, ecn) = (port.queue_bytes, port.ecn);
        if q > ecn.kmax_bytes {
            return true;
        }
        if q <= ecn.kmin_bytes {
            return false;
        }
        (self.draw(arc) as u64) < ecn.pmax_q32 * (q - ecn.kmin_bytes) / (ecn.kmax_bytes - ecn.kmin_bytes)
    }

    /// The port's next random draw.
    pub(super) fn draw(&mut self, arc: ArcIdx) -> u32 {
        let port = &mut self.ports[arc as usize];
        let n = port.draws;
        port.draws += 1;
        hash32(port.number, n as u32, (n >> 32) as u32, self.case.transport.seed)
    }

    /// Telemetry: every congestion control's data packets carry it here; only HPCC reads it.
    pub(super) fn record(&self, arc: ArcIdx, packet: &mut Packet) {
        if packet.int.n == INT_HOPS {
            return;
        }
        let port = &self.ports[arc as usize];
        let multi = self.case.transport.int_multi as u64;
        let queued = port.queue_bytes + PAUSE_BYTES as u64 * port.frames.len() as u64;
        packet.int.hops[packet.int.n] = Hop {
            time: self.now / 1000 % (1 << 24),
            tx: port.tx_bytes / (128 * multi) % (1 << 20),
            q: (queued / (80 * multi)).min((1 << 17) - 1),
            rate_bps: port.rate_bps,
        };
        packet.int.n += 1;
    }
}
