//! Sweeps: from a sweep file to experiments that have been checked and numbered.
//!
//! Layer: sweep, beside `spec`. Reads the sweep file and hashes the files that it names, but builds no network and no flow.

pub mod conditions;
mod digest;
mod expand;
mod experiment;
mod file;
mod layers;
mod load;
mod method;
mod resolved;
mod sample;
mod schema;
mod selection;
mod shared_points;

pub use digest::{Hash128, SEMANTIC_VERSION};
pub use experiment::{Experiment, MAX_EXPERIMENTS};
pub use file::document::SetOverrides;
pub use file::include::IncludedFile;
pub use load::{Search, Sweep, SweepInputFile, load, load_with, parse, parse_with};
pub use method::Method;
pub use schema::{SchemaOf, json_schema};
pub use selection::{Selection, Shard};
