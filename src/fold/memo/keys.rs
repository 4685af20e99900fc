//! Keys of the edges of the memo. An edge stands for an effect of the rest of the experiment on a partition.
//!
//! Layer: fold/memo.

use crate::rows::canonical_key::CanonicalKey;

/// The key of an edge: its kind `tag`, its time `at_ps`, and the rest.
pub(crate) fn edge(tag: u8, at_ps: u64, form: CanonicalKey) -> Vec<u8> {
    let mut key = CanonicalKey(Vec::with_capacity(9 + form.0.len()));
    key.0.push(tag);
    key.u64(at_ps);
    key.0.extend_from_slice(&form.0);
    key.0
}

/// The key of messages that were posted at once.
pub(crate) fn post_key(at_ps: u64, member: u32, bytes: &[u64]) -> Vec<u8> {
    let mut form = CanonicalKey(Vec::with_capacity(4 + 8 * bytes.len()));
    form.u32(member);
    for &b in bytes {
        form.u64(b);
    }
    edge(b'P', at_ps, form)
}

/// The key of a message that follows one that was sent.
pub(crate) fn follow_key(at_ps: u64, member: u32, bytes: u64) -> Vec<u8> {
    let mut form = CanonicalKey(Vec::with_capacity(12));
    form.u32(member);
    form.u64(bytes);
    edge(b'F', at_ps, form)
}
