//! Averages of queues, by which switches mark (`docs/explanation/model-semantics.md`, "Averages of queues"). Twin: `shaders/averages.wgsl`.

use crate::cpu::classes::queue_class;
use hyperfold_columns::{NEVER, PacketIdx, PortIdx, Tables, average};

/// Adds to its average the `q` bytes that packet `p` leaves in the queue of its class at `port` at `now`. Returns the average, in bytes.
#[inline(never)]
pub fn averaged_queue(t: &mut Tables, port: PortIdx, p: PacketIdx, q: u32, now: u64) -> u32 {
    let e = &t.exps[0];
    let n = e.average_weight;
    let words = e.average_words(port, queue_class(e, t.packets[p].meta));
    let mut sum = sum_now(t, port, words, now);
    sum = sum + u64::from(q) - (sum >> n);
    let empty_at = if q == 0 { now } else { NEVER };
    t.shared[words + average::SUM_LO as usize] = sum as u32;
    t.shared[words + average::SUM_HI as usize] = (sum >> 32) as u32;
    t.shared[words + average::EMPTY_LO as usize] = empty_at as u32;
    t.shared[words + average::EMPTY_HI as usize] = (empty_at >> 32) as u32;
    (sum >> n) as u32
}

/// The average of the queue of `class` at `port` at `now`, in bytes: that of the last marking test, and less if the queue has been empty since.
pub fn average_now(t: &Tables, port: PortIdx, class: u32, now: u64) -> u32 {
    let e = &t.exps[0];
    (sum_now(t, port, e.average_words(port, class), now) >> e.average_weight) as u32
}

/// The average at `now` whose shared words begin at `words`, in units of 2^-`average_weight` bytes.
fn sum_now(t: &Tables, port: PortIdx, words: usize, now: u64) -> u64 {
    let word = |place: u32| u64::from(t.shared[words + place as usize]);
    let sum = word(average::SUM_HI) << 32 | word(average::SUM_LO);
    let empty_at = word(average::EMPTY_HI) << 32 | word(average::EMPTY_LO);
    if empty_at == NEVER {
        return sum;
    }
    let halvings = (now - empty_at) / (t.ports[port].tx_full << t.exps[0].average_weight);
    sum >> halvings.min(63)
}
