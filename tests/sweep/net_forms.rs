//! Forms of topology files: what is written is read again as the same network, and what a form cannot say is refused.

use std::fs;
use std::path::Path;

use hyperfold_base::units::{BPS_PER_GBPS, PS_PER_NS, PS_PER_US};
use hyperfold_network::topology::{
    BCube, Clos, Dragonfly, Fabric, FabricShape, FatTree, GridLinks, Network, NvLink, RailOnly, RailOptimized,
    Segments, Sites, SlimFly, TopologyFormat, bisection_bps, parse_htsim, parse_infragraph, parse_simai, read_topology,
    to_htsim, to_infragraph, to_ns3, to_simai,
};

use crate::net_fabrics::{canonical, distances, flat, grid, kinds_of_links, pods_of, shared, simai};
#[test]
fn networks_are_read_back_from_the_forms_of_others() {
    let nvlink = Some(NvLink { rate_bps: 3600 * BPS_PER_GBPS, latency_ps: 500_000 });
    let shapes = [
        FabricShape::Clos(Clos { planes: 2, hosts_per_leaf: 16, ..Clos::default() }),
        FabricShape::Dragonfly(Dragonfly::default()),
        FabricShape::SlimFly(SlimFly::default()),
        FabricShape::RailOnly(RailOnly::default()),
        FabricShape::Segments(Segments {
            servers_per_segment: 4,
            by_rail: false,
            planes: 1,
            spines: 3,
            oversubscription: 1000,
            pods: None,
        }),
        FabricShape::Segments(Segments {
            servers_per_segment: 2,
            by_rail: true,
            planes: 2,
            spines: 3,
            oversubscription: 1000,
            pods: Some(pods_of(2, 0, 0)),
        }),
    ];
    for shape in shapes {
        for nvlink in [nvlink, None] {
            if nvlink.is_none() && matches!(shape, FabricShape::RailOnly(_)) {
                // Without NVLink, rails are not joined, which files may not be.
                continue;
            }
            let net = shape.build(&Fabric { nvlink, ..simai(64, 2, 400) }).unwrap();
            let simai = parse_simai("written", &to_simai(&net, "H100").unwrap());
            let infragraph = parse_infragraph("written", &to_infragraph(&net).unwrap());
            if matches!(shape, FabricShape::RailOnly(_)) {
                // NVSwitches are nodes of SimAI's form, and join the rails. InfraGraph's stand inside the device.
                assert!(infragraph.unwrap_err().to_string().contains("not connected"));
                assert_eq!(canonical(&simai.unwrap().network), canonical(&net));
                continue;
            }
            for read in [simai.unwrap(), infragraph.unwrap()] {
                assert_eq!(canonical(&read.network), canonical(&net), "{shape:?}");
                assert_eq!((read.network.nvlink, &read.network.ranks), (net.nvlink, &net.ranks));
                assert_eq!(read.gpus_per_server, Some(8));
                let servers = |n: &Network| n.nodes[..64].iter().map(|n| n.server).collect::<Vec<_>>();
                assert_eq!(servers(&read.network), servers(&net));
            }
        }
    }
}

#[test]
fn what_a_form_cannot_hold_is_not_written() {
    let bcube = BCube { ports: 0, levels: 2 }.build(&simai(64, 1, 400)).unwrap();
    for error in [to_simai(&bcube, "H100"), to_infragraph(&bcube)] {
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with("switch 64 inside a server cannot be written in the"), "{message}");
    }
    let shared = Fabric { nics_per_server: 4, ..simai(64, 1, 400) };
    let net = Clos::default().build(&shared).unwrap();
    let message = to_simai(&net, "H100").unwrap_err().to_string();
    assert!(message.contains("cannot be written in the SimAI form"), "{message}");
    let read = parse_infragraph("written", &to_infragraph(&net).unwrap()).unwrap();
    assert_eq!(read.network.ranks, net.ranks, "two GPUs a NIC");
}

/// What htsim's form can say is read again as the same network. Cores of three tiers are numbered otherwise there.
#[test]
fn trees_are_read_back_from_htsims_form() {
    let delays = Fabric {
        link_delay_ps: 700 * PS_PER_NS + 500,
        uplink_delay_ps: 2 * PS_PER_US,
        core_delay_ps: 3 * PS_PER_US + 1500,
        core_bps: 400 * BPS_PER_GBPS,
        ..flat(64)
    };
    let clos = Clos { hosts_per_leaf: 8, ..Clos::default() };
    let three = Clos { tiers: 3, hosts_per_leaf: 4, ..Clos::default() };
    for (net, header, has_cores) in [
        (clos.build(&flat(64)), "Nodes 64\nTiers 2\nPodsize 64\n", false),
        (Clos { oversubscription: 4000, ..clos }.build(&delays), "Nodes 64\nTiers 2\nPodsize 64\n", false),
        (three.build(&flat(64)), "Nodes 64\nTiers 3\nPodsize 16\n", true),
        (Clos { spines: 2, ..three }.build(&delays), "Nodes 64\nTiers 3\nPodsize 16\n", true),
        (FatTree { k: 4 }.build(&flat(16)), "Nodes 16\nTiers 3\nPodsize 4\n", true),
        (FatTree { k: 8 }.build(&flat(64)), "Nodes 64\nTiers 3\nPodsize 16\n", true),
    ] {
        let net = net.unwrap();
        let text = to_htsim(&net).unwrap();
        assert!(text.starts_with(header), "{text}");
        let read = parse_htsim("written", &text).unwrap_or_else(|e| panic!("{e}\n{text}")).network;
        assert_eq!(canonical(&read), canonical(&net), "{text}");
        assert_eq!((&read.ranks, kinds_of_links(&read)), (&net.ranks, kinds_of_links(&net)));
        let (ours, theirs) = (distances(&net), distances(&read));
        assert_eq!((ours.diameter, ours.mean_paths), (theirs.diameter, theirs.mean_paths));
        assert_eq!(bisection_bps(&read), bisection_bps(&net));
        if !has_cores {
            assert_eq!((&read.links, read.nodes.len()), (&net.links, net.nodes.len()), "node by node");
        }
        assert_eq!(to_htsim(&read).unwrap(), text, "and is written again as it was");
    }
}

#[test]
fn files_of_htsim_survive_being_written() {
    let corpus = ["ok-leaf-spine.topo", "ok-three-tiers.topo"].map(|name| Path::new("tests/corpus/topo").join(name));
    let given = ["fat_tree_1024.topo", "leaf_spine_tiny.topo"].map(|name| format!("../htsim/{name}"));
    for path in corpus.into_iter().chain(given.iter().filter_map(|name| shared(name))) {
        let first = read_topology(&path, TopologyFormat::Htsim).unwrap().network;
        let text = to_htsim(&first).unwrap();
        assert_eq!(parse_htsim("written", &text).unwrap().network, first, "{}:\n{text}", path.display());
    }
    // Bundles of two links, and switches that take time: half nanoseconds in the delays of the lower two tiers.
    let text = "Nodes 16\nTiers 3\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4\nDownlink_Latency_ns 2\n\
                Switch_Latency_ns 5\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 2\nOversubscribed 2\nDownlink_Latency_ns 1\n\
                Switch_Latency_ns 4\nBundle 2\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 9\nSwitch_Latency_ns 7\nBundle 2\n";
    let first = parse_htsim("given", text).unwrap().network;
    assert_eq!(parse_htsim("written", &to_htsim(&first).unwrap()).unwrap().network, first);
}

#[test]
fn what_htsims_form_cannot_say_is_refused_with_the_reason() {
    let fabric = flat(64);
    let clos = Clos { hosts_per_leaf: 8, ..Clos::default() };
    let pods = Clos { tiers: 3, hosts_per_leaf: 4, ..Clos::default() };
    let odd = Fabric { link_delay_ps: 1_000_250, ..fabric.clone() };
    let slow = Fabric { uplink_bps: 2_500_000_000, ..fabric.clone() };
    for (net, reason) in [
        (Clos { spines: 3, ..clos }.build(&fabric), "a leaf with 800 Gb/s downward and 300 Gb/s upward"),
        (Clos { spines: 16, ..clos }.build(&fabric), "a leaf with 800 Gb/s downward and 1600 Gb/s upward"),
        (Clos { cores: 12, ..pods }.build(&fabric), "an aggregation switch with 400 Gb/s downward and 300 Gb/s upward"),
        (Clos { hosts_per_leaf: 24, ..clos }.build(&fabric), "leaf2 with 16 hosts beside leaf0 with 24"),
        (FatTree { k: 8 }.build(&flat(48 + 4)), "equal pods"),
        (clos.build(&odd), "a delay of 1000250 ps"),
        (clos.build(&slow), "a rate of 2500000000 bps"),
        (Clos { hosts_per_leaf: 64, ..clos }.build(&fabric), "one tier of switches"),
        (RailOptimized::default().build(&simai(64, 1, 400)), "whose hosts do not follow each other"),
        (Clos { planes: 2, ..clos }.build(&simai(64, 2, 400)), "host0 with several links"),
        (
            Clos::default().build(&Fabric { nics_per_server: 4, ..simai(64, 1, 400) }),
            "a NIC that is not that of one GPU",
        ),
        (Dragonfly::default().build(&fabric), "one tier of switches"),
        (BCube { ports: 0, levels: 2 }.build(&simai(64, 1, 400)), "a part of a server"),
        (Ok(grid(GridLinks::Ring, &[4, 4])), "one tier of switches"),
    ] {
        let message = to_htsim(&net.unwrap()).unwrap_err().to_string();
        assert!(
            message.contains(reason) && message.ends_with("cannot be written in the htsim form"),
            "{reason}: {message}"
        );
    }
    let site = Sites { n: 2, links: 1, link_bps: 100 * BPS_PER_GBPS, delay_ps: PS_PER_US };
    let joined = site.build(&FabricShape::Clos(clos), &flat(64)).unwrap();
    let message = to_htsim(&joined).unwrap_err().to_string();
    assert!(message.contains("which does not lead from one tier to the next"), "{message}");
}

#[test]
fn forms_are_known_by_their_first_line() {
    let net = Clos::default().build(&simai(64, 1, 400)).unwrap();
    let htsim = fs::read_to_string("tests/corpus/topo/ok-leaf-spine.topo").unwrap();
    for (text, format) in [
        (to_ns3(&net).unwrap(), Some(TopologyFormat::Ns3)),
        (to_simai(&net, "H100").unwrap(), Some(TopologyFormat::Simai)),
        (to_infragraph(&net).unwrap(), Some(TopologyFormat::InfraGraph)),
        (htsim, Some(TopologyFormat::Htsim)),
        (String::new(), None),
        ("name = \"sweep\"\n".into(), None),
        ("a,b,c\n".into(), None),
    ] {
        assert_eq!(TopologyFormat::guess(&text), format, "{text:.60}");
    }
}
