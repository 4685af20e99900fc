//! A partition: rows that active flows connect, and their common clock.

use crate::columns::{NEVER, Tables, qp};

/// A queue pair of a partition, or one that is finished but still in the turn of one of its NICs.
#[derive(Clone, Debug)]
pub struct Member {
    pub flow: u32,
    /// Its path belongs to the partition.
    pub routed: bool,
}

/// Rows that step together. NICs, ports and members keep their places while it lives: these are its local numbers.
#[derive(Clone, Debug)]
pub struct Part {
    /// When something happens next.
    pub next: u64,
    /// The lowest of its NICs, by which it is found.
    pub first: u32,
    pub nics: Vec<u32>,
    /// Switch ports whose transmitters are its own.
    pub ports: Vec<u32>,
    /// Switch ports that receive from its NICs and ports.
    pub ends: Vec<u32>,
    pub members: Vec<Member>,
}

impl Part {
    pub fn new() -> Part {
        Part { next: NEVER, first: u32::MAX, nics: Vec::new(), ports: Vec::new(), ends: Vec::new(), members: Vec::new() }
    }

    /// The next instant at which anything happens, and whether the network part of it is at rest: nothing queued, travelling or unacknowledged.
    pub fn look(&self, t: &Tables) -> (u64, bool) {
        let nics = t.exps[0].nic_len;
        let own = t.exps[0].end_len;
        let mut packets = NEVER;
        for &i in &self.ends {
            packets = packets.min(t.clocks[(nics + i) as usize]);
        }
        for &p in &self.ports {
            packets = packets.min(t.clocks[(own + nics + p) as usize]);
        }
        let mut next = packets;
        for &n in &self.nics {
            let row = &t.nics[n as usize];
            packets = packets.min(t.clocks[n as usize]).min(row.busy_until).min(row.timer);
            next = next.min(packets).min(t.clocks[(own + n) as usize]);
        }
        (next, packets == NEVER && self.members.iter().all(|m| is_idle(t, m.flow)))
    }
}

/// Whether nothing of queue pair `f` is outstanding.
fn is_idle(t: &Tables, f: u32) -> bool {
    let tx = &t.flow_tx[f as usize];
    tx.flags & qp::CREATED == 0 || tx.snd_una >= tx.size
}
