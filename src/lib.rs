//! Hyperfold.
