//! Bytes of each dimension of parallelism: by formula, in messages, and on the links of NICs.
//!
//! Layer: host. One dimension at a time, by ring, in servers of one GPU: all bytes cross the network.

use super::row::{ClosedFormError, ClosedFormRow};
use super::simulate::{config, simulate, text};
use hyperfold_config::spec::{KeyId, Value};

const HIDDEN: u64 = 256;
const LAYERS: u64 = 4;
const VOCAB: u64 = 512;
const SEQ: u64 = 128;
const EXPERTS: u64 = 4;
const DEGREE: u64 = 4;
const BATCHES: u64 = 8;

/// Builds a model without biases and positions. Parameters: 12 h^2 + 2 h per layer (with experts 4 h^2 + 2 h + 4 h, and 8 h^2 per expert), two vocabularies,
/// the final norm.
fn model(moe: bool) -> Value {
    let experts = if moe { format!(", moe = {{ experts = {EXPERTS}, top_k = 2 }}") } else { String::new() };
    text(&format!(
        "{{ name = \"small\", transformer = {{ layers = {LAYERS}, hidden = {HIDDEN}, heads = 8, vocab = {VOCAB}, seq = {SEQ}{experts} }} }}"
    ))
}

/// One dimension: its name, its keys, the bytes of the formula, and the formula in words.
struct Case {
    name: &'static str,
    keys: Vec<(KeyId, Value)>,
    bytes: u64,
    note: &'static str,
}

fn cases() -> Vec<Case> {
    let degree = |key: KeyId| (key, Value::Int(DEGREE as i64));
    let batch = |n: u64| (KeyId::GlobalBatch, Value::Int(n as i64));
    let params = LAYERS * (12 * HIDDEN * HIDDEN + 2 * HIDDEN) + 2 * VOCAB * HIDDEN + HIDDEN;
    let dense = LAYERS * (4 * HIDDEN * HIDDEN + 2 * HIDDEN + EXPERTS * HIDDEN) + 2 * VOCAB * HIDDEN + HIDDEN;
    let activations = SEQ * HIDDEN * 2;
    // Members of a ring send 2 (n-1) / n S each in an all-reduce, (n-1) / n S in its halves.
    let (both, once) = (2 * (DEGREE - 1), DEGREE - 1);
    // Three statistics of four bytes a token for the loss of each micro-batch; the norm of gradients once.
    let losses = BATCHES * 3 * SEQ * 4 + 4;
    vec![
        Case {
            name: "DP, all-reduce of gradients",
            keys: vec![degree(KeyId::Dp), batch(BATCHES * DEGREE), (KeyId::Zero, Value::Int(0))],
            bytes: both * params * 4,
            note: "2 (d-1) x 4 bytes x parameters",
        },
        Case {
            name: "DP, distributed optimizer",
            keys: vec![degree(KeyId::Dp), batch(BATCHES * DEGREE), (KeyId::Zero, Value::Int(1))],
            bytes: once * params * (4 + 2) + both * 4,
            note: "(d-1) x (4 + 2 bytes) x parameters, and the norm of gradients",
        },
        Case {
            name: "TP, all-reduces",
            keys: vec![degree(KeyId::Tp), batch(BATCHES), (KeyId::SequenceParallel, Value::Bool(false))],
            bytes: both * (BATCHES * (4 * LAYERS + 2) * activations + losses),
            note: "2 (t-1) x ((4 l + 2) x 2 s h, and the loss's statistics) x micro-batches",
        },
        Case {
            name: "PP, activations and their gradients",
            keys: vec![degree(KeyId::Pp), batch(BATCHES)],
            bytes: 2 * (DEGREE - 1) * BATCHES * activations + both * 4,
            note: "2 (p-1) x 2 s h x micro-batches, and the norm of gradients",
        },
        Case {
            name: "EP, dispatch and combine",
            keys: vec![degree(KeyId::Dp), degree(KeyId::Ep), batch(BATCHES * DEGREE), (KeyId::Zero, Value::Int(0))],
            // Two experts per token; each rank keeps a quarter of what it routes. Each expert is on one rank, so experts reduce nothing.
            bytes: once * LAYERS * 4 * BATCHES * 2 * activations + both * dense * 4,
            note: "(e-1) x 4 l x 2 x 2 s h x micro-batches; 2 (d-1) x 4 bytes x parameters outside of experts",
        },
    ]
}

pub(super) fn rows() -> Result<Vec<ClosedFormRow>, ClosedFormError> {
    let mut rows = Vec::new();
    for c in cases() {
        let ring = [
            (KeyId::WorkloadKind, Value::Choice("model")),
            (KeyId::Model, model(c.name.starts_with("EP"))),
            (KeyId::Algorithm, if c.name.starts_with("EP") { Value::Choice("auto") } else { Value::Choice("ring") }),
            (KeyId::NcclAlgo, text("Ring")),
            (KeyId::Pxn, Value::Bool(false)),
            (KeyId::ChunkKib, Value::Float(64.0)),
        ];
        let keys: Vec<(KeyId, Value)> = ring.into_iter().chain(c.keys).collect();
        let outcome = simulate(c.name, config(c.name, DEGREE as i64, &keys)?)?;
        let row = |what: &str, formula: u64, simulated: u64, note| ClosedFormRow {
            table: "traffic",
            name: format!("{}, {what}", c.name),
            unit: "bytes",
            formula: formula as f64,
            simulated: simulated as f64,
            note,
        };
        let arrived = outcome.flows.iter().filter(|f| f.fct_ps.is_some());
        let (mut payload, mut packets) = (0, 0);
        for f in arrived {
            payload += f.bytes;
            packets += f.bytes.div_ceil(1000);
        }
        rows.push(row("in messages that arrived", c.bytes, payload, c.note));
        // Bytes that leave hosts: the first links, as hosts are numbered first and a link's name begins with the end that sends.
        let sent: u64 = outcome.links.iter().take(DEGREE as usize).map(|l| l.bytes).sum();
        rows.push(row(
            "on the links of the NICs",
            c.bytes + packets * (48 + 60),
            sent,
            "the same, 48 bytes a packet and 60 an answer more",
        ));
    }
    Ok(rows)
}
