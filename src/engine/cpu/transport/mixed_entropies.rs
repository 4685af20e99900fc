//! Mixed entropies (`docs/explanation/model-semantics.md`, "Several paths"): a sender takes good ones again, and walks over all others but for those with a penalty
//! (twin: `shaders/mixed_entropies.wgsl`).
//!
//! What a queue pair knows of its entropies lies in `psn_bits`, behind the bits of positions: see [`mixed`].

use super::any_order::words_of_qp;
use super::spraying::path_of;
use hyperfold_columns::{Column, Exp, FlowIdx, FlowTx, kind, meta, mixed, mode};

/// Number of bytes in a word of `psn_bits`.
const BYTES_IN_WORD: u32 = 4;
/// Bits of a penalty.
const PENALTY_BITS: u32 = 4;
/// Number of penalties in a word of `psn_bits`.
const PENALTIES_IN_WORD: u32 = 8;
/// The largest penalty.
const LARGEST_PENALTY: u32 = 15;
/// Penalty for a packet that was marked (htsim's).
const MARK_PENALTY: u32 = 1;
/// Penalty for a packet that was trimmed before its last hop (htsim's).
const TRIM_PENALTY: u32 = 4;
/// Penalty for a packet that a timeout takes for lost (htsim's).
const TIMEOUT_PENALTY: u32 = 15;

/// Whether senders choose entropies again and walk over the others, with penalties.
#[inline]
pub fn is_mixed(e: &Exp) -> bool {
    e.modes & mode::MIXED == mode::MIXED
}

/// First word of the entropies of queue pair `f`.
fn mixed_first(e: &Exp, f: FlowIdx) -> u32 {
    f.0 * words_of_qp(e) + 3 * e.psn_range / 32
}

/// First word of the penalties of queue pair `f`.
fn penalties_first(e: &Exp, f: FlowIdx) -> u32 {
    mixed_first(e, f) + e.psn_range / BYTES_IN_WORD
}

/// First word of the entropies that queue pair `f` keeps.
fn kept_first(e: &Exp, f: FlowIdx) -> u32 {
    penalties_first(e, f) + mixed::PENALTY_WORDS
}

/// Byte number `place` of the words from `first` on.
fn byte_at(bits: &Column<'_, u32>, first: u32, place: u32) -> u32 {
    (bits[(first + place / BYTES_IN_WORD) as usize] >> (8 * (place % BYTES_IN_WORD))) & 255
}

/// Sets byte number `place` of the words from `first` on.
fn set_byte(bits: &mut Column<'_, u32>, first: u32, place: u32, value: u32) {
    let shift = 8 * (place % BYTES_IN_WORD);
    let word = &mut bits[(first + place / BYTES_IN_WORD) as usize];
    *word = (*word & !(255 << shift)) | (value << shift);
}

/// Place of `position` among the entropies of positions.
fn place_of(e: &Exp, position: u64) -> u32 {
    ((position / e.payload as u64) % e.psn_range as u64) as u32
}

/// Adds `more` to the penalty of `entropy`.
fn penalise(e: &Exp, bits: &mut Column<'_, u32>, f: FlowIdx, entropy: u32, more: u32) {
    let shift = PENALTY_BITS * (entropy % PENALTIES_IN_WORD);
    let word = &mut bits[(penalties_first(e, f) + entropy / PENALTIES_IN_WORD) as usize];
    let penalty = (*word >> shift) & LARGEST_PENALTY;
    *word += ((penalty + more).min(LARGEST_PENALTY) - penalty) << shift;
}

/// Takes 1 from the penalty of `entropy`. Returns whether it has none.
fn is_clean(e: &Exp, bits: &mut Column<'_, u32>, f: FlowIdx, entropy: u32) -> bool {
    let shift = PENALTY_BITS * (entropy % PENALTIES_IN_WORD);
    let word = &mut bits[(penalties_first(e, f) + entropy / PENALTIES_IN_WORD) as usize];
    if (*word >> shift) & LARGEST_PENALTY == 0 {
        return true;
    }
    *word -= 1 << shift;
    false
}

/// Word with the number of the next step of the walk of queue pair `f`.
fn step_word(e: &Exp, f: FlowIdx) -> u32 {
    kept_first(e, f) + mixed::KEPT_WORDS
}

/// The next entropy of the walk.
fn walk(e: &Exp, tx: &FlowTx, bits: &mut Column<'_, u32>, f: FlowIdx) -> u32 {
    let word = &mut bits[step_word(e, f) as usize];
    let step = *word;
    *word = step.wrapping_add(1);
    path_of(e, tx.flow_id, step, 0, tx.n_paths)
}

/// The entropy that the next packet of a queue pair takes, without a look at where it is noted: the oldest that is kept, else the next one of the walk without a
/// penalty. If all have one, it is the one after all of them.
fn pick_entropy(e: &Exp, tx: &mut FlowTx, bits: &mut Column<'_, u32>, f: FlowIdx) -> u32 {
    if tx.n_paths == 1 {
        return 0;
    }
    if tx.stage > 0 {
        let place = tx.alpha as u32;
        tx.alpha = u64::from((place + 1) % mixed::KEPT);
        tx.stage -= 1;
        // The queue pair may have fewer paths than it had.
        return byte_at(bits, kept_first(e, f), place) % tx.n_paths;
    }
    for _ in 0..tx.n_paths {
        let entropy = walk(e, tx, bits, f);
        if is_clean(e, bits, f, entropy) {
            return entropy;
        }
    }
    walk(e, tx, bits, f)
}

/// The entropy that the packet at `position` of queue pair `f` takes. It is noted, for a timeout.
pub fn next_mixed(e: &Exp, tx: &mut FlowTx, bits: &mut Column<'_, u32>, f: FlowIdx, position: u64) -> u32 {
    let entropy = pick_entropy(e, tx, bits, f);
    set_byte(bits, mixed_first(e, f), place_of(e, position), entropy);
    entropy
}

/// Takes in what an answer with `answer_meta` tells of the entropy that it carries.
pub fn learn(e: &Exp, tx: &mut FlowTx, bits: &mut Column<'_, u32>, f: FlowIdx, answer_meta: u32) {
    let entropy = answer_meta >> meta::ENTROPY_SHIFT;
    let is_nack = (answer_meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::NACK;
    if is_nack && answer_meta & meta::LAST_HOP == 0 {
        return penalise(e, bits, f, entropy, TRIM_PENALTY);
    }
    if answer_meta & meta::CNP != 0 {
        return penalise(e, bits, f, entropy, MARK_PENALTY);
    }
    if tx.stage == mixed::KEPT {
        tx.alpha = (tx.alpha + 1) % u64::from(mixed::KEPT);
        tx.stage -= 1;
    }
    set_byte(bits, kept_first(e, f), (tx.alpha as u32 + tx.stage) % mixed::KEPT, entropy);
    tx.stage += 1;
}

/// The packet at `position` of queue pair `f` has become lost at a timeout.
pub fn distrust(e: &Exp, tx: &FlowTx, bits: &mut Column<'_, u32>, f: FlowIdx, position: u64) {
    if tx.n_paths > 1 {
        let entropy = byte_at(bits, mixed_first(e, f), place_of(e, position));
        penalise(e, bits, f, entropy, TIMEOUT_PENALTY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    const F: FlowIdx = FlowIdx(1);

    /// The second queue pair of an experiment with mixed entropies.
    struct QueuePair {
        e: Exp,
        tx: FlowTx,
        bits: Column<'static, u32>,
    }

    impl QueuePair {
        fn with_paths(n_paths: u32) -> QueuePair {
            let (mut e, mut tx) = (Exp::zeroed(), FlowTx::zeroed());
            (e.modes, e.psn_range, e.payload) = (mode::UEC | mode::MIXED, 64, 1000);
            (tx.n_paths, tx.flow_id) = (n_paths, 7);
            QueuePair { e, tx, bits: vec![0; (2 * e.bits_of_qp() / 32) as usize].into() }
        }

        /// Sends a packet at `position`. Returns its entropy.
        fn send(&mut self, position: u64) -> u32 {
            next_mixed(&self.e, &mut self.tx, &mut self.bits, F, position)
        }

        /// How many of so many packets take `entropy`.
        fn n_with(&mut self, entropy: u32, n_packets: u32) -> usize {
            (0..n_packets).filter(|_| self.send(0) == entropy).count()
        }

        /// Steps of the walk so far.
        fn steps(&self) -> u32 {
            self.bits[step_word(&self.e, F) as usize]
        }

        /// An answer of this kind with these marks comes, which carries `entropy`.
        fn hear(&mut self, kind: u32, marks: u32, entropy: u32) {
            let word = (kind << meta::KIND_SHIFT) | marks | (entropy << meta::ENTROPY_SHIFT);
            learn(&self.e, &mut self.tx, &mut self.bits, F, word);
        }
    }

    #[test]
    fn the_newest_good_entropies_are_kept() {
        let mut qp = QueuePair::with_paths(256);
        (0..mixed::KEPT + 3).for_each(|entropy| qp.hear(kind::ACK, 0, entropy));
        for entropy in 3..mixed::KEPT + 3 {
            assert_eq!(qp.send(0), entropy);
        }
        assert_eq!((qp.tx.stage, qp.steps()), (0, 0), "the walk has not begun");
        qp.hear(kind::NACK, meta::LAST_HOP, 9);
        qp.tx.n_paths = 4;
        assert_eq!(qp.send(0), 1, "a queue pair with fewer paths than it had");
    }

    #[test]
    fn a_walk_skips_entropies_by_their_penalties() {
        let mut qp = QueuePair::with_paths(4);
        let mut first = [0; 4].map(|_| qp.send(0));
        let bad = first[1];
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3]);
        for (kind, marks, turns) in [(kind::ACK, meta::CNP, 1), (kind::NACK, meta::CNP, 4), (kind::NACK, 0, 4)] {
            qp.hear(kind, marks, bad);
            let before = qp.steps();
            assert!(qp.n_with(bad, 40) < 10);
            assert_eq!(qp.steps() - before, 40 + turns, "skipped once for each of its penalty");
            // Forty steps that begin within a turn of four meet it nine to eleven times.
            assert!(qp.n_with(bad, 40).abs_diff(10) < 2, "nothing is left of it");
        }
    }

    #[test]
    fn a_timeout_costs_fifteen_turns_of_the_entropy_that_its_packet_had() {
        let mut qp = QueuePair::with_paths(4);
        let taken = [0, 1, 2, 3].map(|k| qp.send(1000 * k));
        distrust(&qp.e, &qp.tx, &mut qp.bits, F, 2000);
        distrust(&qp.e, &qp.tx, &mut qp.bits, F, 2000);
        let first = qp.steps();
        qp.n_with(taken[2], 200);
        assert_eq!(qp.steps() - first, 215, "no penalty is larger");
    }

    #[test]
    fn a_packet_finds_a_path_where_all_have_penalties() {
        let mut qp = QueuePair::with_paths(4);
        (0..4).for_each(|entropy| qp.hear(kind::NACK, 0, entropy));
        qp.send(0);
        assert_eq!(qp.steps(), 5, "four are skipped, and the fifth is taken whatever its penalty");
        qp.tx.n_paths = 1;
        assert_eq!(qp.send(0), 0);
        assert_eq!(qp.steps(), 5, "no walk over one path");
    }
}
