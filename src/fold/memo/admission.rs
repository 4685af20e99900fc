//! Admission: which keys the memo records. Experiments whose partitions never repeat would fill the memo before experiments whose partitions do
//! repeat. So an experiment that finds little of what it records is on probation: of a key that is new to the memo only a hash is kept, and a key
//! that comes a second time is recorded.
//!
//! Layer: fold/memo. Decides what is remembered, never a result: what the memo lacks is simulated.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::FixedState;

use crate::memo::lock::lock;

/// An experiment may record 1/`FREE_SHARE` of the memo before it must have found anything (our choice).
const FREE_SHARE: u64 = 32;
/// All experiments that find little may together record 1/`FREE_SHARE_OF_ALL` of the memo (our choice: the rest is for others).
const FREE_SHARE_OF_ALL: u64 = 2;
/// An experiment finds little if it finds less than 1/`LITTLE` of what it records, in bytes of keys. A key has about as many bytes as packet-hops
/// follow until the next checkpoint (our choice).
const LITTLE: u64 = 4;
/// Maximum number of hashes; when it is reached, all are forgotten (our choice: 16 MiB).
const MAX_HASHES: usize = 1 << 20;

/// Totals of what an experiment recorded in the memo and found there.
#[derive(Debug, Default)]
pub(crate) struct RunBalance {
    /// Bytes of keys that were recorded, and of keys that were found.
    recorded: AtomicU64,
    found: AtomicU64,
    /// Bytes of keys and of what follows them that were recorded.
    taken: AtomicU64,
}

impl RunBalance {
    /// Counts a key of `bytes` bytes that is known, or that came before.
    pub(crate) fn found(&self, bytes: usize) {
        self.found.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether the experiment finds little of what it records.
    fn is_of_little_use(&self) -> bool {
        let (recorded, found) = self.so_far();
        found.saturating_mul(LITTLE) <= recorded
    }

    /// The keys that the experiment recorded and found so far, in bytes.
    pub(crate) fn so_far(&self) -> (u64, u64) {
        (self.recorded.load(Ordering::Relaxed), self.found.load(Ordering::Relaxed))
    }
}

/// Decides which keys are recorded.
#[derive(Default)]
pub(crate) struct Admission {
    /// Bytes recorded by experiments while they found little.
    of_little_use: AtomicU64,
    /// Hashes of keys that were turned away. A false match has one effect only: a key that came once is recorded.
    seen: Mutex<HashSet<u64>>,
}

impl Admission {
    /// Whether a key of `bytes` bytes that the memo lacks is recorded, in a memo of at most `max_bytes` bytes. `hash`: hash of the key and of the node
    /// that it starts from.
    pub(crate) fn admits(
        &self,
        balance: Option<&RunBalance>,
        bytes: usize,
        max_bytes: u64,
        hash: impl FnOnce() -> u64,
    ) -> bool {
        let Some(balance) = balance else { return true };
        let all = self.of_little_use.load(Ordering::Relaxed);
        let free =
            balance.taken.load(Ordering::Relaxed) < max_bytes / FREE_SHARE && all < max_bytes / FREE_SHARE_OF_ALL;
        if balance.is_of_little_use() && !free {
            if !self.came_before(hash()) {
                return false;
            }
            balance.found(bytes);
        }
        balance.recorded.fetch_add(bytes as u64, Ordering::Relaxed);
        true
    }

    /// Counts `bytes` bytes that were recorded, of keys or of what follows them.
    pub(crate) fn takes(&self, balance: Option<&RunBalance>, bytes: u64) {
        let Some(balance) = balance else { return };
        balance.taken.fetch_add(bytes, Ordering::Relaxed);
        if balance.is_of_little_use() {
            self.of_little_use.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn came_before(&self, hash: u64) -> bool {
        let mut seen = lock(&self.seen);
        if seen.remove(&hash) {
            return true;
        }
        if seen.len() >= MAX_HASHES {
            seen.clear();
        }
        seen.insert(hash);
        false
    }
}

/// The hash of `key` at the node `node`.
pub(crate) fn hash(node: u64, key: &[u8]) -> u64 {
    FixedState::with_seed(node).hash_one(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 1 << 20;

    fn asks(admission: &Admission, balance: &RunBalance, key: u64) -> bool {
        let taken = admission.admits(Some(balance), 1024, MOST, || key);
        if taken {
            admission.takes(Some(balance), 1024);
        }
        taken
    }

    #[test]
    fn who_finds_nothing_records_a_share_and_then_what_comes_twice() {
        let (admission, run) = (Admission::default(), RunBalance::default());
        let free = (0..1000).take_while(|&key| asks(&admission, &run, key)).count() as u64;
        assert_eq!(free, MOST / FREE_SHARE / 1024);
        assert!(!asks(&admission, &run, 5000) && asks(&admission, &run, 5000));
        // It counts as found, but is too little.
        assert!(!asks(&admission, &run, 5001));
        run.found(MOST as usize);
        assert!(asks(&admission, &run, 5002));
    }

    #[test]
    fn those_who_find_nothing_leave_room_for_others() {
        let admission = Admission::default();
        let recorded = |run: u64| {
            let balance = RunBalance::default();
            (0..1000).for_each(|key| _ = asks(&admission, &balance, run * 1000 + key));
            balance.so_far().0
        };
        let all: u64 = (0..100).map(recorded).sum();
        assert!((MOST / 2..MOST * 5 / 8).contains(&all), "{all}");
        // Another one repeats itself at once.
        let run = RunBalance::default();
        let mut taken = 0;
        for key in 0..100 {
            for _ in 0..20 {
                if asks(&admission, &run, 1 << 40 | key) {
                    taken += 1;
                    break;
                }
            }
            run.found(18 * 1024);
        }
        assert_eq!(taken, 100);
    }

    #[test]
    fn nobody_is_never_on_probation() {
        let admission = Admission::default();
        assert!((0..5000).all(|_| admission.admits(None, 1024, MOST, || 0)));
    }
}
