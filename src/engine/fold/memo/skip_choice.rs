//! Samples at which messages that wait behind others decide whether a skip begins.
//!
//! How many messages wait is in no key: a message that is posted behind unsent bytes changes nothing until its turn. But
//! a skip must promise something, and what waits is part of that. So each decision is an edge of the memo.
//!
//! Layer: fold/memo. Data; `steady::criterion` finds what is needed.

use crate::engine::fold::memo::keys::edge;
use crate::engine::fold::rows::canonical_key::CanonicalKey;

/// A skip begins only if so many bytes wait on a queue pair behind what the network was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededBytes {
    /// Local number of the queue pair.
    pub member: u32,
    pub bytes: u64,
}

/// A sample at which what waits decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkipChoice {
    /// From the start of the episode or the last checkpoint, ps.
    pub at: u64,
    /// What the steady pieces of the partition need: those for which what waits decides.
    pub pieces: Vec<Vec<NeededBytes>>,
}

impl SkipChoice {
    /// The key of the edge that is taken where `waiting` gives the bytes that wait on a queue pair.
    pub fn key(&self, waiting: impl Fn(u32) -> u64) -> Vec<u8> {
        let mut form = CanonicalKey::default();
        form.numbers(self.pieces.iter().map(|needs| u32::from(is_met(needs, &waiting))));
        edge(b'C', self.at, form)
    }

    /// The room that it takes.
    pub fn bytes(&self) -> usize {
        let needs: usize = self.pieces.iter().map(Vec::len).sum();
        size_of::<SkipChoice>() + self.pieces.len() * size_of::<Vec<NeededBytes>>() + needs * size_of::<NeededBytes>()
    }
}

/// Whether all that is needed waits.
pub(crate) fn is_met(needs: &[NeededBytes], waiting: impl Fn(u32) -> u64) -> bool {
    needs.iter().all(|need| waiting(need.member) >= need.bytes)
}
