//! Collective operations: what they are, which transfers an algorithm makes of them, which algorithm NCCL would choose, what they cost on an idle system.
//!
//! Layer: collective. Pure: members are numbered from 0, times are ps; knows no network, no ranks, no workload.

mod build;
pub mod cost;
pub mod nccl;
mod schedule;
mod system;

pub use build::{BuildError, Options, Shape, build, known};
pub use cost::{cost_ps, send_ps};
pub use nccl::{Choice, Env, EnvError, Protocol, choose};
pub use schedule::{Schedule, Transfer};
pub use system::{Arch, Cpu, Inside, Placement, System};

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Reduce,
    /// Nobody goes on before all have arrived; carries no bytes.
    Barrier,
}

/// How a collective is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// What NCCL's cost model chooses.
    Auto,
    Ring,
    /// Double binary tree.
    Tree,
    HalvingDoubling,
    /// Everyone to everyone at once.
    Direct,
    /// Within servers first, between them by rail, and back.
    Hierarchical,
    /// NVLink SHARP: reduction in the NVSwitch.
    Nvls,
    /// Reduction in the network's switches (CollNet, SHARP).
    InNetwork,
}
