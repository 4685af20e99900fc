//! Writes a picture as PNG.
//!
//! Layer: plot. The rasteriser computes the same on every machine (its SIMD is off), and the font is part of the program.

use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::OutlineBuilder;

use super::error::PlotError;
use super::font;
use super::shape::{Anchor, Colour, FigureShape, Picture};

/// Pixels per unit, along each side.
const SCALE: f64 = 2.0;

/// The PNG file.
pub(super) fn write(picture: &Picture) -> Result<Vec<u8>, PlotError> {
    let side = |units: f64| (units * SCALE).ceil() as u32;
    let mut pixels = Pixmap::new(side(picture.width), side(picture.height))
        .ok_or_else(|| PlotError::Paint(format!("{} by {} is no size", picture.width, picture.height)))?;
    pixels.fill(Color::WHITE);
    for shape in &picture.shapes {
        draw(&mut pixels, shape);
    }
    pixels.encode_png().map_err(|e| PlotError::Paint(e.to_string()))
}

fn draw(pixels: &mut Pixmap, shape: &FigureShape) {
    let scale = Transform::from_scale(SCALE as f32, SCALE as f32);
    match shape {
        FigureShape::Line { points, colour, width, dash } => {
            let stroke = Stroke {
                width: *width as f32,
                line_cap: LineCap::Butt,
                line_join: LineJoin::Round,
                dash: dash.and_then(|[on, off]| StrokeDash::new(vec![on as f32, off as f32], 0.0)),
                ..Stroke::default()
            };
            if let Some(path) = path(points, false) {
                pixels.stroke_path(&path, &paint(*colour), &stroke, scale, None);
            }
        }
        FigureShape::Polygon { points, fill } => {
            if let Some(path) = path(points, true) {
                pixels.fill_path(&path, &paint(*fill), FillRule::Winding, scale, None);
            }
        }
        FigureShape::Circle { at: (x, y), radius, fill } => {
            if let Some(path) = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32) {
                pixels.fill_path(&path, &paint(*fill), FillRule::Winding, scale, None);
            }
        }
        FigureShape::Text { at, text, size, colour, anchor, degrees } => {
            let back = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => font::width(text, *size) / 2.0,
                Anchor::End => font::width(text, *size),
            };
            let mut outlines = PathBuilder::new();
            let factor =
                font::outline(text, *size, |x, glyph| glyph(&mut Outline { path: &mut outlines, x_offset: x as f32 }))
                    as f32;
            if let Some(path) = outlines.finish() {
                let place = scale
                    .pre_translate(at.0 as f32, at.1 as f32)
                    .pre_concat(Transform::from_rotate(*degrees as f32))
                    .pre_translate(-back as f32, 0.0)
                    .pre_scale(factor, -factor);
                pixels.fill_path(&path, &paint(*colour), FillRule::Winding, place, None);
            }
        }
    }
}

fn paint([r, g, b]: Colour) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(r, g, b, 255);
    paint.anti_alias = true;
    paint
}

fn path(points: &[(f64, f64)], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, *y as f32);
        if i == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
    if closed {
        path.close();
    }
    path.finish()
}

/// Adds glyphs to one path, each at its own x position.
struct Outline<'a> {
    path: &'a mut PathBuilder,
    x_offset: f32,
}

impl OutlineBuilder for Outline<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.x_offset + x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.x_offset + x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.quad_to(self.x_offset + x1, y1, self.x_offset + x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.path.cubic_to(self.x_offset + x1, y1, self.x_offset + x2, y2, self.x_offset + x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
