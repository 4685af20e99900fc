//! A flow whose paths change when links fail or come back.

use std::collections::BTreeSet;

use crate::routing::{FlowKey, FlowPaths};

/// A flow, as routing over the links that are left needs it.
#[derive(Clone, Copy, Debug)]
pub struct RoutedFlow<'a> {
    /// Ranks and ports, by which a policy chooses.
    pub key: FlowKey,
    /// Link of its NICs that it is pinned to; `None`: any.
    pub lane: Option<u32>,
    /// Paths that it takes while no link is down.
    pub paths: &'a FlowPaths,
    /// Paths that it takes at first, around links that have failed before.
    pub first: &'a FlowPaths,
    /// Whether it may take other ports of its hosts.
    pub failover: PortFailover,
}

/// Whether a flow may take other ports of its two hosts when no path is left between those that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortFailover {
    /// It stays on its ports, and waits.
    Off,
    /// It takes other ports, until a path between its own is back.
    On,
    /// It goes where its ports go: a port whose link has failed moves to another one with all queue pairs and tasks that began there.
    Together,
}

/// Whether some path crosses one of `links`.
pub fn crosses(paths: &FlowPaths, links: &BTreeSet<u32>) -> bool {
    !links.is_empty() && paths.data.iter().chain(&paths.ack).flatten().any(|&arc| links.contains(&(arc / 2)))
}
