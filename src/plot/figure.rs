//! A figure before it is laid out: two axes, and series of points.
//!
//! Layer: plot. A leaf. Values are in the units of the results.

use super::quantity::Quantity;

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub(super) title: String,
    /// What the points are, where that is not plain; may be empty.
    pub(super) note: String,
    pub(super) x: FigureAxis,
    pub(super) y: FigureAxis,
    /// What the series differ in; empty where there is one.
    pub(super) legend: String,
    pub(super) series: Vec<Series>,
    pub(super) form: Form,
}

/// One of the two axes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FigureAxis {
    pub(super) label: String,
    pub(super) quantity: Quantity,
    pub(super) scale: AxisScale,
}

/// How values become places.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AxisScale {
    Linear,
    Log,
    /// Values are indices of these.
    Categories(Vec<String>),
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Marks with their ranges, joined by lines where the x axis has numbers.
    Lines,
    /// Marks alone.
    Points,
    /// A distribution: steps without marks.
    Steps,
}

/// Points that belong together, ascending by x.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) label: String,
    pub(super) points: Vec<FigurePoint>,
}

/// A point, and what it stands for where that is several values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FigurePoint {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Least and most.
    pub(super) range: (f64, f64),
}

impl FigurePoint {
    /// A point of one value.
    pub(super) fn of(x: f64, y: f64) -> FigurePoint {
        FigurePoint { x, y, range: (y, y) }
    }
}
