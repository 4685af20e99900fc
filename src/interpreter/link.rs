//! Joins functions to a program: gives each a frame of slots, and each instruction its final numbers.
//!
//! WGSL has no recursion, so a function has one frame. Functions that never run at the same time share slots.

use crate::functions::FunctionCode;
use crate::instructions::{CONSTANT, Instruction, MemoryPlace, NO_SLOT, PRIVATE, Root, SlotIdx};
use crate::program::CompiledKernel;

/// Completes `program`, whose slots are the constants so far. The last of `functions` is the entry point; a function calls only those before it. `private`: values
/// of the private variables.
pub(crate) fn link(mut program: CompiledKernel, functions: Vec<FunctionCode>, private: &[u64]) -> CompiledKernel {
    let first_private = program.slots.len() as u32;
    program.slots.extend(private);
    let first_frame = program.slots.len() as u32;
    let mut frames = vec![first_frame; functions.len()];
    let mut is_used = vec![false; functions.len()];
    if let Some(entry) = is_used.last_mut() {
        *entry = true;
    }
    for (f, code) in functions.iter().enumerate().rev() {
        if !is_used[f] {
            continue;
        }
        for &callee in &code.calls {
            is_used[callee as usize] = true;
            frames[callee as usize] = frames[callee as usize].max(frames[f] + code.n_slots);
        }
    }
    let mut n_slots = first_frame;
    for (f, code) in functions.iter().enumerate() {
        program.starts.push(program.instructions.len() as u32);
        if !is_used[f] {
            continue;
        }
        n_slots = n_slots.max(frames[f] + code.n_slots);
        program.has_barriers |= code.has_barriers;
        let start = program.instructions.len() as u32;
        let numbers = Numbers { first_private, frames: &frames, frame: frames[f], start };
        for instruction in &code.instructions {
            if let Instruction::Choose { table, .. } = instruction {
                let table = &mut program.tables[*table as usize];
                table.cases.iter_mut().for_each(|case| case.1 += start);
                table.default += start;
            }
            program.instructions.push(numbers.instruction(*instruction));
        }
    }
    program.entry = program.starts.last().copied().unwrap_or(0);
    let frame = frames.last().copied().unwrap_or(first_frame);
    program.arguments.iter_mut().for_each(|argument| argument.1 += frame);
    program.slots.resize(n_slots as usize, 0);
    program
}

/// Where the slots and instructions of a function begin.
struct Numbers<'a> {
    first_private: u32,
    /// First slot of each function, and of the one at hand.
    frames: &'a [u32],
    frame: u32,
    /// Its first instruction.
    start: u32,
}

impl Numbers<'_> {
    fn slot(&self, slot: SlotIdx) -> SlotIdx {
        if slot == NO_SLOT {
            slot
        } else if slot & CONSTANT != 0 {
            slot & !CONSTANT
        } else if slot & PRIVATE != 0 {
            self.first_private + (slot & !PRIVATE)
        } else {
            self.frame + slot
        }
    }

    fn place(&self, place: MemoryPlace) -> MemoryPlace {
        let offset = if place.root == Root::Own { self.slot(place.offset) } else { place.offset };
        MemoryPlace { offset, dynamic: self.slot(place.dynamic), ..place }
    }

    fn instruction(&self, instruction: Instruction) -> Instruction {
        use Instruction as Op;
        let slot = |slot| self.slot(slot);
        let target = |to| self.start + to;
        match instruction {
            Op::Copy { to, from, n } => Op::Copy { to: slot(to), from: slot(from), n },
            Op::CopyToCallee { function, to, from, n } => {
                Op::Copy { to: self.frames[function as usize] + to, from: slot(from), n }
            }
            Op::CopyFromCallee { function, to, from, n } => {
                Op::Copy { to: slot(to), from: self.frames[function as usize] + from, n }
            }
            Op::Unary { f, to, a } => Op::Unary { f, to: slot(to), a: slot(a) },
            Op::Binary { f, to, a, b } => Op::Binary { f, to: slot(to), a: slot(a), b: slot(b) },
            Op::Select { to, condition, yes, no } => {
                Op::Select { to: slot(to), condition: slot(condition), yes: slot(yes), no: slot(no) }
            }
            Op::Index { to, base, index, stride, length } => {
                Op::Index { to: slot(to), base: slot(base), index: slot(index), stride, length }
            }
            Op::ArrayLength { to, buffer, offset, stride } => Op::ArrayLength { to: slot(to), buffer, offset, stride },
            Op::LoadBuffer { to, place, access } => Op::LoadBuffer { to: slot(to), place: self.place(place), access },
            Op::StoreBuffer { from, place, access } => {
                Op::StoreBuffer { from: slot(from), place: self.place(place), access }
            }
            Op::Load { to, place, n } => Op::Load { to: slot(to), place: self.place(place), n },
            Op::Store { from, place, n } => Op::Store { from: slot(from), place: self.place(place), n },
            Op::Atomic { f, to, place, value } => {
                Op::Atomic { f, to: slot(to), place: self.place(place), value: slot(value) }
            }
            Op::Jump { to } => Op::Jump { to: target(to) },
            Op::JumpIf { condition, to } => Op::JumpIf { condition: slot(condition), to: target(to) },
            Op::JumpUnless { condition, to } => Op::JumpUnless { condition: slot(condition), to: target(to) },
            Op::Choose { selector, table } => Op::Choose { selector: slot(selector), table },
            Op::Call { function } => Op::Call { function },
            Op::Return => Op::Return,
            Op::Barrier => Op::Barrier,
        }
    }
}
