//! A collective algorithm of one's own: an all-reduce by recursive doubling, beside a ring, on the same network.
//!
//!     cargo run --release --example own_collective

#![forbid(unsafe_code)]

use std::error::Error;

use hyperfold::{EngineChoice, ProgramBuilder, ProgramStep, Session, SweepBuilder};

const RANKS: u32 = 8;
const BYTES: u64 = 400_000;

/// In round k each rank exchanges everything with the rank whose number differs in bit k.
fn recursive_doubling() -> ProgramBuilder {
    let mut program = ProgramBuilder::new(RANKS);
    let mut done: Vec<Option<ProgramStep>> = vec![None; RANKS as usize];
    for bit in 0..RANKS.ilog2() {
        let round = (0..RANKS).map(|rank| (rank ^ (1 << bit), done[rank as usize]));
        let arrived: Vec<ProgramStep> = round
            .enumerate()
            .map(|(rank, (peer, after))| program.message(rank as u32, peer, BYTES, after.as_slice()))
            .collect();
        (0..RANKS).for_each(|rank| done[rank as usize] = Some(arrived[(rank ^ (1 << bit)) as usize]));
    }
    program
}

/// A part of the data goes round twice: once to be summed, once to be handed out.
fn ring() -> ProgramBuilder {
    let mut program = ProgramBuilder::new(RANKS);
    let mut done: Vec<Option<ProgramStep>> = vec![None; RANKS as usize];
    for _ in 0..2 * (RANKS - 1) {
        let before = done.clone();
        for rank in 0..RANKS {
            let next = (rank + 1) % RANKS;
            let after = before[rank as usize];
            done[next as usize] = Some(program.message(rank, next, BYTES / u64::from(RANKS), after.as_slice()));
        }
    }
    program
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("hyperfold-own-collective-{}", std::process::id()));
    println!("algorithm,iteration_time_ns");
    for (name, program) in [("recursive-doubling", recursive_doubling()), ("ring", ring())] {
        let sweep = SweepBuilder::new(name)
            .set("cluster.gpus", i64::from(RANKS))
            .set("cluster.gpus_per_server", 1)
            .set("cluster.nics_per_server", 1)
            .program(&program)
            .build_in(&folder)?;
        for result in Session::new(EngineChoice::Cpu).run(&sweep)? {
            let record = result?.record;
            println!("{name},{}", record.iteration_time.ok_or(record.error)?);
        }
    }
    Ok(std::fs::remove_dir_all(&folder)?)
}
