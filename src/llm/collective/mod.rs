//! Collective operations: which transfers an algorithm makes of them, which algorithm NCCL would choose, and what they cost on an idle system.
//!
//! Layer: collective. Pure: members are numbered from 0, times are in ps. It knows no network, no ranks, no workload.

mod base_time;
mod build;
mod chunks;
mod communicator;
#[cfg(test)]
mod consistency;
mod cost;
mod curve_kind;
mod curves;
mod equal_steps;
mod experts;
mod idle;
mod link_times;
pub mod nccl;
mod reference;
mod server;
mod system;
mod transfers;

pub use base_time::BaseTimes;
pub use build::{ReducingSwitches, ScheduleError, ScheduleOptions, Shape, SwitchTree, build, known};
pub use chunks::{ChunkPasses, analytic_ps, chunk_passes};
pub use communicator::Communicator;
pub use cost::{choose, cost_ps, cost_with_ps, intra_ps, send_ps};
pub use equal_steps::{EdgeRing, EqualSteps};
pub use experts::{ExpertDirection, ExpertDispatcher, ExpertExchange};
pub use idle::{IdleMachine, InsideLink, Overheads, SwitchDelays, latencies, message_overheads};
pub use nccl::{Choice, Env, EnvError, Protocol};
pub use reference::{has_measured_run, measured_run, measured_runs};
pub use server::{NoSuchServer, Server};
pub use system::{Arch, CollectiveSystem, Cpu, MemberPlacement, ServerInterconnect};
pub use transfers::{Schedule, Transfer};

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CollectiveOp {
    /// Every member gets the sum.
    AllReduce,
    /// Every member gets the parts of all.
    AllGather,
    /// Every member gets its part of the sum.
    ReduceScatter,
    /// Every member sends a part to every other.
    AllToAll,
    /// Every member gets the data of the root.
    Broadcast,
    /// The root gets the sum.
    Reduce,
    /// No member goes on before all have arrived; it carries no bytes.
    Barrier,
    /// Every member sends tokens to experts on the others, or results back, by kernels that do not use NCCL.
    Experts(ExpertExchange),
}

impl CollectiveOp {
    /// All operations but exchanges with experts, which have parameters.
    pub const PLAIN: [CollectiveOp; 7] = [
        CollectiveOp::AllReduce,
        CollectiveOp::AllGather,
        CollectiveOp::ReduceScatter,
        CollectiveOp::AllToAll,
        CollectiveOp::Broadcast,
        CollectiveOp::Reduce,
        CollectiveOp::Barrier,
    ];

    /// Number of the operation in trained models of slowdown.
    pub fn number(self) -> u32 {
        match self {
            CollectiveOp::AllReduce => 0,
            CollectiveOp::AllGather => 1,
            CollectiveOp::ReduceScatter => 2,
            CollectiveOp::AllToAll | CollectiveOp::Experts(_) => 3,
            CollectiveOp::Broadcast => 4,
            CollectiveOp::Reduce => 5,
            CollectiveOp::Barrier => 6,
        }
    }

    /// Name of the operation, as `workload.op` has it.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveOp::AllReduce => "all-reduce",
            CollectiveOp::AllGather => "all-gather",
            CollectiveOp::ReduceScatter => "reduce-scatter",
            CollectiveOp::AllToAll => "all-to-all",
            CollectiveOp::Broadcast => "broadcast",
            CollectiveOp::Reduce => "reduce",
            CollectiveOp::Barrier => "barrier",
            CollectiveOp::Experts(exchange) => match exchange.direction {
                ExpertDirection::Dispatch => "dispatch",
                ExpertDirection::Combine => "combine",
            },
        }
    }

    /// Whether every member sends to every other what is for that one alone.
    pub fn is_all_to_all(self) -> bool {
        matches!(self, CollectiveOp::AllToAll | CollectiveOp::Experts(_))
    }
}

/// The algorithm that carries out a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// The choice of NCCL's cost model.
    Auto,
    /// Rings through all members.
    Ring,
    /// Double binary tree.
    Tree,
    /// Recursive halving, then recursive doubling.
    HalvingDoubling,
    /// PAT, parallel aggregated trees: far members first.
    Pat,
    /// Every member sends to every other at once.
    Direct,
    /// Three phases: within servers, between servers by rail, and within servers again.
    Hierarchical,
    /// NVLink SHARP: reduction in the NVSwitch.
    Nvls,
    /// Reduction in the network's switches (CollNet, SHARP).
    InNetwork,
    /// Reduction in the network's switches, with chains of GPUs inside servers (CollNet chain).
    CollnetChain,
}

impl Algorithm {
    /// Name of the algorithm in `workload.algorithm` and `results.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Auto => "auto",
            Algorithm::Ring => "ring",
            Algorithm::Tree => "tree",
            Algorithm::HalvingDoubling => "halving-doubling",
            Algorithm::Pat => "pat",
            Algorithm::Direct => "direct",
            Algorithm::Hierarchical => "hierarchical",
            Algorithm::Nvls => "nvls",
            Algorithm::InNetwork => "in-network",
            Algorithm::CollnetChain => "collnet-chain",
        }
    }

    /// Whether switches between servers reduce.
    pub fn reduces_in_network(self) -> bool {
        matches!(self, Algorithm::InNetwork | Algorithm::CollnetChain)
    }
}
