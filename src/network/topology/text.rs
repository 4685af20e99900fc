//! Line-oriented text files: the common part of all readers of topologies, routes, flows and distributions.
//!
//! Layer: topology (routing and workload use it too). It knows lines and fields, but not their meaning.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use hyperfold_base::input;
use hyperfold_base::printable::shortened;

/// An error in a text file, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file cannot be opened or read.
    #[error("{path}: cannot be read: {reason}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the operating system, in words.
        reason: String,
    },
    /// The file is not text.
    #[error("{path}:{line}: byte {byte} is not UTF-8 text; is this the right file?")]
    NotText {
        /// Path of the file.
        path: String,
        /// Line of the first byte that is not UTF-8, from 1.
        line: usize,
        /// Position of that byte, from 0.
        byte: usize,
    },
    /// A line is wrong.
    #[error("{path}:{line}: {problem}")]
    Line {
        /// Path of the file.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// The fault, in words for the user.
        problem: String,
    },
}

/// Reads a whole file as text. The error names the path, and the line of the first byte that is not text.
pub fn load_text(path: &Path) -> Result<String, FileError> {
    let shown = path.display().to_string();
    let bytes = input::read(path).map_err(|e| FileError::Read { path: shown.clone(), reason: e.to_string() })?;
    text_of(&shown, bytes)
}

/// Reads the first lines of a file as text, to check whether it is the right file before all of it is read. A line cut at `HEAD` bytes is left out. `None` if
/// even the first line is longer.
pub fn load_head(path: &Path) -> Result<Option<String>, FileError> {
    let shown = path.display().to_string();
    let mut bytes = Vec::new();
    let read = input::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut bytes));
    read.map_err(|e| FileError::Read { path: shown.clone(), reason: e.to_string() })?;
    if bytes.len() as u64 == HEAD {
        let Some(end) = bytes.iter().rposition(|b| *b == b'\n') else { return Ok(None) };
        bytes.truncate(end + 1);
    }
    text_of(&shown, bytes).map(Some)
}

/// Number of bytes of a file that are checked before the rest.
const HEAD: u64 = 1 << 16;

/// Bytes as text; `path` is for the error message.
pub fn text_of(path: &str, bytes: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|e| {
        let byte = e.utf8_error().valid_up_to();
        let line = 1 + e.as_bytes()[..byte].iter().filter(|b| **b == b'\n').count();
        FileError::NotText { path: path.to_string(), line, byte }
    })
}

/// Iterates over the lines of a text that have content. Blank lines and lines that start with `#` are left out.
pub struct Lines<'a> {
    path: &'a str,
    rest: std::str::Lines<'a>,
    line: usize,
    /// Whether a blank line was left out just before the current line.
    pub after_blank: bool,
}

/// A line of a file.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// Path of the file, for messages.
    pub path: &'a str,
    /// Number of the line, from 1.
    pub number: usize,
    /// Text of the line without surrounding space.
    pub text: &'a str,
}

impl<'a> Lines<'a> {
    /// Iterates over the lines of `text`; `path` is for messages.
    pub fn new(path: &'a str, text: &'a str) -> Self {
        // Editors on Windows put a byte order mark first.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Lines { path, rest: text.lines(), line: 0, after_blank: false }
    }

    /// The next line with content.
    pub fn next_line(&mut self) -> Option<Line<'a>> {
        self.after_blank = false;
        for raw in self.rest.by_ref() {
            self.line += 1;
            let text = raw.trim();
            if text.is_empty() {
                self.after_blank = true;
            } else if !text.starts_with('#') {
                return Some(Line { path: self.path, number: self.line, text });
            }
        }
        None
    }

    /// The next line with content, or an error at the end of the file that says what is missing.
    pub fn expect(&mut self, missing: impl FnOnce() -> String) -> Result<Line<'a>, FileError> {
        match self.next_line() {
            Some(l) => Ok(l),
            None => Err(FileError::Line {
                path: self.path.to_string(),
                line: self.line.max(1),
                problem: format!("the file ends here; {}", missing()),
            }),
        }
    }
}

impl<'a> Line<'a> {
    /// An error at this line.
    pub fn error(&self, problem: impl Into<String>) -> FileError {
        FileError::Line { path: self.path.to_string(), line: self.number, problem: problem.into() }
    }

    /// The words of the line.
    pub fn fields(&self) -> std::str::SplitWhitespace<'a> {
        self.text.split_whitespace()
    }

    /// Splits the line into exactly `N` fields. The error shows the expected fields.
    pub fn exactly<const N: usize>(&self, shape: &str) -> Result<[&'a str; N], FileError> {
        let mut out = [""; N];
        let mut n = 0;
        for f in self.fields() {
            if n < N {
                out[n] = f;
            }
            n += 1;
        }
        if n == N { Ok(out) } else { Err(self.error(format!("{n} fields, expected {N}: `{shape}`"))) }
    }

    /// Parses a whole number in `min..=max`; `what` names the field in messages.
    pub fn number<T>(&self, what: &str, field: &str, min: T, max: T) -> Result<T, FileError>
    where
        T: FromStr + PartialOrd + std::fmt::Display + Copy,
    {
        match field.parse::<T>() {
            Ok(v) if v >= min && v <= max => Ok(v),
            _ => Err(self.error(format!("{what} `{}` is not a whole number from {min} to {max}", shown(field)))),
        }
    }
}

/// A field as shown in a message: cut if it is very long.
pub fn shown(field: &str) -> Cow<'_, str> {
    shortened(field, 40)
}
