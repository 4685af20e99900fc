//! Reads htsim's connection matrices (`.cm`): flows with start times in picoseconds, and triggers that start flows when others end.
//!
//! Layer: workload. A file without triggers is also returned as a list of flows. A trigger becomes an order within a rank, or a barrier among the hosts that
//! activate it and the hosts whose flows wait for it. htsim fires a trigger without delay; here it takes as long as a barrier of no bytes. Each flow is a
//! message of its own between two hosts, with a tag of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::graph::{self, Item, Ranks};
use super::{ImportError, ImportOptions, Imported, MAX_BYTES, MAX_PS, MAX_RANKS, check};
use crate::collective::CollectiveOp;
use crate::workload::flows::decimal::scaled;
use crate::workload::flows::flow_file::SportCounter;
use crate::workload::program::{Dim, Group, NameTable, OpKind, Peer, Phase, Stream, Workload};
use crate::workload::{Flow, MAX_FLOWS};
use hyperfold_network::topology::FileError;
use hyperfold_network::topology::text::{Line, Lines, load_text, shown};

/// UDP destination port of all flows. The format has none; this is the one of the ns-3 examples.
const DPORT: u16 = 100;
/// Priority group of all flows. The format has none; this is the one of the ns-3 examples.
const PRIORITY: u8 = 3;

/// Reads a connection matrix.
///
/// # Errors
/// The file cannot be read, a line does not parse, counts disagree, or a trigger has a meaning that a program cannot express.
pub fn read(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    parse(&path.display().to_string(), &load_text(path)?, options)
}

/// Parses a connection matrix; `path` is for messages.
///
/// # Errors
/// All errors of [`read`] except those of reading the file.
pub fn parse(path: &str, text: &str, options: &ImportOptions) -> Result<Imported, ImportError> {
    let file = parse_file(path, text)?;
    if let Some(ranks) = options.ranks.filter(|&n| n != file.n_nodes) {
        return Err(ImportError::Ranks {
            path: path.to_string(),
            ranks,
            problem: format!("the file says Nodes {}", file.n_nodes),
        });
    }
    let mut notes = Vec::new();
    if file.priorities > 0 {
        notes.push(format!(
            "{} flow(s) have a `prio`; htsim's flow priorities have no counterpart here and are left out",
            file.priorities
        ));
    }
    let workload = build(path, &file)?;
    let flows = file.triggers.is_empty().then(|| flows(&file));
    Ok(Imported { workload, flows, notes })
}

/// When a flow starts: at a time in ps, or when the trigger with this id fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    At(u64),
    Trigger(u32),
}

#[derive(Clone, Debug)]
struct Connection {
    line: usize,
    src: u32,
    dst: u32,
    bytes: u64,
    start: Start,
    send_done: Option<u32>,
    recv_done: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TriggerKind {
    Oneshot,
    Multishot,
    Barrier,
}

#[derive(Clone, Copy, Debug)]
struct Trigger {
    line: usize,
    kind: TriggerKind,
    count: u32,
}

struct File {
    n_nodes: u32,
    connections: Vec<Connection>,
    triggers: BTreeMap<u32, Trigger>,
    priorities: u64,
}

fn parse_file(path: &str, text: &str) -> Result<File, ImportError> {
    let mut lines = Lines::new(path, text);
    let (mut nodes, mut connections, mut triggers) = (None, None, None);
    let mut file = File { n_nodes: 0, connections: Vec::new(), triggers: BTreeMap::new(), priorities: 0 };
    let mut ids = BTreeSet::new();
    let mut last = 1;
    while let Some(line) = lines.next_line() {
        last = line.number;
        let words: Vec<&str> = line.fields().collect();
        let header = |slot: &mut Option<u32>, value: &str, min: u32, max: u32| {
            let n = line.number(words[0], value, min, max)?;
            match slot.replace(n) {
                None => Ok(()),
                Some(_) => Err(line.error(format!("{} is given twice", words[0]))),
            }
        };
        match words.as_slice() {
            ["Nodes", n] => header(&mut nodes, n, 1, MAX_RANKS)?,
            ["Connections", n] => header(&mut connections, n, 0, MAX_FLOWS)?,
            ["Triggers", n] => header(&mut triggers, n, 0, MAX_FLOWS)?,
            ["Failures", n] if *n == "0" => {}
            ["Failures" | "failure", ..] => {
                return Err(line
                    .error("link failures in connection matrices are not supported; leave them out")
                    .into());
            }
            ["trigger", rest @ ..] => {
                let (id, trigger) = parse_trigger(&line, rest)?;
                if file.triggers.insert(id, trigger).is_some() {
                    return Err(line.error(format!("trigger {id} is defined twice")).into());
                }
            }
            [pair, rest @ ..] if pair.contains("->") => {
                let n = nodes.ok_or_else(|| line.error("`Nodes N` must come before the first connection"))?;
                let connection = parse_connection(&line, pair, rest, n, &mut ids, &mut file.priorities)?;
                file.connections.push(connection);
            }
            _ => {
                return Err(line
                    .error(format!(
                        "`{}` is none of `Nodes N`, `Connections N`, `Triggers N`, `src->dst ...`, `trigger id N ...`",
                        shown(line.text)
                    ))
                    .into());
            }
        }
    }
    let end = |problem: String| FileError::Line { path: path.to_string(), line: last, problem };
    file.n_nodes = nodes.ok_or_else(|| end("there is no `Nodes N`".to_string()))?;
    let counts = [("Connections", connections, file.connections.len()), ("Triggers", triggers, file.triggers.len())];
    for (keyword, said, have) in counts {
        if said.unwrap_or(0) as usize != have {
            return Err(end(format!(
                "the file has {have} {}, its header says {keyword} {}",
                keyword.to_lowercase(),
                said.unwrap_or(0)
            ))
            .into());
        }
    }
    Ok(file)
}

fn parse_trigger(line: &Line, words: &[&str]) -> Result<(u32, Trigger), FileError> {
    let (mut id, mut count, mut kind) = (None, None, None);
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().ok_or_else(|| line.error(format!("`{word}` has no value")));
        match word {
            "id" => id = Some(line.number("trigger id", value()?, 1, u32::MAX)?),
            "count" => count = Some(line.number("count", value()?, 1, MAX_FLOWS)?),
            "oneshot" | "multishot" | "barrier" if kind.is_some() => {
                return Err(line.error("a trigger is one of oneshot, multishot, barrier"));
            }
            "oneshot" => kind = Some(TriggerKind::Oneshot),
            "multishot" => kind = Some(TriggerKind::Multishot),
            "barrier" => kind = Some(TriggerKind::Barrier),
            _ => return Err(line.error(format!("`{}` is none of id, count, oneshot, multishot, barrier", shown(word)))),
        }
    }
    let kind = kind.ok_or_else(|| line.error("a trigger needs one of oneshot, multishot, barrier"))?;
    if kind == TriggerKind::Barrier && count.is_none() {
        return Err(line.error("a barrier needs `count N`, the number of flows that it waits for"));
    }
    let id = id.ok_or_else(|| line.error("a trigger needs `id N`"))?;
    Ok((id, Trigger { line: line.number, kind, count: count.unwrap_or(1) }))
}

fn parse_connection(
    line: &Line,
    pair: &str,
    words: &[&str],
    n_nodes: u32,
    ids: &mut BTreeSet<u32>,
    priorities: &mut u64,
) -> Result<Connection, FileError> {
    let (src, dst) = pair.split_once("->").unwrap_or((pair, ""));
    let src = line.number("source", src, 0, n_nodes - 1)?;
    let dst = line.number("destination", dst, 0, n_nodes - 1)?;
    if src == dst {
        return Err(line.error(format!("source and destination are both {src}; a flow needs two hosts")));
    }
    let (mut start, mut bytes, mut send_done, mut recv_done) = (None, None, None, None);
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().ok_or_else(|| line.error(format!("`{word}` has no value")));
        let mut trigger = || line.number("trigger id", value()?, 1, u32::MAX);
        match word {
            "start" | "trigger" if start.is_some() => {
                return Err(line.error("a flow has either one `start` or one `trigger`"));
            }
            "trigger" => start = Some(Start::Trigger(trigger()?)),
            "send_done_trigger" => send_done = Some(trigger()?),
            "recv_done_trigger" => recv_done = Some(trigger()?),
            "id" => {
                let id = line.number("flow id", value()?, 1, u32::MAX)?;
                if !ids.insert(id) {
                    return Err(line.error(format!("flow id {id} is given twice")));
                }
            }
            "start" => {
                let text = value()?;
                let ps = scaled(text, 0).filter(|&ps| ps <= MAX_PS);
                let problem = || {
                    format!(
                        "start `{}` is not a time in picoseconds, at least 0 and at most a million seconds",
                        shown(text)
                    )
                };
                start = Some(Start::At(ps.ok_or_else(|| line.error(problem()))?));
            }
            "size" => bytes = Some(line.number("size in bytes", value()?, 1, MAX_BYTES)?),
            "prio" => {
                line.number("prio", value()?, 0, u32::MAX)?;
                *priorities += 1;
            }
            _ => {
                return Err(line.error(format!(
                    "`{}` is none of id, start, size, trigger, send_done_trigger, recv_done_trigger, prio",
                    shown(word)
                )));
            }
        }
    }
    let bytes = bytes.ok_or_else(|| line.error("a flow needs `size BYTES`"))?;
    let start = start.ok_or_else(|| line.error("a flow needs `start PS` or `trigger ID`"))?;
    Ok(Connection { line: line.number, src, dst, bytes, start, send_done, recv_done })
}

fn flows(file: &File) -> Vec<Flow> {
    let mut ports = SportCounter::default();
    let flow = |(i, c): (usize, &Connection)| Flow {
        id: i as u32,
        src_rank: c.src,
        dst_rank: c.dst,
        bytes: c.bytes,
        start_ps: match c.start {
            Start::At(ps) => ps,
            Start::Trigger(_) => 0,
        },
        sport: ports.next(c.src, c.dst),
        dport: DPORT,
        class: PRIORITY,
    };
    file.connections.iter().enumerate().map(flow).collect()
}

/// The operations and groups of a rank while they are collected.
#[derive(Default)]
struct Host {
    items: Vec<Item>,
    groups: Vec<u32>,
}

impl Host {
    fn push(&mut self, kind: OpKind, name: u32, deps: Vec<u32>) -> u32 {
        self.items.push(Item { kind, name, stream: Stream::FREE, deps });
        self.items.len() as u32 - 1
    }
}

fn build(path: &str, file: &File) -> Result<Workload, ImportError> {
    let mut names = NameTable::default();
    let (flow, wait, fire) = (names.of("flow"), names.of("start"), names.of("trigger"));
    let mut w = Workload {
        groups: vec![Group { members: (0..file.n_nodes).collect(), dim: Dim::Other }],
        ..Workload::default()
    };
    let mut hosts: Vec<Host> = (0..file.n_nodes).map(|_| Host { items: Vec::new(), groups: vec![0] }).collect();
    // Operations that activate a trigger when they end: (host, operation), by trigger.
    let mut activators: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    // Sends that a trigger starts: (host, operation), by trigger.
    let mut triggered: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for (i, c) in file.connections.iter().enumerate() {
        let (tag, dim) = (i as u32, Dim::Other);
        let deps = match c.start {
            Start::At(ps) if ps > 0 => {
                vec![hosts[c.src as usize].push(OpKind::Compute { ps, phase: Phase::Other }, wait, Vec::new())]
            }
            _ => Vec::new(),
        };
        let send = OpKind::Send { peer: Peer { slot: 0, member: c.dst }, bytes: c.bytes, tag, dim };
        let recv = OpKind::Recv { peer: Peer { slot: 0, member: c.src }, bytes: c.bytes, tag, dim };
        let send = hosts[c.src as usize].push(send, flow, deps);
        let recv = hosts[c.dst as usize].push(recv, flow, Vec::new());
        for (trigger, host, op) in [(c.send_done, c.src, send), (c.recv_done, c.dst, recv)] {
            if let Some(trigger) = trigger {
                activators.entry(trigger).or_default().push((host, op));
            }
        }
        if let Start::Trigger(trigger) = c.start {
            triggered.entry(trigger).or_default().push((c.src, send));
        }
        for trigger in [c.send_done, c.recv_done, if let Start::Trigger(t) = c.start { Some(t) } else { None }]
            .into_iter()
            .flatten()
        {
            if !file.triggers.contains_key(&trigger) {
                let problem =
                    format!("trigger {trigger} is not defined; a line `trigger id {trigger} oneshot` is missing");
                return Err(FileError::Line { path: path.to_string(), line: c.line, problem }.into());
            }
        }
    }
    let none = Vec::new();
    for (id, trigger) in &file.triggers {
        let (activating, started) = (activators.get(id).unwrap_or(&none), triggered.get(id).unwrap_or(&none));
        check_trigger(*id, trigger, activating.len(), started.len()).map_err(|problem| FileError::Line {
            path: path.to_string(),
            line: trigger.line,
            problem,
        })?;
        if activating.is_empty() || started.is_empty() {
            continue;
        }
        let members: BTreeSet<u32> = activating.iter().chain(started).map(|(host, _)| *host).collect();
        let group = w.groups.len() as u32;
        let shared = members.len() > 1;
        let mut fired: BTreeMap<u32, u32> = BTreeMap::new();
        for &host in &members {
            let h = &mut hosts[host as usize];
            let deps: Vec<u32> = activating.iter().filter(|(other, _)| *other == host).map(|(_, op)| *op).collect();
            let kind = if shared {
                let slot = u16::try_from(h.groups.len()).map_err(|_| {
                    ImportError::path(path, format!("host {host} takes part in more than 65,535 triggers"))
                })?;
                h.groups.push(group);
                OpKind::Collective {
                    op: CollectiveOp::Barrier,
                    slot,
                    bytes: 0,
                    dim: Dim::Other,
                    algorithm: None,
                    shares: None,
                }
            } else {
                OpKind::Join
            };
            fired.insert(host, h.push(kind, fire, deps));
        }
        if shared {
            w.groups.push(Group { members: members.into_iter().collect(), dim: Dim::Other });
        }
        for &(host, send) in started {
            hosts[host as usize].items[send as usize].deps.push(fired[&host]);
        }
    }
    let mut ranks = Ranks::default();
    for (host, h) in hosts.into_iter().enumerate() {
        let program = graph::program(h.items).map_err(|position| ImportError::Node {
            path: path.to_string(),
            node: u64::from(position),
            problem: format!("triggers lead round in a circle at host {host}, so its flows can never start"),
        })?;
        ranks.push(&mut w, program, h.groups);
    }
    w.names = names;
    check::sound(path, &w)?;
    Ok(w)
}

/// Checks that a trigger means "when all its activators are done", which is all that a program can express.
fn check_trigger(id: u32, t: &Trigger, activators: usize, targets: usize) -> Result<(), String> {
    if targets > 0 && activators == 0 {
        return Err(format!(
            "nothing activates trigger {id}, so its {targets} flow(s) never start; name it in a send_done_trigger or recv_done_trigger"
        ));
    }
    match t.kind {
        TriggerKind::Barrier if targets > 0 && t.count as usize > activators => Err(format!(
            "barrier {id} waits for {} flows, but only {activators} activate it, so it never fires",
            t.count
        )),
        TriggerKind::Barrier if targets > 0 && (t.count as usize) < activators => Err(format!(
            "barrier {id} fires after {} of its {activators} flows; only a barrier over all of them (count {activators}) is supported",
            t.count
        )),
        TriggerKind::Oneshot | TriggerKind::Multishot if targets > 0 && activators > 1 => Err(format!(
            "{activators} flows activate trigger {id}, of which the first fires it; only a trigger of one flow is supported, or a barrier of all"
        )),
        _ => Ok(()),
    }
}
