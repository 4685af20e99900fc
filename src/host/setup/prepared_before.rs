//! Experiments that were prepared before a run, while its inputs were checked, and that the run uses.
//!
//! Layer: host. Preparing a large network takes as long as simulating it for a moment, so it is done once. Which experiments are kept changes no result.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::batches::dedup_key::DedupKey;
use crate::batches::world::Limits;
use crate::setup::error::PrepareError;
use crate::setup::prepare::{Prepared, can_run, guarded, tabled};
use crate::setup::route::routed;
use hyperfold_config::spec::Config;

/// A prepared experiment that waits for its run.
pub struct KeptExperiment {
    pub(crate) prepared: Box<Prepared>,
    /// The key by which duplicates are found; `None`: it has no duplicates.
    pub(crate) key: Option<DedupKey>,
}

impl KeptExperiment {
    /// Approximate size while it waits, bytes.
    pub fn bytes(&self) -> u64 {
        self.prepared.host_bytes() + self.key.as_ref().map_or(0, |key| key.bytes() as u64)
    }

    /// The experiment.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }
}

/// Prepares one experiment as [`crate::prepare_within`] does, so that it can wait for its run. `alone`: the run has no other experiment, so there are no
/// duplicates.
///
/// # Errors
/// Fails as [`crate::prepare_within`] does.
pub fn prepare_to_keep(
    config: &Config,
    exp_id: u32,
    allowance: u64,
    alone: bool,
) -> Result<KeptExperiment, PrepareError> {
    let kept = guarded(config, allowance, || {
        let routed = routed(config)?;
        let key = if alone { None } else { DedupKey::of(&routed, Limits::of(config)) };
        Ok(KeptExperiment { prepared: Box::new(tabled(routed, exp_id)?), key })
    })?;
    can_run(config, &kept.prepared)?;
    Ok(kept)
}

/// Experiments that wait for their run, by `exp_id`.
#[derive(Default)]
pub struct KeptExperiments(Mutex<HashMap<u64, KeptExperiment>>);

impl KeptExperiments {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, KeptExperiment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores an experiment.
    pub fn put(&self, exp_id: u64, experiment: KeptExperiment) {
        self.lock().insert(exp_id, experiment);
    }

    /// Removes and returns an experiment, if it is here.
    pub(crate) fn take(&self, exp_id: u64) -> Option<KeptExperiment> {
        self.lock().remove(&exp_id)
    }

    /// Whether an experiment is here.
    pub fn has(&self, exp_id: u64) -> bool {
        self.lock().contains_key(&exp_id)
    }

    /// Drops the experiments that no run will ask for.
    pub fn retain(&self, runs: impl Fn(u64) -> bool) {
        self.lock().retain(|&exp_id, _| runs(exp_id));
    }

    /// Approximate size of all of them, bytes.
    pub fn bytes(&self) -> u64 {
        self.lock().values().map(KeptExperiment::bytes).sum()
    }
}
