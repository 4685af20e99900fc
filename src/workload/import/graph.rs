//! Graphs of numbered operations become programs: dependencies checked, operations put in an order in which each follows what it waits for.
//!
//! Layer: workload. What trace formats share; knows no format.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::workload::program::{OpKind, Program, Rank, Stream, Workload};

/// An operation before it has a place: dependencies are positions in the list.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: OpKind,
    pub(super) name: u32,
    pub(super) stream: Stream,
    pub(super) deps: Vec<u32>,
}

/// The program of a list of items. Operations keep the list's order wherever the dependencies allow it.
/// The error is a position that lies on a cycle.
pub(super) fn program(items: Vec<Item>) -> Result<Program, u32> {
    let n = items.len();
    let mut program = Program::default();
    program.ops.reserve(n);
    let forward = items.iter().enumerate().all(|(i, item)| item.deps.iter().all(|&d| (d as usize) < i));
    let order: Vec<u32> = if forward { (0..n as u32).collect() } else { topological(&items)? };
    let mut place = vec![0u32; n];
    for (at, &i) in order.iter().enumerate() {
        place[i as usize] = at as u32;
    }
    let mut deps = Vec::new();
    for &i in &order {
        let item = &items[i as usize];
        deps.clear();
        deps.extend(item.deps.iter().map(|&d| place[d as usize]));
        deps.sort_unstable();
        deps.dedup();
        program.push(item.kind, item.stream, item.name, &deps);
    }
    program.iteration_ends = vec![n as u32];
    Ok(program)
}

/// Kahn's algorithm, the smallest position first.
fn topological(items: &[Item]) -> Result<Vec<u32>, u32> {
    let n = items.len();
    let mut waits: Vec<u32> = items.iter().map(|item| item.deps.len() as u32).collect();
    let mut first = vec![0u32; n + 1];
    for item in items {
        for &d in &item.deps {
            first[d as usize + 1] += 1;
        }
    }
    for i in 0..n {
        first[i + 1] += first[i];
    }
    let mut after = vec![0u32; first[n] as usize];
    let mut fill = first.clone();
    for (i, item) in items.iter().enumerate() {
        for &d in &item.deps {
            after[fill[d as usize] as usize] = i as u32;
            fill[d as usize] += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<u32>> = (0..n as u32).filter(|&i| waits[i as usize] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(Reverse(i)) = ready.pop() {
        order.push(i);
        for &next in &after[first[i as usize] as usize..first[i as usize + 1] as usize] {
            waits[next as usize] -= 1;
            if waits[next as usize] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    if order.len() == n { Ok(order) } else { Err(on_cycle(items, &waits)) }
}

/// A position on a cycle: from any that still waits, going back along what still waits, n steps end on one.
fn on_cycle(items: &[Item], waits: &[u32]) -> u32 {
    let mut at = waits.iter().position(|&w| w > 0).unwrap_or(0) as u32;
    for _ in 0..items.len() {
        if let Some(&d) = items[at as usize].deps.iter().find(|&&d| waits[d as usize] > 0) {
            at = d;
        }
    }
    at
}

/// Adds a rank with its program, shared with an earlier rank that does exactly the same.
#[derive(Default)]
pub(super) struct Ranks {
    by_shape: BTreeMap<(usize, usize), Vec<u32>>,
}

impl Ranks {
    pub(super) fn push(&mut self, w: &mut Workload, program: Program, groups: Vec<u32>) {
        let same_shape = self.by_shape.entry((program.ops.len(), program.deps.len())).or_default();
        let found = same_shape.iter().copied().find(|&p| w.programs[p as usize] == program);
        let program = found.unwrap_or_else(|| {
            w.programs.push(program);
            let index = w.programs.len() as u32 - 1;
            same_shape.push(index);
            index
        });
        w.ranks.push(Rank { program, groups });
    }
}
