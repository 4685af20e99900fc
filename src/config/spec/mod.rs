//! The configuration of one experiment: the key table, resolved values, and their typed form.
//!
//! Layer: spec. Reads configuration files of the reference; `sweep` reads the sweep file itself. Knows no topology, no flow, no engine.

mod adapter_names;
mod adapters;
mod aliases;
mod applies_when;
mod circuits;
mod cluster;
mod config;
mod costs;
mod cut_through;
mod derive;
mod docs;
mod ecn_by_rate;
mod error;
mod experts;
mod failing_part;
mod gpu_links;
mod impairments;
mod jobs;
mod key;
mod key_id;
mod key_path;
mod key_table;
mod keys;
mod lookup;
mod mix;
mod named;
mod ns3_config;
mod outage_times;
mod outages;
mod program;
mod recipe_names;
mod recipes;
mod registered;
mod resolve;
mod scale;
mod schedules;
mod sections;
mod series;
mod server_links;
mod servers;
mod serving;
mod switches;
mod topology;
mod traffic_classes;
mod training;
mod transport;
mod value;
mod workload;

pub use adapters::{Adapter, adapters};
pub use cluster::{
    CheckpointKeys, CheckpointPolicy, ClusterRun, DrainKeys, FailureKeys, GrowBack, IterationKeys, JobClassKeys,
    JobGenerator, JobSource, JobsLike, SchedulerKeys, WritesShare,
};
pub use config::{Config, Joining, Steady};
pub use costs::CostKeys;
pub use cut_through::adaptive_cut_through;
pub use docs::{reference_markdown, template};
pub use error::{Conflict, Place, SpecError};
pub use experts::{DispatcherChoice, ExpertsSpec};
pub use failing_part::FailingPart;
pub use gpu_links::{GpuLinks, LinkKind, LinksOfGpu, links_of, links_of_table};
pub use impairments::{ImpairedSpan, Impairment, ImpairmentText, ReducedRate};
pub use jobs::{JobSection, JobsSection, PlacementChoice, RunningJobs, wrong_job_name};
pub use key::{Default, Key, KeyKind};
pub use key_id::{KeyId, N_KEYS};
pub use key_path::{JOB, KeyPath, split_job_name};
pub(crate) use key_table::for_each_key;
pub use keys::{BUILT_IN_CDFS, KEYS, LATER, SECTIONS, built_in_cdf};
pub use lookup::{
    alternatives, find, find_declared, find_job_key, hint, key, later, named_value, short_name, shown_value, told_value,
};
pub use mix::{mix, name_hash};
pub use named::Named;
pub use ns3_config::{FileConfig, LinkLine, Note, read_ns3_config};
pub use outage_times::MAX_OUTAGES;
pub use outages::{OutageText, OutageTimes};
pub use program::{
    AlgorithmChoice, Analytic, Communication, Compute, OpChoice, ProgramFormat, ProgramSpec, ProtocolChoice,
    SlowdownChoice, Source,
};
pub use recipe_names::RECIPES;
pub use registered::{PolicyRegistry, REGISTRABLE, RegisteredPolicy};
pub use schedules::ScheduleChoice;
pub use sections::{
    CdfChoice, ClusterSection, LimitsSection, OutputSection, Pattern, PolicyChoice, Routing, StartUnitChoice,
    TopologyFormatChoice, TopologyKind, TopologySection, WorkloadSection,
};
pub use series::SeriesKeys;
pub use servers::{SERVERS, ServerModel, find_server, gpu_of};
pub use serving::{AdmissionChoice, BatchingChoice, Drafting, GeneratedRequests, PoolLayout, RequestSource, Serving};
pub use switches::{DEFAULT_BUFFER_MIB, SWITCHES, SwitchChip, SwitchChoice, switch_chips};
pub use traffic_classes::TrafficClasses;
pub use training::{
    CudaGraphChoice, Fp8ScalingChoice, FrameworkChoice, MemoryBudget, PrecisionChoice, RecomputeChoice,
    RecomputeModule, Training,
};
pub use transport::fit_to_network;
pub use value::{JobValues, Value, Values};
