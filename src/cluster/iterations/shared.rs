//! Which jobs share links that could be full.
//!
//! Layer: cluster/iterations. A link slows nobody down as long as it has room for the most that all rings over it could send together.

use std::collections::{BTreeMap, BTreeSet};

use crate::topology::{ArcIdx, Network};

use super::fabric::{WHOLE, capacity};
use super::ring::{JobRing, parts};

/// The rings of the jobs that run, by link.
#[derive(Debug)]
pub(super) struct RingsByLink {
    pub rings: BTreeMap<u32, JobRing>,
    /// Of each arc: jobs, and the most that each could send there, bps.
    on: Vec<Vec<(u32, u64)>>,
    ack_parts: u64,
    /// Of a link's capacity, in percent: above this it could be full. Packets queue and congestion control reacts a little before.
    percent: u64,
}

impl RingsByLink {
    pub(super) fn new(net: &Network, ack_parts: u64, as_packets: bool) -> RingsByLink {
        let on = vec![Vec::new(); 2 * net.links.len()];
        RingsByLink { rings: BTreeMap::new(), on, ack_parts, percent: if as_packets { 90 } else { 100 } }
    }

    /// A ring begins.
    pub(super) fn add(&mut self, job: u32, ring: JobRing) {
        for &(arc, data, acks) in &ring.crossed {
            let most = u128::from(ring.most_bps) * u128::from(parts(data, acks, self.ack_parts)) / u128::from(WHOLE);
            self.on[arc as usize].push((job, most as u64));
        }
        self.rings.insert(job, ring);
    }

    /// A ring ends.
    pub(super) fn remove(&mut self, job: u32) {
        for (arc, ..) in self.rings.remove(&job).into_iter().flat_map(|ring| ring.crossed) {
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
            for &(arc, ..) in self.rings.get(&job).into_iter().flat_map(|ring| &ring.crossed) {
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
