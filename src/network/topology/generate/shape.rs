//! A generated fabric of any kind.
//!
//! Layer: topology.

use super::bcube::BCube;
use super::clos::Clos;
use super::dragonfly::{Dragonfly, DragonflyPlus};
use super::fabric::Fabric;
use super::fat_tree::FatTree;
use super::grid::GridFabric;
use super::optical::Optical;
use super::rail::{RailOnly, RailOptimized};
use super::segments::Segments;
use super::slim_fly::SlimFly;
use crate::topology::{Network, TopologyError};

/// The kind of a generated fabric, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FabricShape {
    /// A k-ary fat tree of three tiers.
    FatTree(FatTree),
    /// A Clos network, in one plane or several.
    Clos(Clos),
    /// Leaves by pod and rail, all under the same spines.
    RailOptimized(RailOptimized),
    /// One switch for each rail of all servers, none above them.
    RailOnly(RailOnly),
    /// Segments of servers, one leaf a port of a NIC: HPN, DCN+, Spectrum-X.
    Segments(Segments),
    /// Groups of routers, each joined to each.
    Dragonfly(Dragonfly),
    /// Groups of leaves and spines, each joined to each.
    DragonflyPlus(DragonflyPlus),
    /// Routers at most two links apart.
    SlimFly(SlimFly),
    /// A torus, a mesh or a HyperX.
    Grid(GridFabric),
    /// Servers that forward for each other.
    BCube(BCube),
    /// Leaves that optical circuits join, which may come and go.
    Optical(Optical),
}

impl FabricShape {
    /// Builds the network.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        match self {
            FabricShape::FatTree(shape) => shape.build(fabric),
            FabricShape::Clos(shape) => shape.build(fabric),
            FabricShape::RailOptimized(shape) => shape.build(fabric),
            FabricShape::RailOnly(shape) => shape.build(fabric),
            FabricShape::Segments(shape) => shape.build(fabric),
            FabricShape::Dragonfly(shape) => shape.build(fabric),
            FabricShape::DragonflyPlus(shape) => shape.build(fabric),
            FabricShape::SlimFly(shape) => shape.build(fabric),
            FabricShape::Grid(shape) => shape.build(fabric),
            FabricShape::BCube(shape) => shape.build(fabric),
            FabricShape::Optical(shape) => shape.build(fabric),
        }
    }
}
