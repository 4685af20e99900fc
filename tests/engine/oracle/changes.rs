//! Links that fail and come back, the paths that flows take meanwhile, rates that change, and packets that get lost at random.

use std::collections::BTreeSet;

use hyperfold_network::changes::{NetworkChange, TimedChange};
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::ArcIdx;

use super::arith::hash32;
use super::cc::CcState;
use super::port::{Item, Kind, Packet};
use super::{Case, Lineage, Sim};

/// Paths of one direction of a flow. Packets remember theirs by number, so none is ever forgotten.
#[derive(Clone, Debug, Default)]
struct Direction {
    all: Vec<Vec<ArcIdx>>,
    /// Number of the first path of each set of paths that the flow has had.
    starts: Vec<usize>,
    /// Number of the first path that new packets take; so are all after it.
    first: usize,
}

impl Direction {
    fn replace(&mut self, paths: &[Vec<ArcIdx>]) {
        self.first = self.all.len();
        self.starts.push(self.first);
        self.all.extend_from_slice(paths);
    }
}

/// The paths of a flow, those that it had before included.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    data: Direction,
    ack: Direction,
}

impl Routes {
    pub fn new(paths: &FlowPaths) -> Self {
        let mut routes = Routes::default();
        routes.replace(paths);
        routes
    }

    /// Packets that are made from now on take `paths`.
    fn replace(&mut self, paths: &FlowPaths) {
        self.data.replace(&paths.data);
        self.ack.replace(&paths.ack);
    }

    fn direction(&self, kind: Kind) -> &Direction {
        if kind == Kind::Data { &self.data } else { &self.ack }
    }

    /// Among how many paths a packet that is made now chooses.
    pub fn count(&self, kind: Kind) -> u32 {
        let direction = self.direction(kind);
        (direction.all.len() - direction.first) as u32
    }

    /// Number, for good, of the path that a packet made now knows as `choice`.
    pub fn number(&self, kind: Kind, choice: u32) -> u32 {
        self.direction(kind).first as u32 + choice
    }

    /// Where data on path `number` can go on after `hop` arcs: each next arc with the first path that leads there, among those that the flow had when the packet
    /// was made and that are the same up to there.
    pub fn ways_on(&self, number: u32, hop: usize) -> Vec<Way> {
        let direction = &self.data;
        let known_then = direction.starts.iter().rev().find(|&&start| start <= number as usize);
        let start = *known_then.expect("paths come in sets");
        let end = direction.starts.iter().copied().find(|&later| later > start).unwrap_or(direction.all.len());
        let so_far = &direction.all[number as usize][..hop];
        let mut ways: Vec<Way> = Vec::new();
        for (path, number) in direction.all[start..end].iter().zip(start as u32..) {
            if !path.starts_with(so_far) {
                continue;
            }
            match ways.iter_mut().find(|way| way.arc == path[hop]) {
                Some(way) => way.paths.push(number),
                None => ways.push(Way { arc: path[hop], path: number, paths: vec![number] }),
            }
        }
        ways
    }

    /// The arcs of the path with this number.
    pub fn path(&self, kind: Kind, number: u32) -> &[ArcIdx] {
        &self.direction(kind).all[number as usize]
    }
}

/// An arc by which data goes on.
#[derive(Clone, Debug)]
pub struct Way {
    pub arc: ArcIdx,
    /// Number of the first path that takes it.
    pub path: u32,
    /// Numbers of the paths that take it.
    pub paths: Vec<u32>,
}

/// What is left of an experiment's changes.
pub struct Changes<'a> {
    left: &'a [TimedChange],
}

impl<'a> Changes<'a> {
    pub fn new(case: &'a Case) -> Self {
        assert!(case.changes.is_sorted_by_key(|c| c.time_ps), "changes are given in the order of time");
        Changes { left: &case.changes }
    }

    pub fn next_time(&self) -> Option<u64> {
        self.left.first().map(|c| c.time_ps)
    }

    /// The next change, if its time is `t`.
    fn take(&mut self, t: u64) -> Option<&'a NetworkChange> {
        let (next, left) = self.left.split_first().filter(|(next, _)| next.time_ps == t)?;
        self.left = left;
        Some(&next.change)
    }
}

impl Sim<'_> {
    /// The changes of time `t` happen, before every event of that time.
    pub(super) fn change(&mut self, t: u64) {
        self.now = t;
        self.lineage = Lineage::periodic(u32::MAX);
        // By number of the port in the experiment.
        let mut to_kick: BTreeSet<(u32, ArcIdx)> = BTreeSet::new();
        while let Some(change) = self.changes.take(t) {
            match change {
                NetworkChange::LinkDown(link) => {
                    for arc in [2 * link, 2 * link + 1] {
                        self.go_down(arc);
                        let port = &self.ports[arc as usize];
                        if port.is_switch && port.queue_bytes() > 0 {
                            to_kick.insert((port.number, arc));
                        }
                    }
                }
                NetworkChange::LinkUp(link) => {
                    for arc in [2 * link, 2 * link + 1] {
                        self.come_up(arc);
                    }
                }
                NetworkChange::NewPaths { flow, paths } => {
                    self.has_sending_nic(*flow, paths.data[0][0]);
                    self.routes[*flow].replace(paths);
                    self.senders[*flow].has_paths(self.case, *flow, &paths.data);
                }
                NetworkChange::MovePort { home, place } => self.tasks.are_at(*home, *place),
                NetworkChange::Rate { arc, rate_bps } => self.has_rate(*arc, *rate_bps),
                NetworkChange::Loss { arc, share_q32 } => self.ports[*arc as usize].loss_q32 = *share_q32,
            }
        }
        for (_, arc) in to_kick {
            // A port that is busy is not concerned.
            self.kick(arc);
        }
    }

    /// What is on the arc's wire is lost, and the port that sends on it forgets about pauses.
    fn go_down(&mut self, arc: ArcIdx) {
        let port = &mut self.ports[arc as usize];
        assert!(!port.down, "arc {arc} fails twice");
        port.down = true;
        for queue in &mut port.queues {
            queue.resume(self.now);
            queue.watchdog_acts = false;
        }
        port.frames.clear();
        let on_wire = std::mem::take(&mut port.wire);
        // Their arrivals are in the heap still.
        port.outages += 1;
        for item in on_wire {
            self.lose(arc, &item);
        }
        if self.ports[arc as usize].is_switch {
            self.forget_pause(arc);
        }
    }

    fn come_up(&mut self, arc: ArcIdx) {
        let port = &mut self.ports[arc as usize];
        assert!(port.down, "arc {arc} comes up, but was not down");
        port.down = false;
        if !port.is_switch {
            self.arm(arc, self.now);
        }
    }

    /// The arc has this rate from now on. Queue pairs of a NIC that nothing else limited follow it, and none is faster.
    fn has_rate(&mut self, arc: ArcIdx, rate_bps: u64) {
        let old = std::mem::replace(&mut self.ports[arc as usize].rate_bps, rate_bps);
        if self.ports[arc as usize].is_switch {
            return;
        }
        for flow in 0..self.senders.len() {
            if self.senders[flow].nic == arc {
                self.follow_rate(flow, old, rate_bps);
            }
        }
    }

    /// The NIC of the flow has `rate_bps` now, and had `old` before.
    fn follow_rate(&mut self, flow: usize, old: u64, rate_bps: u64) {
        let followed = |rate: u64| if rate == old || rate > rate_bps { rate_bps } else { rate };
        let sender = &mut self.senders[flow];
        sender.rate_max = rate_bps;
        if !sender.is_created {
            sender.rate = rate_bps;
            sender.cc = CcState::new(&self.case.transport, rate_bps, sender.rtt_ps);
            return;
        }
        sender.cc.follow(rate_bps, followed);
        let rate = followed(sender.rate);
        match sender.cc {
            CcState::Hpcc(_) if sender.last_wire > 0 => self.change_rate(flow as u32, rate),
            _ => sender.rate = rate,
        }
    }

    /// The flow sends from this NIC from now on, where it is served after all others.
    fn has_sending_nic(&mut self, flow: usize, nic: ArcIdx) {
        let old = std::mem::replace(&mut self.senders[flow].nic, nic);
        if old == nic {
            return;
        }
        let (old_rate, rate) = (self.ports[old as usize].rate_bps, self.ports[nic as usize].rate_bps);
        self.follow_rate(flow, old_rate, rate);
        let order = &mut self.nics[old as usize].order;
        if let Some(place) = order.iter().position(|&queued| queued as usize == flow) {
            order.remove(place);
            self.nics[nic as usize].order.push(flow as u32);
            self.arm(old, self.now);
            self.arm(nic, self.now);
        }
    }

    /// The NIC where the end of the flow is to which such a packet goes. Those that arrive elsewhere are handed over.
    pub(super) fn home(&self, packet: &Packet) -> ArcIdx {
        let flow = packet.flow as usize;
        match packet.kind {
            Kind::Data => self.routes[flow].path(Kind::Ack, self.routes[flow].number(Kind::Ack, 0))[0],
            _ => self.senders[flow].nic,
        }
    }

    /// Whether a packet that leaves `arc` completely at `done` gets lost.
    pub(super) fn loses(&self, arc: ArcIdx, done: u64) -> bool {
        let share = self.ports[arc as usize].loss_q32;
        share > 0 && hash32(!arc, done as u32, (done >> 32) as u32, self.case.transport.seed) < share
    }

    /// What was sent on `arc` never arrives: a drop of the switch port that sent it, or to which the NIC that sent it is linked.
    pub(super) fn lose(&mut self, arc: ArcIdx, item: &Item) {
        if let Item::Packet(_) = item {
            let port = if self.ports[arc as usize].is_switch { arc } else { arc ^ 1 };
            self.ports[port as usize].lost += 1;
            self.drops += 1;
        }
    }
}
