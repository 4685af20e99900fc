//! Reads GOAL text of LogGOPSim: `num_ranks`, then per rank a block of `calc`, `send`, `recv` and their dependencies.
//!
//! Layer: workload. `calc` counts nanoseconds. `a requires b` means that a starts when b is done. `a irequires b` means that a starts when b has started; here
//! that is when all that b waits for is done. Operations of one `cpu` that no dependency orders run side by side (LogGOPSim runs them one after the other in an
//! order of its own). `nic` is not modelled. Receives from any source or with any tag have no counterpart in a program and are rejected.

use std::collections::HashMap;
use std::path::Path;

use super::graph::{self, Item, Ranks};
use super::{ImportError, ImportOptions, Imported, MAX_BYTES, MAX_PS, MAX_RANKS, check};
use crate::workload::program::{Dim, Group, NameTable, OpKind, Peer, Phase, Stream, Workload};
use hyperfold_base::units::PS_PER_NS;
use hyperfold_network::topology::FileError;
use hyperfold_network::topology::text::{Line, load_text, shown};

/// Reads a GOAL file.
///
/// # Errors
/// The file cannot be read, a line does not parse, a label is unknown, the dependencies have a cycle, or a message has no other end.
pub fn read(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    parse(&path.display().to_string(), &load_text(path)?, options)
}

/// Parses GOAL text; `path` is for messages.
///
/// # Errors
/// All errors of [`read`] except those of reading the file.
pub fn parse(path: &str, text: &str, options: &ImportOptions) -> Result<Imported, ImportError> {
    let text = without_comments(text);
    let mut p =
        Parser { n_ranks: None, current: None, blocks: HashMap::new(), names: NameTable::default(), cpus: 0, nics: 0 };
    for (i, raw) in text.lines().enumerate() {
        let line = Line { path, number: i + 1, text: raw.trim() };
        if !line.text.is_empty() {
            p.line(&line)?;
        }
    }
    let end = |problem: &str| FileError::Line {
        path: path.to_string(),
        line: text.lines().count().max(1),
        problem: problem.to_string(),
    };
    if let Some(block) = &p.current {
        return Err(end(&format!("the block of rank {} is not closed; a line with `}}` is missing", block.rank)).into());
    }
    let n_ranks = p.n_ranks.ok_or_else(|| end("there is no `num_ranks N`"))?;
    if let Some(ranks) = options.ranks.filter(|&n| n != n_ranks) {
        return Err(ImportError::Ranks {
            path: path.to_string(),
            ranks,
            problem: format!("the file says num_ranks {n_ranks}"),
        });
    }
    let mut w =
        Workload { groups: vec![Group { members: (0..n_ranks).collect(), dim: Dim::Other }], ..Workload::default() };
    let mut ranks = Ranks::default();
    for rank in 0..n_ranks {
        let items = match p.blocks.remove(&rank) {
            Some(block) => block.items(path)?,
            None => Vec::new(),
        };
        let program = graph::program(items).map_err(|position| ImportError::Node {
            path: path.to_string(),
            node: u64::from(position),
            problem: format!(
                "operation {position} of rank {rank} (counted from 0) waits for itself through its dependencies (a cycle)"
            ),
        })?;
        ranks.push(&mut w, program, vec![0]);
    }
    w.names = p.names;
    check::sound(path, &w)?;
    let mut notes = Vec::new();
    if p.cpus > 0 {
        notes.push(format!(
            "{} operation(s) name a cpu other than 0; operations that no dependency orders run side by side on any cpu",
            p.cpus
        ));
    }
    if p.nics > 0 {
        notes.push(format!("{} operation(s) name a nic other than 0; a rank's NIC is the topology's choice", p.nics));
    }
    Ok(Imported { workload: w, flows: None, notes })
}

/// Replaces comments by spaces. Line numbers stay the same.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut block, mut line) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => {
                line = false;
                out.push(c);
            }
            '*' if block && chars.peek() == Some(&'/') => {
                chars.next();
                block = false;
            }
            _ if block || line => {}
            '/' if chars.peek() == Some(&'/') => line = true,
            '/' if chars.peek() == Some(&'*') => {
                chars.next();
                block = true;
                out.push(' ');
            }
            _ => out.push(c),
        }
    }
    out
}

/// The block of a rank while it is being read.
struct Block {
    rank: u32,
    items: Vec<Item>,
    labels: HashMap<String, u32>,
    /// Dependencies: line, label of the waiting operation, label of the other operation, and whether only the other's start is waited for.
    edges: Vec<(usize, String, String, bool)>,
}

impl Block {
    /// The block's items with their dependencies resolved. Labels may be used before they are defined.
    fn items(self, path: &str) -> Result<Vec<Item>, ImportError> {
        let Block { rank, mut items, labels, edges } = self;
        let mut after_start: Vec<(u32, u32)> = Vec::new();
        for (line, a, b, start) in edges {
            let find = |label: &str| {
                let problem = || format!("label `{}` is not defined in the block of rank {rank}", shown(label));
                labels.get(label).copied().ok_or_else(|| FileError::Line {
                    path: path.to_string(),
                    line,
                    problem: problem(),
                })
            };
            let (a, b) = (find(&a)?, find(&b)?);
            if a == b {
                let problem = "an operation cannot wait for itself".to_string();
                return Err(FileError::Line { path: path.to_string(), line, problem }.into());
            }
            if start {
                after_start.push((a, b));
            } else {
                items[a as usize].deps.push(b);
            }
        }
        // "b has started" means that all that b waits for is done. A node of its own stands for that, so that chains of irequires stay short.
        let gates = gates(&mut items, &after_start);
        for (a, b) in after_start {
            items[a as usize].deps.push(gates[&b]);
        }
        for item in &mut items {
            item.deps.sort_unstable();
            item.deps.dedup();
        }
        Ok(items)
    }
}

/// Adds a gate for each operation whose start another waits for. A gate is a join that takes over the operation's dependencies; the operation then waits for
/// its gate. Returns gates by operation.
fn gates(items: &mut Vec<Item>, after_start: &[(u32, u32)]) -> HashMap<u32, u32> {
    let mut gates = HashMap::new();
    for &(_, b) in after_start {
        if gates.contains_key(&b) {
            continue;
        }
        let gate = items.len() as u32;
        let name = items[b as usize].name;
        let deps = std::mem::replace(&mut items[b as usize].deps, vec![gate]);
        items.push(Item { kind: OpKind::Join, name, stream: Stream::FREE, deps });
        gates.insert(b, gate);
    }
    // An operation that waits for a start and has a gate itself passes the wait on to its gate.
    for &(a, b) in after_start {
        if let Some(&gate) = gates.get(&a) {
            let wait = gates[&b];
            items[gate as usize].deps.push(wait);
        }
    }
    gates
}

struct Parser {
    n_ranks: Option<u32>,
    current: Option<Block>,
    blocks: HashMap<u32, Block>,
    names: NameTable,
    cpus: u64,
    nics: u64,
}

impl Parser {
    fn line(&mut self, line: &Line) -> Result<(), FileError> {
        let words: Vec<&str> = line.fields().collect();
        match words.as_slice() {
            ["num_ranks", n] => {
                if self.n_ranks.is_some() {
                    return Err(line.error("num_ranks is given twice"));
                }
                self.n_ranks = Some(line.number("num_ranks", n, 1, MAX_RANKS)?);
                Ok(())
            }
            ["rank", rest @ ..] => self.open(line, rest),
            ["}"] => {
                let block = self.current.take().ok_or_else(|| line.error("`}` closes no block"))?;
                self.blocks.insert(block.rank, block);
                Ok(())
            }
            [a, word @ ("requires" | "irequires"), b] => {
                let edge = (line.number, a.to_string(), b.to_string(), *word == "irequires");
                self.block(line)?.edges.push(edge);
                Ok(())
            }
            _ => self.operation(line),
        }
    }

    fn block(&mut self, line: &Line) -> Result<&mut Block, FileError> {
        self.current.as_mut().ok_or_else(|| {
            line.error(format!(
                "`{}` is outside of a block; operations belong between `rank N {{` and `}}`",
                shown(line.text)
            ))
        })
    }

    fn open(&mut self, line: &Line, rest: &[&str]) -> Result<(), FileError> {
        let n_ranks = self.n_ranks.ok_or_else(|| line.error("`num_ranks N` must come before the first rank"))?;
        let rank = match rest {
            [rank, "{"] => *rank,
            [joined] if joined.ends_with('{') => &joined[..joined.len() - 1],
            _ => return Err(line.error("write `rank N {` on a line of its own")),
        };
        let rank = line.number("rank", rank, 0, n_ranks - 1)?;
        if let Some(open) = &self.current {
            return Err(
                line.error(format!("the block of rank {} is not closed; a line with `}}` is missing", open.rank))
            );
        }
        if self.blocks.contains_key(&rank) {
            return Err(line.error(format!("rank {rank} has a block already")));
        }
        self.current = Some(Block { rank, items: Vec::new(), labels: HashMap::new(), edges: Vec::new() });
        Ok(())
    }

    /// Parses an operation: `[label:] calc N [cpu C]`, `[label:] send Nb to R [tag T] [cpu C] [nic I]`, `[label:] recv Nb from R ...`.
    fn operation(&mut self, line: &Line) -> Result<(), FileError> {
        let (label, rest) = match line.text.split_once(':') {
            Some((label, rest)) => (Some(label.trim()), rest),
            None => (None, line.text),
        };
        let n_ranks = self.n_ranks.unwrap_or(0);
        let rank = self.block(line)?.rank;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (kind, options) = match words.as_slice() {
            ["calc", ns, options @ ..] => {
                let ps = line.number::<u64>("calc", ns, 0, MAX_PS / PS_PER_NS)? * PS_PER_NS;
                (if ps == 0 { OpKind::Join } else { OpKind::Compute { ps, phase: Phase::Other } }, options)
            }
            [verb @ ("send" | "recv"), size, way @ ("to" | "from"), peer, options @ ..]
                if (*verb == "send") == (*way == "to") =>
            {
                let size = size
                    .strip_suffix('b')
                    .ok_or_else(|| line.error(format!("size `{}` should end in b for bytes, as 1024b", shown(size))))?;
                let bytes = line.number("size", size, 0, MAX_BYTES)?;
                if *peer == "-1" {
                    return Err(line.error("receiving from any rank (-1) is not supported; name the rank"));
                }
                let member = line.number("rank", peer, 0, n_ranks - 1)?;
                if member == rank {
                    return Err(line.error(format!("rank {rank} has a message to itself; write it as calc")));
                }
                // An empty message is still a message; one byte stands for its header.
                let (peer, bytes) = (Peer { slot: 0, member }, bytes.max(1));
                let kind = match *verb {
                    "send" => OpKind::Send { peer, bytes, tag: 0, dim: Dim::Other },
                    _ => OpKind::Recv { peer, bytes, tag: 0, dim: Dim::Other },
                };
                (kind, options)
            }
            _ => {
                return Err(line.error(format!(
                    "`{}` is none of `calc N`, `send Nb to R`, `recv Nb from R` (with label, tag, cpu, nic), `a requires b`, `a irequires b`, `rank N {{`, `}}`, `num_ranks N`",
                    shown(line.text)
                )));
            }
        };
        let kind = self.options(line, kind, options)?;
        let name = self.names.of(words[0]);
        let block = self.block(line)?;
        let item_idx = block.items.len() as u32;
        block.items.push(Item { kind, name, stream: Stream::FREE, deps: Vec::new() });
        if let Some(label) = label {
            if label.is_empty() || label.contains(char::is_whitespace) {
                return Err(line.error("a label is one word before the colon"));
            }
            if block.labels.insert(label.to_string(), item_idx).is_some() {
                return Err(line.error(format!("label `{}` is defined twice in this block", shown(label))));
            }
        }
        Ok(())
    }

    fn options(&mut self, line: &Line, mut kind: OpKind, options: &[&str]) -> Result<OpKind, FileError> {
        let mut pairs = options.chunks_exact(2);
        for pair in pairs.by_ref() {
            match (pair[0], &mut kind) {
                ("tag", OpKind::Send { tag, .. } | OpKind::Recv { tag, .. }) => {
                    if pair[1] == "-1" {
                        return Err(line.error("any tag (-1) is not supported; name the tag"));
                    }
                    *tag = line.number("tag", pair[1], 0, u32::MAX)?;
                }
                ("cpu", _) => self.cpus += u64::from(line.number("cpu", pair[1], 0u8, u8::MAX)? > 0),
                ("nic", _) => self.nics += u64::from(line.number("nic", pair[1], 0u8, u8::MAX)? > 0),
                _ => return Err(line.error(format!("`{}` is none of tag (of messages), cpu, nic", shown(pair[0])))),
            }
        }
        match pairs.remainder() {
            [] => Ok(kind),
            rest => Err(line.error(format!("`{}` has no value", shown(rest[0])))),
        }
    }
}
