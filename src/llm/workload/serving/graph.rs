//! Writes a plan of inference as programs of ranks.
//!
//! A rank runs the steps of its instance in the planned order. A step begins when three things have happened: its rank has ended the step before, its new
//! requests have arrived, and the keys and values that it uses for the first time are there. So steps that take longer than planned delay later ones, but the
//! content of a step does not change.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::decisions::{PlannedRequest, Round, RoundAt, ServingPlan};
use super::error::ServingError;
use super::kv::{KvTransfer, kv_transfers};
use super::request::ServingRequest;
use super::setup::{Pool, PoolRole, ServingSetup};
use super::step_cost::JoinedExchange;
use crate::compute::{Among, expert_loads};
use crate::workload::program::{Dim, Group, OpKind, Peer, Phase, Stream, Workload};
use crate::workload::random::RandomStream;
use crate::workload::rules::{Message, ProgramWriter, RankSchedule, assemble};

/// Bytes of the message that tells a sender that there is memory for keys and values (our choice).
const ROOM_BYTES: u64 = 64;
/// Bytes of the message that brings a client's next request to another instance (our choice).
const REQUEST_BYTES: u64 = 64;
/// Bit of the tags of these messages. There are fewer requests.
const NEXT_REQUEST: u32 = 1 << 31;
/// Bytes of a chosen token that goes from the last stage to the first.
const TOKEN_BYTES: u64 = 4;
/// Sum of the experts' loads, which are given in these units.
const LOAD_UNITS: u64 = 1 << 20;

/// An op of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedOps {
    /// Rank whose program has the op.
    pub rank: u32,
    /// Number of the op in its program.
    pub op: u32,
}

/// The ops whose times give the progress of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestOps {
    /// Ends when the request arrives, where it waits for another one's end; `None` if it arrives on its own.
    pub arrival: Option<ServedOps>,
    /// Ends when the request's first step begins.
    pub begin: ServedOps,
    /// Ends with the request's first token.
    pub first_token: ServedOps,
    /// Ends with the request's last token.
    pub last_token: ServedOps,
    /// Ops that end when the request's keys and values are on the ranks that decode.
    pub received: Vec<ServedOps>,
    /// Bytes of keys and values that are sent to the ranks that decode.
    pub transferred_bytes: u64,
    /// How often its memory was taken from it, so that it was computed anew.
    pub preemptions: u32,
    /// Tokens of its prompt whose keys and values were in memory when it was admitted first.
    pub cached: u32,
}

/// One stage of an instance in one round: ops of the stage's first rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundOps {
    /// The stage's first rank.
    pub rank: u32,
    /// Ends when the stage begins.
    pub begin: u32,
    /// Ends when the stage ends.
    pub end: u32,
}

/// Programs of an inference workload, and the ops whose times are reported.
pub struct ServedWorkload {
    /// Programs of all ranks.
    pub workload: Workload,
    /// In the order in which requests were given.
    pub requests: Vec<RequestOps>,
    /// Rounds by pool.
    pub rounds: Vec<Vec<RoundOps>>,
}

/// Ops of rounds and receives in a rank's program.
#[derive(Clone, Debug, Default)]
struct Marks {
    /// Ops that begin and end each round.
    rounds: Vec<(u32, u32)>,
    /// Receives of keys and values, by request.
    received: BTreeMap<u32, Vec<u32>>,
}

/// Slots of a rank's groups; `u16::MAX` if the rank has no such group.
#[derive(Clone, Copy, Debug)]
struct Slots {
    tp: u16,
    ep: u16,
    pp: u16,
    all: u16,
}

struct Graph<'a> {
    setup: &'a ServingSetup,
    plan: &'a ServingPlan,
    requests: &'a [ServingRequest],
    transfers: Vec<KvTransfer>,
    groups: Vec<Group>,
    /// Groups of each rank, by slot.
    slots: Vec<Vec<u32>>,
    slot_of: Vec<Slots>,
    /// Requests that get their memory at the end of a round, by decoding instance and round.
    waiting_for_memory: BTreeMap<(u32, u32), Vec<u32>>,
    /// Requests that come to another instance when one ends in a round, by engine and round.
    followed: BTreeMap<(u32, u32), Vec<u32>>,
    marks: RefCell<BTreeMap<u32, Marks>>,
}

/// Writes the programs of all ranks, and finds the requests' ops in them.
///
/// # Errors
/// Programs that do not fit together, which would be a defect of this project.
pub fn serve(
    setup: &ServingSetup,
    requests: &[ServingRequest],
    plan: &ServingPlan,
) -> Result<ServedWorkload, ServingError> {
    let graph = Graph::new(setup, requests, plan);
    let workload = assemble(&graph)?;
    let requests = (0..requests.len() as u32).map(|r| graph.ops_of(r)).collect();
    let rounds = setup.pools.iter().map(|pool| graph.rounds_of(pool)).collect();
    Ok(ServedWorkload { workload, requests, rounds })
}

impl<'a> Graph<'a> {
    fn new(setup: &'a ServingSetup, requests: &'a [ServingRequest], plan: &'a ServingPlan) -> Graph<'a> {
        let transfers = match setup.pools.as_slice() {
            [prefill, decode] => kv_transfers(setup.transformer(), setup.kv_bytes, prefill, decode),
            _ => Vec::new(),
        };
        let mut waiting_for_memory: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for (request, r) in (0..).zip(&plan.requests) {
            if let (Some(instance), Some(round)) = (r.decode_instance, r.room_after) {
                waiting_for_memory.entry((instance, round)).or_default().push(request);
            }
        }
        let n = setup.ranks() as usize;
        let none = Slots { tp: u16::MAX, ep: u16::MAX, pp: u16::MAX, all: u16::MAX };
        let mut graph = Graph {
            setup,
            plan,
            requests,
            transfers,
            groups: Vec::new(),
            slots: vec![Vec::new(); n],
            slot_of: vec![none; n],
            waiting_for_memory,
            followed: BTreeMap::new(),
            marks: RefCell::default(),
        };
        for request in 0..requests.len() as u32 {
            if let Some(before) = graph.told_of(request) {
                let last = plan.requests[before as usize].last_token;
                graph.followed.entry((last.engine, last.round)).or_default().push(request);
            }
        }
        for pool in &setup.pools {
            for (i, s) in (0..pool.dp).flat_map(|i| (0..pool.pp).map(move |s| (i, s))) {
                graph.group((0..pool.tp).map(|t| pool.rank(i, s, t)).collect(), Dim::Tp, |slots| &mut slots.tp);
            }
            for (e, place) in (0..pool.engines()).flat_map(|e| (0..pool.pp * pool.tp).map(move |place| (e, place))) {
                let member = |i: u32| pool.rank(e * pool.ep + i, place / pool.tp, place % pool.tp);
                graph.group((0..pool.ep).map(member).collect(), Dim::Ep, |slots| &mut slots.ep);
            }
            for (i, t) in (0..pool.dp).flat_map(|i| (0..pool.tp).map(move |t| (i, t))) {
                graph.group((0..pool.pp).map(|s| pool.rank(i, s, t)).collect(), Dim::Pp, |slots| &mut slots.pp);
            }
        }
        if graph.tells_ranks_apart() {
            graph.group((0..setup.ranks()).collect(), Dim::Other, |slots| &mut slots.all);
        }
        graph
    }

    /// Whether ranks send to ranks of other instances: keys and values to another pool, or a client's next request.
    fn tells_ranks_apart(&self) -> bool {
        self.setup.pools.len() > 1 || !self.followed.is_empty()
    }

    /// Adds a group, unless it has only one member. `slot` selects the field of [`Slots`] for it.
    fn group(&mut self, members: Vec<u32>, dim: Dim, slot: fn(&mut Slots) -> &mut u16) {
        if members.len() < 2 {
            return;
        }
        for &m in &members {
            *slot(&mut self.slot_of[m as usize]) = self.slots[m as usize].len() as u16;
            self.slots[m as usize].push(self.groups.len() as u32);
        }
        self.groups.push(Group { members, dim });
    }

    /// Index of a pool's first vector in [`RankSchedule::shares`].
    fn first_share(&self, pool: usize) -> u32 {
        self.setup.pools[..pool].iter().map(|p| p.ep).sum()
    }

    /// Writes the collective of a joined exchange.
    fn exchange(&self, rank: u32, round_at: RoundAt, e: &JoinedExchange, writer: &mut ProgramWriter) {
        if e.latency_ps > 0 {
            writer.compute("latency", e.latency_ps, Phase::Other, &[]);
        }
        let (slots, pool) = (self.slot_of[rank as usize], self.setup.pool_of(rank));
        let (slot, dim, name) = match e.among {
            Among::Ep => (slots.ep, Dim::Ep, "expert all-to-all"),
            _ => (slots.tp, Dim::Tp, "tensor-parallel"),
        };
        let skewed = e.among == Among::Ep && self.setup.expert_skew > 1.0;
        let shares = skewed.then(|| {
            let stream = u64::from(round_at.engine) << 32 | u64::from(round_at.round);
            let ep = self.setup.pools[pool].ep;
            self.first_share(pool) + RandomStream::new(self.setup.seed, stream).below(ep)
        });
        let kind = OpKind::Collective { op: e.op, slot, bytes: e.bytes, dim, algorithm: None, shares };
        writer.op(name, kind, Stream::COMPUTE, &[]);
    }

    /// Time in ps of the last arrival among requests that enter a round at other instances than `mine`. All instances that share experts begin a round
    /// together, so an instance without requests of its own does not begin before these. `None` if there is none.
    fn arrival_elsewhere(&self, round: &Round, mine: usize) -> Option<u64> {
        if self.setup.clients > 0 {
            return None;
        }
        let others = round.instances.iter().enumerate().filter(|(i, _)| *i != mine).map(|(_, instance)| instance);
        let entering = others.flat_map(|instance| instance.admitted.iter().chain(&instance.received));
        entering.map(|&request| self.requests[request as usize].arrival_ps).max()
    }

    /// A message between two stages of an instance.
    fn between_stages(&self, rank: u32, stage: u32, bytes: u64, tag: u32) -> Message {
        Message { peer: Peer { slot: self.slot_of[rank as usize].pp, member: stage }, bytes, tag, dim: Dim::Pp }
    }

    /// A message between pools. The tag tells requests apart, and keys and values from the word that there is memory for them.
    fn between_pools(&self, rank: u32, peer: u32, request: u32, bytes: u64, is_permit: bool) -> Message {
        let peer = Peer { slot: self.slot_of[rank as usize].all, member: peer };
        Message { peer, bytes, tag: 2 + 2 * request + u32::from(is_permit), dim: Dim::Other }
    }

    /// The messages of a request that a rank of a decoding instance receives: (sending rank, bytes).
    fn sources(&self, request: u32, stage: u32, tp: u32) -> impl Iterator<Item = (u32, u64)> {
        let (plan, r) = (&self.plan.requests[request as usize], &self.requests[request as usize]);
        let mine = self.transfers.iter().filter(move |t| t.to == (stage, tp));
        mine.map(move |t| {
            let sender = self.setup.pools[0].rank(plan.instance, t.from.0, t.from.1);
            (sender, t.bytes_a_token * u64::from(r.prompt))
        })
    }

    /// The messages of a request that a rank of a prefilling instance sends: (receiving rank, bytes).
    fn targets(&self, request: u32, stage: u32, tp: u32) -> impl Iterator<Item = (u32, u64)> {
        let (plan, r) = (&self.plan.requests[request as usize], &self.requests[request as usize]);
        let decoder = plan.decode_instance.unwrap_or(0);
        let mine = self.transfers.iter().filter(move |t| t.from == (stage, tp));
        mine.map(move |t| (self.setup.pools[1].rank(decoder, t.to.0, t.to.1), t.bytes_a_token * u64::from(r.prompt)))
    }

    /// The rounds of a pool, by instance, stage and round.
    fn rounds_of(&self, pool: &Pool) -> Vec<RoundOps> {
        let marks = self.marks.borrow();
        let ranks = (0..pool.dp).flat_map(|i| (0..pool.pp).map(move |s| pool.rank(i, s, 0)));
        ranks
            .flat_map(|rank| marks[&rank].rounds.iter().map(move |&(begin, end)| RoundOps { rank, begin, end }))
            .collect()
    }

    /// The pool that computes last tokens.
    fn last_pool(&self) -> &Pool {
        self.setup.pools.last().expect("there is a pool")
    }

    /// The pool and the instance in it that compute a round of a request.
    fn instance_of(&self, plan: &PlannedRequest, round_at: RoundAt) -> (&Pool, u32) {
        match plan.decode_instance {
            Some(i) if self.plan.engines[round_at.engine as usize].pool == 1 => (self.last_pool(), i),
            _ => (self.setup.first_pool(), plan.instance),
        }
    }

    /// The op that ends a round of a request. Each program is written for the first of equal ranks; tensor-parallel ranks are equal.
    fn end_of(&self, marks: &BTreeMap<u32, Marks>, plan: &PlannedRequest, round_at: RoundAt) -> ServedOps {
        let (pool, instance) = self.instance_of(plan, round_at);
        let rank = pool.rank(instance, pool.pp - 1, 0);
        ServedOps { rank, op: marks[&rank].rounds[round_at.round as usize].1 }
    }

    /// The op that ends with a request's last token.
    fn last_token(&self, marks: &BTreeMap<u32, Marks>, request: u32) -> ServedOps {
        let plan = &self.plan.requests[request as usize];
        self.end_of(marks, plan, plan.last_token)
    }

    /// The request whose end another instance must be told of before this one can arrive there.
    fn told_of(&self, request: u32) -> Option<u32> {
        let plan = &self.plan.requests[request as usize];
        let before = plan.after?;
        let ended = &self.plan.requests[before as usize];
        let (pool, instance) = self.instance_of(ended, ended.last_token);
        (pool.role != self.setup.first_pool().role || instance != plan.instance).then_some(before)
    }

    /// The message by which a client's next request comes to its instance from where its last one ended.
    fn next_request(&self, rank: u32, peer: u32, request: u32) -> Message {
        let peer = Peer { slot: self.slot_of[rank as usize].all, member: peer };
        Message { peer, bytes: REQUEST_BYTES, tag: NEXT_REQUEST | request, dim: Dim::Other }
    }

    /// The ops whose times give the progress of a request.
    fn ops_of(&self, request: u32) -> RequestOps {
        let marks = self.marks.borrow();
        let plan = &self.plan.requests[request as usize];
        let [first, last] = [&self.setup.pools[0], self.last_pool()];
        let end = |round_at: RoundAt| self.end_of(&marks, plan, round_at);
        let begins = first.rank(plan.instance, 0, 0);
        let mut ops = RequestOps {
            arrival: plan.after.map(|before| self.last_token(&marks, before)),
            begin: ServedOps { rank: begins, op: marks[&begins].rounds[plan.first_round.round as usize].0 },
            first_token: end(plan.first_token),
            last_token: self.last_token(&marks, request),
            received: Vec::new(),
            transferred_bytes: 0,
            preemptions: plan.preemptions,
            cached: plan.cached,
        };
        if let Some(instance) = plan.decode_instance {
            for (stage, tp) in (0..last.pp).flat_map(|s| (0..last.tp).map(move |t| (s, t))) {
                let rank = last.rank(instance, stage, tp);
                let received = marks[&rank].received.get(&request).into_iter().flatten();
                ops.received.extend(received.map(|&op| ServedOps { rank, op }));
                ops.transferred_bytes += self.sources(request, stage, tp).map(|(_, bytes)| bytes).sum::<u64>();
            }
        }
        ops
    }
}

/// Data about a rank's program while it is written.
struct Written {
    marks: Marks,
    /// For each round, the receive of the tokens chosen in it.
    tokens: Vec<u32>,
    /// Sends of keys and values, by request.
    sent: BTreeMap<u32, Vec<u32>>,
}

impl Graph<'_> {
    /// Writes one round of a rank.
    fn round(
        &self,
        rank: u32,
        pool: &Pool,
        round_at: RoundAt,
        round: &Round,
        w: &mut Written,
        writer: &mut ProgramWriter,
    ) {
        let (instance, stage, tp) = pool.place(rank);
        let mine = (instance % pool.ep) as usize;
        let (here, cost) = (&round.instances[mine], &round.costs[mine][stage as usize]);
        let mut deps: Vec<u32> = Vec::new();
        if stage == 0 {
            for &request in &here.admitted {
                if self.plan.requests[request as usize].after.is_some() {
                    if let Some(before) = self.told_of(request) {
                        let ended = &self.plan.requests[before as usize];
                        let (last, i) = self.instance_of(ended, ended.last_token);
                        let sender = last.rank(i, last.pp - 1, tp % last.tp);
                        deps.push(writer.recv("request", self.next_request(rank, sender, request), Stream::FREE, &[]));
                    }
                    continue;
                }
                let ps = if self.setup.clients > 0 { 0 } else { self.requests[request as usize].arrival_ps };
                deps.push(writer.op("arrival", OpKind::Compute { ps, phase: Phase::Other }, Stream::FREE, &[]));
            }
            deps.extend(
                self.arrival_elsewhere(round, mine)
                    .map(|ps| writer.op("arrival", OpKind::Compute { ps, phase: Phase::Other }, Stream::FREE, &[])),
            );
            if let (Some(after), true) = (round.after, pool.pp > 1) {
                deps.push(w.tokens[after as usize]);
            }
        } else {
            let bytes = round.costs[mine][stage as usize - 1].send_bytes;
            let message = self.between_stages(rank, stage - 1, bytes, 0);
            deps.push(writer.recv("activations", message, Stream::comm_lane(Dim::Pp, 1), &[]));
        }
        for request in &here.sent {
            deps.extend(w.sent.get(request).into_iter().flatten());
        }
        for &request in &here.received {
            for (sender, bytes) in self.sources(request, stage, tp) {
                let message = self.between_pools(rank, sender, request, bytes, false);
                let op = writer.recv("keys and values", message, Stream::FREE, &[]);
                w.marks.received.entry(request).or_default().push(op);
                deps.push(op);
            }
        }
        let begin = writer.op("begin", OpKind::Join, Stream::COMPUTE, &deps);
        let name = match (here.shape.decoding, here.shape.chunks.len()) {
            (_, 0) => "decode",
            (0, _) => "prefill",
            _ => "prefill and decode",
        };
        for piece in &cost.pieces {
            writer.compute(name, piece.kernel_ps, Phase::Forward, &[]);
            piece.exchanges.iter().for_each(|e| self.exchange(rank, round_at, e, writer));
        }
        if cost.overhead_ps > 0 {
            writer.compute("host", cost.overhead_ps, Phase::Other, &[]);
        }
        let end = writer.op("end", OpKind::Join, Stream::COMPUTE, &[]);
        w.marks.rounds.push((begin, end));
        if stage + 1 < pool.pp {
            let message = self.between_stages(rank, stage + 1, cost.send_bytes, 0);
            writer.send("activations", message, Stream::comm_lane(Dim::Pp, 0), &[end]);
        }
        if pool.pp > 1 {
            let bytes = (u64::from(here.shape.outputs) * TOKEN_BYTES).max(1);
            if stage == 0 {
                let message = self.between_stages(rank, pool.pp - 1, bytes, 1);
                w.tokens.push(writer.recv("tokens", message, Stream::comm_lane(Dim::Pp, 3), &[]));
            } else if stage + 1 == pool.pp {
                let message = self.between_stages(rank, 0, bytes, 1);
                writer.send("tokens", message, Stream::comm_lane(Dim::Pp, 2), &[end]);
            }
        }
        if stage + 1 == pool.pp {
            let first = self.setup.first_pool();
            for &request in self.followed.get(&(round_at.engine, round_at.round)).into_iter().flatten() {
                let plan = &self.plan.requests[request as usize];
                let ended = &self.plan.requests[plan.after.expect("it follows one") as usize];
                if self.instance_of(ended, ended.last_token).1 != instance {
                    continue;
                }
                for t in (0..first.tp).filter(|t| t % pool.tp == tp) {
                    let receiver = first.rank(plan.instance, 0, t);
                    writer.send("request", self.next_request(rank, receiver, request), Stream::FREE, &[end]);
                }
            }
        }
        self.hand_on(rank, pool, round_at, &here.handed_on, end, w, writer);
    }

    /// Writes what follows the end of a round: keys and values that leave, and messages to senders that now have memory at this instance.
    #[allow(clippy::too_many_arguments, reason = "one round, by what identifies it")]
    fn hand_on(
        &self,
        rank: u32,
        pool: &Pool,
        round_at: RoundAt,
        handed_on: &[u32],
        end: u32,
        w: &mut Written,
        writer: &mut ProgramWriter,
    ) {
        let (instance, stage, tp) = pool.place(rank);
        for &request in handed_on {
            let waits = self.plan.requests[request as usize].room_after.is_some();
            for (peer, bytes) in self.targets(request, stage, tp) {
                let mut deps = vec![end];
                if waits {
                    let permit = self.between_pools(rank, peer, request, ROOM_BYTES, true);
                    deps.push(writer.recv("room", permit, Stream::FREE, &[]));
                }
                let message = self.between_pools(rank, peer, request, bytes, false);
                let op = writer.send("keys and values", message, Stream::FREE, &deps);
                w.sent.entry(request).or_default().push(op);
            }
        }
        if pool.role != PoolRole::Decode {
            return;
        }
        for &request in self.waiting_for_memory.get(&(instance, round_at.round)).into_iter().flatten() {
            for (sender, _) in self.sources(request, stage, tp) {
                let permit = self.between_pools(rank, sender, request, ROOM_BYTES, true);
                writer.send("room", permit, Stream::FREE, &[end]);
            }
        }
    }
}

impl RankSchedule for Graph<'_> {
    fn ranks(&self) -> u32 {
        self.setup.ranks()
    }

    fn groups(&self) -> Vec<Group> {
        self.groups.clone()
    }

    fn slots(&self, rank: u32) -> Vec<u32> {
        self.slots[rank as usize].clone()
    }

    /// Tensor-parallel ranks do the same, except where they send to different ranks of other instances.
    fn program_key(&self, rank: u32) -> u64 {
        let pool = &self.setup.pools[self.setup.pool_of(rank)];
        u64::from(if self.tells_ranks_apart() { rank } else { rank / pool.tp })
    }

    fn write(&self, rank: u32, writer: &mut ProgramWriter) {
        let pool_idx = self.setup.pool_of(rank);
        let pool = &self.setup.pools[pool_idx];
        let instance = pool.place(rank).0;
        let before: u32 = self.setup.pools[..pool_idx].iter().map(Pool::engines).sum();
        let engine = before + instance / pool.ep;
        let mut written = Written { marks: Marks::default(), tokens: Vec::new(), sent: BTreeMap::new() };
        for (n, round) in (0..).zip(&self.plan.engines[engine as usize].rounds) {
            self.round(rank, pool, RoundAt { engine, round: n }, round, &mut written, writer);
        }
        self.marks.borrow_mut().insert(rank, written.marks);
    }

    /// Loads of the ranks of an expert-parallel group, once for each rank that may have the busiest expert.
    fn shares(&self) -> Vec<Vec<u64>> {
        let Some(moe) = self.setup.transformer().moe.filter(|_| self.setup.expert_skew > 1.0) else {
            return Vec::new();
        };
        let of_pool = |pool: &Pool| {
            let loads = expert_loads(&moe, &pool.layout(self.setup, 1), LOAD_UNITS);
            (0..pool.ep as usize).map(move |first| {
                let mut rotated = loads.clone();
                rotated.rotate_right(first);
                rotated
            })
        };
        self.setup.pools.iter().flat_map(of_pool).collect()
    }
}
