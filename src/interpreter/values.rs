//! Values that are known when a kernel is compiled.

use naga::{Arena, Expression, Handle, Literal, Module, Type};

use crate::error::CompileError;
use crate::layout::leaves_of;

/// The scalars of a literal, a constant, or what is composed of these.
///
/// # Errors
/// The expression is no such value.
pub(crate) fn constant(
    module: &Module,
    arena: &Arena<Expression>,
    expression: Handle<Expression>,
) -> Result<Vec<u64>, CompileError> {
    Ok(match &arena[expression] {
        Expression::Literal(value) => vec![literal(*value)?],
        Expression::Constant(handle) => constant(module, &module.global_expressions, module.constants[*handle].init)?,
        Expression::ZeroValue(ty) => zeros(module, *ty)?,
        Expression::Compose { components, .. } => {
            let parts = components.iter().map(|part| constant(module, arena, *part));
            parts.collect::<Result<Vec<_>, _>>()?.concat()
        }
        Expression::Splat { size, value } => constant(module, arena, *value)?.repeat(*size as usize),
        other => return Err(CompileError::unknown(format!("the constant {other:?}"))),
    })
}

/// As many zeros as a value of type `ty` has scalars.
///
/// # Errors
/// The type is unknown.
pub(crate) fn zeros(module: &Module, ty: Handle<Type>) -> Result<Vec<u64>, CompileError> {
    Ok(vec![0; leaves_of(module, ty)?.len()])
}

/// The slot value of a literal.
///
/// # Errors
/// It is neither an integer of 32 or 64 bits nor a boolean.
pub(crate) fn literal(value: Literal) -> Result<u64, CompileError> {
    Ok(match value {
        Literal::U32(x) => u64::from(x),
        Literal::I32(x) => u64::from(x as u32),
        Literal::U64(x) => x,
        Literal::I64(x) => x as u64,
        Literal::Bool(x) => u64::from(x),
        other => return Err(CompileError::unknown(format!("the literal {other:?}"))),
    })
}
