//! Shares of queue pairs at transmitters while measured rates are carried on.
//!
//! A queue pair's measured rate is valid for the average set of queue pairs at its transmitters in the window. When others stop or start, its share
//! changes: a saturated transmitter still sends as much as before in total, divided by the measured rates, and no transmitter sends more than it can.
//!
//! Layer: fold/steady.

use crate::memo::skip_plan::SkipPlan;
use crate::rows::advanced_rows::FRACTION;
use crate::rows::index::RowIndex;
use crate::rows::partition_rows::PartitionRows;
use hyperfold_columns::{Exp, Tables, cc};
use hyperfold_engine::cpu::math::ONE_Q48;

/// A transmitter counts as saturated if it was busy for more than this share of what its queue pairs aim at, in millionths (our choice).
const SATURATED_PPM: u128 = 950_000;

/// Use of transmitters by the queue pairs of a skipped partition.
#[derive(Clone, Default)]
pub(crate) struct TransmitterShares {
    transmitters: Vec<Transmitter>,
    /// For each queue pair, the transmitters of its data, each with the time in ps that a window of its data takes there; and the same for its
    /// acknowledgements.
    data: Vec<Vec<(u32, u64)>>,
    acks: Vec<Vec<(u32, u64)>>,
}

/// A NIC's or a port's transmitter.
#[derive(Clone, Default)]
struct Transmitter {
    /// Queue pairs whose data it sends.
    senders: Vec<u32>,
    /// Time per window for which data and acknowledgements would keep it busy, in ps, over the queue pairs that have something to send.
    data: u64,
    acks: u64,
    /// Maximum time for which it may be busy in a window, in ps.
    max_busy: u64,
    saturated: bool,
}

impl TransmitterShares {
    /// Shares while no queue pair of `rows` has anything to send yet. `sent`: bytes on the wire of each in the window.
    pub(crate) fn new(
        t: &Tables,
        rows: &PartitionRows,
        index: &RowIndex,
        plan: &SkipPlan,
        sent: &[u64],
    ) -> TransmitterShares {
        let full = u128::from(t.exps[0].payload) + u128::from(t.exps[0].data_overhead);
        let n_nics = rows.nics.len();
        let mut shares = TransmitterShares {
            transmitters: vec![Transmitter::default(); n_nics + rows.ports.len()],
            data: vec![Vec::new(); rows.members.len()],
            acks: vec![Vec::new(); rows.members.len()],
        };
        let mut busy = vec![0u128; shares.transmitters.len()];
        for (m, member) in rows.members.iter().enumerate().filter(|(m, x)| x.routed && plan.rates[*m].work > 0) {
            let (tx, rx) = (&t.flow_tx[member.flow], &t.flow_rx[member.flow]);
            let rate = u128::from(plan.rates[m].work);
            let ends = [(tx.nic, tx.path_first, tx.path_len, true), (rx.nic, rx.path_first, rx.path_len, false)];
            for (n, first, len, is_data) in ends {
                let nic = &t.nics[n];
                let ports = t.paths[first as usize..(first + len) as usize].iter().map(|&q| {
                    let row = &t.ports[q];
                    (n_nics as u32 + index.port_local[q.usize()], row.tx_full, row.tx_ack)
                });
                for (transmitter_idx, tx_full, tx_ack) in
                    std::iter::once((index.nic_local[n.usize()], nic.tx_full, nic.tx_ack)).chain(ports)
                {
                    let each = u128::from(if is_data { tx_full } else { tx_ack });
                    let time = ((rate * each / full) >> FRACTION) as u64;
                    busy[transmitter_idx as usize] += u128::from(sent[m]) * each / full;
                    if is_data {
                        shares.transmitters[transmitter_idx as usize].senders.push(m as u32);
                        shares.data[m].push((transmitter_idx, time));
                    } else {
                        shares.acks[m].push((transmitter_idx, time));
                    }
                }
            }
        }
        let saturated = saturated_ppm(&t.exps[0]);
        for (transmitter, busy) in shares.transmitters.iter_mut().zip(busy) {
            transmitter.saturated = busy * 1_000_000 > saturated * u128::from(plan.window);
            transmitter.max_busy =
                if transmitter.saturated { busy.min(u128::from(plan.window)) as u64 } else { plan.window };
        }
        shares
    }

    /// Sets whether queue pair `m` has something to send (`sends`). Returns the queue pairs whose shares may have changed, in order.
    pub(crate) fn switch(&mut self, m: usize, sends: bool) -> Vec<usize> {
        let Some(data) = self.data.get(m) else { return Vec::new() };
        let mut touched: Vec<u32> = vec![m as u32];
        let step = |x: &mut u64, amount: u64| *x = if sends { *x + amount } else { x.saturating_sub(amount) };
        let crossed = data.iter().map(|x| (x, true)).chain(self.acks[m].iter().map(|x| (x, false)));
        for (&(transmitter_idx, time), is_data) in crossed {
            let transmitter = &mut self.transmitters[transmitter_idx as usize];
            let was_full = transmitter.is_full();
            step(if is_data { &mut transmitter.data } else { &mut transmitter.acks }, time);
            if was_full || transmitter.is_full() {
                touched.extend(&transmitter.senders);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().map(|m| m as usize).collect()
    }

    /// The rate of queue pair `m`, whose measured rate is `measured`.
    pub(crate) fn rate(&self, m: usize, measured: u64) -> u64 {
        let Some(data) = self.data.get(m) else { return measured };
        let (mut share, mut max_busy) = (None, u128::MAX);
        for &(transmitter_idx, _) in data {
            let x = &self.transmitters[transmitter_idx as usize];
            // Acknowledgements take at most half (our choice: nothing comes to a halt).
            let left = x.max_busy.saturating_sub(x.acks).max(x.max_busy / 2);
            let rate = u128::from(measured) * u128::from(left) / u128::from(x.data.max(1));
            if x.saturated {
                share = Some(share.map_or(rate, |share: u128| share.min(rate)));
            } else {
                max_busy = max_busy.min(rate);
            }
        }
        share.unwrap_or(u128::from(measured)).min(max_busy).clamp(1, u128::from(u64::MAX)) as u64
    }
}

/// Busy share of the window above which a transmitter is saturated, in millionths. HPCC keeps ports at its target `eta`; other controls fill them.
fn saturated_ppm(e: &Exp) -> u128 {
    if e.cc == cc::HPCC {
        SATURATED_PPM * u128::from(e.eta_q48.min(ONE_Q48)) / u128::from(ONE_Q48)
    } else {
        SATURATED_PPM
    }
}

impl Transmitter {
    /// Whether shares depend on which queue pairs have something to send.
    fn is_full(&self) -> bool {
        self.saturated || self.data + self.acks > self.max_busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three queue pairs through transmitter 0, which may be busy for `max_busy`; the third also through transmitter 1.
    fn three(max_busy: u64, saturated: bool) -> TransmitterShares {
        let transmitter = |senders: &[u32], max_busy, saturated| Transmitter {
            senders: senders.to_vec(),
            max_busy,
            saturated,
            ..Transmitter::default()
        };
        TransmitterShares {
            transmitters: vec![transmitter(&[0, 1, 2], max_busy, saturated), transmitter(&[2], 1000, false)],
            data: vec![vec![(0, 400)], vec![(0, 400)], vec![(0, 200), (1, 500)]],
            acks: vec![Vec::new(); 3],
        }
    }

    #[test]
    fn a_saturated_transmitter_sends_the_same_whoever_has_something_to_send() {
        let mut shares = three(1000, true);
        assert_eq!(shares.switch(0, true), [0, 1, 2]);
        shares.switch(1, true);
        shares.switch(2, true);
        assert_eq!([0, 1, 2].map(|m| shares.rate(m, 100)), [100, 100, 100]);
        shares.switch(0, false);
        // Rates of 400 and 200 now take what 1,000 took before.
        assert_eq!([1, 2].map(|m| shares.rate(m, 300)), [500, 500]);
        shares.switch(1, false);
        // Five times as much as before; transmitter 1 can send twice as much.
        assert_eq!(shares.rate(2, 100), 200);
    }

    #[test]
    fn other_transmitters_send_no_more_than_they_can() {
        let mut shares = three(500, false);
        assert_eq!(shares.switch(0, true), [0]);
        assert_eq!(shares.rate(0, 100), 100);
        assert_eq!(shares.switch(1, true), [0, 1, 2]);
        assert_eq!([0, 1].map(|m| shares.rate(m, 800)), [500, 500]);
        shares.switch(0, false);
        assert_eq!(shares.rate(1, 800), 800);
    }
}
