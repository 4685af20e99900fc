//! The list of all systems of a step, in their order.
//!
//! Layer: engine; above the two twins. Everything that runs systems takes their order from this list: the step of the CPU engine on one thread or on
//! several, the rows of a folded partition, the fused kernel's body, the entry point and the dispatch of each system on a GPU, and the loops of the
//! parity tests. To add a system: one line here, `cpu/NAME.rs` with a function `row`, and `shaders/NAME.wgsl` with a function `NAME_row`. The compiler
//! then asks each block of rows how it goes through it. Folding is asked for switches and NICs only: it serves gates and finds the next event partition
//! by partition (`fold/run/turn_order.rs`). Computes nothing itself.

use super::cpu::{advance, analytical, nic, schedule};
use crate::cpu::switch::{classify, forward, forward_joint, plan};
use hyperfold_columns::{Exp, Tables, flag};

/// The kind of row that a system processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemRows {
    /// One row per switch port.
    Port,
    /// One row per switch.
    Switch,
    /// One row per NIC.
    Nic,
    /// One row: the experiment itself. On a GPU one invocation runs it.
    Experiment,
    /// One row: the experiment itself. On a GPU its workgroup first finds the minimum of all clocks together.
    Clocks,
}

impl SystemRows {
    /// Number of rows in experiment `e`.
    #[inline]
    pub const fn count(self, e: &Exp) -> u32 {
        match self {
            SystemRows::Port => e.port_len,
            SystemRows::Switch => e.switch_len,
            SystemRows::Nic => e.nic_len,
            SystemRows::Experiment | SystemRows::Clocks => 1,
        }
    }
}

/// Condition under which a system runs in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunCondition {
    /// Runs unless this call resumes a step that had stopped because pause frames ran out.
    NewStep,
    /// Runs in every call.
    Always,
    /// Runs if `classify` found enough pause frames. On a GPU the step otherwise changes nothing and waits for the host. On a CPU only the switches that
    /// lack frames wait, and later stages; a block of switches leaves those out itself.
    Frames,
    /// Runs if `Frames` holds and the experiment has gates.
    Gates,
}

impl RunCondition {
    /// Whether the system runs now. PRECONDITION: `t` holds one experiment.
    #[inline]
    pub fn holds(self, t: &Tables) -> bool {
        let frames = || t.flags() & flag::NEEDS_FRAMES == 0;
        match self {
            RunCondition::NewStep => t.exps[0].phase == 0,
            RunCondition::Always => true,
            RunCondition::Frames => frames(),
            RunCondition::Gates => t.exps[0].gate_len > 0 && frames(),
        }
    }

    /// [`RunCondition::holds`] for a block of rows of `stage`. No switch waits for the pause frames of another: a block of switches looks after its own.
    #[inline]
    fn holds_in(self, stage: StepStage, t: &Tables) -> bool {
        match (stage, self) {
            (StepStage::Switches, RunCondition::Frames) => true,
            _ => self.holds(t),
        }
    }
}

/// The step from a system to the next in the fused kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// A barrier: the next system reads what any row of this one has written.
    Barrier,
    /// Nothing: no row of the next system is touched by another invocation in this one.
    GoOn,
}

/// One entry in the list of systems.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// Name of its function in both twins and of its two files.
    pub name: &'static str,
    /// Name of its WGSL entry point.
    pub entry: &'static str,
    /// The kind of its rows, which says how many there are.
    pub rows: SystemRows,
    /// Condition under which it runs in a step.
    pub when: RunCondition,
    /// The step from it to the next in the fused kernel.
    pub then: Then,
    /// Function that processes one row up to the end of the step on the CPU, if there is something to do. Arguments: tables, row, end of the step in
    /// ps.
    pub row: fn(&mut Tables, u32, u64),
    /// Text of its WGSL file.
    pub wgsl: &'static str,
}

impl System {
    /// Runs the system on the CPU over `rows` of one experiment, in that order, if its condition holds.
    pub fn run(&self, t: &mut Tables, rows: impl Iterator<Item = u32>) {
        let end = t.exps[0].step_end();
        if self.when.holds(t) {
            rows.for_each(|row| (self.row)(t, row, end));
        }
    }
}

macro_rules! system {
    ($name:ident, $rows:ident, $when:ident, $then:ident) => {
        System {
            name: stringify!($name),
            entry: concat!(stringify!($name), "_all"),
            rows: SystemRows::$rows,
            when: RunCondition::$when,
            then: Then::$then,
            row: |t, row, end| $name::row(t, row.into(), end),
            wgsl: include_str!(concat!("../../shaders/", stringify!($name), ".wgsl")),
        }
    };
}

macro_rules! systems {
    ($(
        $(#[$doc:meta])*
        stage $stage:ident, $run:ident over $Rows:ident {
            $($(#[$row_doc:meta])* $name:ident, $rows:ident, $when:ident, $then:ident;)*
        }
    )*) => {
        /// Systems that a block of rows goes through one after another before the next block does. A block is one switch with its ports, or NICs, or the
        /// experiment; what it does in a stage no other block sees in that stage. So blocks may come in any order, and stay in a CPU's caches. A GPU runs
        /// system by system, all rows at once.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StepStage {
            $($(#[$doc])* $stage,)*
        }

        /// All stages, in the order in which they run in a step.
        pub const STAGES: &[StepStage] = &[$(StepStage::$stage),*];

        /// All systems, in the order in which they run in a step.
        pub const SYSTEMS: &[System] = &[$($(system!($name, $rows, $when, $then)),*),*];

        $(
            $(#[$doc])*
            ///
            /// A block of rows of this stage on a CPU: how it goes through each system, up to the end of the step in ps.
            pub trait $Rows {
                $($(#[$row_doc])* fn $name(&mut self, t: &mut Tables, end: u64);)*
            }

            /// Takes a block of rows through the systems of this stage, up to `end` in ps, where their conditions hold.
            #[inline]
            pub fn $run(t: &mut Tables, block: &mut impl $Rows, end: u64) {
                $(if RunCondition::$when.holds_in(StepStage::$stage, t) {
                    block.$name(t, end);
                })*
            }
        )*
    };
}

systems! {
    /// Packets that arrive at switches go to their egress ports and on.
    stage Switches, run_switches over SwitchRows {
        /// Sorts the arrivals of ingresses by egress.
        plan,          Port,       NewStep, Barrier;
        /// Decides which switches are independent. Switches that lack pause frames must not go on.
        classify,      Switch,     Always,  Barrier;
        // No row is in both `forward` and `forward_joint`.
        /// Forwards at the ports of independent switches.
        forward,       Port,       Frames,  GoOn;
        /// Forwards at all other switches.
        forward_joint, Switch,     Frames,  Barrier;
    }
    /// NICs receive, send, and start what is due.
    stage Nics, run_nics over NicRows {
        /// Processes NICs.
        nic,           Nic,        Frames,  Barrier;
    }
    /// Gates that all their signals have reached are served.
    stage Gates, run_gates over GateRows {
        // On a GPU one invocation runs both.
        /// Delivers signals to their gates.
        schedule,      Experiment, Gates,   GoOn;
        /// Serves the gates that fired.
        analytical,    Experiment, Gates,   Barrier;
    }
    /// The experiment goes on to its next event.
    stage Clocks, run_clocks over ClockRows {
        /// Finds the next event and decides whether the experiment goes on.
        advance,       Clocks,     Always,  Barrier;
    }
}
