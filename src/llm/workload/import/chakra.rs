//! Reads Chakra execution traces: one `.et` file per rank becomes one program per rank.
//!
//! Layer: workload. A node becomes an operation; its data and control dependencies become the operation's dependencies. Nodes without a dependency between them
//! run side by side ([`crate::workload::program::Stream::FREE`]). `comm_size` counts what a rank begins with, as in ASTRA-sim and the PyTorch converter. So an
//! all-gather ends with that size times the number of ranks.
//!
//! Traces converted from PyTorch (nodes with `rf_id`) name call-stack parents as control dependencies. Many of these are not in the file, and they contradict
//! the data dependencies. In such traces only the data dependencies give the order, as in ASTRA-sim's feeder. Kernels run one at a time on the GPU, in order of
//! id, because PyTorch counts ids up as it launches them.
//!
//! The members of a process group (`pg_name`) are the ranks listed in `comm_group.json` beside the traces (ASTRA-sim's form: `{"name": [rank, ...]}`). Without
//! that file they are all ranks whose trace has a collective of that name. Collectives without a name span all ranks.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::et::{self, ExecutionTraceNode};
use super::graph::{self, Item, Ranks};
use super::{ImportError, ImportOptions, Imported, MAX_BYTES, MAX_OPS, MAX_PS, MAX_RANKS, check};
use crate::collective::CollectiveOp;
use crate::workload::program::{Dim, Group, NameTable, OpKind, Peer, Phase, Stream, Workload};
use hyperfold_base::input;
use hyperfold_base::units::{PS_PER_S, PS_PER_US};

/// Name of the file that lists the members of process groups; it lies beside the traces.
pub const GROUPS_FILE: &str = "comm_group.json";
/// How many levels below the named folder traces may lie.
const MAX_SUBFOLDERS: usize = 4;
/// Collective kinds by Chakra's number, with the operation of this simulator, or `None` if there is none.
const COLLECTIVES: [(&str, Option<CollectiveOp>); 10] = [
    ("all-reduce", Some(CollectiveOp::AllReduce)),
    ("reduce", Some(CollectiveOp::Reduce)),
    ("all-gather", Some(CollectiveOp::AllGather)),
    ("gather", None),
    ("scatter", None),
    ("broadcast", Some(CollectiveOp::Broadcast)),
    ("all-to-all", Some(CollectiveOp::AllToAll)),
    ("reduce-scatter", Some(CollectiveOp::ReduceScatter)),
    ("reduce-scatter-block", Some(CollectiveOp::ReduceScatter)),
    ("barrier", Some(CollectiveOp::Barrier)),
];

/// The `.et` files that a path names, with their ranks, in ascending order. The path is a folder (searched into subfolders if it has no `.et` file itself), a
/// prefix (`folder/name` for `folder/name.0.et`), or one file.
///
/// # Errors
/// A folder cannot be read, a file name ends in no number, or two files name the same rank.
pub fn files(path: &Path) -> Result<Vec<(u32, PathBuf)>, ImportError> {
    let shown = path.display().to_string();
    let (folder, prefix) = if input::is_folder(path) {
        (path.to_path_buf(), String::new())
    } else if input::is_file(path) {
        // A single file is rank 0, whatever number its name has.
        return Ok(vec![(0, path.to_path_buf())]);
    } else {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        (parent.to_path_buf(), format!("{}.", name.trim_end_matches('.')))
    };
    let mut found = Vec::new();
    collect(&folder, &prefix, 0, &mut found).map_err(|e| ImportError::path(&shown, format!("cannot be read: {e}")))?;
    if let [one] = found.as_slice() {
        // The only file found is treated as if the path had named it: as rank 0.
        return Ok(vec![(0, one.clone())]);
    }
    let mut ranked = Vec::with_capacity(found.len());
    for file in found {
        let rank = rank_of(&file).ok_or_else(|| {
            ImportError::path(&file.display().to_string(), "the name should end in the rank, as `name.0.et` does")
        })?;
        ranked.push((rank, file));
    }
    ranked.sort();
    for pair in ranked.windows(2) {
        if pair[0].0 == pair[1].0 {
            let (a, b) = (pair[0].1.display(), pair[1].1.display());
            return Err(ImportError::path(
                &shown,
                format!("{a} and {b} are both rank {}; name a prefix that only one set of files has", pair[0].0),
            ));
        }
    }
    Ok(ranked)
}

fn collect(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let entries = input::entries(folder)?;
    let before = found.len();
    let named = |p: &Path| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix));
    found.extend(
        entries.iter().filter(|p| p.extension().is_some_and(|e| e == "et") && p.is_file() && named(p)).cloned(),
    );
    if found.len() == before && prefix.is_empty() && depth < MAX_SUBFOLDERS {
        // Symbolic links are not followed, since they may form a cycle.
        for sub in entries.iter().filter(|p| p.is_dir() && !p.is_symlink()) {
            collect(sub, prefix, depth + 1, found)?;
        }
    }
    Ok(())
}

/// The number at the end of a file's stem, such as 12 in `trace.12.et`.
fn rank_of(file: &Path) -> Option<u32> {
    let stem = file.file_stem()?.to_str()?;
    let digits = stem.len() - stem.bytes().rev().take_while(u8::is_ascii_digit).count();
    stem[digits..].parse().ok()
}

/// Reads traces from a folder, a prefix or one file. A single trace stands for `options.ranks` ranks that all do the same (for one if that is `None`).
///
/// # Errors
/// There is no trace, ranks are missing, a trace is broken, its graph has a cycle, a missing node or the same id twice, or ranks disagree.
pub fn read(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    let shown = path.display().to_string();
    let files = files(path)?;
    if files.is_empty() {
        return Err(ImportError::path(
            &shown,
            "no `.et` file is there; name a folder, or a prefix such as `folder/trace` for `folder/trace.0.et`",
        ));
    }
    if let Some((position, (rank, _))) =
        files.iter().enumerate().find(|(position, (rank, _))| *position as u32 != *rank)
    {
        return Err(ImportError::path(
            &shown,
            format!("there is a trace of rank {rank}, but none of rank {position}; ranks count from 0 without gaps"),
        ));
    }
    let mut traces = Vec::with_capacity(files.len());
    for (_, file) in &files {
        let shown = file.display().to_string();
        let bytes = input::read(file).map_err(|e| ImportError::path(&shown, format!("cannot be read: {e}")))?;
        traces.push((shown, bytes));
    }
    let folder = files[0].1.parent().unwrap_or(Path::new("."));
    let groups = match input::read_table(&folder.join(GROUPS_FILE)) {
        Ok(text) => Some((folder.join(GROUPS_FILE).display().to_string(), text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => {
            let groups = folder.join(GROUPS_FILE).display().to_string();
            return Err(ImportError::path(&groups, format!("cannot be read: {e}")));
        }
    };
    parse(&shown, &traces, groups.as_ref().map(|(p, t)| (p.as_str(), t.as_str())), options)
}

/// Reads traces from bytes: for each rank the path (for messages) and the content, and the text of `comm_group.json` if there is one.
///
/// # Errors
/// All errors of [`read`] except those of reading files.
pub fn parse(
    path: &str,
    traces: &[(String, Vec<u8>)],
    groups: Option<(&str, &str)>,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let n_ranks = match (traces.len() as u32, options.ranks) {
        (n, None) => n,
        (1, Some(n)) => n,
        (n, Some(m)) if n == m => n,
        (n, Some(ranks)) => {
            return Err(ImportError::Ranks {
                path: path.to_string(),
                ranks,
                problem: format!("there are traces of {n} ranks; only a single trace can stand for more"),
            });
        }
    };
    if n_ranks == 0 || n_ranks > MAX_RANKS {
        return Err(ImportError::Ranks {
            path: path.to_string(),
            ranks: n_ranks,
            problem: format!("it must be from 1 to {MAX_RANKS}"),
        });
    }
    let mut all = Vec::with_capacity(traces.len());
    let mut total = 0;
    for (shown, bytes) in traces {
        let mut nodes = Vec::new();
        et::nodes(shown, bytes, |_, n| {
            total += 1;
            if total > MAX_OPS {
                return Err(ImportError::path(path, format!("more than {MAX_OPS} nodes")));
            }
            nodes.push(n);
            Ok(())
        })?;
        all.push((shown.as_str(), nodes));
    }
    let replicated = traces.len() == 1 && n_ranks > 1;
    let mut b = Builder {
        options,
        n_ranks,
        replicated,
        pgs: process_groups(&all, groups, n_ranks, replicated)?,
        names: NameTable::default(),
        wrappers: 0,
        cpu_ps: 0,
    };
    let mut w = Workload::default();
    w.groups.push(Group { members: (0..n_ranks).collect(), dim: Dim::Other });
    w.groups.extend(b.pgs.values().map(|pg| Group { members: pg.members.clone(), dim: pg.dim }));
    let mut notes = Vec::new();
    let mut ranks = Ranks::default();
    for (rank, (shown, nodes)) in all.into_iter().enumerate() {
        let (program, slots) = b.rank(rank as u32, shown, nodes, &mut notes)?;
        ranks.push(&mut w, program, slots);
    }
    if traces.len() == 1 && options.ranks.is_none() {
        notes.push(
            "one trace: a run repeats it on each GPU of its cluster, or on as many as workload.ranks says".into(),
        );
    }
    if replicated {
        w.ranks = vec![w.ranks[0].clone(); n_ranks as usize];
        notes.push(format!("one trace stands for {n_ranks} ranks that all do the same"));
    }
    if b.wrappers > 0 {
        notes.push(format!("{} collective node(s) without comm_type are wrappers on the CPU; they keep their dependencies and take no time", b.wrappers));
    }
    if b.cpu_ps > 0 {
        notes.push(format!(
            "operations on the CPU take {} us in all and run side by side where no dependency orders them",
            b.cpu_ps / PS_PER_US
        ));
    }
    w.names = b.names;
    check::sound(path, &w)?;
    Ok(Imported { workload: w, flows: None, notes })
}

/// A process group: its index in `Workload::groups`, and its members.
struct ProcessGroup {
    index: u32,
    members: Vec<u32>,
    dim: Dim,
}

fn process_groups(
    traces: &[(&str, Vec<ExecutionTraceNode>)],
    file: Option<(&str, &str)>,
    n_ranks: u32,
    replicated: bool,
) -> Result<BTreeMap<String, ProcessGroup>, ImportError> {
    let mut listed: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    if let Some((path, text)) = file {
        listed = serde_json::from_str(text)
            .map_err(|e| ImportError::path(path, format!("{e}; it should be {{\"name\": [rank, ...]}}")))?;
        for (name, members) in &listed {
            let mut seen = std::collections::BTreeSet::new();
            if let Some(bad) = members.iter().find(|m| **m >= n_ranks || !seen.insert(**m)) {
                return Err(ImportError::path(
                    path,
                    format!("group `{name}` has rank {bad}, which is twice in it or not one of the {n_ranks} ranks"),
                ));
            }
        }
    }
    let mut used: BTreeMap<&str, (Vec<u32>, Dim)> = BTreeMap::new();
    for (rank, (_, nodes)) in traces.iter().enumerate() {
        for n in nodes.iter().filter(|n| n.kind == et::COLLECTIVE && n.comm_type.is_some()) {
            let Some(name) = n.pg_name.filter(|name| !name.is_empty()) else { continue };
            let (members, _) = used.entry(name).or_insert((Vec::new(), n.dim.and_then(dim_of).unwrap_or(Dim::Other)));
            if members.last() != Some(&(rank as u32)) {
                members.push(rank as u32);
            }
        }
    }
    let mut out = BTreeMap::new();
    for (name, (members, dim)) in used {
        let members = match listed.remove(name) {
            Some(listed) => listed,
            None if replicated => (0..n_ranks).collect(),
            None => members,
        };
        out.insert(name.to_string(), ProcessGroup { index: out.len() as u32 + 1, members, dim });
    }
    Ok(out)
}

/// Texts of the dimensions, for this project's own attributes.
pub(crate) const DIMS: [(&str, Dim); 6] =
    [("tp", Dim::Tp), ("pp", Dim::Pp), ("dp", Dim::Dp), ("ep", Dim::Ep), ("cp", Dim::Cp), ("other", Dim::Other)];
/// Texts of the phases, for this project's own attributes.
pub(crate) const PHASES: [(&str, Phase); 4] = [
    ("forward", Phase::Forward),
    ("backward", Phase::Backward),
    ("optimizer", Phase::Optimizer),
    ("other", Phase::Other),
];

fn dim_of(text: &str) -> Option<Dim> {
    DIMS.iter().find(|(t, _)| *t == text).map(|(_, d)| *d)
}

struct Builder<'a> {
    options: &'a ImportOptions,
    n_ranks: u32,
    replicated: bool,
    pgs: BTreeMap<String, ProcessGroup>,
    names: NameTable,
    wrappers: u64,
    cpu_ps: u64,
}

/// The groups of a rank, one per slot, in the order in which they are found. Slot 0 is the group of all ranks.
struct Slots(Vec<u32>);

impl Slots {
    /// The slot of a group. Adds the group if it is new; `None` if there are too many.
    fn slot_of(&mut self, group: u32) -> Option<u16> {
        let slot = self.0.iter().position(|&g| g == group).unwrap_or_else(|| {
            self.0.push(group);
            self.0.len() - 1
        });
        u16::try_from(slot).ok()
    }
}

impl Builder<'_> {
    fn rank(
        &mut self,
        rank: u32,
        path: &str,
        mut nodes: Vec<ExecutionTraceNode>,
        notes: &mut Vec<String>,
    ) -> Result<(crate::workload::program::Program, Vec<u32>), ImportError> {
        let error = |node: u64, problem: String| ImportError::Node { path: path.to_string(), node, problem };
        let from_pytorch = nodes.iter().any(|n| n.from_pytorch);
        if from_pytorch {
            nodes.sort_by_key(|n| n.id);
        }
        let mut place: HashMap<u64, u32> = HashMap::with_capacity(nodes.len());
        for (i, n) in nodes.iter().enumerate() {
            if place.insert(n.id, i as u32).is_some() {
                return Err(error(n.id, "two nodes have this id; ids must be unique".to_string()));
            }
        }
        let call_stack = from_pytorch && nodes.iter().any(|n| !n.ctrl_deps.is_empty());
        if call_stack {
            notes.push(format!("{path}: control dependencies are call-stack parents (the trace comes from PyTorch); data dependencies alone are the order"));
        }
        let mut slots = Slots(vec![0]);
        let mut items = Vec::with_capacity(nodes.len());
        for n in &nodes {
            let ctrl: &[u64] = if call_stack { &[] } else { &n.ctrl_deps };
            let mut deps = Vec::with_capacity(ctrl.len() + n.data_deps.len());
            for dep in ctrl.iter().chain(&n.data_deps) {
                let dep_idx = *place
                    .get(dep)
                    .ok_or_else(|| error(n.id, format!("it depends on node {dep}, which the trace does not have")))?;
                if *dep == n.id {
                    return Err(error(n.id, "it depends on itself".to_string()));
                }
                deps.push(dep_idx);
            }
            deps.sort_unstable();
            deps.dedup();
            let kind = self.kind(rank, n, &mut slots).map_err(|problem| error(n.id, problem))?;
            let on_gpu = from_pytorch && !n.is_cpu_op && matches!(kind, OpKind::Compute { .. });
            let stream = if on_gpu { Stream::COMPUTE } else { Stream::FREE };
            items.push(Item { kind, name: self.names.of(n.name), stream, deps });
        }
        let program = graph::program(items).map_err(|node_idx| {
            error(
                nodes[node_idx as usize].id,
                "it waits for itself through its dependencies (a cycle), so nothing of it can ever start".to_string(),
            )
        })?;
        Ok((program, slots.0))
    }

    /// The operation of a node; the error says what is wrong with the node.
    fn kind(&mut self, rank: u32, n: &ExecutionTraceNode, slots: &mut Slots) -> Result<OpKind, String> {
        match n.kind {
            et::METADATA => Ok(OpKind::Join),
            et::MEM_LOAD | et::MEM_STORE | et::COMPUTE => {
                let ps = self.duration(n)?;
                if n.is_cpu_op {
                    self.cpu_ps = self.cpu_ps.saturating_add(ps);
                }
                let phase = PHASES.iter().find(|(t, _)| n.phase == Some(t)).map_or(Phase::Other, |(_, p)| *p);
                Ok(if ps == 0 { OpKind::Join } else { OpKind::Compute { ps, phase } })
            }
            et::SEND | et::RECV => self.message(rank, n),
            et::COLLECTIVE => self.collective(rank, n, slots),
            other => Err(format!(
                "type {other} is none of 1 metadata, 2 load, 3 store, 4 compute, 5 send, 6 receive, 7 collective"
            )),
        }
    }

    /// Duration of a node in ps: the measured one, else the one computed from `num_ops` and `tensor_size` at the given peak rates.
    fn duration(&self, n: &ExecutionTraceNode) -> Result<u64, String> {
        let ps = match n.duration_ps {
            Some(ps) => u64::try_from(ps).map_err(|_| format!("{} {ps} is negative", et::own::DURATION_PS))?,
            None => n.duration_micros.saturating_mul(PS_PER_US),
        };
        if ps > MAX_PS {
            return Err(format!("a duration of {} us is more than a million seconds", n.duration_micros));
        }
        let count = |v: Option<i64>, attribute: &str| {
            u64::try_from(v.unwrap_or(0)).map_err(|_| format!("{attribute} {} is negative", v.unwrap_or(0)))
        };
        let (ops, bytes) = (count(n.num_ops, "num_ops")?, count(n.tensor_size, "tensor_size")?);
        if ps > 0 || (ops == 0 && (bytes == 0 || n.kind == et::COMPUTE)) {
            return Ok(ps);
        }
        let time = |amount: u64, rate: u64| (u128::from(amount) * u128::from(PS_PER_S)).checked_div(u128::from(rate));
        let (compute, memory) = (time(ops, self.options.flops_per_s), time(bytes, self.options.memory_bytes_per_s));
        if ops > 0 && compute.is_none() {
            return Err(format!("it gives {ops} num_ops and no duration; say how many FLOP/s the GPU does"));
        }
        if n.kind != et::COMPUTE && memory.is_none() {
            return Err(format!("it moves {bytes} bytes and gives no duration; say how many bytes/s the memory does"));
        }
        let ps = compute.unwrap_or(0).max(memory.unwrap_or(0));
        u64::try_from(ps)
            .ok()
            .filter(|&ps| ps <= MAX_PS)
            .ok_or_else(|| format!("{ops} operations and {bytes} bytes take more than a million seconds"))
    }

    fn bytes(&self, n: &ExecutionTraceNode, min_bytes: u64) -> Result<u64, String> {
        let size = n.comm_size.ok_or("it has no comm_size; a communication needs its size in bytes")?;
        u64::try_from(size)
            .ok()
            .filter(|&b| (min_bytes..=MAX_BYTES).contains(&b))
            .ok_or_else(|| format!("comm_size {size} is not from {min_bytes} to {MAX_BYTES} bytes"))
    }

    fn message(&self, rank: u32, n: &ExecutionTraceNode) -> Result<OpKind, String> {
        let (attribute, peer) = if n.kind == et::SEND { ("comm_dst", n.comm_dst) } else { ("comm_src", n.comm_src) };
        let peer = peer.ok_or_else(|| format!("it has no {attribute}; a message needs its other end"))?;
        if self.replicated {
            return Err(format!(
                "it is a message to or from rank {peer}; one trace can stand for several ranks only if it has nothing but collectives"
            ));
        }
        let member = u32::try_from(peer).ok().filter(|&p| p < self.n_ranks && p != rank);
        let member = member.ok_or_else(|| {
            format!("{attribute} {peer} is not another of the {} ranks, which count from 0", self.n_ranks)
        })?;
        let tag = n.comm_tag.unwrap_or(0);
        let tag = u32::try_from(tag).map_err(|_| format!("comm_tag {tag} is not from 0 to {}", u32::MAX))?;
        let (peer, bytes, dim) =
            (Peer { slot: 0, member }, self.bytes(n, 1)?, n.dim.and_then(dim_of).unwrap_or(Dim::Other));
        Ok(if n.kind == et::SEND {
            OpKind::Send { peer, bytes, tag, dim }
        } else {
            OpKind::Recv { peer, bytes, tag, dim }
        })
    }

    fn collective(&mut self, rank: u32, n: &ExecutionTraceNode, slots: &mut Slots) -> Result<OpKind, String> {
        let Some(kind) = n.comm_type else {
            if n.is_cpu_op {
                self.wrappers += 1;
                return Ok(OpKind::Join);
            }
            return Err("it is a collective without comm_type; 0 is all-reduce, 2 all-gather, 5 broadcast, 6 all-to-all, 7 reduce-scatter".to_string());
        };
        let entry = usize::try_from(kind).ok().and_then(|k| COLLECTIVES.get(k));
        let (name, op) = entry.ok_or_else(|| format!("comm_type {kind} is not from 0 (all-reduce) to 9 (barrier)"))?;
        let op =
            op.ok_or_else(|| format!("comm_type {kind}, {name}, is not supported; write it as sends and receives"))?;
        let named = n.pg_name.filter(|name| !name.is_empty());
        if named.is_none() && n.involved_dim.contains(&false) {
            return Err("involved_dim leaves out dimensions of a logical topology that the trace does not have; give the process group by pg_name".to_string());
        }
        let (group, members, dim) = match named.and_then(|name| self.pgs.get(name)) {
            Some(pg) => (pg.index, pg.members.len() as u64, pg.dim),
            None => (0, u64::from(self.n_ranks), Dim::Other),
        };
        if let Some(pg) = named.and_then(|name| self.pgs.get(name))
            && !self.replicated
            && !pg.members.contains(&rank)
        {
            return Err(format!(
                "it is in process group `{}`, of which rank {rank} is not a member by {GROUPS_FILE}",
                named.unwrap_or_default()
            ));
        }
        let own = self
            .bytes(n, u64::from(op != CollectiveOp::Barrier))
            .or_else(|e| if op == CollectiveOp::Barrier { Ok(0) } else { Err(e) })?;
        let bytes = match (n.collective_bytes, op) {
            (Some(b), _) => u64::try_from(b)
                .ok()
                .filter(|b| *b <= MAX_BYTES)
                .ok_or_else(|| format!("{} {b} is no size", et::own::COLLECTIVE_BYTES))?,
            (None, CollectiveOp::Barrier) => 0,
            (None, CollectiveOp::AllGather) => {
                own.checked_mul(members).filter(|b| *b <= MAX_BYTES).ok_or("its ranks gather more than a petabyte")?
            }
            (None, _) => own,
        };
        let slot = slots.slot_of(group).ok_or("its rank is in more than 65,536 process groups")?;
        let dim = n.dim.and_then(dim_of).unwrap_or(dim);
        if members == 1 {
            return Ok(OpKind::Join);
        }
        Ok(OpKind::Collective { op, slot, bytes, dim, algorithm: None, shares: None })
    }
}
