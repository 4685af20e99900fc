//! The flow level: rates against an independent solver, times against algebra, the same bytes however it is run.

#![forbid(unsafe_code)]

mod alone;
mod changing_links;
mod closed_forms;
mod dense;
mod joined;
mod lockstep;
mod rates;
mod runs;

#[path = "../support/mod.rs"]
mod support;
