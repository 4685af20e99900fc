//! Parts of a class of experiments: each says one thing that decides how large the error of times may be.
//!
//! Layer: validated. `class.rs` reads them from a configuration.

use serde::{Deserialize, Serialize};

use hyperfold_config::spec::{Config, ProgramSpec};
use hyperfold_llm::collective::has_measured_run;

/// Kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadClass {
    /// Iterations of a training job.
    Training,
    /// A collective operation alone.
    Collective,
    /// A model that serves requests.
    Serving,
}

impl WorkloadClass {
    /// All kinds of work, in the order in which they are judged.
    pub const ALL: [WorkloadClass; 3] = [WorkloadClass::Training, WorkloadClass::Collective, WorkloadClass::Serving];
}

/// What an error is of. Of training and of collectives all that is stated follows from one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorQuantity {
    /// The time of an iteration or of a collective.
    #[default]
    Time,
    /// Tokens or requests a second of inference, as the time that they stand for.
    Throughput,
    /// A latency of inference: to the first token, per token, or to the last one; a mean or a percentile.
    Latency,
}

impl ErrorQuantity {
    /// Name in tables and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorQuantity::Time => "time",
            ErrorQuantity::Throughput => "throughput",
            ErrorQuantity::Latency => "latency",
        }
    }

    pub(super) fn is_time(&self) -> bool {
        *self == ErrorQuantity::Time
    }
}

impl WorkloadClass {
    /// Quantities that have an error of their own, in the order in which they are judged.
    pub fn quantities(self) -> &'static [ErrorQuantity] {
        match self {
            WorkloadClass::Training | WorkloadClass::Collective => &[ErrorQuantity::Time],
            WorkloadClass::Serving => &[ErrorQuantity::Throughput, ErrorQuantity::Latency],
        }
    }
}

/// Number format of matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrecisionClass {
    /// Number format bfloat16.
    Bf16,
    /// FP8 with a scaling factor for a tensor.
    Fp8,
    /// FP8 with a scaling factor for each 32 elements.
    Mxfp8,
    /// FP4 with a scaling factor for each 16 elements.
    Nvfp4,
    /// For a collective, which only moves bytes.
    Any,
}

/// Distribution of work over GPUs: the layout of a training, or the operation of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parallelism {
    /// Data parallel only, with whole parameters on every rank.
    Data,
    /// Tensor, pipeline or context parallel.
    Model,
    /// Parameters sharded over data-parallel ranks (ZeRO-3, FSDP), with or without other parallelism.
    Sharded,
    /// The model has experts.
    Moe,
    /// Collective: all-reduce.
    AllReduce,
    /// All-gather, reduce-scatter, broadcast or reduce.
    AllGather,
    /// Collective: all-to-all.
    AllToAll,
    /// Collective: send and receive between pairs.
    SendRecv,
}

/// Size of a collective, and whether it crosses servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeClass {
    /// Within one server, up to 1 MiB.
    ServerSmall,
    /// Within one server, above 1 MiB.
    ServerLarge,
    /// Between servers, up to 1 MiB.
    ClusterSmall,
    /// Between servers, above 1 MiB.
    ClusterLarge,
    /// For training and inference.
    Any,
}

/// Number of GPUs that take part, in steps of eight times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ScaleClass {
    /// Up to 8 GPUs.
    #[serde(rename = "up-to-8-gpus")]
    Upto8,
    /// 9 to 64 GPUs.
    #[serde(rename = "up-to-64-gpus")]
    Upto64,
    /// 65 to 512 GPUs.
    #[serde(rename = "up-to-512-gpus")]
    Upto512,
    /// 513 to 4,096 GPUs.
    #[serde(rename = "up-to-4096-gpus")]
    Upto4096,
    /// More than 4,096 GPUs.
    #[serde(rename = "above-4096-gpus")]
    More,
}

impl ScaleClass {
    /// The step that a number of GPUs belongs to.
    pub(super) fn of(gpus: u64) -> ScaleClass {
        match gpus {
            0..=8 => ScaleClass::Upto8,
            9..=64 => ScaleClass::Upto64,
            65..=512 => ScaleClass::Upto512,
            513..=4096 => ScaleClass::Upto4096,
            _ => ScaleClass::More,
        }
    }
}

/// Whether anything was measured on the machine of a collective. The time of small messages is mostly software, which differs between machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MachineClass {
    /// Nothing was measured on it.
    #[serde(rename = "unmeasured-machine")]
    Unmeasured,
    /// Its base time is known, by the user or with the server, or a measured run of that server corrects costs.
    #[serde(rename = "measured-machine")]
    Measured,
    /// For training and inference.
    #[serde(rename = "any")]
    Any,
}

impl MachineClass {
    /// What is known of an experiment's machine, within one server or across servers.
    pub(super) fn of(config: &Config, program: &ProgramSpec, one_server: bool) -> MachineClass {
        let cluster = &config.cluster;
        let base_time = if one_server { cluster.base_time_ps } else { cluster.base_time_across_ps };
        let is_corrected =
            program.communication.leave_out_run.is_empty() && cluster.server.is_some_and(has_measured_run);
        if base_time.is_some() || is_corrected { MachineClass::Measured } else { MachineClass::Unmeasured }
    }
}

/// The network that carries the messages between servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkClass {
    /// Packets are simulated.
    Packets,
    /// Flows share links at max-min fair rates. No measured row was simulated so.
    Flows,
    /// A formula gives the time of communication.
    ClosedForm,
}

impl NetworkClass {
    /// How the time of communication between servers is found.
    pub(super) fn of(config: &Config, one_server: bool, analytic: bool) -> NetworkClass {
        if analytic || (one_server && !config.cluster.nvlink_packets) {
            NetworkClass::ClosedForm
        } else if config.is_flow_level() {
            NetworkClass::Flows
        } else {
            NetworkClass::Packets
        }
    }
}

/// Serialised name of a value; empty for `any`.
pub(super) fn word(value: &impl Serialize) -> String {
    let value = toml::Value::try_from(value).expect("an enum without data is a string");
    value.as_str().filter(|w| *w != "any").unwrap_or_default().to_string()
}
