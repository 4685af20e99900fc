//! A sweep made in code with typed keys: a value of a wrong type does not compile.
//!
//!     cargo run --release --example typed_sweep

#![forbid(unsafe_code)]

use std::error::Error;

use hyperfold::keys::{self, Cc, Op, WorkloadKind};
use hyperfold::{EngineChoice, Session, SweepBuilder};

pub fn main() -> Result<(), Box<dyn Error>> {
    let sweep = SweepBuilder::new("all-reduce")
        .set(keys::CLUSTER_GPUS, 8)
        .set(keys::CLUSTER_GPUS_PER_SERVER, 1)
        .set(keys::TOPOLOGY_LINK_GBPS, 100.0)
        .set(keys::WORKLOAD_KIND, WorkloadKind::Collective)
        .set(keys::WORKLOAD_OP, Op::AllReduce)
        .axis(keys::WORKLOAD_BYTES, [65_536, 1_048_576])
        .axis(keys::TRANSPORT_CC, [Cc::Dcqcn, Cc::Hpcc])
        .axis(keys::TRANSPORT_PFC, [true, false])
        .build()?;
    println!("{},busbw_gbps", sweep.axes.join(","));
    for result in Session::new(EngineChoice::Cpu).run(&sweep)? {
        let record = result?.record;
        let axes: Vec<String> = record.axis_values.iter().map(ToString::to_string).collect();
        println!("{},{:.2}", axes.join(","), record.busbw_gbps.ok_or(record.error)?);
    }
    Ok(())
}
