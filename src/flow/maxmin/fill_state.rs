//! The state of a filling: which carriers still rise, and how much of each link is free.
//!
//! Layer: flow level. `progressive_filling` changes it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hyperfold_engine::fair_rates::NONE;

/// State of a filling, besides the rates.
#[derive(Debug, Default)]
pub(super) struct Fill {
    /// By link: capacity for data that is still free.
    pub(super) free: Vec<u64>,
    /// By link: flows times shares of carriers that are not stopped yet.
    pub(super) weight: Vec<u64>,
    /// By link: rate at which it has stopped carriers.
    pub(super) stopped_at: Vec<u64>,
    /// By link: fastest rate that crosses it.
    pub(super) fastest: Vec<u64>,
    pub(super) is_touched: Vec<bool>,
    pub(super) touched: Vec<u32>,
    /// By carrier: new rate.
    pub(super) rate: Vec<u64>,
    /// By carrier: new bottleneck.
    pub(super) bottleneck: Vec<u32>,
    pub(super) state: Vec<CarrierState>,
    pub(super) filled: Vec<u32>,
    pub(super) full_first: BinaryHeap<Reverse<(u64, u32)>>,
}

/// Whether a carrier takes part in a filling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CarrierState {
    /// The carrier takes no part and keeps its rate.
    #[default]
    Outside,
    Rising,
    Stopped,
}

impl Fill {
    pub(super) fn new(links: usize) -> Fill {
        Fill {
            free: vec![0; links],
            weight: vec![0; links],
            stopped_at: vec![NEVER; links],
            fastest: vec![0; links],
            is_touched: vec![false; links],
            ..Fill::default()
        }
    }

    pub(super) fn add(&mut self) {
        self.rate.push(0);
        self.bottleneck.push(NONE);
        self.state.push(CarrierState::Outside);
    }

    pub(super) fn rate(&self, carrier: u32) -> u64 {
        self.rate[carrier as usize]
    }

    pub(super) fn bottleneck(&self, carrier: u32) -> u32 {
        self.bottleneck[carrier as usize]
    }

    /// Takes back the list of a filling, so that the next filling can reuse its memory.
    pub(super) fn give_back(&mut self, mut filled: Vec<u32>) {
        filled.clear();
        self.filled = filled;
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.free.len() * 34 + self.rate.len() * 13 + self.full_first.capacity() * 16) as u64
    }
}

/// Value of a rate if the link has stopped no carrier.
pub(super) const NEVER: u64 = u64::MAX;
