//! Declares records: a field stands once, and from that come the struct, its columns, its bytes in the journal, and its reading back.
//!
//! Layer: results. Knows no record and no file.

use std::sync::Arc;

use super::value::{Cell, ColumnKind, Micro, Ms, Ps};

/// A column of a file of results. `Row` is the record that a row shows.
pub struct FileColumn<Row: 'static> {
    /// Heading of the column.
    pub name: &'static str,
    /// Type of its values in Parquet files.
    pub kind: ColumnKind,
    /// Whether every row has a value in it.
    pub required: bool,
    /// Returns its value in a row.
    pub cell: fn(&Row) -> Cell,
}

/// What [`record`] gives beside a struct, its columns and [`super::bytes::Code`].
pub(crate) trait Declared: Sized {
    /// The names of the record and its fields, in the order of its bytes.
    const LAYOUT: &'static str;

    /// Reads the fields that have columns. Others get their type's default.
    fn read(row: &TextRow) -> Result<Self, BadField>;
}

/// Declares a record. Its fields stand in the order of the journal's bytes, and their columns in the order of the file.
///
/// A field may be added anywhere: journals of earlier builds lack it, and it is read as its type's default. A field whose type changes needs another name.
///
/// | a field with | has |
/// |---|---|
/// | `=> name` | a column |
/// | `=> name or default` | a column that older files lack; there it is read as the type's default |
/// | `[name: Type = \|record\| ...]` | columns that are computed; they follow its own |
/// | none of these | no column: only the journal has it |
///
/// The columns of a `(part of Row: |row| ...)` are columns of that record's file, and empty in rows without the part.
macro_rules! record {
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $crate::record_macro::record! { @declare true, $name, |row| Some(row); $(#[$meta])* $name { $($fields)* } }
    };
    ($(#[$meta:meta])* pub struct $name:ident (part of $row:ident: $part:expr) { $($fields:tt)* }) => {
        $crate::record_macro::record! { @declare false, $row, $part; $(#[$meta])* $name { $($fields)* } }
    };
    (@declare $is_row:literal, $row:ident, $part:expr; $(#[$meta:meta])* $name:ident {
        $(
            $(#[$field_meta:meta])*
            pub $field:ident: $type:ty
            $(=> $column:ident $(or $default:ident)?)?
            $([$($computed:ident: $shown:ty = $value:expr),+ $(,)?])?
        ),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                $(#[doc = concat!("Column `", stringify!($column), "` of its file.")])?
                pub $field: $type,
            )+
        }

        impl $name {
            /// Its columns, in order.
            pub const COLUMNS: &'static [$crate::record_macro::FileColumn<$row>] = &[$(
                $($crate::record_macro::record!(@column $is_row, $row, $name, $part; $column: $type, |own| $crate::record_macro::Shown::cell(&own.$field)),)?
                $($($crate::record_macro::record!(@column $is_row, $row, $name, $part; $computed: $shown, |own| {
                    let value: fn(&$name) -> $shown = $value;
                    $crate::record_macro::Shown::cell(&value(own))
                }),)+)?
            )+];
        }

        impl $crate::record_macro::Declared for $name {
            const LAYOUT: &'static str = concat!(stringify!($name), "(", $(stringify!($field), ",",)+ ")");

            fn read(_row: &$crate::record_macro::TextRow) -> Result<Self, $crate::record_macro::BadField> {
                Ok($name { $($field: $crate::record_macro::record!(@read _row, $type $(, $column $($default)?)?),)+ })
            }
        }

        impl $crate::bytes::Code for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $($crate::bytes::Code::put(&self.$field, out);)+
            }
            fn get(input: &mut $crate::bytes::ByteInput) -> Option<Self> {
                Some($name { $(
                    $field: if input.lacks(stringify!($name), stringify!($field)) {
                        <$type>::default()
                    } else {
                        $crate::bytes::Code::get(input)?
                    },
                )+ })
            }
        }
    };
    (@column $is_row:literal, $row:ident, $name:ident, $part:expr; $column:ident: $type:ty, $cell:expr) => {
        $crate::record_macro::FileColumn {
            name: stringify!($column),
            kind: <$type as $crate::record_macro::Shown>::KIND,
            required: $is_row && <$type as $crate::record_macro::Shown>::IS_REQUIRED,
            cell: |row| {
                let part: fn(&$row) -> Option<&$name> = $part;
                let cell: fn(&$name) -> $crate::value::Cell = $cell;
                part(row).map_or($crate::value::Cell::Empty, cell)
            },
        }
    };
    (@read $row:ident, $type:ty) => {
        <$type>::default()
    };
    (@read $row:ident, $type:ty, $column:ident) => {
        $row.value::<$type>(stringify!($column))?
    };
    (@read $row:ident, $type:ty, $column:ident $default:ident) => {
        match $row.text(stringify!($column)) {
            "" => <$type>::$default(),
            _ => $row.value::<$type>(stringify!($column))?,
        }
    };
}
pub(crate) use record;

/// A type that a column can show.
pub(crate) trait Shown: Sized {
    const KIND: ColumnKind;
    /// Whether there always is a value.
    const IS_REQUIRED: bool = true;

    fn cell(&self) -> Cell;

    /// Reads the text of a field. The error says what it must be.
    fn read(text: &str) -> Result<Self, &'static str>;
}

macro_rules! shown {
    ($($type:ty: $kind:ident, $want:literal, $read:expr;)*) => {
        $(impl Shown for $type {
            const KIND: ColumnKind = ColumnKind::$kind;
            fn cell(&self) -> Cell {
                Cell::from(*self)
            }
            fn read(text: &str) -> Result<Self, &'static str> {
                let read: fn(&str) -> Option<$type> = $read;
                read(text).ok_or($want)
            }
        })*
    };
}
shown! {
    i64: Int, "a whole number", |text| text.parse().ok();
    u32: Unsigned, "a whole number of 0 or more", |text| text.parse().ok();
    u64: Unsigned, "a whole number of 0 or more", |text| text.parse().ok();
    f64: Real, "a number", |text| text.parse().ok().filter(|v: &f64| v.is_finite());
    bool: Flag, "true or false", |text| text.parse().ok();
    Ps: Real, "nanoseconds with up to three decimals", |text| scaled(text, 3).map(Ps);
    Micro: Real, "a number with up to six decimals", |text| scaled(text, 6).map(Micro);
    Ms: Real, "seconds with up to three decimals", |text| scaled(text, 3).map(Ms);
}

impl Shown for String {
    const KIND: ColumnKind = ColumnKind::Text;
    fn cell(&self) -> Cell {
        Cell::from(self.as_str())
    }
    fn read(text: &str) -> Result<Self, &'static str> {
        Ok(text.to_string())
    }
}

/// A name that many rows share.
impl Shown for Arc<str> {
    const KIND: ColumnKind = ColumnKind::Text;
    fn cell(&self) -> Cell {
        Cell::from(&**self)
    }
    fn read(text: &str) -> Result<Self, &'static str> {
        Ok(text.into())
    }
}

impl<T: Shown> Shown for Option<T> {
    const KIND: ColumnKind = T::KIND;
    const IS_REQUIRED: bool = false;
    fn cell(&self) -> Cell {
        self.as_ref().map_or(Cell::Empty, T::cell)
    }
    fn read(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() { Ok(None) } else { T::read(text).map(Some) }
    }
}

/// Parses a decimal in units of `10^-digits`; `None` if it is no decimal, has more digits or does not fit.
fn scaled(text: &str, digits: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > digits || whole.is_empty() || !whole.bytes().chain(part.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok()
}

/// A row of a CSV file, with the names of its columns.
pub(crate) struct TextRow<'a> {
    pub names: &'a csv::StringRecord,
    pub fields: &'a csv::StringRecord,
}

/// A field that does not hold what its column must.
pub(crate) struct BadField {
    pub column: &'static str,
    /// A description of values that would be right.
    pub want: &'static str,
}

impl TextRow<'_> {
    /// Returns a field's text; empty if the file has no such column.
    pub(crate) fn text(&self, column: &str) -> &str {
        self.names.iter().position(|name| name == column).and_then(|i| self.fields.get(i)).unwrap_or("")
    }

    /// Reads a field.
    pub(crate) fn value<T: Shown>(&self, column: &'static str) -> Result<T, BadField> {
        T::read(self.text(column)).map_err(|want| BadField { column, want })
    }
}

#[cfg(test)]
mod tests {
    // Records are public, and this one is only for the tests.
    #![allow(unreachable_pub)]

    use super::*;

    record! {
        /// A record of each kind of field.
        pub struct EachKind {
            pub flow: u64 => flow_id,
            pub share: f64 => share or default,
            pub time: Option<Ps> => time_ns [twice: u64 = |sample| 2 * sample.flow],
            pub hidden: u8,
        }
    }

    fn read(names: &[&str], fields: &[&str]) -> Result<EachKind, (&'static str, &'static str)> {
        let (names, fields) = (names.to_vec().into(), fields.to_vec().into());
        EachKind::read(&TextRow { names: &names, fields: &fields }).map_err(|bad| (bad.column, bad.want))
    }

    #[test]
    fn columns_are_those_of_the_fields_and_what_is_computed() {
        let columns = EachKind::COLUMNS.iter().map(|c| (c.name, c.kind, c.required));
        assert_eq!(
            columns.collect::<Vec<_>>(),
            [
                ("flow_id", ColumnKind::Unsigned, true),
                ("share", ColumnKind::Real, true),
                ("time_ns", ColumnKind::Real, false),
                ("twice", ColumnKind::Unsigned, true)
            ]
        );
        let sample = EachKind { flow: 3, share: 0.5, ..EachKind::default() };
        let cells: Vec<Cell> = EachKind::COLUMNS.iter().map(|c| (c.cell)(&sample)).collect();
        assert_eq!(cells, [Cell::Unsigned(3), Cell::Real(0.5), Cell::Empty, Cell::Unsigned(6)]);
    }

    #[test]
    fn a_column_that_a_file_lacks_is_read_where_the_declaration_allows_it() {
        let whole = EachKind { flow: 3, share: 0.5, time: Some(Ps(1_500)), hidden: 0 };
        assert_eq!(read(&["time_ns", "flow_id", "share"], &["1.5", "3", "0.5"]), Ok(whole));
        assert_eq!(read(&["flow_id"], &["3"]), Ok(EachKind { flow: 3, ..EachKind::default() }));
        assert_eq!(read(&["share"], &["0.5"]), Err(("flow_id", "a whole number of 0 or more")));
        assert_eq!(read(&["flow_id", "share"], &["3", "x"]), Err(("share", "a number")));
    }

    #[test]
    fn decimals_read_back_exactly() {
        let three = |t| scaled(t, 3);
        assert_eq!(
            [three("0"), three("1.5"), three("0.001"), three("18446744073709551.615")],
            [Some(0), Some(1_500), Some(1), Some(u64::MAX)]
        );
        assert_eq!(
            [three(""), three("."), three("1.2345"), three("-1"), three("1e3"), three("18446744073709551.616")],
            [None; 6]
        );
    }
}
