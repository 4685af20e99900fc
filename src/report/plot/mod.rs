//! Figures of a folder's columns, which `hyperfold plot` draws as SVG or PNG.
//!
//! Layer: plot, beside report. [`columns`], [`distribution`] and [`over_time`] make a [`Figure`] of results, [`layout`] makes shapes of it, and [`svg`] and [`png`] write
//! these. The same results give the same bytes on every machine, because the font is part of the program and nothing is asked of the system. It opens no file
//! for writing and prints nothing.

mod columns;
mod distribution;
mod error;
mod figure;
mod filter;
mod font;
mod layout;
mod network;
mod over_time;
mod paint;
mod png;
mod quantity;
mod shape;
mod svg;
mod ticks;

#[cfg(test)]
mod tests;

pub use columns::{ColumnFigure, figure_of_columns};
pub use distribution::{DISTRIBUTIONS, DistributionFigure, figure_of_distribution};
pub use error::PlotError;
pub use figure::Figure;
pub use filter::keep_rows;
pub use network::{NetworkPicture, network_picture};
pub use over_time::{OVER_TIME, OverTimeFigure, figure_over_time};

impl Figure {
    /// Adds text to the note below the title. Does nothing if the text is empty.
    pub fn add_note(&mut self, text: &str) {
        if !text.is_empty() {
            let sign = if self.note.is_empty() { "" } else { "; " };
            self.note = format!("{}{sign}{text}", self.note);
        }
    }

    /// The figure as an SVG file.
    pub fn to_svg(&self) -> Vec<u8> {
        svg::write(&layout::shapes(self)).into_bytes()
    }

    /// The figure as a PNG file, with two pixels per unit.
    ///
    /// # Errors
    /// There is not enough memory for the picture.
    pub fn to_png(&self) -> Result<Vec<u8>, PlotError> {
        png::write(&layout::shapes(self))
    }
}
