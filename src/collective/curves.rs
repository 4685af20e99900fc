//! How far measured runs are from `physics`, by size: the database of collectives.
//!
//! Layer: collective. A curve holds, for one kind of operation, algorithm and machine, measured time over computed time at each size; between sizes it is interpolated, below them
//! its end holds, above them it tends to 1. A machine without a curve of its own takes that of the next GPU generation, one without any is taken as computed.

use std::sync::OnceLock;

use super::curve_kind::CurveKind;
use super::reference::{self, ReferenceRun};

/// (log2 of bytes, log of measured over computed), sizes ascending.
type Points = Vec<(f64, f64)>;

/// All curves.
pub struct Curves(Vec<(CurveKind, Points)>);

impl Curves {
    /// From measured runs, without the point `left_out` (a run and a size).
    pub fn new(runs: &[ReferenceRun], left_out: Option<(&str, u64)>) -> Curves {
        let mut curves: Vec<(CurveKind, Points)> = Vec::new();
        for run in runs.iter().filter(|r| r.curve) {
            for row in run.rows.iter().filter(|r| left_out != Some((&run.id, r.bytes))) {
                let (us, kind) = run.plain(row);
                let point = (libm::log2(row.bytes as f64), libm::log(row.time_us / us));
                match curves.iter_mut().find(|(k, _)| *k == kind) {
                    Some((_, points)) => points.push(point),
                    None => curves.push((kind, vec![point])),
                }
            }
        }
        Curves(curves)
    }

    /// The curves of `assets/reference`.
    pub fn all() -> &'static Curves {
        static ALL: OnceLock<Curves> = OnceLock::new();
        ALL.get_or_init(|| Curves::new(reference::runs(), None))
    }

    /// Measured over computed time.
    pub fn ratio(&self, kind: &CurveKind, bytes: u64) -> f64 {
        let near = |k: &CurveKind| (k.arch as i32 - kind.arch as i32).abs();
        let same_but_arch = |k: &CurveKind| CurveKind { arch: kind.arch, ..*k } == *kind;
        let Some((_, points)) = self.0.iter().filter(|(k, _)| same_but_arch(k)).min_by_key(|(k, _)| near(k)) else {
            return 1.0;
        };
        let x = libm::log2(bytes.max(1) as f64);
        let after = points.partition_point(|p| p.0 < x);
        let log = match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
            (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0),
            // What is missing beyond the end is latency and pipelines filling: it weighs half as much at twice the size.
            (Some(a), None) => a.1 * libm::exp2(a.0 - x),
            (None, Some(b)) => b.1,
            (None, None) => 0.0,
        };
        libm::exp(log)
    }
}
