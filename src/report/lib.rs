//! Pages and figures that people look at after a run.
//!
//! | module | content |
//! |---|---|
//! | [`page`] | the page: verdict, ranking, tables and charts in one HTML file |
//! | [`plot`] | figures as SVG and PNG |
//!
//! It reads folders of results and never simulates. All that others wrote is escaped before it reaches a page.
//! Start with `page/html.rs`.

#![forbid(unsafe_code)]

pub mod page;
pub mod plot;
