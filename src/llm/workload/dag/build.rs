//! Turns the nodes of a graph into programs.

use std::collections::{BTreeMap, HashMap, HashSet};

use hyperfold_base::index_list::{BadIndexList, parse_once_each};

use super::{DagError, RawNode};
use crate::collective::CollectiveOp;
use crate::workload::flows::decimal::scaled;
use crate::workload::flows::flow_file::MAX_FLOW_BYTES;
use crate::workload::program::{Dim, Group, OpKind, Peer, Phase, Stream, Workload};
use crate::workload::rules::{ProgramWriter, RankSchedule, assemble};

/// Maximum number of ranks of a graph. It is far above any cluster, so that a typing error gives a message before it takes all memory.
const MAX_RANKS: u32 = 1 << 20;

/// A graph as read from its file, not checked yet.
pub(super) struct Dag {
    pub ranks: Option<u32>,
    /// Number of GPUs of the cluster; the graph has at least so many ranks if `ranks` is `None`.
    pub gpus: Option<u32>,
    pub tokens: u64,
    pub groups: BTreeMap<String, String>,
    pub nodes: Vec<RawNode>,
}

/// The other end of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Rank(u32),
    Relative(i64),
}

/// The operation of a node. Everything is checked except what depends on the rank.
#[derive(Clone, Debug)]
enum Kind {
    Compute { ps: u64, phase: Phase },
    Join,
    Collective { op: CollectiveOp, bytes: u64, group: u32, dim: Dim },
    Message { send: bool, peer: End, bytes: u64, tag: u32, dim: Dim },
}

#[derive(Clone, Debug)]
struct Node {
    id: String,
    ranks: Vec<u32>,
    kind: Kind,
    stream: Stream,
    deps: Vec<u32>,
}

/// A graph that has passed all checks.
struct Checked {
    ranks: u32,
    /// The first group holds all ranks.
    groups: Vec<Group>,
    nodes: Vec<Node>,
    /// For each rank, the groups that it is a member of, in order of slots.
    slots: Vec<Vec<u32>>,
    /// For each rank, its nodes in file order.
    of_rank: Vec<Vec<u32>>,
    program_keys: Vec<u64>,
}

/// Checks a graph and converts it to programs.
pub(super) fn build(path: &str, dag: &Dag) -> Result<Workload, DagError> {
    let checked = check(path, dag)?;
    let mut workload = assemble(&checked).map_err(|source| DagError::Check { path: path.to_string(), source })?;
    workload.tokens = dag.tokens;
    Ok(workload)
}

/// Parses a list of ranks such as `0-3 8`. The word `all` is allowed where the number of ranks `n` is known.
fn rank_list(text: &str, n: Option<u32>) -> Result<Vec<u32>, String> {
    if text == "all" {
        return n.map(|n| (0..n).collect()).ok_or_else(|| "`all` needs a number of ranks".to_string());
    }
    let ranks = parse_once_each(text.split_whitespace(), MAX_RANKS).map_err(|bad| match bad {
        BadIndexList::Part(part) => format!(
            "`{part}` is neither a rank nor a range of ranks below {MAX_RANKS}; write `all`, or ranks such as `0-3 8`"
        ),
        BadIndexList::Twice(rank) => format!("rank {rank} stands twice in `{text}`"),
    })?;
    match (ranks.iter().max(), n) {
        (None, _) => Err("no rank".to_string()),
        (Some(&highest), Some(n)) if highest >= n => {
            Err(format!("rank {highest} does not exist; there are {n}, counted from 0"))
        }
        _ => Ok(ranks),
    }
}

/// The number of ranks: the given one, else the number of GPUs or the highest rank named plus one, whichever is larger.
fn count_ranks(path: &str, dag: &Dag) -> Result<u32, DagError> {
    if let Some(n) = dag.ranks {
        let in_range = (1..=MAX_RANKS).contains(&n);
        let message = format!("ranks = {n}: from 1 to {MAX_RANKS} would be right");
        return if in_range { Ok(n) } else { Err(DagError::Syntax { path: path.to_string(), message }) };
    }
    let mut highest = 0;
    let mut take = |text: &str| {
        if text != "all" {
            highest = rank_list(text, None).ok().and_then(|r| r.into_iter().max()).map_or(highest, |r| highest.max(r));
        }
    };
    dag.groups.values().for_each(|g| take(g));
    for node in &dag.nodes {
        [&node.ranks, &node.group, &node.peer].into_iter().flatten().for_each(|t| take(&t.0));
    }
    // The highest rank that is named does not tell how many ranks `all` means.
    Ok(dag.gpus.unwrap_or(0).max(highest + 1))
}

/// The first of `ranks` that is not in `all`. It uses a hash set, since both lists may have a million ranks.
fn first_absent(ranks: &[u32], all: &[u32]) -> Option<u32> {
    if ranks == all {
        return None;
    }
    let all: HashSet<u32> = all.iter().copied().collect();
    ranks.iter().copied().find(|rank| !all.contains(rank))
}

fn check(path: &str, dag: &Dag) -> Result<Checked, DagError> {
    let n = count_ranks(path, dag)?;
    if dag.nodes.is_empty() {
        return Err(DagError::Syntax {
            path: path.to_string(),
            message: "no node; write [[node]] tables, or lines below the header".to_string(),
        });
    }
    let mut groups = vec![Group { members: (0..n).collect(), dim: Dim::Other }];
    let mut named: HashMap<String, u32> = HashMap::from([("all".to_string(), 0)]);
    for (name, ranks) in &dag.groups {
        let error = |problem| DagError::Group { path: path.to_string(), group: name.clone(), problem };
        let members = rank_list(ranks, Some(n)).map_err(error)?;
        if named.insert(name.clone(), groups.len() as u32).is_some() {
            return Err(error("the name stands for all ranks already".to_string()));
        }
        groups.push(Group { members, dim: Dim::Dp });
    }
    let mut ids: HashMap<String, u32> = HashMap::new();
    let mut nodes: Vec<Node> = Vec::new();
    for (i, raw) in dag.nodes.iter().enumerate() {
        let id = raw.id.clone().unwrap_or_else(|| format!("node{i}"));
        let error =
            |problem: String| DagError::Node { path: path.to_string(), line: raw.line, id: id.clone(), problem };
        let ranks = rank_list(raw.ranks.as_ref().map_or("all", |t| &t.0), Some(n)).map_err(error)?;
        let kind = kind(raw, n, &mut groups, &mut named).map_err(error)?;
        if let Kind::Collective { group, .. } = kind
            && let Some(r) = first_absent(&ranks, &groups[group as usize].members)
        {
            return Err(error(format!("rank {r} is not in its group")));
        }
        let stream = stream(raw, &kind).map_err(error)?;
        let mut deps = Vec::new();
        for dep in &raw.deps {
            let Some(&d) = ids.get(dep) else {
                return Err(error(format!("depends on `{dep}`, which is no node above it")));
            };
            if let Some(r) = first_absent(&ranks, &nodes[d as usize].ranks) {
                return Err(error(format!(
                    "depends on `{dep}`, which rank {r} does not do; other ranks are waited for with send and recv, or a collective"
                )));
            }
            deps.push(d);
        }
        if ids.insert(id.clone(), i as u32).is_some() {
            return Err(error("the id stands twice".to_string()));
        }
        nodes.push(Node { id, ranks, kind, stream, deps });
    }
    let mut checked = Checked {
        ranks: n,
        groups,
        nodes,
        slots: vec![Vec::new(); n as usize],
        of_rank: vec![Vec::new(); n as usize],
        program_keys: Vec::new(),
    };
    for (g, group) in checked.groups.iter().enumerate() {
        group.members.iter().for_each(|&m| checked.slots[m as usize].push(g as u32));
    }
    for (i, node) in checked.nodes.iter().enumerate() {
        node.ranks.iter().for_each(|&r| checked.of_rank[r as usize].push(i as u32));
    }
    checked.program_keys = program_keys(&checked);
    Ok(checked)
}

/// The program key of each rank. Ranks have equal keys if they have the same nodes, the same groups in the same slots, and no peer that depends on the rank.
fn program_keys(c: &Checked) -> Vec<u64> {
    let relative: Vec<bool> =
        c.nodes.iter().map(|n| matches!(n.kind, Kind::Message { peer: End::Relative(_), .. })).collect();
    // Nodes, slots, and the rank itself if one of its peers is relative to it.
    type Look<'a> = (&'a [u32], Vec<u32>, Option<u32>);
    let mut seen: HashMap<Look, u64> = HashMap::new();
    let key = |r: usize| {
        let own = c.of_rank[r].iter().any(|&i| relative[i as usize]).then_some(r as u32);
        (c.of_rank[r].as_slice(), c.slots[r].clone(), own)
    };
    (0..c.ranks as usize)
        .map(|r| {
            let next = seen.len() as u64;
            *seen.entry(key(r)).or_insert(next)
        })
        .collect()
}

fn kind(raw: &RawNode, n: u32, groups: &mut Vec<Group>, named: &mut HashMap<String, u32>) -> Result<Kind, String> {
    let kinds =
        "compute, send, recv, join, all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, barrier";
    let Some(kind) = raw.kind.as_deref() else { return Err(format!("has no kind; there are {kinds}")) };
    let unread = |keys: &[(&str, bool)]| match keys.iter().find(|k| k.1) {
        Some((key, _)) => Err(format!("`{key}` means nothing to kind `{kind}`")),
        None => Ok(()),
    };
    let (has_bytes, has_duration) = (("bytes", raw.bytes.is_some()), ("duration_ns", raw.duration_ns.is_some()));
    let messages = [("peer", raw.peer.is_some()), ("tag", raw.tag.is_some())];
    let (group, phase, dim) =
        (("group", raw.group.is_some()), ("phase", raw.phase.is_some()), ("dim", raw.dim.is_some()));
    let bytes = || match raw.bytes.as_ref().map(|t| (scaled(&t.0, 0), &t.0)) {
        Some((Some(b), _)) if (1..=MAX_FLOW_BYTES).contains(&b) => Ok(b),
        Some((_, text)) => Err(format!("bytes `{text}` is not a number from 1 to {MAX_FLOW_BYTES}")),
        None => Err("has no `bytes`".to_string()),
    };
    let op = match kind {
        "compute" => {
            unread(&[has_bytes, messages[0], messages[1], group, dim])?;
            let Some(text) = raw.duration_ns.as_ref().map(|t| &t.0) else {
                return Err("has no `duration_ns`".to_string());
            };
            let ps = scaled(text, 3)
                .filter(|&ps| ps <= 1 << 60)
                .ok_or_else(|| format!("duration_ns `{text}` is not a time in nanoseconds of at most two weeks"))?;
            let phase = match raw.phase.as_deref() {
                Some("forward") => Phase::Forward,
                Some("backward") => Phase::Backward,
                Some("optimizer") => Phase::Optimizer,
                None | Some("other") => Phase::Other,
                Some(other) => return Err(format!("phase `{other}` is not forward, backward, optimizer or other")),
            };
            return Ok(Kind::Compute { ps, phase });
        }
        "join" => {
            unread(&[has_bytes, has_duration, messages[0], messages[1], group, dim, phase])?;
            return Ok(Kind::Join);
        }
        "send" | "recv" => {
            unread(&[has_duration, group, phase])?;
            let Some(peer) = raw.peer.as_ref().map(|t| t.0.as_str()) else { return Err("has no `peer`".to_string()) };
            let wrong = || format!("peer `{peer}` is not a rank below {n}, nor relative such as `+1`");
            let peer = match peer.strip_prefix(['+', '-']) {
                Some(offset) => {
                    let offset = offset.parse::<u32>().map_err(|_| wrong())? as i64;
                    End::Relative(if peer.starts_with('-') { -offset } else { offset })
                }
                None => End::Rank(peer.parse::<u32>().ok().filter(|&r| r < n).ok_or_else(wrong)?),
            };
            let tag = match raw.tag.as_ref().map(|t| &t.0) {
                None => 0,
                Some(t) => t.parse::<u32>().map_err(|_| format!("tag `{t}` is not a number from 0 to 4294967295"))?,
            };
            return Ok(Kind::Message {
                send: kind == "send",
                peer,
                bytes: bytes()?,
                tag,
                dim: dimension(raw, Dim::Pp)?,
            });
        }
        "all-reduce" => CollectiveOp::AllReduce,
        "all-gather" => CollectiveOp::AllGather,
        "reduce-scatter" => CollectiveOp::ReduceScatter,
        "all-to-all" => CollectiveOp::AllToAll,
        "broadcast" => CollectiveOp::Broadcast,
        "reduce" => CollectiveOp::Reduce,
        "barrier" => CollectiveOp::Barrier,
        other => return Err(format!("kind `{other}` is none of {kinds}")),
    };
    unread(&[has_duration, messages[0], messages[1], phase])?;
    let bytes = if op == CollectiveOp::Barrier { 0 } else { bytes()? };
    let text = raw.group.as_ref().map_or("all", |t| &t.0);
    let group = match named.get(text) {
        Some(&g) => g,
        None => {
            let members = rank_list(text, Some(n)).map_err(|e| format!("group: {e}"))?;
            groups.push(Group { members, dim: Dim::Dp });
            named.insert(text.to_string(), groups.len() as u32 - 1);
            groups.len() as u32 - 1
        }
    };
    Ok(Kind::Collective { op, bytes, group, dim: dimension(raw, Dim::Dp)? })
}

fn dimension(raw: &RawNode, default: Dim) -> Result<Dim, String> {
    Ok(match raw.dim.as_deref() {
        None => default,
        Some("tp") => Dim::Tp,
        Some("pp") => Dim::Pp,
        Some("dp") => Dim::Dp,
        Some("ep") => Dim::Ep,
        Some("cp") => Dim::Cp,
        Some("other") => Dim::Other,
        Some(other) => return Err(format!("dim `{other}` is not tp, pp, dp, ep, cp or other")),
    })
}

fn stream(raw: &RawNode, kind: &Kind) -> Result<Stream, String> {
    let own = match kind {
        Kind::Compute { .. } | Kind::Join => Stream::COMPUTE,
        Kind::Collective { dim, .. } | Kind::Message { dim, send: true, .. } => Stream::comm(*dim),
        // On the same stream, a receive before a send would delay the send.
        Kind::Message { dim, send: false, .. } => Stream::comm_lane(*dim, 1),
    };
    match raw.stream.as_deref() {
        None => Ok(own),
        Some("comm") if own != Stream::COMPUTE => Ok(own),
        Some("comm") => Err("stream `comm` is for communication".to_string()),
        Some("compute") => Ok(Stream::COMPUTE),
        Some("copy") => Ok(Stream::COPY),
        Some("free") => Ok(Stream::FREE),
        Some(other) => Err(format!("stream `{other}` is not compute, copy, comm or free")),
    }
}

impl RankSchedule for Checked {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn groups(&self) -> Vec<Group> {
        self.groups.clone()
    }

    fn slots(&self, rank: u32) -> Vec<u32> {
        self.slots[rank as usize].clone()
    }

    fn program_key(&self, rank: u32) -> u64 {
        self.program_keys[rank as usize]
    }

    fn write(&self, rank: u32, writer: &mut ProgramWriter) {
        let mut ops: HashMap<u32, u32> = HashMap::new();
        for &i in &self.of_rank[rank as usize] {
            let node = &self.nodes[i as usize];
            let deps: Vec<u32> = node.deps.iter().map(|d| ops[d]).collect();
            let kind = match node.kind {
                Kind::Compute { ps, phase } => OpKind::Compute { ps, phase },
                Kind::Join => OpKind::Join,
                Kind::Collective { op, bytes, group, dim } => {
                    let slot = self.slots[rank as usize]
                        .iter()
                        .position(|&g| g == group)
                        .expect("a node's ranks are in its group") as u16;
                    OpKind::Collective { op, slot, bytes, dim, algorithm: None, shares: None }
                }
                Kind::Message { send, peer, bytes, tag, dim } => {
                    let member = match peer {
                        End::Rank(r) => r,
                        End::Relative(offset) => (rank as i64 + offset).rem_euclid(self.ranks as i64) as u32,
                    };
                    let peer = Peer { slot: 0, member };
                    if send { OpKind::Send { peer, bytes, tag, dim } } else { OpKind::Recv { peer, bytes, tag, dim } }
                }
            };
            ops.insert(i, writer.op(&node.id, kind, node.stream, &deps));
        }
    }
}
