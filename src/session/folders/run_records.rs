//! Reads the results of a folder back as typed records.
//!
//! Layer: session. Reads the journal, which has everything. [`hyperfold_results::RunColumns`] reads tables of any version.

use std::path::Path;

use hyperfold_results::{Axis, Finished, JournalReader, JournaledExperiment};

use crate::error::SessionError;

/// The experiments of a folder in the order of `exp_id`, each with its flows, links and round-trip times if the run kept them.
///
/// ```
/// use hyperfold_session::{EngineChoice, Session, RunRecords, SweepBuilder};
///
/// let folder = std::env::temp_dir().join(format!("hyperfold-stored-{}", std::process::id()));
/// let sweep = SweepBuilder::new("ring")
///     .set("cluster.gpus", 4)
///     .set("cluster.gpus_per_server", 1)
///     .set("workload.kind", "traffic")
///     .set("workload.pattern", "ring")
///     .set("workload.bytes", 10_000)
///     .build()?;
/// Session::new(EngineChoice::Cpu).threads(1).run_into(&sweep, &folder)?;
/// for finished in RunRecords::open(&folder)? {
///     assert_eq!(finished?.record.flows, Some(4));
/// }
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), hyperfold_session::SessionError>(())
/// ```
pub struct RunRecords {
    journal: JournalReader,
    parts: std::vec::IntoIter<JournaledExperiment>,
}

impl RunRecords {
    /// Opens a folder that no run is writing to.
    ///
    /// # Errors
    /// There is no run, it is still going on, or another version wrote it.
    pub fn open(folder: impl AsRef<Path>) -> Result<RunRecords, SessionError> {
        let journal = JournalReader::open(folder.as_ref()).map_err(SessionError::Results)?;
        let parts: Vec<JournaledExperiment> = journal.parts().values().copied().collect();
        Ok(RunRecords { journal, parts: parts.into_iter() })
    }

    /// Returns the axes of the sweep; records have their values in this order.
    pub fn axes(&self) -> &[Axis] {
        &self.journal.run().axes
    }
}

impl Iterator for RunRecords {
    type Item = Result<Finished, SessionError>;

    fn next(&mut self) -> Option<Result<Finished, SessionError>> {
        self.parts.next().map(|part| self.journal.read(part).map_err(SessionError::Results))
    }
}
