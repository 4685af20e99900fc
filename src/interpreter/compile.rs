//! Compiles a module's functions into instructions.

use std::collections::HashMap;

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{Binding as ArgumentBinding, BuiltIn, Function, Module};

use crate::error::CompileError;
use crate::functions::{FunctionCode, FunctionCompiler, Globals, PlacedVariables};
use crate::instructions::Instruction;
use crate::link::link;
use crate::program::CompiledKernel;
use crate::statements::StatementCompiler;
use crate::values::{constant, zeros};

/// Compiles the entry point at `place`.
///
/// # Errors
/// Something in the module is unknown.
pub(crate) fn compile(module: &Module, info: &ModuleInfo, place: usize) -> Result<CompiledKernel, CompileError> {
    let mut globals = Globals {
        module,
        constants: Vec::new(),
        known: HashMap::new(),
        variables: HashMap::new(),
        functions: Vec::new(),
        tables: Vec::new(),
    };
    let PlacedVariables { bindings, private, group } = globals.place_variables()?;
    for (handle, function) in module.functions.iter() {
        let code = compile_function(&mut globals, function, &info[handle])?;
        globals.functions.push(code);
    }
    let entry = &module.entry_points[place];
    let code = compile_function(&mut globals, &entry.function, info.get_entry_point(place))?;
    let arguments = entry.function.arguments.iter().zip(&code.arguments);
    let arguments = arguments.map(|(argument, &slot)| Ok((builtin(argument)?, slot))).collect::<Result<Vec<_>, _>>()?;
    globals.functions.push(code);
    let Globals { constants, functions, tables, .. } = globals;
    let program = CompiledKernel {
        instructions: Vec::new(),
        tables,
        starts: Vec::new(),
        entry: 0,
        slots: constants,
        group,
        workgroup: entry.workgroup_size,
        arguments,
        bindings,
        has_barriers: false,
    };
    Ok(link(program, functions, &private))
}

/// Compiles one function.
fn compile_function<'a>(
    globals: &mut Globals<'a>,
    function: &'a Function,
    info: &'a FunctionInfo,
) -> Result<FunctionCode, CompileError> {
    let mut compiler = FunctionCompiler {
        globals,
        function,
        info,
        code: FunctionCode::default(),
        values: HashMap::new(),
        locals: HashMap::new(),
    };
    for argument in &function.arguments {
        let slot = compiler.slots_of(argument.ty)?;
        compiler.code.arguments.push(slot);
    }
    if let Some(result) = &function.result {
        compiler.code.result = compiler.slots_of(result.ty)?;
    }
    for (handle, _) in function.local_variables.iter() {
        let slot = compiler.slots_of(function.local_variables[handle].ty)?;
        compiler.locals.insert(handle, slot);
    }
    // Variables begin with their values each time the function is called.
    for (handle, variable) in function.local_variables.iter() {
        let values = match variable.init {
            Some(init) => constant(compiler.globals.module, &function.expressions, init)?,
            None => zeros(compiler.globals.module, variable.ty)?,
        };
        let (to, n) = (compiler.locals[&handle], values.len() as u32);
        let from = compiler.globals.constant_slots(&values);
        compiler.add(Instruction::Copy { to, from, n });
    }
    let mut statements = StatementCompiler::of(compiler);
    statements.block(&function.body)?;
    Ok(statements.finish())
}

/// What an argument of an entry point is.
fn builtin(argument: &naga::FunctionArgument) -> Result<BuiltIn, CompileError> {
    use BuiltIn::{
        GlobalInvocationId, LocalInvocationId, LocalInvocationIndex, NumWorkGroups, WorkGroupId, WorkGroupSize,
    };
    match argument.binding {
        Some(ArgumentBinding::BuiltIn(
            what @ (GlobalInvocationId | LocalInvocationId | LocalInvocationIndex | NumWorkGroups | WorkGroupId
            | WorkGroupSize),
        )) => Ok(what),
        ref other => Err(CompileError::unknown(format!("arguments with the binding {other:?}"))),
    }
}
