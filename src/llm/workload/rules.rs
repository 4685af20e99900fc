//! Inter-rank matching rules: the interface that turns a parallel schedule into a workload. Users may write schedules of their own.
//!
//! Layer: workload. A schedule acts as each rank in turn and writes what that rank does. Four rules tie the ranks together:
//!
//! 1. Ops of one stream run in the order written. An op also waits for its dependencies, which are earlier ops of the same rank.
//! 2. The k-th collective that a rank writes on a group is the k-th of every other member: same operation, bytes, dimension, algorithm, shares.
//! 3. The k-th send from rank a to rank b with a tag is matched with the k-th receive of b from a with that tag. Both have the same bytes.
//! 4. Streams, dependencies and rules 2 and 3 together allow an order in which everything finishes.
//!
//! [`assemble`] writes each program once for all equal ranks. [`Workload::check`] proves the rules or names the ranks and ops that violate them.

use super::checks::check_error::CheckError;
use super::program::{Dim, Group, OpKind, Peer, Phase, Program, Rank, Stream, Workload};
use std::collections::HashMap;

use crate::collective::CollectiveOp;
use hyperfold_base::budget;

/// A parallel schedule: its groups, and what each rank does.
pub trait RankSchedule {
    /// Number of ranks.
    fn ranks(&self) -> u32;

    /// Every communicator, once.
    fn groups(&self) -> Vec<Group>;

    /// The rank's groups, as indices into [`RankSchedule::groups`]; their positions are the slots that its ops name.
    fn slots(&self, rank: u32) -> Vec<u32>;

    /// A key of the rank's program. Ranks with the same key do the same, op by op, except for the groups in their slots. [`RankSchedule::write`] is called for
    /// the first of them only.
    fn program_key(&self, rank: u32) -> u64;

    /// Writes what `rank` does from start to end.
    fn write(&self, rank: u32, writer: &mut ProgramWriter);

    /// Weights of uneven all-to-alls, see [`Workload::shares`].
    fn shares(&self) -> Vec<Vec<u64>> {
        Vec::new()
    }
}

/// A message that is sent or received, see [`OpKind::Send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Rank at the other end.
    pub peer: Peer,
    /// Size of the message, bytes.
    pub bytes: u64,
    /// Tag, by which sends and receives find each other.
    pub tag: u32,
    /// Dimension that it belongs to.
    pub dim: Dim,
}

/// Writes the program of one rank.
pub struct ProgramWriter<'a> {
    program: Program,
    workload: &'a mut Workload,
}

impl ProgramWriter<'_> {
    /// Adds a kernel on the compute stream. Returns its index, for dependencies.
    pub fn compute(&mut self, name: &str, ps: u64, phase: Phase, deps: &[u32]) -> u32 {
        self.op(name, OpKind::Compute { ps, phase }, Stream::COMPUTE, deps)
    }

    /// Adds a collective of the group in `slot`, on the first stream of its dimension. Returns its index.
    pub fn collective(&mut self, name: &str, op: CollectiveOp, slot: u16, bytes: u64, dim: Dim, deps: &[u32]) -> u32 {
        self.op(
            name,
            OpKind::Collective { op, slot, bytes, dim, algorithm: None, shares: None },
            Stream::comm(dim),
            deps,
        )
    }

    /// Adds a send to member `message.peer.member` of the group in `message.peer.slot`. Returns its index.
    pub fn send(&mut self, name: &str, message: Message, stream: Stream, deps: &[u32]) -> u32 {
        let Message { peer, bytes, tag, dim } = message;
        self.op(name, OpKind::Send { peer, bytes, tag, dim }, stream, deps)
    }

    /// Adds a receive, see [`ProgramWriter::send`]. Returns its index.
    pub fn recv(&mut self, name: &str, message: Message, stream: Stream, deps: &[u32]) -> u32 {
        let Message { peer, bytes, tag, dim } = message;
        self.op(name, OpKind::Recv { peer, bytes, tag, dim }, stream, deps)
    }

    /// Adds any op on any stream. Returns its index.
    pub fn op(&mut self, name: &str, kind: OpKind, stream: Stream, deps: &[u32]) -> u32 {
        let name = self.workload.name(name);
        self.program.push(kind, stream, name, deps)
    }

    /// Records the pairs of an iteration: the ops that begin a pair of passes in the pipeline's steady phase, then the op after the last pair.
    pub fn pairs(&mut self, pairs: Vec<u32>) {
        self.program.pairs.push(pairs);
    }

    /// Index of the op that is written next.
    pub fn next_op(&self) -> u32 {
        self.program.ops.len() as u32
    }

    /// Ends an iteration: everything written since the last call (or the start) belongs to it.
    pub fn end_iteration(&mut self) {
        self.program.iteration_ends.push(self.program.ops.len() as u32);
    }
}

/// Converts a schedule to a workload and checks it.
pub fn assemble(schedule: &dyn RankSchedule) -> Result<Workload, CheckError> {
    let workload = assemble_matched(schedule)?;
    workload.check_end()?;
    Ok(workload)
}

/// Does what [`assemble`] does, without the proof that everything finishes. A caller that computes when it finishes needs no proof.
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
                // The program is kept as long as its job.
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
