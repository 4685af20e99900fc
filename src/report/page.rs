//! The page around the data.
//!
//! Layer: report. Puts together the parts in `assets/report`. Nothing that comes from a user becomes markup: the title is escaped, and
//! all else is JSON that the script shows as text.

use std::path::Path;

use super::ReportError;
use super::load::LoadedFolder;
use super::payload::payload;

const TEMPLATE: &str = include_str!("../../assets/report/page.html");
const STYLE: &str = include_str!("../../assets/report/style.css");
/// In this order, as one script.
const SCRIPTS: &[&str] = &[
    include_str!("../../assets/report/core.js"),
    include_str!("../../assets/report/table.js"),
    include_str!("../../assets/report/charts.js"),
    include_str!("../../assets/report/cluster.js"),
    include_str!("../../assets/report/verdict.js"),
    include_str!("../../assets/report/sections.js"),
];

/// The whole page. `dir` is where the companion files are.
///
/// # Errors
/// A companion file is damaged.
pub fn html(loaded: &LoadedFolder, dir: &Path) -> Result<String, ReportError> {
    let data = json_text(&payload(loaded, dir)?.to_string());
    let title = escape(&loaded.manifest.name);
    let mut page = String::with_capacity(data.len() + TEMPLATE.len() + STYLE.len() + 65_536);
    // One pass over the template, so that what is put in is not looked at again.
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("a marker of the template has an end");
        page.push_str(before);
        match name {
            "title" => page.push_str(&title),
            "style" => page.push_str(STYLE),
            "data" => page.push_str(&data),
            "script" => SCRIPTS.iter().for_each(|s| page.push_str(s)),
            other => unreachable!("the template has no marker {other}"),
        }
        rest = after;
    }
    page.push_str(rest);
    Ok(page)
}

/// JSON that can stand in a script element: nothing in it opens or closes an element, a comment or a line.
fn json_text(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // All of these occur in strings only.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => text.push(c),
        }
    }
    text
}

/// Text as HTML.
fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '&' => html.push_str("&amp;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_place() {
        let hostile = "</script><!--<script>\u{2028}&\"";
        let json = serde_json::to_string(hostile).unwrap();
        let text = json_text(&json);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), hostile, "and none is changed");
        assert_eq!(escape("<b onload=\"x\">&'"), "&lt;b onload=&quot;x&quot;&gt;&amp;&#39;");
    }
}
