//! A pattern that kernels must not contain, found in the kernels as the compiler reads them. Needs no adapter.
//!
//! NVIDIA's compiler takes the carry of a sum or difference of 64 bits for a comparison of the same values. In large kernels the upper half of what
//! `select` chooses is then whatever a register held. The comment at `sub_sat` in `shaders/math.wgsl` has the driver and how to write such sums.

use hyperfold_engine::gpu::{rates, source};
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{BinaryOperator, Expression, Function, Handle, Module, Scalar, ScalarKind, TypeInner};

type Expr = Handle<Expression>;

/// A function with what the validator knows of it.
struct Looked<'a> {
    module: &'a Module,
    function: &'a Function,
    info: &'a FunctionInfo,
}

impl Looked<'_> {
    fn is_wide(&self, expr: Expr) -> bool {
        let inner = self.info[expr].ty.inner_with(&self.module.types);
        matches!(inner, TypeInner::Scalar(Scalar { kind: ScalarKind::Sint | ScalarKind::Uint, width: 8 }))
    }

    /// The operands of a sum or difference.
    fn sum(&self, expr: Expr) -> Option<[Expr; 2]> {
        match self.function.expressions[expr] {
            Expression::Binary { op: BinaryOperator::Add | BinaryOperator::Subtract, left, right } => {
                Some([left, right])
            }
            _ => None,
        }
    }

    /// Values that are compared in a condition, however comparisons are joined.
    fn compared(&self, condition: Expr, found: &mut Vec<Expr>) {
        use BinaryOperator as B;
        match self.function.expressions[condition] {
            Expression::Binary {
                op: B::Equal | B::NotEqual | B::Less | B::LessEqual | B::Greater | B::GreaterEqual,
                left,
                right,
            } => found.extend([left, right]),
            Expression::Binary { op: B::LogicalAnd | B::LogicalOr | B::And | B::InclusiveOr, left, right } => {
                self.compared(left, found);
                self.compared(right, found);
            }
            Expression::Unary { op: naga::UnaryOperator::LogicalNot, expr } => self.compared(expr, found),
            _ => {}
        }
    }

    /// Whether two expressions are the same value as far as their form says: also two loads of one place.
    fn same(&self, a: Expr, b: Expr) -> bool {
        use Expression as E;
        if a == b {
            return true;
        }
        match (&self.function.expressions[a], &self.function.expressions[b]) {
            (E::Load { pointer: a }, E::Load { pointer: b }) => self.same(*a, *b),
            (E::Access { base: a, index: i }, E::Access { base: b, index: j }) => {
                self.same(*a, *b) && self.same(*i, *j)
            }
            (E::AccessIndex { base: a, index: i }, E::AccessIndex { base: b, index: j }) => i == j && self.same(*a, *b),
            (E::Binary { op: o, left: a, right: i }, E::Binary { op: p, left: b, right: j }) => {
                o == p && self.same(*a, *b) && self.same(*i, *j)
            }
            (E::As { expr: a, .. }, E::As { expr: b, .. }) => self.same(*a, *b),
            (E::Literal(a), E::Literal(b)) => a == b,
            (E::Constant(a), E::Constant(b)) => a == b,
            (E::LocalVariable(a), E::LocalVariable(b)) => a == b,
            (E::GlobalVariable(a), E::GlobalVariable(b)) => a == b,
            _ => false,
        }
    }

    /// Whether `select` chooses between a sum and something else by a comparison of the sum or of a part of it.
    fn is_banned(&self, accept: Expr, reject: Expr, condition: Expr) -> bool {
        let mut compared = Vec::new();
        self.compared(condition, &mut compared);
        [accept, reject].into_iter().filter(|&branch| self.is_wide(branch)).any(|branch| {
            self.sum(branch).is_some_and(|[left, right]| {
                let parts = [branch, left, right];
                compared.iter().any(|&value| parts.iter().any(|&part| self.same(value, part)))
            })
        })
    }

    fn banned(&self) -> usize {
        let select = |expr: &Expression| match *expr {
            Expression::Select { accept, reject, condition } => Some((accept, reject, condition)),
            _ => None,
        };
        let all = self.function.expressions.iter().filter_map(|(_, expr)| select(expr));
        all.filter(|&(accept, reject, condition)| self.is_banned(accept, reject, condition)).count()
    }
}

/// Functions of a module that contain the pattern.
fn functions_with_the_pattern(module: &Module, info: &ModuleInfo) -> Vec<String> {
    let functions = module.functions.iter().map(|(handle, function)| (function, &info[handle], &function.name));
    let entries = module.entry_points.iter().enumerate();
    let all = functions
        .map(|(function, info, name)| (function, info, name.clone().unwrap_or_default()))
        .chain(entries.map(|(i, entry)| (&entry.function, info.get_entry_point(i), entry.name.clone())));
    all.filter(|&(function, info, _)| Looked { module, function, info }.banned() > 0).map(|(.., name)| name).collect()
}

fn found_in(text: &str) -> Vec<String> {
    let (module, info) = source::validate(text).unwrap_or_else(|e| panic!("{e}"));
    functions_with_the_pattern(&module, &info)
}

#[test]
fn no_kernel_selects_a_wide_sum_by_comparing_its_parts() {
    for workgroup in [64, 128, 256] {
        let kernels = [source::compose(workgroup), rates::source::compose(workgroup)];
        for text in kernels {
            let found = found_in(&text.expect("a usable size"));
            assert!(
                found.is_empty(),
                "{found:?}: `select` of a sum or difference of 64 bits by a comparison of its parts, which NVIDIA's compiler gets wrong in large \
                 kernels; write it with `min`, as the comment at `sub_sat` in shaders/math.wgsl says"
            );
        }
    }
}

#[test]
fn the_pattern_is_found_in_every_form() {
    let banned = [
        "select(0lu, a - b, a > b)",
        "select(a - b, 0lu, a <= b)",
        "select(0lu, a - b, b < a)",
        "select(a + b, 0xfffffffffffffffflu, a + b < a)",
        "select(0lu, a - b, a > b && b > 3lu)",
        "select(0lu, a - b, !(a <= b))",
        "select(0lu, rows[1] - rows[2], rows[1] > rows[2])",
        "u64(select(0li, i64(a) - i64(b), i64(a) > i64(b)))",
    ];
    let allowed = [
        "a - min(a, b)",
        "a + min(b, 0xfffffffffffffffflu - a)",
        "select(a, b, a > b)",
        "select(0lu, a - b, rows[3] == 7lu)",
        "a - select(0lu, 1lu, a > b)",
        "u64(select(0u, u32(a) - u32(b), u32(a) > u32(b)))",
    ];
    let kernel = |expression: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> rows: array<u64>;\n\
             fn old(a: u64, b: u64) -> u64 {{ return {expression}; }}\n\
             @compute @workgroup_size(1) fn main() {{ rows[0] = old(rows[1], rows[2]); }}"
        )
    };
    for expression in banned {
        assert_eq!(found_in(&kernel(expression)), ["old"], "{expression}");
    }
    for expression in allowed {
        assert_eq!(found_in(&kernel(expression)), Vec::<String>::new(), "{expression}");
    }
}

/// The helpers as they were when the driver's fault was found.
#[test]
fn the_helpers_that_were_compiled_wrongly_are_found() {
    let text = source::compose(128).expect("a usable size");
    let sums = [
        ("return a - min(a, b);", "return select(0lu, a - b, a > b);", "sub_sat"),
        ("return a + min(b, MAX_U64 - a);", "let sum = a + b; return select(sum, MAX_U64, sum < a);", "add_sat"),
    ];
    for (right, wrong, function) in sums {
        assert!(text.contains(right), "{right}");
        assert_eq!(found_in(&text.replace(right, wrong)), [function]);
    }
}
