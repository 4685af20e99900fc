//! A parser for the XML that NCCL writes: elements, attributes, comments, a declaration. It has no text, no entities except the five predefined ones, and no
//! namespaces.
//!
//! Layer: collective.

/// An error and its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct XmlError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
    pub line: usize,
}

impl Element {
    /// The value of an attribute.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// An error at this element.
    pub(super) fn error(&self, what: impl Into<String>) -> XmlError {
        XmlError { line: self.line, what: what.into() }
    }
}

/// Maximum nesting: deeper than any server, shallow enough for the stack.
const MOST_DEPTH: usize = 64;

struct Parser<'a> {
    rest: &'a str,
    line: usize,
}

/// The root element of a document.
pub(super) fn parse(text: &str) -> Result<Element, XmlError> {
    let mut p = Parser { rest: text.trim_start_matches('\u{feff}'), line: 1 };
    p.pass_between()?;
    let root = p.element(0)?;
    p.pass_between()?;
    if p.rest.is_empty() { Ok(root) } else { Err(p.error("nothing may follow the root element")) }
}

impl<'a> Parser<'a> {
    fn error(&self, what: impl Into<String>) -> XmlError {
        XmlError { line: self.line, what: what.into() }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn space(&mut self) {
        let trimmed = self.rest.trim_start();
        self.take(self.rest.len() - trimmed.len());
    }

    /// Takes the text before `end`, and passes `end`.
    fn through(&mut self, end: &str, what: &str) -> Result<&'a str, XmlError> {
        let length = self.rest.find(end).ok_or_else(|| self.error(format!("{what} is not closed by {end}")))?;
        let taken = self.take(length);
        self.take(end.len());
        Ok(taken)
    }

    /// Passes white space, comments and declarations.
    fn pass_between(&mut self) -> Result<(), XmlError> {
        loop {
            self.space();
            if self.rest.starts_with("<!--") {
                self.through("-->", "a comment")?;
            } else if self.rest.starts_with("<?") {
                self.through("?>", "a declaration")?;
            } else if self.rest.starts_with("<!") {
                self.through(">", "a declaration")?;
            } else {
                return Ok(());
            }
        }
    }

    fn name(&mut self) -> Result<&'a str, XmlError> {
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || "_-.:".contains(c))).unwrap_or(self.rest.len());
        if end == 0 { Err(self.error("a name is missing")) } else { Ok(self.take(end)) }
    }

    fn element(&mut self, depth: usize) -> Result<Element, XmlError> {
        if depth > MOST_DEPTH {
            return Err(self.error(format!("elements are nested more than {MOST_DEPTH} deep")));
        }
        let line = self.line;
        if !self.rest.starts_with('<') {
            return Err(self.error("an element (<name ...>) is expected"));
        }
        self.take(1);
        let mut element =
            Element { name: self.name()?.to_string(), attributes: Vec::new(), children: Vec::new(), line };
        loop {
            self.space();
            if self.rest.starts_with("/>") {
                self.take(2);
                return Ok(element);
            }
            if self.rest.starts_with('>') {
                self.take(1);
                break;
            }
            let name = self.name()?.to_string();
            self.space();
            if !self.rest.starts_with('=') {
                return Err(self.error(format!("attribute {name} has no value; write {name}=\"...\"")));
            }
            self.take(1);
            self.space();
            let quote = match self.rest.chars().next() {
                Some(q @ ('"' | '\'')) => q.to_string(),
                _ => return Err(self.error(format!("the value of {name} must be quoted"))),
            };
            self.take(1);
            let value = self.through(&quote, "an attribute's value")?;
            element.attributes.push((name, unescape(value)));
        }
        loop {
            self.pass_between()?;
            if self.rest.starts_with("</") {
                self.take(2);
                let name = self.name()?;
                if name != element.name {
                    return Err(self.error(format!("</{name}> closes <{}> of line {line}", element.name)));
                }
                self.space();
                if !self.rest.starts_with('>') {
                    return Err(self.error(format!("</{name} is not closed by >")));
                }
                self.take(1);
                return Ok(element);
            }
            if self.rest.is_empty() {
                return Err(self.error(format!("<{}> of line {line} is not closed", element.name)));
            }
            let child = self.element(depth + 1)?;
            element.children.push(child);
        }
    }
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}
