//! Makes the plan of a skip: the rates at which the queue pairs of a steady partition go on, and its duration.
//!
//! Layer: fold/steady.

use std::sync::Arc;

use crate::memo::skip_plan::{SkipPlan, SkipRate};
use crate::rows::advanced_rows::FRACTION;
use crate::rows::index::RowIndex;
use crate::rows::message_stream::MessageStream;
use crate::rows::partition_rows::{Member, PartitionRows};
use crate::steady::detector::SteadyRates;
use crate::steady::rates_plan;
use hyperfold_columns::{FlowIdx, PacketIdx, Tables, kind, meta, mode};

/// Maximum difference between the work of equal queue pairs, in full packets.
const SAME: u64 = 2;

/// A port is overloaded if it receives more than it can send by 1/`OVERLOAD` (our choice).
const OVERLOAD: u128 = 1000;

/// Gives the same rate to queue pairs whose work in the window differs by a few packets of `full` bytes, which only depends on where the window
/// begins and ends. Otherwise synchronised queue pairs would drift apart. Rates become fixed-point numbers.
fn even_out(rates: &mut [SkipRate], full: u64) {
    let mut order: Vec<usize> = (0..rates.len()).filter(|&m| rates[m].work > 0).collect();
    order.sort_by_key(|&m| rates[m].work);
    let mut rest = &order[..];
    while let Some(&first) = rest.first() {
        let min_work = rates[first].work;
        let n = rest.partition_point(|&m| rates[m].work <= min_work + SAME * full);
        let sum: u64 = rest[..n].iter().map(|&m| rates[m].work).sum();
        let mean = ((u128::from(sum) << FRACTION) + n as u128 / 2) / n as u128;
        let (group, left) = rest.split_at(n);
        group.iter().for_each(|&m| rates[m].work = mean as u64);
        rest = left;
    }
}

/// Whether queue pair `f` sends at line rate.
fn is_at_line(t: &Tables, f: FlowIdx) -> bool {
    let tx = &t.flow_tx[f];
    tx.rate >= t.nics[tx.nic].rate
}

/// Whether a port receives more than it can send, if senders at line rate that no window stops use all the time that their NIC has besides
/// acknowledgements. Then a queue grows, however steady acknowledgements are. (In a pipeline, where data meets acknowledgements of what its receiver
/// passes on, it is 1 to 6 %.)
pub(crate) fn is_overloaded(t: &Tables, rows: &PartitionRows, index: &RowIndex, steady: &SteadyRates) -> bool {
    let e = &t.exps[0];
    let full = u128::from(e.payload) + u128::from(e.data_overhead);
    let window = u128::from(steady.window);
    let time = |work: u64, tx_full: u64| u128::from(work) * u128::from(tx_full) / full;
    let mut data = vec![0u128; rows.nics.len()];
    let mut answers = vec![0u128; rows.nics.len()];
    let senders = || {
        rows.members.iter().zip(steady.work.iter().zip(&steady.packets)).filter(|(m, (work, _))| m.routed && **work > 0)
    };
    for (m, (&work, &packets)) in senders() {
        let (sender, receiver) = (t.flow_tx[m.flow].nic, t.flow_rx[m.flow].nic);
        data[index.nic_local[sender.usize()] as usize] += time(work, t.nics[sender].tx_full);
        answers[index.nic_local[receiver.usize()] as usize] +=
            u128::from(packets) * u128::from(t.nics[receiver].tx_ack);
    }
    // The load, and its possible error: shares of a NIC are counted in packets.
    let mut ports = vec![(0u128, 0u128); rows.ports.len()];
    for (m, (&work, &packets)) in senders() {
        let (tx, rx) = (&t.flow_tx[m.flow], &t.flow_rx[m.flow]);
        let n = index.nic_local[tx.nic.usize()] as usize;
        let stopped = e.modes & mode::WINDOW != 0 && tx.snd_nxt - tx.snd_una + u64::from(e.payload) > tx.win;
        let (room, sent) = if stopped || !is_at_line(t, m.flow) {
            (1, 1)
        } else {
            (window.saturating_sub(answers[n]), data[n].max(1))
        };
        for &q in &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize] {
            let tx_full = t.ports[q].tx_full;
            let (load, off) = &mut ports[index.port_local[q.usize()] as usize];
            *load += time(work, tx_full) * room.max(sent) / sent;
            *off += if data[n] > time(work, t.nics[tx.nic].tx_full) { u128::from(tx_full) } else { 0 };
        }
        for &q in &t.paths[rx.path_first as usize..(rx.path_first + rx.path_len) as usize] {
            ports[index.port_local[q.usize()] as usize].0 += u128::from(packets) * u128::from(t.ports[q].tx_ack);
        }
    }
    ports.into_iter().any(|(load, off)| load > window + window / OVERLOAD + off)
}

/// The plan by which a simulated partition goes on, all of whose working queue pairs are steady. The snapshot is still missing.
pub(crate) fn plan(t: &Tables, rows: &PartitionRows, index: &RowIndex, steady: &SteadyRates) -> SkipPlan {
    let rate = |(m, (&work, &turn)): (&Member, (&u64, &u64))| {
        let (tx, rx) = (&t.flow_tx[m.flow], &t.flow_rx[m.flow]);
        if !m.routed || (tx.snd_una >= tx.size && steady.patience == 0) {
            return SkipRate::default();
        }
        let posted: u64 = m.posted.iter().map(|&(i, _)| t.tasks[i].bytes).sum();
        let stream = MessageStream::new(t, m, tx.size - posted);
        let una = stream.packet(tx.snd_una);
        SkipRate {
            work,
            left: tx.size - m.waiting(t) - tx.snd_una,
            arrived: stream.packet(rx.expected) - una,
            sent: stream.packet(tx.snd_nxt) - una,
            turn,
        }
    };
    let mut rates: Vec<SkipRate> = rows.members.iter().zip(steady.work.iter().zip(&steady.turns)).map(rate).collect();
    let waiting = waiting(t, rows, index);
    if steady.patience > 0 {
        return rates_plan::plan(steady, rates, waiting);
    }
    let e = &t.exps[0];
    let full = u64::from(e.payload) + u64::from(e.data_overhead);
    even_out(&mut rates, full);
    // One packet more or less in the window must not make a rate exceed the line rate, nor lower it if nothing else limits it.
    let shortest = shortest_window(t, rows, index, &rates, &steady.packets);
    let unheld =
        steady.settled || rows.members.iter().zip(&rates).all(|(m, rate)| rate.work == 0 || is_at_line(t, m.flow));
    let packet = u64::from(unheld) * rows.nics.iter().map(|&n| t.nics[n].tx_full).max().unwrap_or(0);
    let is_full = steady.window < shortest + packet;
    let window = if is_full { shortest } else { steady.window };
    // If there are several groups of equal rates, the transmitter that seems busiest may be one that was counted a packet too many.
    let mut works = rates.iter().map(|rate| rate.work).filter(|&work| work > 0);
    let first = works.next();
    let known = is_full && works.all(|work| Some(work) == first);
    SkipPlan {
        state: Arc::default(),
        draw: 0,
        window,
        until: SteadyRates { window, ..steady.clone() }.lasts(),
        level: steady.level,
        theta_ppm: steady.theta_ppm,
        unsure: if known { 0 } else { full },
        rates,
        waiting,
        ports: steady.ports.clone(),
        round_trips: steady.round_trips.clone(),
        carried: None,
    }
}

/// [`SkipPlan::waiting`] of a partition whose rows are in the tables.
fn waiting(t: &Tables, rows: &PartitionRows, index: &RowIndex) -> Vec<u32> {
    // For each queue pair, where its ports begin and end.
    let mut places = Vec::with_capacity(rows.members.len());
    let mut len = 0;
    for m in &rows.members {
        let from = len;
        len += ports_of_data(t, m);
        places.push(from..len);
    }
    let mut waiting = vec![0; len];
    let mut note = |head: PacketIdx, queued: bool| {
        let mut p = head;
        while p.is_some() {
            let row = &t.packets[p];
            if (row.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::DATA {
                // For a packet in a queue, the next port is the one after that queue.
                let next = (row.path - t.flow_tx[row.flow].path_first) as usize - usize::from(queued);
                let ports = places[index.member[row.flow.usize()] as usize].clone();
                waiting[ports].iter_mut().skip(next).for_each(|n| *n += 1);
            }
            p = row.next;
        }
    };
    let nics = t.exps[0].nic_len;
    rows.ports.iter().for_each(|&q| note(t.ports[q].q_head, true));
    rows.nics.iter().for_each(|&n| note(t.wires[n.end()].head, false));
    rows.ends.iter().for_each(|&q| note(t.wires[q.end(nics)].head, false));
    waiting
}

/// Number of ports of member `m` that have an entry in [`SkipPlan::waiting`].
pub(crate) fn ports_of_data(t: &Tables, m: &Member) -> usize {
    if m.routed { t.flow_tx[m.flow].path_len as usize } else { 0 }
}

/// Time in ps that the busiest transmitter needs for what all queue pairs send in a window, and for the acknowledgements of as many `packets`.
fn shortest_window(t: &Tables, rows: &PartitionRows, index: &RowIndex, rates: &[SkipRate], packets: &[u64]) -> u64 {
    let full = u128::from(t.exps[0].payload) + u128::from(t.exps[0].data_overhead);
    let mut nics = vec![0u128; rows.nics.len()];
    let mut ports = vec![0u128; rows.ports.len()];
    for ((m, rate), &packets) in rows.members.iter().zip(rates).zip(packets).filter(|((_, rate), _)| rate.work > 0) {
        let (tx, rx) = (&t.flow_tx[m.flow], &t.flow_rx[m.flow]);
        let ends = [(tx.nic, tx.path_first, tx.path_len, true), (rx.nic, rx.path_first, rx.path_len, false)];
        let needs = |tx_full: u64, tx_ack: u64, data: bool| {
            if data {
                u128::from(rate.work) * u128::from(tx_full) / full
            } else {
                u128::from(packets << FRACTION) * u128::from(tx_ack)
            }
        };
        for (n, first, len, data) in ends {
            let row = &t.nics[n];
            nics[index.nic_local[n.usize()] as usize] += needs(row.tx_full, row.tx_ack, data);
            for &q in &t.paths[first as usize..(first + len) as usize] {
                let row = &t.ports[q];
                ports[index.port_local[q.usize()] as usize] += needs(row.tx_full, row.tx_ack, data);
            }
        }
    }
    nics.into_iter().chain(ports).max().unwrap_or(0).div_ceil(1 << FRACTION) as u64
}
