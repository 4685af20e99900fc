//! Curves through measured rows, for shapes between them: of fused attention and of memory-bound kernels.
//!
//! Layer: compute. Knows rows, not GPUs.

use std::collections::BTreeMap;

use super::Kernel;
use super::database::{MeasuredKernel, Operation};

/// Attention: measured ps per FLOP by (causal, head size), ascending in the sequence's length. Overheads per row of tiles make it linear in 1 / length and in 1
/// / head size, so it is interpolated and extrapolated in these.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AttentionCurves(BTreeMap<(bool, u64), Vec<(u64, f64)>>);

impl AttentionCurves {
    /// The curves of one GPU, operation and implementation, in ps per FLOP.
    pub(super) fn collect(rows: &[MeasuredKernel], gpu: &str, operation: Operation, variant: &str) -> AttentionCurves {
        let mut curves = AttentionCurves::default();
        for row in rows.iter().filter(|r| r.gpu == gpu && r.operation == operation && r.variant == variant) {
            if let Kernel::Attention { seq_q, head_dim, causal, .. } = row.kernel {
                let flops = row.kernel.flops() as f64 * if operation == Operation::Attention { 3.5 } else { 1.0 };
                curves.insert(causal, head_dim, seq_q, row.ps / flops);
            }
        }
        curves
    }

    fn insert(&mut self, causal: bool, head_dim: u64, seq: u64, value: f64) {
        let points = self.0.entry((causal, head_dim)).or_default();
        match points.binary_search_by_key(&seq, |p| p.0) {
            Ok(i) => points[i].1 = value,
            Err(i) => points.insert(i, (seq, value)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Maps every point by a function of (causal, head size, length, value). Points for which it returns `None` are left out.
    pub(super) fn map(&self, f: impl Fn(bool, u64, u64, f64) -> Option<f64>) -> AttentionCurves {
        let mut out = AttentionCurves::default();
        for ((causal, head_dim), points) in &self.0 {
            for (seq, value) in points {
                if let Some(value) = f(*causal, *head_dim, *seq, *value) {
                    out.insert(*causal, *head_dim, *seq, value);
                }
            }
        }
        out
    }

    /// Replaces the curves of each mask and head size that `other` has too. Measurements of several origins are not mixed in one curve.
    pub(super) fn overlaid(mut self, other: AttentionCurves) -> AttentionCurves {
        for (key, points) in other.0 {
            self.0.insert(key, points);
        }
        self
    }

    /// ps per FLOP at a shape; `None` if there is no row with this mask.
    pub(super) fn ps_per_flop(&self, causal: bool, head_dim: u64, seq: u64) -> Option<f64> {
        let sizes: Vec<(u64, f64)> =
            self.0.range((causal, 0)..=(causal, u64::MAX)).map(|((_, d), points)| (*d, along(points, seq))).collect();
        let (first, last) = (sizes.first()?, sizes.last()?);
        if head_dim <= first.0 {
            // Narrower heads are padded to the narrowest tile.
            return Some(first.1 * first.0 as f64 / head_dim as f64);
        }
        if head_dim >= last.0 {
            return Some(last.1);
        }
        let i = sizes.partition_point(|s| s.0 <= head_dim);
        Some(between(sizes[i - 1], sizes[i], head_dim))
    }
}

/// Interpolates linearly in 1 / x.
fn between(a: (u64, f64), b: (u64, f64), x: u64) -> f64 {
    let (xa, xb, x) = (1.0 / a.0 as f64, 1.0 / b.0 as f64, 1.0 / x as f64);
    a.1 + (b.1 - a.1) * (x - xa) / (xb - xa)
}

/// The value at a length on the curve of one head size. Outside its points the first or last segment is extended. But a longer sequence never costs more per
/// FLOP than a shorter one, nor less than nine tenths of the longest measured one.
fn along(points: &[(u64, f64)], seq: u64) -> f64 {
    let (first, last) = (points[0], points[points.len() - 1]);
    let one = points.len() == 1;
    if seq <= first.0 {
        return if one { first.1 } else { between(first, points[1], seq).max(first.1) };
    }
    if seq >= last.0 {
        return if one { last.1 } else { between(points[points.len() - 2], last, seq).clamp(0.9 * last.1, last.1) };
    }
    let i = points.partition_point(|p| p.0 <= seq);
    between(points[i - 1], points[i], seq)
}

/// Memory-bound kernels: ps by bytes, ascending in both. Between points it is linear. Below the first point it is linear to `floor_ps` at no bytes. Above the
/// last point it has that point's rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MemoryCurve(Vec<(u64, f64)>);

impl MemoryCurve {
    pub(super) fn insert(&mut self, bytes: u64, ps: f64) {
        match self.0.binary_search_by_key(&bytes, |p| p.0) {
            Ok(i) => self.0[i].1 = ps,
            Err(i) => self.0.insert(i, (bytes, ps)),
        }
    }

    /// Makes the curve monotone: a kernel that was measured faster than a smaller one gets the time of the smaller one.
    pub(super) fn make_monotone(&mut self) {
        let mut longest_ps = 0.0f64;
        for point in &mut self.0 {
            longest_ps = longest_ps.max(point.1);
            point.1 = longest_ps;
        }
    }

    /// Time in ps of a kernel of `bytes`; `None` if the curve is empty.
    pub(super) fn time_ps(&self, bytes: u64, floor_ps: f64) -> Option<f64> {
        let (first, last) = (*self.0.first()?, *self.0.last()?);
        let line = |a: (u64, f64), b: (u64, f64)| a.1 + (b.1 - a.1) * (bytes - a.0) as f64 / (b.0 - a.0) as f64;
        Some(if bytes < first.0 {
            line((0, floor_ps.min(first.1)), first)
        } else if bytes >= last.0 {
            last.1 * bytes as f64 / last.0 as f64
        } else {
            let i = self.0.partition_point(|p| p.0 <= bytes);
            line(self.0[i - 1], self.0[i])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attention_between_and_beyond_points_is_monotone_and_sane() {
        let mut curves = AttentionCurves::default();
        for (seq, value) in [(512, 10.0), (1024, 8.0), (2048, 7.0)] {
            curves.insert(true, 64, seq, value);
            curves.insert(true, 128, seq, value * 0.8);
        }
        let mut before = f64::INFINITY;
        for seq in (64..20_000).step_by(64) {
            let now = curves.ps_per_flop(true, 64, seq).unwrap();
            assert!(now <= before, "seq {seq}");
            before = now;
        }
        assert_eq!(curves.ps_per_flop(true, 64, 1024), Some(8.0));
        assert_eq!(curves.ps_per_flop(true, 256, 1024), curves.ps_per_flop(true, 128, 1024));
        assert_eq!(curves.ps_per_flop(true, 32, 1024), Some(16.0));
        let middle = curves.ps_per_flop(true, 96, 1024).unwrap();
        assert!(middle > 6.4 && middle < 8.0);
        assert_eq!(curves.ps_per_flop(false, 64, 1024), None);
    }

    #[test]
    fn memory_curves_never_decrease() {
        let mut curve = MemoryCurve::default();
        for (bytes, ps) in [(1000, 5.0), (4000, 4.0), (8000, 9.0)] {
            curve.insert(bytes, ps);
        }
        curve.make_monotone();
        let mut before = 0.0;
        for bytes in (0..20_000).step_by(100) {
            let now = curve.time_ps(bytes, 3.0).unwrap();
            assert!(now >= before, "{bytes}");
            before = now;
        }
        assert_eq!(
            (curve.time_ps(0, 3.0), curve.time_ps(4000, 3.0), curve.time_ps(16_000, 3.0)),
            (Some(3.0), Some(5.0), Some(18.0))
        );
    }
}
