//! Colours: on terminals, unless the user wants none.
//!
//! Layer: cli. Standard error only; results on standard output are never coloured.

use std::ffi::OsString;
use std::io::IsTerminal;

/// How text for standard error is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    coloured: bool,
}

impl Style {
    /// Without colours.
    pub const PLAIN: Style = Style { coloured: false };

    /// As fits where standard error goes: colours on a terminal that knows them, unless NO_COLOR is set.
    pub fn of_stderr() -> Style {
        Style {
            coloured: allowed(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR"), std::env::var_os("TERM")),
        }
    }

    /// What went wrong.
    pub fn error(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// What may have gone wrong.
    pub fn warning(self, text: &str) -> String {
        self.paint("1;33", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }
}

/// NO_COLOR counts when it is not empty (no-color.org).
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
