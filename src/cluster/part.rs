//! Parts of a cluster that fail, and the servers that each of them stops.
//!
//! Layer: cluster.

use super::machine::ClusterMachine;

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PartKind {
    Gpu,
    Host,
    /// Of a NIC.
    Link,
    /// A rack's leaf.
    Switch,
    /// A server that is slow, not stopped.
    Straggler,
}

impl PartKind {
    /// All kinds.
    pub(super) const ALL: [PartKind; 5] =
        [PartKind::Gpu, PartKind::Host, PartKind::Link, PartKind::Switch, PartKind::Straggler];

    /// As traces have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            PartKind::Gpu => "gpu",
            PartKind::Host => "host",
            PartKind::Link => "link",
            PartKind::Switch => "switch",
            PartKind::Straggler => "straggler",
        }
    }
}

/// One part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub kind: PartKind,
    /// Among those of its kind.
    pub index: u32,
}

impl Part {
    /// How many parts of a kind a cluster has.
    pub(super) fn count(machine: &ClusterMachine, kind: PartKind) -> u32 {
        match kind {
            PartKind::Gpu => machine.servers() * machine.per_server,
            PartKind::Host | PartKind::Straggler => machine.servers(),
            PartKind::Link => machine.servers() * machine.links_per_server,
            PartKind::Switch => machine.racks,
        }
    }

    /// The servers that stop, or are slow, with it: ascending.
    pub(super) fn stops(self, machine: &ClusterMachine) -> Vec<u32> {
        match self.kind {
            PartKind::Gpu => vec![self.index / machine.per_server],
            PartKind::Host | PartKind::Straggler => vec![self.index],
            PartKind::Link => vec![self.index / machine.links_per_server.max(1)],
            PartKind::Switch => (0..machine.servers()).filter(|&s| machine.rack[s as usize] == self.index).collect(),
        }
    }
}
