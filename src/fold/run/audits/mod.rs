//! Audits of skips: on copies of the rows or of the whole experiment, simulated without the skip.
//!
//! Layer: fold.

pub(crate) mod audit;
pub(crate) mod compare_copies;
pub(crate) mod copies;
pub(crate) mod copy_on;
pub(crate) mod prepare_copy;
pub(crate) mod restart;
pub(crate) mod return_point;
