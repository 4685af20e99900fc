//! Writes a picture as SVG.
//!
//! Layer: plot. Names and values are escaped. Characters that XML forbids or that change the direction of text are shown as their codes.

use std::fmt::Write;

use hyperfold_base::printable::printable;

use super::shape::{Anchor, Colour, FigureShape, Picture};

/// The SVG file.
pub(super) fn write(picture: &Picture) -> String {
    let (w, h) = (number(picture.width), number(picture.height));
    let title = escaped(&picture.title);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         font-family=\"'DejaVu Sans', Verdana, sans-serif\">\n\
         <title>{title}</title>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n"
    );
    for shape in &picture.shapes {
        write_shape(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn write_shape(out: &mut String, shape: &FigureShape) {
    let done = match shape {
        FigureShape::Line { points, colour, width, dash } => {
            let dash =
                dash.map_or(String::new(), |[on, off]| format!(" stroke-dasharray=\"{} {}\"", number(on), number(off)));
            writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dash}/>",
                places(points),
                hex(*colour),
                number(*width)
            )
        }
        FigureShape::Polygon { points, fill } => {
            writeln!(out, "<polygon points=\"{}\" fill=\"{}\"/>", places(points), hex(*fill))
        }
        FigureShape::Circle { at: (x, y), radius, fill } => {
            writeln!(
                out,
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>",
                number(*x),
                number(*y),
                number(*radius),
                hex(*fill)
            )
        }
        FigureShape::Text { at: (x, y), text, size, colour, anchor, degrees } => {
            let (x, y) = (number(*x), number(*y));
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let turn = if *degrees == 0.0 {
                String::new()
            } else {
                format!(" transform=\"rotate({} {x} {y})\"", number(*degrees))
            };
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\"{anchor}{turn}>{}</text>",
                number(*size),
                hex(*colour),
                escaped(text)
            )
        }
    };
    done.expect("a string takes every text");
}

fn hex([r, g, b]: Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn places(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect::<Vec<_>>().join(" ")
}

/// A coordinate, rounded to hundredths of a unit.
fn number(value: f64) -> String {
    let text = format!("{:.2}", value + 0.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
