//! Values that may be a name, a file or a table.
//!
//! Layer: spec. Names files without reading them.

use std::path::{Path, PathBuf};

/// A thing that an asset, a file or a table of the sweep file describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The name of an asset.
    Asset(String),
    /// A TOML file.
    File(PathBuf),
    /// An inline TOML table, `{ key = value, ... }` with keys in order.
    Table(String),
}

/// Reads a name, the path of a `.toml` file or a canonical inline table.
pub(super) fn named(text: &str, dir: &Path) -> Named {
    match text {
        t if t.starts_with('{') => Named::Table(t.to_string()),
        t if t.ends_with(".toml") => Named::File(dir.join(t)),
        t => Named::Asset(t.to_string()),
    }
}
