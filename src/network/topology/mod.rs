//! Topologies: the graph, its generators and file readers.
//!
//! Layer: topology. Everything here produces a validated [`Network`]; `routing` finds routes in it.

mod bisection;
mod body;
pub mod generate;
mod htsim;
pub mod network;
mod ns3;
mod simai;
pub mod text;
mod validate;

use std::path::Path;

pub use bisection::bisection_bps;
pub use generate::{
    BCube, Clos, Dragonfly, DragonflyPlus, Fabric, FabricShape, FatTree, GridFabric, GridLinks, OversubscriptionMilli,
    RailOnly, RailOptimized, Segments, Sites, SlimFly,
};
pub use htsim::parse_htsim;
pub use network::{ArcIdx, Link, Network, Node, NodeIdx, NodeKind, NvLink, SwitchNames};
pub use ns3::{TopologyFile, parse_ns3, to_ns3};
pub use simai::parse_simai;
pub use text::FileError;
pub use validate::{MAX_LINKS, MAX_NODES, TopologyError};

/// Formats of topology files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TopologyFormat {
    /// ns-3's form, as in HPCC and its descendants.
    Ns3,
    /// The form of SimAI's topology generator.
    Simai,
    /// htsim's fat-tree descriptions (`.topo`).
    Htsim,
}

/// Reads a topology file.
pub fn read_topology(path: &Path, format: TopologyFormat) -> Result<TopologyFile, TopologyError> {
    let text = text::load_text(path)?;
    let shown = path.display().to_string();
    match format {
        TopologyFormat::Ns3 => parse_ns3(&shown, &text),
        TopologyFormat::Simai => parse_simai(&shown, &text),
        TopologyFormat::Htsim => parse_htsim(&shown, &text),
    }
}
