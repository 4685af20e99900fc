//! Checkpoints that several jobs write at the same time. They get max-min fair rates over the storage, NICs and rack uplinks.
//!
//! Layer: cluster. The storage lies beyond the racks. All GPUs of a job write the same amount at the same rate, because a checkpoint ends when its last part
//! is written. Rates are whole bits per second, so they are the same on every machine. Writes do not slow iterations down; the share of rack uplinks that
//! they take is reported.

use std::collections::{BTreeMap, BTreeSet};

use super::machine::ClusterMachine;
use super::servers::GpuShare;
use crate::jobs::slowdown::Racks;
use hyperfold_config::spec::{CheckpointKeys, WritesShare};

const NS_PER_S: u128 = 1_000_000_000;
const NS_PER_MS: u128 = 1_000_000;
const PPM: u128 = 1_000_000;

/// A resource that writes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SharedWay {
    Storage,
    /// Uplinks of a rack.
    Rack(u32),
    /// Links of a server that a job shares with other jobs.
    Server(u32),
}

/// A job that writes a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Writer {
    /// Shared resources that it writes over, with the number of its GPUs on each.
    over_ways: Vec<(SharedWay, u32)>,
    racks: Racks,
    /// Most that one of its GPUs can send, in bps.
    max_bps: u64,
    /// Rate that each of its GPUs would have without other jobs, in bps.
    alone_bps: u64,
}

/// Jobs that write, and their rates.
#[derive(Clone, Debug)]
pub(super) struct CheckpointStorage {
    storage_bps: u64,
    fabric: bool,
    writers: BTreeMap<u32, Writer>,
    changed: bool,
    /// For each rack, the share of its uplinks that writes take, in millionths.
    filled_ppm: BTreeMap<u32, u64>,
    /// Time of all writes so far. The next field is the time that they would have taken alone.
    took_ns: u128,
    alone_ns: u128,
}

impl CheckpointStorage {
    /// Makes a storage to which no job writes. `None`: every job has the storage to itself.
    pub(super) fn new(keys: &CheckpointKeys) -> Option<CheckpointStorage> {
        (keys.share != WritesShare::Nothing).then(|| CheckpointStorage {
            storage_bps: keys.storage_bps,
            fabric: keys.share == WritesShare::Fabric,
            writers: BTreeMap::new(),
            changed: false,
            filled_ppm: BTreeMap::new(),
            took_ns: 0,
            alone_ns: 0,
        })
    }

    /// Sets whether a job writes now. `place` is the GPUs and racks of the job.
    pub(super) fn set(&mut self, job: u32, writes: bool, place: (&[GpuShare], &Racks), machine: &ClusterMachine) {
        if writes == self.writers.contains_key(&job) {
            return;
        }
        self.changed = true;
        if !writes {
            self.writers.remove(&job);
            return;
        }
        let (shares, racks) = place;
        let mut over_ways = vec![(SharedWay::Storage, shares.iter().map(|s| s.count()).sum())];
        let mut max_bps = u64::MAX;
        if self.fabric {
            over_ways.extend(racks.iter().map(|&(rack, gpus)| (SharedWay::Rack(rack), gpus)));
            for share in shares {
                if share.count() == machine.per_server {
                    max_bps = machine.server_bps / u64::from(machine.per_server);
                } else {
                    over_ways.push((SharedWay::Server(share.server), share.count()));
                }
            }
        }
        let alone = over_ways.iter().map(|&(way, gpus)| self.capacity_bps(way, machine) / u64::from(gpus.max(1))).min();
        let alone_bps = alone.unwrap_or(1).min(max_bps).max(1);
        self.writers.insert(job, Writer { over_ways, racks: racks.clone(), max_bps, alone_bps });
    }

    fn capacity_bps(&self, way: SharedWay, machine: &ClusterMachine) -> u64 {
        match way {
            SharedWay::Storage => self.storage_bps,
            SharedWay::Rack(rack) => machine.rack_out_bps[rack as usize],
            SharedWay::Server(_) => machine.server_bps,
        }
    }

    /// Counts `ms` in which a job wrote, and the `bits` that each of its GPUs wrote meanwhile.
    pub(super) fn count(&mut self, job: u32, ms: u64, bits: u64) {
        let Some(writer) = self.writers.get(&job) else { return };
        self.took_ns += u128::from(ms) * NS_PER_MS;
        self.alone_ns += u128::from(bits) * NS_PER_S / u128::from(writer.alone_bps);
    }

    /// Time of writes over the time that they would have taken alone, in millionths. `None`: there were no writes.
    pub(super) fn slowdown_ppm(&self) -> Option<u64> {
        // The rounding to whole milliseconds and bits is not a slowdown.
        (self.alone_ns > 0).then(|| (self.took_ns * PPM / self.alone_ns).max(PPM) as u64)
    }

    /// New rates in bps of each GPU of the jobs that write. `None`: no job has begun or ended a write since the last call.
    pub(super) fn new_rates(&mut self, machine: &ClusterMachine) -> Option<Vec<(u32, u64)>> {
        std::mem::take(&mut self.changed).then(|| {
            let rates = self.fair_rates(machine);
            self.filled_ppm = self.filled(&rates, machine);
            rates
        })
    }

    /// Largest share of the uplinks of one of these racks that writes take, in millionths.
    pub(super) fn filled_ppm(&self, racks: &Racks) -> u64 {
        racks.iter().filter_map(|(rack, _)| self.filled_ppm.get(rack)).copied().max().unwrap_or(0)
    }

    /// Whether any job writes.
    pub(super) fn is_used(&self) -> bool {
        !self.writers.is_empty()
    }

    fn filled(&self, rates: &[(u32, u64)], machine: &ClusterMachine) -> BTreeMap<u32, u64> {
        let mut bps: BTreeMap<u32, u128> = BTreeMap::new();
        for (job, rate) in rates {
            for &(rack, gpus) in &self.writers[job].racks {
                *bps.entry(rack).or_default() += u128::from(*rate) * u128::from(gpus);
            }
        }
        let of_way = |(rack, bps): (u32, u128)| {
            // If only the storage is shared, writes could exceed the rate of the uplinks.
            let all = u128::from(machine.rack_out_bps[rack as usize]).max(1);
            (rack, (bps * PPM / all).min(PPM) as u64)
        };
        bps.into_iter().map(of_way).collect()
    }

    /// Max-min fair rates in bps by progressive filling: all rates rise together, and a rate stops when it meets a full resource or its own limit.
    fn fair_rates(&self, machine: &ClusterMachine) -> Vec<(u32, u64)> {
        let mut ways: BTreeMap<SharedWay, (u64, u64)> = BTreeMap::new();
        for &(way, gpus) in self.writers.values().flat_map(|writer| &writer.over_ways) {
            ways.entry(way).or_insert_with(|| (self.capacity_bps(way, machine), 0)).1 += u64::from(gpus);
        }
        let mut open: Vec<(u32, &Writer)> = self.writers.iter().map(|(job, writer)| (*job, writer)).collect();
        let mut rates = Vec::with_capacity(open.len());
        while !open.is_empty() {
            let fair = |&(left, gpus): &(u64, u64)| left / gpus;
            let of_ways = ways.values().filter(|(_, gpus)| *gpus > 0).map(fair).min();
            let own = open.iter().map(|(_, writer)| writer.max_bps).min();
            let level = of_ways.into_iter().chain(own).min().unwrap_or(u64::MAX);
            let full: BTreeSet<SharedWay> = ways
                .iter()
                .filter(|(_, left_gpus)| left_gpus.1 > 0 && fair(left_gpus) <= level)
                .map(|(way, _)| *way)
                .collect();
            let stops =
                |writer: &Writer| writer.max_bps <= level || writer.over_ways.iter().any(|(w, _)| full.contains(w));
            let (stopped, others): (Vec<_>, Vec<_>) = open.into_iter().partition(|(_, writer)| stops(writer));
            for (job, writer) in stopped {
                // A rate of 0 would never end.
                rates.push((job, level.max(1)));
                for (way, gpus) in &writer.over_ways {
                    let (left, open_gpus) = ways.get_mut(way).expect("every way of a writer was entered");
                    *left = left.saturating_sub(level.saturating_mul(u64::from(*gpus)));
                    *open_gpus -= u64::from(*gpus);
                }
            }
            open = others;
        }
        rates.sort_unstable();
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_config::spec::CheckpointPolicy;
    use hyperfold_host::cost::Bill;
    use proptest::prelude::*;

    /// Servers of 4 GPUs with 400 bps, two a rack, and 600 bps out of each.
    fn machine(servers: u32) -> ClusterMachine {
        ClusterMachine {
            per_server: 4,
            links_per_server: 4,
            rack: (0..servers).map(|s| s / 2).collect(),
            racks: servers.div_ceil(2),
            oversubscription_ppm: 2_000_000,
            server_bps: 400,
            rack_out_bps: vec![600; servers.div_ceil(2) as usize],
            bill: Bill::default(),
        }
    }

    fn storage(share: WritesShare, storage_bps: u64) -> CheckpointStorage {
        let keys = CheckpointKeys {
            policy: CheckpointPolicy::Never,
            cost_ms: 0,
            ps_per_gpu: 0,
            share,
            bits_per_gpu: 1,
            storage_bps,
            restart_ms: 0,
        };
        CheckpointStorage::new(&keys).unwrap()
    }

    fn write(storage: &mut CheckpointStorage, machine: &ClusterMachine, job: u32, gpus: &[(u32, u64)]) {
        let shares: Vec<GpuShare> = gpus.iter().map(|&(server, gpus)| GpuShare { server, gpus }).collect();
        let racks = crate::jobs::slowdown::PlacementSlowdown::racks(&machine.rack, &shares);
        storage.set(job, true, (&shares, &racks), machine);
    }

    #[test]
    fn the_storage_a_rack_and_a_nic_each_hold_up_whom_they_must() {
        let m = machine(6);
        let mut s = storage(WritesShare::Storage, 1_200);
        write(&mut s, &m, 0, &[(0, 15), (1, 15)]);
        assert_eq!(s.new_rates(&m), Some(vec![(0, 150)]));
        write(&mut s, &m, 1, &[(2, 15)]);
        assert_eq!((s.new_rates(&m), s.new_rates(&m)), (Some(vec![(0, 100), (1, 100)]), None));
        // 800 and 400 of 600 bps out of racks 0 and 1.
        let filled = |s: &CheckpointStorage| [0, 1, 2].map(|rack| s.filled_ppm(&vec![(rack, 1), (9, 4)]));
        assert_eq!(filled(&s), [1_000_000, 666_666, 0]);
        // Over the fabric job 0 has 600 bps out of its rack, and job 1 what its NICs carry.
        let mut s = storage(WritesShare::Fabric, 1_200);
        write(&mut s, &m, 0, &[(0, 15), (1, 15)]);
        write(&mut s, &m, 1, &[(2, 15)]);
        assert_eq!(s.new_rates(&m), Some(vec![(0, 75), (1, 100)]));
        assert_eq!(filled(&s), [1_000_000, 666_666, 0]);
        // Two jobs with half of a server each share its links.
        let mut s = storage(WritesShare::Fabric, 10_000);
        write(&mut s, &m, 3, &[(4, 3)]);
        assert_eq!(s.new_rates(&m), Some(vec![(3, 200)]));
        write(&mut s, &m, 4, &[(4, 12)]);
        assert_eq!(s.new_rates(&m), Some(vec![(3, 100), (4, 100)]));
        s.set(3, false, (&[], &Vec::new()), &m);
        assert_eq!(s.new_rates(&m), Some(vec![(4, 200)]));
    }

    proptest! {
        #[test]
        fn rates_are_max_min_fair(
            jobs in proptest::collection::vec((0u32..12, 1u32..8, 1u64..15), 1..9), storage_bps in 50u64..4_000, fabric in any::<bool>(),
        ) {
            let m = machine(24);
            let share = if fabric { WritesShare::Fabric } else { WritesShare::Storage };
            let mut s = storage(share, storage_bps);
            for (job, &(first, servers, bits)) in (0..).zip(&jobs) {
                let last = first + servers;
                let gpus: Vec<(u32, u64)> = (first..last).map(|s| (s, if s + 1 == last { bits } else { 15 })).collect();
                write(&mut s, &m, job, &gpus);
            }
            let rates: BTreeMap<u32, u64> = s.new_rates(&m).unwrap().into_iter().collect();
            let mut used: BTreeMap<SharedWay, u64> = BTreeMap::new();
            for (job, writer) in &s.writers {
                for &(way, gpus) in &writer.over_ways {
                    *used.entry(way).or_default() += rates[job] * u64::from(gpus);
                }
            }
            // Whole bits leave less than a bit a second for each GPU.
            let spare = |way: &SharedWay| s.capacity_bps(*way, &m).saturating_sub(used[way]);
            for (way, bps) in &used {
                let gpus: u64 = s.writers.values().flat_map(|w| &w.over_ways).filter(|(w, _)| w == way).map(|(_, n)| u64::from(*n)).sum();
                prop_assert!(*bps <= s.capacity_bps(*way, &m) || rates.values().all(|r| *r >= 1) && *bps <= gpus.max(s.capacity_bps(*way, &m)));
            }
            // Nobody can have more without taking from somebody who has no more.
            for (job, writer) in &s.writers {
                let mine = rates[job];
                prop_assert!(mine <= writer.alone_bps.max(1));
                let held_up = writer.max_bps <= mine || writer.over_ways.iter().any(|(way, _)| {
                    let sharing = s.writers.iter().filter(|(_, w)| w.over_ways.iter().any(|(o, _)| o == way));
                    let gpus: u64 = sharing.clone().flat_map(|(_, w)| &w.over_ways).filter(|(o, _)| o == way).map(|(_, n)| u64::from(*n)).sum();
                    spare(way) < gpus && sharing.clone().all(|(other, _)| rates[other] <= mine)
                });
                prop_assert!(held_up, "job {job} could have more");
            }
        }
    }
}
