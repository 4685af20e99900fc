//! Conditions as a list of steps in the order of evaluation, operands before their operator.
//!
//! Layer: sweep. Compiled once, evaluated for every point of a sweep.

use super::condition_value::{Binary, Unary, Val};

/// Size of the value stack up to which evaluation allocates nothing: more than people write.
const FEW: usize = 4;

/// A literal value.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::sweep) enum ConditionLiteral {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(Box<str>),
}

impl ConditionLiteral {
    /// Parses a literal's text; `None`: it is no number.
    pub(in crate::sweep) fn parse(text: &str) -> Option<ConditionLiteral> {
        match text {
            "true" => return Some(ConditionLiteral::Bool(true)),
            "false" => return Some(ConditionLiteral::Bool(false)),
            _ => {}
        }
        if let Some(text) = text.strip_prefix('"').and_then(|s| s.strip_suffix('"')) {
            return Some(ConditionLiteral::Text(text.into()));
        }
        let digits = text.replace('_', "");
        digits.parse().map(ConditionLiteral::Int).or_else(|_| digits.parse().map(ConditionLiteral::Float)).ok()
    }

    fn value(&self) -> Val<'_> {
        match self {
            ConditionLiteral::Int(i) => Val::Int(*i),
            ConditionLiteral::Float(x) => Val::Float(*x),
            ConditionLiteral::Bool(b) => Val::Bool(*b),
            ConditionLiteral::Text(s) => Val::Text(s),
        }
    }
}

/// A piece of a condition's text.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::sweep) enum Token {
    Literal(ConditionLiteral),
    /// A name, by its index in the list of names.
    Name(usize),
    /// An operator or a bracket.
    Sign(&'static str),
}

#[derive(Clone, Debug)]
enum Step {
    Literal(ConditionLiteral),
    Name(usize),
    Unary(Unary),
    Binary(Binary),
    /// An operator between a name and a literal: most of what people write.
    Test(Binary, usize, ConditionLiteral),
}

/// An operator that waits for its right side, or a bracket that waits to be closed.
#[derive(Clone, Copy)]
enum Waiting {
    Bracket,
    Unary(Unary),
    Binary(Binary),
}

/// A compiled condition.
#[derive(Clone, Debug)]
pub(in crate::sweep) struct ConditionCode {
    steps: Vec<Step>,
    /// Largest size of the value stack.
    depth: usize,
}

impl ConditionCode {
    /// Compiles a condition; `None`: it is not valid. A unary operator binds before all others, equal ones from the left.
    pub(in crate::sweep) fn compile(tokens: Vec<Token>) -> Option<ConditionCode> {
        let mut steps = Vec::with_capacity(tokens.len());
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut wants_value = true;
        for token in tokens {
            match token {
                Token::Literal(_) | Token::Name(_) if !wants_value => return None,
                Token::Literal(literal) => {
                    steps.push(Step::Literal(literal));
                    wants_value = false;
                }
                Token::Name(name) => {
                    steps.push(Step::Name(name));
                    wants_value = false;
                }
                Token::Sign(sign) if wants_value => waiting.push(match sign {
                    "(" => Waiting::Bracket,
                    "-" => Waiting::Unary(Unary::Minus),
                    "!" => Waiting::Unary(Unary::Not),
                    _ => return None,
                }),
                Token::Sign(")") => {
                    finish(&mut steps, &mut waiting, 0);
                    waiting.pop()?;
                }
                Token::Sign(sign) => {
                    let op = Binary::of(sign)?;
                    finish(&mut steps, &mut waiting, op.precedence());
                    waiting.push(Waiting::Binary(op));
                    wants_value = true;
                }
            }
        }
        finish(&mut steps, &mut waiting, 0);
        if wants_value || !waiting.is_empty() {
            return None;
        }
        let steps = with_tests(steps);
        let (mut held, mut depth) = (0usize, 0);
        for step in &steps {
            match step {
                Step::Literal(_) | Step::Name(_) | Step::Test(..) => held += 1,
                Step::Unary(_) => {}
                Step::Binary(_) => held -= 1,
            }
            depth = depth.max(held);
        }
        Some(ConditionCode { steps, depth })
    }

    /// Evaluates the condition. `name` returns the values of its names, by their index in the list of names.
    pub(in crate::sweep) fn evaluate<'v>(&'v self, name: impl Fn(usize) -> Val<'v>) -> Val<'v> {
        let mut few = [Val::Nothing; FEW];
        let mut many;
        let stack = if self.depth <= FEW {
            &mut few[..]
        } else {
            many = vec![Val::Nothing; self.depth];
            &mut many[..]
        };
        let mut n = 0;
        for step in &self.steps {
            match step {
                Step::Literal(literal) => {
                    stack[n] = literal.value();
                    n += 1;
                }
                Step::Name(name_idx) => {
                    stack[n] = name(*name_idx);
                    n += 1;
                }
                Step::Test(op, name_idx, literal) => {
                    stack[n] = op.apply(name(*name_idx), literal.value());
                    n += 1;
                }
                Step::Unary(op) => stack[n - 1] = op.apply(stack[n - 1]),
                Step::Binary(op) => {
                    n -= 1;
                    stack[n - 1] = op.apply(stack[n - 1], stack[n]);
                }
            }
        }
        stack[0]
    }
}

/// Joins each name, literal and their operator into one step.
fn with_tests(steps: Vec<Step>) -> Vec<Step> {
    let mut out: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        match (step, out.as_mut_slice()) {
            (Step::Binary(op), [.., Step::Name(name_idx), Step::Literal(literal)]) => {
                let test = Step::Test(op, *name_idx, literal.clone());
                out.truncate(out.len() - 2);
                out.push(test);
            }
            (step, _) => out.push(step),
        }
    }
    out
}

/// Emits the waiting operators for the value that was just written, down to a bracket or an operator with a precedence below `precedence`.
fn finish(steps: &mut Vec<Step>, waiting: &mut Vec<Waiting>, precedence: u8) {
    loop {
        match waiting.last() {
            Some(Waiting::Unary(op)) => steps.push(Step::Unary(*op)),
            Some(Waiting::Binary(op)) if op.precedence() >= precedence => steps.push(Step::Binary(*op)),
            _ => return,
        }
        waiting.pop();
    }
}
