//! The combinations of axis values that a sweep visits.
//!
//! Layer: sweep. A design is kept compact, and a point is decoded when it is needed, because sweeps have up to millions of points.

use std::collections::HashSet;

use super::experiment::MAX_EXPERIMENTS;
use super::file::axis::{DeclaredAxis, Points};
use super::file::document::Document;
use super::method::Method;
use crate::spec::{KeyPath, Value, key, mix, name_hash};

/// Number of candidates that `optimize` draws for each experiment that it runs in full, if an axis is a range.
pub(super) const CANDIDATES_PER_SAMPLE: u64 = 20;

/// The points of a sweep, before the constraints.
pub(super) enum SamplingDesign {
    /// Every combination. The last axis varies fastest.
    Grid(Vec<Vec<Value>>),
    /// The values point by point, `width` for each point. A value is `Unset` if a listed experiment does not mention the key.
    Rows { width: usize, values: Vec<Value> },
}

impl SamplingDesign {
    /// Returns the keys and points of a sweep file. The error says why there are none, or that there are too many.
    pub(super) fn new(doc: &Document) -> Result<(Vec<KeyPath>, SamplingDesign), String> {
        let keys: Vec<KeyPath> = doc.axes.iter().map(|a| a.path).collect();
        let design = match doc.method {
            Method::Grid => grid(&doc.axes)?,
            Method::Zip => zip(&doc.axes)?,
            Method::Random => random(&doc.axes, doc.samples, doc.seed)?,
            Method::Lhs => lhs(&doc.axes, doc.samples, doc.seed),
            Method::List => return list(doc),
            Method::Optimize if doc.axes.iter().all(|a| matches!(a.points, Points::List(_))) => grid(&doc.axes)?,
            Method::Optimize => distinct(lhs(&doc.axes, doc.samples * CANDIDATES_PER_SAMPLE, doc.seed)),
        };
        Ok((keys, design))
    }

    /// Returns the number of points.
    pub(super) fn len(&self) -> u64 {
        match self {
            SamplingDesign::Grid(axes) => axes.iter().map(|a| a.len() as u64).product(),
            SamplingDesign::Rows { width: 0, .. } => 1,
            SamplingDesign::Rows { width, values } => (values.len() / width) as u64,
        }
    }

    /// Returns the value of axis `axis` at point `point`. PRECONDITION: `point < len()`.
    pub(super) fn value(&self, point: u64, axis: usize) -> &Value {
        match self {
            SamplingDesign::Grid(axes) => {
                let faster: u64 = axes[axis + 1..].iter().map(|a| a.len() as u64).product();
                &axes[axis][(point / faster % axes[axis].len() as u64) as usize]
            }
            SamplingDesign::Rows { width, values } => &values[point as usize * width + axis],
        }
    }
}

fn lists(axes: &[DeclaredAxis]) -> Vec<Vec<Value>> {
    axes.iter()
        .map(|a| match &a.points {
            Points::List(values) => values.clone(),
            Points::Range { .. } => Vec::new(),
        })
        .collect()
}

fn grid(axes: &[DeclaredAxis]) -> Result<SamplingDesign, String> {
    let axes = lists(axes);
    let points = axes.iter().try_fold(1u64, |n, a| n.checked_mul(a.len() as u64));
    match points {
        Some(n) if n <= MAX_EXPERIMENTS => Ok(SamplingDesign::Grid(axes)),
        _ => {
            let sizes: Vec<String> = axes.iter().map(|a| a.len().to_string()).collect();
            Err(format!(
                "the axes span {} points, more than the {MAX_EXPERIMENTS} a sweep may have; shorten an axis, or use method = \"random\" or \"lhs\"",
                sizes.join(" x ")
            ))
        }
    }
}

fn zip(axes: &[DeclaredAxis]) -> Result<SamplingDesign, String> {
    let columns = lists(axes);
    let n = columns.first().map_or(0, Vec::len);
    if columns.iter().any(|c| c.len() != n) {
        let sizes: Vec<String> =
            axes.iter().zip(&columns).map(|(a, c)| format!("`{}` has {}", a.name, c.len())).collect();
        return Err(format!("method = \"zip\" needs axes of one length: {}", sizes.join(", ")));
    }
    let values = (0..n).flat_map(|i| columns.iter().map(move |c| c[i].clone())).collect();
    Ok(SamplingDesign::Rows { width: columns.len(), values })
}

fn list(doc: &Document) -> Result<(Vec<KeyPath>, SamplingDesign), String> {
    let mut keys: Vec<KeyPath> = Vec::new();
    for (k, _) in doc.rows.iter().flat_map(|r| &r.values) {
        if !keys.contains(k) {
            keys.push(*k);
        }
    }
    if keys.is_empty() && doc.rows.len() > 1 {
        return Err(
            "the [[experiment]] tables are empty, so all experiments are the same; give each its keys".to_string()
        );
    }
    let cell = |row: &super::file::document::ExperimentSection, k: &KeyPath| {
        row.values.iter().find(|(key, _)| key == k).map_or(Value::Unset, |(_, v)| v.clone())
    };
    let values = doc.rows.iter().flat_map(|r| keys.iter().map(move |k| cell(r, k))).collect();
    let width = keys.len();
    Ok((keys, SamplingDesign::Rows { width, values }))
}

/// Returns a fraction in [0, 1) that depends only on the sweep's seed, the axis's name and two counters.
fn unit(seed: u64, axis: &str, i: u64, j: u64) -> f64 {
    (mix(mix(seed, name_hash(axis), 11), i, j) >> 11) as f64 / (1u64 << 53) as f64
}

/// Draws points independently and without repeats: a point that was drawn before is replaced by another draw.
fn random(axes: &[DeclaredAxis], samples: u64, seed: u64) -> Result<SamplingDesign, String> {
    const TRIES: u64 = 1000;
    let mut seen = HashSet::with_capacity(samples as usize);
    let mut values = Vec::with_capacity(samples as usize * axes.len());
    for i in 0..samples {
        let point = (0..TRIES).find_map(|t| {
            let point: Vec<Value> =
                axes.iter().map(|a| a.points.at(key(a.path.key), unit(seed, &a.name, i, t))).collect();
            let text: Vec<String> = point.iter().map(Value::to_string).collect();
            seen.insert(text.join("\n")).then_some(point)
        });
        let Some(point) = point else {
            return Err(format!(
                "sweep.samples = {samples} is more than the axes give: only {i} different points were found; ask for fewer, or use method = \"grid\""
            ));
        };
        values.extend(point);
    }
    Ok(SamplingDesign::Rows { width: axes.len(), values })
}

/// Removes points that are the same as an earlier one. Rounding to the values that keys accept can make two points equal.
fn distinct(design: SamplingDesign) -> SamplingDesign {
    let SamplingDesign::Rows { width, values } = design else { return design };
    let mut seen = HashSet::new();
    let new = |point: &&[Value]| seen.insert(point.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"));
    let values = values.chunks(width.max(1)).filter(new).flatten().cloned().collect();
    SamplingDesign::Rows { width, values }
}

/// Draws a Latin hypercube: each axis is divided into `samples` equal parts, and each part is used once.
fn lhs(axes: &[DeclaredAxis], samples: u64, seed: u64) -> SamplingDesign {
    let orders: Vec<Vec<u64>> = axes
        .iter()
        .map(|a| {
            let mut order: Vec<u64> = (0..samples).collect();
            for i in (1..samples).rev() {
                let j = (unit(seed, &a.name, i, u64::MAX) * (i + 1) as f64) as u64;
                order.swap(i as usize, j as usize);
            }
            order
        })
        .collect();
    let mut values = Vec::with_capacity(samples as usize * axes.len());
    for i in 0..samples {
        for (a, order) in axes.iter().zip(&orders) {
            let u = (order[i as usize] as f64 + unit(seed, &a.name, i, 0)) / samples as f64;
            values.push(a.points.at(key(a.path.key), u));
        }
    }
    SamplingDesign::Rows { width: axes.len(), values }
}
