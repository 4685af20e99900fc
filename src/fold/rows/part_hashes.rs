//! A hash of each part of a key, to find the parts in which two keys differ without keeping the keys.
//!
//! Layer: fold/rows. Only explanations use it. No decision of folding depends on it.

use super::snapshots::snapshot_walk::Pen;
use crate::rows::key_parts::{KeyPart, KeyPartSet};

/// A hash of each part of a key, and the part to which numbers are added now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartHashes {
    hashes: [u64; KeyPart::ALL.len()],
    part: KeyPart,
}

impl Default for PartHashes {
    fn default() -> PartHashes {
        PartHashes { hashes: [0; KeyPart::ALL.len()], part: KeyPart::Messages }
    }
}

impl PartHashes {
    pub(crate) fn bytes(&mut self, part: KeyPart, bytes: &[u8]) {
        let before = self.part(part);
        self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        self.part(before);
    }

    pub(crate) fn of(&self, part: KeyPart) -> u64 {
        self.hashes[part as usize]
    }

    /// The parts in which `self` and `other` differ.
    pub(crate) fn differing(&self, other: &PartHashes) -> KeyPartSet {
        KeyPartSet::of(|part| self.of(part) != other.of(part))
    }
}

impl Pen for PartHashes {
    const READS: bool = false;

    fn word(&mut self, x: u64) -> u64 {
        let hash = &mut self.hashes[self.part as usize];
        // One round of SplitMix64 (Steele, Lea, Flood, OOPSLA '14).
        let mut z = (*hash ^ x).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        *hash = z ^ (z >> 31);
        x
    }

    fn part(&mut self, part: KeyPart) -> KeyPart {
        std::mem::replace(&mut self.part, part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_differ_by_themselves() {
        let mut a = PartHashes::default();
        a.bytes(KeyPart::Rows, b"rows of a partition");
        a.word(7);
        let mut b = a;
        assert!(a.differing(&b).is_empty());
        b.part(KeyPart::Queues);
        b.word(7);
        let parts = a.differing(&b);
        assert_eq!((parts.len(), parts.has(KeyPart::Queues), parts.has(KeyPart::Messages)), (1, true, false));
    }
}
