//! Lines for the user: on standard output what was asked for, on standard error what else there is to say.
//!
//! Layer: cli. Where nobody reads any more (`| head`), and where the disk is full, the command goes on all the same: its files and its exit code are what a script relies
//! on, and they do not depend on who reads along.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::printable::{printable, printable_json};

use super::exit::Exit;
use super::style::Style;

/// What has become of standard output.
static STDOUT: AtomicU8 = AtomicU8::new(OPEN);
const OPEN: u8 = 0;
/// Its reader has closed away, which is no failure.
const CLOSED: u8 = 1;
const BROKEN: u8 = 2;

/// Prints a line of output: one, whatever is in it. Once it could not be written, no more is.
pub(crate) fn say(line: &str) {
    write_out(format!("{}\n", printable(line)).as_bytes());
}

/// Prints JSON, which stays what it is for whoever reads it.
pub(crate) fn say_json(json: &str) {
    write_out(format!("{}\n", printable_json(json)).as_bytes());
}

/// Writes to standard output what is the program's own or a file's, as it is. Once it could not be written, no more is.
pub(crate) fn write_out(bytes: &[u8]) {
    if STDOUT.load(Ordering::Relaxed) != OPEN {
        return;
    }
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        let closed = error.kind() == ErrorKind::BrokenPipe;
        STDOUT.store(if closed { CLOSED } else { BROKEN }, Ordering::Relaxed);
        if !closed {
            tell(&format!("hyperfold: cannot write to standard output: {error}"));
        }
    }
}

/// Whether nobody sees what is said any more: what has no other effect may end.
pub(crate) fn is_closed() -> bool {
    STDOUT.load(Ordering::Relaxed) != OPEN
}

/// The program's exit code, given the command's: output that could not be written is a failure, unless there is a worse one to tell.
pub(crate) fn exit(of_command: Exit) -> Exit {
    match of_command {
        Exit::Ok if STDOUT.load(Ordering::Relaxed) == BROKEN => Exit::Failed,
        other => other,
    }
}

/// Prints a line for the user: one, whatever is in it. A warning's first word is coloured.
pub(crate) fn tell(line: &str) {
    let shown = printable(line);
    match shown.strip_prefix(WARNING) {
        Some(rest) => write_err(&format!("{}{rest}", Style::of_stderr().warning(WARNING))),
        None => write_err(&shown),
    }
}

/// What lines begin with that say what may have gone wrong.
const WARNING: &str = "warning:";

/// Prints why the command failed.
pub(crate) fn tell_error(why: &str) {
    write_err(&format!("{} {}", Style::of_stderr().error("hyperfold:"), printable(why)));
}

/// Prints a mark below a line of text, so many columns in.
pub(crate) fn tell_mark(before: &str, mark: &str) {
    write_err(&format!("{}{}", printable(before), Style::of_stderr().error(&printable(mark))));
}

/// Writes a line to standard error as it is. That nobody can read it (its disk may be the one that is full) must not end a run.
pub(super) fn write_err(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
