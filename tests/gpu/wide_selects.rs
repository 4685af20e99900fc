//! A pattern that kernels must not contain, found in the kernels as the compiler reads them. Needs no adapter.
//!
//! NVIDIA's compiler takes the carry of a sum or difference of 64 bits for a comparison of the same values. In large kernels the upper half of what
//! `select` chooses is then whatever a register held. The comment at `sub_sat` in `shaders/math.wgsl` has the driver and how to write such sums.

use std::collections::BTreeMap;

use hyperfold_engine::gpu::KernelParts;
use hyperfold_engine::gpu::{rates, source};
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    BinaryOperator, Block, Expression, Function, Handle, LocalVariable, Module, Scalar, ScalarKind, Statement,
    TypeInner,
};

type Expr = Handle<Expression>;
/// Values that are stored in a local variable, each with the condition of the branch that stores it.
type Stores = BTreeMap<Handle<LocalVariable>, Vec<(Expr, Option<Expr>)>>;

/// How many variables are followed, one into the other.
const MAX_DEPTH: u32 = 8;

/// A function with what the validator knows of it.
struct Looked<'a> {
    module: &'a Module,
    function: &'a Function,
    info: &'a FunctionInfo,
    stores: Stores,
}

/// Collects what `block`, which runs under `condition`, stores in local variables.
fn stores_in(function: &Function, block: &Block, condition: Option<Expr>, found: &mut Stores) {
    for statement in block {
        match statement {
            Statement::Store { pointer, value } => {
                if let Expression::LocalVariable(variable) = function.expressions[*pointer] {
                    found.entry(variable).or_default().push((*value, condition));
                }
            }
            Statement::Block(inner) => stores_in(function, inner, condition, found),
            Statement::If { condition, accept, reject } => {
                stores_in(function, accept, Some(*condition), found);
                stores_in(function, reject, Some(*condition), found);
            }
            Statement::Switch { cases, .. } => {
                cases.iter().for_each(|case| stores_in(function, &case.body, condition, found));
            }
            Statement::Loop { body, continuing, .. } => {
                stores_in(function, body, condition, found);
                stores_in(function, continuing, condition, found);
            }
            _ => {}
        }
    }
}

impl<'a> Looked<'a> {
    fn new(module: &'a Module, function: &'a Function, info: &'a FunctionInfo) -> Looked<'a> {
        let mut stores = Stores::new();
        for (variable, local) in function.local_variables.iter() {
            stores.entry(variable).or_default().extend(local.init.map(|value| (value, None)));
        }
        stores_in(function, &function.body, None, &mut stores);
        Looked { module, function, info, stores }
    }

    /// Values that a load of a local variable may give, each with the condition of its branch. `&&` and `||` are such variables, too.
    fn stored(&self, expr: Expr) -> &[(Expr, Option<Expr>)] {
        let Expression::Load { pointer } = self.function.expressions[expr] else { return &[] };
        let Expression::LocalVariable(variable) = self.function.expressions[pointer] else { return &[] };
        self.stores.get(&variable).map_or(&[], Vec::as_slice)
    }

    fn is_wide(&self, expr: Expr) -> bool {
        let inner = self.info[expr].ty.inner_with(&self.module.types);
        matches!(inner, TypeInner::Scalar(Scalar { kind: ScalarKind::Sint | ScalarKind::Uint, width: 8 }))
    }

    /// Sums and differences that a value may be, each with its operands.
    fn sums(&self, expr: Expr, depth: u32, found: &mut Vec<[Expr; 3]>) {
        if let Expression::Binary { op: BinaryOperator::Add | BinaryOperator::Subtract, left, right } =
            self.function.expressions[expr]
        {
            found.push([expr, left, right]);
        }
        if depth > 0 {
            self.stored(expr).iter().for_each(|&(value, _)| self.sums(value, depth - 1, found));
        }
    }

    /// Values that are compared in a condition, however comparisons are joined.
    fn compared(&self, condition: Expr, depth: u32, found: &mut Vec<Expr>) {
        use BinaryOperator as B;
        let Some(depth) = depth.checked_sub(1) else { return };
        match self.function.expressions[condition] {
            Expression::Binary {
                op: B::Equal | B::NotEqual | B::Less | B::LessEqual | B::Greater | B::GreaterEqual,
                left,
                right,
            } => found.extend([left, right]),
            Expression::Binary { op: B::LogicalAnd | B::LogicalOr | B::And | B::InclusiveOr, left, right } => {
                self.compared(left, depth, found);
                self.compared(right, depth, found);
            }
            Expression::Unary { op: naga::UnaryOperator::LogicalNot, expr } => self.compared(expr, depth, found),
            _ => {
                for &(value, branch) in self.stored(condition) {
                    self.compared(value, depth, found);
                    branch.into_iter().for_each(|branch| self.compared(branch, depth, found));
                }
            }
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
        let (mut compared, mut sums) = (Vec::new(), Vec::new());
        self.compared(condition, MAX_DEPTH, &mut compared);
        let branches = [accept, reject].into_iter().filter(|&branch| self.is_wide(branch));
        branches.for_each(|branch| self.sums(branch, MAX_DEPTH, &mut sums));
        sums.iter().flatten().any(|&part| compared.iter().any(|&value| self.same(value, part)))
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
    all.filter(|&(function, info, _)| Looked::new(module, function, info).banned() > 0).map(|(.., name)| name).collect()
}

fn found_in(text: &str) -> Vec<String> {
    let (module, info) = source::validate(text).unwrap_or_else(|e| panic!("{e}"));
    functions_with_the_pattern(&module, &info)
}

#[test]
fn no_kernel_selects_a_wide_sum_by_comparing_its_parts() {
    for workgroup in [64, 128, 256] {
        let kernels = [source::compose(workgroup, KernelParts::ALL), rates::source::compose(workgroup)];
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
        "select(0lu, a - b, b == 3lu || a > b)",
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
    let kernel = |body: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> rows: array<u64>;\n\
             fn old(a: u64, b: u64) -> u64 {{ {body} }}\n\
             @compute @workgroup_size(1) fn main() {{ rows[0] = old(rows[1], rows[2]); }}"
        )
    };
    for expression in banned {
        assert_eq!(found_in(&kernel(&format!("return {expression};"))), ["old"], "{expression}");
    }
    let in_variables = "var sum = a - b; let more = a > b; return select(0lu, sum, more && sum != 7lu);";
    assert_eq!(found_in(&kernel(in_variables)), ["old"]);
    for expression in allowed {
        assert_eq!(found_in(&kernel(&format!("return {expression};"))), Vec::<String>::new(), "{expression}");
    }
}

/// The helpers as they were when the driver's fault was found.
#[test]
fn the_helpers_that_were_compiled_wrongly_are_found() {
    let text = source::compose(128, KernelParts::ALL).expect("a usable size");
    let sums = [
        ("return a - min(a, b);", "return select(0lu, a - b, a > b);", "sub_sat"),
        ("return a + min(b, MAX_U64 - a);", "let sum = a + b; return select(sum, MAX_U64, sum < a);", "add_sat"),
    ];
    for (right, wrong, function) in sums {
        assert!(text.contains(right), "{right}");
        assert_eq!(found_in(&text.replace(right, wrong)), [function]);
    }
}
