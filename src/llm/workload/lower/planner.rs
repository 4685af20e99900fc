//! What lowering asks of its caller: how a collective is carried out.
//!
//! Layer: workload. Decides nothing.

use std::sync::Arc;

use crate::collective::{Algorithm, CollectiveOp, EqualSteps, Overheads, Protocol, Schedule};
use crate::workload::program::Dim;

/// How a collective is carried out.
#[derive(Clone, Debug)]
pub enum CollectivePlan {
    /// Messages of a schedule, with the protocol's flags on the wire. Each message starts later by its overhead.
    Transfers { schedule: Arc<Schedule>, protocol: Protocol, overheads: Overheads },
    /// One flow over all edges of the collective. Without other traffic it takes at least `min_ps`.
    OneFlow { steps: Arc<EqualSteps>, overheads: Overheads, min_ps: u64 },
    /// A time that starts when all members have arrived. It uses no network.
    Analytic { ps: u64 },
}

/// One collective that is to be planned.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub op: CollectiveOp,
    pub bytes: u64,
    pub dim: Dim,
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
