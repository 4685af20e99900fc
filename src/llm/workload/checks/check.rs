//! Proves that a workload's ranks fit together: their indices, the collectives of every group, sends and receives. Also proves that no rank waits for ever.
//!
//! Layer: workload. The rules are those of `rules`. The cost grows with programs and groups, not with ranks times ops: ten thousand ranks take well under a
//! second.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::check_error::CheckError;
use super::progress;
use crate::workload::program::{Op, OpKind, Rank, Workload};

impl Workload {
    /// Checks the workload against the inter-rank matching rules. The error is the first violation.
    pub fn check(&self) -> Result<(), CheckError> {
        self.check_matches()?;
        self.check_end()
    }

    /// Checks rules 1 to 3: indices, collectives, sends and receives.
    pub(in crate::workload) fn check_matches(&self) -> Result<(), CheckError> {
        self.check_groups()?;
        self.check_ops()?;
        self.check_collectives()?;
        self.check_messages()
    }

    /// Checks rule 4: no operation waits for ever. PRECONDITION: the other rules hold.
    pub fn check_end(&self) -> Result<(), CheckError> {
        progress::check(self)
    }

    /// Name of an op, for messages.
    pub(in crate::workload) fn op_name(&self, op: &Op) -> &str {
        self.names.get(op.name).unwrap_or("?")
    }

    fn check_groups(&self) -> Result<(), CheckError> {
        let n = self.ranks.len() as u32;
        let mut last_seen = vec![u32::MAX; n as usize];
        for (g, group) in self.groups.iter().enumerate() {
            let group_error = |problem| CheckError::Group { group: g as u32, problem };
            for &m in &group.members {
                if m >= n {
                    return Err(group_error(format!("member {m} is not a rank; there are {n}, counted from 0")));
                }
                if last_seen[m as usize] == g as u32 {
                    return Err(group_error(format!("rank {m} is a member twice")));
                }
                last_seen[m as usize] = g as u32;
            }
        }
        let mut in_group: Vec<Vec<u32>> = vec![Vec::new(); n as usize];
        for (g, group) in self.groups.iter().enumerate() {
            for &m in &group.members {
                in_group[m as usize].push(g as u32);
            }
        }
        for (r, rank) in self.ranks.iter().enumerate() {
            let rank_error = |problem| CheckError::Rank { rank: r as u32, problem };
            if rank.program as usize >= self.programs.len() {
                return Err(rank_error(format!(
                    "program {} does not exist; there are {}",
                    rank.program,
                    self.programs.len()
                )));
            }
            for (slot, &g) in rank.groups.iter().enumerate() {
                if in_group[r].binary_search(&g).is_err() {
                    return Err(rank_error(format!("slot {slot} names group {g}, which has no such member")));
                }
                if rank.groups[..slot].contains(&g) {
                    return Err(rank_error(format!(
                        "group {g} is in two slots, so the order of its collectives is open"
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_ops(&self) -> Result<(), CheckError> {
        let mut of_program: Vec<Vec<&Rank>> = vec![Vec::new(); self.programs.len()];
        self.ranks.iter().for_each(|rank| of_program[rank.program as usize].push(rank));
        for (p, program) in self.programs.iter().enumerate() {
            // The number of slots that every rank of the program has, and for each of them the size of its smallest group (shares must have that length too).
            let ranks = || of_program[p].iter();
            let slots = ranks().map(|r| r.groups.len()).min().unwrap_or(0);
            let smallest_group =
                |slot: usize| ranks().map(|r| self.groups[r.groups[slot] as usize].members.len()).min().unwrap_or(0);
            let smallest_groups: Vec<usize> = (0..slots).map(smallest_group).collect();
            for (i, op) in program.ops.iter().enumerate() {
                let op_error = |problem| {
                    Err(CheckError::Op { program: p as u32, op: i as u32, name: self.op_name(op).to_string(), problem })
                };
                if (op.deps_first + op.deps_n) as usize > program.deps.len() {
                    return op_error("its dependencies lie outside of the program's table".to_string());
                }
                if let Some(d) = program.deps_of(i as u32).iter().find(|&&d| d as usize >= i) {
                    return op_error(format!("depends on op {d}, which is not an earlier one"));
                }
                let slot = match op.kind {
                    OpKind::Collective { slot, .. } => slot,
                    OpKind::Send { peer, .. } | OpKind::Recv { peer, .. } => peer.slot,
                    OpKind::Compute { .. } | OpKind::Join => continue,
                };
                let Some(&n) = smallest_groups.get(slot as usize) else {
                    return op_error(format!("names group slot {slot}; a rank of this program has {slots}"));
                };
                match op.kind {
                    OpKind::Send { peer, .. } | OpKind::Recv { peer, .. } if peer.member as usize >= n => {
                        return op_error(format!("names member {} of slot {slot}; a group there has {n}", peer.member));
                    }
                    OpKind::Collective { shares: Some(s), .. } => match self.shares.get(s as usize) {
                        Some(weights) if weights.len() == n && weights.iter().any(|&w| w > 0) => {}
                        _ => return op_error(format!("shares {s} must be {n} weights, not all 0")),
                    },
                    _ => {}
                }
            }
            let ends = &program.iteration_ends;
            if ends.windows(2).any(|w| w[0] > w[1]) || ends.last().is_some_and(|&e| e as usize != program.ops.len()) {
                let problem = "iteration ends must ascend to the number of ops".to_string();
                return Err(CheckError::Op { program: p as u32, op: 0, name: String::new(), problem });
            }
        }
        Ok(())
    }

    /// Collectives of each program and slot, in order.
    fn collectives_by_slot(&self) -> Vec<Vec<Vec<OpKind>>> {
        let collectives_of = |p: &crate::workload::program::Program| {
            let mut by_slot: Vec<Vec<OpKind>> = Vec::new();
            for op in &p.ops {
                if let OpKind::Collective { slot, .. } = op.kind {
                    let slot = slot as usize;
                    if by_slot.len() <= slot {
                        by_slot.resize(slot + 1, Vec::new());
                    }
                    by_slot[slot].push(op.kind);
                }
            }
            by_slot
        };
        self.programs.iter().map(collectives_of).collect()
    }

    fn check_collectives(&self) -> Result<(), CheckError> {
        let by_slot = self.collectives_by_slot();
        let none = Vec::new();
        // Equal lists are compared once a pair of (program, slot), not once a pair of ranks.
        let mut first: Vec<Option<(u32, u32, usize)>> = vec![None; self.groups.len()];
        let mut equal: HashSet<(u32, usize, u32, usize)> = HashSet::new();
        for (b, rank) in self.ranks.iter().enumerate() {
            for (slot, &g) in rank.groups.iter().enumerate() {
                let Some((a, a_program, a_slot)) = first[g as usize] else {
                    first[g as usize] = Some((b as u32, rank.program, slot));
                    continue;
                };
                if !equal.insert((a_program, a_slot, rank.program, slot)) {
                    continue;
                }
                let x = by_slot[a_program as usize].get(a_slot).unwrap_or(&none);
                let y = by_slot[rank.program as usize].get(slot).unwrap_or(&none);
                let same = |x: &OpKind, y: &OpKind| slotless(*x) == slotless(*y);
                let index = x.iter().zip(y).position(|(x, y)| !same(x, y)).unwrap_or(x.len().min(y.len()));
                if index < x.len().max(y.len()) {
                    let dim = format!("{:?}", self.groups[g as usize].dim).to_lowercase();
                    let does = |k: Option<&OpKind>| k.map_or("none".to_string(), collective_text);
                    return Err(CheckError::Collective {
                        group: g,
                        dim,
                        index,
                        a,
                        a_does: does(x.get(index)),
                        b: b as u32,
                        b_does: does(y.get(index)),
                    });
                }
            }
        }
        // A member without the group in a slot takes part in none of its collectives.
        for (g, group) in self.groups.iter().enumerate() {
            let Some((a, program, slot)) = first[g] else { continue };
            let Some(k) = by_slot[program as usize].get(slot).and_then(|x| x.first()) else { continue };
            if let Some(&b) = group.members.iter().find(|&&m| !self.ranks[m as usize].groups.contains(&(g as u32))) {
                let dim = format!("{:?}", group.dim).to_lowercase();
                let b_does = "none (the rank has no slot for the group)".to_string();
                return Err(CheckError::Collective {
                    group: g as u32,
                    dim,
                    index: 0,
                    a,
                    a_does: collective_text(k),
                    b,
                    b_does,
                });
            }
        }
        Ok(())
    }

    fn check_messages(&self) -> Result<(), CheckError> {
        // By program: sends and receives by peer and tag, in order.
        type Lists = Vec<((u16, u32, u32, bool), Vec<u64>)>;
        let lists: Vec<Lists> = self
            .programs
            .iter()
            .map(|p| {
                let mut index: HashMap<(u16, u32, u32, bool), usize> = HashMap::new();
                let mut lists: Lists = Vec::new();
                for op in &p.ops {
                    let (peer, bytes, tag, send) = match op.kind {
                        OpKind::Send { peer, bytes, tag, .. } => (peer, bytes, tag, true),
                        OpKind::Recv { peer, bytes, tag, .. } => (peer, bytes, tag, false),
                        _ => continue,
                    };
                    let key = (peer.slot, peer.member, tag, send);
                    let list_idx = *index.entry(key).or_insert_with(|| {
                        lists.push((key, Vec::new()));
                        lists.len() - 1
                    });
                    lists[list_idx].1.push(bytes);
                }
                lists
            })
            .collect();
        // Both ends of every message list, keyed by (sender, receiver, tag). The sender's entry comes before the receiver's.
        let mut ends: Vec<(u32, u32, u32, bool, &[u64])> = Vec::new();
        for (r, rank) in self.ranks.iter().enumerate() {
            for ((slot, member, tag, send), bytes) in &lists[rank.program as usize] {
                let (r, peer) = (r as u32, self.groups[rank.groups[*slot as usize] as usize].members[*member as usize]);
                if peer == r {
                    let problem = format!("sends to or receives from itself, tag {tag}");
                    return Err(CheckError::Rank { rank: r, problem });
                }
                let (from, to) = if *send { (r, peer) } else { (peer, r) };
                ends.push((from, to, *tag, !*send, bytes));
            }
        }
        ends.sort_by_key(|&(from, to, tag, receives, _)| (from, to, tag, receives));
        let place = |end: &(u32, u32, u32, bool, &[u64])| (end.0, end.1, end.2, end.3);
        let twice = ends.windows(2).filter(|two| place(&two[0]) == place(&two[1])).map(|two| place(&two[0]));
        let by_rank = |&(from, to, tag, receives): &(u32, u32, u32, bool)| match receives {
            false => (from, to, tag),
            true => (to, from, tag),
        };
        if let Some((rank, peer, tag)) = twice.map(|end| by_rank(&end)).min() {
            let problem = format!("names rank {peer} by two groups for messages of tag {tag}, so their order is open");
            return Err(CheckError::Rank { rank, problem });
        }
        for both in ends.chunk_by(|a, b| (a.0, a.1, a.2) == (b.0, b.1, b.2)) {
            let bytes_listed = |receives: bool| both.iter().find(|end| end.3 == receives).map_or(&[][..], |end| end.4);
            let ((from, to, tag, ..), sent, received) = (both[0], bytes_listed(false), bytes_listed(true));
            if sent != received {
                let index =
                    sent.iter().zip(received).position(|(a, b)| a != b).unwrap_or(sent.len().min(received.len()));
                let text = |x: &[u64]| x.get(index).map_or("absent".to_string(), |b| format!("{b} bytes"));
                return Err(CheckError::Message { from, to, tag, index, sent: text(sent), received: text(received) });
            }
        }
        Ok(())
    }
}

/// A collective with its slot set to 0, because the slot may differ from rank to rank.
fn slotless(kind: OpKind) -> OpKind {
    match kind {
        OpKind::Collective { op, bytes, dim, algorithm, shares, .. } => {
            OpKind::Collective { op, slot: 0, bytes, dim, algorithm, shares }
        }
        other => other,
    }
}

/// A collective in words.
fn collective_text(kind: &OpKind) -> String {
    match kind {
        OpKind::Collective { op, bytes, shares, algorithm, .. } => {
            let uneven = shares.map_or(String::new(), |s| format!(" with shares {s}"));
            let by_algorithm = algorithm.map_or(String::new(), |a| format!(" by {a:?}"));
            format!("{op:?} of {bytes} bytes{uneven}{by_algorithm}")
        }
        _ => "none".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::CollectiveOp;
    use crate::workload::program::{Dim, Group, Peer, Phase, Stream};
    use crate::workload::rules::{Message, ProgramWriter, RankSchedule, assemble};

    /// A workload of two ranks; each of the two functions writes the program of one rank.
    struct Two(fn(&mut ProgramWriter), fn(&mut ProgramWriter));

    impl RankSchedule for Two {
        fn ranks(&self) -> u32 {
            2
        }

        fn groups(&self) -> Vec<Group> {
            vec![Group { members: vec![0, 1], dim: Dim::Dp }]
        }

        fn slots(&self, _: u32) -> Vec<u32> {
            vec![0]
        }

        fn program_key(&self, rank: u32) -> u64 {
            rank.into()
        }

        fn write(&self, rank: u32, to: &mut ProgramWriter) {
            if rank == 0 { self.0(to) } else { self.1(to) }
        }
    }

    fn error(a: fn(&mut ProgramWriter), b: fn(&mut ProgramWriter)) -> String {
        assemble(&Two(a, b)).map_or_else(|e| e.to_string(), |w| format!("{} ranks fit", w.ranks.len()))
    }

    fn reduce(w: &mut ProgramWriter, bytes: u64) {
        w.collective("grads", CollectiveOp::AllReduce, 0, bytes, Dim::Dp, &[]);
    }

    fn send(w: &mut ProgramWriter, member: u32, deps: &[u32]) -> u32 {
        w.send(
            "send",
            Message { peer: Peer { slot: 0, member }, bytes: 8, tag: 7, dim: Dim::Pp },
            Stream::comm(Dim::Pp),
            deps,
        )
    }

    fn recv(w: &mut ProgramWriter, member: u32, deps: &[u32]) -> u32 {
        w.recv(
            "recv",
            Message { peer: Peer { slot: 0, member }, bytes: 8, tag: 7, dim: Dim::Pp },
            Stream::comm(Dim::Pp),
            deps,
        )
    }

    #[test]
    fn what_fits_fits() {
        let a = |w: &mut ProgramWriter| {
            let k = w.compute("k", 5, Phase::Forward, &[]);
            send(w, 1, &[k]);
            reduce(w, 64);
        };
        let b = |w: &mut ProgramWriter| {
            let r = recv(w, 0, &[]);
            w.compute("k", 5, Phase::Forward, &[r]);
            reduce(w, 64);
        };
        assert_eq!(error(a, b), "2 ranks fit");
    }

    #[test]
    fn collectives_that_differ_are_named() {
        assert_eq!(
            error(
                |w| [8, 64].into_iter().for_each(|b| reduce(w, b)),
                |w| [8, 65].into_iter().for_each(|b| reduce(w, b))
            ),
            "group 0 (dp): collective 1 is AllReduce of 64 bytes on rank 0 but AllReduce of 65 bytes on rank 1; all members must do the same"
        );
        assert!(
            error(|w| reduce(w, 8), |_| {})
                .contains("collective 0 is AllReduce of 8 bytes on rank 0 but none on rank 1")
        );
    }

    #[test]
    fn messages_must_meet() {
        let message = error(
            |w| {
                send(w, 1, &[]);
            },
            |_| {},
        );
        assert_eq!(
            message,
            "from rank 0 to rank 1, tag 7: message 0 is 8 bytes at the sender but absent at the receiver"
        );
    }

    #[test]
    fn deadlocks_are_found_and_who_waits_is_named() {
        // Both receive before they send.
        let a = |w: &mut ProgramWriter| {
            recv(w, 1, &[]);
            send(w, 1, &[]);
        };
        let b = |w: &mut ProgramWriter| {
            recv(w, 0, &[]);
            send(w, 0, &[]);
        };
        let message = error(a, b);
        assert!(
            message.starts_with("deadlock: rank 0 waits at op 0 `recv` for message 0 with tag 7 from rank 1"),
            "{message}"
        );
        assert!(message.contains("rank 1 waits at op 0"), "{message}");
        // A collective behind a receive whose send is behind the collective.
        let a = |w: &mut ProgramWriter| {
            let r = recv(w, 1, &[]);
            w.collective("grads", CollectiveOp::AllReduce, 0, 8, Dim::Dp, &[r]);
        };
        let b = |w: &mut ProgramWriter| {
            let c = w.collective("grads", CollectiveOp::AllReduce, 0, 8, Dim::Dp, &[]);
            send(w, 0, &[c]);
        };
        let message = error(a, b);
        assert!(
            message.contains(
                "rank 1 waits at op 0 `grads` for collective 0 of group 0, which rank 0 (or one like it) never reaches"
            ),
            "{message}"
        );
    }

    #[test]
    fn indices_are_checked() {
        let error = |break_it: fn(&mut Workload)| {
            let mut w = assemble(&Two(|w| reduce(w, 8), |w| reduce(w, 8))).unwrap();
            break_it(&mut w);
            w.check().unwrap_err().to_string()
        };
        assert_eq!(
            error(|w| w.groups[0].members[1] = 5),
            "group 0: member 5 is not a rank; there are 2, counted from 0"
        );
        assert_eq!(error(|w| w.ranks[1].program = 9), "rank 1: program 9 does not exist; there are 2");
        assert!(error(|w| w.ranks[1].groups.clear()).contains("rank of this program has 0"));
        assert!(error(|w| w.groups[0].members.truncate(1)).contains("slot 0 names group 0, which has no such member"));
    }
}
