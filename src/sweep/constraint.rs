//! Constraints: conditions over dotted keys that experiments must meet.
//!
//! Layer: sweep. The expression crate parses and evaluates; values, operators and their precedence (as in Rust) are ours, so that texts compare
//! and `a == b && c == d` means what it says. Here only words are recognised and sizes bounded.

use std::str::FromStr;
use std::sync::Arc;

use exmex::{BinOp, ExResult, Express, FlatEx, MakeOperators, MatchLiteral, Operator};

use crate::spec::{K, Value, Values, find, hint, later};

/// Most characters and nested brackets of one condition; parsing recurses.
const MAX_CHARS: usize = 4096;
const MAX_DEPTH: usize = 32;

/// A value in a condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Val {
    /// The key has no value in this experiment.
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

impl From<&Value> for Val {
    fn from(v: &Value) -> Val {
        match v {
            Value::Unset => Val::Nothing,
            Value::Int(i) => Val::Int(*i),
            Value::Float(x) => Val::Float(*x),
            Value::Bool(b) => Val::Bool(*b),
            Value::Choice(s) => Val::Text((*s).into()),
            Value::Text(s) => Val::Text(s.clone()),
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
        (Val::Int(x), Val::Int(y)) => ints(*x, *y).map_or_else(|| error(format!("`{x} {op} {y}` has no value in 64 bits")), Val::Int),
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
            (Some(x), Some(y)) => x.partial_cmp(&y).map_or_else(|| error(format!("`{op}` has no answer for these numbers")), |o| Val::Bool(want(o))),
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
        _ => mismatch(op, &a, &b),
    }
}

/// The operators, with Rust's precedence.
#[derive(Clone, Debug)]
pub(super) struct Operators;

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
pub(super) struct Literals;

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
            let digits = |from: usize| from + b[from..].iter().take_while(|c| c.is_ascii_digit() || **c == b'_').count();
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

/// A condition ready to be evaluated for many experiments.
pub(super) struct Constraint {
    expr: FlatEx<Val, Operators, Literals>,
    /// The key of each variable, in the expression's order.
    vars: Vec<K>,
}

impl Constraint {
    /// Parses a condition. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Constraint, String> {
        let prepared = prepare(text)?;
        let expr: ExResult<FlatEx<Val, Operators, Literals>> = FlatEx::parse(&prepared);
        let expr = expr.map_err(|_| "it is not a condition; write for example cluster.gpus >= 16 && transport.cc == \"hpcc\"".to_string())?;
        let vars = expr.var_names().iter().map(|n| find(n).map(|k| k.id)).collect::<Option<Vec<K>>>();
        Ok(Constraint { vars: vars.ok_or("it is not a condition over known keys")?, expr })
    }

    /// Whether the experiment meets the condition.
    pub fn holds(&self, values: &Values) -> Result<bool, String> {
        let vars: Vec<Val> = self.vars.iter().map(|k| Val::from(values.get(*k))).collect();
        match self.expr.eval(&vars) {
            Ok(Val::Bool(b)) => Ok(b),
            Ok(Val::Error(why)) => Err(why.to_string()),
            Ok(other) => Err(format!("it gives {}, and must give true or false; compare with ==, < or >", other.kind())),
            Err(e) => Err(e.to_string()),
        }
    }
}

/// Checks every token and puts names into braces, which is how the expression crate reads names with dots.
fn prepare(text: &str) -> Result<String, String> {
    if text.len() > MAX_CHARS {
        return Err(format!("it has {} characters; {MAX_CHARS} is the most", text.len()));
    }
    let mut out = String::with_capacity(text.len() + 16);
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
            // `a.b-c` is a name only if such a key exists; else the minus sign is an operator.
            let mut len = word_len(rest);
            while find(&rest[..len]).is_none() && rest[..len].contains('-') {
                len = rest[..len].rfind('-').expect("the loop's condition found one");
            }
            let word = &rest[..len];
            if find(word).is_none() {
                return Err(match later(word) {
                    Some(instead) => format!("`{word}` is not available in this version; {instead}"),
                    None => format!("unknown key `{word}`; {}", hint(word)),
                });
            }
            out.push_str(&format!("{{{word}}}"));
            (len, true)
        } else {
            let op =
                ["||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "(", ")"].into_iter().find(|op| rest.starts_with(op));
            let Some(op) = op else {
                let what = if c == '"' || c == '\'' {
                    "texts stand in double quotes, opened and closed".to_string()
                } else {
                    "it takes keys, numbers, texts in double quotes, ( ) and || && == != < <= > >= + - * / % !".to_string()
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
        (_, true) => Err("it is empty; write a condition, for example transport.cc == \"hpcc\"".to_string()),
        (0, _) => Ok(out),
        _ => Err("a `(` has no `)`".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> Result<bool, String> {
        let mut v = Values::layered(&[&[(K::WorkloadKind, Value::Choice("traffic")), (K::Gpus, Value::Int(64))]]);
        v.derive();
        Constraint::parse(text)?.holds(&v)
    }

    #[test]
    fn precedence_is_rusts() {
        assert_eq!(holds("1 + 2 * 3 == 7 && 8 / 2 * 2 == 8 && 7 - 3 - 2 == 2"), Ok(true));
        assert_eq!(holds("false && false || true"), Ok(true));
        assert_eq!(holds("2 * 3 % 4 == 2 && -1 < 0 && !(1 > 2)"), Ok(true));
        assert_eq!(holds("7 / 2 == 3.5 && 1e3 == 1_000"), Ok(true));
    }

    #[test]
    fn keys_and_texts_compare() {
        assert_eq!(holds("topology.kind == \"rail-optimized\" && transport.cc != \"none\""), Ok(true));
        assert_eq!(holds("cluster.gpus-1 == 63 && cluster.gpus % cluster.gpus_per_server == 0"), Ok(true));
        assert_eq!(holds("transport.pfc"), Ok(true));
        assert_eq!(holds("topology.link_gbps >= 400.0"), Ok(true));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("topology.knid == 1", "did you mean `topology.kind`"),
            ("cluster.gpus", "true or false"),
            ("topology.kind < 3", "does not go with a text and a number"),
            ("cluster.gpus == ", "not a condition"),
            ("cluster.gpus 3", "operator is missing"),
            ("(cluster.gpus == 3", "no `)`"),
            ("topology.path == \"a\"", "a key without"),
            ("9223372036854775807 + 1 > 0", "64 bits"),
            ("1 / 0 == 1", "no value"),
            ("topology.planes == 1", "not available in this version"),
            ("transport.cc = \"hpcc\"", "not understood"),
            ("topology.path == \"\"", "a key without a value"),
        ] {
            let e = holds(text).expect_err(text);
            assert!(e.contains(part), "{text}: {e}");
        }
    }
}
