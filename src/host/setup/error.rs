//! Why an experiment cannot be prepared: the errors of all steps from a configuration to tables.
//!
//! Layer: host. Error types, and what their messages advise; the steps that return them are in `prepare`, `job`, `training` and `build`.

use crate::cost::CostError;
use hyperfold_base::isolation::Defect;
use hyperfold_config::spec::{Conflict, KeyId, KeyKind, key};
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
    /// The network cannot be made.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The flows cannot be made or read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A flow has no route.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// An input file cannot be read, or a line of it is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// The program cannot be put on the cluster.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Keys contradict each other.
    #[error("{0}")]
    Config(#[from] Conflict),
    /// Jobs do not find their GPUs.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// One of several jobs cannot run.
    #[error("job `{job}`: {why}")]
    OfJob {
        /// Name of the job.
        job: String,
        // Not named `source`: code that prints the chain of causes would print it twice.
        /// Why it cannot run.
        why: Box<PrepareError>,
    },
    /// The tables cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Flows have different priorities.
    #[error(
        "flows {a} and {b} have priorities {pa} and {pb}: there is one traffic class without transport.classes, and with fidelity.mode = \"flow\", so all flows of an experiment need the same"
    )]
    Priorities {
        /// Number of a flow.
        a: u32,
        /// Priority of flow `a`.
        pa: u8,
        /// Number of another flow.
        b: u32,
        /// Priority of flow `b`.
        pb: u8,
    },
    /// A flow has the number of a traffic class that there is not.
    #[error(
        "flow {flow} has priority {class}: transport.classes has classes 0 to {last}, and priorities of flow files are their numbers"
    )]
    NoSuchClass {
        /// Number of the flow.
        flow: u32,
        /// Its class.
        class: u8,
        /// Number of the last class.
        last: usize,
    },
    /// The model, the GPU or the layout is not available.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The servers cannot be described.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A price or a power is missing.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// The fullest rank needs more memory than its GPU has.
    #[error("{breakdown}")]
    Oom {
        /// Memory that it needs, bytes.
        peak_bytes: u64,
        /// The parts of it, in words.
        breakdown: String,
    },
    /// This machine has too little memory for it.
    #[error("{0}")]
    Memory(MemoryRefusal),
    /// The workload has more flows than are supported.
    #[error(
        "{flows} flows between {ranks} GPUs are more than the {} that are supported; use fewer GPUs, another workload.pattern, or of storage traffic fewer bursts (workload.every_us, workload.duration_ns)",
        hyperfold_llm::workload::MAX_FLOWS
    )]
    TooManyFlows {
        /// Number of flows.
        flows: u64,
        /// Number of GPUs.
        ranks: u64,
    },
    /// A panic while it was prepared: a defect of the program.
    #[error("{0}")]
    Defect(Defect),
    /// The program was asked to end.
    #[error("the program was asked to end while it prepared this experiment")]
    Interrupted,
    /// The keys and the topology file name different numbers of GPUs.
    #[error("cluster.gpus = {asked}, but the topology file has {found} hosts; leave cluster.gpus out")]
    Gpus {
        /// Number in `cluster.gpus`.
        asked: u32,
        /// Number of hosts in the file.
        found: u32,
    },
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
    /// The programs do not fit together.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The model, the GPU or the layout is not available.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The model cannot be trained so.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// The model cannot be served so.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// A file of programs cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The programs break a rule.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A variable of NCCL is wrong.
    #[error("workload.nccl: {0}")]
    Nccl(#[from] EnvError),
    /// The file of ops is wrong.
    #[error(transparent)]
    Dag(#[from] DagError),
    /// A slow rank does not exist.
    #[error("workload.straggler_ranks: there is no rank {rank}; the workload has {ranks}, counted from 0")]
    Straggler {
        /// Rank that the sweep names as slow.
        rank: u32,
        /// Number of ranks.
        ranks: usize,
    },
    /// The network has too few GPUs.
    #[error(
        "the workload has {needs} ranks, the network {has} GPUs; cluster.gpus (or the topology file) must give at least as many"
    )]
    Ranks {
        /// Ranks of the workload.
        needs: usize,
        /// GPUs of the network.
        has: usize,
    },
    /// The job has more GPUs than ranks.
    #[error("the workload has {needs} ranks, the job {has} GPUs; leave gpus out, or give as many")]
    IdleRanks {
        /// Ranks of the workload.
        needs: usize,
        /// GPUs of the job.
        has: usize,
    },
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
    /// The model is unknown or wrong.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The GPU is unknown or wrong.
    #[error(transparent)]
    Gpu(#[from] compute::Error),
    /// The GPU does not compute in this precision.
    #[error(
        "workload.precision = \"{precision}\" (or workload.fp8), but {gpu} has no such units; leave it out, or use a GPU that has them: {alternatives}"
    )]
    Units {
        /// Number format of matrix products.
        precision: Dtype,
        /// Name of the GPU.
        gpu: String,
        /// Names of GPUs that have such units.
        alternatives: String,
    },
    /// A file that a key names is wrong.
    #[error("{file}: {why}")]
    File {
        /// Path of the file.
        file: String,
        /// The fault, in words for the user.
        why: String,
    },
}

/// A reason why the tables of a case cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// HPCC's telemetry cannot name so many link rates.
    #[error(
        "HPCC's telemetry can name 8 link rates; this network has {n}{}: use fewer distinct rates or another transport.cc",
        if *.reduced { ", with the reduced rates of topology.outages" } else { "" }
    )]
    TooManyRates {
        /// Number of distinct rates.
        n: usize,
        /// Whether some ports have a reduced rate.
        reduced: bool,
    },
    /// A link rate, in bps, is no whole number of Mb/s.
    #[error("a link of {0} bps: link rates must be whole Mb/s")]
    OddRate(u64),
    /// A data packet has too many bytes on the wire.
    #[error("a data packet of {0} bytes on the wire: transport.payload_bytes must leave it below 65536")]
    LargePacket(u64),
    /// A flow starts on a node that sends nothing.
    #[error("flow {flow} starts on node {node}, which is not a host with a NIC on its path")]
    NotAHost {
        /// Number of the flow.
        flow: u32,
        /// Node on which the flow starts.
        node: u32,
    },
    /// A switch's buffer is too small for its ports.
    #[error(
        "`topology.buffer_mib` (or its tier's key): {has} bytes are too few for {switch}: its {ports} ports need {needs} bytes for {wants}{classes}; {advice}"
    )]
    SmallBuffer {
        /// Name of the switch.
        switch: String,
        /// Number of its ports.
        ports: u32,
        /// Bytes that they need.
        needs: u64,
        /// Bytes that the buffer has.
        has: u64,
        /// A description of the bytes' use.
        wants: &'static str,
        /// What traffic classes have to do with it; empty where there is one.
        classes: &'static str,
        /// What would do.
        advice: String,
    },
    /// A table has more rows than an index can name.
    #[error("too large for one experiment: {what} ({n}) exceed 2^32 table rows")]
    TooLarge {
        /// A description of the rows.
        what: &'static str,
        /// Number of rows.
        n: u64,
    },
}

/// Says what would do for a switch that needs so many bytes: a value that the key takes, or what needs less.
pub(crate) fn larger_buffer(needs_bytes: u64, pfc: bool) -> String {
    // Whole thousandths of a MiB, rounded up.
    let mib = (needs_bytes as f64 * 1000.0 / f64::from(1 << 20)).ceil() / 1000.0;
    match key(KeyId::BufferMib).kind {
        KeyKind::Float { max, .. } if mib > max => {
            let less = if pfc {
                "shorter links, lower rates, transport.pfc = false"
            } else {
                "a lower transport.pfc_reserve_bytes"
            };
            format!("that is more than the {max} MiB that the key takes: {less} or fewer ports need less")
        }
        _ => format!("use at least {mib}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_buffer_is_proposed_that_the_key_refuses() {
        assert_eq!(larger_buffer(1_048_577, true), "use at least 1.001");
        assert_eq!(larger_buffer(65_536 << 20, true), "use at least 65536");
        let refused = larger_buffer((65_536 << 20) + 1, true);
        assert!(
            refused.contains("the 65536 MiB that the key takes") && refused.contains("transport.pfc = false"),
            "{refused}"
        );
        assert!(larger_buffer(u64::MAX, false).contains("transport.pfc_reserve_bytes"));
    }
}
