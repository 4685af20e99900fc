//! The program as a user meets it: help, messages, exit codes, `doctor`, `submit`.

mod corpus;
mod doctor;
mod messages;
#[cfg(unix)]
mod submit;
mod usage;

#[path = "../support/mod.rs"]
mod support;
