//! Parts of keys and snapshots, with a hash of each: to say in what two of them differ.
//!
//! Layer: fold/rows. Only explanations use it. What folding does depends on none of it.

use crate::engine::fold::rows::snapshot_walk::Pen;

/// A part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyPart {
    /// Which rows there are: links, paths, and the order of their numbers, which breaks ties.
    Rows,
    /// The phase of HPCC's clock and counters.
    Phases,
    /// Messages that are posted, and how far each is sent.
    Messages,
    /// Deadlines and timers of queue pairs.
    Timers,
    /// State of congestion control: rates, windows, what they are computed from.
    Rates,
    /// Whose turn it is at a NIC, and when its transmitter is free.
    Transmitters,
    /// Packets in queues.
    Queues,
    /// Packets on links.
    InFlight,
    /// Telemetry that packets carry.
    Telemetry,
    /// How events came about: their order where two happen at one time.
    Lineages,
    /// Pauses and headroom at coupled switches.
    Coupled,
    /// What a skip that just ended may lead to.
    Skips,
}

impl KeyPart {
    pub const ALL: [KeyPart; 12] = [
        KeyPart::Rows,
        KeyPart::Phases,
        KeyPart::Messages,
        KeyPart::Timers,
        KeyPart::Rates,
        KeyPart::Transmitters,
        KeyPart::Queues,
        KeyPart::InFlight,
        KeyPart::Telemetry,
        KeyPart::Lineages,
        KeyPart::Coupled,
        KeyPart::Skips,
    ];
}

/// A set of parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPartSet(u16);

impl KeyPartSet {
    pub fn has(self, part: KeyPart) -> bool {
        self.0 & 1 << part as u16 != 0
    }

    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A hash of each part of a key, and the part that numbers are added to.
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
        let differs = |part: &&KeyPart| self.of(**part) != other.of(**part);
        KeyPartSet(KeyPart::ALL.iter().filter(differs).map(|&part| 1 << part as u16).sum())
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
