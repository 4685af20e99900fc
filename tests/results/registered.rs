//! Policies that a program registers: compared with built-in ones at the same bytes for any thread count, told apart by their versions, and never the end of
//! a run.

use hyperfold::{
    Behind, ClusterJob, EngineChoice, ExperimentRecord, FailureModel, FlowKey, FlowPaths, GpuShare, Placement,
    QueueKey, Request, RouteError, Router, RoutingPolicy, Scheduler, Servers, Session, SessionError, Status,
    SweepBuilder,
};

use crate::support::program::Folder;

struct LargestFirst;

impl Scheduler for LargestFirst {
    fn key(&self, job: &ClusterJob) -> QueueKey {
        [u64::from(u32::MAX - job.gpus), job.submit_ms]
    }

    fn behind(&self) -> Behind {
        Behind::Overtakes
    }
}

/// A scheduler that cannot order jobs of more than 8 GPUs.
struct Panics;

impl Scheduler for Panics {
    fn key(&self, job: &ClusterJob) -> QueueKey {
        assert!(job.gpus <= 8, "{} GPUs are\ntoo many", job.gpus);
        [job.submit_ms, 0]
    }

    fn behind(&self) -> Behind {
        Behind::Backfills
    }
}

/// The last servers first; with `twice`, the first of its GPUs is given twice.
struct LastFirst {
    twice: bool,
}

impl Placement for LastFirst {
    fn whole_servers(&self) -> bool {
        false
    }

    fn place(&self, servers: &Servers, request: &mut Request<'_>) -> Option<Vec<GpuShare>> {
        let mut left = request.gpus;
        let mut shares = Vec::new();
        for server in (0..servers.len()).rev().filter(|s| request.may_use(servers, *s)) {
            let n = servers.free_of(server).count_ones().min(left);
            if n > 0 {
                shares.push(servers.lowest(server, n));
                left -= n;
            }
        }
        if self.twice {
            shares.extend(shares.first().copied());
        }
        (left == 0).then_some(shares)
    }
}

/// Gaps of one length; without one, it has no answer.
struct Regular(Option<f64>);

impl FailureModel for Regular {
    fn gap(&self, _draw: &mut dyn FnMut() -> f64) -> f64 {
        self.0.unwrap_or(f64::NAN)
    }
}

/// The path with this number; with `cut`, it ends before its end.
#[derive(Debug)]
struct Numbered {
    cut: bool,
}

impl RoutingPolicy for Numbered {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        let nics = router.hashed_path(flow, 1, link)?;
        let (first, last) = (nics[0], nics[nics.len() - 1]);
        let mut data = router.shortest_path(first, last, u64::from(flow.src_rank));
        if self.cut {
            data.pop();
        }
        Ok(FlowPaths { data: vec![data], ack: vec![router.shortest_path(last ^ 1, first ^ 1, 0)] })
    }
}

/// A session with policies that work, at this version.
fn session(version: &str) -> Session {
    let with = |session: Session| {
        session
            .scheduler("largest", version, LargestFirst)?
            .placement("last", version, LastFirst { twice: false })?
            .failure_model("regular", version, Regular(Some(1.0)))?
            .routing_policy("numbered", version, Numbered { cut: false })
    };
    with(Session::new(EngineChoice::Cpu)).unwrap_or_else(|e| panic!("{e}"))
}

fn cluster(session: &Session) -> SweepBuilder {
    session
        .sweep("cluster")
        .set("fidelity.mode", "job")
        .set("cluster.gpus", 64)
        .set("jobs.count", 60)
        .set("jobs.max_gpus", 32)
        .set("failures.host_mtbf_h", 50)
}

fn routes(session: &Session) -> SweepBuilder {
    session
        .sweep("routes")
        .set("cluster.gpus", 16)
        .set("cluster.gpus_per_server", 1)
        .set("topology.kind", "fat-tree")
        .set("workload.kind", "traffic")
        .set("workload.pattern", "all-to-all")
        .set("workload.bytes", 20_000)
}

fn records(session: &Session, sweep: &SweepBuilder) -> Vec<ExperimentRecord> {
    let sweep = sweep.build().unwrap_or_else(|e| panic!("{e}"));
    let results = session.run(&sweep).unwrap_or_else(|e| panic!("{e}"));
    results.map(|result| result.unwrap_or_else(|e| panic!("{e}")).record).collect()
}

#[test]
fn own_and_built_in_policies_of_one_sweep_give_the_same_bytes_on_any_threads() {
    let folder = Folder::new(&[]);
    let own = session("1");
    let sweeps = [
        cluster(&own)
            .axis("scheduler.policy", ["backfill", "largest"])
            .axis("scheduler.placement", ["topology", "last"])
            .axis("failures.model", ["exponential", "regular"]),
        routes(&own).axis("routing.policy", ["ecmp", "numbered", "spray"]).axis("transport.cc", ["dcqcn", "hpcc"]),
    ];
    for (sweep, name) in sweeps.iter().zip(["cluster", "routes"]) {
        let mut all: Vec<Vec<u8>> = Vec::new();
        for threads in [1, 4] {
            let out = folder.file(&format!("{name}-{threads}"));
            let summary = own.clone().threads(threads).run_into(&sweep.build().unwrap(), &out).unwrap();
            assert!(summary.records.iter().all(|r| r.status == Status::Ok), "{:?}", summary.records);
            all.push(std::fs::read(out.join("results.csv")).unwrap());
        }
        assert!(all[0] == all[1], "{name}");
        let text = String::from_utf8(all.remove(0)).unwrap();
        assert!(text.contains(if name == "routes" { "numbered" } else { "largest,last,regular" }), "{text}");
    }
    // They differ from each other, so they were called.
    let found: Vec<String> = records(&own, &sweeps[0]).iter().map(|r| format!("{:?}", r.cluster)).collect();
    for other in 1..found.len() {
        assert_ne!(found[0], found[other], "experiment {other}");
    }
}

#[test]
fn a_new_version_is_another_experiment_and_is_not_mixed_with_old_results() {
    let folder = Folder::new(&[]);
    let sweep = |version: &str| cluster(&session(version)).axis("scheduler.policy", ["backfill", "largest"]);
    let (old, new) = (records(&session("1"), &sweep("1")), records(&session("2"), &sweep("2")));
    assert_eq!(old[0].exp_key, new[0].exp_key, "a built-in one");
    assert_ne!(old[1].exp_key, new[1].exp_key);
    let out = folder.file("out");
    session("1").run_into(&sweep("1").build().unwrap(), &out).unwrap();
    let manifest = folder.text("out/manifest.json");
    assert!(manifest.contains("# scheduler.policy.largest = registered, version 1"), "{manifest}");
    let again = |version: &str| session(version).resume(true).run_into(&sweep(version).build().unwrap(), &out);
    assert_eq!(again("1").unwrap().records.len(), 2);
    let why = again("2").unwrap_err();
    let difference = "scheduler.policy.largest: registered, version 1 there, registered, version 2 here";
    assert!(matches!(why, SessionError::Results(_)) && why.to_string().contains(difference), "{why}");
}

#[test]
fn faults_end_their_experiment_and_no_other() {
    let faulty = Session::new(EngineChoice::Cpu)
        .scheduler("panics", "1", Panics)
        .and_then(|session| session.placement("twice", "1", LastFirst { twice: true }))
        .and_then(|session| session.failure_model("nan", "1", Regular(None)))
        .and_then(|session| session.routing_policy("cut", "1", Numbered { cut: true }))
        .unwrap_or_else(|e| panic!("{e}"));
    for (sweep, part) in [
        (
            cluster(&faulty).axis("scheduler.policy", ["backfill", "panics"]),
            "scheduler.policy = \"panics\" (registered, version 1): it panicked: ",
        ),
        (
            cluster(&faulty).axis("scheduler.placement", ["topology", "twice"]),
            "scheduler.placement = \"twice\" (registered, version 1): it placed a job on GPUs",
        ),
        (
            cluster(&faulty).axis("failures.model", ["exponential", "nan"]),
            "failures.model = \"nan\" (registered, version 1): it returned a gap of NaN",
        ),
        (
            routes(&faulty).axis("routing.policy", ["ecmp", "cut"]),
            "routing.policy = \"cut\" (registered, version 1), flow 0: a data path ends at node",
        ),
    ] {
        let found = records(&faulty, &sweep);
        assert_eq!(found.iter().map(|r| r.status).collect::<Vec<_>>(), [Status::Ok, Status::Failed], "{part}");
        let why = &found[1].error;
        assert!(why.contains(part) && !why.contains('\n') && !why.contains("please report"), "{why}");
    }
}

#[test]
fn wrong_names_lead_to_the_registered_ones() {
    let own = session("1");
    let build = |policy: &str| cluster(&own).set("scheduler.policy", policy).build().map(|_| ()).unwrap_err();
    let why = build("largets").to_string();
    assert!(why.contains("did you mean \"largest\"?") && why.contains("\"priority\", \"largest\""), "{why}");
    let refused = |name: &str, version: &str| own.clone().scheduler(name, version, LargestFirst).unwrap_err();
    for (name, version, part) in
        [("backfill", "1", "Hyperfold's own"), ("largest", "2", "registered already"), ("x y", "1", "lower-case")]
    {
        let why = refused(name, version).to_string();
        assert!(why.contains(part), "{why}");
    }
    // The command line knows no registered policy, and says who does.
    let text =
        "name = \"s\"\nbase.fidelity.mode = \"job\"\nbase.cluster.gpus = 64\nbase.scheduler.policy = \"largest\"\n";
    let folder = Folder::new(&[("s.toml", text)]);
    let done = folder.run(&["run", "s.toml", "--out", "out"]);
    assert!(done.code == 2 && done.stderr.contains("a program that registers it"), "{}", done.stderr);
    let loaded = own.load(folder.file("s.toml")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.experiments.len(), 1);
}
