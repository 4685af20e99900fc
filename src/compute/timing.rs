//! Durations of kernels on one GPU.
//!
//! Layer: compute. Each distinct kernel is worked out once and remembered.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use super::{Gpu, Kernel, roofline};

/// Durations on one GPU. Shared by threads; what is remembered changes no result.
#[derive(Debug)]
pub struct Timing {
    gpu: Gpu,
    known: RwLock<HashMap<Kernel, u64>>,
}

impl Timing {
    /// Durations on `gpu`.
    pub fn new(gpu: &Gpu) -> Timing {
        Timing { gpu: gpu.clone(), known: RwLock::default() }
    }

    /// The GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Picoseconds from the launch of a kernel to its end, alone on the GPU, with the gap before it.
    pub fn ps(&self, kernel: &Kernel) -> u64 {
        if let Some(ps) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(kernel) {
            return *ps;
        }
        let ps = self.gpu.launch_ps + (roofline::seconds(&self.gpu, kernel) * 1e12 + 0.5) as u64;
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(*kernel, ps);
        ps
    }
}
