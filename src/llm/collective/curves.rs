//! The database of collectives: the ratio of measured runs to `physics`, by size.
//!
//! Layer: collective. A curve belongs to one kind of operation, algorithm and machine. It holds measured over computed time at each size. Between sizes it is
//! interpolated; below them its first value holds; above them it tends to 1. A machine without a curve of its own takes that of another algorithm or of the
//! next GPU generation. Without any curve, costs stay as computed.

use std::sync::OnceLock;

use super::curve_kind::CurveKind;
use super::reference::{self, ReferenceRun};

/// (log2 of bytes, log of measured over computed time), sizes ascending.
type Points = Vec<(f64, f64)>;

/// The measured runs of one kind.
struct Curve {
    kind: CurveKind,
    /// Number of servers of the run.
    nodes: u32,
    points: Points,
}

/// All curves.
pub(super) struct Curves(Vec<Curve>);

impl Curves {
    fn new<'a>(runs: impl Iterator<Item = &'a ReferenceRun>) -> Curves {
        let mut curves: Vec<Curve> = Vec::new();
        for run in runs {
            for row in &run.rows {
                let (us, kind) = run.plain(row);
                let point = (libm::log2(row.bytes as f64), libm::log(row.time_us / us));
                let nodes = row.placement.nodes();
                match curves.iter_mut().find(|c| c.kind == kind && c.nodes == nodes) {
                    Some(curve) => curve.points.push(point),
                    None => curves.push(Curve { kind, nodes, points: vec![point] }),
                }
            }
        }
        Curves(curves)
    }

    /// The curves of `assets/reference`, without those of the run `left_out`.
    pub(super) fn without(left_out: Option<u16>) -> &'static Curves {
        static ALL: OnceLock<Vec<Curves>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            let runs: Vec<&ReferenceRun> = reference::runs().iter().filter(|r| r.curve).collect();
            let without_run = |left_out_idx: Option<usize>| {
                Curves::new(runs.iter().enumerate().filter(|(i, _)| Some(*i) != left_out_idx).map(|(_, r)| *r))
            };
            std::iter::once(None).chain((0..runs.len()).map(Some)).map(without_run).collect()
        });
        &all[left_out.map_or(0, |run| usize::from(run) + 1)]
    }

    /// Measured over computed time. Of the curves with the same group and span, the nearest one counts: by algorithm, then GPU generation, then number of
    /// servers. The ratio counts fully if the run has up to twice or half as many servers as `nodes`, and not at all from a factor of sixteen on.
    pub(super) fn ratio(&self, kind: &CurveKind, nodes: u32, bytes: u64) -> f64 {
        let comparable = |c: &&Curve| {
            let k = &c.kind;
            (k.group, k.across, k.large_domain) == (kind.group, kind.across, kind.large_domain)
        };
        let octaves_apart = |c: &Curve| (libm::log2(f64::from(c.nodes)) - libm::log2(f64::from(nodes.max(1)))).abs();
        let distance = |c: &&Curve| {
            let generations = (c.kind.arch as i32 - kind.arch as i32).abs();
            (c.kind.algorithm != kind.algorithm, generations, (octaves_apart(c) * 1e6) as u64)
        };
        let Some(curve) = self.0.iter().filter(comparable).min_by_key(distance) else {
            return 1.0;
        };
        let weight = (1.0 - (octaves_apart(curve) - 1.0) / 3.0).clamp(0.0, 1.0);
        let points = &curve.points;
        let x = libm::log2(bytes.max(1) as f64);
        let after = points.partition_point(|p| p.0 < x);
        let log = match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
            (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0),
            // Beyond the largest size, the difference is latency and the filling of pipelines. It weighs half as much at twice the size.
            (Some(a), None) => a.1 * libm::exp2(a.0 - x),
            (None, Some(b)) => b.1,
            (None, None) => 0.0,
        };
        libm::exp(weight * log)
    }
}
