//! What a run leaves behind: files, failures, resumed runs, comparisons and the report.

#![forbid(unsafe_code)]

mod averages;
mod backfill;
mod classes;
mod clusters;
mod compare;
mod cut_through;
mod damage;
mod failing_links;
mod failures;
mod files;
mod fixed_points;
mod flowlets;
mod impaired_links;
mod iterations;
mod job_rows;
mod losses;
mod old_folders;
#[cfg(unix)]
mod output;
mod pause_watchdog;
mod paused_times;
mod pipelines;
mod python;
mod registered;
mod report;
mod resume;
mod series;
mod shards;
mod small_runs;
mod traffic_classes;
mod ultra_ethernet;

#[path = "../support/mod.rs"]
mod support;
