//! The documents against the code.

mod columns;
mod pages;
mod presets;
