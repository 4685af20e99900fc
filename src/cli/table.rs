//! Plain tables and numbers for people.
//!
//! Layer: cli. Rounds; files show exact values instead.

/// A table with a header, columns aligned: numbers to the right, words to the left.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { rows: vec![header.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row of as many cells as the header has.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells);
    }

    /// The lines, without trailing blanks.
    pub fn lines(&self) -> Vec<String> {
        let n = self.rows[0].len();
        let width = |c: usize| self.rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..n).map(width).collect();
        let starts_as_number = |t: &String| t.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let right: Vec<bool> =
            (0..n).map(|c| self.rows[1..].iter().all(|r| r[c].is_empty() || starts_as_number(&r[c]))).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().enumerate().map(|(c, text)| {
                let w = widths[c];
                if right[c] { format!("{text:>w$}") } else { format!("{text:<w$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        self.rows.iter().map(line).collect()
    }
}

/// A time of picoseconds in the unit that fits, four digits.
pub fn time(ps: u64) -> String {
    let ns = ps as f64 / 1e3;
    match ns {
        _ if ns < 1e3 => format!("{} ns", four(ns)),
        _ if ns < 1e6 => format!("{} us", four(ns / 1e3)),
        _ if ns < 1e9 => format!("{} ms", four(ns / 1e6)),
        _ => format!("{} s", four(ns / 1e9)),
    }
}

/// Bytes in the unit that fits.
pub fn bytes(bytes: u64) -> String {
    let b = bytes as f64;
    match b {
        _ if b < 1024.0 => format!("{bytes} B"),
        _ if b < 1024.0 * 1024.0 => format!("{} KiB", four(b / 1024.0)),
        _ if b < 1024.0_f64.powi(3) => format!("{} MiB", four(b / 1024.0_f64.powi(2))),
        _ => format!("{} GiB", four(b / 1024.0_f64.powi(3))),
    }
}

/// A count with thousands set apart.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).expect("digits are ASCII")).collect();
    groups.join(",")
}

/// Seconds of wall time.
pub fn seconds(s: f64) -> String {
    match s {
        _ if s < 60.0 => format!("{s:.1} s"),
        _ if s < 3600.0 => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), (s % 60.0).floor()),
        _ => format!("{:.0} h {:02.0} min", (s / 3600.0).floor(), (s % 3600.0 / 60.0).floor()),
    }
}

fn four(v: f64) -> String {
    match v {
        _ if v < 10.0 => format!("{v:.3}"),
        _ if v < 100.0 => format!("{v:.2}"),
        _ => format!("{v:.1}"),
    }
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
        assert_eq!([bytes(12), bytes(2048), bytes(3 << 30)], ["12 B", "2.000 KiB", "3.000 GiB"]);
        assert_eq!([count(0), count(999), count(1_000), count(12_345_678)], ["0", "999", "1,000", "12,345,678"]);
        assert_eq!([seconds(1.25), seconds(61.0), seconds(3_725.0)], ["1.2 s", "1 min 01 s", "1 h 02 min"]);
    }

    #[test]
    fn words_align_left_and_numbers_right() {
        let mut table = Table::new(["cc", "marks"]);
        table.row(vec!["hpcc".into(), "7".into()]);
        table.row(vec!["none".into(), "1,234".into()]);
        assert_eq!(table.lines(), ["cc    marks", "hpcc      7", "none  1,234"]);
    }
}
