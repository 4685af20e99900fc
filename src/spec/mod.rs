//! The configuration of one experiment: the key table, resolved values, and their typed form.
//!
//! Layer: spec. Reads configuration files of the reference; the sweep file itself is read by `sweep`. Knows no topology, no flow, no engine.

mod config;
mod derive;
mod docs;
mod error;
mod key;
mod keys;
mod ns3_config;
mod sections;
mod transport;
mod value;

pub use config::{Config, mix};
pub use docs::{reference_markdown, template};
pub use error::{Conflict, Place, SpecError, nearest};
pub use key::{Default, Key, Kind, find, hint, key, later};
pub use keys::{BUILT_IN_CDFS, K, KEYS, LATER, N_KEYS, SECTIONS, built_in_cdf};
pub use ns3_config::{FileConfig, Note, read_ns3_config};
pub use sections::{Cdf, Cluster, Limits, Output, Pattern, Policy, Routing, StartUnit, Topology, TopologyFormat, TopologyKind, Workload};
pub use value::{Value, Values};
