//! Converts graphs of numbered operations to programs: checks the dependencies and orders the operations so that each follows those it waits for.
//!
//! Layer: workload. The importers share this module; it knows no file format.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::workload::program::{OpKind, Program, Rank, Stream, Workload};

/// An operation of a graph that is not ordered yet. Its dependencies are positions in the list of items.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: OpKind,
    pub(super) name: u32,
    pub(super) stream: Stream,
    pub(super) deps: Vec<u32>,
}

/// Makes a program of a list of items. Operations keep the list's order wherever the dependencies allow it. The error is a position that lies on a cycle.
pub(super) fn program(items: Vec<Item>) -> Result<Program, u32> {
    let n = items.len();
    let mut program = Program::default();
    program.ops.reserve(n);
    let forward = items.iter().enumerate().all(|(i, item)| item.deps.iter().all(|&d| (d as usize) < i));
    let order: Vec<u32> = if forward { (0..n as u32).collect() } else { topological(&items)? };
    let mut place = vec![0u32; n];
    for (position, &i) in order.iter().enumerate() {
        place[i as usize] = position as u32;
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

/// Orders the items by Kahn's algorithm, taking the smallest position first. The error is a position that lies on a cycle.
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

/// A position on a cycle. From any item that still waits, it follows dependencies that still wait; after n steps it is on a cycle.
fn on_cycle(items: &[Item], waits: &[u32]) -> u32 {
    let mut position = waits.iter().position(|&w| w > 0).unwrap_or(0) as u32;
    for _ in 0..items.len() {
        if let Some(&d) = items[position as usize].deps.iter().find(|&&d| waits[d as usize] > 0) {
            position = d;
        }
    }
    position
}

/// Adds ranks to a workload. A rank shares its program with an earlier rank that has an equal one.
#[derive(Default)]
pub(super) struct Ranks {
    /// Programs by number of operations and dependencies; only those are compared.
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
