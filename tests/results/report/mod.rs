//! `report.html`: its numbers are those of the Parquet file, nothing hostile gets out of its place, and it works in a browser.
//!
//! Needs Chromium (`scripts/setup-chromium.sh`) and a Python with pyarrow (`scripts/setup-python.sh`); without them it fails and says so.

mod browser;
mod clusters;
mod command;
mod effects;
mod files;
mod folder;
mod page;
