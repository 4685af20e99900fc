//! Storage buffers while a kernel runs: words, counts of accesses, and who used a word last.

use crate::instructions::{Access, AtomicChange};

/// Accesses of one storage buffer. A load or store in the text is one access, whatever its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounts {
    /// Number of loads that are not atomic.
    pub loads: u64,
    /// Number of stores that are not atomic.
    pub stores: u64,
    /// Number of atomic loads, stores and changes.
    pub atomics: u64,
    /// Number of pieces of these loads and stores: scalars by themselves, and up to 16 bytes of a vector.
    pub pieces: u64,
    /// Bytes that `loads` read.
    pub load_bytes: u64,
    /// Bytes that `stores` wrote.
    pub store_bytes: u64,
}

impl BufferCounts {
    /// Counts an access of a scalar, with the number of accesses and of bytes that `sums` picks. Returns its words; 0 if it is atomic, as atomic accesses are no
    /// races.
    #[inline]
    fn count(&mut self, access: Access, sums: impl Fn(&mut BufferCounts) -> (&mut u64, &mut u64)) -> usize {
        if access.atomic {
            self.atomics += 1;
            return 0;
        }
        let n_words = 1 + u64::from(access.wide);
        let (accesses, bytes) = sums(self);
        *accesses += u64::from(access.begins);
        *bytes += 4 * n_words;
        self.pieces += u64::from(access.begins_piece);
        n_words as usize
    }
}

/// What kernels did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// Accesses by storage buffer, in the order of the program's bindings.
    pub buffers: Vec<BufferCounts>,
    /// Number of operations on integers and booleans. Copies, jumps and the arithmetic of addresses are not among them.
    pub operations: u64,
    /// Number of indices that lay behind the end of an array, and were taken for its last element.
    pub beyond: u64,
}

impl KernelCounts {
    /// Number of accesses of all buffers.
    pub fn accesses(&self) -> u64 {
        self.buffers.iter().map(|b| b.loads + b.stores + b.atomics).sum()
    }

    /// Number of loads and atomic accesses: what an invocation waits for.
    pub(crate) fn waits(&self) -> u64 {
        self.buffers.iter().map(|b| b.loads + b.atomics).sum()
    }

    /// Adds `other`, which counts the same buffers.
    pub fn add(&mut self, other: &KernelCounts) {
        self.buffers.resize(self.buffers.len().max(other.buffers.len()), BufferCounts::default());
        for (sum, more) in self.buffers.iter_mut().zip(&other.buffers) {
            sum.loads += more.loads;
            sum.stores += more.stores;
            sum.atomics += more.atomics;
            sum.pieces += more.pieces;
            sum.load_bytes += more.load_bytes;
            sum.store_bytes += more.store_bytes;
        }
        self.operations += other.operations;
        self.beyond += other.beyond;
    }
}

/// Two invocations used a word with nothing between them, and one of them wrote it. What a device leaves there depends on chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// Place of the buffer among the program's bindings.
    pub buffer: usize,
    /// The word of 32 bits.
    pub word: usize,
    /// The two invocations, numbered over the whole dispatch.
    pub invocations: [u32; 2],
    /// Whether both wrote it.
    pub both_wrote: bool,
}

/// The last uses of a word. 0: none in this dispatch, else the number of the invocation plus 1.
#[derive(Clone, Copy, Default)]
struct Uses {
    writer: u32,
    written_in: u32,
    reader: u32,
    read_in: u32,
}

/// Reader of a word that several invocations read.
const MANY: u32 = u32::MAX;

/// Who runs at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Running {
    /// Number of the invocation over the whole dispatch.
    pub invocation: u32,
    /// First invocation of its workgroup, and number of barriers that the workgroup has passed.
    pub group_first: u32,
    pub barriers: u32,
}

/// The buffers of a dispatch.
pub(crate) struct Memory<'a, 'b> {
    buffers: &'a mut [&'b mut [u32]],
    pub counts: KernelCounts,
    /// For each buffer, the uses of its words; empty if races are not looked for.
    uses: Vec<Vec<Uses>>,
    pub races: Vec<Race>,
    pub running: Running,
}

/// Maximum number of races that are told.
const MAX_RACES: usize = 16;

impl<'a, 'b> Memory<'a, 'b> {
    pub(crate) fn new(buffers: &'a mut [&'b mut [u32]], finds_races: bool) -> Memory<'a, 'b> {
        let uses = if finds_races {
            buffers.iter().map(|buffer| vec![Uses::default(); buffer.len()]).collect()
        } else {
            Vec::new()
        };
        let counts = KernelCounts { buffers: vec![BufferCounts::default(); buffers.len()], ..KernelCounts::default() };
        Memory { buffers, counts, uses, races: Vec::new(), running: Running::default() }
    }

    /// Number of words in a buffer.
    pub(crate) fn len(&self, buffer: u32) -> u32 {
        self.buffers[buffer as usize].len() as u32
    }

    /// Loads a scalar. A word behind the end of the buffer is 0.
    #[inline]
    pub(crate) fn load(&mut self, buffer: u32, word: u32, access: Access) -> u64 {
        let (b, first) = (buffer as usize, word as usize);
        let n_words = self.counts.buffers[b].count(access, |c| (&mut c.loads, &mut c.load_bytes));
        if n_words > 0 && !self.uses.is_empty() {
            self.note_read(b, first, n_words);
        }
        let words = &self.buffers[b];
        let low = words.get(first).copied().unwrap_or(0);
        let high = if access.wide { words.get(first + 1).copied().unwrap_or(0) } else { 0 };
        u64::from(low) | u64::from(high) << 32
    }

    /// Stores a scalar. Nothing is stored behind the end of the buffer.
    #[inline]
    pub(crate) fn store(&mut self, buffer: u32, word: u32, value: u64, access: Access) {
        let (b, first) = (buffer as usize, word as usize);
        let n_words = self.counts.buffers[b].count(access, |c| (&mut c.stores, &mut c.store_bytes));
        if n_words > 0 && !self.uses.is_empty() {
            self.note_write(b, first, n_words);
        }
        let words = &mut self.buffers[b];
        if let Some(low) = words.get_mut(first) {
            *low = value as u32;
        }
        if access.wide
            && let Some(high) = words.get_mut(first + 1)
        {
            *high = (value >> 32) as u32;
        }
    }

    /// Changes a word and returns what it was.
    #[inline]
    pub(crate) fn change(&mut self, buffer: u32, word: u32, f: AtomicChange, value: u32) -> u32 {
        self.counts.buffers[buffer as usize].atomics += 1;
        let Some(cell) = self.buffers[buffer as usize].get_mut(word as usize) else { return 0 };
        let old = *cell;
        *cell = f.apply(old, value);
        old
    }

    /// Whether an earlier use by invocation `by`, numbered from 1, may happen at the same time as what runs now. `barriers`: those that its workgroup had passed.
    fn overlaps(&self, by: u32, barriers: u32) -> bool {
        let running = self.running;
        let is_same_group = by > running.group_first;
        by != 0 && by != running.invocation + 1 && (!is_same_group || barriers == running.barriers)
    }

    fn note_read(&mut self, buffer: usize, first: usize, n: usize) {
        let me = self.running.invocation + 1;
        for word in first..(first + n).min(self.uses[buffer].len()) {
            let uses = self.uses[buffer][word];
            if self.overlaps(uses.writer, uses.written_in) {
                self.tell(Race { buffer, word, invocations: [uses.writer - 1, me - 1], both_wrote: false });
            }
            let is_other = uses.reader == MANY || self.overlaps(uses.reader, uses.read_in);
            let is_same_time = uses.read_in == self.running.barriers;
            let reader = if is_other && is_same_time { MANY } else { me };
            self.uses[buffer][word] = Uses { reader, read_in: self.running.barriers, ..uses };
        }
    }

    fn note_write(&mut self, buffer: usize, first: usize, n: usize) {
        let me = self.running.invocation + 1;
        for word in first..(first + n).min(self.uses[buffer].len()) {
            let uses = self.uses[buffer][word];
            let many_read = uses.reader == MANY && uses.read_in == self.running.barriers;
            if self.overlaps(uses.writer, uses.written_in) {
                self.tell(Race { buffer, word, invocations: [uses.writer - 1, me - 1], both_wrote: true });
            } else if many_read {
                self.tell(Race { buffer, word, invocations: [me - 1, me - 1], both_wrote: false });
            } else if uses.reader != MANY && self.overlaps(uses.reader, uses.read_in) {
                self.tell(Race { buffer, word, invocations: [uses.reader - 1, me - 1], both_wrote: false });
            }
            self.uses[buffer][word] = Uses { writer: me, written_in: self.running.barriers, ..uses };
        }
    }

    fn tell(&mut self, race: Race) {
        if self.races.len() < MAX_RACES {
            self.races.push(race);
        }
    }
}
