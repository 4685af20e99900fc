//! The macro that declares a row type for Rust and WGSL at once.

/// One column of a row type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the column in Rust and WGSL.
    pub name: &'static str,
    /// WGSL type.
    pub wgsl: &'static str,
    /// Byte offset in the row.
    pub offset: usize,
}

/// A row type that Rust and WGSL can read.
pub trait Row: bytemuck::Pod {
    /// Name of the Rust and the WGSL type.
    const NAME: &'static str;
    /// Columns of the row in the order of their offsets; `word` alone if a row is a word.
    const FIELDS: &'static [Field];
}

/// Implements [`Row`] for a single word.
macro_rules! word_row {
    ($($t:ident),*) => {
        $(impl Row for $t {
            const NAME: &'static str = stringify!($t);
            const FIELDS: &'static [Field] = &[Field { name: "word", wgsl: stringify!($t), offset: 0 }];
        })*
    };
}
word_row!(u32, u64);

/// The WGSL spelling of a column's type.
pub(super) trait WgslType {
    const WGSL: &'static str;
}

macro_rules! wgsl_type {
    ($($t:ty => $w:literal),* $(,)?) => { $(impl WgslType for $t { const WGSL: &'static str = $w; })* };
}

wgsl_type! {
    u32 => "u32",
    u64 => "u64",
    i64 => "i64",
    [u32; 4] => "array<u32, 4>",
    [u32; 12] => "array<u32, 12>",
    [u64; 5] => "array<u64, 5>",
}

/// Declares row types. `bytemuck::Pod` refuses padding, so the layouts of Rust and WGSL agree by construction; the naga test checks this.
macro_rules! rows {
    ($($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident: $ty:ty),* $(,)? })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable, bevy_ecs::component::Component)]
            pub struct $name { $($(#[$fmeta])* pub $field: $ty),* }

            impl $crate::Row for $name {
                const NAME: &'static str = stringify!($name);
                const FIELDS: &'static [$crate::Field] = &[$($crate::Field {
                    name: stringify!($field),
                    wgsl: <$ty as $crate::row::WgslType>::WGSL,
                    offset: std::mem::offset_of!($name, $field),
                }),*];
            }
        )*
    };
}
pub(crate) use rows;
