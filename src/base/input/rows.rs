//! Tables with a limit on the length of a row: reading stops if a row does not end.
//!
//! Layer: the lowest. Otherwise a file without line breaks, such as one that consists of holes, would become a single row as large as the file.

use std::io::{self, Error, Read};

/// Maximum number of bytes in a row.
pub(super) const MAX_ROW_BYTES: u64 = 16 << 20;

/// Passes on bytes of CSV until a row gets too long.
#[derive(Debug)]
pub struct Rows<R> {
    inner: R,
    max_bytes: u64,
    /// Bytes since the end of the last row.
    row_bytes: u64,
    state: Place,
}

/// The position of the next byte in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the beginning of a field, where a quote opens a quoted field.
    FieldStart,
    InField,
    InQuotes,
    /// After a quote inside quotes, which ends the field or is the first of two.
    AfterQuote,
}

impl<R: Read> Rows<R> {
    /// Limits rows to [`MAX_ROW_BYTES`].
    pub fn new(inner: R) -> Rows<R> {
        Rows { inner, max_bytes: MAX_ROW_BYTES, row_bytes: 0, state: Place::FieldStart }
    }

    fn count(&mut self, bytes: &[u8]) {
        // Without quotes only the last line break matters.
        if self.state != Place::InQuotes && self.state != Place::AfterQuote && !bytes.contains(&b'"') {
            match bytes.iter().rposition(|b| *b == b'\n') {
                Some(end) => self.row_bytes = (bytes.len() - end - 1) as u64,
                None => self.row_bytes += bytes.len() as u64,
            }
            self.state = match bytes.last() {
                Some(b',' | b'\n') => Place::FieldStart,
                Some(_) => Place::InField,
                None => self.state,
            };
            return;
        }
        for &byte in bytes {
            self.row_bytes += 1;
            self.state = match (self.state, byte) {
                (Place::FieldStart | Place::AfterQuote, b'"') => Place::InQuotes,
                (Place::InQuotes, b'"') => Place::AfterQuote,
                (Place::InQuotes, _) => Place::InQuotes,
                (_, b'\n') => {
                    self.row_bytes = 0;
                    Place::FieldStart
                }
                (_, b',') => Place::FieldStart,
                (Place::FieldStart, b' ' | b'\t' | b'\r') => Place::FieldStart,
                _ => Place::InField,
            };
        }
    }
}

impl<R: Read> Read for Rows<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count(&buffer[..n]);
        if self.row_bytes > self.max_bytes {
            return Err(Error::other(format!(
                "a row is longer than {} MiB; this is no table, or it is damaged",
                self.max_bytes >> 20
            )));
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads bytes in pieces of some length, until the end or an error.
    fn read(text: &[u8], max_bytes: u64, piece: usize) -> io::Result<Vec<u8>> {
        let mut rows = Rows { max_bytes, ..Rows::new(text) };
        let mut all = Vec::new();
        loop {
            let mut buffer = vec![0; piece];
            match rows.read(&mut buffer)? {
                0 => return Ok(all),
                n => all.extend_from_slice(&buffer[..n]),
            }
        }
    }

    #[test]
    fn rows_that_end_are_handed_on_and_others_are_refused() {
        for piece in [1, 3, 64, 1000] {
            for fine in [
                "a,b\n1,2\n".repeat(50),
                "a,\"x\ny\"\n".repeat(50),
                "\"a\"\"\n\"\"\",b\n".repeat(20),
                "it's 5\" wide,b\n".repeat(20),
                "a,\"\"\n".repeat(50),
            ] {
                assert_eq!(read(fine.as_bytes(), 64, piece).unwrap(), fine.as_bytes(), "{piece}");
            }
            for endless in
                ["x".repeat(2000), "a,b\n".to_string() + &"\0".repeat(2000), "a,\"".to_string() + &"\n".repeat(2000)]
            {
                let why = read(endless.as_bytes(), 64, piece).unwrap_err().to_string();
                assert!(why.contains("a row is longer than"), "{why}");
            }
        }
    }

    #[test]
    fn a_file_of_holes_is_given_up_soon() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(100 << 30).unwrap();
        let mut reader = csv::Reader::from_reader(Rows::new(file));
        let why = reader.headers().unwrap_err().to_string();
        assert!(why.contains("16 MiB"), "{why}");
    }
}
