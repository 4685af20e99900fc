//! Repeats a workload of one iteration.
//!
//! Layer: workload. For imported workloads, whose files hold one iteration. An iteration of a rank begins when its iteration before is done on that rank. Data
//! from other ranks is waited for by collectives and messages as usual.

use super::program::{Op, OpKind, Program, Stream, Workload};
use hyperfold_base::budget;

/// Repeats every program `n` times; `n` is at least 1. A program that has several iterations already is repeated as a whole.
pub fn repeat(w: &mut Workload, n: u32) {
    if n <= 1 {
        return;
    }
    let name = w.name("iteration");
    for p in &mut w.programs {
        *p = repeated(p, n, name);
    }
}

fn repeated(p: &Program, n: u32, name: u32) -> Program {
    let mut out = Program::default();
    let ends: &[u32] = if p.iteration_ends.is_empty() { &[p.ops.len() as u32] } else { &p.iteration_ends };
    // Ops that no other op waits for. The end of an iteration waits for these.
    let mut open = vec![true; p.ops.len()];
    let mut last_on: [Option<u32>; 256] = [None; 256];
    for (i, op) in p.ops.iter().enumerate() {
        let before = if op.stream == Stream::FREE { None } else { last_on[op.stream.0 as usize].replace(i as u32) };
        p.deps_of(i as u32).iter().copied().chain(before).for_each(|d| open[d as usize] = false);
    }
    let mut gate: Option<u32> = None;
    for copy in 0..n {
        let base = out.ops.len() as u32;
        budget::announce_rows::<Op>("operations of the iterations", p.ops.len() as u64);
        for (i, op) in p.ops.iter().enumerate() {
            let first = out.deps.len() as u32;
            out.deps.extend(p.deps_of(i as u32).iter().map(|d| d + base));
            if op.deps_n == 0 {
                out.deps.extend(gate);
            }
            out.ops.push(Op { deps_first: first, deps_n: out.deps.len() as u32 - first, ..*op });
        }
        if copy + 1 < n {
            let all: Vec<u32> = (0..p.ops.len() as u32).filter(|&i| open[i as usize]).map(|i| i + base).collect();
            gate = Some(out.push(OpKind::Join, Stream::FREE, name, &all));
        }
        out.iteration_ends.extend(ends.iter().map(|e| e + base));
        // The gate belongs to the iteration that it ends.
        if copy + 1 < n
            && let Some(end) = out.iteration_ends.last_mut()
        {
            *end = out.ops.len() as u32;
        }
    }
    out
}
