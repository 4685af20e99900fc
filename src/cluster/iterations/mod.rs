//! How fast jobs run beside each other. Iterations of all jobs that share links are simulated together, and the speeds hold until something changes.
//!
//! Layer: cluster. A job of a class runs its program. The servers of any other job all-reduce gradients once an iteration, by rings. Jobs that share no link
//! which could be full run as fast as they would alone. Equal sets of jobs are simulated once. `docs/how-to/simulate-a-cluster.md` says what an iteration is.
//!
//! | file | holds |
//! |---|---|
//! | `fabric` | the network, how its paths are chosen, what is simulated on it |
//! | `traffic` | what one job sends over which links |
//! | `ring` | traffic of a job of no class |
//! | `program` | traffic of a job of a class |
//! | `shared` | which jobs share links that could be full |
//! | `case` | a set of jobs, reduced to what decides its speed, in a form that is equal for equal sets |
//! | `run` | a case through the flow level or the packet engine |
//! | `foreseen` | how long simulating them will take |
//! | `measured` | speeds of the running jobs, results so far, audits |

mod case;
mod fabric;
mod foreseen;
mod measured;
mod program;
mod ring;
mod run;
mod shared;
mod traffic;

pub(super) use fabric::IterationFabric;
pub use measured::{IterationSummary, SlowestMoment};
pub(super) use measured::{KnownIteration, MeasuredIterations, class_iteration};
