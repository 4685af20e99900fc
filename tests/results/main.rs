//! What a run leaves behind: files, failures, resumed runs, comparisons and the report.

#![forbid(unsafe_code)]

mod compare;
mod failures;
mod files;
#[cfg(unix)]
mod output;
mod python;
mod report;
mod resume;

#[path = "../support/mod.rs"]
mod support;
