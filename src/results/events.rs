//! `events.jsonl`: the log of a run, one JSON object per line.
//!
//! Layer: results. For people and tools that ask why; not among the deterministic files.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Map, Value};

use super::{ResultDir, ResultsError};

/// The log of one run.
pub struct EventLog {
    path: PathBuf,
    file: File,
    start: Instant,
}

impl EventLog {
    /// Opens the log of a run. The log of an earlier session is continued, after the partial line that a killed run may have left.
    ///
    /// # Errors
    /// The folder is in use or cannot be written.
    pub fn create(dir: &ResultDir) -> Result<EventLog, ResultsError> {
        let (path, mut file) = dir.continued_file("events.jsonl")?;
        let mut last = [b'\n'];
        if file.metadata().map_err(ResultsError::io(&path))?.len() > 0 {
            file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).map_err(ResultsError::io(&path))?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n").map_err(ResultsError::io(&path))?;
        }
        Ok(EventLog { path, file, start: Instant::now() })
    }

    /// Appends an event: its kind, seconds since the run began, and its fields.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn log(
        &mut self,
        event: &str,
        fields: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Result<(), ResultsError> {
        let mut line = Map::new();
        line.insert("event".into(), event.into());
        // Milliseconds suffice for a log.
        line.insert("t_s".into(), (self.start.elapsed().as_millis() as f64 / 1e3).into());
        line.extend(fields.into_iter().map(|(key, value)| (key.to_string(), value)));
        let text = format!("{}\n", Value::Object(line));
        self.file.write_all(text.as_bytes()).map_err(ResultsError::io(&self.path))
    }
}
