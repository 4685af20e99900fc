//! What `hyperfold topo show` says of optical circuits: the patterns and their times.
//!
//! Layer: cli.

use serde_json::json;

use hyperfold_base::units::{counted, plural};
use hyperfold_config::spec::TopologyKind;
use hyperfold_network::topology::{CircuitPlan, CircuitStep, FabricShape, NodeKind, Rotation};

use super::source::FoundNetwork;
use crate::cli::table::{count, time};

/// Most steps of a schedule that are shown.
const SHOWN_STEPS: usize = 4;
/// Most pairs of leaves that are shown of a step.
const SHOWN_PAIRS: usize = 4;

/// The schedule of a network of circuits.
struct Schedule<'a> {
    plan: &'a CircuitPlan,
    n_leaves: u32,
    /// Ports of a leaf to circuit switches that rotate.
    ports: u32,
    /// Circuits at the beginning.
    circuits: u32,
}

impl Schedule<'_> {
    fn of(found: &FoundNetwork) -> Option<Schedule<'_>> {
        let TopologyKind::Generated { shape: FabricShape::Optical(optical), sites } = &found.config.topology.kind
        else {
            return None;
        };
        let net = &found.network;
        let is_leaf = |node: u32| net.nodes[node as usize].kind == NodeKind::Switch;
        let n_leaves = net.nodes.iter().filter(|node| node.kind == NodeKind::Switch).count() as u32;
        let circuits = net.links.iter().filter(|link| is_leaf(link.a) && is_leaf(link.b)).count() as u32;
        let ports = circuits / (n_leaves / 2).max(1);
        // Long links between sites are no circuits.
        (sites.is_none() && n_leaves > 1).then_some(Schedule { plan: &optical.plan, n_leaves, ports, circuits })
    }

    /// Time in ps after which the circuits are the same again; `None`: they never are.
    fn period_ps(&self) -> Option<u64> {
        match self.plan {
            CircuitPlan::Rotate(rotation) => Some(rotation.period_ps(self.n_leaves)),
            CircuitPlan::Mesh | CircuitPlan::Patterns(_) => None,
        }
    }

    /// Number of patterns, of each circuit switch if these rotate.
    fn n_patterns(&self) -> usize {
        match self.plan {
            CircuitPlan::Mesh => 1,
            CircuitPlan::Rotate(_) => Rotation::n_patterns(self.n_leaves) as usize,
            CircuitPlan::Patterns(patterns) => patterns.len(),
        }
    }

    /// The steps that are shown: of one circuit switch, where all do the same one after the other.
    fn shown(&self) -> Vec<CircuitStep> {
        let steps = self.plan.steps(self.n_leaves, self.ports);
        // Those of the first circuit switch come within so many turns of all.
        let few = steps.take((SHOWN_STEPS + 1) * self.ports.max(1) as usize);
        few.filter(|step| step.circuit_switch.is_none_or(|j| j == 0)).take(SHOWN_STEPS).collect()
    }

    fn summary(&self) -> String {
        match self.plan {
            CircuitPlan::Mesh => format!("a mesh of {} that stay", counted(self.circuits, "circuit")),
            CircuitPlan::Patterns(patterns) if patterns.len() == 1 => {
                format!("one pattern of {} that stay", counted(self.circuits, "circuit"))
            }
            CircuitPlan::Patterns(patterns) => format!("{} patterns, one after the other", patterns.len()),
            CircuitPlan::Rotate(rotation) => format!(
                "{} with {} each, which change one after the other: each keeps one for {} and has its first one again after {}; {} {} until {}",
                counted(self.ports, "circuit switch"),
                counted(self.n_patterns(), "pattern"),
                time(rotation.every_ps),
                time(rotation.period_ps(self.n_leaves)),
                count(rotation.n_changes(self.ports)),
                plural("change"),
                time(rotation.until_ps)
            ),
        }
    }
}

/// Lines about the circuits of a network; none if it has none.
pub fn lines(found: &FoundNetwork) -> Vec<String> {
    let Some(schedule) = Schedule::of(found) else { return Vec::new() };
    let mut lines = vec![format!("circuits    {}", schedule.summary())];
    lines.extend(schedule.shown().iter().map(|step| format!("            {}", shown(step))));
    let n_steps = schedule.n_patterns();
    if n_steps > SHOWN_STEPS && !lines[1..].is_empty() {
        lines.push(format!("            ... {} more", n_steps - SHOWN_STEPS));
    }
    lines
}

/// Circuits of a network as JSON; null if it has none.
pub fn as_json(found: &FoundNetwork) -> serde_json::Value {
    let Some(schedule) = Schedule::of(found) else { return serde_json::Value::Null };
    let steps: Vec<_> = schedule
        .shown()
        .iter()
        .map(|step| {
            json!({
                "circuit_switch": step.circuit_switch, "since_ps": step.since_ps, "dark_ps": step.dark_ps,
                "drain_ps": step.drain_ps, "circuits": step.circuits,
            })
        })
        .collect();
    json!({
        "circuits_at_first": schedule.circuits, "patterns": schedule.n_patterns(), "period_ps": schedule.period_ps(),
        "first_steps": steps,
    })
}

fn shown(step: &CircuitStep) -> String {
    let pair = |&(a, b, n): &(u32, u32, u32)| match n {
        1 => format!("leaf{a} leaf{b}"),
        n => format!("leaf{a} leaf{b} x{n}"),
    };
    let pairs: Vec<String> = step.circuits.iter().take(SHOWN_PAIRS).map(pair).collect();
    let more = match step.circuits.len().saturating_sub(SHOWN_PAIRS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let name = step.circuit_switch.map_or_else(String::new, |j| format!("circuit switch {j}: "));
    let begins = match step.since_ps {
        0 => "from the beginning".to_string(),
        since_ps => {
            let drained = match step.drain_ps {
                0 => String::new(),
                drain_ps => format!(" and drained for {}", time(drain_ps)),
            };
            format!("from {} (dark for {}{drained} before)", time(since_ps + step.dark_ps), time(step.dark_ps))
        }
    };
    format!("{name}{begins} {}{more}", pairs.join(", "))
}
