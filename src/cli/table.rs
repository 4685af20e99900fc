//! Tables and numbers as text for people.
//!
//! Layer: cli. Values are rounded; the files have exact values.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

use hyperfold_base::printable::printable;
use hyperfold_base::units::thousands;

/// A table with a header and aligned columns: numbers to the right, words to the left.
pub struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// An empty table with these columns.
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> TextTable {
        TextTable { rows: vec![header.into_iter().map(|name| shown(name.into())).collect()] }
    }

    /// Adds a row. It has as many cells as the header.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// Lines of the table, without trailing blanks.
    pub fn lines(&self) -> Vec<String> {
        let n = self.rows[0].len();
        let width = |c: usize| self.rows.iter().map(|r| r[c].width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..n).map(width).collect();
        let starts_as_number = |t: &String| t.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let right: Vec<bool> =
            (0..n).map(|c| self.rows[1..].iter().all(|r| r[c].is_empty() || starts_as_number(&r[c]))).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().enumerate().map(|(c, text)| {
                let blanks = " ".repeat(widths[c] - text.width());
                if right[c] { format!("{blanks}{text}") } else { format!("{text}{blanks}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        self.rows.iter().map(line).collect()
    }
}

/// A cell as it is printed, so that columns have the width that is seen.
fn shown(cell: String) -> String {
    match printable(&cell) {
        Cow::Borrowed(_) => cell,
        Cow::Owned(shown) => shown,
    }
}

/// `part` of `all`, as a percentage.
pub fn share(part: u64, all: u64) -> String {
    format!("{:.2} %", 100.0 * part as f64 / all.max(1) as f64)
}

/// A time in picoseconds, in the unit that fits, with four digits.
pub fn time(ps: u64) -> String {
    in_units(ps as f64 / 1e3, 1e3, &["ns", "us", "ms", "s"])
}

/// A number of bytes, in the unit that fits, with four digits. Whole numbers have no point.
pub fn bytes(bytes: u64) -> String {
    let text = in_units(bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"]);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let exact = number.parse::<f64>().is_ok_and(|v| v.fract() == 0.0);
    if exact { format!("{} {unit}", number.split('.').next().unwrap_or(number)) } else { text }
}

/// A value in the largest unit in which it is at least 1. Each unit is `step` times the one before. A value that four digits would round up to `step` is
/// shown in the next unit.
fn in_units(value: f64, step: f64, units: &[&str]) -> String {
    let (mut value, mut unit_idx) = (value, 0);
    while unit_idx + 1 < units.len() && four(value).parse::<f64>().is_ok_and(|shown| shown >= step) {
        (value, unit_idx) = (value / step, unit_idx + 1);
    }
    format!("{} {}", four(value), units[unit_idx])
}

/// A number without a unit: four digits, thousands separators, and no trailing zeros.
pub fn number(v: f64) -> String {
    // Adding 0.0 removes the sign of a negative zero.
    let v = v + 0.0;
    let size = v.abs();
    if size != 0.0 && !(1e-3..1e7).contains(&size) {
        return format!("{v:.3e}");
    }
    let rounded: f64 = format!("{v:.3e}").parse().expect("a number as text is a number");
    if rounded.abs() >= 1000.0 {
        let sign = if rounded < 0.0 { "-" } else { "" };
        return format!("{sign}{}", thousands(rounded.abs() as u64));
    }
    let digits = if rounded == 0.0 { 0 } else { rounded.abs().log10().floor() as i32 };
    let text = format!("{rounded:.*}", (3 - digits).max(0) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A count with four digits: `9,999`, `12.35 k`, `1.2 M`.
pub fn count(n: u64) -> String {
    match n as f64 {
        _ if n < 10_000 => thousands(n),
        v if v < 999_950.0 => format!("{} k", number(v / 1e3)),
        v if v < 999_950_000.0 => format!("{} M", number(v / 1e6)),
        v => format!("{} G", number(v / 1e9)),
    }
}

/// A wall time in seconds, as text.
pub fn seconds(s: f64) -> String {
    match s {
        _ if s < 60.0 => format!("{s:.1} s"),
        _ if s < 3600.0 => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), (s % 60.0).floor()),
        _ => format!("{:.0} h {:02.0} min", (s / 3600.0).floor(), (s % 3600.0 / 60.0).floor()),
    }
}

/// Four digits, with trailing zeros so that columns line up.
fn four(v: f64) -> String {
    let at_least = |size: f64, digits: usize| (v >= size).then(|| format!("{v:.digits$}"));
    let thousands = |v: f64| {
        let unit = 10f64.powi(v.log10().floor() as i32 - 3);
        format!("{:.0}", (v / unit).round() * unit)
    };
    (v >= 9999.5)
        .then(|| thousands(v))
        .or_else(|| at_least(999.95, 0))
        .or_else(|| at_least(99.995, 1))
        .or_else(|| at_least(9.9995, 2))
        .unwrap_or_else(|| format!("{v:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [time(0), time(999_000), time(1_234_567), time(40_000_000_000)],
            ["0.000 ns", "999.0 ns", "1.235 us", "40.00 ms"]
        );
        assert_eq!(
            [time(9_999_900), time(99_999_000), time(999_999_000), time(999_999), time(12_345_000_000_000_000)],
            ["10.00 us", "100.0 us", "1.000 ms", "1.000 us", "12350 s"],
            "four digits after rounding, too"
        );
        assert_eq!([bytes(12), bytes(2048), bytes(3 << 30)], ["12 B", "2 KiB", "3 GiB"]);
        assert_eq!([bytes(1500), bytes((1 << 20) - 1), bytes(1_046_000)], ["1.465 KiB", "1 MiB", "1021 KiB"]);
        assert_eq!(
            [0.0, -0.0, 1.0, 0.1, 12.3456, 123.456, 12_345.6, -2.5, 999.96, 1e12, 1e-7, 0.5].map(number),
            ["0", "0", "1", "0.1", "12.35", "123.5", "12,350", "-2.5", "1,000", "1.000e12", "1.000e-7", "0.5"]
        );
        assert_eq!(
            [count(0), count(9_999), count(10_000), count(999_960), count(12_345_678)],
            ["0", "9,999", "10 k", "1 M", "12.35 M"]
        );
        assert_eq!([seconds(1.25), seconds(61.0), seconds(3_725.0)], ["1.2 s", "1 min 01 s", "1 h 02 min"]);
    }

    #[test]
    fn words_align_left_and_numbers_right() {
        let mut table = TextTable::new(["cc", "marks"]);
        table.row(vec!["hpcc".into(), "7".into()]);
        table.row(vec!["none".into(), "1,234".into()]);
        assert_eq!(table.lines(), ["cc    marks", "hpcc      7", "none  1,234"]);
        let mut wide = TextTable::new(["job", "marks"]);
        wide.row(vec!["\u{8bad}\u{7ec3}".into(), "7".into()]);
        assert_eq!(wide.lines(), ["job   marks", "\u{8bad}\u{7ec3}      7"], "two characters that are two wide each");
        table.row(vec!["\u{1b}[3J\nx".into(), "9".into()]);
        let lines = table.lines();
        assert_eq!(lines[3], "\\u{1b}[3J\\nx      9");
        assert!(lines.iter().all(|l| l.chars().count() == lines[3].len()), "{lines:?}");
    }
}
