//! Makes typed constants from the rows of the key table.
//!
//! The table (`src/config/spec/key_table.rs`) declares each key once. Its constant in `hyperfold::keys`, such as `TRANSPORT_CC`, and the enum of its words,
//! such as `Cc`, have names that a declarative macro cannot make of texts. So [`typed_keys`] makes them.
//!
//! It knows the shape of a row and the names of kinds. It never checks a value, and reads no file. Start with [`typed_keys`].

#![forbid(unsafe_code)]

use std::fmt::Write;

use proc_macro::{Delimiter, TokenStream, TokenTree};

/// One row of the table.
struct Row {
    id: String,
    name: String,
    kind: Vec<TokenTree>,
    /// Description, as an expression.
    doc: String,
}

/// Declares a constant for every key of `[base]`, and an enum for every key with fixed words, from rows `Id "name" kind, default, condition, "doc";`.
///
/// The place of the call provides `TypedKey`, `KeyValue`, and a marker type for each kind: `WholeNumber`, `Number`, `TrueOrFalse`, `Text`, `FilePath` and `NameOrTable`.
#[proc_macro]
pub fn typed_keys(table: TokenStream) -> TokenStream {
    let mut out = String::new();
    let mut types = String::new();
    let mut tokens = table.into_iter().peekable();
    while tokens.peek().is_some() {
        let tokens_of_row: Vec<TokenTree> = tokens.by_ref().take_while(|token| !is_sign(token, ';')).collect();
        let row = read(tokens_of_row);
        // Keys of `[[job]]` tables have the job's name inside theirs.
        if row.name.starts_with("job.") {
            continue;
        }
        let (value_type, words) = type_of(&row);
        if !words.is_empty() {
            declare_words(&row, &words, &mut out);
        }
        let constant = row.name.replace('.', "_").to_uppercase();
        let _ = writeln!(
            out,
            "#[doc = \"Key `{}`:\"]\n#[doc = {}]\npub const {constant}: TypedKey<{value_type}> = TypedKey::new(\"{}\");",
            row.name, row.doc, row.name
        );
        let _ = write!(types, "(\"{}\", \"{value_type}\"),", row.name);
    }
    let _ = write!(
        out,
        "/// The name of each constant's key, and the type of its values.\n#[cfg(test)]\nconst TYPES: &[(&str, &str)] = &[{types}];"
    );
    out.parse().expect("what is written above is Rust")
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// Takes a row apart: an optional mark, id, name, and what follows between commas.
fn read(tokens: Vec<TokenTree>) -> Row {
    let marks = if tokens.first().is_some_and(|token| is_sign(token, '#')) { 2 } else { 0 };
    let [id, name, rest @ ..] = &tokens[marks..] else {
        panic!("a row of the key table begins with its id and its name")
    };
    let parts: Vec<&[TokenTree]> = rest.splitn(4, |token| is_sign(token, ',')).collect();
    let [kind, _default, _condition, doc] = parts[..] else {
        panic!("{name}: a row has a kind, a default, a condition and a description")
    };
    Row {
        id: id.to_string(),
        name: text(name).unwrap_or_else(|| panic!("{name}: the name of a key is a text")),
        kind: kind.to_vec(),
        doc: doc.iter().cloned().collect::<TokenStream>().to_string(),
    }
}

/// The content of a text without escapes.
fn text(token: &TokenTree) -> Option<String> {
    let literal = token.to_string();
    Some(literal.strip_prefix('"')?.strip_suffix('"')?.to_string())
}

/// The type of a key's values, and its words if they are fixed.
fn type_of(row: &Row) -> (String, Vec<String>) {
    let name =
        row.kind.last().filter(|_| row.kind.len() > 2).or(row.kind.first()).map_or(String::new(), ToString::to_string);
    let plain = |name: &str| (name.to_string(), Vec::new());
    match (name.as_str(), row.kind.last()) {
        ("int", _) => plain("WholeNumber"),
        ("Bool", _) => plain("TrueOrFalse"),
        ("Text" | "TextOrList", _) => plain("Text"),
        ("Path" | "Files", _) => plain("FilePath"),
        ("Named", _) => plain("NameOrTable"),
        ("one_of", Some(TokenTree::Group(arguments))) => match words(arguments.stream()) {
            Some(words) => (row.id.clone(), words),
            // Names of assets, or of policies, to which a program adds its own.
            None => plain("Text"),
        },
        // The ranges that several keys share are ranges of numbers. A test compares types with kinds.
        _ => plain("Number"),
    }
}

/// The words of `&["a", "b"], &[...]`; `None` if they are not written there.
fn words(arguments: TokenStream) -> Option<Vec<String>> {
    let list = arguments.into_iter().nth(1)?;
    let TokenTree::Group(list) = list else { return None };
    if list.delimiter() != Delimiter::Bracket {
        return None;
    }
    list.stream().into_iter().filter(|token| !is_sign(token, ',')).map(|token| text(&token)).collect()
}

/// The name of a word as a variant: `fat-tree` is `FatTree`, `1f1b` is `OneF1b`.
fn variant(word: &str) -> String {
    let spelled = match word.strip_prefix('1') {
        Some(rest) => format!("one-{rest}"),
        None => word.to_string(),
    };
    spelled.split(['-', '_']).map(|part| part[..1].to_uppercase() + &part[1..]).collect()
}

/// Declares the enum of a key's words.
fn declare_words(row: &Row, words: &[String], out: &mut String) {
    let id = &row.id;
    let (mut variants, mut arms, mut all) = (String::new(), String::new(), String::new());
    for word in words {
        let name = variant(word);
        let _ = write!(variants, "#[doc = \"Word `\\\"{word}\\\"`.\"] {name},");
        let _ = write!(arms, "{id}::{name} => \"{word}\",");
        let _ = write!(all, "{id}::{name},");
    }
    let _ = writeln!(
        out,
        "#[doc = \"Values of the key `{}`.\"]\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n#[non_exhaustive]\npub enum {id} {{ {variants} }}
        impl {id} {{
            /// All values, in the order in which the reference lists them.
            pub const ALL: &'static [{id}] = &[{all}];
            /// Returns the word that sweep files use.
            pub const fn word(self) -> &'static str {{ match self {{ {arms} }} }}
        }}
        impl KeyValue<{id}> for {id} {{ fn into_toml(self) -> toml::Value {{ self.word().into() }} }}",
        row.name
    );
}
