//! Tests of the scheduler against values computed by hand, and of its invariants. All kernels take the same time, and so do all collectives.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::collective::CollectiveOp;
use crate::compute::{Gpu, Kernel};
use crate::model::{Model, Precision};
use crate::workload::program::OpKind;
use crate::workload::training::{CommCost, KernelCost, Machine, ServerSpan};

const US: u64 = 1_000_000;

/// A machine whose kernels take a microsecond, its collectives five, its messages two.
struct Even;

impl KernelCost for Even {
    fn kernel_ps(&self, _: &Kernel) -> u64 {
        US
    }

    fn stretched_ps(&self, _: &Kernel, ps: u64, _: CollectiveOp, _: u64, _: f64) -> u64 {
        ps
    }
}

impl CommCost for Even {
    fn collective_ps(&self, _: CollectiveOp, _: u64, _: ServerSpan) -> u64 {
        5 * US
    }

    fn message_ps(&self, _: u64, _: bool) -> u64 {
        2 * US
    }
}

/// A GPU on which a kernel's time is its launch only: a launch takes a whole microsecond.
fn gpu() -> Gpu {
    let h100 = Gpu::named("h100").unwrap();
    Gpu { launch_ps: US, memory_bps: 1e30, peak_flops: [1e30; 7], ..h100 }
}

fn model(more: &str) -> Arc<Model> {
    let text = format!(
        "name = \"small\"\ntransformer = {{ layers = 2, hidden = 256, heads = 8, vocab = 1000, seq = 128{more} }}\n"
    );
    Arc::new(Model::parse(&text, "test").unwrap())
}

fn pool(role: PoolRole, tp: u32, pp: u32, dp: u32, ep: u32, first_rank: u32) -> Pool {
    Pool { role, tp, pp, dp, ep, first_rank, kv_tokens: 4096 }
}

fn setup(pools: Vec<Pool>) -> ServingSetup {
    ServingSetup {
        model: model(""),
        precision: Precision::Bf16,
        narrow_weights: false,
        kv_bytes: 2,
        pools,
        batching: Batching::Mixed,
        admission: KvAdmission::Reserved,
        prefix_cache: true,
        to_prefix: false,
        clients: 0,
        max_sequences: 8,
        max_batch_tokens: 64,
        chunk_tokens: u32::MAX,
        kv_block_tokens: 16,
        step_overhead_ps: 0,
        joined_layers: u32::MAX,
        expert_skew: 1.0,
        expert_dispatcher: None,
        compute_scale: 1.0,
        draft: None,
        seed: 1,
    }
}

/// Runs the scheduler on servers of eight GPUs.
fn planned<T>(setup: &ServingSetup, requests: &[ServingRequest], then: impl FnOnce(&StepCosts, ServingPlan) -> T) -> T {
    let machine =
        Machine { kernels: &Even, comm: &Even, gpus_per_server: 8, host_bps: 0, host_op_ps: 0, peak_flops: 0 };
    let servers: Vec<u32> = (0..setup.ranks()).map(|r| r / 8).collect();
    let gpu = gpu();
    let costs = StepCosts::new(setup, machine, &gpu, &servers);
    let plan = schedule(setup, requests, &costs).unwrap();
    then(&costs, plan)
}

fn request(arrival_us: u64, prompt: u32, output: u32) -> ServingRequest {
    ServingRequest { arrival_ps: arrival_us * US, prompt, output, prefix: None }
}

#[test]
fn two_requests_take_what_they_take_by_hand() {
    let setup = setup(vec![pool(PoolRole::Both, 2, 1, 1, 1, 0)]);
    // Embedding: 1 kernel and an all-reduce. Each layer has 11 kernels (norm, product, rope, attention, product, residual, norm, product, activation, product,
    // residual) and two all-reduces. At the end 3 kernels (norm, logits, choice) and an all-gather. So 26 kernels and 6 collectives: 56 us.
    let step = 56 * US;
    // The second prompt and the first sequence's token need an attention kernel of their own in each layer.
    let mixed = 58 * US;
    let requests = [request(0, 10, 3), request(1, 10, 2)];
    planned(&setup, &requests, |_, plan| {
        let times: Vec<(u64, u64)> = plan.requests.iter().map(|r| (r.first_token_ps, r.last_token_ps)).collect();
        assert_eq!(times, [(step, step + mixed + step), (step + mixed, step + mixed + step)]);
        let served = serve(&setup, &requests, &plan).unwrap();
        // Begin, kernels, end; the joined all-reduces with their latencies before them, and the all-gather; the two arrivals.
        assert_eq!(served.workload.programs.len(), 1);
        let ops = &served.workload.programs[0].ops;
        let compute: u64 = ops
            .iter()
            .map(|op| match op.kind {
                OpKind::Compute { ps, .. } => ps,
                _ => 0,
            })
            .sum();
        // Five all-reduces as one leave four times five microseconds of latency.
        assert_eq!(compute, US + 3 * (26 + 20) * US + 2 * US);
    });
}

#[test]
fn prompts_alone_come_first_where_that_is_asked_for() {
    let setup = ServingSetup { batching: Batching::PrefillFirst, ..setup(vec![pool(PoolRole::Both, 2, 1, 1, 1, 0)]) };
    planned(&setup, &[request(0, 10, 3), request(1, 10, 2)], |_, plan| {
        let shapes: Vec<(u32, usize)> = plan.engines[0]
            .rounds
            .iter()
            .map(|r| (r.instances[0].shape.decoding, r.instances[0].shape.chunks.len()))
            .collect();
        assert_eq!(shapes, [(0, 1), (0, 1), (2, 0), (1, 0)]);
    });
}

#[test]
fn keys_and_values_go_from_each_rank_to_its_peer() {
    let (prefill, decode) = (pool(PoolRole::Prefill, 2, 1, 1, 1, 0), pool(PoolRole::Decode, 4, 2, 1, 1, 2));
    let setup = setup(vec![prefill, decode]);
    let t = setup.transformer();
    let transfers = kv_transfers(t, 2, &prefill, &decode);
    // Eight heads of 32 elements, keys and values of two bytes: 128 bytes per head and layer. A receiver has two heads of one layer.
    assert!(transfers.iter().all(|t| t.bytes_a_token == 2 * 128));
    let pairs: Vec<((u32, u32), (u32, u32))> = transfers.iter().map(|t| (t.from, t.to)).collect();
    let to_stage = |s: u32| (0..4).map(move |t| ((0, t / 2), (s, t)));
    assert_eq!(pairs, to_stage(0).chain(to_stage(1)).collect::<Vec<_>>());
    planned(&setup, &[request(0, 100, 3)], |_, plan| {
        let served = serve(&setup, &[request(0, 100, 3)], &plan).unwrap();
        assert_eq!(served.requests[0].transferred_bytes, 100 * 2 * 8 * 128);
        assert_eq!(served.requests[0].received.len(), 8);
    });
    // Latent attention keeps one vector for all heads. Every rank has it and gets it from its peer.
    let mla = model(", mla = { q_rank = 64, kv_rank = 64, rope_dim = 16, nope_dim = 32, v_dim = 32 }");
    let same = pool(PoolRole::Decode, 2, 1, 1, 1, 2);
    let transfers = kv_transfers(mla.transformer().unwrap(), 2, &prefill, &same);
    let seen: Vec<(u32, u32, u64)> = transfers.iter().map(|t| (t.from.1, t.to.1, t.bytes_a_token)).collect();
    assert_eq!(seen, [(0, 0, 2 * 80 * 2), (1, 1, 2 * 80 * 2)]);
}

#[test]
fn who_fits_nowhere_is_named() {
    let setup = setup(vec![pool(PoolRole::Both, 1, 1, 1, 1, 0)]);
    let machine =
        Machine { kernels: &Even, comm: &Even, gpus_per_server: 8, host_bps: 0, host_op_ps: 0, peak_flops: 0 };
    let gpu = gpu();
    let costs = StepCosts::new(&setup, machine, &gpu, &[0]);
    let error = schedule(&setup, &[request(0, 10, 10), request(5, 4000, 200)], &costs).unwrap_err().to_string();
    assert!(
        error.starts_with("request 1 takes memory for 4208 tokens of prompt and answer") && error.contains("4096"),
        "{error}"
    );
}

#[test]
fn who_came_last_gives_its_memory_back() {
    // Four blocks of 16 tokens for two requests that need three each in the end.
    let both = Pool { kv_tokens: 64, ..pool(PoolRole::Both, 1, 1, 1, 1, 0) };
    let setup = ServingSetup { admission: KvAdmission::OnDemand, ..setup(vec![both]) };
    let requests = [request(0, 16, 20), request(0, 16, 20)];
    planned(&setup, &requests, |_, plan| {
        assert_eq!(plan.requests.iter().map(|p| p.preemptions).collect::<Vec<u32>>(), [0, 1]);
        let shapes: Vec<(u32, Vec<(u32, u32)>)> = plan.engines[0]
            .rounds
            .iter()
            .map(|r| (r.instances[0].shape.decoding, r.instances[0].shape.chunks.clone()))
            .collect();
        // Both prefill and decode 16 tokens. The first needs a third block for its 33rd token then, and decodes three more alone.
        assert_eq!(shapes[0], (0, vec![(16, 0), (16, 0)]));
        assert!(shapes[1..17].iter().all(|shape| *shape == (2, vec![])), "{shapes:?}");
        assert!(shapes[17..20].iter().all(|shape| *shape == (1, vec![])), "{shapes:?}");
        // The second had 17 tokens of its answer, which are computed anew behind its prompt and give the 18th.
        assert_eq!(shapes[20], (0, vec![(33, 0)]));
        assert_eq!(shapes[21..], [(1, vec![]), (1, vec![])]);
        assert!(serve(&setup, &requests, &plan).is_ok());
    });
    let reserved = ServingSetup { admission: KvAdmission::Reserved, ..setup };
    planned(&reserved, &requests, |_, plan| assert_eq!(plan.engines[0].rounds.len(), 40));
}

/// A request whose first `shared` tokens belong to the text `id`.
fn with_prefix(arrival_us: u64, prompt: u32, output: u32, id: u32, shared: u32) -> ServingRequest {
    ServingRequest { prefix: Some(Prefix { id, tokens: shared }), ..request(arrival_us, prompt, output) }
}

#[test]
fn prefixes_are_computed_once() {
    let one = setup(vec![pool(PoolRole::Both, 1, 1, 1, 1, 0)]);
    let cached = |setup: &ServingSetup, requests: &[ServingRequest]| {
        planned(setup, requests, |_, plan| {
            assert!(serve(setup, requests, &plan).is_ok());
            let chunks_of = |e: &decisions::ServingEngine| {
                let chunks = e.rounds.iter().flat_map(|r| r.instances[0].shape.chunks.clone());
                chunks.collect::<Vec<(u32, u32)>>()
            };
            let chunks: Vec<(u32, u32)> = plan.engines.iter().flat_map(chunks_of).collect();
            (plan.requests.iter().map(|p| p.cached).collect::<Vec<u32>>(), chunks)
        })
    };
    // 40 of 50 tokens are shared: two whole blocks of 16. Who is in the same step computes them, too; a step holds 64 tokens.
    let three = [with_prefix(0, 50, 2, 7, 40), with_prefix(0, 50, 2, 7, 40), with_prefix(9_000, 50, 2, 7, 40)];
    assert_eq!(cached(&one, &three), (vec![0, 0, 32], vec![(50, 0), (14, 0), (36, 14), (18, 32)]));
    // A prompt that is in memory as a whole still computes its last token, and so its last block.
    assert_eq!(cached(&one, &[with_prefix(0, 32, 1, 7, 32), with_prefix(9_000, 32, 1, 7, 32)]).0, [0, 16]);
    // A conversation: the second turn finds the prompt and the answer of the first, the third those of the second.
    let turns = [with_prefix(0, 20, 13, 1, 33), with_prefix(9_000, 40, 9, 1, 49), with_prefix(19_000, 60, 2, 1, 62)];
    assert_eq!(cached(&one, &turns).0, [0, 32, 48]);
    let other_text = [with_prefix(0, 50, 2, 7, 40), with_prefix(9_000, 50, 2, 8, 40)];
    assert_eq!(cached(&one, &other_text).0, [0, 0]);
    let without = ServingSetup { prefix_cache: false, ..one.clone() };
    assert_eq!(cached(&without, &three).0, [0, 0, 0]);
    // Four blocks: two texts of two blocks each and what follows them do not fit, so the one that was used longest ago goes.
    let small = setup(vec![Pool { kv_tokens: 64, ..pool(PoolRole::Both, 1, 1, 1, 1, 0) }]);
    let texts = [1, 2, 1].map(|id| (id, 33)).into_iter().enumerate();
    let texts: Vec<ServingRequest> = texts.map(|(n, (id, t))| with_prefix(9_000 * n as u64, 40, 2, id, t)).collect();
    assert_eq!(cached(&small, &texts).0, [0, 0, 0]);
    assert_eq!(cached(&small, &[texts[0], texts[2], texts[1]].map(|r| ServingRequest { arrival_ps: 0, ..r })).0[0], 0);
    // The text is on the second instance. Both are idle when the third request comes: by default it goes to the first.
    let two = setup(vec![pool(PoolRole::Both, 1, 1, 2, 1, 0)]);
    let requests = [request(0, 10, 2), with_prefix(1, 60, 2, 7, 48), with_prefix(9_000, 60, 2, 7, 48)];
    let third = |to_prefix: bool| {
        let setup = ServingSetup { to_prefix, ..two.clone() };
        planned(&setup, &requests, |_, plan| (plan.requests[2].instance, plan.requests[2].cached))
    };
    assert_eq!((third(false), third(true)), ((0, 0), (1, 48)));
}

#[test]
fn drafted_tokens_save_steps_as_often_as_they_are_accepted() {
    let drafts = |acceptance: f64, tokens: u32| ServingSetup {
        draft: Some(Draft { tokens, acceptance, layers: 1 }),
        ..setup(vec![pool(PoolRole::Both, 1, 1, 1, 1, 0)])
    };
    let rounds = |setup: &ServingSetup, output: u32| {
        planned(setup, &[request(0, 10, output)], |_, plan| plan.engines[0].rounds.len() as f64)
    };
    // A step for the prompt, then four tokens a step, or one.
    assert_eq!((rounds(&drafts(1.0, 3), 9), rounds(&drafts(0.0, 3), 9)), (3.0, 9.0));
    // Of three drafted tokens 0.5 + 0.25 + 0.125 are accepted on average.
    let mean = 3000.0 / rounds(&drafts(0.5, 3), 3001);
    assert!((mean / 1.875 - 1.0).abs() < 0.03, "{mean}");
    // A pass of one layer has 11 kernels and attention of all; drafting three tokens takes three of them, each with the 3 kernels that choose a token.
    let kernels = |setup: &ServingSetup| {
        planned(setup, &[request(0, 10, 2)], |_, plan| {
            let last = plan.engines[0].rounds.last().unwrap();
            last.costs[0][0].bound.kernels() / US
        })
    };
    let plain = kernels(&setup(vec![pool(PoolRole::Both, 1, 1, 1, 1, 0)]));
    assert_eq!(kernels(&drafts(1.0, 3)), plain + 3 * (11 + 3));
}

#[test]
fn a_client_sends_its_next_request_when_the_last_one_is_answered() {
    // Three requests of a client to two instances: each goes to the first, and no message is needed.
    let one = ServingSetup { clients: 1, ..setup(vec![pool(PoolRole::Both, 2, 1, 2, 1, 0)]) };
    let requests = [request(5, 10, 3), request(6, 10, 2), request(7, 10, 1)];
    planned(&one, &requests, |_, plan| {
        assert_eq!(plan.requests.iter().map(|p| p.after).collect::<Vec<_>>(), [None, Some(0), Some(1)]);
        assert!(plan.requests.iter().all(|p| p.instance == 0));
        let step = 56 * US;
        assert_eq!(plan.requests[2].last_token_ps, 6 * step);
        let served = serve(&one, &requests, &plan).unwrap();
        assert_eq!(served.requests[1].arrival, Some(served.requests[0].last_token));
        assert_eq!(served.workload.groups.len(), 2, "tensor-parallel groups alone");
    });
    // The second client's request ends on the second instance, where the third client's long one goes on. So its next one comes to the first instance.
    let three = ServingSetup { clients: 3, ..one };
    let requests = [request(0, 10, 3), request(0, 10, 1), request(0, 10, 40), request(0, 10, 2)];
    planned(&three, &requests, |_, plan| {
        let places: Vec<(u32, Option<u32>)> = plan.requests.iter().map(|p| (p.instance, p.after)).collect();
        assert_eq!(places, [(0, None), (1, None), (1, None), (0, Some(1))]);
        let served = serve(&three, &requests, &plan).unwrap();
        let words = |name: fn(&OpKind) -> bool| {
            served.workload.programs.iter().flat_map(|p| &p.ops).filter(|op| name(&op.kind)).count()
        };
        // Two tensor-parallel ranks each tell their peer.
        assert_eq!(words(|kind| matches!(kind, OpKind::Send { .. })), 2);
        assert_eq!(words(|kind| matches!(kind, OpKind::Recv { .. })), 2);
    });
}

/// One or two pools with small parallel degrees.
fn pools() -> impl Strategy<Value = Vec<Pool>> {
    let layout = || (prop_oneof![Just(1u32), Just(2)], 1u32..3, 1u32..4);
    (layout(), proptest::option::of(layout()), 8u64..40).prop_map(|(a, b, blocks)| {
        let kv_tokens = blocks * 16;
        let with_role =
            |role, (tp, pp, dp): (u32, u32, u32), first| Pool { kv_tokens, ..pool(role, tp, pp, dp, 1, first) };
        match b {
            None => vec![with_role(PoolRole::Both, a, 0)],
            Some(b) => {
                let first = with_role(PoolRole::Prefill, a, 0);
                vec![first, with_role(PoolRole::Decode, b, first.ranks())]
            }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_scheduler_keeps_its_rules(
        pools in pools(),
        mixed in any::<bool>(),
        chunk in prop_oneof![Just(u32::MAX), 5u32..40],
        on_demand in any::<bool>(),
        clients in prop_oneof![Just(0u32), 1u32..8],
        drafted in prop_oneof![Just(0u32), 1u32..4],
        wanted in proptest::collection::vec((0u64..400, 1u32..90, 1u32..30), 1..24),
        texts in 0u32..4,
        to_prefix in any::<bool>(),
    ) {
        let batching = if mixed { Batching::Mixed } else { Batching::PrefillFirst };
        let admission = if on_demand { KvAdmission::OnDemand } else { KvAdmission::Reserved };
        let draft = (drafted > 0).then_some(Draft { tokens: drafted, acceptance: 0.6, layers: 1 });
        let setup = ServingSetup { batching, chunk_tokens: chunk, admission, clients, draft, to_prefix, ..setup(pools) };
        let mut requests: Vec<ServingRequest> = wanted.iter().map(|&(arrival, p, o)| request(arrival, p, o)).collect();
        if texts > 0 {
            for r in &mut requests {
                r.prefix = Some(Prefix { id: r.prompt % texts, tokens: (r.prompt * 7 % 60).clamp(1, r.prompt + r.output) });
            }
        }
        requests.sort_by_key(|r| r.arrival_ps);
        let disaggregated = setup.pools.len() > 1;
        planned(&setup, &requests, |costs, plan| {
            let mut prompts = vec![0u32; requests.len()];
            for engine in &plan.engines {
                let mut end = 0;
                for round in &engine.rounds {
                    let shape = &round.instances[0].shape;
                    prop_assert!(shape.tokens() > 0 && shape.tokens() <= setup.max_batch_tokens);
                    prop_assert!(shape.decoding as usize + shape.chunks.len() <= setup.max_sequences as usize);
                    prop_assert!(shape.chunks.iter().all(|c| c.0 <= chunk));
                    // With one stage, rounds do not overlap. With several, they start in order.
                    let earliest = if setup.pools[engine.pool].pp == 1 { end } else { 0 };
                    prop_assert!(round.start_ps >= earliest);
                    end = round.end_ps;
                    round.instances[0].admitted.iter().for_each(|r| prompts[*r as usize] += 1);
                }
            }
            // Each request is admitted once, and each token is counted once.
            prop_assert!(prompts.iter().all(|n| *n == 1));
            let shapes = || plan.engines.iter().flat_map(|e| &e.rounds).map(|r| &r.instances[0].shape);
            let outputs = requests.iter().map(|r| r.output).sum::<u32>();
            let computed = shapes().map(|s| s.outputs).sum::<u32>();
            prop_assert!(computed == outputs || drafted > 0 && computed > outputs);
            prop_assert!(shapes().all(|s| s.decode_tokens == s.decoding * (1 + drafted)));
            let preempted = plan.requests.iter().any(|p| p.preemptions > 0);
            prop_assert!(on_demand || !preempted);
            let prefilled: u32 = shapes().flat_map(|s| &s.chunks).map(|c| c.0).sum();
            let prompts: u32 = requests.iter().map(|r| r.prompt).sum();
            let cached: u32 = plan.requests.iter().map(|p| p.cached).sum();
            prop_assert!(prefilled + cached == prompts || preempted && (texts > 0 || prefilled > prompts));
            prop_assert!(texts > 0 || cached == 0);
            // Each client has one request at a time.
            let after: Vec<u32> = plan.requests.iter().filter_map(|p| p.after).collect();
            let at_first = if clients > 0 { requests.len().min(clients as usize) } else { requests.len() };
            prop_assert_eq!(after.len(), requests.len() - at_first);
            prop_assert_eq!(after.iter().collect::<std::collections::HashSet<_>>().len(), after.len());
            for (r, p) in requests.iter().zip(&plan.requests) {
                let new = r.prompt - p.cached;
                let lone = StepShape { chunks: vec![(new, 0)], outputs: 1, ..StepShape::default() };
                let alone: u64 = (0..setup.pools[0].pp).map(|s| costs.stage(0, 0, s, &lone, StepSize { tokens: new, decoding: 0 }).ps()).sum();
                let arrival_ps = match p.after {
                    Some(before) => plan.requests[before as usize].last_token_ps,
                    None if clients > 0 => 0,
                    None => r.arrival_ps,
                };
                prop_assert!(p.first_token_ps >= arrival_ps + alone);
                prop_assert!(p.last_token_ps >= p.first_token_ps);
                prop_assert_eq!(r.output == 1, p.first_token == p.last_token);
                prop_assert_eq!(p.decode_instance.is_some(), disaggregated && r.output > 1);
            }
            // First come, first served: on an instance no request begins before one that came earlier. Its first token is not earlier either, unless chunks are
            // bounded.
            for i in 0..setup.pools[0].dp {
                let here: Vec<&PlannedRequest> = plan.requests.iter().filter(|p| p.instance == i).collect();
                prop_assert!(here.windows(2).all(|w| w[0].first_round.round <= w[1].first_round.round), "{:?}", here);
                let in_order = here.windows(2).all(|w| w[0].first_token_ps <= w[1].first_token_ps);
                prop_assert!(in_order || chunk < u32::MAX || preempted, "{:?}", here);
            }
            // Memory is given out once. On an instance that does both phases, a request holds it from its first round to its last token.
            prop_assert!(plan.pools.iter().zip(&setup.pools).all(|(u, p)| u.kv_peak_tokens <= p.kv_tokens));
            if !disaggregated && !on_demand {
                for p in &plan.requests {
                    let start = plan.engines[p.first_round.engine as usize].rounds[p.first_round.round as usize].start_ps;
                    let holds = |(r, q): (&ServingRequest, &PlannedRequest)| {
                        let begin = plan.engines[q.first_round.engine as usize].rounds[q.first_round.round as usize].start_ps;
                        let here = q.instance == p.instance && begin <= start && start < q.last_token_ps;
                        let own = u64::from(r.prompt + r.output).div_ceil(16) * 16 - u64::from(q.cached);
                        if here && texts == 0 { own } else { 0 }
                    };
                    let held: u64 = requests.iter().zip(&plan.requests).map(holds).sum();
                    prop_assert!(held <= setup.pools[0].kv_tokens, "{held}");
                }
            }
            // The programs fit together: collectives and messages match, and some order finishes everything.
            let served = serve(&setup, &requests, &plan);
            prop_assert!(served.is_ok(), "{:?}", served.err());
            Ok(())
        })?;
    }

    #[test]
    fn instances_that_share_experts_go_step_by_step(
        (dp, ep) in prop_oneof![Just((2u32, 2u32)), Just((4, 2)), Just((4, 4))],
        skew in prop_oneof![Just(1.0f64), Just(2.0)],
        wanted in proptest::collection::vec((0u64..400, 1u32..60, 1u32..20), 1..16),
        drafted in prop_oneof![Just(0u32), 1u32..4],
    ) {
        let setup = ServingSetup {
            model: model(", moe = { experts = 8, top_k = 2 }"),
            expert_skew: skew,
            draft: (drafted > 0).then_some(Draft { tokens: drafted, acceptance: 0.6, layers: 1 }),
            ..setup(vec![pool(PoolRole::Both, 1, 1, dp, ep, 0)])
        };
        let mut requests: Vec<ServingRequest> = wanted.iter().map(|&(arrival, p, o)| request(arrival, p, o)).collect();
        requests.sort_by_key(|r| r.arrival_ps);
        planned(&setup, &requests, |_, plan| {
            prop_assert_eq!(plan.engines.len() as u32, dp / ep);
            let rounds: usize = plan.engines.iter().map(|e| e.rounds.len()).sum();
            let served = serve(&setup, &requests, &plan).unwrap();
            prop_assert_eq!(served.rounds[0].len(), rounds * ep as usize);
            // The dispatch and the combine of every round are each one all-to-all of all instances, with the same bytes.
            let all_to_alls = |p: &crate::workload::program::Program| -> Vec<(u64, Option<u32>)> {
                p.ops.iter().filter_map(|op| match op.kind {
                    OpKind::Collective { op: CollectiveOp::AllToAll, bytes, shares, .. } => Some((bytes, shares)),
                    _ => None,
                }).collect()
            };
            for engine in 0..(dp / ep) as usize {
                let exchanges_of = |i: usize| all_to_alls(&served.workload.programs[engine * ep as usize + i]);
                let n_rounds = plan.engines[engine].rounds.len();
                prop_assert!(exchanges_of(0).len() == n_rounds || drafted > 0 && exchanges_of(0).len() >= n_rounds);
                prop_assert!((1..ep as usize).all(|i| exchanges_of(i) == exchanges_of(0)));
                prop_assert!(exchanges_of(0).iter().all(|(_, shares)| shares.is_some() == (skew > 1.0)));
            }
            Ok(())
        })?;
    }
}
