//! Inter-rank matching rules: the interface by which a parallel schedule becomes a workload, open to schedules of the user's own.
//!
//! Layer: workload. A schedule acts as each rank in turn and writes what that rank does; what ties the ranks together are four rules:
//!
//! 1. Ops of one stream run in the order written. An op also waits for its dependencies, which are earlier ops of the same rank.
//! 2. The k-th collective that a rank writes on a group is the k-th of every other member: same operation, bytes, dimension, algorithm, shares.
//! 3. The k-th send from rank a to rank b with a tag meets the k-th receive of b from a with that tag, and the two name the same bytes.
//! 4. Taken together, streams, dependencies and rules 2 and 3 leave an order in which everything finishes.
//!
//! [`assemble`] writes each program once for all ranks alike, and [`Workload::check`] proves the rules or names the ranks and ops that break them.

use super::check_error::CheckError;
use super::program::{Dim, Group, OpKind, Peer, Phase, Program, Rank, Stream, Workload};
use std::collections::HashMap;

use crate::budget;
use crate::collective::CollectiveOp;

/// A parallel schedule: which groups there are, and what each rank does.
pub trait RankSchedule {
    /// Ranks in all.
    fn ranks(&self) -> u32;

    /// Every communicator, once.
    fn groups(&self) -> Vec<Group>;

    /// The rank's groups, as indices into [`RankSchedule::groups`]; their positions are the slots that its ops name.
    fn slots(&self, rank: u32) -> Vec<u32>;

    /// Ranks that give the same number do the same, op by op, but for the groups in their slots: [`RankSchedule::write`] is called for the first of them only.
    fn program_key(&self, rank: u32) -> u64;

    /// Writes what `rank` does from start to end.
    fn write(&self, rank: u32, to: &mut ProgramWriter);

    /// Weights of uneven all-to-alls, see [`Workload::shares`].
    fn shares(&self) -> Vec<Vec<u64>> {
        Vec::new()
    }
}

/// What is sent or received, see [`OpKind::Send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub peer: Peer,
    pub bytes: u64,
    pub tag: u32,
    pub dim: Dim,
}

/// Writes one rank's program.
pub struct ProgramWriter<'a> {
    program: Program,
    workload: &'a mut Workload,
}

impl ProgramWriter<'_> {
    /// A kernel on the compute stream; gives its index, for dependencies.
    pub fn compute(&mut self, name: &str, ps: u64, phase: Phase, deps: &[u32]) -> u32 {
        self.op(name, OpKind::Compute { ps, phase }, Stream::COMPUTE, deps)
    }

    /// A collective of the group in `slot` on its dimension's first stream.
    pub fn collective(&mut self, name: &str, op: CollectiveOp, slot: u16, bytes: u64, dim: Dim, deps: &[u32]) -> u32 {
        self.op(
            name,
            OpKind::Collective { op, slot, bytes, dim, algorithm: None, shares: None },
            Stream::comm(dim),
            deps,
        )
    }

    /// A send to member `message.peer.member` of the group in `message.peer.slot`.
    pub fn send(&mut self, name: &str, message: Message, stream: Stream, deps: &[u32]) -> u32 {
        let Message { peer, bytes, tag, dim } = message;
        self.op(name, OpKind::Send { peer, bytes, tag, dim }, stream, deps)
    }

    /// A receive, see [`ProgramWriter::send`].
    pub fn recv(&mut self, name: &str, message: Message, stream: Stream, deps: &[u32]) -> u32 {
        let Message { peer, bytes, tag, dim } = message;
        self.op(name, OpKind::Recv { peer, bytes, tag, dim }, stream, deps)
    }

    /// Any op on any stream.
    pub fn op(&mut self, name: &str, kind: OpKind, stream: Stream, deps: &[u32]) -> u32 {
        let name = self.workload.name(name);
        self.program.push(kind, stream, name, deps)
    }

    /// Of an iteration, the ops that begin a pair of passes in the pipeline's steady phase, then the op after the last pair.
    pub fn pairs(&mut self, pairs: Vec<u32>) {
        self.program.pairs.push(pairs);
    }

    /// Index of the op that is written next.
    pub fn next_op(&self) -> u32 {
        self.program.ops.len() as u32
    }

    /// Everything written since the last call (or the start) is one iteration.
    pub fn end_iteration(&mut self) {
        self.program.iteration_ends.push(self.program.ops.len() as u32);
    }
}

/// Turns a schedule into a workload and checks it.
pub fn assemble(schedule: &dyn RankSchedule) -> Result<Workload, CheckError> {
    let workload = assemble_matched(schedule)?;
    workload.check_end()?;
    Ok(workload)
}

/// The same, but for the proof that everything finishes: whoever works out when it does needs none.
pub(super) fn assemble_matched(schedule: &dyn RankSchedule) -> Result<Workload, CheckError> {
    let mut workload = Workload { groups: schedule.groups(), shares: schedule.shares(), ..Workload::default() };
    let mut programs: HashMap<u64, usize> = HashMap::new();
    for rank in 0..schedule.ranks() {
        let key = schedule.program_key(rank);
        budget::check("programs of ranks");
        let program = match programs.get(&key) {
            Some(&i) => i,
            None => {
                let mut writer = ProgramWriter { program: Program::default(), workload: &mut workload };
                schedule.write(rank, &mut writer);
                let mut program = writer.program;
                if program.iteration_ends.last() != Some(&(program.ops.len() as u32)) {
                    program.iteration_ends.push(program.ops.len() as u32);
                }
                // It is kept as long as its job.
                program.ops.shrink_to_fit();
                program.deps.shrink_to_fit();
                workload.programs.push(program);
                programs.insert(key, workload.programs.len() - 1);
                workload.programs.len() - 1
            }
        };
        workload.ranks.push(Rank { program: program as u32, groups: schedule.slots(rank) });
    }
    workload.check_matches()?;
    Ok(workload)
}
