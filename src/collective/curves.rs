//! How far measured runs are from `physics`, by size: the database of collectives.
//!
//! Layer: collective. A curve holds, for one kind of operation, algorithm and machine, measured time over computed time at each size; between sizes it is interpolated, below them
//! its end holds, above them it tends to 1. A machine without a curve of its own takes that of the next GPU generation, one without any is taken as computed.

use std::sync::OnceLock;

use super::reference::{self, Run};
use super::system::{Arch, Placement};
use super::{Algorithm, Op};

/// What shares a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// All-reduce; all-gather and what is like it; all-to-all.
    group: u8,
    algorithm: Algorithm,
    across: bool,
    large_domain: bool,
    arch: Arch,
}

impl Kind {
    pub fn new(op: Op, algorithm: Algorithm, at: &Placement, arch: Arch) -> Kind {
        let group = match op {
            Op::AllReduce | Op::Barrier => 0,
            Op::AllToAll => 2,
            _ => 1,
        };
        // All-to-all loads the same links whether by rails or not.
        let algorithm = if op == Op::AllToAll { Algorithm::Direct } else { algorithm };
        Kind {
            group,
            algorithm,
            across: at.nodes() > 1,
            large_domain: at.ranks_per_node >= super::physics::LARGE_DOMAIN,
            arch,
        }
    }
}

/// (log2 of bytes, log of measured over computed), sizes ascending.
type Points = Vec<(f64, f64)>;

/// All curves.
pub struct Curves(Vec<(Kind, Points)>);

impl Curves {
    /// From measured runs, without the point `left_out` (a run and a size).
    pub fn new(runs: &[Run], left_out: Option<(&str, u64)>) -> Curves {
        let mut curves: Vec<(Kind, Points)> = Vec::new();
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
    pub fn ratio(&self, kind: &Kind, bytes: u64) -> f64 {
        let near = |k: &Kind| (k.arch as i32 - kind.arch as i32).abs();
        let alike = |k: &Kind| Kind { arch: kind.arch, ..*k } == *kind;
        let Some((_, points)) = self.0.iter().filter(|(k, _)| alike(k)).min_by_key(|(k, _)| near(k)) else {
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
