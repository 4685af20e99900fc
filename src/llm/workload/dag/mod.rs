//! Reads a task graph that the user wrote in TOML or CSV, and makes a workload of it.
//!
//! Layer: workload. A node is one op on each of its ranks. Nodes run in file order on their rank's stream, and after the nodes they depend on; the inter-rank
//! rules are those of `rules`: the k-th collective of a group is the same node sequence on all members, the k-th send from a to b with a tag meets the k-th
//! receive.
//!
//! | key (column) | means |
//! |---|---|
//! | `id` | name, unique; default: `node` and its number from 0 |
//! | `ranks` | who does it: `3`, `0-7`, `0-3 8`, or `all` (default) |
//! | `kind` | `compute`, `send`, `recv`, `join`, or a collective: `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `broadcast`, `reduce`, `barrier` |
//! | `duration_ns` | of a `compute`; decimals allowed |
//! | `bytes` | of a communication; collectives as nccl-tests counts them |
//! | `group` | of a collective: a name of `[groups]`, or ranks as above; default `all` |
//! | `peer` | of a send or receive: a rank, or `+n`, `-n` relative to the own one, round the end |
//! | `tag` | of a send or receive; default 0 |
//! | `dim` | what its time is booked under: `tp`, `pp`, `dp`, `ep`, `cp`, `other`; default: `pp` for messages, `dp` for collectives |
//! | `phase` | of a `compute`: `forward`, `backward`, `optimizer`, `other` (default) |
//! | `stream` | `compute`, `copy`, `free` (no order but dependencies) or `comm`; default: `compute` for `compute` and `join`, the dimension's for communication |
//! | `deps` | ids of earlier nodes, on the same rank |
//!
//! TOML has `[[node]]` tables with these keys, and before them `ranks = N` (default: all GPUs; without a number of those the highest rank and one more),
//! `tokens` (an iteration trains) and `[groups]` with `name = "0-3"`. CSV has a header with any of these columns, lists separated by spaces, `#` comments;
//! every group is written as ranks.

mod build;
mod error;
mod read;

pub use error::DagError;
pub use read::{parse_dag_csv, parse_dag_toml, read_dag};

/// A node as written in the file. A field that was not given is empty.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawNode {
    id: Option<String>,
    ranks: Option<Text>,
    kind: Option<String>,
    duration_ns: Option<Text>,
    bytes: Option<Text>,
    group: Option<Text>,
    peer: Option<Text>,
    tag: Option<Text>,
    dim: Option<String>,
    phase: Option<String>,
    stream: Option<String>,
    deps: Vec<String>,
    /// Line of the node in the file, for messages; not a key.
    #[serde(skip)]
    line: u64,
}

/// A number or a text, kept as text. For ranks and peers both forms are natural.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(from = "TextForm")]
struct Text(String);

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum TextForm {
    Whole(i64),
    Real(f64),
    Text(String),
    Several(Vec<u32>),
}

impl From<TextForm> for Text {
    fn from(form: TextForm) -> Text {
        Text(match form {
            TextForm::Whole(n) => n.to_string(),
            TextForm::Real(x) => x.to_string(),
            TextForm::Text(t) => t,
            TextForm::Several(ranks) => ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        })
    }
}
