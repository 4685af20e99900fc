//! Points of a sweep that resolve to the same configuration, and which axes make no difference between them.
//!
//! Layer: sweep. Such points keep a row each and are simulated once. Only finds and explains them.

use std::collections::HashMap;

use super::digest::Hash128;
use super::layers::Layers;
use crate::spec::Value;

/// Values of an axis that a note names.
const VALUES_NAMED: usize = 4;
/// Pairs of points that an error names.
const PAIRS_NAMED: usize = 3;

/// A point that the constraints leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundPoint {
    pub point: u64,
    pub config_key: Hash128,
    /// Bit `i`: something reads axis `i` here. Axes from the 65th on have none.
    pub read: u64,
}

/// A point with the first one of the same configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedPoint {
    point: u64,
    first: u64,
}

/// Points whose configuration one before them has, ascending.
pub(super) fn find(found: &[FoundPoint]) -> Vec<SharedPoint> {
    let mut first: HashMap<Hash128, u64> = HashMap::with_capacity(found.len());
    let shared = |p: &FoundPoint| {
        let first = *first.entry(p.config_key).or_insert(p.point);
        (first != p.point).then_some(SharedPoint { point: p.point, first })
    };
    found.iter().filter_map(shared).collect()
}

/// Why the sweep is wrong, if it lists the same axis values twice: rows that nothing tells apart. `None`: it does not.
pub(super) fn listed_twice(layers: &Layers, shared: &[SharedPoint]) -> Option<String> {
    let same = |s: &&SharedPoint| {
        let differ = |axis: usize| layers.design.value(s.point, axis) != layers.design.value(s.first, axis);
        let differing: Vec<usize> = (0..layers.axes.len()).filter(|&axis| differ(axis)).collect();
        // A listed experiment may leave to [base] what another one spells out.
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

/// What the user should know of them: how many rows, and which axes have no effect where. `None`: there are none.
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

/// The values of another axis, at which and only at which nothing reads this one: `topology.kind = rail-only`. `None`: no single axis decides.
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
        // A value each point has of its own decides nothing.
        let named = unread.iter().take(VALUES_NAMED).map(|v| v.to_string()).collect::<Vec<_>>().join(" or ");
        let more = unread.len().saturating_sub(VALUES_NAMED);
        let more = if more > 0 { format!(" or one of {more} more values") } else { String::new() };
        let informative = reads.len() < found.len() && !unread.contains(&&Value::Unset);
        informative.then(|| format!("{} = {named}{more}", layers.name(other)))
    })
}
