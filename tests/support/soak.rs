//! Long runs of random cases.

use std::time::{Duration, Instant};

/// First seed of soaks; those below are the tests'.
const FIRST: u64 = 1_000;

/// Calls `run` with the first seed of a block, which it answers with the block's length, for a third of `HYPERFOLD_SOAK_MINUTES` (default 30). Gives the number of seeds.
pub fn third(mut run: impl FnMut(u64) -> u64) -> u64 {
    let minutes: f64 = std::env::var("HYPERFOLD_SOAK_MINUTES").ok().and_then(|m| m.parse().ok()).unwrap_or(30.0);
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0 / 3.0);
    let mut from = FIRST;
    while Instant::now() < end {
        from += run(from);
    }
    from - FIRST
}
