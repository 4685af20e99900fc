//! A sweep file of three lines of text, run on the CPU: which congestion control ends an incast first?
//!
//!     cargo run --release --example quick_sweep

#![forbid(unsafe_code)]

use std::error::Error;
use std::path::Path;

use hyperfold::{EngineChoice, Session, Sweep};

const SWEEP: &str = r#"
name = "quick"
base.cluster = { gpus = 16, gpus_per_server = 1 }
base.workload = { kind = "traffic", pattern = "incast", fan_in = 8, bytes = 50000 }
axes = { "transport.cc" = ["dcqcn", "hpcc", "timely"] }
"#;

pub fn main() -> Result<(), Box<dyn Error>> {
    // `Sweep::load` reads a file; this text has none.
    let sweep = Sweep::parse(SWEEP, Path::new("quick.toml"))?;
    let mut results = Session::new(EngineChoice::Cpu).run(&sweep)?;
    println!("transport.cc,makespan_ns");
    for result in &mut results {
        let record = result?.record;
        let makespan = record.makespan.ok_or(record.error)?;
        println!("{},{makespan}", record.axis_values[0]);
    }
    results.warnings().iter().for_each(|warning| println!("warning: {warning}"));
    Ok(())
}
