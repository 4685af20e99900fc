//! The configuration of one experiment: the key table, resolved values, and their typed form.
//!
//! Layer: spec. Reads configuration files of the reference; the sweep file itself is read by `sweep`. Knows no topology, no flow, no engine.

mod applies_when;
mod config;
mod costs;
mod derive;
mod docs;
mod ecn_by_rate;
mod error;
mod key;
mod key_id;
mod key_table;
mod keys;
mod lookup;
mod named;
mod ns3_config;
mod program;
mod resolve;
mod scale;
mod sections;
mod servers;
mod training;
mod transport;
mod value;
mod workload;

pub use config::{Config, Steady, mix};
pub use costs::CostKeys;
pub use docs::{reference_markdown, template};
pub use error::{Conflict, Place, SpecError, nearest};
pub use key::{Default, Key, Kind};
pub use key_id::{KeyId, N_KEYS};
pub use keys::{BUILT_IN_CDFS, KEYS, LATER, SECTIONS, built_in_cdf};
pub use lookup::{find, hint, key, later};
pub use named::Named;
pub use ns3_config::{FileConfig, Note, read_ns3_config};
pub use program::{
    Algorithm, Analytic, Communication, Compute, Op, Program, ProgramFormat, Protocol, Slowdown, Source,
};
pub use sections::{
    Cdf, Cluster, Limits, Output, Pattern, Policy, Routing, StartUnit, Topology, TopologyFormat, TopologyKind, Workload,
};
pub use servers::{SERVERS, Server, find_server};
pub use training::{Framework, MemoryBudget, Recompute, Schedule, Training};
pub use value::{Value, Values};
