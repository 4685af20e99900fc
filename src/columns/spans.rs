//! Which rows of which table belong to which experiment, where the rows of several experiments lie side by side.
//!
//! Layer: columns. Made once for a batch, from the headers. The world of a batch, a device's buffers, transfers and host systems find an experiment's rows
//! with it. Computes nothing else.

use std::ops::Range;

use super::registry::every_table;
use super::table_list::{N_TABLES, TABLES};
use super::{Exp, FlowRx, FlowTx, Nic, Port, Row, Switch, Task};

/// A row type whose rows of all experiments are one column of the world.
pub trait ColumnRow: Row {
    /// Index of its table in [`TABLES`].
    const TABLE: usize;
}

/// Implements [`ColumnRow`] for the rows of the world, in the order of [`TABLES`].
macro_rules! column_rows {
    ($i:expr;) => {};
    ($i:expr; $Row:ident $($rest:ident)*) => {
        impl ColumnRow for $Row { const TABLE: usize = $i; }
        column_rows!($i + 1; $($rest)*);
    };
}

macro_rules! define_spans {
    (
        header { $(#[$hmeta:meta])* $header:ident: $Header:ident, as $has:tt, written by $hw:tt; }
        columns { $($(#[$cmeta:meta])* $col:ident: $Col:ident, $cbase:ident x $cper:literal of $clen:ident, as $cas:tt, written by $cw:tt;)* }
        engine { $($(#[$meta:meta])* $name:ident: $Row:ident, $base:ident x $per:literal of $len:ident, as $as:tt, written by $w:tt;)* }
    ) => {
        column_rows!(0; $Header $($Col)*);

        impl $Header {
            /// Number of rows of the experiment in each table, in the order of [`TABLES`].
            pub fn row_counts(&self) -> [u64; N_TABLES] {
                [1, $($cper * u64::from(self.$clen),)* $($per * u64::from(self.$len)),*]
            }

            /// The header for tables that hold the rows of several experiments. `first[i]` is this experiment's first row in table `i` of [`TABLES`].
            fn with_bases(mut self, first: &[u64; N_TABLES]) -> $Header {
                let mut first = first.iter().skip(1);
                $(self.$cbase = (first.next().expect("an entry for each table") / $cper) as u32;)*
                $(self.$base = (first.next().expect("an entry for each table") / $per) as u32;)*
                self
            }

            /// The header for an experiment that is alone in its tables.
            pub fn without_bases(mut self) -> $Header {
                $(self.$cbase = 0;)*
                $(self.$base = 0;)*
                self
            }
        }
    };
}
every_table!(define_spans!);

/// The spans of rows of experiments that lie side by side: for every experiment and table, which rows are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans {
    /// First row of each experiment in each table, in the order of [`TABLES`]; and in the last entry, where the tables end.
    first: Vec<[u64; N_TABLES]>,
}

impl Default for Spans {
    fn default() -> Spans {
        Spans { first: vec![[0; N_TABLES]] }
    }
}

impl Spans {
    /// The spans of experiments that lie side by side in the order of `headers`.
    pub fn of<'a>(headers: impl IntoIterator<Item = &'a Exp>) -> Spans {
        let mut spans = Spans::default();
        let mut end = [0; N_TABLES];
        for header in headers {
            end.iter_mut().zip(header.row_counts()).for_each(|(end, n)| *end += n);
            spans.first.push(end);
        }
        spans
    }

    /// Number of experiments.
    pub fn len(&self) -> usize {
        self.first.len() - 1
    }

    /// Whether there is no experiment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows of experiment number `k` in the column of `R`.
    pub fn rows<R: ColumnRow>(&self, k: usize) -> Range<usize> {
        self.rows_in(k, R::TABLE)
    }

    /// Rows of experiment number `k` in table `table` of [`TABLES`].
    fn rows_in(&self, k: usize, table: usize) -> Range<usize> {
        self.first[k][table] as usize..self.first[k + 1][table] as usize
    }

    /// Bytes of experiment number `k` in table `table` of [`TABLES`].
    pub fn bytes_in(&self, k: usize, table: usize) -> Range<u64> {
        let row = TABLES[table].row_bytes as u64;
        self.first[k][table] * row..self.first[k + 1][table] * row
    }

    /// Size of each table in bytes, in the order of [`TABLES`].
    pub fn table_bytes(&self) -> [u64; N_TABLES] {
        let end = self.first[self.len()];
        std::array::from_fn(|i| end[i] * TABLES[i].row_bytes as u64)
    }

    /// `header` of experiment number `k`, with the first row that it has in each table.
    pub fn place(&self, k: usize, header: Exp) -> Exp {
        header.with_bases(&self.first[k])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    #[test]
    fn spans_lie_side_by_side() {
        let header = |n: u32| Exp { nic_len: n, port_len: 2 * n, end_len: 3 * n, task_len: n / 2, ..Exp::zeroed() };
        let headers = [2, 0, 5].map(header);
        let spans = Spans::of(&headers);
        assert_eq!((spans.len(), spans.is_empty(), Spans::default().is_empty()), (3, false, true));
        assert_eq!([0, 1, 2].map(|k| spans.rows::<Nic>(k)), [0..2, 2..2, 2..7]);
        assert_eq!((spans.rows::<Port>(2), spans.rows::<Task>(2), spans.rows::<Exp>(2)), (4..14, 1..3, 2..3));
        for (i, table) in TABLES.iter().enumerate() {
            let rows = |k: usize| headers[k].row_counts()[i] as usize;
            assert_eq!([0, 1, 2].map(|k| spans.rows_in(k, i).len()), [0, 1, 2].map(rows), "{}", table.name);
            assert_eq!(spans.bytes_in(2, i).end, spans.table_bytes()[i], "{}", table.name);
        }
        let placed = spans.place(2, headers[2]);
        assert_eq!((placed.nic_base, placed.port_base, placed.end_base, placed.task_base), (2, 4, 6, 1));
        assert_eq!(placed.without_bases(), headers[2]);
    }

    #[test]
    fn a_row_type_of_the_world_knows_its_table() {
        fn name<R: ColumnRow>() -> (&'static str, &'static str) {
            (TABLES[R::TABLE].row, R::NAME)
        }
        for (table, row) in [
            name::<Exp>(),
            name::<Nic>(),
            name::<Port>(),
            name::<Switch>(),
            name::<FlowTx>(),
            name::<FlowRx>(),
            name::<Task>(),
        ] {
            assert_eq!(table, row);
        }
    }
}
