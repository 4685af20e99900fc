//! The interface by which lowering asks its caller: how a collective is carried out.
//!
//! Layer: workload. Decides nothing.

use std::sync::Arc;

use crate::collective::{Algorithm, CollectiveOp, EqualSteps, Overheads, Protocol, Schedule};
use crate::workload::program::Dim;
use hyperfold_network::topology::NodeIdx;

/// How a collective is carried out.
#[derive(Clone, Debug)]
pub enum CollectivePlan {
    /// Messages of a schedule, with the protocol's flags on the wire. Each message starts later by its overhead.
    Transfers {
        /// Messages with their dependencies.
        schedule: Arc<Schedule>,
        /// Protocol, whose flags are added to the bytes.
        protocol: Protocol,
        /// Software overheads of messages.
        overheads: Overheads,
        /// The switches of the schedule.
        switches: Arc<Vec<ReducingSwitch>>,
    },
    /// One flow over all edges of the collective.
    OneFlow {
        /// Steps that the flow stands for.
        steps: Arc<EqualSteps>,
        /// Software overheads of their messages.
        overheads: Overheads,
        /// Least time without other traffic, ps.
        min_ps: u64,
    },
    /// A time that starts when all members have arrived. It uses no network.
    Analytic {
        /// Length of that time, ps.
        ps: u64,
    },
}

/// A switch that reduces for a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReducingSwitch {
    /// The server that it is in; `None`: it lies between servers.
    pub server: Option<u32>,
    /// Its node in the network; `None`: what it reduces takes the path inside its server that uses no packets.
    pub node: Option<NodeIdx>,
}

/// One collective that is to be planned.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Operation of the collective.
    pub op: CollectiveOp,
    /// Size as nccl-tests counts it, bytes.
    pub bytes: u64,
    /// Dimension that it belongs to.
    pub dim: Dim,
    /// The algorithm, if the program names one.
    pub algorithm: Option<Algorithm>,
    /// Index of the group in the workload.
    pub group: u32,
    /// Ranks of the group, in the communicator's order.
    pub members: &'a [u32],
    /// Weights of the members as destinations of an uneven all-to-all.
    pub shares: Option<&'a [u64]>,
}

/// Decides how collectives are carried out.
pub trait Planner {
    /// Plans one collective.
    ///
    /// # Errors
    /// The requested algorithm cannot do this operation on this group. The text is a sentence for the user.
    fn plan(&mut self, asked: &Asked) -> Result<CollectivePlan, String>;
}
