//! Tests: every algorithm is proved on every small communicator. Transfer counts, bytes and orders are compared with closed forms and papers.

use super::proof::prove;
use super::writer::How;
use super::*;
use crate::collective::{ExpertDirection, ExpertDispatcher, ExpertExchange};

const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::Ring,
    Algorithm::Tree,
    Algorithm::HalvingDoubling,
    Algorithm::Pat,
    Algorithm::Direct,
    Algorithm::Hierarchical,
];

fn pairs() -> Vec<(CollectiveOp, Algorithm)> {
    let one = Shape::flat(2);
    CollectiveOp::PLAIN
        .iter()
        .flat_map(|&op| ALGORITHMS.map(|a| (op, a)))
        .filter(|&(op, a)| {
            !matches!(build(op, a, 8, &one, &ScheduleOptions::default()), Err(ScheduleError::NoSuch { .. }))
        })
        .collect()
}

/// Shapes of `n` members: each member alone, all in one server, servers of every size that divides n, and one with shuffled numbering.
fn shapes(n: u32) -> Vec<Shape> {
    let mut shapes = vec![Shape::flat(n), Shape::servers(1, n)];
    shapes.extend(
        (2..n)
            .filter(|per_server| n.is_multiple_of(*per_server))
            .map(|per_server| Shape::servers(n / per_server, per_server)),
    );
    if n.is_multiple_of(2) {
        shapes.push(Shape { members: (0..n).map(|i| (i % (n / 2), i / (n / 2))).collect() });
    }
    shapes
}

#[test]
fn every_member_ends_with_the_right_data() {
    assert_eq!(pairs().len(), 30);
    for n in 2..=17 {
        for shape in shapes(n) {
            for (op, algorithm) in pairs() {
                for (bytes, channels, chunk_bytes) in
                    [(1, 1, 0), (7, 2, 0), (1001, 1, 0), (1001, 3, 64), (4099, 2, 200)]
                {
                    let root = (n * 2 / 3) % n;
                    let own_links = channels % 2 == 1;
                    let options =
                        ScheduleOptions { channels, chunk_bytes, root, own_links, ..ScheduleOptions::default() };
                    prove(op, algorithm, bytes, &shape, &options);
                }
            }
        }
    }
}

#[test]
fn servers_of_different_sizes() {
    let shape = Shape { members: vec![(0, 0), (0, 1), (0, 2), (1, 0), (2, 1), (2, 0), (1, 5)] };
    for (op, algorithm) in pairs() {
        let options = ScheduleOptions { channels: 3, chunk_bytes: 100, root: 4, ..ScheduleOptions::default() };
        if algorithm == Algorithm::Hierarchical && op != CollectiveOp::AllToAll {
            assert_eq!(
                build(op, algorithm, 999, &shape, &options).unwrap_err(),
                ScheduleError::Uneven {
                    op: if op == CollectiveOp::Barrier { CollectiveOp::AllReduce } else { op },
                    member: 3
                }
            );
        } else {
            prove(op, algorithm, 999, &shape, &options);
        }
    }
}

#[test]
fn uneven_shares_lose_no_byte() {
    let shape = Shape::servers(3, 2);
    for weights in [[1, 2, 3, 4, 5, 6], [0, 0, 7, 0, 0, 0], [u64::MAX, 1, u64::MAX, 0, 3, u64::MAX]] {
        for algorithm in [Algorithm::Direct, Algorithm::Hierarchical] {
            prove(
                CollectiveOp::AllToAll,
                algorithm,
                1013,
                &shape,
                &ScheduleOptions { channels: 2, chunk_bytes: 50, shares: Some(&weights), ..ScheduleOptions::default() },
            );
        }
        let sent: u64 = build(
            CollectiveOp::AllToAll,
            Algorithm::Direct,
            1013,
            &shape,
            &ScheduleOptions { shares: Some(&weights), ..ScheduleOptions::default() },
        )
        .unwrap()
        .transfers
        .iter()
        .filter(|t| t.from == 2)
        .map(|t| t.bytes)
        .sum();
        let own = direct::Shares::new(1013, 6, Some(&weights)).unwrap().range(2, 2);
        assert_eq!(sent, 1013 - (own.end - own.start));
    }
    let wrong = build(
        CollectiveOp::AllToAll,
        Algorithm::Direct,
        10,
        &shape,
        &ScheduleOptions { shares: Some(&[1, 2]), ..ScheduleOptions::default() },
    );
    assert_eq!(wrong.unwrap_err(), ScheduleError::Shares { given: 2, n: 6, sum: 3 });
}

#[test]
fn the_interpreter_finds_faults() {
    let (shape, options) = (Shape::flat(4), ScheduleOptions::default());
    let found = |break_it: fn(&mut ScheduleWriter)| {
        let mut w = write(CollectiveOp::AllReduce, Algorithm::Ring, 64, &shape, &options).unwrap();
        break_it(&mut w);
        std::panic::catch_unwind(|| proof::check(&w, CollectiveOp::AllReduce, Algorithm::Ring, 64, &shape, &options))
            .is_err()
    };
    assert!(!found(|_| {}));
    // One dependency less; a copy instead of a sum; a byte less; a message to another member.
    assert!(found(|w| w.schedule.transfers[5].after_n = 0));
    assert!(found(|w| w.carried[5].how = How::Copy));
    assert!(found(|w| w.schedule.transfers[5].bytes -= 1));
    assert!(found(|w| w.schedule.transfers[23].to = 1));
}

#[test]
fn trees_are_binary_and_share_the_load() {
    for n in 2..200 {
        let (mut inner_of_both, mut depth) = (0, 0);
        let trees = [tree::parents(n, 0), tree::parents(n, 1)];
        let children =
            trees.each_ref().map(|up| (0..n).map(|r| up.iter().filter(|p| **p == Some(r)).count()).collect::<Vec<_>>());
        for (up, children) in trees.iter().zip(&children) {
            assert_eq!(up.iter().filter(|p| p.is_none()).count(), 1);
            assert!(children.iter().all(|&c| c <= 2));
            for r in 0..n {
                let (mut node, mut d) = (r, 0);
                while let Some(p) = up[node as usize] {
                    (node, d) = (p, d + 1);
                }
                depth = depth.max(d);
            }
        }
        inner_of_both += children[0].iter().zip(&children[1]).filter(|(a, b)| **a > 0 && **b > 0).count() as u32;
        assert!(inner_of_both <= 2, "n = {n}: {inner_of_both} are inner nodes of both trees");
        assert!(depth <= n.ilog2() + 1, "n = {n}: depth {depth}");
    }
}

#[test]
fn rings_between_servers_stay_on_their_rail() {
    let shape = Shape::servers(4, 8);
    for (c, own_links) in (0..8).flat_map(|c| [(c, false), (c, true)]) {
        let ring = ring::order(&shape, c, &ScheduleOptions { own_links, ..ScheduleOptions::default() });
        for i in 0..ring.len() {
            let (a, b) = (shape.members[ring[i] as usize], shape.members[ring[(i + 1) % ring.len()] as usize]);
            assert!(a.0 == b.0 || a.1 == b.1, "channel {c}: {a:?} -> {b:?}");
        }
    }
}

#[test]
fn rings_across_rails_leave_servers_beside_where_they_entered() {
    for (n_servers, own_links) in [(3, false), (4, false), (4, true)] {
        let shape = Shape::servers(n_servers, 8);
        let options = ScheduleOptions { own_links, cross_nic: true, channels: 8, ..ScheduleOptions::default() };
        for c in 0..8 {
            let ring = ring::order(&shape, c, &options);
            let place = |i: usize| shape.members[ring[i % ring.len()] as usize];
            let hops: Vec<_> = (0..ring.len()).map(|i| (place(i), place(i + 1))).filter(|(a, b)| a.0 != b.0).collect();
            assert_eq!(hops.len(), n_servers as usize, "channel {c} meets each server once");
            for (from, to) in hops {
                assert!(to.1 == u32::from(c) && from.1 != to.1, "channel {c}: {from:?} -> {to:?}");
            }
        }
        for op in [CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::Broadcast] {
            prove(op, Algorithm::Ring, 1001, &shape, &options);
        }
    }
}

/// Eight rings go through servers of eight GPUs with a link per pair. Every link carries one ring in each direction.
#[test]
fn rings_between_servers_use_every_link_of_a_mesh_once() {
    let shape = Shape::servers(2, 8);
    let mut uses = std::collections::BTreeMap::new();
    for c in 0..8 {
        let ring = ring::order(&shape, c, &ScheduleOptions { own_links: true, ..ScheduleOptions::default() });
        for pair in ring.windows(2).filter(|pair| pair[0] / 8 == pair[1] / 8) {
            *uses.entry((pair[0], pair[1])).or_insert(0) += 1;
        }
    }
    assert_eq!((uses.len(), uses.values().max()), (2 * 8 * 7, Some(&1)));
}

#[test]
fn pxn_crosses_the_network_on_rails_only() {
    let shape = Shape::servers(3, 4);
    let s =
        build(CollectiveOp::AllToAll, Algorithm::Hierarchical, 12_000, &shape, &ScheduleOptions::default()).unwrap();
    let place = |m: u32| shape.members[m as usize];
    let across: Vec<_> = s.transfers.iter().filter(|t| place(t.from).0 != place(t.to).0).collect();
    assert!(across.iter().all(|t| place(t.from).1 == place(t.to).1));
    assert_eq!(across.iter().map(|t| t.bytes).sum::<u64>(), 12 * 8 * 1000);
}

#[test]
fn pat_reaches_far_members_first_with_few_bytes() {
    for (n, distances) in [(8, vec![(4, 1), (2, 2), (1, 4)]), (5, vec![(4, 1), (2, 1), (1, 2)])] {
        for op in [CollectiveOp::AllGather, CollectiveOp::ReduceScatter] {
            let bytes = 1000 * u64::from(n);
            let s = build(op, Algorithm::Pat, bytes, &Shape::flat(n), &ScheduleOptions::default()).unwrap();
            let mut seen: Vec<(u32, u64)> = Vec::new();
            for t in s.transfers.iter().filter(|t| if op == CollectiveOp::AllGather { t.from == 0 } else { t.to == 0 })
            {
                let distance = if op == CollectiveOp::AllGather { t.to } else { t.from };
                seen.push((distance, t.bytes / 1000));
            }
            if op == CollectiveOp::ReduceScatter {
                seen.reverse();
            }
            assert_eq!(seen, distances, "{op:?} of {n}");
            // No member sends more than the others, and all send what a ring sends.
            assert_eq!(s.transfers.iter().map(|t| t.bytes).sum::<u64>(), u64::from(n - 1) * bytes);
        }
    }
}

#[test]
fn small_schedules() {
    let mut text = String::new();
    for (op, algorithm, n, bytes) in [
        (CollectiveOp::AllReduce, Algorithm::Ring, 3, 10),
        (CollectiveOp::AllReduce, Algorithm::Tree, 4, 9),
        (CollectiveOp::AllReduce, Algorithm::HalvingDoubling, 5, 11),
        (CollectiveOp::Reduce, Algorithm::Ring, 3, 5),
        (CollectiveOp::Barrier, Algorithm::HalvingDoubling, 3, 0),
    ] {
        let s = build(op, algorithm, bytes, &Shape::flat(n), &ScheduleOptions::default()).unwrap();
        text += &format!("{op:?} {algorithm:?} {bytes} B\n");
        for (i, t) in s.transfers.iter().enumerate() {
            let after = &s.after[t.after_first as usize..(t.after_first + t.after_n) as usize];
            text += &format!("{i:3}: {} -> {} {} B channel {} after {after:?}\n", t.from, t.to, t.bytes, t.channel);
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn what_has_no_schedule_says_so() {
    let flat = Shape::flat(4);
    let error = |op, a| build(op, a, 8, &flat, &ScheduleOptions::default()).unwrap_err();
    assert_eq!(error(CollectiveOp::AllReduce, Algorithm::Auto), ScheduleError::Unchosen);
    assert_eq!(error(CollectiveOp::AllReduce, Algorithm::Nvls), ScheduleError::Analytic { algorithm: Algorithm::Nvls });
    assert!(error(CollectiveOp::AllToAll, Algorithm::Tree).to_string().contains("direct, hierarchical"));
    let root = build(
        CollectiveOp::Broadcast,
        Algorithm::Ring,
        8,
        &flat,
        &ScheduleOptions { root: 4, ..ScheduleOptions::default() },
    );
    assert_eq!(root.unwrap_err(), ScheduleError::Root { root: 4, n: 4 });
}

/// There are 2^30 pairs, of which few send anything or of which there are too many. Neither case may walk over all of them.
#[test]
fn all_to_all_of_many_members_is_written_or_refused_soon() {
    let shape = Shape::flat(1 << 15);
    let options = ScheduleOptions::default();
    let few = build(CollectiveOp::AllToAll, Algorithm::Direct, 2, &shape, &options).unwrap();
    assert_eq!(few.transfers.len(), 2 * ((1 << 15) - 1));
    // This fits into a schedule, but not into this memory.
    let inside = || build(CollectiveOp::AllToAll, Algorithm::Direct, 1 << 20, &Shape::flat(1 << 12), &options);
    let refused = hyperfold_base::budget::within(100 << 20, inside).map(|_| ()).unwrap_err();
    assert!(
        matches!(refused, hyperfold_base::budget::Unfinished::OverBudget(over) if over.what == "transfers of a collective")
    );
    for algorithm in [Algorithm::Direct, Algorithm::Hierarchical] {
        let many = build(CollectiveOp::AllToAll, algorithm, 1 << 20, &shape, &options);
        assert!(matches!(many, Err(ScheduleError::TooMany { n: 0x8000, .. })), "{algorithm:?}");
        let few = build(CollectiveOp::AllToAll, algorithm, 2, &Shape::servers(512, 8), &options).unwrap();
        assert!(few.transfers.len() >= 2 * 4095, "{algorithm:?}");
    }
}

/// An exchange of tokens with 64 experts, 4 of them each.
fn experts(dispatcher: ExpertDispatcher, direction: ExpertDirection) -> ExpertExchange {
    ExpertExchange { dispatcher, direction, experts: 64, top_k: 4, groups: 1, top_groups: 1 }
}

/// Bytes that a schedule sends between servers, and within them.
fn sent(schedule: &Schedule, shape: &Shape) -> (u64, u64) {
    let server = |m: u32| shape.members[m as usize].0;
    let outside = |t: &&crate::collective::Transfer| server(t.from) != server(t.to);
    let sum = |t: Vec<&crate::collective::Transfer>| t.iter().map(|t| t.bytes).sum();
    (
        sum(schedule.transfers.iter().filter(outside).collect()),
        sum(schedule.transfers.iter().filter(|t| !outside(t)).collect()),
    )
}

#[test]
fn tokens_cross_once_for_each_server() {
    let (shape, bytes) = (Shape::servers(4, 4), 4_000_000);
    let options = ScheduleOptions { chunk_bytes: 50_000, ..ScheduleOptions::default() };
    let e = experts(ExpertDispatcher::DeepEp, ExpertDirection::Dispatch);
    let dispatch = build(CollectiveOp::Experts(e), Algorithm::Hierarchical, bytes, &shape, &options).unwrap();
    // 1 MB of tokens. A server holds 16 of 64 experts, so 1 - 48 x 47 x 46 x 45 / (64 x 63 x 62 x 61) of them go there.
    let once = |held: f64| e.once_bytes(bytes, 1.0 - (0..4).map(|i| 1.0 - held / f64::from(64 - i)).product::<f64>());
    let (outside, inside) = sent(&dispatch, &shape);
    assert_eq!(outside, 16 * 3 * once(16.0));
    // Three of four GPUs of each server get their part from the fourth, or from the sender.
    assert_eq!(inside, 16 * 4 * 3 * once(4.0));
    // A copy for each expert would be 3 MB a GPU.
    assert!(outside < 16 * 3_000_000 * 7 / 10);
    // What is forwarded has arrived before.
    assert!(dispatch.transfers.iter().filter(|t| t.after_n > 0).count() > 16 * 3);
    let combine = ExpertExchange { direction: ExpertDirection::Combine, ..e };
    let combine = build(CollectiveOp::Experts(combine), Algorithm::Hierarchical, bytes, &shape, &options).unwrap();
    assert_eq!(sent(&combine, &shape), (outside, inside));
    for t in &combine.transfers {
        let after = &combine.after[t.after_first as usize..(t.after_first + t.after_n) as usize];
        assert!(after.iter().all(|&i| combine.transfers[i as usize].to == t.from));
    }
}

#[test]
fn low_latency_kernels_send_a_copy_for_each_expert() {
    let shape = Shape::servers(2, 4);
    let e = CollectiveOp::Experts(experts(ExpertDispatcher::DeepEpLowLatency, ExpertDirection::Dispatch));
    let options = ScheduleOptions::default();
    let schedule = build(e, Algorithm::Direct, 8_000_000, &shape, &options).unwrap();
    assert_eq!(sent(&schedule, &shape), (8 * 4_000_000, 8 * 3_000_000));
    assert!(schedule.after.is_empty());
    let other = build(e, Algorithm::Hierarchical, 8_000_000, &shape, &options).unwrap_err();
    assert!(other.to_string().contains("the algorithm of their dispatcher alone"));
}

#[test]
fn a_busy_member_gets_more_tokens() {
    let shape = Shape::servers(2, 4);
    let weights = [9, 1, 1, 1, 1, 1, 1, 1];
    let options = ScheduleOptions { shares: Some(&weights), ..ScheduleOptions::default() };
    let e = CollectiveOp::Experts(experts(ExpertDispatcher::DeepEp, ExpertDirection::Dispatch));
    let schedule = build(e, Algorithm::Hierarchical, 8_000_000, &shape, &options).unwrap();
    let to = |m: u32| -> u64 { schedule.transfers.iter().filter(|t| t.to == m && t.from < 4).map(|t| t.bytes).sum() };
    assert!(to(0) > 3 * to(1) && to(0) <= 6 * 2_000_000, "{} {}", to(0), to(1));
    assert!(
        build(e, Algorithm::Hierarchical, 8, &shape, &ScheduleOptions { shares: Some(&[0; 8]), ..options }).is_err()
    );
    // Servers of unequal size have no rails, but somebody in each to send to.
    let uneven = Shape { members: vec![(0, 0), (0, 1), (0, 2), (1, 0)] };
    let schedule = build(e, Algorithm::Hierarchical, 8_000_000, &uneven, &ScheduleOptions::default()).unwrap();
    assert!(schedule.transfers.iter().any(|t| (t.from, t.to) == (2, 3)));
}

/// Switches for a shape: one inside each server if `inside`; with `ports` above 0 trees between servers, in which each leaf has two servers and leaves are
/// in chains of `depth` below one root.
fn switches(shape: &Shape, inside: bool, ports: usize, depth: usize) -> ReducingSwitches {
    let servers = shape.by_server();
    let mut n = 0;
    let mut next = || {
        n += 1;
        n - 1
    };
    let inside: Vec<u32> = servers.iter().filter(|_| inside).map(|_| next()).collect();
    let leaves = servers.len().div_ceil(2);
    let mut tree = || {
        let mut switches = Vec::new();
        for level in 0..depth {
            let parent = |i: usize| if level + 1 == depth { leaves * depth } else { leaves * (level + 1) + i };
            switches.extend((0..leaves).map(|i| (next(), Some(parent(i)))));
        }
        switches.push((next(), None));
        let leaf = |s: usize| if depth == 0 { 0 } else { s / 2 };
        SwitchTree { switches, leaf_of: (0..servers.len()).map(leaf).collect() }
    };
    let places = if ports > 0 && servers.len() > 1 { servers[0].len() } else { 0 };
    let trees = (0..places).map(|_| (0..ports).map(|_| tree()).collect()).collect();
    ReducingSwitches { n, inside, trees }
}

const REDUCED: [CollectiveOp; 4] =
    [CollectiveOp::AllReduce, CollectiveOp::ReduceScatter, CollectiveOp::AllGather, CollectiveOp::Barrier];

#[test]
fn every_member_ends_with_the_right_data_where_switches_reduce() {
    for (servers, per_server) in [(1, 2), (1, 5), (2, 1), (3, 1), (4, 2), (5, 3), (2, 4)] {
        let shape = Shape::servers(servers, per_server);
        for (inside, ports, depth) in [(true, 0, 0), (true, 1, 0), (false, 2, 1), (true, 1, 2), (true, 3, 1)] {
            let switches = switches(&shape, inside, ports, depth);
            for op in REDUCED {
                for (bytes, channels, chunk_bytes) in [(1, 1, 0), (7, 2, 0), (1001, 1, 64), (4099, 3, 200)] {
                    let options = ScheduleOptions {
                        channels,
                        chunk_bytes,
                        switches: Some(&switches),
                        ..ScheduleOptions::default()
                    };
                    prove(op, Algorithm::InNetwork, bytes, &shape, &options);
                }
            }
        }
    }
}

#[test]
fn every_member_ends_with_the_sum_where_chains_lead_to_switches() {
    for (servers, per_server) in [(2, 1), (3, 1), (4, 2), (5, 3), (2, 4), (3, 8)] {
        let shape = Shape::servers(servers, per_server);
        for (ports, depth) in [(1, 0), (2, 1), (1, 2)] {
            let switches = switches(&shape, false, ports, depth);
            for op in [CollectiveOp::AllReduce, CollectiveOp::Barrier] {
                for (bytes, chunk_bytes) in [(1, 0), (7, 0), (1001, 64), (4099, 200)] {
                    let options =
                        ScheduleOptions { chunk_bytes, switches: Some(&switches), ..ScheduleOptions::default() };
                    prove(op, Algorithm::CollnetChain, bytes, &shape, &options);
                }
            }
        }
    }
}

#[test]
fn chains_meet_their_switches_at_heads_of_all_places() {
    let (shape, bytes) = (Shape::servers(4, 4), 4 << 20);
    let switches = switches(&shape, false, 1, 0);
    let options = ScheduleOptions { chunk_bytes: 1 << 16, switches: Some(&switches), ..ScheduleOptions::default() };
    let schedule = build(CollectiveOp::AllReduce, Algorithm::CollnetChain, bytes, &shape, &options).unwrap();
    let part = bytes / 4;
    let sent = |from: u32, is_right: &dyn Fn(u32) -> bool| -> u64 {
        schedule.transfers.iter().filter(|t| t.from == from && is_right(t.to)).map(|t| t.bytes).sum()
    };
    for m in 0..16 {
        let (server, place) = (m / 4 * 4, m % 4);
        // Three of four chains lead over each link between neighbours, up and down. The fourth chain ends there.
        let (up, down) = (server + (place + 3) % 4, server + (place + 1) % 4);
        assert_eq!((sent(m, &|to| to == up), sent(m, &|to| to == down)), (3 * part, 3 * part), "member {m}");
        assert_eq!(sent(m, &|to| to >= 16), part, "member {m} to its switch");
        assert_eq!(sent(m, &|_| true), 7 * part, "member {m} sends to nobody else");
    }
    let gather = build(CollectiveOp::AllGather, Algorithm::CollnetChain, bytes, &shape, &options).unwrap_err();
    assert!(gather.to_string().contains("all-gather by collnet-chain does not exist"), "{gather}");
}

#[test]
fn switches_carry_what_the_papers_say() {
    // Eight GPUs of one server: each sends its data once to be summed and an eighth once to be spread, and receives as much.
    let bytes = 8 << 20;
    let sums = |shape: &Shape, op: CollectiveOp, switches: &ReducingSwitches| {
        let options = ScheduleOptions { chunk_bytes: 1 << 17, switches: Some(switches), ..ScheduleOptions::default() };
        let schedule = build(op, Algorithm::InNetwork, bytes, shape, &options).unwrap();
        let sent = |m: u32| schedule.transfers.iter().filter(|t| t.from == m).map(|t| t.bytes).sum::<u64>();
        let received = |m: u32| schedule.transfers.iter().filter(|t| t.to == m).map(|t| t.bytes).sum::<u64>();
        (0..shape.n() + switches.n).map(|m| (sent(m), received(m))).collect::<Vec<_>>()
    };
    let one = Shape::servers(1, 8);
    let nvls = sums(&one, CollectiveOp::AllReduce, &switches(&one, true, 0, 0));
    assert!(nvls[..8].iter().all(|s| *s == (bytes + bytes / 8, bytes + bytes / 8)), "{nvls:?}");
    // Six servers of one GPU on three leaves: each NIC carries the data once each way, and so does each link of the tree.
    let six = Shape::flat(6);
    let sharp = sums(&six, CollectiveOp::AllReduce, &switches(&six, false, 1, 1));
    assert!(sharp[..6].iter().all(|s| *s == (bytes, bytes)), "{sharp:?}");
    let (leaves, root) = (&sharp[6..9], sharp[9]);
    assert!(leaves.iter().all(|s| *s == (3 * bytes, 3 * bytes)), "two hosts and the root: {sharp:?}");
    assert_eq!(root, (3 * bytes, 3 * bytes));
    // A gather: each NIC sends its shard once and receives all others.
    let gather = sums(&six, CollectiveOp::AllGather, &switches(&six, false, 1, 1));
    let shards: Vec<u64> = (0..6).map(|m| bytes * (m + 1) / 6 - bytes * m / 6).collect();
    for (m, shard) in shards.iter().enumerate() {
        assert_eq!(gather[m], (*shard, bytes - shard));
    }
}

#[test]
fn messages_that_wait_for_one_sum_share_the_list_of_what_they_wait_for() {
    let shape = Shape::flat(64);
    let switches = switches(&shape, false, 1, 0);
    let options = ScheduleOptions { switches: Some(&switches), ..ScheduleOptions::default() };
    let schedule = build(CollectiveOp::AllReduce, Algorithm::InNetwork, 64, &shape, &options).unwrap();
    assert_eq!((schedule.transfers.len(), schedule.after.len()), (128, 64));
    assert_eq!(schedule.copies_end(64), 128);
    assert_eq!(schedule.copies_end(0), 1);
}
