//! Lines for the user: on standard output what was asked for, on standard error what else there is to say.
//!
//! Layer: cli. Where nobody reads any more (`| head`), and where the disk is full, the command goes on all the same: its files and its exit code are what a script relies
//! on, and they do not depend on who reads along.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU8, Ordering};

use super::exit::Exit;

/// What has become of standard output.
static STDOUT: AtomicU8 = AtomicU8::new(OPEN);
const OPEN: u8 = 0;
/// Its reader has closed away, which is no failure.
const CLOSED: u8 = 1;
const BROKEN: u8 = 2;

/// Prints a line of output. Once it could not be written, no more is.
pub(crate) fn say(line: &str) {
    write_out(format!("{}\n", printable(line)).as_bytes());
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

/// A line as a terminal may have it. Names, values, paths and bytes of files are other people's: what would steer the terminal or turn the
/// direction of text is shown as its code. Line breaks, tabs and colours as [`super::style`] writes them stay.
pub(crate) fn printable(line: &str) -> Cow<'_, str> {
    if !line.chars().any(|c| steers(c) || c == ESCAPE) {
        return Cow::Borrowed(line);
    }
    let (mut out, mut rest) = (String::with_capacity(line.len() + 16), line);
    while let Some(c) = rest.chars().next() {
        let length = match c {
            ESCAPE => colour(rest),
            c if steers(c) => None,
            c => Some(c.len_utf8()),
        };
        match length {
            Some(length) => out.push_str(&rest[..length]),
            None => out.extend(c.escape_unicode()),
        }
        rest = &rest[length.unwrap_or(c.len_utf8())..];
    }
    Cow::Owned(out)
}

const ESCAPE: char = '\u{1b}';

/// Length of a sequence that only colours, if `text` begins with one.
fn colour(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\u{1b}[")?;
    let end = codes.find('m')?;
    // 8 would hide what follows.
    let plain = codes[..end]
        .split(';')
        .all(|code| matches!(code, "0" | "1" | "2" | "3" | "4") || (code.len() == 2 && code.starts_with(['3', '9'])));
    plain.then_some(2 + end + 1)
}

/// Whether a character steers the terminal, or changes the direction of text, or takes no room.
fn steers(c: char) -> bool {
    let direction = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{61c}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || direction
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
    let _ = writeln!(std::io::stderr(), "{}", printable(line));
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn nothing_that_is_printed_steers_the_terminal() {
        assert_eq!(printable("a\u{1b}]0;title\u{7}b"), "a\\u{1b}]0;title\\u{7}b");
        assert_eq!(printable("\u{1b}[2Jgone\r"), "\\u{1b}[2Jgone\\u{d}");
        assert_eq!(printable("\u{1b}[8mhidden"), "\\u{1b}[8mhidden");
        assert_eq!(printable("x\u{202e}gpj.exe"), "x\\u{202e}gpj.exe");
        assert_eq!(printable("\u{9b}1A"), "\\u{9b}1A");
        for plain in ["\u{1b}[1;31merror:\u{1b}[0m a\n\tb", "\u{3b1} \u{2192} caf\u{e9}"] {
            assert_eq!(printable(plain), plain);
        }
    }
}
