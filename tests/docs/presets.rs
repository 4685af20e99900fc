//! The page of presets is what `assets` holds; `HYPERFOLD_WRITE_DOCS=1` writes it anew.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> Table {
    fs::read_to_string(root().join(path)).unwrap().parse().unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A text of a preset, with what would end a cell written otherwise.
fn text(table: &Table, key: &str) -> String {
    table.get(key).and_then(Value::as_str).unwrap_or_default().replace('|', "/")
}

fn aliases(table: &Table) -> String {
    let names = table.get("aliases").and_then(Value::as_array).into_iter().flatten();
    names.map(|a| format!("`{}`", a.as_str().unwrap())).collect::<Vec<_>>().join(", ")
}

/// A table's own value, or that of what it is like.
fn inherited<'a>(all: &'a Table, table: &'a Table, key: &str) -> Option<&'a Value> {
    table.get(key).or_else(|| {
        let like = table.get("like")?.as_str()?;
        inherited(all, all.get(like)?.as_table()?, key)
    })
}

fn number(value: Option<&Value>) -> String {
    match value {
        Some(Value::Integer(n)) => n.to_string(),
        Some(Value::Float(x)) => x.to_string(),
        _ => String::new(),
    }
}

/// Adds a name to those of its group, in the order in which groups come.
fn add(groups: &mut Vec<(String, Vec<String>)>, group: String, name: String) {
    match groups.iter_mut().find(|(common, _)| *common == group) {
        Some((_, names)) => names.push(name),
        None => groups.push((group, vec![name])),
    }
}

/// Rows of two cells: what a group has in common, and its names.
fn write_groups(out: &mut String, groups: &[(String, Vec<String>)]) {
    for (group, names) in groups {
        let _ = writeln!(out, "| {} | {group} |", names.join(", "));
    }
}

fn page() -> String {
    let mut out = String::from(
        "# Presets\n\nNames that keys take, as `assets` has them. Each file says where its figures come from. Names in brackets mean the same.\n\n\
         ## Models: `workload.model`\n\n| names | source |\n|---|---|\n",
    );
    let mut families: Vec<String> = fs::read_dir(root().join("assets/models"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    families.sort();
    let mut sources = Vec::new();
    for family in families {
        let file = read(&format!("assets/models/{family}"));
        for model in file["model"].as_array().unwrap() {
            let model = model.as_table().unwrap();
            let (name, aliases) = (text(model, "name"), aliases(model));
            let others = if aliases.is_empty() { String::new() } else { format!(" ({aliases})") };
            add(&mut sources, text(model, "source"), format!("`{name}`{others}"));
        }
    }
    write_groups(&mut out, &sources);
    out.push_str("\n## GPUs: `cluster.gpu`\n\n| name | other names | GiB | BF16 TFLOP/s | links | Gb/s | source |\n|---|---|---|---|---|---|---|\n");
    let gpus = read("assets/gpus.toml");
    let mut links_sources = Vec::new();
    for (name, gpu) in &gpus {
        let gpu = gpu.as_table().unwrap();
        let [memory, peak, rate] =
            ["memory_gib", "bf16_tflops", "links_gbps"].map(|key| number(inherited(&gpus, gpu, key)));
        let links = inherited(&gpus, gpu, "links").and_then(Value::as_str).unwrap();
        let rate = if links == "by-server" { String::new() } else { rate };
        let from = inherited(&gpus, gpu, "links_source").and_then(Value::as_str).unwrap();
        add(&mut links_sources, from.to_string(), format!("`{name}`"));
        let (aliases, source) = (aliases(gpu), text(gpu, "source"));
        let _ = writeln!(out, "| `{name}` | {aliases} | {memory} | {peak} | {links} | {rate} | {source} |");
    }
    out.push_str("\n| links of | source |\n|---|---|\n");
    write_groups(&mut out, &links_sources);
    out.push_str(
        "\n## Servers: `cluster.server`\n\n| name | GPUs | NICs | NIC Gb/s | source |\n|---|---|---|---|---|\n",
    );
    let servers = read("assets/servers/servers.toml");
    // The table leaves out servers that no key takes: only measurements of them are known.
    for (name, server) in servers.iter().filter(|(name, _)| hyperfold_config::spec::SERVERS.contains(&name.as_str())) {
        let server = server.as_table().unwrap();
        let [gpus, nics, rate] = ["gpus", "nics", "nic_gbps"].map(|key| number(server.get(key)));
        let _ = writeln!(out, "| `{name}` | {gpus} | {nics} | {rate} | {} |", text(server, "source"));
    }
    out.push_str("\n## Switch chips: `topology.switch`\n\n| name | Tb/s | buffer, MB | most ports | fastest port, Gb/s | source |\n|---|---|---|---|---|---|\n");
    let asset = read("assets/switches.toml");
    for chip in hyperfold_config::spec::switch_chips() {
        let published = asset[chip.name].get("buffer_mb");
        let buffer_mb = if published.is_some() { number(published) } else { "not published".to_string() };
        let (tbps, ports, gbps) = (chip.capacity_gbps as f64 / 1e3, chip.max_ports, chip.max_port_gbps);
        let _ = writeln!(out, "| `{}` | {tbps} | {buffer_mb} | {ports} | {gbps} | {} |", chip.name, chip.source);
    }
    out.push_str("\n## Network adapters: `cluster.nic`\n\nWhat they decide where the sweep file says nothing else.\n\n| name | `routing.policy` | `transport.cc` | `transport.loss_recovery` | source |\n|---|---|---|---|---|\n");
    for nic in hyperfold_config::spec::adapters() {
        let _ =
            writeln!(out, "| `{}` | {} | {} | {} | {} |", nic.name, nic.policy, nic.cc, nic.loss_recovery, nic.source);
    }
    out.push_str("\n## Flow sizes: `workload.cdf`\n\n| name | file |\n|---|---|\n");
    let mut files: Vec<String> = fs::read_dir(root().join("assets/flow_cdf"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    for file in files {
        let _ = writeln!(out, "| `{}` | `assets/flow_cdf/{file}` |", file.trim_end_matches(".csv"));
    }
    out += "\n## Recipes: `workload.recipe`\n\nDefaults of keys of workloads, for those that are not written. What a precision sets stands behind it.\n\n| names | sets | stated in |\n|---|---|---|\n";
    for recipe in read("assets/recipes/recipes.toml")["recipe"].as_array().unwrap() {
        let recipe = recipe.as_table().unwrap();
        let names: Vec<String> =
            recipe["names"].as_array().unwrap().iter().map(|n| format!("`{}`", n.as_str().unwrap())).collect();
        let keys = |table: &Table| table.iter().map(|(k, v)| format!("`{k} = {v}`")).collect::<Vec<_>>().join(", ");
        let mut sets = keys(recipe["defaults"].as_table().unwrap());
        for (precision, table) in recipe.get("by_precision").and_then(Value::as_table).into_iter().flatten() {
            let _ = write!(sets, "; {precision}: {}", keys(table.as_table().unwrap()));
        }
        let _ = writeln!(out, "| {} | {sets} | {} |", names.join(", "), text(recipe, "source"));
    }
    out
}

#[test]
fn the_reference_of_presets_is_current() {
    let path = root().join("docs/reference/presets.md");
    let text = page();
    if std::env::var_os("HYPERFOLD_WRITE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/reference/presets.md is not what assets hold: run this test with HYPERFOLD_WRITE_DOCS=1"
    );
}
