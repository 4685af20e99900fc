//! Kind of the numbers of a column, and how they are written at an axis.
//!
//! Layer: plot. Binary and decimal sizes are distinguished by value: 65536 is 64 KiB, and 64000 is 64 kB.

use hyperfold_config::spec;

/// Kind of the numbers of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Times in nanoseconds.
    Time,
    Bytes,
    /// Shares from 0 to 1.
    Share,
    Plain,
}

impl Quantity {
    /// Kind by the name of a column. Keys of the sweep file stay in the unit of their name, except for bytes.
    pub(super) fn of(name: &str) -> Quantity {
        let ends = |end: &str| name.ends_with(end);
        match () {
            () if ends("_bytes") || ends(".bytes") || name == "bytes" => Quantity::Bytes,
            () if spec::find(name).is_some() => Quantity::Plain,
            () if ends("_ns") => Quantity::Time,
            () if ends("utilisation") || ends("_share") || name == "mfu" || name == "goodput" => Quantity::Share,
            () => Quantity::Plain,
        }
    }

    /// Divisor of the numbers on a whole axis, and the unit for its label. `top` is the largest absolute value on the axis.
    pub(super) fn unit(self, top: f64) -> (f64, &'static str) {
        match self {
            Quantity::Time => *TIMES.iter().rev().find(|(size, _)| top >= *size).unwrap_or(&TIMES[0]),
            Quantity::Share => (0.01, "%"),
            Quantity::Bytes | Quantity::Plain => (1.0, ""),
        }
    }

    /// A value with its unit, as the text of a tick.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Quantity::Bytes => bytes(value),
            Quantity::Time => {
                let (size, unit) = self.unit(value.abs());
                format!("{} {unit}", digits(value / size))
            }
            Quantity::Share => format!("{} %", digits(value * 100.0)),
            Quantity::Plain => scaled(value, &DECIMAL, ""),
        }
    }

    /// Label of an axis from the name of a column, without the unit that is written at the numbers.
    pub(super) fn label(self, name: &str) -> String {
        if spec::find(name).is_some() {
            return name.to_string();
        }
        let bare = match self {
            Quantity::Time => name.trim_end_matches("_ns"),
            Quantity::Bytes => name.trim_end_matches("_bytes"),
            Quantity::Share | Quantity::Plain => name,
        };
        let word = |w: &str| if ["fct", "ecn", "pfc", "mfu"].contains(&w) { w.to_uppercase() } else { w.to_string() };
        bare.split('_').map(word).collect::<Vec<_>>().join(" ")
    }
}

const TIMES: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];
const BINARY: [(f64, &str); 5] =
    [(1.0, ""), (1024.0, "Ki"), (1_048_576.0, "Mi"), (1_073_741_824.0, "Gi"), (1_099_511_627_776.0, "Ti")];
const DECIMAL: [(f64, &str); 5] = [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];

/// A number of bytes with the binary or decimal unit, whichever needs fewer digits.
fn bytes(value: f64) -> String {
    let (binary, decimal) = (scaled(value, &BINARY, "B"), scaled(value, &DECIMAL, "B"));
    if digits_of(&decimal) < digits_of(&binary) { decimal } else { binary }
}

fn digits_of(text: &str) -> usize {
    text.chars().filter(char::is_ascii_digit).count()
}

/// A value with a prefix. Plain numbers below 10,000 have none: 1500, not 1.5 k.
fn scaled(value: f64, prefixes: &[(f64, &str)], unit: &str) -> String {
    let size = value.abs();
    let min_scaled = if unit.is_empty() { 1e4 } else { 1.0 };
    let (factor, prefix) =
        *prefixes.iter().rev().find(|(f, _)| size >= *f && size >= min_scaled).unwrap_or(&prefixes[0]);
    let space = if prefix.is_empty() && unit.is_empty() { "" } else { " " };
    format!("{}{space}{prefix}{unit}", digits(value / factor))
}

/// A number with at most four digits, or as many as are before the point, without trailing zeros.
pub(super) fn digits(value: f64) -> String {
    // Adding 0.0 removes the sign of a negative zero.
    let (value, size) = (value + 0.0, value.abs());
    if size != 0.0 && !(1e-4..1e15).contains(&size) {
        return format!("{value:.2e}");
    }
    let whole = if size < 1.0 { 0 } else { format!("{size:.0}").len() };
    // Zeros after the point of a number below one do not count as digits.
    let zeros = if size > 0.0 && size < 0.1 {
        if size < 0.001 {
            3
        } else if size < 0.01 {
            2
        } else {
            1
        }
    } else {
        0
    };
    let text = format!("{value:.*}", 4_usize.saturating_sub(whole) + zeros);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_where_they_are_round_so() {
        let text = |v| Quantity::Bytes.text(v);
        assert_eq!(
            [
                text(65_536.0),
                text(64_000.0),
                text(1e6),
                text(1_048_576.0),
                text(0.0),
                text(1000.0),
                text(3_221_225_472.0)
            ],
            ["64 KiB", "64 kB", "1 MB", "1 MiB", "0 B", "1 kB", "3 GiB"]
        );
    }

    #[test]
    fn numbers_have_at_most_four_digits() {
        assert_eq!(
            [
                digits(0.0),
                digits(-0.0),
                digits(1234.5678),
                digits(0.95),
                digits(0.012_345),
                digits(400.0),
                digits(2.5e-7)
            ],
            ["0", "0", "1235", "0.95", "0.01235", "400", "2.50e-7"]
        );
        assert_eq!([Quantity::Plain.text(2_000_000.0), Quantity::Plain.text(1500.0)], ["2 M", "1500"]);
        assert_eq!(
            [Quantity::Time.text(1500.0), Quantity::Time.text(2e9), Quantity::Share.text(0.5)],
            ["1.5 us", "2 s", "50 %"]
        );
    }

    #[test]
    fn columns_are_known_by_their_names() {
        let kind_of = Quantity::of;
        assert_eq!(
            [kind_of("makespan_ns"), kind_of("max_queue_bytes"), kind_of("workload.bytes"), kind_of("mfu")],
            [Quantity::Time, Quantity::Bytes, Quantity::Bytes, Quantity::Share]
        );
        assert_eq!(
            [kind_of("topology.link_delay_ns"), kind_of("cost_usd"), kind_of("transport.payload_bytes")],
            [Quantity::Plain, Quantity::Plain, Quantity::Bytes]
        );
        assert_eq!(Quantity::Time.label("fct_p99_ns"), "FCT p99");
        assert_eq!(Quantity::Plain.label("topology.link_delay_ns"), "topology.link_delay_ns");
    }
}
