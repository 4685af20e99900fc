//! Interface between the flow level and an engine that solves max-min fair rates of many networks at once on a device. It holds plain numbers only.
//!
//! Layer: engine. Knows neither time nor tables. Rates are the same as those of `flow::maxmin`, bit by bit. A carrier is a group of flows that cross
//! the same links and have the same rate.

use super::error::EngineError;

/// Index that means "no link" or "no carrier".
pub const NONE: u32 = u32::MAX;
/// Fraction bits of a share where flows are sprayed over several paths.
pub const SHARE_BITS: u32 = 20;
/// The share of a link that carries the whole rate of a flow (1.0).
pub const WHOLE: u32 = 1 << SHARE_BITS;
/// The rate reserved for acknowledgements on a link may be too large by at most this part of the link's capacity, as a right shift: 2^-15, about
/// 3e-5.
pub const SLACK_SHIFT: u32 = 15;
/// Maximum number of rounds that solve for the rate of acknowledgements. Each round makes the error about ten times smaller.
pub const MAX_PASSES: u32 = 32;
/// Rates that should be equal may differ by this many units of rate, because each division rounds down.
pub const EQUALS: u64 = 2;
/// Number of rounds in which only carriers that have lost their bottleneck may grow. In as many more rounds, all carriers that share a link with such
/// a carrier may grow. After that, all connected carriers are filled anew.
pub const PRECISE_ROUNDS: u32 = 4;
/// All connected carriers are filled anew, too, once 1/`MANY` of all sending carriers have been filled.
pub const MANY: u32 = 16;

/// Links and the carriers that cross them, before any flow sends. Links and carriers are numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateNetwork {
    /// Capacity of each link, in units of rate.
    pub capacities: Vec<u64>,
    /// Links of each carrier.
    pub carriers: Vec<CarrierCrossings>,
    /// Pairs (link, share) for each carrier's data and acknowledgements. [`CarrierCrossings`] says which belong to which carrier.
    pub crossings: Vec<[u32; 2]>,
    /// Fraction bits of a share in this network: [`SHARE_BITS`] or 0.
    pub share_bits: u32,
    /// Allowed relative error of a rate, as a right shift.
    pub tolerance_shift: u32,
    /// The largest share of an acknowledgement, in units of [`WHOLE`].
    pub ack_share: u32,
}

/// Ranges of a carrier's links in [`RateNetwork::crossings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarrierCrossings {
    /// Index of the first link of its data.
    pub first: u32,
    /// Number of links of its data.
    pub n: u32,
    /// Index of the first link of its acknowledgements.
    pub first_ack: u32,
    /// Number of links of its acknowledgements.
    pub n_ack: u32,
}

/// The new number of flows of a carrier.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct FlowsChange {
    /// The carrier, by its number in the network.
    pub carrier: u32,
    /// Number of flows that it now has.
    pub flows: u32,
}

/// The new rate of a carrier's flows.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct RateChange {
    /// Number of the network on the device.
    pub network: u32,
    /// The carrier, by its number in the network.
    pub carrier: u32,
    /// Rate of each of its flows, in units of rate.
    pub rate: u64,
}

/// Networks that were loaded on a device. For each network that was offered: its number there, or `None` if it did not fit.
pub type NumberedNetworks = (Box<dyn ResidentRates>, Vec<Option<u32>>);

/// Loads networks on a device.
pub trait RateSolver: Send + Sync {
    /// Minimum number of experiments in a batch for which solving on the device pays.
    fn fewest(&self) -> usize;

    /// Loads the networks that fit, in their order. Returns the number of each, or `None` if it did not fit.
    ///
    /// # Errors
    /// The device failed.
    fn load(&mut self, networks: &[RateNetwork]) -> Result<NumberedNetworks, EngineError>;
}

/// Networks on a device, with the rates of the last solution.
pub trait ResidentRates: Send + Sync + std::fmt::Debug {
    /// Solves several networks at once. `changes` has the number of each network and what has changed in it; no carrier occurs twice. Returns all
    /// rates that differ from those before, in any order. A carrier that has no flows any more has rate 0, which is not reported.
    ///
    /// # Errors
    /// The device failed.
    fn solve(&mut self, changes: &[(u32, &[FlowsChange])]) -> Result<Vec<RateChange>, EngineError>;
}
