//! Reads the two file formats of a graph.

use std::collections::BTreeMap;
use std::path::Path;

use super::build::{Dag, build};
use super::{DagError, RawNode, Text};
use crate::workload::program::Workload;
use hyperfold_base::input;
use hyperfold_network::topology::FileError;
use hyperfold_network::topology::text::load_text;

/// The top level of a graph in TOML.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    ranks: Option<u32>,
    #[serde(default)]
    tokens: u64,
    #[serde(default)]
    groups: BTreeMap<String, Text>,
    #[serde(default)]
    node: Vec<toml::Spanned<RawNode>>,
}

/// Reads a graph from disk: `.csv` as CSV, anything else as TOML. `gpus` is the number of ranks if the graph gives no number and names no higher rank.
pub fn read_dag(path: &Path, gpus: Option<u32>) -> Result<Workload, DagError> {
    let shown = path.display().to_string();
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
        return parse_dag_csv(&shown, &load_text(path)?, gpus);
    }
    let text = input::read_tree(path).map_err(|e| FileError::Read { path: shown.clone(), reason: e.to_string() })?;
    parse_dag_toml(&shown, &text, gpus)
}

/// Reads the TOML form; `path` is for messages.
pub fn parse_dag_toml(path: &str, text: &str, gpus: Option<u32>) -> Result<Workload, DagError> {
    let syntax = |e: toml::de::Error| {
        let line = e.span().map_or(0, |s| line_of(text, s.start));
        DagError::Syntax { path: format!("{path}:{line}"), message: e.message().to_string() }
    };
    let document: Document = toml::from_str(text).map_err(syntax)?;
    let line_ends: Vec<usize> =
        text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(offset, _)| offset).collect();
    let node = |spanned: toml::Spanned<RawNode>| {
        let line = line_ends.partition_point(|&end| end < spanned.span().start) as u64 + 1;
        RawNode { line, ..spanned.into_inner() }
    };
    let nodes = document.node.into_iter().map(node).collect();
    let groups = document.groups.into_iter().map(|(name, ranks)| (name, ranks.0)).collect();
    build(path, &Dag { ranks: document.ranks, gpus, tokens: document.tokens, groups, nodes })
}

/// Line, counted from 1, of a byte offset in a text.
fn line_of(text: &str, offset: usize) -> u64 {
    text.bytes().take(offset).filter(|&b| b == b'\n').count() as u64 + 1
}

/// Reads the CSV form; `path` is for messages.
pub fn parse_dag_csv(path: &str, text: &str, gpus: Option<u32>) -> Result<Workload, DagError> {
    let syntax = |e: csv::Error| {
        let line = e.position().map_or(1, |p| p.line());
        DagError::Syntax { path: format!("{path}:{line}"), message: input::csv_problem(&e) }
    };
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
    let columns: Vec<String> = reader.headers().map_err(syntax)?.iter().map(str::to_string).collect();
    let mut nodes = Vec::new();
    for record in reader.records() {
        let record = record.map_err(syntax)?;
        let mut node = RawNode { line: record.position().map_or(0, |p| p.line()), ..RawNode::default() };
        for (column, field) in columns.iter().zip(&record).filter(|(_, f)| !f.is_empty()) {
            let (word, number) = (Some(field.to_string()), Some(Text(field.to_string())));
            match column.as_str() {
                "id" => node.id = word,
                "kind" => node.kind = word,
                "dim" => node.dim = word,
                "phase" => node.phase = word,
                "stream" => node.stream = word,
                "ranks" => node.ranks = number,
                "duration_ns" => node.duration_ns = number,
                "bytes" => node.bytes = number,
                "group" => node.group = number,
                "peer" => node.peer = number,
                "tag" => node.tag = number,
                "deps" => node.deps = field.split_whitespace().map(str::to_string).collect(),
                other => {
                    let columns = "id, ranks, kind, duration_ns, bytes, group, peer, tag, dim, phase, stream, deps";
                    return Err(DagError::Syntax {
                        path: format!("{path}:1"),
                        message: format!("unknown column `{other}`; there are {columns}"),
                    });
                }
            }
        }
        nodes.push(node);
    }
    build(path, &Dag { ranks: None, gpus, tokens: 0, groups: BTreeMap::new(), nodes })
}
