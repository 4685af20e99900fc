//! How the experiments of a sweep come from its axes.
//!
//! Layer: sweep. A leaf.

/// How experiments come from axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Grid,
    Zip,
    List,
    Random,
    Lhs,
    /// Candidates as `grid` gives them, or where an axis is a range as `lhs` does; which of them are run is the run's to find out.
    Optimize,
}

impl Method {
    pub(super) const ALL: [Method; 6] =
        [Method::Grid, Method::Zip, Method::List, Method::Random, Method::Lhs, Method::Optimize];

    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Grid => "grid",
            Method::Zip => "zip",
            Method::List => "list",
            Method::Random => "random",
            Method::Lhs => "lhs",
            Method::Optimize => "optimize",
        }
    }
}
