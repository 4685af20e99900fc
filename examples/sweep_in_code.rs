//! A sweep made in code: ring all-reduces of several sizes under two congestion controls, with and without pauses.
//!
//!     cargo run --release --example sweep_in_code

#![forbid(unsafe_code)]

use std::error::Error;

use hyperfold::{EngineChoice, Session, SweepBuilder};

pub fn main() -> Result<(), Box<dyn Error>> {
    let sweep = SweepBuilder::new("all-reduce")
        .set("cluster.gpus", 8)
        .set("cluster.gpus_per_server", 1)
        .set("cluster.nics_per_server", 1)
        .set("workload.kind", "collective")
        .set("workload.op", "all-reduce")
        .axis("workload.bytes", [65_536, 1_048_576])
        .axis("transport.cc", ["dcqcn", "hpcc"])
        .axis("transport.pfc", [true, false])
        .constraint("workload.bytes > 100000 || transport.pfc == true")
        .build()?;
    let session = Session::new(EngineChoice::Cpu).set("fidelity.fast_forward=exact");
    println!("{} experiments", session.plan(&sweep)?.experiments);
    println!("{},busbw_gbps", sweep.axes.join(","));
    for result in session.run(&sweep)? {
        let record = result?.record;
        let axes: Vec<String> = record.axis_values.iter().map(ToString::to_string).collect();
        println!("{},{:.2}", axes.join(","), record.busbw_gbps.ok_or(record.error)?);
    }
    Ok(())
}
