//! The network that jobs share, the choice of paths over it, and the settings of simulated iterations.
//!
//! Layer: cluster/iterations. Plain data.

use std::sync::Arc;

use hyperfold_config::spec::{Config, IterationKeys, Steady};
use hyperfold_network::routing::{PayloadClock, RoutingPolicy};
use hyperfold_network::topology::{ArcIdx, Link, Network, Node, NodeKind};
use hyperfold_network::transport::Transport;

use super::super::error::ClusterError;
use hyperfold_host::{ClassProgram, PrepareError, named_routing_policy};

/// Number of parts in which a flow is divided when links are shared. A sprayed flow puts some of the parts on each of its paths.
pub(super) const WHOLE: u32 = 1 << 16;

/// All inputs of simulated iterations except the jobs.
#[derive(Clone, Debug)]
pub(crate) struct IterationFabric {
    pub net: Network,
    /// Ranks of each server, ascending.
    pub ranks: Vec<Vec<u32>>,
    /// Rate in bps and delay in ps of the first link of each node.
    nics: Vec<(u64, u64)>,
    pub policy: Arc<dyn RoutingPolicy>,
    /// Number of links of a NIC.
    pub lanes: u32,
    pub transport: Transport,
    pub keys: IterationKeys,
    pub folding: Option<bool>,
    pub steady: Option<Steady>,
    pub fresh_qp: bool,
    /// Programs of the job classes, by class.
    pub classes: Vec<ClassProgram>,
    /// Smallest delay of the network's links, in ps.
    pub min_delay_ps: u64,
}

impl IterationFabric {
    /// Makes the fabric of a configuration that simulates iterations. `min_gpus` is, for each class, the smallest number of GPUs with which its jobs may go on.
    ///
    /// # Errors
    /// The transport's keys do not go with the network, or a class of jobs cannot be.
    pub(crate) fn new(
        config: &Config,
        keys: &IterationKeys,
        net: Network,
        min_gpus: &[u32],
    ) -> Result<IterationFabric, ClusterError> {
        let mut ranks: Vec<Vec<u32>> = Vec::new();
        for (rank, &host) in (0..).zip(&net.ranks) {
            let server = net.nodes[host as usize].server as usize;
            if ranks.len() <= server {
                ranks.resize(server + 1, Vec::new());
            }
            ranks[server].push(rank);
        }
        let policy = named_routing_policy(config).expect("job mode takes no routes of a file").into();
        let mut nics = vec![(0, 0); net.nodes.len()];
        for link in net.links.iter().filter(|l| net.is_packet_link(l)).rev() {
            (nics[link.a as usize], nics[link.b as usize]) =
                ((link.rate_bps, link.delay_ps), (link.rate_bps, link.delay_ps));
        }
        let first = net.ranks.iter().copied().min().unwrap_or(0);
        let transport = config.transport(nics[first as usize].0).map_err(PrepareError::Config)?;
        let min_delay_ps = net.links.iter().filter(|l| net.is_packet_link(l)).map(|l| l.delay_ps).min().unwrap_or(1);
        let tables = config.jobs.iter().flat_map(|jobs| &jobs.jobs).zip(min_gpus);
        let classes =
            tables.map(|(job, &min_gpus)| ClassProgram::new(config, job, min_gpus)).collect::<Result<_, _>>()?;
        // The network of a case need not have all tiers.
        let transport = Transport { tier_buffers: None, ..transport };
        Ok(IterationFabric {
            ranks,
            nics,
            policy,
            lanes: config.cluster.nic_ports.max(1),
            transport,
            keys: keys.clone(),
            folding: config.folding(),
            steady: config.steady().map(|steady| Steady { audit_ppm: 0, ..steady }),
            fresh_qp: config.fresh_qp(),
            classes,
            min_delay_ps,
            net,
        })
    }

    /// Payload of a data packet, the clock of the network and its kind of switches, for times on links.
    pub(super) fn packet(&self) -> PayloadClock {
        let tr = &self.transport;
        PayloadClock { payload: tr.payload, cut_through: tr.cut_through_bytes, clock_ps: tr.clock_ps }
    }

    /// Bytes of acknowledgements over bytes of the packets that they acknowledge, in parts of [`WHOLE`].
    pub(super) fn ack_parts(&self) -> u64 {
        let tr = &self.transport;
        let answered = tr.ack_interval.div_ceil(u64::from(tr.payload)).max(1);
        let wire = u64::from(tr.payload + tr.data_overhead) * answered;
        (u64::from(tr.ack_bytes) * u64::from(WHOLE)).div_ceil(wire)
    }

    /// A network of `servers` servers like the first server of a job, under one switch. The duration of a job is measured there. Returns the ranks of each
    /// server, in the order of `first`.
    pub(super) fn one_rack(&self, first: &[u32], servers: u32) -> (Network, Vec<Vec<u32>>) {
        let mut hosts: Vec<u32> = first.iter().map(|&rank| self.net.ranks[rank as usize]).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let links: Vec<(u64, u64)> = hosts.iter().map(|&host| self.nics[host as usize]).collect();
        let mut net = Network { nvlink: self.net.nvlink, ..Network::default() };
        let switch = servers * hosts.len() as u32;
        let mut ranks = Vec::new();
        for server in 0..servers {
            let begin = net.nodes.len() as u32;
            for &(rate_bps, delay_ps) in &links {
                let node = net.nodes.len() as u32;
                net.nodes.push(Node { kind: NodeKind::Host, id: node, server });
                for _ in 0..self.lanes {
                    net.links.push(Link { a: node, b: switch, rate_bps, delay_ps });
                }
            }
            let mut own = Vec::new();
            for &rank in first {
                let nic = hosts.partition_point(|h| *h < self.net.ranks[rank as usize]) as u32;
                own.push(net.ranks.len() as u32);
                net.ranks.push(begin + nic);
            }
            ranks.push(own);
        }
        net.nodes.push(Node { kind: NodeKind::Switch, id: switch, server: u32::MAX });
        (net, ranks)
    }
}

/// Rate of an arc, in bps.
pub(super) fn capacity(net: &Network, arc: ArcIdx) -> u64 {
    net.arc_link(arc).rate_bps
}
