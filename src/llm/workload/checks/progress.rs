//! Proves that a workload comes to its end, whatever the durations.
//!
//! Layer: workload. Ranks are put into classes whose members have equal classes in equal places of their groups. Ranks of a class progress alike, so one rank
//! of each class is run, without time. Sends count as buffered, so a workload that hangs here hangs on every network.

use std::collections::BTreeSet;
use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};

use super::check_error::CheckError;
use crate::workload::classes::{GroupPlace, RankClasses};
use crate::workload::program::{OpKind, Program, Stream, Workload};

/// Key of a rank's messages to or from a peer with a tag: (slot, member, tag).
type Line = (u16, u32, u32);
/// Messages that a class sends: (class, key).
type Source = (u32, Line);

/// Runs one rank of each class. The error names which op waits for what.
pub(super) fn check(w: &Workload) -> Result<(), CheckError> {
    let classes = RankClasses::of(w, |_| Vec::new(), |_| Vec::new());
    let mut run = Run::new(w, &classes.class_of, &classes.reps);
    run.go();
    run.stuck().map_or(Ok(()), |waits| Err(CheckError::Deadlock { waits }))
}

/// State of the run: one rank of each class.
struct Run<'a> {
    w: &'a Workload,
    reps: &'a [u32],
    /// By class and slot: the classes and slots that take part in its collectives.
    parties: Vec<Vec<Rc<Vec<GroupPlace>>>>,
    /// By class: the sender of each receive, from (slot, member, tag) of the receiver to class and (slot, member, tag) of the sender.
    sources: Vec<HashMap<Line, Source>>,
    /// By class and op: number of dependencies that are not done, the predecessor on its stream included.
    waits: Vec<Vec<u32>>,
    /// By class and op: first entry in `edges` of the linked list of ops that depend on it.
    heads: Vec<Vec<u32>>,
    /// By class: entries (op, next entry) of these lists.
    edges: Vec<Vec<(u32, u32)>>,
    /// By class and op: its number among the collectives of its slot, or among the receives or sends of its peer and tag.
    number: Vec<Vec<u32>>,
    done: Vec<Vec<bool>>,
    /// By class and slot: number of collectives begun.
    begun: Vec<Vec<u32>>,
    /// By class: number of sends done, by (slot, member, tag).
    sent: Vec<HashMap<Line, u32>>,
    /// Ops (class, op) that wait until a class begins its next collective in a slot.
    on_collective: HashMap<GroupPlace, Vec<(u32, u32)>>,
    /// Ops (class, op) that wait for a message.
    on_send: HashMap<Source, Vec<(u32, u32)>>,
    /// Ops (class, op) that wait for nothing.
    ready: Vec<(u32, u32)>,
}

impl<'a> Run<'a> {
    fn new(w: &'a Workload, class_of: &[u32], reps: &'a [u32]) -> Run<'a> {
        let program = |c: usize| &w.programs[w.ranks[reps[c] as usize].program as usize];
        let n = reps.len();
        let mut run = Run {
            w,
            reps,
            parties: Vec::new(),
            sources: Vec::new(),
            waits: Vec::new(),
            heads: Vec::new(),
            edges: Vec::new(),
            number: Vec::new(),
            done: (0..n).map(|c| vec![false; program(c).ops.len()]).collect(),
            begun: (0..n).map(|c| vec![0; w.ranks[reps[c] as usize].groups.len()]).collect(),
            sent: vec![HashMap::default(); n],
            on_collective: HashMap::new(),
            on_send: HashMap::new(),
            ready: Vec::new(),
        };
        let place = |m: u32, g: u32| -> Option<GroupPlace> {
            let slot = w.ranks[m as usize].groups.iter().position(|&x| x == g)?;
            Some((class_of[m as usize], slot as u16))
        };
        // The places of a group are listed once, because a group may have a million members, each of a class of its own.
        let mut places_of_group: HashMap<u32, Rc<Vec<GroupPlace>>> = HashMap::new();
        for (c, &r) in reps.iter().enumerate() {
            let groups = &w.ranks[r as usize].groups;
            let members = |g: u32| {
                let places: BTreeSet<GroupPlace> =
                    w.groups[g as usize].members.iter().filter_map(|&m| place(m, g)).collect();
                Rc::new(places.into_iter().collect())
            };
            let parties = |&g: &u32| Rc::clone(places_of_group.entry(g).or_insert_with(|| members(g)));
            run.parties.push(groups.iter().map(parties).collect());
            run.sources.push(sources(w, class_of, r));
            run.wire(c as u32, program(c));
        }
        run
    }

    /// Builds the dependency lists of a class, and numbers its communications.
    fn wire(&mut self, c: u32, p: &Program) {
        let n = p.ops.len();
        let (mut waits, mut heads) = (vec![0u32; n], vec![u32::MAX; n]);
        let mut edges = Vec::with_capacity(p.deps.len() + n);
        let mut number = vec![0; n];
        let mut last_on: [u32; 256] = [u32::MAX; 256];
        let mut counts: HashMap<(u8, u16, u32, u32), u32> = HashMap::new();
        for (i, op) in p.ops.iter().enumerate() {
            let mut wait_for = |dep: u32| {
                edges.push((i as u32, heads[dep as usize]));
                heads[dep as usize] = edges.len() as u32 - 1;
                waits[i] += 1;
            };
            p.deps_of(i as u32).iter().for_each(|&d| wait_for(d));
            if op.stream != Stream::FREE {
                let last = std::mem::replace(&mut last_on[op.stream.0 as usize], i as u32);
                if last != u32::MAX {
                    wait_for(last);
                }
            }
            let key = match op.kind {
                OpKind::Collective { slot, .. } => (0, slot, 0, 0),
                OpKind::Send { peer, tag, .. } => (1, peer.slot, peer.member, tag),
                OpKind::Recv { peer, tag, .. } => (2, peer.slot, peer.member, tag),
                OpKind::Compute { .. } | OpKind::Join => continue,
            };
            let count = counts.entry(key).or_insert(0);
            number[i] = *count;
            *count += 1;
        }
        self.ready.extend((0..n as u32).filter(|&i| waits[i as usize] == 0).map(|i| (c, i)));
        self.waits.push(waits);
        self.heads.push(heads);
        self.edges.push(edges);
        self.number.push(number);
    }

    fn program(&self, c: u32) -> &'a Program {
        &self.w.programs[self.w.ranks[self.reps[c as usize] as usize].program as usize]
    }

    /// Runs ready ops until none is left.
    fn go(&mut self) {
        while let Some((c, i)) = self.ready.pop() {
            match self.program(c).ops[i as usize].kind {
                OpKind::Collective { slot, .. } => {
                    self.begun[c as usize][slot as usize] += 1;
                    self.try_finish(c, i);
                    let waiters = self.on_collective.remove(&(c, slot)).unwrap_or_default();
                    waiters.into_iter().for_each(|(c, i)| self.try_finish(c, i));
                }
                OpKind::Recv { .. } => self.try_finish(c, i),
                OpKind::Send { peer, tag, .. } => {
                    let key = (peer.slot, peer.member, tag);
                    *self.sent[c as usize].entry(key).or_insert(0) += 1;
                    self.finish(c, i);
                    let waiters = self.on_send.remove(&(c, key)).unwrap_or_default();
                    waiters.into_iter().for_each(|(c, i)| self.try_finish(c, i));
                }
                OpKind::Compute { .. } | OpKind::Join => self.finish(c, i),
            }
        }
    }

    /// Finishes a collective or receive if its partners are there. Otherwise it waits for one that is not.
    fn try_finish(&mut self, c: u32, i: u32) {
        let k = self.number[c as usize][i as usize];
        match self.program(c).ops[i as usize].kind {
            OpKind::Collective { slot, .. } => match self.absent(c, slot, k) {
                Some(place) => self.on_collective.entry(place).or_default().push((c, i)),
                None => self.finish(c, i),
            },
            OpKind::Recv { peer, tag, .. } => {
                let Some(&source) = self.sources[c as usize].get(&(peer.slot, peer.member, tag)) else { return };
                match self.sent[source.0 as usize].get(&source.1) {
                    Some(&n) if n > k => self.finish(c, i),
                    _ => self.on_send.entry(source).or_default().push((c, i)),
                }
            }
            _ => {}
        }
    }

    /// A party that has not begun collective `k`.
    fn absent(&self, c: u32, slot: u16, k: u32) -> Option<GroupPlace> {
        self.parties[c as usize][slot as usize].iter().copied().find(|&(p, s)| self.begun[p as usize][s as usize] <= k)
    }

    /// Marks an op as done; ops that waited only for it become ready.
    fn finish(&mut self, c: u32, i: u32) {
        self.done[c as usize][i as usize] = true;
        let mut edge = self.heads[c as usize][i as usize];
        while edge != u32::MAX {
            let (successor, next) = self.edges[c as usize][edge as usize];
            self.waits[c as usize][successor as usize] -= 1;
            if self.waits[c as usize][successor as usize] == 0 {
                self.ready.push((c, successor));
            }
            edge = next;
        }
    }

    /// Describes the first communications that began and did not end; `None` if all ended.
    fn stuck(&self) -> Option<String> {
        let mut waits = Vec::new();
        for (c, done) in self.done.iter().enumerate() {
            let Some(i) = (0..done.len()).find(|&i| !done[i] && self.waits[c][i] == 0) else { continue };
            let (rank, op) = (self.reps[c], &self.program(c as u32).ops[i]);
            let name = self.w.op_name(op);
            let groups = &self.w.ranks[rank as usize].groups;
            let why = match op.kind {
                OpKind::Collective { slot, .. } => {
                    let k = self.number[c][i];
                    let late = self.absent(c as u32, slot, k).map_or(rank, |(p, _)| self.reps[p as usize]);
                    format!(
                        "collective {k} of group {}, which rank {late} (or one like it) never reaches",
                        groups[slot as usize]
                    )
                }
                OpKind::Recv { peer, tag, .. } => {
                    let sender = self.w.groups[groups[peer.slot as usize] as usize].members[peer.member as usize];
                    format!("message {} with tag {tag} from rank {sender}, which never sends it", self.number[c][i])
                }
                _ => continue,
            };
            waits.push(format!("rank {rank} waits at op {i} `{name}` for {why}"));
            if waits.len() == 3 {
                break;
            }
        }
        (!waits.is_empty()).then(|| waits.join("; "))
    }
}

/// The sender of each message that rank `r` receives.
fn sources(w: &Workload, class_of: &[u32], r: u32) -> HashMap<Line, Source> {
    let rank = &w.ranks[r as usize];
    let resolve = |rank: &crate::workload::program::Rank, slot: u16, member: u32| {
        w.groups[rank.groups[slot as usize] as usize].members[member as usize]
    };
    let mut wanted: HashMap<(u32, u32), Line> = HashMap::new();
    for op in &w.programs[rank.program as usize].ops {
        if let OpKind::Recv { peer, tag, .. } = op.kind {
            wanted.insert((resolve(rank, peer.slot, peer.member), tag), (peer.slot, peer.member, tag));
        }
    }
    let mut sources = HashMap::new();
    let senders: BTreeSet<u32> = wanted.keys().map(|&(m, _)| m).collect();
    for m in senders {
        let sender = &w.ranks[m as usize];
        let mut seen: BTreeSet<Line> = BTreeSet::new();
        for op in &w.programs[sender.program as usize].ops {
            if let OpKind::Send { peer, tag, .. } = op.kind
                && seen.insert((peer.slot, peer.member, tag))
                && resolve(sender, peer.slot, peer.member) == r
                && let Some(&key) = wanted.get(&(m, tag))
            {
                sources.insert(key, (class_of[m as usize], (peer.slot, peer.member, tag)));
            }
        }
    }
    sources
}
