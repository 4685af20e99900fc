//! The tables of a batch: all experiments' rows side by side, each experiment's consecutive.
//!
//! Layer: columns. Every item here comes from the list of tables in [`super::registry`], but for what folding on the CPU adds.

use super::registry::every_table;
use super::row::{Field, Row};
use super::{Exp, FlowRx, FlowTx, Gate, IntVec, Nic, Packet, Plan, Port, RttSample, Signal, Switch, Task, Wire};

/// A run of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub base: usize,
    pub len: usize,
}

/// What is known of a table without its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The field of [`Tables`].
    pub name: &'static str,
    /// Name of the row type; `u32` or `u64` where a row is a word.
    pub row: &'static str,
    pub row_bytes: usize,
    pub columns: &'static [Field],
    /// The storage buffer's name in WGSL, and the type of its elements.
    pub wgsl: &'static str,
    pub wgsl_row: &'static str,
    /// In WGSL: the variable that holds the experiment's first row, the column of its header that says so, and the factor between them. `None`: the table of
    /// headers.
    pub base: Option<(&'static str, &'static str, u32)>,
    /// Systems whose kernels may write it. Nobody: kernels only read it.
    pub written_by: &'static [&'static str],
}

impl Table {
    /// Whether a row is a struct with named columns, not a word.
    pub fn is_struct(&self) -> bool {
        self.row != self.columns[0].wgsl
    }

    /// Whether no kernel writes it.
    pub fn is_read_only(&self) -> bool {
        self.written_by.is_empty()
    }
}

macro_rules! define_tables {
    (
        header { $(#[$hmeta:meta])* $header:ident: $Header:ident, as ($hwgsl:literal, $hrow:literal), written by [$($hwriter:ident),*]; }
        rows { $($(#[$meta:meta])* $name:ident: $Row:ident, $base:ident x $per:literal of $len:ident,
            as ($wgsl:literal, $wgsl_row:literal, $wgsl_base:literal), written by [$($writer:ident),*];)* }
    ) => {
        /// How many tables there are.
        pub const N_TABLES: usize = [stringify!($header), $(stringify!($name)),*].len();

        /// Every table, in the order of the WGSL bindings.
        pub const TABLES: [Table; N_TABLES] = [
            Table {
                name: stringify!($header),
                row: <$Header as Row>::NAME,
                row_bytes: size_of::<$Header>(),
                columns: <$Header as Row>::FIELDS,
                wgsl: $hwgsl,
                wgsl_row: $hrow,
                base: None,
                written_by: &[$(stringify!($hwriter)),*],
            },
            $(Table {
                name: stringify!($name),
                row: <$Row as Row>::NAME,
                row_bytes: size_of::<$Row>(),
                columns: <$Row as Row>::FIELDS,
                wgsl: $wgsl,
                wgsl_row: $wgsl_row,
                base: Some(($wgsl_base, stringify!($base), $per)),
                written_by: &[$(stringify!($writer)),*],
            },)*
        ];

        /// Every table. Experiment `e`'s rows are where `exps[e]` says.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Tables {
            $(#[$hmeta])*
            pub $header: Vec<$Header>,
            $($(#[$meta])* pub $name: Vec<$Row>,)*
            /// What happened to messages, in the order of processing, while `mode::TRACED` is on. No column: only folding on the CPU uses it.
            pub fold_trace: Vec<FoldTrace>,
            pub fold_hints: FoldHints,
        }

        impl Tables {
            /// Every table as bytes, in the order of [`TABLES`].
            pub fn views(&self) -> [&[u8]; N_TABLES] {
                [bytemuck::cast_slice(&self.$header), $(bytemuck::cast_slice(&self.$name)),*]
            }

            /// Every table as bytes that can be overwritten, in the order of [`TABLES`].
            pub fn views_mut(&mut self) -> [&mut [u8]; N_TABLES] {
                [bytemuck::cast_slice_mut(&mut self.$header), $(bytemuck::cast_slice_mut(&mut self.$name)),*]
            }

            /// Writes into the header how many rows each table has.
            ///
            /// PRECONDITION: one experiment, and tables that follow the same count agree.
            pub fn set_lengths(&mut self) {
                let exp = &mut self.$header[0];
                $(exp.$len = (self.$name.len() / $per) as u32;)*
            }

            /// Appends the rows of `one`, a table set holding a single experiment, and rebases its header.
            pub fn append(&mut self, one: &Tables) {
                let mut exp = one.$header[0];
                $(exp.$base = (self.$name.len() / $per) as u32;)*
                self.$header.push(exp);
                $(self.$name.extend_from_slice(&one.$name);)*
            }

            /// Writes the rows of experiment `row` back to `one`, its tables before they were appended, with the header that it had (bases 0). What kernels
            /// only read is left as it is.
            ///
            /// PRECONDITION: `one` has the lengths it was appended with.
            pub fn extract(&self, row: usize, one: &mut Tables) {
                let exp = self.$header[row];
                one.$header[0] = exp.without_bases();
                $(
                    let written: &[&str] = &[$(stringify!($writer)),*];
                    if !written.is_empty() {
                        let (first, n) = ($per * exp.$base as usize, one.$name.len());
                        one.$name.copy_from_slice(&self.$name[first..first + n]);
                    }
                )*
            }
        }

        impl $Header {
            /// The header as it is where the experiment is alone.
            pub fn without_bases(mut self) -> $Header {
                $(self.$base = 0;)*
                self
            }
        }

        #[cfg(test)]
        impl Tables {
            /// An experiment with the lengths that `exp` says, each row made by `fill`.
            pub fn filled(exp: $Header, mut fill: impl FnMut(&mut [u8])) -> Tables {
                let mut t = Tables { $header: vec![exp], ..Tables::default() };
                $(
                    t.$name = vec![bytemuck::Zeroable::zeroed(); $per * exp.$len as usize];
                    fill(bytemuck::cast_slice_mut(&mut t.$name));
                )*
                t
            }
        }
    };
}
every_table!(define_tables!);

/// What folding on the CPU knows about an experiment, and what it asks of the systems. No column. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldHints {
    /// The origin of each port's telemetry counters, picoseconds and bytes, where the origin is free. `None`, or no row: 0.
    pub telemetry_from: Vec<Option<(u32, u32)>>,
    /// Every congestion mark is a random choice.
    pub random_marks: bool,
    /// Congestion-control state may be rounded between messages.
    pub rounding: bool,
}

impl FoldHints {
    /// The origin of `port`'s telemetry counters, picoseconds and bytes.
    #[inline]
    pub fn counts_from(&self, port: u32) -> (u64, u64) {
        self.telemetry_from
            .get(port as usize)
            .copied()
            .flatten()
            .map_or((0, 0), |(ps, bytes)| (u64::from(ps), u64::from(bytes)))
    }
}

/// Something that happened to a message. `task` is the message's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldTrace {
    /// An event posted it; `first` of those that the same event posted.
    Posted { task: u32, first: bool },
    /// Its last byte was sent at `at`, for the first time or again.
    Sent { task: u32, at: u64 },
    /// All of it arrived.
    Delivered(u32),
    /// All of it was acknowledged.
    Acked(u32),
    /// All of it arrived at `at`, which folding had already reported.
    DeliveredAgain { task: u32, at: u64 },
}

impl Tables {
    /// Bytes of each table, in the order of [`TABLES`].
    pub fn table_bytes(&self) -> [u64; N_TABLES] {
        self.views().map(|v| v.len() as u64)
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.table_bytes().iter().sum()
    }
}
