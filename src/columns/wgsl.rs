//! WGSL declarations of row structs and their constants, generated from the Rust ones.
//!
//! Layer: columns. Knows names and layouts, not how kernels use them.

use std::fmt::{Display, Write};

use super::{CHANGES, FARTHEST, LINEAGE_WORDS, TABLES, Table};
use super::{average, cc, flag, flowlet, kind, loss, meta, mixed, mode, psn, qp, status, task, watch};

/// Columns whose Rust names are reserved words of WGSL. There they end in an underscore.
const RESERVED: [&str; 3] = ["class", "meta", "target"];

/// Columns of an experiment that steps read often and that no system writes. `enter` copies them to private variables, which are called `exp_` and the
/// column's name: a device reads its memory once a dispatch then, and not several times a packet.
const CONSTANTS: [&str; 12] = [
    "modes",
    "cc",
    "payload",
    "data_overhead",
    "ack_bytes",
    "clock_ps",
    "reserve",
    "mask_words",
    "sums_rtts",
    "nic_len",
    "port_len",
    "end_len",
];

/// The WGSL name of a column.
pub fn column(name: &str) -> String {
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_string() }
}

/// Lineages that are stored as vectors, so that a device reads one in three accesses: row and column. It must begin at a multiple of 16 bytes.
const STORED_AS_VECTORS: (&str, &str) = ("PacketDetails", "d");

/// The type of a lineage.
const LINEAGE: &str = "array<u32, 12>";

/// Declarations of all row structs.
pub fn declarations() -> String {
    const { assert!(LINEAGE_WORDS == 12, "a lineage is three vectors") };
    let mut out =
        format!("alias Lineage = {LINEAGE};\nalias StoredLineage = array<vec4<u32>, {}>;\n\n", LINEAGE_WORDS / 4);
    for table in TABLES.iter().filter(|t| t.is_struct()) {
        let _ = writeln!(out, "struct {} {{", table.row);
        for field in table.columns {
            let ty = if STORED_AS_VECTORS == (table.row, field.name) {
                "StoredLineage"
            } else if field.wgsl == LINEAGE {
                // A lineage has its name everywhere: two names of one array are two types in Metal's language.
                "Lineage"
            } else {
                field.wgsl
            };
            let _ = writeln!(out, "    {}: {ty},", column(field.name));
        }
        let _ = writeln!(out, "}}\n");
    }
    out
}

/// Declarations of the tables, one storage buffer each, numbered as in [`TABLES`]; and of the variables that `enter` sets: the experiment's first row in
/// each table, and its constants.
pub fn bindings() -> String {
    let mut out = String::new();
    for (binding, table) in TABLES.iter().enumerate() {
        let access = if table.is_read_only() { "read" } else { "read_write" };
        let Table { wgsl, wgsl_row, .. } = table;
        let _ = writeln!(out, "@group(0) @binding({binding}) var<storage, {access}> {wgsl}: array<{wgsl_row}>;");
    }
    let mut bases: Vec<_> = TABLES.iter().filter_map(|t| t.base).collect();
    // Tables that have the same count share the variable.
    let mut seen = std::collections::BTreeSet::new();
    bases.retain(|base| seen.insert(base.0));
    out.push_str("\nvar<private> exp_row: u32;\n");
    for (base, _, _) in &bases {
        let _ = writeln!(out, "var<private> {base}: u32;");
    }
    for name in CONSTANTS {
        let column = TABLES[0].columns.iter().find(|column| column.name == name).expect("the column is one of Exp");
        let _ = writeln!(out, "var<private> exp_{name}: {};", column.wgsl);
    }
    out.push_str("\nfn enter(row: u32) {\n    exp_row = row;\n");
    for (base, column, per) in &bases {
        let factor = if *per == 1 { String::new() } else { format!("{per}u * ") };
        let _ = writeln!(out, "    {base} = {factor}exps[row].{column};");
    }
    for name in CONSTANTS {
        let _ = writeln!(out, "    exp_{name} = exps[row].{name};");
    }
    out.push_str("}\n\n");
    out
}

/// Appends `const NAME: TYPE = VALUE;` in WGSL.
pub fn constant(out: &mut String, name: &str, value: impl Literal) {
    let _ = writeln!(out, "const {name}: {} = {value}{};", value.wgsl_type(), value.suffix());
}

/// An integer type that WGSL has literals for.
pub trait Literal: Display + Copy {
    /// Name of the type in WGSL.
    fn wgsl_type(self) -> &'static str;
    /// Suffix that makes a literal one of this type, such as `u`.
    fn suffix(self) -> &'static str;
}

impl Literal for u32 {
    fn wgsl_type(self) -> &'static str {
        "u32"
    }
    fn suffix(self) -> &'static str {
        "u"
    }
}

impl Literal for u64 {
    fn wgsl_type(self) -> &'static str {
        "u64"
    }
    fn suffix(self) -> &'static str {
        "lu"
    }
}

/// Appends `PREFIX_NAME` for constants of a module.
macro_rules! module {
    ($out:ident, $prefix:literal, $module:ident: $($name:ident),* $(,)?) => {
        $(constant(&mut $out, concat!($prefix, "_", stringify!($name)), $module::$name);)*
    };
}

/// Declarations of the constants used in rows: `STATUS_RUNNING`, `META_WIRE_MASK`, `NONE` and so on.
pub fn constants() -> String {
    let mut out = String::new();
    constant(&mut out, "NONE", super::NONE);
    constant(&mut out, "NEVER", super::NEVER);
    constant(&mut out, "FRAME_BYTES", super::FRAME_BYTES);
    constant(&mut out, "STALL_DOUBLINGS", super::STALL_DOUBLINGS);
    constant(&mut out, "STALLS_A_RETRY", super::STALLS_A_RETRY);
    constant(&mut out, "LOSS_WINDOW_PACKETS", super::LOSS_WINDOW_PACKETS);
    constant(&mut out, "WINDOW_STEPS", super::WINDOW_STEPS);
    constant(&mut out, "CONTROL_TURNS", super::CONTROL_TURNS);
    constant(&mut out, "INT_HOPS", super::INT_HOPS);
    constant(&mut out, "CHANGES", CHANGES as u32);
    constant(&mut out, "FARTHEST", FARTHEST);
    constant(&mut out, "LINEAGE_WORDS", LINEAGE_WORDS as u32);
    constant(&mut out, "INT_Q_UNIT", super::INT_Q_UNIT);
    constant(&mut out, "INT_TX_UNIT", super::INT_TX_UNIT);
    constant(&mut out, "FLOWS_LEFT", super::FLOWS_LEFT);
    constant(&mut out, "HANDED_OVER", super::HANDED_OVER);
    constant(&mut out, "LINK_DOWN", super::LINK_DOWN);
    constant(&mut out, "LINK_DROPS", super::LINK_DROPS);
    constant(&mut out, "LINK_LOSES", super::LINK_LOSES);
    constant(&mut out, "LINK_TROUBLE", super::LINK_TROUBLE);
    constant(&mut out, "LOSS_WORDS", super::LOSS_WORDS);
    constant(&mut out, "WATCH_WORDS", super::WATCH_WORDS);
    constant(&mut out, "AVERAGE_WORDS", super::AVERAGE_WORDS);
    constant(&mut out, "FLOWLET_WORDS", super::FLOWLET_WORDS);
    constant(&mut out, "REMOTE_DOWN", super::REMOTE_DOWN);
    constant(&mut out, "HOLDS", super::HOLDS);
    constant(&mut out, "EDGE_SIGNAL", super::EDGE_SIGNAL);
    constant(&mut out, "WEIGHED_CHOICE", super::WEIGHED_CHOICE);
    constant(&mut out, "SHARED_FLAGS", super::SHARED_FLAGS);
    constant(&mut out, "SHARED_FLOWS_LEFT", super::SHARED_FLOWS_LEFT);
    constant(&mut out, "SHARED_HEADER", super::SHARED_HEADER);
    module!(out, "STATUS", status: RUNNING, DONE, NEEDS_PACKETS, TIME_LIMIT, GAVE_UP, VIOLATION, ENDED_BY_HOST);
    module!(out, "FLAG", flag: NEEDS_FRAMES, NEEDS_PACKETS, TO_RETURN, GAVE_UP, OVER_BUFFER, POOL_EMPTY, SIGNALS);
    module!(out, "MODE", mode: WINDOW, VAR_WINDOW, RATE_BOUND, ACK_HIGH_PRIO, FAST_REACT, DCQCN_CLAMP, ECN, PFC, LINKS, FRESH_QP, NS3_LOSS, SELECTIVE, IN_TURN, PORT_QUEUES, TRIMMING, UEC, REPS, MIXED, CREDIT, ADAPTIVE, CLASSES, CHANGES);
    module!(out, "MIXED", mixed: PENALTY_WORDS, KEPT, KEPT_WORDS, WORDS);
    module!(out, "LOSS", loss: SHARE, ARC, LOST, BYTES_LO, BYTES_HI);
    module!(out, "AVERAGE", average: SUM_LO, SUM_HI, EMPTY_LO, EMPTY_HI);
    module!(out, "FLOWLET", flowlet: PORT, LAST_LO, LAST_HI);
    module!(out, "WATCH", watch: SINCE_LO, SINCE_HI, STATE, DROPS, STARTS, ACTS, ASKED);
    module!(out, "PSN", psn: OFFSET_SHIFT, BYTE_MASK, WANT_MASK);
    cc::ALL.iter().for_each(|(name, control)| constant(&mut out, &format!("CC_{}", name.to_uppercase()), *control));
    module!(out, "KIND", kind: DATA, ACK, NACK, FRAME);
    module!(out, "META", meta: WIRE_MASK, KIND_SHIFT, KIND_MASK, MARKED, CNP, RESUME, PULL, ASKS, LAST_HOP, TRIMMED, ENTROPY_SHIFT, INT_SHIFT, INT_MASK, CLASS_SHIFT, CLASS_MASK, ANSWERED);
    module!(out, "QP", qp: FINISHED, STARTED, A_SEEN, D_SEEN, CREATED, CWR, QUEUED, RISING, ARMED);
    module!(out, "TASK", task: MESSAGE, READY);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_spelled_with_their_type() {
        let text = constants();
        assert!(text.contains("const NEVER: u64 = 18446744073709551615lu;\n"), "{text}");
        assert!(text.contains("const META_MARKED: u32 = 262144u;\n"), "{text}");
    }

    #[test]
    fn reserved_words_get_an_underscore() {
        assert_eq!(column("meta"), "meta_");
        assert!(declarations().contains("    target_: u64,"));
    }
}
