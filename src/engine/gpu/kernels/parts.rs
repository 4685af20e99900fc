//! The parts of the kernels that a batch of experiments needs. Kernels without the others are smaller: a driver compiles them sooner, and they take fewer
//! registers.
//!
//! Layer: engine. Knows what headers of experiments say. `pruned` takes out the code of the parts that are missing.

use std::fmt;

use super::pruned::{KnownVariables, Possible};
use hyperfold_columns::{Exp, cc, mode};

/// Modes whose code is left out of kernels that do not need it. Each adds 170 instructions or more to the fused kernel of DCQCN (`benches/kernels.txt`).
const OPTIONAL: [(&str, u32); 8] = [
    ("any order", mode::SELECTIVE),
    ("Ultra Ethernet", mode::UEC),
    ("paths chosen again", mode::REPS),
    ("receiver credit", mode::CREDIT),
    ("queues of ports", mode::PORT_QUEUES),
    ("adaptive routing", mode::ADAPTIVE),
    ("traffic classes", mode::CLASSES),
    ("links in trouble", mode::CHANGES),
];

/// Modes whose code is in all kernels, as it is small.
const IN_ALL: u32 = mode::WINDOW
    | mode::VAR_WINDOW
    | mode::RATE_BOUND
    | mode::ACK_HIGH_PRIO
    | mode::FAST_REACT
    | mode::DCQCN_CLAMP
    | mode::ECN
    | mode::PFC
    | mode::LINKS
    | mode::FRESH_QP
    | mode::NS3_LOSS
    | mode::IN_TURN
    | mode::TRIMMING;

/// Modes that no kernel looks at.
const ONLY_ON_HOST: u32 = mode::FOLD
    | mode::MEMO
    | mode::TRACED
    | mode::STEADY
    | mode::METRIC_MASK << mode::METRIC_SHIFT
    | mode::MUST_GAIN
    | mode::FLOW
    | mode::RATES
    | mode::SAMPLED;

/// All bits of [`OPTIONAL`]. It does not compile where a mode is in none of the three lists, or in two.
const OPTIONAL_MODES: u32 = {
    let (mut all, mut i) = (0, 0);
    while i < OPTIONAL.len() {
        assert!(all & OPTIONAL[i].1 == 0, "a mode is listed twice");
        all |= OPTIONAL[i].1;
        i += 1;
    }
    assert!(all & IN_ALL == 0 && all & ONLY_ON_HOST == 0 && IN_ALL & ONLY_ON_HOST == 0, "a mode is in two lists");
    assert!(all | IN_ALL | ONLY_ON_HOST == u32::MAX, "a mode is in no list");
    all
};

/// Parts of the kernels: what experiments may need that not all of them do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelParts {
    /// Modes whose code is there, of those that are optional.
    modes: u32,
    /// Congestion controls whose code is there: a bit for each number in `cc`.
    controls: u32,
    /// Whether the code of tasks and gates is there.
    tasks: bool,
    /// Whether the code of averages of queues, and of drops by WRED, is there.
    averages: bool,
    /// Whether the code of switches that cut through is there.
    cut_through: bool,
}

impl KernelParts {
    /// Kernels that run any experiment.
    pub const ALL: KernelParts =
        KernelParts { modes: OPTIONAL_MODES, controls: u32::MAX, tasks: true, averages: true, cut_through: true };
    /// Kernels that run no experiment, and begin to be those that a batch needs.
    pub const NONE: KernelParts =
        KernelParts { modes: 0, controls: 0, tasks: false, averages: false, cut_through: false };
    /// Kernels for flows under the default control, without anything else.
    pub const USUAL: KernelParts = KernelParts { controls: 1 << cc::HPCC, ..KernelParts::NONE };

    /// The parts that experiments with these headers need.
    pub fn needed_by<'e>(headers: impl IntoIterator<Item = &'e Exp>) -> KernelParts {
        headers.into_iter().map(KernelParts::of).fold(KernelParts::NONE, KernelParts::and)
    }

    /// The parts that one experiment needs.
    fn of(exp: &Exp) -> KernelParts {
        // A control that the list of controls does not have needs all.
        let controls = 1u32.checked_shl(exp.cc).unwrap_or(u32::MAX);
        KernelParts {
            modes: exp.modes & OPTIONAL_MODES,
            controls,
            tasks: exp.task_len > 0 || exp.gate_len > 0,
            averages: exp.average_first > 0 || exp.wred_drops > 0,
            cut_through: exp.cut_through > 0,
        }
    }

    /// The parts of both.
    #[must_use]
    pub fn and(self, other: KernelParts) -> KernelParts {
        KernelParts {
            modes: self.modes | other.modes,
            controls: self.controls | other.controls,
            tasks: self.tasks || other.tasks,
            averages: self.averages || other.averages,
            cut_through: self.cut_through || other.cut_through,
        }
    }

    /// These parts but for those of `other`.
    #[must_use]
    pub fn without(self, other: KernelParts) -> KernelParts {
        KernelParts {
            modes: self.modes & !other.modes,
            controls: self.controls & !other.controls,
            tasks: self.tasks && !other.tasks,
            averages: self.averages && !other.averages,
            cut_through: self.cut_through && !other.cut_through,
        }
    }

    /// Whether these parts suffice for what `needed` needs.
    pub fn suffice_for(self, needed: KernelParts) -> bool {
        self.and(needed) == self
    }

    /// Number of parts.
    pub(super) fn count(self) -> u32 {
        let others = [self.tasks, self.averages, self.cut_through];
        self.modes.count_ones() + self.controls.count_ones() + others.map(u32::from).iter().sum::<u32>()
    }

    /// Whether tasks and gates are there.
    pub(super) fn has_tasks(self) -> bool {
        self.tasks
    }

    /// Whether averages of queues are there.
    pub(super) fn has_averages(self) -> bool {
        self.averages
    }

    /// Whether switches that cut through are there.
    pub(super) fn has_cut_through(self) -> bool {
        self.cut_through
    }

    /// What is known of each experiment that kernels with these parts run: values of the private variables that `enter` sets.
    pub(super) fn facts(self) -> KnownVariables {
        let controls = (0..u32::BITS).filter(|control| self.controls >> control & 1 != 0).map(u64::from).collect();
        KnownVariables::from([
            ("exp_modes", Possible::Within(u64::from(!OPTIONAL_MODES | self.modes))),
            ("exp_cc", Possible::OneOf(controls)),
        ])
    }

    /// Every single part, with its name.
    pub fn singles() -> Vec<(String, KernelParts)> {
        let modes = OPTIONAL.map(|(name, modes)| (name.to_string(), KernelParts { modes, ..KernelParts::NONE }));
        let controls =
            cc::ALL.map(|(name, cc)| (name.to_string(), KernelParts { controls: 1 << cc, ..KernelParts::NONE }));
        let tasks = ("tasks".to_string(), KernelParts { tasks: true, ..KernelParts::NONE });
        let averages = ("averages of queues".to_string(), KernelParts { averages: true, ..KernelParts::NONE });
        let cut_through = ("cut-through".to_string(), KernelParts { cut_through: true, ..KernelParts::NONE });
        modes.into_iter().chain(controls).chain([tasks, averages, cut_through]).collect()
    }
}

impl fmt::Display for KernelParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == KernelParts::ALL {
            return f.write_str("all parts");
        }
        let names: Vec<String> = KernelParts::singles()
            .into_iter()
            .filter(|(_, part)| self.suffice_for(*part))
            .map(|(name, _)| name)
            .collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exp(cc: u32, modes: u32) -> Exp {
        Exp { cc, modes, ..bytemuck::Zeroable::zeroed() }
    }

    #[test]
    fn a_batch_gets_the_parts_that_its_experiments_need() {
        let (plain, other) = (exp(cc::HPCC, mode::ECN | mode::PFC | mode::FOLD), exp(cc::DCQCN, mode::SELECTIVE));
        assert_eq!(KernelParts::needed_by([&plain, &plain]), KernelParts::USUAL);
        let both = KernelParts::needed_by([&plain, &other]);
        assert_eq!(both.to_string(), "any order, dcqcn, hpcc");
        for needed in [KernelParts::needed_by([&plain]), KernelParts::needed_by([&other])] {
            assert!(both.suffice_for(needed) && !needed.suffice_for(both) && KernelParts::ALL.suffice_for(needed));
        }
        let job = Exp { task_len: 3, ..plain };
        assert_eq!(KernelParts::needed_by([&job]).to_string(), "hpcc, tasks");
        assert_eq!(KernelParts::needed_by([&exp(77, 0)]).controls, u32::MAX);
    }

    #[test]
    fn all_parts_are_the_single_ones() {
        let singles = KernelParts::singles();
        let all = singles.iter().fold(KernelParts::NONE, |sum, (_, part)| sum.and(*part));
        assert!(KernelParts::ALL.suffice_for(all));
        assert_eq!(all.count() as usize, singles.len());
        assert_eq!(KernelParts::ALL.to_string(), "all parts");
    }
}
