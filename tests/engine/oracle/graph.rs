//! A task graph with every task on a NIC: edges between NICs become gates, and a gate's tasks wait for nothing else.

use hyperfold_host::tables::build_tables::GraphCase;
use hyperfold_llm::workload::tasks::{EdgeMoment, Target, Work};
use hyperfold_network::topology::ArcIdx;

use super::Case;

pub struct TaskSpec {
    /// Its owner.
    pub nic: ArcIdx,
    pub delay_ps: u64,
    /// Flow and bytes of a message.
    pub message: Option<(u32, u64)>,
    pub waits: u32,
    /// What waits for its end and for its arrival.
    pub on_end: Vec<Target>,
    pub on_arrival: Vec<Target>,
}

pub struct GateSpec {
    pub server: Option<u32>,
    pub serial_ps: u64,
    pub latency_ps: u64,
    pub waits: u32,
    pub releases: Vec<u32>,
}

pub struct Expanded {
    /// The graph's own tasks, then those put between a gate and a task that waits for something besides.
    pub tasks: Vec<TaskSpec>,
    pub own_tasks: usize,
    /// The graph's own gates, then one for each edge between NICs.
    pub gates: Vec<GateSpec>,
    pub servers: usize,
    pub flows: usize,
}

pub fn expand(case: &Case, input: &GraphCase) -> Expanded {
    let (net, graph) = (&case.network, input.graph);
    let out = net.out_arcs();
    let first_nic = |rank: u32| -> ArcIdx {
        let arcs = &out[net.ranks[rank as usize] as usize];
        *arcs.iter().find(|&&a| net.is_packet_link(net.arc_link(a))).expect("a rank's host has a NIC")
    };
    let flow_of = |qp: u32| input.first_qp + qp as usize;
    let spec = |nic, delay_ps, message| TaskSpec {
        nic,
        delay_ps,
        message,
        waits: 0,
        on_end: Vec::new(),
        on_arrival: Vec::new(),
    };
    let mut tasks: Vec<TaskSpec> = Vec::new();
    for task in &graph.tasks {
        tasks.push(match task.work {
            Work::Delay => spec(first_nic(task.rank), task.delay_ps, None),
            Work::Message { qp, bytes } => {
                spec(case.paths[flow_of(qp)].data[0][0], task.delay_ps, Some((flow_of(qp) as u32, bytes)))
            }
        });
    }
    let mut gates: Vec<GateSpec> = graph
        .gates
        .iter()
        .map(|g| GateSpec {
            server: g.server,
            serial_ps: g.serial_ps,
            latency_ps: g.latency_ps,
            waits: 0,
            releases: Vec::new(),
        })
        .collect();
    let mut releases = graph.releases.clone();
    for edge in &graph.edges {
        let from = &tasks[edge.from as usize];
        let at = match edge.when {
            EdgeMoment::Done => from.nic,
            EdgeMoment::Got => case.paths[from.message.expect("only messages arrive").0 as usize].ack[0][0],
        };
        let to = match edge.to {
            Target::Task(to) if tasks[to as usize].nic != at => {
                let gate = gates.len() as u32;
                gates.push(GateSpec {
                    server: None,
                    serial_ps: 0,
                    latency_ps: input.release_ps.max(1),
                    waits: 0,
                    releases: Vec::new(),
                });
                releases.push((gate, to));
                Target::Gate(gate)
            }
            to => to,
        };
        match to {
            Target::Task(to) => tasks[to as usize].waits += 1,
            Target::Gate(gate) => gates[gate as usize].waits += 1,
        }
        let from = &mut tasks[edge.from as usize];
        match edge.when {
            EdgeMoment::Done => from.on_end.push(to),
            EdgeMoment::Got => from.on_arrival.push(to),
        }
    }
    for &(_, to) in &releases {
        tasks[to as usize].waits += 1;
    }
    for (gate, to) in releases {
        let released = if tasks[to as usize].waits == 1 {
            to
        } else {
            let between =
                TaskSpec { waits: 1, on_end: vec![Target::Task(to)], ..spec(tasks[to as usize].nic, 0, None) };
            tasks.push(between);
            tasks.len() as u32 - 1
        };
        gates[gate as usize].releases.push(released);
    }
    Expanded { tasks, own_tasks: graph.tasks.len(), gates, servers: graph.servers as usize, flows: case.flows.len() }
}
