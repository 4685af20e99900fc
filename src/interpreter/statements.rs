//! Compiles statements.

use naga::{AtomicFunction, Block, Expression, Handle, ScalarKind, Statement, SwitchCase, SwitchValue, TypeInner};

use crate::error::CompileError;
use crate::functions::{ExpressionValue, FunctionCode, FunctionCompiler};
use crate::instructions::{AtomicChange, Instruction, JumpTable, NO_SLOT, Root, SlotIdx};
use crate::layout::is_wide;

/// The target of a jump that is set later.
const LATER: u32 = u32::MAX;

/// Compiles the statements of a function.
pub(crate) struct StatementCompiler<'a, 'g> {
    function: FunctionCompiler<'a, 'g>,
    /// For each loop or switch around: jumps to its end. For each loop around: jumps to its continuing block. Their targets are set later.
    breaks: Vec<Vec<usize>>,
    continues: Vec<Vec<usize>>,
}

impl<'a, 'g> StatementCompiler<'a, 'g> {
    pub(crate) fn of(function: FunctionCompiler<'a, 'g>) -> StatementCompiler<'a, 'g> {
        StatementCompiler { function, breaks: Vec::new(), continues: Vec::new() }
    }

    /// The function, which returns at its end.
    pub(crate) fn finish(mut self) -> FunctionCode {
        self.add(Instruction::Return);
        self.function.code
    }

    fn add(&mut self, instruction: Instruction) {
        self.function.add(instruction);
    }

    pub(crate) fn block(&mut self, block: &Block) -> Result<(), CompileError> {
        block.iter().try_for_each(|statement| self.statement(statement))
    }

    /// Number of the next instruction.
    fn here(&self) -> u32 {
        self.function.code.instructions.len() as u32
    }

    /// Adds a jump whose target is set later. Returns its place.
    fn jump(&mut self, instruction: Instruction) -> usize {
        self.add(instruction);
        self.function.code.instructions.len() - 1
    }

    /// Lets the jumps at these places lead to `target`.
    fn lead(&mut self, jumps: &[usize], target: u32) {
        for &place in jumps {
            match &mut self.function.code.instructions[place] {
                Instruction::Jump { to } | Instruction::JumpIf { to, .. } | Instruction::JumpUnless { to, .. } => {
                    *to = target
                }
                _ => {}
            }
        }
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), CompileError> {
        match statement {
            Statement::Emit(range) => range.clone().try_for_each(|expression| self.function.emit(expression))?,
            Statement::Block(block) => self.block(block)?,
            Statement::If { condition, accept, reject } => {
                let condition = self.function.value(*condition)?;
                let unless = self.jump(Instruction::JumpUnless { condition, to: LATER });
                self.block(accept)?;
                if reject.is_empty() {
                    self.lead(&[unless], self.here());
                } else {
                    let end = self.jump(Instruction::Jump { to: LATER });
                    self.lead(&[unless], self.here());
                    self.block(reject)?;
                    self.lead(&[end], self.here());
                }
            }
            Statement::Switch { selector, cases } => self.switch(*selector, cases)?,
            Statement::Loop { body, continuing, break_if } => self.repeat(body, continuing, *break_if)?,
            Statement::Break => {
                let jump = self.jump(Instruction::Jump { to: LATER });
                self.breaks.last_mut().ok_or_else(|| CompileError::unknown("this break"))?.push(jump);
            }
            Statement::Continue => {
                let jump = self.jump(Instruction::Jump { to: LATER });
                self.continues.last_mut().ok_or_else(|| CompileError::unknown("this continue"))?.push(jump);
            }
            Statement::Return { value } => {
                if let Some(value) = value {
                    let (from, n) = (self.function.value(*value)?, self.function.n_leaves(*value)? as u32);
                    self.add(Instruction::Copy { to: self.function.code.result, from, n });
                }
                self.add(Instruction::Return);
            }
            Statement::ControlBarrier(_) => self.barrier(),
            // Invocations run one after another, so memory is always up to date.
            Statement::MemoryBarrier(_) => {}
            Statement::Store { pointer, value } => {
                let from = self.function.value(*value)?;
                self.store(*pointer, from)?;
            }
            Statement::Atomic { pointer, fun, value, result } => self.atomic(*pointer, fun, *value, *result)?,
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.barrier();
                let slot = self.function.load(*pointer)?;
                self.function.values.insert(*result, ExpressionValue::Slots(slot));
                self.barrier();
            }
            Statement::Call { function, arguments, result } => {
                let callee = function.index() as u32;
                let slots = self.function.globals.functions[callee as usize].arguments.clone();
                for (argument, to) in arguments.iter().zip(slots) {
                    let (from, n) = (self.function.value(*argument)?, self.function.n_leaves(*argument)? as u32);
                    self.add(Instruction::CopyToCallee { function: callee, to, from, n });
                }
                self.add(Instruction::Call { function: callee });
                self.function.code.calls.push(callee);
                if let Some(result) = result {
                    let n = self.function.n_leaves(*result)?;
                    let (to, from) =
                        (self.function.new_slots(n), self.function.globals.functions[callee as usize].result);
                    self.add(Instruction::CopyFromCallee { function: callee, to, from, n: n as u32 });
                    self.function.values.insert(*result, ExpressionValue::Slots(to));
                }
            }
            other => return Err(CompileError::unknown(format!("the statement {other:?}"))),
        }
        Ok(())
    }

    fn barrier(&mut self) {
        self.function.code.has_barriers = true;
        self.add(Instruction::Barrier);
    }

    fn switch(&mut self, selector: Handle<Expression>, cases: &[SwitchCase]) -> Result<(), CompileError> {
        let selector = self.function.value(selector)?;
        let table = self.function.globals.tables.len() as u32;
        self.function.globals.tables.push(JumpTable::default());
        self.add(Instruction::Choose { selector, table });
        self.breaks.push(Vec::new());
        let mut targets = JumpTable::default();
        for case in cases {
            let here = self.here();
            match case.value {
                SwitchValue::U32(value) => targets.cases.push((value, here)),
                SwitchValue::I32(value) => targets.cases.push((value as u32, here)),
                SwitchValue::Default => targets.default = here,
            }
            self.block(&case.body)?;
            if !case.fall_through {
                let jump = self.jump(Instruction::Jump { to: LATER });
                self.breaks.last_mut().expect("it was pushed above").push(jump);
            }
        }
        self.function.globals.tables[table as usize] = targets;
        let breaks = self.breaks.pop().unwrap_or_default();
        self.lead(&breaks, self.here());
        Ok(())
    }

    fn repeat(
        &mut self,
        body: &Block,
        continuing: &Block,
        break_if: Option<Handle<Expression>>,
    ) -> Result<(), CompileError> {
        let start = self.here();
        self.breaks.push(Vec::new());
        self.continues.push(Vec::new());
        self.block(body)?;
        let continues = self.continues.pop().unwrap_or_default();
        self.lead(&continues, self.here());
        self.block(continuing)?;
        if let Some(condition) = break_if {
            let condition = self.function.value(condition)?;
            let jump = self.jump(Instruction::JumpIf { condition, to: LATER });
            self.breaks.last_mut().expect("it was pushed above").push(jump);
        }
        self.add(Instruction::Jump { to: start });
        let breaks = self.breaks.pop().unwrap_or_default();
        self.lead(&breaks, self.here());
        Ok(())
    }

    /// Stores the value in slots from `from` on where a pointer points to.
    fn store(&mut self, pointer: Handle<Expression>, from: SlotIdx) -> Result<(), CompileError> {
        let (place, inner) = (self.function.place(pointer)?, self.function.pointee(pointer)?);
        let accesses = self.function.accesses(place, &inner)?;
        let n = accesses.len() as u32;
        match place.root {
            Root::Buffer(_) => {
                for (from, (place, access)) in (from..).zip(accesses) {
                    self.add(Instruction::StoreBuffer { from, place, access });
                }
            }
            Root::Own if place.dynamic == NO_SLOT => self.add(Instruction::Copy { to: place.offset, from, n }),
            Root::Group | Root::Own => self.add(Instruction::Store { from, place, n }),
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        pointer: Handle<Expression>,
        fun: &AtomicFunction,
        value: Handle<Expression>,
        result: Option<Handle<Expression>>,
    ) -> Result<(), CompileError> {
        let TypeInner::Atomic(scalar) = self.function.pointee(pointer)? else {
            return Err(CompileError::unknown("atomic functions of what is not atomic"));
        };
        let signed = scalar.kind == ScalarKind::Sint;
        let f = match fun {
            _ if is_wide(scalar)? => return Err(CompileError::unknown("atomic functions of 64 bits")),
            AtomicFunction::Add => AtomicChange::Add,
            AtomicFunction::Subtract => AtomicChange::Subtract,
            AtomicFunction::And => AtomicChange::And,
            AtomicFunction::ExclusiveOr => AtomicChange::Xor,
            AtomicFunction::InclusiveOr => AtomicChange::Or,
            AtomicFunction::Min if signed => AtomicChange::MinI32,
            AtomicFunction::Min => AtomicChange::Min,
            AtomicFunction::Max if signed => AtomicChange::MaxI32,
            AtomicFunction::Max => AtomicChange::Max,
            AtomicFunction::Exchange { compare: None } => AtomicChange::Exchange,
            AtomicFunction::Exchange { .. } => return Err(CompileError::unknown("atomicCompareExchangeWeak")),
        };
        let (place, value) = (self.function.place(pointer)?, self.function.value(value)?);
        let to = match result {
            Some(result) => {
                let slot = self.function.new_slots(1);
                self.function.values.insert(result, ExpressionValue::Slots(slot));
                slot
            }
            None => NO_SLOT,
        };
        self.add(Instruction::Atomic { f, to, place, value });
        Ok(())
    }
}
