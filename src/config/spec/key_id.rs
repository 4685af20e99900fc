//! The ids of the keys.
//!
//! Layer: spec. A leaf: `keys` declares what a key means.

use super::key_table::for_each_key;

macro_rules! declare_ids {
    ($($(#[$mark:ident])? $id:ident $name:literal $kind:expr, $default:expr, $applies_when:expr, $doc:expr;)*) => {
        /// A key of `[base]`, by its position in the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum KeyId { $(#[doc = $name] $id),* }

        /// Number of keys.
        pub const N_KEYS: usize = NAMES.len();

        const NAMES: &[&str] = &[$($name),*];

        /// All keys, in the order of the table.
        pub(super) const KEY_IDS: [KeyId; N_KEYS] = [$(KeyId::$id),*];
    };
}
for_each_key!(declare_ids);

impl KeyId {
    /// Returns the dotted name, as below `[base]`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}
