//! What is known of each table without its rows: names, sizes, columns, bindings.
//!
//! Layer: columns. Made of the list of tables in [`super::registry`].

use super::index::{FlowIdx, PortIdx};
use super::registry::every_table;
use super::row::{Field, Row};
use super::{
    ClassQueue, Exp, FlowRx, FlowTx, Gate, IntVec, Nic, Packet, PacketDetails, Plan, Port, RttSample, Signal, Switch,
    Task, Wire,
};

/// Description of a table, without its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name of the field of [`Tables`](super::Tables).
    pub name: &'static str,
    /// Name of the row type; `u32` or `u64` if a row is a word.
    pub row: &'static str,
    /// Size of a row, in bytes.
    pub row_bytes: usize,
    /// Columns of a row; `word` alone if a row is a word.
    pub columns: &'static [Field],
    /// Name of the storage buffer in WGSL.
    pub wgsl: &'static str,
    /// Type of its elements in WGSL.
    pub wgsl_row: &'static str,
    /// In WGSL: the variable that holds the experiment's first row, the column of its header that it is read from, and the factor between them.
    /// `None`: the table of headers.
    pub base: Option<(&'static str, &'static str, u32)>,
    /// Systems whose kernels may write the table. If empty, kernels only read it.
    pub written_by: &'static [&'static str],
}

impl Table {
    /// The table `name` with rows of type `R`. `wgsl`: names of the storage buffer and of its elements' type.
    const fn of<R: Row>(
        name: &'static str,
        (wgsl, wgsl_row): (&'static str, &'static str),
        base: Option<(&'static str, &'static str, u32)>,
        written_by: &'static [&'static str],
    ) -> Table {
        Table { name, row: R::NAME, row_bytes: size_of::<R>(), columns: R::FIELDS, wgsl, wgsl_row, base, written_by }
    }

    /// Whether a row is a struct with named columns, not a word.
    pub fn is_struct(&self) -> bool {
        self.row != self.columns[0].wgsl
    }

    /// Whether no kernel writes it.
    pub fn is_read_only(&self) -> bool {
        self.written_by.is_empty()
    }
}

macro_rules! list_tables {
    (
        header { $(#[$hmeta:meta])* $header:ident: $Header:ident, as ($hwgsl:literal, $hrow:literal), written by [$($hwriter:ident),*]; }
        $($group:ident { $($(#[$meta:meta])* $name:ident: $Row:ident, $base:ident x $per:literal of $len:ident,
            as ($wgsl:literal, $wgsl_row:literal, $wgsl_base:literal), written by [$($writer:ident),*];)* })*
    ) => {
        /// Number of tables.
        pub const N_TABLES: usize = [stringify!($header), $($(stringify!($name)),*),*].len();

        /// Every table, in the order of the WGSL bindings.
        pub const TABLES: [Table; N_TABLES] = [
            Table::of::<$Header>(stringify!($header), ($hwgsl, $hrow), None, &[$(stringify!($hwriter)),*]),
            $($(Table::of::<$Row>(
                stringify!($name),
                ($wgsl, $wgsl_row),
                Some(($wgsl_base, stringify!($base), $per)),
                &[$(stringify!($writer)),*],
            ),)*)*
        ];
    };
}
every_table!(list_tables!);
