//! Tests of lowering on two to four ranks: which ops become messages, gates or errors.

use std::sync::Arc;

use super::*;
use crate::collective::{CollectiveOp, Overheads, Protocol, Schedule};
use crate::workload::program::{Dim, Group, OpKind, Peer, Program, Rank, Stream};
use crate::workload::tasks::{EdgeMoment, Target};

/// Plans every collective as one exchange around a ring, or as a time.
struct Ring {
    analytic: bool,
}

impl Planner for Ring {
    fn plan(&mut self, asked: &Asked) -> Result<CollectivePlan, String> {
        if asked.op == CollectiveOp::Broadcast {
            return Err("no broadcasts here".to_string());
        }
        if self.analytic {
            return Ok(CollectivePlan::Analytic { ps: 500 });
        }
        let n = asked.members.len() as u32;
        let mut schedule = Schedule::new(n);
        for from in 0..n {
            schedule.push(from, (from + 1) % n, asked.bytes, 0, &[]);
        }
        Ok(CollectivePlan::Transfers {
            schedule: Arc::new(schedule),
            protocol: Protocol::Ll,
            overheads: Overheads::each(7),
            switches: Arc::default(),
        })
    }
}

const INSIDE: IntraServerPath = IntraServerPath { rate_bps: 8_000_000_000_000, latency_ps: 300, links: 1 };

/// Lowers one program per rank, on servers of two ranks.
fn lowered(programs: Vec<Program>, change: impl Fn(&mut Lowering), analytic: bool) -> Result<TaskGraph, LowerError> {
    lowered_by(programs, &change, &mut Ring { analytic })
}

fn lowered_by(
    programs: Vec<Program>,
    change: &dyn Fn(&mut Lowering),
    planner: &mut dyn Planner,
) -> Result<TaskGraph, LowerError> {
    let n = programs.len() as u32;
    let mut workload = Workload {
        ranks: (0..n).map(|program| Rank { program, groups: vec![0] }).collect(),
        programs,
        groups: vec![Group { members: (0..n).collect(), dim: Dim::Dp }],
        ..Workload::default()
    };
    workload.name("op");
    let servers: Vec<u32> = (0..n).map(|r| r / 2).collect();
    let hosts: Vec<u32> = (0..n).collect();
    let mut machine = Lowering {
        representatives: None,
        servers: &servers,
        hosts: &hosts,
        intra: Some(INSIDE),
        shared_nic: INSIDE,
        analytic_p2p: &|_| None,
        rendezvous_ps: None,
        local_ps: 1,
        reduce_ps: 1,
        p2p_overheads: Overheads::each(11),
        qps_per_connection: 1,
        weight: &|_| 1,
        split: false,
        relays: None,
        factor_q32: &|rank, _| (1 << 32) + (u64::from(rank) << 31),
    };
    change(&mut machine);
    lower(&workload, &machine, planner)
}

fn collective(op: CollectiveOp, bytes: u64) -> OpKind {
    OpKind::Collective { op, slot: 0, bytes, dim: Dim::Dp, algorithm: None, shares: None }
}

fn program(ops: &[OpKind]) -> Program {
    let mut p = Program::default();
    for &op in ops {
        p.push(op, Stream::COMPUTE, 0, &[]);
    }
    p.iteration_ends = vec![ops.len() as u32];
    p
}

fn peer(member: u32) -> Peer {
    Peer { slot: 0, member }
}

#[test]
fn transfers_leave_servers_as_messages_and_stay_inside_as_gates() {
    let p = program(&[
        OpKind::Compute { ps: 1000, phase: crate::workload::program::Phase::Forward },
        collective(CollectiveOp::AllReduce, 96),
    ]);
    let g = lowered(vec![p.clone(), p.clone(), p.clone(), p], |_| {}, false).unwrap();
    let messages: Vec<_> =
        g.messages().map(|(_, qp, bytes)| (g.qps[qp as usize].src, g.qps[qp as usize].dst, bytes)).collect();
    // Flags double the bytes on the wire. 0 -> 1 and 2 -> 3 stay in their servers.
    assert_eq!(messages, [(1, 2, 192), (3, 0, 192)]);
    assert_eq!(
        g.gates.iter().map(|gate| (gate.server, gate.serial_ps, gate.latency_ps)).collect::<Vec<_>>(),
        [(Some(0), 192, 300), (Some(1), 192, 300)]
    );
    // Kernels take the factor of their rank.
    let kernels: Vec<u64> = g.ops.iter().map(|ops| g.tasks[ops[0].end as usize].delay_ps).collect();
    assert_eq!(kernels, [1000, 1500, 2000, 2500]);
    // A message starts late by its overhead. At the receiver, its arrival ends the collective.
    let (task, ..) = g.messages().next().unwrap();
    assert_eq!(g.tasks[task as usize].delay_ps, 7);
    assert!(
        g.edges.iter().any(|e| e.from == task && e.when == EdgeMoment::Got && e.to == Target::Task(g.ops[2][1].end))
    );
}

#[test]
fn a_graph_with_other_kernel_times_is_what_would_be_lowered() {
    let kernel = |ps| OpKind::Compute { ps, phase: crate::workload::program::Phase::Forward };
    let p = program(&[kernel(1000), collective(CollectiveOp::AllReduce, 96), kernel(70), kernel(3)]);
    let programs = vec![p.clone(), p.clone(), p.clone(), p];
    let lowered_with = |factor: &'static dyn Fn(u32, u32) -> u64| {
        lowered(programs.clone(), |machine| machine.factor_q32 = factor, false).unwrap()
    };
    let slower = |rank: u32, op: u32| (5 << 30) + (u64::from(rank) << 29) + u64::from(op);
    let workload = Workload {
        ranks: (0..4).map(|program| Rank { program, groups: vec![0] }).collect(),
        programs: programs.clone(),
        ..Workload::default()
    };
    let (one, other) =
        (lowered_with(&|_, _| 1 << 32), lowered_with(&|rank, op| (5 << 30) + (u64::from(rank) << 29) + u64::from(op)));
    assert_ne!(one, other);
    assert_eq!(rescaled(&one, &workload, &slower), other);
}

#[test]
fn a_rendezvous_and_an_analytical_collective_are_gates_of_all_members() {
    let p = program(&[collective(CollectiveOp::AllReduce, 100)]);
    let g = lowered(vec![p.clone(), p.clone(), p.clone()], |machine| machine.rendezvous_ps = Some(9), false).unwrap();
    let n_into = |gate: u32| g.edges.iter().filter(|e| e.to == Target::Gate(gate)).count();
    assert_eq!((g.gates[0].latency_ps, n_into(0), g.releases.iter().filter(|r| r.0 == 0).count()), (9, 3, 3));
    let g = lowered(vec![p.clone(), p.clone(), p], |_| {}, true).unwrap();
    assert_eq!((g.gates.len(), g.gates[0].latency_ps, g.qps.len()), (1, 500, 0));
}

#[test]
fn queue_pairs_take_turns_or_share_messages() {
    let send = |tag| OpKind::Send { peer: peer(2), bytes: 10, tag, dim: Dim::Pp };
    let recv = |tag| OpKind::Recv { peer: peer(0), bytes: 10, tag, dim: Dim::Pp };
    let programs = || vec![program(&[send(1), send(0), send(1)]), program(&[]), program(&[recv(1), recv(0), recv(1)])];
    let lanes = |g: &TaskGraph| g.messages().map(|(_, qp, bytes)| (g.qps[qp as usize].lane, bytes)).collect::<Vec<_>>();
    let turns = lowered(programs(), |machine| machine.qps_per_connection = 2, false).unwrap();
    assert_eq!(lanes(&turns), [(0, 10), (1, 10), (0, 10)]);
    let split = lowered(programs(), |machine| (machine.qps_per_connection, machine.split) = (4, true), false).unwrap();
    assert_eq!(lanes(&split)[..4], [(0, 2), (1, 3), (2, 2), (3, 3)]);
    // Messages of a queue pair go in the order of the sender's program, whatever their tags.
    let posts: Vec<u32> = lowered(programs(), |_| {}, false).unwrap().messages().map(|(task, ..)| task).collect();
    assert!(posts.windows(2).all(|w| w[0] < w[1]));
}

#[test]
fn a_message_to_another_rail_is_relayed_inside_its_server() {
    let (bytes, chunk) = (1_000_000, 1000);
    let send = |dim| program(&[OpKind::Send { peer: peer(3), bytes, tag: 0, dim }]);
    let recv = |dim| program(&[OpKind::Recv { peer: peer(0), bytes, tag: 0, dim }]);
    let relays: &'static Relays = Box::leak(Box::new(Relays::new(&[0, 0, 1, 1], &[0, 1, 0, 1], chunk)));
    let of_dim = |dim, intra: Option<IntraServerPath>| {
        let programs = vec![send(dim), program(&[]), program(&[]), recv(dim)];
        lowered(programs, |machine| (machine.relays, machine.intra) = (Some(relays), intra), false).unwrap()
    };
    let messages = |g: &TaskGraph| -> Vec<(u32, u32, u64)> {
        g.messages().map(|(_, qp, bytes)| (g.qps[qp as usize].src, g.qps[qp as usize].dst, bytes)).collect()
    };
    let g = of_dim(Dim::Pp, Some(INSIDE));
    assert_eq!(messages(&g), [(1, 3, bytes)]);
    // NVLink carries everything once, and the message waits for the first chunk.
    assert_eq!(g.gates.iter().map(|gate| gate.serial_ps).collect::<Vec<_>>(), [1000, 999_000]);
    let message = g.messages().next().unwrap().0;
    assert_eq!(g.edges.iter().filter(|e| e.to == Target::Task(message)).count(), 1);
    // Sender and receiver wait for the message and for the rest of the data.
    let (sent, received) = (g.ops[0][0].end, g.ops[3][0].end);
    for (end, when) in [(sent, EdgeMoment::Done), (received, EdgeMoment::Got)] {
        let joins: Vec<u32> = g.edges.iter().filter(|e| e.to == Target::Task(end)).map(|e| e.from).collect();
        let waits_for = |from: u32| {
            g.edges
                .iter()
                .any(|e| joins.iter().any(|&join| e.to == Target::Task(join)) && (e.from, e.when) == (from, when))
        };
        assert!(waits_for(message), "{when:?}: {:?}", g.edges);
    }
    // With packets inside servers the data crosses NVLink as two messages.
    assert_eq!(messages(&of_dim(Dim::Cp, None)), [(0, 1, chunk), (0, 1, bytes - chunk), (1, 3, bytes)]);
    assert_eq!(messages(&of_dim(Dim::Other, Some(INSIDE))), [(0, 3, bytes)]);
}

#[test]
fn what_does_not_fit_together_is_named() {
    let say = |programs| lowered(programs, |_| {}, false).unwrap_err().to_string();
    let calling = |op, bytes| program(&[collective(op, bytes)]);
    insta::assert_snapshot!(
        [
            say(vec![calling(CollectiveOp::AllReduce, 1), calling(CollectiveOp::AllGather, 1)]),
            say(vec![calling(CollectiveOp::AllReduce, 1), program(&[])]),
            say(vec![calling(CollectiveOp::Broadcast, 1), calling(CollectiveOp::Broadcast, 1)]),
            say(vec![program(&[OpKind::Send { peer: peer(1), bytes: 3, tag: 5, dim: Dim::Pp }]), program(&[])]),
            say(vec![
                program(&[OpKind::Send { peer: peer(1), bytes: 3, tag: 5, dim: Dim::Pp }]),
                program(&[OpKind::Recv { peer: peer(0), bytes: 4, tag: 5, dim: Dim::Pp }]),
            ]),
        ]
        .join("\n")
    );
}

/// Plans two messages from 0 to 1, one after the other on one connection.
struct Twice;

impl Planner for Twice {
    fn plan(&mut self, asked: &Asked) -> Result<CollectivePlan, String> {
        let mut schedule = Schedule::new(asked.members.len() as u32);
        schedule.push(0, 1, asked.bytes, 0, &[]);
        schedule.push(0, 1, asked.bytes, 0, &[]);
        Ok(CollectivePlan::Transfers {
            schedule: Arc::new(schedule),
            protocol: Protocol::Simple,
            overheads: Overheads::default(),
            switches: Arc::default(),
        })
    }
}

#[test]
fn what_may_overtake_is_waited_for_by_itself() {
    let p = program(&[collective(CollectiveOp::Broadcast, 100)]);
    // Number of arrivals that the receiver's end waits for, besides its own go.
    let waits = |change: &dyn Fn(&mut Lowering)| {
        let g = lowered_by(vec![p.clone(), p.clone()], change, &mut Twice).unwrap();
        g.edges.iter().filter(|e| e.to == Target::Task(g.ops[1][0].end)).count() - 1
    };
    assert_eq!(waits(&|machine| machine.intra = None), 1);
    assert_eq!(waits(&|machine| (machine.intra, machine.qps_per_connection) = (None, 2)), 2);
    assert_eq!(waits(&|_| {}), 2);
}
