//! Numbers of rows, a type for each table that has them: mixing a NIC's number with a port's does not compile.
//!
//! Layer: columns. A number is a `u32` to the machine, to files and to WGSL. Knows nothing of what rows hold.

use std::ops::{Add, Range, Sub};

use super::row::{Field, Row, WgslType};

/// "No row": the end of a list, an absent link.
pub const NONE: u32 = u32::MAX;

/// Declares types of numbers of rows.
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
                /// No row: the end of a list, an absent link.
                pub const NONE: $name = $name(NONE);

                /// Row `i`.
                #[inline]
                pub const fn new(i: usize) -> $name {
                    $name(i as u32)
                }

                /// The place of the row in a slice.
                #[inline]
                pub const fn usize(self) -> usize {
                    self.0 as usize
                }

                /// Whether it is [`Self::NONE`].
                #[inline]
                pub const fn is_none(self) -> bool {
                    self.0 == NONE
                }

                /// Whether it is the number of a row.
                #[inline]
                pub const fn is_some(self) -> bool {
                    self.0 != NONE
                }

                /// The first `n` rows.
                #[inline]
                pub fn all(n: u32) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                    (0..n).map($name)
                }

                /// `n` rows from this one on.
                #[inline]
                pub fn run(self, n: u32) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                    (self.0..self.0 + n).map($name)
                }

                /// The places of `n` rows from this one on.
                #[inline]
                pub const fn places(self, n: u32) -> Range<usize> {
                    self.usize()..(self.0 + n) as usize
                }
            }

            /// The row that is so many behind this one.
            impl Add<u32> for $name {
                type Output = $name;

                #[inline]
                fn add(self, n: u32) -> $name {
                    $name(self.0 + n)
                }
            }

            /// How many rows lie between.
            impl Sub for $name {
                type Output = u32;

                #[inline]
                fn sub(self, first: $name) -> u32 {
                    self.0 - first.0
                }
            }

            /// From how systems count their rows.
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

/// Lets slices and vectors of rows be indexed by the numbers of these rows, with the bounds check of any slice.
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

        impl std::ops::Index<$name> for $crate::columns::Column<'_, $Row> {
            type Output = $Row;

            #[inline]
            fn index(&self, i: $name) -> &$Row {
                &self[i.usize()]
            }
        }

        impl std::ops::IndexMut<$name> for $crate::columns::Column<'_, $Row> {
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
    /// A NIC: a row of `nics`.
    NicIdx;
    /// A link end, which names the wire to it: NICs, then switch ports, numbered together.
    LinkEndIdx;
    /// A switch port: a row of `ports`.
    PortIdx;
    /// A switch: a row of `switches`.
    SwitchIdx;
    /// A queue pair: a row of `flow_tx` and of `flow_rx`.
    FlowIdx;
    /// A task: a row of `tasks`.
    TaskIdx;
    /// A packet record: a row of `packets`.
    PacketIdx;
}

impl NicIdx {
    /// Its link end.
    #[inline]
    pub const fn end(self) -> LinkEndIdx {
        LinkEndIdx(self.0)
    }
}

impl PortIdx {
    /// Its link end. `nics`: how many NICs there are.
    #[inline]
    pub const fn end(self, nics: u32) -> LinkEndIdx {
        LinkEndIdx(nics + self.0)
    }
}

impl LinkEndIdx {
    /// The place in `clocks` of what its owner does next by itself. `ends`: how many link ends there are. At the place of the link end
    /// itself `clocks` has the arrival time of the head of its wire.
    #[inline]
    pub const fn own_clock(self, ends: u32) -> usize {
        (ends + self.0) as usize
    }

    /// The NIC, or the switch port, that the link ends at. `nics`: how many NICs there are.
    #[inline]
    pub const fn owner(self, nics: u32) -> EndOwner {
        if self.0 < nics { EndOwner::Nic(NicIdx(self.0)) } else { EndOwner::Port(PortIdx(self.0 - nics)) }
    }

    /// The switch port that the link ends at, `None` if that is a NIC. `nics`: how many NICs there are.
    #[inline]
    pub const fn port(self, nics: u32) -> Option<PortIdx> {
        if self.0 < nics { None } else { Some(PortIdx(self.0 - nics)) }
    }
}

/// What a link ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOwner {
    Nic(NicIdx),
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
