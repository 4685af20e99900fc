//! Runs the switch systems, one whole switch after another.
//!
//! Within a step a switch does not see what another does, so the order of switches changes nothing. Going switch by switch, the packets that `plan`
//! took off the wires are still in the processor's caches when `forward` sends them on. A GPU runs system by system, all switches at once.

use super::{classify, forward, forward_joint, plan};
use crate::cpu::lists::{LANES, fetch, fetch_rest};
use crate::systems::{SwitchRows, run_switches};
use hyperfold_columns::{LinkEndIdx, PacketIdx, PortIdx, SwitchIdx, Tables};

/// Value of `Switch::independent` while a step waits for pause frames: this switch was processed, others were not.
pub const DONE: u32 = 2;
/// Minimum number of packets on their way to a switch for which prefetching pays (measured).
const WORTH: u32 = 24;
/// Maximum number of packets of one queue that are prefetched: those of all queues of a switch must stay in the cache (our choice).
const MAX_PREFETCHED: u64 = 64;

/// Processes all switches up to `end`, or those that a step left which waits for pause frames. PRECONDITION: `t` holds one experiment.
pub fn all(t: &mut Tables, end: u64) {
    let mut lacking = false;
    for s in SwitchIdx::all(t.exps[0].switch_len) {
        if t.switches[s].independent & DONE != 0 {
            t.switches[s].independent &= !DONE;
            if !lacking {
                continue;
            }
        } else if one(t, s, end) {
            if !lacking {
                SwitchIdx::all(s.0).for_each(|s| t.switches[s].independent |= DONE);
            }
            lacking = true;
            continue;
        }
        if lacking {
            t.switches[s].independent |= DONE;
        }
    }
}

/// Processes switch `s` up to `end`. Returns whether it lacks pause frames to go on; then nothing has left it.
#[inline]
pub fn one(t: &mut Tables, s: SwitchIdx, end: u64) -> bool {
    // Where `plan` does not run, it ran before, and something arrived.
    let mut switch = WholeSwitch { s, arrivals: true, lacks: false };
    run_switches(t, &mut switch, end);
    switch.lacks
}

/// One switch with all its ports.
struct WholeSwitch {
    s: SwitchIdx,
    /// Whether packets arrive in this step.
    arrivals: bool,
    /// Whether it lacks pause frames.
    lacks: bool,
}

impl SwitchRows for WholeSwitch {
    #[inline]
    fn plan(&mut self, t: &mut Tables, end: u64) {
        self.arrivals = plan_all(t, self.s, end);
    }

    #[inline]
    fn classify(&mut self, t: &mut Tables, end: u64) {
        if !self.arrivals && t.switches[self.s].congested_n == 0 {
            // `classify` would find the same.
            t.switches[self.s].independent = 1;
        } else {
            classify::row(t, self.s, end);
            self.lacks = classify::lacks_frames(t, self.s);
        }
    }

    /// If nothing arrives, only ports with an event of their own have something to do.
    #[inline]
    fn forward(&mut self, t: &mut Tables, end: u64) {
        if t.switches[self.s].independent == 0 {
            return;
        }
        let own = (t.exps[0].end_len + t.exps[0].nic_len) as usize;
        for port in t.switches[self.s].ports() {
            if self.arrivals {
                forward::row(t, port, end);
            } else if t.clocks[own + port.usize()] < end {
                forward::forward(t, port, end);
            }
        }
    }

    #[inline]
    fn forward_joint(&mut self, t: &mut Tables, end: u64) {
        if !self.lacks {
            forward_joint::row(t, self.s, end);
        }
    }
}

/// Runs `plan` for all ports of switch `s`. Returns whether anything arrives.
fn plan_all(t: &mut Tables, s: SwitchIdx, end: u64) -> bool {
    let ports = t.switches[s].ports();
    let nics = t.exps[0].nic_len;
    let due = |t: &Tables, port: PortIdx| t.clocks[port.end(nics).usize()] < end;
    let (mut any, mut packets) = (false, 0);
    for port in ports.clone() {
        if due(t, port) {
            (any, packets) = (true, packets + t.wires[port.end(nics)].n);
        }
    }
    if !any {
        return false;
    }
    if packets >= WORTH {
        let sw = &t.switches[s];
        let (port_first, port_n, plan_first) = (sw.port_first, sw.port_n, sw.plan_first);
        let first = port_first.end(nics);
        fetch_with(t, ports.clone(), end, |link_end, path| {
            // The path of a pause frame may name a port of another switch, whose plan is not in this table range.
            if let Some(&egress) = t.paths.get(path as usize) {
                let column = egress.0.wrapping_sub(port_first.0);
                t.plans.prefetch((plan_first + (link_end - first) * port_n).wrapping_add(column));
            }
        });
    }
    for port in ports {
        if due(t, port) {
            plan::plan(t, port, end);
        }
    }
    true
}

/// Prefetches the packets that arrive at `ports` before `end`, and the heads of their queues.
pub fn fetch_arrivals(t: &Tables, ports: impl Iterator<Item = PortIdx> + Clone, end: u64) {
    fetch_with(t, ports, end, |_, _| {});
}

/// [`fetch_arrivals`], with a function `also` that is called with link ends and path entries that have been loaded.
#[inline]
fn fetch_with(t: &Tables, ports: impl Iterator<Item = PortIdx> + Clone, end: u64, also: impl Fn(LinkEndIdx, u32)) {
    let nics = t.exps[0].nic_len;
    fetch_queues(t, ports.clone(), end);
    fetch(t, ports.map(|port| port.end(nics)), end, |link_end, row, path| {
        t.paths.prefetch(row.path);
        also(link_end, path);
    });
}

/// Prefetches the packets that leave the queues of `ports` before `end`, from several queues at once, and the head of each queue.
fn fetch_queues(t: &Tables, mut ports: impl Iterator<Item = PortIdx>, end: u64) {
    let own = (t.exps[0].end_len + t.exps[0].nic_len) as usize;
    loop {
        let mut heads = [PacketIdx::NONE; LANES];
        let mut left = [0u32; LANES];
        let mut lanes = 0;
        for port in ports.by_ref() {
            let row = &t.ports[port];
            if row.q_head.is_none() {
                continue;
            }
            let completes = t.clocks[own + port.usize()];
            heads[lanes] = row.q_head;
            // More packets leave if some are short.
            let leave = end.saturating_sub(completes) / row.tx_full.max(1) + 1;
            left[lanes] = leave.min(MAX_PREFETCHED) as u32;
            t.packets.prefetch(row.q_head.0);
            lanes += 1;
            if lanes == LANES {
                break;
            }
        }
        if lanes == 0 {
            return;
        }
        let mut any = true;
        while any {
            any = false;
            for (p, left) in heads[..lanes].iter_mut().zip(&mut left) {
                let Some(row) = t.packets.get(p.usize()) else { continue };
                fetch_rest(t, *p);
                *left -= 1;
                let next = if *left > 0 { row.next } else { PacketIdx::NONE };
                t.packets.prefetch(next.0);
                any |= next.is_some();
                *p = next;
            }
        }
    }
}
