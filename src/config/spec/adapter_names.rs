//! Names of network adapters, apart from what they do, since the table of keys has the names and reads the rest.
//!
//! Layer: spec.

/// Values of `cluster.nic`.
pub(super) static NICS: [&str; 6] = ["none", "connectx", "bluefield-3", "connectx-8", "pollara-400", "efa"];
