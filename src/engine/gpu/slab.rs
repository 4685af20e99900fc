//! A set of buffers on the device, with the experiments that lie side by side in it.
//!
//! Layer: engine. Moves nothing; `on_device` does.

use super::device_tables::Resident;
use super::pack::{self, DeviceLimits};
use hyperfold_columns::{Exp, Tables, status};

/// Experiments that are on the device side by side, in one set of buffers.
#[derive(Debug)]
pub(super) struct Slab {
    pub(super) resident: Resident,
    /// Place in the batch of each of its experiments, in ascending order; `None`: it has come home.
    pub(super) places: Vec<Option<usize>>,
    /// Headers after the last dispatch.
    pub(super) exps: Vec<Exp>,
}

impl Slab {
    /// Rows of its experiments that run.
    pub(super) fn running(&self) -> Vec<u32> {
        let rows = (0u32..).zip(self.places.iter().zip(&self.exps));
        rows.filter(|(_, (place, exp))| place.is_some() && exp.status == status::RUNNING).map(|(row, _)| row).collect()
    }
}

/// The tables of some experiments: `chosen` has pairs of a place in the batch, ascending, and a row on the device.
pub(super) fn pick<'a, 'b>(
    experiments: &'a mut [Tables<'b>],
    chosen: &[(usize, usize)],
) -> Vec<(usize, &'a mut Tables<'b>)> {
    let mut next = chosen.iter().peekable();
    experiments
        .iter_mut()
        .enumerate()
        .filter_map(|(p, t)| next.next_if(|(place, _)| *place == p).map(|&(_, row)| (row, t)))
        .collect()
}

/// Number of `places` from the first on whose experiments fit in one set of buffers; at least one.
pub(super) fn fitting(experiments: &[Tables], places: &[usize], limits: &DeviceLimits) -> usize {
    pack::first_that_fit(places.iter().map(|&p| &experiments[p]), limits).max(1)
}
