//! Prints the annotated sweep file of `hyperfold init` and the reference of all keys from the key table.
//!
//! Layer: spec.

use std::fmt::Write;

use super::key::{Default, Key, KeyKind, without_links};
use super::keys::{KEYS, SECTIONS};

const HEAD: &str = "\
# A sweep of hyperfold: every key of [base] can be an axis. Lines that are commented out show the defaults.
# `hyperfold plan FILE` says what it expands to, `hyperfold run FILE --out DIR` runs it.
name = \"my-sweep\"
seed = 1
";

const TAIL: &str = "
[sweep]
method = \"grid\"              # grid | zip | list | random | lhs | optimize
# samples = 100              # random, lhs; optimize: experiments to run in full, one of twenty candidates if left out
# objectives = [\"iteration_time_ns\", \"cost_usd\"]   # optimize: columns of results.csv; iteration_time_ns, else makespan_ns, if left out
# limits = [\"cost_usd <= 3e6\"]   # optimize: conditions over columns of results.csv that what is chosen must meet
# replicas = 1               # repeats with other seeds

# Axes: lists, or { start, stop, step } (the stop included); with random, lhs and optimize also { min, max, scale = \"linear\" | \"log\" }.
# The last one varies fastest.
[axes]
\"transport.cc\" = [\"dcqcn\", \"hpcc\"]
\"workload.pattern\" = [\"ring\", \"all-to-all\"]

# Only experiments for which every constraint holds are run.
# [[constraints]]
# where = \"transport.cc == \\\"hpcc\\\" || workload.pattern != \\\"ring\\\"\"

# With method = \"list\", experiments instead of axes:
# [[experiment]]
# transport.cc = \"hpcc\"
# topology.link_gbps = 200

# Several jobs on the network instead of [base.workload], each with keys of that table and its own GPUs.
# [[job]]
# name = \"train\"
# kind = \"model\"
# model = \"gpt3-7b\"
# gpus = 8
# placement = \"packed\"       # packed | spread | random | rail | a list of GPUs
# start_us = 0.0
# arrival_us = 0.0           # above 0: drawn, Poisson arrivals
";

/// Keys that the template sets, so that it runs as it is.
const SET: &[(&str, &str)] = &[
    ("cluster.gpus", "16"),
    ("topology.kind", "\"rail-optimized\""),
    ("workload.kind", "\"traffic\""),
    ("workload.bytes", "1000000"),
];

/// Returns an annotated, valid sweep file to start from.
pub fn template() -> String {
    let mut out = String::from(HEAD);
    for (section, about) in SECTIONS.iter().filter(|(section, _)| *section != "job") {
        let about = without_links(about);
        let mut table = String::new();
        for key in KEYS.iter().filter(|k| k.name.split('.').next() == Some(section)) {
            let (parent, leaf) = key.name.rsplit_once('.').expect("every key of the table is dotted");
            if parent != table {
                let comment = if table.is_empty() { format!("  # {about}") } else { String::new() };
                let _ = write!(out, "\n[base.{parent}]{comment}\n");
                table = parent.to_string();
            }
            let line = match SET.iter().find(|(name, _)| *name == key.name) {
                Some((_, value)) => format!("{leaf} = {value}"),
                None => match key.default {
                    Default::None(text) | Default::Derived(_, text) => format!("# {leaf}: {text}"),
                    _ => format!("# {leaf} = {}", key.default_text()),
                },
            };
            let _ = writeln!(out, "{line:<34} # {}", remark(key));
        }
    }
    out.push_str(TAIL);
    out
}

/// Returns a key's doc line and its choices, if it has any.
fn remark(key: &Key) -> String {
    match key.kind {
        KeyKind::Choice { now, .. } if now.len() > 1 => format!("{}: {}", key.plain_doc(), now.join(" | ")),
        _ => key.plain_doc(),
    }
}

/// Describes the accepted values of a key as briefly as a table of keys needs it. The page's head says how to read it.
fn accepts_briefly(key: &Key) -> String {
    match key.kind {
        KeyKind::Int { min, max } if min != max => format!("whole, {min} to {max}"),
        KeyKind::Float { min, max, .. } => format!("{min} to {max}"),
        KeyKind::Choice { .. } => key.accepts().trim_start_matches("one of ").to_string(),
        KeyKind::Path => "a path".to_string(),
        KeyKind::Files => "a path, or what the paths of several files begin with".to_string(),
        _ => key.accepts(),
    }
}

/// Returns every key of `[base]` as Markdown tables: name, accepted values, default, meaning.
pub fn reference_markdown() -> String {
    let mut out = String::from(
        "# Keys of `[base]`\n\nNumbers lie between the two that are named, and are whole where it says so. Of several texts one is taken. Paths are \
         relative to the sweep file.\n",
    );
    for (section, about) in SECTIONS {
        let _ = write!(out, "\n## {section}: {about}\n\n| key | accepts | default | meaning |\n|---|---|---|---|\n");
        for key in KEYS.iter().filter(|k| k.name.split('.').next() == Some(section)) {
            let cells = [accepts_briefly(key), key.default_text(), key.doc.to_string()].map(|c| c.replace('|', "\\|"));
            let _ = writeln!(out, "| `{}` | {} | {} | {} |", key.name, cells[0], cells[1], cells[2]);
        }
    }
    out
}
