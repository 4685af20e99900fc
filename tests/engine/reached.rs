//! What random cases reached, so that a test says when its cases no longer meet what they are for.

/// What one case came to.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    pub pauses: u64,
    pub marks: u64,
    pub drops: u64,
    /// Whether links that fail are the only cause of drops.
    pub only_links: bool,
    pub gave_up: bool,
    /// Whether all flows and tasks ended.
    pub ended: bool,
    /// Whether something was still to be done when a link failed.
    pub outlives: bool,
}

/// How many cases reached what.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    pub paused: u32,
    pub marked: u32,
    pub lost: u32,
    /// All ended, but packets were lost on the way.
    pub recovered: u32,
    pub gave_up: u32,
    /// Lost packets, on links that failed and nowhere else.
    pub cut: u32,
    /// The same, and yet all ended, something of it after a link failed.
    pub outlived: u32,
    /// Never ended, though nobody gave up.
    pub stuck: u32,
}

impl Reached {
    pub fn note(&mut self, case: Reach) {
        let cut = case.drops > 0 && case.only_links;
        self.paused += u32::from(case.pauses > 0);
        self.marked += u32::from(case.marks > 0);
        self.lost += u32::from(case.drops > 0);
        self.recovered += u32::from(case.drops > 0 && case.ended);
        self.gave_up += u32::from(case.gave_up);
        self.cut += u32::from(cut);
        self.outlived += u32::from(cut && case.ended && case.outlives);
        self.stuck += u32::from(!case.ended && !case.gave_up);
    }
}
