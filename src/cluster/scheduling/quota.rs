//! Quotas: how many GPUs a user may hold at a time.
//!
//! Layer: cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::jobs::job::ClusterJob;

/// Quota and use of each user.
#[derive(Clone, Debug)]
pub(crate) struct Quotas {
    /// User of each job, as an index into the other fields.
    user: Vec<u32>,
    names: Vec<Arc<str>>,
    max_gpus: Vec<u32>,
    held_gpus: Vec<u32>,
}

impl Quotas {
    /// Makes quotas from pairs of user and GPUs. The user `*` stands for all users that are not named. Without `*`, users that are not named have no limit.
    pub(crate) fn new(quotas: &[(String, u32)], jobs: &[ClusterJob]) -> Quotas {
        let mut numbers: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        jobs.iter().for_each(|job| {
            numbers.entry(Arc::clone(&job.user)).or_insert(0);
        });
        numbers.values_mut().zip(0..).for_each(|(number, n)| *number = n);
        let limit = |name: &str| quotas.iter().find(|(user, _)| user == name).map(|(_, gpus)| *gpus);
        let names: Vec<Arc<str>> = numbers.keys().cloned().collect();
        let max_gpus = names.iter().map(|name| limit(name).or_else(|| limit("*")).unwrap_or(u32::MAX)).collect();
        let user = jobs.iter().map(|job| numbers[&job.user]).collect();
        Quotas { user, held_gpus: vec![0; names.len()], max_gpus, names }
    }

    /// Number of users. They are sorted by name.
    pub(crate) fn users(&self) -> usize {
        self.names.len()
    }

    /// Index of the user of a job.
    pub(crate) fn user_of(&self, job: u32) -> usize {
        self.user[job as usize] as usize
    }

    /// Whether a job may have `gpus` more GPUs now.
    pub(crate) fn allows(&self, job: u32, gpus: u32) -> bool {
        let user = self.user_of(job);
        self.held_gpus[user].saturating_add(gpus) <= self.max_gpus[user]
    }

    /// Counts GPUs that a job has got.
    pub(crate) fn add(&mut self, job: u32, gpus: u32) {
        let user = self.user_of(job);
        self.held_gpus[user] += gpus;
    }

    /// Counts GPUs that a job has given back.
    pub(crate) fn remove(&mut self, job: u32, gpus: u32) {
        let user = self.user_of(job);
        self.held_gpus[user] -= gpus;
    }
}
