//! Lines for the user: on standard output what was asked for, on standard error what else there is to say.
//!
//! Layer: cli. Where nobody reads any more (`| head`), and where the disk is full, the command goes on all the same: its files and its exit code are what a script relies
//! on, and they do not depend on who reads along.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU8, Ordering};

use super::exit::Exit;

/// What has become of standard output.
static STDOUT: AtomicU8 = AtomicU8::new(OPEN);
const OPEN: u8 = 0;
/// Its reader has gone away, which is no failure.
const GONE: u8 = 1;
const BROKEN: u8 = 2;

/// Prints a line of output. Once it could not be written, no more is.
pub(crate) fn say(line: &str) {
    if STDOUT.load(Ordering::Relaxed) != OPEN {
        return;
    }
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        let gone = error.kind() == ErrorKind::BrokenPipe;
        STDOUT.store(if gone { GONE } else { BROKEN }, Ordering::Relaxed);
        if !gone {
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

/// Prints a line for the user. That nobody can read it (its disk may be the one that is full) must not end a run.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
