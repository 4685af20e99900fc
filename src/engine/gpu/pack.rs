//! Packing: which experiments fit side by side in a device's tables, and which bytes of a transfer are whose.
//!
//! Layer: engine. Knows sizes of tables. Copies nothing and uses no device.

use std::ops::Range;

use hyperfold_columns::{N_TABLES, Spans, TABLES, Tables};

/// Splits a byte range of table `table` into pieces by experiment. Each item: number of the experiment, range within its bytes, and offset of the piece in
/// the range.
pub fn pieces(spans: &Spans, table: usize, range: Range<u64>) -> impl Iterator<Item = (usize, Range<usize>, usize)> {
    (0..spans.len()).filter_map(move |k| {
        let own = spans.bytes_in(k, table);
        let (first, last) = (range.start.max(own.start), range.end.min(own.end));
        let within = move || (first - own.start) as usize..(last - own.start) as usize;
        (first < last).then(|| (k, within(), (first - range.start) as usize))
    })
}

/// Limits of one batch on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Maximum size of one table, in bytes.
    pub table_bytes: u64,
    /// Maximum size of all tables together, in bytes.
    pub total_bytes: u64,
    /// Maximum number of experiments.
    pub experiments: usize,
}

/// The first table of `one` that exceeds `limits` even alone: its name, its bytes, and the limit.
pub fn too_large(one: &Tables, limits: &DeviceLimits) -> Option<(&'static str, u64, u64)> {
    let bytes = one.table_bytes();
    (0..N_TABLES)
        .find(|&i| bytes[i] > limits.table_bytes)
        .map(|i| (TABLES[i].name, bytes[i], limits.table_bytes))
        .or_else(|| (one.bytes() > limits.total_bytes).then(|| ("tables together", one.bytes(), limits.total_bytes)))
}

/// Number of `experiments`, from the first on, that fit side by side.
pub fn first_that_fit<'a>(experiments: impl IntoIterator<Item = &'a Tables<'a>>, limits: &DeviceLimits) -> usize {
    let mut sums = [0; N_TABLES];
    let fits = |one: &Tables| {
        for (sum, bytes) in sums.iter_mut().zip(one.table_bytes()) {
            *sum += bytes;
        }
        sums.iter().all(|&s| s <= limits.table_bytes) && sums.iter().sum::<u64>() <= limits.total_bytes
    };
    experiments.into_iter().take(limits.experiments).map(fits).take_while(|fits| *fits).count()
}

/// Divides `experiments` into consecutive ranges that fit, each as long as possible. An experiment that does not fit alone is a range of its own.
pub fn batches(experiments: &[Tables], limits: &DeviceLimits) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut first = 0;
    let mut sums = [0; N_TABLES];
    for (i, one) in experiments.iter().enumerate() {
        let bytes = one.table_bytes();
        let fits = |sums: &[u64; N_TABLES]| {
            (0..N_TABLES).all(|k| sums[k] + bytes[k] <= limits.table_bytes)
                && sums.iter().chain(&bytes).sum::<u64>() <= limits.total_bytes
        };
        if i > first && (!fits(&sums) || i - first >= limits.experiments) {
            runs.push(first..i);
            first = i;
            sums = [0; N_TABLES];
        }
        for k in 0..N_TABLES {
            sums[k] += bytes[k];
        }
    }
    if first < experiments.len() {
        runs.push(first..experiments.len());
    }
    runs
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;
    use hyperfold_columns::{Exp, OwnedTables};

    /// An experiment whose every row is filled with numbers of its own.
    fn tables(seed: u8, n: usize) -> OwnedTables {
        let exp = Exp {
            nic_len: n as u32,
            port_len: 2 * n as u32,
            switch_len: 1,
            flow_len: n as u32 + 1,
            packet_len: 5,
            int_len: n as u32 + 6,
            path_len: 3,
            plan_len: 4,
            shared_len: 9,
            rtt_len: 2,
            task_len: n as u32 + 3,
            edge_len: 4,
            signal_len: n as u32,
            gate_len: 2,
            server_len: 1,
            end_len: 3 * n as u32,
            exp_id: seed as u32,
            ..Exp::zeroed()
        };
        let mut next = seed;
        OwnedTables::filled(exp, |rows| {
            for b in rows {
                next = next.wrapping_mul(29).wrapping_add(7);
                *b = next;
            }
        })
    }

    #[test]
    fn a_transfer_is_cut_anywhere() {
        let all: Vec<OwnedTables> = [(1, 2), (2, 5), (3, 1)].map(|(seed, n)| tables(seed, n)).into();
        let spans = Spans::of(all.iter().map(|t| &t.exps[0]));
        for (i, table) in TABLES.iter().enumerate().skip(1) {
            let whole: Vec<u8> = all.iter().flat_map(|t| t.as_bytes()[i].to_vec()).collect();
            assert_eq!(spans.table_bytes()[i], whole.len() as u64, "table {}", table.name);
            // In runs of an odd length.
            for from in (0..whole.len()).step_by(37) {
                let mut run = vec![0; 37.min(whole.len() - from)];
                for (k, bytes, at) in pieces(&spans, i, from as u64..(from + run.len()) as u64) {
                    run[at..at + bytes.len()].copy_from_slice(&all[k].as_bytes()[i][bytes]);
                }
                assert_eq!(run, whole[from..from + run.len()], "table {}", table.name);
            }
        }
    }

    #[test]
    fn lengths_are_those_of_the_tables() {
        let one = tables(1, 2);
        let mut again = one.clone();
        let empty = Exp { exp_id: 1, ..Exp::zeroed() };
        again.exps[0] = empty;
        again.set_lengths();
        assert_eq!(again, one);
    }

    #[test]
    fn batches_are_cut_where_a_table_is_full() {
        let one = tables(1, 2);
        let mut all = [one.clone(), one.clone(), one.clone(), tables(2, 40), one];
        OwnedTables::with_views(&mut all, |all| {
            let largest = all[0].table_bytes().into_iter().max().expect("there are tables");
            let limits = DeviceLimits { table_bytes: 2 * largest, total_bytes: u64::MAX, experiments: 100 };
            assert_eq!(batches(all, &limits), [0..2, 2..3, 3..4, 4..5]);
            assert!(too_large(&all[3], &limits).is_some());
            assert!(too_large(&all[0], &limits).is_none());
            assert_eq!(first_that_fit(&all[0..3], &limits), 2);
            assert_eq!(first_that_fit(&all[3..5], &limits), 0);
            assert_eq!(batches(&all[0..3], &DeviceLimits { experiments: 1, ..limits }), [0..1, 1..2, 2..3]);
            assert_eq!(
                batches(&all[0..3], &DeviceLimits { total_bytes: all[0].bytes(), ..limits }),
                [0..1, 1..2, 2..3]
            );
        });
    }
}
