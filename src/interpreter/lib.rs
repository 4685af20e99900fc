//! Executes WGSL compute kernels on a CPU, one invocation after another, without a GPU and without a driver's compiler. Counts every access of a storage
//! buffer and every operation. Finds races: two invocations that use one word with nothing between them, of which one writes it.
//!
//! The text is parsed by naga. Its functions become a list of simple instructions on *slots*, which hold one scalar each. Integers of 32 and 64 bits, booleans,
//! vectors, arrays and structs of them are known; floats, textures and pointers as arguments are not, and are refused.
//!
//! ```
//! use hyperfold_interpreter::{ComputeKernel, KernelDispatch};
//!
//! let text = "@group(0) @binding(0) var<storage, read_write> words: array<u32>;
//!     @compute @workgroup_size(4) fn square(@builtin(global_invocation_id) id: vec3<u32>) { words[id.x] *= words[id.x]; }";
//! let kernel = ComputeKernel::new(text, "square").unwrap();
//! let mut words = [1, 2, 3, 4];
//! let done = kernel.dispatch(&mut [&mut words], &KernelDispatch::of([1, 1, 1])).unwrap();
//! assert_eq!(words, [1, 4, 9, 16]);
//! assert_eq!((done.counts.buffers[0].loads, done.counts.buffers[0].stores), (8, 4));
//! ```
//!
//! Layer: below everything; knows nothing of networks. Start with `kernel.rs`, then `compile.rs` and `invocation.rs`.

#![forbid(unsafe_code)]

mod compile;
mod error;
mod expressions;
mod functions;
mod instructions;
mod invocation;
mod kernel;
mod layout;
mod link;
mod memory;
mod program;
mod statements;
mod values;

pub use error::{CompileError, Fault};
pub use kernel::{ComputeKernel, Dispatched, KernelDispatch, Order};
pub use memory::{BufferCounts, KernelCounts, Race};

#[cfg(test)]
mod tests;
