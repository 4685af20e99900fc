//! The declaration of a key, and reading TOML values against it.
//!
//! Layer: spec. The declarations themselves are in `keys`.

use hyperfold_base::nearest::nearest;
use std::any::Any;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::aliases::meant_value;
use super::applies_when::mode_reads;
use super::key_id::KeyId;
use super::registered::{PolicyRegistry, REGISTRABLE};
use super::value::{Value, Values};

/// Type and range of a key.
#[derive(Clone, Copy, Debug)]
pub enum KeyKind {
    /// A whole number within bounds.
    Int {
        /// Least value that is allowed.
        min: i64,
        /// Largest value that is allowed.
        max: i64,
    },
    /// A number that must be a whole multiple of `quantum` (0: any number).
    Float {
        /// Least value that is allowed.
        min: f64,
        /// Largest value that is allowed.
        max: f64,
        /// Step between values; 0: any number.
        quantum: f64,
    },
    /// A truth value: `true` or `false`.
    Bool,
    /// One of `now`; `later` are known, but not available in this version.
    Choice {
        /// Values that can be written.
        now: &'static [&'static str],
        /// Values that another version may have.
        later: &'static [&'static str],
    },
    /// Free text.
    Text,
    /// Free text, or a list of numbers and texts, kept as one text with commas.
    TextOrList,
    /// A file, relative to the sweep file's folder.
    Path,
    /// A file, or a folder or prefix that names several, relative to the sweep file's folder.
    Files,
    /// The name of an asset, a file that ends in `.toml`, or an inline table, kept as its canonical TOML text.
    Named,
}

/// The value of a key that is not written.
#[derive(Clone, Copy)]
pub enum Default {
    /// The key is this whole number.
    Int(i64),
    /// The key is this number.
    Float(f64),
    /// The key is this truth value.
    Bool(bool),
    /// The key is this one of its choices.
    Choice(&'static str),
    /// The key is this text.
    Text(&'static str),
    /// No value; the text says what happens then.
    None(&'static str),
    /// Computed from other keys that are declared before it or have plain defaults; the text says how.
    Derived(fn(&Values) -> Value, &'static str),
}

/// The declaration of one key. Parsing, `--set`, axes, the template, the reference and suggestions are all derived from it.
pub struct Key {
    /// Number by which the code names the key.
    pub id: KeyId,
    /// Dotted name, as below `[base]`.
    pub name: &'static str,
    /// Type and range of its values.
    pub kind: KeyKind,
    /// Value where it is not written.
    pub default: Default,
    /// Whether the key has an effect, given the values of all keys. Applies only if the level of detail reads the key: see [`Key::applies`].
    pub applies_when: fn(&Values) -> bool,
    /// Whether the key is part of an experiment's identity: it decides the outcome, rather than what is written or how long it may run.
    pub in_identity: bool,
    /// Description in one line; the unit is in the key's name.
    pub doc: &'static str,
}

/// Text with links of Markdown, whose addresses are relative to a page in a folder of `docs`, as a terminal shows it: `[links that fail](../how-to/failing-links.md)`
/// becomes `links that fail in docs/how-to/failing-links.md`.
pub(super) fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(middle) = rest.find("](../") {
        let before = &rest[..middle];
        let Some((start, length)) = before.rfind('[').zip(rest[middle..].find(')')) else { break };
        let address = &rest[middle + "](../".len()..middle + length];
        out.extend([&before[..start], &before[start + 1..], " in docs/", address]);
        rest = &rest[middle + length + 1..];
    }
    out + rest
}

impl Key {
    /// The description as a terminal or an editor shows it, without links of Markdown.
    pub fn plain_doc(&self) -> String {
        without_links(self.doc)
    }

    /// Whether the key has an effect, given the values of all keys and the level of detail.
    pub fn applies(&self, values: &Values) -> bool {
        mode_reads(values, self.id) && (self.applies_when)(values)
    }

    /// Returns the default if it depends on nothing, else [`Value::Unset`].
    pub fn plain_default(&self) -> Value {
        match self.default {
            Default::Int(i) => Value::Int(i),
            Default::Float(x) => Value::Float(x),
            Default::Bool(b) => Value::Bool(b),
            Default::Choice(s) => Value::Choice(s),
            Default::Text(s) => Value::Text(Arc::from(s)),
            Default::None(_) | Default::Derived(..) => Value::Unset,
        }
    }

    /// Returns the default as it is printed in the template and the reference.
    pub fn default_text(&self) -> String {
        match self.default {
            Default::Int(i) => i.to_string(),
            Default::Float(x) => Value::Float(x).to_toml(),
            Default::Bool(b) => b.to_string(),
            Default::Choice(s) | Default::Text(s) => format!("\"{s}\""),
            Default::None(text) | Default::Derived(_, text) => text.to_string(),
        }
    }

    /// Describes the accepted values.
    pub fn accepts(&self) -> String {
        match self.kind {
            KeyKind::Int { min, max } if min == max => format!("{min} in this version: {}", self.doc),
            KeyKind::Int { min, max } => format!("a whole number from {min} to {max}"),
            KeyKind::Float { min, max, .. } => format!("a number from {min} to {max}"),
            KeyKind::Bool => "true or false".to_string(),
            KeyKind::Choice { now, .. } => format!("one of {}", quoted(now)),
            KeyKind::Text => match self.default {
                Default::Text(example) if !example.is_empty() => format!("a text such as \"{example}\""),
                _ => "a text".to_string(),
            },
            KeyKind::TextOrList => "a text, or a list".to_string(),
            KeyKind::Path => "a file's path, relative to the sweep file".to_string(),
            KeyKind::Files => {
                "the path of a file, or of a folder or prefix where several belong together, relative to the sweep file"
                    .to_string()
            }
            KeyKind::Named => "a name, the path of a .toml file, or a table".to_string(),
        }
    }

    /// Adds a program's policy to `registry`, as a value of this key, by name and version. PRECONDITION: the key is one of [`REGISTRABLE`].
    ///
    /// # Errors
    /// The name or the version is not allowed, or the name is taken. The text says what would be right.
    pub fn register(
        &self,
        registry: &mut PolicyRegistry,
        name_and_version: (&str, &str),
        code: Box<dyn Any + Send + Sync>,
    ) -> Result<(), String> {
        debug_assert!(REGISTRABLE.contains(&self.id), "{} takes no registered policy", self.name);
        let built_in = match self.kind {
            KeyKind::Choice { now, later } => now.iter().chain(later).copied(),
            _ => [].iter().chain(&[]).copied(),
        };
        registry.add(self.id, built_in, name_and_version, code)
    }

    /// Reads a TOML value. The error says what would be right.
    pub fn read(&self, value: &DeValue<'_>) -> Result<Value, String> {
        self.read_with(value, PolicyRegistry::EMPTY)
    }

    /// Reads a TOML value that may also be the name of a policy in `registry`. The error says what would be right.
    pub fn read_with(&self, value: &DeValue<'_>, registry: &PolicyRegistry) -> Result<Value, String> {
        let wrong = || Err(format!("it must be {}", self.accepts()));
        match value {
            // Texts and numbers are the same here, because environment variables are texts.
            DeValue::Integer(i) if self.is_variable() && matches!(self.kind, KeyKind::Text) => {
                self.read_text(i.as_str(), registry)
            }
            DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
                Ok(i) => self.check_number(i as f64, Some(i)),
                Err(_) => wrong(),
            },
            DeValue::Float(x) => match x.as_str().parse::<f64>() {
                Ok(x) => self.check_number(x, None),
                Err(_) => wrong(),
            },
            DeValue::Boolean(b) => match self.kind {
                KeyKind::Bool => Ok(Value::Bool(*b)),
                _ => wrong(),
            },
            DeValue::String(s) => self.read_text(s, registry),
            DeValue::Array(list) if matches!(self.kind, KeyKind::TextOrList) => {
                let item = |v: &toml::Spanned<DeValue<'_>>| match v.get_ref() {
                    DeValue::Integer(i) => Some(i.as_str().to_string()),
                    DeValue::String(s) => Some(s.to_string()),
                    _ => None,
                };
                match list.iter().map(item).collect::<Option<Vec<String>>>() {
                    Some(items) if items.is_empty() => {
                        Err(format!("an empty list says nothing: leave the key out, which is: {}", self.default_text()))
                    }
                    Some(items) => self.read_text(&items.join(","), registry),
                    _ => wrong(),
                }
            }
            DeValue::Table(_) if matches!(self.kind, KeyKind::Named) => {
                let mut text = String::new();
                canonical_toml(value, &mut text)?;
                Ok(Value::Text(text.into()))
            }
            _ => wrong(),
        }
    }

    /// Returns the unit in the key's name, spelled out; `None` if there is none.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        UNITS.iter().find(|(end, _)| self.name.ends_with(end)).map(|(_, unit)| *unit)
    }

    /// Whether the key is a variable of NCCL's environment.
    pub(crate) fn is_variable(&self) -> bool {
        self.name.starts_with(VARIABLES)
    }

    fn read_text(&self, s: &str, registry: &PolicyRegistry) -> Result<Value, String> {
        match self.kind {
            KeyKind::Int { .. } if self.is_variable() => match s.trim().parse::<i64>() {
                Ok(i) => self.check_number(i as f64, Some(i)),
                Err(_) => Err(format!("it must be {}", self.accepts())),
            },
            KeyKind::Choice { now, later } => {
                if let Some(c) = now.iter().find(|c| **c == s) {
                    return Ok(Value::Choice(c));
                }
                if later.contains(&s) {
                    return Err(format!("it is not available in this version; available: {}", quoted(now)));
                }
                if let Some(policy) = registry.find(self.id, s) {
                    return Ok(Value::Registered(policy.clone()));
                }
                let known: Vec<&str> = now.iter().copied().chain(registry.names(self.id)).collect();
                let same = known.iter().copied().find(|c| c.eq_ignore_ascii_case(s));
                let meant = same.or_else(|| meant_value(self.name, s)).or_else(|| nearest(s, known.iter().copied()));
                let by_programs = match REGISTRABLE.contains(&self.id) && known.len() == now.len() {
                    true => {
                        "; another name is known only to a program that registers it, in sweeps that its session loads or begins (Session::load, Session::sweep)"
                    }
                    false => "",
                };
                Err(match meant {
                    Some(c) => format!("did you mean \"{c}\"? It must be one of {}{by_programs}", quoted(&known)),
                    None => format!("it must be one of {}{by_programs}", quoted(&known)),
                })
            }
            // Values of `--set` and of configuration keys are texts: a table is recognised by its brace.
            KeyKind::Named if s.trim_start().starts_with('{') => {
                let text = format!("v = {s}");
                let table = DeTable::parse(&text)
                    .map_err(|e| format!("not a valid inline table: {}", e.message().lines().next().unwrap_or("")))?;
                let mut out = String::new();
                canonical_toml(table.get_ref().get("v").expect("it was just written").get_ref(), &mut out)?;
                Ok(Value::Text(out.into()))
            }
            KeyKind::Path | KeyKind::Files | KeyKind::Named if s.is_empty() => {
                Err(format!("it must be {}", self.accepts()))
            }
            KeyKind::Text | KeyKind::TextOrList | KeyKind::Path | KeyKind::Files | KeyKind::Named
                if !s.contains(['\0', '\n', '\r']) =>
            {
                Ok(Value::Text(s.into()))
            }
            _ => Err(format!("it must be {}", self.accepts())),
        }
    }

    /// Checks a number against type and range. `whole` is given for a TOML integer; a float that is whole counts as one.
    pub fn check_number(&self, x: f64, whole: Option<i64>) -> Result<Value, String> {
        match self.kind {
            KeyKind::Int { min, max } => {
                let i = whole.or_else(|| (x.fract() == 0.0 && x.abs() < 9e15).then_some(x as i64));
                match i {
                    Some(i) if (min..=max).contains(&i) => Ok(Value::Int(i)),
                    _ => Err(format!("it must be {}", self.accepts())),
                }
            }
            KeyKind::Float { min, max, quantum } => {
                // Rounding errors of decimal fractions are accepted. But a value other than 0 must not become 0, which often has a special meaning.
                let near = |steps: f64| (steps * quantum - x).abs() <= 1e-9 * x.abs();
                let on_grid = quantum == 0.0 || near((x / quantum).round());
                match x >= min && x <= max {
                    true if on_grid => Ok(Value::Float(x + 0.0)),
                    true => Err(format!("it must be a whole multiple of {quantum}")),
                    false => Err(format!("it must be {}", self.accepts())),
                }
            }
            _ => Err(format!("it must be {}", self.accepts())),
        }
    }
}

/// Suffixes of keys' names, and their units.
const UNITS: &[(&str, &str)] = &[
    ("_gbps", "Gb/s"),
    ("_mbps", "Mb/s"),
    ("_ns", "nanoseconds"),
    ("_us", "microseconds"),
    ("_s", "seconds"),
    ("_bytes", "bytes"),
    ("_kb", "1000 bytes"),
    ("_mb", "10^6 bytes"),
    ("_kib", "KiB"),
    ("_mib", "MiB"),
    ("_gib", "GiB"),
    ("_h", "hours"),
    ("_hours", "hours"),
    ("_usd", "US dollars"),
    ("_watts", "watts"),
];

/// Prefix of NCCL's environment variables.
pub(super) const VARIABLES: &str = "workload.nccl.";

/// Writes a value as inline TOML with keys in order, so that equal tables are equal texts however they were written.
fn canonical_toml(value: &DeValue<'_>, out: &mut String) -> Result<(), String> {
    match value {
        DeValue::String(s) => out.push_str(&toml::Value::String(s.to_string()).to_string()),
        DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
            Ok(i) => out.push_str(&i.to_string()),
            Err(_) => return Err(format!("`{}` is no whole number of 64 bits", i.as_str())),
        },
        DeValue::Float(x) => match x.as_str().parse::<f64>() {
            // Large whole numbers keep an exponent, so that they stay floats.
            Ok(x) if x.is_finite() && x.fract() == 0.0 && x.abs() >= 1e15 => out.push_str(&format!("{x:e}")),
            Ok(x) if x.is_finite() => out.push_str(&Value::Float(x + 0.0).to_toml()),
            _ => return Err(format!("`{}` is no finite number", x.as_str())),
        },
        DeValue::Boolean(b) => out.push_str(if *b { "true" } else { "false" }),
        DeValue::Datetime(d) => return Err(format!("`{d}` is a date; write numbers, texts, lists and tables")),
        DeValue::Array(list) => {
            out.push('[');
            for (i, item) in list.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                canonical_toml(item.get_ref(), out)?;
            }
            out.push(']');
        }
        DeValue::Table(table) => {
            let mut entries: Vec<_> = table.iter().map(|(k, v)| (k.get_ref().as_ref(), v.get_ref())).collect();
            entries.sort_by_key(|(k, _)| *k);
            out.push('{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                out.push_str(if i == 0 { " " } else { ", " });
                let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                out.push_str(&if bare { key.to_string() } else { toml::Value::String(key.to_string()).to_string() });
                out.push_str(" = ");
                canonical_toml(item, out)?;
            }
            out.push_str(" }");
        }
    }
    Ok(())
}

fn quoted(words: &[&str]) -> String {
    let q: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
    q.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_places_in_the_docs() {
        assert_eq!(
            without_links(
                "[\"a b x2\"]; see [links](../how-to/failing-links.md#a) and [others](../how-to/x.md), or not"
            ),
            "[\"a b x2\"]; see links in docs/how-to/failing-links.md#a and others in docs/how-to/x.md, or not"
        );
        assert_eq!(without_links("a [list], no link"), "a [list], no link");
    }
}
