//! A plan of inference as programs of ranks.
//!
//! A rank runs the steps of its instance in the order planned. A step begins when its rank has ended the step before, when its new requests have arrived, and when the keys
//! and values that it uses for the first time are there. So steps that take longer than planned delay what follows; what is in a step does not change.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::error::ServingError;
use super::kv::{KvTransfer, kv_transfers};
use super::plan::{Round, RoundAt, ServingPlan};
use super::request::ServingRequest;
use super::setup::{Pool, PoolRole, ServingSetup};
use super::step_cost::JoinedExchange;
use crate::compute::{Among, expert_loads};
use crate::workload::program::{Dim, Group, OpKind, Peer, Phase, Stream, Workload};
use crate::workload::random::RandomStream;
use crate::workload::rules::{Message, ProgramWriter, RankSchedule, assemble};

/// What tells a sender that there is room for keys and values (our choice).
const ROOM_BYTES: u64 = 64;
/// A chosen token on its way from the last stage to the first.
const TOKEN_BYTES: u64 = 4;
/// What experts' loads are told in.
const LOAD_UNITS: u64 = 1 << 20;

/// An op of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedOps {
    pub rank: u32,
    pub op: u32,
}

/// The ops that tell when a request is where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestOps {
    /// Ends when its first step begins.
    pub begin: ServedOps,
    /// End with its first and its last token.
    pub first_token: ServedOps,
    pub last_token: ServedOps,
    /// End when its keys and values are on the ranks that decode.
    pub received: Vec<ServedOps>,
    pub transferred_bytes: u64,
}

/// One stage of an instance in one round: ops of its first rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundOps {
    pub rank: u32,
    /// Ends when the stage begins.
    pub begin: u32,
    pub end: u32,
}

/// Programs, and where in them is what users ask for.
pub struct ServedWorkload {
    pub workload: Workload,
    /// As requests were given.
    pub requests: Vec<RequestOps>,
    /// By pool.
    pub rounds: Vec<Vec<RoundOps>>,
}

/// Where rounds and receives are in a rank's program.
#[derive(Clone, Debug, Default)]
struct Marks {
    /// Begin and end of each round.
    rounds: Vec<(u32, u32)>,
    received: BTreeMap<u32, Vec<u32>>,
}

/// Slots of a rank's groups; `u16::MAX`: it has none.
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
    /// Of each rank.
    slots: Vec<Vec<u32>>,
    slot_of: Vec<Slots>,
    /// Requests that a round of an instance that decodes makes room for.
    room: BTreeMap<(u32, u32), Vec<u32>>,
    marks: RefCell<BTreeMap<u32, Marks>>,
}

/// Writes the programs of all ranks, and where requests are in them.
///
/// # Errors
/// Programs that do not go together, which would be a defect.
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
            [from, to] => kv_transfers(setup.transformer(), setup.kv_bytes, from, to),
            _ => Vec::new(),
        };
        let mut room: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for (request, r) in (0..).zip(&plan.requests) {
            if let (Some(instance), Some(round)) = (r.decode_instance, r.room_after) {
                room.entry((instance, round)).or_default().push(request);
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
            room,
            marks: RefCell::default(),
        };
        for pool in &setup.pools {
            for (i, s) in (0..pool.dp).flat_map(|i| (0..pool.pp).map(move |s| (i, s))) {
                graph.group((0..pool.tp).map(|t| pool.rank(i, s, t)).collect(), Dim::Tp, |slots| &mut slots.tp);
            }
            for (e, at) in (0..pool.engines()).flat_map(|e| (0..pool.pp * pool.tp).map(move |at| (e, at))) {
                let member = |i: u32| pool.rank(e * pool.ep + i, at / pool.tp, at % pool.tp);
                graph.group((0..pool.ep).map(member).collect(), Dim::Ep, |slots| &mut slots.ep);
            }
            for (i, t) in (0..pool.dp).flat_map(|i| (0..pool.tp).map(move |t| (i, t))) {
                graph.group((0..pool.pp).map(|s| pool.rank(i, s, t)).collect(), Dim::Pp, |slots| &mut slots.pp);
            }
        }
        if setup.pools.len() > 1 {
            graph.group((0..setup.ranks()).collect(), Dim::Other, |slots| &mut slots.all);
        }
        graph
    }

    /// Adds a group, unless it has one member.
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

    /// First of the vectors of a pool in [`RankSchedule::shares`].
    fn first_share(&self, pool: usize) -> u32 {
        self.setup.pools[..pool].iter().map(|p| p.ep).sum()
    }

    fn exchange(&self, rank: u32, at: RoundAt, e: &JoinedExchange, to: &mut ProgramWriter) {
        if e.latency_ps > 0 {
            to.compute("latency", e.latency_ps, Phase::Other, &[]);
        }
        let (slots, pool) = (self.slot_of[rank as usize], self.setup.pool_of(rank));
        let (slot, dim, name) = match e.among {
            Among::Ep => (slots.ep, Dim::Ep, "expert all-to-all"),
            _ => (slots.tp, Dim::Tp, "tensor-parallel"),
        };
        let skewed = e.among == Among::Ep && self.setup.expert_skew > 1.0;
        let shares = skewed.then(|| {
            let stream = u64::from(at.engine) << 32 | u64::from(at.round);
            let ep = self.setup.pools[pool].ep;
            self.first_share(pool) + RandomStream::new(self.setup.seed, stream).below(ep)
        });
        let kind = OpKind::Collective { op: e.op, slot, bytes: e.bytes, dim, algorithm: None, shares };
        to.op(name, kind, Stream::COMPUTE, &[]);
    }

    /// A message of a pair of stages of an instance.
    fn between_stages(&self, rank: u32, stage: u32, bytes: u64, tag: u32) -> Message {
        Message { peer: Peer { slot: self.slot_of[rank as usize].pp, member: stage }, bytes, tag, dim: Dim::Pp }
    }

    /// A message between pools. Tags tell requests apart.
    fn between_pools(&self, rank: u32, peer: u32, request: u32, bytes: u64, room: bool) -> Message {
        let peer = Peer { slot: self.slot_of[rank as usize].all, member: peer };
        Message { peer, bytes, tag: 2 + 2 * request + u32::from(room), dim: Dim::Other }
    }

    /// What a rank of an instance that decodes receives of a request: from which rank, and how much.
    fn sources(&self, request: u32, stage: u32, tp: u32) -> impl Iterator<Item = (u32, u64)> {
        let (plan, r) = (&self.plan.requests[request as usize], &self.requests[request as usize]);
        let mine = self.transfers.iter().filter(move |t| t.to == (stage, tp));
        mine.map(move |t| {
            let from = self.setup.pools[0].rank(plan.instance, t.from.0, t.from.1);
            (from, t.bytes_a_token * u64::from(r.prompt))
        })
    }

    /// What a rank of an instance that prefills sends of a request: to which rank, and how much.
    fn targets(&self, request: u32, stage: u32, tp: u32) -> impl Iterator<Item = (u32, u64)> {
        let (plan, r) = (&self.plan.requests[request as usize], &self.requests[request as usize]);
        let to = plan.decode_instance.unwrap_or(0);
        let mine = self.transfers.iter().filter(move |t| t.from == (stage, tp));
        mine.map(move |t| (self.setup.pools[1].rank(to, t.to.0, t.to.1), t.bytes_a_token * u64::from(r.prompt)))
    }

    fn rounds_of(&self, pool: &Pool) -> Vec<RoundOps> {
        let marks = self.marks.borrow();
        let ranks = (0..pool.dp).flat_map(|i| (0..pool.pp).map(move |s| pool.rank(i, s, 0)));
        ranks
            .flat_map(|rank| marks[&rank].rounds.iter().map(move |&(begin, end)| RoundOps { rank, begin, end }))
            .collect()
    }

    fn ops_of(&self, request: u32) -> RequestOps {
        let marks = self.marks.borrow();
        let plan = &self.plan.requests[request as usize];
        let [first, last] = [&self.setup.pools[0], self.setup.pools.last().expect("there is a pool")];
        let decoder = |at: RoundAt| match plan.decode_instance {
            Some(i) if self.plan.engines[at.engine as usize].pool == 1 => (last, i),
            _ => (first, plan.instance),
        };
        // Programs are written for the first rank of those alike, and tensor-parallel ranks are.
        let end = |at: RoundAt| {
            let (pool, instance) = decoder(at);
            let rank = pool.rank(instance, pool.pp - 1, 0);
            ServedOps { rank, op: marks[&rank].rounds[at.round as usize].1 }
        };
        let begins = first.rank(plan.instance, 0, 0);
        let mut ops = RequestOps {
            begin: ServedOps { rank: begins, op: marks[&begins].rounds[plan.first_round.round as usize].0 },
            first_token: end(plan.first_token),
            last_token: end(plan.last_token),
            received: Vec::new(),
            transferred_bytes: 0,
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

/// What is known of a rank's program while it is written.
struct Written {
    marks: Marks,
    /// Receives of tokens chosen in each round.
    tokens: Vec<u32>,
    /// Sends of keys and values by request.
    sent: BTreeMap<u32, Vec<u32>>,
}

impl Graph<'_> {
    fn round(&self, rank: u32, pool: &Pool, at: RoundAt, round: &Round, w: &mut Written, to: &mut ProgramWriter) {
        let (instance, stage, tp) = pool.place(rank);
        let mine = (instance % pool.ep) as usize;
        let (here, cost) = (&round.instances[mine], &round.costs[mine][stage as usize]);
        let mut deps: Vec<u32> = Vec::new();
        if stage == 0 {
            for &request in &here.admitted {
                let ps = self.requests[request as usize].arrival_ps;
                deps.push(to.op("arrival", OpKind::Compute { ps, phase: Phase::Other }, Stream::FREE, &[]));
            }
            if let (Some(after), true) = (round.after, pool.pp > 1) {
                deps.push(w.tokens[after as usize]);
            }
        } else {
            let bytes = round.costs[mine][stage as usize - 1].send_bytes;
            let message = self.between_stages(rank, stage - 1, bytes, 0);
            deps.push(to.recv("activations", message, Stream::comm_lane(Dim::Pp, 1), &[]));
        }
        for request in &here.sent {
            deps.extend(w.sent.get(request).into_iter().flatten());
        }
        for &request in &here.received {
            for (from, bytes) in self.sources(request, stage, tp) {
                let message = self.between_pools(rank, from, request, bytes, false);
                let op = to.recv("keys and values", message, Stream::FREE, &[]);
                w.marks.received.entry(request).or_default().push(op);
                deps.push(op);
            }
        }
        let begin = to.op("begin", OpKind::Join, Stream::COMPUTE, &deps);
        let name = match (here.shape.decoding, here.shape.chunks.len()) {
            (_, 0) => "decode",
            (0, _) => "prefill",
            _ => "prefill and decode",
        };
        for piece in &cost.pieces {
            to.compute(name, piece.kernel_ps, Phase::Forward, &[]);
            piece.exchanges.iter().for_each(|e| self.exchange(rank, at, e, to));
        }
        if cost.overhead_ps > 0 {
            to.compute("host", cost.overhead_ps, Phase::Other, &[]);
        }
        let end = to.op("end", OpKind::Join, Stream::COMPUTE, &[]);
        w.marks.rounds.push((begin, end));
        if stage + 1 < pool.pp {
            let message = self.between_stages(rank, stage + 1, cost.send_bytes, 0);
            to.send("activations", message, Stream::comm_lane(Dim::Pp, 0), &[end]);
        }
        if pool.pp > 1 {
            let bytes = (u64::from(here.shape.outputs) * TOKEN_BYTES).max(1);
            if stage == 0 {
                let message = self.between_stages(rank, pool.pp - 1, bytes, 1);
                w.tokens.push(to.recv("tokens", message, Stream::comm_lane(Dim::Pp, 3), &[]));
            } else if stage + 1 == pool.pp {
                let message = self.between_stages(rank, 0, bytes, 1);
                to.send("tokens", message, Stream::comm_lane(Dim::Pp, 2), &[end]);
            }
        }
        self.hand_on(rank, pool, at, &here.handed_on, end, w, to);
    }

    /// Keys and values that leave with the end of a round, and word of the room that it makes for others.
    #[allow(clippy::too_many_arguments, reason = "one round, by what identifies it")]
    fn hand_on(
        &self,
        rank: u32,
        pool: &Pool,
        at: RoundAt,
        handed_on: &[u32],
        end: u32,
        w: &mut Written,
        to: &mut ProgramWriter,
    ) {
        let (instance, stage, tp) = pool.place(rank);
        for &request in handed_on {
            let waits = self.plan.requests[request as usize].room_after.is_some();
            for (peer, bytes) in self.targets(request, stage, tp) {
                let mut deps = vec![end];
                if waits {
                    let room = self.between_pools(rank, peer, request, ROOM_BYTES, true);
                    deps.push(to.recv("room", room, Stream::FREE, &[]));
                }
                let message = self.between_pools(rank, peer, request, bytes, false);
                let op = to.send("keys and values", message, Stream::FREE, &deps);
                w.sent.entry(request).or_default().push(op);
            }
        }
        if pool.role != PoolRole::Decode {
            return;
        }
        for &request in self.room.get(&(instance, at.round)).into_iter().flatten() {
            for (from, _) in self.sources(request, stage, tp) {
                let room = self.between_pools(rank, from, request, ROOM_BYTES, true);
                to.send("room", room, Stream::FREE, &[end]);
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

    /// Tensor-parallel ranks do the same, but for whom they send keys and values to.
    fn program_key(&self, rank: u32) -> u64 {
        let pool = &self.setup.pools[self.setup.pool_of(rank)];
        u64::from(if self.setup.pools.len() > 1 { rank } else { rank / pool.tp })
    }

    fn write(&self, rank: u32, to: &mut ProgramWriter) {
        let at = self.setup.pool_of(rank);
        let pool = &self.setup.pools[at];
        let instance = pool.place(rank).0;
        let before: u32 = self.setup.pools[..at].iter().map(Pool::engines).sum();
        let engine = before + instance / pool.ep;
        let mut written = Written { marks: Marks::default(), tokens: Vec::new(), sent: BTreeMap::new() };
        for (n, round) in (0..).zip(&self.plan.engines[engine as usize].rounds) {
            self.round(rank, pool, RoundAt { engine, round: n }, round, &mut written, to);
        }
        self.marks.borrow_mut().insert(rank, written.marks);
    }

    /// Loads of the ranks of an expert-parallel group, once for each that may have the busiest expert.
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
