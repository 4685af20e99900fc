//! Runs phases of work on one thread, with helper threads that join a phase while it lasts.
//!
//! Layer: engine. Knows nothing of the work. Unlike at a [barrier](super::barrier), nobody waits for a thread that has not begun: if the machine has
//! no core for a helper, the first thread does its part.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hyperfold_base::isolation::isolated;

/// Number of times that a thread checks before it yields its core (our choice).
const LOOKS: u32 = 2_000;
/// Phase numbers with a special meaning: between two phases, and after the last one.
const NONE: u32 = u32::MAX - 1;
const OVER: u32 = u32::MAX;

/// Upper half: the current phase. Lower half: the number of threads in it.
struct Gate(AtomicU64);

impl Gate {
    fn new() -> Gate {
        Gate(AtomicU64::new(u64::from(NONE) << 32))
    }

    /// Waits for phase `first_phase` or a later one and enters it. Returns its number, or `None` after the last phase.
    fn enter(&self, first_phase: u32) -> Option<u32> {
        let mut looks = 0;
        loop {
            let word = self.0.load(Ordering::Acquire);
            let phase = (word >> 32) as u32;
            if phase == OVER {
                return None;
            }
            let open = phase != NONE && phase >= first_phase;
            if open && self.0.compare_exchange_weak(word, word + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Some(phase);
            }
            wait(&mut looks);
        }
    }

    fn leave(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    /// Waits until no thread is in the current phase, and begins phase `next`. What threads wrote in a phase, all threads can read in the next one.
    fn begin(&self, next: u32) {
        let mut looks = 0;
        loop {
            let word = self.0.load(Ordering::Acquire);
            let empty = word & u64::from(u32::MAX) == 0;
            let new = u64::from(next) << 32;
            if empty && self.0.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return;
            }
            wait(&mut looks);
        }
    }
}

/// Pieces of work of one phase. Each thread begins with its own part, whose rows are in its core's caches from the step before. Then it helps with
/// other parts.
pub struct SharedPieces {
    n: usize,
    /// For each part, the next piece that no thread has taken.
    next: Vec<AtomicUsize>,
}

impl SharedPieces {
    /// Divides `n` pieces into one part per thread.
    pub fn of(n: usize, threads: usize) -> SharedPieces {
        let shares = SharedPieces { n, next: (0..threads).map(|_| AtomicUsize::new(0)).collect() };
        shares.reset();
        shares
    }

    /// Marks all pieces as not taken.
    pub fn reset(&self) {
        for (part, next) in self.next.iter().enumerate() {
            next.store(self.n * part / self.next.len(), Ordering::Relaxed);
        }
    }

    /// Takes up to `max_pieces` pieces that no thread has taken, from part `own` if it has any left.
    pub fn take(&self, own: usize, max_pieces: usize) -> Option<Range<usize>> {
        let parts = self.next.len();
        (own..own + parts).map(|part| part % parts).find_map(|part| {
            let end = self.n * (part + 1) / parts;
            let start = self.next[part].fetch_add(max_pieces, Ordering::Relaxed);
            (start < end).then(|| start..(start + max_pieces).min(end))
        })
    }
}

/// Part that belongs to this thread: a helper, or the thread with index `first` in its rayon pool. The part is always the same while all threads of
/// the pool help.
pub fn own_part(first: usize, threads: usize) -> usize {
    let (here, all) = (rayon::current_thread_index().unwrap_or(0), rayon::current_num_threads());
    (here + all - first % all) % all % threads
}

fn wait(looks: &mut u32) {
    *looks += 1;
    if *looks < LOOKS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

/// Runs `work(thread, phase)` for phases 0 to `phases` - 1, one after another: on this thread, which is number 0, and on up to `threads` - 1 others
/// of the rayon pool. In a phase each thread takes what is left to do until nothing is left; a helper may come late or not at all. `begins` is called
/// on this thread before each phase.
///
/// If any thread panics, this function panics with that after all threads have ended.
pub fn share(threads: usize, phases: u32, work: &(dyn Fn(usize, u32) + Sync), begins: &mut (dyn FnMut(u32) + Send)) {
    let gate = Gate::new();
    let defect: Mutex<Option<Box<dyn Any + Send>>> = Mutex::default();
    let guarded = |action: &mut dyn FnMut()| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(action)) {
            defect.lock().expect("nobody panics here").get_or_insert(panic);
        }
    };
    rayon::scope(|scope| {
        for k in 1..threads {
            let (gate, guarded) = (&gate, &guarded);
            scope.spawn(move |_| {
                let mut next_phase = 0;
                while let Some(phase) = gate.enter(next_phase) {
                    // The panic belongs to this experiment, so nothing is printed.
                    let _ = isolated(|| guarded(&mut || work(k, phase)));
                    gate.leave();
                    next_phase = phase + 1;
                }
            });
        }
        for phase in 0..phases {
            gate.begin(NONE);
            guarded(&mut || begins(phase));
            if defect.lock().expect("nobody panics here").is_some() {
                break;
            }
            gate.begin(phase);
            guarded(&mut || work(0, phase));
        }
        gate.begin(OVER);
    });
    if let Some(panic) = defect.into_inner().expect("nobody panics here") {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    /// Every piece is done once, in its phase, whether or not there are threads to help.
    #[test]
    fn phases_follow_each_other() {
        for (threads, pooled) in [(1, 1), (3, 3), (4, 2), (4, 1)] {
            let next: Vec<AtomicUsize> = (0..5).map(|_| AtomicUsize::new(0)).collect();
            let done: Vec<AtomicUsize> = (0..5).map(|_| AtomicUsize::new(0)).collect();
            let begun = AtomicUsize::new(0);
            pool(pooled).install(|| {
                share(
                    threads,
                    5,
                    &|_, phase| {
                        let phase = phase as usize;
                        assert_eq!(begun.load(Ordering::Relaxed), phase + 1);
                        while next[phase].fetch_add(1, Ordering::Relaxed) < 100 {
                            done[phase].fetch_add(1, Ordering::Relaxed);
                        }
                    },
                    &mut |phase| {
                        begun.fetch_add(1, Ordering::Relaxed);
                        assert!((0..phase as usize).all(|p| done[p].load(Ordering::Relaxed) == 100));
                    },
                );
            });
            assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 100));
        }
    }

    #[test]
    fn each_piece_is_taken_once() {
        for (n, threads, most) in [(0, 2, 1), (10, 3, 1), (10, 3, 4), (2, 4, 1), (100, 1, 7)] {
            let shares = SharedPieces::of(n, threads);
            let mut taken = vec![0; n];
            for turn in 0.. {
                let Some(pieces) = shares.take(turn % threads, most) else { break };
                assert!(pieces.len() <= most);
                pieces.for_each(|k| taken[k] += 1);
            }
            assert!(taken.iter().all(|&times| times == 1));
        }
        assert_eq!(SharedPieces::of(10, 2).take(1, 3), Some(5..8), "its own part comes first");
    }

    #[test]
    fn a_panic_of_a_helper_comes_back() {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            pool(2).install(|| {
                let next = AtomicUsize::new(0);
                share(
                    2,
                    3,
                    &|k, phase| {
                        // The helper comes in time, as the first thread waits for it.
                        while phase == 1 && k == 0 && next.load(Ordering::Relaxed) == 0 {
                            std::thread::yield_now();
                        }
                        if phase == 1 && k == 1 {
                            next.store(1, Ordering::Relaxed);
                            panic!("a defect");
                        }
                        assert!(phase < 2, "nothing goes on after a panic");
                    },
                    &mut |_| {},
                );
            });
        }));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"a defect"));
    }
}
