//! A device for GPU tests.

use hyperfold_columns::OwnedTables;
use hyperfold_engine::gpu::{DispatchProgress, GpuEngine, KernelParts, Mode, Report, RunError};
use hyperfold_host::kernel_check::cases;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// An open device with 64-bit integers. Panics where there is none: a missing adapter must not look like a passed test.
pub fn open() -> (wgpu::Device, wgpu::Queue, wgpu::Limits) {
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
    desc.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let instance = wgpu::Instance::new(desc);
    let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    adapters.retain(|a| a.features().contains(wgpu::Features::SHADER_INT64));
    adapters.sort_by_key(|a| a.get_info().device_type == wgpu::DeviceType::Cpu);
    let adapter = adapters.first().expect(
        "no GPU adapter with 64-bit integers: run scripts/setup-vulkan.sh, which installs a software Vulkan driver that will do",
    );
    let limits = adapter.limits();
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("tests"),
        required_features: wgpu::Features::SHADER_INT64,
        required_limits: limits.clone(),
        ..Default::default()
    }))
    .unwrap_or_else(|e| panic!("{}: {e}", adapter.get_info().name));
    (device, queue, limits)
}

/// Words in the names of the cases whose kernels the tests compile. The test of `hyperfold doctor --engine --cases` has the same.
const USUAL: [&str; 2] = ["dcqcn", "none"];

/// The parts of the kernels on which the tests run: those that the usual cases need, or with `HYPERFOLD_GPU_PARTS=all` those that all cases need.
///
/// Software Vulkan takes minutes for a fused kernel, and the more the larger it is. So all tests share one, which the driver then keeps on disk. Kernels with
/// every part are executed without a driver by the tests of `kernels`, and on a driver by `scripts/test.sh --soak`.
pub fn parts() -> KernelParts {
    let words = if tests_all_parts() { Vec::new() } else { USUAL.map(String::from).to_vec() };
    let cases = cases::named(&words).unwrap_or_else(|e| panic!("{e}"));
    KernelParts::needed_by(cases.iter().flat_map(|case| case.tables.exps.iter()))
}

fn tests_all_parts() -> bool {
    std::env::var_os("HYPERFOLD_GPU_PARTS").is_some_and(|parts| parts == "all")
}

/// Whether the tests' kernels run these tables. With every part all are run, some on kernels of their own.
pub fn runs(tables: &OwnedTables) -> bool {
    tests_all_parts() || parts().suffice_for(KernelParts::needed_by(tables.exps.iter()))
}

/// Those of `experiments` that the tests' kernels run; at least `least`.
pub fn those_that_run<N>(experiments: Vec<(N, OwnedTables)>, least: usize) -> Vec<(N, OwnedTables)> {
    let kept: Vec<_> = experiments.into_iter().filter(|(_, tables)| runs(tables)).collect();
    assert!(kept.len() >= least, "the kernels run only {} of the experiments", kept.len());
    kept
}

/// An engine on such a device. All batches for which they suffice run on kernels with [`parts`].
pub fn engine() -> GpuEngine {
    let (device, queue, limits) = open();
    let mut engine = GpuEngine::new(device, queue, &limits).unwrap_or_else(|e| panic!("{e}"));
    engine.fix_parts(Some(parts()));
    engine
}

/// The engine that the tests of a binary share, because its kernels take long to compile on software Vulkan.
pub fn shared() -> MutexGuard<'static, GpuEngine> {
    static ENGINE: OnceLock<Mutex<GpuEngine>> = OnceLock::new();
    // A failed comparison poisons the lock but leaves the engine as good as it was.
    ENGINE.get_or_init(|| Mutex::new(engine())).lock().unwrap_or_else(PoisonError::into_inner)
}

/// [`GpuEngine::run`] over experiments that stand alone.
pub fn run(
    engine: &mut GpuEngine,
    experiments: &mut [OwnedTables],
    mode: Mode,
    packet_limit: u64,
    go_on: &mut dyn FnMut(&DispatchProgress) -> bool,
) -> Result<Report, RunError> {
    OwnedTables::with_views(experiments, |experiments| engine.run(experiments, mode, packet_limit, go_on))
}
