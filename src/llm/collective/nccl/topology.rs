//! Reads a server from NCCL's XML form (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): CPUs, PCIe switches, GPUs with their NVLinks, NICs with their ports.
//!
//! Layer: collective. It gives each GPU's nearest NICs and the distance between them in NCCL's path types. It reads text and opens no file.

use super::env::PathLevel;
use super::tuning::tuning;
use crate::collective::base_time::BaseTimes;
use crate::collective::server::Server;
use crate::collective::system::{Arch, Cpu, ServerInterconnect};
use roxmltree::{Document, Node};

/// An error in a topology file, and its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct XmlError {
    /// Number of the line, from 1.
    pub line: u32,
    /// The fault, in words for the user.
    pub what: String,
}

/// The path from a GPU to a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuNic {
    /// Number of the GPU.
    pub gpu: u32,
    /// Number of the NIC.
    pub nic: u32,
    /// Distance between the two.
    pub level: PathLevel,
    /// Rate of the narrowest PCIe link on the path or of the NIC, one direction, in bit/s.
    pub bps: u64,
}

/// The content of a topology file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NcclTopology {
    /// Server that the file describes.
    pub server: Server,
    /// Names of the NICs that are used, by number.
    pub nics: Vec<String>,
    /// The path of every GPU to every NIC.
    pub ways: Vec<GpuNic>,
}

/// A GPU found in the file.
struct Gpu {
    sm: u32,
    /// Element indices from the root down, with the rate of each PCIe link on the path in bit/s.
    path: Vec<(usize, u64)>,
    nvlinks: u32,
    switched: bool,
    dev: u32,
}

/// A NIC found in the file.
struct Nic {
    name: String,
    path: Vec<(usize, u64)>,
    bps: u64,
    ports: u32,
}

/// Everything found in the file.
#[derive(Default)]
struct Found {
    gpus: Vec<Gpu>,
    nics: Vec<Nic>,
    cpu: Option<Cpu>,
    elements: usize,
}

/// Parses the text of a topology file.
pub fn topology(text: &str) -> Result<NcclTopology, XmlError> {
    // The library compares each attribute with all before it.
    if text.split('<').any(|tag| tag.matches('=').count() > MAX_ATTRIBUTES) {
        return Err(XmlError { line: 1, what: format!("an element has more than {MAX_ATTRIBUTES} attributes") });
    }
    let document = Document::parse(text).map_err(|e| {
        let (pos, what) = (e.pos(), e.to_string());
        XmlError { line: pos.row, what: what.strip_suffix(&format!(" at {pos}")).unwrap_or(&what).to_string() }
    })?;
    let root = document.root_element();
    if name(root) != "system" {
        return Err(error(root, format!("the root element is <{}>, it must be <system>", name(root))));
    }
    let mut found = Found::default();
    for child in root.children().filter(Node::is_element) {
        if name(child) != "cpu" {
            return Err(error(child, format!("<{}> in <system>; only <cpu> may be there", name(child))));
        }
        found.cpu.get_or_insert(match child.attribute("vendor") {
            Some("GenuineIntel") => Cpu::Intel,
            Some("AuthenticAMD") => Cpu::Amd,
            _ => Cpu::Other,
        });
        visit(child, &mut Vec::new(), &mut found)?;
    }
    if found.gpus.is_empty() {
        return Err(error(root, "the file has no <gpu>"));
    }
    assemble(found)
}

/// The largest number that a topology file may have: a NIC of 10 Tb/s in Mb/s. Products with it fit into 64 bits.
const LARGEST: u64 = 10_000_000;
/// Maximum nesting: deeper than any server, shallow enough for the stack.
const MAX_DEPTH: usize = 64;
/// Largest number of attributes of an element, far above any of NCCL's.
const MAX_ATTRIBUTES: usize = 1000;

fn name<'a>(element: Node<'a, '_>) -> &'a str {
    element.tag_name().name()
}

fn error(element: Node, what: impl Into<String>) -> XmlError {
    XmlError { line: element.document().text_pos_at(element.range().start).row, what: what.into() }
}

fn number(element: Node, attribute: &str) -> Result<u64, XmlError> {
    let missing = || error(element, format!("<{}> has no {attribute}", name(element)));
    let value = element.attribute(attribute).ok_or_else(missing)?;
    let number: u64 =
        value.parse().map_err(|_| error(element, format!("{attribute} = \"{value}\" must be a whole number")))?;
    if number > LARGEST {
        return Err(error(element, format!("{attribute} = \"{value}\" must be at most {LARGEST}")));
    }
    Ok(number)
}

/// A PCIe link's rate in bit/s as NCCL counts it: 12 GB/s for 8 GT/s x16, in proportion. An unknown link counts as 8 GT/s x16.
fn pci_bps(element: Node) -> Result<u64, XmlError> {
    let speed = element.attribute("link_speed").unwrap_or("");
    let gts: f64 = match speed.split_whitespace().next() {
        None | Some("Unknown") => 8.0,
        Some(n) => n
            .parse()
            .ok()
            .filter(|g| *g > 0.0 && *g <= 1e4)
            .ok_or_else(|| error(element, format!("link_speed = \"{speed}\" must be like \"16.0 GT/s PCIe\"")))?,
    };
    let width = match element.attribute("link_width") {
        None | Some("") | Some("0") => 16,
        Some(_) => number(element, "link_width")?,
    };
    Ok(((tuning().link_bw.pci_gen3_x16 * 8e9 * gts / 8.0 * width as f64 / 16.0) as u64).min(1_000_000_000_000_000))
}

fn visit(element: Node, path: &mut Vec<(usize, u64)>, found: &mut Found) -> Result<(), XmlError> {
    if path.len() > MAX_DEPTH {
        return Err(error(element, format!("elements are nested more than {MAX_DEPTH} deep")));
    }
    let named = |wanted: &'static str| element.children().filter(move |child| name(*child) == wanted);
    let link = if name(element) == "pci" { pci_bps(element)? } else { u64::MAX };
    path.push((found.elements, link));
    found.elements += 1;
    match name(element) {
        "cpu" | "pci" => {
            for child in element.children().filter(Node::is_element) {
                visit(child, path, found)?;
            }
        }
        "gpu" => {
            let mut nvlinks = 0;
            for link in named("nvlink") {
                nvlinks = LARGEST.min(u64::from(nvlinks) + number(link, "count")?) as u32;
            }
            found.gpus.push(Gpu {
                sm: number(element, "sm")? as u32,
                dev: number(element, "dev")? as u32,
                path: path.clone(),
                nvlinks,
                // PCI class 0x068000 is a bridge; an NVSwitch shows itself as one.
                switched: named("nvlink").any(|l| l.attribute("tclass") == Some("0x068000")),
            });
        }
        "nic" => {
            let nets = || named("net");
            let mut bps = 0;
            for net in nets() {
                bps = (bps + number(net, "speed")? * 1_000_000).min(LARGEST * 1_000_000);
            }
            if let Some(first) = nets().next() {
                found.nics.push(Nic {
                    name: first.attribute("name").unwrap_or("net").to_string(),
                    path: path.clone(),
                    bps,
                    ports: nets().count() as u32,
                });
            }
        }
        other => {
            return Err(error(element, format!("<{other}> is not of NCCL's form: cpu, pci, gpu, nvlink, nic, net")));
        }
    }
    path.pop();
    Ok(())
}

/// The distance of a GPU and a NIC, and the rate in bit/s of the narrowest link between them.
fn way(gpu: &Gpu, nic: &Nic) -> (PathLevel, u64) {
    let common = gpu.path.iter().zip(&nic.path).take_while(|(a, b)| a.0 == b.0).count();
    let level = match common {
        0 => PathLevel::Sys,
        1 => PathLevel::Phb,
        // Both are directly below the same switch, or below further switches.
        _ if gpu.path.len() - common <= 2 && nic.path.len() - common <= 2 => PathLevel::Pix,
        _ => PathLevel::Pxb,
    };
    let narrowest = gpu.path[common..].iter().chain(&nic.path[common..]).map(|p| p.1).min().unwrap_or(u64::MAX);
    (level, narrowest.min(nic.bps))
}

fn assemble(mut found: Found) -> Result<NcclTopology, XmlError> {
    found.gpus.sort_by_key(|g| g.dev);
    // NCCL uses the fastest NICs. Slower ones are for storage and management.
    let fastest = found.nics.iter().map(|n| n.bps).max().unwrap_or(0);
    found.nics.retain(|n| n.bps == fastest);
    let mut ways = Vec::new();
    for (g, gpu) in found.gpus.iter().enumerate() {
        for (n, nic) in found.nics.iter().enumerate() {
            let (level, bps) = way(gpu, nic);
            ways.push(GpuNic { gpu: g as u32, nic: n as u32, level, bps });
        }
    }
    let nic_of_gpu = nearest(found.gpus.len(), &ways);
    let first = &found.gpus[0];
    let arch = Arch::of_capability(first.sm);
    let per_link = if arch == Arch::Blackwell { 400_000_000_000 } else { 200_000_000_000 };
    let inside = match (first.nvlinks, first.switched) {
        (0, _) => ServerInterconnect::Pcie,
        (_, true) => ServerInterconnect::NvSwitch,
        _ => ServerInterconnect::NvlinkMesh,
    };
    let pci = first.path.iter().map(|p| p.1).min().unwrap_or(0);
    // The file's PCIe rates are those that NCCL counts, three quarters of the data sheet's.
    let inside_bps = if inside == ServerInterconnect::Pcie { pci / 3 * 4 } else { first.nvlinks as u64 * per_link };
    let server = Server {
        simple_only: false,
        arch,
        inside,
        cpu: found.cpu.unwrap_or(Cpu::Other),
        gpus: found.gpus.len() as u32,
        inside_bps,
        latency_ps: match inside {
            ServerInterconnect::NvSwitch => 700_000,
            ServerInterconnect::NvlinkMesh => 500_000,
            ServerInterconnect::Pcie => 1_500_000,
        },
        nics: found.nics.len() as u32,
        nic_bps: fastest,
        ports: found.nics.iter().map(|n| n.ports).max().unwrap_or(1),
        nic_of_gpu,
        nvls: inside == ServerInterconnect::NvSwitch && arch >= Arch::Hopper,
        base_times: BaseTimes::default(),
        source: "NCCL topology file".to_string(),
    };
    Ok(NcclTopology { server, nics: found.nics.into_iter().map(|n| n.name).collect(), ways })
}

/// Each GPU's nearest NIC. GPUs with the same nearest NICs take them in turn.
fn nearest(gpus: usize, ways: &[GpuNic]) -> Vec<u32> {
    let mut taken: Vec<(Vec<u32>, usize)> = Vec::new();
    let mut result = Vec::new();
    for gpu in 0..gpus as u32 {
        let mine = || ways.iter().filter(|w| w.gpu == gpu);
        let Some(best) = mine().map(|w| (w.level, std::cmp::Reverse(w.bps))).min() else {
            return Vec::new();
        };
        let near: Vec<u32> = mine().filter(|w| (w.level, std::cmp::Reverse(w.bps)) == best).map(|w| w.nic).collect();
        let turn = match taken.iter_mut().find(|(n, _)| *n == near) {
            Some((_, turn)) => {
                *turn += 1;
                *turn
            }
            None => {
                taken.push((near.clone(), 0));
                0
            }
        };
        result.push(near[turn % near.len()]);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(dev: u32, sm: u32) -> String {
        format!(
            "<pci busid=\"g{dev}\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"{dev}\" sm=\"{sm}\"><nvlink target=\"s\" count=\"12\" tclass=\"0x068000\"/></gpu></pci>"
        )
    }

    fn nic(name: &str, ports: u32, mbps: u32) -> String {
        let nets: String =
            (0..ports).map(|p| format!("<net name=\"{name}\" port=\"{p}\" speed=\"{mbps}\"/>")).collect();
        format!("<pci busid=\"{name}\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><nic>{nets}</nic></pci>")
    }

    fn switch(inside: &str) -> String {
        format!("<pci busid=\"x\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">{inside}</pci>")
    }

    #[test]
    fn two_gpus_share_a_dual_port_nic() {
        let cpus: String = (0..2)
            .map(|c| {
                format!(
                    "<cpu numaid=\"{c}\" vendor=\"AuthenticAMD\">{}{}</cpu>\n",
                    switch(&(gpu(2 * c, 80) + &gpu(2 * c + 1, 80) + &nic(&format!("mlx5_{c}"), 2, 100_000))),
                    nic("eth", 1, 25_000)
                )
            })
            .collect();
        let t = topology(&format!("<?xml version=\"1.0\"?>\n<!-- dumped -->\n<system version=\"1\">{cpus}</system>"))
            .unwrap();
        let s = &t.server;
        assert_eq!((s.gpus, s.nics, s.ports, s.nic_bps, s.inside_bps), (4, 2, 2, 200_000_000_000, 2_400_000_000_000));
        assert_eq!((s.arch, s.inside, s.cpu, s.nvls), (Arch::Ampere, ServerInterconnect::NvSwitch, Cpu::Amd, false));
        assert_eq!(s.nic_of_gpu, [0, 0, 1, 1]);
        assert_eq!(t.nics, ["mlx5_0", "mlx5_1"]);
        let way = |gpu, nic| t.ways.iter().find(|w| w.gpu == gpu && w.nic == nic).map(|w| (w.level, w.bps)).unwrap();
        // 16 GT/s x16 counts as 24 GB/s = 192 Gb/s, less than the NIC.
        assert_eq!(way(0, 0), (PathLevel::Pix, 192_000_000_000));
        assert_eq!(way(0, 1).0, PathLevel::Sys);
    }

    #[test]
    fn numbers_beyond_any_machine_are_refused() {
        let gpu = |count: u64| {
            format!("<system><cpu><gpu dev=\"0\" sm=\"80\"><nvlink count=\"{count}\"/></gpu></cpu></system>")
        };
        let error = topology(&gpu(4_294_967_295)).unwrap_err().to_string();
        assert_eq!(error, "line 1: count = \"4294967295\" must be at most 10000000");
        let two = gpu(10_000_000).replace("/></gpu>", "/><nvlink count=\"10000000\"/></gpu>");
        assert!(topology(&two).is_ok_and(|t| t.server.inside_bps > 0));
    }

    #[test]
    fn equally_near_nics_are_shared_out() {
        let inside = (0..4).map(|d| gpu(d, 90)).collect::<String>() + &nic("a", 1, 400_000) + &nic("b", 1, 400_000);
        let t = topology(&format!("<system><cpu vendor=\"GenuineIntel\">{inside}</cpu></system>")).unwrap();
        assert_eq!(t.server.nic_of_gpu, [0, 1, 0, 1]);
        assert!(t.server.nvls && t.ways.iter().all(|w| w.level == PathLevel::Phb));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let error = |text: &str| topology(text).unwrap_err().to_string();
        assert_eq!(error("<system>\n<cpu>\n</system>"), "line 3: expected 'cpu' tag, not 'system'");
        assert_eq!(
            error("<system>\n<cpu><gpu dev=\"0\" sm=\"x\"/></cpu></system>"),
            "line 2: sm = \"x\" must be a whole number"
        );
        assert_eq!(error("<graphs/>"), "line 1: the root element is <graphs>, it must be <system>");
        assert_eq!(error("<system></system>"), "line 1: the file has no <gpu>");
        assert_eq!(error("<system a=1/>"), "line 1: expected a quote not '1'");
        assert!(error("<system><cpu><disk/></cpu></system>").contains("<disk> is not of NCCL's form"));
        assert!(error("<system>").contains("never closed"));
        let nested =
            |depth: usize| format!("<system><cpu>{}{}</cpu></system>", "<pci>".repeat(depth), "</pci>".repeat(depth));
        assert!(error(&nested(100)).contains("nested") && error(&nested(50)).contains("no <gpu>"));
        // The parser itself does not run out of stack, nor of time.
        assert!(error(&nested(100_000)).contains("nested"));
        let attributes: String = (0..2000).map(|i| format!(" a{i}=\"\"")).collect();
        assert!(error(&format!("<system{attributes}/>")).contains("attributes"));
        assert!(error("").contains("does not have a root"));
    }
}
