//! From a network, flows and tasks to the rows that engines step.

pub(crate) mod build_joined;
pub mod build_tables;
pub(crate) mod build_tasks;
mod exp_row;
pub(crate) mod job_rows;
mod link_ends;
pub(crate) mod network_changes;
pub mod packet_case;
mod path_choices;
pub(crate) mod task_row_cache;
