//! Takes code out of a module that no experiment of a batch reaches, before a driver sees it.
//!
//! It follows what is known of private variables through expressions and calls of small functions. A branch whose condition is known loses the other side, a
//! `switch` the cases that cannot be; functions that nothing calls any more are gone. So the shaders say nothing of parts: their own conditions, such as
//! `exp_cc == CC_HPCC` or `has_classes()`, do.
//!
//! Layer: engine. Knows naga's modules, not what the kernels compute. Values are not followed through variables of a function, but for those that naga makes
//! for `&&` and `||`.

use std::collections::{BTreeMap, BTreeSet};

use naga::{
    BinaryOperator, Block, Expression, Function, Handle, Literal, LocalVariable, Module, Statement, UnaryOperator,
};

/// What is known of private variables, by name.
pub(super) type KnownVariables = BTreeMap<&'static str, Possible>;

/// Values that an expression may have. Booleans are 0 and 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Possible {
    /// Any value.
    Any,
    /// One of these.
    OneOf(Vec<u64>),
    /// Any value without bits beyond these.
    Within(u64),
}

use Possible::{Any, OneOf, Within};

impl Possible {
    fn exactly(value: u64) -> Possible {
        OneOf(vec![value])
    }

    fn truth(value: bool) -> Possible {
        Possible::exactly(u64::from(value))
    }

    /// The value, if there is only one.
    fn single(&self) -> Option<u64> {
        match self {
            OneOf(values) if values.len() == 1 => Some(values[0]),
            Within(0) => Some(0),
            _ => None,
        }
    }

    /// Bits that may be set.
    fn bits(&self) -> u64 {
        match self {
            Any => u64::MAX,
            OneOf(values) => values.iter().fold(0, |all, value| all | value),
            Within(bits) => *bits,
        }
    }

    fn may_be(&self, value: u64) -> bool {
        match self {
            Any => true,
            OneOf(values) => values.contains(&value),
            Within(bits) => value & !bits == 0,
        }
    }

    /// Whether both are the same, if that is known.
    fn equals(&self, other: &Possible) -> Option<bool> {
        if let (Some(a), Some(b)) = (self.single(), other.single()) {
            return Some(a == b);
        }
        let differ = match (self, other) {
            (OneOf(values), x) | (x, OneOf(values)) => !values.iter().any(|&value| x.may_be(value)),
            _ => false,
        };
        differ.then_some(false)
    }
}

/// What is known of the expressions of one function.
struct Scope<'m> {
    module: &'m Module,
    facts: &'m KnownVariables,
    function: &'m Function,
    /// Values of its arguments.
    arguments: &'m [Possible],
    /// Values of variables that naga made for `&&` and `||`.
    locals: BTreeMap<Handle<LocalVariable>, Possible>,
}

impl Scope<'_> {
    fn value(&self, handle: Handle<Expression>) -> Possible {
        match self.function.expressions[handle] {
            Expression::Literal(literal) => of_literal(literal),
            Expression::Constant(constant) => {
                match self.module.global_expressions[self.module.constants[constant].init] {
                    Expression::Literal(literal) => of_literal(literal),
                    _ => Any,
                }
            }
            Expression::FunctionArgument(i) => self.arguments.get(i as usize).cloned().unwrap_or(Any),
            Expression::Load { pointer } => match self.function.expressions[pointer] {
                Expression::GlobalVariable(variable) => {
                    let name = self.module.global_variables[variable].name.as_deref().unwrap_or_default();
                    self.facts.get(name).cloned().unwrap_or(Any)
                }
                Expression::LocalVariable(variable) => self.locals.get(&variable).cloned().unwrap_or(Any),
                _ => Any,
            },
            Expression::Unary { op: UnaryOperator::LogicalNot, expr } => {
                self.value(expr).single().map_or(Any, |value| Possible::truth(value == 0))
            }
            Expression::Select { condition, accept, reject } => match self.value(condition).single() {
                Some(0) => self.value(reject),
                Some(_) => self.value(accept),
                None => Any,
            },
            Expression::Binary { op, left, right } => self.binary(op, left, right),
            _ => Any,
        }
    }

    fn binary(&self, op: BinaryOperator, left: Handle<Expression>, right: Handle<Expression>) -> Possible {
        let (a, b) = (self.value(left), self.value(right));
        match op {
            BinaryOperator::And => match (a.single(), b.single()) {
                (Some(a), Some(b)) => Possible::exactly(a & b),
                _ => Within(a.bits() & b.bits()),
            },
            BinaryOperator::Equal => a.equals(&b).map_or(Any, Possible::truth),
            BinaryOperator::NotEqual => a.equals(&b).map_or(Any, |same| Possible::truth(!same)),
            BinaryOperator::LogicalAnd if a.single() == Some(0) || b.single() == Some(0) => Possible::truth(false),
            BinaryOperator::LogicalOr if a.single() == Some(1) || b.single() == Some(1) => Possible::truth(true),
            _ => Any,
        }
    }

    /// What the function returns, if it does nothing but that: it has no effect, and its way is straight.
    fn result(&self) -> Possible {
        let mut returned = Any;
        for statement in &self.function.body {
            match statement {
                Statement::Emit(_) => {}
                Statement::Store { pointer, .. } if local(self.function, *pointer).is_some() => {}
                Statement::Return { value: Some(value) } => returned = self.value(*value),
                _ => return Any,
            }
        }
        returned
    }
}

fn of_literal(literal: Literal) -> Possible {
    match literal {
        Literal::Bool(value) => Possible::truth(value),
        Literal::U32(value) => Possible::exactly(value.into()),
        Literal::U64(value) => Possible::exactly(value),
        _ => Any,
    }
}

/// The variable of the function that `pointer` points to as a whole.
fn local(function: &Function, pointer: Handle<Expression>) -> Option<Handle<LocalVariable>> {
    match function.expressions[pointer] {
        Expression::LocalVariable(variable) => Some(variable),
        _ => None,
    }
}

/// Takes out of `module`, which is valid, what cannot be reached where `facts` hold.
pub(super) fn prune(module: &mut Module, facts: &KnownVariables) {
    let functions: Vec<Handle<Function>> = module.functions.iter().map(|(handle, _)| handle).collect();
    // A function stands behind those that it calls.
    for handle in functions {
        let function = std::mem::take(&mut module.functions[handle]);
        module.functions[handle] = pruned(module, facts, function);
    }
    for i in 0..module.entry_points.len() {
        let function = std::mem::take(&mut module.entry_points[i].function);
        module.entry_points[i].function = pruned(module, facts, function);
    }
    naga::compact::compact(module, naga::compact::KeepUnused::No);
}

fn pruned(module: &Module, facts: &KnownVariables, mut function: Function) -> Function {
    loop {
        let locals = known_locals(module, facts, &function);
        let scope = Scope { module, facts, function: &function, arguments: &[], locals };
        let mut pass = Pass { scope: &scope, results: BTreeMap::new(), changed: false };
        let body = pass.block(&function.body);
        let Pass { results, changed, .. } = pass;
        function.body = body;
        for (result, literal) in results {
            function.expressions[result] = Expression::Literal(literal);
        }
        if !changed {
            break;
        }
    }
    // A name would keep an expression of code that is gone.
    let mut evaluated = BTreeSet::new();
    note_evaluated(&function.body, &mut evaluated);
    let is_there = |function: &Function, handle: &Handle<Expression>| {
        evaluated.contains(handle)
            || matches!(
                function.expressions[*handle],
                Expression::FunctionArgument(_) | Expression::Literal(_) | Expression::Constant(_)
            )
    };
    let names = std::mem::take(&mut function.named_expressions);
    function.named_expressions = names.into_iter().filter(|(handle, _)| is_there(&function, handle)).collect();
    function
}

/// One walk over the body of a function.
struct Pass<'s> {
    scope: &'s Scope<'s>,
    /// Results of calls that were taken out, with their values.
    results: BTreeMap<Handle<Expression>, Literal>,
    changed: bool,
}

impl Pass<'_> {
    fn block(&mut self, block: &Block) -> Block {
        let mut out = Block::new();
        for (statement, span) in block.span_iter() {
            match statement {
                Statement::If { condition, accept, reject } => match self.scope.value(*condition).single() {
                    Some(value) => {
                        self.changed = true;
                        let taken = self.block(if value == 0 { reject } else { accept });
                        out.extend_block(taken);
                    }
                    None => {
                        let (accept, reject) = (self.block(accept), self.block(reject));
                        out.push(Statement::If { condition: *condition, accept, reject }, *span);
                    }
                },
                Statement::Switch { selector, cases } => {
                    let possible = self.scope.value(*selector);
                    let reached = cases.iter().filter(|case| match case.value {
                        naga::SwitchValue::U32(value) => case.fall_through || possible.may_be(value.into()),
                        _ => true,
                    });
                    let cases: Vec<naga::SwitchCase> =
                        reached.map(|case| naga::SwitchCase { body: self.block(&case.body), ..case.clone() }).collect();
                    out.push(Statement::Switch { selector: *selector, cases }, *span);
                }
                Statement::Loop { body, continuing, break_if } => {
                    let (body, continuing) = (self.block(body), self.block(continuing));
                    out.push(Statement::Loop { body, continuing, break_if: *break_if }, *span);
                }
                Statement::Block(inner) => {
                    let inner = self.block(inner);
                    out.push(Statement::Block(inner), *span);
                }
                Statement::Call { function, arguments, result: Some(result) } => {
                    match self.returned(*function, arguments) {
                        Some(literal) => {
                            self.changed = true;
                            self.results.insert(*result, literal);
                        }
                        None => out.push(statement.clone(), *span),
                    }
                }
                other => out.push(other.clone(), *span),
            }
            // Nothing after it is reached.
            let leaves = |last: &Statement| {
                matches!(last, Statement::Return { .. } | Statement::Break | Statement::Continue | Statement::Kill)
            };
            if out.last().is_some_and(leaves) {
                break;
            }
        }
        out
    }

    /// The truth that a call of `callee` returns, if it is known and the call does nothing else.
    fn returned(&self, callee: Handle<Function>, arguments: &[Handle<Expression>]) -> Option<Literal> {
        let Scope { module, facts, .. } = *self.scope;
        let function = &module.functions[callee];
        let result = function.result.as_ref()?;
        if module.types[result.ty].inner != naga::TypeInner::Scalar(naga::Scalar::BOOL) {
            return None;
        }
        let arguments: Vec<Possible> = arguments.iter().map(|&argument| self.scope.value(argument)).collect();
        let locals = known_locals(module, facts, function);
        let value = Scope { module, facts, function, arguments: &arguments, locals }.result().single()?;
        Some(Literal::Bool(value != 0))
    }
}

/// Values of the variables that naga made for `&&` and `||`, where all that is stored in one is the same. It is always stored before it is read.
fn known_locals(
    module: &Module,
    facts: &KnownVariables,
    function: &Function,
) -> BTreeMap<Handle<LocalVariable>, Possible> {
    let mut stored: BTreeMap<Handle<LocalVariable>, Vec<Handle<Expression>>> = BTreeMap::new();
    note_stores(function, &function.body, &mut stored);
    let scope = Scope { module, facts, function, arguments: &[], locals: BTreeMap::new() };
    let is_made = |variable: Handle<LocalVariable>| {
        let variable = &function.local_variables[variable];
        variable.name.is_none()
            && variable.init.is_none()
            && module.types[variable.ty].inner == naga::TypeInner::Scalar(naga::Scalar::BOOL)
    };
    let known = |values: Vec<Handle<Expression>>| {
        let mut values = values.into_iter().map(|value| scope.value(value).single());
        let first = values.next()??;
        values.all(|value| value == Some(first)).then(|| Possible::exactly(first))
    };
    let candidates = stored.into_iter().filter(|(variable, _)| is_made(*variable));
    candidates.filter_map(|(variable, values)| Some((variable, known(values)?))).collect()
}

fn note_stores(
    function: &Function,
    block: &Block,
    stored: &mut BTreeMap<Handle<LocalVariable>, Vec<Handle<Expression>>>,
) {
    for statement in block {
        if let Statement::Store { pointer, value } = statement
            && let Some(variable) = local(function, *pointer)
        {
            stored.entry(variable).or_default().push(*value);
        }
        inner_blocks(statement).for_each(|inner| note_stores(function, inner, stored));
    }
}

/// Notes the expressions that are evaluated in `block`.
fn note_evaluated(block: &Block, evaluated: &mut BTreeSet<Handle<Expression>>) {
    for statement in block {
        match statement {
            Statement::Emit(range) => evaluated.extend(range.clone()),
            Statement::Call { result: Some(result), .. }
            | Statement::Atomic { result: Some(result), .. }
            | Statement::WorkGroupUniformLoad { result, .. } => {
                evaluated.insert(*result);
            }
            _ => {}
        }
        inner_blocks(statement).for_each(|inner| note_evaluated(inner, evaluated));
    }
}

/// The blocks in a statement.
fn inner_blocks(statement: &Statement) -> impl Iterator<Item = &Block> {
    let (pair, cases): ([Option<&Block>; 2], &[naga::SwitchCase]) = match statement {
        Statement::If { accept, reject, .. } => ([Some(accept), Some(reject)], &[]),
        Statement::Loop { body, continuing, .. } => ([Some(body), Some(continuing)], &[]),
        Statement::Block(inner) => ([Some(inner), None], &[]),
        Statement::Switch { cases, .. } => ([None, None], cases),
        _ => ([None, None], &[]),
    };
    pair.into_iter().flatten().chain(cases.iter().map(|case| &case.body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::kernels::source::validate;

    /// Names of functions, and the number of statements of the entry point, that are left of `text` where `mode` has no other bits than 1, and `kind` is 2 or 3.
    fn left_of(body: &str) -> (Vec<String>, Module) {
        let text = format!(
            "var<private> mode: u32;\nvar<private> kind: u32;\n@group(0) @binding(0) var<storage, read_write> rows: array<u32>;\n
             fn has(bit: u32) -> bool {{ return (mode & bit) != 0u; }}
             fn has_both(bits: u32) -> bool {{ return (mode & bits) == bits; }}
             fn has_two() -> bool {{ return has(2u); }}
             fn neither() -> bool {{ return has(2u) || has(4u); }}
             fn a() {{ rows[0] = 1u; }}\nfn b() {{ rows[1] = 2u; }}\nfn c() -> bool {{ rows[2] = 3u; return true; }}
             @compute @workgroup_size(1) fn main() {{ mode = rows[3]; kind = rows[4]; {body} }}"
        );
        let (mut module, _) = validate(&text).unwrap_or_else(|e| panic!("{e}"));
        let facts = KnownVariables::from([("mode", Within(1)), ("kind", OneOf(vec![2, 3]))]);
        prune(&mut module, &facts);
        naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty())
            .validate(&module)
            .unwrap_or_else(|e| panic!("{body}: {e:?}"));
        (module.functions.iter().map(|(_, f)| f.name.clone().unwrap_or_default()).collect(), module)
    }

    #[test]
    fn what_no_experiment_reaches_is_removed() {
        for (body, left) in [
            ("if has(2u) { a(); } else { b(); }", vec!["b"]),
            ("if has(1u) { a(); }", vec!["has", "a"]),
            ("if has_both(3u) { a(); }", vec![]),
            ("if has_both(1u) { a(); }", vec!["has_both", "a"]),
            ("if has_two() { a(); }", vec![]),
            ("if has(1u) && has(2u) { a(); }", vec!["has"]),
            ("if has_two() || has(1u) { a(); }", vec!["has", "a"]),
            ("if neither() { a(); } b();", vec!["b"]),
            ("if !has_two() { a(); return; } b();", vec!["a"]),
            ("if kind == 7u { a(); }", vec![]),
            ("if kind == 2u { a(); }", vec!["a"]),
            ("if kind != 5u { a(); } else { b(); }", vec!["a"]),
            ("switch kind { case 1u: { a(); } case 2u: { b(); } default: { } }", vec!["b"]),
            ("let two = has_two(); loop { if two || kind == 9u { a(); } if rows[0] == 1u { break; } }", vec![]),
            // A call that does something stays, whatever it returns.
            ("if c() { a(); }", vec!["a", "c"]),
            ("if c() && has_two() { a(); }", vec!["c"]),
        ] {
            assert_eq!(left_of(body).0, left, "{body}");
        }
    }

    #[test]
    fn names_of_removed_code_keep_nothing() {
        let (left, module) = left_of("let x = rows[7]; if has_two() { let y = c(); if y { a(); } } rows[8] = x;");
        assert_eq!(left, [""; 0]);
        assert_eq!(module.entry_points[0].function.named_expressions.len(), 1);
    }
}
