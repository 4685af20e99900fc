//! The database of collectives: the ratio of measured runs to `link_times`, by size.
//!
//! Layer: collective. A curve belongs to one server and one kind of operation. It holds measured over computed time at each size. Between sizes it is
//! interpolated; below them its first value holds; above them it tends to 1. A machine without a curve of its own has none: its costs stay as computed.

use std::sync::OnceLock;

use super::curve_kind::CurveKind;
use super::reference::{self, ReferenceRun};

/// (log2 of bytes, log of measured over computed time), sizes ascending.
type Points = Vec<(f64, f64)>;

/// Largest share by which a time may fall as its bytes double. Our choice: half of the 5 % that [`super::Communicator::choose`] keeps.
const FALL: f64 = 0.025;

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
        // Measured and computed times, as (log2 of bytes, log of measured, log of computed).
        let mut by_kind: Vec<(CurveKind, u32, Vec<[f64; 3]>)> = Vec::new();
        for run in runs {
            for row in &run.rows {
                let Some((us, kind)) = run.plain(row) else { continue };
                let point = [libm::log2(row.bytes as f64), libm::log(row.time_us), libm::log(us)];
                let nodes = row.placement.nodes();
                match by_kind.iter_mut().find(|(k, n, _)| *k == kind && *n == nodes) {
                    Some((.., points)) => points.push(point),
                    None => by_kind.push((kind, nodes, vec![point])),
                }
            }
        }
        let curve = |(kind, nodes, points): (CurveKind, u32, Vec<[f64; 3]>)| {
            let measured: Vec<(f64, f64)> = points.iter().map(|p| (p[0], p[1])).collect();
            let ratios = rising(&measured).into_iter().zip(&points).map(|(log, p)| (p[0], log - p[2]));
            Curve { kind, nodes, points: ratios.collect() }
        };
        Curves(by_kind.into_iter().map(curve).collect())
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

    /// Measured over computed time. Of the curves of this kind, the one of the nearest number of servers counts. It counts fully if the run has up to twice or
    /// half as many servers as `nodes`, and not at all from a factor of sixteen on.
    pub(super) fn ratio(&self, kind: &CurveKind, nodes: u32, bytes: u64) -> f64 {
        let octaves_apart = |c: &Curve| (libm::log2(f64::from(c.nodes)) - libm::log2(f64::from(nodes.max(1)))).abs();
        let own = self.0.iter().filter(|c| c.kind == *kind);
        let Some(curve) = own.min_by_key(|c| (octaves_apart(c) * 1e6) as u64) else {
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

/// The logs of times that never fall by more than [`FALL`] as bytes double, as near to the measured ones as medians are. A time that is above those of larger
/// sizes is chance: it is pooled with them. Points are (log2 of bytes, log of time), sizes ascending.
fn rising(points: &[(f64, f64)]) -> Vec<f64> {
    let slope = libm::log(1.0 - FALL);
    // Pools of neighbours: the sorted logs of times, without the slope.
    let mut pools: Vec<Vec<f64>> = Vec::new();
    for &(x, log) in points {
        pools.push(vec![log - slope * x]);
        while let [.., before, last] = pools.as_slice()
            && median(before) > median(last)
        {
            let last = pools.pop().expect("there are two");
            let before = pools.last_mut().expect("there are two");
            before.extend(last);
            before.sort_by(f64::total_cmp);
        }
    }
    let levels = pools.iter().flat_map(|pool| std::iter::repeat_n(median(pool), pool.len()));
    levels.zip(points).map(|(level, &(x, _))| level + slope * x).collect()
}

/// The middle of sorted values, or the mean of both middle ones.
fn median(sorted: &[f64]) -> f64 {
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_is_pooled_and_rising_times_stay() {
        let smoothed = |us: &[f64]| -> Vec<f64> {
            let points: Vec<(f64, f64)> = us.iter().enumerate().map(|(x, us)| (x as f64, libm::log(*us))).collect();
            rising(&points).into_iter().map(|log| (libm::exp(log) * 100.0).round() / 100.0).collect()
        };
        assert_eq!(smoothed(&[10.0, 9.9, 12.0, 30.0]), [10.0, 9.9, 12.0, 30.0]);
        let smooth = smoothed(&[10.0, 22.0, 11.0, 12.0, 13.0]);
        assert_eq!((smooth[0], smooth[4]), (10.0, 13.0));
        assert!(smooth.windows(2).all(|w| w[1] > w[0] * (1.0 - FALL) - 0.01), "{smooth:?}");
    }
}
