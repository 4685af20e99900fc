//! Which skips are audited, which means that the same time is simulated as well.
//!
//! Layer: fold/steady. Simulates nothing.

use hyperfold_columns::Exp;
use hyperfold_engine::Audit;

/// The number 1 in millionths.
const WHOLE: u64 = 1_000_000;

/// Packet-hops after which an audit ends, unless everything is to be audited (our choice: a hundredth of a second).
const MAX_HOPS: u64 = 1 << 15;

/// A skip is audited if it is this many times as large as any skip audited before (our choice).
const LARGER: u64 = 4;

/// Packet-hops up to which a skip of `hops` is audited; `None`: it is not audited. So far, `done` packet-hops were audited of `skipped`. The first
/// skip is audited, and each one that is several times as large as any before, because large skips show errors; others are audited up to the
/// requested share.
pub(crate) fn due(e: &Exp, audit: &Audit, hops: u64, done: u64, skipped: u64) -> Option<u64> {
    let share = |x: u64| (u128::from(x) * u128::from(e.audit_ppm) / u128::from(WHOLE)) as u64;
    let upto = if u64::from(e.audit_ppm) < WHOLE { hops.min(MAX_HOPS) } else { hops };
    let in_share = done + upto <= share(skipped + hops);
    let larger = audit.skips == 0 || upto >= LARGER * audit.largest;
    (e.audit_ppm > 0 && hops > 0 && (in_share || larger)).then_some(upto)
}
