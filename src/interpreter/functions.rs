//! A function that is being compiled, and what all functions of a kernel share.

use std::collections::HashMap;

use naga::valid::FunctionInfo;
use naga::{AddressSpace, Expression, Function, Handle, Module, Type, TypeInner};

use crate::error::CompileError;
use crate::instructions::{Access, CONSTANT, Instruction, JumpTable, MemoryPlace, NO_SLOT, PRIVATE, Root, SlotIdx};
use crate::layout::{Leaf, leaves, leaves_of};
use crate::program::Binding;
use crate::values::{constant, zeros};

/// Global variables by their kind.
pub(crate) struct PlacedVariables {
    /// Storage buffers, in the order of groups and bindings.
    pub bindings: Vec<Binding>,
    /// First values of private variables, and of those of a workgroup.
    pub private: Vec<u64>,
    pub group: Vec<u64>,
}

/// What an expression became.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExpressionValue {
    /// A value in slots from here on.
    Slots(SlotIdx),
    /// A pointer to a place in memory.
    Pointer(MemoryPlace),
}

/// What all functions of a program share.
pub(crate) struct Globals<'a> {
    pub module: &'a Module,
    /// Values of constants, and the slot of each that is one scalar.
    pub constants: Vec<u64>,
    pub known: HashMap<u64, SlotIdx>,
    /// Places of global variables.
    pub variables: HashMap<Handle<naga::GlobalVariable>, MemoryPlace>,
    /// The functions so far, in the order of their handles.
    pub functions: Vec<FunctionCode>,
    pub tables: Vec<JumpTable>,
}

/// A compiled function.
#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionCode {
    pub instructions: Vec<Instruction>,
    /// Number of slots in its frame.
    pub n_slots: u32,
    /// First slots of its arguments, and of its result.
    pub arguments: Vec<SlotIdx>,
    pub result: SlotIdx,
    /// Functions that it calls.
    pub calls: Vec<u32>,
    pub has_barriers: bool,
}

/// A function that is being compiled.
pub(crate) struct FunctionCompiler<'a, 'g> {
    pub globals: &'g mut Globals<'a>,
    pub function: &'a Function,
    pub info: &'a FunctionInfo,
    pub code: FunctionCode,
    pub values: HashMap<Handle<Expression>, ExpressionValue>,
    pub locals: HashMap<Handle<naga::LocalVariable>, SlotIdx>,
}

impl<'a> Globals<'a> {
    /// Gives each global variable its place.
    pub(crate) fn place_variables(&mut self) -> Result<PlacedVariables, CompileError> {
        let module = self.module;
        let mut buffers = Vec::new();
        let (mut private, mut group) = (Vec::new(), Vec::new());
        for (handle, variable) in module.global_variables.iter() {
            let values = |ty: Handle<Type>| match variable.init {
                Some(init) => constant(module, &module.global_expressions, init),
                None => zeros(module, ty),
            };
            let (root, offset) = match (variable.space, &variable.binding) {
                (AddressSpace::Storage { .. } | AddressSpace::Uniform, Some(binding)) => {
                    let name = variable.name.clone().unwrap_or_default();
                    buffers.push((handle, Binding { group: binding.group, binding: binding.binding, name }));
                    continue;
                }
                (AddressSpace::Private, _) => {
                    let offset = PRIVATE | private.len() as u32;
                    private.extend(values(variable.ty)?);
                    (Root::Own, offset)
                }
                (AddressSpace::WorkGroup, _) => {
                    let offset = group.len() as u32;
                    group.extend(values(variable.ty)?);
                    (Root::Group, offset)
                }
                (other, _) => return Err(CompileError::unknown(format!("variables in the space {other:?}"))),
            };
            self.variables.insert(handle, MemoryPlace { root, offset, dynamic: NO_SLOT });
        }
        buffers.sort_by_key(|(_, binding)| (binding.group, binding.binding));
        for (k, (handle, _)) in buffers.iter().enumerate() {
            let place = MemoryPlace { root: Root::Buffer(k as u32), offset: 0, dynamic: NO_SLOT };
            self.variables.insert(*handle, place);
        }
        let bindings = buffers.into_iter().map(|(_, binding)| binding).collect();
        Ok(PlacedVariables { bindings, private, group })
    }

    /// The slots of constants with these values.
    pub(crate) fn constant_slots(&mut self, values: &[u64]) -> SlotIdx {
        if let [value] = values {
            let next = CONSTANT | self.constants.len() as u32;
            let slot = *self.known.entry(*value).or_insert(next);
            if slot == next {
                self.constants.push(*value);
            }
            return slot;
        }
        let slot = CONSTANT | self.constants.len() as u32;
        self.constants.extend(values);
        slot
    }
}

impl<'a> FunctionCompiler<'a, '_> {
    pub(crate) fn add(&mut self, instruction: Instruction) {
        self.code.instructions.push(instruction);
    }

    /// New slots in the frame.
    pub(crate) fn new_slots(&mut self, n: usize) -> SlotIdx {
        let slot = self.code.n_slots;
        self.code.n_slots += n as u32;
        slot
    }

    /// New slots for a value of type `ty`.
    pub(crate) fn slots_of(&mut self, ty: Handle<Type>) -> Result<SlotIdx, CompileError> {
        let n = leaves_of(self.globals.module, ty)?.len();
        Ok(self.new_slots(n))
    }

    /// Type of an expression.
    pub(crate) fn type_of(&self, expression: Handle<Expression>) -> &'a TypeInner {
        self.info[expression].ty.inner_with(&self.globals.module.types)
    }

    /// The scalars of `inner`, which lies at `place` in a buffer: where each is, and how it is accessed.
    ///
    /// # Errors
    /// The type is unknown.
    pub(crate) fn accesses(
        &self,
        place: MemoryPlace,
        inner: &TypeInner,
    ) -> Result<Vec<(MemoryPlace, Access)>, CompileError> {
        let atomic = matches!(inner, TypeInner::Atomic(_));
        let scalars = leaves(self.globals.module, inner)?.into_iter().enumerate();
        let access = |(k, leaf): (usize, Leaf)| {
            let access = Access { wide: leaf.wide, begins: k == 0, begins_piece: leaf.begins_piece, atomic };
            (MemoryPlace { offset: place.offset + leaf.word, ..place }, access)
        };
        Ok(scalars.map(access).collect())
    }

    /// Type of what a pointer points to.
    pub(crate) fn pointee(&self, pointer: Handle<Expression>) -> Result<TypeInner, CompileError> {
        Ok(match self.type_of(pointer) {
            TypeInner::Pointer { base, .. } => self.globals.module.types[*base].inner.clone(),
            TypeInner::ValuePointer { size: Some(size), scalar, .. } => {
                TypeInner::Vector { size: *size, scalar: *scalar }
            }
            TypeInner::ValuePointer { size: None, scalar, .. } => TypeInner::Scalar(*scalar),
            other => return Err(CompileError::unknown(format!("pointers of type {other:?}"))),
        })
    }
}
