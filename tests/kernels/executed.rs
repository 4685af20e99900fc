//! Kernels that the interpreter executes over an experiment's tables.

use std::sync::OnceLock;

use hyperfold_columns::{OwnedTables, TABLES, Tables};
use hyperfold_engine::gpu::source::{KernelParts, compose, validate};
use hyperfold_engine::systems::SYSTEMS;
use hyperfold_interpreter::{ComputeKernel, Dispatched, KernelDispatch};

/// Number of invocations in a workgroup.
pub const WORKGROUP: u32 = 64;

/// The composed kernels.
pub struct Kernels {
    systems: Vec<ComputeKernel>,
    pub fused: ComputeKernel,
    lanes: u32,
}

impl Kernels {
    /// The kernels as a device gets them, but for what `change` does to their text.
    pub fn changed(change: impl Fn(String) -> String) -> Kernels {
        Kernels::of(&change(compose(WORKGROUP, KernelParts::ALL).expect("a usable size")), WORKGROUP)
    }

    /// The kernels without Ultra Ethernet as a device gets them, with workgroups of `lanes` invocations.
    pub fn wide(lanes: u32) -> Kernels {
        Kernels::of(&compose(lanes, KernelParts::USUAL).expect("a usable size"), lanes)
    }

    fn of(text: &str, lanes: u32) -> Kernels {
        let (module, info) = validate(text).unwrap_or_else(|e| panic!("{e}"));
        let kernel = |entry: &str| ComputeKernel::from_module(&module, &info, entry).unwrap_or_else(|e| panic!("{e}"));
        Kernels { systems: SYSTEMS.iter().map(|system| kernel(system.entry)).collect(), fused: kernel("fused"), lanes }
    }

    /// The kernels as a device gets them.
    pub fn right() -> &'static Kernels {
        static KERNELS: OnceLock<Kernels> = OnceLock::new();
        KERNELS.get_or_init(|| Kernels::changed(|text| text))
    }

    /// Runs system `k` over all rows of `t`, if its condition holds.
    pub fn run_system(&self, k: usize, t: &mut Tables, options: KernelDispatch) -> Dispatched {
        let rows = SYSTEMS[k].rows.count(&t.exps[0]);
        run(&self.systems[k], 1, t, KernelDispatch { groups: [rows.div_ceil(self.lanes), 1, 1], ..options })
    }

    /// Runs up to `steps` steps of `t` by the fused kernel.
    pub fn run_fused(&self, steps: u32, t: &mut Tables, options: KernelDispatch) -> Dispatched {
        run(&self.fused, steps, t, KernelDispatch { groups: [1; 3], ..options })
    }
}

fn run(kernel: &ComputeKernel, steps: u32, t: &mut Tables, dispatch: KernelDispatch) -> Dispatched {
    // Binding `control`: the number of steps, then the row of each experiment that runs.
    let mut control = [steps, 0];
    let mut buffers: Vec<&mut [u32]> = t.as_bytes_mut().into_iter().map(bytemuck::cast_slice_mut).collect();
    buffers.push(&mut control);
    kernel.dispatch(&mut buffers, &dispatch).unwrap_or_else(|fault| panic!("{fault}"))
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
