//! Switches of a network: what follows from their buffers.

pub(super) mod marking;
