// The watchdog of pauses at a switch port, as far as packets and pause frames meet it (twin: `src/engine/cpu/switch/watchdog.rs`). When it begins to act and
// when it ends, the host decides between two steps.

// Notes a pause or resume frame for `class_` that reaches `port` at `now`. Returns whether the watchdog overrules it: the class is not paused while it acts.
fn watch_pause(port: u32, class_: u32, resume: bool, now: u64) -> bool {
    let words = watch_words(port, class_);
    atomicStore(&shared_words[words + WATCH_SINCE_LO], u32(now & LOW_32));
    atomicStore(&shared_words[words + WATCH_SINCE_HI], u32(now >> 32u));
    let state = atomicLoad(&shared_words[words + WATCH_STATE]);
    if (state & WATCH_ACTS) == 0u {
        return false;
    }
    atomicStore(&shared_words[words + WATCH_STATE], select(WATCH_ACTS | WATCH_ASKED, WATCH_ACTS, resume));
    return true;
}

// Whether the watchdog drops packet `p`, whose transmission `port` begins. It counts what it drops. Pause frames never are.
fn watchdog_drops(port: u32, p: u32) -> bool {
    let meta_word = packets[packet_base + p].meta_;
    let words = watch_words(port, queue_class(meta_word));
    let acts = (atomicLoad(&shared_words[words + WATCH_STATE]) & WATCH_ACTS) != 0u;
    let drops = acts && packet_kind(meta_word) != KIND_FRAME;
    atomicAdd(&shared_words[words + WATCH_DROPS], select(0u, 1u, drops));
    return drops;
}
