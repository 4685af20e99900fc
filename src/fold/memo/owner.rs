//! Which experiment created a node, and which one records what follows it.
//!
//! Layer: fold/memo.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::memo::admission::RunBalance;

/// An experiment, and the time at which the partition of a node started or passed its last checkpoint, in ps of that experiment. The default: no
/// experiment.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeMaker {
    pub run: u64,
    pub start: u64,
}

/// The experiment that records, and its totals of what it recorded and found. The default: no experiment; its keys are always admitted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorder<'a> {
    pub(crate) maker: NodeMaker,
    pub(crate) balance: Option<&'a RunBalance>,
}

/// Experiments of a node: the one that created it, and the one that records what follows.
#[derive(Default)]
pub struct NodeOwner {
    pub maker: NodeMaker,
    /// Number of the experiment that records; 0: none.
    pub run: AtomicU64,
}

impl From<NodeMaker> for NodeOwner {
    fn from(maker: NodeMaker) -> NodeOwner {
        NodeOwner { maker, run: maker.run.into() }
    }
}

impl NodeOwner {
    /// Marks that no experiment records what follows any more.
    pub fn leave(&self) {
        self.run.store(0, Ordering::Release);
    }
}
