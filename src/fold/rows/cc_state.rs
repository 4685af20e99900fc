//! Congestion-control state that lasts from message to message, and which parts of it matter. States that differ only in parts that do not matter
//! lead to the same future.
//!
//! Layer: fold/rows. Exact, except [`round`] and [`count_from_here`], which serve experiments that skip steady phases.
//! Knows rows of one queue pair or port, and no partitions.

use std::sync::Arc;

use hyperfold_columns::{FlowIdx, FlowTx, INT_TX_UNIT, NicIdx, PortIdx, Tables, cc, mode, qp};
use hyperfold_engine::cpu::cc::{dcqcn, timely};
use hyperfold_engine::cpu::transport::rate::set_rate;

/// Number of significant bits that are kept of HPCC's state: off by at most 1/256, without bias. Before a message of several windows it is 1/64,
/// which affects one round trip (our choice).
const KEPT_BITS: u32 = 8;
const KEPT_BITS_OF_LONG: u32 = 6;
const LONG_WINDOWS: u64 = 4;

/// A link this many times as fast as another cannot look like the slower one, however telemetry is rounded (our choice).
const APART: u64 = 2;

/// A DCQCN rate within 1/`NEAR` of the line rate counts as the line rate: each timer halves the distance (our choice).
const NEAR: u64 = 128;

/// Whether a NIC that looks for a queue pair to send from also advances the timers of queue pairs that have nothing to send.
pub(crate) fn timers_run(t: &Tables) -> bool {
    let both = mode::WINDOW | mode::VAR_WINDOW;
    t.exps[0].cc == cc::DCQCN && t.exps[0].modes & both == both
}

/// Whether all of DCQCN's marks are random. Recording stops at the first random draw or mark, so recorded phases saw no congestion. Then only DCQCN's
/// timers change rates, and the queue pair's own row says how.
pub(crate) fn marks_by_chance(t: &Tables) -> bool {
    let e = &t.exps[0];
    let drawn = || t.ports.iter().all(|p| p.kmin < p.kmax);
    e.cc == cc::DCQCN && e.modes & mode::FRESH_QP == 0 && !timers_run(t) && (e.modes & mode::ECN == 0 || drawn())
}

/// Runs those DCQCN timers of queue pair `f` that expire before `now` (ps). Whatever reads the queue pair next would do the same.
pub(crate) fn catch_up(t: &mut Tables, f: FlowIdx, now: u64) {
    if t.fold_hints.random_marks {
        dcqcn::advance_until(t, f, now);
    }
}

/// Whether queue pair `f` has no rate decrease due until the next congestion notification. Until then alpha and the times of alpha updates and
/// decreases do not matter.
pub(crate) fn is_quiet(t: &Tables, f: FlowIdx) -> bool {
    t.fold_hints.random_marks && t.flow_tx[f].flags & (qp::STARTED | qp::D_SEEN) == qp::STARTED
}

/// Whether the rate of queue pair `f` stays constant until the next congestion notification. Until then the time of the
/// next increase does not matter either.
pub(crate) fn is_recovered(t: &Tables, f: FlowIdx) -> bool {
    let tx = &t.flow_tx[f];
    let line = t.nics[tx.nic].rate;
    t.fold_hints.random_marks && dcqcn::is_recovered(tx, line)
}

/// The stage of queue pair `tx` as far as it matters: beyond some number of increases all stages are equivalent.
pub(crate) fn stage(t: &Tables, tx: &FlowTx) -> u32 {
    let e = &t.exps[0];
    match e.cc {
        cc::TIMELY => tx.stage.min(timely::HYPER_AFTER),
        cc::DCQCN => tx.stage.min(e.fast_recovery.saturating_add(1)),
        _ => tx.stage,
    }
}

/// `row` with the congestion-control state of `own`, if only timers have changed that state since.
pub(crate) fn kept_or_own(t: &Tables, own: &FlowTx, row: FlowTx) -> FlowTx {
    if !t.fold_hints.random_marks || own.flags & qp::STARTED == 0 {
        return row;
    }
    let flags = qp::STARTED | qp::A_SEEN | qp::D_SEEN;
    FlowTx {
        flags: (row.flags & !flags) | (own.flags & flags),
        rate: own.rate,
        win: own.win,
        alpha: own.alpha,
        target: own.target,
        stage: own.stage,
        t_alpha: own.t_alpha,
        t_dec: own.t_dec,
        t_inc: own.t_inc,
        ..row
    }
}

/// Whether flows of several senders meet on a link between switches. There, shares are chaotic: every later message sees a rounding, and little
/// repeats. If flows meet only at receivers, differences vanish.
pub(crate) fn collide(t: &Tables) -> bool {
    let nics = t.exps[0].nic_len;
    let mut sender = vec![NicIdx::NONE; t.ports.len()];
    t.flow_tx.iter().any(|tx| {
        let path = &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize];
        let between = path.iter().filter(|&&q| t.ports[q].peer.port(nics).is_some());
        tx.n_paths > 1
            || between.fold(false, |met, &q| {
                let before = std::mem::replace(&mut sender[q.usize()], tx.nic);
                met || (before.is_some() && before != tx.nic)
            })
    })
}

/// Rounds the congestion-control state of idle queue pair `f` before its next message; otherwise hardly any two episodes start with equal state. A
/// recovering rate near the line rate becomes the line rate. Returns whether anything changed.
pub(crate) fn round(t: &mut Tables, f: FlowIdx) -> bool {
    let e = &t.exps[0];
    let tx = &t.flow_tx[f];
    let line = t.nics[tx.nic].rate;
    if !t.fold_hints.rounding || e.modes & mode::FRESH_QP != 0 || tx.flags & qp::CREATED == 0 {
        return false;
    }
    let was = (tx.rate, tx.rc, tx.u);
    let is_long = tx.msg_post.is_some() && t.tasks[tx.msg_post].bytes >= LONG_WINDOWS * tx.window;
    let bits = if is_long { KEPT_BITS_OF_LONG } else { KEPT_BITS };
    let kept = |rate: u64| rounded(rate, bits).min(line).max(e.min_rate);
    let is = match e.cc {
        cc::HPCC if is_free(t, f) => (kept(tx.rate), kept(tx.rc), rounded(tx.u, bits)),
        cc::DCQCN if is_quiet(t, f) && tx.target == line && tx.rate >= line - line / NEAR => (line, tx.rc, tx.u),
        _ => return false,
    };
    let tx = &mut t.flow_tx[f];
    (tx.rc, tx.u) = (is.1, is.2);
    set_rate(t, f, is.0, line);
    is != was
}

/// For each port, whether folding may choose the origin of HPCC's telemetry counters. It may on a path with no other port, or with one port that is
/// by far the slowest, if the counters' unit is at most a packet. Otherwise the phases of counters within a unit matter, because HPCC takes the
/// maximum over all hops: 5 % for every later message, and three quarters if a unit is more than a packet.
pub(crate) fn free_phases(t: &Tables) -> Vec<bool> {
    let e = &t.exps[0];
    let counts = u64::from(INT_TX_UNIT) * u64::from(e.int_multi) <= u64::from(e.payload) + u64::from(e.data_overhead);
    let mut free = vec![true; t.ports.len()];
    for tx in &t.flow_tx {
        for k in 0..tx.n_paths {
            let first = (tx.path_first + k * tx.path_len) as usize;
            let path = &t.paths[first..first + tx.path_len as usize];
            let rate = |&q: &PortIdx| t.ports[q].rate;
            let min_rate = path.iter().map(rate).min().unwrap_or(0);
            if path.len() > 1 && (!counts || path.iter().filter(|&q| rate(q) < APART * min_rate).count() > 1) {
                path.iter().for_each(|&q| free[q.usize()] = false);
            }
        }
    }
    free
}

/// Moves the origin of `port`'s telemetry to `now` (ps), if folding may choose it; otherwise no two episodes would see the same phase of its unit.
/// Returns whether folding may choose it, and whether the origin moved.
pub(crate) fn count_from_here(t: &mut Tables, port: PortIdx, now: u64) -> (bool, bool) {
    let unit = u64::from(INT_TX_UNIT) * u64::from(t.exps[0].int_multi);
    let sent = t.ports[port].tx_bytes;
    let here = ((now % 1000) as u32, (sent % unit) as u32);
    // Once nothing is rounded any more, origins stay where they are.
    if !t.fold_hints.rounding || t.fold_hints.telemetry_from.get(port.usize()).is_none_or(Option::is_none) {
        return (false, false);
    }
    let origin = &mut Arc::make_mut(&mut t.fold_hints.telemetry_from)[port.usize()];
    (true, origin.replace(here) != Some(here))
}

/// Whether folding may choose the telemetry origin at all ports that queue pair `f` sends through.
fn is_free(t: &Tables, f: FlowIdx) -> bool {
    let tx = &t.flow_tx[f];
    let path = &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize];
    path.iter().all(|&q| t.fold_hints.telemetry_from.get(q.usize()).is_some_and(Option::is_some))
}

/// `x` rounded to its first `bits` significant bits.
fn rounded(x: u64, bits: u32) -> u64 {
    let lost = (u64::BITS - x.leading_zeros()).saturating_sub(bits);
    let half = (1 << lost) >> 1;
    (x.saturating_add(half) >> lost) << lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_rounded_to_its_first_bits() {
        assert_eq!([0, 1, 63, 64, 65, 127, 2000].map(|x| rounded(x, 6)), [0, 1, 63, 64, 66, 128, 2016]);
        for x in [29_371_005_205u64, 281_474_976_710_656, u64::MAX >> 1] {
            for bits in [KEPT_BITS, KEPT_BITS_OF_LONG] {
                assert!(rounded(x, bits).abs_diff(x) <= x >> bits, "{x}");
                assert_eq!(rounded(rounded(x, bits), bits), rounded(x, bits));
            }
        }
    }
}
