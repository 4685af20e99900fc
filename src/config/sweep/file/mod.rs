//! The content of a sweep file: sections, axes, included files, and names of keys with their places.
//!
//! Layer: sweep. Checks what is written; expands nothing.

pub(super) mod axis;
pub(super) mod document;
pub(super) mod include;
pub(super) mod key_names;
mod sweep_text;
