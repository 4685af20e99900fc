//! Routing: shortest-path next hops, ECMP, spraying, explicit routes.

pub mod path;

pub use path::FlowPaths;
