//! Follows a run from its folder alone: reads new events in its log, and tells whether a process still writes.
//!
//! Layer: results. Reads `events.jsonl` and the state of the journal's lock, so that a run on another machine can be followed over a shared file system.
//! Changes nothing, prints nothing.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use hyperfold_base::input;

use super::dir::{JOURNAL, writer};

/// Most bytes that are read at once.
const CHUNK: u64 = 1 << 22;
/// A longer line, in bytes, is not from a log of a run.
const LONGEST_LINE: usize = 1 << 20;

/// The state of a run's latest session, from its log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// Whether a session has begun.
    pub begun: bool,
    /// Name of the sweep.
    pub name: String,
    /// Engine that runs, `cpu` or `gpu`.
    pub engine: String,
    /// Number of experiments that get a result.
    pub selected: u64,
    /// Number of them that earlier sessions finished.
    pub known: u64,
    /// Number of experiments in a batch now.
    pub running: u64,
    /// Number of experiments that ended well in this session.
    pub ok: u64,
    /// Number of experiments of this session that do not fit a GPU's memory.
    pub oom: u64,
    /// Number of experiments of this session that failed.
    pub failed: u64,
    /// The last experiment that has failed in this session.
    pub last_failed: Option<u64>,
    /// Number of warnings so far.
    pub warnings: u64,
    /// Work of this session's experiments that is done, in packets and tasks.
    pub work_done: u64,
    /// Work of all of this session's experiments; 0 if unknown.
    pub work_total: u64,
    /// Seconds from the session's begin to the moment of `work_done`.
    pub work_s: f64,
    /// Seconds from the session's begin to its last event.
    pub last_event_s: f64,
    /// Outcome of the session, as the manifest names it; `None` while it goes on.
    pub ended: Option<String>,
}

impl RunState {
    /// Returns how many experiments have a result, from earlier sessions and this one.
    pub fn done(&self) -> u64 {
        self.known + self.finished()
    }

    /// Returns how many experiments this session has finished.
    pub fn finished(&self) -> u64 {
        self.ok + self.oom + self.failed
    }

    fn take(&mut self, event: &Value) {
        let whole = |name: &str| event[name].as_u64().unwrap_or(0);
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_string();
        self.last_event_s = event["t_s"].as_f64().unwrap_or(self.last_event_s);
        match event["event"].as_str().unwrap_or_default() {
            // A resumed run appends to the log of the earlier session.
            "run_started" => {
                *self = RunState {
                    begun: true,
                    name: text("name"),
                    engine: text("engine"),
                    selected: whole("selected"),
                    known: whole("known"),
                    ..RunState::default()
                }
            }
            // A search runs in full only what it has chosen.
            "chosen" => self.selected = whole("experiments"),
            "started" => self.running += 1,
            "progress" => {
                (self.work_done, self.work_total) = (whole("done"), whole("total"));
                self.work_s = self.last_event_s;
            }
            "finished" => {
                self.running = self.running.saturating_sub(1);
                match event["status"].as_str().unwrap_or_default() {
                    "oom" => self.oom += 1,
                    "failed" => {
                        self.failed += 1;
                        self.last_failed = Some(whole("exp_id"));
                    }
                    _ => self.ok += 1,
                }
            }
            "warning" => self.warnings += 1,
            "run_ended" => {
                self.running = 0;
                self.ended = Some(text("outcome"));
            }
            "merged" => {
                *self = RunState {
                    begun: true,
                    selected: whole("experiments"),
                    known: whole("experiments"),
                    ..RunState::default()
                };
                self.ended = Some("complete".into());
            }
            _ => {}
        }
    }
}

/// Reads the log of a folder as it grows.
#[derive(Debug)]
pub struct RunFollower {
    dir: PathBuf,
    state: RunState,
    /// Bytes of the log that were read.
    offset: u64,
    rest: Vec<u8>,
}

impl RunFollower {
    /// Follows the run of a folder, which need not exist yet.
    pub fn new(dir: &Path) -> RunFollower {
        RunFollower { dir: dir.into(), state: RunState::default(), offset: 0, rest: Vec::new() }
    }

    /// Reads new events and returns the state. If there is no log, nothing has begun.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn poll(&mut self) -> io::Result<&RunState> {
        let mut file = match input::open_anywhere(&self.dir.join("events.jsonl")) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                (self.offset, self.state) = (0, RunState::default());
                self.rest.clear();
                return Ok(&self.state);
            }
            Err(e) => return Err(e),
        };
        // A shorter log belongs to another run.
        if file.metadata()?.len() < self.offset {
            (self.offset, self.state) = (0, RunState::default());
            self.rest.clear();
        }
        file.seek(SeekFrom::Start(self.offset))?;
        loop {
            let mut bytes = Vec::new();
            let read = file.by_ref().take(CHUNK).read_to_end(&mut bytes)? as u64;
            if read == 0 {
                return Ok(&self.state);
            }
            self.offset += read;
            self.rest.extend_from_slice(&bytes);
            self.take_lines()?;
        }
    }

    fn take_lines(&mut self) -> io::Result<()> {
        let whole = self.rest.iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
        for line in self.rest[..whole].split(|b| *b == b'\n') {
            // The partial line of a killed run is not valid JSON, and is ignored.
            if let Ok(event) = serde_json::from_slice::<Value>(line) {
                self.state.take(&event);
            }
        }
        self.rest.drain(..whole);
        if self.rest.len() > LONGEST_LINE {
            return Err(io::Error::other(format!(
                "events.jsonl: a line is longer than {LONGEST_LINE} bytes; this is no log of a run, or it is damaged"
            )));
        }
        Ok(())
    }

    /// Whether a process writes to the folder; `None` if its file system cannot tell.
    pub fn is_written(&self) -> Option<bool> {
        writer(&self.dir)
    }

    /// Returns how long ago log and journal were last written to, by the clocks of this machine and of the file system.
    pub fn silent_for(&self) -> Duration {
        let written = |name: &str| fs::metadata(self.dir.join(name)).and_then(|m| m.modified()).ok();
        let last = [written("events.jsonl"), written(JOURNAL)].into_iter().flatten().max();
        last.and_then(|written| SystemTime::now().duration_since(written).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(dir: &Path, text: &str) {
        use std::io::Write;
        let mut file = fs::OpenOptions::new().append(true).create(true).open(dir.join("events.jsonl")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_log_is_read_on_as_it_grows() {
        let root = tempfile::tempdir().unwrap();
        let mut follower = RunFollower::new(&root.path().join("later"));
        assert!(!follower.poll().unwrap().begun && follower.is_written().is_none());
        let dir = root.path();
        let mut follower = RunFollower::new(dir);
        log(
            dir,
            "{\"event\":\"run_started\",\"t_s\":0.0,\"name\":\"n\",\"selected\":9,\"known\":2,\"engine\":\"cpu\"}\n{\"event\":\"started\",\"exp_id\":2,\"t_s\"",
        );
        let state = follower.poll().unwrap().clone();
        assert_eq!(
            (state.begun, state.name.as_str(), state.selected, state.done(), state.running),
            (true, "n", 9, 2, 0)
        );
        log(
            dir,
            ":0.1}\n{\"event\":\"started\",\"exp_id\":3,\"t_s\":0.1}\nnot json\n{\"event\":\"finished\",\"exp_id\":2,\"status\":\"failed\",\"t_s\":1.5}\n",
        );
        let state = follower.poll().unwrap().clone();
        assert_eq!(
            (state.running, state.failed, state.last_failed, state.done(), state.last_event_s),
            (1, 1, Some(2), 3, 1.5)
        );
        log(dir, "{\"event\":\"progress\",\"done\":30,\"total\":100,\"t_s\":1.75}\n");
        let state = follower.poll().unwrap().clone();
        assert_eq!((state.work_done, state.work_total, state.work_s), (30, 100, 1.75));
        log(dir, "{\"event\":\"run_ended\",\"outcome\":\"interrupted\",\"t_s\":2.0}\n");
        assert_eq!(follower.poll().unwrap().ended.as_deref(), Some("interrupted"));
        // The run is resumed.
        log(
            dir,
            "{\"event\":\"run_started\",\"t_s\":0.0,\"name\":\"n\",\"selected\":9,\"known\":3,\"engine\":\"cpu\"}\n{\"event\":\"warning\",\"t_s\":0.0}\n",
        );
        let state = follower.poll().unwrap().clone();
        assert_eq!((state.ended.clone(), state.done(), state.warnings, state.finished()), (None, 3, 1, 0));
        // Another run in the same folder.
        fs::write(dir.join("events.jsonl"), "{\"event\":\"merged\",\"experiments\":4,\"t_s\":0.0}\n").unwrap();
        let state = follower.poll().unwrap();
        assert_eq!((state.done(), state.ended.as_deref()), (4, Some("complete")));
    }

    #[test]
    fn a_log_without_lines_is_refused_before_it_is_read() {
        let root = tempfile::tempdir().unwrap();
        fs::File::create(root.path().join("events.jsonl")).unwrap().set_len(100 << 30).unwrap();
        let why = RunFollower::new(root.path()).poll().unwrap_err().to_string();
        assert!(why.contains("a line is longer than"), "{why}");
    }

    #[test]
    fn whoever_holds_the_journal_writes() {
        let root = tempfile::tempdir().unwrap();
        let dir = crate::ResultDir::create(root.path()).unwrap();
        let follower = RunFollower::new(root.path());
        assert_eq!(follower.is_written(), Some(true));
        drop(dir);
        assert_eq!(follower.is_written(), Some(false));
    }
}
