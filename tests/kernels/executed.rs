//! Kernels that the interpreter executes over an experiment's tables.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use hyperfold_columns::{OwnedTables, TABLES, Tables};
use hyperfold_engine::gpu::KernelParts;
use hyperfold_engine::gpu::source::{CONTROL, N_BINDINGS, compose, module};
use hyperfold_engine::systems::SYSTEMS;
use hyperfold_interpreter::{BufferCounts, ComputeKernel, Dispatched, KernelDispatch};

/// Number of invocations in a workgroup.
pub const WORKGROUP: u32 = 64;

/// The composed kernels.
pub struct Kernels {
    systems: Vec<ComputeKernel>,
    pub fused: ComputeKernel,
    lanes: u32,
    /// For each binding that kernels with these parts have, its number.
    bindings: Vec<usize>,
}

impl Kernels {
    /// The kernels of all parts as a device gets them, but for what `change` does to their text.
    pub fn changed(change: impl Fn(String) -> String) -> Kernels {
        let text = change(compose(WORKGROUP, KernelParts::ALL).expect("a usable size"));
        Kernels::of(&text, WORKGROUP, KernelParts::ALL)
    }

    /// The kernels with some parts as a device gets them, with workgroups of `lanes` invocations.
    pub fn with(parts: KernelParts, lanes: u32) -> Kernels {
        Kernels::of(&compose(lanes, parts).expect("a usable size"), lanes, parts)
    }

    fn of(text: &str, lanes: u32, parts: KernelParts) -> Kernels {
        let (module, info) = module(text, parts).unwrap_or_else(|e| panic!("{e}"));
        let mut bindings: Vec<usize> = (module.global_variables.iter())
            .filter_map(|(_, variable)| variable.binding.map(|binding| binding.binding as usize))
            .collect();
        bindings.sort_unstable();
        let kernel = |entry: &str| ComputeKernel::from_module(&module, &info, entry).unwrap_or_else(|e| panic!("{e}"));
        let systems = SYSTEMS.iter().map(|system| kernel(system.entry)).collect();
        Kernels { systems, fused: kernel("fused"), lanes, bindings }
    }

    /// The kernels of all parts as a device gets them.
    pub fn right() -> &'static Kernels {
        static KERNELS: OnceLock<Kernels> = OnceLock::new();
        KERNELS.get_or_init(|| Kernels::changed(|text| text))
    }

    /// The kernels with exactly the parts that an experiment needs, as a device gets them.
    pub fn fitting(t: &OwnedTables) -> &'static Kernels {
        static KERNELS: OnceLock<Mutex<HashMap<KernelParts, &'static Kernels>>> = OnceLock::new();
        let parts = KernelParts::needed_by(t.exps.iter());
        let mut all = KERNELS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(parts).or_insert_with(|| Box::leak(Box::new(Kernels::with(parts, WORKGROUP))))
    }

    /// Runs system `k` over all rows of `t`, if its condition holds.
    pub fn run_system(&self, k: usize, t: &mut Tables, options: KernelDispatch) -> Dispatched {
        let rows = SYSTEMS[k].rows.count(&t.exps[0]);
        self.run(&self.systems[k], 1, t, KernelDispatch { groups: [rows.div_ceil(self.lanes), 1, 1], ..options })
    }

    /// Runs up to `steps` steps of `t` by the fused kernel.
    pub fn run_fused(&self, steps: u32, t: &mut Tables, options: KernelDispatch) -> Dispatched {
        self.run(&self.fused, steps, t, KernelDispatch { groups: [1; 3], ..options })
    }

    fn run(&self, kernel: &ComputeKernel, steps: u32, t: &mut Tables, dispatch: KernelDispatch) -> Dispatched {
        // Binding `control`: the number of steps, then the row of each experiment that runs.
        let mut control = [steps, 0];
        let mut buffers: Vec<&mut [u32]> = t.as_bytes_mut().into_iter().map(bytemuck::cast_slice_mut).collect();
        buffers.push(&mut control);
        assert_eq!((buffers.len(), CONTROL), (N_BINDINGS, N_BINDINGS - 1));
        let mut bound: Vec<&mut [u32]> = (buffers.into_iter().enumerate())
            .filter(|(binding, _)| self.bindings.contains(binding))
            .map(|(_, buffer)| buffer)
            .collect();
        let mut done = kernel.dispatch(&mut bound, &dispatch).unwrap_or_else(|fault| panic!("{fault}"));
        // Counts and races by the numbers of all bindings.
        let counted = std::mem::replace(&mut done.counts.buffers, vec![BufferCounts::default(); N_BINDINGS]);
        counted.into_iter().zip(&self.bindings).for_each(|(counts, &binding)| done.counts.buffers[binding] = counts);
        done.races.iter_mut().for_each(|race| race.buffer = self.bindings[race.buffer]);
        done
    }
}

/// Tables and rows of races, in words.
pub fn races(done: &Dispatched) -> Vec<String> {
    let tell = |race: &hyperfold_interpreter::Race| {
        let table = &TABLES[race.buffer];
        let place = 4 * race.word;
        let column = table.columns.iter().rev().find(|column| column.offset <= place % table.row_bytes);
        let column = column.map_or("", |column| column.name);
        let [a, b] = race.invocations;
        let what = if race.both_wrote { "both write" } else { "one reads and one writes" };
        format!(
            "invocations {a} and {b}: {what} table {}, row {}, column {column}",
            table.name,
            place / table.row_bytes
        )
    };
    done.races.iter().map(tell).collect()
}

/// A copy of one experiment's tables, to be worked on.
pub fn with_view<R>(t: &mut OwnedTables, f: impl FnOnce(&mut Tables) -> R) -> R {
    f(&mut t.view())
}
