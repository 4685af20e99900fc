//! Colours of text, on terminals and unless the user wants none.
//!
//! Layer: cli. Only standard error is coloured; results on standard output never are.

use std::ffi::OsString;
use std::io::IsTerminal;

/// Style of text on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    coloured: bool,
}

impl Style {
    /// Style without colours.
    pub const PLAIN: Style = Style { coloured: false };

    /// Style that fits standard error: colours on a terminal that supports them, unless NO_COLOR is set.
    pub fn of_stderr() -> Style {
        Style {
            coloured: allowed(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR"), std::env::var_os("TERM")),
        }
    }

    /// Text of an error.
    pub fn error(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// Text of a warning.
    pub fn warning(self, text: &str) -> String {
        self.paint("1;33", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }
}

/// Whether colours are allowed. NO_COLOR counts if it is not empty (no-color.org).
fn allowed(terminal: bool, no_color: Option<OsString>, term: Option<OsString>) -> bool {
    terminal && no_color.is_none_or(|v| v.is_empty()) && term.is_none_or(|t| t != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_whose_users_want_them() {
        let some = |text: &str| Some(OsString::from(text));
        assert!(allowed(true, None, some("xterm")) && allowed(true, some(""), None));
        assert!(
            !allowed(false, None, some("xterm"))
                && !allowed(true, some("1"), None)
                && !allowed(true, None, some("dumb"))
        );
        assert_eq!(Style::PLAIN.error("x"), "x");
        assert_eq!(Style { coloured: true }.error("x"), "\u{1b}[1;31mx\u{1b}[0m");
    }
}
