//! Reads `topology.kind` and the keys of that kind: the shape of a generated network, or the file that describes one.
//!
//! Layer: spec. The generators check what a number alone cannot tell.

use std::path::Path;

use super::circuits::circuits;
use super::error::Conflict;
use super::key_id::KeyId;
use super::scale::scaled;
use super::sections::{TopologyFormatChoice, TopologyKind};
use super::value::Values;
use hyperfold_base::units::{BPS_PER_GBPS, PS_PER_NS};
use hyperfold_network::topology::{
    BCube, Clos, Dragonfly, DragonflyPlus, FabricShape, FatTree, GridFabric, GridLinks, Optical, RailOnly,
    RailOptimized, SegmentPods, Segments, Sites, SlimFly,
};

/// Servers of a segment of HPN 7.0: 128 at each pair of ToRs of a rail (Qian et al., SIGCOMM 2024).
const HPN_SERVERS: u32 = 128;
/// Servers of a segment of DCN+: 16, whose 128 NICs share a pair of ToRs (the same paper).
const DCN_PLUS_SERVERS: u32 = 16;
/// Segments of a pod of HPN 7.0: 15, which are 15,360 GPUs (the same paper).
const HPN_SEGMENTS: u32 = 15;
/// Rate of an aggregation switch of HPN 7.0 to its leaves over that to cores, in thousandths: 120 links down and 8 up (the same paper).
const HPN_CORE_OVERSUBSCRIPTION: u32 = 15_000;
/// Segments of a pod of DCN+: 4, which are 512 GPUs. The paper has DCN+ as a Clos network of three tiers without oversubscription; this size is our reading.
const DCN_PLUS_SEGMENTS: u32 = 4;
/// DCN+ has the same rate in both directions at its aggregation switches.
const DCN_PLUS_CORE_OVERSUBSCRIPTION: u32 = 1_000;
/// Servers of a pod of Spectrum-X: half of the 128 ports of 400 Gb/s of a leaf (SN5600), as in SimAI's generator.
const SPECTRUM_X_SERVERS: u32 = 64;

/// The value, or its default where it is 0.
fn or(value: u32, default: u32) -> u32 {
    if value == 0 { default } else { value }
}

/// The kind of the network with its parameters.
pub(super) fn topology_kind(v: &Values, dir: &Path) -> Result<TopologyKind, Conflict> {
    let u32_of = |key: KeyId| v.int(key) as u32;
    let oversubscription = scaled(v.float(KeyId::Oversubscription), 1e3) as u32;
    let clos = |planes: u32| Clos {
        planes,
        tiers: u32_of(KeyId::Tiers),
        hosts_per_leaf: u32_of(KeyId::HostsPerLeaf),
        spines: u32_of(KeyId::Spines),
        pods: u32_of(KeyId::Pods),
        cores: u32_of(KeyId::Cores),
        oversubscription,
    };
    let pods_of = |segments_per_pod: u32, oversubscription: u32| {
        let pods =
            SegmentPods { pods: u32_of(KeyId::Pods), segments_per_pod, cores: u32_of(KeyId::Cores), oversubscription };
        (u32_of(KeyId::Tiers) == 3).then_some(pods)
    };
    let segments = |servers: u32, by_rail: bool, planes: u32, pods: Option<SegmentPods>| {
        FabricShape::Segments(Segments {
            servers_per_segment: or(u32_of(KeyId::ServersPerPod), servers),
            by_rail,
            planes,
            spines: u32_of(KeyId::Spines),
            oversubscription,
            pods,
        })
    };
    let grid = |links: GridLinks| {
        Ok::<_, Conflict>(FabricShape::Grid(GridFabric {
            links,
            dims: numbers(v, KeyId::Dims, "switches")?.into_iter().map(|n| n as u32).collect(),
            dim_bps: numbers(v, KeyId::DimGbps, "Gb/s")?.into_iter().map(|x| scaled(x, BPS_PER_GBPS as f64)).collect(),
            hosts_per_switch: u32_of(KeyId::HostsPerLeaf),
        }))
    };
    let planes = or(u32_of(KeyId::Planes), u32_of(KeyId::NicPorts));
    let shape = match v.text(KeyId::TopologyKind) {
        "fat-tree" => FabricShape::FatTree(FatTree { k: u32_of(KeyId::FatTreeK) }),
        "clos" => FabricShape::Clos(clos(1)),
        "multi-plane" => FabricShape::Clos(clos(planes)),
        "rail-optimized" => FabricShape::RailOptimized(RailOptimized {
            rails: u32_of(KeyId::Rails),
            pods: u32_of(KeyId::Pods),
            servers_per_pod: u32_of(KeyId::ServersPerPod),
            spines: u32_of(KeyId::Spines),
            oversubscription,
        }),
        "rail-only" => FabricShape::RailOnly(RailOnly { rails: u32_of(KeyId::Rails) }),
        "hpn" => segments(HPN_SERVERS, true, planes, pods_of(HPN_SEGMENTS, HPN_CORE_OVERSUBSCRIPTION)),
        "dcn-plus" => segments(DCN_PLUS_SERVERS, false, 1, pods_of(DCN_PLUS_SEGMENTS, DCN_PLUS_CORE_OVERSUBSCRIPTION)),
        "spectrum-x" => segments(SPECTRUM_X_SERVERS, true, 1, None),
        "dragonfly" => FabricShape::Dragonfly(Dragonfly {
            hosts_per_router: u32_of(KeyId::HostsPerLeaf),
            routers_per_group: u32_of(KeyId::LeavesPerGroup),
            global_links: u32_of(KeyId::GlobalLinks),
            groups: u32_of(KeyId::Groups),
        }),
        "dragonfly-plus" => FabricShape::DragonflyPlus(DragonflyPlus {
            hosts_per_leaf: u32_of(KeyId::HostsPerLeaf),
            leaves_per_group: u32_of(KeyId::LeavesPerGroup),
            spines: u32_of(KeyId::Spines),
            global_links: u32_of(KeyId::GlobalLinks),
            groups: u32_of(KeyId::Groups),
        }),
        "slim-fly" => {
            FabricShape::SlimFly(SlimFly { q: u32_of(KeyId::SlimFlyQ), hosts_per_router: u32_of(KeyId::HostsPerLeaf) })
        }
        "torus" => grid(GridLinks::Ring)?,
        "mesh" => grid(GridLinks::Line)?,
        "hyperx" => grid(GridLinks::All)?,
        "bcube" => FabricShape::BCube(BCube { ports: u32_of(KeyId::FatTreeK), levels: u32_of(KeyId::Tiers) }),
        "optical" => FabricShape::Optical(Optical {
            hosts_per_leaf: u32_of(KeyId::HostsPerLeaf),
            ports: u32_of(KeyId::Spines),
            oversubscription,
            plan: circuits(v)?,
        }),
        _ => return file(v, dir),
    };
    let sites = (u32_of(KeyId::Sites) > 1).then(|| Sites {
        n: u32_of(KeyId::Sites),
        links: u32_of(KeyId::SiteLinks),
        link_bps: scaled(v.float(KeyId::SiteGbps), BPS_PER_GBPS as f64),
        delay_ps: scaled(v.float(KeyId::SiteDelayNs), PS_PER_NS as f64),
    });
    Ok(TopologyKind::Generated { shape, sites })
}

/// The file that describes a network.
fn file(v: &Values, dir: &Path) -> Result<TopologyKind, Conflict> {
    let path = match v.text(KeyId::TopologyPath) {
        "" => {
            let why = "it is required with topology.kind = \"file\"; give the path of a file".to_string();
            return Err(Conflict { job: None, key: KeyId::TopologyPath, why });
        }
        path => dir.join(path),
    };
    let format = match v.text(KeyId::TopologyFormat) {
        "simai" => TopologyFormatChoice::SimAi,
        "htsim" => TopologyFormatChoice::Htsim,
        "infragraph" => TopologyFormatChoice::InfraGraph,
        _ => TopologyFormatChoice::Ns3,
    };
    Ok(TopologyKind::File { path, format })
}

/// The numbers of a key, one for each dimension, separated by `x` or commas; none where it is not given.
fn numbers(v: &Values, key: KeyId, unit: &str) -> Result<Vec<f64>, Conflict> {
    let text = v.text(key);
    let whole = key == KeyId::Dims;
    let read = |field: &str| {
        let number = field.trim().parse::<f64>().ok();
        number.filter(|n| (0.001..=f64::from(1 << 20)).contains(n) && (!whole || n.fract() == 0.0)).ok_or_else(|| {
            let example = if whole { "\"8x8x4\" or [8, 8, 4]" } else { "\"800x800x400\" or [800, 800, 400]" };
            let why = format!("`{}` is no number of {unit}; write one for each dimension: {example}", field.trim());
            Conflict { job: None, key, why }
        })
    };
    if text.is_empty() { Ok(Vec::new()) } else { text.split(['x', 'X', ',']).map(read).collect() }
}
