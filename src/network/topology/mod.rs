//! Topologies: the graph, its generators and file readers.
//!
//! Layer: topology. Everything here produces a validated [`Network`]; `routing` finds routes in it.

mod bisection;
mod body;
pub mod generate;
mod htsim;
mod infragraph;
mod loss;
pub mod network;
mod ns3;
mod reduction_tree;
mod simai;
pub mod text;
mod to_htsim;
mod validate;

use std::path::Path;

pub use bisection::bisection_bps;
pub use generate::{
    BCube, CircuitPattern, CircuitPlan, CircuitStep, Clos, Dragonfly, DragonflyPlus, Fabric, FabricShape, FatTree,
    GridFabric, GridLinks, Optical, OversubscriptionMilli, RailOnly, RailOptimized, Rotation, SegmentPods, Segments,
    Sites, SlimFly,
};
pub use htsim::parse_htsim;
pub use infragraph::{parse_infragraph, to_infragraph};
pub use loss::loss_q32;
pub use network::{
    ArcIdx, DarkSpan, Link, Network, Node, NodeIdx, NodeKind, NvLink, REDUCER_WORD, Reducer, SlowArc, SwitchNames,
};
pub use ns3::{TopologyFile, parse_ns3, to_ns3};
pub use reduction_tree::{ReductionTree, fabric_ports, reduction_tree};
pub use simai::{parse_simai, to_simai};
pub use text::FileError;
pub use to_htsim::to_htsim;
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
    /// InfraGraph's JSON.
    InfraGraph,
}

impl TopologyFormat {
    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            TopologyFormat::Ns3 => "ns3",
            TopologyFormat::Simai => "simai",
            TopologyFormat::Htsim => "htsim",
            TopologyFormat::InfraGraph => "infragraph",
        }
    }

    /// The form that a text seems to have: by its first line, or `{` for InfraGraph.
    pub fn guess(text: &str) -> Option<TopologyFormat> {
        let first = text::Lines::new("", text).next_line()?.text;
        let fields: Vec<&str> = first.split_whitespace().collect();
        let numbers = fields.iter().take_while(|f| f.parse::<u32>().is_ok()).count();
        match (fields.len(), numbers) {
            _ if first.starts_with('{') => Some(TopologyFormat::InfraGraph),
            (3, 3) => Some(TopologyFormat::Ns3),
            (6, 5) => Some(TopologyFormat::Simai),
            (2, 0) => Some(TopologyFormat::Htsim),
            _ => None,
        }
    }
}

/// Reads a topology file.
pub fn read_topology(path: &Path, format: TopologyFormat) -> Result<TopologyFile, TopologyError> {
    let text = text::load_text(path)?;
    let shown = path.display().to_string();
    let read = match format {
        TopologyFormat::Ns3 => parse_ns3(&shown, &text),
        TopologyFormat::Simai => parse_simai(&shown, &text),
        TopologyFormat::Htsim => parse_htsim(&shown, &text),
        TopologyFormat::InfraGraph => parse_infragraph(&shown, &text),
    };
    let seems = TopologyFormat::guess(&text).filter(|seems| *seems != format);
    read.map_err(|error| match seems {
        Some(other) => TopologyError::OtherForm { error: Box::new(error), form: other.name() },
        None => error,
    })
}
