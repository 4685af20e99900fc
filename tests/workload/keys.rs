//! Every key of `cluster` and `workload`: where something reads it, another value gives another typed configuration.

use std::collections::BTreeSet;
use std::path::Path;

use hyperfold_config::spec::{Config, KEYS, Key, KeyId, KeyKind, Value, Values};

const MODEL: &[(KeyId, &str)] = &[
    (KeyId::WorkloadKind, "model"),
    (KeyId::Model, "mixtral-8x7b"),
    (KeyId::Tp, "2"),
    (KeyId::Pp, "2"),
    (KeyId::Dp, "4"),
    (KeyId::Ep, "2"),
    (KeyId::Zero, "1"),
    (KeyId::ComputeJitter, "0.1"),
    (KeyId::StragglerRanks, "0"),
    (KeyId::QpsPerConnection, "2"),
];

/// Configurations in which, together, every key matters that matters anywhere.
fn contexts() -> Vec<Vec<(KeyId, &'static str)>> {
    let file = |kind| vec![(KeyId::WorkloadKind, kind), (KeyId::WorkloadPath, "a"), (KeyId::Gpus, "16")];
    let traffic = |pattern| vec![(KeyId::WorkloadKind, "traffic"), (KeyId::Pattern, pattern), (KeyId::Gpus, "16")];
    let mut all: Vec<Vec<(KeyId, &str)>> =
        ["simai", "chakra", "htsim", "goal", "kineto", "flight-recorder", "dag", "flows"].map(file).to_vec();
    all.extend(["incast", "permutation", "ring", "all-to-all", "poisson", "storage"].map(traffic));
    all.push([&traffic("storage")[..], &[(KeyId::EveryUs, "100")]].concat());
    all.push(MODEL.to_vec());
    // What the configuration above names is left to NCCL's variables here.
    all.push(vec![(KeyId::WorkloadKind, "model"), (KeyId::Model, "gpt3-13b"), (KeyId::Tp, "8")]);
    all.push(vec![(KeyId::WorkloadKind, "model"), (KeyId::Model, "gpt3-13b"), (KeyId::Precision, "fp8")]);
    all.push(vec![(KeyId::WorkloadKind, "collective"), (KeyId::Op, "all-reduce"), (KeyId::Gpus, "16")]);
    all.push(vec![
        (KeyId::WorkloadKind, "collective"),
        (KeyId::Op, "all-reduce"),
        (KeyId::Gpus, "16"),
        (KeyId::NcclQps, "2"),
    ]);
    all.push(vec![
        (KeyId::WorkloadKind, "collective"),
        (KeyId::Op, "all-reduce"),
        (KeyId::Gpus, "16"),
        (KeyId::Kernels, "k.csv"),
        (KeyId::ServerXml, "a.xml"),
    ]);
    all.push(vec![
        (KeyId::WorkloadKind, "collective"),
        (KeyId::Op, "all-reduce"),
        (KeyId::Gpus, "16"),
        (KeyId::LatencyScale, "2"),
    ]);
    let serving = [
        (KeyId::WorkloadKind, "inference"),
        (KeyId::Model, "gpt3-13b"),
        (KeyId::Gpus, "64"),
        (KeyId::WorkloadPath, "a"),
    ];
    all.push(serving.to_vec());
    let split = [KeyId::Tp, KeyId::Pp].map(|k| (k, "2"));
    let apart = [(KeyId::Serving, "disaggregated"), (KeyId::PrefillDp, "8")];
    all.push([&serving[..], &split[..], &apart[..]].concat());
    all.push([&serving[..], &[(KeyId::Requests, "trace")]].concat());
    all.push([&serving[..], &[(KeyId::DraftTokens, "2"), (KeyId::PrefixTokens, "100")]].concat());
    all.push(vec![
        (KeyId::WorkloadKind, "model"),
        (KeyId::Model, "llama3-8b"),
        (KeyId::Framework, "fsdp2"),
        (KeyId::Dp, "16"),
    ]);
    all.push(vec![
        (KeyId::WorkloadKind, "model"),
        (KeyId::Model, "llama3-8b"),
        (KeyId::Framework, "deepspeed"),
        (KeyId::Zero, "3"),
        (KeyId::Dp, "16"),
    ]);
    all.push(vec![
        (KeyId::WorkloadKind, "model"),
        (KeyId::Model, "llama3-8b"),
        (KeyId::Pp, "4"),
        (KeyId::Dp, "4"),
        (KeyId::OverlapGrad, "true"),
    ]);
    all.push([MODEL, &[(KeyId::Kernels, "k.csv")]].concat());
    all.push([MODEL, &[(KeyId::Classes, "first,1")]].concat());
    all.push([MODEL, &[(KeyId::SequenceParallel, "false")]].concat());
    all.push([MODEL, &[(KeyId::Mode, "flow")]].concat());
    all.push([MODEL, &[(KeyId::Recompute, "selective")]].concat());
    all.push(vec![
        (KeyId::WorkloadKind, "collective"),
        (KeyId::Op, "all-reduce"),
        (KeyId::Gpus, "16"),
        (KeyId::NcclTopoFile, "a.xml"),
    ]);
    all.push(vec![
        (KeyId::WorkloadKind, "collective"),
        (KeyId::Op, "dispatch"),
        (KeyId::Gpus, "16"),
        (KeyId::EpDispatcher, "deepep"),
        (KeyId::EpGroups, "8"),
        (KeyId::EpTopGroups, "4"),
    ]);
    all
}

fn value(key: &Key, text: &str) -> Value {
    match key.kind {
        KeyKind::Int { .. } => Value::Int(text.parse().unwrap()),
        KeyKind::Float { .. } => Value::Float(text.parse().unwrap()),
        KeyKind::Bool => Value::Bool(text == "true"),
        KeyKind::Choice { now, .. } => {
            Value::Choice(now.iter().find(|c| **c == text).unwrap_or_else(|| panic!("{} = {text}", key.name)))
        }
        _ => Value::Text(text.into()),
    }
}

/// Other values of a key, some of which go with the rest of a configuration.
fn others(key: &Key, now: &Value) -> Vec<Value> {
    let found: Vec<Value> = match key.kind {
        KeyKind::Int { min, max } => {
            let i = if let Value::Int(i) = now { *i } else { min };
            [i + 1, i - 1, i * 2, i / 2, i + 8, i + 16, min, 4 * i]
                .into_iter()
                .filter(|x| (min..=max).contains(x))
                .map(Value::Int)
                .collect()
        }
        KeyKind::Float { min, max, .. } => {
            let x = if let Value::Float(x) = now { *x } else { min };
            [x * 2.0, x / 2.0, x + 1.0, x + 0.001]
                .into_iter()
                .filter(|x| (min..=max).contains(x))
                .map(Value::Float)
                .collect()
        }
        KeyKind::Bool => vec![Value::Bool(true), Value::Bool(false)],
        KeyKind::Choice { now, .. } => now.iter().map(|c| Value::Choice(c)).collect(),
        _ => ["WebSearch", "FbHdp", "pp-dp-ep-cp-tp", "all", "none", "1", "LOC", "b.toml", "Ring", "pp:8", "mlp,moe"]
            .map(|t| Value::Text(t.into()))
            .to_vec(),
    };
    found.into_iter().filter(|v| v != now).collect()
}

/// All that a configuration says to the layers below, but for the values themselves.
fn typed(values: &Values) -> Option<String> {
    let c = Config::new(values.clone(), Path::new("/"), 1).ok()?;
    let transport = c.transport(400_000_000_000).ok()?;
    Some(format!(
        "{:?} {:?} {:?} {:?} {transport:?} {} {} {}",
        c.cluster,
        c.topology,
        c.workload,
        c.classes,
        c.fresh_qp(),
        c.jitter_seed(),
        c.traffic_seed()
    ))
}

fn with(context: &[(KeyId, &str)], change: Option<(KeyId, Value)>) -> Values {
    let mut values = Values::layered(&[]);
    for (k, text) in context {
        values.set(*k, value(hyperfold_config::spec::key(*k), text));
    }
    if let Some((k, v)) = change {
        values.set(k, v);
    }
    values.derive();
    values
}

#[test]
fn what_is_read_changes_the_configuration() {
    let mut unread: BTreeSet<&str> = BTreeSet::new();
    let mut wrong = Vec::new();
    for key in KEYS
        .iter()
        .filter(|k| k.name.starts_with("workload.") || k.name.starts_with("cluster.") || k.id == KeyId::FreshQp)
    {
        let mut read = false;
        for context in contexts() {
            if context.iter().any(|(k, _)| *k == KeyId::WorkloadKind && key.id == KeyId::WorkloadKind) {
                read = true;
                continue;
            }
            let base = with(&context, None);
            let before = typed(&base).unwrap_or_else(|| panic!("{context:?}"));
            let changed: Vec<Values> =
                others(key, base.get(key.id)).into_iter().map(|v| with(&context, Some((key.id, v)))).collect();
            // A key that only matters with a value (a path) is read once it has one.
            let relevant: Vec<&Values> = changed.iter().filter(|v| key.applies(&base) || key.applies(v)).collect();
            if relevant.is_empty() {
                continue;
            }
            read = true;
            let outcomes: Vec<String> = relevant.iter().filter_map(|v| typed(v)).collect();
            // If the degrees of parallelism fix the number of GPUs, the effect is that another number is refused.
            if key.id == KeyId::Gpus && outcomes.len() < relevant.len() {
                continue;
            }
            if outcomes.iter().all(|after| *after == before) {
                wrong.push(format!("{} in {context:?}: {} values, none with an effect", key.name, outcomes.len()));
            }
        }
        if !read {
            unread.insert(key.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Variables of NCCL that nothing here can follow; a run that gives one says so.
    let without_effect =
        "IB_DISABLE IB_GID_INDEX IB_TC NET NET_GDR_LEVEL NET_SHARED_BUFFERS NVB_DISABLE P2P_DIRECT_DISABLE";
    // The form of a flow file is that of flows, which are no program. A run corrects its own server alone, and no context names one.
    let expected: Vec<String> = ["workload.format", "workload.leave_out_run"]
        .into_iter()
        .map(str::to_string)
        .chain(without_effect.split(' ').map(|v| format!("workload.nccl.NCCL_{v}")))
        .collect();
    assert_eq!(unread.into_iter().collect::<Vec<_>>(), expected);
}
