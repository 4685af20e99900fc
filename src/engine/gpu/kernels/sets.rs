//! The kernels that a device has, by their parts, and which of them run a batch.
//!
//! Layer: engine. Results do not depend on the choice: all kernels that suffice for a batch leave the same bytes.

use std::fmt;

use super::parts::KernelParts;
use super::pipelines::{KernelLayout, Kernels};
use super::source;
use crate::gpu::faults::{Faults, RunError};

/// Kernels that are kept. Those that have not been used for the longest time go first.
const MAX_SETS: usize = 8;
/// Batches of fewer experiments run on kernels that have more parts than they need, rather than wait for others to be compiled. Our choice: a GPU's driver
/// compiles a set in 5 to 7 s, and so few experiments leave most of the device idle anyway.
const FEW: usize = 16;

/// A change of the kernels' text, for tests.
type TextChange = Box<dyn Fn(String) -> String + Send + Sync>;

/// Kernels on one device. Those in use come first.
pub struct KernelSets {
    device: wgpu::Device,
    faults: Faults,
    layout: KernelLayout,
    workgroup: u32,
    sets: Vec<Kernels>,
    /// Whether kernels that suffice are always used again: compiling takes minutes on a CPU, and what never runs costs nothing there.
    reuses_all: bool,
    /// Whether the next choice is for another batch than the last one.
    is_new_batch: bool,
    /// Parts that are taken in place of what batches need, where they suffice.
    fixed: Option<KernelParts>,
    change: Option<TextChange>,
}

impl fmt::Debug for KernelSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelSets").field("sets", &self.sets).field("fixed", &self.fixed).finish_non_exhaustive()
    }
}

impl KernelSets {
    /// No kernels yet, for workgroups of `workgroup` invocations.
    pub fn new(device: &wgpu::Device, faults: &Faults, workgroup: u32) -> Self {
        KernelSets {
            device: device.clone(),
            faults: faults.clone(),
            layout: KernelLayout::new(device),
            workgroup,
            sets: Vec::new(),
            reuses_all: device.adapter_info().device_type == wgpu::DeviceType::Cpu,
            is_new_batch: true,
            fixed: None,
            change: None,
        }
    }

    /// The layout of the bind group that holds the tables. It is the same for all kernels.
    pub fn group_layout(&self) -> &wgpu::BindGroupLayout {
        self.layout.group()
    }

    /// Invocations per workgroup.
    pub fn workgroup(&self) -> u32 {
        self.workgroup
    }

    /// The next choice is for another batch.
    pub fn expect_new_batch(&mut self) {
        self.is_new_batch = true;
    }

    /// From now on all batches for which `parts` suffice run on kernels with these; `None`: the parts are chosen again.
    pub fn fix(&mut self, parts: Option<KernelParts>) {
        self.fixed = parts;
    }

    /// Changes the text of all kernels from now on. Compiled ones are dropped.
    pub fn change_text(&mut self, change: impl Fn(String) -> String + Send + Sync + 'static) {
        self.change = Some(Box::new(change));
        self.sets.clear();
    }

    /// Parts of the kernels that would run a batch of `n` experiments which needs `needed`.
    pub fn parts_for(&self, needed: KernelParts, n: usize) -> KernelParts {
        let kept: Vec<KernelParts> = self.sets.iter().map(|kernels| kernels.parts).collect();
        let reuse = if self.reuses_all || n < FEW { Reuse::WhatSuffices } else { Reuse::WhatFits };
        choose(&kept, needed, self.fixed, !self.is_new_batch, reuse)
    }

    /// Takes up the kernels that run a batch of `n` experiments which needs `needed`, and makes them if they are not there.
    ///
    /// # Errors
    /// The device refuses them.
    pub fn choose(&mut self, needed: KernelParts, n: usize) -> Result<(), RunError> {
        let parts = self.parts_for(needed, n);
        self.is_new_batch = false;
        let kernels = match self.sets.iter().position(|kernels| kernels.parts == parts) {
            Some(place) => self.sets.remove(place),
            None => self.made(parts)?,
        };
        self.sets.insert(0, kernels);
        self.sets.truncate(MAX_SETS);
        Ok(())
    }

    fn made(&self, parts: KernelParts) -> Result<Kernels, RunError> {
        let text = source::compose(self.workgroup, parts)?;
        let text = match &self.change {
            Some(change) => change(text),
            None => text,
        };
        Kernels::new(&self.device, &self.faults, &self.layout, self.workgroup, parts, &text)
    }

    /// The kernels in use. PRECONDITION: some were chosen.
    pub fn in_use(&self) -> &Kernels {
        self.sets.first().expect("a choice comes before use")
    }

    /// The kernels in use, to compile them. PRECONDITION: some were chosen.
    pub fn in_use_mut(&mut self) -> &mut Kernels {
        self.sets.first_mut().expect("a choice comes before use")
    }
}

/// Which kernels run a batch that does not go on with those in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reuse {
    /// Kernels that are there and suffice run it.
    WhatSuffices,
    /// Kernels with exactly the parts that it needs run it.
    WhatFits,
}

/// Parts of the kernels that run a batch which needs `needed`. `kept`: parts of the kernels that are there, those in use first. `goes_on`: the batch has run
/// before on those in use; as its experiments end, it may need less.
fn choose(
    kept: &[KernelParts],
    needed: KernelParts,
    fixed: Option<KernelParts>,
    goes_on: bool,
    reuse: Reuse,
) -> KernelParts {
    if let Some(parts) = fixed {
        return parts.and(needed);
    }
    let suffices = |parts: &&KernelParts| parts.suffice_for(needed);
    if goes_on && let Some(parts) = kept.first().filter(suffices) {
        return *parts;
    }
    let smallest = kept.iter().filter(suffices).min_by_key(|parts| parts.count());
    match smallest {
        Some(parts) if reuse == Reuse::WhatSuffices => *parts,
        _ => needed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_columns::{Exp, cc, mode};

    fn parts(cc: u32, modes: u32) -> KernelParts {
        KernelParts::needed_by([&Exp { cc, modes, ..bytemuck::Zeroable::zeroed() }])
    }

    #[test]
    fn kernels_that_suffice_are_used_again() {
        let (dcqcn, hpcc, classes) = (parts(cc::DCQCN, 0), parts(cc::HPCC, 0), parts(cc::DCQCN, mode::CLASSES));
        let both = dcqcn.and(hpcc);
        for (kept, needed, goes_on, reuse, want) in [
            (vec![], dcqcn, false, Reuse::WhatSuffices, dcqcn),
            // The smallest of those that suffice.
            (vec![KernelParts::ALL, both], dcqcn, false, Reuse::WhatSuffices, both),
            (vec![classes, hpcc], both, false, Reuse::WhatSuffices, both),
            // A large batch has kernels of its own, but never others from slice to slice.
            (vec![KernelParts::ALL, both], dcqcn, false, Reuse::WhatFits, dcqcn),
            (vec![both, dcqcn], dcqcn, true, Reuse::WhatFits, both),
            (vec![dcqcn, both], hpcc, true, Reuse::WhatSuffices, both),
        ] {
            assert_eq!(choose(&kept, needed, None, goes_on, reuse), want, "{kept:?}, {needed:?}");
        }
        assert_eq!(choose(&[dcqcn], dcqcn, Some(both), true, Reuse::WhatFits), both);
        assert_eq!(choose(&[dcqcn], classes, Some(both), true, Reuse::WhatFits), both.and(classes));
    }
}
