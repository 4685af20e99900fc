//! What running a sweep takes, and what is wrong with its inputs, found before anything runs.
//!
//! Layer: session. Prepares one experiment of every shape and lets it go again. Simulates nothing.

use std::collections::{HashMap, HashSet};

use crate::batch::{self, PrepareError};
use crate::spec;
use crate::sweep::{Experiment, Sweep};

use super::error::SessionError;
use super::experiment::config;

/// Distinct shapes of experiments (network, routes, traffic) whose inputs are checked before anything runs. Those beyond are checked
/// when their turn comes, and then end as failed.
const CHECKED_SHAPES: usize = 256;
/// Bytes of tables after which no more are: preparing is most of what a plan takes.
const CHECKED_BYTES: u64 = 2 << 30;
/// What the inputs of the selected experiments show.
#[derive(Default)]
pub(crate) struct Survey {
    pub(crate) packet_hops: u64,
    /// Tasks of their programs.
    pub(crate) tasks: u64,
    /// Bytes of the host's memory that the largest experiment takes.
    pub(crate) most_bytes: u64,
    pub(crate) warnings: Vec<String>,
    /// Experiments whose GPUs are too small for them, and why.
    pub(crate) cannot_fit: Vec<(u64, String)>,
}

/// What an experiment takes.
#[derive(Clone, Copy)]
struct Work {
    packet_hops: u64,
    tasks: u64,
}

/// Prepares one experiment of every shape and lets it go again: bad input is found before anything runs.
pub(crate) fn survey(sweep: &Sweep) -> Result<Survey, SessionError> {
    let mut shapes: HashMap<String, Option<Work>> = HashMap::new();
    let mut survey = Survey::default();
    let mut noted = HashSet::new();
    // The same traffic on another network has about as many packet-hops.
    let mut work_of: HashMap<String, Work> = HashMap::new();
    let mut bytes = 0u64;
    for experiment in &sweep.experiments {
        let config = config(sweep, experiment);
        match batch::fits(&config) {
            Ok(()) => {}
            Err(e @ PrepareError::Oom { .. }) => {
                survey.cannot_fit.push((experiment.exp_id, e.to_string()));
                continue;
            }
            Err(e) => return Err(named(sweep, experiment, e)),
        }
        let (net, traffic) = ((&config.cluster, &config.topology, &config.routing), &config.workload);
        let shape = format!("{net:?}{traffic:?}{:?}", config.values.text(spec::KeyId::Cc));
        let work = match shapes.get(&shape) {
            Some(work) => *work,
            None if shapes.len() >= CHECKED_SHAPES || bytes >= CHECKED_BYTES => {
                work_of.get(&format!("{traffic:?}")).copied()
            }
            None => {
                let work = match batch::prepare(&config, 0) {
                    Ok(p) => {
                        survey.most_bytes = survey.most_bytes.max(p.host_bytes());
                        bytes += p.built.tables.bytes();
                        let work = Work { packet_hops: p.packet_hops, tasks: p.built.tables.tasks.len() as u64 };
                        work_of.insert(format!("{traffic:?}"), work);
                        survey.warnings.extend(p.notes.into_iter().filter(|n| noted.insert(n.clone())));
                        Some(work)
                    }
                    Err(e) if e.is_input() => return Err(named(sweep, experiment, e)),
                    Err(e) => {
                        let why = format!("some experiments will fail: {e}");
                        survey.warnings.extend(noted.insert(why.clone()).then_some(why));
                        None
                    }
                };
                shapes.insert(shape, work);
                work
            }
        };
        if let Some(work) = work {
            survey.packet_hops += work.packet_hops;
            survey.tasks += work.tasks;
        }
    }
    Ok(survey)
}

/// An input error with the experiment it belongs to.
fn named(sweep: &Sweep, experiment: &Experiment, error: PrepareError) -> SessionError {
    let axes = sweep.axes_text(experiment);
    let of = if axes.is_empty() { String::new() } else { format!(" (experiment with {axes})") };
    SessionError::Prepare { path: sweep.path.clone(), experiment: of, source: Box::new(error) }
}
