//! What circuits do over time, step by step, for readers: which leaves they join, and since when.
//!
//! Layer: topology. `optical` makes links of the same plan.

use super::optical::{CircuitPlan, Rotation, first_pairs, n_rounds, pairs};

/// Circuits that begin to carry data together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitStep {
    /// Time in ps at which those before them go dark; 0 for what is there at the beginning.
    pub since_ps: u64,
    /// Time in ps from then until they carry data.
    pub dark_ps: u64,
    /// Time in ps before `since_ps` from which paths avoid those before them.
    pub drain_ps: u64,
    /// The circuit switch that changes; `None`: the whole layer of circuits has a pattern.
    pub circuit_switch: Option<u32>,
    /// Pairs of leaves by number, and how many circuits each has.
    pub circuits: Vec<(u32, u32, u32)>,
}

impl Rotation {
    /// Number of different sets of pairs that each circuit switch goes through.
    pub fn n_patterns(n_leaves: u32) -> u32 {
        n_rounds(n_leaves)
    }

    /// Time in ps after which a circuit switch has its first pairs again.
    pub fn period_ps(&self, n_leaves: u32) -> u64 {
        self.every_ps.saturating_mul(u64::from(n_rounds(n_leaves)))
    }

    /// Number of changes of `ports` circuit switches together.
    pub fn n_changes(&self, ports: u32) -> u64 {
        (0..ports).map(|j| self.until_ps.saturating_sub(self.first_change_ps(ports, j)).div_ceil(self.every_ps)).sum()
    }

    /// Time in ps at which circuit switch `j` of `ports` changes for the first time. The changes of all are spread over the time that each keeps its pairs.
    pub(super) fn first_change_ps(&self, ports: u32, j: u32) -> u64 {
        (u128::from(self.every_ps) * u128::from(j + 1) / u128::from(ports)) as u64
    }

    fn steps(&self, n_leaves: u32, ports: u32) -> impl Iterator<Item = CircuitStep> {
        let rotation = *self;
        let step = move |turn: u64, j: u32| {
            let number = (u64::from(first_pairs(n_leaves, ports, j)) + turn) % u64::from(n_rounds(n_leaves));
            let circuits = pairs(n_leaves, number as u32).into_iter().map(|(a, b)| (a, b, 1)).collect();
            let since_ps = match turn {
                0 => 0,
                turn => rotation.first_change_ps(ports, j).saturating_add((turn - 1).saturating_mul(rotation.every_ps)),
            };
            let (dark_ps, drain_ps) = if turn == 0 { (0, 0) } else { (rotation.dark_ps, rotation.drain_ps) };
            CircuitStep { since_ps, dark_ps, drain_ps, circuit_switch: Some(j), circuits }
        };
        (0..)
            .flat_map(move |turn| (0..ports).map(move |j| step(turn, j)))
            .take_while(move |step| step.since_ps < rotation.until_ps)
    }
}

impl CircuitPlan {
    /// What circuits do, in the order of time, in a network of these leaves with so many ports to circuit switches each. A mesh has no steps. PRECONDITION: the
    /// network was built of this plan, and has two leaves or more.
    pub fn steps(&self, n_leaves: u32, ports: u32) -> Box<dyn Iterator<Item = CircuitStep> + '_> {
        match self {
            CircuitPlan::Mesh => Box::new(std::iter::empty()),
            CircuitPlan::Rotate(rotation) => Box::new(rotation.steps(n_leaves, ports)),
            CircuitPlan::Patterns(patterns) => Box::new(patterns.iter().map(|pattern| CircuitStep {
                since_ps: pattern.since_ps,
                dark_ps: pattern.dark_ps,
                drain_ps: pattern.drain_ps,
                circuit_switch: None,
                circuits: pattern.circuits.clone(),
            })),
        }
    }

    /// The shortest time in ps before a circuit goes dark from which paths avoid it; `None`: circuits stay.
    pub fn shortest_drain_ps(&self) -> Option<u64> {
        match self {
            CircuitPlan::Mesh => None,
            CircuitPlan::Rotate(rotation) => Some(rotation.drain_ps),
            CircuitPlan::Patterns(patterns) => patterns.iter().skip(1).map(|pattern| pattern.drain_ps).min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Fabric, Optical};

    /// Steps say the same as the links of the network and the times at which these are dark.
    #[test]
    fn steps_are_those_of_the_links() {
        let (n_leaves, ports) = (6, 3);
        let rotation = Rotation { every_ps: 900, dark_ps: 20, drain_ps: 30, until_ps: 4000 };
        let plan = CircuitPlan::Rotate(rotation);
        let steps: Vec<CircuitStep> = plan.steps(n_leaves, ports).collect();
        assert!(steps.is_sorted_by_key(|step| step.since_ps));
        assert_eq!(steps.len() as u64, u64::from(ports) + rotation.n_changes(ports));
        assert_eq!((Rotation::n_patterns(n_leaves), rotation.period_ps(n_leaves)), (5, 4500));
        let optical = Optical { hosts_per_leaf: 1, ports, oversubscription: 1000, plan: plan.clone() };
        let net = optical.build(&Fabric::uniform(n_leaves, 1, 1)).expect("it is right");
        // Each circuit that begins after the beginning ends a dark time.
        let mut lit: Vec<(u64, u32, u32)> = net
            .dark
            .iter()
            .filter_map(|dark| {
                let link = &net.links[dark.link as usize];
                Some((dark.up_ps?, link.a - n_leaves, link.b - n_leaves))
            })
            .collect();
        let mut told: Vec<(u64, u32, u32)> = steps
            .iter()
            .skip(ports as usize)
            .flat_map(|step| step.circuits.iter().map(|&(a, b, _)| (step.since_ps + step.dark_ps, a, b)))
            .collect();
        lit.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, lit);
        assert_eq!(plan.shortest_drain_ps(), Some(30));
        assert_eq!(CircuitPlan::Mesh.shortest_drain_ps(), None);
    }
}
