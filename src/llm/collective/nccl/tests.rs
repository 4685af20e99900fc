//! Tests of the model and the choice against published facts about NCCL, and of the environment variables.

use std::collections::BTreeMap;

use super::*;
use crate::collective::choose;
use crate::collective::server::Server;
use crate::collective::system::MemberPlacement;
use crate::collective::{Algorithm, CollectiveOp, CollectiveSystem};

fn env(pairs: &[(&str, &str)]) -> Result<Env, EnvError> {
    Env::parse(&pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect::<BTreeMap<_, _>>())
}

fn h100() -> CollectiveSystem {
    Server::preset("dgx-h100").unwrap().system(false)
}

#[test]
fn predictions_of_8_h100_as_nccl_makes_them() {
    let placement = MemberPlacement::alone(8, 8);
    let none = Env::default();
    // NCCL 2.30.7's constants give 28.0 us at 1 MiB and 63.2 ms at 16 GiB; ring with LL up to 1 MiB, then NVLS.
    let small = choose(CollectiveOp::AllReduce, 1 << 20, &placement, &h100(), &none);
    assert_eq!((small.algorithm, small.protocol), (Algorithm::Ring, Protocol::Ll));
    assert!((small.predicted_ps as f64 / 1e6 - 28.0).abs() < 0.1, "{}", small.predicted_ps);
    let large = choose(CollectiveOp::AllReduce, 16 << 30, &placement, &h100(), &none);
    assert_eq!((large.algorithm, large.protocol, large.channels), (Algorithm::Nvls, Protocol::Simple, 16));
    assert!((large.predicted_ps as f64 / 1e9 - 63.2).abs() < 0.1, "{}", large.predicted_ps);
    // At 2 MiB the links say that both take about as long; NCCL's model says NVLS, as the log of aws_p5_1n.
    let context = Context::new(&h100(), &placement, &none);
    assert_eq!(choose_collective(CollectiveOp::AllReduce, 2 << 20, &context, &none).algorithm, Algorithm::Nvls);
}

#[test]
fn latencies_of_two_nodes_as_a_log_of_nccl_shows_them() {
    let context = Context::new(&h100(), &MemberPlacement::alone(2, 1), &Env::default());
    let us = |algorithm| {
        Protocol::ALL.map(|p| (latency_us(CollectiveOp::AllReduce, algorithm, p, 8, &context) * 10.0).round() / 10.0)
    };
    assert_eq!(us(Algorithm::Ring), [16.6, 31.0, 36.4]);
    assert_eq!(us(Algorithm::Tree), [16.8, 31.0, 36.4]);
}

#[test]
fn graphs_as_logs_show_them() {
    let a100 = Server::preset("dgx-a100").unwrap().system(false);
    let context = |system: &CollectiveSystem, nodes: u32| {
        Context::new(system, &MemberPlacement::alone(8 * nodes, 8), &Env::default())
    };
    assert_eq!((context(&a100, 1).intra_bus, context(&a100, 1).channels), (240.0, 24));
    assert_eq!((context(&h100(), 1).intra_bus, context(&h100(), 1).channels), (360.0, 24));
    assert_eq!((context(&h100(), 2).inter_bus, context(&h100(), 2).channels), (360.0, 16));
    assert_eq!(context(&a100, 4).inter_bus, 192.0);
}

#[test]
fn nobody_is_cheaper_than_the_choice() {
    let system = h100();
    for (nodes, per) in [(1, 8), (2, 8), (16, 8), (8, 1)] {
        let placement = MemberPlacement::alone(nodes * per, per);
        let context = Context::new(&system, &placement, &Env::default());
        for bytes in (3..34).map(|k| 1u64 << k) {
            for op in [
                CollectiveOp::AllReduce,
                CollectiveOp::AllGather,
                CollectiveOp::ReduceScatter,
                CollectiveOp::Broadcast,
                CollectiveOp::Reduce,
            ] {
                let choice = choose_collective(op, bytes, &context, &Env::default());
                for algorithm in [
                    Algorithm::Ring,
                    Algorithm::Tree,
                    Algorithm::Nvls,
                    Algorithm::Pat,
                    Algorithm::InNetwork,
                    Algorithm::CollnetChain,
                ] {
                    for protocol in Protocol::ALL {
                        let us = predict_us(op, algorithm, protocol, bytes, &context).unwrap_or(f64::MAX);
                        assert!(
                            us * 1e6 + 1.0 >= choice.predicted_ps as f64,
                            "{op:?} {bytes} {algorithm:?} {protocol:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_environment_overrides_the_choice() {
    let placement = MemberPlacement::alone(16, 8);
    let pick = |pairs: &[(&str, &str)], op| choose(op, 64 << 20, &placement, &h100(), &env(pairs).unwrap());
    assert_eq!(pick(&[("NCCL_ALGO", "Ring")], CollectiveOp::AllReduce).algorithm, Algorithm::Ring);
    assert_eq!(pick(&[("NCCL_ALGO", "^Ring,NVLSTree,NVLS")], CollectiveOp::AllReduce).algorithm, Algorithm::Tree);
    assert_eq!(
        pick(&[("NCCL_ALGO", "allreduce:tree;allgather:ring")], CollectiveOp::AllReduce).algorithm,
        Algorithm::Tree
    );
    assert_ne!(pick(&[("NCCL_NVLS_ENABLE", "0")], CollectiveOp::AllReduce).algorithm, Algorithm::Nvls);
    assert_eq!(pick(&[("NCCL_PROTO", "LL"), ("NCCL_ALGO", "Ring")], CollectiveOp::AllGather).protocol, Protocol::Ll);
    assert_eq!(pick(&[("NCCL_MAX_NCHANNELS", "4"), ("NCCL_ALGO", "Ring")], CollectiveOp::AllReduce).channels, 4);
    assert_eq!(
        pick(&[("NCCL_BUFFSIZE", "8388608"), ("NCCL_PROTO", "Simple"), ("NCCL_ALGO", "Ring")], CollectiveOp::AllGather)
            .chunk_bytes,
        2 << 20
    );
    assert_eq!(pick(&[], CollectiveOp::AllToAll).algorithm, Algorithm::Hierarchical);
    assert_eq!(pick(&[("NCCL_PXN_DISABLE", "1")], CollectiveOp::AllToAll).algorithm, Algorithm::Direct);
    assert_eq!(pick(&[("NCCL_P2P_NET_CHUNKSIZE", "65536")], CollectiveOp::AllToAll).chunk_bytes, 65536);
}

#[test]
fn chains_to_switches_cost_their_hops() {
    let system = Server::preset("dgx-a100").unwrap().system(true);
    let us = |placement: &MemberPlacement, algorithm, bytes| {
        let context = Context::new(&system, placement, &Env::default());
        predict_us(CollectiveOp::AllReduce, algorithm, Protocol::Simple, bytes, &context)
    };
    let two = MemberPlacement::alone(16, 8);
    // 2 x 7 hops of 2.8 us inside the server, and 30 us of the network; half of the bus is 96 GB/s.
    let at_96_gbps = 69.2 + f64::from(96 << 20) / 96e3;
    assert!((us(&two, Algorithm::CollnetChain, 96 << 20).unwrap() - at_96_gbps).abs() < 0.1);
    assert!(us(&two, Algorithm::CollnetChain, 8) > us(&two, Algorithm::InNetwork, 8));
    // One GPU a server: its chain has no hop, and the network takes as long as for a tree.
    let flat = us(&MemberPlacement::alone(4, 1), Algorithm::CollnetChain, 0).unwrap();
    assert!((flat - 14.0).abs() < 1e-9, "{flat}");
    assert_eq!(us(&MemberPlacement::alone(8, 8), Algorithm::CollnetChain, 8), None, "no network, no switch");
    assert_eq!(us(&MemberPlacement::alone(32, 16), Algorithm::CollnetChain, 8), None, "NCCL has chains of up to 8");
}

#[test]
fn of_both_kinds_of_collnet_nccl_takes_the_faster_one() {
    let system = CollectiveSystem { nvls: false, ..Server::preset("dgx-h100").unwrap().system(true) };
    let chosen = |algorithms: &str, (ranks, per_node): (u32, u32), bytes| {
        let (placement, env) = (MemberPlacement::alone(ranks, per_node), env(&[("NCCL_ALGO", algorithms)]).unwrap());
        let context = Context::new(&system, &placement, &env);
        choose_collective(CollectiveOp::AllReduce, bytes, &context, &env).algorithm
    };
    for servers in [(16, 8), (64, 8), (4, 1)] {
        assert_eq!(chosen("CollnetDirect", servers, 1 << 20), Algorithm::InNetwork);
        assert_eq!(chosen("CollnetChain", servers, 1 << 20), Algorithm::CollnetChain);
    }
    // Chains have more hops, and NCCL counts 0.85 of the bandwidth of direct exchanges on H100.
    assert_eq!(chosen("CollnetDirect,CollnetChain", (16, 8), 1 << 10), Algorithm::InNetwork);
    assert_eq!(chosen("CollnetDirect,CollnetChain", (16, 8), 1 << 30), Algorithm::CollnetChain);
    assert_eq!(chosen("CollnetDirect,CollnetChain", (4, 1), 1 << 10), Algorithm::CollnetChain);
    assert_eq!(chosen("^CollnetDirect,Tree,Ring", (16, 8), 1 << 10), Algorithm::CollnetChain);
}

#[test]
fn the_environment_changes_what_it_costs() {
    let placement = MemberPlacement::alone(16, 8);
    let cost = |pairs: &[(&str, &str)], op| {
        crate::collective::cost_ps(op, 256 << 20, &placement, &h100(), &env(pairs).unwrap())
    };
    let plain = cost(&[], CollectiveOp::AllGather);
    for pair in [
        ("NCCL_MAX_NCHANNELS", "2"),
        ("NCCL_IB_HCA", "mlx5_0,mlx5_1"),
        ("NCCL_IB_DISABLE", "1"),
        ("NCCL_NET", "Socket"),
        ("NCCL_P2P_DISABLE", "1"),
        ("NCCL_P2P_LEVEL", "LOC"),
        ("NCCL_NET_GDR_LEVEL", "LOC"),
    ] {
        assert!(cost(&[pair], CollectiveOp::AllGather) > plain, "{pair:?}");
    }
}

#[test]
fn what_cannot_be_simulated_is_refused_by_name() {
    let error = |name, value| env(&[(name, value)]).unwrap_err().to_string();
    assert!(error("NCCL_COLLNET_ENABLE", "1").contains("NCCL_COLLNET_ENABLE is not"));
    assert!(error("NCCL_SOCKET_IFNAME", "eth0").contains("NCCL_ALGO, NCCL_BUFFSIZE"));
    assert!(error("NCCL_ALGO", "Ring,Star").contains("Tree, Ring, CollnetDirect"));
    assert!(error("NCCL_IB_TC", "256").contains("0 to 255"));
    assert!(env(&[("NCCL_MIN_NCHANNELS", "8"), ("NCCL_MAX_NCHANNELS", "4")]).is_err());
    assert_eq!(env(&[("NCCL_IB_GID_INDEX", "3")]).unwrap().without_effect(), ["NCCL_IB_GID_INDEX"]);
    assert_eq!(env(&[("NCCL_IB_TIMEOUT", "14")]).unwrap().ib_timeout_ps, Some(4_096_000 << 14));
    // Every listed name must be supported.
    for name in NAMES {
        assert!(!matches!(env(&[(name, "?")]), Err(EnvError::Unknown { .. })), "{name}");
    }
}

#[test]
fn protocols_cost_their_flags() {
    assert_eq!(Protocol::Ll.wire_bytes(9), 32);
    assert_eq!(Protocol::Ll128.wire_bytes(121), 256);
    assert_eq!(Protocol::Simple.wire_bytes(121), 121);
}
