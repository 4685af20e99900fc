//! Stores what changes in the network while an experiment runs: links that fail and come back, new paths, rates, and losses.
//!
//! Layer: host.

use std::collections::{BTreeMap, BTreeSet};

use hyperfold_base::budget;
use hyperfold_base::units::{BPS_PER_MBPS, tx_ps};
use hyperfold_columns::{FlowIdx, LOSS_WORDS, NicIdx, OwnedTables, RateColumns, TableChange, loss};
use hyperfold_network::changes::{NetworkChange, TimedChange};
use hyperfold_network::topology::ArcIdx;
use hyperfold_network::transport::Transport;

use crate::tables::link_ends::{Ends, add_data_paths, add_paths};
use crate::tables::packet_case::PacketCase;
use crate::tables::path_choices::PathChoices;

/// Stores the changes of the network, with their new paths. `rates`: those that an INT header can name, in Mb/s.
pub(super) fn changes(
    t: &mut OwnedTables,
    case: &PacketCase,
    ends: &Ends,
    choices: &mut PathChoices,
    flow_rows: &[FlowIdx],
    rates: &[u32],
) {
    if case.changes.is_empty() {
        return;
    }
    let mut own_rates = BTreeMap::new();
    let end_of = |arc: u32| ends.end_of_arc[arc as usize];
    let nic_of = |arc: u32| NicIdx(end_of(arc).0);
    let list = case.changes.iter().map(|timed| {
        budget::check("changes of the network");
        let row_change = match &timed.change {
            NetworkChange::LinkDown(link) => TableChange::LinkDown([end_of(2 * link), end_of(2 * link + 1)]),
            NetworkChange::LinkUp(link) => TableChange::LinkUp([end_of(2 * link), end_of(2 * link + 1)]),
            NetworkChange::NewPaths { flow, paths } => TableChange::NewPaths {
                flow: flow_rows[*flow],
                data: add_data_paths(t, (flow_rows[*flow], &paths.data), ends, choices),
                answers: add_paths(t, &paths.ack, ends),
            },
            NetworkChange::MovePort { home, place } => {
                TableChange::MoveTasks { home: nic_of(*home), to: nic_of(*place) }
            }
            NetworkChange::Rate { arc, rate_bps } => {
                own_rates.insert(end_of(*arc), case.network.arc_rate(*arc));
                TableChange::Rate { end: end_of(*arc), columns: rate_columns(case.transport, *rate_bps, rates) }
            }
            NetworkChange::Loss { arc, share_q32 } => TableChange::Loss { end: end_of(*arc), share_q32: *share_q32 },
        };
        (timed.time_ps, row_change)
    });
    t.changes.list = list.collect();
    t.changes.own_rates = own_rates.into_iter().collect();
    if t.changes.list.iter().any(|(_, change)| matches!(change, TableChange::MoveTasks { .. })) {
        budget::announce_rows::<NicIdx>("tasks that move", t.tasks.len() as u64);
        t.changes.task_homes = t.tasks.iter().map(|task| task.owner).collect();
    }
    t.changes.has_losses = case.changes.iter().any(|timed| matches!(timed.change, NetworkChange::Loss { .. }));
    if t.changes.has_losses {
        loss_words(t, ends);
    }
}

/// For each NIC the number of queue pairs that move there while an experiment of packets runs; empty if none does.
pub(super) fn moves_to(case: &PacketCase, ends: &Ends) -> Vec<u32> {
    if case.options.flow_level {
        return Vec::new();
    }
    let moves = case.changes.iter().filter_map(|timed| match &timed.change {
        NetworkChange::NewPaths { flow, paths } => Some((paths.ports().0, *flow)),
        _ => None,
    });
    let moves: BTreeSet<(ArcIdx, usize)> = moves.filter(|&(arc, flow)| arc != case.paths[flow].ports().0).collect();
    let mut counts = vec![0; if moves.is_empty() { 0 } else { ends.n_nics as usize }];
    for (arc, _) in moves {
        counts[ends.end_of_arc[arc as usize].usize()] += 1;
    }
    counts
}

/// Columns of a NIC or a port with `rate` in bps.
pub(super) fn rate_columns(tr: &Transport, rate: u64, rates: &[u32]) -> RateColumns {
    let mbps = (rate / BPS_PER_MBPS) as u32;
    RateColumns {
        rate,
        tx_full: tx_ps(tr.payload + tr.data_overhead, rate, tr.clock_ps),
        tx_ack: tx_ps(tr.ack_bytes, rate, tr.clock_ps),
        rate_idx: rates.iter().position(|&x| x == mbps).unwrap_or(0) as u32,
    }
}

/// Adds the shared words about losses at random. No link end loses packets yet.
fn loss_words(t: &mut OwnedTables, ends: &Ends) {
    budget::announce_rows::<u32>("losses of links", ends.arcs.len() as u64 * u64::from(LOSS_WORDS));
    t.shared.extend(ends.arcs.iter().flat_map(|&arc| {
        let mut words = [0; LOSS_WORDS as usize];
        words[loss::ARC as usize] = arc;
        words
    }));
}

/// Lowest rate in bps of each direction of a link whose rate changes.
pub(crate) fn slowest_rates(changes: &[TimedChange]) -> BTreeMap<ArcIdx, u64> {
    let mut slowest = BTreeMap::new();
    for timed in changes {
        if let NetworkChange::Rate { arc, rate_bps } = timed.change {
            slowest.entry(arc).and_modify(|rate: &mut u64| *rate = rate_bps.min(*rate)).or_insert(rate_bps);
        }
    }
    slowest
}
