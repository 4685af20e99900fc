//! Why an experiment came to a halt with flows unfinished: who waits for whom.

use std::fmt::Write;

use crate::columns::{NONE, Tables, qp};

/// At most this many links or flows are named.
const NAMED: usize = 8;

/// A sentence for `failed.csv`. `name` names the link that a link end transmits on, for example `3->12`.
///
/// PRECONDITION: `t` holds one experiment, stopped between steps.
pub fn stuck(t: &Tables, name: &dyn Fn(u32) -> String) -> String {
    let unfinished: Vec<usize> = (0..t.flow_tx.len()).filter(|&f| t.flow_tx[f].flags & qp::FINISHED == 0).collect();
    let mut out = format!("no progress: {} of {} flows cannot finish", unfinished.len(), t.flow_tx.len());
    if let Some(&f) = unfinished.first() {
        let tx = &t.flow_tx[f];
        let _ = write!(
            out,
            " (first: flow {} on {}, {} of {} bytes acknowledged, {} in flight)",
            tx.flow_id,
            name(tx.nic),
            tx.snd_una,
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
            "; PFC deadlock: {}{more} -> back to {}: each link is paused until the next one drains. Break the cycle with up-down routing, a larger \
             topology.buffer_mib, or transport.pfc = false",
            names.join(" waits for "),
            names[0]
        );
        return out;
    }
    let paused: Vec<String> =
        waits.iter().enumerate().filter(|(_, w)| !w.is_empty()).map(|(end, _)| name(end as u32)).take(NAMED).collect();
    if !paused.is_empty() {
        let _ = write!(out, "; paused links: {}", paused.join(", "));
    }
    out
}

/// For every link end that is paused: the egresses that hold what came in over its link.
fn waits(t: &Tables) -> Vec<Vec<u32>> {
    let nics = t.exps[0].nic_len;
    let ends = (t.nics.len() + t.ports.len()) as u32;
    let mut holders: Vec<Vec<u32>> = vec![Vec::new(); t.ports.len()];
    for (port, row) in t.ports.iter().enumerate() {
        let mut p = row.q_head;
        while p != NONE {
            let pk = &t.packets[p as usize];
            let list = &mut holders[pk.in_port as usize];
            let end = nics + port as u32;
            if list.last() != Some(&end) {
                list.push(end);
            }
            p = pk.next;
        }
    }
    for list in &mut holders {
        list.sort_unstable();
        list.dedup();
    }
    (0..ends)
        .map(|end| {
            let (paused, peer) = if end < nics {
                let n = &t.nics[end as usize];
                (n.paused != 0, n.peer)
            } else {
                let p = &t.ports[(end - nics) as usize];
                (p.paused != 0, p.peer)
            };
            if paused && peer >= nics { holders[(peer - nics) as usize].clone() } else { Vec::new() }
        })
        .collect()
}

/// A cycle of waits, if there is one: the first met, from the lowest link end.
fn find_cycle(waits: &[Vec<u32>]) -> Option<Vec<u32>> {
    // 0 not seen, 1 on the path, 2 done.
    let mut state = vec![0u8; waits.len()];
    for start in 0..waits.len() {
        if state[start] != 0 {
            continue;
        }
        let mut path: Vec<(u32, usize)> = vec![(start as u32, 0)];
        state[start] = 1;
        while let Some((end, next)) = path.last_mut() {
            if let Some(&to) = waits[*end as usize].get(*next) {
                *next += 1;
                match state[to as usize] {
                    0 => {
                        state[to as usize] = 1;
                        path.push((to, 0));
                    }
                    1 => {
                        let from =
                            path.iter().position(|(e, _)| *e == to).expect("a link end in state 1 is on the path");
                        return Some(path[from..].iter().map(|(e, _)| *e).collect());
                    }
                    _ => {}
                }
            } else {
                state[*end as usize] = 2;
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
        assert_eq!(find_cycle(&[vec![1], vec![2], vec![], vec![0]]), None);
        assert_eq!(find_cycle(&[vec![1], vec![2], vec![1], vec![]]), Some(vec![1, 2]));
    }
}
