//! Reads dumps of PyTorch's flight recorder: one JSON file per rank becomes one program per rank.
//!
//! Layer: workload.
//!
//! | module | content |
//! |---|---|
//! | `entries` | the JSON: what a rank's recorder had when it was written |
//! | `units` | entries as calls, of which several may be launched together |
//! | `dump` | the calls of a rank, plain data |
//! | `groups` | process groups |
//! | `collectives`, `messages` | whether ranks agree, and which rank lacks which call |
//! | `programs` | a rank's calls as a program |
//!
//! The recorder notes when the host made a call, not when the GPU ran it, and nothing of kernels. So the time between two calls is that of the host:
//!
//! - By default the host makes its calls when it made them, and waits for none. Calls of a process group run one after the other.
//! - With `wait_for_calls` a rank waits for each call before it goes on. A call begins when the host has made it and the call before it has ended; what is left
//!   between them is compute. That needs the durations of calls.
//!
//! The time of a call is simulated. When the recorder found that a call had begun or ended is not used: it looks rarely.

mod collectives;
mod dump;
mod entries;
mod groups;
mod messages;
mod notes;
mod programs;
mod units;

use std::path::Path;

use super::graph::Ranks;
use super::torch::files::{in_order, json_files, rank_in_name};
use super::{ImportError, ImportOptions, Imported, MAX_OPS, MAX_RANKS, check};
use crate::workload::program::{Dim, Group, Workload};
use dump::Dump;
use entries::HOW_TO_WRITE;
use groups::RecordedGroups;
use hyperfold_base::input;

/// Reads dumps from a folder or one file. A single dump stands for all ranks of its job if each of its groups has all of them; for `options.ranks` if that is
/// given.
///
/// # Errors
/// There is no dump, ranks are missing, a dump is damaged or lacks what a workload needs, or ranks disagree.
pub fn read(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    let shown = path.display().to_string();
    let files = json_files(path)?;
    if files.is_empty() {
        let problem = format!(
            "no `.json` file is there; name a folder with one dump of each rank; {HOW_TO_WRITE}, one file a rank"
        );
        return Err(ImportError::path(&shown, problem));
    }
    let mut builder = DumpSet::new(options);
    for file in &files {
        let shown = file.display().to_string();
        let bytes = input::read(file).map_err(|e| ImportError::path(&shown, format!("cannot be read: {e}")))?;
        builder.add(&shown, &bytes)?;
    }
    builder.finish(&shown)
}

/// Reads dumps from bytes: for each rank the path (for messages) and the content.
///
/// # Errors
/// All errors of [`read`] except those of reading files.
pub fn parse(path: &str, dumps: &[(String, Vec<u8>)], options: &ImportOptions) -> Result<Imported, ImportError> {
    let mut builder = DumpSet::new(options);
    for (shown, bytes) in dumps {
        builder.add(shown, bytes)?;
    }
    builder.finish(path)
}

/// Whether a file begins as a dump does: its first entry has a number of its collective.
pub(super) fn looks_like(beginning: &[u8]) -> bool {
    let word = b"\"collective_seq_id\"";
    beginning.windows(word.len()).any(|w| w == word)
}

/// Dumps that have been read, one a rank.
struct DumpSet<'a> {
    options: &'a ImportOptions,
    workload: Workload,
    groups: RecordedGroups,
    dumps: Vec<Dump>,
    n_calls: usize,
    notes: Vec<String>,
}

impl<'a> DumpSet<'a> {
    fn new(options: &'a ImportOptions) -> DumpSet<'a> {
        DumpSet {
            options,
            workload: Workload::default(),
            groups: RecordedGroups::default(),
            dumps: Vec::new(),
            n_calls: 0,
            notes: Vec::new(),
        }
    }

    /// Reads the dump of a rank. What of it does not count is given up before the next dump is read.
    fn add(&mut self, path: &str, bytes: &[u8]) -> Result<(), ImportError> {
        let file = entries::read(path, bytes)?;
        let dump = units::dump(path, rank_in_name(path), file, &mut self.groups, &mut self.workload.names)?;
        self.n_calls += dump.calls.len();
        if self.n_calls > MAX_OPS / 2 {
            return Err(ImportError::path(path, format!("with it, dumps have more than {} calls", MAX_OPS / 2)));
        }
        self.dumps.push(dump);
        Ok(())
    }

    fn finish(mut self, path: &str) -> Result<Imported, ImportError> {
        let alone = self.dumps.len() == 1;
        let n_ranks = match (alone, self.options.ranks) {
            (true, Some(ranks)) => ranks,
            (true, None) => self.dumps[0].world_size.max(1),
            (false, _) => self.dumps.len() as u32,
        };
        if n_ranks == 0 || n_ranks > MAX_RANKS {
            let problem = format!("it must be from 1 to {MAX_RANKS}");
            return Err(ImportError::Ranks { path: path.to_string(), ranks: n_ranks, problem });
        }
        if alone && n_ranks > 1 {
            self.repeat(path, n_ranks)?;
        } else {
            self.each_its_own(path)?;
        }
        check::sound(path, &self.workload)?;
        Ok(Imported { workload: self.workload, flows: None, notes: self.notes })
    }

    /// One dump stands for all ranks.
    fn repeat(&mut self, path: &str, n_ranks: u32) -> Result<(), ImportError> {
        self.groups.span_all(&mut self.dumps[0], n_ranks)?;
        let (program, slots) = self.programs(path)?.pop().expect("there is one dump");
        let members: Vec<u32> = (0..n_ranks).collect();
        self.workload.groups = slots.iter().map(|_| Group { members: members.clone(), dim: Dim::Other }).collect();
        let mut ranks = Ranks::default();
        ranks.push(&mut self.workload, program, (0..slots.len() as u32).collect());
        self.workload.ranks = vec![self.workload.ranks[0].clone(); n_ranks as usize];
        self.notes.push(format!(
            "one dump stands for {n_ranks} ranks that all do the same; whether a rank lacks a call shows only with one dump of each rank"
        ));
        Ok(())
    }

    fn each_its_own(&mut self, path: &str) -> Result<(), ImportError> {
        self.dumps = in_order(path, std::mem::take(&mut self.dumps), self.options.ranks)?;
        self.groups.have_dumps(&self.dumps)?;
        let mut missing = collectives::agree(path, &mut self.dumps, &self.groups, &mut self.notes)?;
        missing.extend(messages::agree(path, &mut self.dumps, &self.groups, &mut self.notes)?);
        notes::missing(missing, &mut self.notes);
        notes::in_flight(&self.dumps, &self.groups, &mut self.notes);
        self.workload.groups = self.groups.groups();
        let mut ranks = Ranks::default();
        for (program, slots) in self.programs(path)? {
            ranks.push(&mut self.workload, program, slots);
        }
        Ok(())
    }

    /// The program of each dump, with the groups of its slots.
    fn programs(&mut self, path: &str) -> Result<Vec<(crate::workload::program::Program, Vec<u32>)>, ImportError> {
        if !self.dumps.iter().any(|d| d.units.iter().any(|u| u.keep)) {
            let problem =
                "no call is there that all ranks of its group have made; dumps of a longer time would be right";
            return Err(ImportError::path(path, problem));
        }
        let wait = self.options.wait_for_calls;
        notes::all_together(&self.dumps, wait, &mut self.notes);
        let names = &mut self.workload.names;
        let groups = &self.groups;
        self.dumps.iter().map(|dump| programs::rank(dump, groups, wait, names)).collect()
    }
}

#[cfg(test)]
mod tests;
