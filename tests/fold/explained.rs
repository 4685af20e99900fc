//! Explanations of what folding did: they count every packet-hop that was simulated, and change nothing.

use std::sync::{Arc, Mutex};

use crate::graphs::{OPTIONS, run, same};
use crate::support::{engine, gpu_graphs};
use hyperfold_columns::{mode, status};
use hyperfold_fold::{FoldCause, FoldEngine, FoldExplanation, KeyPart, Memo};

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
    assert!(plain.0 == 0 && plain.1.contains("nothing of it is folded"), "{plain:?}");
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
