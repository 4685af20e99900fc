//! Colours, marks and dashes that distinguish series, also without colours.
//!
//! Layer: plot.

use super::shape::{Colour, FigureShape};

pub(super) const INK: Colour = [0x22, 0x22, 0x22];
pub(super) const FAINT: Colour = [0x66, 0x66, 0x66];
pub(super) const GRID: Colour = [0xe2, 0xe2, 0xe2];

/// Okabe and Ito's palette for all kinds of colour vision, without its yellow, which is hard to see on white.
const COLOURS: [Colour; 7] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0x56, 0xb4, 0xe9],
    [0xe6, 0x9f, 0x00],
    [0x00, 0x00, 0x00],
];
const DASHES: [Option<[f64; 2]>; 4] = [None, Some([6.0, 3.0]), Some([2.0, 2.5]), Some([10.0, 4.0])];

/// Colour of a series.
pub(super) fn colour(series: usize) -> Colour {
    COLOURS[series % COLOURS.len()]
}

/// Dashes of a series. Lines are solid until the colours repeat.
pub(super) fn dash(series: usize) -> Option<[f64; 2]> {
    DASHES[series / COLOURS.len() % DASHES.len()]
}

/// Mark of a series at a position.
pub(super) fn mark(series: usize, (x, y): (f64, f64), radius: f64) -> FigureShape {
    let fill = colour(series);
    let polygon = |corners: &[(f64, f64)]| FigureShape::Polygon {
        points: corners.iter().map(|(dx, dy)| (x + dx * radius, y + dy * radius)).collect(),
        fill,
    };
    match series % 5 {
        0 => FigureShape::Circle { at: (x, y), radius, fill },
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        _ => polygon(&[(-1.1, -0.8), (1.1, -0.8), (0.0, 1.2)]),
    }
}
