//! How values lie in memory: words of 32 bits in storage buffers, one slot a scalar elsewhere.

use naga::{ArraySize, Handle, Module, ScalarKind, Type, TypeInner};

use crate::error::CompileError;

/// One scalar of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Offset in a storage buffer, in words.
    pub word: u32,
    /// Whether it has 64 bits.
    pub wide: bool,
    /// Whether it begins a piece: a scalar by itself, or up to 16 bytes of a vector.
    pub begins_piece: bool,
}

/// Bytes of a vector that are read or written at once at most.
const PIECE_BYTES: u32 = 16;

/// An element, column or member of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// Distance from one to the next, or offset of the member: in words, and in slots.
    pub words: u32,
    pub slots: u32,
    /// Number of elements. `None`: as many as a buffer holds.
    pub length: Option<u32>,
}

/// Scalars of a value of type `inner`, in order.
///
/// # Errors
/// The type has floats, or a length that is not known.
pub(crate) fn leaves(module: &Module, inner: &TypeInner) -> Result<Vec<Leaf>, CompileError> {
    let mut out = Vec::new();
    add_leaves(module, inner, 0, &mut out)?;
    Ok(out)
}

/// Scalars of a value of type `ty`, in order.
///
/// # Errors
/// As for [`leaves`].
pub(crate) fn leaves_of(module: &Module, ty: Handle<Type>) -> Result<Vec<Leaf>, CompileError> {
    leaves(module, &module.types[ty].inner)
}

fn add_leaves(module: &Module, inner: &TypeInner, word: u32, out: &mut Vec<Leaf>) -> Result<(), CompileError> {
    match inner {
        TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => {
            out.push(Leaf { word, wide: is_wide(*scalar)?, begins_piece: true });
        }
        TypeInner::Vector { size, scalar } => {
            let wide = is_wide(*scalar)?;
            let words = 1 + u32::from(wide);
            for k in 0..*size as u32 {
                out.push(Leaf {
                    word: word + k * words,
                    wide,
                    begins_piece: (4 * k * words).is_multiple_of(PIECE_BYTES),
                });
            }
        }
        TypeInner::Array { base, size: ArraySize::Constant(n), stride } => {
            for k in 0..n.get() {
                add_leaves(module, &module.types[*base].inner, word + k * stride / 4, out)?;
            }
        }
        TypeInner::Struct { members, .. } => {
            for member in members {
                add_leaves(module, &module.types[member.ty].inner, word + member.offset / 4, out)?;
            }
        }
        other => return Err(CompileError::unknown(format!("values of type {other:?}"))),
    }
    Ok(())
}

/// Whether a scalar has 64 bits.
///
/// # Errors
/// It is neither an integer of 32 or 64 bits nor a boolean.
pub(crate) fn is_wide(scalar: naga::Scalar) -> Result<bool, CompileError> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Uint | ScalarKind::Sint, 4) | (ScalarKind::Bool, _) => Ok(false),
        (ScalarKind::Uint | ScalarKind::Sint, 8) => Ok(true),
        _ => Err(CompileError::unknown(format!("scalars of type {scalar:?}"))),
    }
}

/// Elements of a value of type `inner`; if it is a struct, its member `index`.
///
/// # Errors
/// The type has no elements.
pub(crate) fn element(module: &Module, inner: &TypeInner, index: Option<u32>) -> Result<Element, CompileError> {
    Ok(match inner {
        TypeInner::Vector { size, scalar } => {
            Element { words: 1 + u32::from(is_wide(*scalar)?), slots: 1, length: Some(*size as u32) }
        }
        TypeInner::Array { base, size, stride } => {
            let length = match size {
                ArraySize::Constant(n) => Some(n.get()),
                _ => None,
            };
            Element { words: stride / 4, slots: leaves_of(module, *base)?.len() as u32, length }
        }
        TypeInner::Struct { members, .. } => {
            let member = index.ok_or_else(|| CompileError::unknown("members by a computed index"))?;
            let before = members[..member as usize].iter().map(|m| Ok(leaves_of(module, m.ty)?.len() as u32));
            let slots = before.sum::<Result<u32, CompileError>>()?;
            Element { words: members[member as usize].offset / 4, slots, length: Some(1) }
        }
        other => return Err(CompileError::unknown(format!("elements of type {other:?}"))),
    })
}
