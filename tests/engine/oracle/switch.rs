//! A switch: shared buffer, pause frames, marking, telemetry, and its egress queues.

use hyperfold_network::topology::{ArcIdx, NodeIdx, NodeKind};

use super::arith::{PS_PER_S, hash32};
use super::classes::{is_lossless, n_classes};
use super::port::{self, Frame, Hop, INT_HOPS, Item, Kind, PAUSE_BYTES, Packet};
use super::{Case, Sim};

/// Accounting of one class at one in-port.
#[derive(Clone, Debug)]
struct Ingress {
    arc: ArcIdx,
    class: usize,
    /// Without, it has a share of the buffer and no more.
    lossless: bool,
    bytes: u64,
    headroom_used: u64,
    headroom: u64,
    shift: u32,
    /// This port has paused the class at its peer.
    has_paused: bool,
}

/// Memory management of one switch.
#[derive(Clone, Debug, Default)]
pub struct Mmu {
    ingress: Vec<Ingress>,
    reserve: u64,
    /// Buffer less all headrooms and reserves; negative where the buffer is too small for them.
    pool: i128,
    /// Sum over in-ports and classes of what they hold beyond their reserve.
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
            .flat_map(|arc| (0..n_classes(case)).map(move |class| (arc, class)))
            .map(|(arc, class)| {
                let (rate_in, rate_out) = (port::rate(net, arc ^ 1) as u128, port::lowest_rate(case, arc) as u128);
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
                let lossless = is_lossless(case, class);
                // Frames about other classes may leave before.
                let others = PAUSE_BYTES as u128 * (t.classes.len() as u128).saturating_sub(1);
                let headroom = if lossless { (headroom + others) as u64 } else { 0 };
                Ingress { arc, class, lossless, bytes: 0, headroom_used: 0, headroom, shift, has_paused: false }
            })
            .collect();
        let reserve = t.reserve_bytes as u64;
        let buffer = t.tier_buffers.map_or(t.buffer_bytes, |b| match tiers[node] {
            1 => b.leaf,
            tier if Some(&tier) == tiers.iter().max() => b.spine,
            _ => b.agg,
        });
        let taken: i128 = ingress.iter().map(|i| (i.headroom + reserve) as i128).sum();
        Mmu { ingress, reserve, pool: buffer as i128 - taken, shared: 0 }
    };
    (0..net.nodes.len()).map(mmu).collect()
}

impl Mmu {
    fn index(&self, arc: ArcIdx, class: usize) -> usize {
        let is_it = |i: &Ingress| i.arc == arc && i.class == class;
        self.ingress.iter().position(is_it).expect("packets come in by packet links of this switch")
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
        if !port.lossless {
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
        let port = &self.ingress[i];
        port.lossless && !port.has_paused && (port.headroom_used > 0 || self.shared_of(i) >= self.threshold(i))
    }

    fn may_resume(&self, i: usize, offset: u64) -> bool {
        let shared = self.shared_of(i);
        self.ingress[i].has_paused
            && self.ingress[i].headroom_used == 0
            && (shared == 0 || shared + offset <= self.threshold(i))
    }

    /// In-port `arc` has not paused its peer.
    fn forget_pause(&mut self, arc: ArcIdx) {
        for port in self.ingress.iter_mut().filter(|i| i.arc == arc) {
            port.has_paused = false;
        }
    }

    /// Bytes held, headroom included.
    pub fn held(&self) -> u64 {
        self.ingress.iter().map(|i| i.bytes + i.headroom_used).sum()
    }
}

impl Sim<'_> {
    pub(super) fn node_of(&self, arc: ArcIdx) -> NodeIdx {
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
        if let Some(limit) = self.case.transport.port_queue_for(self.ports[egress as usize].first_rate_bps) {
            self.join_own_queue(egress, packet, limit);
            return;
        }
        let class = self.class_of(packet.flow);
        let mmu = &mut self.mmus[node];
        let i = mmu.index(in_port, class);
        let x = packet.wire as u64;
        let (is_data, lossless) = (packet.kind == Kind::Data, mmu.ingress[i].lossless);
        if self.may_drop_early(class) && is_data && self.draw_drop(egress, class) {
            self.drops += 1;
            self.early_drops += 1;
            return;
        }
        let mmu = &mut self.mmus[node];
        if !mmu.admits(i, x) {
            self.drops += 1;
            self.class_counts.drops[class] += 1;
            self.class_counts.lossless_data_drops += u64::from(is_data && lossless);
            return;
        }
        mmu.charge(i, x);
        if mmu.must_pause(i) {
            mmu.ingress[i].has_paused = true;
            self.ports[in_port as usize].frames.push_back(Frame { class, pause: true });
            self.kick(in_port);
        }
        let port = &mut self.ports[egress as usize];
        port.queues[class].fifo.push_back(packet);
        port.queues[class].bytes += x;
        self.max_queue_bytes = self.max_queue_bytes.max(port.queue_bytes());
        self.kick(egress);
    }

    /// The port is idle: sends what it has.
    pub(super) fn kick_switch_port(&mut self, arc: ArcIdx) {
        if self.case.transport.port_queue_per_100g > 0 {
            self.send_from_own_queue(arc);
            return;
        }
        let port = &mut self.ports[arc as usize];
        if let Some(frame) = port.frames.pop_front() {
            self.transmit(arc, Item::Pause(frame));
            return;
        }
        let candidates = port.queues.iter().map(|queue| !queue.is_held() && !queue.fifo.is_empty()).collect();
        let Some(class) = self.choose(arc, candidates) else { return };
        let port = &mut self.ports[arc as usize];
        let silenced = port.queues.iter().any(|queue| queue.is_held() && !queue.fifo.is_empty());
        self.class_counts.sent_beside_paused += u64::from(silenced);
        let mut packet = port.queues[class].fifo.pop_front().expect("the class has a packet");
        // Busy from here on: the resume test below may kick another port, and must not start this one.
        port.busy = true;
        port.queues[class].bytes -= packet.wire as u64;
        port.turns.pay(class, packet.wire);
        let node = self.node_of(arc) as usize;
        let i = self.mmus[node].index(packet.in_port, class);
        self.mmus[node].release(i, packet.wire as u64);
        if self.may_drop_early(class) {
            // Nothing is marked, but the average goes on.
            self.queue_for_marking(arc, class);
        } else if self.draw_mark(arc, class) && packet.kind == Kind::Data {
            packet.marked = true;
            self.ecn_marks += 1;
        }
        if self.mmus[node].may_resume(i, self.case.transport.resume_offset_bytes as u64) {
            self.mmus[node].ingress[i].has_paused = false;
            self.ports[packet.in_port as usize].frames.push_back(Frame { class, pause: false });
            self.kick(packet.in_port);
        }
        if packet.kind == Kind::Data {
            self.record(arc, &mut packet);
        }
        self.transmit(arc, Item::Packet(packet));
    }

    /// WRED drops data of the class, so that nothing of it is marked.
    fn may_drop_early(&self, class: usize) -> bool {
        let t = &self.case.transport;
        t.wred_drops && t.ecn && !is_lossless(self.case, class)
    }

    /// The test of WRED with the queue of the class as a packet arrives; a draw is made only on the slope.
    fn draw_drop(&mut self, arc: ArcIdx, class: usize) -> bool {
        let (q, ecn) = (self.queue_for_drops(arc, class), self.ports[arc as usize].ecn);
        !self.never_marks(arc)
            && q > ecn.kmin_bytes
            && (q > ecn.kmax_bytes
                || u64::from(self.draw(arc)) < ecn.pmax_q32 * (q - ecn.kmin_bytes) / (ecn.kmax_bytes - ecn.kmin_bytes))
    }

    /// The marking test with the queue of the class as it is now; a draw is made only on the slope.
    pub(super) fn draw_mark(&mut self, arc: ArcIdx, class: usize) -> bool {
        if !self.case.transport.ecn || self.never_marks(arc) {
            return false;
        }
        let q = self.queue_for_marking(arc, class);
        let ecn = self.ports[arc as usize].ecn;
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
        // With classes a packet is told of its own class alone.
        let (bytes, sent) = match self.case.transport.classes.is_empty() {
            true => (port.queue_bytes(), port.tx_bytes),
            false => {
                let own = &port.queues[self.class_of(packet.flow)];
                (own.bytes, own.sent)
            }
        };
        let queued = bytes + PAUSE_BYTES as u64 * port.frames.len() as u64;
        packet.int.hops[packet.int.n] = Hop {
            time: self.now / 1000 % (1 << 24),
            tx: sent / (128 * multi) % (1 << 20),
            q: (queued / (80 * multi)).min((1 << 17) - 1),
            rate_bps: port.rate_bps,
        };
        packet.int.n += 1;
    }
}
