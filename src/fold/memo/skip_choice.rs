//! Choices: samples at which the waiting messages decide whether a skip begins.
//!
//! No key tells how many messages wait: a message that is posted behind unsent bytes changes nothing until its turn. But a skip must save enough, and
//! that depends on the waiting messages. So the memo stores what follows once for each outcome of the decision.
//!
//! Layer: fold/memo. Only data; `steady::skip_criterion` computes what is needed.

use crate::memo::keys::edge;
use crate::rows::canonical_key::CanonicalKey;

/// A condition for a skip: at least this many bytes wait on a queue pair behind the messages that the network was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededBytes {
    /// Local number of the queue pair.
    pub member: u32,
    pub bytes: u64,
}

/// A sample at which the waiting messages decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkipChoice {
    /// Time in ps from the start of the episode or the last checkpoint.
    pub at: u64,
    /// Needs of those steady pieces of the partition for which the waiting messages decide.
    pub pieces: Vec<Vec<NeededBytes>>,
}

impl SkipChoice {
    /// The key of the edge that is taken, if `waiting` gives the bytes that wait on a queue pair.
    pub fn key(&self, waiting: impl Fn(u32) -> u64) -> Vec<u8> {
        let mut form = CanonicalKey::default();
        form.numbers(self.pieces.iter().map(|needs| u32::from(is_met(needs, &waiting))));
        edge(b'C', self.at, form)
    }

    /// Memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let needs: usize = self.pieces.iter().map(Vec::len).sum();
        size_of::<SkipChoice>() + self.pieces.len() * size_of::<Vec<NeededBytes>>() + needs * size_of::<NeededBytes>()
    }
}

/// Whether enough bytes wait to meet all needs.
pub(crate) fn is_met(needs: &[NeededBytes], waiting: impl Fn(u32) -> u64) -> bool {
    needs.iter().all(|need| waiting(need.member) >= need.bytes)
}
