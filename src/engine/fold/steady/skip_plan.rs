//! What a steady partition falls asleep with: its state, and the rates at which its queue pairs go on.

use std::sync::Arc;

use crate::columns::{Tables, mode};
use crate::engine::cpu::math::hash32;
use crate::engine::fold::rows::canonical_key::CanonicalKey;
use crate::engine::fold::rows::message_stream::MessageStream;
use crate::engine::fold::run::partition::Member;
use crate::engine::fold::run::turns::Run;
use crate::engine::fold::steady::detector::SteadyRates;

/// Full packets by which what was sent in a window may differ and says nothing.
const SAME: u64 = 2;
/// A port is overloaded by more than this part of what it can send (our choice).
const OVERLOAD: u128 = 1000;
/// Bits of fraction of a rate.
pub const FRACTION: u32 = 16;

/// What a partition falls asleep with: all that decides how it goes on.
#[derive(Debug, PartialEq)]
pub struct SkipPlan {
    /// Its rows, to be read by [`super::state`].
    pub state: Arc<[u8]>,
    /// A number drawn from these: whether it is audited goes by this, so that what the memo knows makes no difference.
    pub draw: u32,
    /// Rates are work in this time, ps.
    pub window: u64,
    /// It sleeps no longer than this, ps; `NEVER`: for as long as nothing happens.
    pub until: u64,
    /// How many times in a row it had slept before and had found its rates unchanged.
    pub level: u32,
    /// What its rates were steady by, in millionths.
    pub theta_ppm: u64,
    pub rates: Vec<SkipRate>,
    /// Of each port: what the integral of its queue and its marks gain in a window.
    pub ports: Vec<(u64, u64)>,
}

/// How a queue pair goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipRate {
    /// Bytes on the wire a window, with [`FRACTION`] bits of fraction; 0: it rests.
    pub work: u64,
    /// Bytes that the network was given and that are not acknowledged.
    pub left: u64,
    /// Packets that have arrived, and that were sent, beyond those acknowledged.
    pub arrived: u64,
    pub sent: u64,
    /// Packets from one action of congestion control to the next, with [`FRACTION`] bits of fraction, where it acts once a round trip; else 0.
    pub turn: u64,
}

/// Queue pairs whose work in the window differs by a packet of `full` bytes, as the window happened to begin and end, go on as one: else those that run in step would part by and
/// by. Rates become fixed-point numbers.
fn even_out(rates: &mut [SkipRate], full: u64) {
    let mut order: Vec<usize> = (0..rates.len()).filter(|&m| rates[m].work > 0).collect();
    order.sort_by_key(|&m| rates[m].work);
    let mut rest = &order[..];
    while let Some(&first) = rest.first() {
        let least = rates[first].work;
        let n = rest.partition_point(|&m| rates[m].work <= least + SAME * full);
        let sum: u64 = rest[..n].iter().map(|&m| rates[m].work).sum();
        let mean = ((u128::from(sum) << FRACTION) + n as u128 / 2) / n as u128;
        let (group, left) = rest.split_at(n);
        group.iter().for_each(|&m| rates[m].work = mean as u64);
        rest = left;
    }
}

/// As good as random.
pub fn draw(state: &[u8]) -> u32 {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
    state
        .chunks(8)
        .fold(0, |draw, bytes| hash32(word(&bytes[..bytes.len().min(4)]), word(&bytes[bytes.len().min(4)..]), draw, 0))
}

impl SkipPlan {
    /// What whoever slept like this goes on to compare with.
    pub fn put(&self, form: &mut CanonicalKey) {
        form.u32(self.level);
        form.u64(self.window);
        self.rates.iter().for_each(|p| form.u64(p.work));
    }
}

/// Whether queue pair `f` sends at the line's rate.
fn is_at_line(t: &Tables, f: u32) -> bool {
    let tx = &t.flow_tx[f as usize];
    tx.rate >= t.nics[tx.nic as usize].rate
}

impl Run {
    /// Whether more comes to a port of `p` than leaves it, if whoever sends at the line's rate and is not stopped by its window sends whatever its NIC has time for besides
    /// answers: a queue grows then, though what is acknowledged is as steady as can be. (Where a pipeline's data meets the answers to what its receiver passes on, by 1 to 6 %.)
    pub(in crate::engine::fold) fn is_overloaded(&self, t: &Tables, p: u32, steady: &SteadyRates) -> bool {
        let partition = &self.partitions[p as usize];
        let e = &t.exps[0];
        let full = u128::from(e.payload) + u128::from(e.data_overhead);
        let window = u128::from(steady.window);
        let time = |work: u64, tx_full: u64| u128::from(work) * u128::from(tx_full) / full;
        let mut data = vec![0u128; partition.nics.len()];
        let mut answers = vec![0u128; partition.nics.len()];
        let senders = || {
            partition
                .members
                .iter()
                .zip(steady.work.iter().zip(&steady.packets))
                .filter(|(m, (work, _))| m.routed && **work > 0)
        };
        for (m, (&work, &packets)) in senders() {
            let (from, to) = (t.flow_tx[m.flow as usize].nic, t.flow_rx[m.flow as usize].nic);
            data[self.nic_local[from as usize] as usize] += time(work, t.nics[from as usize].tx_full);
            answers[self.nic_local[to as usize] as usize] +=
                u128::from(packets) * u128::from(t.nics[to as usize].tx_ack);
        }
        // Load; and by how much it may be off, as shares of a NIC are counted in packets.
        let mut ports = vec![(0u128, 0u128); partition.ports.len()];
        for (m, (&work, &packets)) in senders() {
            let (tx, rx) = (&t.flow_tx[m.flow as usize], &t.flow_rx[m.flow as usize]);
            let n = self.nic_local[tx.nic as usize] as usize;
            let stopped = e.modes & mode::WINDOW != 0 && tx.snd_nxt - tx.snd_una + u64::from(e.payload) > tx.win;
            let (room, sent) = if stopped || !is_at_line(t, m.flow) {
                (1, 1)
            } else {
                (window.saturating_sub(answers[n]), data[n].max(1))
            };
            for &q in &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize] {
                let tx_full = t.ports[q as usize].tx_full;
                let (load, off) = &mut ports[self.port_local[q as usize] as usize];
                *load += time(work, tx_full) * room.max(sent) / sent;
                *off += if data[n] > time(work, t.nics[tx.nic as usize].tx_full) { u128::from(tx_full) } else { 0 };
            }
            for &q in &t.paths[rx.path_first as usize..(rx.path_first + rx.path_len) as usize] {
                ports[self.port_local[q as usize] as usize].0 +=
                    u128::from(packets) * u128::from(t.ports[q as usize].tx_ack);
            }
        }
        ports.into_iter().any(|(load, off)| load > window + window / OVERLOAD + off)
    }

    /// Live partition `p`, all of whose working queue pairs are steady, as it falls asleep at `at`.
    pub(in crate::engine::fold) fn plan_skip(
        &mut self,
        t: &mut Tables,
        p: u32,
        at: u64,
        steady: &SteadyRates,
    ) -> SkipPlan {
        let partition = &self.partitions[p as usize];
        let rate = |(m, (&work, &turn)): (&Member, (&u64, &u64))| {
            let (tx, rx) = (&t.flow_tx[m.flow as usize], &t.flow_rx[m.flow as usize]);
            if !m.routed || tx.snd_una >= tx.size {
                return SkipRate::default();
            }
            let posted: u64 = m.posted.iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum();
            let behind: u64 = m.posted[m.given..].iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum();
            let stream = MessageStream::new(t, m, tx.size - posted);
            let una = stream.packet(tx.snd_una);
            SkipRate {
                work,
                left: tx.size - behind - tx.snd_una,
                arrived: stream.packet(rx.expected) - una,
                sent: stream.packet(tx.snd_nxt) - una,
                turn,
            }
        };
        let mut rates: Vec<SkipRate> =
            partition.members.iter().zip(steady.work.iter().zip(&steady.turns)).map(rate).collect();
        let e = &t.exps[0];
        let full = u64::from(e.payload) + u64::from(e.data_overhead);
        even_out(&mut rates, full);
        // A packet more or less in the window is no reason to send faster than the line, or slower where nothing else holds them back.
        let least = self.least_window(t, p, &rates, &steady.packets);
        let unheld = steady.settled
            || partition.members.iter().zip(&rates).all(|(m, rate)| rate.work == 0 || is_at_line(t, m.flow));
        let packet = u64::from(unheld) * partition.nics.iter().map(|&n| t.nics[n as usize].tx_full).max().unwrap_or(0);
        let window = if steady.window < least + packet { least } else { steady.window };
        let state: Arc<[u8]> = self.write_down(t, p, at).into();
        let draw = draw(&state);
        SkipPlan {
            state,
            draw,
            window,
            until: SteadyRates { window, ..steady.clone() }.lasts(),
            level: steady.level,
            theta_ppm: steady.theta_ppm,
            rates,
            ports: steady.ports.clone(),
        }
    }

    /// The time that the busiest transmitter of `p` needs for what all send in a window and the answers to as many `packets`, ps.
    fn least_window(&self, t: &Tables, p: u32, rates: &[SkipRate], packets: &[u64]) -> u64 {
        let partition = &self.partitions[p as usize];
        let full = u128::from(t.exps[0].payload) + u128::from(t.exps[0].data_overhead);
        let mut nics = vec![0u128; partition.nics.len()];
        let mut ports = vec![0u128; partition.ports.len()];
        for ((m, rate), &packets) in
            partition.members.iter().zip(rates).zip(packets).filter(|((_, rate), _)| rate.work > 0)
        {
            let (tx, rx) = (&t.flow_tx[m.flow as usize], &t.flow_rx[m.flow as usize]);
            let ends = [(tx.nic, tx.path_first, tx.path_len, true), (rx.nic, rx.path_first, rx.path_len, false)];
            let needs = |tx_full: u64, tx_ack: u64, data: bool| {
                if data {
                    u128::from(rate.work) * u128::from(tx_full) / full
                } else {
                    u128::from(packets << FRACTION) * u128::from(tx_ack)
                }
            };
            for (n, first, len, data) in ends {
                let row = &t.nics[n as usize];
                nics[self.nic_local[n as usize] as usize] += needs(row.tx_full, row.tx_ack, data);
                for &q in &t.paths[first as usize..(first + len) as usize] {
                    let row = &t.ports[q as usize];
                    ports[self.port_local[q as usize] as usize] += needs(row.tx_full, row.tx_ack, data);
                }
            }
        }
        nics.into_iter().chain(ports).max().unwrap_or(0).div_ceil(1 << FRACTION) as u64
    }
}
