//! A figure before its layout: two axes, and series of points.
//!
//! Layer: plot. A leaf. Values are in the units of the results.

use super::quantity::Quantity;

/// A figure: title, axes and series.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub(super) title: String,
    /// Explanation of the points, if they need one. May be empty.
    pub(super) note: String,
    pub(super) x: FigureAxis,
    pub(super) y: FigureAxis,
    /// Names of the columns that distinguish the series. Empty if there is one series.
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

/// Mapping from values to positions on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AxisScale {
    Linear,
    Log,
    /// Values are indices of these names.
    Categories(Vec<String>),
}

/// Style in which points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Marks with their ranges, joined by lines if the x axis has numbers.
    Lines,
    /// Marks without lines.
    Points,
    /// Steps without marks, for a distribution.
    Steps,
}

/// Points of one series, ascending by x.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) label: String,
    pub(super) points: Vec<FigurePoint>,
}

/// A point, which stands for one or several values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FigurePoint {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Smallest and largest of its values.
    pub(super) range: (f64, f64),
}

impl FigurePoint {
    /// A point that stands for one value.
    pub(super) fn of(x: f64, y: f64) -> FigurePoint {
        FigurePoint { x, y, range: (y, y) }
    }
}
