//! The scheduler of every instance, run over all requests: continuous batching, event by event.
//!
//! A request goes to the instance with the fewest tokens ahead, first come, first served. With [`KvAdmission::Reserved`](super::setup::KvAdmission), memory for the
//! keys and values of its prompt and whole answer is reserved when it is admitted. On demand, it takes memory as it goes, and the sequence that was admitted
//! last is preempted where none is left. A request without memory waits, and so do those behind it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::decisions::{InstanceRound, PlannedRequest, PoolUse, Round, RoundAt, ServingEngine, ServingPlan};
use super::error::ServingError;
use super::kv::kv_transfers;
use super::request::ServingRequest;
use super::setup::{PoolRole, ServingSetup};
use super::state::{InStep, Instance, Waiting};
use super::step_cost::{StageCost, StepCosts};
use super::step_shape::StepSize;
use hyperfold_base::budget;

/// An event. Events of the same time are handled in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    RoundEnd {
        engine: u32,
        round: u32,
    },
    Received {
        request: u32,
    },
    Arrival {
        request: u32,
    },
    /// The first stage of an engine may be free.
    Wake {
        engine: u32,
    },
}

/// State of the schedulers.
struct Scheduler<'a> {
    setup: &'a ServingSetup,
    requests: &'a [ServingRequest],
    costs: &'a StepCosts<'a>,
    /// Current time in ps.
    now: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    engines: Vec<ServingEngine>,
    /// Time in ps at which each stage is free, by engine.
    free: Vec<Vec<u64>>,
    /// Sequences in the rounds in flight, by engine, round and instance.
    under_way: Vec<Vec<Vec<Vec<InStep>>>>,
    /// The last round that has ended, by engine.
    ended: Vec<Option<u32>>,
    /// By pool and instance.
    instances: Vec<Vec<Instance>>,
    plans: Vec<Option<PlannedRequest>>,
    /// For each request, the one whose end lets it arrive, as far as that is known.
    follows: Vec<Option<u32>>,
    /// The next request that a client sends.
    next: u32,
    pools: Vec<PoolUse>,
}

/// Runs the schedulers until the last request is done.
///
/// # Errors
/// A request is too long for the memory of an instance.
pub fn schedule(
    setup: &ServingSetup,
    requests: &[ServingRequest],
    costs: &StepCosts,
) -> Result<ServingPlan, ServingError> {
    fits(setup, requests)?;
    let engines: Vec<ServingEngine> = (0..)
        .zip(&setup.pools)
        .flat_map(|(pool, p)| {
            (0..p.engines()).map(move |e| ServingEngine { pool, first_instance: e * p.ep, rounds: Vec::new() })
        })
        .collect();
    let closed = setup.clients > 0;
    let at_first = if closed { requests.len().min(setup.clients as usize) } else { requests.len() };
    let mut s = Scheduler {
        setup,
        requests,
        costs,
        now: 0,
        events: (0..)
            .zip(&requests[..at_first])
            .map(|(request, r)| Reverse((if closed { 0 } else { r.arrival_ps }, Event::Arrival { request })))
            .collect(),
        free: engines.iter().map(|e| vec![0; setup.pools[e.pool].pp as usize]).collect(),
        under_way: vec![Vec::new(); engines.len()],
        ended: vec![None; engines.len()],
        engines,
        instances: setup.pools.iter().map(|p| (0..p.dp).map(|_| Instance::new(setup, p)).collect()).collect(),
        plans: vec![None; requests.len()],
        follows: vec![None; requests.len()],
        next: at_first as u32,
        pools: vec![PoolUse::default(); setup.pools.len()],
    };
    while let Some(Reverse((event_ps, event))) = s.events.pop() {
        budget::check("steps of inference");
        s.now = event_ps;
        match event {
            Event::Arrival { request } => s.arrive(request),
            Event::Received { request } => s.receive(request),
            Event::RoundEnd { engine, round } => s.end_round(engine, round),
            Event::Wake { engine } => s.start(engine),
        }
    }
    Ok(s.finished())
}

/// Checks that an idle instance of each pool has memory for each request.
fn fits(setup: &ServingSetup, requests: &[ServingRequest]) -> Result<(), ServingError> {
    for pool in &setup.pools {
        let instance = Instance::new(setup, pool);
        let too_long = requests.iter().position(|r| instance.blocks(r) > instance.free_blocks);
        if let Some(request) = too_long {
            let tokens = instance.blocks(&requests[request]) * u64::from(setup.kv_block_tokens);
            let place = format!("request {request}");
            let what = if pool.role == PoolRole::Prefill { "prompt" } else { "prompt and answer" };
            return Err(ServingError::TooLong {
                request,
                place,
                tokens,
                what,
                pool: pool.name(),
                capacity: pool.kv_tokens,
            });
        }
    }
    Ok(())
}

impl Scheduler<'_> {
    fn push(&mut self, at_ps: u64, event: Event) {
        self.events.push(Reverse((at_ps, event)));
    }

    /// Index of the engine of an instance, counted over all pools. `instance` is counted in its pool.
    fn engine_of(&self, pool: usize, instance: u32) -> u32 {
        let before: u32 = self.setup.pools[..pool].iter().map(|p| p.engines()).sum();
        before + instance / self.setup.pools[pool].ep
    }

    /// The instance of a pool with the fewest tokens ahead; the first if several have as few. Where requests go to their prefixes, it is the one that has the
    /// fewest tokens left to compute, less those of the prompt that it has in memory.
    fn least_loaded(&self, pool: usize, request: u32) -> u32 {
        let r = &self.requests[request as usize];
        let load = |(i, instance): (u32, &Instance)| match self.setup.to_prefix {
            true => (instance.left(self.requests) as i64 - i64::from(instance.cached_tokens(r)), i),
            false => (instance.load as i64, i),
        };
        (0..).zip(&self.instances[pool]).map(load).min().map_or(0, |(_, i)| i)
    }

    fn arrive(&mut self, request: u32) {
        let r = self.requests[request as usize];
        let instance_idx = self.least_loaded(0, request);
        let instance = &mut self.instances[0][instance_idx as usize];
        instance.load += u64::from(r.prompt) + u64::from(r.output);
        instance.waiting.push_back(Waiting::new(request));
        let engine = self.engine_of(0, instance_idx);
        let nowhere = RoundAt { engine, round: u32::MAX };
        self.plans[request as usize] = Some(PlannedRequest {
            instance: instance_idx,
            decode_instance: None,
            first_round: nowhere,
            first_token: nowhere,
            last_token: nowhere,
            first_token_ps: 0,
            last_token_ps: 0,
            room_after: None,
            after: self.follows[request as usize],
            cached: 0,
            preemptions: 0,
        });
        self.push(self.now, Event::Wake { engine });
    }

    fn plan(&mut self, request: u32) -> &mut PlannedRequest {
        self.plans[request as usize].as_mut().expect("it has arrived")
    }

    /// Forms a round, if the first stage of the engine is free, fewer rounds are under way than it has stages, and there is anything to do.
    fn start(&mut self, engine: u32) {
        let e = engine as usize;
        let (pool_idx, first) = (self.engines[e].pool, self.engines[e].first_instance);
        let pool = self.setup.pools[pool_idx];
        let under_way = self.engines[e].rounds.len() - self.ended[e].map_or(0, |round| round as usize + 1);
        if self.free[e][0] > self.now || under_way >= pool.pp as usize {
            return;
        }
        let mut made: Vec<(InstanceRound, Vec<InStep>)> = Vec::new();
        for i in first..first + pool.ep {
            let instance = &mut self.instances[pool_idx][i as usize];
            made.push(instance.step(self.setup, self.requests, pool.pp, self.now));
            let instance = &mut self.instances[pool_idx][i as usize];
            let (preempted, found) = (std::mem::take(&mut instance.preempted), std::mem::take(&mut instance.found));
            preempted.into_iter().for_each(|request| self.plan(request).preemptions += 1);
            found.into_iter().for_each(|(request, tokens)| self.plan(request).cached = tokens);
        }
        let busiest = StepSize::busiest(made.iter().map(|(r, _)| &r.shape));
        if busiest.tokens == 0 {
            return;
        }
        let cost = |(i, (round, _)): (u32, &(InstanceRound, Vec<InStep>))| -> Vec<StageCost> {
            (0..pool.pp).map(|stage| self.costs.stage(pool_idx, i, stage, &round.shape, busiest)).collect()
        };
        let costs: Vec<Vec<StageCost>> = (first..).zip(&made).map(cost).collect();
        let mut end = self.now;
        for stage in 0..pool.pp as usize {
            let slowest = costs.iter().map(|c| c[stage].ps()).max().unwrap_or(0);
            end = end.max(self.free[e][stage]) + slowest;
            self.free[e][stage] = end;
            end += costs.iter().map(|c| c[stage].send_ps).max().unwrap_or(0);
        }
        let usage = &mut self.pools[pool_idx];
        usage.rounds += 1;
        let round = self.engines[e].rounds.len() as u32;
        for (instance, (_, steps)) in costs.iter().zip(&made) {
            instance.iter().for_each(|stage| usage.bound.add(&stage.bound));
            usage.sequences += steps.len() as u64;
        }
        for request in made.iter().flat_map(|(r, _)| r.admitted.clone()) {
            self.plan(request).first_round = RoundAt { engine, round };
        }
        let (instances, steps): (Vec<InstanceRound>, Vec<Vec<InStep>>) = made.into_iter().unzip();
        self.under_way[e].push(steps);
        let after = self.ended[e];
        self.engines[e].rounds.push(Round { start_ps: self.now, end_ps: end, instances, costs, after });
        self.push(self.free[e][0], Event::Wake { engine });
        self.push(end, Event::RoundEnd { engine, round });
    }

    fn end_round(&mut self, engine: u32, round: u32) {
        let e = engine as usize;
        self.ended[e] = Some(round);
        let (pool_idx, first) = (self.engines[e].pool, self.engines[e].first_instance);
        let steps = std::mem::take(&mut self.under_way[e][round as usize]);
        for (i, steps) in (first..).zip(&steps) {
            let mut after = 0;
            for step in steps.iter().filter(|step| step.tokens > 0) {
                after = self.instances[pool_idx][i as usize].place(step.request, after);
                self.end_step(pool_idx, i, after, *step, RoundAt { engine, round });
            }
            if self.instances[pool_idx][i as usize].role == PoolRole::Decode {
                self.admit_decode(i, Some(round));
            }
        }
        self.push(self.now, Event::Wake { engine });
    }

    /// Updates the sequence at `place` of an instance, which has left a round with a token.
    fn end_step(&mut self, pool_idx: usize, i: u32, place: usize, step: InStep, round_at: RoundAt) {
        let request = step.request;
        let (r, now) = (self.requests[request as usize], self.now);
        let instance = &mut self.instances[pool_idx][i as usize];
        let s = &mut instance.running[place];
        s.in_flight = false;
        let is_first = s.generated == 0;
        s.generated += step.tokens;
        let generated = s.generated;
        let done = generated == r.output;
        let leaves = instance.role == PoolRole::Prefill;
        if step.chunk > 0 {
            instance.keep(place, &r, u64::from(r.prompt));
        }
        if done {
            instance.keep(place, &r, u64::from(r.prompt) + u64::from(r.output) - 1);
        }
        if done || leaves {
            let s = instance.running.remove(place);
            instance.load -= u64::from(r.prompt) + u64::from(r.output);
            // Who leaves keeps its memory until its keys and values have arrived elsewhere.
            if done { instance.release(&s, now) } else { instance.leaving.push(s) }
        }
        let plan = self.plan(request);
        if is_first {
            (plan.first_token, plan.first_token_ps) = (round_at, now);
        }
        if done {
            (plan.last_token, plan.last_token_ps) = (round_at, now);
        }
        if leaves && !done {
            self.hand_on(request);
        }
        if done && (self.next as usize) < self.requests.len() {
            let next = self.next;
            self.next += 1;
            self.follows[next as usize] = Some(request);
            self.push(now, Event::Arrival { request: next });
        }
    }

    /// Sends a request whose prompt is done to an instance that decodes.
    fn hand_on(&mut self, request: u32) {
        let r = self.requests[request as usize];
        let decoder = self.least_loaded(1, request);
        let instance = &mut self.instances[1][decoder as usize];
        instance.load += u64::from(r.prompt) + u64::from(r.output);
        instance.waiting.push_back(Waiting::new(request));
        self.plan(request).decode_instance = Some(decoder);
        self.admit_decode(decoder, None);
    }

    /// Admits waiting requests to a decoding instance while it has memory. From then on, their keys and values are in flight.
    fn admit_decode(&mut self, decoder: u32, room_after: Option<u32>) {
        loop {
            let instance = &mut self.instances[1][decoder as usize];
            // Who was preempted here is computed anew in a step.
            if instance.waiting.front().is_none_or(|waiting| waiting.preempted) {
                return;
            }
            let Some(waiting) = instance.admit(self.setup, self.requests, 0, self.now) else { return };
            let request = waiting.request;
            let plan = self.plan(request);
            plan.room_after = room_after;
            let prefiller = plan.instance;
            let arrives = self.now + self.transfer_ps(request, prefiller, decoder);
            self.push(arrives, Event::Received { request });
        }
    }

    /// Time in ps that keys and values take to arrive on an idle network: that of the busiest sender, one message after another.
    fn transfer_ps(&self, request: u32, prefiller: u32, decoder: u32) -> u64 {
        let [a, b] = [&self.setup.pools[0], &self.setup.pools[1]];
        let prompt = u64::from(self.requests[request as usize].prompt);
        let mut senders: Vec<((u32, u32), u64)> = Vec::new();
        for t in kv_transfers(self.setup.transformer(), self.setup.kv_bytes, a, b) {
            let (src, dst) = (a.rank(prefiller, t.from.0, t.from.1), b.rank(decoder, t.to.0, t.to.1));
            let ps = self.costs.message_ps(t.bytes_a_token * prompt, src, dst);
            match senders.iter_mut().find(|s| s.0 == t.from) {
                Some(s) => s.1 += ps,
                None => senders.push((t.from, ps)),
            }
        }
        senders.iter().map(|s| s.1).max().unwrap_or(0)
    }

    /// Handles the arrival of a request's keys and values at the decoding instance.
    fn receive(&mut self, request: u32) {
        let now = self.now;
        let plan = *self.plan(request);
        let prefiller = &mut self.instances[0][plan.instance as usize];
        let place = prefiller.leaving.iter().position(|s| s.request == request).expect("it left its prefill");
        let s = prefiller.leaving.remove(place);
        prefiller.release(&s, now);
        prefiller.sent.push(request);
        let decoder = plan.decode_instance.expect("it was handed on");
        let running = &mut self.instances[1][decoder as usize].running;
        running.iter_mut().find(|s| s.request == request).expect("it was admitted").ready = true;
        for (pool, instance) in [(0, plan.instance), (1, decoder)] {
            let engine = self.engine_of(pool, instance);
            self.push(now, Event::Wake { engine });
        }
    }

    /// The finished plan, with the statistics of all pools.
    fn finished(mut self) -> ServingPlan {
        let block = u64::from(self.setup.kv_block_tokens);
        for (usage, instances) in self.pools.iter_mut().zip(&mut self.instances) {
            for instance in instances {
                instance.end(self.now);
                usage.kv_blocked_ps += instance.blocked_ps;
                usage.kv_token_ps += instance.block_ps * u128::from(block);
                usage.kv_peak_tokens = usage.kv_peak_tokens.max(instance.peak_blocks * block);
            }
        }
        let requests = self.plans.into_iter().map(|p| p.expect("every request has arrived")).collect();
        ServingPlan { engines: self.engines, requests, pools: self.pools }
    }
}
