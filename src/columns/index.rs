//! Row indices, with one type per table: mixing a NIC's index with a port's does not compile.
//!
//! Layer: columns. An index is a `u32` in memory, in files and in WGSL. Knows nothing of the content of rows.

use std::ops::{Add, Range, Sub};

use super::row::{Field, Row, WgslType};

/// "No row": the end of a list, or an absent link.
pub const NONE: u32 = u32::MAX;

/// Declares types of row indices.
macro_rules! index {
    ($($(#[$meta:meta])* $name:ident;)*) => {
        $(
            $(#[$meta])*
            #[repr(transparent)]
            #[derive(
                Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable,
            )]
            pub struct $name(pub u32);

            impl $name {
                /// No row: the end of a list, or an absent link.
                pub const NONE: $name = $name(NONE);

                /// The index of row number `i`.
                #[inline]
                pub const fn new(i: usize) -> $name {
                    $name(i as u32)
                }

                /// The index as a `usize`, to index a slice.
                #[inline]
                pub const fn usize(self) -> usize {
                    self.0 as usize
                }

                /// Whether it is [`Self::NONE`].
                #[inline]
                pub const fn is_none(self) -> bool {
                    self.0 == NONE
                }

                /// Whether it is the index of a row.
                #[inline]
                pub const fn is_some(self) -> bool {
                    self.0 != NONE
                }

                /// The indices of the first `n` rows.
                #[inline]
                pub fn all(n: u32) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                    (0..n).map($name)
                }

                /// The indices of `n` rows from this one on.
                #[inline]
                pub fn run(self, n: u32) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                    (self.0..self.0 + n).map($name)
                }

                /// The index range of `n` rows from this one on.
                #[inline]
                pub const fn places(self, n: u32) -> Range<usize> {
                    self.usize()..(self.0 + n) as usize
                }
            }

            /// The row that is `n` rows after this one.
            impl Add<u32> for $name {
                type Output = $name;

                #[inline]
                fn add(self, n: u32) -> $name {
                    $name(self.0 + n)
                }
            }

            /// Number of rows from `first` to this one.
            impl Sub for $name {
                type Output = u32;

                #[inline]
                fn sub(self, first: $name) -> u32 {
                    self.0 - first.0
                }
            }

            /// Converts from the plain numbers by which systems count rows.
            impl From<u32> for $name {
                #[inline]
                fn from(row: u32) -> $name {
                    $name(row)
                }
            }

            impl WgslType for $name {
                const WGSL: &'static str = <u32 as WgslType>::WGSL;
            }

            impl Row for $name {
                const NAME: &'static str = <u32 as Row>::NAME;
                const FIELDS: &'static [Field] = <u32 as Row>::FIELDS;
            }
        )*
    };
}

/// Implements indexing of slices and vectors of rows by their index type, with the usual bounds check.
macro_rules! indexed_by {
    ($($name:ident: $($Row:ty),*;)*) => { $($(
        impl std::ops::Index<$name> for [$Row] {
            type Output = $Row;

            #[inline]
            fn index(&self, i: $name) -> &$Row {
                &self[i.usize()]
            }
        }

        impl std::ops::IndexMut<$name> for [$Row] {
            #[inline]
            fn index_mut(&mut self, i: $name) -> &mut $Row {
                &mut self[i.usize()]
            }
        }

        impl std::ops::Index<$name> for $crate::Column<'_, $Row> {
            type Output = $Row;

            #[inline]
            fn index(&self, i: $name) -> &$Row {
                &self[i.usize()]
            }
        }

        impl std::ops::IndexMut<$name> for $crate::Column<'_, $Row> {
            #[inline]
            fn index_mut(&mut self, i: $name) -> &mut $Row {
                &mut self[i.usize()]
            }
        }

        impl std::ops::Index<$name> for Vec<$Row> {
            type Output = $Row;

            #[inline]
            fn index(&self, i: $name) -> &$Row {
                &self[i.usize()]
            }
        }

        impl std::ops::IndexMut<$name> for Vec<$Row> {
            #[inline]
            fn index_mut(&mut self, i: $name) -> &mut $Row {
                &mut self[i.usize()]
            }
        }
    )*)* };
}
pub(crate) use indexed_by;

index! {
    /// Index of a NIC: a row of `nics`.
    NicIdx;
    /// Index of a link end, which names the wire to it: NICs, then switch ports, numbered together.
    LinkEndIdx;
    /// Index of a switch port: a row of `ports`.
    PortIdx;
    /// Index of a switch: a row of `switches`.
    SwitchIdx;
    /// Index of a queue pair: a row of `flow_tx` and of `flow_rx`.
    FlowIdx;
    /// Index of a task: a row of `tasks`.
    TaskIdx;
    /// Index of a packet record: a row of `packets`.
    PacketIdx;
}

impl NicIdx {
    /// The link end of this NIC.
    #[inline]
    pub const fn end(self) -> LinkEndIdx {
        LinkEndIdx(self.0)
    }
}

impl PortIdx {
    /// The link end of this port. `nics`: number of NICs.
    #[inline]
    pub const fn end(self, nics: u32) -> LinkEndIdx {
        LinkEndIdx(nics + self.0)
    }
}

impl LinkEndIdx {
    /// Index in `clocks` of the owner's own next event. `ends`: number of link ends. At the index of the link end itself, `clocks` has the arrival
    /// time of the head of its wire.
    #[inline]
    pub const fn own_clock(self, ends: u32) -> usize {
        (ends + self.0) as usize
    }

    /// The NIC or switch port at this link end. `nics`: number of NICs.
    #[inline]
    pub const fn owner(self, nics: u32) -> EndOwner {
        if self.0 < nics { EndOwner::Nic(NicIdx(self.0)) } else { EndOwner::Port(PortIdx(self.0 - nics)) }
    }

    /// The switch port at this link end; `None` if it is a NIC. `nics`: number of NICs.
    #[inline]
    pub const fn port(self, nics: u32) -> Option<PortIdx> {
        if self.0 < nics { None } else { Some(PortIdx(self.0 - nics)) }
    }
}

/// The NIC or switch port at a link end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOwner {
    /// The NIC of a host.
    Nic(NicIdx),
    /// The port of a switch.
    Port(PortIdx),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number is a word: to Rust, to files, to WGSL. All its values are of use, so an option of it is no word.
    fn is_word<T: Row + WgslType>() -> bool {
        (size_of::<T>(), align_of::<T>()) == (4, 4)
            && size_of::<Option<T>>() > 4
            && T::WGSL == "u32"
            && (T::NAME, T::FIELDS) == (<u32 as Row>::NAME, <u32 as Row>::FIELDS)
    }

    #[test]
    fn numbers_are_words() {
        assert!(is_word::<NicIdx>() && is_word::<PortIdx>() && is_word::<LinkEndIdx>() && is_word::<SwitchIdx>());
        assert!(is_word::<FlowIdx>() && is_word::<TaskIdx>() && is_word::<PacketIdx>());
        assert_eq!(bytemuck::cast_slice::<NicIdx, u32>(&[NicIdx(3), NicIdx::NONE]), [3, NONE]);
    }

    #[test]
    fn link_ends_are_nics_then_ports() {
        let nics = 4;
        assert_eq!((NicIdx(3).end(), PortIdx(0).end(nics)), (LinkEndIdx(3), LinkEndIdx(4)));
        assert_eq!(LinkEndIdx(3).owner(nics), EndOwner::Nic(NicIdx(3)));
        assert_eq!(LinkEndIdx(6).owner(nics), EndOwner::Port(PortIdx(2)));
        assert_eq!((LinkEndIdx(3).port(nics), LinkEndIdx(6).port(nics)), (None, Some(PortIdx(2))));
        assert_eq!(LinkEndIdx(6).own_clock(10), 16);
    }

    #[test]
    fn runs_of_rows() {
        assert_eq!(NicIdx::all(2).collect::<Vec<_>>(), [NicIdx(0), NicIdx(1)]);
        assert_eq!(NicIdx(3).run(2).collect::<Vec<_>>(), [NicIdx(3), NicIdx(4)]);
        assert_eq!((NicIdx(3).places(2), NicIdx(3) + 2, NicIdx(5) - NicIdx(3)), (3..5, NicIdx(5), 2));
        assert!(NicIdx::NONE.is_none() && NicIdx(0).is_some());
    }
}
