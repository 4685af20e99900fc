//! Text that other people wrote, as a reader may have it: names, values, paths, messages of drivers, contents of files.
//!
//! Layer: the lowest. Terminals obey control characters, line breaks end a message and begin another, and marks of direction turn
//! around what follows them. So each such character is shown as its code. Colours are added afterwards, by whoever prints.

use std::borrow::Cow;

/// Whether a character is shown as it is: it steers no terminal, breaks no line, changes no direction, and is no invisible one.
pub fn is_plain(c: char) -> bool {
    match c {
        ' '..='~' => true,
        c if c.is_control() => false,
        // Invisible ones, and those that change how neighbours are drawn: soft hyphen, joiners, fillers, variation selectors.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' => false,
        '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => false,
        // Marks of direction and of width, ends of lines and paragraphs, signs of annotations.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff0}'..='\u{fffb}' => false,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => false,
        // Tags, and the selectors beside them.
        '\u{e0000}'..='\u{e0fff}' => false,
        // Code points that are no characters.
        c => !matches!(u32::from(c) & 0xfffe, 0xfffe) && !('\u{fdd0}'..='\u{fdef}').contains(&c),
    }
}

/// The text on one line, with the code of each character in the place of those that are not plain.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c, out| out.extend(c.escape_default()))
}

/// A text of several lines on one: each run of white space becomes one space.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first `limit` characters of a text, with `...` behind them if there are more.
pub fn shortened(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// JSON as a program wrote it, with JSON's own codes for characters that are not plain. Line breaks between values stay.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    escaped(json, |c, out| match c {
        // They occur between values only: inside a string they are codes already.
        '\n' | '\t' => out.push(c),
        c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
    })
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = text.find(|c| !is_plain(c)) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_plain(c) { out.push(c) } else { escape(c, &mut out) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_printed_steers_a_terminal() {
        for (text, shown) in [
            ("a\u{1b}]0;title\u{7}b", "a\\u{1b}]0;title\\u{7}b"),
            ("\u{1b}[3Jgone\r", "\\u{1b}[3Jgone\\r"),
            ("\u{1b}[9A\u{1b}[31mred", "\\u{1b}[9A\\u{1b}[31mred"),
            ("\u{9b}1A", "\\u{9b}1A"),
            ("two\nlines\tand", "two\\nlines\\tand"),
            ("x\u{202e}gpj.exe", "x\\u{202e}gpj.exe"),
            ("a\u{2028}b\u{2029}c\u{2066}", "a\\u{2028}b\\u{2029}c\\u{2066}"),
            ("tag\u{e0041}\u{e007f}", "tag\\u{e0041}\\u{e007f}"),
            ("\u{fe0f}\u{200d}\u{feff}\u{ad}", "\\u{fe0f}\\u{200d}\\u{feff}\\u{ad}"),
            ("\u{1ffff}\u{fdd0}", "\\u{1ffff}\\u{fdd0}"),
        ] {
            assert_eq!(printable(text), shown);
            assert_eq!(printable(shown), shown, "what is escaped is not escaped again");
        }
        for plain in ["a \u{3b1} \u{2192} caf\u{e9} \u{4e2d}\u{6587}", "", "back\\slash", "\u{fffd}"] {
            assert!(matches!(printable(plain), Cow::Borrowed(same) if same == plain));
        }
    }

    #[test]
    fn texts_are_joined_and_cut_between_characters() {
        assert_eq!(one_line("a\n  b\tc "), "a b c");
        assert_eq!(
            [shortened("\u{e9}\u{e9}\u{e9}", 2), shortened("abc", 3), shortened("", 0)],
            ["\u{e9}\u{e9}...", "abc", ""]
        );
    }

    #[test]
    fn json_stays_json_of_the_same_text() {
        let text = "a\u{202e}b\u{e0041}\n\u{1b}[2J\"";
        let json = serde_json::to_string(text).unwrap();
        let shown = printable_json(&json);
        assert!(shown.chars().all(is_plain), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        let pretty = format!("{:#}", serde_json::json!({ "a": [text] }));
        assert_eq!(printable_json(&pretty).lines().count(), pretty.lines().count());
    }
}
