//! Messages of protocol buffers as bytes: the one writer, of timelines for Perfetto and of Chakra traces.
//!
//! Layer: the lowest. Fields are written in the order of the calls. It knows no message's meaning, and reads none.

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    /// Writes seven bits per byte, least significant first.
    fn varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.0.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.0.push(v as u8);
    }

    /// Writes a whole number: `uint32`, `uint64`, `enum`, `bool`, and nonnegative `int32` and `int64`. Zero is written, too: a member of a oneof must be
    /// present to be the chosen one.
    pub fn uint(&mut self, field: u64, v: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(v);
        self
    }

    /// Writes a whole number, and leaves zero out as protobuf 3 does.
    pub fn uint_unless_zero(&mut self, field: u64, v: u64) -> &mut Self {
        if v == 0 { self } else { self.uint(field, v) }
    }

    /// Writes a packed repeated number; an empty one is left out.
    pub fn packed(&mut self, field: u64, values: impl IntoIterator<Item = u64>) -> &mut Self {
        let mut inner = ProtoMessage::default();
        values.into_iter().for_each(|v| inner.varint(v));
        if inner.0.is_empty() { self } else { self.nested(field, inner) }
    }

    /// Writes a `string`.
    pub fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }

    /// Writes a message inside this one.
    pub fn message(&mut self, field: u64, build: impl FnOnce(&mut ProtoMessage)) -> &mut Self {
        let mut inner = ProtoMessage::default();
        build(&mut inner);
        self.nested(field, inner)
    }

    /// Writes a complete message inside this one.
    pub fn nested(&mut self, field: u64, inner: ProtoMessage) -> &mut Self {
        self.bytes(field, &inner.0)
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.append(bytes);
        self
    }

    /// Appends a message with its length before it and no field, as a file of many messages holds them.
    pub fn append_message(&mut self, message: &ProtoMessage) {
        self.append(&message.0);
    }

    fn append(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// The bytes written so far.
    pub fn into_bytes(self) -> Vec<u8> {
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
            m.uint(1, 1 << 63).uint(16, 0).uint_unless_zero(2, 0);
        });
        let expected: &[u8] = &[
            0x08, 0x96, 0x01, 0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g', 0x1a, 14, 0x08, 0x80, 0x80, 0x80,
            0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x80, 0x01, 0x00,
        ];
        assert_eq!(m.into_bytes(), expected);
        let mut m = ProtoMessage::default();
        m.packed(4, [3, 270, 86_942]).packed(5, []);
        assert_eq!(m.0, [0x22, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5], "the example of the specification");
        let mut file = ProtoMessage::default();
        file.append_message(&m);
        assert_eq!(file.into_bytes()[..2], [8, 0x22]);
    }
}
