//! The k-ary fat-tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches.
//!
//! Layer: topology. No oversubscription; use Clos for that.

use super::builder::FabricBuilder;
use super::fabric::{Fabric, bad};
use crate::topology::{Network, TopologyError};

/// Parameters of a fat-tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FatTree {
    /// Ports of a switch, an even number. 0: the smallest that holds the hosts.
    pub k: u32,
}

/// The largest k. 65,536 hosts need 64; 256 holds four million.
const MAX_K: u32 = 256;

impl FatTree {
    /// Builds the network. Hosts fill edge switches and pods in order. Edge switches and pods without hosts are left out, since no shortest path could cross
    /// them. A single pod has no core switches, and a single edge switch no aggregation switches.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let n_hosts = u64::from(fabric.n_hosts());
        let capacity = |k: u32| u64::from(k).pow(3) / 4;
        let k = match self.k {
            0 => FatTree::smallest(n_hosts),
            k => k,
        };
        if k % 2 == 1 || k > MAX_K {
            return Err(bad("topology.k", k, format!("it must be an even number from 2 to {MAX_K}")));
        }
        if capacity(k) < n_hosts {
            let fits = FatTree::smallest(n_hosts);
            let problem = format!(
                "a fat-tree of k = {k} holds {} hosts, {n_hosts} are needed; k = {fits} holds {}",
                capacity(k),
                capacity(fits)
            );
            return Err(bad("topology.k", k, problem));
        }
        let half = k / 2;
        let hosts = fabric.n_hosts();
        let n_edges = hosts.div_ceil(half);
        let n_pods = n_edges.div_ceil(half);
        let n_aggs = if n_edges > 1 { n_pods * half } else { 0 };
        let n_cores = if n_pods > 1 { half * half } else { 0 };

        let aggs_up = if n_pods > 1 { u64::from(n_aggs * half) } else { 0 };
        let edges_up = if n_edges > 1 { u64::from(n_edges * half) } else { 0 };
        let mut b = FabricBuilder::new(
            fabric,
            u64::from(n_edges + n_aggs + n_cores),
            fabric.n_host_links() + edges_up + aggs_up,
        )?;
        let (edge_0, agg_0, core_0) = (hosts, hosts + n_edges, hosts + n_edges + n_aggs);
        for h in 0..hosts {
            b.host_link(h, edge_0 + h / half);
        }
        if n_edges > 1 {
            for e in 0..n_edges {
                for j in 0..half {
                    b.uplink(edge_0 + e, agg_0 + e / half * half + j);
                }
            }
        }
        if n_pods > 1 {
            for a in 0..n_aggs {
                for j in 0..half {
                    b.core_link(agg_0 + a, core_0 + a % half * half + j);
                }
            }
        }
        b.build()
    }

    /// The smallest even k that holds `n_hosts` hosts.
    fn smallest(n_hosts: u64) -> u32 {
        (2..=MAX_K).step_by(2).find(|&k| u64::from(k).pow(3) / 4 >= n_hosts).unwrap_or(MAX_K)
    }
}
