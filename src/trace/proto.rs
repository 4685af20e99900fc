//! Encodes protocol-buffer messages as bytes, with the few wire types that a trace needs.
//!
//! Layer: trace. Fields are written in the order of the calls. It knows no message's meaning.

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    /// Writes seven bits per byte, least significant first.
    fn varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.0.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.0.push(v as u8);
    }

    /// Writes a whole number: `uint32`, `uint64`, `enum`, `bool`, and nonnegative `int32` and `int64`.
    pub(super) fn uint(&mut self, field: u32, v: u64) -> &mut Self {
        self.varint(u64::from(field) << 3);
        self.varint(v);
        self
    }

    /// Writes a `string`.
    pub(super) fn text(&mut self, field: u32, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }

    /// Writes a message inside this one.
    pub(super) fn message(&mut self, field: u32, build: impl FnOnce(&mut ProtoMessage)) -> &mut Self {
        let mut inner = ProtoMessage::default();
        build(&mut inner);
        self.bytes(field, &inner.0)
    }

    /// Writes a complete message inside this one.
    pub(super) fn nested(&mut self, field: u32, inner: ProtoMessage) -> &mut Self {
        self.bytes(field, &inner.0)
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// The bytes written so far.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_the_specification_says() {
        let mut m = ProtoMessage::default();
        m.uint(1, 150).text(2, "testing").message(3, |m| {
            m.uint(1, 1 << 63).uint(16, 0);
        });
        let expected: &[u8] = &[
            0x08, 0x96, 0x01, 0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g', 0x1a, 14, 0x08, 0x80, 0x80, 0x80,
            0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x80, 0x01, 0x00,
        ];
        assert_eq!(m.into_bytes(), expected);
    }
}
