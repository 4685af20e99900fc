//! How the experiments of a sweep come from its axes.
//!
//! Layer: sweep. A leaf.

/// How the experiments of a sweep come from its axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Every combination of the axes' values.
    Grid,
    /// The first values of all axes, then the second values of all, and so on.
    Zip,
    /// The experiments that the file lists one by one.
    List,
    /// Points drawn at random.
    Random,
    /// Points drawn by Latin hypercube sampling, so that each axis is covered evenly.
    Lhs,
    /// The candidates are those of `grid` or, if an axis is a range, those of `lhs`. The run decides which of them are simulated.
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
