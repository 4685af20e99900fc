//! The watchdog of pauses: classes of switch ports that send although their peer asks them to be silent.

use hyperfold_network::topology::ArcIdx;

use super::port::{ClassQueue, Item};
use super::{Lineage, Sim};

/// What the watchdog has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchdogCounts {
    /// Times that it began to act.
    pub starts: u64,
    /// Times that it ended because nobody asked the class to be silent any more.
    pub ends: u64,
    /// Packets that it dropped.
    pub drops: u64,
    /// Pause frames that arrived while it acted.
    pub overruled: u64,
    /// Times that it began to act when nothing else was left to happen.
    pub last_hopes: u64,
}

impl ClassQueue {
    /// Whether its peer holds it: it asks, and no watchdog overrules that.
    pub fn is_held(&self) -> bool {
        self.paused && !self.watchdog_acts
    }
}

impl Sim<'_> {
    /// When the watchdog begins to act or ends next.
    pub(super) fn watchdog_time(&self) -> Option<u64> {
        let all = self.ports.iter().flat_map(|port| &port.queues);
        all.filter_map(|queue| self.deadline(queue)).min()
    }

    fn deadline(&self, queue: &ClassQueue) -> Option<u64> {
        let watchdog = self.case.transport.watchdog?;
        match (queue.paused, queue.watchdog_acts) {
            (true, false) => Some(queue.last_frame_ps? + watchdog.detect_ps),
            (false, true) => Some(queue.last_frame_ps? + watchdog.restore_ps),
            _ => None,
        }
    }

    /// Whether a class of a switch port waits for the watchdog with something to send.
    pub(super) fn waits_for_watchdog(&self) -> bool {
        let mut queues = self.ports.iter().filter(|port| port.is_switch).flat_map(|port| &port.queues);
        self.case.transport.watchdog.is_some() && queues.any(|queue| queue.is_held() && !queue.fifo.is_empty())
    }

    /// Everything that the watchdog begins or ends at `t`.
    pub(super) fn watchdog(&mut self, t: u64, nothing_else: bool) {
        self.now = t;
        self.lineage = Lineage::periodic(u32::MAX);
        let mut to_kick: Vec<(u32, ArcIdx)> = Vec::new();
        for arc in 0..self.ports.len() {
            for class in 0..self.ports[arc].queues.len() {
                if self.deadline(&self.ports[arc].queues[class]) != Some(t) {
                    continue;
                }
                let port = &mut self.ports[arc];
                let queue = &mut port.queues[class];
                queue.watchdog_acts = !queue.watchdog_acts;
                let begins = queue.watchdog_acts;
                self.watchdog_counts.starts += u64::from(begins);
                self.watchdog_counts.last_hopes += u64::from(begins && nothing_else);
                self.watchdog_counts.ends += u64::from(!begins);
                if begins && !queue.fifo.is_empty() {
                    to_kick.push((port.number, arc as ArcIdx));
                }
            }
        }
        to_kick.sort_unstable();
        to_kick.dedup();
        for (_, arc) in to_kick {
            self.kick(arc);
        }
    }

    /// Whether the watchdog drops what is sent on `arc` now.
    pub(super) fn watchdog_drops(&self, arc: ArcIdx, item: &Item) -> bool {
        let Item::Packet(packet) = item else { return false };
        let acts = self.ports[arc as usize].queues[self.class_of(packet.flow)].watchdog_acts;
        acts && self.case.transport.watchdog.is_some_and(|watchdog| watchdog.drops)
    }
}
