//! The links between GPUs of one server, from the GPU's own table: `assets/gpus.toml`, or a user's table.
//!
//! Layer: spec. Reads no files of users: `host` reads the table of a file. `compute` reads what a GPU computes from the same tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use serde::Deserialize;

/// The links between the GPUs of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Switches: every pair communicates at a GPU's full rate.
    NvSwitch,
    /// A link from each GPU to each other one.
    Mesh,
    /// No link except PCIe.
    Pcie,
}

/// The links of a GPU to the others of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuLinks {
    /// The links between the GPUs.
    pub kind: LinkKind,
    /// Rate of all links of a GPU together, one direction, Mbit/s.
    mbps: u64,
    /// Number of a GPU's links in a mesh; 0 for the other kinds.
    mesh_links: u32,
    /// Latency from a GPU to another, ps.
    pub latency_ps: u64,
}

impl GpuLinks {
    /// Returns the rate of one GPU to all others in a server of `gpus` GPUs, one direction, Gbit/s. A mesh has one link per pair, so fewer GPUs use fewer
    /// links. `None`: the mesh has too few links.
    pub fn gbps_in_server(&self, gpus: u32) -> Option<f64> {
        let peers = gpus.saturating_sub(1);
        match self.kind {
            LinkKind::Mesh if peers > self.mesh_links => None,
            LinkKind::Mesh => Some((self.mbps * u64::from(peers.max(1)) / u64::from(self.mesh_links)) as f64 / 1e3),
            LinkKind::NvSwitch | LinkKind::Pcie => Some(self.mbps as f64 / 1e3),
        }
    }

    /// Returns the most GPUs that a mesh joins; `None` for the other kinds.
    pub fn max_gpus(&self) -> Option<u32> {
        (self.kind == LinkKind::Mesh).then_some(self.mesh_links + 1)
    }
}

/// Knowledge about a GPU's links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinksOfGpu {
    /// The links of this GPU are known.
    Known(GpuLinks),
    /// Servers join this GPU in several ways, which the text names.
    ByServer(String),
    /// The GPU's table has no keys of links.
    Unsaid,
    /// The GPU is described in a file, which is not read here, or there is no such GPU.
    Elsewhere,
}

/// The keys of a GPU's table about links.
#[derive(Clone, Debug, Default, Deserialize)]
struct Entry {
    like: Option<String>,
    aliases: Option<Vec<String>>,
    links: Option<String>,
    links_gbps: Option<f64>,
    mesh_links: Option<u32>,
    links_ns: Option<f64>,
    links_source: Option<String>,
}

fn assets() -> &'static BTreeMap<String, Entry> {
    static READ: OnceLock<BTreeMap<String, Entry>> = OnceLock::new();
    READ.get_or_init(|| {
        toml::from_str(include_str!("../../../assets/gpus.toml"))
            .expect("the asset is part of the program and a test reads it")
    })
}

/// The GPUs of the assets by each of their names, all in lower case.
fn by_name() -> &'static HashMap<&'static str, &'static Entry> {
    static NAMES: OnceLock<HashMap<&'static str, &'static Entry>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let names = |(key, entry): (&'static String, &'static Entry)| {
            let aliases = entry.aliases.iter().flatten();
            std::iter::once(key).chain(aliases).map(|name| (name.as_str(), entry)).collect::<Vec<_>>()
        };
        assets().iter().flat_map(names).collect()
    })
}

fn entry(name: &str) -> Option<&'static Entry> {
    let names = by_name();
    names.get(name).or_else(|| names.get(name.trim().to_ascii_lowercase().as_str())).copied()
}

/// Returns the links of a GPU from the value of `cluster.gpu`: a name, the path of a file, or an inline table.
///
/// # Errors
/// A table whose keys of links contradict each other, or whose `like` names no GPU.
pub fn links_of(gpu: &str) -> Result<LinksOfGpu, String> {
    if gpu.starts_with('{') {
        let table = format!("gpu = {gpu}").parse::<toml::Table>().map_err(|e| e.message().to_string())?;
        return table["gpu"].as_table().map_or(Ok(LinksOfGpu::Unsaid), links_of_table);
    }
    match entry(gpu) {
        Some(entry) => resolved(entry, 0),
        None => Ok(LinksOfGpu::Elsewhere),
    }
}

/// Returns the links of a GPU from its table.
///
/// # Errors
/// Keys that contradict each other, or a `like` that names no GPU.
pub fn links_of_table(table: &toml::Table) -> Result<LinksOfGpu, String> {
    let entry: Entry = table.clone().try_into().map_err(|e: toml::de::Error| e.message().to_string())?;
    resolved(&entry, 0)
}

/// Depth of `like` from which it counts as circular.
const MAX_INHERITED: u32 = 8;

fn resolved(own: &Entry, depth: u32) -> Result<LinksOfGpu, String> {
    if let Some(like) = own.like.as_deref().filter(|like| entry(like).is_none()) {
        let known: Vec<&str> = assets().keys().map(String::as_str).collect();
        return Err(format!("like = {like:?} names no GPU; one of {} would be right", known.join(", ")));
    }
    // A circular `like` is refused where the GPU is read.
    let like = own.like.as_deref().and_then(entry).filter(|_| depth < MAX_INHERITED);
    let inherited = like.map_or(Ok(LinksOfGpu::Unsaid), |like| resolved(like, depth + 1))?;
    let inherited_links = match &inherited {
        LinksOfGpu::Known(links) => Some(*links),
        _ => None,
    };
    let kind = match own.links.as_deref() {
        Some("nvswitch") => LinkKind::NvSwitch,
        Some("mesh") => LinkKind::Mesh,
        Some("pcie") => LinkKind::Pcie,
        Some("by-server") => return Ok(LinksOfGpu::ByServer(own.links_source.clone().unwrap_or_default())),
        Some(other) => return Err(format!("links = {other:?}; nvswitch, mesh, pcie or by-server would be right")),
        None => match (inherited_links, own.links_gbps.or(own.links_ns).is_some() || own.mesh_links.is_some()) {
            (Some(links), _) => links.kind,
            (None, false) => return Ok(inherited),
            (None, true) => {
                return Err("links is missing beside links_gbps; nvswitch, mesh or pcie would be right".to_string());
            }
        },
    };
    let same = inherited_links.filter(|links| links.kind == kind);
    // Another kind has another rate, so the rate must be given.
    let mbps = match (own.links_gbps, same) {
        (Some(gbps), _) if (0.001..=8796.0).contains(&gbps) => (gbps * 1e3).round() as u64,
        (Some(gbps), _) => {
            return Err(format!("links_gbps = {gbps} is out of range; from 0.001 to 8796 would be right"));
        }
        (None, Some(links)) => links.mbps,
        (None, None) => {
            return Err("links_gbps is missing beside links: Gbit/s of one GPU, all its links together".to_string());
        }
    };
    let mesh_links = match (kind, own.mesh_links, same) {
        (LinkKind::Mesh, Some(n), _) if (1..=1023).contains(&n) => n,
        (LinkKind::Mesh, Some(n), _) => {
            return Err(format!("mesh_links = {n} is out of range; from 1 to 1023 would be right"));
        }
        (LinkKind::Mesh, None, Some(links)) => links.mesh_links,
        (LinkKind::Mesh, None, None) => {
            return Err("mesh_links is missing: links of one GPU, one to each other GPU".to_string());
        }
        (_, Some(n), _) => return Err(format!("mesh_links = {n} has no place beside links that are no mesh")),
        (_, None, _) => 0,
    };
    let own_ns = own.links_ns.or(same.map(|links| links.latency_ps as f64 / 1e3));
    let ns = own_ns.unwrap_or(if kind == LinkKind::Pcie { PCIE_NS } else { LINK_NS });
    if !(0.001..=1e9).contains(&ns) {
        return Err(format!("links_ns = {ns} is out of range; from 0.001 to 1e9 would be right"));
    }
    Ok(LinksOfGpu::Known(GpuLinks { kind, mbps, mesh_links, latency_ps: (ns * 1e3).round() as u64 }))
}

/// Latency from a GPU to another if none is given, ns: our choices.
const LINK_NS: f64 = 500.0;
const PCIE_NS: f64 = 1500.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn known(gpu: &str) -> GpuLinks {
        match links_of(gpu) {
            Ok(LinksOfGpu::Known(links)) => links,
            other => panic!("{gpu}: {other:?}"),
        }
    }

    #[test]
    fn every_gpu_of_the_assets_says_what_is_known_of_its_links() {
        for name in assets().keys() {
            match links_of(name) {
                Ok(LinksOfGpu::Known(links)) => assert!(links.mbps > 0 && links.latency_ps > 0, "{name}"),
                Ok(LinksOfGpu::ByServer(why)) => assert!(!why.is_empty(), "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        let figures = |gpu: &str| (known(gpu).kind, known(gpu).gbps_in_server(8), known(gpu).latency_ps);
        assert_eq!(figures("H100"), (LinkKind::NvSwitch, Some(3600.0), 500_000));
        assert_eq!(figures("b300"), (LinkKind::NvSwitch, Some(7200.0), 500_000));
        assert_eq!(figures("l20"), (LinkKind::Pcie, Some(256.0), 1_500_000));
        assert_eq!(figures("h100-pcie"), (LinkKind::Pcie, Some(512.0), 1_500_000));
        assert!(matches!(links_of("v100"), Ok(LinksOfGpu::ByServer(why)) if why.contains("DGX-2")));
        assert_eq!(links_of("h1000"), Ok(LinksOfGpu::Elsewhere));
    }

    #[test]
    fn a_mesh_has_a_link_to_each_other_gpu() {
        let mesh = known("mi300x");
        assert_eq!((mesh.kind, mesh.max_gpus()), (LinkKind::Mesh, Some(8)));
        assert_eq!([8, 4, 2, 9].map(|n| mesh.gbps_in_server(n)), [Some(3584.0), Some(1536.0), Some(512.0), None]);
    }

    #[test]
    fn tables_say_their_links_or_inherit_them() {
        assert_eq!(links_of("{ bf16_tflops = 100.0 }"), Ok(LinksOfGpu::Unsaid));
        assert_eq!(known("{ like = \"b200\", bf16_tflops = 3000.0 }"), known("b200"));
        let own = known("{ like = \"h100\", links_gbps = 400.0 }");
        assert_eq!((own.kind, own.gbps_in_server(8)), (LinkKind::NvSwitch, Some(400.0)));
        for (table, word) in [
            ("{ links = \"nvlink\" }", "nvswitch, mesh, pcie"),
            ("{ links_gbps = 400.0 }", "links is missing"),
            ("{ like = \"h100\", links = \"pcie\" }", "links_gbps is missing"),
            ("{ links = \"mesh\", links_gbps = 400.0 }", "mesh_links is missing"),
            ("{ links = \"pcie\", links_gbps = 400.0, mesh_links = 3 }", "no mesh"),
            ("{ links = \"pcie\", links_gbps = -1.0 }", "links_gbps = -1"),
        ] {
            let error = links_of(table).unwrap_err();
            assert!(error.contains(word), "{table}: {error}");
        }
    }
}
