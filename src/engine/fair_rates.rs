//! Max-min fair rates of many networks at once, on a device: what the flow level asks an engine for, as plain numbers.
//!
//! Layer: engine. Knows neither time nor tables. The rates are those of `flow::maxmin`, to the bit.

use super::EngineError;

/// No link, no carrier.
pub const NONE: u32 = u32::MAX;
/// Bits behind the point of a share where flows are sprayed.
pub const SHARE_BITS: u32 = 20;
/// The whole rate, as a share.
pub const WHOLE: u32 = 1 << SHARE_BITS;
/// A link's room for acknowledgements is taken this part of its capacity too large at most, as a shift: 3e-5.
pub const SLACK_SHIFT: u32 = 15;
/// Rounds of solving for acknowledgements, at most. Each makes their error some ten times smaller.
pub const MOST_ROUNDS: u32 = 32;
/// Units of rate by which equals may differ, since each division is cut off.
pub const EQUALS: u64 = 2;
/// Rounds of growth by those alone that have lost their bottleneck; after as many more by all that share a link with one, all that are connected are filled.
pub const PRECISE_ROUNDS: u32 = 4;
/// All that are connected are filled, too, where this part of all that send is filled already.
pub const MANY: u32 = 16;

/// A network whose flows share links, as nobody sends yet. Links and carriers are numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateNetwork {
    /// Of each link, in units of rate.
    pub capacities: Vec<u64>,
    pub carriers: Vec<CarrierCrossings>,
    /// Links with shares, of data and of acknowledgements.
    pub crossings: Vec<[u32; 2]>,
    /// Bits of a share in use.
    pub share_bits: u32,
    /// Rates may be off by this part of themselves, as a shift.
    pub tolerance_shift: u32,
    /// The largest share of an acknowledgement.
    pub ack_share: u32,
}

/// Where a carrier's links stand in [`RateNetwork::crossings`]: those of its data, and those of its acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarrierCrossings {
    pub first: u32,
    pub n: u32,
    pub first_ack: u32,
    pub n_ack: u32,
}

/// A carrier has another number of flows from now on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct FlowsChange {
    pub carrier: u32,
    pub flows: u32,
}

/// A carrier's flows have another rate from now on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct RateChange {
    /// The network's number on the device.
    pub network: u32,
    pub carrier: u32,
    pub rate: u64,
}

/// Networks on a device; of each that was to be brought there its number, if it had room.
pub type NumberedNetworks = (Box<dyn ResidentRates>, Vec<Option<u32>>);

/// Brings networks to a device.
pub trait RateSolver: Send + Sync {
    /// From how many experiments of a batch on it is worth it.
    fn fewest(&self) -> usize;

    /// Brings those of the networks there that have room; the number of each, if it has.
    ///
    /// # Errors
    /// The device failed.
    fn load(&mut self, networks: &[RateNetwork]) -> Result<NumberedNetworks, EngineError>;
}

/// Networks on a device, with their rates as of the last solution.
pub trait ResidentRates: Send + Sync + std::fmt::Debug {
    /// Solves networks anew, all at once: of each its number and what has changed, no carrier twice. Gives every rate that is another one than before, in any order.
    /// Carriers that have no flows any more have rate 0 without being told of.
    ///
    /// # Errors
    /// The device failed.
    fn solve(&mut self, changes: &[(u32, &[FlowsChange])]) -> Result<Vec<RateChange>, EngineError>;
}
