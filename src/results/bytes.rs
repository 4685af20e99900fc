//! Values as bytes of the journal.
//!
//! Layer: results. Numbers are little-endian and of fixed width, doubles keep their bits, an option is a byte and its value, a list is its length and its
//! items. The bytes do not describe themselves: [`super::journal_codec`] says what follows what.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::value::{Cell, Micro, Ms, Ps};

/// Fields, as pairs of a record's and a field's name.
pub(crate) type FieldNames = BTreeSet<(String, String)>;

/// Bytes that values are read from.
pub(crate) struct ByteInput<'a> {
    /// The bytes that are not read yet.
    pub rest: &'a [u8],
    /// Fields that the records do not have, because an earlier build wrote them.
    pub lacking: &'a FieldNames,
}

impl ByteInput<'_> {
    /// Whether records of this name do not have the field.
    pub(crate) fn lacks(&self, record: &str, field: &str) -> bool {
        !self.lacking.is_empty() && self.lacking.iter().any(|(of_record, name)| of_record == record && name == field)
    }
}

/// A value that can be written to and read from bytes.
pub(crate) trait Code: Sized {
    fn put(&self, out: &mut Vec<u8>);
    /// Reads a value and removes it from the front of `input`. `None` if the bytes are not such a value.
    fn get(input: &mut ByteInput) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Code for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn get(input: &mut ByteInput) -> Option<Self> {
                let (first, rest) = input.rest.split_first_chunk()?;
                input.rest = rest;
                Some(<$number>::from_le_bytes(*first))
            }
        })*
    };
}
numbers!(u8, u32, u64, i64, f64);

macro_rules! wrapped {
    ($($outer:ident),*) => {
        $(impl Code for $outer {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
            fn get(input: &mut ByteInput) -> Option<Self> {
                Code::get(input).map($outer)
            }
        })*
    };
}
wrapped!(Ps, Micro, Ms);

impl Code for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }
    fn get(input: &mut ByteInput) -> Option<Self> {
        match u8::get(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Code> Code for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn get(input: &mut ByteInput) -> Option<Self> {
        if bool::get(input)? { T::get(input).map(Some) } else { Some(None) }
    }
}

impl<T: Code> Code for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_ref().put(out);
    }
    fn get(input: &mut ByteInput) -> Option<Self> {
        T::get(input).map(Box::new)
    }
}

impl<T: Code> Code for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|item| item.put(out));
    }
    fn get(input: &mut ByteInput) -> Option<Self> {
        let items = u64::get(input)?;
        // Every item has at least one byte, so an impossible length allocates nothing.
        if items > input.rest.len() as u64 {
            return None;
        }
        (0..items).map(|_| T::get(input)).collect()
    }
}

/// A name that many rows share; the bytes are those of a text.
impl Code for Arc<str> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(input: &mut ByteInput) -> Option<Self> {
        String::get(input).map(Arc::from)
    }
}

impl Code for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(input: &mut ByteInput) -> Option<Self> {
        let bytes = usize::try_from(u64::get(input)?).ok()?;
        let (text, rest) = input.rest.split_at_checked(bytes)?;
        input.rest = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl Code for Cell {
    fn put(&self, out: &mut Vec<u8>) {
        fn tagged(out: &mut Vec<u8>, tag: u8, value: &impl Code) {
            tag.put(out);
            value.put(out);
        }
        match self {
            Cell::Empty => 0u8.put(out),
            Cell::Int(v) => tagged(out, 1, v),
            Cell::Unsigned(v) => tagged(out, 2, v),
            Cell::Ps(v) => tagged(out, 3, v),
            Cell::Micro(v) => tagged(out, 4, v),
            Cell::Real(v) => tagged(out, 5, v),
            Cell::Flag(v) => tagged(out, 6, v),
            Cell::Text(v) => tagged(out, 7, v),
        }
    }
    fn get(input: &mut ByteInput) -> Option<Self> {
        Some(match u8::get(input)? {
            0 => Cell::Empty,
            1 => Cell::Int(Code::get(input)?),
            2 => Cell::Unsigned(Code::get(input)?),
            3 => Cell::Ps(Code::get(input)?),
            4 => Cell::Micro(Code::get(input)?),
            5 => Cell::Real(Code::get(input)?),
            6 => Cell::Flag(Code::get(input)?),
            7 => Cell::Text(Code::get(input)?),
            _ => return None,
        })
    }
}
