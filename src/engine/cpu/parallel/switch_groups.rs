//! Groups of switches of which no two are joined by a link. The switches of one group can be processed in parallel.
//!
//! Layer: engine. A switch takes packets off the wires to it and puts packets on the wires to its neighbours. So neighbours must not be processed at
//! the same time; switches that are no neighbours share no row. The switches of a fat-tree make two groups.

use hyperfold_columns::{EndOwner, NicIdx, PortIdx, SwitchIdx, Tables};

/// Maximum number of groups. Each group costs one barrier per step; a network that needs more groups is stepped by one thread (our choice).
const MAX_GROUPS: usize = 8;

/// The switches of an experiment, by group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchGroups(Vec<Vec<SwitchIdx>>);

impl SwitchGroups {
    /// Puts each switch in the first group that has none of its neighbours. Returns `None` if there would be too many groups, or if two NICs are
    /// joined by a link.
    pub fn of(t: &Tables) -> Option<SwitchGroups> {
        let nics = t.exps[0].nic_len;
        let to_nic = |n: NicIdx| matches!(t.nics[n].other_end().owner(nics), EndOwner::Nic(_));
        if NicIdx::all(nics).any(|n| t.nics[n].peer.is_some() && to_nic(n)) {
            return None;
        }
        let mut group_of = vec![usize::MAX; t.switches.len()];
        let mut groups: Vec<Vec<SwitchIdx>> = Vec::new();
        for s in SwitchIdx::all(t.switches.len() as u32) {
            let mut taken = [false; MAX_GROUPS];
            for port in t.switches[s].ports() {
                if let Some(next) = neighbour(t, port)
                    && let Some(group) = taken.get_mut(group_of[next.usize()])
                {
                    *group = true;
                }
            }
            let group = taken.iter().position(|taken| !taken)?;
            groups.resize_with(groups.len().max(group + 1), Vec::new);
            groups[group].push(s);
            group_of[s.usize()] = group;
        }
        Some(SwitchGroups(groups))
    }

    /// The switches of each group.
    pub fn groups(&self) -> &[Vec<SwitchIdx>] {
        &self.0
    }
}

/// The switch at the other end of `port`'s link, also while that is down: it may come back.
fn neighbour(t: &Tables, port: PortIdx) -> Option<SwitchIdx> {
    let other = Some(t.ports[port].other_end()).filter(|other| other.is_some());
    other?.port(t.exps[0].nic_len).map(|port| t.ports[port].switch_idx)
}
