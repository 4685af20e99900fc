//! Tells whether switches of an experiment may pause their neighbours (PFC), as far as its paths say, and whether their watchdog comes in time.
//!
//! Layer: host. Adds up windows over ports; simulates nothing.

use hyperfold_columns::{OwnedTables, PortIdx, mode};
use hyperfold_network::transport::Transport;

/// Returns a note if flows may give up before the watchdog of pauses acts, or while it does.
pub(super) fn late_watchdog(tr: &Transport) -> Option<String> {
    let watchdog = tr.watchdog?;
    let survived_ps = tr.rto_ps.saturating_mul(u64::from(tr.rto_retries) + 1);
    let times = [
        ("detect", watchdog.detect_ps, "before the watchdog acts"),
        ("restore", watchdog.restore_ps, "while the watchdog acts"),
    ];
    times.into_iter().find(|&(_, time_ps, _)| survived_ps <= time_ps).map(|(key, time_ps, when)| {
        format!(
            "transport.pfc_watchdog_{key}_us = {}: flows may give up {when}, after {} us without progress (transport.rto_us times \
             transport.rto_retries + 1); a shorter time or a longer timeout would be right",
            time_ps as f64 / 1e6,
            survived_ps as f64 / 1e6,
        )
    })
}

/// Whether as much may queue at a port that a switch pauses those who send to it: if the windows of all queue pairs through the port were full at a time. Queue
/// pairs of a program may take turns, and congestion control may prevent it, so this is a possibility and no forecast.
pub(crate) fn pauses_in_reach(t: &OwnedTables) -> bool {
    let modes = t.exps.first().map_or(0, |e| e.modes);
    if modes & mode::PFC == 0 || modes & mode::FLOW != 0 {
        return false;
    }
    let mut queued = vec![0u64; t.ports.len()];
    for tx in &t.flow_tx {
        let unsent = if tx.size > 0 { tx.size } else { u64::MAX };
        let in_flight = if tx.window > 0 { tx.window.min(unsent) } else { unsent };
        let first = tx.path_first as usize;
        let paths = u64::from(tx.n_paths.max(1));
        for port in t.paths.iter().skip(first).take(tx.path_len as usize * tx.n_paths.max(1) as usize) {
            if let Some(bytes) = queued.get_mut(port.usize()) {
                *bytes = bytes.saturating_add(in_flight.div_ceil(paths));
            }
        }
    }
    let pauses = |(port, bytes): (PortIdx, u64)| {
        let row = &t.ports[port.usize()];
        let free = t.switches[row.switch_idx.usize()].shared_size.saturating_sub(bytes);
        // At worst all of it came over one link.
        bytes > free >> row.shift
    };
    queued.iter().enumerate().any(|(port, bytes)| pauses((PortIdx::new(port), *bytes)))
}
