//! The load that training and serving a large language model puts on a network: from a model and a layout to tasks, messages and flows.
//!
//! | module | content |
//! |---|---|
//! | [`model`] | presets and files of models: layers, sizes, experts |
//! | [`compute`] | times of kernels on a GPU: measured where there are measurements, else by the roofline |
//! | [`memory`] | bytes that weights, gradients, optimiser states and activations take on a GPU |
//! | [`collective`] | collectives as programs of sends and receives, as NCCL chooses them, and their costs inside a server |
//! | [`workload`] | tasks with dependencies: training, serving, traffic patterns, imported traces |
//!
//! It knows networks only by their servers and sizes, and never simulates. Times it predicts carry the place where they were measured.
//! Start with [`workload`]: its parts call the others.

#![forbid(unsafe_code)]

pub mod collective;
pub mod compute;
pub mod memory;
pub mod model;
pub mod workload;
