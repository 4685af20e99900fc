//! Starts the transmitter of a port between two steps, for what the host does there: changes of the network, and the watchdog of pauses.

use crate::cpu::key::periodic;
use crate::cpu::switch::egress::completion_time;
use hyperfold_columns::{PortIdx, Tables};

/// Lets `port` start its next transmission at `now`, if it is idle and a packet waits: as if a transmission ended at `now`. The event is caused by a
/// change of the network.
pub(crate) fn kick(t: &mut Tables, port: PortIdx, now: u64) {
    let row = &mut t.ports[port];
    if row.q_head.is_some() && (row.busy == 0 || row.busy_until < now) {
        (row.busy, row.busy_until, row.busy_d) = (1, now, periodic(u32::MAX, u32::MAX, 0));
    }
    let clock = completion_time(t, port);
    let clock_idx = port.end(t.exps[0].nic_len).own_clock(t.exps[0].end_len);
    t.clocks[clock_idx] = clock;
}
