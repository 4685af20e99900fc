//! The watchdog of pauses at a switch port, as far as packets and pause frames meet it (`docs/explanation/model-semantics.md`, "Watchdog of pauses"). Twin:
//! `shaders/watchdog.wgsl`.
//!
//! When it begins to act and when it ends, the host decides between two steps: `src/engine/watchdog.rs`.

use crate::cpu::classes::queue_class;
use hyperfold_columns::{PacketIdx, PortIdx, Tables, kind, meta, watch};

/// Notes a pause or resume frame for `class` that reaches `port` at `now`. Returns whether the watchdog overrules it: the class is not paused while it acts.
#[inline(never)]
pub fn watch_pause(t: &mut Tables, port: PortIdx, class: u32, resume: bool, now: u64) -> bool {
    let words = t.exps[0].watch_words(port, class);
    t.shared[words + watch::SINCE_LO as usize] = now as u32;
    t.shared[words + watch::SINCE_HI as usize] = (now >> 32) as u32;
    let state = t.shared[words + watch::STATE as usize];
    if state & watch::ACTS == 0 {
        return false;
    }
    t.shared[words + watch::STATE as usize] = if resume { watch::ACTS } else { watch::ACTS | watch::ASKED };
    true
}

/// Whether the watchdog drops packet `p`, whose transmission `port` begins. It counts what it drops. Pause frames never are.
#[inline(never)]
pub fn watchdog_drops(t: &mut Tables, port: PortIdx, p: PacketIdx) -> bool {
    let pk_meta = t.packets[p].meta;
    let words = t.exps[0].watch_words(port, queue_class(&t.exps[0], pk_meta));
    let acts = t.shared[words + watch::STATE as usize] & watch::ACTS != 0;
    let drops = acts && (pk_meta >> meta::KIND_SHIFT) & meta::KIND_MASK != kind::FRAME;
    t.shared[words + watch::DROPS as usize] += u32::from(drops);
    drops
}
