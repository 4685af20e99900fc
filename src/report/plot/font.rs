//! The font of the program: widths of texts, and their outlines.
//!
//! Layer: plot. DejaVu Sans (`assets/fonts`) with Latin, Greek and Cyrillic; other characters are drawn as a box.

use std::sync::OnceLock;

use ttf_parser::{Face, OutlineBuilder};

const BYTES: &[u8] = include_bytes!("../../../assets/fonts/DejaVuSans.ttf");

fn face() -> &'static Face<'static> {
    static FACE: OnceLock<Face<'static>> = OnceLock::new();
    FACE.get_or_init(|| Face::parse(BYTES, 0).expect("the font is part of the program"))
}

/// Font units per unit of text size.
fn em() -> f64 {
    f64::from(face().units_per_em())
}

/// Glyph of each character, and its advance in font units.
fn glyphs(text: &str) -> impl Iterator<Item = (ttf_parser::GlyphId, u16)> + '_ {
    text.chars().map(|c| {
        let glyph = face().glyph_index(c).unwrap_or_default();
        (glyph, face().glyph_hor_advance(glyph).unwrap_or(0))
    })
}

/// Width of a text of size `size`.
pub(super) fn width(text: &str, size: f64) -> f64 {
    glyphs(text).map(|(_, advance)| f64::from(advance)).sum::<f64>() / em() * size
}

/// Calls `draw` with the outline of each character and its x position, from left to right, y upwards, in font units. Returns the factor that scales them to
/// `size`.
pub(super) fn outline(text: &str, size: f64, mut draw: impl FnMut(f64, &dyn Fn(&mut dyn OutlineBuilder))) -> f64 {
    let mut x = 0.0;
    for (glyph, advance) in glyphs(text) {
        draw(x, &|builder| {
            face().outline_glyph(glyph, builder);
        });
        x += f64::from(advance);
    }
    size / em()
}

/// The text, cut at its end to a width.
pub(super) fn cut(text: &str, size: f64, max_width: f64) -> String {
    if width(text, size) <= max_width {
        return text.to_string();
    }
    format!("{}…", cut_plain(text.chars(), size, max_width - width("…", size)).trim_end())
}

/// The text, cut in its middle to a width: one third of the space is for its beginning, the rest for its end. A label is a name and then its value, and the
/// value distinguishes labels.
pub(super) fn cut_in_the_middle(text: &str, size: f64, max_width: f64) -> String {
    if width(text, size) <= max_width {
        return text.to_string();
    }
    let fits = max_width - width("…", size);
    let head = cut_plain(text.chars(), size, fits / 3.0);
    let tail: String = cut_plain(text.chars().rev(), size, fits - width(&head, size)).chars().rev().collect();
    format!("{}…{}", head.trim_end(), tail.trim_start())
}

/// The longest prefix of the characters that fits into a width.
fn cut_plain(chars: impl Iterator<Item = char>, size: f64, max_width: f64) -> String {
    let mut kept = String::new();
    for c in chars {
        kept.push(c);
        if width(&kept, size) > max_width {
            kept.pop();
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_values() {
        let [a, b] =
            ["dcqcn", "hpcc"].map(|cc| cut_in_the_middle(&format!("a.very.long.name.of.a.key = {cc}"), 12.0, 90.0));
        assert!(a.starts_with('a') && a.ends_with("= dcqcn") && width(&a, 12.0) <= 90.0, "{a}");
        assert!(b.ends_with("= hpcc") && a != b, "{b}");
        assert_eq!(cut_in_the_middle("short", 12.0, 90.0), "short");
    }

    #[test]
    fn texts_are_measured_and_cut() {
        assert!(width("iiii", 12.0) < width("MMMM", 12.0) && width("", 12.0) == 0.0 && width("\u{4e2d}", 12.0) > 0.0);
        assert_eq!(cut("short", 12.0, 100.0), "short");
        let long = cut(&"wide ".repeat(50), 12.0, 100.0);
        assert!(long.ends_with('…') && width(&long, 12.0) <= 100.0, "{long}");
    }

    #[test]
    fn every_character_that_figures_write_is_in_the_font() {
        for c in (' '..='~').chain("…µ×±–—→≤≥äöüéñ".chars()) {
            assert!(face().glyph_index(c).is_some(), "{c}");
        }
    }
}
