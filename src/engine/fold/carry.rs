//! What congestion control carries from message to message, and how much of it matters: states that differ in nothing else lead to the same.
//!
//! Layer: engine. Exact, but for [`round`], which is for where what is steady is skipped. Knows nothing of partitions: rows of one queue pair.

use crate::columns::{FlowTx, NONE, Tables, cc, mode, qp};
use crate::engine::cpu::cc::{dcqcn, timely};
use crate::engine::cpu::sender::set_rate;

use super::canon::timers_run;

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
        tx.n_paths > 1 || between.fold(false, |met, &q| {
            let before = std::mem::replace(&mut sender[q as usize], tx.nic);
            met || (before != NONE && before != tx.nic)
        })
    })
}

/// The rate of queue pair `f`, which is idle, is the line's if it is near that, where it recovers: else hardly any two episodes begin alike.
pub fn round(t: &mut Tables, f: u32) {
    let tx = &t.flow_tx[f as usize];
    let line = t.nics[tx.nic as usize].rate;
    if t.aside.rounds && tx.flags & qp::CREATED != 0 && is_quiet(t, f) && tx.target == line && tx.rate >= line - line / NEAR {
        set_rate(t, f, line, line);
    }
}
