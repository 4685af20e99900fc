//! Reads traces of PyTorch's profiler (Kineto): one JSON file per rank becomes one program per rank.
//!
//! Layer: workload.
//!
//! | module | content |
//! |---|---|
//! | `events` | the JSON: kernels, copies, and waits between streams |
//! | `files` | which trace belongs to which rank |
//! | `calls` | what NCCL's kernels say of their collectives and messages |
//! | `order` | which kernels wait for which |
//! | `programs`, `rank_program` | a rank's kernels as a program |
//! | `members` | process groups, and whether their members agree |
//!
//! A kernel runs on its stream after the kernel before it. It waits for kernels of other streams as `order` says. What is left of the time in which its stream
//! is idle is time of the host, and stays as it was measured. The time of a collective is not taken from the trace: the simulation finds it.

mod calls;
mod events;
mod files;
mod members;
mod order;
mod programs;
mod rank_program;

use std::path::Path;

use super::graph::Ranks;
use super::torch::files::{in_order, json_files};
use super::{ImportError, ImportOptions, Imported, MAX_OPS, MAX_RANKS, check};
use crate::workload::program::{Dim, Group, Workload};
use hyperfold_base::input;
use members::ProcessGroups;
use rank_program::RankProgram;

/// Reads traces from a folder or one file. A single trace stands for all ranks of its job if each of its groups has all of them; for `options.ranks` if that is
/// given.
///
/// # Errors
/// There is no trace, ranks are missing, a trace is damaged or lacks what a workload needs, or ranks disagree.
pub fn read(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    let shown = path.display().to_string();
    let files = json_files(path)?;
    if files.is_empty() {
        return Err(ImportError::path(
            &shown,
            "no `.json` file is there; name a folder with one trace of each rank, as export_chrome_trace writes them",
        ));
    }
    let mut builder = TraceSet::new(options);
    for file in &files {
        let shown = file.display().to_string();
        let bytes = input::read(file).map_err(|e| ImportError::path(&shown, format!("cannot be read: {e}")))?;
        builder.add(&shown, &bytes)?;
    }
    builder.finish(&shown)
}

/// Reads traces from bytes: for each rank the path (for messages) and the content.
///
/// # Errors
/// All errors of [`read`] except those of reading files.
pub fn parse(path: &str, traces: &[(String, Vec<u8>)], options: &ImportOptions) -> Result<Imported, ImportError> {
    let mut builder = TraceSet::new(options);
    for (shown, bytes) in traces {
        builder.add(shown, bytes)?;
    }
    builder.finish(path)
}

/// Traces that have been read, one a rank.
struct TraceSet<'a> {
    options: &'a ImportOptions,
    workload: Workload,
    groups: ProcessGroups,
    ranks: Vec<RankProgram>,
    n_ops: usize,
    notes: Vec<String>,
}

impl<'a> TraceSet<'a> {
    fn new(options: &'a ImportOptions) -> TraceSet<'a> {
        TraceSet {
            options,
            workload: Workload::default(),
            groups: ProcessGroups::default(),
            ranks: Vec::new(),
            n_ops: 0,
            notes: Vec::new(),
        }
    }

    /// Reads the trace of a rank. Its events are given up before the next trace is read.
    fn add(&mut self, path: &str, bytes: &[u8]) -> Result<(), ImportError> {
        let trace = events::read(path, bytes)?;
        let rank = files::rank_of(path, &trace);
        let program = programs::rank(path, rank, &trace, &mut self.groups, &mut self.workload.names)?;
        self.n_ops += program.program.ops.len();
        if self.n_ops > MAX_OPS {
            return Err(ImportError::path(path, format!("with it, traces have more than {MAX_OPS} operations")));
        }
        self.ranks.push(program);
        Ok(())
    }

    fn finish(mut self, path: &str) -> Result<Imported, ImportError> {
        self.notes = rank_program::notes(&self.ranks);
        let alone = self.ranks.len() == 1;
        // A single trace with messages or with groups of some ranks needs the others.
        let n_ranks = match (alone, self.options.ranks) {
            (true, Some(ranks)) => ranks,
            (true, None) => self.ranks[0].world_size.unwrap_or(1).max(1),
            (false, _) => self.ranks.len() as u32,
        };
        if n_ranks == 0 || n_ranks > MAX_RANKS {
            let problem = format!("it must be from 1 to {MAX_RANKS}");
            return Err(ImportError::Ranks { path: path.to_string(), ranks: n_ranks, problem });
        }
        if alone && n_ranks > 1 {
            self.repeat(n_ranks)?;
        } else {
            self.each_its_own(path, n_ranks)?;
        }
        check::sound(path, &self.workload)?;
        Ok(Imported { workload: self.workload, flows: None, notes: self.notes })
    }

    /// One trace stands for all ranks.
    fn repeat(&mut self, n_ranks: u32) -> Result<(), ImportError> {
        let mut one = self.ranks.pop().expect("there is one");
        self.groups.span_all(&one, n_ranks)?;
        one.gather_from(n_ranks)?;
        let members: Vec<u32> = (0..n_ranks).collect();
        let slots = one.slots.clone();
        self.workload.groups = slots.iter().map(|_| Group { members: members.clone(), dim: Dim::Other }).collect();
        let mut ranks = Ranks::default();
        ranks.push(&mut self.workload, one.program, (0..slots.len() as u32).collect());
        self.workload.ranks = vec![self.workload.ranks[0].clone(); n_ranks as usize];
        self.notes.push(format!("one trace stands for {n_ranks} ranks that all do the same"));
        Ok(())
    }

    fn each_its_own(&mut self, path: &str, n_ranks: u32) -> Result<(), ImportError> {
        let mut programs = in_order(path, std::mem::take(&mut self.ranks), self.options.ranks)?;
        self.groups.agree(&mut programs, &mut self.notes)?;
        self.workload.groups = self.groups.groups(n_ranks)?;
        let mut ranks = Ranks::default();
        for rank in programs {
            ranks.push(&mut self.workload, rank.program, rank.slots);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
