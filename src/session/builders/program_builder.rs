//! Programs of ranks made in code, for example a collective algorithm of one's own.
//!
//! Layer: session. Writes a task graph as a file (`workload.kind = "dag"`); errors in it are found when the file is read.

use std::fmt::Write;

/// A step of a rank's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramStep(usize);

/// A program: what ranks compute and send. A step waits only for the given earlier steps, which are on its own rank.
///
/// ```
/// use hyperfold_session::ProgramBuilder;
///
/// // Rank 0 computes, then rank 1 gets the result and passes it on.
/// let mut program = ProgramBuilder::new(3);
/// let computed = program.compute(0, 5_000, &[]);
/// let arrived = program.message(0, 1, 1_000_000, &[computed]);
/// program.message(1, 2, 1_000_000, &[arrived]);
/// assert_eq!(program.to_text().matches("kind = \"send\"").count(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct ProgramBuilder {
    ranks: u32,
    text: String,
    steps: usize,
}

impl ProgramBuilder {
    /// Creates a program of `ranks` ranks that does nothing.
    pub fn new(ranks: u32) -> ProgramBuilder {
        ProgramBuilder { ranks, text: String::new(), steps: 0 }
    }

    /// Adds a computation of `rank` for `duration_ns`, after all of `after`, which are its own steps, have ended.
    pub fn compute(&mut self, rank: u32, duration_ns: u64, after: &[ProgramStep]) -> ProgramStep {
        self.step(rank, "compute", &format!("duration_ns = {duration_ns}\n"), after)
    }

    /// Adds a message of `bytes` from `from` to `to`, after all of `after`, which are steps of `from`, have ended. The returned step is the arrival, a step of
    /// `to`.
    pub fn message(&mut self, from: u32, to: u32, bytes: u64, after: &[ProgramStep]) -> ProgramStep {
        self.step(from, "send", &format!("peer = {to}\nbytes = {bytes}\n"), after);
        self.step(to, "recv", &format!("peer = {from}\nbytes = {bytes}\n"), &[])
    }

    /// Adds a step of `rank` that ends when all of `after` have ended.
    pub fn join(&mut self, rank: u32, after: &[ProgramStep]) -> ProgramStep {
        self.step(rank, "join", "", after)
    }

    /// Returns the program as the text of a file.
    pub fn to_text(&self) -> String {
        format!("ranks = {}\n{}", self.ranks, self.text)
    }

    fn step(&mut self, rank: u32, kind: &str, keys: &str, after: &[ProgramStep]) -> ProgramStep {
        let deps: Vec<String> = after.iter().map(|step| format!("\"s{}\"", step.0)).collect();
        write!(
            self.text,
            "\n[[node]]\nid = \"s{}\"\nranks = {rank}\nkind = \"{kind}\"\n{keys}stream = \"free\"\ndeps = [{}]\n",
            self.steps,
            deps.join(", ")
        )
        .expect("writing to a string cannot fail");
        self.steps += 1;
        ProgramStep(self.steps - 1)
    }
}
