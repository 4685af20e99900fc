//! One invocation of a kernel: its slots, and where it is.

use naga::BuiltIn;

use crate::instructions::{Instruction, Length, MemoryPlace, NO_SLOT, Root, SlotIdx};
use crate::memory::Memory;
use crate::program::CompiledKernel;

/// Why an invocation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvocationStop {
    Ended,
    Barrier,
    TooLong,
}

/// One invocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Invocation {
    slots: Vec<u64>,
    /// The next instruction, and where calls return to.
    next: usize,
    returns: Vec<usize>,
    ended: bool,
    /// Number of operations so far.
    taken: u64,
}

impl Invocation {
    /// Begins anew as invocation `lane` of workgroup `group`, of so many workgroups.
    pub(crate) fn begin(&mut self, program: &CompiledKernel, group: [u32; 3], lane: u32, groups: [u32; 3]) {
        self.slots.clone_from(&program.slots);
        self.next = program.entry as usize;
        self.returns.clear();
        (self.ended, self.taken) = (false, 0);
        let [x, y, _] = program.workgroup;
        let local = [lane % x, lane / x % y, lane / (x * y)];
        for &(what, slot) in &program.arguments {
            let values = match what {
                BuiltIn::LocalInvocationIndex => [lane, 0, 0],
                BuiltIn::LocalInvocationId => local,
                BuiltIn::WorkGroupId => group,
                BuiltIn::NumWorkGroups => groups,
                BuiltIn::WorkGroupSize => program.workgroup,
                _ => std::array::from_fn(|k| group[k] * program.workgroup[k] + local[k]),
            };
            let n = if what == BuiltIn::LocalInvocationIndex { 1 } else { 3 };
            for (k, value) in values.into_iter().take(n).enumerate() {
                self.slots[slot as usize + k] = u64::from(value);
            }
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Goes on until the invocation ends or reaches a barrier. `group`: the variables of its workgroup.
    pub(crate) fn run(
        &mut self,
        program: &CompiledKernel,
        memory: &mut Memory,
        group: &mut [u64],
        limit: u64,
    ) -> InvocationStop {
        loop {
            let instruction = program.instructions[self.next];
            self.next += 1;
            self.taken += 1;
            match instruction {
                Instruction::Copy { to, from, n } => {
                    let (to, from) = (to as usize, from as usize);
                    self.slots.copy_within(from..from + n as usize, to);
                }
                Instruction::Unary { f, to, a } => {
                    memory.counts.operations += 1;
                    self.slots[to as usize] = f.apply(self.slots[a as usize]);
                }
                Instruction::Binary { f, to, a, b } => {
                    memory.counts.operations += 1;
                    self.slots[to as usize] = f.apply(self.slots[a as usize], self.slots[b as usize]);
                }
                Instruction::Select { to, condition, yes, no } => {
                    memory.counts.operations += 1;
                    let from = if self.slots[condition as usize] != 0 { yes } else { no };
                    self.slots[to as usize] = self.slots[from as usize];
                }
                Instruction::Index { to, base, index, stride, length } => {
                    let length = match length {
                        Length::Known(n) => n,
                        Length::Rest { buffer, offset } => memory.len(buffer).saturating_sub(offset) / stride,
                    };
                    let index = self.slots[index as usize];
                    let last = u64::from(length.saturating_sub(1));
                    memory.counts.beyond += u64::from(index > last);
                    let base = if base == NO_SLOT { 0 } else { self.slots[base as usize] };
                    self.slots[to as usize] = base + index.min(last) * u64::from(stride);
                }
                Instruction::ArrayLength { to, buffer, offset, stride } => {
                    self.slots[to as usize] = u64::from(memory.len(buffer).saturating_sub(offset) / stride);
                }
                Instruction::LoadBuffer { to, place, access } => {
                    let word = self.offset(place);
                    self.slots[to as usize] = memory.load(buffer(place), word, access);
                }
                Instruction::StoreBuffer { from, place, access } => {
                    let word = self.offset(place);
                    memory.store(buffer(place), word, self.slots[from as usize], access);
                }
                Instruction::Load { to, place, n } => {
                    let (first, to, n) = (self.offset(place) as usize, to as usize, n as usize);
                    match place.root {
                        Root::Group => self.slots[to..to + n].copy_from_slice(&group[first..first + n]),
                        _ => self.slots.copy_within(first..first + n, to),
                    }
                }
                Instruction::Store { from, place, n } => {
                    let (first, from, n) = (self.offset(place) as usize, from as usize, n as usize);
                    match place.root {
                        Root::Group => group[first..first + n].copy_from_slice(&self.slots[from..from + n]),
                        _ => self.slots.copy_within(from..from + n, first),
                    }
                }
                Instruction::Atomic { f, to, place, value } => {
                    let (offset, value) = (self.offset(place), self.slots[value as usize] as u32);
                    let old = match place.root {
                        Root::Buffer(buffer) => memory.change(buffer, offset, f, value),
                        _ => {
                            let cell = &mut group[offset as usize];
                            let old = *cell as u32;
                            *cell = u64::from(f.apply(old, value));
                            old
                        }
                    };
                    if to != NO_SLOT {
                        self.slots[to as usize] = u64::from(old);
                    }
                }
                Instruction::Jump { to } => {
                    // Only loops jump back, so an invocation that never ends comes by here.
                    if self.taken > limit {
                        return InvocationStop::TooLong;
                    }
                    self.next = to as usize;
                }
                Instruction::JumpIf { condition, to } => {
                    if self.slots[condition as usize] != 0 {
                        self.next = to as usize;
                    }
                }
                Instruction::JumpUnless { condition, to } => {
                    if self.slots[condition as usize] == 0 {
                        self.next = to as usize;
                    }
                }
                Instruction::Choose { selector, table } => {
                    let table = &program.tables[table as usize];
                    let value = self.slots[selector as usize] as u32;
                    let case = table.cases.iter().find(|case| case.0 == value);
                    self.next = case.map_or(table.default, |case| case.1) as usize;
                }
                Instruction::Call { function } => {
                    self.returns.push(self.next);
                    self.next = program.starts[function as usize] as usize;
                }
                Instruction::Return => match self.returns.pop() {
                    Some(caller) => self.next = caller,
                    None => {
                        self.ended = true;
                        return InvocationStop::Ended;
                    }
                },
                Instruction::Barrier => return InvocationStop::Barrier,
                // Linking turns these into copies.
                Instruction::CopyToCallee { .. } | Instruction::CopyFromCallee { .. } => {}
            }
        }
    }

    #[inline]
    fn offset(&self, place: MemoryPlace) -> u32 {
        let dynamic: SlotIdx = place.dynamic;
        if dynamic == NO_SLOT { place.offset } else { place.offset + self.slots[dynamic as usize] as u32 }
    }
}

/// The buffer of a place in one.
#[inline]
fn buffer(place: MemoryPlace) -> u32 {
    match place.root {
        Root::Buffer(buffer) => buffer,
        Root::Group | Root::Own => unreachable!("the place is in no buffer"),
    }
}
