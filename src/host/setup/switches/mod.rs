//! Switches of a network: their chips, and what follows from their buffers.

pub(crate) mod chips;
pub(super) mod marking;
