//! Collectives simulated as packets, compared with the formulas of their algorithms.
//!
//! Layer: host.

use super::formulas::IdleLink;
use super::row::{ClosedFormError, ClosedFormRow};
use super::simulate::{config, simulate};
use hyperfold_config::spec::{KeyId, Value};

/// One collective: operation, algorithm, members, bytes, piece size in KiB (0: whole shards), overhead of each message in ns.
struct Case {
    op: &'static str,
    algorithm: &'static str,
    n: u64,
    bytes: u64,
    piece_kib: u64,
    overhead_ns: u64,
    note: &'static str,
    formula: fn(&Case, &IdleLink) -> f64,
}

impl Case {
    fn shard(&self) -> u64 {
        self.bytes / self.n
    }
}

const MB: u64 = 1_000_000;
/// Piece size larger than any message here, KiB.
const WHOLE_KIB: f64 = 1e6;
/// Time from the last member's arrival to the start of a collective, ns.
const RENDEZVOUS_NS: f64 = 1000.0;

fn ring(c: &Case, w: &IdleLink) -> f64 {
    let phases = if c.op == "all-reduce" { 2 } else { 1 };
    (phases * (c.n - 1)) as f64 * w.exchange(c.shard())
}

/// Ring in which pieces are passed on while others come in: the link is never idle until the last piece.
fn pipelined_ring(c: &Case, w: &IdleLink) -> f64 {
    let steps = (2 * (c.n - 1)) as f64;
    w.post + steps * (w.serial(c.shard()) + w.packets(c.shard()) * w.answer()) + w.latency()
}

fn halving_doubling(c: &Case, w: &IdleLink) -> f64 {
    (1..=c.n.ilog2()).map(|k| 2.0 * w.exchange(c.bytes >> k)).sum()
}

/// Sends to all other members at once, in turn packet by packet.
fn direct(c: &Case, w: &IdleLink) -> f64 {
    let phases = if c.op == "all-reduce" { 2.0 } else { 1.0 };
    phases * w.exchange(c.shard() * (c.n - 1))
}

fn chain(c: &Case, w: &IdleLink) -> f64 {
    w.relayed(c.bytes, 1.0, (c.n - 2) as f64)
}

/// Sends through a binary tree under the root's only child.
fn tree(c: &Case, w: &IdleLink) -> f64 {
    w.relayed(c.bytes, 2.0, f64::from(c.n.ilog2() - 1))
}

/// Two trees with two members: each is the root of one tree and the leaf of the other, with half of the bytes.
fn two_trees(c: &Case, w: &IdleLink) -> f64 {
    2.0 * w.exchange(c.bytes / 2)
}

fn neighbours(c: &Case, w: &IdleLink) -> f64 {
    w.exchange(c.bytes) + w.answered()
}

const RING: &str = "2(N-1) messages of S/N, one after the other";
const STEPS: &str = "N-1 messages of S/N, one after the other";
const HALVES: &str = "messages of S/2, S/4 .. S/N, and back";
const AT_ONCE: &str = "(N-1)/N S at once";

fn case(
    op: &'static str,
    algorithm: &'static str,
    n: u64,
    bytes: u64,
    note: &'static str,
    formula: fn(&Case, &IdleLink) -> f64,
) -> Case {
    Case { op, algorithm, n, bytes, piece_kib: 0, overhead_ns: 0, note, formula }
}

fn cases() -> Vec<Case> {
    vec![
        case("all-reduce", "ring", 2, 4 * MB, RING, ring),
        case("all-reduce", "ring", 4, 8 * MB, RING, ring),
        case("all-reduce", "ring", 8, 16 * MB, RING, ring),
        case("all-reduce", "ring", 16, 16 * MB, RING, ring),
        Case { overhead_ns: 2500, ..case("all-reduce", "ring", 8, 2 * MB, RING, ring) },
        Case { piece_kib: 64, ..case("all-reduce", "ring", 8, 16 * MB, "2(N-1)/N S without a pause", pipelined_ring) },
        case("all-gather", "ring", 8, 16 * MB, STEPS, ring),
        case("reduce-scatter", "ring", 8, 16 * MB, STEPS, ring),
        case("all-reduce", "halving-doubling", 4, 8 * MB, HALVES, halving_doubling),
        case("all-reduce", "halving-doubling", 8, 16 * MB, HALVES, halving_doubling),
        case("all-reduce", "halving-doubling", 16, 16 * MB, HALVES, halving_doubling),
        case("all-to-all", "direct", 8, 16 * MB, AT_ONCE, direct),
        case("all-to-all", "direct", 16, 16 * MB, AT_ONCE, direct),
        case("all-gather", "direct", 8, 16 * MB, AT_ONCE, direct),
        case("reduce-scatter", "direct", 8, 16 * MB, AT_ONCE, direct),
        case("all-reduce", "direct", 8, 16 * MB, "(N-1)/N S at once, twice", direct),
        Case {
            piece_kib: 16,
            ..case("broadcast", "ring", 8, 16 * MB, "S, and a piece for each member in between", chain)
        },
        Case {
            piece_kib: 16,
            ..case("broadcast", "tree", 4, 8 * MB, "2 S through the first relay, and a piece each level", tree)
        },
        Case {
            piece_kib: 16,
            ..case("broadcast", "tree", 8, 16 * MB, "2 S through the first relay, and a piece each level", tree)
        },
        case("all-reduce", "tree", 2, 8 * MB, "S/2 up and S/2 down, in two trees", two_trees),
        Case { overhead_ns: 2500, ..case("send-recv", "auto", 4, MB, "S and its last answer", neighbours) },
    ]
}

pub(super) fn rows() -> Result<Vec<ClosedFormRow>, ClosedFormError> {
    cases().iter().map(row).collect()
}

fn row(c: &Case) -> Result<ClosedFormRow, ClosedFormError> {
    let extra = match (c.piece_kib, c.overhead_ns) {
        (0, 0) => String::new(),
        (0, ns) => format!(", {ns} ns a message"),
        (kib, _) => format!(", pieces of {kib} KiB"),
    };
    let name = format!("{} by {}, N = {}, {} MB{extra}", c.op, c.algorithm, c.n, c.bytes / MB);
    let choice = |key: KeyId, text: &str| {
        let hyperfold_config::spec::KeyKind::Choice { now, .. } = hyperfold_config::spec::key(key).kind else {
            return Value::Unset;
        };
        now.iter().find(|c| **c == text).map_or(Value::Unset, |c| Value::Choice(c))
    };
    let keys = [
        (KeyId::WorkloadKind, Value::Choice("collective")),
        (KeyId::Op, choice(KeyId::Op, c.op)),
        (KeyId::Algorithm, choice(KeyId::Algorithm, c.algorithm)),
        (KeyId::Bytes, Value::Int(c.bytes as i64)),
        (KeyId::ChunkKib, Value::Float(if c.piece_kib == 0 { WHOLE_KIB } else { c.piece_kib as f64 })),
        (KeyId::StartOverheadNs, Value::Float(c.overhead_ns as f64 * 0.6)),
        (KeyId::WorkQueueLatencyNs, Value::Float(c.overhead_ns as f64 * 0.4)),
        (KeyId::RendezvousNs, Value::Float(RENDEZVOUS_NS)),
    ];
    let outcome = simulate(&name, config(&name, c.n as i64, &keys)?)?;
    let wire = IdleLink::plain(c.overhead_ns as f64 * 1000.0, c.piece_kib * 1024);
    // Plain sends and receives have no rendezvous.
    let meet = if c.op == "send-recv" { 0.0 } else { RENDEZVOUS_NS * 1000.0 };
    let simulated = outcome.iteration.map_or(0, |i| i.time.total) as f64 / 1e6;
    Ok(ClosedFormRow {
        table: "collectives",
        name,
        unit: "us",
        formula: (meet + (c.formula)(c, &wire)) / 1e6,
        simulated,
        note: c.note,
    })
}
