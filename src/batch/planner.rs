//! What collectives become on an experiment's cluster: which algorithm, channels and chunks, or how long they take where they are analytical.
//!
//! Layer: batch. Puts configuration, topology and `collective` together; knows no tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::collective::{Algorithm, Env, Op, Options, Placement, Protocol, Schedule, Shape, System, build, choose, cost_with_ps};
use crate::spec;
use crate::workload::lower::{Asked, Plan, Planner};
use crate::workload::program::Dim;

/// Plans collectives by what `[base.workload]` says, NCCL's model where it says nothing.
pub struct ClusterPlanner<'a> {
    pub communication: &'a spec::Communication,
    pub system: System,
    /// NCCL's variables, `workload.protocol` among them.
    pub variables: BTreeMap<String, String>,
    /// Server of each rank.
    pub servers: &'a [u32],
    /// What stays inside a server takes a calibrated time.
    pub intra_analytic: bool,
    /// Plans so far: a training iteration repeats a few collectives thousands of times.
    pub known: HashMap<Key, Plan>,
}

/// What decides a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    op: Op,
    bytes: u64,
    dim: Dim,
    algorithm: Option<Algorithm>,
    shape: Vec<(u32, u32)>,
    shares: Option<Vec<u64>>,
}

impl Planner for ClusterPlanner<'_> {
    fn plan(&mut self, asked: &Asked) -> Result<Plan, String> {
        let key = Key {
            op: asked.op,
            bytes: asked.bytes,
            dim: asked.dim,
            algorithm: asked.algorithm,
            shape: self.shape(asked.members),
            shares: asked.shares.map(<[u64]>::to_vec),
        };
        if let Some(plan) = self.known.get(&key) {
            return Ok(plan.clone());
        }
        let plan = self.decide(asked, &key.shape)?;
        self.known.insert(key, plan.clone());
        Ok(plan)
    }
}

impl ClusterPlanner<'_> {
    /// Members' servers, numbered in order of appearance, and places among the server's ranks.
    fn shape(&self, members: &[u32]) -> Vec<(u32, u32)> {
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let first_of = |server: u32| self.servers.partition_point(|&s| s < server) as u32;
        members
            .iter()
            .map(|&rank| {
                let server = self.servers[rank as usize];
                let n = numbers.len() as u32;
                (*numbers.entry(server).or_insert(n), rank - first_of(server))
            })
            .collect()
    }

    fn decide(&self, asked: &Asked, shape: &[(u32, u32)]) -> Result<Plan, String> {
        let at = self.placement(shape);
        let wanted = asked.algorithm.unwrap_or_else(|| self.algorithm());
        let env = self.env(wanted)?;
        let choice = choose(asked.op, asked.bytes, &at, &self.system, &env);
        let algorithm = match wanted {
            Algorithm::Auto => choice.algorithm,
            Algorithm::Direct if self.communication.pxn && asked.op == Op::AllToAll && at.nodes() > 1 && at.ranks_per_node > 1 => Algorithm::Hierarchical,
            fixed => fixed,
        };
        let inside = at.nodes() == 1 && self.intra_analytic;
        let in_switches = matches!(algorithm, Algorithm::Nvls | Algorithm::InNetwork);
        if inside || in_switches || self.analytic(asked.dim) {
            let ps = cost_with_ps(asked.op, algorithm, choice.protocol, asked.bytes, &at, &self.system, &env);
            return Ok(Plan::Analytic { ps: ps.max(1) });
        }
        let c = self.communication;
        let options = Options {
            channels: c.channels.unwrap_or(choice.channels).min(u32::from(u16::MAX)) as u16,
            chunk_bytes: c.chunk_bytes.unwrap_or(choice.chunk_bytes),
            root: 0,
            shares: asked.shares,
        };
        let shape = Shape { members: shape.to_vec() };
        let schedule: Schedule = build(asked.op, algorithm, asked.bytes, &shape, &options).map_err(|e| e.to_string())?;
        let wire = match choice.protocol {
            Protocol::Ll => (2, 1),
            Protocol::Ll128 => (16, 15),
            Protocol::Simple => (1, 1),
        };
        Ok(Plan::Transfers { schedule: Arc::new(schedule), wire, overhead_ps: c.start_overhead_ps + c.work_queue_latency_ps })
    }

    fn algorithm(&self) -> Algorithm {
        match self.communication.algorithm {
            spec::Algorithm::Auto => Algorithm::Auto,
            spec::Algorithm::Ring => Algorithm::Ring,
            spec::Algorithm::Tree => Algorithm::Tree,
            spec::Algorithm::HalvingDoubling => Algorithm::HalvingDoubling,
            spec::Algorithm::Direct => Algorithm::Direct,
            spec::Algorithm::Hierarchical => Algorithm::Hierarchical,
            spec::Algorithm::Nvls => Algorithm::Nvls,
            spec::Algorithm::InNetwork => Algorithm::InNetwork,
        }
    }

    /// NCCL's environment, its choice held to an algorithm that it knows.
    fn env(&self, wanted: Algorithm) -> Result<Env, String> {
        let mut variables = self.variables.clone();
        let name = match wanted {
            Algorithm::Ring => Some("Ring"),
            Algorithm::Tree => Some("Tree"),
            Algorithm::Nvls => Some("NVLS"),
            Algorithm::InNetwork => Some("CollnetDirect"),
            _ => None,
        };
        if let Some(name) = name {
            variables.insert("NCCL_ALGO".to_string(), name.to_string());
        }
        Env::parse(&variables).map_err(|e| e.to_string())
    }

    /// Where a group's members are, for the cost model: groups like it are at work on the rest of its servers.
    fn placement(&self, shape: &[(u32, u32)]) -> Placement {
        let mut of: HashMap<u32, u32> = HashMap::new();
        for &(server, _) in shape {
            *of.entry(server).or_default() += 1;
        }
        let ranks_per_node = of.values().copied().max().unwrap_or(1);
        Placement { ranks: shape.len() as u32, ranks_per_node, sharing: (self.system.gpus_per_server / ranks_per_node).max(1) }
    }

    fn analytic(&self, dim: Dim) -> bool {
        let a = &self.communication.analytic;
        match dim {
            Dim::Tp => a.tp,
            Dim::Pp => a.pp,
            Dim::Dp => a.dp,
            Dim::Ep => a.ep,
            Dim::Cp => a.cp,
            Dim::Other => a.other,
        }
    }
}
