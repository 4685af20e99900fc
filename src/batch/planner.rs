//! What collectives become on an experiment's cluster: which algorithm, channels and chunks, or how long they take where they are analytical.
//!
//! Layer: batch. Puts configuration, topology and `collective` together; knows no tables.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::plan_cache::{self, FitKey, FittedSchedule, PlanKey};
use crate::collective::{
    Algorithm, Choice, CollectiveOp, CollectiveSystem, Communicator, Env, EnvError, EqualSteps, IdleMachine,
    InsideLink, MemberPlacement, Overheads, Protocol, Schedule, ScheduleError, ScheduleOptions, Shape, analytic_ps,
    build, chunk_rounds, latencies,
};
use crate::spec;
use crate::workload::lower::{Asked, CollectivePlan, Planner};
use crate::workload::program::Dim;

/// NCCL's settings: as given, and held to one of the algorithms that NCCL knows by name.
#[derive(Debug)]
pub(super) struct Environments([Env; HELD.len() + 1]);

/// Algorithms that NCCL_ALGO can hold its choice to.
const HELD: [(Algorithm, &str); 4] = [
    (Algorithm::Ring, "Ring"),
    (Algorithm::Tree, "Tree"),
    (Algorithm::Nvls, "NVLS"),
    (Algorithm::InNetwork, "CollnetDirect"),
];

/// Payload of a message of NVLS between servers: 1 MiB, a slice of the ring with Simple. Our choice: NCCL's own 64 and 128 KiB are for the switches inside.
const NVLS_CHUNK: u64 = 1 << 20;

impl Environments {
    /// From NCCL's variables, `workload.protocol` and `workload.channels` among them.
    ///
    /// # Errors
    /// A variable that is not known or has a value that it cannot have.
    pub(super) fn parse(variables: &BTreeMap<String, String>) -> Result<Environments, EnvError> {
        let held = |name: Option<&str>| {
            let mut variables = variables.clone();
            variables.extend(name.map(|n| ("NCCL_ALGO".to_string(), n.to_string())));
            Env::parse(&variables)
        };
        Ok(Environments([
            held(None)?,
            held(Some(HELD[0].1))?,
            held(Some(HELD[1].1))?,
            held(Some(HELD[2].1))?,
            held(Some(HELD[3].1))?,
        ]))
    }

    /// As given.
    pub(super) fn open(&self) -> &Env {
        &self.0[0]
    }

    /// Held to one of the algorithms that NCCL knows by name; as given where it does not know it.
    pub(super) fn held_to(&self, algorithm: spec::AlgorithmChoice) -> &Env {
        &self.0[Self::index(general(algorithm))]
    }

    fn index(algorithm: Algorithm) -> usize {
        HELD.iter().position(|(a, _)| *a == algorithm).map_or(0, |i| i + 1)
    }
}

/// Plans collectives by what `[base.workload]` says, NCCL's model where it says nothing.
pub(super) struct ClusterPlanner<'a> {
    communication: &'a spec::Communication,
    system: &'a CollectiveSystem,
    environments: &'a Environments,
    /// Server of each rank, and its place there.
    places: Vec<(u32, u32)>,
    network: &'a CollectiveNetwork<'a>,
    /// An algorithm that an operation does not know is an error, not replaced: the operation is all there is.
    strict: bool,
    /// Collectives whose steps are alike are one flow.
    join: bool,
    /// Whether any collective became one flow a pair.
    joined: bool,
    /// Whether any collective takes what Moye's equations say.
    by_chunks: bool,
    /// Whether the size of packets decided what any collective costs.
    heeds_payload: bool,
    /// Shape of each group that was asked for, by its number in `shapes`.
    of_group: HashMap<u32, u32>,
    shapes: Vec<(Shape, MemberPlacement)>,
    communicators: HashMap<(MemberPlacement, usize), Communicator<'a>>,
    /// Plans so far: a training iteration repeats a few collectives thousands of times.
    known: HashMap<Key, CollectivePlan>,
    longest: Option<LongestCollective>,
    notes: BTreeSet<String>,
}

/// How the collective that takes longest is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestCollective {
    pub algorithm: Algorithm,
    pub protocol: Protocol,
    /// 0: switches reduce, or it has a closed form of its own.
    pub channels: u32,
    /// By closed form.
    alone_ps: u64,
}

/// What carries the transfers of collectives.
pub(super) struct CollectiveNetwork<'a> {
    /// NIC of each rank.
    pub nics: &'a [u32],
    /// Between GPUs of a server; `None`: they use their NICs.
    pub inside: Option<InsideLink>,
    /// What stays inside a server takes a calibrated time.
    pub inside_analytic: bool,
    /// Payload over wire bytes of a full packet: numerator, denominator.
    pub payload_share: (u64, u64),
    pub ports: u32,
}

/// What decides a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    op: CollectiveOp,
    bytes: u64,
    dim: Dim,
    algorithm: Option<Algorithm>,
    shape: u32,
    shares: Option<Vec<u64>>,
}

impl Planner for ClusterPlanner<'_> {
    fn plan(&mut self, asked: &Asked) -> Result<CollectivePlan, String> {
        let shape = match self.of_group.get(&asked.group) {
            Some(shape) => *shape,
            None => self.shape(asked.group, asked.members),
        };
        let shares = asked.shares.map(<[u64]>::to_vec);
        let key = Key { op: asked.op, bytes: asked.bytes, dim: asked.dim, algorithm: asked.algorithm, shape, shares };
        if let Some(plan) = self.known.get(&key) {
            return Ok(plan.clone());
        }
        let plan = self.decide(asked, shape as usize)?;
        self.known.insert(key, plan.clone());
        Ok(plan)
    }
}

impl<'a> ClusterPlanner<'a> {
    /// `servers`: the server of each rank. `strict`: see the field.
    pub(super) fn new(
        communication: &'a spec::Communication,
        system: &'a CollectiveSystem,
        environments: &'a Environments,
        servers: &[u32],
        network: &'a CollectiveNetwork<'a>,
        strict: bool,
        join: bool,
    ) -> ClusterPlanner<'a> {
        let mut members: HashMap<u32, u32> = HashMap::new();
        let place = |&server: &u32| {
            let n = members.entry(server).or_default();
            *n += 1;
            (server, *n - 1)
        };
        ClusterPlanner {
            communication,
            system,
            environments,
            places: servers.iter().map(place).collect(),
            network,
            strict,
            join,
            of_group: HashMap::new(),
            shapes: Vec::new(),
            communicators: HashMap::new(),
            known: HashMap::new(),
            longest: None,
            notes: BTreeSet::new(),
            joined: false,
            by_chunks: false,
            heeds_payload: false,
        }
    }

    /// How the collective is carried out that takes longest alone; of equals the first.
    pub(super) fn longest(&self) -> Option<LongestCollective> {
        self.longest
    }

    /// Whether plans would be others if packets were of another size.
    pub(super) fn heeds_payload(&self) -> bool {
        self.heeds_payload
    }

    /// What the user should know about the choices made.
    pub(super) fn notes(mut self) -> impl Iterator<Item = String> {
        if self.join && !self.joined {
            self.notes.insert("fidelity.join joins nothing here: no collective over rings and no all-to-all sent directly crosses the network".to_string());
        }
        if self.system.by_chunks && !self.by_chunks {
            self.notes.insert("workload.analytic_cost = \"chunks\" changes nothing here: its equations are of all-reduce, all-gather and reduce-scatter over rings and of all-reduce over trees, where workload.analytic has them analytic".to_string());
        }
        self.notes.into_iter()
    }

    /// The number of a group's shape: members' servers, numbered in order of appearance, and places there.
    fn shape(&mut self, group: u32, members: &[u32]) -> u32 {
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut each: Vec<u32> = Vec::new();
        let member = |&rank: &u32| {
            let (server, place) = self.places[rank as usize];
            let n = *numbers.entry(server).or_insert_with(|| {
                each.push(0);
                each.len() as u32 - 1
            });
            each[n as usize] += 1;
            (n, place)
        };
        let shape = Shape { members: members.iter().map(member).collect() };
        let known = self.shapes.iter().position(|(s, _)| *s == shape);
        let number = known.unwrap_or(self.shapes.len()) as u32;
        if known.is_none() {
            let ranks_per_node = each.iter().copied().max().unwrap_or(1);
            // Groups like this one are at work on the rest of its servers.
            let sharing = (self.system.gpus_per_server / ranks_per_node).max(1);
            self.shapes.push((shape, MemberPlacement { ranks: members.len() as u32, ranks_per_node, sharing }));
        }
        self.of_group.insert(group, number);
        number
    }

    fn decide(&mut self, asked: &Asked, shape: usize) -> Result<CollectivePlan, String> {
        let c = self.communication;
        let wanted = self.wanted(asked);
        let analytic = is_analytic(&self.communication.analytic, asked.dim);
        let at = self.shapes[shape].1;
        let (system, env) = (self.system, Environments::index(wanted));
        let environment = &self.environments.0[env];
        let communicator =
            self.communicators.entry((at, env)).or_insert_with(|| Communicator::new(&at, system, environment));
        let choice = communicator.choose(asked.op, asked.bytes);
        let algorithm = match wanted {
            // Relays cost NVLink and save the network's upper tiers; NCCL's choice knows its variables, not `workload.pxn`.
            Algorithm::Auto if choice.algorithm == Algorithm::Hierarchical && !c.pxn => Algorithm::Direct,
            Algorithm::Auto => choice.algorithm,
            fixed => fixed,
        };
        let inside = at.nodes() == 1 && self.network.inside_analytic;
        if matches!(wanted, Algorithm::Nvls | Algorithm::InNetwork) && !exists(asked.op, wanted) {
            return Err(format!(
                "{:?} by {wanted:?} does not exist; switches reduce only for all-reduce, all-gather, reduce-scatter and barrier",
                asked.op
            ));
        }
        if wanted == Algorithm::Nvls && !system.nvls {
            return Err("algorithm nvls needs NVSwitches that reduce: H100 or later GPUs joined by NVSwitch; this cluster has none (cluster.gpu, cluster.server)".to_string());
        }
        let in_switches = match algorithm {
            Algorithm::InNetwork => true,
            Algorithm::Nvls => at.nodes() == 1,
            _ => false,
        };
        let alone_ps = communicator.cost_with_ps(asked.op, algorithm, choice.protocol, asked.bytes);
        let channels = if in_switches { 0 } else { c.channels.unwrap_or(choice.channels) };
        if self.longest.is_none_or(|l| l.alone_ps < alone_ps) {
            self.longest = Some(LongestCollective { algorithm, protocol: choice.protocol, channels, alone_ps });
        }
        let chunk = if algorithm == Algorithm::Nvls { choice.chunk_bytes.max(NVLS_CHUNK) } else { choice.chunk_bytes };
        if inside || in_switches || analytic {
            let cut = Choice { channels, chunk_bytes: c.chunk_bytes.unwrap_or(chunk), ..choice };
            let by_chunks = chunk_rounds(communicator, asked.op, algorithm, &cut, asked.bytes).is_some();
            self.by_chunks |= by_chunks && system.by_chunks;
            let ps = analytic_ps(communicator, asked.op, algorithm, &cut, asked.bytes);
            return Ok(CollectivePlan::Analytic { ps: ps.max(1) });
        }
        let options = ScheduleOptions {
            channels: c.channels.unwrap_or(choice.channels).min(u32::from(u16::MAX)) as u16,
            chunk_bytes: c.chunk_bytes.unwrap_or(chunk),
            root: 0,
            shares: asked.shares,
            own_links: self.network.inside.is_some_and(|link| link.by_pair),
        };
        let kind = &self.shapes[shape].0;
        let message_ps = c.start_overhead_ps + c.work_queue_latency_ps;
        let as_one = || EqualSteps::of(asked.op, algorithm, asked.bytes, kind, &options, choice.protocol);
        if let Some(steps) = (self.join && at.nodes() > 1).then(as_one).flatten() {
            // What software costs is part of the time that measured runs take.
            let alone = MemberPlacement { sharing: 1, ..at };
            let least_ps = match c.measured_overhead {
                true => Communicator::new(&alone, system, environment).cost_with_ps(
                    asked.op,
                    algorithm,
                    choice.protocol,
                    asked.bytes,
                ),
                false => 0,
            };
            let overheads = Overheads::each(message_ps);
            self.joined = true;
            return Ok(CollectivePlan::OneFlow { steps: Arc::new(steps), overheads, least_ps });
        }
        let build = || match algorithm {
            // NVLink SHARP between servers: what switches reduce inside goes by rail outside. Unequal servers have no rails, there NCCL has rings.
            Algorithm::Nvls => build(asked.op, Algorithm::Hierarchical, asked.bytes, kind, &options)
                .or_else(|_| build(asked.op, Algorithm::Ring, asked.bytes, kind, &options)),
            _ => build(asked.op, algorithm, asked.bytes, kind, &options),
        };
        let key = PlanKey::new(asked.op, algorithm, asked.bytes, kind, &options);
        let plan = match c.measured_overhead {
            true => self.measured(asked, shape, environment, key, choice, build),
            false => plan_cache::fitted(key, || Ok((build()?, Overheads::default()))),
        };
        let (schedule, overheads) = plan.map_err(|e: ScheduleError| e.to_string())?;
        self.heeds_payload |= c.measured_overhead;
        if algorithm == Algorithm::Nvls {
            self.notes.insert("NVLS across servers is simulated as a hierarchical collective: inside servers by NVLink, between them rail by rail".to_string());
        }
        Ok(CollectivePlan::Transfers { schedule, protocol: choice.protocol, overheads: overheads.plus(message_ps) })
    }

    /// A schedule, and what software must cost its messages so that alone and on an idle network it takes what the closed form says.
    fn measured<E>(
        &self,
        asked: &Asked,
        shape: usize,
        environment: &Env,
        key: PlanKey,
        choice: Choice,
        build: impl FnOnce() -> Result<Schedule, E>,
    ) -> Result<FittedSchedule, E> {
        let (c, system) = (self.communication, self.system);
        let (shape, at) = &self.shapes[shape];
        let alone = MemberPlacement { sharing: 1, ..*at };
        let communicator = Communicator::new(&alone, system, environment);
        let algorithm = key.algorithm;
        let nics: Vec<u32> = asked.members.iter().map(|&rank| self.network.nics[rank as usize]).collect();
        let (payload, wire) = self.network.payload_share;
        let machine = IdleMachine {
            shape,
            nics: &nics,
            inside: self.network.inside,
            net_bps: (u128::from(system.nic_bps) * u128::from(payload) / u128::from(wire.max(1))) as u64,
            ports: self.network.ports,
            net_latency_ps: system.net_extra_ps,
            rendezvous_ps: c.rendezvous_ps,
            message_ps: c.start_overhead_ps + c.work_queue_latency_ps,
        };
        let latencies = latencies(&communicator, algorithm, choice.protocol);
        let target = communicator.cost_with_ps(asked.op, algorithm, choice.protocol, asked.bytes);
        let key = PlanKey { fit: Some(FitKey::new(&machine, choice.protocol, latencies, target)), ..key };
        plan_cache::fitted(key, || {
            let schedule = build()?;
            let overheads = machine.fitted(&schedule, choice.protocol, &latencies, target);
            Ok((schedule, overheads))
        })
    }

    /// The algorithm asked for: the operation's own, else `workload.algorithm` where the operation knows it.
    fn wanted(&mut self, asked: &Asked) -> Algorithm {
        if let Some(own) = asked.algorithm {
            return own;
        }
        let general = general(self.communication.algorithm);
        let here = general != Algorithm::Nvls || self.system.nvls;
        if self.strict || (here && exists(asked.op, general)) {
            return general;
        }
        self.notes.insert(format!(
            "workload.algorithm: {:?} by {general:?} does not exist here; it is carried out as NCCL would",
            asked.op
        ));
        Algorithm::Auto
    }
}

/// Whether communication of a dimension is analytical.
pub(super) fn is_analytic(a: &spec::Analytic, dim: Dim) -> bool {
    match dim {
        Dim::Tp => a.tp,
        Dim::Pp => a.pp,
        Dim::Dp => a.dp,
        Dim::Ep => a.ep,
        Dim::Cp => a.cp,
        Dim::Other => a.other,
    }
}

/// `workload.algorithm` in `collective`'s words.
fn general(algorithm: spec::AlgorithmChoice) -> Algorithm {
    match algorithm {
        spec::AlgorithmChoice::Auto => Algorithm::Auto,
        spec::AlgorithmChoice::Ring => Algorithm::Ring,
        spec::AlgorithmChoice::Tree => Algorithm::Tree,
        spec::AlgorithmChoice::HalvingDoubling => Algorithm::HalvingDoubling,
        spec::AlgorithmChoice::Direct => Algorithm::Direct,
        spec::AlgorithmChoice::Hierarchical => Algorithm::Hierarchical,
        spec::AlgorithmChoice::Nvls => Algorithm::Nvls,
        spec::AlgorithmChoice::InNetwork => Algorithm::InNetwork,
    }
}

/// Whether an operation can be carried out by an algorithm.
fn exists(op: CollectiveOp, algorithm: Algorithm) -> bool {
    match algorithm {
        Algorithm::Auto | Algorithm::Direct | Algorithm::Hierarchical => true,
        Algorithm::Ring => op != CollectiveOp::AllToAll,
        Algorithm::Tree => matches!(
            op,
            CollectiveOp::AllReduce | CollectiveOp::Barrier | CollectiveOp::Broadcast | CollectiveOp::Reduce
        ),
        Algorithm::HalvingDoubling | Algorithm::Nvls | Algorithm::InNetwork => {
            matches!(
                op,
                CollectiveOp::AllReduce | CollectiveOp::Barrier | CollectiveOp::AllGather | CollectiveOp::ReduceScatter
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exists_is_what_can_be_built() {
        let shape = Shape::servers(2, 2);
        let ops = [
            CollectiveOp::AllReduce,
            CollectiveOp::AllGather,
            CollectiveOp::ReduceScatter,
            CollectiveOp::AllToAll,
            CollectiveOp::Broadcast,
            CollectiveOp::Reduce,
            CollectiveOp::Barrier,
        ];
        for op in ops {
            for a in [
                Algorithm::Ring,
                Algorithm::Tree,
                Algorithm::HalvingDoubling,
                Algorithm::Direct,
                Algorithm::Hierarchical,
            ] {
                assert_eq!(
                    build(op, a, 4096, &shape, &ScheduleOptions::default()).is_ok(),
                    exists(op, a),
                    "{op:?} by {a:?}"
                );
            }
        }
    }
}
