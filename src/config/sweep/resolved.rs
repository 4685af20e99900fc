//! The sweep as it was understood, for the manifest.
//!
//! Layer: sweep. Reading the text again gives the same experiments. Keys that were left to a default stay comments, because a configuration file or another
//! axis value may still decide them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use super::file::axis::Points;
use super::file::document::Document;
use super::method::Method;
use crate::spec::{Default, KEYS, SECTIONS, Value, Values, key};

/// Returns the whole sweep as TOML.
pub(super) fn toml(doc: &Document) -> String {
    let text = |s: &str| Value::Text(s.into()).to_toml();
    let mut out = format!("name = {}\nseed = {}\n", text(&doc.name), doc.seed);
    for line in registered(doc) {
        let _ = writeln!(out, "# {line}");
    }
    let base: Vec<_> = doc.base.iter().map(|(k, v, _)| (*k, v.clone())).collect();
    let values = Values::layered(&[&base]);
    // Keys of the section `job` stand in `[[job]]` tables.
    for (section, _) in SECTIONS.iter().filter(|(section, _)| *section != "job") {
        let mut table = "";
        for k in KEYS.iter().filter(|k| k.name.split('.').next() == Some(section)) {
            let (parent, leaf) = k.name.rsplit_once('.').expect("every key of the table is dotted");
            if parent != table {
                let _ = write!(out, "\n[base.{parent}]\n");
                table = parent;
            }
            let _ = match (values.given(k.id), k.default) {
                (true, _) => writeln!(out, "{leaf} = {}", values.get(k.id).to_toml()),
                (false, Default::None(why) | Default::Derived(_, why)) => writeln!(out, "# {leaf}: {why}"),
                (false, _) => writeln!(out, "# {leaf} = {}", k.default_text()),
            };
        }
    }
    let names: Vec<Arc<str>> = doc.jobs.iter().map(|job| Arc::clone(&job.name)).collect();
    for job in &doc.jobs {
        let _ = write!(out, "\n[[job]]\nname = {}\n", text(&job.name));
        // If `--set` has written a key again, only its last value is kept.
        let last = |i: &usize| job.values[i + 1..].iter().all(|(k, ..)| *k != job.values[*i].0);
        for (k, v, _) in (0..job.values.len()).filter(last).map(|i| &job.values[i]) {
            let name = key(*k).name;
            let name = name.strip_prefix("workload.").or_else(|| name.strip_prefix("job.")).unwrap_or(name);
            let _ = writeln!(out, "{name} = {}", v.to_toml());
        }
    }
    let _ = write!(out, "\n[sweep]\nmethod = \"{}\"\nreplicas = {}\n", doc.method.name(), doc.replicas);
    if matches!(doc.method, Method::Random | Method::Lhs)
        || (doc.method == Method::Optimize && doc.samples_place.is_some())
    {
        let _ = writeln!(out, "samples = {}", doc.samples);
    }
    for (key, asked) in [("objectives", &doc.objectives), ("limits", &doc.limits)] {
        if let Some((listed, _)) = asked {
            let list: Vec<String> = listed.iter().map(|o| text(o)).collect();
            let _ = writeln!(out, "{key} = [{}]", list.join(", "));
        }
    }
    if !doc.axes.is_empty() {
        out.push_str("\n[axes]\n");
        for a in &doc.axes {
            let _ = writeln!(out, "\"{}\" = {}", a.name, a.written);
        }
    }
    for c in &doc.constraints {
        let _ = write!(out, "\n[[constraints]]\nwhere = {}\n", text(&c.text));
    }
    for row in &doc.rows {
        out.push_str("\n[[experiment]]\n");
        for (k, v) in &row.values {
            let _ = writeln!(out, "{} = {}", k.name(&names), v.to_toml());
        }
    }
    out
}

/// Returns a line for each registered policy that the sweep names, with its version, so that results of two versions differ in it.
fn registered(doc: &Document) -> BTreeSet<String> {
    let base = doc.base.iter().map(|(_, value, _)| value);
    let axes = doc.axes.iter().flat_map(|axis| match &axis.points {
        Points::List(values) => values.as_slice(),
        Points::Range { .. } => &[],
    });
    let rows = doc.rows.iter().flat_map(|row| &row.values).map(|(_, value)| value);
    let of_program = |value: &Value| match value {
        Value::Registered(policy) => Some(policy.identity_line()),
        _ => None,
    };
    base.chain(axes).chain(rows).filter_map(of_program).collect()
}
