//! Memory: what a rank's GPU holds over an iteration, and whether it fits.
//!
//! Layer: memory. Pure arithmetic on a model and its parallel layout; knows no network.
