//! Policies of one's own, registered by name and compared with built-in ones in one sweep: a scheduler of a cluster, and a routing policy.
//!
//!     cargo run --release --example own_policies

#![forbid(unsafe_code)]

use std::error::Error;

use hyperfold::{Behind, ClusterJob, EngineChoice, QueueKey, Scheduler, Session};
use hyperfold::{FlowKey, FlowPaths, RouteError, Router, RoutingPolicy};

struct LargestFirst;

impl Scheduler for LargestFirst {
    fn key(&self, job: &ClusterJob) -> QueueKey {
        [u64::from(u32::MAX - job.gpus), job.submit_ms]
    }

    fn behind(&self) -> Behind {
        Behind::Overtakes
    }
}

/// All flows of a host take one path.
#[derive(Debug)]
struct BySender;

impl RoutingPolicy for BySender {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        let nics = router.hashed_path(flow, 1, link)?;
        let (first, last) = (nics[0], nics[nics.len() - 1]);
        let data = vec![router.shortest_path(first, last, u64::from(flow.src_rank))];
        Ok(FlowPaths { data, ack: vec![router.shortest_path(last ^ 1, first ^ 1, u64::from(flow.dst_rank))] })
    }
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let session = Session::new(EngineChoice::Cpu).scheduler("largest", "1", LargestFirst)?;
    let session = session.routing_policy("by-sender", "1", BySender)?;
    let queues = session
        .sweep("queues")
        .set("fidelity.mode", "job")
        .set("cluster.gpus", 64)
        .axis("scheduler.policy", ["fcfs", "backfill", "largest"]);
    let routes = session
        .sweep("routes")
        .set("cluster.gpus_per_server", 1)
        .set("workload.kind", "traffic")
        .set("workload.pattern", "ring")
        .axis("routing.policy", ["ecmp", "by-sender"]);
    for sweep in [queues.build()?, routes.build()?] {
        for result in session.run(&sweep)? {
            let record = result?.record;
            let value = record.cluster.map(|c| format!("{:?} ms of waiting", c.waiting_mean_ms));
            let value = value.or(record.makespan.map(|makespan| format!("{makespan:?}")));
            println!("{} {}", record.axis_values[0], value.ok_or(record.error)?);
        }
    }
    Ok(())
}
