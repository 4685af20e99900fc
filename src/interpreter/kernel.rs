//! A kernel that can be executed, and its dispatches.

use naga::ShaderStage;
use naga::valid::{Capabilities, ValidationFlags, Validator};

use crate::compile::compile;
use crate::error::{CompileError, Fault};
use crate::instructions::Instruction;
use crate::invocation::{Invocation, InvocationStop};
use crate::memory::{KernelCounts, Memory, Race, Running};
use crate::program::CompiledKernel;

/// Order in which the invocations of a workgroup run between two barriers, and workgroups of a dispatch. A right kernel gives the same in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The first one first.
    #[default]
    Forward,
    /// The last one first.
    Backward,
}

/// How a kernel is dispatched.
#[derive(Clone, Copy, Debug)]
pub struct KernelDispatch {
    /// Number of workgroups in x, y and z.
    pub groups: [u32; 3],
    /// Order of the invocations.
    pub order: Order,
    /// Whether races are looked for.
    pub finds_races: bool,
    /// Whether the work of each invocation is kept.
    pub by_invocation: bool,
    /// Maximum number of operations of one invocation, jumps and copies included.
    pub max_operations: u64,
}

impl KernelDispatch {
    /// A dispatch of so many workgroups that looks for nothing.
    pub fn of(groups: [u32; 3]) -> KernelDispatch {
        KernelDispatch {
            groups,
            order: Order::Forward,
            finds_races: false,
            by_invocation: false,
            max_operations: 1 << 34,
        }
    }
}

/// What a dispatch did.
#[derive(Clone, Debug, Default)]
pub struct Dispatched {
    /// Accesses and operations.
    pub counts: KernelCounts,
    /// The first races that were found.
    pub races: Vec<Race>,
    /// For each invocation, its loads and atomic accesses, and its operations on integers. Empty unless it was asked for.
    pub by_invocation: Vec<[u64; 2]>,
}

/// A kernel that can be executed.
pub struct ComputeKernel {
    program: CompiledKernel,
}

impl ComputeKernel {
    /// Parses and validates `text` and prepares its compute entry point `entry`.
    ///
    /// # Errors
    /// The text is not valid, or has something that the interpreter does not know.
    pub fn new(text: &str, entry: &str) -> Result<ComputeKernel, CompileError> {
        let module = naga::front::wgsl::parse_str(text).map_err(|e| CompileError::Invalid(e.emit_to_string(text)))?;
        let info = Validator::new(ValidationFlags::all(), Capabilities::SHADER_INT64)
            .validate(&module)
            .map_err(|e| CompileError::Invalid(e.emit_to_string(text)))?;
        ComputeKernel::from_module(&module, &info, entry)
    }

    /// Prepares the compute entry point `entry` of a module that is valid.
    ///
    /// # Errors
    /// There is no such entry point, or the module has something that the interpreter does not know.
    pub fn from_module(
        module: &naga::Module,
        info: &naga::valid::ModuleInfo,
        entry: &str,
    ) -> Result<ComputeKernel, CompileError> {
        let place = module.entry_points.iter().position(|e| e.name == entry && e.stage == ShaderStage::Compute);
        let place = place.ok_or_else(|| CompileError::NoEntry(entry.into()))?;
        Ok(ComputeKernel { program: compile(module, info, place)? })
    }

    /// Names of the storage buffers, in the order of groups and bindings.
    pub fn bindings(&self) -> impl Iterator<Item = &str> {
        self.program.bindings.iter().map(|binding| binding.name.as_str())
    }

    /// Number of invocations in a workgroup.
    pub fn workgroup_size(&self) -> u32 {
        self.program.workgroup.iter().product()
    }

    /// Number of instructions, which says how much code there is.
    pub fn n_instructions(&self) -> usize {
        self.program.instructions.len()
    }

    /// Number of instructions when every call is replaced by the function's own code, as compilers for GPUs do. It says how long compiling takes.
    pub fn n_inlined_instructions(&self) -> usize {
        let CompiledKernel { instructions, starts, .. } = &self.program;
        let ends = starts.iter().skip(1).map(|start| *start as usize).chain([instructions.len()]);
        let mut inlined: Vec<usize> = Vec::with_capacity(starts.len());
        // Functions come before those that call them.
        for (start, end) in starts.iter().zip(ends) {
            let code = &instructions[*start as usize..end];
            let callees = code.iter().map(|instruction| match instruction {
                Instruction::Call { function } => inlined[*function as usize],
                _ => 0,
            });
            inlined.push(code.len() + callees.sum::<usize>());
        }
        inlined.last().copied().unwrap_or(0)
    }

    /// Executes the kernel over `buffers`, which are words of 32 bits in the order of [`ComputeKernel::bindings`].
    ///
    /// # Errors
    /// A barrier is not reached by all invocations of a workgroup, or an invocation takes too long.
    pub fn dispatch(&self, buffers: &mut [&mut [u32]], dispatch: &KernelDispatch) -> Result<Dispatched, Fault> {
        if buffers.len() != self.program.bindings.len() {
            return Err(Fault::Buffers { given: buffers.len(), bindings: self.program.bindings.len() });
        }
        let mut memory = Memory::new(buffers, dispatch.finds_races);
        let [x, y, z] = dispatch.groups;
        let n_groups = x * y * z;
        let size = self.workgroup_size();
        let mut work = vec![[0; 2]; if dispatch.by_invocation { n_groups as usize * size as usize } else { 0 }];
        let mut invocations = Vec::new();
        for k in 0..n_groups {
            let nth = if dispatch.order == Order::Backward { n_groups - 1 - k } else { k };
            let group = [nth % x, nth / x % y, nth / (x * y)];
            self.run_group(&mut memory, &mut invocations, group, nth * size, dispatch, &mut work)?;
        }
        Ok(Dispatched { counts: memory.counts, races: memory.races, by_invocation: work })
    }

    /// Runs one workgroup, whose first invocation has the number `first`. `invocations` are reused from group to group.
    fn run_group(
        &self,
        memory: &mut Memory,
        invocations: &mut Vec<Invocation>,
        group: [u32; 3],
        first: u32,
        dispatch: &KernelDispatch,
        work: &mut [[u64; 2]],
    ) -> Result<(), Fault> {
        let size = self.workgroup_size();
        let mut shared = self.program.group.clone();
        // Without barriers one set of slots serves all invocations, one after another.
        let n_kept = if self.program.has_barriers { size as usize } else { 1 };
        invocations.resize_with(n_kept, Invocation::default);
        let mut barriers = 0;
        loop {
            let (mut ended, mut waiting) = (0, 0);
            for k in 0..size {
                let lane = if dispatch.order == Order::Backward { size - 1 - k } else { k };
                let invocation = &mut invocations[if self.program.has_barriers { lane as usize } else { 0 }];
                if barriers == 0 {
                    invocation.begin(&self.program, group, lane, dispatch.groups);
                }
                if invocation.has_ended() {
                    ended += 1;
                    continue;
                }
                memory.running = Running { invocation: first + lane, group_first: first, barriers };
                let before = [memory.counts.waits(), memory.counts.operations];
                match invocation.run(&self.program, memory, &mut shared, dispatch.max_operations) {
                    InvocationStop::Ended => ended += 1,
                    InvocationStop::Barrier => waiting += 1,
                    InvocationStop::TooLong => {
                        return Err(Fault::TooLong { invocation: first + lane, limit: dispatch.max_operations });
                    }
                }
                if let Some(sum) = work.get_mut((first + lane) as usize) {
                    sum[0] += memory.counts.waits() - before[0];
                    sum[1] += memory.counts.operations - before[1];
                }
            }
            if waiting == 0 {
                return Ok(());
            }
            if ended > 0 {
                return Err(Fault::Barrier { group, ended, waiting });
            }
            barriers += 1;
        }
    }
}
