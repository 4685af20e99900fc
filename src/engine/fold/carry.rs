//! What congestion control carries from message to message, and how much of it matters: states that differ in nothing else lead to the same.
//!
//! Layer: engine. Exact, but for [`round`] and [`count_from_here`], which are for where what is steady is skipped. Knows nothing of partitions: rows of one queue pair or port.

use crate::columns::{FlowTx, INT_TX_UNIT, NONE, Tables, cc, mode, qp};
use crate::engine::cpu::cc::{dcqcn, timely};
use crate::engine::cpu::sender::set_rate;

use super::canon::timers_run;

/// Bits that are kept of what HPCC carries, the first one among them: off by 1/256 at most, in no direction, and by 1/64 where the next message is longer than some windows: it is
/// moved by that for a round trip (our choice).
const KEPT_BITS: u32 = 8;
const KEPT_BITS_OF_LONG: u32 = 6;
const LONG_WINDOWS: u64 = 4;

/// A link that is this many times as fast as another is far from being the slower one whatever telemetry rounds to (our choice).
const APART: u64 = 2;

/// A rate of DCQCN that is nearer to the line's than this part of it would be there soon: each of its timers halves the distance (our choice).
const NEAR: u64 = 128;

/// Whether DCQCN's marks come by chance alone. Nothing is remembered from the first draw or mark on, so what is remembered hears of no congestion: DCQCN's timers are all that
/// moves rates then, and what they do is known from the queue pair's own row.
pub fn marks_by_chance(t: &Tables) -> bool {
    let e = &t.exps[0];
    let drawn = || t.ports.iter().all(|p| p.kmin < p.kmax);
    e.cc == cc::DCQCN && e.modes & mode::FRESH_QP == 0 && !timers_run(t) && (e.modes & mode::ECN == 0 || drawn())
}

/// DCQCN's timers of queue pair `f` that expire before `now` do what they do: whatever looks at the queue pair next would have them do it.
pub fn catch_up(t: &mut Tables, f: u32, now: u64) {
    if t.aside.chance {
        dcqcn::advance_until(t, f, now);
    }
}

/// Whether no decrease of queue pair `f` is due until it is told of congestion. What alpha is, and when it and the rate would be decreased, makes no difference so long.
pub fn is_quiet(t: &Tables, f: u32) -> bool {
    t.aside.chance && t.flow_tx[f as usize].flags & (qp::STARTED | qp::D_SEEN) == qp::STARTED
}

/// Whether the rate of queue pair `f` stays what it is until it is told of congestion: it has recovered. When its rate would be increased makes no difference so long, either.
pub fn is_recovered(t: &Tables, f: u32) -> bool {
    let tx = &t.flow_tx[f as usize];
    let line = t.nics[tx.nic as usize].rate;
    t.aside.chance && dcqcn::is_recovered(tx, line)
}

/// The stage of queue pair `tx`, as far as it matters: beyond some number of increases all are alike.
pub fn stage(t: &Tables, tx: &FlowTx) -> u32 {
    let e = &t.exps[0];
    match e.cc {
        cc::TIMELY => tx.stage.min(timely::HYPER_AFTER),
        cc::DCQCN => tx.stage.min(e.fast_recovery.saturating_add(1)),
        _ => tx.stage,
    }
}

/// Congestion control of a queue pair that has only had timers moving it since it was `own`; all else as in `row`.
pub fn keep(t: &Tables, own: &FlowTx, row: FlowTx) -> FlowTx {
    if !t.aside.chance || own.flags & qp::STARTED == 0 {
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

/// Whether senders meet on a link between switches. There shares are chaotic: what is rounded once is seen in every later message, while little repeats that
/// rounding could help to find. Where they only meet at receivers, differences die out.
pub fn collide(t: &Tables) -> bool {
    let nics = t.exps[0].nic_len;
    let mut sender = vec![NONE; t.ports.len()];
    t.flow_tx.iter().any(|tx| {
        let path = &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize];
        let between = path.iter().filter(|&&q| t.ports[q as usize].peer >= nics);
        tx.n_paths > 1
            || between.fold(false, |met, &q| {
                let before = std::mem::replace(&mut sender[q as usize], tx.nic);
                met || (before != NONE && before != tx.nic)
            })
    })
}

/// Rounds what queue pair `f`, which is idle, carries over to its next message: else hardly any two episodes begin alike. Rates that recover and are near the line's are taken
/// to be there. Returns whether that changed anything.
pub fn round(t: &mut Tables, f: u32) -> bool {
    let e = &t.exps[0];
    let tx = &t.flow_tx[f as usize];
    let line = t.nics[tx.nic as usize].rate;
    if !t.aside.rounds || e.modes & mode::FRESH_QP != 0 || tx.flags & qp::CREATED == 0 {
        return false;
    }
    let was = (tx.rate, tx.rc, tx.u);
    let is_long = tx.msg_post != NONE && t.tasks[tx.msg_post as usize].bytes >= LONG_WINDOWS * tx.window;
    let bits = if is_long { KEPT_BITS_OF_LONG } else { KEPT_BITS };
    let kept = |rate: u64| rounded(rate, bits).min(line).max(e.min_rate);
    let is = match e.cc {
        cc::HPCC if is_free(t, f) => (kept(tx.rate), kept(tx.rc), rounded(tx.u, bits)),
        cc::DCQCN if is_quiet(t, f) && tx.target == line && tx.rate >= line - line / NEAR => (line, tx.rc, tx.u),
        _ => return false,
    };
    let tx = &mut t.flow_tx[f as usize];
    (tx.rc, tx.u) = (is.1, is.2);
    set_rate(t, f, is.0, line);
    is != was
}

/// Of each port, whether HPCC's telemetry of it may count from anywhere: paths that it is part of have no other, or one is by far the slowest, and each packet counts. Telemetry
/// counts in units and HPCC takes the largest of all hops, so where several are alike it matters by how much their counters differ within a unit: by 5 % for every message to
/// come, by three quarters where a unit is more than a packet.
pub fn free_phases(t: &Tables) -> Vec<bool> {
    let e = &t.exps[0];
    let counts = u64::from(INT_TX_UNIT) * u64::from(e.int_multi) <= u64::from(e.payload) + u64::from(e.data_overhead);
    let mut free = vec![true; t.ports.len()];
    for tx in &t.flow_tx {
        for k in 0..tx.n_paths {
            let path = &t.paths[(tx.path_first + k * tx.path_len) as usize..][..tx.path_len as usize];
            let rate = |&q: &u32| t.ports[q as usize].rate;
            let least = path.iter().map(rate).min().unwrap_or(0);
            if path.len() > 1 && (!counts || path.iter().filter(|&q| rate(q) < APART * least).count() > 1) {
                path.iter().for_each(|&q| free[q as usize] = false);
            }
        }
    }
    free
}

/// Telemetry of `port` counts from where it stands at `now`, where it may count from anywhere: else no two episodes would see their packets in the same phase of its units.
/// Returns whether that is so, and whether it counted from elsewhere.
pub fn count_from_here(t: &mut Tables, port: u32, now: u64) -> (bool, bool) {
    let unit = u64::from(INT_TX_UNIT) * u64::from(t.exps[0].int_multi);
    let sent = t.ports[port as usize].tx_bytes;
    let here = ((now % 1000) as u32, (sent % unit) as u32);
    let Some(from) = t.aside.telemetry.get_mut(port as usize).and_then(Option::as_mut) else { return (false, false) };
    (true, std::mem::replace(from, here) != here)
}

/// Whether telemetry of all ports that queue pair `f` sends through may count from anywhere.
fn is_free(t: &Tables, f: u32) -> bool {
    let tx = &t.flow_tx[f as usize];
    let path = &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize];
    path.iter().all(|&q| t.aside.telemetry.get(q as usize).is_some_and(Option::is_some))
}

/// `x` to its first `bits` bits.
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
