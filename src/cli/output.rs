//! Output for the user: results on standard output, everything else on standard error.
//!
//! Layer: cli. If standard output is closed (`| head`) or its disk is full, the command goes on, because scripts rely on its files and its exit code.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU8, Ordering};

use anstyle::{AnsiColor, Style};

use hyperfold_base::printable::{printable, printable_json};

use super::exit::Exit;

/// State of standard output.
static STDOUT: AtomicU8 = AtomicU8::new(OPEN);
const OPEN: u8 = 0;
/// The reader has closed it, which is not a failure.
const CLOSED: u8 = 1;
const BROKEN: u8 = 2;

/// Prints one line of output, with control characters escaped. After a failed write, nothing more is written.
pub(crate) fn say(line: &str) {
    write_out(format!("{}\n", printable(line)).as_bytes());
}

/// Prints JSON, escaped such that it stays valid and equal JSON.
pub(crate) fn say_json(json: &str) {
    write_out(format!("{}\n", printable_json(json)).as_bytes());
}

/// Writes bytes to standard output unchanged: the program's own text, or a file. After a failed write, nothing more is written.
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

/// Whether standard output cannot be written any more, so that work without other effects may stop.
pub(crate) fn is_closed() -> bool {
    STDOUT.load(Ordering::Relaxed) != OPEN
}

/// Exit code of the program, from that of the command. Output that could not be written is a failure, unless the command has a worse one.
pub(crate) fn exit(of_command: Exit) -> Exit {
    match of_command {
        Exit::Ok if STDOUT.load(Ordering::Relaxed) == BROKEN => Exit::Failed,
        other => other,
    }
}

/// Prints one line on standard error, with control characters escaped. The first word of a warning is coloured.
pub(crate) fn tell(line: &str) {
    let shown = printable(line);
    match shown.strip_prefix(WARNING) {
        Some(rest) => write_err(&format!("{YELLOW}{WARNING}{YELLOW:#}{rest}")),
        None => write_err(&shown),
    }
}

/// Prefix of warnings.
const WARNING: &str = "warning:";
/// Style of warnings.
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
/// Style of errors.
const RED: Style = AnsiColor::Red.on_default().bold();

/// Prints why the command failed.
pub(crate) fn tell_error(why: &str) {
    write_err(&format!("{RED}hyperfold:{RED:#} {}", printable(why)));
}

/// Prints a mark below a line, after the text `before`.
pub(crate) fn tell_mark(before: &str, mark: &str) {
    write_err(&format!("{}{RED}{}{RED:#}", printable(before), printable(mark)));
}

/// Writes a line to standard error, without its colours where it is no terminal or its user wants none (`NO_COLOR`, `CLICOLOR`). If that fails (its disk may be full), the run goes on.
pub(super) fn write_err(line: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}
