//! What a steady partition falls asleep with: its state, and the rates at which its queue pairs go on.

use std::sync::Arc;

use super::canon::Form;
use super::part::Member;
use super::run::Run;
use super::stream::Stream;
use super::watch::Steady;
use crate::columns::{NEVER, Tables};

/// The first nap is as long as its window, the next, if rates were the same after it, this many times as long, and so on (our choice).
const NAP_GROWTH: u64 = 4;

/// Packets in a window that differ by no more say nothing.
const SAME: u64 = 2;
/// Bits of fraction of a rate.
pub const FRACTION: u32 = 16;

/// What a partition falls asleep with: all that decides how it goes on.
#[derive(Debug, PartialEq)]
pub struct Sleep {
    /// Its rows, to be read by [`super::state`].
    pub state: Arc<[u8]>,
    /// Rates are packets in this time, ps.
    pub window: u64,
    /// It sleeps no longer than this, ps; `NEVER`: for as long as nothing happens.
    pub until: u64,
    /// How many times in a row it had slept before and had found its rates unchanged.
    pub level: u32,
    pub paces: Vec<Pace>,
    /// Of each port: what the integral of its queue and its marks gain in a window.
    pub ports: Vec<(u64, u64)>,
}

/// How a queue pair goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Packets a window, with [`FRACTION`] bits of fraction; 0: it rests.
    pub packets: u64,
    /// Bytes that the network was given and that are not acknowledged.
    pub left: u64,
    /// Packets that have arrived, and that were sent, beyond those acknowledged.
    pub arrived: u64,
    pub sent: u64,
}

/// Queue pairs whose packets in the window differ by one, as the window happened to begin and end, go on as one: else those that run in step would part by and by.
/// Rates become fixed-point numbers.
fn even_out(paces: &mut [Pace]) {
    let mut order: Vec<usize> = (0..paces.len()).filter(|&m| paces[m].packets > 0).collect();
    order.sort_by_key(|&m| paces[m].packets);
    let mut rest = &order[..];
    while let Some(&first) = rest.first() {
        let least = paces[first].packets;
        let n = rest.partition_point(|&m| paces[m].packets <= least + SAME);
        let sum: u64 = rest[..n].iter().map(|&m| paces[m].packets).sum();
        let mean = ((sum << FRACTION) + n as u64 / 2) / n as u64;
        let (group, left) = rest.split_at(n);
        group.iter().for_each(|&m| paces[m].packets = mean);
        rest = left;
    }
}

impl Sleep {
    /// What whoever slept like this goes on to compare with.
    pub fn put(&self, form: &mut Form) {
        form.u32(self.level);
        form.u64(self.window);
        self.paces.iter().for_each(|p| form.u64(p.packets));
    }
}

impl Run {
    /// Live partition `p`, all of whose working queue pairs are steady, as it falls asleep at `at`.
    pub(super) fn lull(&mut self, t: &mut Tables, p: u32, at: u64, steady: &Steady) -> Sleep {
        let part = &self.parts[p as usize];
        let pace = |(m, &packets): (&Member, &u64)| {
            let (tx, rx) = (&t.flow_tx[m.flow as usize], &t.flow_rx[m.flow as usize]);
            if !m.routed || tx.snd_una >= tx.size {
                return Pace::default();
            }
            let posted: u64 = m.posted.iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum();
            let behind: u64 = m.posted[m.given..].iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum();
            let stream = Stream::new(t, m, tx.size - posted);
            let una = stream.packet(tx.snd_una);
            Pace {
                packets,
                left: tx.size - behind - tx.snd_una,
                arrived: stream.packet(rx.expected) - una,
                sent: stream.packet(tx.snd_nxt) - una,
            }
        };
        let mut paces: Vec<Pace> = part.members.iter().zip(&steady.packets).map(pace).collect();
        even_out(&mut paces);
        // A packet more or less in the window is no reason to send faster than the line.
        let window = steady.window.max(self.least_window(t, p, &paces));
        let state = self.write_down(t, p, at).into();
        let trusted = if steady.settled { NEVER } else { window.saturating_mul(NAP_GROWTH.saturating_pow(steady.level)) };
        Sleep { state, window, until: steady.holds.min(trusted), level: steady.level, paces, ports: steady.ports.clone() }
    }

    /// The time that the busiest transmitter of `p` needs for what all send in a window, ps.
    fn least_window(&self, t: &Tables, p: u32, paces: &[Pace]) -> u64 {
        let part = &self.parts[p as usize];
        let mut nics = vec![0; part.nics.len()];
        let mut ports = vec![0; part.ports.len()];
        for (m, pace) in part.members.iter().zip(paces).filter(|(_, pace)| pace.packets > 0) {
            let (tx, rx) = (&t.flow_tx[m.flow as usize], &t.flow_rx[m.flow as usize]);
            let ends = [(tx.nic, tx.path_first, tx.path_len, true), (rx.nic, rx.path_first, rx.path_len, false)];
            for (n, first, len, data) in ends {
                let row = &t.nics[n as usize];
                nics[self.nic_local[n as usize] as usize] += pace.packets * if data { row.tx_full } else { row.tx_ack };
                for &q in &t.paths[first as usize..(first + len) as usize] {
                    let row = &t.ports[q as usize];
                    ports[self.port_local[q as usize] as usize] += pace.packets * if data { row.tx_full } else { row.tx_ack };
                }
            }
        }
        nics.into_iter().chain(ports).max().unwrap_or(0u64).div_ceil(1 << FRACTION)
    }
}
