//! Values in conditions, and the operators on them.
//!
//! Layer: sweep. Values are copied and nothing is allocated, because a condition is evaluated for every point of a sweep. Errors become text only when they are
//! shown.

use std::fmt;

/// A value in a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Val<'a> {
    /// The absence of a value.
    #[default]
    Nothing,
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(&'a str),
    /// No value: the condition cannot be decided, for this reason.
    Error(ConditionError),
}

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConditionError {
    /// An operator between two kinds of value that it does not accept.
    Mismatch(Binary, ValKind, ValKind),
    /// An operator before a kind of value that it does not accept.
    Unary(ValKind),
    /// An operation on integers whose result does not fit in 64 bits.
    Overflow(Binary, i64, i64),
    /// An operation on numbers that has no finite result.
    Undefined(Binary, f64, f64),
    /// A comparison with a number that cannot be compared.
    Unordered(Binary),
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionError::Mismatch(op, a, b) => write!(f, "`{op}` does not go with {a} and {b}"),
            ConditionError::Unary(a) => write!(f, "`!` does not go with {a}"),
            ConditionError::Overflow(op, a, b) => write!(f, "`{a} {op} {b}` has no value in 64 bits"),
            ConditionError::Undefined(op, a, b) => write!(f, "`{a} {op} {b}` has no value"),
            ConditionError::Unordered(op) => write!(f, "`{op}` has no answer for these numbers"),
        }
    }
}

/// The kind of a value, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValKind {
    Nothing,
    Number,
    Bool,
    Text,
    Error,
}

impl fmt::Display for ValKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValKind::Nothing => "a key without a value",
            ValKind::Number => "a number",
            ValKind::Bool => "true or false",
            ValKind::Text => "a text",
            ValKind::Error => "an error",
        })
    }
}

impl Val<'_> {
    fn number(&self) -> Option<f64> {
        match self {
            Val::Int(i) => Some(*i as f64),
            Val::Float(x) => Some(*x),
            _ => None,
        }
    }

    /// Returns the kind of the value.
    pub(in crate::sweep) fn kind(&self) -> ValKind {
        match self {
            Val::Nothing => ValKind::Nothing,
            Val::Int(_) | Val::Float(_) => ValKind::Number,
            Val::Bool(_) => ValKind::Bool,
            Val::Text(_) => ValKind::Text,
            Val::Error(_) => ValKind::Error,
        }
    }
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Or,
    And,
    Equal,
    NotEqual,
    AtMost,
    AtLeast,
    Below,
    Above,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Binary::ALL.iter().find(|(_, op)| op == self);
        f.write_str(known.map_or("", |(text, _)| text))
    }
}

impl Binary {
    const ALL: [(&str, Binary); 13] = [
        ("||", Binary::Or),
        ("&&", Binary::And),
        ("==", Binary::Equal),
        ("!=", Binary::NotEqual),
        ("<=", Binary::AtMost),
        (">=", Binary::AtLeast),
        ("<", Binary::Below),
        (">", Binary::Above),
        ("+", Binary::Add),
        ("-", Binary::Subtract),
        ("*", Binary::Multiply),
        ("/", Binary::Divide),
        ("%", Binary::Remainder),
    ];

    /// Returns the operator with this text.
    pub(in crate::sweep) fn of(text: &str) -> Option<Binary> {
        Binary::ALL.iter().find(|(symbol, _)| *symbol == text).map(|(_, op)| *op)
    }

    /// Returns how tightly the operator binds, as in Rust: a higher number binds more tightly.
    pub(in crate::sweep) fn precedence(self) -> u8 {
        match self {
            Binary::Or => 1,
            Binary::And => 2,
            Binary::Equal | Binary::NotEqual | Binary::AtMost | Binary::AtLeast | Binary::Below | Binary::Above => 3,
            Binary::Add | Binary::Subtract => 4,
            Binary::Multiply | Binary::Divide | Binary::Remainder => 5,
        }
    }

    pub(in crate::sweep) fn apply<'a>(self, a: Val<'a>, b: Val<'a>) -> Val<'a> {
        match self {
            Binary::Or => self.logic(a, b, true),
            Binary::And => self.logic(a, b, false),
            Binary::Equal => self.equal(a, b, true),
            Binary::NotEqual => self.equal(a, b, false),
            Binary::AtMost => self.compare(a, b, |x, y| x <= y, |x, y| x <= y),
            Binary::AtLeast => self.compare(a, b, |x, y| x >= y, |x, y| x >= y),
            Binary::Below => self.compare(a, b, |x, y| x < y, |x, y| x < y),
            Binary::Above => self.compare(a, b, |x, y| x > y, |x, y| x > y),
            Binary::Add => self.arithmetic(a, b, i64::checked_add, |x, y| x + y),
            Binary::Subtract => self.arithmetic(a, b, i64::checked_sub, |x, y| x - y),
            Binary::Multiply => self.arithmetic(a, b, i64::checked_mul, |x, y| x * y),
            // The result is an integer if it is exact: 6 / 2 is 3, and 7 / 2 is 3.5 rather than 3.
            Binary::Divide => match (a, b) {
                (Val::Int(x), Val::Int(y)) if y != 0 && x.checked_rem(y) != Some(0) => Val::Float(x as f64 / y as f64),
                _ => self.arithmetic(a, b, i64::checked_div, |x, y| x / y),
            },
            Binary::Remainder => self.arithmetic(a, b, i64::checked_rem, |x, y| x % y),
        }
    }

    fn mismatch<'a>(self, a: Val<'a>, b: Val<'a>) -> Val<'a> {
        match (a, b) {
            (Val::Error(_), _) => a,
            (_, Val::Error(_)) => b,
            _ => Val::Error(ConditionError::Mismatch(self, a.kind(), b.kind())),
        }
    }

    /// Computes in integers if both operands are integers. A result that does not fit is an error, never a wrong number.
    #[inline]
    fn arithmetic<'a>(
        self,
        a: Val<'a>,
        b: Val<'a>,
        ints: impl Fn(i64, i64) -> Option<i64>,
        floats: impl Fn(f64, f64) -> f64,
    ) -> Val<'a> {
        if let (Val::Int(x), Val::Int(y)) = (a, b) {
            return ints(x, y).map_or(Val::Error(ConditionError::Overflow(self, x, y)), Val::Int);
        }
        match (a.number(), b.number()) {
            (Some(x), Some(y)) => match floats(x, y) {
                r if r.is_finite() => Val::Float(r),
                _ => Val::Error(ConditionError::Undefined(self, x, y)),
            },
            _ => self.mismatch(a, b),
        }
    }

    #[inline]
    fn compare<'a>(
        self,
        a: Val<'a>,
        b: Val<'a>,
        ints: impl Fn(i64, i64) -> bool,
        floats: impl Fn(f64, f64) -> bool,
    ) -> Val<'a> {
        if let (Val::Int(x), Val::Int(y)) = (a, b) {
            return Val::Bool(ints(x, y));
        }
        match (a.number(), b.number()) {
            (Some(x), Some(y)) if x.is_nan() || y.is_nan() => Val::Error(ConditionError::Unordered(self)),
            (Some(x), Some(y)) => Val::Bool(floats(x, y)),
            _ => self.mismatch(a, b),
        }
    }

    #[inline]
    fn equal<'a>(self, a: Val<'a>, b: Val<'a>, want: bool) -> Val<'a> {
        match (a, b) {
            (Val::Int(x), Val::Int(y)) => Val::Bool((x == y) == want),
            (Val::Text(x), Val::Text(y)) => Val::Bool((x == y) == want),
            (Val::Bool(x), Val::Bool(y)) => Val::Bool((x == y) == want),
            _ => match (a.number(), b.number()) {
                (Some(x), Some(y)) => Val::Bool((x == y) == want),
                _ => self.mismatch(a, b),
            },
        }
    }

    /// Joins two truth values. `decides` is the value that settles the result if either side has it.
    #[inline]
    fn logic<'a>(self, a: Val<'a>, b: Val<'a>, decides: bool) -> Val<'a> {
        match (a, b) {
            (Val::Bool(x), Val::Bool(y)) => Val::Bool(if x == decides { x } else { y }),
            // The left side may already decide the result, so that an error on the right does not matter.
            (Val::Bool(x), Val::Error(_)) if x == decides => Val::Bool(x),
            _ => self.mismatch(a, b),
        }
    }
}

/// An operator before a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sweep) enum Unary {
    Minus,
    Not,
}

impl Unary {
    pub(in crate::sweep) fn apply(self, a: Val<'_>) -> Val<'_> {
        match (self, a) {
            (Unary::Minus, a) => Binary::Subtract.apply(Val::Int(0), a),
            (Unary::Not, Val::Bool(x)) => Val::Bool(!x),
            (Unary::Not, Val::Error(e)) => Val::Error(e),
            (Unary::Not, other) => Val::Error(ConditionError::Unary(other.kind())),
        }
    }
}
