//! Programs: what every rank of a job does, as frameworks write it. A program has kernels, collectives, sends and receives on in-order streams.
//!
//! Layer: workload. Every workload except plain flows becomes programs: generated training, imported traces, benchmarks of one collective. Ranks that do the
//! same share one program, so a graph of ten thousand GPUs is a few programs and a table of groups. `lower` decides what a collective becomes on a network.

use foldhash::HashMap;

use crate::collective::{Algorithm, CollectiveOp};
use hyperfold_base::budget;

/// The parallel dimension of a communication, for the breakdown of iteration time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// Tensor parallelism.
    Tp,
    /// Pipeline parallelism.
    Pp,
    /// Data parallelism.
    Dp,
    /// Expert parallelism.
    Ep,
    /// Context parallelism.
    Cp,
    /// Communication of none of these dimensions.
    Other,
}

impl Dim {
    /// Name of the dimension in results.
    pub fn name(self) -> &'static str {
        match self {
            Dim::Tp => "tp",
            Dim::Pp => "pp",
            Dim::Dp => "dp",
            Dim::Ep => "ep",
            Dim::Cp => "cp",
            Dim::Other => "other",
        }
    }
}

/// The part of an iteration that a kernel belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Forward pass.
    Forward,
    /// Backward pass: gradients of weights and inputs, recomputation.
    Backward,
    /// Update of the parameters.
    Optimizer,
    /// Kernels of no such part.
    Other,
}

impl Phase {
    /// Name of the phase as one word.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Optimizer => "optimizer",
            Phase::Other => "other",
        }
    }
}

/// An in-order queue of a rank. An op waits for the op before it on its stream, and for its `deps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream(pub u8);

impl Stream {
    /// Stream of compute kernels.
    pub const COMPUTE: Stream = Stream(0);
    /// Copies between host and device.
    pub const COPY: Stream = Stream(1);
    /// No stream: an op waits for its `deps` only. Traces that are graphs use it.
    pub const FREE: Stream = Stream(255);

    /// The communication stream of a dimension.
    pub const fn comm(dim: Dim) -> Stream {
        Stream(2 + dim as u8)
    }

    /// A further communication stream of a dimension, for what runs in parallel to its first stream: the directions of a pipeline, prefetched parameters.
    /// `lane` is below 16.
    pub const fn comm_lane(dim: Dim, lane: u8) -> Stream {
        Stream(2 + dim as u8 + 8 * lane)
    }
}

/// The other end of a send or receive: member `member` of the rank's group in slot `slot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Slot of the group.
    pub slot: u16,
    /// Member of the group, from 0.
    pub member: u32,
}

/// The kind of an op, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// A kernel, or several in a row.
    Compute {
        /// Duration on this rank's GPU before jitter.
        ps: u64,
        /// Part of the iteration that it belongs to.
        phase: Phase,
    },
    /// A collective of a group of the rank. The k-th collective of a group must be the same operation on all members.
    Collective {
        /// Operation of the collective.
        op: CollectiveOp,
        /// Slot of the group.
        slot: u16,
        /// Bytes counted as in nccl-tests: the buffer for all-reduce, broadcast and reduce; what each rank ends with for all-gather; what each rank
        /// begins with for reduce-scatter and all-to-all.
        bytes: u64,
        /// Dimension that it belongs to.
        dim: Dim,
        /// The algorithm. `None`: the configuration chooses.
        algorithm: Option<Algorithm>,
        /// Index into [`Workload::shares`], for all-to-all only.
        shares: Option<u32>,
    },
    /// A send. The k-th send from a to b with a tag is matched with the k-th receive of b from a with that tag. Done when the buffer may be reused.
    Send {
        /// Rank at the other end.
        peer: Peer,
        /// Size of the message, bytes.
        bytes: u64,
        /// Tag, by which sends and receives find each other.
        tag: u32,
        /// Dimension that it belongs to.
        dim: Dim,
    },
    /// A receive. Done when all bytes have arrived.
    Recv {
        /// Rank at the other end.
        peer: Peer,
        /// Size of the message, bytes.
        bytes: u64,
        /// Tag, by which sends and receives find each other.
        tag: u32,
        /// Dimension that it belongs to.
        dim: Dim,
    },
    /// Waits for its dependencies and takes no time.
    Join,
}

/// One op of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op {
    /// Kind of op, with its parameters.
    pub kind: OpKind,
    /// Stream on which it runs, in order.
    pub stream: Stream,
    /// Index into [`Workload::names`].
    pub name: u32,
    /// Dependencies of the op: `Program::deps[deps_first .. deps_first + deps_n]`, indices of earlier ops.
    pub deps_first: u32,
    /// Number of these dependencies.
    pub deps_n: u32,
}

/// The work of one rank, or of several equal ranks, from start to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Ops, in the order in which they are issued.
    pub ops: Vec<Op>,
    /// Dependencies of all ops: see [`Op::deps_first`].
    pub deps: Vec<u32>,
    /// For each iteration, the number of ops up to its end. Ascending; the last is `ops.len()`.
    pub iteration_ends: Vec<u32>,
    /// For each iteration, the ops that begin a pair of a forward and a backward pass in the pipeline's steady phase, then the op after the last pair. Empty if
    /// no such phase is known.
    pub pairs: Vec<Vec<u32>>,
}

/// A communicator: the ranks that take part in a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Ranks, in the communicator's order.
    pub members: Vec<u32>,
    /// Dimension that its communication belongs to.
    pub dim: Dim,
}

/// The program of a rank, and the groups in its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Index into [`Workload::programs`].
    pub program: u32,
    /// Index into [`Workload::groups`] for each slot.
    pub groups: Vec<u32>,
}

/// A workload: what all ranks of a job do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Programs, each of one or several ranks.
    pub programs: Vec<Program>,
    /// In order of rank.
    pub ranks: Vec<Rank>,
    /// Groups of ranks.
    pub groups: Vec<Group>,
    /// Names of ops.
    pub names: NameTable,
    /// Weights of uneven all-to-alls, one per member as destination. What a rank sends is split in proportion.
    pub shares: Vec<Vec<u64>>,
    /// Tokens that one iteration trains, for `tokens_per_s`; 0 if that does not apply.
    pub tokens: u64,
    /// Floating-point operations of the model in one iteration, over all ranks, for `mfu`; 0 if that does not apply.
    pub model_flops: u128,
    /// Peak FLOP/s of one GPU, the reference of `mfu`; 0 if that does not apply.
    pub peak_flops: u64,
}

impl Program {
    /// Appends an op and returns its index.
    pub fn push(&mut self, kind: OpKind, stream: Stream, name: u32, deps: &[u32]) -> u32 {
        budget::check_growth("operations", &self.ops);
        let deps_first = self.deps.len() as u32;
        self.deps.extend_from_slice(deps);
        self.ops.push(Op { kind, stream, name, deps_first, deps_n: deps.len() as u32 });
        self.ops.len() as u32 - 1
    }

    /// Dependencies of op `i`, without the order of its stream.
    pub fn deps_of(&self, i: u32) -> &[u32] {
        let op = &self.ops[i as usize];
        &self.deps[op.deps_first as usize..(op.deps_first + op.deps_n) as usize]
    }
}

impl Workload {
    /// Index of a name; the name is added if it is new.
    pub fn name(&mut self, name: &str) -> u32 {
        self.names.of(name)
    }
}

/// Names in order of first use, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameTable {
    list: Vec<String>,
    index: HashMap<String, u32>,
}

impl NameTable {
    /// Index of a name; the name is added if it is new.
    pub fn of(&mut self, name: &str) -> u32 {
        if let Some(&i) = self.index.get(name) {
            return i;
        }
        let i = self.list.len() as u32;
        self.list.push(name.to_string());
        self.index.insert(name.to_string(), i);
        i
    }

    /// The name with index `i`.
    pub fn get(&self, i: u32) -> Option<&str> {
        self.list.get(i as usize).map(String::as_str)
    }
}

impl std::ops::Index<u32> for NameTable {
    type Output = str;

    fn index(&self, i: u32) -> &str {
        &self.list[i as usize]
    }
}
