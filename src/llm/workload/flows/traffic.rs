//! Traffic patterns: incast, permutation, ring, all-to-all, Poisson arrivals.
//!
//! Layer: workload. Patterns are over ranks; each flow has a queue pair of its own. Equal parameters and seeds give equal flows on every machine.

use super::cdf::Cdf;
use super::flow::Flow;
use super::flow_file::{FIRST_SPORT, MAX_FLOW_BYTES, MAX_FLOWS, SportCounter};
use crate::workload::error::WorkloadError;
use crate::workload::random::RandomStream;
use hyperfold_base::budget;
use hyperfold_base::units::PS_PER_S;

/// Destination port of generated flows.
const DPORT: u16 = 100;
/// Priority of generated flows.
const PRIORITY: u8 = 3;

/// Random streams, one per purpose.
const SENDERS: u64 = 1;
const PERMUTATION: u64 = 2;
const ARRIVALS: u64 = 3;
const ENDS: u64 = 4;
const SIZES: u64 = 5;

/// Several senders to one receiver, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incast {
    /// Number of senders per receiver; 0 for all other ranks.
    pub fan_in: u32,
    /// Number of receivers, spread evenly over the ranks from rank 0 on; usually 1.
    pub receivers: u32,
    /// Bytes of each flow.
    pub bytes: u64,
    /// Seed of the choice of senders.
    pub seed: u64,
}

/// A random permutation: every rank sends to one other rank and receives from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    /// Bytes of each flow.
    pub bytes: u64,
    /// Seed of the permutation.
    pub seed: u64,
}

/// Rank i sends to rank i + stride, modulo the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Distance between sender and receiver, in ranks.
    pub stride: u32,
    /// Bytes of each flow.
    pub bytes: u64,
}

/// Every rank sends to every other, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllToAll {
    /// Bytes of each flow.
    pub bytes: u64,
}

/// Flows that arrive at random between random ranks, with sizes drawn from a distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Poisson {
    /// Mean share of the ranks' link capacity that the flows need, above 0 and at most 1.
    pub load: f64,
    /// Rate of a rank's NIC, bps.
    pub link_bps: u64,
    /// Flows start before this time in ps.
    pub duration_ps: u64,
    /// Distribution of sizes.
    pub cdf: Cdf,
    /// Seed of times, ranks and sizes.
    pub seed: u64,
}

/// A flow with the port and priority of generated flows, starting at 0.
pub(in crate::workload) fn flow(id: u32, src_rank: u32, dst_rank: u32, bytes: u64) -> Flow {
    Flow { id, src_rank, dst_rank, bytes, start_ps: 0, sport: FIRST_SPORT, dport: DPORT, class: PRIORITY }
}

pub(in crate::workload) fn check_ranks(pattern: &'static str, n_ranks: u32) -> Result<(), WorkloadError> {
    if n_ranks < 2 {
        return Err(WorkloadError::parameter(
            "pattern",
            pattern,
            format!("it needs at least 2 ranks, there are {n_ranks}"),
        ));
    }
    Ok(())
}

pub(in crate::workload) fn check_bytes(bytes: u64) -> Result<(), WorkloadError> {
    if bytes == 0 || bytes > MAX_FLOW_BYTES {
        return Err(WorkloadError::parameter("bytes", bytes, format!("a flow has from 1 to {MAX_FLOW_BYTES} bytes")));
    }
    Ok(())
}

fn check_count(pattern: &'static str, n: u64) -> Result<(), WorkloadError> {
    if n > u64::from(MAX_FLOWS) {
        let problem = format!("{n} flows are more than the {MAX_FLOWS} that are supported");
        return Err(WorkloadError::parameter("pattern", pattern, problem));
    }
    announce_flows(n);
    Ok(())
}

/// Memory in bytes that a flow takes at least, with its path, window and table rows.
pub const BYTES_A_FLOW: u64 = 600;

/// Announces the memory of `n` flows to the budget.
pub(in crate::workload) fn announce_flows(n: u64) {
    budget::announce("flows", n.saturating_mul(BYTES_A_FLOW));
}

impl Incast {
    /// Flows by receiver, then in the order in which senders were drawn.
    pub fn flows(&self, n_ranks: u32) -> Result<Vec<Flow>, WorkloadError> {
        check_ranks("incast", n_ranks)?;
        check_bytes(self.bytes)?;
        let fan_in = if self.fan_in == 0 { n_ranks - 1 } else { self.fan_in };
        if fan_in > n_ranks - 1 {
            let problem = format!("{n_ranks} ranks leave at most {} senders for a receiver", n_ranks - 1);
            return Err(WorkloadError::parameter("fan_in", fan_in, problem));
        }
        if self.receivers == 0 || self.receivers > n_ranks {
            let problem = format!("it must be from 1 to the number of ranks, {n_ranks}");
            return Err(WorkloadError::parameter("receivers", self.receivers, problem));
        }
        let n = u64::from(fan_in) * u64::from(self.receivers);
        check_count("incast", n)?;
        let mut flows = Vec::with_capacity(n as usize);
        for r in 0..self.receivers {
            let receiver = (u64::from(r) * u64::from(n_ranks) / u64::from(self.receivers)) as u32;
            let mut others: Vec<u32> = (0..n_ranks).filter(|&x| x != receiver).collect();
            if fan_in < n_ranks - 1 {
                RandomStream::new(self.seed, SENDERS << 32 | u64::from(r)).shuffle(&mut others);
            }
            for &src in &others[..fan_in as usize] {
                flows.push(flow(flows.len() as u32, src, receiver, self.bytes));
            }
        }
        Ok(flows)
    }
}

impl Permutation {
    /// One flow per rank, by sender. It shuffles until no rank sends to itself, so every such permutation is equally likely.
    pub fn flows(&self, n_ranks: u32) -> Result<Vec<Flow>, WorkloadError> {
        check_ranks("permutation", n_ranks)?;
        check_bytes(self.bytes)?;
        let mut stream = RandomStream::new(self.seed, PERMUTATION);
        let mut receivers: Vec<u32> = (0..n_ranks).collect();
        loop {
            stream.shuffle(&mut receivers);
            // A shuffle succeeds with probability 1/e, so this ends soon whatever the seed.
            if receivers.iter().enumerate().all(|(i, &d)| d != i as u32) {
                break;
            }
        }
        Ok((0..n_ranks).map(|i| flow(i, i, receivers[i as usize], self.bytes)).collect())
    }
}

impl Ring {
    /// One flow per rank, by sender.
    pub fn flows(&self, n_ranks: u32) -> Result<Vec<Flow>, WorkloadError> {
        check_ranks("ring", n_ranks)?;
        check_bytes(self.bytes)?;
        if self.stride.is_multiple_of(n_ranks) {
            let problem = format!("with {n_ranks} ranks every rank would send to itself; use 1 to {}", n_ranks - 1);
            return Err(WorkloadError::parameter("stride", self.stride, problem));
        }
        let stride = self.stride % n_ranks;
        Ok((0..n_ranks).map(|i| flow(i, i, (i + stride) % n_ranks, self.bytes)).collect())
    }
}

impl AllToAll {
    /// Flows by distance, then by sender: rank i to i + 1, then to i + 2 and so on, so that no receiver comes first for all senders.
    pub fn flows(&self, n_ranks: u32) -> Result<Vec<Flow>, WorkloadError> {
        check_ranks("all-to-all", n_ranks)?;
        check_bytes(self.bytes)?;
        let n = u64::from(n_ranks) * u64::from(n_ranks - 1);
        check_count("all-to-all", n)?;
        let mut flows = Vec::with_capacity(n as usize);
        for step in 1..n_ranks {
            for src in 0..n_ranks {
                flows.push(flow(flows.len() as u32, src, (src + step) % n_ranks, self.bytes));
            }
        }
        Ok(flows)
    }
}

impl Poisson {
    /// Flows by start time. Sizes and gaps are drawn as real numbers with one libm, and become whole bytes and picoseconds here.
    pub fn flows(&self, n_ranks: u32) -> Result<Vec<Flow>, WorkloadError> {
        check_ranks("poisson", n_ranks)?;
        if !(self.load > 0.0 && self.load <= 1.0) {
            return Err(WorkloadError::parameter(
                "load",
                self.load,
                "it is a share of the link rate, above 0 and at most 1",
            ));
        }
        if self.duration_ps == 0 || self.duration_ps > 1_000_000 * PS_PER_S {
            let value = self.duration_ps / 1000;
            return Err(WorkloadError::parameter(
                "duration_ns",
                value,
                "it must be above 0 and at most a million seconds",
            ));
        }
        let flows_per_ps =
            self.load * f64::from(n_ranks) * self.link_bps as f64 / (8.0 * self.cdf.mean() * PS_PER_S as f64);
        let expected = flows_per_ps * self.duration_ps as f64;
        if expected > f64::from(MAX_FLOWS / 2) {
            let problem = format!("about {expected:.0} flows would arrive; at most {} are supported", MAX_FLOWS / 2);
            return Err(WorkloadError::parameter("duration_ns", self.duration_ps / 1000, problem));
        }
        announce_flows(expected as u64);
        let [mut arrivals, mut ends, mut sizes] = [ARRIVALS, ENDS, SIZES].map(|s| RandomStream::new(self.seed, s));
        let mut ports = SportCounter::default();
        let mut flows: Vec<Flow> = Vec::with_capacity(expected as usize);
        let mut start_ps = 0u64;
        loop {
            // A gap beyond the duration saturates, which ends the loop.
            start_ps = start_ps.saturating_add((-libm::log(arrivals.unit()) / flows_per_ps) as u64);
            if start_ps >= self.duration_ps {
                break;
            }
            let src = ends.below(n_ranks);
            let dst = (src + 1 + ends.below(n_ranks - 1)) % n_ranks;
            let mut f = flow(flows.len() as u32, src, dst, self.cdf.quantile(sizes.unit()));
            f.start_ps = start_ps;
            f.sport = ports.next(src, dst);
            flows.push(f);
        }
        if flows.is_empty() {
            let problem = format!("no flow arrives in that time at load {}; on average {expected:.2} would", self.load);
            return Err(WorkloadError::parameter("duration_ns", self.duration_ps / 1000, problem));
        }
        Ok(flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(flows: &[Flow]) -> Vec<(u32, u32)> {
        flows.iter().map(|f| (f.src_rank, f.dst_rank)).collect()
    }

    #[test]
    fn every_permutation_is_a_derangement_and_seeds_differ() {
        for n in [2, 3, 8, 129] {
            let flows = Permutation { bytes: 1, seed: u64::from(n) }.flows(n).unwrap();
            let mut to: Vec<u32> = flows.iter().map(|f| f.dst_rank).collect();
            assert!(flows.iter().all(|f| f.src_rank != f.dst_rank));
            to.sort_unstable();
            assert_eq!(to, (0..n).collect::<Vec<_>>());
        }
        let [a, b] = [1, 2].map(|seed| pairs(&Permutation { bytes: 1, seed }.flows(64).unwrap()));
        assert_ne!(a, b);
    }

    #[test]
    fn incast_has_distinct_senders_and_spread_receivers() {
        let flows = Incast { fan_in: 5, receivers: 2, bytes: 9, seed: 3 }.flows(16).unwrap();
        assert_eq!(flows.len(), 10);
        for (half, receiver) in flows.chunks(5).zip([0, 8]) {
            let mut from: Vec<u32> = half.iter().map(|f| f.src_rank).collect();
            from.sort_unstable();
            from.dedup();
            assert_eq!(from.len(), 5);
            assert!(half.iter().all(|f| f.dst_rank == receiver && f.src_rank != receiver));
        }
        let all = Incast { fan_in: 0, receivers: 1, bytes: 9, seed: 3 }.flows(4).unwrap();
        assert_eq!(pairs(&all), [(1, 0), (2, 0), (3, 0)]);
    }

    #[test]
    fn ring_and_all_to_all_pair_as_said() {
        assert_eq!(pairs(&Ring { stride: 3, bytes: 1 }.flows(4).unwrap()), [(0, 3), (1, 0), (2, 1), (3, 2)]);
        let a2a = AllToAll { bytes: 1 }.flows(3).unwrap();
        assert_eq!(pairs(&a2a), [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1)]);
        assert_eq!(a2a[5].id, 5);
    }

    #[test]
    fn poisson_offers_its_load() {
        let cdf = Cdf::named("FbHdp").unwrap();
        let p = Poisson { load: 0.5, link_bps: 100_000_000_000, duration_ps: 10_000_000_000, cdf, seed: 1 };
        let flows = p.flows(64).unwrap();
        let bits: u64 = flows.iter().map(|f| f.bytes * 8).sum();
        let load = bits as f64 / (64.0 * 1e11 * 1e-2);
        assert!((load - 0.5).abs() < 0.05, "{load}");
        assert!(flows.is_sorted_by_key(|f| f.start_ps) && flows.iter().all(|f| f.src_rank != f.dst_rank));
        assert_eq!(p.flows(64).unwrap(), flows);
        assert_ne!(Poisson { seed: 2, ..p }.flows(64).unwrap(), flows);
        // The first flow is pinned, since it must be the same on every machine.
        let f = &flows[0];
        insta::assert_debug_snapshot!((flows.len(), f.src_rank, f.dst_rank, f.bytes, f.start_ps));
    }

    #[test]
    fn impossible_patterns_say_what_would_do() {
        let cdf = Cdf::named("WebSearch").unwrap();
        let poisson = |load, duration_ps| {
            Poisson { load, link_bps: 1_000_000_000, duration_ps, cdf: cdf.clone(), seed: 1 }.flows(4)
        };
        let errors = [
            Ring { stride: 8, bytes: 1 }.flows(4),
            Ring { stride: 1, bytes: 1 }.flows(1),
            Incast { fan_in: 4, receivers: 1, bytes: 1, seed: 1 }.flows(4),
            Incast { fan_in: 1, receivers: 0, bytes: 1, seed: 1 }.flows(4),
            Permutation { bytes: 0, seed: 1 }.flows(4),
            AllToAll { bytes: 1 }.flows(100_000),
            poisson(0.0, 1000),
            poisson(f64::NAN, 1000),
            poisson(0.5, 0),
            poisson(0.5, 1000),
            poisson(1.0, 1_000_000 * PS_PER_S),
        ];
        let errors: Vec<String> = errors.into_iter().map(|e| e.unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"));
    }
}
