//! Assumed slowdown of a job by its placement and by other jobs.
//!
//! Layer: cluster. The factor is the product of three: of the number of racks that the job spans (a curve that the user gives, from measurements or from
//! packet runs), of what it shares the uplinks of its racks with, and of the slowest of its servers.

use std::collections::BTreeSet;

use crate::servers::GpuShare;

const PPM: u128 = 1_000_000;

/// State from which slowdown factors are computed.
#[derive(Clone, Debug)]
pub(crate) struct PlacementSlowdown {
    /// Points of the curve: number of racks and factor in millionths, ascending.
    curve: Vec<(u32, u64)>,
    oversubscription_ppm: u64,
    /// Number of GPUs of each rack.
    gpus: Vec<u32>,
    /// For each rack, the number of its GPUs that jobs hold which span several racks.
    spanning: Vec<u32>,
    /// For each rack, the jobs that span several racks.
    jobs: Vec<BTreeSet<u32>>,
    /// Slowdown of each server, in millionths; 1,000,000 if it is not slow.
    straggling_ppm: Vec<u64>,
}

/// Racks of a job and the number of its GPUs in each, ascending.
pub(crate) type Racks = Vec<(u32, u32)>;

impl PlacementSlowdown {
    /// Makes the state in which no job runs.
    pub(crate) fn new(
        curve: &[(u32, u64)],
        oversubscription_ppm: u64,
        rack: &[u32],
        racks: u32,
        per_server: u32,
    ) -> PlacementSlowdown {
        let mut gpus = vec![0; racks as usize];
        rack.iter().for_each(|&r| gpus[r as usize] += per_server);
        PlacementSlowdown {
            curve: curve.to_vec(),
            oversubscription_ppm,
            gpus,
            spanning: vec![0; racks as usize],
            jobs: vec![BTreeSet::new(); racks as usize],
            straggling_ppm: vec![1_000_000; rack.len()],
        }
    }

    /// Racks of these GPUs, with their number in each.
    pub(crate) fn racks(rack: &[u32], shares: &[GpuShare]) -> Racks {
        let mut in_racks: Racks = shares.iter().map(|s| (rack[s.server as usize], s.count())).collect();
        in_racks.sort_unstable();
        in_racks.chunk_by(|a, b| a.0 == b.0).map(|same| (same[0].0, same.iter().map(|(_, n)| n).sum())).collect()
    }

    /// Adds a job. Returns the other jobs whose factor may have changed.
    pub(crate) fn comes(&mut self, job: u32, racks: &Racks) -> BTreeSet<u32> {
        let mut others = BTreeSet::new();
        if racks.len() > 1 {
            for &(rack, gpus) in racks {
                self.spanning[rack as usize] += gpus;
                others.extend(&self.jobs[rack as usize]);
                self.jobs[rack as usize].insert(job);
            }
        }
        self.affected(others)
    }

    /// Removes a job. Returns the other jobs whose factor may have changed.
    pub(crate) fn goes(&mut self, job: u32, racks: &Racks) -> BTreeSet<u32> {
        let mut others = BTreeSet::new();
        if racks.len() > 1 {
            for &(rack, gpus) in racks {
                self.spanning[rack as usize] -= gpus;
                self.jobs[rack as usize].remove(&job);
                others.extend(&self.jobs[rack as usize]);
            }
        }
        self.affected(others)
    }

    /// The jobs that can change each other's factor: none if the uplinks are not oversubscribed.
    fn affected(&self, others: BTreeSet<u32>) -> BTreeSet<u32> {
        if u128::from(self.oversubscription_ppm) > PPM { others } else { BTreeSet::new() }
    }

    /// Sets the slowdown of a server, in millionths. 1,000,000: it is not slow.
    pub(crate) fn set_straggling(&mut self, server: u32, ppm: u64) {
        self.straggling_ppm[server as usize] = ppm;
    }

    /// Time of a job over its time at full speed, in millionths; and the same in these places without other jobs. PRECONDITION: the job was added.
    pub(crate) fn factors_ppm(&self, racks: &Racks, shares: &[GpuShare], comm_share_ppm: u64) -> (u64, u64) {
        let placed = u128::from(self.curve_ppm(racks.len() as u32));
        let slowest = u128::from(self.slowest_ppm(shares));
        let factor_ppm = |crowding: u128| {
            let crowded = PPM + u128::from(comm_share_ppm) * (crowding - PPM) / PPM;
            (placed * crowded / PPM * slowest / PPM) as u64
        };
        let max_crowding = |sending: &dyn Fn(&(u32, u32)) -> u32| {
            let crowding = racks.iter().map(|in_rack| self.crowding_ppm(in_rack.0, sending(in_rack))).max();
            crowding.filter(|_| racks.len() > 1).unwrap_or(PPM).max(PPM)
        };
        (
            factor_ppm(max_crowding(&|(rack, _)| self.spanning[*rack as usize])),
            factor_ppm(max_crowding(&|(_, own)| *own)),
        )
    }

    /// The rack of a job whose uplinks are most crowded, and the other jobs that span that rack. `None`: the job is in one rack.
    pub(crate) fn most_crowded(&self, job: u32, racks: &Racks) -> Option<(u32, Vec<u32>)> {
        let crowding = |&(rack, _): &(u32, u32)| self.crowding_ppm(rack, self.spanning[rack as usize]);
        let (rack, _) = *racks.iter().filter(|_| racks.len() > 1).rev().max_by_key(|in_rack| crowding(in_rack))?;
        Some((rack, self.jobs[rack as usize].iter().copied().filter(|other| *other != job).collect()))
    }

    /// Largest slowdown among the servers of a job, in millionths.
    pub(crate) fn slowest_ppm(&self, shares: &[GpuShare]) -> u64 {
        shares.iter().map(|s| self.straggling_ppm[s.server as usize]).max().unwrap_or(1_000_000)
    }

    /// Factor of the curve for a number of racks, in millionths. Between two points it is linear; outside, it is the first or last value.
    fn curve_ppm(&self, racks: u32) -> u64 {
        let after = self.curve.partition_point(|(n, _)| *n < racks);
        match (after.checked_sub(1).map(|i| self.curve[i]), self.curve.get(after)) {
            (_, Some(&(n, factor))) if n == racks => factor,
            (None, Some(&(_, factor))) => factor,
            (Some((_, factor)), None) => factor,
            (Some((a, low)), Some(&(b, high))) => {
                let step = (i128::from(high) - i128::from(low)) * i128::from(racks - a) / i128::from(b - a);
                (i128::from(low) + step) as u64
            }
            (None, None) => 1_000_000,
        }
    }

    /// Time of traffic out of a rack over its time without oversubscription, in millionths, if `sending` of the rack's GPUs send at the same time. This is
    /// the worst case.
    fn crowding_ppm(&self, rack: u32, sending: u32) -> u128 {
        u128::from(self.oversubscription_ppm) * u128::from(sending) / u128::from(self.gpus[rack as usize].max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(servers: &[u32]) -> Vec<GpuShare> {
        servers.iter().map(|&server| GpuShare { server, gpus: 0xf }).collect()
    }

    #[test]
    fn racks_crowding_and_stragglers_multiply() {
        let rack = [0, 0, 1, 1];
        let mut slow = PlacementSlowdown::new(&[(1, 1_000_000), (2, 1_100_000)], 4_000_000, &rack, 2, 4);
        let racks_of = |servers: &[u32]| PlacementSlowdown::racks(&rack, &shares(servers));
        assert_eq!(racks_of(&[0, 1, 3]), [(0, 8), (1, 4)]);
        let (a, b) = (racks_of(&[0, 2]), racks_of(&[1, 3]));
        assert!(slow.comes(0, &a).is_empty());
        // Half of each rack at 4:1 is twice as slow, in a tenth of the time.
        assert_eq!(slow.factors_ppm(&a, &shares(&[0, 2]), 100_000), (1_210_000, 1_210_000));
        assert_eq!(slow.comes(1, &b), BTreeSet::from([0]));
        assert_eq!(slow.factors_ppm(&a, &shares(&[0, 2]), 100_000), (1_430_000, 1_210_000));
        assert_eq!(slow.most_crowded(0, &a), Some((0, vec![1])));
        assert_eq!(slow.goes(1, &b), BTreeSet::from([0]));
        slow.set_straggling(2, 2_000_000);
        assert_eq!(slow.factors_ppm(&a, &shares(&[0, 2]), 100_000), (2_420_000, 2_420_000));
        assert_eq!(slow.factors_ppm(&racks_of(&[0]), &shares(&[0]), 100_000), (1_000_000, 1_000_000));
    }

    #[test]
    fn the_curve_is_a_line_between_its_points() {
        let slow = PlacementSlowdown::new(&[(1, 1_000_000), (5, 1_400_000)], 1_000_000, &[0], 1, 8);
        assert_eq!([1, 2, 3, 5, 9].map(|n| slow.curve_ppm(n)), [1_000_000, 1_100_000, 1_200_000, 1_400_000, 1_400_000]);
    }
}
