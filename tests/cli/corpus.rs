//! Every broken file of the corpus, given to the program: exit code 2 and the reader's message, which names the file and, where there is one, the line.
//! (`corpus` and `net_corpus` of `tests/sweep` hold the messages themselves.) Files called `ok-*` are accepted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::program::{Folder, hyperfold};
use hyperfold_config::spec::read_ns3_config;
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_llm::workload::{Cdf, StartUnit, read_flows};
use hyperfold_network::routing::{RouteFile, Router};
use hyperfold_network::topology::text::load_text;
use hyperfold_network::topology::{Network, TopologyFormat, read_topology};

fn corpus(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind)
}

fn files(kind: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(corpus(kind)).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 15, "{kind} has only {} files", files.len());
    files
}

/// Plans a sweep around every file of a kind: `base` gives the keys below `[base]` that lead to it, `read` the library's message (none: the file is in order).
fn plan_all(kind: &str, base: impl Fn(&Path) -> String, read: impl Fn(&Path) -> Option<String>) {
    let folder = Folder::new(&[]);
    let (mut broken, mut fine) = (0, 0);
    for file in files(kind) {
        let name = file.file_name().unwrap().to_string_lossy().to_string();
        folder.write("s.toml", &format!("name = \"corpus\"\n[base]\n{}", base(&file)));
        let ran = folder.run(&["plan", "s.toml"]);
        match read(&file) {
            None => {
                assert!(name.starts_with("ok"), "{kind}/{name} is broken, but it was read");
                assert_eq!(ran.code, 0, "{kind}/{name}: {}", ran.stderr);
                assert!(ran.stdout.starts_with("experiments: 1\n"), "{kind}/{name}: {}", ran.stdout);
                fine += 1;
            }
            Some(message) => {
                assert!(!name.starts_with("ok"), "{kind}/{name} is in order, but: {message}");
                assert_eq!(ran.code, 2, "{kind}/{name}: {}{}", ran.stdout, ran.stderr);
                assert!(ran.stdout.is_empty(), "{kind}/{name}: {}", ran.stdout);
                assert!(
                    ran.stderr.contains(&message),
                    "{kind}/{name}: the program says\n{}the reader says\n{message}",
                    ran.stderr
                );
                assert!(message.contains(&file.display().to_string()), "{kind}/{name}: not named: {message}");
                broken += 1;
            }
        }
    }
    println!("{kind}: {broken} broken files are exit 2, {fine} are accepted");
}

/// A path as TOML.
fn toml(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}

fn star() -> Network {
    read_topology(&corpus("topology").join("ok-star.ns3"), TopologyFormat::Ns3).unwrap().network
}

/// The keys of the network that flow and route files of the corpus are for.
fn star_keys() -> String {
    format!("topology = {{ kind = \"file\", path = {} }}\n", toml(&corpus("topology").join("ok-star.ns3")))
}

#[test]
fn sweep_files() {
    // From the crate's folder, so that the message's path is as short as the one typed.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in files("sweep") {
        let typed = file.strip_prefix(here).unwrap().display().to_string();
        let message = sweep::load(&file, &SetOverrides::default())
            .err()
            .unwrap_or_else(|| panic!("{typed} was accepted"))
            .to_string();
        let message = message.replace(&file.display().to_string(), &typed).replace(&format!("{}/", here.display()), "");
        for command in [&["plan", &typed][..], &["run", &typed, "--out", "must-not-appear"]] {
            let ran = hyperfold(here, command);
            assert_eq!(ran.code, 2, "{typed}: {}{}", ran.stdout, ran.stderr);
            assert!(
                ran.stderr.contains(&message),
                "{typed}: the program says\n{}the reader says\n{message}",
                ran.stderr
            );
            assert!(ran.stdout.is_empty(), "{typed}: {}", ran.stdout);
        }
        assert!(!here.join("must-not-appear").exists(), "{typed}: a run that is refused leaves no folder");
    }
}

#[test]
fn configuration_files() {
    let ring = "workload = { kind = \"traffic\", pattern = \"ring\" }\ncluster.gpus = 8\n";
    plan_all(
        "config",
        |file| format!("{ring}transport.config = {}\n", toml(file)),
        |file| read_ns3_config(&fs::read_to_string(file).unwrap(), file).err().map(|e| e.to_string()),
    );
}

#[test]
fn topology_files() {
    let format = |file: &Path| match file.extension().and_then(|e| e.to_str()) {
        Some("simai") => ("simai", TopologyFormat::Simai),
        Some("infragraph") => ("infragraph", TopologyFormat::InfraGraph),
        _ => ("ns3", TopologyFormat::Ns3),
    };
    plan_all(
        "topology",
        |file| {
            let ring = "workload = { kind = \"traffic\", pattern = \"ring\" }";
            format!(
                "topology = {{ kind = \"file\", format = \"{}\", path = {} }}\n{ring}\n",
                format(file).0,
                toml(file)
            )
        },
        |file| read_topology(file, format(file).1).err().map(|e| e.to_string()),
    );
}

#[test]
fn flow_files() {
    let unit = |file: &Path| {
        let name = file.display().to_string();
        match (name.ends_with(".auto.txt"), name.contains("seconds")) {
            (true, _) => ("", None),
            (_, true) => ("start_unit = \"s\", ", Some(StartUnit::S)),
            _ => ("start_unit = \"ns\", ", Some(StartUnit::Ns)),
        }
    };
    let net = star();
    plan_all(
        "flows",
        |file| format!("{}workload = {{ kind = \"flows\", {}path = {} }}\n", star_keys(), unit(file).0, toml(file)),
        |file| read_flows(file, &net, unit(file).1).err().map(|e| e.to_string()),
    );
}

#[test]
fn route_files() {
    let net = star();
    let flow_file = corpus("flows").join("ok-ns.txt");
    let flows = read_flows(&flow_file, &net, Some(StartUnit::Ns)).unwrap().flows;
    let router = Router::new(&net);
    let workload = format!("workload = {{ kind = \"flows\", start_unit = \"ns\", path = {} }}\n", toml(&flow_file));
    plan_all(
        "routes",
        |file| format!("{}{workload}routing = {{ policy = \"file\", path = {} }}\n", star_keys(), toml(file)),
        |file| {
            let read = || -> Result<(), String> {
                let text = load_text(file).map_err(|e| e.to_string())?;
                let routes =
                    RouteFile::parse(&file.display().to_string(), &text, &net, &flows).map_err(|e| e.to_string())?;
                flows.iter().try_for_each(|f| router.paths(f, &routes).map(drop)).map_err(|e| e.to_string())
            };
            read().err()
        },
    );
}

#[test]
fn distributions() {
    plan_all(
        "cdf",
        |file| {
            format!(
                "workload = {{ kind = \"traffic\", pattern = \"poisson\", cdf = {} }}\ncluster.gpus = 8\n",
                toml(file)
            )
        },
        |file| Cdf::read(file).err().map(|e| e.to_string()),
    );
}
