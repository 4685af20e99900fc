//! Storage traffic: ranks write to storage ranks, or read from them, all at once and repeatedly.
//!
//! Layer: workload. Checkpoints and training data as flows. A burst does not wait for the burst before.

use super::flow::Flow;
use super::flow_file::MAX_FLOWS;
use super::traffic::{announce_flows, check_bytes, check_ranks, flow};
use crate::workload::error::WorkloadError;

/// Parameters of storage traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageTraffic {
    /// Number of storage ranks, which are the last ranks. All others are clients.
    pub servers: u32,
    /// Bytes of a client in each burst.
    pub bytes: u64,
    /// Number of storage ranks that a client's bytes are spread over; 0 for all.
    pub stripes: u32,
    /// Whether data goes from storage to the clients.
    pub reads: bool,
    /// Time in ps from one burst to the next; 0 if there is one burst only.
    pub every_ps: u64,
    /// Bursts begin before this time in ps.
    pub duration_ps: u64,
}

impl StorageTraffic {
    /// Number of bursts.
    pub fn bursts(&self) -> u64 {
        if self.every_ps == 0 { 1 } else { self.duration_ps.div_ceil(self.every_ps).max(1) }
    }

    /// Number of storage ranks per client.
    fn spread(&self) -> u32 {
        if self.stripes == 0 { self.servers } else { self.stripes }
    }

    /// Number of flows on a cluster of `n_ranks` ranks.
    pub fn n_flows(&self, n_ranks: u64) -> u64 {
        let clients = n_ranks.saturating_sub(u64::from(self.servers));
        clients.saturating_mul(u64::from(self.spread())).saturating_mul(self.bursts())
    }

    /// Flows by burst, then by client, then by storage rank. Clients begin with different storage ranks, so that each of these has about as many flows.
    pub fn flows(&self, n_ranks: u32) -> Result<Vec<Flow>, WorkloadError> {
        check_ranks("storage", n_ranks)?;
        check_bytes(self.bytes)?;
        if self.servers == 0 || self.servers >= n_ranks {
            let problem = format!("of {n_ranks} ranks from 1 to {} store, the others are clients", n_ranks - 1);
            return Err(WorkloadError::parameter("storage_ranks", self.servers, problem));
        }
        if self.stripes > self.servers {
            let problem = format!("there are {} that store", self.servers);
            return Err(WorkloadError::parameter("stripes", self.stripes, problem));
        }
        let n = self.n_flows(n_ranks.into());
        if n > u64::from(MAX_FLOWS) {
            let problem = format!("{n} flows are more than the {MAX_FLOWS} that are supported");
            return Err(WorkloadError::parameter("every_us", self.every_ps / 1_000_000, problem));
        }
        announce_flows(n);
        let (clients, spread) = (n_ranks - self.servers, self.spread());
        let mut flows = Vec::with_capacity(n as usize);
        for burst in 0..self.bursts() {
            for client in 0..clients {
                for stripe in 0..spread {
                    let first = u64::from(client) * u64::from(spread);
                    let server = clients + ((first + u64::from(stripe)) % u64::from(self.servers)) as u32;
                    let more = u64::from(stripe) < self.bytes % u64::from(spread);
                    let bytes = (self.bytes / u64::from(spread) + u64::from(more)).max(1);
                    let (src, dst) = if self.reads { (server, client) } else { (client, server) };
                    let mut flow = flow(flows.len() as u32, src, dst, bytes);
                    flow.start_ps = burst * self.every_ps;
                    // Each burst of a pair has a queue pair of its own.
                    flow.sport = flow.sport.wrapping_add(burst as u16);
                    flows.push(flow);
                }
            }
        }
        Ok(flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORAGE: StorageTraffic =
        StorageTraffic { servers: 2, bytes: 7, stripes: 0, reads: false, every_ps: 10, duration_ps: 25 };

    #[test]
    fn all_bytes_of_each_burst_go_to_those_that_store() {
        let flows = STORAGE.flows(5).unwrap();
        assert_eq!((flows.len() as u64, STORAGE.n_flows(5)), (18, 18));
        for (burst, burst_flows) in (0..).zip(flows.chunks(6)) {
            assert!(burst_flows.iter().all(|f| f.start_ps == 10 * burst && f.src_rank < 3 && f.dst_rank >= 3));
            assert_eq!(burst_flows.iter().map(|f| f.bytes).sum::<u64>(), 21);
            // Each of the two clients has three flows.
            assert_eq!(burst_flows.iter().filter(|f| f.dst_rank == 3).count(), 3);
        }
        let read = StorageTraffic { reads: true, ..STORAGE }.flows(5).unwrap();
        let turned = |(a, b): (&Flow, &Flow)| (a.src_rank, a.dst_rank, a.bytes) == (b.dst_rank, b.src_rank, b.bytes);
        assert!(flows.iter().zip(&read).all(turned));
    }

    #[test]
    fn one_stripe_a_client_is_spread_over_the_servers() {
        let flows = StorageTraffic { stripes: 1, every_ps: 0, ..STORAGE }.flows(6).unwrap();
        assert_eq!(
            flows.iter().map(|f| (f.src_rank, f.dst_rank, f.bytes)).collect::<Vec<_>>(),
            [(0, 4, 7), (1, 5, 7), (2, 4, 7), (3, 5, 7)]
        );
    }

    #[test]
    fn what_cannot_be_says_what_would_do() {
        let says = |traffic: StorageTraffic, ranks, part: &str| {
            let why = traffic.flows(ranks).unwrap_err().to_string();
            assert!(why.contains(part), "{why}");
        };
        says(StorageTraffic { servers: 5, ..STORAGE }, 5, "of 5 ranks from 1 to 4 store");
        says(StorageTraffic { stripes: 3, ..STORAGE }, 5, "there are 2 that store");
        says(StorageTraffic { every_ps: 1, duration_ps: 1 << 40, ..STORAGE }, 5, "flows are more than");
    }
}
