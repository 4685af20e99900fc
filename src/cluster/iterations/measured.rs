//! Speeds of the running jobs, measured by simulating their iterations.
//!
//! Layer: cluster/iterations. Each change of the cluster marks jobs. `settle` simulates the sets that these jobs belong to, several sets at a time, and every
//! set once. The times of a set depend only on its case, so neither threads nor remembered results change them. Which sets are audited is drawn from the
//! case, too.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::super::error::ClusterError;
use super::super::servers::GpuShare;
use super::case::{IterationCase, ReducedSet, reduced};
use super::fabric::IterationFabric;
use super::foreseen::ForeseenSets;
use super::program::of_class;
use super::ring::ring;
use super::run::{Simulated, min_time, simulated};
use super::shared::TrafficByLink;
use super::traffic::JobTraffic;
use crate::jobs::job::ClusterJob;
use hyperfold_network::routing::Router;

const PPM: u64 = 1_000_000;

/// Speed of a job: its time over its time alone in one rack, in millionths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobSpeed {
    pub factor_ppm: u64,
    /// Factor that the job would have alone in the same place, in millionths.
    pub alone_ppm: u64,
    /// How other jobs slow it down. `None`: they do not.
    pub slowed_by_others: Option<SlowestMoment>,
}

/// A moment at which other jobs slowed a job down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlowestMoment {
    /// Time of the job over its time alone in the same place, in millionths.
    pub ppm: u64,
    /// Numbers of the other jobs of its set.
    pub jobs: Vec<u32>,
    /// The most crowded place that the job shares: an arc if iterations are simulated, else the rack whose uplinks are most crowded.
    pub place: Option<u32>,
    /// Numbers of those `jobs` that send over `place`.
    pub sharing: Vec<u32>,
    /// The job that arrived when this slowdown began; a job that sends over the link is preferred. `None`: no job arrived then.
    pub set_off_by: Option<u32>,
    /// Rate at which the job sends over the rate of its NICs, in millionths.
    pub nic_ppm: u64,
}

/// Simulated iteration of a class in one rack, known before the cluster is simulated.
#[derive(Clone, Debug)]
pub(crate) struct KnownIteration {
    pub class: u32,
    key: Vec<u64>,
    simulated: Simulated,
}

impl KnownIteration {
    /// Sequences of an iteration, if the class trains a model.
    pub(crate) fn samples(&self, fabric: &IterationFabric) -> Option<u32> {
        fabric.classes[self.class as usize].samples_an_iteration()
    }

    /// Time of the iteration, in ps.
    pub(crate) fn ps(&self) -> u64 {
        self.simulated.ps[0]
    }
}

/// Counts of simulated sets of jobs, and the differences that audits found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IterationSummary {
    /// Number of different sets of jobs that were simulated. Sets of a single job count, too.
    pub sets: u64,
    /// How often the times of a set were asked for.
    pub asked: u64,
    /// Number of jobs in the largest set.
    pub max_jobs: u64,
    /// Number of sets that were audited.
    pub audited: u64,
    /// Sum over all audited jobs of the relative difference of the iteration time, in millionths.
    pub error_sum_ppm: u64,
    /// Number of jobs in the audited sets.
    pub audited_jobs: u64,
    /// Largest of these differences, in millionths.
    pub error_most_ppm: u64,
}

impl JobSpeed {
    const FULL: JobSpeed = JobSpeed { factor_ppm: PPM, alone_ppm: PPM, slowed_by_others: None };
}

/// Traffic and speeds of the running jobs.
pub(crate) struct MeasuredIterations<'a> {
    fabric: &'a IterationFabric,
    router: Router<'a>,
    shared: TrafficByLink,
    speeds: BTreeMap<u32, JobSpeed>,
    /// Jobs whose speed may have changed since the last `settle`.
    changed: BTreeSet<u32>,
    /// Jobs that arrived since the last `settle`.
    came: BTreeSet<u32>,
    known: BTreeMap<Vec<u64>, Simulated>,
    failed: Option<ClusterError>,
    /// Sets that were asked for, in a forecast. `None`: sets are simulated.
    foreseen: Option<ForeseenSets>,
    /// Cases of each job without other jobs: in its place, and in one rack.
    own_cases: BTreeMap<u32, [ReducedSet; 2]>,
    asked: u64,
    max_jobs: u64,
}

impl<'a> MeasuredIterations<'a> {
    /// No job runs yet.
    pub(crate) fn new(fabric: &'a IterationFabric) -> MeasuredIterations<'a> {
        MeasuredIterations {
            fabric,
            router: Router::new(&fabric.net),
            shared: TrafficByLink::new(&fabric.net, fabric.keys.as_packets),
            speeds: BTreeMap::new(),
            changed: BTreeSet::new(),
            came: BTreeSet::new(),
            known: BTreeMap::new(),
            failed: None,
            foreseen: None,
            own_cases: BTreeMap::new(),
            asked: 0,
            max_jobs: 0,
        }
    }

    /// Takes results of earlier simulations.
    pub(crate) fn remember(&mut self, known: &[KnownIteration]) {
        self.known.extend(known.iter().map(|iteration| (iteration.key.clone(), iteration.simulated.clone())));
    }

    /// Turns forecasting on: from now on no set is simulated, and jobs run at lower bounds of their times.
    pub(crate) fn foresee(&mut self) {
        self.foreseen = Some(ForeseenSets::default());
    }

    /// Takes the sets that were asked for since `foresee`.
    pub(crate) fn take_foreseen(&mut self) -> Option<ForeseenSets> {
        self.foreseen.take()
    }

    /// Records that a job holds these GPUs from now on.
    pub(crate) fn comes(&mut self, job: u32, asked: &ClusterJob, shares: &[GpuShare]) {
        self.speeds.insert(job, JobSpeed::FULL);
        match self.traffic(asked, shares) {
            Ok(Some((traffic, in_rack))) => {
                let alone = reduced(&self.fabric.net, &[(job, &traffic)], self.fabric.ack_parts(), &|_| false);
                self.own_cases.insert(job, [alone, in_rack]);
                self.shared.add(job, traffic);
                self.changed.insert(job);
                self.came.insert(job);
            }
            Ok(None) => {}
            Err(e) => self.failed = Some(e),
        }
    }

    /// Records that a job holds no GPUs any more.
    pub(crate) fn goes(&mut self, job: u32) {
        // The jobs that it shared links with may become faster.
        if self.shared.jobs.contains_key(&job) {
            let others = self.shared.set_of(&self.fabric.net, job);
            self.changed.extend(others);
        }
        self.changed.remove(&job);
        self.came.remove(&job);
        self.shared.remove(job);
        self.own_cases.remove(&job);
        self.speeds.remove(&job);
    }

    /// Numbers of GPUs with which jobs of a class can run, ascending.
    pub(crate) fn sizes(&self, class: u32) -> impl DoubleEndedIterator<Item = u32> {
        self.fabric.classes[class as usize].sizes()
    }

    /// Speed of a running job.
    pub(crate) fn speed(&self, job: u32) -> &JobSpeed {
        self.speeds.get(&job).unwrap_or(&JobSpeed::FULL)
    }

    /// Traffic of a job in its place, and the case of a job like it in one rack. `None`: nothing of it crosses the network.
    fn traffic(
        &self,
        asked: &ClusterJob,
        shares: &[GpuShare],
    ) -> Result<Option<(JobTraffic, ReducedSet)>, ClusterError> {
        let fabric = self.fabric;
        let mut shares = shares.to_vec();
        shares.sort_unstable_by_key(|s| s.server);
        let ranks = |share: &GpuShare| -> Vec<u32> {
            let server_ranks = &fabric.ranks[share.server as usize];
            (0..server_ranks.len()).filter(|&gpu| share.gpus >> gpu & 1 == 1).map(|gpu| server_ranks[gpu]).collect()
        };
        let servers: Vec<Vec<u32>> = shares.iter().map(ranks).collect();
        if let Some(class) = asked.class {
            let traffic = of_class(fabric, &self.router, &fabric.net, (class, &servers.concat()))?;
            // With fewer GPUs than it asked for, a job takes longer even if it sends nothing.
            let counts = !traffic.edges.is_empty() || traffic.hosts.len() < asked.gpus as usize;
            return Ok(if counts { Some((traffic, class_in_rack(fabric, class)?)) } else { None });
        }
        let (n, work) = (servers.len() as u64, (asked.compute_ps, asked.comm_bytes));
        let Some(traffic) = ring(fabric, &self.router, &fabric.net, &servers, work, n)? else { return Ok(None) };
        // The first server, with no more GPUs than there are channels.
        let channels = servers.iter().map(Vec::len).min().unwrap_or(1);
        let (net, in_rack) = fabric.one_rack(&servers[0][..channels], n.min(3) as u32);
        let of_rack = ring(fabric, &Router::new(&net), &net, &in_rack, work, n)?;
        let of_rack = of_rack.expect("it has two servers at least, and sends");
        let set = reduced(&net, &[(0, &of_rack)], fabric.ack_parts(), &|_| false);
        Ok(Some((traffic, set)))
    }

    /// Brings speeds up to date. Returns the jobs whose speed has changed.
    ///
    /// # Errors
    /// It was stopped, servers of a job do not reach each other, or iterations come to no end.
    pub(crate) fn settle(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<u32>, ClusterError> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        let (fabric, ack_parts) = (self.fabric, self.fabric.ack_parts());
        let net = &fabric.net;
        let mut sets = Vec::new();
        while let Some(job) = self.changed.pop_first() {
            if !self.shared.jobs.contains_key(&job) {
                continue;
            }
            let set = self.shared.set_of(net, job);
            self.changed.retain(|other| !set.contains(other));
            sets.push(set);
        }
        let shared = &self.shared;
        let reduce = |set: &BTreeSet<u32>| {
            let jobs: Vec<(u32, &JobTraffic)> = set.iter().map(|job| (*job, &shared.jobs[job])).collect();
            reduced(net, &jobs, ack_parts, &|arc| shared.is_narrow(net, arc))
        };
        let reduced: Vec<ReducedSet> = sets.par_iter().map(reduce).collect();
        let mut open: BTreeMap<&[u64], &IterationCase> = BTreeMap::new();
        for set in &reduced {
            let own_cases = set.jobs.iter().flat_map(|job| &self.own_cases[job]);
            for case in std::iter::once(set).chain(own_cases).map(|set| &set.case) {
                self.asked += 1;
                if !fabric.keys.remembers || !self.known.contains_key(&case.key) {
                    open.insert(&case.key, case);
                }
            }
            self.max_jobs = self.max_jobs.max(set.jobs.len() as u64);
        }
        let open: Vec<&IterationCase> = open.into_values().collect();
        if let Some(foreseen) = &mut self.foreseen {
            if stop() {
                return Err(ClusterError::Interrupted);
            }
            let min_times: Vec<Vec<u64>> = open.iter().map(|case| foreseen.add(fabric, case)).collect();
            for (case, ps) in open.iter().zip(min_times) {
                self.known.insert(case.key.clone(), Simulated { ps, longer: None });
            }
        }
        let open = if self.foreseen.is_some() { Vec::new() } else { open };
        let found: Vec<Result<Simulated, ClusterError>> =
            open.par_iter().with_max_len(1).map(|case| simulated(fabric, case, fabric.keys.audit_ppm, stop)).collect();
        for (case, found) in open.into_iter().zip(found) {
            self.known.insert(case.key.clone(), found?);
        }
        let mut others = Vec::new();
        for set in &reduced {
            for (place, &job) in set.jobs.iter().enumerate() {
                let speed = self.speed_in(set, place);
                if self.speeds.get(&job) != Some(&speed) {
                    self.speeds.insert(job, speed);
                    others.push(job);
                }
            }
        }
        self.came.clear();
        others.sort_unstable();
        Ok(others)
    }

    fn speed_in(&self, set: &ReducedSet, place: usize) -> JobSpeed {
        let job = set.jobs[place];
        let ps = |case: &IterationCase, place: usize| self.known[&case.key].ps[place];
        let [alone, in_rack_case] = &self.own_cases[&job];
        let in_rack = ps(&in_rack_case.case, 0).max(1);
        let over_in_rack_ppm =
            |ps: u64| ((u128::from(ps) * u128::from(PPM) + u128::from(in_rack / 2)) / u128::from(in_rack)) as u64;
        let factor_ppm = over_in_rack_ppm(ps(&set.case, place)).max(PPM);
        let alone_ppm = over_in_rack_ppm(ps(&alone.case, 0)).max(PPM).min(factor_ppm);
        let ratio = (u128::from(factor_ppm) * u128::from(PPM) / u128::from(alone_ppm)) as u64;
        let slowed_by_others = (ratio > PPM).then(|| {
            let jobs: Vec<u32> = set.jobs.iter().copied().filter(|other| *other != job).collect();
            let arc = set.crowded[place];
            let sends = |other: &u32| arc.is_some_and(|arc| self.shared.jobs[other].parts_on(arc).0 > 0);
            // All time that is not computing is sending. Alone in one rack, the NICs are full.
            let sending = |case: &IterationCase, place: usize| {
                ps(case, place).saturating_sub(case.works[place].compute_ps()).max(1)
            };
            let full = u128::from(sending(&in_rack_case.case, 0)) * u128::from(PPM);
            SlowestMoment {
                ppm: ratio,
                sharing: jobs.iter().copied().filter(sends).collect(),
                jobs,
                place: arc,
                set_off_by: self.set_off_by(set, job, ratio, arc),
                nic_ppm: (full / u128::from(sending(&set.case, place))).min(u128::from(PPM)) as u64,
            }
        });
        JobSpeed { factor_ppm, alone_ppm, slowed_by_others }
    }

    /// The job that arrived when others began to slow `job` down on a link, or to slow it down more.
    fn set_off_by(&self, set: &ReducedSet, job: u32, ppm: u64, arc: Option<u32>) -> Option<u32> {
        let came = || set.jobs.iter().copied().filter(|other| self.came.contains(other));
        let before = self.speeds.get(&job).and_then(|speed| speed.slowed_by_others.as_ref());
        if let Some(before) = before.filter(|before| before.place == arc && ppm <= before.ppm) {
            return before.set_off_by;
        }
        let sends = |other: &u32| arc.is_some_and(|arc| self.shared.jobs[other].parts_on(arc).0 > 0);
        came().filter(sends).min().or_else(|| came().min()).or(before.and_then(|before| before.set_off_by))
    }

    /// Summary of the simulations so far.
    pub(crate) fn summary(&self) -> IterationSummary {
        let mut summary = IterationSummary {
            sets: self.known.len() as u64,
            asked: self.asked,
            max_jobs: self.max_jobs,
            ..IterationSummary::default()
        };
        for simulated in self.known.values() {
            let Some(longer) = &simulated.longer else { continue };
            summary.audited += 1;
            for (&ps, &longer) in simulated.ps.iter().zip(longer) {
                let off = (u128::from(ps.abs_diff(longer)) * u128::from(PPM) / u128::from(longer.max(1))) as u64;
                summary.error_sum_ppm += off;
                summary.audited_jobs += 1;
                summary.error_most_ppm = summary.error_most_ppm.max(off);
            }
        }
        summary
    }
}

/// The case of a job of a class on as few servers as possible, under one switch. The duration of such jobs is measured there.
///
/// # Errors
/// The program of the class cannot be made.
fn class_in_rack(fabric: &IterationFabric, class: u32) -> Result<ReducedSet, ClusterError> {
    let gpus = fabric.classes[class as usize].gpus() as usize;
    let first = &fabric.ranks[0];
    let (net, servers) = fabric.one_rack(first, gpus.div_ceil(first.len().max(1)) as u32);
    let ranks = servers.concat();
    let traffic = of_class(fabric, &Router::new(&net), &net, (class, &ranks[..gpus]))?;
    Ok(reduced(&net, &[(0, &traffic)], fabric.ack_parts(), &|_| false))
}

/// Time of an iteration of a class in one rack. With `foresees` it is a lower bound, and nothing is simulated.
///
/// # Errors
/// The program of the class cannot be made or simulated, or it was stopped.
pub(crate) fn class_iteration(
    fabric: &IterationFabric,
    class: u32,
    foresees: bool,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<KnownIteration, ClusterError> {
    let case = class_in_rack(fabric, class)?.case;
    let simulated = match foresees {
        true => Simulated { ps: vec![min_time(&case, 0)], longer: None },
        false => simulated(fabric, &case, fabric.keys.audit_ppm, stop)?,
    };
    Ok(KnownIteration { class, key: case.key, simulated })
}
