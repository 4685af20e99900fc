//! Packing: experiments' tables side by side for a device, and which of them have room there.
//!
//! Layer: engine. Knows sizes of tables; no device.

use std::ops::Range;

use crate::columns::{N_TABLES, TABLES, Tables};

/// Packs experiments side by side, in the order given.
pub fn pack<'a>(experiments: impl IntoIterator<Item = &'a Tables>) -> Tables {
    let mut all = Tables::default();
    for one in experiments {
        all.append(one);
    }
    all
}

/// What a device can take in one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Largest table, bytes.
    pub table_bytes: u64,
    /// All tables together, bytes.
    pub total_bytes: u64,
    /// Most experiments.
    pub experiments: usize,
}

/// The first table of `one` that has no place in `room` even alone, its bytes and the most they may be.
pub fn too_large(one: &Tables, room: &Room) -> Option<(&'static str, u64, u64)> {
    let bytes = one.table_bytes();
    (0..N_TABLES)
        .find(|&i| bytes[i] > room.table_bytes)
        .map(|i| (TABLES[i].name, bytes[i], room.table_bytes))
        .or_else(|| (one.bytes() > room.total_bytes).then(|| ("tables together", one.bytes(), room.total_bytes)))
}

/// Whether `experiments` have room side by side.
pub fn batch_fits<'a>(experiments: impl IntoIterator<Item = &'a Tables>, room: &Room) -> bool {
    let mut sums = [0; N_TABLES];
    let mut n = 0;
    for one in experiments {
        n += 1;
        for (sum, bytes) in sums.iter_mut().zip(one.table_bytes()) {
            *sum += bytes;
        }
    }
    n <= room.experiments && sums.iter().all(|&s| s <= room.table_bytes) && sums.iter().sum::<u64>() <= room.total_bytes
}

/// Consecutive runs of `experiments` that have room, each as long as can be. One that has none even alone is a run of its own.
pub fn batches(experiments: &[Tables], room: &Room) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut first = 0;
    let mut sums = [0; N_TABLES];
    for (i, one) in experiments.iter().enumerate() {
        let bytes = one.table_bytes();
        let fits = |sums: &[u64; N_TABLES]| {
            (0..N_TABLES).all(|k| sums[k] + bytes[k] <= room.table_bytes)
                && sums.iter().chain(&bytes).sum::<u64>() <= room.total_bytes
        };
        if i > first && (!fits(&sums) || i - first >= room.experiments) {
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
    use crate::columns::Exp;

    /// An experiment whose every row is filled with numbers of its own.
    fn tables(seed: u8, n: usize) -> Tables {
        let exp = Exp {
            nic_len: n as u32,
            port_len: 2 * n as u32,
            switch_len: 1,
            flow_len: n as u32 + 1,
            packet_len: 5,
            int_len: n as u32 + 6,
            stamp_len: 5,
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
        Tables::filled(exp, |rows| {
            for b in rows {
                next = next.wrapping_mul(29).wrapping_add(7);
                *b = next;
            }
        })
    }

    #[test]
    fn what_was_packed_comes_apart_unchanged() {
        let before: Vec<Tables> = [(1, 2), (2, 5), (3, 1)].map(|(seed, n)| tables(seed, n)).into();
        let mut all = pack(&before);
        assert_eq!(all.exps[2].end_base, 21);
        assert_eq!(all.clocks.len(), 6 * 8);
        // Every table but those that kernels only read is written back.
        for (table, v) in TABLES.iter().zip(all.views_mut()).skip(1) {
            if !table.is_read_only() {
                v.iter_mut().for_each(|b| *b ^= 0x5a);
            }
        }
        for (row, one) in before.iter().enumerate() {
            let mut back = one.clone();
            all.extract(row, &mut back);
            assert_eq!(back.exps, one.exps);
            for (table, (a, b)) in TABLES.iter().zip(back.views().iter().zip(one.views())).skip(1) {
                let mask = if table.is_read_only() { 0 } else { 0x5a };
                assert!(a.iter().zip(b).all(|(x, y)| x ^ y == mask), "table {}", table.name);
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
        let all = vec![one.clone(), one.clone(), one.clone(), tables(2, 40), one.clone()];
        let largest = one.table_bytes().into_iter().max().expect("there are tables");
        let room = Room { table_bytes: 2 * largest, total_bytes: u64::MAX, experiments: 100 };
        assert_eq!(batches(&all, &room), [0..2, 2..3, 3..4, 4..5]);
        assert!(too_large(&all[3], &room).is_some());
        assert!(too_large(&one, &room).is_none());
        assert!(batch_fits(&all[0..2], &room) && !batch_fits(&all[0..3], &room));
        assert_eq!(batches(&all[0..3], &Room { experiments: 1, ..room }), [0..1, 1..2, 2..3]);
        assert_eq!(batches(&all[0..3], &Room { total_bytes: one.bytes(), ..room }), [0..1, 1..2, 2..3]);
    }
}
