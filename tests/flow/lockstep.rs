//! Runs whose rates another solver finds, all at once: outcomes are those of runs that solve for themselves. The solver stands in for a device.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyperfold_columns::Tables;
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_engine::fair_rates::{FlowsChange, NumberedNetworks, RateChange, RateNetwork, RateSolver, ResidentRates};
use hyperfold_engine::{Engine, EngineError, SliceOutcome};
use hyperfold_flow::maxmin::{LinkShare, MaxMin};
use hyperfold_host::{QueuedExperiment, RunEvent, RunOptions};

/// What the solver was asked for.
#[derive(Clone, Debug, Default)]
struct Asked {
    loads: Arc<AtomicUsize>,
    /// Networks of each solution.
    solutions: Arc<Mutex<Vec<usize>>>,
}

/// A CPU engine with a solver of rates, which has no room for each third network, and fails after so many solutions.
struct WithSolver {
    asked: Asked,
    fewest: usize,
    fails_after: usize,
}

impl Engine for WithSolver {
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError> {
        CpuEngine.advance(batch, packet_limit, stop)
    }

    fn slice(&self) -> Duration {
        CpuEngine.slice()
    }

    fn rates(&mut self) -> Option<&mut dyn RateSolver> {
        Some(self)
    }
}

impl RateSolver for WithSolver {
    fn fewest(&self) -> usize {
        self.fewest
    }

    fn load(&mut self, networks: &[RateNetwork]) -> Result<NumberedNetworks, EngineError> {
        self.asked.loads.fetch_add(1, Ordering::Relaxed);
        let mut solvers = Vec::new();
        let mut numbers = Vec::new();
        for (k, network) in networks.iter().enumerate() {
            let has_room = k % 3 != 2;
            numbers.push(has_room.then_some(solvers.len() as u32));
            if has_room {
                solvers.push(solver(network));
            }
        }
        let (asked, fails_after) = (self.asked.clone(), self.fails_after);
        Ok((Box::new(Solvers { solvers, asked, fails_after }), numbers))
    }
}

/// The CPU's solver of a network.
fn solver(network: &RateNetwork) -> MaxMin {
    let mut rates = MaxMin::new(&network.capacities, network.share_bits > 0);
    assert_eq!(rates.rate_bits(), 0, "capacities come in units of rate");
    rates.tolerate(network.tolerance_shift);
    let shares = |first: u32, n: u32| -> Vec<LinkShare> {
        let of = &network.crossings[first as usize..(first + n) as usize];
        of.iter().map(|&[link, share]| LinkShare { link, share }).collect()
    };
    for c in &network.carriers {
        rates.add(&shares(c.first, c.n), &shares(c.first_ack, c.n_ack));
    }
    rates
}

#[derive(Debug)]
struct Solvers {
    solvers: Vec<MaxMin>,
    asked: Asked,
    fails_after: usize,
}

impl ResidentRates for Solvers {
    fn solve(&mut self, changes: &[(u32, &[FlowsChange])]) -> Result<Vec<RateChange>, EngineError> {
        let mut solutions = self.asked.solutions.lock().unwrap();
        if solutions.len() == self.fails_after {
            return Err(EngineError::Device("the device was lost: unplugged".into()));
        }
        solutions.push(changes.len());
        let mut answer = Vec::new();
        for &(network, changes) in changes {
            let rates = &mut self.solvers[network as usize];
            changes.iter().for_each(|c| rates.set_flows(c.carrier, c.flows));
            let mut changed = Vec::new();
            rates.solve(&mut |carrier| changed.push(carrier));
            changed.sort_unstable();
            changed.dedup();
            answer.extend(changed.into_iter().map(|carrier| RateChange {
                network,
                carrier,
                rate: rates.rate(carrier),
            }));
        }
        // A device gives them in any order.
        answer.reverse();
        Ok(answer)
    }
}

/// Flows of several kinds, one experiment as packets among them.
const SWEEP: &str = r#"
name = "lockstep"

[base]
cluster = { gpus = 16, gpus_per_server = 4 }
topology = { kind = "rail-optimized", link_gbps = 100, uplink_gbps = 100, oversubscription = 2.0 }
workload = { kind = "traffic", pattern = "all-to-all", bytes = 100000 }
fidelity.mode = "flow"

[sweep]
method = "list"

[[experiment]]
[[experiment]]
routing.policy = "spray"
[[experiment]]
workload = { kind = "collective", op = "all-reduce", bytes = 400000, algorithm = "tree" }
fidelity.mode = "packet"
[[experiment]]
workload = { kind = "collective", op = "all-reduce", bytes = 4000000, algorithm = "ring" }
[[experiment]]
workload = { kind = "collective", op = "all-to-all", bytes = 4000000 }
[[experiment]]
workload = { kind = "traffic", pattern = "incast", fan_in = 5, bytes = 100000 }
[[experiment]]
workload = { kind = "collective", op = "all-reduce", bytes = 4000000, algorithm = "ring" }
fidelity = { mode = "flow", join = "collectives" }
[[experiment]]
workload = { kind = "traffic", pattern = "ring", bytes = 100000 }
"#;

/// How each experiment ended.
fn run(engine: Box<dyn Engine>, most: usize) -> Result<BTreeMap<u64, String>, EngineError> {
    let sweep = sweep::parse(SWEEP, Path::new("s.toml"), &SetOverrides::default()).unwrap();
    let tasks = sweep.experiments.iter();
    let tasks = tasks.map(|e| QueuedExperiment { exp_id: e.exp_id, config: sweep.config(e).unwrap() });
    let mut ends = BTreeMap::new();
    let options = RunOptions { batch: most, ..RunOptions::default() };
    hyperfold_host::run::<EngineError>(
        tasks.collect::<Vec<_>>().into_iter(),
        engine,
        &options,
        || false,
        &mut |news| {
            if let RunEvent::Ended(e) = news {
                assert!(e.result.is_ok(), "{:?}", e.result);
                ends.insert(e.exp_id, format!("{:?}", e.result));
            }
            Ok(())
        },
    )?;
    Ok(ends)
}

#[test]
fn outcomes_are_those_of_runs_that_solve_for_themselves() {
    let alone = run(Box::new(CpuEngine), 100).unwrap();
    assert_eq!(alone.len(), 8);
    for most in [100, 3] {
        let asked = Asked::default();
        let engine = WithSolver { asked: asked.clone(), fewest: 1, fails_after: usize::MAX };
        assert_eq!(run(Box::new(engine), most).unwrap(), alone, "batches of {most}");
        let (loads, solutions) = (asked.loads.load(Ordering::Relaxed), asked.solutions.lock().unwrap());
        if most == 100 {
            // Seven at flow level, of which each third has no room; all five begin together.
            assert_eq!((loads, solutions[0]), (1, 5));
            let all: usize = solutions.iter().sum();
            assert!(solutions.len() < all, "{} solutions for {all} instants", solutions.len());
        } else {
            assert!(loads > 1, "each batch is brought to the solver");
        }
    }
}

#[test]
fn a_batch_that_is_too_small_is_left_to_the_cpu() {
    let asked = Asked::default();
    let engine = WithSolver { asked: asked.clone(), fewest: 8, fails_after: usize::MAX };
    assert_eq!(run(Box::new(engine), 100).unwrap(), run(Box::new(CpuEngine), 100).unwrap());
    assert_eq!(asked.loads.load(Ordering::Relaxed), 0, "seven are at flow level");
}

#[test]
fn a_solver_that_is_lost_breaks_the_engine_as_a_lost_device_does() {
    let engine = WithSolver { asked: Asked::default(), fewest: 1, fails_after: 3 };
    assert_eq!(run(Box::new(engine), 100).unwrap_err().to_string(), "the device was lost: unplugged");
}
