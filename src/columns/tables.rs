//! The tables of one experiment.
//!
//! Layer: columns. Every item here is generated from the list of tables in [`super::registry`], except what folding on the CPU adds.

use std::mem::take;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytemuck::{cast_slice, cast_slice_mut};

use super::claims::{ClaimTable, Claims};
use super::column::Column;
use super::index::{EndOwner, FlowIdx, LinkEndIdx, PortIdx, TaskIdx};
use super::network_changes::{NetworkChanges, watch};
use super::registry::every_table;
use super::series::TimeSeries;
use super::spans::{ColumnRow, Spans};
use super::table_list::N_TABLES;
use super::{
    ClassQueue, Exp, FlowRx, FlowTx, Gate, IntVec, Nic, Packet, PacketDetails, Plan, Port, RttSample, SHARED_FLAGS,
    SHARED_FLOWS_LEFT, Signal, Switch, Task, Wire,
};

macro_rules! define_tables {
    (
        header { $(#[$hmeta:meta])* $header:ident: $Header:ident, as $has:tt, written by $hw:tt; }
        columns { $($(#[$cmeta:meta])* $col:ident: $Col:ident, $cbase:ident x $cper:literal of $clen:ident, as $cas:tt, written by $cw:tt;)* }
        engine { $($(#[$meta:meta])* $name:ident: $Row:ident, $base:ident x $per:literal of $len:ident, as $as:tt, written by $w:tt;)* }
    ) => {
        /// Every table of one experiment, as engines use them: slices of the columns in which experiments stand side by side, and tables that only
        /// the engine has. `exps` has one row, the header.
        #[derive(Debug, Default, PartialEq, Eq)]
        pub struct Tables<'w> {
            $(#[$hmeta])*
            pub $header: Column<'w, $Header>,
            $($(#[$cmeta])* pub $col: Column<'w, $Col>,)*
            $($(#[$meta])* pub $name: Column<'w, $Row>,)*
            /// Events of messages, in the order of processing, while `mode::TRACED` is set. No column: only folding on the CPU uses it.
            pub fold_trace: Vec<FoldTrace>,
            /// Folding's knowledge about the experiment, and its requests to the systems.
            pub fold_hints: FoldHints,
            /// Changes of its network that are still to come.
            pub changes: NetworkChanges,
            /// Samples over time, so far.
            pub series: TimeSeries,
            /// Arrived messages and their arrival times in ps, while threads share the tables: the rows belong to the senders' threads, so they are
            /// written later. `None`: rows are written at once.
            pub got_later: Option<Vec<(TaskIdx, u64)>>,
        }

        /// Every table of one experiment, as owned vectors.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct OwnedTables {
            $(#[$hmeta])*
            pub $header: Vec<$Header>,
            $($(#[$cmeta])* pub $col: Vec<$Col>,)*
            $($(#[$meta])* pub $name: Vec<$Row>,)*
            /// Events of messages, as in [`Tables`].
            pub fold_trace: Vec<FoldTrace>,
            /// Folding's knowledge about the experiment, and its requests to the systems.
            pub fold_hints: FoldHints,
            /// Changes of its network that are still to come.
            pub changes: NetworkChanges,
            /// Samples over time, so far.
            pub series: TimeSeries,
        }

        /// The tables of an experiment that only engines use.
        #[derive(Debug, Default, bevy_ecs::component::Component)]
        pub struct EngineTables {
            $($name: Vec<$Row>,)*
            fold_trace: Vec<FoldTrace>,
            fold_hints: FoldHints,
            changes: NetworkChanges,
            series: TimeSeries,
        }

        /// The columns of all experiments. Each experiment's rows are consecutive, in the order of the headers.
        #[derive(Debug, Default)]
        pub struct Columns<'w> {
            $(#[$hmeta])*
            pub $header: &'w mut [$Header],
            $($(#[$cmeta])* pub $col: &'w mut [$Col],)*
        }

        impl<'w> Columns<'w> {
            /// The tables of each experiment: its slice of every column, with the tables in `engines`. Where that is `None`, they have only the header.
            ///
            /// PRECONDITION: `spans` are those of these columns, and `engines` has an entry for each experiment.
            pub fn split(self, spans: &Spans, engines: impl IntoIterator<Item = Option<EngineTables>>) -> Vec<Tables<'w>> {
                let (mut $header, $(mut $col),*) = (self.$header, $(self.$col),*);
                let tables = (0..spans.len()).zip(engines).map(|(k, engine)| {
                    let $header = Column::from(first_rows(&mut $header, spans, k));
                    $(let $col = Column::from(first_rows(&mut $col, spans, k));)*
                    match engine {
                        Some(engine) => Tables {
                            $header,
                            $($col,)*
                            $($name: engine.$name.into(),)*
                            fold_trace: engine.fold_trace,
                            fold_hints: engine.fold_hints,
                            changes: engine.changes,
                            series: engine.series,
                            got_later: None,
                        },
                        None => Tables { $header, ..Tables::default() },
                    }
                });
                tables.collect()
            }
        }

        impl Tables<'_> {
            /// Every table as bytes, in the order of [`TABLES`](super::TABLES).
            pub fn as_bytes(&self) -> [&[u8]; N_TABLES] {
                [cast_slice(&self.$header), $(cast_slice(&self.$col),)* $(cast_slice(&self.$name)),*]
            }

            /// Every table as mutable bytes, in the order of [`TABLES`](super::TABLES).
            pub fn as_bytes_mut(&mut self) -> [&mut [u8]; N_TABLES] {
                [
                    cast_slice_mut(&mut self.$header),
                    $(cast_slice_mut(&mut self.$col),)*
                    $(cast_slice_mut(&mut self.$name)),*
                ]
            }

            /// An owned copy.
            pub fn copied(&self) -> OwnedTables {
                let mut copy = OwnedTables::default();
                self.copy_to(&mut copy);
                copy
            }

            /// Copies these tables into `copy`, whose memory is reused.
            pub fn copy_to(&self, copy: &mut OwnedTables) {
                (*self.$header).clone_into(&mut copy.$header);
                $((*self.$col).clone_into(&mut copy.$col);)*
                $((*self.$name).clone_into(&mut copy.$name);)*
                copy.fold_trace.clone_from(&self.fold_trace);
                copy.fold_hints = self.fold_hints.clone();
                copy.changes.clone_from(&self.changes);
                copy.series.clone_from(&self.series);
            }

            /// Overwrites these tables with `source`, except columns of which `source` has no rows.
            ///
            /// PRECONDITION: `source` was copied from these tables.
            pub fn overwrite(&mut self, source: OwnedTables) {
                self.$header.copy_from_slice(&source.$header);
                $(if !source.$col.is_empty() {
                    self.$col.copy_from_slice(&source.$col);
                })*
                $(self.$name = source.$name.into();)*
                self.fold_trace = source.fold_trace;
                self.fold_hints = source.fold_hints;
                self.changes = source.changes;
                self.series = source.series;
            }

            /// One table of claims per table, for debug builds.
            pub fn claim_tables(&self) -> Vec<ClaimTable> {
                vec![self.$header.claim_table(), $(self.$col.claim_table(),)* $(self.$name.claim_table()),*]
            }

            /// These tables for thread `thread` of several that share them. Each thread has its own trace.
            ///
            /// # Safety
            /// For every table, the caller makes the promise of [`Column::lend`].
            // SAFETY: the caller makes this promise.
            #[allow(unsafe_code)]
            pub unsafe fn lend<'a>(&mut self, claims: &[ClaimTable], thread: u32) -> Tables<'a>
            where
                Self: 'a,
            {
                let mut claims = claims.iter().map(|table| Claims::of(table, thread));
                let mut next = || claims.next().expect("an entry for each table");
                // SAFETY: the caller makes the promise.
                unsafe {
                    Tables {
                        $header: self.$header.lend(next()),
                        $($col: self.$col.lend(next()),)*
                        $($name: self.$name.lend(next()),)*
                        fold_trace: Vec::new(),
                        fold_hints: self.fold_hints.clone(),
                        changes: NetworkChanges::default(),
                        series: TimeSeries::default(),
                        got_later: Some(Vec::new()),
                    }
                }
            }

            /// Takes out the tables that only the engine has.
            pub fn take_engine(&mut self) -> EngineTables {
                EngineTables {
                    $($name: take(&mut self.$name).into_vec(),)*
                    fold_trace: take(&mut self.fold_trace),
                    fold_hints: take(&mut self.fold_hints),
                    changes: take(&mut self.changes),
                    series: take(&mut self.series),
                }
            }
        }

        impl OwnedTables {
            /// Every table as bytes, in the order of [`TABLES`](super::TABLES).
            pub fn as_bytes(&self) -> [&[u8]; N_TABLES] {
                [cast_slice(&self.$header), $(cast_slice(&self.$col),)* $(cast_slice(&self.$name)),*]
            }

            /// Stores the number of rows of each table in the header.
            ///
            /// PRECONDITION: tables that have the same count agree.
            pub fn set_lengths(&mut self) {
                let exp = &mut self.$header[0];
                $(exp.$clen = (self.$col.len() / $cper) as u32;)*
                $(exp.$len = (self.$name.len() / $per) as u32;)*
            }

            /// Takes out the tables that only the engine has.
            pub fn take_engine(&mut self) -> EngineTables {
                EngineTables {
                    $($name: take(&mut self.$name),)*
                    fold_trace: take(&mut self.fold_trace),
                    fold_hints: take(&mut self.fold_hints),
                    changes: take(&mut self.changes),
                    series: take(&mut self.series),
                }
            }

            fn put_engine(&mut self, engine: EngineTables) {
                $(self.$name = engine.$name;)*
                self.fold_trace = engine.fold_trace;
                self.fold_hints = engine.fold_hints;
                self.changes = engine.changes;
                self.series = engine.series;
            }

            /// All columns, mutably borrowed, with the tables in `engine`.
            fn columns(&mut self, engine: EngineTables) -> Tables<'_> {
                Tables {
                    $header: Column::from(&mut *self.$header),
                    $($col: Column::from(&mut *self.$col),)*
                    $($name: engine.$name.into(),)*
                    fold_trace: engine.fold_trace,
                    fold_hints: engine.fold_hints,
                    changes: engine.changes,
                    series: engine.series,
                    got_later: None,
                }
            }

            /// These tables as engines use them.
            pub fn view(&mut self) -> View<'_> {
                View {
                    tables: Tables {
                        $header: Column::from(&mut *self.$header),
                        $($col: Column::from(&mut *self.$col),)*
                        $($name: take(&mut self.$name).into(),)*
                        fold_trace: take(&mut self.fold_trace),
                        fold_hints: take(&mut self.fold_hints),
                        changes: take(&mut self.changes),
                        series: take(&mut self.series),
                        got_later: None,
                    },
                    home: Home {
                        $($name: &mut self.$name,)*
                        fold_trace: &mut self.fold_trace,
                        fold_hints: &mut self.fold_hints,
                        changes: &mut self.changes,
                        series: &mut self.series,
                    },
                }
            }
        }

        /// Place that a view's engine tables are moved back to.
        #[derive(Debug)]
        struct Home<'w> {
            $($name: &'w mut Vec<$Row>,)*
            fold_trace: &'w mut Vec<FoldTrace>,
            fold_hints: &'w mut FoldHints,
            changes: &'w mut NetworkChanges,
            series: &'w mut TimeSeries,
        }

        impl Drop for View<'_> {
            fn drop(&mut self) {
                $(*self.home.$name = take(&mut self.tables.$name).into_vec();)*
                *self.home.fold_trace = take(&mut self.tables.fold_trace);
                *self.home.fold_hints = take(&mut self.tables.fold_hints);
                *self.home.changes = take(&mut self.tables.changes);
                *self.home.series = take(&mut self.tables.series);
            }
        }

        impl OwnedTables {
            /// An experiment with the lengths that `exp` says; `fill` sets the bytes of each table. Tests make arbitrary tables with it.
            pub fn filled(exp: $Header, mut fill: impl FnMut(&mut [u8])) -> OwnedTables {
                let mut t = OwnedTables { $header: vec![exp], ..OwnedTables::default() };
                $(
                    t.$col = vec![bytemuck::Zeroable::zeroed(); $cper * exp.$clen as usize];
                    fill(cast_slice_mut(&mut t.$col));
                )*
                $(
                    t.$name = vec![bytemuck::Zeroable::zeroed(); $per * exp.$len as usize];
                    fill(cast_slice_mut(&mut t.$name));
                )*
                t
            }
        }
    };
}
every_table!(define_tables!);

/// Splits the rows of experiment number `k` off `column`, whose first rows they are.
fn first_rows<'w, R: ColumnRow>(column: &mut &'w mut [R], spans: &Spans, k: usize) -> &'w mut [R] {
    let (rows, rest) = take(column).split_at_mut(spans.rows::<R>(k).len());
    *column = rest;
    rows
}

/// Folding's knowledge about an experiment on the CPU, and its requests to the systems. No column. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldHints {
    /// Origin of each port's telemetry counters (ps and bytes), if folding may choose it. `None`, or no entry: 0.
    pub telemetry_from: Arc<Vec<Option<(u32, u32)>>>,
    /// Whether every congestion mark is a random choice.
    pub random_marks: bool,
    /// Whether congestion-control state may be rounded between messages.
    pub rounding: bool,
}

impl FoldHints {
    /// Origin of `port`'s telemetry counters: ps and bytes.
    #[inline]
    pub fn counts_from(&self, port: PortIdx) -> (u64, u64) {
        self.telemetry_from
            .get(port.usize())
            .copied()
            .flatten()
            .map_or((0, 0), |(ps, bytes)| (u64::from(ps), u64::from(bytes)))
    }
}

/// An event of a message. `task` is the message's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldTrace {
    /// An event posted it.
    Posted {
        /// Task that the message belongs to.
        task: TaskIdx,
        /// Whether it is the first of those that the same event posted.
        first: bool,
    },
    /// Its last byte was sent, for the first time or again.
    Sent {
        /// Task that the message belongs to.
        task: TaskIdx,
        /// Time at which it was sent, in ps.
        at: u64,
    },
    /// All of it has arrived.
    Delivered(TaskIdx),
    /// All of it was acknowledged.
    Acked(TaskIdx),
    /// All of it arrived, but folding had already reported that.
    DeliveredAgain {
        /// Task that the message belongs to.
        task: TaskIdx,
        /// Time of its arrival, in ps.
        at: u64,
    },
}

impl Tables<'_> {
    /// The raised flags of the experiment.
    #[inline]
    pub fn flags(&self) -> u32 {
        self.shared.word_now(SHARED_FLAGS)
    }

    /// Raises flags. Threads that share the tables may do so at the same time.
    #[inline]
    pub fn raise(&mut self, flags: u32) {
        if self.flags() & flags != flags {
            self.shared.word(SHARED_FLAGS).fetch_or(flags, Relaxed);
        }
    }

    /// Counts one flow or task as ended. Threads that share the tables may do so at the same time.
    #[inline]
    pub fn one_less_left(&mut self) {
        self.shared.word(SHARED_FLOWS_LEFT).fetch_sub(1, Relaxed);
    }

    /// Whether the peer of `end` has paused it, or any traffic class there. An end whose link is down is not paused.
    pub fn is_paused(&self, end: LinkEndIdx) -> bool {
        self.open_pauses(end) > 0
    }

    /// Number of pauses of `end` that have not ended: at most one for each traffic class.
    pub fn open_pauses(&self, end: LinkEndIdx) -> u32 {
        let paused = match end.owner(self.exps[0].nic_len) {
            EndOwner::Nic(n) => self.nics[n].paused,
            EndOwner::Port(port) => self.ports[port].paused,
        };
        let classes = self.exps[0].class_n as usize;
        let first = end.usize() * classes;
        let of_classes = self.class_queues[first..first + classes].iter().filter(|queue| queue.paused != 0).count();
        // `HOLDS` is no pause.
        u32::from(paused == 1) + of_classes as u32 + self.pauses_overruled(end)
    }

    /// Number of pauses of `end` that have not ended and hold nothing, because the watchdog acts.
    fn pauses_overruled(&self, end: LinkEndIdx) -> u32 {
        let e = &self.exps[0];
        let EndOwner::Port(port) = end.owner(e.nic_len) else { return 0 };
        if e.watch_first == 0 {
            return 0;
        }
        let state = |class: u32| self.shared[e.watch_words(port, class) + watch::STATE as usize];
        (0..e.class_n.max(1)).filter(|&class| state(class) & watch::ASKED != 0).count() as u32
    }

    /// Counts the beginning or the end of `n` pauses of `end` at `now`, in ps.
    #[inline]
    pub fn count_pause(&mut self, end: LinkEndIdx, n: u32, ends: bool, now: u64) {
        let times = u64::from(n).wrapping_mul(now);
        let word = &mut self.pause_ps[end.usize()];
        *word = if ends { word.wrapping_add(times) } else { word.wrapping_sub(times) };
    }

    /// Paused time of `end` up to `now`, in ps. Pauses of several traffic classes add up. PRECONDITION: no pause began after `now`.
    pub fn paused_until(&self, end: LinkEndIdx, now: u64) -> u64 {
        self.pause_ps[end.usize()].wrapping_add(u64::from(self.open_pauses(end)).wrapping_mul(now))
    }

    /// Size of each table in bytes, in the order of [`TABLES`](super::TABLES).
    pub fn table_bytes(&self) -> [u64; N_TABLES] {
        self.as_bytes().map(|v| v.len() as u64)
    }

    /// Size of all tables, in bytes.
    pub fn bytes(&self) -> u64 {
        self.table_bytes().iter().sum()
    }
}

/// [`OwnedTables`] as engines use them. It holds the tables that only engines use until it is dropped.
#[derive(Debug)]
pub struct View<'w> {
    tables: Tables<'w>,
    home: Home<'w>,
}

impl<'w> Deref for View<'w> {
    type Target = Tables<'w>;

    fn deref(&self) -> &Tables<'w> {
        &self.tables
    }
}

impl<'w> DerefMut for View<'w> {
    fn deref_mut(&mut self) -> &mut Tables<'w> {
        &mut self.tables
    }
}

impl OwnedTables {
    /// Size of all tables, in bytes.
    pub fn bytes(&self) -> u64 {
        self.as_bytes().iter().map(|v| v.len() as u64).sum()
    }

    /// Calls `work` with several of these as an engine uses them. Returns its result.
    pub fn with_views<R>(all: &mut [OwnedTables], work: impl FnOnce(&mut [Tables<'_>]) -> R) -> R {
        let engines: Vec<EngineTables> = all.iter_mut().map(OwnedTables::take_engine).collect();
        let mut views: Vec<Tables> = all.iter_mut().zip(engines).map(|(t, engine)| t.columns(engine)).collect();
        let done = work(&mut views);
        let engines: Vec<EngineTables> = views.iter_mut().map(Tables::take_engine).collect();
        drop(views);
        all.iter_mut().zip(engines).for_each(|(t, engine)| t.put_engine(engine));
        done
    }
}
