//! The program as a user meets it: help, messages, exit codes, `doctor`, `submit`.

#![forbid(unsafe_code)]

mod calibrate;
mod corpus;
mod doctor;
#[cfg(unix)]
mod hostile;
mod inputs;
mod memory;
mod messages;
mod plot;
mod release;
mod shells;
#[cfg(unix)]
mod submit;
mod topo;
mod usage;
mod watch;

#[path = "../support/mod.rs"]
mod support;
