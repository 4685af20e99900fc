//! The JSON Schema of sweep files, made from the key table, so that editors complete and check what the parser accepts.
//!
//! Layer: sweep. The schema says what a single value may be. Conditions between values, such as an axis that nothing reads or a network that is too small, are
//! checked by `plan`.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::experiment::MAX_EXPERIMENTS;
use super::file::document::{NAME_LENGTH, SWEEP_KEYS, TOP_KEYS};
use super::file::include::INCLUDED_KEYS;
use super::method::Method;
use crate::spec::{Default, KEYS, Key, KeyKind, SECTIONS};

/// The kinds of file that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaOf {
    /// A sweep file, which `hyperfold run` takes.
    Sweep,
    /// A file that a sweep includes.
    Included,
}

/// Returns the schema of a kind of file, draft 2020-12, as JSON text with a line break at its end. It uses nothing that draft 7 reads differently, because some
/// editors know no later draft.
pub fn json_schema(file: SchemaOf) -> String {
    let mut definitions = Map::new();
    for key in KEYS.iter().filter(|key| !is_of_jobs(key)) {
        definitions.insert(format!("key.{}", key.name), key_value(key));
        definitions.insert(format!("axis.{}", key.name), axis(key));
    }
    add_table(&mut definitions, "key", "");
    add_table(&mut definitions, "axis", "");
    let (title, about, names, required): (_, _, &[&str], &[&str]) = match file {
        SchemaOf::Sweep => (
            "Sweep file of hyperfold",
            "One file describes a sweep; `hyperfold run` simulates every experiment of it.",
            &TOP_KEYS,
            &["name"],
        ),
        SchemaOf::Included => (
            "Keys that sweep files of hyperfold share",
            "A sweep names this file by `include`; its own keys win.",
            &INCLUDED_KEYS,
            &[],
        ),
    };
    let properties: Map<String, Json> = names.iter().map(|name| (name.to_string(), top_value(name))).collect();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": about,
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
        "$defs": definitions,
    });
    format!("{schema:#}\n")
}

/// Whether a key only stands in `[[job]]` tables.
fn is_of_jobs(key: &Key) -> bool {
    key.name.starts_with("job.")
}

/// Returns the schema of a `[[job]]` table: its name, its own keys, and those of `[base.workload]`.
fn job_table() -> Json {
    let name = json!({
        "description": "Name of the job: letters, digits, - and _; its keys are axes by job.NAME.KEY.",
        "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$",
    });
    let mut properties = Map::from_iter([("name".to_string(), name)]);
    let mut patterns = Map::new();
    for key in &KEYS {
        if let Some(own) = key.name.strip_prefix("job.") {
            properties.insert(own.to_string(), key_value(key));
        } else if let Some(rest) = key.name.strip_prefix("workload.") {
            let target = if rest.contains('.') { &mut patterns } else { &mut properties };
            let name = if rest.contains('.') { pattern(rest) } else { rest.to_string() };
            target.insert(name, reference("key", key.name));
        }
    }
    properties.insert("nccl".to_string(), reference("key", "workload.nccl"));
    json!({
        "description": "One of several jobs on the network.", "type": "object", "required": ["name"],
        "additionalProperties": false, "properties": properties, "patternProperties": patterns,
    })
}

/// A pattern for axes over keys of jobs. The parser checks their values, because the schema does not know the jobs' names.
const JOB_AXIS: &str = "^job\\.[A-Za-z0-9_-]+\\..+$";

/// Returns the schema of a name at the top of a file.
fn top_value(name: &str) -> Json {
    match name {
        "name" => json!({
            "description": "Name of the sweep.",
            "type": "string", "minLength": 1, "maxLength": NAME_LENGTH, "pattern": "\\S",
        }),
        "seed" => json!({
            "description": "Seed of the whole sweep; replicas and random points have seeds of their own made of it.",
            "type": "integer", "minimum": 0, "maximum": i64::MAX, "default": 1,
        }),
        "include" => {
            let path = json!({ "type": "string", "minLength": 1 });
            json!({
                "description": "Files whose [base] lies below this one's, relative to this file: overlays of `hyperfold calibrate`.",
                "anyOf": [{ "type": "array", "items": path, "maxItems": 64, "uniqueItems": true }, path],
            })
        }
        "base" => json!({ "$ref": "#/$defs/key" }),
        "calibration" => json!({
            "description": "Where the values are from, as `hyperfold calibrate` writes it.", "type": "object",
        }),
        "job" => {
            json!({ "description": "Several jobs on the network, instead of [base.workload].", "type": "array", "items": job_table() })
        }
        "axes" => json!({ "$ref": "#/$defs/axis" }),
        "sweep" => {
            let keys = SWEEP_KEYS.map(|k| (k.to_string(), sweep_value(k)));
            json!({
                "description": "How experiments come from axes.",
                "type": "object", "additionalProperties": false, "properties": Map::from_iter(keys),
            })
        }
        "constraints" => json!({
            "description": "Only experiments for which every constraint holds are run.",
            "type": "array",
            "items": {
                "type": "object", "additionalProperties": false, "required": ["where"],
                "properties": { "where": {
                    "description": "A condition over dotted keys, for example: cluster.gpus >= 16 && transport.cc == \"hpcc\"",
                    "type": "string",
                } },
            },
        }),
        "experiment" => json!({
            "description": "With method = \"list\": one experiment, as dotted keys over those of [base].",
            "type": "array", "items": { "$ref": "#/$defs/key" },
        }),
        other => unreachable!("`{other}` is no key of a sweep file's top"),
    }
}

/// Returns the schema of a key of `[sweep]`.
fn sweep_value(name: &str) -> Json {
    match name {
        "method" => json!({
            "description": "grid: every combination of the axes; zip: their first values together, their second values, and so on; list: [[experiment]] tables; \
                random, lhs: points drawn from the axes; optimize: a search.",
            "enum": Method::ALL.map(Method::name), "default": Method::Grid.name(),
        }),
        "samples" => json!({
            "description": "Points of random and lhs; of optimize the experiments that run in full, one of twenty candidates if left out.",
            "type": "integer", "minimum": 1, "maximum": MAX_EXPERIMENTS, "default": 100,
        }),
        "replicas" => json!({
            "description": "Repeats of every experiment with other seeds.",
            "type": "integer", "minimum": 1, "maximum": MAX_EXPERIMENTS, "default": 1,
        }),
        "objectives" => json!({
            "description": "What optimize looks for: columns of results.csv.",
            "anyOf": [{ "type": "array", "items": { "type": "string" }, "minItems": 1, "uniqueItems": true }, { "type": "string" }],
        }),
        "limits" => json!({
            "description": "What optimize must keep to: conditions over columns of results.csv, such as cost_usd <= 3e6.",
            "anyOf": [{ "type": "array", "items": { "type": "string" }, "minItems": 1, "uniqueItems": true }, { "type": "string" }],
        }),
        other => unreachable!("`{other}` is no key of [sweep]"),
    }
}

/// Adds the definition of the table at a dotted prefix, and of the tables in it. Without a prefix this is the whole of `[base]` or `[axes]`. At any level,
/// names may be written as nested tables or with dots in quotes.
fn add_table(definitions: &mut Map<String, Json>, kind: &str, prefix: &str) {
    let (mut properties, mut patterns) = (Map::new(), Map::new());
    let mut tables = BTreeSet::new();
    for key in KEYS.iter().filter(|key| !is_of_jobs(key)) {
        let Some(rest) = below(key.name, prefix) else { continue };
        tables.extend(rest.match_indices('.').map(|(dot, _)| &rest[..dot]));
        // An axis is best written with its dotted name, so that is what editors propose there. Elsewhere dotted names are accepted, but not proposed.
        if kind == "axis" || !rest.contains('.') {
            properties.insert(rest.to_string(), reference(kind, key.name));
        } else {
            patterns.insert(pattern(rest), reference(kind, key.name));
        }
    }
    for table in tables {
        let name = if prefix.is_empty() { table.to_string() } else { format!("{prefix}.{table}") };
        if table.contains('.') {
            patterns.insert(pattern(table), reference(kind, &name));
        } else {
            properties.insert(table.to_string(), reference(kind, &name));
            add_table(definitions, kind, &name);
        }
    }
    if prefix.is_empty() {
        patterns.insert(JOB_AXIS.to_string(), json!({ "description": "A key of a [[job]]." }));
    }
    let about = match (kind, SECTIONS.iter().find(|(section, _)| *section == prefix)) {
        ("axis", _) if prefix.is_empty() => {
            "What is varied: keys of [base] by their dotted names, in quotes, each with its values. The last one varies fastest.".to_string()
        }
        (_, Some((_, about))) => format!("{about}."),
        _ if prefix.is_empty() => "Keys that all experiments share.".to_string(),
        _ => format!("Keys of {prefix}."),
    };
    let table = json!({
        "description": about, "type": "object", "additionalProperties": false, "properties": properties, "patternProperties": patterns,
    });
    definitions.insert(if prefix.is_empty() { kind.to_string() } else { format!("{kind}.{prefix}") }, table);
}

/// Returns the rest of a dotted name after a prefix.
fn below<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    if prefix.is_empty() { Some(name) } else { name.strip_prefix(prefix)?.strip_prefix('.') }
}

/// Returns a pattern that matches exactly this name.
fn pattern(name: &str) -> String {
    format!("^{}$", name.replace('.', "\\."))
}

fn reference(kind: &str, name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{kind}.{name}") })
}

/// Returns the schema of a key's value.
fn key_value(key: &Key) -> Json {
    let mut schema = Map::new();
    schema.insert("title".into(), key.name.into());
    schema.insert("description".into(), description(key).into());
    if let Some(default) = default(key) {
        schema.insert("default".into(), default);
    }
    match key.kind {
        KeyKind::Int { .. } if key.is_variable() => {
            schema
                .insert("anyOf".into(), json!([number(key), { "type": "string", "pattern": "^\\s*[+-]?[0-9]+\\s*$" }]));
        }
        KeyKind::Int { .. } | KeyKind::Float { .. } => schema.extend(number(key)),
        KeyKind::Bool => drop(schema.insert("type".into(), "boolean".into())),
        KeyKind::Choice { now, .. } => drop(schema.insert("enum".into(), now.into())),
        KeyKind::Text => {
            schema
                .insert("type".into(), if key.is_variable() { json!(["string", "integer"]) } else { "string".into() });
            schema.insert("pattern".into(), ONE_LINE.into());
        }
        KeyKind::TextOrList => {
            let item = json!({ "type": ["string", "integer"] });
            let list = json!({ "type": "array", "minItems": 1, "items": item });
            schema.insert("anyOf".into(), json!([{ "type": "string", "pattern": ONE_LINE }, list]));
        }
        KeyKind::Path | KeyKind::Files | KeyKind::Named => {
            let named = matches!(key.kind, KeyKind::Named);
            schema.insert("type".into(), if named { json!(["string", "object"]) } else { "string".into() });
            schema.insert("minLength".into(), 1.into());
            schema.insert("pattern".into(), ONE_LINE.into());
        }
    }
    schema.into()
}

/// A pattern that the texts of keys must match.
const ONE_LINE: &str = "^[^\\u0000\\n\\r]*$";

/// Returns the type and the range of a key that is a number.
fn number(key: &Key) -> Map<String, Json> {
    let (kind, min, max): (&str, Json, Json) = match key.kind {
        KeyKind::Int { min, max } => ("integer", min.into(), max.into()),
        KeyKind::Float { min, max, .. } => ("number", min.into(), max.into()),
        _ => unreachable!("only numbers have ranges"),
    };
    Map::from_iter([("type".into(), kind.into()), ("minimum".into(), min), ("maximum".into(), max)])
}

/// Returns the schema of an axis over a key.
fn axis(key: &Key) -> Json {
    let item = reference("key", key.name);
    let list = json!({ "type": "array", "minItems": 1, "items": item });
    let mut forms = vec![list];
    if matches!(key.kind, KeyKind::Int { .. } | KeyKind::Float { .. }) {
        let end = number(key);
        forms.push(json!({
            "type": "object", "additionalProperties": false, "required": ["start", "stop", "step"],
            "properties": { "start": end, "stop": end, "step": { "type": "number", "not": { "const": 0 } } },
        }));
        forms.push(json!({
            "type": "object", "additionalProperties": false, "required": ["min", "max"],
            "properties": { "min": end, "max": end, "scale": { "enum": ["linear", "log"], "default": "linear" } },
        }));
    }
    json!({
        "title": key.name,
        "description": format!("{} As an axis: a list{}.", description(key), if forms.len() > 1 {
            ", { start, stop, step } with the stop included, or with random, lhs and optimize { min, max, scale }"
        } else {
            ""
        }),
        "anyOf": forms,
    })
}

/// Describes a key: its meaning, its unit and its default.
fn description(key: &Key) -> String {
    let mut text = format!("{}.", key.plain_doc());
    if let Some(unit) = key.unit() {
        text += &format!(" Unit: {unit}.");
    }
    match key.default {
        Default::None(default) | Default::Derived(_, default) => text += &format!(" Default: {default}."),
        _ => {}
    }
    text
}

/// Returns the default if it is a value that can be written.
fn default(key: &Key) -> Option<Json> {
    match key.default {
        Default::Int(i) => Some(i.into()),
        Default::Float(x) => Some(x.into()),
        Default::Bool(b) => Some(b.into()),
        Default::Choice(s) | Default::Text(s) => Some(s.into()),
        Default::None(_) | Default::Derived(..) => None,
    }
}
