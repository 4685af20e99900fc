//! The text of the kernel that solves rates: constants, the integer helpers, rows (`shaders/flow_rows.wgsl`) and `shaders/flow_fill.wgsl`.
//!
//! Layer: engine. Composes; compiles nothing.

use super::rows::LINK_WORDS;
use crate::fair_rates::{EQUALS, MANY, MAX_PASSES, NONE, PRECISE_ROUNDS, SHARE_BITS, SLACK_SHIFT, WHOLE};
use crate::gpu::kernels::source::MATH;
pub use crate::gpu::kernels::source::{SourceError, validate};
use hyperfold_columns::wgsl;

/// Name of the entry point.
pub const ENTRY: &str = "flow_fill";
/// Number of storage buffers that it binds.
pub const N_BINDINGS: u32 = 9;

const FLOW_ROWS: &str = include_str!("../../../../shaders/flow_rows.wgsl");
const FLOW_FILL: &str = include_str!("../../../../shaders/flow_fill.wgsl");

/// Whether the kernel only reads the buffer at `binding`.
pub(super) fn is_read_only(binding: u32) -> bool {
    matches!(binding, 0 | 4 | 6 | 7)
}

/// The module, with workgroups of `workgroup` invocations.
///
/// # Errors
/// `workgroup` is not usable.
pub fn compose(workgroup: u32) -> Result<String, SourceError> {
    if !workgroup.is_multiple_of(16) || !(64..=256).contains(&workgroup) {
        return Err(SourceError::Workgroup(workgroup));
    }
    let mut text = String::new();
    let u32s = [
        ("WORKGROUP", workgroup),
        ("LINK_WORDS", LINK_WORDS),
        ("NONE", NONE),
        ("SHARE_BITS", SHARE_BITS),
        ("WHOLE", WHOLE),
        ("SLACK_SHIFT", SLACK_SHIFT),
        ("MAX_PASSES", MAX_PASSES),
        ("PRECISE_ROUNDS", PRECISE_ROUNDS),
        ("MANY", MANY),
    ];
    for (name, value) in u32s {
        wgsl::constant(&mut text, name, value);
    }
    wgsl::constant(&mut text, "EQUALS", EQUALS);
    wgsl::constant(&mut text, "NEVER", u64::MAX);
    Ok(format!("{text}{MATH}\n{FLOW_ROWS}\n{FLOW_FILL}"))
}
