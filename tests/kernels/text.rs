//! The text of the kernels, for compilers outside this project (`scripts/kernel-registers.py`).

use hyperfold_engine::gpu::KernelParts;
use hyperfold_engine::gpu::source::{compose, module};

#[test]
#[ignore = "writes a file: scripts/kernel-registers.py runs it"]
fn the_text_goes_to_a_file() {
    let of_env = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} must be set"));
    let workgroup = of_env("HYPERFOLD_WORKGROUP").parse().expect("a number of invocations");
    let cc = of_env("HYPERFOLD_CC");
    let parts = match KernelParts::singles().into_iter().find(|(name, _)| *name == cc) {
        Some((_, control)) => control,
        None => KernelParts::ALL,
    };
    let text = compose(workgroup, parts).expect("a usable size");
    let (module, info) = module(&text, parts).unwrap_or_else(|e| panic!("{e}"));
    let text = naga::back::wgsl::write_string(&module, &info, naga::back::wgsl::WriterFlags::empty())
        .unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(of_env("HYPERFOLD_KERNELS_TO"), text).expect("it can be written");
}
