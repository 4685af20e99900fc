//! Explains why an experiment came to a halt with unfinished flows: which link waits for which.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::conserve::egress_queues;
use crate::outcomes::outcome::WatchdogOutcome;
use hyperfold_base::units::counted;
use hyperfold_columns::{EndOwner, LinkEndIdx, NO_FLOW, PortIdx, Tables, mode, qp};

/// Most links or flows that a message names.
const NAMED: usize = 8;

/// Writes a sentence for `failed.csv`. `name` returns the name of the link that a link end transmits on, for example `host3->leaf0`.
///
/// PRECONDITION: `t` holds one experiment, stopped between steps.
pub fn stuck(t: &Tables, name: &dyn Fn(LinkEndIdx) -> String) -> String {
    let flows: Vec<usize> = (0..t.flow_tx.len()).filter(|&f| t.flow_tx[f].flow_id != NO_FLOW).collect();
    let unfinished: Vec<usize> = flows.iter().copied().filter(|&f| is_unfinished(t, f)).collect();
    let mut out = format!("no progress: {} of {} flows cannot finish", unfinished.len(), flows.len());
    if let Some(&f) = unfinished.first() {
        let tx = &t.flow_tx[f];
        let _ = write!(
            out,
            " (first: flow {} on {}, {} of {} bytes acknowledged, {} in flight)",
            tx.flow_id,
            name(tx.nic.end()),
            tx.snd_una.min(tx.size),
            tx.size,
            tx.snd_nxt - tx.snd_una
        );
    }
    let waits = waits(t);
    if let Some(cycle) = find_cycle(&waits) {
        let names: Vec<String> = cycle.iter().take(NAMED).map(|&end| name(end)).collect();
        let more = if cycle.len() > NAMED { format!(" (and {} more)", cycle.len() - NAMED) } else { String::new() };
        let _ = write!(
            out,
            "; PFC deadlock: {}{more} -> back to {}: each link is paused until the next one drains. Break the cycle with {}, a larger \
             topology.buffer_mib, or transport.pfc = false; transport.pfc_watchdog = \"drop\" gives up packets instead",
            names.join(" waits for "),
            names[0],
            other_paths(joins_leaves(t, &cycle))
        );
        return out;
    }
    let paused: Vec<String> = waits
        .iter()
        .enumerate()
        .filter(|(_, w)| !w.is_empty())
        .map(|(end, _)| name(LinkEndIdx::new(end)))
        .take(NAMED)
        .collect();
    if !paused.is_empty() {
        let _ = write!(out, "; paused links: {}", paused.join(", "));
    }
    let down = down_links(t, name);
    if !down.is_empty() {
        let _ = write!(out, "; links that are down: {}", down.join(", "));
    }
    out
}

/// Paths on which no cycle comes about. `without_tiers`: switches with hosts are linked to each other, so there is no up and down.
fn other_paths(without_tiers: bool) -> &'static str {
    match without_tiers {
        true => {
            "a link between each two switches that exchange packets, so that none cross a third one (an optical mesh has them with \
             topology.spines of at least the number of other leaves)"
        }
        false => "paths that go up and then down only (routing.policy = \"file\" takes any)",
    }
}

/// Whether a link of these joins two switches that both have hosts, as in a ring, a torus or between leaves that circuits join.
fn joins_leaves(t: &Tables, ends: &[LinkEndIdx]) -> bool {
    let nics = t.exps[0].nic_len;
    let switch_of = |end: LinkEndIdx| {
        let port = if end.is_some() { end.port(nics) } else { None };
        port.map(|port| t.ports[port].switch_idx)
    };
    let leaves: BTreeSet<_> = t.nics.iter().filter_map(|nic| switch_of(nic.other_end())).collect();
    let is_leaf = |end: LinkEndIdx| switch_of(end).is_some_and(|switch| leaves.contains(&switch));
    let far = |end: LinkEndIdx| end.port(nics).map(|port| t.ports[port].other_end());
    ends.iter().any(|&end| is_leaf(end) && far(end).is_some_and(is_leaf))
}

/// Says what the watchdog of pauses did until a flow gave up. Empty if it did nothing.
pub fn watchdog_acted(t: &Tables) -> String {
    let WatchdogOutcome { starts, drops, .. } = WatchdogOutcome::read(&t.exps[0], &t.shared);
    if starts == 0 {
        return String::new();
    }
    format!(
        "; the watchdog of pauses (transport.pfc_watchdog) acted {} until then and dropped {}: a shorter transport.pfc_watchdog_restore_us, or a longer \
         transport.rto_us, gives flows time to go on",
        counted(starts, "time"),
        counted(drops, "packet")
    )
}

/// Whether flow `f` has not ended, or has a message that it has not sent.
fn is_unfinished(t: &Tables, f: usize) -> bool {
    let tx = &t.flow_tx[f];
    match t.exps[0].modes & mode::FLOW {
        0 => tx.flags & qp::FINISHED == 0,
        // A queue pair has no size.
        _ => tx.flags & qp::QUEUED != 0 || tx.snd_una < tx.size,
    }
}

/// Returns the names of the first links that are down at the end, from the end that is a switch.
fn down_links(t: &Tables, name: &dyn Fn(LinkEndIdx) -> String) -> Vec<String> {
    let nics = t.exps[0].nic_len;
    let is_down = |port: &PortIdx| {
        let row = &t.ports[*port];
        // Of the two ends of a link between switches, the first one names it.
        row.peer.is_some() && row.is_cut_off() && row.other_end().port(nics).is_none_or(|other| *port < other)
    };
    let ports = (0..t.ports.len()).map(PortIdx::new).filter(is_down);
    ports.take(NAMED).map(|port| name(port.end(nics))).collect()
}

/// Returns, for every paused link end, the egresses that hold packets that came in over its link. The list is empty if the end is not paused.
fn waits(t: &Tables) -> Vec<Vec<LinkEndIdx>> {
    let nics = t.exps[0].nic_len;
    let ends = (t.nics.len() + t.ports.len()) as u32;
    let mut holders: Vec<Vec<LinkEndIdx>> = vec![Vec::new(); t.ports.len()];
    for port in (0..t.ports.len()).map(PortIdx::new) {
        let end = port.end(nics);
        for mut p in egress_queues(t, port) {
            while p.is_some() {
                let pk = &t.packets[p];
                let list = &mut holders[pk.in_port.usize()];
                if list.last() != Some(&end) {
                    list.push(end);
                }
                p = pk.next;
            }
        }
    }
    for list in &mut holders {
        list.sort_unstable();
        list.dedup();
    }
    LinkEndIdx::all(ends)
        .map(|end| {
            // An end whose link is down is not paused.
            let peer = match end.owner(nics) {
                EndOwner::Nic(n) => t.nics[n].other_end(),
                EndOwner::Port(p) => t.ports[p].other_end(),
            };
            match peer.port(nics) {
                Some(port) if t.is_paused(end) => holders[port.usize()].clone(),
                _ => Vec::new(),
            }
        })
        .collect()
}

/// Returns the first cycle of waits found, searching from the lowest link end.
fn find_cycle(waits: &[Vec<LinkEndIdx>]) -> Option<Vec<LinkEndIdx>> {
    // 0 not seen, 1 on the path, 2 done.
    let mut state = vec![0u8; waits.len()];
    for start in 0..waits.len() {
        if state[start] != 0 {
            continue;
        }
        let mut path: Vec<(LinkEndIdx, usize)> = vec![(LinkEndIdx::new(start), 0)];
        state[start] = 1;
        while let Some((end, next)) = path.last_mut() {
            if let Some(&next_end) = waits[end.usize()].get(*next) {
                *next += 1;
                match state[next_end.usize()] {
                    0 => {
                        state[next_end.usize()] = 1;
                        path.push((next_end, 0));
                    }
                    1 => {
                        let cycle_start = path
                            .iter()
                            .position(|(e, _)| *e == next_end)
                            .expect("a link end in state 1 is on the path");
                        return Some(path[cycle_start..].iter().map(|(e, _)| *e).collect());
                    }
                    _ => {}
                }
            } else {
                state[end.usize()] = 2;
                path.pop();
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_and_chains_are_not() {
        let end = LinkEndIdx;
        assert_eq!(find_cycle(&[vec![end(1)], vec![end(2)], vec![], vec![end(0)]]), None);
        assert_eq!(find_cycle(&[vec![end(1)], vec![end(2)], vec![end(1)], vec![]]), Some(vec![end(1), end(2)]));
    }
}
