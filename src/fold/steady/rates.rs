//! Measured rates that are carried on if flows collide (`fidelity.fast_forward = "rates"`).
//!
//! If several senders meet at a port, single shares wander, and queue pairs of rings are intermittent, because the slowest one paces the others. But
//! the sum is steady. So the criterion is Wormhole's (NSDI '26, Eq. 6) for the sum of a partition's rates, over quarters of the window. Each queue
//! pair goes on at the rate that it had while it had something to send. Whether it has something to send is decided by its messages, as in the
//! simulation. Transmitters are shared by the queue pairs that have something to send (`shares`).
//!
//! Layer: fold/steady.

use super::skip_criterion::{PartitionView, repeats};
use crate::rows::advanced_rows::FRACTION;
use crate::rows::partition_rows::is_idle;
use crate::steady::detector::{SteadyRates, is_settled};
use crate::steady::rates_plan::{PARTS, settling};
use crate::steady::sampled_rates::SampledRates;
use hyperfold_columns::{NEVER, PortIdx, Tables, cc};

/// The sum counts as unchanged if it is the same within theta / `HELD` (our choice).
const HELD: u64 = 4;

/// The rates of the partition, if the sum over queue pairs `working` is steady. PRECONDITION: a whole window has been sampled.
pub(crate) fn carried(t: &Tables, view: PartitionView, working: &[u32]) -> Option<SteadyRates> {
    let PartitionView { rows, detector, .. } = view;
    let rule = detector.rule?;
    let e = &t.exps[0];
    let samples = rule.samples;
    let window = samples as u64 * rule.interval;
    // Each window is judged once. Waiting for a window that looks steady would select those that do so by chance.
    let settling = settling(e, samples, view.ended_skip.is_some());
    if detector.taken() < settling + samples || !(detector.taken() - settling).is_multiple_of(samples) {
        return None;
    }
    if e.ack_interval > 1 || working.is_empty() || !rows.switches.is_empty() {
        return None;
    }
    let mut parts = [0u64; PARTS];
    for &m in working {
        let m = m as usize;
        let f = rows.members[m].flow;
        if t.flow_tx[f].start != NEVER || t.flow_tx[f].n_paths > 1 || repeats(t, f) {
            return None;
        }
        for (k, part) in parts.iter_mut().enumerate() {
            let acked_at = |part: usize| detector.ago(samples - samples * part / PARTS).members[m].0;
            *part += acked_at(k + 1).saturating_sub(acked_at(k));
        }
    }
    let (sum, range) = (parts.iter().sum::<u64>(), parts.iter().max()? - parts.iter().min()?);
    if sum == 0 || u128::from(range) * PARTS as u128 * 1_000_000 >= u128::from(rule.theta_ppm) * u128::from(sum) {
        return None;
    }
    let n = rows.members.len();
    let SampledRates { packets, work, turns, ports, round_trips } = SampledRates::of(t, rows, detector, samples);
    let full = u128::from(e.payload) + u128::from(e.data_overhead);
    let active = |(m, &work): (usize, &u64)| {
        let member = &rows.members[m];
        let tx = &t.flow_tx[member.flow];
        if work == 0 {
            // It is intermittent but sent nothing just now, so it gets what its congestion control allows.
            let goes = member.routed && (!is_idle(t, member.flow) || member.idle_for(detector.now()) < rule.patience);
            let nic = &t.nics[tx.nic];
            let max_work = (u128::from(window) * full / u128::from(nic.tx_full.max(1))) << FRACTION;
            return if goes {
                (max_work * u128::from(tx.rate.min(nic.rate)) / u128::from(nic.rate.max(1))) as u64
            } else {
                0
            };
        }
        let busy = (0..samples).filter(|&k| !detector.ago(k).idle[m]).count().max(1) as u128;
        let line = u128::from(window) * full / u128::from(t.nics[t.flow_tx[rows.members[m].flow].nic].tx_full.max(1));
        ((u128::from(work) << FRACTION) * samples as u128 / busy).min(line << FRACTION) as u64
    };
    let mut active: Vec<u64> = work.iter().enumerate().map(active).collect();
    share_of_silent(t, view, &work, &mut active);
    let total: u64 = work.iter().sum();
    let (level, drift) = match view.ended_skip.and_then(|plan| Some((plan, plan.carried.as_ref()?))) {
        Some((plan, was)) if was.sent.len() == n => {
            let (was, is) = (
                was.sent.iter().sum::<u64>() as u128 * u128::from(window),
                u128::from(total) * u128::from(plan.window),
            );
            let held = was.abs_diff(is) * 1_000_000 <= is * u128::from(rule.theta_ppm / HELD);
            let drift = (was.abs_diff(is) * 1_000_000 / is.max(1)).min(1_000_000) as u64;
            (if held { plan.level + 1 } else { 0 }, Some((drift, plan.until)))
        }
        _ => (0, None),
    };
    // Only DCQCN's rates rise for milliseconds after a change, by timers.
    let is_unsettled = |m: usize| e.cc == cc::DCQCN && !is_settled(t, rows.members[m].flow);
    let unsettled: u64 = work.iter().enumerate().filter(|&(m, _)| is_unsettled(m)).map(|(_, &work)| work).sum();
    Some(SteadyRates {
        unsettled_ppm: (u128::from(unsettled) * 1_000_000 / u128::from(total.max(1))) as u64,
        window,
        theta_ppm: rule.theta_ppm,
        holds: NEVER,
        packets,
        work,
        turns,
        level,
        settled: false,
        ports,
        round_trips,
        patience: rule.patience,
        active,
        drift,
    })
}

/// Limits the rate of a queue pair that sent nothing in the window to the mean rate of the others on its path: what its congestion control allows may
/// be the line rate.
fn share_of_silent(t: &Tables, view: PartitionView, work: &[u64], active: &mut [u64]) {
    let PartitionView { rows, index, .. } = view;
    let n_nics = rows.nics.len();
    let path = |m: usize| {
        let tx = &t.flow_tx[rows.members[m].flow];
        let ports = &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize];
        let port = |q: &PortIdx| n_nics + index.port_local[q.usize()] as usize;
        std::iter::once(index.nic_local[tx.nic.usize()] as usize).chain(ports.iter().map(port))
    };
    let routed = |m: &usize| rows.members[*m].routed;
    let mut senders = vec![(0u128, 0u128); n_nics + rows.ports.len()];
    for m in (0..work.len()).filter(routed).filter(|&m| work[m] > 0) {
        for transmitter in path(m) {
            senders[transmitter] = (senders[transmitter].0 + u128::from(active[m]), senders[transmitter].1 + 1);
        }
    }
    for m in (0..work.len()).filter(routed).filter(|&m| work[m] == 0) {
        let means =
            path(m).map(|transmitter| senders[transmitter]).filter(|x| x.1 > 0).map(|(sum, n)| (sum / n) as u64);
        active[m] = means.min().map_or(active[m], |min_mean| active[m].min(min_mean));
    }
}
