//! Compiles expressions.

use naga::{
    BinaryOperator, Expression, Handle, MathFunction, RelationalFunction, ScalarKind, TypeInner, UnaryOperator,
};

use crate::error::CompileError;
use crate::functions::{ExpressionValue, FunctionCompiler};
use crate::instructions::{BinaryFunction, Instruction, Length, MemoryPlace, NO_SLOT, Root, SlotIdx, UnaryFunction};
use crate::layout::{Element, element, is_wide, leaves};
use crate::values::constant;

impl FunctionCompiler<'_, '_> {
    /// The slots of an expression's value.
    pub(crate) fn value(&mut self, expression: Handle<Expression>) -> Result<SlotIdx, CompileError> {
        match self.any_value(expression)? {
            ExpressionValue::Slots(slot) => Ok(slot),
            ExpressionValue::Pointer(_) => Err(CompileError::unknown("pointers as values")),
        }
    }

    /// The place of a pointer.
    pub(crate) fn place(&mut self, pointer: Handle<Expression>) -> Result<MemoryPlace, CompileError> {
        match self.any_value(pointer)? {
            ExpressionValue::Pointer(place) => Ok(place),
            ExpressionValue::Slots(_) => Err(CompileError::unknown("values as pointers")),
        }
    }

    fn any_value(&mut self, expression: Handle<Expression>) -> Result<ExpressionValue, CompileError> {
        if let Some(value) = self.values.get(&expression) {
            return Ok(*value);
        }
        let function = self.function;
        let value = match &function.expressions[expression] {
            Expression::FunctionArgument(k) => ExpressionValue::Slots(self.code.arguments[*k as usize]),
            Expression::GlobalVariable(handle) => ExpressionValue::Pointer(
                *self.globals.variables.get(handle).ok_or_else(|| CompileError::unknown("this global variable"))?,
            ),
            Expression::LocalVariable(handle) => {
                ExpressionValue::Pointer(MemoryPlace { root: Root::Own, offset: self.locals[handle], dynamic: NO_SLOT })
            }
            _ => {
                let values = constant(self.globals.module, &function.expressions, expression)?;
                ExpressionValue::Slots(self.globals.constant_slots(&values))
            }
        };
        self.values.insert(expression, value);
        Ok(value)
    }

    /// Evaluates an expression where the text says so.
    pub(crate) fn emit(&mut self, expression: Handle<Expression>) -> Result<(), CompileError> {
        let function = self.function;
        let value = match &function.expressions[expression] {
            Expression::Access { base, index } => {
                let index = self.value(*index)?;
                self.access(*base, Err(index))?
            }
            Expression::AccessIndex { base, index } => self.access(*base, Ok(*index))?,
            Expression::Compose { components, .. } => {
                let mut parts = Vec::new();
                for part in components {
                    parts.push((self.value(*part)?, self.n_leaves(*part)?));
                }
                self.join(&parts)
            }
            Expression::Splat { size, value } => {
                let part = (self.value(*value)?, 1);
                self.join(&vec![part; *size as usize])
            }
            Expression::Swizzle { size, vector, pattern } => {
                let from = self.value(*vector)?;
                let parts: Vec<_> = pattern[..*size as usize].iter().map(|&k| (from + k as u32, 1)).collect();
                self.join(&parts)
            }
            Expression::Load { pointer } => ExpressionValue::Slots(self.load(*pointer)?),
            Expression::Unary { op, expr } => self.unary(*op, *expr)?,
            Expression::Binary { op, left, right } => self.binary(*op, *left, *right)?,
            Expression::Select { condition, accept, reject } => self.select(*condition, *accept, *reject)?,
            Expression::Relational { fun, argument } => self.relational(*fun, *argument)?,
            Expression::Math { fun, arg, arg1, arg2, .. } => self.math(*fun, *arg, *arg1, *arg2)?,
            Expression::As { expr, kind, convert } => self.cast(*expr, *kind, *convert)?,
            Expression::ArrayLength(pointer) => self.array_length(*pointer)?,
            _ => return self.any_value(expression).map(|_| ()),
        };
        self.values.insert(expression, value);
        Ok(())
    }

    /// Number of scalars in the value of an expression.
    pub(crate) fn n_leaves(&self, expression: Handle<Expression>) -> Result<usize, CompileError> {
        Ok(leaves(self.globals.module, self.type_of(expression))?.len())
    }

    /// A value of these parts: first slot and number of slots of each.
    fn join(&mut self, parts: &[(SlotIdx, usize)]) -> ExpressionValue {
        let slot = self.new_slots(parts.iter().map(|part| part.1).sum());
        let mut to = slot;
        for &(from, n) in parts {
            self.add(Instruction::Copy { to, from, n: n as u32 });
            to += n as u32;
        }
        ExpressionValue::Slots(slot)
    }

    /// Part of a value or of what a pointer points to: by a known index, or by one in a slot.
    fn access(
        &mut self,
        base: Handle<Expression>,
        index: Result<u32, SlotIdx>,
    ) -> Result<ExpressionValue, CompileError> {
        let module = self.globals.module;
        let is_pointer = matches!(self.type_of(base), TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. });
        let inner = if is_pointer { self.pointee(base)? } else { self.type_of(base).clone() };
        let is_struct = matches!(inner, TypeInner::Struct { .. });
        let part = element(module, &inner, index.ok())?;
        let place = if is_pointer {
            self.place(base)?
        } else {
            MemoryPlace { root: Root::Own, offset: self.value(base)?, dynamic: NO_SLOT }
        };
        let Element { words, slots, length } = part;
        let stride = if matches!(place.root, Root::Buffer(_)) { words } else { slots };
        let place = match index {
            Ok(k) => MemoryPlace { offset: place.offset + if is_struct { stride } else { k * stride }, ..place },
            Err(index) => {
                let length = match (length, place.root) {
                    (Some(n), _) => Length::Known(n),
                    (None, Root::Buffer(buffer)) => Length::Rest { buffer, offset: place.offset },
                    (None, _) => return Err(CompileError::unknown("arrays without a length outside buffers")),
                };
                let to = self.new_slots(1);
                self.add(Instruction::Index { to, base: place.dynamic, index, stride, length });
                MemoryPlace { dynamic: to, ..place }
            }
        };
        if is_pointer {
            return Ok(ExpressionValue::Pointer(place));
        }
        if place.dynamic == NO_SLOT {
            return Ok(ExpressionValue::Slots(place.offset));
        }
        let to = self.new_slots(slots as usize);
        self.add(Instruction::Load { to, place, n: slots });
        Ok(ExpressionValue::Slots(to))
    }

    /// Loads what a pointer points to.
    pub(crate) fn load(&mut self, pointer: Handle<Expression>) -> Result<SlotIdx, CompileError> {
        let (place, inner) = (self.place(pointer)?, self.pointee(pointer)?);
        let accesses = self.accesses(place, &inner)?;
        let n = accesses.len() as u32;
        let to = self.new_slots(accesses.len());
        match place.root {
            Root::Buffer(_) => {
                for (to, (place, access)) in (to..).zip(accesses) {
                    self.add(Instruction::LoadBuffer { to, place, access });
                }
            }
            Root::Own if place.dynamic == NO_SLOT => self.add(Instruction::Copy { to, from: place.offset, n }),
            Root::Group | Root::Own => self.add(Instruction::Load { to, place, n }),
        }
        Ok(to)
    }

    /// Type of the scalars of an expression: whether they are signed, and whether they have 64 bits.
    fn scalar(&self, expression: Handle<Expression>) -> Result<(ScalarKind, bool), CompileError> {
        let (TypeInner::Scalar(scalar) | TypeInner::Vector { scalar, .. }) = self.type_of(expression) else {
            return Err(CompileError::unknown("arithmetic of what is no number"));
        };
        Ok((scalar.kind, is_wide(*scalar)?))
    }

    /// Slots for `n` results. `instruction` makes the one that computes a result, from its slot and its number.
    fn each(&mut self, n: usize, instruction: impl Fn(SlotIdx, u32) -> Instruction) -> ExpressionValue {
        let to = self.new_slots(n);
        for k in 0..n as u32 {
            self.add(instruction(to + k, k));
        }
        ExpressionValue::Slots(to)
    }

    /// Applies `f` to each scalar.
    fn apply(&mut self, argument: Handle<Expression>, f: UnaryFunction) -> Result<ExpressionValue, CompileError> {
        let (a, n) = (self.value(argument)?, self.n_leaves(argument)?);
        Ok(self.each(n, |to, k| Instruction::Unary { f, to, a: a + k }))
    }

    fn unary(&mut self, op: UnaryOperator, argument: Handle<Expression>) -> Result<ExpressionValue, CompileError> {
        let (_, wide) = self.scalar(argument)?;
        let f = match (op, wide) {
            (UnaryOperator::Negate, false) => UnaryFunction::Negate32,
            (UnaryOperator::Negate, true) => UnaryFunction::Negate64,
            (UnaryOperator::LogicalNot, _) => UnaryFunction::NotBool,
            (UnaryOperator::BitwiseNot, false) => UnaryFunction::Not32,
            (UnaryOperator::BitwiseNot, true) => UnaryFunction::Not64,
        };
        self.apply(argument, f)
    }

    /// Applies `f` to each pair of scalars. One of the operands may be a scalar for all.
    fn pairs(
        &mut self,
        f: BinaryFunction,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Result<ExpressionValue, CompileError> {
        let (a, b) = (self.value(left)?, self.value(right)?);
        let (n_a, n_b) = (self.n_leaves(left)?, self.n_leaves(right)?);
        let step = |n: usize, k: u32| if n == 1 { 0 } else { k };
        Ok(self.each(n_a.max(n_b), |to, k| Instruction::Binary { f, to, a: a + step(n_a, k), b: b + step(n_b, k) }))
    }

    fn binary(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Result<ExpressionValue, CompileError> {
        use BinaryOperator as Op;
        let (kind, wide) = self.scalar(left)?;
        let signed = kind == ScalarKind::Sint;
        let by_width = |narrow, broad| if wide { broad } else { narrow };
        let by_type = |unsigned, i32, i64| if signed { by_width(i32, i64) } else { unsigned };
        let f = match op {
            Op::Add => by_width(BinaryFunction::Add32, BinaryFunction::Add64),
            Op::Subtract => by_width(BinaryFunction::Subtract32, BinaryFunction::Subtract64),
            Op::Multiply => by_width(BinaryFunction::Multiply32, BinaryFunction::Multiply64),
            Op::Divide => by_type(BinaryFunction::Divide, BinaryFunction::DivideI32, BinaryFunction::DivideI64),
            Op::Modulo => by_type(BinaryFunction::Rest, BinaryFunction::RestI32, BinaryFunction::RestI64),
            Op::Equal => BinaryFunction::Equal,
            Op::NotEqual => BinaryFunction::NotEqual,
            Op::Less => by_type(BinaryFunction::Less, BinaryFunction::LessI32, BinaryFunction::LessI64),
            Op::LessEqual => {
                by_type(BinaryFunction::LessEqual, BinaryFunction::LessEqualI32, BinaryFunction::LessEqualI64)
            }
            Op::Greater => {
                return self.pairs(
                    by_type(BinaryFunction::Less, BinaryFunction::LessI32, BinaryFunction::LessI64),
                    right,
                    left,
                );
            }
            Op::GreaterEqual => {
                let f = by_type(BinaryFunction::LessEqual, BinaryFunction::LessEqualI32, BinaryFunction::LessEqualI64);
                return self.pairs(f, right, left);
            }
            Op::And | Op::LogicalAnd => BinaryFunction::And,
            Op::InclusiveOr | Op::LogicalOr => BinaryFunction::Or,
            Op::ExclusiveOr => BinaryFunction::Xor,
            Op::ShiftLeft => by_width(BinaryFunction::Left32, BinaryFunction::Left64),
            Op::ShiftRight => match (signed, wide) {
                (false, false) => BinaryFunction::Right32,
                (false, true) => BinaryFunction::Right64,
                (true, false) => BinaryFunction::RightI32,
                (true, true) => BinaryFunction::RightI64,
            },
        };
        self.pairs(f, left, right)
    }

    fn select(
        &mut self,
        condition: Handle<Expression>,
        accept: Handle<Expression>,
        reject: Handle<Expression>,
    ) -> Result<ExpressionValue, CompileError> {
        let n_conditions = self.n_leaves(condition)?;
        let (condition, n) = (self.value(condition)?, self.n_leaves(accept)?);
        let (yes, no) = (self.value(accept)?, self.value(reject)?);
        Ok(self.each(n, |to, k| Instruction::Select {
            to,
            condition: condition + if n_conditions == 1 { 0 } else { k },
            yes: yes + k,
            no: no + k,
        }))
    }

    fn relational(
        &mut self,
        fun: RelationalFunction,
        argument: Handle<Expression>,
    ) -> Result<ExpressionValue, CompileError> {
        let f = match fun {
            RelationalFunction::All => BinaryFunction::And,
            RelationalFunction::Any => BinaryFunction::Or,
            other => return Err(CompileError::unknown(format!("the function {other:?}"))),
        };
        let (a, n) = (self.value(argument)?, self.n_leaves(argument)?);
        let to = self.new_slots(1);
        self.add(Instruction::Copy { to, from: a, n: 1 });
        for k in 1..n as u32 {
            self.add(Instruction::Binary { f, to, a: to, b: a + k });
        }
        Ok(ExpressionValue::Slots(to))
    }

    fn math(
        &mut self,
        fun: MathFunction,
        a: Handle<Expression>,
        b: Option<Handle<Expression>>,
        c: Option<Handle<Expression>>,
    ) -> Result<ExpressionValue, CompileError> {
        let (kind, wide) = self.scalar(a)?;
        let signed = kind == ScalarKind::Sint;
        let unknown = || CompileError::unknown(format!("the function {fun:?} of {kind:?}"));
        let by_type = |unsigned, i32, i64| match (signed, wide) {
            (false, _) => unsigned,
            (true, false) => i32,
            (true, true) => i64,
        };
        let min = by_type(BinaryFunction::Min, BinaryFunction::MinI32, BinaryFunction::MinI64);
        let max = by_type(BinaryFunction::Max, BinaryFunction::MaxI32, BinaryFunction::MaxI64);
        match (fun, b, c) {
            (MathFunction::Min, Some(b), _) => self.pairs(min, a, b),
            (MathFunction::Max, Some(b), _) => self.pairs(max, a, b),
            (MathFunction::Clamp, Some(low), Some(high)) => {
                let ExpressionValue::Slots(raised) = self.pairs(max, a, low)? else { return Err(unknown()) };
                let (high, n) = (self.value(high)?, self.n_leaves(a)?);
                Ok(self.each(n, |to, k| Instruction::Binary { f: min, to, a: raised + k, b: high + k }))
            }
            (MathFunction::Abs, ..) if !signed => Ok(ExpressionValue::Slots(self.value(a)?)),
            (MathFunction::Abs, ..) => self.apply(a, if wide { UnaryFunction::Abs64 } else { UnaryFunction::Abs32 }),
            (MathFunction::CountLeadingZeros, ..) => {
                self.apply(a, if wide { UnaryFunction::LeadingZeros64 } else { UnaryFunction::LeadingZeros32 })
            }
            (MathFunction::CountTrailingZeros, ..) => {
                self.apply(a, if wide { UnaryFunction::TrailingZeros64 } else { UnaryFunction::TrailingZeros32 })
            }
            (MathFunction::CountOneBits, ..) => self.apply(a, UnaryFunction::Ones),
            (MathFunction::ReverseBits, ..) if !wide => self.apply(a, UnaryFunction::Reverse32),
            _ => Err(unknown()),
        }
    }

    fn cast(
        &mut self,
        argument: Handle<Expression>,
        kind: ScalarKind,
        convert: Option<u8>,
    ) -> Result<ExpressionValue, CompileError> {
        let (from_kind, from_wide) = self.scalar(argument)?;
        if kind == ScalarKind::Bool {
            return self.apply(argument, UnaryFunction::IsSet);
        }
        let to_wide = match convert {
            Some(width) => is_wide(naga::Scalar { kind, width })?,
            None => from_wide,
        };
        match (from_wide, to_wide, from_kind) {
            (false, true, ScalarKind::Sint) => self.apply(argument, UnaryFunction::Extend),
            (true, false, _) => self.apply(argument, UnaryFunction::Low32),
            // The bits stay as they are.
            _ => Ok(ExpressionValue::Slots(self.value(argument)?)),
        }
    }

    fn array_length(&mut self, pointer: Handle<Expression>) -> Result<ExpressionValue, CompileError> {
        let (place, inner) = (self.place(pointer)?, self.pointee(pointer)?);
        let Root::Buffer(buffer) = place.root else {
            return Err(CompileError::unknown("lengths of arrays outside buffers"));
        };
        let stride = element(self.globals.module, &inner, None)?.words;
        let to = self.new_slots(1);
        self.add(Instruction::ArrayLength { to, buffer, offset: place.offset, stride });
        Ok(ExpressionValue::Slots(to))
    }
}
