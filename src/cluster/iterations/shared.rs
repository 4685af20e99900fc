//! Which jobs share links that could be full.
//!
//! Layer: cluster/iterations. A link slows nobody down as long as it has room for the most that all jobs could send over it together.

use std::collections::{BTreeMap, BTreeSet};

use crate::topology::{ArcIdx, Network};

use super::fabric::capacity;
use super::traffic::JobTraffic;

/// What the jobs that run send, by link.
#[derive(Debug)]
pub(super) struct TrafficByLink {
    pub jobs: BTreeMap<u32, JobTraffic>,
    /// Of each arc: jobs, and the most that each could send there, bps.
    on: Vec<Vec<(u32, u64)>>,
    /// Of a link's capacity, in percent: above this it could be full. Packets queue and congestion control reacts a little before.
    percent: u64,
}

impl TrafficByLink {
    pub(super) fn new(net: &Network, as_packets: bool) -> TrafficByLink {
        let on = vec![Vec::new(); 2 * net.links.len()];
        TrafficByLink { jobs: BTreeMap::new(), on, percent: if as_packets { 90 } else { 100 } }
    }

    /// A job begins.
    pub(super) fn add(&mut self, job: u32, traffic: JobTraffic) {
        for (&(arc, ..), &most) in traffic.crossed.iter().zip(&traffic.most) {
            self.on[arc as usize].push((job, most));
        }
        self.jobs.insert(job, traffic);
    }

    /// A job ends.
    pub(super) fn remove(&mut self, job: u32) {
        for (arc, ..) in self.jobs.remove(&job).into_iter().flat_map(|traffic| traffic.crossed) {
            self.on[arc as usize].retain(|(other, _)| *other != job);
        }
    }

    /// Whether several jobs together could fill an arc.
    pub(super) fn is_narrow(&self, net: &Network, arc: ArcIdx) -> bool {
        let on = &self.on[arc as usize];
        let most: u64 = on.iter().map(|(_, most)| most).sum();
        on.len() > 1 && u128::from(most) * 100 > u128::from(capacity(net, arc)) * u128::from(self.percent)
    }

    /// The jobs that a job's speed may depend on, itself among them: all that narrow links connect with it.
    pub(super) fn set_of(&self, net: &Network, job: u32) -> BTreeSet<u32> {
        let mut set = BTreeSet::from([job]);
        let mut open = vec![job];
        while let Some(job) = open.pop() {
            for &(arc, ..) in self.jobs.get(&job).into_iter().flat_map(|traffic| &traffic.crossed) {
                if self.on[arc as usize].len() > 1 && self.is_narrow(net, arc) {
                    for &(other, _) in &self.on[arc as usize] {
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
