//! A compiled kernel. Only data.

use naga::BuiltIn;

use crate::instructions::{Instruction, JumpTable, SlotIdx};

/// A kernel as a list of instructions.
pub(crate) struct CompiledKernel {
    pub instructions: Vec<Instruction>,
    pub tables: Vec<JumpTable>,
    /// First instruction of each function, by its number.
    pub starts: Vec<u32>,
    /// First instruction of the entry point.
    pub entry: u32,
    /// Values of the slots before an invocation begins.
    pub slots: Vec<u64>,
    /// Values of the variables of a workgroup before it begins.
    pub group: Vec<u64>,
    pub workgroup: [u32; 3],
    /// Arguments of the entry point: what they are, and their first slots.
    pub arguments: Vec<(BuiltIn, SlotIdx)>,
    pub bindings: Vec<Binding>,
    pub has_barriers: bool,
}

/// A storage buffer of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub group: u32,
    pub binding: u32,
    pub name: String,
}
