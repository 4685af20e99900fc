//! The packet engine: columns in, columns out. Knows no sweep file, topology or workload.

pub mod gpu;
