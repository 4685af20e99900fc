//! Broken files, one for each diagnostic: every message names the file, the line and what would be right. Files called `ok-*` must read.

use std::fs;
use std::path::{Path, PathBuf};

use hyperfold_llm::workload::{Cdf, Flow, StartUnit, read_flows};
use hyperfold_network::routing::{RouteFile, Router};
use hyperfold_network::topology::text::load_text;
use hyperfold_network::topology::{Network, TopologyFormat, read_topology};

fn corpus(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind)
}

/// One line a file: the error it gives, or `ok` and what was read.
fn messages(kind: &str, read: impl Fn(&Path) -> Result<String, String>) -> String {
    let folder = corpus(kind);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().to_string();
        let shown = format!("{}{}", folder.display(), std::path::MAIN_SEPARATOR);
        let row = match read(&file) {
            Ok(what) => {
                assert!(name.starts_with("ok"), "{name} is broken, but it was read: {what}");
                format!("{name} ok: {what}")
            }
            Err(e) => {
                assert!(!name.starts_with("ok"), "{name} is in order, but: {e}");
                assert!(e.contains(&name), "{name}: the message does not name the file: {e}");
                e.replace(&shown, "")
            }
        };
        rows.push(row);
    }
    rows.join("\n")
}

fn star() -> Network {
    read_topology(&corpus("topology").join("ok-star.ns3"), TopologyFormat::Ns3).unwrap().network
}

#[test]
fn topologies() {
    let read = |path: &Path| {
        let format = match path.extension().and_then(|e| e.to_str()) {
            Some("simai") => TopologyFormat::Simai,
            Some("infragraph") => TopologyFormat::InfraGraph,
            _ => TopologyFormat::Ns3,
        };
        let file = read_topology(path, format).map_err(|e| e.to_string())?;
        let net = &file.network;
        let (nodes, links, ranks) = (net.nodes.len(), net.links.len(), &net.ranks);
        Ok(format!(
            "{nodes} nodes, {links} links, ranks {ranks:?}, NVLink {:?}, per server {:?}, GPU {:?}, left out {}{}",
            net.nvlink,
            file.gpus_per_server,
            file.gpu,
            file.left_out,
            file.notes.iter().map(|note| format!(", {note}")).collect::<String>()
        ))
    };
    insta::assert_snapshot!(messages("topology", read));
    let missing = read_topology(Path::new("no/such/file.txt"), TopologyFormat::Ns3).unwrap_err().to_string();
    assert!(missing.starts_with("no/such/file.txt: cannot be read: "), "{missing}");
}

#[test]
fn flows() {
    let net = star();
    let read = |path: &Path| {
        let auto = path.to_string_lossy().ends_with(".auto.txt");
        let unit = match path.to_string_lossy().contains("seconds") {
            _ if auto => None,
            true => Some(StartUnit::S),
            false => Some(StartUnit::Ns),
        };
        let file = read_flows(path, &net, unit).map_err(|e| e.to_string())?;
        let flow = |f: &Flow| {
            format!("{}: {}-{} :{} {} B at {} ps", f.id, f.src_rank, f.dst_rank, f.sport, f.bytes, f.start_ps)
        };
        Ok(format!("{}; left out {}", file.flows.iter().map(flow).collect::<Vec<_>>().join(", "), file.left_out))
    };
    insta::assert_snapshot!(messages("flows", read));
}

#[test]
fn routes() {
    let net = star();
    let flows = read_flows(&corpus("flows").join("ok-ns.txt"), &net, Some(StartUnit::Ns)).unwrap().flows;
    let router = Router::new(&net);
    let read = |path: &Path| {
        let text = load_text(path).map_err(|e| e.to_string())?;
        let file = RouteFile::parse(&path.display().to_string(), &text, &net, &flows).map_err(|e| e.to_string())?;
        let route = |f: &Flow| {
            let p = router.paths(f, &file).map_err(|e| e.to_string())?;
            Ok(format!("{}: data {:?} ACK {:?}", f.id, p.data, p.ack))
        };
        Ok(flows.iter().map(route).collect::<Result<Vec<_>, String>>()?.join(", "))
    };
    insta::assert_snapshot!(messages("routes", read));
}

#[test]
fn distributions() {
    let read = |path: &Path| {
        let cdf = Cdf::read(path).map_err(|e| e.to_string())?;
        Ok(format!("mean {}, median {}", cdf.mean(), cdf.quantile(0.5)))
    };
    insta::assert_snapshot!(messages("cdf", read));
}
