//! State of an instance while the scheduler runs: its queue, its sequences, its memory for keys and values.

use std::collections::VecDeque;

use super::plan::InstanceRound;
use super::request::ServingRequest;
use super::setup::{Batching, PoolRole, ServingSetup};
use super::step_shape::StepShape;

/// A sequence that an instance runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequence {
    pub request: u32,
    /// Tokens of the prompt whose keys and values are in memory or computed in a step in flight.
    pub prefilled: u32,
    /// Tokens of the answer that were chosen.
    pub generated: u32,
    /// Whether its next token is being computed.
    pub in_flight: bool,
    /// Whether its keys and values are in this instance's memory.
    pub ready: bool,
    /// Whether the sequence has been in a step of this instance.
    pub begun: bool,
}

/// One instance of the model.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub role: PoolRole,
    pub waiting: VecDeque<u32>,
    /// Sequences in the order of admission.
    pub running: Vec<Sequence>,
    pub free_blocks: u64,
    all_blocks: u64,
    block_tokens: u64,
    /// Tokens of the requests at this instance that are not done.
    pub load: u64,
    /// Requests whose keys and values have left since the last step.
    pub sent: Vec<u32>,
    /// Time in ps since which the first request of the queue waits for memory alone.
    blocked_since: Option<u64>,
    pub blocked_ps: u64,
    pub peak_blocks: u64,
    /// Time in ps up to which `block_ps` is counted.
    used_since: u64,
    /// Sum of used blocks times the time in ps that they are used.
    pub block_ps: u128,
}

/// The part of a sequence in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InStep {
    pub request: u32,
    /// Tokens of its prompt; 0 if it decodes.
    pub chunk: u32,
    /// Whether the step gives its next token.
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

    /// Blocks that a request holds from its admission on. It is all that the request will ever need, so nothing is preempted.
    pub(super) fn blocks(&self, r: &ServingRequest) -> u64 {
        let tokens = match self.role {
            PoolRole::Prefill => u64::from(r.prompt),
            PoolRole::Both | PoolRole::Decode => u64::from(r.prompt) + u64::from(r.output),
        };
        tokens.div_ceil(self.block_tokens)
    }

    /// Takes blocks, or gives them back if the number is negative, at time `now` in ps.
    fn use_blocks(&mut self, blocks: i64, now: u64) {
        self.block_ps += u128::from(self.all_blocks - self.free_blocks) * u128::from(now - self.used_since);
        self.used_since = now;
        self.free_blocks = self.free_blocks.checked_add_signed(-blocks).expect("no more is given out than is there");
        self.peak_blocks = self.peak_blocks.max(self.all_blocks - self.free_blocks);
    }

    /// Gives back the blocks of a request.
    pub(super) fn release(&mut self, r: &ServingRequest, now: u64) {
        self.use_blocks(-(self.blocks(r) as i64), now);
    }

    /// Ends the statistics over time, at the time when nothing runs any more.
    pub(super) fn end(&mut self, now: u64) {
        self.use_blocks(0, now);
    }

    /// Admits the first request of the queue, if there is memory for it. Returns the request.
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

    /// Ends the time in which the queue waits for memory.
    fn unblocked(&mut self, now: u64) {
        if let Some(since) = self.blocked_since.take() {
            self.blocked_ps += now - since;
        }
    }

    /// Forms a step. `pp` is the number of steps in flight on an instance; decoding sequences are spread over them.
    pub(super) fn step(
        &mut self,
        setup: &ServingSetup,
        requests: &[ServingRequest],
        pp: u32,
        now: u64,
    ) -> (InstanceRound, Vec<InStep>) {
        let mut made = Vec::new();
        let mut round = InstanceRound::default();
        let mut tokens_left = setup.max_batch_tokens;
        let prompts_first = setup.batching == Batching::PrefillFirst;
        if prompts_first {
            self.prompts(setup, requests, now, &mut tokens_left, &mut round, &mut made);
        }
        if made.is_empty() {
            self.decode(requests, pp, &mut tokens_left, &mut round.shape, &mut made);
        }
        if !prompts_first {
            self.prompts(setup, requests, now, &mut tokens_left, &mut round, &mut made);
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

    /// Adds a token of each sequence that decodes and is not in flight, up to a share of `1 / pp`.
    fn decode(
        &self,
        requests: &[ServingRequest],
        pp: u32,
        tokens_left: &mut u32,
        shape: &mut StepShape,
        made: &mut Vec<InStep>,
    ) {
        let decoding = |s: &&Sequence| s.ready && s.prefilled == requests[s.request as usize].prompt;
        let all = self.running.iter().filter(decoding).count() as u32;
        let max_decoding = all.div_ceil(pp).min(*tokens_left);
        for s in
            self.running.iter().filter(decoding).filter(|s| !s.in_flight && s.generated > 0).take(max_decoding as usize)
        {
            shape.decoding += 1;
            shape.decode_context += u64::from(s.prefilled) + u64::from(s.generated);
            made.push(InStep { request: s.request, chunk: 0, token: true });
        }
        *tokens_left -= shape.decoding;
    }

    /// Adds chunks of the prompts that were begun, then of those of the queue while there is memory.
    fn prompts(
        &mut self,
        setup: &ServingSetup,
        requests: &[ServingRequest],
        now: u64,
        tokens_left: &mut u32,
        round: &mut InstanceRound,
        made: &mut Vec<InStep>,
    ) {
        if self.role == PoolRole::Decode {
            return;
        }
        let mut next = 0;
        loop {
            while next < self.running.len() {
                let s = self.running[next];
                next += 1;
                let left = requests[s.request as usize].prompt - s.prefilled;
                // The next chunk of a prompt needs no token of a step in flight.
                if left == 0 {
                    continue;
                }
                let chunk = left.min(setup.chunk_tokens).min(*tokens_left);
                if chunk == 0 {
                    return;
                }
                *tokens_left -= chunk;
                round.shape.chunks.push((chunk, s.prefilled));
                made.push(InStep { request: s.request, chunk, token: false });
            }
            if *tokens_left == 0 || self.admit(setup, requests, now).is_none() {
                return;
            }
        }
    }
}
