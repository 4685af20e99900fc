//! Explanations why parts of an experiment were simulated and not looked up: packet-hops by cause.
//!
//! Layer: fold/run. Only data; the files that simulate fill it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crate::rows::key_parts::{KeyPart, KeyPartSet};
use crate::rows::part_hashes::PartHashes;

/// Reason why a part of a partition's lifetime was simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoldCause {
    /// It began idle, and no lifetime with such rows is known: these rows have not met before.
    #[default]
    NewRows,
    /// It began idle, and its state differs in these parts from the most similar known one.
    NewStart(KeyPartSet),
    /// It began at a checkpoint, and no snapshot of such rows is known.
    NewRowsAtCheckpoint,
    /// It began at a checkpoint, and its snapshot differs in these parts from the most similar known one.
    NewSnapshot(KeyPartSet),
    /// It was known up to here. Then a message was posted at another time than before, or an earlier message did not come.
    PostAtOtherTime,
    /// A message was posted on another queue pair, or with another size.
    OtherPost,
    /// Rows joined at another time.
    JoinAtOtherTime,
    /// Other rows joined, or rows in another state.
    OtherJoin,
    /// It merged with another partition, and this merge was not known.
    Merge,
    /// Something was drawn at random: a mark, or a sender's pause after a loss.
    Random,
    /// It cannot be remembered: plain flows, several paths, or timers that others see.
    NotRecordable,
    /// Nothing is remembered: there is no memo, or it is full.
    NoMemo,
    /// Skips gained too little, so the rest of the experiment was simulated without folding.
    SkipsGainedTooLittle,
}

/// Packet-hops that were simulated, by cause, and how often each cause occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldExplanation {
    /// Counts of each cause that occurred.
    pub causes: BTreeMap<FoldCause, CauseCount>,
}

/// Packet-hops simulated because of one cause, and number of its occurrences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseCount {
    /// Packet-hops that were simulated because of it.
    pub hops: u64,
    /// Number of its occurrences.
    pub times: u64,
}

impl FoldExplanation {
    /// Packet-hops of all causes.
    pub fn hops(&self) -> u64 {
        self.causes.values().map(|count| count.hops).sum()
    }

    /// Packet-hops of starts and snapshots that differ in `part`; and of these, those that differ in nothing else.
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

/// Earlier keys, with which new ones are compared.
pub(crate) struct Explainer {
    pub told: Arc<Mutex<FoldExplanation>>,
    /// Hashes of earlier lifetimes and of earlier snapshots, by the hash of their rows.
    pub starts: HashMap<u64, Vec<PartHashes>>,
    pub snapshots: HashMap<u64, Vec<PartHashes>>,
}

impl Explainer {
    pub(crate) fn new(told: Arc<Mutex<FoldExplanation>>) -> Explainer {
        Explainer { told, starts: HashMap::new(), snapshots: HashMap::new() }
    }
}
