//! Generated topologies, one file each.
//!
//! Layer: topology. Parameters are plain integers; `spec` handles users' units and defaults. The order of nodes is fixed: hosts (one per NIC, server by
//! server), then switches, those with hosts first. Links are in the order of their lower ends.

mod bcube;
mod builder;
mod circuit_steps;
mod clos;
mod dragonfly;
mod fabric;
mod fat_tree;
mod galois;
mod grid;
mod optical;
mod rail;
mod segments;
mod shape;
mod sites;
mod slim_fly;

pub use bcube::BCube;
pub use circuit_steps::CircuitStep;
pub use clos::Clos;
pub use dragonfly::{Dragonfly, DragonflyPlus};
pub use fabric::{Fabric, OversubscriptionMilli};
pub use fat_tree::FatTree;
pub use grid::{GridFabric, GridLinks};
pub use optical::{CircuitPattern, CircuitPlan, Optical, Rotation};
pub use rail::{RailOnly, RailOptimized};
pub use segments::{SegmentPods, Segments};
pub use shape::FabricShape;
pub use sites::Sites;
pub use slim_fly::SlimFly;
