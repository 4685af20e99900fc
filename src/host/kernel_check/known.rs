//! A stored experiment and the end that the CPU engine finds for it.
//!
//! Layer: host.

use hyperfold_columns::{OwnedTables, status};
use hyperfold_engine::{cpu, grow};
use sha2::{Digest, Sha256};

use super::cases::KernelCase;

/// Maximum number of packet records of a case.
pub const PACKET_LIMIT: u64 = 1 << 20;

/// A stored experiment, simulated on the CPU engine.
#[derive(Clone, Debug)]
pub struct KnownCase {
    /// Its name in messages.
    pub name: String,
    /// Its tables before.
    pub before: OwnedTables,
    /// Its tables at its end.
    pub want: OwnedTables,
}

impl KnownCase {
    /// Simulates `case` to its end.
    pub fn simulated(case: KernelCase) -> KnownCase {
        let mut want = case.tables.clone();
        {
            let t = &mut *want.view();
            loop {
                cpu::run(t, u32::MAX);
                // Cases are far below the limit; one that exceeds it would stay as it is.
                if t.exps[0].status != status::NEEDS_PACKETS || grow::grow(t, PACKET_LIMIT).is_err() {
                    break;
                }
            }
        }
        KnownCase { name: case.name, before: case.tables, want }
    }
}

/// The first 16 hexadecimal digits of the SHA-256 of all tables. Two machines compare them.
pub fn digest(tables: &OwnedTables) -> String {
    let mut hasher = Sha256::new();
    tables.as_bytes().iter().for_each(|table| hasher.update(table));
    hasher.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
