//! Shapes of a figure after its layout, in units from the upper left corner.
//!
//! Layer: plot. A leaf.

/// A picture as a list of shapes, in the order in which they are painted. The background is white.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Description of the picture for readers who cannot see it.
    pub(super) title: String,
    pub(super) shapes: Vec<FigureShape>,
}

/// Red, green and blue of a colour.
pub(super) type Colour = [u8; 3];

/// A shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FigureShape {
    Line { points: Vec<(f64, f64)>, colour: Colour, width: f64, dash: Option<[f64; 2]> },
    Polygon { points: Vec<(f64, f64)>, fill: Colour },
    Circle { at: (f64, f64), radius: f64, fill: Colour },
    Text { at: (f64, f64), text: String, size: f64, colour: Colour, anchor: Anchor, degrees: f64 },
}

/// Which part of a text is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}
