//! Values as result files show them: exact decimals of integers, and typed cells.
//!
//! Layer: results. Times and ratios stay integers up to the last moment, so that no rounding of floats can differ between machines.

use std::fmt;

use serde::{Deserialize, Serialize};

use hyperfold_config::spec::Value;
use hyperfold_config::sweep::conditions::condition::Val;

/// A time in whole picoseconds, shown exactly in nanoseconds with up to three decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ps(pub u64);

/// A number in whole millionths, shown exactly with up to six decimals. For ratios and time averages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Micro(pub u64);

/// A time in whole milliseconds, shown in seconds as a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ms(pub u64);

impl Micro {
    /// Returns `num / den` rounded half up; 0 if `den` is 0, at most `u64::MAX` millionths.
    pub fn ratio(num: u128, den: u128) -> Micro {
        if den == 0 {
            return Micro(0);
        }
        // Most values are small, and 64-bit division is faster.
        if let (Ok(num), Ok(den)) = (u64::try_from(num), u64::try_from(den))
            && let Some(sum) = num.checked_mul(1_000_000).and_then(|n| n.checked_add(den / 2))
        {
            return Micro(sum / den);
        }
        let millionths = num.saturating_mul(1_000_000).saturating_add(den / 2) / den;
        Micro(u64::try_from(millionths).unwrap_or(u64::MAX))
    }
}

/// Writes `value / 10^digits` without trailing zeros.
fn decimal(f: &mut fmt::Formatter<'_>, value: u64, digits: usize) -> fmt::Result {
    let unit = 10_u64.pow(digits as u32);
    let (whole, part) = (value / unit, value % unit);
    if part == 0 {
        return write!(f, "{whole}");
    }
    let text = format!("{part:0digits$}");
    write!(f, "{whole}.{}", text.trim_end_matches('0'))
}

impl fmt::Display for Ps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal(f, self.0, 3)
    }
}

impl fmt::Display for Micro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal(f, self.0, 6)
    }
}

/// One value of a result table.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Cell {
    /// Does not apply, or is unknown.
    #[default]
    Empty,
    /// A whole number with a sign.
    Int(i64),
    /// A whole number that is not negative.
    Unsigned(u64),
    /// A time, shown in nanoseconds.
    Ps(Ps),
    /// A ratio in whole millionths.
    Micro(Micro),
    /// A value that is derived in reports; one that is not finite is shown as empty.
    Real(f64),
    /// A truth value, shown as `true` or `false`.
    Flag(bool),
    /// A text, such as a name.
    Text(String),
}

impl Cell {
    /// Returns the value as conditions over columns read it.
    pub fn condition_value(&self) -> Val<'_> {
        match self {
            Cell::Empty => Val::Nothing,
            Cell::Int(v) => Val::Int(*v),
            Cell::Unsigned(v) => i64::try_from(*v).map_or(Val::Float(*v as f64), Val::Int),
            Cell::Flag(v) => Val::Bool(*v),
            Cell::Text(v) => Val::Text(v),
            Cell::Ps(_) | Cell::Micro(_) | Cell::Real(_) => self.number().map_or(Val::Nothing, Val::Float),
        }
    }

    /// Returns the double nearest to the decimal that is shown; `None` if it is no number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Int(v) => Some(*v as f64),
            Cell::Unsigned(v) => Some(*v as f64),
            Cell::Ps(Ps(v)) => Some(self.quotient(*v, 1e3)),
            Cell::Micro(Micro(v)) => Some(self.quotient(*v, 1e6)),
            Cell::Real(v) => v.is_finite().then_some(*v),
            Cell::Empty | Cell::Flag(_) | Cell::Text(_) => None,
        }
    }

    /// Divides. If the value is exact as a double, division rounds once; larger values are parsed from the decimal, so that none rounds twice.
    fn quotient(&self, value: u64, unit: f64) -> f64 {
        if value <= 1 << f64::MANTISSA_DIGITS {
            value as f64 / unit
        } else {
            self.to_string().parse().expect("a decimal is a number")
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Empty => Ok(()),
            Cell::Int(v) => write!(f, "{v}"),
            Cell::Unsigned(v) => write!(f, "{v}"),
            Cell::Ps(v) => write!(f, "{v}"),
            Cell::Micro(v) => write!(f, "{v}"),
            Cell::Real(v) if !v.is_finite() => Ok(()),
            // Rust prints the shortest decimal that reads back as the same double, on every machine.
            Cell::Real(v) if *v != 0.0 && !(1e-5..1e15).contains(&v.abs()) => write!(f, "{v:e}"),
            // Adding 0 turns -0 into 0.
            Cell::Real(v) => write!(f, "{}", v + 0.0),
            Cell::Flag(v) => write!(f, "{v}"),
            Cell::Text(v) => f.write_str(v),
        }
    }
}

macro_rules! cell_from {
    ($($from:ty => $variant:ident as $to:ty),* $(,)?) => {
        $(impl From<$from> for Cell {
            fn from(value: $from) -> Cell {
                Cell::$variant(<$to>::from(value))
            }
        })*
    };
}
cell_from!(i64 => Int as i64, u32 => Unsigned as u64, u64 => Unsigned as u64, Ps => Ps as Ps, Micro => Micro as Micro,
    f64 => Real as f64, bool => Flag as bool, String => Text as String, &str => Text as String);

impl From<Ms> for Cell {
    fn from(value: Ms) -> Cell {
        Cell::Real(value.0 as f64 / 1e3)
    }
}

/// Converts the value of a key; an unset one becomes empty.
impl From<&Value> for Cell {
    fn from(value: &Value) -> Cell {
        match value {
            Value::Unset => Cell::Empty,
            Value::Int(v) => Cell::Int(*v),
            Value::Float(v) => Cell::Real(*v),
            Value::Bool(v) => Cell::Flag(*v),
            Value::Choice(v) => Cell::from(*v),
            Value::Text(v) => Cell::from(v.as_ref()),
            Value::Registered(policy) => Cell::from(policy.name()),
        }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Empty, Into::into)
    }
}

/// The type of a column, and of its parquet column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// INT64.
    Int,
    /// INT64 with the unsigned annotation.
    Unsigned,
    /// DOUBLE; for times in nanoseconds and ratios too.
    Real,
    /// BOOLEAN.
    Flag,
    /// UTF8.
    Text,
}

/// An axis of the sweep as a result column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The dotted key, which is the column's name.
    pub key: String,
    /// Type of its values.
    pub kind: ColumnKind,
}

impl Axis {
    /// Infers the narrowest kind that holds all values of an axis: whole numbers, else numbers, else flags, else text. All values of the sweep must be given,
    /// so that the type does not depend on which experiments were run.
    pub fn infer<'a>(key: impl Into<String>, values: impl IntoIterator<Item = &'a Cell>) -> Axis {
        let mut kind = None;
        for value in values {
            let value_kind = match value {
                Cell::Empty => continue,
                Cell::Int(_) => ColumnKind::Int,
                Cell::Unsigned(v) if i64::try_from(*v).is_ok() => ColumnKind::Int,
                Cell::Unsigned(_) | Cell::Ps(_) | Cell::Micro(_) | Cell::Real(_) => ColumnKind::Real,
                Cell::Flag(_) => ColumnKind::Flag,
                Cell::Text(_) => ColumnKind::Text,
            };
            kind = Some(match (kind, value_kind) {
                (None, value_kind) => value_kind,
                (Some(a), b) if a == b => a,
                (Some(ColumnKind::Int | ColumnKind::Real), ColumnKind::Int | ColumnKind::Real) => ColumnKind::Real,
                _ => ColumnKind::Text,
            });
        }
        Axis { key: key.into(), kind: kind.unwrap_or(ColumnKind::Text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picoseconds_show_as_exact_nanoseconds() {
        let shown: Vec<String> =
            [0, 1, 10, 1_000, 1_500, 123_456_789_012_345_678, u64::MAX].map(|p| Ps(p).to_string()).to_vec();
        assert_eq!(shown, ["0", "0.001", "0.01", "1", "1.5", "123456789012345.678", "18446744073709551.615"]);
    }

    #[test]
    fn ratios_round_half_up_and_never_divide_by_zero() {
        assert_eq!(Micro::ratio(1, 3).to_string(), "0.333333");
        assert_eq!(Micro::ratio(2, 3).to_string(), "0.666667");
        assert_eq!(Micro::ratio(5, 5).to_string(), "1");
        assert_eq!(Micro::ratio(5, 0), Micro(0));
        assert_eq!(Micro::ratio(u128::MAX, 1), Micro(u64::MAX));
    }

    #[test]
    fn doubles_show_the_shortest_decimal_and_nothing_that_is_no_number() {
        let show = |v: f64| Cell::Real(v).to_string();
        assert_eq!(
            [show(0.1), show(400.0), show(0.0), show(1e300), show(2.5e-9)],
            ["0.1", "400", "0", "1e300", "2.5e-9"]
        );
        assert_eq!([show(f64::NAN), show(f64::INFINITY), show(-0.0)], ["", "", "0"]);
    }

    #[test]
    fn numbers_are_nearest_to_what_is_shown() {
        for v in [1, 1_500, (1 << 53) - 1, (1 << 53) + 1, 123_456_789_012_345_678, u64::MAX] {
            for cell in [Cell::Ps(Ps(v)), Cell::Micro(Micro(v))] {
                assert_eq!(cell.number(), cell.to_string().parse().ok(), "{cell}");
            }
        }
        assert_eq!([Cell::Real(f64::NAN).number(), Cell::Empty.number(), Cell::Flag(true).number()], [None; 3]);
    }

    #[test]
    fn an_axis_takes_the_narrowest_kind() {
        let kind = |values: &[Cell]| Axis::infer("k", values).kind;
        assert_eq!(kind(&[Cell::Int(1), Cell::Unsigned(2), Cell::Empty]), ColumnKind::Int);
        assert_eq!(kind(&[Cell::Int(1), Cell::Real(0.5)]), ColumnKind::Real);
        assert_eq!(kind(&[Cell::Flag(true)]), ColumnKind::Flag);
        assert_eq!(kind(&[Cell::Flag(true), Cell::Int(1)]), ColumnKind::Text);
        assert_eq!(kind(&["hpcc".into()]), ColumnKind::Text);
        assert_eq!(kind(&[]), ColumnKind::Text);
    }
}
