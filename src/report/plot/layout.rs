//! Layout of a figure: makes shapes of its titles, axes with ticks, marks and lines, and legend.
//!
//! Layer: plot.

use super::figure::{AxisScale, Figure, FigurePoint, Form, Series};
use super::font;
use super::paint::{FAINT, GRID, INK, colour, dash, mark};
use super::shape::{Anchor, Colour, FigureShape, Picture};
use super::ticks::Ruler;
use hyperfold_base::printable::printable;

/// Width and height of the area in which points are drawn.
const FIELD: (f64, f64) = (560.0, 340.0);
const TEXT: f64 = 12.0;
const TITLE: f64 = 15.0;
const LINE: f64 = 18.0;
const GAP: f64 = 8.0;
/// Largest width of the text of a tick, and of an entry in the legend.
const TICK_WIDTH: f64 = 160.0;
const ENTRY_WIDTH: f64 = 220.0;
/// Rotation in degrees of tick texts that would overlap.
const TURN: f64 = -35.0;
/// Cosine and sine of [`TURN`], without their signs.
const TURNED: (f64, f64) = (0.819_152, 0.573_576);

/// Lays a figure out.
pub(super) fn shapes(figure: &Figure) -> Picture {
    let all_values = |value: fn(&FigurePoint) -> Vec<f64>| -> Vec<f64> {
        figure.series.iter().flat_map(|s| &s.points).flat_map(value).collect()
    };
    let x = Ruler::new(&figure.x, &all_values(|p| vec![p.x]), figure.form != Form::Steps);
    let y = Ruler::new(&figure.y, &all_values(|p| vec![p.y, p.range.0, p.range.1]), false);
    let plain = |text: &str| -> String { printable(text).into_owned() };
    let x_texts: Vec<String> =
        x.ticks.iter().map(|(_, t)| font::cut_in_the_middle(&plain(t), TEXT, TICK_WIDTH)).collect();
    let y_texts: Vec<String> =
        y.ticks.iter().map(|(_, t)| font::cut_in_the_middle(&plain(t), TEXT, TICK_WIDTH)).collect();
    let widest = |texts: &[String]| texts.iter().map(|t| font::width(t, TEXT)).fold(0.0, f64::max);
    let entries: Vec<String> =
        figure.series.iter().map(|s| font::cut_in_the_middle(&plain(&s.label), TEXT, ENTRY_WIDTH)).collect();
    let has_legend = !figure.legend.is_empty();
    let legend_title = font::cut(&plain(&figure.legend), TEXT, ENTRY_WIDTH + 30.0);
    let legend = if has_legend { 16.0 + (30.0 + widest(&entries)).max(font::width(&legend_title, TEXT)) } else { 0.0 };
    let legend_height = LINE * (entries.len() as f64 + 1.0);
    // Texts below the axis are rotated if they would overlap.
    let closest = x.ticks.windows(2).map(|t| (t[1].0 - t[0].0) * FIELD.0).fold(FIELD.0, f64::min);
    let turned = widest(&x_texts) + GAP > closest;
    let below = if turned { 14.0 + TURNED.1 * widest(&x_texts) + TEXT } else { 10.0 + TEXT };
    let left = 16.0
        + TEXT
        + GAP
        + widest(&y_texts).max(if turned {
            TURNED.0 * font::width(x_texts.first().map_or("", |t| t), TEXT) - 40.0
        } else {
            0.0
        })
        + GAP;
    let (width, field_height) =
        (left + FIELD.0 + legend + 24.0, FIELD.1.max(if has_legend { legend_height } else { 0.0 }));
    let top = if figure.note.is_empty() { 44.0 } else { 44.0 + LINE };
    let (right, bottom) = (left + FIELD.0, top + field_height);
    let place_x = |v: f64| left + x.place(v) * FIELD.0;
    let place_y = |v: f64| bottom - y.place(v) * field_height;

    let mut shapes = Vec::new();
    let text = |at, text: String, size, colour: Colour, anchor, degrees| FigureShape::Text {
        at,
        text,
        size,
        colour,
        anchor,
        degrees,
    };
    let line = |points: Vec<(f64, f64)>, colour, width| FigureShape::Line { points, colour, width, dash: None };
    let title = plain(&figure.title);
    shapes.push(text((left, 24.0), font::cut(&title, TITLE, width - left - 16.0), TITLE, INK, Anchor::Start, 0.0));
    if !figure.note.is_empty() {
        let note = font::cut(&plain(&figure.note), TEXT, width - left - 16.0);
        shapes.push(text((left, 24.0 + LINE), note, TEXT, FAINT, Anchor::Start, 0.0));
    }
    for ((tick, _), shown) in y.ticks.iter().zip(&y_texts) {
        let y = bottom - tick * field_height;
        shapes.push(line(vec![(left, y), (right, y)], GRID, 1.0));
        shapes.push(text((left - GAP, y + 0.35 * TEXT), shown.clone(), TEXT, INK, Anchor::End, 0.0));
    }
    let words = matches!(figure.x.scale, AxisScale::Categories(_));
    for ((tick, _), shown) in x.ticks.iter().zip(&x_texts) {
        let x = left + tick * FIELD.0;
        if !words {
            shapes.push(line(vec![(x, top), (x, bottom)], GRID, 1.0));
        }
        shapes.push(line(vec![(x, bottom), (x, bottom + 4.0)], FAINT, 1.0));
        shapes.push(if turned {
            text((x + 4.0, bottom + 8.0 + 0.7 * TEXT), shown.clone(), TEXT, INK, Anchor::End, TURN)
        } else {
            text((x, bottom + 8.0 + 0.8 * TEXT), shown.clone(), TEXT, INK, Anchor::Middle, 0.0)
        });
    }
    shapes.push(line(vec![(left, top), (left, bottom), (right, bottom)], FAINT, 1.0));
    let labels =
        [(&x.label, FIELD.0), (&y.label, field_height)].map(|(l, max_width)| font::cut(&plain(l), TEXT, max_width));
    shapes.push(text((left + FIELD.0 / 2.0, bottom + below + LINE), labels[0].clone(), TEXT, INK, Anchor::Middle, 0.0));
    shapes.push(text(
        (16.0 + 0.3 * TEXT, top + field_height / 2.0),
        labels[1].clone(),
        TEXT,
        INK,
        Anchor::Middle,
        -90.0,
    ));

    let n = figure.series.len();
    // Marks of one category are drawn side by side.
    let slot = if words { FIELD.0 / x.ticks.len().max(1) as f64 * 0.7 / n as f64 } else { 0.0 };
    for (i, series) in figure.series.iter().enumerate() {
        let aside = slot * (i as f64 - (n as f64 - 1.0) / 2.0);
        draw_series(&mut shapes, figure, series, i, |v| place_x(v) + aside, place_y);
    }
    if has_legend {
        let x = right + 16.0;
        shapes.push(text((x, top + 0.8 * TEXT), legend_title, TEXT, FAINT, Anchor::Start, 0.0));
        for (i, entry) in entries.into_iter().enumerate() {
            let y = top + LINE * (i as f64 + 1.0) + 0.5 * TEXT;
            if figure.form != Form::Points && !words {
                shapes.push(FigureShape::Line {
                    points: vec![(x, y), (x + 22.0, y)],
                    colour: colour(i),
                    width: 1.8,
                    dash: dash(i),
                });
            }
            if figure.form != Form::Steps {
                shapes.push(mark(i, (x + 11.0, y), 4.0));
            }
            shapes.push(text((x + 30.0, y + 0.35 * TEXT), entry, TEXT, INK, Anchor::Start, 0.0));
        }
    }
    Picture { width, height: bottom + below + LINE + 14.0, title, shapes }
}

/// Adds the lines, ranges and marks of one series.
fn draw_series(
    shapes: &mut Vec<FigureShape>,
    figure: &Figure,
    series: &Series,
    number: usize,
    place_x: impl Fn(f64) -> f64,
    place_y: impl Fn(f64) -> f64,
) {
    let x = |p: &FigurePoint| place_x(p.x);
    let colour = colour(number);
    let words = matches!(figure.x.scale, AxisScale::Categories(_));
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for p in &series.points {
        if figure.form == Form::Steps
            && let Some((_, before)) = joined.last().copied()
        {
            joined.push((x(p), before));
        }
        joined.push((x(p), place_y(p.y)));
    }
    if joined.len() > 1 && figure.form != Form::Points && !words {
        shapes.push(FigureShape::Line { points: joined, colour, width: 1.8, dash: dash(number) });
    }
    if figure.form == Form::Steps {
        return;
    }
    for p in &series.points {
        if p.range.0 < p.range.1 {
            let (x, low, high) = (x(p), place_y(p.range.0), place_y(p.range.1));
            for points in [
                vec![(x, low), (x, high)],
                vec![(x - 3.0, low), (x + 3.0, low)],
                vec![(x - 3.0, high), (x + 3.0, high)],
            ] {
                shapes.push(FigureShape::Line { points, colour, width: 1.0, dash: None });
            }
        }
        let radius = if figure.form == Form::Points { 3.0 } else { 4.0 };
        shapes.push(mark(number, (x(p), place_y(p.y)), radius));
    }
}
