//! The queue of a cluster: which jobs start now, who may hold how many GPUs, and how whole servers become free.
//!
//! Layer: cluster. The order of the queue is a policy of `queue_order`, the choice of servers is one of `placement`.

mod defragment;
pub(super) mod grow;
pub(super) mod pass;
pub(super) mod quota;
mod scratch;
