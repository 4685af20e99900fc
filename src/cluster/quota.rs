//! Most GPUs of a user at a time.
//!
//! Layer: cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::job::ClusterJob;

/// What users may have, and have.
#[derive(Clone, Debug)]
pub(super) struct Quotas {
    /// User of each job.
    user: Vec<u32>,
    names: Vec<Arc<str>>,
    most: Vec<u32>,
    has: Vec<u32>,
}

impl Quotas {
    /// `quotas` are pairs of user and GPUs; `*` stands for the others. Who is not named has no limit.
    pub(super) fn new(quotas: &[(String, u32)], jobs: &[ClusterJob]) -> Quotas {
        let mut numbers: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        jobs.iter().for_each(|job| {
            numbers.entry(Arc::clone(&job.user)).or_insert(0);
        });
        numbers.values_mut().zip(0..).for_each(|(number, n)| *number = n);
        let limit = |name: &str| quotas.iter().find(|(user, _)| user == name).map(|(_, gpus)| *gpus);
        let names: Vec<Arc<str>> = numbers.keys().cloned().collect();
        let most = names.iter().map(|name| limit(name).or_else(|| limit("*")).unwrap_or(u32::MAX)).collect();
        let user = jobs.iter().map(|job| numbers[&job.user]).collect();
        Quotas { user, has: vec![0; names.len()], most, names }
    }

    /// Users in the order of their names.
    pub(super) fn users(&self) -> usize {
        self.names.len()
    }

    /// The user of a job, by that order.
    pub(super) fn user_of(&self, job: u32) -> usize {
        self.user[job as usize] as usize
    }

    /// Whether a job may have so many GPUs now.
    pub(super) fn allows(&self, job: u32, gpus: u32) -> bool {
        let user = self.user_of(job);
        self.has[user].saturating_add(gpus) <= self.most[user]
    }

    /// A job has so many.
    pub(super) fn add(&mut self, job: u32, gpus: u32) {
        let user = self.user_of(job);
        self.has[user] += gpus;
    }

    /// A job has given them back.
    pub(super) fn remove(&mut self, job: u32, gpus: u32) {
        let user = self.user_of(job);
        self.has[user] -= gpus;
    }
}
