//! Every function of the packet engine is in both twins, under one name: `src/engine/cpu` in Rust and `shaders` in WGSL.
//!
//! WGSL has one space of names for all files. So a name there may begin with that of its file or, for a method, of its type: `dcqcn_on_ack` is `on_ack` of
//! `cc/dcqcn.rs`, `chain_add` is `Chain::add`. What only one twin has stands in a list below, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::circles::{is_name, tokens};
use crate::crates::strip;
use crate::pages::root;

/// Shaders that are no twin of a file of the CPU engine, and what they are instead.
const WITHOUT_TWIN: &[(&str, &str)] = &[
    ("bindings", "names for what `columns` does in Rust"),
    ("systems", "what entry points share; `whole_step.rs` and `parallel` run systems on a CPU"),
    ("fused", "the loop over steps, as in `whole_step.rs`"),
    ("held_nic", "a row in registers; in Rust it is the row itself"),
    ("held_port", "a row in registers; in Rust it is the row itself"),
    ("selftest", "no part of the model"),
    ("flow_fill", "flow level, in parallel: `src/flow/maxmin` fills one link after another"),
    ("flow_rows", "rows of `flow_fill`"),
];

/// Files of the CPU engine that are no twin of a shader, and what they are instead.
const WITHOUT_SHADER: &[(&str, &str)] = &[
    ("engine", "the engine's interface"),
    ("whole_step", "a driver: systems in their order"),
    ("whole_switch", "a driver: the systems of one switch"),
    ("barrier", "threads"),
    ("cores", "threads"),
    ("phases", "threads"),
    ("side_by_side", "threads"),
    ("switch_groups", "threads"),
    ("threads", "threads"),
    ("trial", "threads"),
];

/// Functions that only the Rust twin has: their files, their names, and why.
const ONLY_IN_RUST: &[(&[&str], &[&str], &str)] = &[
    (&["lists"], &["fetch", "fetch_rest"], "prefetches into a CPU's caches"),
    (&["nic"], &["fetch_arrivals"], "prefetches into a CPU's caches"),
    (&["dcqcn"], &["advance_until", "is_recovered"], "folding asks for the state at a time"),
    (&["task"], &["is_held", "note", "due_unseen"], "folding holds queue pairs back and traces messages"),
    (&["advance"], &["advance_to"], "the clocks' minimum comes from several threads; in WGSL always"),
    (
        &["advance", "analytical", "schedule"],
        &["row"],
        "the only row is the experiment, for which kernels call the system itself",
    ),
    (&["schedule"], &["collect_into"], "folding delivers the signals of one partition"),
    (&["classify"], &["lacks_frames"], "a CPU looks after each switch by itself, a GPU after all: `frames_suffice`"),
    (&["nic"], &["row_before"], "a thread has a range of NICs"),
    (
        &["nic"],
        &["set_clock", "own_time", "event_at", "first_of_several"],
        "the row is in memory; in WGSL it is held in registers, and one loop over kinds of events does it",
    ),
    (
        &["plan"],
        &["list_by_egress"],
        "a CPU has a copy of the loop without adaptive routing; a kernel is compiled with or without it",
    ),
    (&["forward_joint"], &["first_at"], "in WGSL one loop over kinds of events does it"),
    (&["egress"], &["key", "lineage"], "methods of an event; in WGSL `port_event` makes its key"),
    (
        &["egress"],
        &["send_frame_if_idle"],
        "in WGSL both transmissions meet in one place, because every copy costs compile time",
    ),
    (&["egress"], &["duration"], "in WGSL it is a line of `start_head`"),
    (&["mmu"], &["shared_part"], "in WGSL it is a saturating difference"),
    (&["task"], &["insert", "rank"], "the search may begin near the last task; in WGSL it begins at the head"),
    (
        &["key"],
        &["as_ref", "is_before", "lineages", "run", "word_by_word"],
        "keys by reference, lineages as wide words; WGSL has neither",
    ),
    (
        &["lists"],
        &["wire_pop", "wire_push"],
        "in WGSL the wire of a row that is held: `take_arrival`, `nic_wire_push`, `held_wire_push`",
    ),
];

/// Functions that only the WGSL twin has: their files, their names, and why.
const ONLY_IN_WGSL: &[(&[&str], &[&str], &str)] = &[
    (
        &["math"],
        &[
            "wide_mul",
            "wide_div",
            "wide_digit",
            "leading_zeros",
            "rotate_left",
            "sub_sat",
            "sub_sat_u32",
            "add_sat",
            "add_sat_u32",
        ],
        "Rust's integers have it",
    ),
    (&["key"], &["no_event", "stored", "restored"], "a constant in Rust; lineages are stored as vectors"),
    (&["lists"], &["packet_row"], "reads a row or gives zeros; Rust reads no row that is not there"),
    (&["nic"], &["event_time", "event_key"], "one loop over kinds of events, see `first_of_several` in Rust"),
    (
        &["forward"],
        &["port_event", "first_port_event"],
        "one loop over kinds of events; in Rust three comparisons in `forward`",
    ),
    (&["forward"], &["own_clock"], "in Rust a method of the index"),
    (&["egress"], &["transmission_end"], "in Rust the key of `PortEvent::Completion`"),
    (&["egress"], &["completion_in_row"], "no port is held in Rust, so `completion_time` reads the row"),
    (
        &["rate"],
        &["set_window"],
        "Rust sets the window at once; here its code is in the kernel twice and not ten times",
    ),
    (&["schedule"], &["merge_gates"], "there is no memory to sort in"),
    (&["task"], &["is_before"], "in Rust tuples are compared, see `rank`"),
    (&["task"], &["begin_chain"], "in Rust the constant `Chain::NEW`"),
];

/// One file of the CPU engine or of the shaders: its path from the root, and its text.
struct Twin {
    path: String,
    text: String,
}

/// Files below `folder`, by their names without extension.
fn files(folder: &str, extension: &str) -> BTreeMap<String, Twin> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|e| e == extension) {
                let path = entry.strip_prefix(root()).unwrap().display().to_string();
                let name = entry.file_stem().unwrap().to_str().unwrap().to_string();
                let text = fs::read_to_string(&entry).unwrap();
                assert!(name == "mod" || found.insert(name, Twin { path, text }).is_none(), "two files of one name");
            }
        }
    }
    found
}

/// Functions that code defines: the type in whose `impl` block each stands, or nothing, and its name.
fn functions(code: &str) -> Vec<(String, String)> {
    let tokens = tokens(code);
    let (mut found, mut depth, mut implementing) = (Vec::new(), 0, (String::new(), 0));
    for at in 0..tokens.len() {
        match tokens[at] {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if depth <= implementing.1 {
                    implementing = (String::new(), 0);
                }
            }
            "impl" if depth == 0 => {
                let open = tokens[at..].iter().position(|t| *t == "{").map_or(at, |n| at + n);
                let head = &tokens[at..open];
                let from = head.iter().position(|t| *t == "for").unwrap_or(0);
                if let Some(name) = head[from..].iter().find(|t| t.starts_with(char::is_uppercase)) {
                    implementing = ((*name).to_string(), 0);
                }
            }
            "fn" if tokens.get(at + 1).is_some_and(|name| is_name(name)) => {
                found.push((implementing.0.clone(), tokens[at + 1].to_string()));
            }
            _ => {}
        }
    }
    found
}

fn snake_case(type_name: &str) -> String {
    let mut out = String::new();
    for c in type_name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Entries of a list for one file.
fn listed<'a>(list: &[(&[&'a str], &[&'a str], &str)], file: &str) -> BTreeSet<&'a str> {
    list.iter().filter(|entry| entry.0.contains(&file)).flat_map(|entry| entry.1.iter().copied()).collect()
}

/// What differs between two twins of file `file`: a line for each function that only one has, and for each entry of a list that is not needed.
fn differences(file: &str, rust: &str, wgsl: &str) -> Vec<String> {
    let rust: Vec<(String, String)> = functions(&strip(rust.split("#[cfg(test)]").next().unwrap_or_default()));
    let wgsl: BTreeSet<String> = functions(&strip(wgsl)).into_iter().map(|(_, name)| name).collect();
    let spellings = |(owner, name): &(String, String)| {
        let mut names = vec![name.clone(), format!("{file}_{name}")];
        if !owner.is_empty() {
            names.push(format!("{}_{name}", snake_case(owner)));
        }
        names
    };
    let mut said = Vec::new();
    let (only_rust, only_wgsl) = (listed(ONLY_IN_RUST, file), listed(ONLY_IN_WGSL, file));
    let mut matched = BTreeSet::new();
    for function in &rust {
        let in_wgsl: Vec<String> = spellings(function).into_iter().filter(|name| wgsl.contains(name)).collect();
        match (in_wgsl.is_empty(), only_rust.contains(&function.1.as_str())) {
            (true, false) => said.push(format!("{file}: only Rust has `{}`", function.1)),
            (false, true) => said.push(format!("{file}: WGSL has `{}` too", function.1)),
            _ => {}
        }
        matched.extend(in_wgsl);
    }
    for name in wgsl.difference(&matched).filter(|name| !only_wgsl.contains(name.as_str())) {
        said.push(format!("{file}: only WGSL has `{name}`"));
    }
    for name in only_wgsl.iter().filter(|name| matched.contains(**name) || !wgsl.contains(**name)) {
        said.push(format!("{file}: `{name}` need not be listed"));
    }
    let is_there = |name: &str| rust.iter().any(|function| function.1 == name);
    said.extend(only_rust.iter().filter(|name| !is_there(name)).map(|name| format!("{file}: there is no `{name}`")));
    said
}

#[test]
fn twins_have_the_same_functions() {
    let (rust, wgsl) = (files("src/engine/cpu", "rs"), files("shaders", "wgsl"));
    let mut said = Vec::new();
    for (name, shader) in &wgsl {
        if WITHOUT_TWIN.iter().any(|entry| entry.0 == name) {
            continue;
        }
        match rust.get(name) {
            Some(twin) => said.extend(differences(name, &twin.text, &shader.text)),
            None => said.push(format!("{} has no twin", shader.path)),
        }
    }
    let without = |name: &str| name == "mod" || WITHOUT_SHADER.iter().any(|entry| entry.0 == name);
    let alone = rust.iter().filter(|(name, _)| !without(name) && !wgsl.contains_key(*name));
    said.extend(alone.map(|(_, twin)| format!("{} has no twin", twin.path)));
    assert!(said.is_empty(), "{}", said.join("\n"));
}

#[test]
fn each_twin_names_the_other() {
    let (rust, wgsl) = (files("src/engine/cpu", "rs"), files("shaders", "wgsl"));
    let first_lines = |twin: &Twin| twin.text.lines().take(4).collect::<Vec<_>>().join(" ");
    for (name, shader) in wgsl.iter().filter(|(name, _)| !WITHOUT_TWIN.iter().any(|entry| entry.0 == *name)) {
        let twin = &rust[name];
        assert!(first_lines(shader).contains(&twin.path), "{} does not say where its twin is", shader.path);
        assert!(first_lines(twin).contains(&shader.path), "{} does not say where its twin is", twin.path);
    }
    for (name, _) in WITHOUT_SHADER {
        assert!(rust.contains_key(*name), "there is no {name}");
    }
    for (name, _) in WITHOUT_TWIN {
        assert!(wgsl.contains_key(*name) && Path::new(&wgsl[*name].path).starts_with("shaders"), "there is no {name}");
    }
}

#[test]
fn a_function_of_one_twin_alone_is_found() {
    let rust = "/// Sends.\npub fn send(t: u32) {}\nstruct Chain;\nimpl Chain { fn add(&self) {} }\nfn lost() {}\nfn row() {}\n#[cfg(test)]\nfn x() {}";
    let wgsl = "// fn in_a_comment() {}\nfn send(t: u32) { }\nfn chain_add() { }\nfn found() { }\nfn some_row() { }";
    assert_eq!(differences("some", rust, wgsl), ["some: only Rust has `lost`", "some: only WGSL has `found`"]);
    assert_eq!(differences("rate", "fn set_rate() {}", "fn set_rate() { }"), ["rate: `set_window` need not be listed"]);
    let same = "fn set_rate() {} fn set_window() {}";
    assert_eq!(differences("rate", same, same), ["rate: `set_window` need not be listed"]);
}
