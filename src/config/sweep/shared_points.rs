//! Points of a sweep that resolve to the same configuration, and the axes that make no difference between them.
//!
//! Layer: sweep. Such points keep a row each and are simulated once. This module only finds and explains them.

use std::collections::HashMap;

use super::digest::Hash128;
use super::layers::Layers;
use crate::spec::Value;

/// Most values of an axis that a note names.
const VALUES_NAMED: usize = 4;
/// Most pairs of points that an error names.
const PAIRS_NAMED: usize = 3;

/// A point that meets the constraints.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundPoint {
    pub point: u64,
    pub config_key: Hash128,
    /// Bit `i` says that something reads axis `i` at this point. Axes from the 65th on have no bit.
    pub read: u64,
}

/// A point, and the first point with the same configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedPoint {
    point: u64,
    first: u64,
}

/// Returns the points with the same configuration as an earlier one, in ascending order.
pub(super) fn find(found: &[FoundPoint]) -> Vec<SharedPoint> {
    let mut first: HashMap<Hash128, u64> = HashMap::with_capacity(found.len());
    let shared = |p: &FoundPoint| {
        let first = *first.entry(p.config_key).or_insert(p.point);
        (first != p.point).then_some(SharedPoint { point: p.point, first })
    };
    found.iter().filter_map(shared).collect()
}

/// Returns an error if the sweep lists the same axis values twice, because nothing would distinguish their rows.
pub(super) fn listed_twice(layers: &Layers, shared: &[SharedPoint]) -> Option<String> {
    let same = |s: &&SharedPoint| {
        let differ = |axis: usize| layers.design.value(s.point, axis) != layers.design.value(s.first, axis);
        let differing: Vec<usize> = (0..layers.axes.len()).filter(|&axis| differ(axis)).collect();
        // A listed experiment may leave to `[base]` what another one writes out.
        differing.is_empty() || {
            let (a, b) = (layers.values(s.point), layers.values(s.first));
            differing.iter().all(|&axis| a.at(layers.axes[axis]) == b.at(layers.axes[axis]))
        }
    };
    let twice: Vec<&SharedPoint> = shared.iter().filter(same).collect();
    let name = |point: u64| match layers.axes_text(point) {
        text if text.is_empty() => "no axis values".to_string(),
        text => text,
    };
    let pair = |s: &&SharedPoint| format!("[{}] and [{}]", name(s.first), name(s.point));
    let list: Vec<String> = twice.iter().take(PAIRS_NAMED).map(pair).collect();
    let more = twice.len().saturating_sub(PAIRS_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!twice.is_empty()).then(|| {
        format!(
            "experiments have the same values on all axes: {}{more}; list each once, or use sweep.replicas for repeats with other seeds",
            list.join("; ")
        )
    })
}

/// Returns a note for the user that says how many rows share a simulation, and which axes have no effect where. It is `None` if there are no such rows.
pub(super) fn note(layers: &Layers, found: &[FoundPoint], shared: &[SharedPoint], replicas: u64) -> Option<String> {
    if shared.is_empty() {
        return None;
    }
    let differs =
        |axis: usize, s: &SharedPoint| layers.design.value(s.point, axis) != layers.design.value(s.first, axis);
    let mut parts: Vec<String> = Vec::new();
    for axis in 0..layers.axes.len() {
        if !shared.iter().any(|s| differs(axis, s)) {
            continue;
        }
        let verb = if parts.is_empty() { " has no effect" } else { "" };
        let name = layers.name(axis);
        parts.push(match unread_where(layers, found, axis) {
            Some(place) => format!("`{name}`{verb} where {place}"),
            None => format!("`{name}`{verb} for some of them"),
        });
    }
    let rows = shared.len() as u64 * replicas;
    let are = if rows == 1 {
        "1 row is simulated once with another".into()
    } else {
        format!("{rows} rows are simulated once each with another")
    };
    Some(format!("{are}: {}", parts.join(", ")))
}

/// Returns the values of another axis for which, and only for which, nothing reads this axis, such as `topology.kind = rail-only`. It is `None` if no single
/// axis decides.
fn unread_where(layers: &Layers, found: &[FoundPoint], axis: usize) -> Option<String> {
    let bit = u32::try_from(axis).ok().and_then(|a| 1u64.checked_shl(a))?;
    if found.iter().all(|p| p.read & bit != 0) {
        return None;
    }
    (0..layers.axes.len()).filter(|&other| other != axis).find_map(|other| {
        let mut reads: HashMap<String, bool> = HashMap::new();
        let mut unread: Vec<&Value> = Vec::new();
        for p in found {
            let value = layers.design.value(p.point, other);
            let read = p.read & bit != 0;
            match reads.entry(value.to_string()) {
                std::collections::hash_map::Entry::Occupied(e) if *e.get() != read => return None,
                std::collections::hash_map::Entry::Occupied(_) => {}
                std::collections::hash_map::Entry::Vacant(e) => {
                    e.insert(read);
                    if !read {
                        unread.push(value);
                    }
                }
            }
        }
        // If every point has a different value, the axis explains nothing.
        let named = unread.iter().take(VALUES_NAMED).map(|v| v.to_string()).collect::<Vec<_>>().join(" or ");
        let more = unread.len().saturating_sub(VALUES_NAMED);
        let more = if more > 0 { format!(" or one of {more} more values") } else { String::new() };
        let informative = reads.len() < found.len() && !unread.contains(&&Value::Unset);
        informative.then(|| format!("{} = {named}{more}", layers.name(other)))
    })
}
