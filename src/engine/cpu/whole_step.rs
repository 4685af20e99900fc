//! A step of a whole experiment on one thread, with all its rows.
//!
//! Layer: engine. The order of systems comes from [`crate::systems`].

use super::switch::whole_switch;
use super::{advance, analytical, nic, schedule};
use crate::systems::{ClockRows, GateRows, NicRows, STAGES, StepStage, run_clocks, run_gates, run_nics};
use hyperfold_columns::{NicIdx, Tables, status};

/// All rows of an experiment but those of switches, which go one switch after another ([`whole_switch`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct WholeExperiment {
    /// The minimum of all clocks in ps, if it is known.
    pub earliest: Option<u64>,
}

impl NicRows for WholeExperiment {
    #[inline]
    fn nic(&mut self, t: &mut Tables, end: u64) {
        for n in NicIdx::all(t.exps[0].nic_len) {
            nic::row(t, n, end);
        }
    }
}

impl GateRows for WholeExperiment {
    #[inline]
    fn schedule(&mut self, t: &mut Tables, _end: u64) {
        schedule::schedule(t);
    }

    #[inline]
    fn analytical(&mut self, t: &mut Tables, _end: u64) {
        analytical::analytical(t);
    }
}

impl ClockRows for WholeExperiment {
    #[inline]
    fn advance(&mut self, t: &mut Tables, end: u64) {
        match self.earliest {
            Some(earliest) => advance::advance_to(t, end, |_| earliest),
            None => advance::advance(t, end),
        }
    }
}

/// Runs one step of an experiment.
///
/// PRECONDITION: `t` holds exactly one experiment.
pub fn step(t: &mut Tables) {
    let end = t.exps[0].step_end();
    let mut whole = WholeExperiment::default();
    for stage in STAGES {
        match stage {
            StepStage::Switches => whole_switch::all(t, end),
            StepStage::Nics => run_nics(t, &mut whole, end),
            StepStage::Gates => run_gates(t, &mut whole, end),
            StepStage::Clocks => run_clocks(t, &mut whole, end),
        }
    }
}

/// Runs one experiment for at most `steps` steps, or until it stops.
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
