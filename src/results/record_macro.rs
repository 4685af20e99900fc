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
    /// Its line in the reference.
    pub line: ColumnLine,
}

/// What the reference says of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnLine {
    /// Heading of the column.
    pub name: &'static str,
    /// Unit of its values if they are times; else what they are, in words.
    pub values: &'static str,
    /// What it says of a row, as sentences.
    pub text: &'static str,
    /// Page below `docs` that has more about it, with a heading: `how-to/monitor.md#an-example`.
    pub see: Option<&'static str>,
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
/// A doc comment stands before each field and each computed column. That of a column is its text in the reference: it calls an absent value empty, and names
/// units, except those of times, which follow from the type. `name see "page#heading"` adds a link to that page of `docs`.
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
            $(#[doc = $text:literal])+
            pub $field:ident: $type:ty
            $(=> $column:ident $(see $page:literal)? $(or $default:ident)?)?
            $([$(
                $(#[doc = $computed_text:literal])+
                $computed:ident $(see $computed_page:literal)?: $shown:ty = $value:expr
            ),+ $(,)?])?
        ),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $(
                $(#[doc = $text])+
                $(
                    #[doc = concat!(" Column `", stringify!($column), "` of its file.")]
                    $(#[doc = concat!(" `docs/", $page, "` has more.")])?
                )?
                $($(
                    #[doc = concat!("\n\n Column `", stringify!($computed), "` of its file:", $($computed_text),+)]
                    $(#[doc = concat!(" `docs/", $computed_page, "` has more.")])?
                )+)?
                pub $field: $type,
            )+
        }

        impl $name {
            /// Its columns, in order.
            pub const COLUMNS: &'static [$crate::record_macro::FileColumn<$row>] = {
                // Not every field has a column, and not every record.
                #[allow(dead_code)]
                struct Texts {
                    $($field: &'static str,)+
                }
                #[allow(dead_code)]
                const TEXTS: Texts = Texts { $($field: concat!($($text),+),)+ };
                &[$(
                    $($crate::record_macro::record!(
                        @column $is_row, $row, $name, $part; $column: $type, TEXTS.$field, [$($page)?],
                        |own| $crate::record_macro::Shown::cell(&own.$field)
                    ),)?
                    $($($crate::record_macro::record!(
                        @column $is_row, $row, $name, $part; $computed: $shown, concat!($($computed_text),+), [$($computed_page)?],
                        |own| {
                            let value: fn(&$name) -> $shown = $value;
                            $crate::record_macro::Shown::cell(&value(own))
                        }
                    ),)+)?
                )+]
            };
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
    (@column $is_row:literal, $row:ident, $name:ident, $part:expr; $column:ident: $type:ty, $text:expr, [$($page:literal)?], $cell:expr) => {
        $crate::record_macro::FileColumn {
            name: stringify!($column),
            kind: <$type as $crate::record_macro::Shown>::KIND,
            required: $is_row && <$type as $crate::record_macro::Shown>::IS_REQUIRED,
            cell: |row| {
                let part: fn(&$row) -> Option<&$name> = $part;
                let cell: fn(&$name) -> $crate::value::Cell = $cell;
                part(row).map_or($crate::value::Cell::Empty, cell)
            },
            line: $crate::record_macro::ColumnLine {
                name: stringify!($column),
                values: <$type as $crate::record_macro::Shown>::VALUES,
                text: $text.trim_ascii(),
                see: $crate::record_macro::record!(@see $($page)?),
            },
        }
    };
    (@see) => {
        None
    };
    (@see $page:literal) => {
        Some($page)
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
    /// Unit of the values if they are times; else what they are, in words.
    const VALUES: &'static str;
    /// Whether there always is a value.
    const IS_REQUIRED: bool = true;

    fn cell(&self) -> Cell;

    /// Reads the text of a field. The error says what it must be.
    fn read(text: &str) -> Result<Self, &'static str>;
}

macro_rules! shown {
    ($($type:ty: $kind:ident, $values:literal, $want:literal, $read:expr;)*) => {
        $(impl Shown for $type {
            const KIND: ColumnKind = ColumnKind::$kind;
            const VALUES: &'static str = $values;
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
    i64: Int, "whole number", "a whole number", |text| text.parse().ok();
    u32: Unsigned, "whole number", "a whole number of 0 or more", |text| text.parse().ok();
    u64: Unsigned, "whole number", "a whole number of 0 or more", |text| text.parse().ok();
    f64: Real, "number", "a number", |text| text.parse().ok().filter(|v: &f64| v.is_finite());
    bool: Flag, "true or false", "true or false", |text| text.parse().ok();
    Ps: Real, "ns", "nanoseconds with up to three decimals", |text| scaled(text, 3).map(Ps);
    Micro: Real, "number", "a number with up to six decimals", |text| scaled(text, 6).map(Micro);
    Ms: Real, "s", "seconds with up to three decimals", |text| scaled(text, 3).map(Ms);
}

impl Shown for String {
    const KIND: ColumnKind = ColumnKind::Text;
    const VALUES: &'static str = "text";
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
    const VALUES: &'static str = "text";
    fn cell(&self) -> Cell {
        Cell::from(&**self)
    }
    fn read(text: &str) -> Result<Self, &'static str> {
        Ok(text.into())
    }
}

impl<T: Shown> Shown for Option<T> {
    const KIND: ColumnKind = T::KIND;
    const VALUES: &'static str = T::VALUES;
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
            /// Number of a flow.
            pub flow: u64 => flow_id,
            /// Share of a rate.
            pub share: f64 => share see "glossary.md" or default,
            /// Time of something
            /// that happened.
            pub time: Option<Ps> => time_ns [
                /// Twice the number.
                twice see "tutorial.md#first": u64 = |sample| 2 * sample.flow,
            ],
            /// What only the journal has.
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
    fn doc_comments_are_the_lines_of_the_reference() {
        let line = |name, values, text, see| ColumnLine { name, values, text, see };
        let lines: Vec<ColumnLine> = EachKind::COLUMNS.iter().map(|column| column.line).collect();
        assert_eq!(
            lines,
            [
                line("flow_id", "whole number", "Number of a flow.", None),
                line("share", "number", "Share of a rate.", Some("glossary.md")),
                line("time_ns", "ns", "Time of something that happened.", None),
                line("twice", "whole number", "Twice the number.", Some("tutorial.md#first")),
            ]
        );
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
