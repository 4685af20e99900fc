//! The list of all systems of a step, in their order.
//!
//! Layer: engine; above the two twins. Everything that runs systems is generated from this list: the step of the CPU engine, the fused kernel's body,
//! the entry point and the dispatch of each system on a GPU, and the loop of the parity tests. To add a system: one line here, `cpu/NAME.rs` with a
//! function `row`, and `shaders/NAME.wgsl` with a function `NAME_row`. Computes nothing itself.

use super::cpu::{advance, analytical, nic, schedule};
use crate::cpu::switch::{classify, forward, forward_joint, plan, switches};
use hyperfold_columns::{Exp, SHARED_FLAGS, Tables, flag, status};

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
    /// Runs if `classify` found enough pause frames. Otherwise the step changes nothing and waits for the host.
    Frames,
    /// Runs if `Frames` holds and the experiment has gates.
    Gates,
}

impl RunCondition {
    /// Whether the system runs now. PRECONDITION: `t` holds one experiment.
    #[inline]
    pub fn holds(self, t: &Tables) -> bool {
        let frames = || t.shared[SHARED_FLAGS as usize] & flag::NEEDS_FRAMES == 0;
        match self {
            RunCondition::NewStep => t.exps[0].phase == 0,
            RunCondition::Always => true,
            RunCondition::Frames => frames(),
            RunCondition::Gates => t.exps[0].gate_len > 0 && frames(),
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
        let end = step_end(t);
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
    (
        switches { $($first:ident, $first_rows:ident, $first_when:ident, $first_then:ident;)* }
        $($name:ident, $rows:ident, $when:ident, $then:ident;)*
    ) => {
        /// All systems, in the order in which they run in a step.
        pub const SYSTEMS: &[System] = &[
            $(system!($first, $first_rows, $first_when, $first_then),)*
            $(system!($name, $rows, $when, $then)),*
        ];

        /// Runs one step of an experiment on the CPU: the switch systems switch by switch, the other systems one after another.
        ///
        /// PRECONDITION: `t` holds exactly one experiment.
        pub fn step(t: &mut Tables) {
            let end = step_end(t);
            switches::step(t, end);
            $(if RunCondition::$when.holds(t) {
                for row in 0..SystemRows::$rows.count(&t.exps[0]) {
                    $name::row(t, row.into(), end);
                }
            })*
        }
    };
}

systems! {
    // `cpu/switch/switches.rs` runs them switch by switch.
    switches {
        plan,          Port,       NewStep, Barrier;
        classify,      Switch,     Always,  Barrier;
        // `forward` runs ports of independent switches, `forward_joint` all other switches: no row is in both.
        forward,       Port,       Frames,  GoOn;
        forward_joint, Switch,     Frames,  Barrier;
    }
    nic,           Nic,        Frames,  Barrier;
    // On a GPU one invocation runs both.
    schedule,      Experiment, Gates,   GoOn;
    analytical,    Experiment, Gates,   Barrier;
    advance,       Clocks,     Always,  Barrier;
}

/// Time at which the current step ends, in ps.
pub fn step_end(t: &Tables) -> u64 {
    let e = &t.exps[0];
    (e.now + e.step).min(e.time_limit)
}

/// Runs one experiment on the CPU for at most `steps` steps, or until it stops.
///
/// PRECONDITION: `t` holds exactly one experiment.
pub fn run(t: &mut Tables, steps: u32) {
    for _ in 0..steps {
        if t.exps[0].status != status::RUNNING {
            return;
        }
        step(t);
    }
}
