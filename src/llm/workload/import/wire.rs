//! Protobuf's wire format, as far as execution traces need it.
//!
//! Layer: workload. Values are borrowed from the file's bytes. Nothing is allocated by a length that the file merely claims. It knows no schema: fields are
//! numbers.

/// An error in an encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a varint is longer than 10 bytes")]
    LongVarint,
    #[error("the bytes end inside a value")]
    Truncated,
    #[error("a length of {length} bytes is more than the {left} that are left")]
    Length { length: u64, left: usize },
    #[error("wire type {wire} of field {field} is not one of protobuf 3 (0, 1, 2, 5)")]
    WireType { wire: u8, field: u64 },
    #[error("field {field} is not of the wire type that the schema gives it")]
    Mismatch { field: u64 },
    #[error("field {field} is not UTF-8 text")]
    NotText { field: u64 },
}

/// A field's value as encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// Reads the fields of one message in order.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of bytes that are not read yet.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Reads a base-128 number. Bits beyond 64 are dropped, as other decoders do.
    pub(crate) fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0u64;
        for (i, &byte) in self.rest.iter().enumerate() {
            if i == 10 {
                return Err(WireError::LongVarint);
            }
            value |= u64::from(byte & 0x7f) << (7 * i as u32).min(63);
            if byte < 0x80 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(WireError::Truncated)
    }

    /// Reads a length, then as many bytes.
    pub(crate) fn delimited(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.varint()?;
        let n = usize::try_from(length).ok().filter(|&n| n <= self.rest.len());
        let n = n.ok_or(WireError::Length { length, left: self.rest.len() })?;
        let (bytes, rest) = self.rest.split_at(n);
        self.rest = rest;
        Ok(bytes)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// Reads the next field's number and value; `None` at the end of the message.
    pub(crate) fn field(&mut self) -> Result<Option<(u64, WireValue<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let (field, wire) = (key >> 3, (key & 7) as u8);
        let value = match wire {
            0 => WireValue::Varint(self.varint()?),
            1 => WireValue::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => WireValue::Bytes(self.delimited()?),
            5 => WireValue::Fixed32(u32::from_le_bytes(self.fixed()?)),
            _ => return Err(WireError::WireType { wire, field }),
        };
        Ok(Some((field, value)))
    }
}

impl<'a> WireValue<'a> {
    pub(crate) fn number(self, field: u64) -> Result<u64, WireError> {
        match self {
            WireValue::Varint(v) => Ok(v),
            _ => Err(WireError::Mismatch { field }),
        }
    }

    pub(crate) fn bytes(self, field: u64) -> Result<&'a [u8], WireError> {
        match self {
            WireValue::Bytes(b) => Ok(b),
            _ => Err(WireError::Mismatch { field }),
        }
    }

    pub(crate) fn text(self, field: u64) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes(field)?).map_err(|_| WireError::NotText { field })
    }

    /// Appends the values of a repeated number field, packed or single, to `out`.
    pub(crate) fn numbers(self, field: u64, out: &mut Vec<u64>) -> Result<(), WireError> {
        match self {
            WireValue::Varint(v) => out.push(v),
            WireValue::Bytes(bytes) => {
                let mut r = Reader::new(bytes);
                while !r.is_empty() {
                    out.push(r.varint()?);
                }
            }
            _ => return Err(WireError::Mismatch { field }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_base::protobuf::ProtoMessage;

    #[test]
    fn what_is_written_reads_back() {
        let mut w = ProtoMessage::default();
        w.uint_unless_zero(1, 0).uint(27, 0).uint_unless_zero(9, u64::MAX).packed(5, [1, 300, 0]).text(2, "name");
        let bytes = w.into_bytes();
        let mut r = Reader::new(&bytes);
        assert_eq!(r.field(), Ok(Some((27, WireValue::Varint(0)))));
        assert_eq!(r.field(), Ok(Some((9, WireValue::Varint(u64::MAX)))));
        let (field, deps) = r.field().unwrap().unwrap();
        let mut numbers = Vec::new();
        deps.numbers(field, &mut numbers).unwrap();
        assert_eq!((field, numbers), (5, vec![1, 300, 0]));
        assert_eq!(r.field().unwrap().unwrap().1.text(2), Ok("name"));
        assert_eq!(r.field(), Ok(None));
    }

    #[test]
    fn broken_encodings_are_told() {
        assert_eq!(Reader::new(&[0x80; 12]).varint(), Err(WireError::LongVarint));
        assert_eq!(Reader::new(&[0x80]).varint(), Err(WireError::Truncated));
        assert_eq!(
            Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x7f, 1]).delimited(),
            Err(WireError::Length { length: 0x7_ffff_ffff, left: 1 })
        );
        assert_eq!(Reader::new(&[3 << 3 | 3]).field(), Err(WireError::WireType { wire: 3, field: 3 }));
        assert_eq!(Reader::new(&[1 << 3 | 1, 0]).field(), Err(WireError::Truncated));
    }
}
