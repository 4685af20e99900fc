//! The rows of a partition at switches, grouped by switch. Within a step a switch does not see what another does, so the order of switches changes
//! nothing.
//!
//! Layer: fold/rows. The packets that a switch takes off its wires are still in the processor's caches when its ports send them on. And threads can
//! share the switches.

use std::ops::Range;

use crate::rows::partition_rows::PartitionRows;
use hyperfold_columns::{PortIdx, SwitchIdx, Tables};
use hyperfold_engine::cpu::parallel::switch_groups::SwitchGroups;

/// The rows of one partition, by group of switches and by switch. Switches of a group are not joined by links.
#[derive(Clone)]
pub(crate) struct RowsBySwitch {
    /// Link ends with their places in the partition, and ports; both in the order of `switches`.
    ends: Vec<(usize, PortIdx)>,
    ports: Vec<PortIdx>,
    switches: Vec<SwitchRows>,
    /// The range of `switches` that each group has.
    pub groups: Vec<Range<usize>>,
    counts: (usize, usize),
}

/// One switch, and the ranges of its rows.
#[derive(Clone)]
struct SwitchRows {
    switch: SwitchIdx,
    ends: Range<usize>,
    ports: Range<usize>,
}

/// The rows of a partition at one switch.
pub(crate) struct AtSwitch<'a> {
    pub switch: SwitchIdx,
    pub ends: &'a [(usize, PortIdx)],
    pub ports: &'a [PortIdx],
}

/// The group of each switch, and whether threads may share the switches of a group.
pub(crate) struct GroupOfSwitch {
    group: Vec<u8>,
    n: usize,
    pub shareable: bool,
}

impl GroupOfSwitch {
    pub(crate) fn of(t: &Tables) -> GroupOfSwitch {
        let mut group = vec![0; t.switches.len()];
        let groups = SwitchGroups::of(t);
        let n = groups.as_ref().map_or(1, |groups| groups.groups().len());
        for (k, switches) in groups.iter().flat_map(SwitchGroups::groups).enumerate() {
            switches.iter().for_each(|s| group[s.usize()] = k as u8);
        }
        GroupOfSwitch { group, n, shareable: groups.is_some() }
    }
}

impl RowsBySwitch {
    /// The rows of `rows`, by switch.
    pub(crate) fn of(t: &Tables, rows: &PartitionRows, groups: &GroupOfSwitch) -> RowsBySwitch {
        let rank = |port: PortIdx| {
            let s = t.ports[port].switch_idx;
            (groups.group[s.usize()], s)
        };
        let mut ends: Vec<(usize, PortIdx)> = rows.ends.iter().copied().enumerate().collect();
        ends.sort_by_key(|&(_, end)| rank(end));
        let mut ports = rows.ports.clone();
        ports.sort_by_key(|&port| rank(port));
        let mut switches: Vec<(u8, SwitchIdx)> =
            ends.iter().map(|&(_, end)| rank(end)).chain(ports.iter().map(|&port| rank(port))).collect();
        switches.sort_unstable();
        switches.dedup();
        let groups = (0..groups.n)
            .map(|k| {
                let from = |k: usize| switches.partition_point(|&(group, _)| usize::from(group) < k);
                from(k)..from(k + 1)
            })
            .collect();
        let (mut end, mut port) = (0, 0);
        let switches = switches
            .into_iter()
            .map(|(_, switch)| {
                let (first_end, first_port) = (end, port);
                end += ends[end..].iter().take_while(|&&(_, end)| t.ports[end].switch_idx == switch).count();
                port += ports[port..].iter().take_while(|&&port| t.ports[port].switch_idx == switch).count();
                SwitchRows { switch, ends: first_end..end, ports: first_port..port }
            })
            .collect();
        RowsBySwitch { ends, ports, switches, groups, counts: (rows.ends.len(), rows.ports.len()) }
    }

    /// Whether these are still all of `rows`, of the same partition: rows are only ever added to one.
    pub(crate) fn are_all_of(&self, rows: &PartitionRows) -> bool {
        self.counts == (rows.ends.len(), rows.ports.len())
    }

    /// The rows at the `k`-th switch.
    pub(crate) fn rows_at(&self, k: usize) -> AtSwitch<'_> {
        let SwitchRows { switch, ends, ports } = &self.switches[k];
        AtSwitch { switch: *switch, ends: &self.ends[ends.clone()], ports: &self.ports[ports.clone()] }
    }

    pub(crate) fn n_switches(&self) -> usize {
        self.switches.len()
    }
}
