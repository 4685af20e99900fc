//! Lowers programs to a task graph. Collectives are planned and split into transfers, sends are matched with receives, and the order of streams becomes edges.
//!
//! Layer: workload. The caller's [`Planner`] decides what a collective becomes (algorithm, channels, chunks, or a time). Paths and NICs are chosen in `host`.

mod joined;
mod op_times;
mod rescale;
mod size;
mod steady;
mod transfer;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::classes::Representatives;
use super::program::{Dim, Group, OpKind, Stream, Workload};
use super::tasks::{Edge, GraphTask, OpTasks, TaskGraph, Work};
use crate::collective::{Algorithm, CollectiveOp, EqualSteps, Overheads, Protocol, Schedule};
use hyperfold_base::budget;
use joined::JoinedLowering;
use transfer::Arrival;

pub use op_times::{OpTimes, SolvedOps, WorkloadTimes, op_times, solved_ops};
pub use rescale::rescaled;
pub use size::{GraphSize, least_size};
pub use steady::SteadyPairs;

/// How a collective is carried out.
#[derive(Clone, Debug)]
pub enum CollectivePlan {
    /// Messages of a schedule, with the protocol's flags on the wire. Each message starts later by its overhead.
    Transfers {
        /// Messages with their dependencies.
        schedule: Arc<Schedule>,
        /// Protocol, whose flags are added to the bytes.
        protocol: Protocol,
        /// Software overheads of messages.
        overheads: Overheads,
    },
    /// One flow over all edges of the collective.
    OneFlow {
        /// Steps that the flow stands for.
        steps: Arc<EqualSteps>,
        /// Software overheads of their messages.
        overheads: Overheads,
        /// Least time without other traffic.
        least_ps: u64,
    },
    /// A time that starts when all members have arrived. It uses no network.
    Analytic {
        /// The time.
        ps: u64,
    },
}

/// One collective that is to be planned.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The operation.
    pub op: CollectiveOp,
    /// Size as nccl-tests counts it, bytes.
    pub bytes: u64,
    /// Dimension that it belongs to.
    pub dim: Dim,
    /// The algorithm, if the program names one.
    pub algorithm: Option<Algorithm>,
    /// Index of the group in the workload.
    pub group: u32,
    /// Ranks of the group, in the communicator's order.
    pub members: &'a [u32],
    /// Weights of the members as destinations of an uneven all-to-all.
    pub shares: Option<&'a [u64]>,
}

/// Decides how collectives are carried out.
pub trait Planner {
    /// Plans one collective.
    ///
    /// # Errors
    /// The requested algorithm cannot do this operation on this group. The text is a sentence for the user.
    fn plan(&mut self, asked: &Asked) -> Result<CollectivePlan, String>;
}

/// What lowering needs to know about the machine.
#[derive(Clone)]
pub struct Lowering<'a> {
    /// Server of each rank.
    pub servers: &'a [u32],
    /// Network node of each rank. GPUs that share a NIC have the same node.
    pub hosts: &'a [u32],
    /// Path between GPUs of one server; `None` if they use the network.
    pub intra: Option<IntraServerPath>,
    /// Path between GPUs of one NIC if `intra` is `None`, because a NIC sends no packet to itself.
    pub shared_nic: IntraServerPath,
    /// (Rate in bps, latency in ps) of each dimension whose sends and receives take the time of an idle machine and use no packets.
    pub analytic_p2p: &'a dyn Fn(Dim) -> Option<(u64, u64)>,
    /// Time in ps from the last member's arrival at a collective until all members know of it. `None`: members wait for each other through data only.
    pub rendezvous_ps: Option<u64>,
    /// Latency in ps of what a rank sends to itself.
    pub local_ps: u64,
    /// Overheads from the program's post of a send to the post on the queue pair.
    pub p2p_overheads: Overheads,
    /// Number of queue pairs per connection.
    pub qps_per_connection: u32,
    /// Weight of a dimension's queue pairs at flow level: see [`TaskGraph::weights`].
    pub weight: &'a dyn Fn(Dim) -> u32,
    /// Whether every message is split over the queue pairs of its connection. Otherwise the queue pairs take turns.
    pub split: bool,
    /// Ranks that stand for others, if any. Only these get tasks. A send of the others is part of the same flow as their representative's send.
    pub representatives: Option<&'a Representatives>,
    /// Factor by which a kernel takes longer than its program says, by rank and op; 2^32 is 1.
    pub factor_q32: &'a dyn Fn(u32, u32) -> u64,
}

/// The path between two GPUs of a server, as times instead of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntraServerPath {
    /// Rate of the link out of a GPU that a transfer takes.
    pub rate_bps: u64,
    /// One-way latency in ps.
    pub latency_ps: u64,
    /// Number of links out of a GPU: 1 if all its transfers share one, else one to each peer of the server.
    pub links: u32,
}

/// Why programs cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// Members of a group call different collectives.
    #[error(
        "collective {nth} of the group of ranks {group}: rank {a} calls {a_call}, rank {b} calls {b_call}; all members must call the same"
    )]
    Mismatch {
        /// Ranks of the group, as text.
        group: String,
        /// Number of the collective among those of the group.
        nth: u32,
        /// A rank.
        a: u32,
        /// What that rank calls.
        a_call: String,
        /// Another rank.
        b: u32,
        /// What that rank calls.
        b_call: String,
    },
    /// A member does not call a collective.
    #[error("collective {nth} of the group of ranks {group}: rank {rank} never calls it")]
    Missing {
        /// Ranks of the group, as text.
        group: String,
        /// Number of the collective among those of the group.
        nth: u32,
        /// The rank.
        rank: u32,
    },
    /// Sends and receives differ in number.
    #[error("rank {src} sends {sends} messages with tag {tag} to rank {dst}, which receives {recvs}")]
    Unmatched {
        /// Rank that sends.
        src: u32,
        /// Rank that receives.
        dst: u32,
        /// Their tag.
        tag: u32,
        /// Number of sends.
        sends: usize,
        /// Number of receives.
        recvs: usize,
    },
    /// A message is received with another size.
    #[error("message {nth} with tag {tag} from rank {src} to rank {dst}: {sent} bytes are sent, {received} received")]
    Size {
        /// Rank that sends.
        src: u32,
        /// Rank that receives.
        dst: u32,
        /// Tag of the message.
        tag: u32,
        /// Number of the message among those of the two ranks with this tag.
        nth: usize,
        /// Bytes sent.
        sent: u64,
        /// Bytes received.
        received: u64,
    },
    /// A collective cannot be planned.
    #[error("rank {rank}, op {op} ({name}): {why}")]
    Plan {
        /// The rank.
        rank: u32,
        /// Number of the op.
        op: u32,
        /// Name of the op.
        name: String,
        /// Why it cannot.
        why: String,
    },
    /// A collective cannot be joined to one flow.
    #[error(
        "fidelity.join = \"ranks\": {op} (rank {rank}, {name}) is not one flow; set workload.algorithm = \"ring\" (of all-to-alls \"direct\"), or take it off the network with workload.analytic"
    )]
    NotOneFlow {
        /// The operation.
        op: String,
        /// The rank.
        rank: u32,
        /// Name of the op.
        name: String,
    },
    /// The task graph has too many tasks.
    #[error(
        "the program becomes more than {MOST_TASKS} tasks, the most that one experiment has room for (at rank {rank}, op {op}, {name}); fewer iterations, a larger workload.chunk_kib, fewer workload.channels or workload.analytic make it smaller, at flow level fidelity.join too"
    )]
    TooLarge {
        /// Rank at which it becomes too large.
        rank: u32,
        /// Number of the op.
        op: u32,
        /// Name of the op.
        name: String,
    },
}

/// One collective of a group.
struct Instance {
    call: Call,
    /// The first rank that called the collective.
    first: u32,
    /// Op of that rank.
    first_op: u32,
    /// Tasks of each party: begin, go and end. They are [`NOT_YET`] until the party calls.
    members: Vec<OpTasks>,
}

/// The arguments of a collective call, which all members must share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Call {
    op: CollectiveOp,
    bytes: u64,
    dim: Dim,
    algorithm: Option<Algorithm>,
    shares: Option<u32>,
}

impl Call {
    fn text(&self) -> String {
        format!("{:?} of {} bytes", self.op, self.bytes)
    }
}

/// The most tasks of one experiment: 2^27. Our choice: with their edges and the engine's rows they take some 30 GB.
const MOST_TASKS: usize = 1 << 27;

/// Tasks of a party that has not called yet.
const NOT_YET: OpTasks = OpTasks { begin: u32::MAX, go: u32::MAX, end: u32::MAX };

/// One end of a message between programs.
#[derive(Clone, Copy)]
struct End {
    /// Op in the program of its rank.
    op: u32,
    bytes: u64,
    tag: u32,
    dim: Dim,
    free: bool,
}

/// Sends and receives of a tag from one rank to another.
#[derive(Default)]
struct Matches {
    sends: Vec<End>,
    recvs: Vec<End>,
}

/// Lowers programs to tasks.
///
/// # Errors
/// Ranks do not agree on what they call, or a collective cannot be planned.
pub fn lower(workload: &Workload, machine: &Lowering, planner: &mut dyn Planner) -> Result<TaskGraph, LowerError> {
    let mut lowerer = Lowerer {
        workload,
        machine,
        graph: TaskGraph::default(),
        qps: HashMap::new(),
        turns: HashMap::new(),
        links: HashMap::new(),
        joined: JoinedLowering::new(workload, machine.representatives),
        same_calls: 0,
        weights: Vec::new(),
    };
    size::announce_ops(workload, machine);
    let mut instances: Vec<Vec<Instance>> = workload.groups.iter().map(|_| Vec::new()).collect();
    let parties = parties(workload, machine.representatives);
    let positions = positions(&parties);
    let mut matches: BTreeMap<(u32, u32, u32), Matches> = BTreeMap::new();
    for rank in 0..workload.ranks.len() as u32 {
        match lowerer.stands_for(rank) == rank {
            true => lowerer.rank(rank, &parties, &positions, &mut instances, &mut matches)?,
            false => lowerer.graph.ops.push(Vec::new()),
        }
    }
    if let Some(representatives) = machine.representatives {
        lowerer.receives_of_those_stood_for(&mut matches);
        lowerer.graph.stands_for = representatives.rank.clone();
    }
    for (group, list) in instances.iter().enumerate() {
        lowerer.same_calls = list.first().map_or(0, |first| list.iter().filter(|i| i.call == first.call).count());
        for (nth, instance) in list.iter().enumerate() {
            lowerer.collective(group as u32, nth as u32, instance, &parties, planner)?;
            lowerer.weigh(workload.groups[group].dim);
        }
    }
    lowerer.messages(&matches)?;
    let mut graph = lowerer.graph;
    if lowerer.weights.iter().any(|&weight| weight > 1) {
        graph.weights = lowerer.weights;
    }
    graph.shrink();
    Ok(graph)
}

/// For each group, the ranks that call its collectives: its members or their representatives, ascending. A group that another group stands for has none.
fn parties<'w>(workload: &'w Workload, representatives: Option<&Representatives>) -> Vec<Cow<'w, [u32]>> {
    let Some(representatives) = representatives else {
        return workload.groups.iter().map(|g| Cow::Borrowed(g.members.as_slice())).collect();
    };
    let of_group = |(g, group): (usize, &Group)| {
        let mut ranks: Vec<u32> = Vec::new();
        if representatives.group[g] as usize == g {
            ranks.extend(group.members.iter().map(|&m| representatives.rank[m as usize]));
            ranks.sort_unstable();
            ranks.dedup();
        }
        Cow::Owned(ranks)
    };
    workload.groups.iter().enumerate().map(of_group).collect()
}

/// For each group, the position of each of its parties.
fn positions(parties: &[Cow<[u32]>]) -> Vec<HashMap<u32, u32>> {
    parties.iter().map(|ranks| ranks.iter().enumerate().map(|(i, &r)| (r, i as u32)).collect()).collect()
}

struct Lowerer<'a> {
    workload: &'a Workload,
    machine: &'a Lowering<'a>,
    graph: TaskGraph,
    /// Queue pairs by (communicator, source, destination, lane). Communicators are the groups, then one for each class of sends; see [`P2P`].
    qps: HashMap<(u32, u32, u32, u32), u32>,
    /// Messages so far of each connection; the queue pairs of a connection take turns.
    turns: HashMap<(u32, u32, u32, u32), u32>,
    /// Gate server of each link out of a rank that carries no packets.
    links: HashMap<(u32, u32), u32>,
    joined: JoinedLowering,
    /// How many collectives of the current group are equal to its first one.
    same_calls: usize,
    /// Weight of each queue pair.
    weights: Vec<u32>,
}

/// Communicator number of sends and receives on streams, plus the dimension.
const P2P: u32 = 1 << 30;
/// Communicator number of sends and receives on no stream, plus the tag.
const P2P_FREE: u32 = 1 << 31;

impl Lowerer<'_> {
    /// Gives the queue pairs added since the last call the weight of a dimension.
    fn weigh(&mut self, dim: Dim) {
        self.weights.resize(self.graph.qps.len(), (self.machine.weight)(dim));
    }

    /// The representative of a rank: the rank itself or the one whose tasks it shares.
    fn stands_for(&self, rank: u32) -> u32 {
        self.machine.representatives.map_or(rank, |representatives| representatives.rank[rank as usize])
    }

    /// Makes the tasks of one rank's ops, and the edges within the rank. Adds its collectives to `instances` and its messages to `matches`.
    fn rank(
        &mut self,
        rank: u32,
        parties: &[Cow<[u32]>],
        positions: &[HashMap<u32, u32>],
        instances: &mut [Vec<Instance>],
        matches: &mut BTreeMap<(u32, u32, u32), Matches>,
    ) -> Result<(), LowerError> {
        let info = &self.workload.ranks[rank as usize];
        let program = &self.workload.programs[info.program as usize];
        let mut ops: Vec<OpTasks> = Vec::with_capacity(program.ops.len());
        let mut last: [u32; 256] = [u32::MAX; 256];
        let mut called: HashMap<u32, u32> = HashMap::new();
        for (i, op) in program.ops.iter().enumerate() {
            let i = i as u32;
            self.check_task_limit(3, rank, i)?;
            let tasks = match op.kind {
                OpKind::Compute { ps, .. } => {
                    let ps = rescale::scaled(ps, (self.machine.factor_q32)(rank, i));
                    let task = self.graph.task(rank, ps, Work::Delay);
                    OpTasks { begin: task, go: u32::MAX, end: task }
                }
                OpKind::Join => {
                    let task = self.graph.join(rank);
                    OpTasks { begin: task, go: u32::MAX, end: task }
                }
                OpKind::Collective { op: operation, slot, bytes, dim, algorithm, shares } => {
                    let group = info.groups[slot as usize];
                    let group = self
                        .machine
                        .representatives
                        .map_or(group, |representatives| representatives.group[group as usize]);
                    let call = Call { op: operation, bytes, dim, algorithm, shares };
                    let nth = called.entry(group).or_insert(0);
                    let tasks = self.call(rank, i, group, *nth, call, parties, positions, instances)?;
                    *nth += 1;
                    tasks
                }
                OpKind::Send { peer, bytes, tag, dim } | OpKind::Recv { peer, bytes, tag, dim } => {
                    let other =
                        self.workload.groups[info.groups[peer.slot as usize] as usize].members[peer.member as usize];
                    let begin = self.graph.join(rank);
                    let end = self.graph.join(rank);
                    let free = op.stream == Stream::FREE;
                    // The begin of a send posts the message. The end of a receive waits for its arrival. `messages` adds the tasks between them.
                    if matches!(op.kind, OpKind::Send { .. }) {
                        matches.entry((rank, other, tag)).or_default().sends.push(End { op: i, bytes, tag, dim, free });
                    } else {
                        matches.entry((other, rank, tag)).or_default().recvs.push(End { op: i, bytes, tag, dim, free });
                        self.graph.after(begin, end);
                    }
                    OpTasks { begin, go: u32::MAX, end }
                }
            };
            let stream = op.stream.0 as usize;
            if op.stream != Stream::FREE {
                if last[stream] != u32::MAX {
                    self.graph.after(last[stream], tasks.begin);
                }
                last[stream] = tasks.end;
            }
            for &dep in program.deps_of(i) {
                self.graph.after(ops[dep as usize].end, tasks.begin);
            }
            ops.push(tasks);
        }
        self.graph.ops.push(ops);
        Ok(())
    }

    /// Records that a rank calls its group's `nth` collective, and makes the rank's tasks of it.
    #[allow(clippy::too_many_arguments, reason = "one call, by what identifies it")]
    fn call(
        &mut self,
        rank: u32,
        op: u32,
        group: u32,
        nth: u32,
        call: Call,
        parties: &[Cow<[u32]>],
        positions: &[HashMap<u32, u32>],
        instances: &mut [Vec<Instance>],
    ) -> Result<OpTasks, LowerError> {
        let members = &self.workload.groups[group as usize].members;
        let n_parties = parties[group as usize].len();
        let list = &mut instances[group as usize];
        if list.len() as u32 == nth {
            list.push(Instance { call, first: rank, first_op: op, members: vec![NOT_YET; n_parties] });
        }
        let instance = &mut list[nth as usize];
        if instance.call != call {
            return Err(LowerError::Mismatch {
                group: listed(members),
                nth,
                a: instance.first,
                a_call: instance.call.text(),
                b: rank,
                b_call: call.text(),
            });
        }
        let begin = self.graph.join(rank);
        let go = if members.len() > 1 { self.graph.join(rank) } else { u32::MAX };
        let end = self.graph.join(rank);
        let tasks = OpTasks { begin, go, end };
        instance.members[positions[group as usize][&rank] as usize] = tasks;
        Ok(tasks)
    }

    /// Makes the tasks of a collective. PRECONDITION: all ranks' ops are lowered.
    fn collective(
        &mut self,
        group: u32,
        nth: u32,
        instance: &Instance,
        parties: &[Cow<[u32]>],
        planner: &mut dyn Planner,
    ) -> Result<(), LowerError> {
        let members = &self.workload.groups[group as usize].members;
        if let Some(absent) = instance.members.iter().position(|m| *m == NOT_YET) {
            return Err(LowerError::Missing { group: listed(members), nth, rank: parties[group as usize][absent] });
        }
        if members.len() == 1 {
            self.graph.after(instance.members[0].begin, instance.members[0].end);
            return Ok(());
        }
        let call = instance.call;
        let shares = call.shares.map(|s| self.workload.shares[s as usize].as_slice());
        let asked =
            Asked { op: call.op, bytes: call.bytes, dim: call.dim, algorithm: call.algorithm, group, members, shares };
        let (rank, op) = (instance.first, instance.first_op);
        let plan = planner.plan(&asked).map_err(|why| LowerError::Plan { rank, op, name: self.name(rank, op), why })?;
        match plan {
            CollectivePlan::Analytic { ps } => {
                self.meet(instance, 0);
                let gate = self.graph.gate(None, 0, ps);
                for m in &instance.members {
                    self.graph.into_gate(m.go, gate);
                    self.graph.release(gate, m.end);
                }
            }
            CollectivePlan::OneFlow { steps, overheads, least_ps } => {
                self.check_task_limit(2, rank, op)?;
                self.meet(instance, self.machine.rendezvous_ps.unwrap_or(0));
                joined::one_flow(self, group, instance, &steps, &overheads, least_ps);
            }
            CollectivePlan::Transfers { schedule, protocol, overheads } => {
                if self.machine.representatives.is_some() {
                    return Err(LowerError::NotOneFlow { op: call.text(), rank, name: self.name(rank, op) });
                }
                // Each transfer is up to three tasks. If messages are split over queue pairs, it is one more per queue pair.
                let each = 3 + if self.machine.split { self.machine.qps_per_connection as usize } else { 0 };
                self.check_task_limit(schedule.transfers.len().saturating_mul(each), rank, op)?;
                if nth == 0 {
                    // Each transfer of each equal collective becomes at least one task. A graph that cannot fit is stopped here.
                    let transfers = schedule.transfers.len().saturating_mul(self.same_calls);
                    budget::announce_rows::<(GraphTask, Edge)>("tasks", transfers as u64);
                }
                self.meet(instance, self.machine.rendezvous_ps.unwrap_or(0));
                self.transfers(group, instance, members, &schedule, protocol, &overheads);
            }
        }
        Ok(())
    }

    /// Lets each member's `go` follow its `begin` if the latency is 0. Otherwise every `go` waits until all members have begun and the latency has passed.
    fn meet(&mut self, instance: &Instance, latency_ps: u64) {
        if latency_ps == 0 {
            for m in &instance.members {
                self.graph.after(m.begin, m.go);
            }
            return;
        }
        let gate = self.graph.gate(None, 0, latency_ps);
        for m in &instance.members {
            self.graph.into_gate(m.begin, gate);
            self.graph.release(gate, m.go);
        }
    }

    /// Makes the tasks of a collective's messages: one post per transfer of the schedule, with its dependencies.
    fn transfers(
        &mut self,
        group: u32,
        instance: &Instance,
        members: &[u32],
        schedule: &Schedule,
        protocol: Protocol,
        overheads: &Overheads,
    ) {
        let mut got: Vec<Arrival> = Vec::with_capacity(schedule.transfers.len());
        // Messages of one queue pair arrive in order, so the last of a connection implies those before it. On several queue pairs, and through gates, messages
        // may overtake.
        let in_order = self.machine.qps_per_connection <= 1;
        let mut lasts: HashMap<(u32, u32, u16), usize> = HashMap::new();
        let mut receives = vec![false; members.len()];
        for (k, tr) in schedule.transfers.iter().enumerate() {
            let (src, dst) = (members[tr.from as usize], members[tr.to as usize]);
            let start = if tr.after_n == 0 { overheads.start_ps } else { 0 };
            let overhead = start + self.overhead_ps(src, dst, overheads);
            let (post, arrival) =
                self.transfer(group, src, dst, u32::from(tr.channel), protocol.wire_bytes(tr.bytes), overhead);
            self.graph.after(instance.members[tr.from as usize].go, post);
            for &earlier in &schedule.after[tr.after_first as usize..(tr.after_first + tr.after_n) as usize] {
                self.wait(got[earlier as usize], post);
            }
            got.push(arrival);
            lasts.insert((tr.from, tr.to, tr.channel), k);
            receives[tr.to as usize] = true;
        }
        for (k, tr) in schedule.transfers.iter().enumerate() {
            if in_order && got[k].message && lasts[&(tr.from, tr.to, tr.channel)] != k {
                continue;
            }
            self.wait(got[k], instance.members[tr.to as usize].end);
            // A member that receives nothing is done when its sends are acknowledged.
            if !receives[tr.from as usize] {
                self.wait_sent(got[k], instance.members[tr.from as usize].end);
            }
        }
        for m in &instance.members {
            self.graph.after(m.go, m.end);
        }
    }

    /// Software overhead in ps of a message from one rank to another.
    fn overhead_ps(&self, src: u32, dst: u32, overheads: &Overheads) -> u64 {
        let server = |rank: u32| self.machine.servers[rank as usize];
        if server(src) == server(dst) { overheads.inside_ps } else { overheads.net_ps }
    }

    /// Checks that `more` further tasks stay within the limit.
    fn check_task_limit(&self, more: usize, rank: u32, op: u32) -> Result<(), LowerError> {
        if self.graph.tasks.len().saturating_add(more) <= MOST_TASKS {
            return Ok(());
        }
        Err(LowerError::TooLarge { rank, op, name: self.name(rank, op) })
    }

    /// Name of an op of a rank.
    fn name(&self, rank: u32, op: u32) -> String {
        let program = &self.workload.programs[self.workload.ranks[rank as usize].program as usize];
        self.workload.names[program.ops[op as usize].name].to_string()
    }

    /// Makes the tasks of messages: matches sends with receives, tag by tag. The messages of a queue pair go in the order of the sender's program.
    fn messages(&mut self, matches: &BTreeMap<(u32, u32, u32), Matches>) -> Result<(), LowerError> {
        let mut pairs: Vec<(u32, u32, u32, End, End)> = Vec::new();
        for (&(src, dst, tag), m) in matches {
            if m.sends.len() != m.recvs.len() {
                return Err(LowerError::Unmatched { src, dst, tag, sends: m.sends.len(), recvs: m.recvs.len() });
            }
            for (nth, (&send, &recv)) in m.sends.iter().zip(&m.recvs).enumerate() {
                if send.bytes != recv.bytes {
                    return Err(LowerError::Size { src, dst, tag, nth, sent: send.bytes, received: recv.bytes });
                }
                pairs.push((src, send.op, dst, send, recv));
            }
        }
        pairs.sort_by_key(|&(src, op, ..)| (src, op));
        for (src, _, dst, send, recv) in pairs {
            let dst_own = self.stands_for(dst);
            let send_tasks = self.graph.ops[src as usize][send.op as usize];
            let recv_tasks = self.graph.ops[dst_own as usize][recv.op as usize];
            let comm = if send.free { P2P_FREE | send.tag } else { P2P | send.dim as u32 };
            let overhead = self.overhead_ps(src, dst, &self.machine.p2p_overheads);
            if (self.machine.analytic_p2p)(send.dim).is_none() {
                joined::join_sends(self, comm, src, dst, send.op);
            }
            let (post, arrival) = if src == dst {
                self.through_gate(src, dst_own, send.bytes, alone(u64::MAX, self.machine.local_ps), overhead)
            } else {
                let inside = self
                    .machine
                    .intra
                    .filter(|_| self.machine.servers[src as usize] == self.machine.servers[dst as usize]);
                match (self.machine.analytic_p2p)(send.dim) {
                    Some(_) if let Some(way) = inside => self.through_gate(src, dst_own, send.bytes, way, overhead),
                    Some((rate, latency)) => {
                        self.through_gate(src, dst_own, send.bytes, alone(rate, latency), overhead)
                    }
                    None => self.transfer(comm, src, dst, 0, send.bytes, overhead),
                }
            };
            self.graph.after(send_tasks.begin, post);
            self.weigh(send.dim);
            self.wait_sent(arrival, send_tasks.end);
            self.wait(arrival, recv_tasks.end);
            // For the receiver, its data is under way from the post on.
            self.graph.ops[dst_own as usize][recv.op as usize].go = post;
        }
        Ok(())
    }

    /// Replaces the receives of `matches`. Only representatives were lowered, and a rank that they send to may have no tasks. So the matching receives are read
    /// from the receivers' programs.
    fn receives_of_those_stood_for(&self, matches: &mut BTreeMap<(u32, u32, u32), Matches>) {
        matches.retain(|_, m| !m.sends.is_empty());
        matches.values_mut().for_each(|m| m.recvs.clear());
        let receivers: BTreeSet<u32> = matches.keys().map(|&(_, dst, _)| dst).collect();
        for dst in receivers {
            let info = &self.workload.ranks[dst as usize];
            for (i, op) in self.workload.programs[info.program as usize].ops.iter().enumerate() {
                let OpKind::Recv { peer, bytes, tag, dim } = op.kind else { continue };
                let group = info.groups[peer.slot as usize];
                let src = self.workload.groups[group as usize].members[peer.member as usize];
                if let Some(m) = matches.get_mut(&(src, dst, tag)) {
                    m.recvs.push(End { op: i as u32, bytes, tag, dim, free: op.stream == Stream::FREE });
                }
            }
        }
    }
}

/// A path with one link for everything that a rank sends.
fn alone(rate_bps: u64, latency_ps: u64) -> IntraServerPath {
    IntraServerPath { rate_bps, latency_ps, links: 1 }
}

/// The first few ranks of a group, as text.
fn listed(members: &[u32]) -> String {
    let first_few: Vec<String> = members.iter().take(8).map(u32::to_string).collect();
    if members.len() > 8 {
        format!("{} ... ({} in all)", first_few.join(" "), members.len())
    } else {
        first_few.join(" ")
    }
}

#[cfg(test)]
mod tests;
