//! Conditions: expressions over names that are true or false.
//!
//! Layer: sweep. The expression crate parses and evaluates; values, operators and their precedence (as in Rust) are ours, so that texts compare
//! and `a == b && c == d` means what it says. Here only words are recognised and sizes bounded; what the names stand for is the caller's:
//! keys in a sweep's constraints, columns where results are compared.

use std::str::FromStr;
use std::sync::Arc;

use exmex::{BinOp, ExResult, Express, FlatEx, MakeOperators, MatchLiteral, Operator};

/// Most characters and nested brackets of one condition; parsing recurses.
const MAX_CHARS: usize = 4096;
const MAX_DEPTH: usize = 32;

/// A value in a condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Val {
    /// There is no value.
    #[default]
    Nothing,
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(Arc<str>),
    Error(Arc<str>),
}

impl FromStr for Val {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "true" => return Ok(Val::Bool(true)),
            "false" => return Ok(Val::Bool(false)),
            _ => {}
        }
        if let Some(text) = s.strip_prefix('"').and_then(|s| s.strip_suffix('"')) {
            return Ok(Val::Text(text.into()));
        }
        let digits = s.replace('_', "");
        match digits.parse::<i64>() {
            Ok(i) => Ok(Val::Int(i)),
            Err(_) => digits.parse::<f64>().map(Val::Float).map_err(|e| e.to_string()),
        }
    }
}

impl Val {
    fn number(&self) -> Option<f64> {
        match self {
            Val::Int(i) => Some(*i as f64),
            Val::Float(x) => Some(*x),
            _ => None,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Val::Nothing => "a key without a value",
            Val::Int(_) | Val::Float(_) => "a number",
            Val::Bool(_) => "true or false",
            Val::Text(_) => "a text",
            Val::Error(_) => "an error",
        }
    }
}

fn error(text: String) -> Val {
    Val::Error(text.into())
}

fn mismatch(op: &str, a: &Val, b: &Val) -> Val {
    match (a, b) {
        (Val::Error(_), _) => a.clone(),
        (_, Val::Error(_)) => b.clone(),
        _ => error(format!("`{op}` does not go with {} and {}", a.kind(), b.kind())),
    }
}

/// Exact in integers as long as both are; a result that does not fit is an error, never a wrong number.
fn arithmetic(op: &'static str, a: Val, b: Val, ints: fn(i64, i64) -> Option<i64>, floats: fn(f64, f64) -> f64) -> Val {
    match (&a, &b) {
        (Val::Int(x), Val::Int(y)) => {
            ints(*x, *y).map_or_else(|| error(format!("`{x} {op} {y}` has no value in 64 bits")), Val::Int)
        }
        _ => match (a.number(), b.number()) {
            (Some(x), Some(y)) => match floats(x, y) {
                r if r.is_finite() => Val::Float(r),
                _ => error(format!("`{x} {op} {y}` has no value")),
            },
            _ => mismatch(op, &a, &b),
        },
    }
}

/// Division that is exact where it can be: 6 / 2 is 3, 7 / 2 is 3.5 and not 3.
fn divide(a: Val, b: Val) -> Val {
    match (&a, &b) {
        (Val::Int(x), Val::Int(y)) if *y != 0 && x.checked_rem(*y) != Some(0) => Val::Float(*x as f64 / *y as f64),
        _ => arithmetic("/", a, b, i64::checked_div, |x, y| x / y),
    }
}

fn compare(op: &'static str, a: Val, b: Val, want: fn(std::cmp::Ordering) -> bool) -> Val {
    match (&a, &b) {
        (Val::Int(x), Val::Int(y)) => Val::Bool(want(x.cmp(y))),
        _ => match (a.number(), b.number()) {
            (Some(x), Some(y)) => x
                .partial_cmp(&y)
                .map_or_else(|| error(format!("`{op}` has no answer for these numbers")), |o| Val::Bool(want(o))),
            _ => mismatch(op, &a, &b),
        },
    }
}

fn equal(op: &'static str, a: Val, b: Val, want: bool) -> Val {
    match (&a, &b) {
        (Val::Text(x), Val::Text(y)) => Val::Bool((x == y) == want),
        (Val::Bool(x), Val::Bool(y)) => Val::Bool((x == y) == want),
        (Val::Int(x), Val::Int(y)) => Val::Bool((x == y) == want),
        _ => match (a.number(), b.number()) {
            (Some(x), Some(y)) => Val::Bool((x == y) == want),
            _ => mismatch(op, &a, &b),
        },
    }
}

fn logic(op: &'static str, a: Val, b: Val, f: fn(bool, bool) -> bool) -> Val {
    match (&a, &b) {
        (Val::Bool(x), Val::Bool(y)) => Val::Bool(f(*x, *y)),
        // What stands on the left may already decide, whatever the right is.
        (Val::Bool(x), Val::Error(_)) if f(*x, true) == f(*x, false) => Val::Bool(*x),
        _ => mismatch(op, &a, &b),
    }
}

/// The operators, with Rust's precedence.
#[derive(Clone, Debug)]
struct Operators;

impl MakeOperators<Val> for Operators {
    fn make<'a>() -> Vec<Operator<'a, Val>> {
        let bin = |prio: i64, apply: fn(Val, Val) -> Val| BinOp { apply, prio, is_commutative: false };
        vec![
            Operator::make_bin("||", bin(1, |a, b| logic("||", a, b, |x, y| x || y))),
            Operator::make_bin("&&", bin(2, |a, b| logic("&&", a, b, |x, y| x && y))),
            Operator::make_bin("==", bin(3, |a, b| equal("==", a, b, true))),
            Operator::make_bin("!=", bin(3, |a, b| equal("!=", a, b, false))),
            Operator::make_bin("<=", bin(3, |a, b| compare("<=", a, b, |o| o.is_le()))),
            Operator::make_bin(">=", bin(3, |a, b| compare(">=", a, b, |o| o.is_ge()))),
            Operator::make_bin("<", bin(3, |a, b| compare("<", a, b, |o| o.is_lt()))),
            Operator::make_bin(">", bin(3, |a, b| compare(">", a, b, |o| o.is_gt()))),
            Operator::make_bin("+", bin(4, |a, b| arithmetic("+", a, b, i64::checked_add, |x, y| x + y))),
            Operator::make_bin_unary("-", bin(4, |a, b| arithmetic("-", a, b, i64::checked_sub, |x, y| x - y)), |a| {
                arithmetic("-", Val::Int(0), a, i64::checked_sub, |x, y| x - y)
            }),
            Operator::make_bin("*", bin(5, |a, b| arithmetic("*", a, b, i64::checked_mul, |x, y| x * y))),
            Operator::make_bin("/", bin(5, divide)),
            Operator::make_bin("%", bin(5, |a, b| arithmetic("%", a, b, i64::checked_rem, |x, y| x % y))),
            Operator::make_unary("!", |a| match a {
                Val::Bool(x) => Val::Bool(!x),
                Val::Error(_) => a,
                other => error(format!("`!` does not go with {}", other.kind())),
            }),
        ]
    }
}

/// Literals: numbers, `true`, `false`, texts in double quotes.
#[derive(Clone, Debug)]
struct Literals;

impl MatchLiteral for Literals {
    fn is_literal(text: &str) -> Option<&str> {
        let len = literal_len(text)?;
        text.get(..len)
    }
}

/// Bytes of the literal at the start of `text`.
fn literal_len(text: &str) -> Option<usize> {
    let b = text.as_bytes();
    match b.first()? {
        b'"' => b[1..].iter().position(|c| *c == b'"').map(|i| i + 2),
        b'0'..=b'9' => {
            let digits =
                |from: usize| from + b[from..].iter().take_while(|c| c.is_ascii_digit() || **c == b'_').count();
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

/// Bytes of the dotted word at the start of `text`.
fn word_len(text: &str) -> usize {
    text.bytes().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'-')).count()
}

/// The names that a condition may use.
pub trait ConditionNames {
    /// Whether there is such a name.
    fn knows(&self, name: &str) -> bool;

    /// What to say of one that is not there: half a sentence.
    fn unknown(&self, name: &str) -> String;

    /// A condition as an example, for messages.
    fn example(&self) -> &'static str;
}

/// A condition ready to be evaluated many times.
#[derive(Debug)]
pub struct Condition {
    expr: FlatEx<Val, Operators, Literals>,
    /// Its names, in the order in which they are written, each once.
    written: Vec<String>,
}

impl Condition {
    /// Parses a condition. The error says what is wrong with it.
    pub fn parse(text: &str, names: &dyn ConditionNames) -> Result<Condition, String> {
        let (prepared, written) = prepare(text, names)?;
        let expr: ExResult<FlatEx<Val, Operators, Literals>> = FlatEx::parse(&prepared);
        let expr = expr.map_err(|_| format!("it is not a condition; write for example {}", names.example()))?;
        Ok(Condition { expr, written })
    }

    /// The names it uses, in the order in which they are written, each once.
    pub fn names(&self) -> &[String] {
        &self.written
    }

    /// Whether it is true for these values of its names. The error says why that cannot be said.
    pub fn holds(&self, value: impl Fn(&str) -> Val) -> Result<bool, String> {
        let vars: Vec<Val> = self.expr.var_names().iter().map(|n| value(n)).collect();
        match self.expr.eval(&vars) {
            Ok(Val::Bool(b)) => Ok(b),
            Ok(Val::Error(why)) => Err(why.to_string()),
            Ok(other) => {
                Err(format!("it gives {}, and must give true or false; compare with ==, < or >", other.kind()))
            }
            Err(e) => Err(e.to_string()),
        }
    }
}

/// Checks every token and puts names into braces, which is how the expression crate reads names with dots.
fn prepare(text: &str, names: &dyn ConditionNames) -> Result<(String, Vec<String>), String> {
    if text.len() > MAX_CHARS {
        return Err(format!("it has {} characters; {MAX_CHARS} is the most", text.len()));
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut written: Vec<String> = Vec::new();
    let (mut rest, mut depth, mut previous_is_value) = (text, 0usize, false);
    while let Some(c) = rest.chars().next() {
        let (len, is_value) = if c.is_whitespace() {
            out.push(' ');
            rest = &rest[c.len_utf8()..];
            continue;
        } else if let Some(len) = literal_len(rest) {
            let literal = &rest[..len];
            literal.parse::<Val>().map_err(|_| format!("`{literal}` is not a number"))?;
            out.push_str(literal);
            (len, true)
        } else if c.is_ascii_alphabetic() || c == '_' {
            // `a.b-c` is a name only if there is such a one; else the minus sign is an operator.
            let mut len = word_len(rest);
            while !names.knows(&rest[..len]) && rest[..len].contains('-') {
                len = rest[..len].rfind('-').expect("the loop's condition found one");
            }
            let word = &rest[..len];
            if !names.knows(word) {
                return Err(names.unknown(word));
            }
            if !written.iter().any(|w| w == word) {
                written.push(word.to_string());
            }
            out.push_str(&format!("{{{word}}}"));
            (len, true)
        } else {
            let op = ["||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "(", ")"]
                .into_iter()
                .find(|op| rest.starts_with(op));
            let Some(op) = op else {
                let what = if c == '"' || c == '\'' {
                    "texts stand in double quotes, opened and closed".to_string()
                } else {
                    "it takes names, numbers, texts in double quotes, ( ) and || && == != < <= > >= + - * / % !"
                        .to_string()
                };
                return Err(format!("`{}` is not understood; {what}", c.escape_default()));
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
            out.push_str(op);
            out.push(' ');
            rest = &rest[op.len()..];
            previous_is_value = op == ")";
            continue;
        };
        if previous_is_value && is_value {
            return Err(format!("an operator is missing before `{}`", &rest[..len]));
        }
        previous_is_value = is_value;
        out.push(' ');
        rest = &rest[len..];
    }
    match (depth, out.trim().is_empty()) {
        (_, true) => Err(format!("it is empty; write a condition, for example {}", names.example())),
        (0, _) => Ok((out, written)),
        _ => Err("a `(` has no `)`".to_string()),
    }
}
