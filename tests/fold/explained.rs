//! Explanations of what folding did: they count every packet-hop that was simulated, and change nothing.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::graphs::{OPTIONS, run, same};
use crate::support::{engine, gpu_graphs};
use hyperfold_columns::{mode, status};
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_fold::{FoldCause, FoldEngine, FoldExplanation, KeyPart, Memo};
use hyperfold_host::{prepare, unknown_to_folding};

/// `fold explain` tells a user about an all-to-all, about the same unfolded, and about flows that cannot be folded.
#[test]
fn the_command_says_why() {
    let root = tempfile::tempdir().unwrap();
    let dag = "name = \"m\"\nbase.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology = { kind = \"clos\", link_gbps = 100, uplink_gbps = 100 }\n\
        base.workload = { kind = \"collective\", op = \"all-to-all\", bytes = 3000000 }\naxes.\"fidelity.fast_forward\" = [\"exact\", \"off\"]\n";
    let flows = "name = \"f\"\nbase.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 3 }\n";
    let command = |args: &[&str]| {
        let run =
            std::process::Command::new(env!("CARGO_BIN_EXE_hyperfold")).current_dir(&root).args(args).output().unwrap();
        (run.status.code().unwrap(), String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap())
    };
    for (name, text) in [("dag", dag), ("flows", flows)] {
        std::fs::write(root.path().join(format!("{name}.toml")), text).unwrap();
        let ran = command(&["run", &format!("{name}.toml"), "--quiet", "--engine", "cpu", "--out", name]);
        assert_eq!(ran.0, 0, "{ran:?}");
    }
    let [exact, off] = ["0", "1"].map(|id| command(&["fold", "explain", "dag", id]));
    assert!(
        exact.0 == 0 && exact.1.contains("of them simulated") && exact.1.contains("why it was simulated"),
        "{exact:?}"
    );
    assert_eq!(
        off.1,
        format!("fidelity.fast_forward is \"off\" here; it was folded as \"exact\" folds it\n{}", exact.1)
    );
    let plain = command(&["fold", "explain", "flows", "0"]);
    assert!(plain.0 == 0 && plain.1.contains("nothing of it is folded: it has no collectives"), "{plain:?}");
    let absent = command(&["fold", "explain", "dag", "7"]);
    assert!(absent.0 == 2 && absent.2.contains("it has no experiment 7"), "{absent:?}");
}

#[test]
fn every_hop_has_a_cause() {
    let mut seen = FoldExplanation::default();
    let memo = Arc::<Memo>::default();
    for seed in (0..60).chain(0..60) {
        let g = gpu_graphs::case(seed);
        let mut plain = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut got = plain.clone();
        if engine::run_cpu(&mut plain) != status::DONE {
            continue;
        }
        got.exps[0].modes |= mode::FOLD | mode::MEMO;
        let explained: Arc<Mutex<FoldExplanation>> = Arc::default();
        let mut engine = FoldEngine::remembering(Arc::clone(&memo)).with_checkpoints_every(40);
        engine = engine.explaining(Arc::clone(&explained));
        let stats = run(&g.name, &mut engine, &mut got);
        same(&g.name, &got, &plain);
        let explanation = explained.lock().unwrap().clone();
        assert_eq!(explanation.hops(), stats.hops_simulated, "{}: {explanation:?}", g.name);
        for (cause, count) in explanation.causes {
            let sum = seen.causes.entry(cause).or_default();
            (sum.hops, sum.times) = (sum.hops + count.hops, sum.times + count.times);
        }
    }
    let has = |cause: fn(&FoldCause) -> bool| seen.causes.keys().any(cause);
    assert!(has(|c| matches!(c, FoldCause::NewRows)) && has(|c| matches!(c, FoldCause::Random)), "{seen:?}");
    assert!(has(|c| matches!(c, FoldCause::NewSnapshot(_))) && has(|c| matches!(c, FoldCause::OtherJoin)), "{seen:?}");
    let [queues, alone] = seen.by_part(KeyPart::Queues);
    assert!(queues > 0 && alone < queues, "{queues} {alone}");
}

/// What a plan says of a configuration is what an engine does with its tables.
#[test]
fn what_folding_does_not_know_is_said_of_configurations_as_of_tables() {
    let base = "name = \"t\"\n[base]\ncluster = { gpus = 16, gpus_per_server = 1 }\ntopology.kind = \"clos\"\n\
                topology.hosts_per_leaf = 4\ntopology.spines = 2\nworkload = { kind = \"traffic\", pattern = \"ring\", bytes = 10000 }\n";
    for (keys, part) in [
        ("", None),
        ("topology.outages = [\"leaf0 spine0\"]", None),
        ("routing.policy = \"spray\"", None),
        ("output.rtt = true", Some("output.rtt")),
        ("output.rtt_means = true", None),
        ("output.series = \"links\"\nfidelity.fast_forward = \"exact\"", Some("output.series")),
        ("topology.outages = [\"leaf0 spine0 down 1us\"]", Some("topology.outages")),
        ("transport.loss_recovery = \"selective\"", Some("\"selective\"")),
        ("transport.cc = \"nscc\"", Some("\"uec\"")),
        ("transport = { cc = \"dcqcn\", pfc = false, port_queue = true }", Some("transport.port_queue")),
        ("transport = { pfc = false, wred_drops = true }", Some("transport.wred_drops")),
        ("transport.wred_drops = true", None),
        ("transport = { pfc = false, ecn = false, wred_drops = true }", None),
        ("routing.policy = \"adaptive\"", Some("routing.policy")),
    ] {
        let sweep = sweep::parse(&format!("{base}{keys}\n"), Path::new("t.toml"), &SetOverrides::default());
        let sweep = sweep.unwrap_or_else(|e| panic!("{keys}: {e}"));
        let config = sweep.config(&sweep.experiments[0]).unwrap_or_else(|e| panic!("{keys}: {e}"));
        let said = unknown_to_folding(&config);
        assert_eq!(said.is_some(), part.is_some(), "{keys}: {said:?}");
        assert!(said.unwrap_or_default().contains(part.unwrap_or_default()), "{keys}: {said:?}");
        let tables = prepare(&config, 0).unwrap_or_else(|e| panic!("{keys}: {e}")).built.tables;
        assert_eq!(tables.exps[0].may_fold(), said.is_none(), "{keys}");
    }
}
