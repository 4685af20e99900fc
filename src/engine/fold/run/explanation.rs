//! Why parts of an experiment were simulated and not looked up: packet-hops by cause.
//!
//! Layer: fold/run. Data; the files that simulate fill it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crate::engine::fold::rows::key_parts::{KeyPart, KeyPartSet};
use crate::engine::fold::rows::part_hashes::PartHashes;

/// Why a stretch of a partition's lifetime was simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoldCause {
    /// It began idle, and no lifetime with such rows is known: these rows had not met before.
    #[default]
    NewRows,
    /// It began idle, and its state differs in these parts from the most similar one that is known.
    NewStart(KeyPartSet),
    /// A checkpoint's snapshot: no other of such rows is known.
    NewRowsAtCheckpoint,
    /// A checkpoint's snapshot differs in these parts from the most similar one that is known.
    NewSnapshot(KeyPartSet),
    /// It was known up to here. Then a message was posted at another time than before, or a message that came before did
    /// not come.
    PostAtOtherTime,
    /// Another message was posted: on another queue pair, or of another size.
    OtherPost,
    /// Rows joined at another time.
    JoinAtOtherTime,
    /// Other rows joined, or in another state.
    OtherJoin,
    /// It merged with a partition, which was not known.
    Merge,
    /// Something was drawn at random: a mark, or a sender's pause after a loss.
    Random,
    /// It cannot be remembered: plain flows, several paths, or timers that others see.
    NotRecordable,
    /// Nothing is remembered: no memo, or it is full.
    NoMemo,
}

/// Packet-hops that were simulated, by cause, and how often the cause came up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldExplanation {
    pub causes: BTreeMap<FoldCause, CauseCount>,
}

/// What a cause comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseCount {
    pub hops: u64,
    pub times: u64,
}

impl FoldExplanation {
    /// Packet-hops of all causes.
    pub fn hops(&self) -> u64 {
        self.causes.values().map(|count| count.hops).sum()
    }

    /// Packet-hops of starts and snapshots that differ in `part`; of these, those that differ in nothing else.
    pub fn by_part(&self, part: KeyPart) -> [u64; 2] {
        let mut hops = [0; 2];
        for (cause, count) in &self.causes {
            let (FoldCause::NewStart(parts) | FoldCause::NewSnapshot(parts)) = cause else { continue };
            if parts.has(part) {
                hops[0] += count.hops;
                hops[1] += if parts.len() == 1 { count.hops } else { 0 };
            }
        }
        hops
    }
}

/// What is known of earlier keys.
pub(crate) struct Explainer {
    pub told: Arc<Mutex<FoldExplanation>>,
    /// Of lifetimes and of snapshots, by the hash of their rows.
    pub starts: HashMap<u64, Vec<PartHashes>>,
    pub snapshots: HashMap<u64, Vec<PartHashes>>,
}

impl Explainer {
    pub(crate) fn new(told: Arc<Mutex<FoldExplanation>>) -> Explainer {
        Explainer { told, starts: HashMap::new(), snapshots: HashMap::new() }
    }
}
