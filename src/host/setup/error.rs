//! Why an experiment cannot be prepared: the errors of all steps from a configuration to tables.
//!
//! Layer: host. Error types only; the steps that return them are in `prepare`, `job`, `training` and `build`.

use crate::cost::CostError;
use hyperfold_base::isolation::Defect;
use hyperfold_config::spec::{Conflict, KeyId};
use hyperfold_llm::collective::EnvError;
use hyperfold_llm::compute::{self, Dtype};
use hyperfold_llm::model::ModelError;
use hyperfold_llm::workload::WorkloadError;
use hyperfold_llm::workload::checks::check_error::CheckError;
use hyperfold_llm::workload::dag::DagError;
use hyperfold_llm::workload::import::ImportError;
use hyperfold_llm::workload::lower::LowerError;
use hyperfold_llm::workload::serving::ServingError;
use hyperfold_llm::workload::training::TrainingError;
use hyperfold_network::routing::RouteError;
use hyperfold_network::topology::{FileError, TopologyError};

use crate::outcomes::outcome::Ending;
use crate::setup::memory_refusal::MemoryRefusal;
use crate::setup::placement::PlacementError;
use crate::setup::servers::ServerError;

/// A reason why an experiment cannot run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Topology(#[from] TopologyError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Route(#[from] RouteError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Job(#[from] JobError),
    #[error("{0}")]
    Config(#[from] Conflict),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    // Not named `source`: code that prints the chain of causes would print it twice.
    #[error("job `{job}`: {why}")]
    OfJob { job: String, why: Box<PrepareError> },
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(
        "flows {a} and {b} have priorities {pa} and {pb}: one traffic class is modelled, so all flows of an experiment need the same"
    )]
    Priorities { a: u32, pa: u8, b: u32, pb: u8 },
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Cost(#[from] CostError),
    #[error("{breakdown}")]
    Oom { peak_bytes: u64, breakdown: String },
    #[error("{0}")]
    Memory(MemoryRefusal),
    #[error(
        "{flows} flows between {ranks} GPUs are more than the {} that are supported; use fewer GPUs, another workload.pattern, or of storage traffic fewer bursts (workload.every_us, workload.duration_ns)",
        hyperfold_llm::workload::MAX_FLOWS
    )]
    TooManyFlows { flows: u64, ranks: u64 },
    #[error("{0}")]
    Defect(Defect),
    #[error("the program was asked to end while it prepared this experiment")]
    Interrupted,
    #[error("cluster.gpus = {asked}, but the topology file has {found} hosts; leave cluster.gpus out")]
    Gpus { asked: u32, found: u32 },
}

impl PrepareError {
    /// Adds the name of the job that failed, for an experiment of several jobs.
    pub(crate) fn of_job(self, name: &str) -> PrepareError {
        match self {
            PrepareError::Oom { peak_bytes, breakdown } => {
                PrepareError::Oom { peak_bytes, breakdown: format!("job {name}: {breakdown}") }
            }
            PrepareError::Memory(_) | PrepareError::Defect(_) | PrepareError::Interrupted => self,
            other => PrepareError::OfJob { job: name.to_string(), why: Box::new(other) },
        }
    }

    /// Whether the error is in the user's input, rather than in what it asks of the network. Then no experiment of the sweep should run.
    pub fn is_input(&self) -> bool {
        if let PrepareError::OfJob { why: source, .. } = self {
            return source.is_input();
        }
        let outcomes = matches!(
            self,
            PrepareError::Route(RouteError::NoRoute { .. } | RouteError::Policy { .. })
                | PrepareError::Build(BuildError::TooLarge { .. })
                | PrepareError::Oom { .. }
                | PrepareError::Memory(_)
                | PrepareError::TooManyFlows { .. }
                | PrepareError::Defect(_)
                | PrepareError::Interrupted
        );
        !outcomes
    }
}

impl From<PrepareError> for Ending {
    fn from(error: PrepareError) -> Ending {
        match error {
            PrepareError::Oom { peak_bytes, breakdown } => Ending::Oom { peak_bytes, breakdown },
            PrepareError::Memory(_) => Ending::MachineLimit(error.to_string()),
            other => Ending::Failed(other.to_string()),
        }
    }
}

/// A reason why a program cannot be put on a cluster.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error(transparent)]
    Lower(#[from] LowerError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Training(#[from] TrainingError),
    #[error(transparent)]
    Serving(#[from] ServingError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error("workload.nccl: {0}")]
    Nccl(#[from] EnvError),
    #[error(transparent)]
    Dag(#[from] DagError),
    #[error("workload.straggler_ranks: there is no rank {rank}; the workload has {ranks}, counted from 0")]
    Straggler { rank: u32, ranks: usize },
    #[error(
        "the workload has {needs} ranks, the network {has} GPUs; cluster.gpus (or the topology file) must give at least as many"
    )]
    Ranks { needs: usize, has: usize },
    #[error("the workload has {needs} ranks, the job {has} GPUs; leave gpus out, or give as many")]
    IdleRanks { needs: usize, has: usize },
}

impl PrepareError {
    /// If the value of a key is a wrong table in the sweep file, returns the key and what is wrong in the table.
    pub fn wrong_table(&self) -> Option<(KeyId, String)> {
        let (PrepareError::Setup(e) | PrepareError::Job(JobError::Setup(e))) = self else { return None };
        match e {
            SetupError::Model(ModelError::Syntax { place, why }) if place.starts_with(KeyId::Model.name()) => {
                Some((KeyId::Model, why.clone()))
            }
            SetupError::Model(ModelError::Value { file, key, value, expected }) if file == KeyId::Model.name() => {
                Some((KeyId::Model, format!("`{key} = {value}`: it must be {expected}")))
            }
            SetupError::Gpu(compute::Error::Gpu { message, .. }) => Some((KeyId::Gpu, message.clone())),
            _ => None,
        }
    }

    /// If the value of a key is an unknown name, returns the key, the value and a hint.
    pub fn unknown_name(&self) -> Option<(KeyId, &str, String)> {
        match self {
            PrepareError::Setup(e) | PrepareError::Job(JobError::Setup(e)) => match e {
                SetupError::Model(ModelError::Unknown { name, hint }) => {
                    Some((KeyId::Model, name, format!("no model is called that; {hint}")))
                }
                SetupError::Gpu(compute::Error::UnknownGpu { name, known }) => {
                    Some((KeyId::Gpu, name, format!("known are {known}, or give a table of specifications")))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// A reason why a model, a GPU or a layout is not available.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Gpu(#[from] compute::Error),
    #[error(
        "workload.precision = \"{precision}\" (workload.fp8), but {gpu} has no such units; leave it out, or use a GPU that has them: {alternatives}"
    )]
    Units { precision: Dtype, gpu: String, alternatives: String },
    #[error("{file}: {why}")]
    File { file: String, why: String },
}

/// A reason why the tables of a case cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error(
        "HPCC's telemetry can name 8 link rates; this network has {0}: use fewer distinct rates or another transport.cc"
    )]
    TooManyRates(usize),
    #[error("a link of {0} bps: link rates must be whole Mb/s")]
    OddRate(u64),
    #[error("a data packet of {0} bytes on the wire: transport.payload_bytes must leave it below 65536")]
    LargePacket(u64),
    #[error("flow {flow} starts on node {node}, which is not a host with a NIC on its path")]
    NotAHost { flow: u32, node: u32 },
    #[error(
        "`topology.buffer_mib` (or its tier's key): {has} bytes are too few for switch {switch}: its {ports} ports need {needs} bytes for {wants}; use at least {mib}"
    )]
    SmallBuffer { switch: u32, ports: u32, needs: u64, has: u64, mib: u64, wants: &'static str },
    #[error("too large for one experiment: {what} ({n}) exceed 2^32 table rows")]
    TooLarge { what: &'static str, n: u64 },
}
