//! Builds the HTML page around the data.
//!
//! Layer: report. It puts together the parts in `assets/report`. Nothing that a user wrote becomes markup: the title is escaped, and everything else is JSON
//! that the script shows as text.

use std::path::Path;

use hyperfold_base::printable::{is_plain, printable};

use super::error::ReportError;
use super::payload::payload;
use hyperfold_analysis::recommendation::load::LoadedFolder;

const TEMPLATE: &str = include_str!("../../../assets/report/page.html");
const STYLE: &str = include_str!("../../../assets/report/style.css");
/// Scripts of the page, joined in this order.
const SCRIPTS: &[&str] = &[
    include_str!("../../../assets/report/core.js"),
    include_str!("../../../assets/report/table.js"),
    include_str!("../../../assets/report/charts.js"),
    include_str!("../../../assets/report/cluster.js"),
    include_str!("../../../assets/report/verdict.js"),
    include_str!("../../../assets/report/sections.js"),
];

/// The whole page. `dir` is the folder of the companion files.
///
/// # Errors
/// A companion file is damaged.
pub fn html(loaded: &LoadedFolder, dir: &Path) -> Result<String, ReportError> {
    let data = json_text(&payload(loaded, dir)?.to_string());
    let title = escape(&printable(&loaded.manifest.name));
    let mut page = String::with_capacity(data.len() + TEMPLATE.len() + STYLE.len() + 65_536);
    // The template is read in a single pass, so that inserted text is not searched for markers.
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

/// Escapes JSON for a script element: nothing in it can open or close an element, a comment or a line. Characters that would change how others are displayed
/// become their codes as text.
fn json_text(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // These characters occur only in strings.
            '<' | '>' | '&' => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if is_plain(c) || c == '\n' => text.push(c),
            c => text.push_str(&format!("\\\\u{{{:x}}}", u32::from(c))),
        }
    }
    text
}

/// Escapes text for HTML.
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
        let hostile = "</script><!--<script>&\"";
        let json = serde_json::to_string(hostile).unwrap();
        let text = json_text(&json);
        assert!(!text.contains(['<', '>', '&']), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), hostile, "and none is changed");
        let turned = json_text(&serde_json::to_string("a\u{2028}\u{202e}\u{e0041}b").unwrap());
        assert_eq!(serde_json::from_str::<String>(&turned).unwrap(), "a\\u{2028}\\u{202e}\\u{e0041}b");
        assert_eq!(escape("<b onload=\"x\">&'"), "&lt;b onload=&quot;x&quot;&gt;&amp;&#39;");
    }
}
