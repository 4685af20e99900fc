//! A column: the rows of one table, which several threads may process in parallel.
//!
//! Layer: columns. The only place that shares rows between threads. A column owns its memory or is a slice of other memory. While threads share it
//! ([`Column::lend`]), each row is accessed by itself: no reference ever covers a row that another thread writes.

use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, take};
use std::ops::{Deref, DerefMut, Index, IndexMut, Range};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::claims::{ClaimTable, Claims};
use super::index::{FlowIdx, NicIdx, TaskIdx};
use super::{FlowRx, FlowTx, Task};
use hyperfold_base::prefetch;

/// Origin of a column's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// Memory of its own, with this capacity in rows.
    Own(usize),
    /// Slice of a column that holds the rows of all experiments.
    Slice,
    /// Memory of another column, whose rows several threads process.
    Lent,
}

/// The rows of one experiment in a table.
pub struct Column<'w, T> {
    rows: NonNull<T>,
    len: usize,
    memory: Memory,
    claims: Claims,
    slice: PhantomData<&'w mut [T]>,
}

// SAFETY: a column is a `Vec<T>`, a `&mut [T]`, or lent by one; the lender promises which accesses are safe.
#[allow(unsafe_code)]
unsafe impl<T: Send> Send for Column<'_, T> {}
// SAFETY: a shared reference to a column only reads rows.
#[allow(unsafe_code)]
unsafe impl<T: Sync> Sync for Column<'_, T> {}

impl<T> Default for Column<'_, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<'w, T> From<&'w mut [T]> for Column<'w, T> {
    fn from(rows: &'w mut [T]) -> Self {
        let len = rows.len();
        Column {
            rows: NonNull::from(rows).cast(),
            len,
            memory: Memory::Slice,
            claims: Claims::NONE,
            slice: PhantomData,
        }
    }
}

impl<T> From<Vec<T>> for Column<'_, T> {
    fn from(rows: Vec<T>) -> Self {
        let mut rows = ManuallyDrop::new(rows);
        let (len, capacity) = (rows.len(), rows.capacity());
        let rows = NonNull::new(rows.as_mut_ptr()).expect("a vector's pointer is never null");
        Column { rows, len, memory: Memory::Own(capacity), claims: Claims::NONE, slice: PhantomData }
    }
}

#[allow(unsafe_code)]
impl<T> Drop for Column<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Memory::Own(capacity) = self.memory {
            // SAFETY: these are the parts of the vector that the column was made of, and nothing else frees it.
            drop(unsafe { Vec::from_raw_parts(self.rows.as_ptr(), self.len, capacity) });
        }
    }
}

#[allow(unsafe_code)]
impl<'w, T> Column<'w, T> {
    /// Number of rows.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Row `i`, if there is one.
    #[inline]
    pub fn get(&self, i: usize) -> Option<&T> {
        if i < self.len { Some(&self[i]) } else { None }
    }

    /// Starts to prefetch row `i` into the processor's caches. Does nothing if there is no such row.
    #[inline]
    pub fn prefetch(&self, i: u32) {
        if (i as usize) < self.len {
            prefetch::address(self.rows.as_ptr().wrapping_add(i as usize));
        }
    }

    /// Changes the rows as a vector.
    ///
    /// PRECONDITION: the column owns its memory.
    pub fn change(&mut self, change: impl FnOnce(&mut Vec<T>))
    where
        T: Clone,
    {
        let mut rows = take(self).into_vec();
        change(&mut rows);
        *self = rows.into();
    }

    /// The rows as a vector: the column's own memory, or a copy of a slice.
    pub fn into_vec(self) -> Vec<T>
    where
        T: Clone,
    {
        let Memory::Own(capacity) = self.memory else { return self.to_vec() };
        let own = ManuallyDrop::new(self);
        // SAFETY: as in `drop`, which does not run.
        unsafe { Vec::from_raw_parts(own.rows.as_ptr(), own.len, capacity) }
    }

    /// A column of the same rows, lent to one of several threads. In debug builds `claims` checks the promise below.
    ///
    /// # Safety
    /// While any of the lent columns is used, this one is not used and its memory stays. Between two barriers that all threads pass: if one thread
    /// writes a row by its index, no other thread reads or writes that row; words that several threads add to are only accessed by [`Column::word`].
    // SAFETY: the caller makes the promise above.
    pub unsafe fn lend<'a>(&mut self, claims: Claims) -> Column<'a, T>
    where
        'w: 'a,
    {
        Column { rows: self.rows, len: self.len, memory: Memory::Lent, claims, slice: PhantomData }
    }

    /// A table of claims for the rows of this column, for debug builds.
    pub fn claim_table(&self) -> ClaimTable {
        ClaimTable::new(self.len)
    }

    #[inline]
    fn check_whole(&self) {
        debug_assert!(self.memory != Memory::Lent, "all rows at once, while threads share them");
    }
}

#[allow(unsafe_code)]
impl Column<'_, u32> {
    /// Word `i`, which several threads may add to.
    #[inline]
    pub fn word(&mut self, i: u32) -> &AtomicU32 {
        assert!((i as usize) < self.len, "no such word");
        // SAFETY: the word is inside the column and aligned as a `u32`. The column is borrowed as long, and threads that share it access such words
        // in no other way.
        unsafe { AtomicU32::from_ptr(self.rows.as_ptr().add(i as usize)) }
    }

    /// Current value of word `i`, while several threads may add to it.
    #[inline]
    pub fn word_now(&self, i: u32) -> u32 {
        assert!((i as usize) < self.len, "no such word");
        // SAFETY: as above; the word is only read.
        unsafe { AtomicU32::from_ptr(self.rows.as_ptr().add(i as usize)).load(Relaxed) }
    }
}

/// Columns of a message's task that its receiver reads. All but `got` are set when the tables are built.
#[derive(Clone, Copy, Debug)]
pub struct MessageRow {
    /// Time of its arrival, in ps. No thread sets it while threads share the rows.
    pub got: u64,
    /// The next message on its queue pair.
    pub follow: TaskIdx,
    /// Size of the message, in bytes.
    pub bytes: u64,
    /// First of the edges to the tasks that wait for its arrival.
    pub got_first: u32,
    /// Number of edges to them.
    pub got_n: u32,
}

#[allow(unsafe_code)]
impl Column<'_, Task> {
    /// Message `i` as its receiver sees it, while the sender may write other words of the row.
    #[inline]
    pub fn message(&self, i: TaskIdx) -> MessageRow {
        assert!(i.usize() < self.len, "no such task");
        // SAFETY: the row is inside the column. No thread writes these words while threads share the rows, and no reference to the other words is
        // made.
        unsafe {
            let row = self.rows.as_ptr().add(i.usize());
            MessageRow {
                got: (&raw const (*row).got).read(),
                follow: (&raw const (*row).follow).read(),
                bytes: (&raw const (*row).bytes).read(),
                got_first: (&raw const (*row).got_first).read(),
                got_n: (&raw const (*row).got_n).read(),
            }
        }
    }
}

#[allow(unsafe_code)]
impl Column<'_, FlowTx> {
    /// The NIC of the sending end of queue pair `f`, while that NIC may write other words of the row.
    #[inline]
    pub fn nic(&self, f: FlowIdx) -> NicIdx {
        assert!(f.usize() < self.len, "no such queue pair");
        // SAFETY: the row is inside the column. The host alone sets this word, while no thread has the rows, and no reference to the other words is made.
        unsafe { (&raw const (*self.rows.as_ptr().add(f.usize())).nic).read() }
    }
}

#[allow(unsafe_code)]
impl Column<'_, FlowRx> {
    /// The NIC of the receiving end of queue pair `f`, while that NIC may write other words of the row.
    #[inline]
    pub fn nic(&self, f: FlowIdx) -> NicIdx {
        assert!(f.usize() < self.len, "no such queue pair");
        // SAFETY: as for the sending end.
        unsafe { (&raw const (*self.rows.as_ptr().add(f.usize())).nic).read() }
    }
}

#[allow(unsafe_code)]
impl<T> Deref for Column<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.check_whole();
        // SAFETY: the rows exist, and no other thread writes them now: the column is not lent, or this is between phases.
        unsafe { std::slice::from_raw_parts(self.rows.as_ptr(), self.len) }
    }
}

#[allow(unsafe_code)]
impl<T> DerefMut for Column<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.check_whole();
        // SAFETY: as above, and the column is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.rows.as_ptr(), self.len) }
    }
}

/// Panics because index `i` is out of bounds.
#[cold]
#[inline(never)]
fn beyond(i: usize, len: usize) -> ! {
    panic!("index out of bounds: the len is {len} but the index is {i}")
}

#[allow(unsafe_code)]
impl<T> Index<usize> for Column<'_, T> {
    type Output = T;

    #[inline]
    fn index(&self, i: usize) -> &T {
        if i >= self.len {
            beyond(i, self.len);
        }
        self.claims.reads::<T>(i);
        // SAFETY: it is inside; no other thread writes this row now, see `lend`.
        unsafe { &*self.rows.as_ptr().add(i) }
    }
}

#[allow(unsafe_code)]
impl<T> IndexMut<usize> for Column<'_, T> {
    #[inline]
    fn index_mut(&mut self, i: usize) -> &mut T {
        if i >= self.len {
            beyond(i, self.len);
        }
        self.claims.writes::<T>(i);
        // SAFETY: the row is inside the column; no other thread uses this row now, see `lend`.
        unsafe { &mut *self.rows.as_ptr().add(i) }
    }
}

#[allow(unsafe_code)]
impl<T> Index<Range<usize>> for Column<'_, T> {
    type Output = [T];

    #[inline]
    fn index(&self, rows: Range<usize>) -> &[T] {
        if rows.end > self.len || rows.start > rows.end {
            beyond(rows.end, self.len);
        }
        self.claims.reads_all::<T>(&rows);
        // SAFETY: the rows are inside the column; no other thread writes these rows now, see `lend`.
        unsafe { std::slice::from_raw_parts(self.rows.as_ptr().add(rows.start), rows.end - rows.start) }
    }
}

impl<T> IndexMut<Range<usize>> for Column<'_, T> {
    #[inline]
    fn index_mut(&mut self, rows: Range<usize>) -> &mut [T] {
        &mut (**self)[rows]
    }
}

impl<'a, T> IntoIterator for &'a Column<'_, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Column<'_, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: fmt::Debug> fmt::Debug for Column<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Column<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Column<'_, T> {}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn a_column_is_a_vector_or_a_slice() {
        let mut own = Column::from(vec![1u64, 2, 3]);
        own.change(|rows| rows.push(4));
        own[1] = 7;
        assert_eq!((own.len(), own.get(3), own.get(4)), (4, Some(&4), None));
        assert_eq!(own.into_vec(), [1, 7, 3, 4]);
        let mut rows = [1u64, 2, 3];
        let mut slice = Column::from(&mut rows[1..]);
        slice[0] += 5;
        assert_eq!(slice[0..2], [7, 3]);
        assert_eq!(slice.into_vec(), [7, 3]);
        assert_eq!(rows, [1, 7, 3]);
    }

    #[test]
    #[should_panic(expected = "the len is 2 but the index is 2")]
    fn what_is_beyond_the_rows_panics() {
        let rows = Column::from(vec![1u64, 2]);
        let _ = rows[2];
    }

    /// Threads write rows of their own between barriers, then read all others'.
    #[test]
    fn threads_share_rows() {
        const THREADS: usize = 3;
        let mut words = Column::from(vec![0u32; 2]);
        let mut rows = Column::from(vec![0u64; 6]);
        let table = rows.claim_table();
        let barrier = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for k in 0..THREADS {
                // SAFETY: a thread writes every third row; all read after the barrier. The words are added to as atomics.
                let (mut rows, mut words) =
                    unsafe { (rows.lend(Claims::of(&table, k as u32)), words.lend(Claims::NONE)) };
                let (barrier, table) = (&barrier, &table);
                scope.spawn(move || {
                    for i in (k..6).step_by(THREADS) {
                        rows[i] = 1 << i;
                        words.word(1).fetch_add(1, Relaxed);
                    }
                    barrier.wait();
                    table.next_phase(1);
                    barrier.wait();
                    assert_eq!((0..6).map(|i| rows[i]).sum::<u64>(), 63);
                });
            }
        });
        assert_eq!(*words, [0, 6]);
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_row_that_two_threads_have_is_found() {
        let mut rows = Column::from(vec![0u64; 2]);
        let table = rows.claim_table();
        // SAFETY: this is one thread.
        let (mut a, mut b) = unsafe { (rows.lend(Claims::of(&table, 0)), rows.lend(Claims::of(&table, 1))) };
        a[0] = 1;
        b[1] = 1;
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| b[0]));
        assert!(caught.is_err(), "one thread reads what another has written");
        table.next_phase(1);
        assert_eq!(b[0] + a[0], 2);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| a[0] = 3));
        assert!(caught.is_err(), "one thread writes what another has read");
    }

    #[test]
    #[cfg(debug_assertions)]
    fn the_nic_of_a_queue_pair_is_read_while_another_thread_has_its_row() {
        let row = FlowTx { nic: NicIdx(5), ..bytemuck::Zeroable::zeroed() };
        let mut rows = Column::from(vec![row]);
        let table = rows.claim_table();
        // SAFETY: this is one thread.
        let (mut writer, reader) = unsafe { (rows.lend(Claims::of(&table, 0)), rows.lend(Claims::of(&table, 1))) };
        writer[0].size = 7;
        assert_eq!(reader.nic(FlowIdx(0)), NicIdx(5));
        let whole_row = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader[0].nic));
        assert!(whole_row.is_err(), "the row is another thread's");
    }

    #[test]
    fn a_receiver_reads_its_words_of_a_message() {
        let rows: Column<Task> = vec![Task { bytes: 9, got_n: 2, ..bytemuck::Zeroable::zeroed() }].into();
        let message = rows.message(TaskIdx(0));
        assert_eq!((message.got, message.bytes, message.got_first, message.got_n), (0, 9, 0, 2));
        assert_eq!(message.follow, TaskIdx(0));
    }
}
