//! The queue of a cluster: which jobs start now, who may hold how many GPUs, and how whole servers become free.
//!
//! Layer: cluster. The order of the queue is a policy of `scheduler`, the choice of servers one of `placement`.

mod defragment;
pub(super) mod grow;
pub(super) mod quota;
pub(super) mod schedule;
mod scratch;
