//! Conditions: expressions over names that are true or false.
//!
//! Layer: sweep. Values, operators and their precedence are as in Rust, so that texts compare and `a == b && c == d` means what it says. This module recognises
//! words and limits sizes. The caller defines what names mean: keys in a sweep's constraints, columns where results are compared.

use super::condition_code::{ConditionCode, ConditionLiteral, Token};
pub use super::condition_value::Val;

/// Maximum number of characters of one condition; then its most nested brackets.
const MAX_CHARS: usize = 4096;
const MAX_DEPTH: usize = 32;

/// Returns the length in bytes of the literal at the start of `text`.
fn literal_len(text: &str) -> Option<usize> {
    let b = text.as_bytes();
    match b.first()? {
        b'"' => b[1..].iter().position(|c| *c == b'"').map(|i| i + 2),
        b'0'..=b'9' => {
            let digits =
                |start: usize| start + b[start..].iter().take_while(|c| c.is_ascii_digit() || **c == b'_').count();
            let mut end = digits(0);
            if b.get(end) == Some(&b'.') && b.get(end + 1).is_some_and(u8::is_ascii_digit) {
                end = digits(end + 1);
            }
            if matches!(b.get(end), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(b.get(end + 1), Some(b'+' | b'-')));
                if b.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
                    end = digits(end + 1 + sign);
                }
            }
            Some(end)
        }
        _ => {
            let word = &text[..word_len(text)];
            matches!(word, "true" | "false").then_some(word.len())
        }
    }
}

/// Returns the length in bytes of the dotted word at the start of `text`.
fn word_len(text: &str) -> usize {
    text.bytes().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'-')).count()
}

/// The names that a condition may use.
pub trait ConditionNames {
    /// Whether there is such a name.
    fn knows(&self, name: &str) -> bool;

    /// Returns a message about an unknown name, as half a sentence.
    fn unknown(&self, name: &str) -> String;

    /// Returns a condition as an example, for messages.
    fn example(&self) -> &'static str;
}

/// A condition ready to be evaluated many times.
#[derive(Debug)]
pub struct Condition {
    code: ConditionCode,
    /// Its names, in the order in which they are written, each once.
    written: Vec<String>,
}

impl Condition {
    /// Parses a condition. The error says what is wrong with it.
    pub fn parse(text: &str, names: &dyn ConditionNames) -> Result<Condition, String> {
        let (tokens, written) = tokens(text, names)?;
        let code = ConditionCode::compile(tokens)
            .ok_or_else(|| format!("it is not a condition; write for example {}", names.example()))?;
        Ok(Condition { code, written })
    }

    /// Returns its names, in the order in which they are written, each once.
    pub fn names(&self) -> &[String] {
        &self.written
    }

    /// Whether it is true. `value` returns the values of its names, by their index in [`Condition::names`]. The error says why it cannot be evaluated.
    pub fn holds<'v>(&'v self, value: impl Fn(usize) -> Val<'v>) -> Result<bool, String> {
        match self.code.evaluate(value) {
            Val::Bool(b) => Ok(b),
            Val::Error(why) => Err(why.to_string()),
            other => Err(format!("it gives {}, and must give true or false; compare with ==, < or >", other.kind())),
        }
    }
}

/// Returns a character as messages show it.
fn shown(c: char) -> String {
    if matches!(c, '"' | '\'') { c.to_string() } else { c.escape_default().to_string() }
}

/// Returns the tokens of a condition, each checked, and its names.
fn tokens(text: &str, names: &dyn ConditionNames) -> Result<(Vec<Token>, Vec<String>), String> {
    if text.len() > MAX_CHARS {
        return Err(format!("it has {} characters; {MAX_CHARS} is the most", text.len()));
    }
    let mut out = Vec::new();
    let mut written: Vec<String> = Vec::new();
    let (mut rest, mut depth, mut previous_is_value) = (text, 0usize, false);
    while let Some(c) = rest.chars().next() {
        let (len, is_value) = if c.is_whitespace() {
            rest = &rest[c.len_utf8()..];
            continue;
        } else if let Some(len) = literal_len(rest) {
            let literal = &rest[..len];
            out.push(Token::Literal(
                ConditionLiteral::parse(literal).ok_or_else(|| format!("`{literal}` is not a number"))?,
            ));
            (len, true)
        } else if c.is_ascii_alphabetic() || c == '_' {
            // `a.b-c` is a name only if such a name is known; else the minus sign is an operator.
            let mut len = word_len(rest);
            while !names.knows(&rest[..len]) && rest[..len].contains('-') {
                len = rest[..len].rfind('-').expect("the loop's condition found one");
            }
            let word = &rest[..len];
            if !names.knows(word) {
                let sign = [("and", "&&"), ("or", "||"), ("not", "!")].into_iter().find(|(known, _)| *known == word);
                return Err(match sign {
                    Some((_, sign)) => format!("write `{sign}` for `{word}`"),
                    None => names.unknown(word),
                });
            }
            let place = written.iter().position(|w| w == word).unwrap_or_else(|| {
                written.push(word.to_string());
                written.len() - 1
            });
            out.push(Token::Name(place));
            (len, true)
        } else {
            let op = ["||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "(", ")"]
                .into_iter()
                .find(|op| rest.starts_with(op));
            let Some(op) = op else {
                let what = if c == '"' || c == '\'' {
                    "texts stand in double quotes, opened and closed".to_string()
                } else if c == '=' {
                    "did you mean `==`?".to_string()
                } else {
                    "it takes names, numbers, texts in double quotes, ( ) and || && == != < <= > >= + - * / % !"
                        .to_string()
                };
                return Err(format!("`{}` is not understood; {what}", shown(c)));
            };
            depth = match op {
                "(" => depth + 1,
                ")" => depth.checked_sub(1).ok_or("a `)` has no `(`")?,
                _ => depth,
            };
            if depth > MAX_DEPTH {
                return Err(format!("brackets are nested more than {MAX_DEPTH} deep"));
            }
            if op == "(" && previous_is_value {
                return Err("an operator is missing before `(`".to_string());
            }
            out.push(Token::Sign(op));
            rest = &rest[op.len()..];
            previous_is_value = op == ")";
            continue;
        };
        if previous_is_value && is_value {
            return Err(format!("an operator is missing before `{}`", &rest[..len]));
        }
        previous_is_value = is_value;
        rest = &rest[len..];
    }
    match (depth, out.is_empty()) {
        (_, true) => Err(format!("it is empty; write a condition, for example {}", names.example())),
        (0, _) => Ok((out, written)),
        _ => Err("a `(` has no `)`".to_string()),
    }
}
