//! State of an instance while the scheduler runs: its queue, its sequences, its memory for keys and values.

use std::collections::{BTreeMap, VecDeque};

use super::decisions::InstanceRound;
use super::request::ServingRequest;
use super::setup::{Batching, KvAdmission, Pool, PoolRole, ServingSetup};
use super::step_shape::StepShape;
use crate::workload::random::RandomStream;

/// Bit of the numbers of the streams that decide which drafted tokens are accepted. Other streams have smaller numbers.
const ACCEPTANCE: u64 = 1 << 63;

/// A sequence that an instance runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequence {
    pub request: u32,
    /// Tokens to compute before it decodes: its prompt, and what was chosen of its answer when it was preempted.
    pub to_prefill: u32,
    /// Tokens of these whose keys and values are in memory or computed in a step in flight.
    pub prefilled: u32,
    /// Blocks of memory that it alone holds.
    pub blocks: u64,
    /// Blocks of its prefix that it has in common with others.
    pub shared: u64,
    /// The kept prefix that these blocks are of.
    pub prefix: Option<u32>,
    /// Tokens of the answer that were chosen.
    pub generated: u32,
    /// Whether its next token is being computed.
    pub in_flight: bool,
    /// Whether its keys and values are in this instance's memory.
    pub ready: bool,
    /// Whether the sequence has been in a step of this instance.
    pub begun: bool,
}

/// A request in the queue of an instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub request: u32,
    /// Tokens of its answer that were chosen before it was preempted here.
    pub generated: u32,
    /// Whether it was preempted here.
    pub preempted: bool,
    /// Whether it has been in a step of this instance.
    pub begun: bool,
}

impl Waiting {
    /// A request that comes to this instance.
    pub(super) fn new(request: u32) -> Waiting {
        Waiting { request, generated: 0, preempted: false, begun: false }
    }
}

/// Keys and values of a prefix that stay in memory.
#[derive(Clone, Copy, Debug)]
struct KeptPrefix {
    blocks: u64,
    /// Time in ps of their last use.
    used_at: u64,
}

/// One instance of the model.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub role: PoolRole,
    pub waiting: VecDeque<Waiting>,
    /// Sequences in the order of admission.
    pub running: Vec<Sequence>,
    pub free_blocks: u64,
    all_blocks: u64,
    block_tokens: u64,
    /// Drafted tokens of a sequence and step.
    drafted: u64,
    /// Tokens of the requests at this instance that are not done.
    pub load: u64,
    /// Requests whose keys and values have left since the last step.
    pub sent: Vec<u32>,
    /// Sequences whose prompt is done and whose keys and values are on their way to another pool.
    pub leaving: Vec<Sequence>,
    /// Requests that were admitted for the first time, with the tokens of their prompts that were in memory.
    pub found: Vec<(u32, u32)>,
    /// Kept prefixes by number; none where nothing is kept.
    kept: BTreeMap<u32, KeptPrefix>,
    keeps: bool,
    /// Requests that were preempted in the step that is being formed.
    pub preempted: Vec<u32>,
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
    /// Tokens of its answer that the step gives; 0 if its prompt goes on.
    pub tokens: u32,
}

impl Instance {
    pub(super) fn new(setup: &ServingSetup, pool: &Pool) -> Instance {
        let (role, block_tokens) = (pool.role, setup.kv_block_tokens);
        let blocks = pool.kv_tokens / u64::from(block_tokens);
        Instance {
            role,
            waiting: VecDeque::new(),
            running: Vec::new(),
            free_blocks: blocks,
            all_blocks: blocks,
            block_tokens: u64::from(block_tokens),
            drafted: u64::from(setup.decode_tokens() - 1),
            load: 0,
            sent: Vec::new(),
            leaving: Vec::new(),
            found: Vec::new(),
            kept: BTreeMap::new(),
            keeps: setup.prefix_cache && role != PoolRole::Decode,
            preempted: Vec::new(),
            blocked_since: None,
            blocked_ps: 0,
            peak_blocks: 0,
            used_since: 0,
            block_ps: 0,
        }
    }

    /// Blocks for all that a request will ever need here. Drafted tokens need room, too, also those that are not accepted.
    pub(super) fn blocks(&self, r: &ServingRequest) -> u64 {
        let tokens = match self.role {
            PoolRole::Prefill => u64::from(r.prompt),
            PoolRole::Both | PoolRole::Decode => u64::from(r.prompt) + u64::from(r.output) + self.drafted,
        };
        tokens.div_ceil(self.block_tokens)
    }

    /// Blocks that a request takes when it is admitted. On demand, these are for its first chunk of `chunk` tokens. Keys and values that another pool sends need
    /// room at once, and so do those that wait here until they are sent.
    fn blocks_at_admission(&self, setup: &ServingSetup, r: &ServingRequest, waiting: Waiting, chunk: u32) -> u64 {
        match (setup.admission, self.role) {
            (KvAdmission::Reserved, _) | (_, PoolRole::Prefill) => self.blocks(r),
            (KvAdmission::OnDemand, PoolRole::Decode) if !waiting.preempted => {
                u64::from(r.prompt).div_ceil(self.block_tokens)
            }
            (KvAdmission::OnDemand, _) => {
                u64::from(chunk.min(r.prompt + waiting.generated)).div_ceil(self.block_tokens)
            }
        }
    }

    /// Makes sure that the sequence at `place` has blocks for so many tokens. Sequences behind it that are not in the step `made` are preempted for that, the
    /// last one first, and in the end itself. Returns whether it has them.
    fn grow(&mut self, place: usize, tokens: u64, made: &[InStep], now: u64) -> bool {
        let has = self.running[place].blocks + self.running[place].shared;
        let more = tokens.div_ceil(self.block_tokens).saturating_sub(has);
        while !self.make_room(more, None, now) {
            let idle = |s: &Sequence| s.ready && !s.in_flight && made.iter().all(|m| m.request != s.request);
            let Some(victim) = (place..self.running.len()).rfind(|&i| idle(&self.running[i])) else { return false };
            let s = self.running.remove(victim);
            self.release(&s, now);
            self.waiting.push_front(Waiting {
                request: s.request,
                generated: s.generated,
                preempted: true,
                begun: s.begun,
            });
            self.preempted.push(s.request);
            if victim == place {
                return false;
            }
        }
        self.use_blocks(more as i64, now);
        self.running[place].blocks += more;
        true
    }

    /// Takes blocks, or gives them back if the number is negative, at time `now` in ps.
    fn use_blocks(&mut self, blocks: i64, now: u64) {
        self.block_ps += u128::from(self.all_blocks - self.free_blocks) * u128::from(now - self.used_since);
        self.used_since = now;
        self.free_blocks = self.free_blocks.checked_add_signed(-blocks).expect("no more is given out than is there");
        self.peak_blocks = self.peak_blocks.max(self.all_blocks - self.free_blocks);
    }

    /// Place of a sequence that runs. The search begins at the place `from`, because sequences of a step are in the order of their places, nearly all of them.
    pub(super) fn place(&self, request: u32, from: usize) -> usize {
        let n = self.running.len();
        let mut places = (from.min(n)..n).chain(0..from.min(n));
        places.find(|&place| self.running[place].request == request).expect("it runs")
    }

    /// Gives back the memory of a sequence that has ended, left or was preempted. Its prefix stays.
    pub(super) fn release(&mut self, s: &Sequence, now: u64) {
        self.use_blocks(-(s.blocks as i64), now);
        if let Some(kept) = s.prefix.and_then(|id| self.kept.get_mut(&id)) {
            kept.used_at = now;
        }
    }

    /// Makes sure that so many blocks are free, if kept blocks that nobody uses are enough for that: those of the prefix that was used longest ago go first.
    /// `pinned` is a prefix, and the blocks of it that the one who asks uses.
    fn make_room(&mut self, blocks: u64, pinned: Option<(u32, u64)>, now: u64) -> bool {
        while blocks > self.free_blocks {
            let used = |id: u32| {
                let sequences = self.running.iter().chain(&self.leaving).filter(|s| s.prefix == Some(id));
                let mine = pinned.filter(|(of, _)| *of == id).map(|(_, blocks)| blocks);
                sequences.map(|s| s.shared).chain(mine).max()
            };
            let unused = self.kept.iter().filter(|(id, kept)| used(**id).is_none_or(|used| kept.blocks > used));
            let Some((&id, &kept)) = unused.min_by_key(|(id, kept)| (kept.used_at, **id)) else { return false };
            match used(id) {
                Some(used) => self.kept.insert(id, KeptPrefix { blocks: used, ..kept }),
                None => self.kept.remove(&id),
            };
            let stays = self.kept.get(&id).map_or(0, |kept| kept.blocks);
            self.use_blocks(-((kept.blocks - stays) as i64), now);
        }
        true
    }

    /// Tokens that are left to compute for the requests at this instance: of prompts, and of answers.
    pub(super) fn left(&self, requests: &[ServingRequest]) -> u64 {
        let of_sequence = |s: &Sequence| {
            let answer = requests[s.request as usize].output.saturating_sub(s.generated);
            u64::from(s.to_prefill - s.prefilled) + u64::from(answer)
        };
        let of_waiting = |w: &Waiting| {
            let r = &requests[w.request as usize];
            u64::from(r.prompt) + u64::from(r.output)
        };
        self.running.iter().map(of_sequence).chain(self.waiting.iter().map(of_waiting)).sum()
    }

    /// Tokens of a request's prompt, in whole blocks, whose keys and values are in memory. At least one token is computed.
    pub(super) fn cached_tokens(&self, r: &ServingRequest) -> u32 {
        let found = r.prefix.and_then(|prefix| Some((prefix, self.kept.get(&prefix.id)?)));
        let tokens = found.map_or(0, |(prefix, kept)| {
            (kept.blocks * self.block_tokens).min(u64::from(prefix.tokens)).min(u64::from(r.prompt) - 1)
        });
        (tokens / self.block_tokens * self.block_tokens) as u32
    }

    /// Keeps the whole blocks of a sequence's prefix, of which `computed` tokens are in memory: from then on they are no longer its own.
    pub(super) fn keep(&mut self, place: usize, r: &ServingRequest, computed: u64) {
        let Some(prefix) = r.prefix.filter(|_| self.keeps) else { return };
        let s = &mut self.running[place];
        let blocks = u64::from(prefix.tokens).min(computed) / self.block_tokens;
        let kept = self.kept.entry(prefix.id).or_insert(KeptPrefix { blocks: 0, used_at: 0 });
        // What another one kept meanwhile is there twice until this one ends.
        let more = blocks.saturating_sub(kept.blocks).min(s.blocks);
        kept.blocks += more;
        s.blocks -= more;
        s.shared += more;
        s.prefix = Some(prefix.id);
    }

    /// Ends the statistics over time, at the time when nothing runs any more.
    pub(super) fn end(&mut self, now: u64) {
        self.use_blocks(0, now);
    }

    /// Admits the first request of the queue, if there is memory for it. `chunk` is the most tokens of its prompt in the step that is being formed.
    pub(super) fn admit(
        &mut self,
        setup: &ServingSetup,
        requests: &[ServingRequest],
        chunk: u32,
        now: u64,
    ) -> Option<Waiting> {
        let waiting = *self.waiting.front()?;
        let r = &requests[waiting.request as usize];
        if self.running.len() >= setup.max_sequences as usize {
            self.unblocked(now);
            return None;
        }
        let received = self.role == PoolRole::Decode && !waiting.preempted;
        let cached = if received { 0 } else { self.cached_tokens(r) };
        let shared = u64::from(cached) / self.block_tokens;
        let chunk = cached.saturating_add(chunk);
        let blocks = self.blocks_at_admission(setup, r, waiting, chunk) - shared;
        let prefix = r.prefix.filter(|_| cached > 0).map(|prefix| prefix.id);
        if !self.make_room(blocks, prefix.map(|id| (id, shared)), now) {
            self.blocked_since.get_or_insert(now);
            return None;
        }
        if !waiting.preempted && !received {
            self.found.push((waiting.request, cached));
        }
        self.unblocked(now);
        self.waiting.pop_front();
        self.use_blocks(blocks as i64, now);
        self.running.push(Sequence {
            request: waiting.request,
            to_prefill: r.prompt + waiting.generated,
            prefilled: if received { r.prompt } else { cached },
            blocks,
            shared,
            prefix,
            generated: waiting.generated + u32::from(received),
            in_flight: false,
            ready: !received,
            begun: waiting.begun,
        });
        Some(waiting)
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
            self.decode(setup, requests, pp, now, &mut tokens_left, &mut round.shape, &mut made);
        }
        if !prompts_first {
            self.prompts(setup, requests, now, &mut tokens_left, &mut round, &mut made);
        }
        let mut after = 0;
        for step in &mut made {
            let place = self.place(step.request, after);
            after = place + 1;
            let s = &mut self.running[place];
            s.prefilled += step.chunk;
            if step.chunk > 0 && s.prefilled == s.to_prefill {
                step.tokens = 1;
                round.shape.outputs += 1;
            }
            s.in_flight = step.tokens > 0;
            if !s.begun {
                s.begun = true;
                if self.role == PoolRole::Decode { &mut round.received } else { &mut round.admitted }.push(s.request);
            }
            if self.role == PoolRole::Prefill && step.tokens > 0 && requests[s.request as usize].output > 1 {
                round.handed_on.push(s.request);
            }
        }
        if !round.admitted.is_empty() {
            round.sent = std::mem::take(&mut self.sent);
        }
        (round, made)
    }

    /// Adds a token of each sequence that decodes and is not in flight, up to a share of `1 / pp`.
    #[allow(clippy::too_many_arguments, reason = "a step, and what may go into it")]
    fn decode(
        &mut self,
        setup: &ServingSetup,
        requests: &[ServingRequest],
        pp: u32,
        now: u64,
        tokens_left: &mut u32,
        shape: &mut StepShape,
        made: &mut Vec<InStep>,
    ) {
        let decodes = |s: &Sequence| s.ready && s.prefilled == s.to_prefill;
        let all = self.running.iter().filter(|s| decodes(s)).count() as u32;
        let each = setup.decode_tokens();
        let max_decoding = all.div_ceil(pp).min(*tokens_left / each);
        let mut place = 0;
        while place < self.running.len() && shape.decoding < max_decoding {
            let s = self.running[place];
            place += 1;
            if !decodes(&s) || s.in_flight || s.generated == 0 {
                continue;
            }
            let context = u64::from(requests[s.request as usize].prompt) + u64::from(s.generated);
            if setup.admission == KvAdmission::OnDemand
                && !self.grow(place - 1, context + u64::from(each - 1), made, now)
            {
                break;
            }
            shape.decoding += 1;
            shape.decode_tokens += each;
            shape.outputs += each;
            shape.decode_context += context;
            let left = requests[s.request as usize].output - s.generated;
            made.push(InStep { request: s.request, chunk: 0, tokens: accepted(setup, &s).min(left - 1) + 1 });
        }
        *tokens_left -= shape.decode_tokens;
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
        let grows = setup.admission == KvAdmission::OnDemand && self.role != PoolRole::Prefill;
        let mut next = 0;
        loop {
            while next < self.running.len() {
                let s = self.running[next];
                next += 1;
                let left = s.to_prefill - s.prefilled;
                // The next chunk of a prompt needs no token of a step in flight.
                if left == 0 {
                    continue;
                }
                let chunk = left.min(setup.chunk_tokens).min(*tokens_left);
                if chunk == 0 || grows && !self.grow(next - 1, u64::from(s.prefilled + chunk), made, now) {
                    return;
                }
                *tokens_left -= chunk;
                round.shape.chunks.push((chunk, s.prefilled));
                made.push(InStep { request: s.request, chunk, tokens: 0 });
            }
            // Keys and values from another pool are admitted when they are offered. A step that took memory from somebody admits nobody.
            let elsewhere = self.role == PoolRole::Decode && self.waiting.front().is_some_and(|w| !w.preempted);
            if *tokens_left == 0
                || elsewhere
                || !self.preempted.is_empty()
                || self.admit(setup, requests, setup.chunk_tokens.min(*tokens_left), now).is_none()
            {
                return;
            }
        }
    }
}

/// Drafted tokens of a sequence's next step that are accepted. It depends on the request and on how far it is, not on when.
fn accepted(setup: &ServingSetup, s: &Sequence) -> u32 {
    let Some(draft) = setup.draft else { return 0 };
    let mut random = RandomStream::new(setup.seed, ACCEPTANCE | u64::from(s.request) << 32 | u64::from(s.generated));
    (0..draft.tokens).take_while(|_| random.unit() < draft.acceptance).count() as u32
}
