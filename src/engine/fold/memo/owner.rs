//! Which experiment made a node, and which records what follows it.
//!
//! Layer: fold/memo.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::fold::memo::admission::RunBalance;

/// An experiment, and when the partition of a node started or passed its last checkpoint, ps of that experiment. The
/// default: none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeMaker {
    pub run: u64,
    pub start: u64,
}

/// Who records, and what it recorded and found so far. The default: nobody, for whom there is always room.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorder<'a> {
    pub maker: NodeMaker,
    pub balance: Option<&'a RunBalance>,
}

/// Of a node: which experiment created it, and which records what follows.
#[derive(Default)]
pub struct NodeOwner {
    pub maker: NodeMaker,
    /// 0: none.
    pub run: AtomicU64,
}

impl From<NodeMaker> for NodeOwner {
    fn from(by: NodeMaker) -> NodeOwner {
        NodeOwner { maker: by, run: by.run.into() }
    }
}

impl NodeOwner {
    /// No experiment records what follows any more.
    pub fn leave(&self) {
        self.run.store(0, Ordering::Release);
    }
}
