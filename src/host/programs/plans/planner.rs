//! Plans the collectives of an experiment's cluster: algorithm, channels and chunks, or the time if they are analytical.
//!
//! Layer: host. Combines configuration, topology and `collective`; knows no tables.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::programs::plans::algorithms::{exists, general, has_switches, no_sum_by_switches};
use crate::programs::plans::group_switches::{GroupSwitches, group_switches};
use crate::programs::plans::plan_cache::{self, FitKey, FittedSchedule, PlanKey};
use hyperfold_config::spec;
use hyperfold_llm::collective::{
    Algorithm, Choice, CollectiveOp, CollectiveSystem, Communicator, Env, EnvError, EqualSteps, IdleMachine,
    InsideLink, MemberPlacement, Overheads, Protocol, Schedule, ScheduleError, ScheduleOptions, ServerInterconnect,
    Shape, SwitchDelays, analytic_ps, build, chunk_passes, latencies,
};
use hyperfold_llm::workload::lower::{Asked, CollectivePlan, Planner};
use hyperfold_llm::workload::program::Dim;
use hyperfold_network::topology::{ArcIdx, Network};

/// NCCL's settings: as given, and for each algorithm that NCCL knows by name, restricted to it.
#[derive(Debug)]
pub(crate) struct Environments([Env; HELD.len() + 1]);

/// Algorithms that NCCL_ALGO can restrict NCCL to.
const HELD: [(Algorithm, &str); 5] = [
    (Algorithm::Ring, "Ring"),
    (Algorithm::Tree, "Tree"),
    (Algorithm::Nvls, "NVLS"),
    (Algorithm::InNetwork, "CollnetDirect"),
    (Algorithm::CollnetChain, "CollnetChain"),
];

/// Payload of an NVLS message between servers: 1 MiB, a slice of the ring with Simple. Our choice: NCCL's own 64 and 128 KiB are for the switches inside
/// servers.
const NVLS_CHUNK: u64 = 1 << 20;

/// A collective of at most `SMALL_BYTES` that takes `SLOW_PS` or more, and `SLOW_FACTOR` times as long as by NCCL's choice, is worth a note. Our choice.
const SMALL_BYTES: u64 = 64 << 10;
const SLOW_PS: u64 = 1_000_000_000;
const SLOW_FACTOR: u64 = 10;

impl Environments {
    /// Parses NCCL's variables, with `workload.protocol` and `workload.channels` among them.
    ///
    /// # Errors
    /// A variable is unknown or has an impossible value.
    pub(crate) fn parse(variables: &BTreeMap<String, String>) -> Result<Environments, EnvError> {
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
            held(Some(HELD[4].1))?,
        ]))
    }

    /// Returns the settings as given.
    pub(crate) fn open(&self) -> &Env {
        &self.0[0]
    }

    /// Returns the settings restricted to an algorithm; as given if NCCL does not know it by name.
    pub(crate) fn held_to(&self, algorithm: spec::AlgorithmChoice) -> &Env {
        &self.0[Self::index(general(algorithm))]
    }

    fn index(algorithm: Algorithm) -> usize {
        HELD.iter().position(|(a, _)| *a == algorithm).map_or(0, |i| i + 1)
    }
}

/// Plans collectives by what `[base.workload]` sets, and by NCCL's model otherwise.
pub(crate) struct ClusterPlanner<'a> {
    communication: &'a spec::Communication,
    system: &'a CollectiveSystem,
    environments: &'a Environments,
    /// Server of each rank, and its index within the server.
    places: Vec<(u32, u32)>,
    network: &'a CollectiveNetwork<'a>,
    /// Whether an algorithm that an operation does not know is an error, instead of being replaced: for a benchmark of one operation.
    strict: bool,
    /// Whether collectives with equal steps become one flow.
    join: bool,
    /// Whether any collective became one flow per pair.
    joined: bool,
    /// Whether any collective takes the time of Moye's equations.
    by_chunks: bool,
    /// Whether the packet size affected the cost of any collective.
    depends_on_payload: bool,
    /// Shape of each group that was planned, as an index in `shapes`.
    shape_of_group: HashMap<u32, u32>,
    shapes: Vec<(Shape, MemberPlacement)>,
    communicators: HashMap<(MemberPlacement, usize), Communicator<'a>>,
    /// Plans so far: a training iteration repeats a few collectives thousands of times.
    known: HashMap<Key, CollectivePlan>,
    longest: Option<LongestCollective>,
    /// The small collective that loses most time by `workload.algorithm`, as (lost time in ps, note).
    slowed: Option<(u64, String)>,
    notes: BTreeSet<String>,
    /// Arcs out of each node, without those of failed links; made where switches reduce.
    working_arcs: OnceCell<Vec<Vec<ArcIdx>>>,
}

/// How the collective that takes longest is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestCollective {
    /// Algorithm by which it runs.
    pub algorithm: Algorithm,
    /// Protocol of NCCL by which it runs.
    pub protocol: Protocol,
    /// Channels; 0: switches reduce, or it has a closed form of its own.
    pub channels: u32,
    /// Time by closed form, ps.
    alone_ps: u64,
}

/// The network that carries the transfers of collectives.
pub(crate) struct CollectiveNetwork<'a> {
    /// NIC of each rank.
    pub nics: &'a [u32],
    /// Link between GPUs of a server; `None`: they use their NICs.
    pub inside: Option<InsideLink>,
    /// Whether transfers inside a server take a calibrated time.
    pub inside_analytic: bool,
    /// Payload over wire bytes of a full packet as (numerator, denominator).
    pub payload_share: (u64, u64),
    pub ports: u32,
    /// The switches and links, and the delays of messages to switches; `None`: switches reduce by closed form only.
    pub switches: Option<(&'a Network, SwitchDelays)>,
}

/// Everything that decides a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    op: CollectiveOp,
    bytes: u64,
    dim: Dim,
    algorithm: Option<Algorithm>,
    shape: u32,
    /// The group, where its switches decide.
    group: Option<u32>,
    shares: Option<Vec<u64>>,
}

impl Planner for ClusterPlanner<'_> {
    fn plan(&mut self, asked: &Asked) -> Result<CollectivePlan, String> {
        let shape = match self.shape_of_group.get(&asked.group) {
            Some(shape) => *shape,
            None => self.shape(asked.group, asked.members),
        };
        let shares = asked.shares.map(<[u64]>::to_vec);
        let group = self.network.switches.map(|_| asked.group);
        let Asked { op, bytes, dim, algorithm, .. } = *asked;
        let key = Key { op, bytes, dim, algorithm, shape, group, shares };
        if let Some(plan) = self.known.get(&key) {
            return Ok(plan.clone());
        }
        let plan = self.decide(asked, shape as usize)?;
        self.known.insert(key, plan.clone());
        Ok(plan)
    }
}

impl<'a> ClusterPlanner<'a> {
    /// Creates a planner. `servers`: the server of each rank. `strict`: see the field.
    pub(crate) fn new(
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
            shape_of_group: HashMap::new(),
            shapes: Vec::new(),
            communicators: HashMap::new(),
            known: HashMap::new(),
            longest: None,
            slowed: None,
            notes: BTreeSet::new(),
            joined: false,
            by_chunks: false,
            depends_on_payload: false,
            working_arcs: OnceCell::new(),
        }
    }

    /// Returns the collective that takes longest on an idle cluster; the first of equals.
    pub(crate) fn longest(&self) -> Option<LongestCollective> {
        self.longest
    }

    /// Whether plans depend on the packet size.
    pub(crate) fn depends_on_payload(&self) -> bool {
        self.depends_on_payload
    }

    /// Returns notes for the user about the choices made.
    pub(crate) fn notes(mut self) -> impl Iterator<Item = String> {
        if self.join && !self.joined {
            self.notes.insert("fidelity.join joins nothing here: no collective over rings and no all-to-all sent directly crosses the network".to_string());
        }
        if self.system.by_chunks && !self.by_chunks {
            self.notes.insert("workload.analytic_cost = \"chunks\" changes nothing here: its equations are of all-reduce, all-gather and reduce-scatter over rings and of all-reduce over trees, where workload.analytic has them analytic".to_string());
        }
        self.notes.extend(self.slowed.map(|(_, note)| note));
        self.notes.into_iter()
    }

    /// Notes a small collective that a fixed algorithm makes much slower than NCCL's own choice, such as the norm of gradients in a ring of thousands.
    fn note_slowed(&mut self, asked: &Asked, algorithm: Algorithm, placement: &MemberPlacement, alone_ps: u64) {
        if asked.bytes > SMALL_BYTES || alone_ps < SLOW_PS || self.strict {
            return;
        }
        let free = Communicator::new(placement, self.system, self.environments.open());
        let own = free.choose(asked.op, asked.bytes);
        let own_ps = free.cost_with_ps(asked.op, own.algorithm, own.protocol, asked.bytes);
        let lost_ps = alone_ps.saturating_sub(own_ps);
        if alone_ps < SLOW_FACTOR * own_ps || self.slowed.as_ref().is_some_and(|(most, _)| *most >= lost_ps) {
            return;
        }
        let ms = |ps: u64| ps as f64 / 1e9;
        let note = format!(
            "workload.algorithm = \"{}\" holds for small collectives too, as NCCL_ALGO does: {} of {} bytes among {} ranks takes {:.3} ms alone, instead of \
             {:.3} ms by {}, which NCCL would choose",
            algorithm.name(),
            asked.op.name(),
            asked.bytes,
            placement.ranks,
            ms(alone_ps),
            ms(own_ps),
            own.algorithm.name()
        );
        self.slowed = Some((lost_ps, note));
    }

    /// Returns the index of a group's shape: its members' servers, numbered in order of appearance, and their indices there. Adds the shape if it is new.
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
            // Other groups of the same shape use the rest of its servers.
            let sharing = (self.system.gpus_per_server / ranks_per_node).max(1);
            self.shapes.push((shape, MemberPlacement { ranks: members.len() as u32, ranks_per_node, sharing }));
        }
        self.shape_of_group.insert(group, number);
        number
    }

    fn decide(&mut self, asked: &Asked, shape: usize) -> Result<CollectivePlan, String> {
        let c = self.communication;
        let placement = self.shapes[shape].1;
        let wanted = match self.wanted(asked) {
            wanted if has_switches(wanted) && !exists(asked.op, wanted) => {
                return Err(no_sum_by_switches(asked.op, wanted));
            }
            // No switch between servers takes part, and the chain of a server is a tree.
            Algorithm::CollnetChain if placement.nodes() == 1 => Algorithm::Tree,
            wanted => wanted,
        };
        let analytic = is_analytic(&self.communication.analytic, asked.dim);
        let (system, env) = (self.system, Environments::index(wanted));
        let environment = &self.environments.0[env];
        let communicator = self
            .communicators
            .entry((placement, env))
            .or_insert_with(|| Communicator::new(&placement, system, environment));
        let choice = communicator.choose(asked.op, asked.bytes);
        let algorithm = match wanted {
            // Relays use NVLink and save the network's upper tiers. NCCL's choice knows its variables, not `workload.pxn`.
            Algorithm::Auto
                if asked.op == CollectiveOp::AllToAll && choice.algorithm == Algorithm::Hierarchical && !c.pxn =>
            {
                Algorithm::Direct
            }
            Algorithm::Auto => choice.algorithm,
            // No switch between servers takes part.
            Algorithm::InNetwork if placement.nodes() == 1 && system.nvls => Algorithm::Nvls,
            fixed => fixed,
        };
        let inside = placement.nodes() == 1 && self.network.inside_analytic;
        if wanted == Algorithm::Nvls && !system.nvls {
            return Err("algorithm nvls needs NVSwitches that reduce: H100 or later GPUs joined by NVSwitch; this cluster has none (cluster.gpu, cluster.server)".to_string());
        }
        let apart = system.inside == ServerInterconnect::Pcie && placement.ranks_per_node > 1;
        if matches!(asked.op, CollectiveOp::Experts(e) if apart && e.is_once_a_server()) {
            return Err("DeepEP's normal kernels forward tokens over NVLink, and this cluster's servers have none (cluster.server); workload.ep_dispatcher = \"all-to-all\" or \"deepep-low-latency\" do not need it".to_string());
        }
        let switches = match inside || analytic {
            true => None,
            false => self.group_switches(asked, algorithm, shape)?,
        };
        let in_switches = match algorithm {
            Algorithm::InNetwork | Algorithm::CollnetChain => true,
            Algorithm::Nvls => placement.nodes() == 1,
            _ => false,
        };
        let c = self.communication;
        let communicator = &self.communicators[&(placement, env)];
        let alone_ps = communicator.cost_with_ps(asked.op, algorithm, choice.protocol, asked.bytes);
        if wanted != Algorithm::Auto && asked.algorithm.is_none() {
            self.note_slowed(asked, algorithm, &placement, alone_ps);
        }
        if algorithm == Algorithm::Pat && placement.ranks_per_node > 1 {
            self.notes.insert(format!(
                "{} by pat among {} GPUs a server: NCCL takes pat where each server has one GPU of the group, so no NCCL does what is simulated here",
                asked.op.name(),
                placement.ranks_per_node
            ));
        }
        let communicator = &self.communicators[&(placement, env)];
        let channels = if in_switches { 0 } else { c.channels.unwrap_or(choice.channels) };
        if self.longest.is_none_or(|l| l.alone_ps < alone_ps) {
            self.longest = Some(LongestCollective { algorithm, protocol: choice.protocol, channels, alone_ps });
        }
        let chunk = match &switches {
            Some(switches) => {
                let bytes = switches.chunk_bytes(asked.bytes, c.chunk_bytes, choice.chunk_bytes);
                if c.chunk_bytes.is_some_and(|given| given < bytes) {
                    self.notes.insert(format!(
                        "workload.chunk_kib: {} bytes by switches that reduce go in pieces of {bytes} bytes, as smaller ones would be too many messages",
                        asked.bytes
                    ));
                }
                bytes
            }
            None if algorithm == Algorithm::Nvls => choice.chunk_bytes.max(NVLS_CHUNK),
            None => choice.chunk_bytes,
        };
        if inside || analytic || (in_switches && switches.is_none()) {
            let cut = Choice { channels, chunk_bytes: c.chunk_bytes.unwrap_or(chunk), ..choice };
            let by_chunks = chunk_passes(communicator, asked.op, algorithm, &cut, asked.bytes).is_some();
            self.by_chunks |= by_chunks && system.by_chunks;
            let ps = analytic_ps(communicator, asked.op, algorithm, &cut, asked.bytes);
            return Ok(CollectivePlan::Analytic { ps: ps.max(1) });
        }
        let options = ScheduleOptions {
            channels: c.channels.unwrap_or(choice.channels).min(u32::from(u16::MAX)) as u16,
            chunk_bytes: if switches.is_some() { chunk } else { c.chunk_bytes.unwrap_or(chunk) },
            root: 0,
            shares: asked.shares,
            own_links: self.network.inside.is_some_and(|link| link.by_pair),
            cross_nic: environment.cross_nic == Some(1) && system.nics_per_server > 1,
            switches: switches.as_ref().map(|switches| &switches.in_schedule),
        };
        let kind = &self.shapes[shape].0;
        let message_ps = c.start_overhead_ps + c.work_queue_latency_ps;
        let as_one = || EqualSteps::of(asked.op, algorithm, asked.bytes, kind, &options, choice.protocol);
        if let Some(steps) = (self.join && placement.nodes() > 1).then(as_one).flatten() {
            // Measured times include what software costs.
            let alone = MemberPlacement { sharing: 1, ..placement };
            let min_ps = match c.measured_overhead {
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
            return Ok(CollectivePlan::OneFlow { steps: Arc::new(steps), overheads, min_ps });
        }
        let build = || match algorithm {
            _ if switches.is_some() => build(asked.op, algorithm, asked.bytes, kind, &options),
            // NVLink SHARP between servers: what switches reduce inside goes by rail outside. Unequal servers have no rails; there NCCL uses rings.
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
        self.depends_on_payload |= c.measured_overhead;
        if algorithm == Algorithm::Nvls && switches.is_none() {
            self.notes.insert("NVLS across servers is simulated as a hierarchical collective: inside servers by NVLink, between them rail by rail".to_string());
        }
        Ok(CollectivePlan::Transfers {
            schedule,
            protocol: choice.protocol,
            overheads: overheads.plus(message_ps),
            switches: switches.map(|switches| Arc::new(switches.nodes)).unwrap_or_default(),
        })
    }

    /// Returns the switches that reduce for a group by `algorithm`; `None`: none do, or not as packets. Then a note says why.
    ///
    /// # Errors
    /// Links that have failed before the beginning cut the group off from the switches that would.
    fn group_switches(
        &mut self,
        asked: &Asked,
        algorithm: Algorithm,
        shape: usize,
    ) -> Result<Option<GroupSwitches>, String> {
        let Some((net, _)) = self.network.switches else { return Ok(None) };
        if !has_switches(algorithm) || !exists(asked.op, algorithm) {
            return Ok(None);
        }
        let arcs = self.working_arcs.get_or_init(|| net.working_arcs());
        let shape = &self.shapes[shape].0;
        let found = |net: &Network, arcs: &[Vec<ArcIdx>]| {
            group_switches(net, arcs, shape, asked.members, algorithm, self.system.nvls)
        };
        let why = match found(net, arcs) {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        let (op, algorithm) = (asked.op.name(), algorithm.name());
        if !net.failed.is_empty() {
            let mut healthy = net.clone();
            healthy.failed.clear();
            if found(&healthy, &healthy.working_arcs()).is_ok() {
                return Err(format!(
                    "{op} by {algorithm}: without the links that topology.outages takes down from the start, {why}"
                ));
            }
        }
        self.notes.insert(format!("{op} by {algorithm} takes the time of an idle cluster and sends no packets: {why}"));
        Ok(None)
    }

    /// Returns a schedule, and overheads of its messages such that alone on an idle network it takes the time of the closed form.
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
        let (shape, placement) = &self.shapes[shape];
        let alone = MemberPlacement { sharing: 1, ..*placement };
        let communicator = Communicator::new(&alone, system, environment);
        let algorithm = key.algorithm;
        let switches = key.switches.clone();
        let nics: Vec<u32> = asked.members.iter().map(|&rank| self.network.nics[rank as usize]).collect();
        let (payload, wire) = self.network.payload_share;
        // Pieces of all chains share a GPU's links.
        let delays = self.network.switches.map(|(_, delays)| SwitchDelays {
            inside_by_packets: delays.inside_by_packets && algorithm != Algorithm::CollnetChain,
            ..delays
        });
        let machine = IdleMachine {
            shape,
            nics: &nics,
            inside: self.network.inside,
            net_bps: (u128::from(system.nic_bps) * u128::from(payload) / u128::from(wire.max(1))) as u64,
            ports: self.network.ports,
            net_latency_ps: system.net_extra_ps,
            rendezvous_ps: c.rendezvous_ps,
            message_ps: c.start_overhead_ps + c.work_queue_latency_ps,
            switches: switches.as_ref().zip(delays),
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

    /// Returns the algorithm asked for: the operation's own, else `workload.algorithm` if it exists for the operation.
    fn wanted(&mut self, asked: &Asked) -> Algorithm {
        if let Some(own) = asked.algorithm {
            return own;
        }
        // Kernels that exchange tokens with experts without NCCL have one algorithm.
        if matches!(asked.op, CollectiveOp::Experts(_)) {
            return Algorithm::Auto;
        }
        let general = general(self.communication.algorithm);
        let here = general != Algorithm::Nvls || self.system.nvls;
        if self.strict || (here && exists(asked.op, general)) {
            return general;
        }
        self.notes.insert(format!(
            "workload.algorithm: {} by {} does not exist here; it is carried out as NCCL would",
            asked.op.name(),
            general.name()
        ));
        Algorithm::Auto
    }
}

/// Whether communication of a dimension is analytical.
pub(crate) fn is_analytic(a: &spec::Analytic, dim: Dim) -> bool {
    match dim {
        Dim::Tp => a.tp,
        Dim::Pp => a.pp,
        Dim::Dp => a.dp,
        Dim::Ep => a.ep,
        Dim::Cp => a.cp,
        Dim::Other => a.other,
    }
}
