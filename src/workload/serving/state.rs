//! What an instance holds while the scheduler runs: its queue, its sequences, its memory for keys and values.

use std::collections::VecDeque;

use super::plan::InstanceRound;
use super::request::ServingRequest;
use super::setup::{Batching, PoolRole, ServingSetup};
use super::step_shape::StepShape;

/// A sequence that an instance runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequence {
    pub request: u32,
    /// Tokens of the prompt whose keys and values are there or in a step.
    pub prefilled: u32,
    /// Tokens of the answer that were chosen.
    pub generated: u32,
    /// Its next token is being worked out.
    pub in_flight: bool,
    /// Its keys and values are here.
    pub ready: bool,
    /// It was in a step here.
    pub begun: bool,
}

/// One instance of the model.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub role: PoolRole,
    pub waiting: VecDeque<u32>,
    /// In the order of admission.
    pub running: Vec<Sequence>,
    pub free_blocks: u64,
    all_blocks: u64,
    block_tokens: u64,
    /// Tokens of requests that are here and not done.
    pub load: u64,
    /// Requests whose keys and values have left since the last step.
    pub sent: Vec<u32>,
    blocked_since: Option<u64>,
    pub blocked_ps: u64,
    pub peak_blocks: u64,
    used_since: u64,
    pub block_ps: u128,
}

/// What of a sequence is in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InStep {
    pub request: u32,
    /// Tokens of its prompt; 0: it decodes.
    pub chunk: u32,
    /// Its next token comes of the step.
    pub token: bool,
}

impl Instance {
    pub(super) fn new(role: PoolRole, kv_tokens: u64, block_tokens: u32) -> Instance {
        let blocks = kv_tokens / u64::from(block_tokens);
        Instance {
            role,
            waiting: VecDeque::new(),
            running: Vec::new(),
            free_blocks: blocks,
            all_blocks: blocks,
            block_tokens: u64::from(block_tokens),
            load: 0,
            sent: Vec::new(),
            blocked_since: None,
            blocked_ps: 0,
            peak_blocks: 0,
            used_since: 0,
            block_ps: 0,
        }
    }

    /// Blocks that a request keeps from its admission on: all that it will ever need, so nothing is preempted.
    pub(super) fn blocks(&self, r: &ServingRequest) -> u64 {
        let tokens = match self.role {
            PoolRole::Prefill => u64::from(r.prompt),
            PoolRole::Both | PoolRole::Decode => u64::from(r.prompt) + u64::from(r.output),
        };
        tokens.div_ceil(self.block_tokens)
    }

    /// Takes or gives back blocks at a time.
    fn use_blocks(&mut self, blocks: i64, now: u64) {
        self.block_ps += u128::from(self.all_blocks - self.free_blocks) * u128::from(now - self.used_since);
        self.used_since = now;
        self.free_blocks = self.free_blocks.checked_add_signed(-blocks).expect("no more is given out than is there");
        self.peak_blocks = self.peak_blocks.max(self.all_blocks - self.free_blocks);
    }

    pub(super) fn release(&mut self, r: &ServingRequest, now: u64) {
        self.use_blocks(-(self.blocks(r) as i64), now);
    }

    /// The time at which nothing runs any more, for what is counted over time.
    pub(super) fn end(&mut self, now: u64) {
        self.use_blocks(0, now);
    }

    /// Takes the first of the queue in, if there is room for it.
    pub(super) fn admit(&mut self, setup: &ServingSetup, requests: &[ServingRequest], now: u64) -> Option<u32> {
        let request = *self.waiting.front()?;
        let r = &requests[request as usize];
        if self.running.len() >= setup.max_sequences as usize {
            self.unblocked(now);
            return None;
        }
        let blocks = self.blocks(r);
        if blocks > self.free_blocks {
            self.blocked_since.get_or_insert(now);
            return None;
        }
        self.unblocked(now);
        self.waiting.pop_front();
        self.use_blocks(blocks as i64, now);
        let decodes = self.role == PoolRole::Decode;
        self.running.push(Sequence {
            request,
            prefilled: if decodes { r.prompt } else { 0 },
            generated: u32::from(decodes),
            in_flight: false,
            ready: !decodes,
            begun: false,
        });
        Some(request)
    }

    fn unblocked(&mut self, now: u64) {
        if let Some(since) = self.blocked_since.take() {
            self.blocked_ps += now - since;
        }
    }

    /// Puts a step together. `pp`: steps that are under way on an instance at a time, over which decoding sequences are spread.
    pub(super) fn step(
        &mut self,
        setup: &ServingSetup,
        requests: &[ServingRequest],
        pp: u32,
        now: u64,
    ) -> (InstanceRound, Vec<InStep>) {
        let mut made = Vec::new();
        let mut round = InstanceRound::default();
        let mut room = setup.max_batch_tokens;
        let prompts_first = setup.batching == Batching::PrefillFirst;
        if prompts_first {
            self.prompts(setup, requests, now, &mut room, &mut round, &mut made);
        }
        if made.is_empty() {
            self.decode(requests, pp, &mut room, &mut round.shape, &mut made);
        }
        if !prompts_first {
            self.prompts(setup, requests, now, &mut room, &mut round, &mut made);
        }
        for step in &mut made {
            let s = self.running.iter_mut().find(|s| s.request == step.request).expect("it was taken from there");
            s.prefilled += step.chunk;
            step.token = s.prefilled == requests[s.request as usize].prompt;
            s.in_flight = step.token;
            if !s.begun {
                s.begun = true;
                if self.role == PoolRole::Decode { &mut round.received } else { &mut round.admitted }.push(s.request);
            }
            round.shape.outputs += u32::from(step.token);
            if self.role == PoolRole::Prefill && step.token && requests[s.request as usize].output > 1 {
                round.handed_on.push(s.request);
            }
        }
        if !round.admitted.is_empty() {
            round.sent = std::mem::take(&mut self.sent);
        }
        (round, made)
    }

    fn decode(
        &self,
        requests: &[ServingRequest],
        pp: u32,
        room: &mut u32,
        shape: &mut StepShape,
        made: &mut Vec<InStep>,
    ) {
        let decoding = |s: &&Sequence| s.ready && s.prefilled == requests[s.request as usize].prompt;
        let all = self.running.iter().filter(decoding).count() as u32;
        let most = all.div_ceil(pp).min(*room);
        for s in self.running.iter().filter(decoding).filter(|s| !s.in_flight && s.generated > 0).take(most as usize) {
            shape.decoding += 1;
            shape.decode_context += u64::from(s.prefilled) + u64::from(s.generated);
            made.push(InStep { request: s.request, chunk: 0, token: true });
        }
        *room -= shape.decoding;
    }

    /// Prompts that were begun, then those of the queue while there is room.
    fn prompts(
        &mut self,
        setup: &ServingSetup,
        requests: &[ServingRequest],
        now: u64,
        room: &mut u32,
        round: &mut InstanceRound,
        made: &mut Vec<InStep>,
    ) {
        if self.role == PoolRole::Decode {
            return;
        }
        let mut at = 0;
        loop {
            while at < self.running.len() {
                let s = self.running[at];
                at += 1;
                let left = requests[s.request as usize].prompt - s.prefilled;
                // What follows in a prompt needs no token of what is under way.
                if left == 0 {
                    continue;
                }
                let chunk = left.min(setup.chunk_tokens).min(*room);
                if chunk == 0 {
                    return;
                }
                *room -= chunk;
                round.shape.chunks.push((chunk, s.prefilled));
                made.push(InStep { request: s.request, chunk, token: false });
            }
            if *room == 0 || self.admit(setup, requests, now).is_none() {
                return;
            }
        }
    }
}
