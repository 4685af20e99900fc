//! The watchdog of pauses, between two steps. The rules are those of `docs/explanation/model-semantics.md`, "Watchdog of pauses".
//!
//! A pause that begins now lasts for `detect` before anything happens. So an experiment stops ([`super::stops`]) at the times that are known, and otherwise after
//! `detect` or `restore`, to learn of new ones. Every engine stops, so no system has times to wait for. What systems note is in
//! `src/engine/cpu/switch/watchdog.rs`.

use crate::cpu::switch::class_port::{note_sendable, port_queue_row};
use crate::restart_port::kick;
use hyperfold_columns::{LINK_DROPS, NEVER, PortIdx, Tables, Watchdog, watch};

/// Time in ps of the next stop for the watchdog before `limit`, while there are events.
pub(crate) fn next_stop(t: &Tables, limit: u64) -> Option<u64> {
    t.changes.watchdog.map(|watchdog| watchdog.next).filter(|&next| next < limit)
}

/// Time in ps before `limit` at which the watchdog begins to act or ends next, where no event is left before that. `None`: it does not, or nothing would follow
/// from it.
pub(crate) fn next_deadline(t: &Tables, limit: u64) -> Option<u64> {
    let watchdog = t.changes.watchdog?;
    if t.changes.next_time().is_none() && !holds_packets(t) {
        return None;
    }
    deadlines(t, &watchdog).min().filter(|&next| next < limit)
}

/// Whether a class is paused and has a packet, so that the experiment cannot have ended.
pub(crate) fn holds_packets(t: &Tables) -> bool {
    let e = &t.exps[0];
    t.changes.watchdog.is_some()
        && PortIdx::all(e.port_len).any(|port| match e.class_n {
            0 => t.ports[port].paused != 0 && t.ports[port].q_head.is_some(),
            n => (0..n)
                .map(|class| &t.class_queues[port_queue_row(e, port, class)])
                .any(|queue| queue.paused != 0 && queue.q_head.is_some()),
        })
}

/// Lets the watchdog begin to act and end wherever it does at `now`.
///
/// PRECONDITION: `t` holds one experiment, which has stopped with everything before that time done.
pub(crate) fn act(t: &mut Tables, now: u64) {
    let Some(watchdog) = t.changes.watchdog else { return };
    t.exps[0].now = now;
    let classes = t.exps[0].class_n.max(1);
    let mut to_kick = Vec::new();
    for port in PortIdx::all(t.exps[0].port_len) {
        let mut begins = false;
        for class in (0..classes).filter(|&class| deadline(t, port, class, &watchdog) == Some(now)).collect::<Vec<_>>()
        {
            let words = t.exps[0].watch_words(port, class);
            let begins_now = !acts(t, port, class);
            t.shared[words + watch::STATE as usize] = if begins_now { watch::ACTS | watch::ASKED } else { 0 };
            t.shared[words + watch::STARTS as usize] += u32::from(begins_now);
            if begins_now {
                ignore_pause(t, port, class);
            }
            begins |= begins_now;
        }
        let drops = watchdog.drops && (0..classes).any(|class| acts(t, port, class));
        let peer = &mut t.ports[port].peer;
        if peer.is_some() {
            peer.0 = if drops { peer.0 | LINK_DROPS } else { peer.0 & !LINK_DROPS };
        }
        if begins {
            to_kick.push(port);
        }
    }
    for port in to_kick {
        kick(t, port, now);
    }
}

/// Plans the next stop for the watchdog, after everything of this one is done.
pub(crate) fn plan(t: &mut Tables) {
    let Some(watchdog) = t.changes.watchdog else { return };
    let (now, classes) = (t.exps[0].now, t.exps[0].class_n.max(1));
    let some_act = PortIdx::all(t.exps[0].port_len).any(|port| (0..classes).any(|class| acts(t, port, class)));
    // What is not known yet begins now or later.
    let soonest = if some_act { watchdog.detect.min(watchdog.restore) } else { watchdog.detect };
    let next = deadlines(t, &watchdog).min().unwrap_or(NEVER).min(now.saturating_add(soonest));
    t.changes.watchdog = Some(Watchdog { next, ..watchdog });
}

/// Lets the watchdog of `port` act no longer: its link has failed, and nobody is asked to be silent.
pub(crate) fn forget(t: &mut Tables, port: PortIdx) {
    if t.exps[0].watch_first == 0 {
        return;
    }
    for class in 0..t.exps[0].class_n.max(1) {
        let words = t.exps[0].watch_words(port, class);
        t.shared[words + watch::STATE as usize] = 0;
    }
    t.ports[port].peer.0 &= !LINK_DROPS;
}

/// Whether the watchdog acts for `class` of `port`.
fn acts(t: &Tables, port: PortIdx, class: u32) -> bool {
    t.shared[t.exps[0].watch_words(port, class) + watch::STATE as usize] & watch::ACTS != 0
}

/// Makes `class` of `port` send although it is paused.
fn ignore_pause(t: &mut Tables, port: PortIdx, class: u32) {
    if t.exps[0].class_n == 0 {
        t.ports[port].paused = 0;
        return;
    }
    let i = port_queue_row(&t.exps[0], port, class);
    t.class_queues[i].paused = 0;
    note_sendable(t, port);
}

/// Times in ps at which the watchdog begins to act or ends, as far as they are known now.
fn deadlines(t: &Tables, watchdog: &Watchdog) -> impl Iterator<Item = u64> {
    let e = &t.exps[0];
    let of_port = move |port| (0..e.class_n.max(1)).filter_map(move |class| deadline(t, port, class, watchdog));
    PortIdx::all(e.port_len).flat_map(of_port)
}

/// Time in ps at which the watchdog begins to act or ends for `class` of `port`; `None`: neither is to come, as far as is known now.
fn deadline(t: &Tables, port: PortIdx, class: u32, watchdog: &Watchdog) -> Option<u64> {
    let e = &t.exps[0];
    let words = e.watch_words(port, class);
    let word = |place: u32| t.shared[words + place as usize];
    let since = u64::from(word(watch::SINCE_HI)) << 32 | u64::from(word(watch::SINCE_LO));
    let state = word(watch::STATE);
    let paused = match e.class_n {
        0 => t.ports[port].paused,
        _ => t.class_queues[port_queue_row(e, port, class)].paused,
    };
    match state & watch::ACTS != 0 {
        true => (state & watch::ASKED == 0).then(|| since + watchdog.restore),
        false => (paused != 0).then(|| since + watchdog.detect),
    }
}
