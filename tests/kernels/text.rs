//! The text of the kernels, for compilers outside this project (`scripts/kernel-registers.py`).

use hyperfold_engine::gpu::source::{KernelParts, compose};

#[test]
#[ignore = "writes a file: scripts/kernel-registers.py runs it"]
fn the_text_goes_to_a_file() {
    let of_env = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} must be set"));
    let workgroup = of_env("HYPERFOLD_WORKGROUP").parse().expect("a number of invocations");
    std::fs::write(of_env("HYPERFOLD_KERNELS_TO"), compose(workgroup, KernelParts::USUAL).expect("a usable size"))
        .expect("it can be written");
}
