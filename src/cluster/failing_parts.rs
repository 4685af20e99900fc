//! Parts of a cluster that fail, and the servers that each of them stops.
//!
//! Layer: cluster.

use super::machine::ClusterMachine;

/// Kind of a part that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PartKind {
    Gpu,
    Host,
    /// Link of a NIC.
    Link,
    /// Leaf switch of a rack.
    Switch,
    /// A server that becomes slow, and does not stop.
    Straggler,
}

impl PartKind {
    /// All kinds, in the order of the variants.
    pub(super) const ALL: [PartKind; 5] =
        [PartKind::Gpu, PartKind::Host, PartKind::Link, PartKind::Switch, PartKind::Straggler];

    /// Name of the kind in failure traces.
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

/// A part that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub kind: PartKind,
    /// Index among the parts of its kind.
    pub index: u32,
}

impl Part {
    /// Number of parts of a kind in the cluster.
    pub(super) fn count(machine: &ClusterMachine, kind: PartKind) -> u32 {
        match kind {
            PartKind::Gpu => machine.servers() * machine.per_server,
            PartKind::Host | PartKind::Straggler => machine.servers(),
            PartKind::Link => machine.servers() * machine.links_per_server,
            PartKind::Switch => machine.racks,
        }
    }

    /// Servers that stop, or become slow, when this part fails; ascending.
    pub(super) fn stops(self, machine: &ClusterMachine) -> Vec<u32> {
        match self.kind {
            PartKind::Gpu => vec![self.index / machine.per_server],
            PartKind::Host | PartKind::Straggler => vec![self.index],
            PartKind::Link => vec![self.index / machine.links_per_server.max(1)],
            PartKind::Switch => (0..machine.servers()).filter(|&s| machine.rack[s as usize] == self.index).collect(),
        }
    }
}
