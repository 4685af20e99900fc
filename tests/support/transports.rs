//! Transport parameters for small cases.

pub use hyperfold_host::kernel_check::transports::transport;
