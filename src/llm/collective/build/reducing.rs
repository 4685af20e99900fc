//! The switches that reduce for a communicator: those inside servers, and trees between them.
//!
//! Layer: collective. Data alone; the caller of schedules finds the switches.

/// The switches that reduce for a communicator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReducingSwitches {
    /// Number of switches. Switch `i` is `n + i` in a schedule for `n` members.
    pub n: u32,
    /// The switch inside each server, servers in the order of their first member. Empty: none inside servers reduces.
    pub inside: Vec<u32>,
    /// Trees between servers: by the place of members in their servers, then by port of a NIC. Empty: none between servers reduces.
    pub trees: Vec<Vec<SwitchTree>>,
}

/// A tree of switches between servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchTree {
    /// Each switch, with the index of its parent here; `None`: it is the root. Children come before their parents.
    pub switches: Vec<(u32, Option<usize>)>,
    /// For each server, the index here of the switch that its member's NIC is linked to.
    pub leaf_of: Vec<usize>,
}

impl SwitchTree {
    /// Indices of the switches from that of server `s` to the root.
    pub(super) fn way_up(&self, s: usize) -> Vec<usize> {
        let next = |&at_switch: &usize| self.switches[at_switch].1;
        std::iter::successors(Some(self.leaf_of[s]), next).collect()
    }
}
