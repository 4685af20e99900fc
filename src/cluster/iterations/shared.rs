//! Which jobs share links that could be full.
//!
//! Layer: cluster/iterations. A link slows no job down as long as it can carry all that its jobs could send over it together.

use std::collections::{BTreeMap, BTreeSet};

use hyperfold_network::topology::{ArcIdx, Network};

use super::fabric::capacity;
use super::traffic::JobTraffic;

/// Traffic of the running jobs, by job and by arc.
#[derive(Debug)]
pub(super) struct TrafficByLink {
    pub jobs: BTreeMap<u32, JobTraffic>,
    /// For each arc, the jobs on it and the most that each of them could send there, in bps.
    jobs_on_arc: Vec<Vec<(u32, u64)>>,
    /// Percentage of an arc's rate above which it could be full. With packets it is below 100, because packets queue and congestion control reacts a little
    /// before.
    percent: u64,
}

impl TrafficByLink {
    pub(super) fn new(net: &Network, as_packets: bool) -> TrafficByLink {
        let jobs_on_arc = vec![Vec::new(); 2 * net.links.len()];
        TrafficByLink { jobs: BTreeMap::new(), jobs_on_arc, percent: if as_packets { 90 } else { 100 } }
    }

    /// Adds a job that begins.
    pub(super) fn add(&mut self, job: u32, traffic: JobTraffic) {
        for (&(arc, ..), &max_bps) in traffic.crossed.iter().zip(&traffic.max_bps) {
            self.jobs_on_arc[arc as usize].push((job, max_bps));
        }
        self.jobs.insert(job, traffic);
    }

    /// Removes a job that ends.
    pub(super) fn remove(&mut self, job: u32) {
        for (arc, ..) in self.jobs.remove(&job).into_iter().flat_map(|traffic| traffic.crossed) {
            self.jobs_on_arc[arc as usize].retain(|(other, _)| *other != job);
        }
    }

    /// Whether several jobs together could fill an arc.
    pub(super) fn is_narrow(&self, net: &Network, arc: ArcIdx) -> bool {
        let jobs_on_arc = &self.jobs_on_arc[arc as usize];
        let max_bps: u64 = jobs_on_arc.iter().map(|(_, max_bps)| max_bps).sum();
        jobs_on_arc.len() > 1 && u128::from(max_bps) * 100 > u128::from(capacity(net, arc)) * u128::from(self.percent)
    }

    /// The jobs on which the speed of `job` may depend, and itself: all jobs that narrow links connect with it.
    pub(super) fn set_of(&self, net: &Network, job: u32) -> BTreeSet<u32> {
        let mut set = BTreeSet::from([job]);
        let mut open = vec![job];
        while let Some(job) = open.pop() {
            for &(arc, ..) in self.jobs.get(&job).into_iter().flat_map(|traffic| &traffic.crossed) {
                if self.jobs_on_arc[arc as usize].len() > 1 && self.is_narrow(net, arc) {
                    for &(other, _) in &self.jobs_on_arc[arc as usize] {
                        if set.insert(other) {
                            open.push(other);
                        }
                    }
                }
            }
        }
        set
    }
}
