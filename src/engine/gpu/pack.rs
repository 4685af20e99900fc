//! Packing: experiments' tables side by side for a device, and apart again, each exactly as the CPU engine would have it.
//!
//! Layer: engine. Knows rows and their bases; no device.

use std::ops::Range;

use crate::columns::{Exp, Tables};

/// Tables of a [`Tables`].
pub const N_TABLES: usize = 21;

/// The names of the tables, in the order of [`views`].
pub const NAMES: [&str; N_TABLES] = [
    "exps", "nics", "ports", "switches", "flow_tx", "flow_rx", "packets", "ints", "stamps", "wires", "clocks",
    "shared", "plans", "order", "paths", "rtts", "tasks", "edges", "signals", "gates", "servers",
];

/// Every table as bytes, in the order of the bindings.
pub fn views(t: &Tables) -> [&[u8]; N_TABLES] {
    [
        bytemuck::cast_slice(&t.exps),
        bytemuck::cast_slice(&t.nics),
        bytemuck::cast_slice(&t.ports),
        bytemuck::cast_slice(&t.switches),
        bytemuck::cast_slice(&t.flow_tx),
        bytemuck::cast_slice(&t.flow_rx),
        bytemuck::cast_slice(&t.packets),
        bytemuck::cast_slice(&t.ints),
        bytemuck::cast_slice(&t.stamps),
        bytemuck::cast_slice(&t.wires),
        bytemuck::cast_slice(&t.clocks),
        bytemuck::cast_slice(&t.shared),
        bytemuck::cast_slice(&t.plans),
        bytemuck::cast_slice(&t.order),
        bytemuck::cast_slice(&t.paths),
        bytemuck::cast_slice(&t.rtts),
        bytemuck::cast_slice(&t.tasks),
        bytemuck::cast_slice(&t.edges),
        bytemuck::cast_slice(&t.signals),
        bytemuck::cast_slice(&t.gates),
        bytemuck::cast_slice(&t.servers),
    ]
}

/// Every table as bytes that can be overwritten, in the order of the bindings.
pub fn views_mut(t: &mut Tables) -> [&mut [u8]; N_TABLES] {
    [
        bytemuck::cast_slice_mut(&mut t.exps),
        bytemuck::cast_slice_mut(&mut t.nics),
        bytemuck::cast_slice_mut(&mut t.ports),
        bytemuck::cast_slice_mut(&mut t.switches),
        bytemuck::cast_slice_mut(&mut t.flow_tx),
        bytemuck::cast_slice_mut(&mut t.flow_rx),
        bytemuck::cast_slice_mut(&mut t.packets),
        bytemuck::cast_slice_mut(&mut t.ints),
        bytemuck::cast_slice_mut(&mut t.stamps),
        bytemuck::cast_slice_mut(&mut t.wires),
        bytemuck::cast_slice_mut(&mut t.clocks),
        bytemuck::cast_slice_mut(&mut t.shared),
        bytemuck::cast_slice_mut(&mut t.plans),
        bytemuck::cast_slice_mut(&mut t.order),
        bytemuck::cast_slice_mut(&mut t.paths),
        bytemuck::cast_slice_mut(&mut t.rtts),
        bytemuck::cast_slice_mut(&mut t.tasks),
        bytemuck::cast_slice_mut(&mut t.edges),
        bytemuck::cast_slice_mut(&mut t.signals),
        bytemuck::cast_slice_mut(&mut t.gates),
        bytemuck::cast_slice_mut(&mut t.servers),
    ]
}

/// Bytes of each table.
pub fn table_bytes(t: &Tables) -> [u64; N_TABLES] {
    views(t).map(|v| v.len() as u64)
}

/// Packs experiments side by side, in the order given.
pub fn pack<'a>(experiments: impl IntoIterator<Item = &'a Tables>) -> Tables {
    let mut all = Tables::default();
    for one in experiments {
        all.append(one);
    }
    all
}

/// Writes the rows of experiment `row` of `all` back to `one`, its tables before packing, with the header it had (bases 0).
///
/// PRECONDITION: `one` has the lengths it was packed with.
pub fn unpack(all: &Tables, row: usize, one: &mut Tables) {
    let exp = all.exps[row];
    one.exps[0] = without_bases(exp);
    copy(&mut one.nics, &all.nics, exp.nic_base);
    copy(&mut one.ports, &all.ports, exp.port_base);
    copy(&mut one.switches, &all.switches, exp.switch_base);
    copy(&mut one.flow_tx, &all.flow_tx, exp.flow_base);
    copy(&mut one.flow_rx, &all.flow_rx, exp.flow_base);
    copy(&mut one.packets, &all.packets, exp.packet_base);
    copy(&mut one.ints, &all.ints, exp.int_base);
    copy(&mut one.stamps, &all.stamps, exp.stamp_base);
    copy(&mut one.wires, &all.wires, exp.end_base);
    copy(&mut one.clocks, &all.clocks, 2 * exp.end_base);
    copy(&mut one.shared, &all.shared, exp.shared_base);
    copy(&mut one.plans, &all.plans, exp.plan_base);
    copy(&mut one.order, &all.order, exp.flow_base);
    copy(&mut one.rtts, &all.rtts, exp.rtt_base);
    copy(&mut one.tasks, &all.tasks, exp.task_base);
    copy(&mut one.signals, &all.signals, exp.signal_base);
    copy(&mut one.gates, &all.gates, exp.gate_base);
    copy(&mut one.servers, &all.servers, exp.server_base);
}

fn copy<T: Copy>(to: &mut [T], from: &[T], base: u32) {
    let base = base as usize;
    to.copy_from_slice(&from[base..base + to.len()]);
}

/// The header as it is where the experiment is alone.
pub fn without_bases(mut exp: Exp) -> Exp {
    exp.nic_base = 0;
    exp.port_base = 0;
    exp.switch_base = 0;
    exp.flow_base = 0;
    exp.packet_base = 0;
    exp.int_base = 0;
    exp.stamp_base = 0;
    exp.path_base = 0;
    exp.plan_base = 0;
    exp.shared_base = 0;
    exp.rtt_base = 0;
    exp.end_base = 0;
    exp.task_base = 0;
    exp.edge_base = 0;
    exp.signal_base = 0;
    exp.gate_base = 0;
    exp.server_base = 0;
    exp
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
    let bytes = table_bytes(one);
    (0..N_TABLES)
        .find(|&i| bytes[i] > room.table_bytes)
        .map(|i| (NAMES[i], bytes[i], room.table_bytes))
        .or_else(|| (one.bytes() > room.total_bytes).then(|| ("tables together", one.bytes(), room.total_bytes)))
}

/// Whether `experiments` have room side by side.
pub fn batch_fits<'a>(experiments: impl IntoIterator<Item = &'a Tables>, room: &Room) -> bool {
    let mut sums = [0; N_TABLES];
    let mut n = 0;
    for one in experiments {
        n += 1;
        for (sum, bytes) in sums.iter_mut().zip(table_bytes(one)) {
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
        let bytes = table_bytes(one);
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
    use crate::columns::{
        FlowRx, FlowTx, FoldHints, Gate, IntVec, Nic, Packet, Plan, Port, RttSample, Signal, Switch, Task, Wire,
    };

    /// An experiment whose every row is filled with numbers of its own.
    fn tables(seed: u8, n: usize) -> Tables {
        fn rows<T: bytemuck::Pod>(seed: &mut u8, n: usize) -> Vec<T> {
            let mut v = vec![T::zeroed(); n];
            for b in bytemuck::cast_slice_mut::<T, u8>(&mut v) {
                *seed = seed.wrapping_mul(29).wrapping_add(7);
                *b = *seed;
            }
            v
        }
        let s = &mut { seed };
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
        Tables {
            exps: vec![exp],
            nics: rows::<Nic>(s, n),
            ports: rows::<Port>(s, 2 * n),
            switches: rows::<Switch>(s, 1),
            flow_tx: rows::<FlowTx>(s, n + 1),
            flow_rx: rows::<FlowRx>(s, n + 1),
            packets: rows::<Packet>(s, 5),
            ints: rows::<IntVec>(s, n + 6),
            stamps: rows::<u64>(s, 5),
            wires: rows::<Wire>(s, 3 * n),
            clocks: rows::<u64>(s, 6 * n),
            shared: rows::<u32>(s, 9),
            plans: rows::<Plan>(s, 4),
            order: rows::<u32>(s, n + 1),
            paths: rows::<u32>(s, 3),
            rtts: rows::<RttSample>(s, 2),
            tasks: rows::<Task>(s, n + 3),
            edges: rows::<u32>(s, 4),
            signals: rows::<Signal>(s, n),
            gates: rows::<Gate>(s, 2),
            servers: rows::<u64>(s, 1),
            fold_trace: Vec::new(),
            fold_hints: FoldHints::default(),
        }
    }

    #[test]
    fn what_was_packed_comes_apart_unchanged() {
        let before: Vec<Tables> = [(1, 2), (2, 5), (3, 1)].map(|(seed, n)| tables(seed, n)).into();
        let mut all = pack(&before);
        assert_eq!(all.exps[2].end_base, 21);
        assert_eq!(views(&all)[10].len(), 8 * 6 * 8);
        // Every table but those that kernels only read is written back.
        let only_read = ["paths", "edges"];
        for (i, v) in views_mut(&mut all).into_iter().enumerate().skip(1) {
            if !only_read.contains(&NAMES[i]) {
                v.iter_mut().for_each(|b| *b ^= 0x5a);
            }
        }
        for (row, one) in before.iter().enumerate() {
            let mut back = one.clone();
            unpack(&all, row, &mut back);
            assert_eq!(back.exps, one.exps);
            for (i, (a, b)) in views(&back).iter().zip(views(one)).enumerate().skip(1) {
                let mask = if only_read.contains(&NAMES[i]) { 0 } else { 0x5a };
                assert!(a.iter().zip(b).all(|(x, y)| x ^ y == mask), "table {}", NAMES[i]);
            }
        }
    }

    #[test]
    fn batches_are_cut_where_a_table_is_full() {
        let one = tables(1, 2);
        let all = vec![one.clone(), one.clone(), one.clone(), tables(2, 40), one.clone()];
        let largest = table_bytes(&one).into_iter().max().expect("there are tables");
        let room = Room { table_bytes: 2 * largest, total_bytes: u64::MAX, experiments: 100 };
        assert_eq!(batches(&all, &room), [0..2, 2..3, 3..4, 4..5]);
        assert!(too_large(&all[3], &room).is_some());
        assert!(too_large(&one, &room).is_none());
        assert!(batch_fits(&all[0..2], &room) && !batch_fits(&all[0..3], &room));
        assert_eq!(batches(&all[0..3], &Room { experiments: 1, ..room }), [0..1, 1..2, 2..3]);
        assert_eq!(batches(&all[0..3], &Room { total_bytes: one.bytes(), ..room }), [0..1, 1..2, 2..3]);
    }
}
