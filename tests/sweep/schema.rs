//! The JSON Schema of sweep files says what the parser says. Python's jsonschema (`scripts/setup-python.sh`) decides what a schema means.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hyperfold_config::spec::{KEYS, Key, KeyKind, SpecError, template};
use hyperfold_config::sweep::{self, SchemaOf, SetOverrides, json_schema};
use serde_json::Value as Json;
use toml::de::DeValue;

use crate::support::program::{Folder, hyperfold, python};

/// What is wrong with each document by the schema that the program prints; `None` of those that meet it.
fn verdicts(documents: &[Json]) -> Vec<Option<String>> {
    let lines: String = documents.iter().map(|d| format!("{d}\n")).collect();
    let folder = Folder::new(&[("documents.jsonl", &lines)]);
    let printed = hyperfold(folder.path(), &["schema"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    folder.write("schema.json", &printed.stdout);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check-schema.py");
    let paths = ["schema.json", "documents.jsonl"].map(|name| folder.file(name));
    let output = Command::new(python()).arg(script).args(paths).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let verdicts: Vec<_> = said.lines().map(|l| (l != "ok").then(|| l.to_string())).collect();
    assert_eq!(verdicts.len(), documents.len());
    verdicts
}

fn document(toml: &str) -> Json {
    let table: toml::Table = toml.parse().unwrap_or_else(|e| panic!("{toml}\n{e}"));
    serde_json::to_value(table).expect("a table is an object")
}

fn toml_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => toml_files(&path, into),
            false if path.extension().is_some_and(|e| e == "toml") => into.push(path),
            false => {}
        }
    }
}

#[test]
fn every_sound_sweep_file_meets_the_schema() {
    let mut paths = Vec::new();
    toml_files(Path::new("experiments"), &mut paths);
    let mut names = vec!["template".to_string()];
    let mut documents = vec![document(&template())];
    for path in paths {
        let table: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        // Models have a name too, but no table of these.
        if table.contains_key("name") && ["base", "axes", "experiment"].iter().any(|k| table.contains_key(*k)) {
            names.push(path.display().to_string());
            documents.push(serde_json::to_value(table).unwrap());
        }
    }
    assert!(documents.len() > 40, "{names:?}");
    let wrong: Vec<String> =
        names.iter().zip(verdicts(&documents)).filter_map(|(name, v)| Some(format!("{name}: {}", v?))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn included_files_have_a_schema_of_their_own() {
    let folder = Folder::new(&[
        ("good.toml", "[base.topology]\nlink_gbps = 100\n[calibration]\nrows = 3\n"),
        ("named.toml", "name = \"n\"\n[base]\n"),
        ("wrong.toml", "[base.topology]\nlink_gbps = -1\n"),
    ]);
    let printed = folder.run(&["schema", "--included"]);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    folder.write("schema.json", &printed.stdout);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check-schema.py");
    let paths = ["schema.json", "good.toml", "named.toml", "wrong.toml"].map(|name| folder.file(name));
    let output = Command::new(python()).arg(script).args(paths).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let verdicts: Vec<&str> = said.lines().map(|l| l.rsplit_once("toml: ").unwrap().1).collect();
    assert_eq!(verdicts[0], "ok");
    assert!(verdicts[1].contains("'name'") && verdicts[2].contains("-1"), "{said}");
}

#[test]
fn names_that_the_parser_does_not_know_do_not_meet_it() {
    let mut paths = Vec::new();
    toml_files(Path::new("tests/corpus/sweep"), &mut paths);
    paths.sort();
    let mut unknown = Vec::new();
    for path in paths {
        let error = sweep::load(&path, &SetOverrides::default()).err().expect("broken on purpose");
        let of_the_sweep = error.place().to_string().starts_with(&path.display().to_string());
        if of_the_sweep && matches!(error, SpecError::UnknownKey { .. } | SpecError::KeyNotAvailable { .. }) {
            unknown.push(path);
        }
    }
    let documents: Vec<Json> = unknown.iter().map(|p| document(&fs::read_to_string(p).unwrap())).collect();
    assert!(documents.len() > 8, "{unknown:?}");
    let met: Vec<_> = unknown.iter().zip(verdicts(&documents)).filter(|(_, v)| v.is_none()).map(|(p, _)| p).collect();
    assert!(met.is_empty(), "{met:?}");
}

/// Values that keys of every kind are tried with, as TOML.
const VALUES: &[&str] = &[
    "-1",
    "0",
    "1",
    "2",
    "3",
    "7",
    "4096",
    "65001",
    "1000000",
    "9223372036854775807",
    "0.5",
    "0.25",
    "1.5",
    "-0.5",
    "2.0",
    "1e13",
    "true",
    "false",
    "\"x\"",
    "\"7\"",
    "\"\"",
    "\"a\\nb\"",
    "[]",
    "[1]",
    "{}",
    "{ a = 1 }",
];

/// Whether the parser takes a value for a key.
fn is_read(key: &Key, value: &str) -> bool {
    key.read(DeValue::parse(value).unwrap().get_ref()).is_ok()
}

#[test]
fn parser_and_schema_take_the_same_values() {
    let mut cases = Vec::new();
    for key in &KEYS {
        let choices: Vec<String> = match key.kind {
            KeyKind::Choice { now, later } => now.iter().chain(later).map(|c| format!("\"{c}\"")).collect(),
            _ => Vec::new(),
        };
        for value in VALUES.iter().map(ToString::to_string).chain(choices) {
            // Left to the parser: steps of ranges, because editors calculate with doubles, and numbers of variables that are written as text or with a point.
            let off_grid = match (key.kind, value.parse::<f64>()) {
                (KeyKind::Float { quantum, .. }, Ok(x)) if quantum > 0.0 => x % quantum != 0.0,
                _ => key.name.starts_with("workload.nccl.") && ["\"7\"", "2.0", "1e13"].contains(&value.as_str()),
            };
            let off_grid = off_grid && !is_read(key, &value);
            if !off_grid {
                cases.push((key, value));
            }
        }
    }
    let text = |key: &str, value: &str| match key.strip_prefix("job.") {
        Some(of_job) => format!("name = \"t\"\n[[job]]\nname = \"a\"\n{of_job} = {value}\n"),
        None => format!("name = \"t\"\nbase.{key} = {value}\n"),
    };
    let documents: Vec<Json> = cases.iter().map(|(key, value)| document(&text(key.name, value))).collect();
    let mut wrong = Vec::new();
    let mut n_read = 0;
    for ((key, value), verdict) in cases.iter().zip(verdicts(&documents)) {
        n_read += usize::from(verdict.is_none());
        if is_read(key, value) != verdict.is_none() {
            wrong.push(format!("{} = {value}: the schema says {verdict:?}", key.name));
        }
    }
    assert!(n_read > 1000 && n_read < cases.len() - 1000, "{n_read} of {}", cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const BASE: &str = "name = \"t\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n";

#[test]
fn forms_that_the_parser_takes_meet_it() {
    let forms = [
        "",
        "[base]\n\"transport.hpcc.eta\" = 0.9\n",
        "[base.\"transport.hpcc\"]\neta = 0.9\n",
        "[base.transport]\nhpcc.eta = 0.9\n",
        "[base.transport]\n\"hpcc.eta\" = 0.9\n",
        "[base.transport]\n",
        "[base.workload.nccl]\nNCCL_ALGO = \"Ring\"\nNCCL_MIN_NCHANNELS = \"4\"\n",
        "[base.cluster.gpu]\nname = \"own\"\n",
        "[axes]\n\"transport.cc\" = [\"hpcc\", \"none\"]\n\"topology.link_gbps\" = { start = 100, stop = 400, step = 100 }\n",
        "[axes]\ntransport.cc = [\"hpcc\"]\ntransport.hpcc.eta = [0.9, 0.95]\n",
        "[axes.transport]\ncc = [\"hpcc\"]\n\"hpcc.eta\" = [0.9]\n",
        "[axes.topology.link_gbps]\nstart = 400\nstop = 100\nstep = -100\n",
        "[axes]\n\"transport.hpcc.eta\" = { min = 0.8, max = 0.98, scale = \"log\" }\n[sweep]\nmethod = \"random\"\nsamples = 3\n",
        "[sweep]\nmethod = \"optimize\"\nreplicas = 2\nobjectives = [\"makespan_ns\", \"cost_usd\"]\n[axes]\n\"transport.cc\" = [\"hpcc\", \"none\"]\n",
        "[sweep]\nobjectives = \"makespan_ns\"\n",
        "[sweep]\nmethod = \"list\"\n[[experiment]]\ntransport.cc = \"hpcc\"\n[[experiment]]\n\"transport.hpcc.eta\" = 0.9\n",
        "[[constraints]]\nwhere = \"transport.cc == \\\"hpcc\\\"\"\n",
    ];
    let texts: Vec<String> = forms.iter().map(|form| format!("{BASE}{form}")).collect();
    // What does not fit together is no concern of a schema, but every name and value is read.
    for text in &texts {
        if let Err(e) = sweep::parse(text, Path::new("t.toml"), &SetOverrides::default()) {
            assert!(matches!(e, SpecError::Sweep { .. }) || e.to_string().contains("own"), "{text}\n{e}");
        }
    }
    let found = verdicts(&texts.iter().map(|t| document(t)).collect::<Vec<_>>());
    let wrong: Vec<String> = forms.iter().zip(found).filter_map(|(form, v)| Some(format!("{form}: {}", v?))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_parser_refuses_of_one_value_does_not_meet_it() {
    let broken = [
        "seed = -1\n",
        "sede = 1\n",
        "[base.transport]\ncc = \"hpccc\"\n",
        "[base.routing]\npolicy = \"flowlet\"\n",
        "[base.transport]\npayload = 1000\n",
        "[base.transport]\npayload_bytes = \"1000\"\n",
        "[base.transport]\npayload_bytes = 0\n",
        "[base]\n\"transport.hpcc.etta\" = 0.9\n",
        "[base.topology]\ndims = true\n",
        "[axes]\n\"transport.cc\" = \"hpcc\"\n",
        "[axes]\n\"transport.cc\" = []\n",
        "[axes]\n\"transport.cc\" = [\"hpcc\", 1]\n",
        "[axes]\n\"transport.cc\" = { start = 1, stop = 2, step = 1 }\n",
        "[axes]\n\"transport.ccc\" = [\"hpcc\"]\n",
        "[axes]\n\"topology.link_gbps\" = { start = 100, stop = 400 }\n",
        "[axes]\n\"topology.link_gbps\" = { start = 100, stop = 400, step = 0 }\n",
        "[axes]\n\"topology.link_gbps\" = { start = 100, stop = 400, step = 100, scale = \"log\" }\n",
        "[axes]\n\"transport.hpcc.eta\" = { min = 0.8, max = 98 }\n[sweep]\nmethod = \"random\"\n",
        "[sweep]\nmethod = \"gird\"\n",
        "[sweep]\nsamples = 0\n",
        "[sweep]\nobjectives = []\n",
        "[[experiment]]\ntransport.cd = \"hpcc\"\n[sweep]\nmethod = \"list\"\n",
        "[[constraints]]\nexpr = \"true\"\n",
        "[[constraints]]\nwhere = 1\n",
        "[constraints]\nwhere = \"true\"\n",
    ];
    // Keys of the top stand before the first table.
    let texts: Vec<String> = broken
        .iter()
        .map(|b| if b.starts_with("se") { format!("{b}{BASE}") } else { format!("{BASE}{b}") })
        .chain(["name = 1\n".into(), "name = \" \"\n".into(), "seed = 1\n".into()])
        .collect();
    for text in &texts {
        assert!(sweep::parse(text, Path::new("t.toml"), &SetOverrides::default()).is_err(), "{text}");
    }
    let found = verdicts(&texts.iter().map(|t| document(t)).collect::<Vec<_>>());
    let met: Vec<&String> = texts.iter().zip(found).filter(|(_, v)| v.is_none()).map(|(t, _)| t).collect();
    assert!(met.is_empty(), "{met:?}");
}

#[test]
fn editors_find_meaning_unit_and_default() {
    let schema: Json = serde_json::from_str(&json_schema(SchemaOf::Sweep)).unwrap();
    let rate = &schema["$defs"]["key.topology.link_delay_ns"];
    assert_eq!(rate["default"], 1000.0);
    assert_eq!(rate["description"], "propagation delay of a link of a host, one way. Unit: nanoseconds.");
    let gpus = &schema["$defs"]["key.cluster.gpus"]["description"];
    assert!(
        gpus.as_str().unwrap().contains("Default: what the workload or the topology file needs, else 128."),
        "{gpus}"
    );
    assert_eq!(
        schema["$defs"]["key.transport.cc"]["enum"],
        serde_json::json!(["none", "dcqcn", "hpcc", "timely", "dctcp", "swift", "nscc", "rccc"])
    );
}
