//! The line of a sweep file that an error refers to, with a mark below the relevant part.
//!
//! Layer: cli. It reads the file again, because errors have positions and no text. If the file has changed meanwhile, there may be no excerpt.

use std::ops::Range;

use unicode_width::UnicodeWidthStr;

use hyperfold_base::input;
use hyperfold_base::printable::is_plain;
use hyperfold_config::spec::{Place, SpecError};

use super::output::{tell, tell_mark};

/// Largest number of characters of a line that are shown, so that the line fits on a terminal with its margin.
const MOST: usize = 100;
/// Number of characters shown before the marked part, if the line is cut.
const BEFORE: usize = 40;

/// Lines that are printed below an error.
pub(super) struct SweepExcerpt {
    /// Location, an empty line, and the line of the file.
    lines: [String; 3],
    /// Text before the mark, and the mark.
    mark: (String, String),
}

impl SweepExcerpt {
    /// Prints the excerpt.
    pub(super) fn tell(&self) {
        self.lines.iter().for_each(|line| tell(line));
        tell_mark(&self.mark.0, &self.mark.1);
    }
}

/// The excerpt for an error. `None`: the error does not refer to a part of a file.
pub(super) fn of(error: &anyhow::Error) -> Option<SweepExcerpt> {
    let place = error.chain().find_map(|e| e.downcast_ref::<SpecError>())?.place();
    let Place::File { path, line: Some(line), columns: Some(columns) } = place else { return None };
    let text = input::read_tree_anywhere(path).ok()?;
    let shown = path.display().to_string();
    lines(&shown, text.lines().nth(line.checked_sub(1)? as usize)?, *line, columns.as_ref().clone())
}

fn lines(path: &str, text: &str, line: u32, columns: Range<usize>) -> Option<SweepExcerpt> {
    // If something is missing at the end of a line, the position is beyond its last byte.
    let column = text.get(..columns.start.min(text.len()))?.chars().count();
    let meant = text.get(columns.start.min(text.len())..columns.end.min(text.len()))?;
    let first = if column > MOST - BEFORE { column - BEFORE } else { 0 };
    // Tabs and control characters become single spaces, so that the mark is at the right place.
    let plain = |c: char| if is_plain(c) { c } else { ' ' };
    let part: String = text.chars().skip(first).take(MOST).map(plain).collect();
    let width = |text: &str, limit: usize| text.chars().take(limit).map(plain).collect::<String>().width();
    let (front, back) =
        (if first > 0 { "..." } else { "" }, if text.chars().count() > first + MOST { "..." } else { "" });
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let (before, after) = (column - first, MOST - (column - first).min(MOST - 1));
    let indent = " ".repeat(front.len() + part.chars().take(before).collect::<String>().width());
    let mark = "^".repeat(width(meant, after).max(1));
    Some(SweepExcerpt {
        lines: [
            format!("{margin}--> {path}:{line}:{}", column + 1),
            format!("{margin} |"),
            format!("{number} | {front}{}{back}", part.trim_end()),
        ],
        mark: (format!("{margin} | {indent}"), mark),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, columns: Range<usize>) -> String {
        let SweepExcerpt { lines, mark } = lines("s.toml", text, 12, columns).unwrap();
        format!("{}\n{}{}", lines.join("\n"), mark.0, mark.1)
    }

    #[test]
    fn the_mark_is_below_what_is_meant() {
        assert_eq!(plain("cc = \"hpccc\"", 5..12), "  --> s.toml:12:6\n   |\n12 | cc = \"hpccc\"\n   |      ^^^^^^^");
        assert_eq!(plain("é = 1\t# ü", 5..6), "  --> s.toml:12:5\n   |\n12 | é = 1 # ü\n   |     ^");
        let wide = "训 = \"练\"";
        assert_eq!(
            plain(wide, 6..11),
            format!("  --> s.toml:12:5\n   |\n12 | {wide}\n   |      ^^^^"),
            "two wide each"
        );
    }

    #[test]
    fn what_is_missing_at_the_end_is_marked_there() {
        assert!(plain("x =", 3..9).ends_with("12 | x =\n   |    ^"), "{}", plain("x =", 3..9));
    }

    #[test]
    fn long_lines_are_cut_around_it() {
        let text = format!("{}bad{}", "x".repeat(500), "y".repeat(500));
        let shown = plain(&text, 500..503);
        let rows: Vec<&str> = shown.lines().collect();
        assert!(rows[2].len() < 120 && rows[2].contains("...xxx") && rows[2].ends_with("y..."), "{shown}");
        assert_eq!(rows[2].find("bad"), rows[3].find("^^^"), "{shown}");
        assert!(plain(&text, 0..1000).lines().last().unwrap().len() < 120);
    }

    #[test]
    fn what_steers_terminals_takes_a_blank_in_it() {
        let shown = plain("a\u{1b}\u{202e}\u{e0041} = 1", 12..13);
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{e0041}']), "{shown}");
    }

    #[test]
    fn a_place_inside_a_character_has_no_excerpt() {
        assert!(lines("s", "é", 1, 1..2).is_none());
    }
}
