//! The key table: every key of `[base]`, declared once, in the order in which the template and the reference print it.
//!
//! Layer: spec. Only the rows, as a macro: `key_id` makes the ids from them, `keys` the declarations, and defines the names that rows use. A derived default
//! may use the keys that stand before it. `#[outside_identity]` marks a key that decides nothing about the simulation itself: output switches and the limit of
//! wall-clock time. Such a key is no part of an experiment's identity.

/// Calls a macro with the rows: `id "name" kind, default, applies_when, "doc";`.
macro_rules! for_each_key {
    ($declare:ident) => {
        $declare! {
            Server "cluster.server" one_of(&SERVERS, &[]), D::None("none"), names_server,
                "a server of assets/servers: it gives gpu, gpus_per_server, nics_per_server, nvlink_gbps, nvlink_latency_ns and topology.link_gbps where they are not written";
            GpusPerServer "cluster.gpus_per_server" int(1, 1024), D::Derived(derive::gpus_per_server, "the server's, else 8; cluster.gpus where that is less"), generated, "GPUs in one server";
            Gpus "cluster.gpus" int(0, COUNT), D::Derived(derive::gpus, "what the workload or the topology file needs, else 128"),
                generated, "GPUs in the network; 0 is the default";
            Gpu "cluster.gpu" KeyKind::Named, D::Derived(derive::gpu, "the server's, else \"h100\""), always,
                "accelerator: a name of assets, a .toml file or an inline table of specifications; with plain traffic it decides links inside servers, cost and power alone";
            GpuMemoryGib "cluster.gpu_memory_gib" stepped(0.0, 1e6, 0.001), D::Float(0.0), |v| inference(v) || (model(v) && v.bool(KeyId::MemoryCheck)),
                "memory of one GPU; 0: what its specifications say";
            NicsPerServer "cluster.nics_per_server" int(1, 1024), D::Derived(derive::nics_per_server, "the server's, else one a GPU"),
                generated, "network ports of one server, at most one a GPU; with fewer, neighbouring GPUs share one";
            NicPorts "cluster.nic_ports" int(1, 8), D::Derived(derive::nic_ports, "the server's, else 1; in an hpn, dcn-plus or multi-plane network at least 2"), generated,
                "links of one NIC, each with its share of topology.link_gbps; queue pairs of programs take them in turn";
            Nic "cluster.nic" one_of(&NICS, &[]), D::Choice("none"), |v| packets(v) || flows(v),
                "network adapter: it decides routing.policy, transport.cc and transport.loss_recovery where they are not written, as [adapters](../reference/presets.md#network-adapters-clusternic) says; \"none\": their own defaults";
            NvlinkGbps "cluster.nvlink_gbps" stepped(0.0, 8796.0, 0.001), D::Derived(derive::nvlink_gbps, "the server's, else the GPU's own; 0 with NCCL_P2P_DISABLE"), generated,
                "rate of a GPU to the others of its server, all its links together; 0: none, they use the network";
            NvlinkLatencyNs "cluster.nvlink_latency_ns" stepped(0.001, 1e9, 0.001), D::Derived(derive::nvlink_latency_ns, "the server's, else the GPU's own"),
                linked, "one-way latency between GPUs of one server (our choice)";
            BaseTimeNs "cluster.base_time_ns" stepped(0.0, 1e9, 0.001), D::Derived(derive::base_time_ns, "the server's, else 0"), collectives,
                "what an all-reduce of 8 bytes was measured to take among all GPUs of one server (nccl-tests, smallest size); 0: not measured, NCCL's constants stand alone";
            BaseTimeAcrossNs "cluster.base_time_across_ns" stepped(0.0, 1e9, 0.001), D::Derived(derive::base_time_across_ns, "the server's, else 0"), collectives,
                "the same among all GPUs of two servers: what the NICs' transport adds to each pass through the network follows from it; 0: not measured";
            Nvlink "cluster.nvlink" one_of(&["analytic", "packet"], &[]), D::Choice("analytic"), nvlink_choice,
                "what carries traffic inside a server: a calibrated cost, or packets over an NVSwitch, in a mesh over its links";
            ServerXml "cluster.server_xml" KeyKind::Path, D::Derived(derive::server_xml, "NCCL_TOPO_FILE, else none"), |v| collectives(v) && v.has(KeyId::ServerXml),
                "PCIe and NIC topology of one server in NCCL's XML form";

            TopologyKind "topology.kind" one_of(&["fat-tree", "clos", "rail-optimized", "rail-only", "multi-plane", "hpn", "dcn-plus", "spectrum-x", "dragonfly", "dragonfly-plus",
                "slim-fly", "torus", "mesh", "hyperx", "bcube", "optical", "file"], &[]), D::Choice("rail-optimized"), always, "shape of the network";
            TopologyPath "topology.path" KeyKind::Path, D::None("required with kind = \"file\""), |v| topology(v, "file"), "topology file";
            TopologyFormat "topology.format" one_of(&["ns3", "simai", "htsim", "infragraph"], &[]), D::Choice("ns3"), |v| topology(v, "file"), "form of the topology file";
            LinkGbps "topology.link_gbps" LINK_GBPS, D::Derived(derive::link_gbps, "the server's, else 400"), generated, "rate of links between hosts and switches";
            UplinkGbps "topology.uplink_gbps" LINK_GBPS, D::Derived(derive::uplink_gbps, "link_gbps"), |v| generated(v) && !topology(v, "rail-only"), "rate of links between switches";
            CoreGbps "topology.core_gbps" LINK_GBPS, D::Derived(derive::core_gbps, "uplink_gbps"), three_tiers, "rate of links to the third tier";
            LinkDelayNs "topology.link_delay_ns" stepped(0.001, 1e9, 0.001), D::Float(1000.0), generated, "propagation delay of a link of a host, one way";
            UplinkDelayNs "topology.uplink_delay_ns" stepped(0.001, 1e9, 0.001), D::Derived(derive::uplink_delay_ns, "link_delay_ns"),
                |v| generated(v) && !topology(v, "rail-only"), "propagation delay of a link between switches, one way; 5 a metre of fibre";
            CoreDelayNs "topology.core_delay_ns" stepped(0.001, 1e9, 0.001), D::Derived(derive::core_delay_ns, "uplink_delay_ns"), three_tiers,
                "propagation delay of a link to the third tier, one way";
            SwitchLatencyNs "topology.switch_latency_ns" stepped(0.0, 1e9, 0.001), D::Float(0.0), generated, "added to the delay of links into a switch";
            CutThroughBytes "topology.cut_through_bytes" int(0, 65535), D::Int(0), |v| packets(v) || flows(v),
                "cut-through: a switch may forward a packet once this many bytes of it are there, such as 64, if its egress is not faster than the link it comes by; 0: after the last bit (store and forward)";
            Oversubscription "topology.oversubscription" stepped(0.001, 1000.0, 0.001), D::Float(1.0),
                oversubscribed, "rate into a leaf from hosts over its rate to the tier above";
            Switch "topology.switch" one_of(&SWITCHES, &[]), D::Choice("none"), always,
                "switch chip of all tiers, whose capacity must hold the ports and whose buffer they have; \"by-rate\": the smallest chip that holds a tier's ports; \"none\": switches of any size";
            BufferMib "topology.buffer_mib" BUFFER_MIB, D::Derived(derive::buffer_mib, "32; with topology.switch that of the chip"), shares_buffer, "shared packet buffer of a switch; one inside a server has room for what is in flight besides";
            LeafBufferMib "topology.leaf_buffer_mib" BUFFER_MIB, D::Derived(derive::tier_buffer_mib, "buffer_mib"), |v| shares_buffer(v) && generated(v),
                "of a leaf: a switch that has hosts";
            AggBufferMib "topology.agg_buffer_mib" BUFFER_MIB, D::Derived(derive::tier_buffer_mib, "buffer_mib"), |v| shares_buffer(v) && three_tiers(v),
                "of a switch in the middle one of three tiers";
            SpineBufferMib "topology.spine_buffer_mib" BUFFER_MIB, D::Derived(derive::tier_buffer_mib, "buffer_mib"),
                |v| shares_buffer(v) && several_tiers(v), "of a switch in the highest tier: spines, or the cores of three tiers";
            FatTreeK "topology.k" int(0, 256), D::Int(0), |v| topology(v, "fat-tree") || topology(v, "bcube"),
                "ports of a switch of a fat-tree, even, or of a BCube; 0: the least that fits the GPUs";
            Tiers "topology.tiers" int(2, 3), D::Int(2), |v| two_or_three_tiers(v) || topology(v, "bcube"),
                "tiers of switches of a Clos network, a multi-plane one, an hpn or a dcn-plus; levels of a BCube";
            HostsPerLeaf "topology.hosts_per_leaf" int(0, COUNT), D::Int(0), |v| clos(v) || dragonflies(v) || topology(v, "slim-fly") || topology(v, "optical") || grid(v),
                "host ports of a switch that has hosts, one for each NIC; 0: chosen, in a torus, mesh or HyperX 1";
            Pods "topology.pods" int(0, COUNT), D::Int(0), |v| topology(v, "rail-optimized") || cores_may_be_set(v),
                "groups of leaves, or of segments under the third tier of an hpn or dcn-plus; 0: chosen, pods of 15 segments in an hpn and of 4 in a dcn-plus";
            Spines "topology.spines" int(0, COUNT), D::Int(0), |v| oversubscribed(v) || topology(v, "dragonfly-plus"),
                "switches above the leaves: of one plane, of one pod of three tiers, of one group of a dragonfly-plus; ports of a leaf to circuit switches; 0: chosen by oversubscription";
            Cores "topology.cores" int(0, COUNT), D::Int(0), cores_may_be_set,
                "switches of the third tier, in one plane; 0: chosen, by rates of 1 to 1 between the upper tiers, in an hpn 15 to 1";
            Rails "topology.rails" int(0, 1024), D::Int(0), |v| topology(v, "rail-optimized") || topology(v, "rail-only"),
                "leaves a pod, or switches of a rail-only network; 0: cluster.nics_per_server";
            ServersPerPod "topology.servers_per_pod" int(0, COUNT), D::Int(0), |v| topology(v, "rail-optimized") || segments(v),
                "servers of one pod of a rail-optimized network, instead of pods; in an hpn, dcn-plus or spectrum-x of one segment, whatever the number of pods; 0: 32, in an hpn 128, a dcn-plus 16, a spectrum-x 64";
            Planes "topology.planes" int(0, 8), D::Int(0), |v| topology(v, "multi-plane") || topology(v, "hpn"),
                "networks side by side, which meet at the NICs only; 0: one for each port of a NIC";
            Groups "topology.groups" int(0, COUNT), D::Int(0), dragonflies, "groups of a dragonfly; 0: as many as the GPUs need";
            LeavesPerGroup "topology.leaves_per_group" int(0, 65536), D::Int(0), dragonflies, "switches of one group that have hosts; 0: chosen by balance";
            GlobalLinks "topology.global_links" int(0, 65536), D::Int(0), dragonflies,
                "links to other groups of one router of a dragonfly, or one spine of a dragonfly-plus; 0: chosen by balance";
            GlobalGbps "topology.global_gbps" LINK_GBPS, D::Derived(derive::global_gbps, "uplink_gbps"), dragonflies, "rate of links between groups";
            GlobalDelayNs "topology.global_delay_ns" stepped(0.001, 1e9, 0.001), D::Derived(derive::global_delay_ns, "uplink_delay_ns"), dragonflies,
                "propagation delay of a link between groups, one way";
            SlimFlyQ "topology.q" int(0, 256), D::Int(0), |v| topology(v, "slim-fly"), "prime or power of a prime that decides the size of a slim fly, 2 q^2 routers; 0: the least that fits the GPUs";
            Dims "topology.dims" KeyKind::TextOrList, D::None("chosen, nearly cubic"), grid, "switches along each dimension: \"8x8x4\" or [8, 8, 4]";
            DimGbps "topology.dim_gbps" KeyKind::TextOrList, D::None("uplink_gbps"), grid, "rate of links along each dimension: \"800x800x400\"";
            Circuits "topology.circuits" KeyKind::TextOrList, D::None("mesh"), |v| topology(v, "optical"),
                "circuits of an optical network: \"mesh\", spread over all pairs of leaves; \"rotate every 1ms dark 20us drain 30us until 20ms\"; or patterns: [\"leaf0 leaf1 x2\", \"at 5ms dark 10ms drain 50us\", \"leaf0 leaf2 x2\"]; see [optical circuits](../how-to/fabrics.md#optical-circuits)";
            Sites "topology.sites" int(1, 64), D::Int(1), generated, "clusters of this shape, each with an equal share of the GPUs, joined by long links";
            SiteLinks "topology.site_links" int(1, 1024), D::Int(1), several_sites, "long links between each two sites";
            SiteGbps "topology.site_gbps" LINK_GBPS, D::Derived(derive::uplink_gbps, "link_gbps"), several_sites, "rate of a long link";
            SiteDelayNs "topology.site_delay_ns" stepped(0.001, 1e9, 0.001), D::Float(500_000.0), several_sites,
                "propagation delay of a long link, one way; 100 km of fibre by default, 5,000 a km";
            Outages "topology.outages" KeyKind::TextOrList, D::None("none"), |v| v.is(KeyId::Mode, "packet") || v.is(KeyId::Mode, "flow"),
                "links and nodes that fail, and links that are slow or lose packets: [\"leaf0 spine1 down 100us up 2ms\", \"spine1\", \"random 8 mtbf 50ms mttr 5ms until 1s\", \"leaf1 spine0 rate 25%\", \"spine0 loss 0.01%\", \"all loss 1e-6\"]; see [links that fail](../how-to/failing-links.md)";

            Policy "routing.policy" one_of(for_each_routing_policy!(names_and_file), &["flowlet"]), D::Choice("ecmp"), always,
                concat!("how packets choose among shortest paths: ", for_each_routing_policy!(words), "; as a file says");
            RoutingSeed "routing.seed" int(0, u32::MAX as i64), D::Int(1), |v| !v.is(KeyId::Policy, "file"), "seed of ECMP's hash (1: the reference's own), of spraying and of adaptive routing's draws";
            RoutingPath "routing.path" KeyKind::Path, D::None("required with policy = \"file\""), |v| v.is(KeyId::Policy, "file"), "routes file";
            MaxPaths "routing.max_paths" int(1, 65536), D::Int(64), |v| ["spray", "round-robin", "adaptive", "entropy", "reps", "mixed"].iter().any(|policy| v.is(KeyId::Policy, policy)),
                "most paths a flow is sprayed over, or switches choose among; with entropy, reps and mixed the number of entropies of a flow, at most 256";

            GradePackets "routing.grade_packets" int(1, 1024), D::Int(4), |v| packets(v) && v.is(KeyId::Policy, "adaptive"),
                "with adaptive: full packets of queue by which a port's grade rises (our choice); a switch draws among the ports of the lowest grade";
            WeighPorts "routing.weigh_ports" KeyKind::Bool, D::Bool(false), |v| packets(v) && v.is(KeyId::Policy, "adaptive"),
                "with adaptive: where ports differ in how many paths lie behind them, each gets packets in proportion to that";
            WeighBy "routing.weigh_by" one_of(&["paths", "rates"], &[]), D::Choice("paths"), |v| packets(v) && v.is(KeyId::Policy, "adaptive") && v.bool(KeyId::WeighPorts),
                "with weigh_ports: a port weighs as the number of paths behind it, or as the rates of these paths, each that of its slowest link";
            RemoteUs "routing.remote_us" stepped(0.0, 1e9, 0.000_001), D::Float(0.0), |v| packets(v) && v.is(KeyId::Policy, "adaptive"),
                "with adaptive: time from one report of switches about their queues to the next, so that the switches before them know where packets would wait further on; 0: switches know their own queues only";
            FlowletGapUs "routing.flowlet_gap_us" stepped(0.0, 1e9, 0.000_001), D::Float(0.0), |v| packets(v) && v.is(KeyId::Policy, "adaptive"),
                "with adaptive: packets of a queue pair that follow each other within this time at a switch leave by one port (flowlets); 0: each packet by itself";
            PortFailover "routing.port_failover" KeyKind::Bool, D::Derived(derive::two_leaves_a_nic, "true in an hpn or dcn-plus network"), has_outages,
                "flows of a port that is cut off take another port of their NIC, and return when a path is back; needs NICs with several ports (cluster.nic_ports)";
            RerouteUs "routing.reroute_us" stepped(0.0, 1e9, 0.000_001), D::Float(1000.0), has_outages,
                "time from a failure or repair until paths avoid or use what failed (our choice: switches report link-down to routing within about a millisecond)";

            Cc "transport.cc" one_of(&["none", "dcqcn", "hpcc", "timely", "dctcp", "swift", "nscc", "rccc"], &[]), D::Choice("hpcc"), always, "congestion control";
            PayloadBytes "transport.payload_bytes" int(1, 65000), D::Derived(derive::payload_bytes, "4096 with cluster.server, nscc or rccc, else 1000"), always, "payload of a full packet";
            PortQueue "transport.port_queue" KeyKind::Bool, D::Derived(derive::is_ultra_ethernet, "true with nscc and rccc"), |v| packets(v) && !cc(v, "hpcc"),
                "each egress port has a queue of its own, and one for ACKs and trimmed packets before it, instead of a buffer that all ports share";
            PortQueueKb "transport.port_queue_kb" stepped(0.0, 1e6, 0.001), D::Float(0.0), |v| packets(v) && v.bool(KeyId::PortQueue),
                "size of that queue, units of 1000 B per 100 Gb/s of link rate; 0: a bandwidth-delay product of the network, five without trimming";
            Trimming "transport.trimming" KeyKind::Bool, D::Derived(derive::trimming, "true with nscc and rccc"), |v| packets(v) && v.bool(KeyId::PortQueue),
                "a packet that finds its port's own queue full loses its payload, and its header goes on; else it is dropped";
            Pfc "transport.pfc" KeyKind::Bool, D::Derived(derive::pfc, "true; with port_queue false"), packets, "priority flow control: pause frames instead of loss";
            Classes "transport.classes" KeyKind::TextOrList, D::None("one class"), |v| v.is(KeyId::Mode, "packet"),
                "traffic classes with queues and pauses of their own, such as [\"small priority 1 for tp pp\", \"bulk weight 3\", \"rest lossy\"]; see [traffic classes](../how-to/traffic-classes.md)";
            PfcAlphaShift "transport.pfc_alpha_shift" int(0, 30), D::Int(3), shares_buffer, "dynamic threshold: free buffer shifted right by this";
            PfcReserveBytes "transport.pfc_reserve_bytes" int(0, 1 << 30), D::Int(4096), shares_buffer, "buffer reserved to each port";
            PfcResumeOffsetBytes "transport.pfc_resume_offset_bytes" int(0, 1 << 30), D::Int(3072), |v| packets(v) && v.bool(KeyId::Pfc), "a port resumes this far below its threshold";
            PfcWatchdog "transport.pfc_watchdog" one_of(&["off", "drop", "forward"], &[]), D::Choice("off"), |v| packets(v) && v.bool(KeyId::Pfc),
                "what a switch does where a port has been paused for too long: \"drop\" sends what waits there to nowhere, \"forward\" sends it despite the pause; see [pauses without end](../how-to/traffic-classes.md#pauses-without-end)";
            PfcWatchdogDetectUs "transport.pfc_watchdog_detect_us" stepped(0.1, 1_000_000.0, 0.000_001), D::Float(200_000.0), pfc_watchdog,
                "time from a pause frame after which the watchdog acts (the default of SONiC's pfcwd)";
            PfcWatchdogRestoreUs "transport.pfc_watchdog_restore_us" stepped(0.1, 1_000_000.0, 0.000_001), D::Float(200_000.0), pfc_watchdog,
                "time from a resume frame after which it ends (the default of SONiC's pfcwd)";
            Ecn "transport.ecn" KeyKind::Bool, D::Bool(true), packets, "switches mark packets";
            EcnKminKb "transport.ecn_kmin_kb" stepped(0.0, 1e7, 0.001), D::Derived(derive::ecn_kmin, "400; with dctcp its k_kb; with nscc and rccc a fifth of a bandwidth-delay product"), |v| packets(v) && v.bool(KeyId::Ecn),
                "queue where marking starts, units of 1000 B per 100 Gb/s of link rate";
            EcnKmaxKb "transport.ecn_kmax_kb" stepped(0.0, 1e7, 0.001), D::Derived(derive::ecn_kmax, "1600; with dctcp its k_kb; with nscc and rccc four fifths of a bandwidth-delay product"), |v| packets(v) && v.bool(KeyId::Ecn),
                "queue above which every packet is marked, units of 1000 B per 100 Gb/s of link rate";
            EcnPmax "transport.ecn_pmax" num(0.0, 1.0), D::Derived(derive::ecn_pmax, "0.2; with dctcp, nscc and rccc 1"), |v| packets(v) && v.bool(KeyId::Ecn), "marking probability at kmax";
            EcnByRate "transport.ecn_by_rate" KeyKind::Text, D::None("none"), |v| packets(v) && v.bool(KeyId::Ecn),
                "thresholds of exact link rates, `gbps kmin_kb kmax_kb pmax; ...`; what is written in ecn_kmin_kb, ecn_kmax_kb, ecn_pmax wins";
            EcnAverageWeight "transport.ecn_average_weight" int(0, 15), D::Int(0), |v| packets(v) && v.bool(KeyId::Ecn),
                "marking goes by an exponential average of the queue, as WRED has it: the newest queue has the weight 2^-this; 0: by the queue itself";
            WredDrops "transport.wred_drops" KeyKind::Bool, D::Bool(false), wred_drops,
                "switches drop what they would mark, as WRED does with traffic without ECN: of lossy classes, or of all without transport.pfc";
            Window "transport.window" KeyKind::Bool, D::Derived(derive::window, "true with hpcc, dctcp and swift"), |v| packets(v) && !ultra_ethernet(v), "bytes in flight limited to the bandwidth-delay product";
            VarWindow "transport.var_window" KeyKind::Bool, D::Derived(derive::window, "true with hpcc, dctcp and swift"), |v| packets(v) && v.bool(KeyId::Window), "the window shrinks with the rate";
            GlobalRtt "transport.global_rtt" KeyKind::Bool, D::Bool(true), |v| packets(v) && (v.bool(KeyId::Window) || cc(v, "hpcc") || cc(v, "nscc")),
                "base RTT and window: the largest over all pairs of hosts, else each flow's own";
            FreshQp "transport.fresh_qp" KeyKind::Bool, D::Bool(false), |v| packets(v) && messages(v) && !cc(v, "none") && !cc(v, "rccc"),
                "each message of a collective starts with fresh congestion-control state; flows of a flow file or of generated traffic always do";
            Clock "transport.clock" one_of(&["ps", "ns"], &[]), D::Choice("ps"), always, "\"ns\" rounds every transmission to the nearest nanosecond, as the reference does";
            AckIntervalBytes "transport.ack_interval_bytes" int(1, BYTES_MAX), D::Derived(derive::ack_interval, "1; with nscc and rccc 16384"), always, "bytes from one ACK to the next";
            AckChunkBytes "transport.ack_chunk_bytes" int(0, BYTES_MAX), D::Int(4000), |v| packets(v) && v.int(KeyId::AckIntervalBytes) > 1 && !v.is(KeyId::LossRecovery, "uec"),
                "an ACK is due also at multiples of this; 0: never";
            AckHighPrio "transport.ack_high_prio" KeyKind::Bool, D::Derived(derive::ack_high_prio, "true with dcqcn, timely and swift"), |v| packets(v) && v.bool(KeyId::Pfc),
                "a NIC's ACKs are not held by pauses of the data class";
            RateBound "transport.rate_bound" KeyKind::Bool, D::Bool(true), |v| packets(v) && !ultra_ethernet(v), "packets are paced at the flow's rate, else only limited by windows";
            MinRateMbps "transport.min_rate_mbps" RATE_MBPS, D::Derived(derive::min_rate_mbps, "1000; with swift 10"), |v| packets(v) && !cc(v, "none") && !ultra_ethernet(v), "least rate of a flow; where it is not given, at most the NIC's";
            LossRecovery "transport.loss_recovery" one_of(&["adapter", "ns3", "selective", "uec"], &[]), D::Derived(derive::loss_recovery, "adapter; with nscc and rccc uec"), packets,
                "\"adapter\" goes back N: one NACK a gap, halves what may be outstanding; \"ns3\" goes back N as the reference, a file of transport.config sets it; \"selective\": receivers take packets in any order, only missing ones are sent again; \"uec\": the same as Ultra Ethernet does it";
            ReceiverCredit "transport.receiver_credit" KeyKind::Bool, D::Derived(derive::is_rccc, "true with rccc"), |v| packets(v) && ultra_ethernet(v),
                "a sender sends no packet for which its receiver has not given credit; with nscc its window limits it too";
            PsnRange "transport.psn_range" int(0, 1_048_544), D::Int(0), |v| packets(v) && (v.is(KeyId::LossRecovery, "selective") || v.is(KeyId::LossRecovery, "uec")),
                "most packets between the oldest that is not acknowledged and the next new one, rounded up to a multiple of 32; 0: four bandwidth-delay products, from 64 to 1048544";
            PacketThreshold "transport.packet_threshold" int(0, 1_048_544), D::Int(0), |v| packets(v) && v.is(KeyId::LossRecovery, "selective"),
                "a packet counts as lost when one that many packets after it has arrived, at most half of the range; 0: 1 where a flow has one path, else a bandwidth-delay product";
            NackIntervalUs "transport.nack_interval_us" DELAY_US_OR_0, D::Float(500.0), |v| packets(v) && v.is(KeyId::LossRecovery, "ns3"), "least time between two NACKs for one byte";
            CnpIntervalUs "transport.cnp_interval_us" DELAY_US_OR_0, D::Float(0.0), |v| packets(v) && (v.bool(KeyId::Ecn) && (cc(v, "dcqcn") || cc(v, "dctcp"))),
                "least time between two congestion notifications of a flow; 0: every marked packet gives one";
            RtoUs "transport.rto_us" DELAY_US_OR_0, D::Derived(derive::rto_us, "NCCL_IB_TIMEOUT's, else 320 with selective and uec, 4194 without PFC or with a lossy class, 67109 with PFC alone; with uec and port_queue 15 and the time that six queues take"), packets,
                "retransmission timeout; 0 is the default, raised to four base round trips where that is longer";
            RtoRetries "transport.rto_retries" int(0, 1_000_000), D::Derived(derive::rto_retries, "NCCL_IB_RETRY_CNT, else 7"), packets, "timeouts in a row after which a flow gives up";
            TransportSeed "transport.seed" int(0, i64::MAX), D::Int(1), |v| packets(v) && v.bool(KeyId::Ecn), "mixed into the seed of marking";
            TransportConfig "transport.config" KeyKind::Path, D::None("none"), always, "configuration file of HPCC or SimAI; keys written in the sweep file win over it";
            TransportFormat "transport.format" one_of(&["ns3"], &[]), D::Choice("ns3"), |v| v.given(KeyId::TransportConfig), "form of the configuration file";
            DcqcnG "transport.dcqcn.g" num(0.0, 1.0), D::Float(1.0 / 256.0), |v| packets(v) && cc(v, "dcqcn"), "gain of alpha";
            DcqcnAlphaUs "transport.dcqcn.alpha_us" DELAY_US, D::Float(1.0), |v| packets(v) && cc(v, "dcqcn"), "period of alpha's update";
            DcqcnDecreaseUs "transport.dcqcn.decrease_us" DELAY_US, D::Float(4.0), |v| packets(v) && cc(v, "dcqcn"), "period of rate decreases";
            DcqcnIncreaseUs "transport.dcqcn.increase_us" DELAY_US, D::Float(300.0), |v| packets(v) && cc(v, "dcqcn"), "period of rate increases";
            DcqcnFastRecovery "transport.dcqcn.fast_recovery" int(0, 1_000_000), D::Int(1), |v| packets(v) && cc(v, "dcqcn"), "increases before the target rises";
            DcqcnRaiMbps "transport.dcqcn.rai_mbps" RATE_MBPS, D::None("20 per 100 Gb/s of NIC rate"), |v| packets(v) && cc(v, "dcqcn"), "additive increase";
            DcqcnRhaiMbps "transport.dcqcn.rhai_mbps" RATE_MBPS, D::None("200 per 100 Gb/s of NIC rate"), |v| packets(v) && cc(v, "dcqcn"), "hyper increase";
            DcqcnClamp "transport.dcqcn.clamp" KeyKind::Bool, D::Bool(false), |v| packets(v) && cc(v, "dcqcn"), "every decrease lowers the target too";
            HpccEta "transport.hpcc.eta" num(0.01, 2.0), D::Float(0.95), |v| packets(v) && cc(v, "hpcc"), "target utilisation";
            HpccMiThresh "transport.hpcc.mi_thresh" int(0, 1_000_000), D::Int(0), |v| packets(v) && cc(v, "hpcc"), "additive increases before a multiplicative one";
            HpccRaiMbps "transport.hpcc.rai_mbps" RATE_MBPS, D::None("40 per 100 Gb/s of NIC rate"), |v| packets(v) && cc(v, "hpcc"), "additive increase";
            HpccIntMulti "transport.hpcc.int_multi" int(1, 1024), D::None("the NIC rate in 25 Gb/s, at least 1"), |v| packets(v) && cc(v, "hpcc"), "coarseness of the telemetry's byte counts";
            HpccFastReact "transport.hpcc.fast_react" KeyKind::Bool, D::Bool(true), |v| packets(v) && cc(v, "hpcc"), "react to every ACK, not once a round trip";
            TimelyAlpha "transport.timely.alpha" num(0.0, 1.0), D::Float(0.875), |v| packets(v) && cc(v, "timely"), "weight of a new round-trip difference";
            TimelyBeta "transport.timely.beta" num(0.0, 1.0), D::Float(0.8), |v| packets(v) && cc(v, "timely"), "multiplicative decrease";
            TimelyTLowUs "transport.timely.t_low_us" DELAY_US, D::Float(50.0), |v| packets(v) && cc(v, "timely"), "round trip below which rates rise";
            TimelyTHighUs "transport.timely.t_high_us" DELAY_US, D::Float(500.0), |v| packets(v) && cc(v, "timely"), "round trip above which rates fall";
            TimelyMinRttUs "transport.timely.min_rtt_us" DELAY_US, D::Float(20.0), |v| packets(v) && cc(v, "timely"), "unit of the round-trip gradient";
            TimelyRaiMbps "transport.timely.rai_mbps" RATE_MBPS, D::None("100 per 100 Gb/s of NIC rate"), |v| packets(v) && cc(v, "timely"), "additive increase";
            TimelyRhaiMbps "transport.timely.rhai_mbps" RATE_MBPS, D::None("500 per 100 Gb/s of NIC rate"), |v| packets(v) && cc(v, "timely"), "hyper increase";
            NsccTargetUs "transport.nscc.target_us" DELAY_US_OR_0, D::Float(0.0), |v| packets(v) && cc(v, "nscc"), "queueing delay that is aimed at; 0: three quarters of the network's round trip with trimming, else all of it";
            CreditBurstPackets "transport.credit.burst_packets" int(0, CREDIT_MAX), D::Int(0), receiver_credit,
                "packets that a burst may send before its receiver gives credit, at most credit.window_packets; 0: one and a half bandwidth-delay products";
            CreditWindowPackets "transport.credit.window_packets" int(0, CREDIT_MAX), D::Int(0), receiver_credit,
                "packets of credit that a sender keeps and asks for at most; 0: one and a half bandwidth-delay products";
            CreditGrantPackets "transport.credit.grant_packets" int(1, 1024), D::Int(4), receiver_credit, "packets of credit that one PULL brings";
            CreditRate "transport.credit.rate" num(0.01, 1.0), D::Float(0.99), receiver_credit, "share of its NIC's rate at which a receiver gives credit";
            SwiftTargetUs "transport.swift.target_us" DELAY_US_OR_0, D::Float(0.0), |v| packets(v) && cc(v, "swift"), "round trip that is aimed at, without hops and flows; 0: five quarters of the base round trip (our choice)";
            SwiftHopUs "transport.swift.hop_us" DELAY_US_OR_0, D::Float(0.0), |v| packets(v) && cc(v, "swift"), "added to the target for each switch on the path";
            SwiftFsRangeUs "transport.swift.fs_range_us" DELAY_US_OR_0, D::Float(50.0), |v| packets(v) && cc(v, "swift"), "most that small windows add to the target; 0: nothing (our choice)";
            SwiftFsMinCwnd "transport.swift.fs_min_cwnd" num(0.001, 1e6), D::Float(0.1), |v| packets(v) && cc(v, "swift"), "window in packets at which all of fs_range_us is added";
            SwiftFsMaxCwnd "transport.swift.fs_max_cwnd" num(0.001, 1e6), D::Float(100.0), |v| packets(v) && cc(v, "swift"), "window in packets from which nothing is added";
            SwiftAiPackets "transport.swift.ai_packets" num(0.0, 1000.0), D::Float(1.0), |v| packets(v) && cc(v, "swift"), "additive increase a round trip";
            SwiftBeta "transport.swift.beta" num(0.0, 1.0), D::Float(0.8), |v| packets(v) && cc(v, "swift"), "multiplicative decrease, times the part of the round trip above the target";
            SwiftMaxMdf "transport.swift.max_mdf" num(0.0, 1.0), D::Float(0.5), |v| packets(v) && cc(v, "swift"), "most that one decrease takes off";
            DctcpG "transport.dctcp.g" num(0.0, 1.0), D::Float(0.0625), |v| packets(v) && cc(v, "dctcp"), "gain of alpha";
            DctcpRaiMbps "transport.dctcp.rai_mbps" RATE_MBPS, D::Float(615.0), |v| packets(v) && cc(v, "dctcp"), "additive increase";
            DctcpKKb "transport.dctcp.k_kb" stepped(0.0, 1e7, 0.001), D::Float(300.0),
                |v| packets(v) && cc(v, "dctcp") && v.bool(KeyId::Ecn) && !(v.given(KeyId::EcnKminKb) && v.given(KeyId::EcnKmaxKb)), "marking threshold, units of 1000 B per 100 Gb/s of link rate";

            WorkloadKind "workload.kind" one_of(&["model", "collective", "traffic", "flows", "simai", "chakra", "htsim", "goal", "kineto", "flight-recorder", "dag", "inference"], &[]),
                D::None("required"), always, "what is sent";
            Iterations "workload.iterations" int(1, 1_000_000), D::Int(1), iterates, "iterations that are measured; traffic and flow files run once";
            Warmup "workload.warmup" int(0, 1_000_000), D::Int(0), iterates, "iterations before those, simulated and left out of iteration_time_ns";
            WorkloadPath "workload.path" KeyKind::Files, D::None("required with the kinds that read a file"), |v| v.is(KeyId::WorkloadKind, "flows") || imported(v) || requests(v, "trace"),
                "the flow file, trace of requests, SimAI workload, Chakra traces (a folder, a prefix or one .et file), htsim connection matrix, GOAL schedule, traces of PyTorch's profiler or dumps of its flight recorder (a folder or one .json file), or DAG (TOML or CSV)";

            Pattern "workload.pattern" one_of(&["incast", "permutation", "ring", "all-to-all", "poisson", "storage"], &[]), D::None("required with kind = \"traffic\""), traffic, "who sends to whom";
            Bytes "workload.bytes" int(1, BYTES_MAX), D::Derived(derive::bytes, "1000000; with kind = \"collective\" 64000000"),
                |v| (traffic(v) && !v.is(KeyId::Pattern, "poisson")) || collective(v),
                "size of each flow; of storage what each client writes or reads at a time; of a collective as nccl-tests counts it: the whole buffer, of an all-gather what each rank ends with, of a dispatch or combine a rank's tokens, each counted once for each of its experts";
            Ranks "workload.ranks" int(0, COUNT), D::Int(0), |v| traffic(v) || collective(v) || imported(v),
                "GPUs that take part, from rank 0; 0: all, or as many as the file says; with chakra, kineto and flight-recorder the ranks that a file of one rank is repeated on";
            FanIn "workload.fan_in" int(0, COUNT), D::Int(8), |v| pattern(v, "incast"), "senders to each receiver, drawn by lot (those in its own server use NVLink); 0: everyone else";
            Receivers "workload.receivers" int(1, COUNT), D::Int(1), |v| pattern(v, "incast"), "receivers, spread evenly from rank 0";
            Stride "workload.stride" int(1, COUNT), D::Int(1), |v| pattern(v, "ring"), "rank i sends to rank i + stride";
            Load "workload.load" num(0.001, 1.0), D::Float(0.5), |v| pattern(v, "poisson"), "share of the hosts' link rate";
            Cdf "workload.cdf" KeyKind::Text, D::Text("WebSearch"), |v| pattern(v, "poisson"),
                "flow sizes: \"WebSearch\", \"FbHdp\", \"AliStorage2019\", \"GoogleRPC2008\" or a file";
            StorageRanks "workload.storage_ranks" int(1, COUNT), D::Int(1), |v| pattern(v, "storage"), "the last GPUs of those that take part, which stand for storage; the others write to them or read from them";
            Stripes "workload.stripes" int(0, COUNT), D::Int(0), |v| pattern(v, "storage"), "of these, how many the bytes of one client are spread over; 0: all";
            Transfer "workload.transfer" one_of(&["write", "read"], &[]), D::Choice("write"), |v| pattern(v, "storage"), "which way: checkpoints are written, training data are read";
            EveryUs "workload.every_us" stepped(0.0, 1e9, 0.000_001), D::Float(0.0), |v| pattern(v, "storage"), "time from one burst to the next, in workload.duration_ns; 0: there is one";
            DurationNs "workload.duration_ns" int(1, 1_000_000_000_000), D::Int(1_000_000), |v| pattern(v, "poisson") || (pattern(v, "storage") && v.float(KeyId::EveryUs) > 0.0), "time in which flows arrive, or bursts of storage begin";
            WorkloadFormat "workload.format" one_of(&["ns3"], &["htsim"]), D::Choice("ns3"), |v| v.is(KeyId::WorkloadKind, "flows"), "form of the flow file";
            StartUnit "workload.start_unit" one_of(&["ns", "s"], &[]), D::None("seconds if any start has a fraction"), |v| v.is(KeyId::WorkloadKind, "flows"),
                "unit of the flow file's start times; needed where all are whole numbers";

            Model "workload.model" KeyKind::Named, D::None("required with kind = \"model\" or \"inference\""), transformer, "a preset such as \"gpt3-13b\", a .toml file or an inline table of hyper-parameters";
            #[outside_identity]
            Recipe "workload.recipe" one_of(&RECIPES, &[]), D::None("none"), |v| model(v) && v.has(KeyId::Recipe),
                "defaults that a release of a framework has, for the keys that are not written: [recipes](../how-to/training-jobs.md#recipes-of-a-release)";
            Framework "workload.framework" one_of(&["megatron", "deepspeed", "fsdp", "fsdp2", "ddp"], &[]), D::Choice("megatron"), model, "whose habits the training follows; fsdp and fsdp2 are the two generations of PyTorch's, by flat and by single parameters";
            Tp "workload.tp" int(1, COUNT), D::Int(1), transformer, "tensor parallel degree";
            Pp "workload.pp" int(1, COUNT), D::Int(1), transformer, "pipeline stages";
            Cp "workload.cp" int(1, COUNT), D::Int(1), model, "context parallel degree";
            Dp "workload.dp" int(0, COUNT), D::Derived(derive::dp, "what cluster.gpus leaves, else 1"), transformer, "data parallel degree; of inference the instances of the model; 0 is the default";
            Ep "workload.ep" int(1, COUNT), D::Int(1), transformer, "expert parallel degree, over data parallel ranks; instances of inference that share experts go step by step together";
            Etp "workload.etp" int(0, COUNT), D::Int(0), |v| transformer(v) && degree(v, KeyId::Tp), "tensor parallel degree of routed experts: 1, so that experts are spread over tensor parallel ranks as well (ep divides tp x dp x cp), or tp; 0: tp";
            Vpp "workload.vpp" int(1, COUNT), D::Int(1), |v| pipelined(v) && v.is(KeyId::Schedule, "1f1b"), "virtual stages of a pipeline rank: interleaved 1F1B where above 1";
            Schedule "workload.schedule" one_of(&["1f1b", "gpipe", "zb-h1", "zb-v", "v-half", "v-min", "dualpipe"], &["dualpipe-v"]), D::Choice("1f1b"), |v| pipelined(v) || split_backward(v),
                "order of micro-batches on a pipeline; zb-h1, zb-v, v-half and v-min split backward passes into gradients of inputs and of weights; the latter three fold the pipeline into a V of two virtual stages a rank; dualpipe feeds it from both ends and holds the parameters twice: [schedules](../how-to/training-jobs.md#pipeline-schedules)";
            Microbatch "workload.microbatch" int(1, COUNT), D::Int(1), model, "samples of a micro-batch";
            GlobalBatch "workload.global_batch" int(0, 1 << 30), D::Derived(derive::global_batch, "microbatch * dp * pp"), model,
                "samples of an iteration over all data parallel ranks; 0 is the default";
            Seq "workload.seq" int(0, 1 << 30), D::Int(0), model, "tokens of a sample; 0: the model's own";
            SequenceParallel "workload.sequence_parallel" KeyKind::Bool, D::Derived(derive::sequence_parallel, "true with megatron"), |v| degree(v, KeyId::Tp),
                "activations between tensor parallel blocks are split along the sequence";
            Recompute "workload.recompute" one_of(&["none", "selective", "operations", "full"], &[]), D::Choice("none"), model,
                "activations computed again in the backward pass: none; some modules of each layer; all but attention and every other product (as torchtitan selects); all but each layer's input";
            RecomputeModules "workload.recompute_modules" KeyKind::Text, D::Text("core_attn"), |v| model(v) && v.is(KeyId::Recompute, "selective"),
                "modules that are computed again, joined by commas, by Megatron's names: core_attn, mla_up_proj (latent attention's vectors of each head), layernorm (norms that are kernels of their own), mlp (layers without experts), moe (experts with their exchanges), moe_act (the experts' activation function), shared_experts";
            RecomputeLayers "workload.recompute_layers" int(0, COUNT), D::Int(0), |v| model(v) && !v.is(KeyId::Recompute, "none"),
                "layers of each virtual stage, from its first, that are computed again; the others keep everything (Megatron's recompute_method of block, with recompute_num_layers); 0: all";
            Zero "workload.zero" int(0, 3), D::Derived(derive::zero, "3 with fsdp and fsdp2, or 2 with a pipeline, 1 with deepspeed, else 0"), sharded_data,
                "ZeRO stage: what is sharded over data parallel ranks; 1 is Megatron's distributed optimizer. FSDP on a pipeline: with 2 parameters stay once they are gathered, with 3 a forward pass frees them";
            ShardRanks "workload.shard_ranks" int(0, COUNT), D::Int(0), fsdp,
                "ranks over which FSDP shards, neighbours in the order of ranks, such as those of a server; their copies reduce gradients with each other (hybrid sharding, HSDP); 0: all data parallel ranks";
            ParamBytes "workload.param_bytes" int(1, 8), D::Int(2), model, "bytes of a parameter in computation";
            GradBytes "workload.grad_bytes" int(1, 8), D::Derived(derive::grad_bytes, "4 with megatron, else param_bytes"), model, "bytes of a gradient as it is accumulated and reduced";
            ActivationBytes "workload.activation_bytes" int(1, 8), D::Int(2), model, "bytes of an activation";
            OptimizerBytes "workload.optimizer_bytes" int(0, 64), D::Int(12), model, "bytes a parameter of master weights and optimizer state";
            Fp8 "workload.fp8" KeyKind::Bool, D::Bool(false), |v| transformer(v) && !v.given(KeyId::Precision), "matrix products in FP8; of inference the weights of layers too";
            Precision "workload.precision" one_of(&["bf16", "fp8", "mxfp8", "nvfp4", "int4"], &[]), D::Derived(derive::precision, "fp8 with workload.fp8, else bf16"), transformer,
                "operands of matrix products in linear layers: 16 bit, FP8 with a scaling factor a tensor, FP8 with one for 32 elements, FP4 with one for 16; the last two on Blackwell";
            Fp8Scaling "workload.fp8_scaling" one_of(&["delayed", "delayed-tensor", "current"], &[]), D::Choice("delayed"), |v| model(v) && v.is(KeyId::Precision, "fp8") && !v.is(KeyId::Framework, "fsdp2"),
                "what scaling factors of FP8 come from: earlier passes, on whose largest elements all ranks of a stage agree after every pass with Megatron; the same among tensor and context parallel ranks alone (Megatron's tp_only_amax_red); or the tensor itself, which is read once more (Megatron's fp8_recipe of tensorwise)";
            Compile "workload.compile" KeyKind::Bool, D::Bool(false), |v| model(v) && !v.is(KeyId::Framework, "megatron"),
                "norms, gates and rotary embeddings are one kernel each, as torch.compile makes them; else the single operations of PyTorch's eager mode. Megatron has kernels of its own";
            LaunchUs "workload.launch_us" stepped(0.0, 1e6, 0.000_001), D::None("host_op_us of the GPU's table"), model,
                "time of the host for one operation of the framework: a pass through a layer takes at least the sum over its kernels and collectives, where a product of Transformer Engine counts several; 0: CUDA graphs";
            CudaGraph "workload.cuda_graph" one_of(&["none", "attention", "iteration"], &[]), D::Choice("none"), model, "what the host launches as CUDA graphs: nothing; attention, norms and routers, so that experts are left to launch one by one; or the whole iteration, so that launch_us counts nowhere";
            FlashAttention "workload.flash_attention" KeyKind::Bool, D::Bool(true), model, "fused attention, which keeps no matrix of sequence by sequence";
            Attention "workload.attention" one_of(&["gpu", "flash1", "triton", "flash2", "flash3", "cudnn", "cudnn-fp8", "cudnn-mxfp8"], &[]), D::Choice("gpu"), |v| model(v) && v.bool(KeyId::FlashAttention),
                "kernels of fused attention: FlashAttention 1 to 3, its version in Triton, cuDNN's in 16 bit, FP8 or MXFP8, or those that the GPU's table names";
            UnpadAttention "workload.unpad_attention" KeyKind::Bool, D::Bool(false), |v| model(v) && v.bool(KeyId::FlashAttention) && !v.is(KeyId::Framework, "megatron"),
                "each layer removes padding from queries, keys and values before fused attention, and puts it back after, as with flash-attn's bert_padding (llm-foundry's \"flash\" of January 2024, Hugging Face with a mask): copies by PyTorch's indexed operations before 2.8, and the host waits for the GPU";
            FusedLoss "workload.fused_loss" KeyKind::Bool, D::Bool(false), model, "the loss is one kernel that keeps 16-bit logits alone; else it keeps them in 32 bit, and PyTorch's makes two copies more";
            FusedGroupedMlp "workload.fused_grouped_mlp" KeyKind::Bool, D::Bool(false), model, "the products of a rank's experts are one kernel, with the activation function and the conversion of its results, as Transformer Engine's for MXFP8 on Blackwell; the model needs experts";
            FusedPermute "workload.fused_permute" KeyKind::Bool, D::Bool(true), |v| transformer(v) && model(v),
                "a kernel each writes and sums the copies of tokens that go to experts (Megatron's moe_permute_fusion, which is off unless set); else PyTorch's single operations; without effect with DeepEP's kernels and models without experts";
            FusedRope "workload.fused_rope" KeyKind::Bool, D::Bool(true), |v| model(v) && v.is(KeyId::Framework, "megatron"),
                "the rotary embedding is one kernel (Megatron's apply_rope_fusion); else PyTorch's single operations, as Megatron-Bridge runs them for other kinds than \"rope\", such as \"yarn\"";
            RouterFp32 "workload.router_fp32" KeyKind::Bool, D::Bool(false), |v| model(v) && v.is(KeyId::Framework, "megatron"),
                "weights of a token's experts are in FP32, as with Megatron's moe_router_dtype, DeepEP and HybridEP, and so are the experts' biases that they are multiplied with; the model's experts need biases";
            LossMetrics "workload.loss_metrics" int(0, 64), D::Int(0), model, "metrics that compute the loss of every micro-batch's logits again, in 32 bit, and whose values all ranks gather after every iteration, a tensor for each rank: Composer's LanguageCrossEntropy and LanguagePerplexity are two";
            OffloadLayers "workload.offload_layers" int(0, COUNT), D::Int(0), model, "layers of a pipeline rank whose activations wait in the host's memory for the backward pass";
            FusedOptimizer "workload.fused_optimizer" KeyKind::Bool, D::Bool(true), model, "the optimizer's step is one kernel; else a loop of PyTorch's operations, which touches its state several times";
            OverlapGrad "workload.overlap_grad" KeyKind::Bool, D::Derived(derive::overlap_data, "true but with megatron"), sharded_data, "gradients are reduced during the backward pass";
            AlignGradReduce "workload.align_grad_reduce" KeyKind::Bool, D::Bool(true), |v| aligns(v) && v.bool(KeyId::OverlapGrad),
                "stages of Megatron's pipelines begin to reduce gradients together, so that they are slowed down at the same time; else each does when it has them";
            DeferEmbeddingWgrad "workload.defer_embedding_wgrad" KeyKind::Bool, D::Bool(false), |v| pipelined(v) || (model(v) && v.bool(KeyId::DeferEmbeddingWgrad)),
                "gradients of the output matrix are computed after all passes, while the pipeline drains (Megatron's defer_embedding_wgrad_compute); logits of all micro-batches stay until then";
            OverlapParam "workload.overlap_param" KeyKind::Bool, D::Derived(derive::overlap_data, "true but with megatron"), |v| sharded_data(v) && v.int(KeyId::Zero) > 0,
                "parameters are gathered during the forward pass";
            GatherAhead "workload.gather_ahead" int(0, 64), D::Int(1), |v| fsdp(v) && v.bool(KeyId::OverlapParam),
                "units of FSDP whose parameters are gathered before they are needed: 1 is FSDP2's own prefetch, and two gatherings at a time of FSDP's limit_all_gathers; each takes memory of a unit";
            UnitLayers "workload.unit_layers" int(1, 1 << 16), D::Int(1), fsdp, "layers of a unit of FSDP, whose parameters are gathered and whose gradients are reduced together";
            PrefetchMparams "workload.prefetch_mparams" stepped(0.0, 1e9, 0.000_001), D::Float(50.0), |v| zero_3(v) && v.bool(KeyId::OverlapParam),
                "DeepSpeed's stage3_prefetch_bucket_size: parameters that are asked for before their module needs them, units of 10^6; 0: none";
            LiveMparams "workload.live_mparams" stepped(0.0, 1e9, 0.000_001), D::Float(1000.0), zero_3, "DeepSpeed's stage3_max_live_parameters: it prefetches nothing while so many parameters are gathered, units of 10^6";
            ReuseMparams "workload.reuse_mparams" stepped(0.0, 1e9, 0.000_001), D::Float(1000.0), zero_3, "DeepSpeed's stage3_max_reuse_distance: parameters stay that are used again before so many others, units of 10^6";
            ListCollectives "workload.list_collectives" KeyKind::Bool, D::Bool(false), zero_3,
                "ZeRO-3 gathers and reduces lists of tensors, one a rank, which the host makes while the GPU waits, as DeepSpeed up to 0.5.4";
            TpOverlapPieces "workload.tp_overlap_pieces" int(1, 64), D::Int(1), |v| degree(v, KeyId::Tp),
                "pieces that a matrix product and its tensor parallel communication are split into to run side by side; 1: one after the other";
            OverlapEp "workload.overlap_ep" KeyKind::Bool, D::Bool(false), |v| transformer(v) && degree(v, KeyId::Ep), "tokens go to experts and back while another micro-batch computes, as with Megatron's overlap_moe_expert_parallel_comm; needs vpp above 1 where pp is";
            OverlapSharedExperts "workload.overlap_shared_experts" KeyKind::Bool, D::Bool(false), |v| model(v) && degree(v, KeyId::Ep),
                "experts that every token visits are computed while tokens come back from the others, as with Megatron's moe_shared_expert_overlap; else after that";
            OverlapP2p "workload.overlap_p2p" KeyKind::Bool, D::Derived(derive::overlap_p2p, "true with vpp above 1 or split backward passes"), pipelined, "pipeline sends and receives have a stream of their own";
            ScatterGather "workload.scatter_gather" KeyKind::Bool, D::Bool(false), |v| pipelined(v) && degree(v, KeyId::Tp) && !v.bool(KeyId::SequenceParallel),
                "a tensor parallel rank sends its share of a stage's output, and the next stage gathers the shares (Narayanan et al., 4.1)";
            AsyncTp "workload.async_tp" KeyKind::Bool, D::Bool(true), |v| degree(v, KeyId::Tp),
                "communication of tensor parallel ranks in the backward pass runs beside the gradients of weights, as in Megatron since 2022";
            FusedGradAccumulation "workload.fused_grad_accumulation" KeyKind::Bool, D::Bool(true), model,
                "matrix products add to the kept gradients, as in Megatron since 2022; else kernels of their own do";
            BucketMb "workload.bucket_mb" stepped(0.000_001, 1e6, 0.000_001), D::Derived(derive::bucket_mb, "40e6 gradients with megatron, 5e8 with deepspeed, else 26.2144"), sharded_data,
                "gradients (or gathered parameters) of one bucket, units of 10^6 bytes";
            ExpertSkew "workload.expert_skew" stepped(1.0, 1e6, 0.000_001), D::Float(1.0), |v| degree(v, KeyId::Ep) || shared_experts(v), "load of the busiest expert over the mean; 1: even";
            EpDispatcher "workload.ep_dispatcher" one_of(&["all-to-all", "deepep", "deepep-v2", "deepep-low-latency"], &[]), D::Choice("all-to-all"), |v| degree(v, KeyId::Ep) || shared_experts(v) || expert_op(v),
                "what carries tokens to experts and back: NCCL's all-to-all, a copy for each expert; DeepEP's normal kernels of version 1 or 2, once to each server, where NVLink spreads them; or its low-latency kernels, a copy for each expert, without NCCL";
            RankOrder "workload.rank_order" KeyKind::Text, D::Text("tp-cp-ep-dp-pp"), several_degrees, "how ranks are numbered, fastest first";
            Kernels "workload.kernels" KeyKind::Path, D::None("none"), |v| transformer(v) && v.has(KeyId::Kernels), "CSV of measured kernels, laid over the built-in operation database";
            MemoryCheck "workload.memory_check" KeyKind::Bool, D::Bool(true), model, "an experiment that needs more memory than a GPU has, by more than memory_margin, is `oom`, without being simulated";
            MemoryMargin "workload.memory_margin" stepped(0.0, 10.0, 0.000_001), D::Float(0.1), |v| model(v) && v.bool(KeyId::MemoryCheck),
                "share of a GPU's memory that the estimate may be above it: by less, an experiment runs, and a warning names both numbers (our choice)";
            MemoryReserveGib "workload.memory_reserve_gib" stepped(0.0, 1e6, 0.001), D::Float(1.0), transformer, "memory of a GPU that driver, CUDA and libraries take (our choice)";
            MemoryFragmentation "workload.memory_fragmentation" stepped(0.0, 1.0, 0.000_001), D::Float(0.05), model,
                "share of activations and working memory that is lost to fragmentation on top (our choice)";

            Serving "workload.serving" one_of(&["colocated", "disaggregated"], &[]), D::Choice("colocated"), inference,
                "every instance prefills and decodes; or one pool of GPUs prefills and sends keys and values over the network to another, which decodes";
            PrefillTp "workload.prefill_tp" int(0, COUNT), D::Int(0), disaggregated, "tensor parallel degree of the pool that prefills; 0: tp";
            PrefillPp "workload.prefill_pp" int(0, COUNT), D::Int(0), disaggregated, "pipeline stages of the pool that prefills; 0: pp";
            PrefillDp "workload.prefill_dp" int(1, COUNT), D::Int(1), disaggregated, "instances in the pool that prefills; dp are in the one that decodes";
            PrefillEp "workload.prefill_ep" int(0, COUNT), D::Int(0), disaggregated, "expert parallel degree of the pool that prefills; 0: ep";
            Requests "workload.requests" one_of(&["generated", "trace"], &[]), D::Choice("generated"), inference, "where requests come from: a generator, or the CSV file in workload.path";
            RequestCount "workload.request_count" int(1, 1_000_000), D::Int(64), |v| requests(v, "generated"), "requests that arrive";
            Clients "workload.clients" int(0, 1_000_000), D::Int(0), inference,
                "clients that each send their next request when the last one is answered; 0: requests arrive on their own, whether or not others are answered";
            RequestRate "workload.request_rate" stepped(0.0, 1e6, 0.000_001), D::Float(1.0), |v| requests(v, "generated") && v.int(KeyId::Clients) == 0, "requests a second; 0: all arrive at once";
            Burstiness "workload.burstiness" stepped(0.01, 100.0, 0.000_001), D::Float(1.0), |v| requests(v, "generated") && v.int(KeyId::Clients) == 0 && v.float(KeyId::RequestRate) > 0.0,
                "shape of the gamma distribution of times between requests: 1: Poisson arrivals; below: bursts; above: more even";
            Lengths "workload.lengths" one_of(&["lognormal", "fixed"], &[]), D::Choice("lognormal"), |v| requests(v, "generated"), "distribution of prompt and output lengths around their means";
            PromptTokens "workload.prompt_tokens" int(1, 10_000_000), D::Int(1024), |v| requests(v, "generated"), "mean tokens of a prompt (our choice)";
            OutputTokens "workload.output_tokens" int(1, 10_000_000), D::Int(128), |v| requests(v, "generated"), "mean tokens of an answer (our choice)";
            LengthSpread "workload.length_spread" stepped(0.0, 10.0, 0.000_001), D::Float(0.5), |v| requests(v, "generated") && v.is(KeyId::Lengths, "lognormal"),
                "standard deviation of lengths over their mean (our choice)";
            OutputSpread "workload.output_spread" stepped(0.0, 10.0, 0.000_001), D::Derived(derive::output_spread, "workload.length_spread"), |v| requests(v, "generated") && v.is(KeyId::Lengths, "lognormal"),
                "standard deviation of lengths of answers over their mean";
            PrefixTokens "workload.prefix_tokens" int(0, 10_000_000), D::Int(0), |v| requests(v, "generated"),
                "tokens in front of every prompt, besides prompt_tokens, that it has in common with others: a system prompt";
            Prefixes "workload.prefixes" int(1, 1_000_000), D::Int(1), |v| requests(v, "generated") && v.int(KeyId::PrefixTokens) > 0, "different texts that stand there, drawn evenly";
            PrefixCache "workload.prefix_cache" KeyKind::Bool, D::Bool(true), prefixes,
                "keys and values of prefixes stay in memory for later requests, as long as nobody else needs it";
            RequestRouting "workload.request_routing" one_of(&["least-loaded", "prefix"], &[]), D::Choice("least-loaded"), |v| prefixes(v) && v.bool(KeyId::PrefixCache),
                "the instance that a request goes to: whose unfinished requests have the fewest tokens; or with the fewest left to compute, less those of its prompt that it has in memory";
            Batching "workload.batching" one_of(&["mixed", "prefill-first"], &[]), D::Choice("mixed"), inference,
                "what a step holds: a token of every decoding sequence, then prompts in chunks up to max_batch_tokens; or, where any prompt waits, prompts alone";
            Admission "workload.admission" one_of(&["on-demand", "reserved"], &[]), D::Choice("on-demand"), inference,
                "memory for keys and values of an admitted request: as it goes, and who was admitted last is preempted where none is left (vLLM, SGLang); or for its whole answer at once (TensorRT-LLM)";
            MaxSequences "workload.max_sequences" int(1, 1_000_000), D::Int(256), inference, "most sequences that an instance runs at once";
            MaxBatchTokens "workload.max_batch_tokens" int(1, 10_000_000), D::Int(8192), inference, "most tokens of a step of an instance";
            ChunkTokens "workload.chunk_tokens" int(0, 10_000_000), D::Int(0), inference, "most tokens of one prompt in a step; 0: what max_batch_tokens leaves";
            DraftTokens "workload.draft_tokens" int(0, 64), D::Int(0), inference,
                "speculative decoding: tokens that are drafted for each sequence and step, which the next step computes at once; 0: none";
            DraftAcceptance "workload.draft_acceptance" stepped(0.0, 1.0, 0.000_001), D::Float(0.7), drafts,
                "probability that a drafted token is accepted, if those before it are (our choice: it depends on model and text)";
            DraftLayers "workload.draft_layers" int(1, 100_000), D::Int(1), drafts, "layers that draft, each like one of the model (EAGLE and multi-token prediction have one)";
            KvBytes "workload.kv_bytes" int(1, 2), D::Int(2), inference, "bytes of an element of cached keys and values";
            KvBlockTokens "workload.kv_block_tokens" int(1, 65536), D::Int(16), inference, "tokens of a block, in which memory for keys and values is given out";
            MemoryShare "workload.memory_share" stepped(0.01, 1.0, 0.000_001), D::Float(0.9), inference,
                "share of a GPU's memory for weights, working memory, memory_reserve_gib and, with what is left, keys and values";
            StepOverheadUs "workload.step_overhead_us" stepped(0.0, 1e6, 0.001), D::Float(0.0), inference, "time of the host between two steps that nothing hides: scheduling, sampling";
            JoinedLayers "workload.joined_layers" int(0, 100_000), D::Int(0), inference,
                "layers of a step whose collectives are simulated as one, with their bytes and latencies added up; 0: all of a stage, which keeps the graph small";
            TtftBoundMs "workload.ttft_bound_ms" stepped(0.0, 1e9, 0.001), D::Float(2000.0), inference, "time to the first token within which a request counts as good (MLPerf Inference, Llama 2 70B)";
            TpotBoundMs "workload.tpot_bound_ms" stepped(0.0, 1e9, 0.001), D::Float(200.0), inference, "time per output token within which a request counts as good (MLPerf Inference, Llama 2 70B)";

            ComputeScale "workload.compute_scale" stepped(0.0, 1e6, 0.000_001), D::Float(1.0), computes, "factor on the time of every kernel";
            GemmScale "workload.gemm_scale" stepped(0.001, 1000.0, 0.000_001), D::Float(1.0), model,
                "factor on the time of matrix products and convolutions, beside compute_scale: what `hyperfold calibrate` fits to times of layers";
            AttentionScale "workload.attention_scale" stepped(0.001, 1000.0, 0.000_001), D::Float(1.0), |v| model(v) && transformer(v), "factor on the time of fused attention, beside compute_scale";
            MemoryBoundScale "workload.memory_bound_scale" stepped(0.001, 1000.0, 0.000_001), D::Float(1.0), model,
                "factor on the time of kernels that memory bounds (norms, activations, the optimizer's step), beside compute_scale";
            BytesScale "workload.bytes_scale" stepped(0.000_001, 1e6, 0.000_001), D::Float(1.0), imported, "factor on the bytes of every message and collective of the file";
            WaitForCalls "workload.wait_for_calls" KeyKind::Bool, D::Bool(false), |v| v.is(KeyId::WorkloadKind, "flight-recorder"),
                "ranks wait for each call before they go on, and the durations of calls are taken from the time between them; without it the host makes its calls when it made them";
            ComputeJitter "workload.compute_jitter" stepped(0.0, 1.0, 0.000_001), D::Float(0.0), computes, "standard deviation of a kernel's time over its mean, drawn for every kernel and rank";
            StragglerRanks "workload.straggler_ranks" KeyKind::Text, D::Text(""), |v| computes(v) && v.float(KeyId::StragglerSlowdown) != 1.0, "ranks that compute slower, for example \"0,5,8-15\"";
            StragglerSlowdown "workload.straggler_slowdown" stepped(1.0, 1e6, 0.000_001), D::Float(2.0), |v| computes(v) && v.has(KeyId::StragglerRanks), "factor on their kernels' time";
            Slowdown "workload.slowdown" KeyKind::Text, D::Text("gpu"), overlaps,
                "how much kernels slow down beside communication: \"gpu\": as the GPU's table says; \"none\"; the path of a .csv of measured slowdowns, or of an XGBoost model in .json";
            SlowdownScale "workload.slowdown_scale" stepped(0.0, 100.0, 0.000_001), D::Float(1.0), |v| overlaps(v) && !v.is(KeyId::Slowdown, "none"),
                "factor on the time that kernels lose beside communication by workload.slowdown";
            Analytic "workload.analytic" KeyKind::Text, D::Text("intra"), program,
                "whose communication is a calibrated cost instead of packets: dimensions such as \"tp,ep\", \"all\", or \"intra\": only what cluster.nvlink leaves inside servers";
            WorkloadClass "workload.class" KeyKind::Text, D::None("the first of transport.classes"), |v| v.has(KeyId::Classes) && !v.is(KeyId::WorkloadKind, "flows"),
                "traffic class of what no class is for; in a flow file, priorities are numbers of classes";
            FlowWeights "workload.flow_weights" KeyKind::Text, D::Text(""), |v| flows(v) && messages(v),
                "flow level: by how many times more of a full link than others flows of a dimension get, whole numbers to 64 such as \"pp:8 dp:2\"; 1 where nothing is said";
            WorkloadSeed "workload.seed" int(0, i64::MAX), D::Int(1),
                |v| by_chance(v) || pattern(v, "poisson") || pattern(v, "permutation") || pattern(v, "incast") || requests(v, "generated") || shared_experts(v) || (computes(v) && v.float(KeyId::ComputeJitter) > 0.0),
                "mixed into the seed of pairs, sizes, arrivals, requests, busiest experts and jitter";

            Op "workload.op" one_of(&["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "send-recv", "barrier", "dispatch", "combine"], &[]),
                D::None("required with kind = \"collective\""), collective, "the operation; send-recv: every rank sends to the next; dispatch: every rank sends tokens to experts, combine: results back";
            EpExperts "workload.ep_experts" int(1, 65536), D::Int(256), |v| expert_op(v) && once_a_server(v), "routed experts of a dispatch or combine, spread over its ranks (DeepSeek-V3's)";
            EpTopK "workload.ep_top_k" int(1, 1024), D::Int(8), |v| expert_op(v) && once_a_server(v), "experts that a token of a dispatch or combine goes to (DeepSeek-V3's)";
            EpGroups "workload.ep_groups" int(1, 256), D::Int(1), |v| expert_op(v) && once_a_server(v), "groups of these experts from which a token's are chosen; 1: none";
            EpTopGroups "workload.ep_top_groups" int(0, 256), D::Int(0), |v| expert_op(v) && once_a_server(v) && v.int(KeyId::EpGroups) > 1,
                "groups that a token's experts may be in (node-limited routing); 0: all";
            Algorithm "workload.algorithm" one_of(&["auto", "ring", "tree", "halving-doubling", "pat", "direct", "hierarchical", "nvls", "in-network", "collnet-chain"], &[]), D::Choice("auto"), nccl_collectives,
                "how collectives are carried out; auto: what NCCL's cost model chooses; another holds for the smallest too, as NCCL_ALGO does; pat: NCCL's all-gather and reduce-scatter where each server has one GPU, in a logarithm of steps; nvls, in-network: switches inside or between servers reduce; collnet-chain: those between servers, for chains of GPUs";
            Protocol "workload.protocol" one_of(&["auto", "LL", "LL128", "Simple"], &[]), D::Choice("auto"), nccl_collectives, "NCCL's protocol; auto: what its cost model chooses";
            Channels "workload.channels" int(0, 64), D::Int(0), nccl_collectives, "channels of a collective; 0: what NCCL would use";
            ChunkKib "workload.chunk_kib" stepped(0.0, 1e6, 0.001), D::Float(0.0), nccl_collectives, "piece that a collective passes on at a time; 0: what NCCL would use";
            QpsPerConnection "workload.qps_per_connection" int(1, 128), D::Derived(derive::qps, "NCCL_IB_QPS_PER_CONNECTION, else with cluster.server, or with a leaf for each port, the ports of a NIC, else 1"), messages, "queue pairs that a connection's messages are spread over";
            SplitDataOnQps "workload.split_data_on_qps" KeyKind::Bool, D::Derived(derive::split_on_qps, "NCCL_IB_SPLIT_DATA_ON_QPS, else true where the ports of a NIC decide the queue pairs"),
                |v| messages(v) && v.int(KeyId::QpsPerConnection) > 1, "every message is split over them, else they take turns";
            Pxn "workload.pxn" KeyKind::Bool, D::Derived(derive::pxn_allowed, "unless NCCL_PXN_DISABLE or NCCL_P2P_PXN_LEVEL = 0"), pxn,
                "data of all-to-alls and pipelines for another rail goes over NVLink to the GPU there first";
            StartOverheadNs "workload.start_overhead_ns" stepped(0.0, 1e9, 0.001), D::Float(0.0), messages, "software overhead on the start of each message (Multiverse 3.1)";
            WorkQueueLatencyNs "workload.work_queue_latency_ns" stepped(0.0, 1e9, 0.001), D::Float(0.0), messages, "from posting a message to the NIC's first packet (Arcadia 6.1)";
            CollectiveOverhead "workload.collective_overhead" one_of(&["measured", "none"], &[]), D::Derived(derive::collective_overhead, "measured with cluster.server, else none"), messages,
                "what software costs the messages of collectives and pipelines; measured: a collective alone takes as long as measured runs of its kind; none: links alone";
            AnalyticCost "workload.analytic_cost" one_of(&["links", "chunks"], &[]), D::Choice("links"), |v| collectives(v) && v.is(KeyId::AnalyticCost, "chunks"),
                "what collectives that are analytic take: links: by the links they load, as measured runs of the same server correct it; chunks: rings and trees by Moye's Equations 2 to 5, chunk by chunk, without these corrections";
            LeaveOutRun "workload.leave_out_run" one_of(&["none", "aws_p5_2n", "aws_p5_1n", "cw_gb200_1rack", "cw_gb200_20rack", "stas_a100_1n", "gke_gib_2n"], &[]), D::Choice("none"), |v| collectives(v) && v.has(KeyId::Server),
                "a measured run that costs of collectives on its own server take nothing from: how good they would be without it";
            LatencyScale "workload.latency_scale" stepped(0.001, 1000.0, 0.000_001), D::Float(1.0), |v| collectives(v) && v.float(KeyId::LatencyScale) != 1.0,
                "factor on the latencies that NCCL and its transport take for each step of a collective and for each message; bytes take as long as before: what `hyperfold calibrate` fits to small sizes";
            RendezvousNs "workload.rendezvous_ns" stepped(0.0, 1e9, 0.001), D::Float(1000.0), collectives,
                "from the last rank's arrival at a collective to its start on all; at least the simulation's step (our choice)";
            NcclAlgo "workload.nccl.NCCL_ALGO" KeyKind::Text, D::None("NCCL's"), |v| nccl(v, KeyId::Algorithm), "algorithms that NCCL may choose";
            NcclProto "workload.nccl.NCCL_PROTO" KeyKind::Text, D::None("NCCL's"), |v| nccl(v, KeyId::Protocol), "protocols that NCCL may choose";
            NcclMinChannels "workload.nccl.NCCL_MIN_NCHANNELS" int(1, 64), D::None("NCCL's"), |v| nccl(v, KeyId::Channels), "least channels";
            NcclMaxChannels "workload.nccl.NCCL_MAX_NCHANNELS" int(1, 64), D::None("NCCL's"), |v| nccl(v, KeyId::Channels), "most channels";
            NcclMinRings "workload.nccl.NCCL_MIN_NRINGS" int(1, 64), D::None("NCCL's"), |v| nccl(v, KeyId::Channels) && !v.has(KeyId::NcclMinChannels), "the former name of NCCL_MIN_NCHANNELS";
            NcclMaxRings "workload.nccl.NCCL_MAX_NRINGS" int(1, 64), D::None("NCCL's"), |v| nccl(v, KeyId::Channels) && !v.has(KeyId::NcclMaxChannels), "the former name of NCCL_MAX_NCHANNELS";
            NcclNvls "workload.nccl.NCCL_NVLS_ENABLE" int(0, 2), D::None("NCCL's"), |v| nccl(v, KeyId::Algorithm), "0: NCCL does not choose NVLink SHARP";
            NcclBuffsize "workload.nccl.NCCL_BUFFSIZE" int(4096, 1 << 32), D::None("NCCL's"), |v| nccl(v, KeyId::ChunkKib), "bytes of the buffer between two GPUs, eight chunks";
            NcclQps "workload.nccl.NCCL_IB_QPS_PER_CONNECTION" int(1, 128), D::None("1"), |v| messages(v) && !v.given(KeyId::QpsPerConnection), "see workload.qps_per_connection";
            NcclSplit "workload.nccl.NCCL_IB_SPLIT_DATA_ON_QPS" int(0, 1), D::None("0"),
                |v| messages(v) && v.int(KeyId::QpsPerConnection) > 1 && !v.given(KeyId::SplitDataOnQps), "see workload.split_data_on_qps";
            NcclPxnDisable "workload.nccl.NCCL_PXN_DISABLE" int(0, 1), D::None("0"), pxn_variable, "see workload.pxn";
            NcclPxnLevel "workload.nccl.NCCL_P2P_PXN_LEVEL" int(0, 2), D::None("2"), |v| pxn_variable(v) && v.int(KeyId::NcclPxnDisable) == 0, "0: as NCCL_PXN_DISABLE; 1 and 2 are alike here";
            NcclP2pDisable "workload.nccl.NCCL_P2P_DISABLE" int(0, 1), D::None("0"), |v| collectives(v) && generated(v) && !v.given(KeyId::NvlinkGbps), "1: GPUs of one server use the network";
            NcclP2pLevel "workload.nccl.NCCL_P2P_LEVEL" KeyKind::Text, D::None("NCCL's"),
                |v| collectives(v) && generated(v) && !v.given(KeyId::NvlinkGbps) && v.int(KeyId::NcclP2pDisable) == 0, "\"LOC\" or 0: as NCCL_P2P_DISABLE; other levels allow it";
            NcclTimeout "workload.nccl.NCCL_IB_TIMEOUT" int(1, 31), D::None("see transport.rto_us"), |v| messages(v) && !v.given(KeyId::RtoUs), "retransmission timeout, 4.096 us * 2^this";
            NcclRetries "workload.nccl.NCCL_IB_RETRY_CNT" int(0, 7), D::None("7"), |v| messages(v) && !v.given(KeyId::RtoRetries), "see transport.rto_retries";
            NcclTopoFile "workload.nccl.NCCL_TOPO_FILE" KeyKind::Path, D::None("none"), |v| collectives(v) && v.has(KeyId::NcclTopoFile) && !v.given(KeyId::ServerXml), "see cluster.server_xml";
            NcclCrossNic "workload.nccl.NCCL_CROSS_NIC" int(0, 2), D::None("NCCL's"), cross_nic, "1: rings enter and leave a server by different NICs and cross rails; 0 and 2: they stay on rails, as with 2 NCCL swaps the rings of every other server";
            NcclGdrLevel "workload.nccl.NCCL_NET_GDR_LEVEL" KeyKind::Text, D::None("NCCL's"), never, "GPUs reach their NICs directly here";
            NcclHca "workload.nccl.NCCL_IB_HCA" KeyKind::Text, D::None("all"), |v| collectives(v) && generated(v), "NICs that may be used: mlx5_0 to mlx5_(nics_per_server - 1), or as cluster.server_xml names them";
            NcclTc "workload.nccl.NCCL_IB_TC" int(0, 255), D::None("0"), never, "one traffic class is modelled";
            NcclGid "workload.nccl.NCCL_IB_GID_INDEX" int(0, 255), D::None("0"), never, "addressing takes no time";
            NcclIbDisable "workload.nccl.NCCL_IB_DISABLE" int(0, 1), D::None("0"), never, "the network is RoCE here; sockets are not modelled";
            NcclNet "workload.nccl.NCCL_NET" KeyKind::Text, D::None("IB"), never, "the network is RoCE here; sockets and plugins are not modelled";
            NcclNetShared "workload.nccl.NCCL_NET_SHARED_BUFFERS" int(0, 1), D::None("1"), never, "buffers are not modelled one by one";
            NcclP2pDirect "workload.nccl.NCCL_P2P_DIRECT_DISABLE" int(0, 1), D::None("0"), never, "copies inside a GPU are part of the calibrated costs";
            NcclNvb "workload.nccl.NCCL_NVB_DISABLE" int(0, 1), D::None("0"), never, "servers have NVSwitches or full meshes here: no GPU is an intermediate";
            NcclP2pChunk "workload.nccl.NCCL_P2P_NET_CHUNKSIZE" int(4096, 1 << 30), D::None("131072"), |v| nccl(v, KeyId::ChunkKib), "bytes that an all-to-all passes on at a time, and that a relay of a pipeline has before it sends";

            JobGpus "job.gpus" int(0, COUNT), D::None("what the job's workload or its list of GPUs needs"), in_job,
                "GPUs of the job; of a background job all GPUs of the network where nothing is said";
            JobPlacement "job.placement" KeyKind::TextOrList, D::Text("packed"), beside_others,
                "which GPUs: packed: as few servers as possible; spread: as many servers as possible; random: by chance; rail: as few rails as possible; or a list such as [0, 1, 8] or \"0-7,16-23\", the first being the job's rank 0";
            JobStartUs "job.start_us" stepped(0.0, 1e9, 0.000_001), D::Float(0.0), beside_others, "when the job starts";
            JobArrivalUs "job.arrival_us" stepped(0.0, 1e9, 0.000_001), D::Float(0.0), beside_others,
                "mean of a random time, exponentially distributed, from the arrival of the job before in the file that has this key to that of this one, which start_us is added to: Poisson arrivals; 0: it starts at start_us";
            JobBackground "job.background" KeyKind::Bool, D::Bool(false), |v| beside_others(v) && flows_alone(v),
                "traffic that the other jobs meet: it may have the same GPUs as they, and the makespan does not wait for it";
            JobWeight "job.weight" stepped(0.0, 1e6, 0.000_001), D::Float(1.0), |v| in_job(v) && classes_of_jobs(v),
                "with jobs.source = \"classes\": jobs are of this class in proportion to its weight";

            Mode "fidelity.mode" one_of(&["packet", "flow", "job"], &[]), D::Choice("packet"), |v| !v.is(KeyId::Mode, "packet"),
                "level of detail: \"packet\" simulates every packet of a job, \"flow\" gives flows max-min fair rates (flow-mode.md), \"job\" a cluster over days, a job being one thing (simulate-a-cluster.md)";
            Join "fidelity.join" one_of(&["none", "collectives", "ranks"], &[]), D::Choice("none"), |v| flows(v) && program(v),
                "flow level: what becomes one flow. \"collectives\": each collective over rings and each all-to-all sent directly, instead of a message a step; \"ranks\": that, and ranks that do the same at the same time get tasks once, their messages being one flow (flow-mode.md)";
            FastForward "fidelity.fast_forward" one_of(&["steady", "exact", "off", "rates"], &[]), D::Choice("steady"), folded,
                "how much may be folded: \"exact\" changes no bit of any result, \"off\" simulates every packet; \"steady\" skips what is steady, too, and estimates how far that is off; \"rates\" also carries measured rates on where flows collide under HPCC, DCQCN and DCTCP, and simulates no pauses while it folds (carried-rates.md)";
            Memo "fidelity.memo" KeyKind::Bool, D::Bool(true), |v| (folded(v) && !v.is(KeyId::FastForward, "off")) || measured_iterations(v),
                "what was simulated once is looked up when it comes again, in this or another experiment of the run; with scheduler.iterations_at also what the iterations of a set of jobs take";
            SteadyMetric "fidelity.steady_metric" one_of(&["rate", "window", "inflight", "queue", "rtt"], &[]), D::Choice("rate"), steady,
                "what must be steady: acknowledged bytes an interval, congestion window, bytes in flight, bytes queued on the path, or bytes in flight over the rate";
            SteadyTheta "fidelity.steady_theta" stepped(0.0, 1.0, 0.000_001), D::Float(0.0), steady,
                "most that the metric may fluctuate by in a window, of its mean; 0: 0.05, or more where few packets fit into a round trip, and under HPCC no sleep where several senders meet at a port";
            SteadySamples "fidelity.steady_samples" int(0, 1_000_000), D::Int(0), steady, "intervals in the window; 0: chosen from capacity, round-trip time and number of queue pairs";
            SteadyIntervalNs "fidelity.steady_interval_ns" int(0, 1_000_000_000), D::Int(0), steady, "time between samples; 0: chosen likewise";
            Audit "fidelity.audit" stepped(0.0, 1.0, 0.000_001), D::Float(0.01), steady, "share of what is skipped that is simulated all the same, to see how far off it is; above 0, at least one skip of every experiment; 0: none";
            AuditBound "fidelity.audit_bound" stepped(0.0, 1000.0, 0.000_001), D::Float(0.01), steady, "mean error of completion times in audits above which a run warns (and fails, with --strict)";

            JobsSource "jobs.source" one_of(&["trace", "philly", "alibaba", "uniform", "classes"], &[]), D::Choice("uniform"), always,
                "where jobs come from: a file, or a generator after published statistics, or equally spread over ranges, or of the classes that [[job]] tables are";
            JobsPath "jobs.path" KeyKind::Path, D::None("required with source = \"trace\""), |v| v.is(KeyId::JobsSource, "trace"), "trace of jobs, CSV";
            JobsCount "jobs.count" int(1, 10_000_000), D::Int(500), generated_jobs, "jobs that arrive";
            JobsLoad "jobs.load" stepped(0.0, 100.0, 0.000_001), D::Float(0.8), generated_jobs,
                "GPU time asked for over GPU time of the cluster while jobs arrive; 0: all arrive at once";
            JobsMinGpus "jobs.min_gpus" int(1, COUNT), D::Int(8), uniform_jobs, "least GPUs of a job; sizes are powers of two times this, equally likely";
            JobsMaxGpus "jobs.max_gpus" int(1, COUNT), D::Int(1024), uniform_jobs, "most GPUs of a job";
            JobsMinHours "jobs.min_hours" stepped(0.001, 1e6, 0.001), D::Float(1.0), |v| uniform_jobs(v) || classes_of_jobs(v), "shortest duration; logarithms of durations are equally likely";
            JobsMaxHours "jobs.max_hours" stepped(0.001, 1e6, 0.001), D::Float(48.0), |v| uniform_jobs(v) || classes_of_jobs(v), "longest duration";
            JobsUsers "jobs.users" int(1, 100_000), D::Int(8), generated_jobs, "users; the n-th submits 1/n as many jobs as the first";
            JobsHighShare "jobs.high_share" stepped(0.0, 1.0, 0.000_001), D::Float(0.0), generated_jobs, "share of jobs with priority 1 instead of 0";
            JobsCommShare "jobs.comm_share" stepped(0.0, 1.0, 0.000_001), D::Float(0.2), |v| !measured_iterations(v),
                "share of a job's time that communication across racks takes, for what an oversubscribed uplink slows down (our choice)";
            JobsComputeS "jobs.compute_s" KeyKind::Text, D::Text("1:0.5"), rings,
                "time of an iteration in which a job does not wait for its network, by GPUs: `8:0.4 1024:0.6`; between two points a line, beyond them their values (our choice)";
            JobsCommMib "jobs.comm_mib" KeyKind::Text, D::Text("8:2000 64:14000 512:28000"), rings,
                "MiB that the servers of a job all-reduce in an iteration, by GPUs, likewise: gradients (our choice: 16-bit ones of models with 1, 7 and 15 billion parameters)";
            JobsMinShare "jobs.min_share" stepped(0.0, 1.0, 0.000_001), D::Float(1.0), always,
                "least share of its GPUs that a job goes on with after a failure; 1: it needs them all";
            JobsGrow "jobs.grow" one_of(&["never", "checkpoint", "at-once"], &[]), D::Choice("never"), |v| v.is(KeyId::JobsSource, "trace") || v.float(KeyId::JobsMinShare) < 1.0,
                "when a job that went on with fewer GPUs gets free ones back, up to all that it asked for: never; after its next checkpoint; as soon as they are free, with a checkpoint of its own";
            JobsHours "jobs.simulated_hours" stepped(0.0, 1e6, 0.001), D::Float(0.0), always, "time that is simulated; 0: until the last job has ended";
            JobsSeed "jobs.seed" int(0, i64::MAX), D::Int(1), generated_jobs, "mixed into the seed of generated jobs";

            SchedulerPolicy "scheduler.policy" one_of(for_each_scheduler!(names), &[]), D::Choice("backfill"), always, concat!("who runs next: ", for_each_scheduler!(words));
            SchedulerPlacement "scheduler.placement" one_of(for_each_placement!(names), &[]), D::Choice("topology"), always, concat!("which GPUs: ", for_each_placement!(words));
            SchedulerSlowdown "scheduler.slowdown" KeyKind::Text, D::Text("1:1"), |v| !measured_iterations(v),
                "time of a job over its time in one rack, by racks: `1:1 2:1.05 8:1.2`; between two points a line, after the last its value";
            IterationsAt "scheduler.iterations_at" one_of(&["none", "flow", "packet"], &[]), D::Choice("none"), measured_iterations,
                "how a job's speed beside others is found: none: by scheduler.slowdown and jobs.comm_share; else iterations of all jobs that share links are simulated together, with fair rates or as packets";
            IterationsCount "scheduler.iterations" int(1, 1000), D::Int(3), measured_iterations,
                "iterations of the slowest of these jobs that are simulated at least; the speed holds until jobs start, end or move (Arcadia 6.3's n; our choice)";
            IterationsWithin "scheduler.iterations_within" stepped(0.0, 1000.0, 0.000_001), D::Float(0.02), measured_iterations,
                "twice as many iterations are simulated, up to 32 times as many where that takes some tenths of a second at most, as long as a job's differ by more than this between the two halves of the time, or jobs have not yet met in all their phases; the second half counts (our choice)";
            IterationsAudit "scheduler.iterations_audit" stepped(0.0, 1.0, 0.000_001), D::Float(0.05), measured_iterations,
                "share of the sets of jobs, by lot, of which four times as many iterations are simulated all the same, to see how far off the speeds are";
            IterationsAuditBound "scheduler.iterations_audit_bound" stepped(0.0, 1000.0, 0.000_001), D::Float(0.02), |v| measured_iterations(v) && v.float(KeyId::IterationsAudit) > 0.0,
                "mean difference of iteration times in these audits above which a run warns (and fails, with --strict)";
            SchedulerQuotas "scheduler.quotas" KeyKind::Text, D::None("none"), |v| set(v, KeyId::SchedulerQuotas), "most GPUs of a user at a time: `user:gpus ...`; `*` is every other user";
            SchedulerDepth "scheduler.depth" int(0, 1_000_000), D::Int(256), |v| !v.is(KeyId::SchedulerPolicy, "fcfs"), "waiting jobs behind a blocked one that are looked at";
            SchedulerPreempt "scheduler.preempt" KeyKind::Bool, D::Bool(true), |v| v.is(KeyId::SchedulerPolicy, "priority"),
                "a job takes the GPUs of jobs with a lower priority, which go back to their last checkpoint";
            SchedulerDelay "scheduler.low_delay_s" stepped(0.0, 1e9, 0.001), D::Float(0.0), |v| v.is(KeyId::SchedulerPolicy, "priority"),
                "jobs of priority 0 wait at least so long";
            SchedulerDefragment "scheduler.defragment" KeyKind::Bool, D::Bool(false), |v| v.is(KeyId::SchedulerPlacement, "packed") || v.is(KeyId::SchedulerPlacement, "topology"),
                "where GPUs are enough but scattered, jobs that fill no server are moved together";
            SchedulerMoveS "scheduler.move_s" stepped(0.0, 1e9, 0.001), D::Float(120.0), |v| v.bool(KeyId::SchedulerDefragment), "time that a moved job stands still (our choice)";

            CheckpointPolicy "checkpoint.policy" one_of(&["none", "interval", "young"], &[]), D::Choice("interval"), always,
                "when jobs save their state: never; every interval_s of work; by Young's optimum of each job";
            CheckpointInterval "checkpoint.interval_s" stepped(1.0, 1e9, 0.001), D::Float(1800.0), |v| v.is(KeyId::CheckpointPolicy, "interval"), "work between checkpoints (our choice)";
            CheckpointCost "checkpoint.cost_s" stepped(0.0, 1e9, 0.001), D::Float(30.0), |v| !v.is(KeyId::CheckpointPolicy, "none"), "time that a job stands still for one (our choice)";
            CheckpointGib "checkpoint.gib_per_gpu" stepped(0.0, 1e6, 0.001), D::Float(0.0), |v| !v.is(KeyId::CheckpointPolicy, "none"),
                "data of a checkpoint, which adds its time to storage to cost_s";
            CheckpointStorage "checkpoint.storage_gbps" stepped(0.001, 1e9, 0.001), D::Float(1000.0), |v| v.float(KeyId::CheckpointGib) > 0.0 && !v.is(KeyId::CheckpointPolicy, "none"),
                "rate of the storage (our choice)";
            CheckpointShare "checkpoint.writes_share" one_of(&["nothing", "storage", "fabric"], &[]), D::Choice("nothing"), |v| v.float(KeyId::CheckpointGib) > 0.0 && !v.is(KeyId::CheckpointPolicy, "none"),
                "what jobs share that write at the same time, by max-min fair rates: nothing, each has the storage to itself; the storage; the storage, NICs of servers and ways out of racks";
            CheckpointRestart "checkpoint.restart_s" stepped(0.0, 1e9, 0.001), D::Float(300.0), always, "time from new GPUs to the first step after a failure or preemption (our choice)";

            FailuresModel "failures.model" one_of(for_each_failure_model!(names_and_trace), &[]), D::Choice("exponential"), always,
                concat!("when parts fail: ", for_each_failure_model!(words), "; as a file says");
            FailuresPath "failures.path" KeyKind::Path, D::None("required with model = \"trace\""), |v| v.is(KeyId::FailuresModel, "trace"), "trace of failures, CSV";
            FailuresShape "failures.weibull_shape" stepped(0.1, 10.0, 0.001), D::Float(0.8), |v| v.is(KeyId::FailuresModel, "weibull"), "below 1 failures come in clusters (our choice)";
            GpuMtbf "failures.gpu_mtbf_h" stepped(0.0, 1e9, 0.001), D::Float(0.0), drawn_failures, "mean time between failures of one GPU; 0: never";
            HostMtbf "failures.host_mtbf_h" stepped(0.0, 1e9, 0.001), D::Float(0.0), drawn_failures, "of one server";
            LinkMtbf "failures.link_mtbf_h" stepped(0.0, 1e9, 0.001), D::Float(0.0), drawn_failures, "of one NIC's link, which stops its server";
            SwitchMtbf "failures.switch_mtbf_h" stepped(0.0, 1e9, 0.001), D::Float(0.0), drawn_failures, "of one leaf switch, which stops its servers";
            RepairH "failures.repair_h" stepped(0.001, 1e6, 0.001), D::Float(4.0), |v| drawn_failures(v) || drained(v), "time until a GPU, server or link is back (our choice)";
            SwitchRepairH "failures.switch_repair_h" stepped(0.001, 1e6, 0.001), D::Float(2.0), drawn_failures, "time until a switch is back (our choice)";
            SlowServerMtbf "failures.straggler_mtbf_h" stepped(0.0, 1e9, 0.001), D::Float(0.0), drawn_failures, "mean time until a server becomes slow; 0: never";
            SlowServerH "failures.straggler_h" stepped(0.001, 1e6, 0.001), D::Float(6.0), |v| drawn_failures(v) && v.float(KeyId::SlowServerMtbf) > 0.0, "time until a slow server is found and mended (our choice)";
            SlowServerSlowdown "failures.straggler_slowdown" stepped(1.0, 1000.0, 0.000_001), D::Float(1.3), always, "time of a job with a slow server over its time without (our choice)";
            MaxRestarts "failures.max_restarts" int(0, 1_000_000_000), D::Int(10_000), always, "restarts after failures, after which a job is given up";
            HotSpares "failures.hot_spares" int(0, COUNT), D::Int(0), always, "servers that run no job and stand in for failed ones after hot_swap_s";
            ColdSpares "failures.cold_spares" int(0, COUNT), D::Int(0), always, "likewise, after cold_swap_s";
            HotSwapS "failures.hot_swap_s" stepped(0.0, 1e9, 0.001), D::Float(60.0), |v| v.int(KeyId::HotSpares) > 0, "time until a hot spare is in its place (our choice)";
            ColdSwapS "failures.cold_swap_s" stepped(0.0, 1e9, 0.001), D::Float(1800.0), |v| v.int(KeyId::ColdSpares) > 0, "time until a cold spare is in its place (our choice)";
            DrainEveryH "failures.drain_every_h" stepped(0.0, 1e6, 0.001), D::Float(0.0), always, "time between drains for maintenance, server after server; 0: none";
            DrainServers "failures.drain_servers" int(1, COUNT), D::Int(1), drained, "servers that are drained at a time";
            DrainH "failures.drain_h" stepped(0.001, 1e6, 0.001), D::Float(2.0), drained, "time that maintenance of a server takes (our choice)";
            DrainWaitH "failures.drain_wait_h" stepped(0.0, 1e6, 0.001), D::Float(0.0), drained, "time that jobs on a drained server may go on before they are stopped";
            DrainRisk "failures.drain_risk" stepped(0.0, 1.0, 0.000_001), D::Float(0.0), drained, "share of maintenances after which the server needs failures.repair_h more";
            FailuresSeed "failures.seed" int(0, i64::MAX), D::Int(1), always, "mixed into the seed of failures and of placement by lot";

            SimNs "limits.sim_ns" int(0, 1_000_000_000_000_000), D::Int(0), always, "simulated time after which an experiment fails; 0: none";
            PacketHops "limits.packet_hops" int(0, i64::MAX), D::Int(0), packets, "packet-hops, simulated or skipped, after which an experiment fails; 0: none";
            #[outside_identity]
            WallS "limits.wall_s" stepped(0.0, 1e9, 0.001), D::Float(0.0), always, "seconds on the clock after which an experiment fails; 0: none";

            #[outside_identity]
            MemoryGib "limits.memory_gib" stepped(0.0, 1e6, 0.001), D::Float(0.0), always, "GiB of the host's memory that an experiment may take; 0: what `--memory` or the machine allows";

            #[outside_identity]
            OutFlows "output.flows" KeyKind::Bool, D::Bool(false), always, "write flows.csv";
            #[outside_identity]
            OutLinks "output.links" KeyKind::Bool, D::Bool(false), always, "write links.csv";
            #[outside_identity]
            OutRtt "output.rtt" KeyKind::Bool, D::Bool(false), packets, "write rtt.csv: sampled round-trip times; every packet is simulated then";
            #[outside_identity]
            OutRttMeans "output.rtt_means" KeyKind::Bool, D::Bool(false), packets, "write rtt_means.csv: mean round-trip time of each flow or queue pair; folding stays on";
            #[outside_identity]
            OutSeries "output.series" KeyKind::TextOrList, D::None("none"), |v| v.is(KeyId::Mode, "packet"), "samples over time, of \"links\" (series_links.csv), \"flows\" (series_flows.csv) or both; what is skipped is sampled as it was measured, and repeats are not looked up (monitor.md)";
            #[outside_identity]
            SeriesLinks "output.series_links" KeyKind::TextOrList, D::None("all"), |v| v.text(KeyId::OutSeries).contains("links"), "only these links, such as \"leaf0->host3\", and all links of these nodes, such as \"leaf0\"";
            #[outside_identity]
            SeriesIntervalUs "output.series_interval_us" stepped(0.001, 1e9, 0.000_001), D::Float(1.0), |v| v.has(KeyId::OutSeries), "time between two samples; it doubles whenever there would be more than output.series_cap";
            #[outside_identity]
            SeriesCap "output.series_cap" int(2, 1_000_000), D::Int(1000), |v| v.has(KeyId::OutSeries), "largest number of sample times of an experiment at which anything has changed";
            #[outside_identity]
            OutRequests "output.requests" KeyKind::Bool, D::Bool(false), |v| inference(v) || v.jobs().iter().any(|job| inference(job.values())), "write requests.csv, a row a request of inference";
            #[outside_identity]
            OutSharedLinks "output.shared_links" KeyKind::Bool, D::Bool(false), |v| v.jobs().len() > 1, "write shared_links.csv, a row a link and job whose data shares it with those of others";
            Alone "output.alone" KeyKind::Bool, D::Bool(false), |v| v.is_of_job(), "simulate each [[job]] also without the others, for the slowdown in jobs.csv";
            LeaveOneOut "output.leave_one_out" KeyKind::Bool, D::Bool(false), |v| v.jobs().len() > 1, "simulate the [[job]]s once more for each of them, without that one: jobs.csv then says by how much each slows each";
            OutJobs "output.cluster_jobs" KeyKind::Bool, D::Bool(false), |v| v.is(KeyId::Mode, "job"), "write cluster_jobs.csv, a row a job";
            OutMap "output.cluster_map" KeyKind::Bool, D::Bool(false), |v| v.is(KeyId::Mode, "job"), "write cluster_map.csv, what groups of servers do over time, which the report draws";
            TimelineS "output.timeline_s" stepped(1.0, 1e9, 0.001), D::Float(3600.0), |v| v.is(KeyId::Mode, "job"), "time between rows of cluster_timeline.csv, and between looks for cluster_map.csv, at least";
            #[outside_identity]
            OutTrace "output.trace" KeyKind::Bool, D::Bool(false), always, "write trace/EXP_ID.pftrace for Perfetto; every experiment but clusters over days is simulated once more for it, unfolded, on one CPU thread, while the run waits: for small ones";

            CostGpuUsd "cost.gpu_usd" PRICE, D::None("assets/costs.toml"), |v| set(v, KeyId::CostGpuUsd), "price of a GPU";
            CostGpuWatts "cost.gpu_watts" PRICE, D::None("assets/costs.toml"), |v| set(v, KeyId::CostGpuWatts), "power of a GPU at full load";
            CostServerUsd "cost.server_usd" PRICE, D::None("assets/costs.toml"), |v| set(v, KeyId::CostServerUsd), "price of a server without its GPUs and NICs";
            CostServerWatts "cost.server_watts" PRICE, D::None("assets/costs.toml"), |v| set(v, KeyId::CostServerWatts), "power of a server without its GPUs and NICs";
            CostNicUsd "cost.nic_usd" PRICE, D::None("assets/costs.toml, by rate"), |v| set(v, KeyId::CostNicUsd), "price of a NIC";
            CostNicWatts "cost.nic_watts" PRICE, D::None("assets/costs.toml, by rate"), |v| set(v, KeyId::CostNicWatts), "power of a NIC";
            CostSwitchUsd "cost.switch_usd" PRICE, D::None("assets/costs.toml, by the rates of its ports"), |v| set(v, KeyId::CostSwitchUsd), "price of a switch";
            CostSwitchWatts "cost.switch_watts" PRICE, D::None("assets/costs.toml, by the rates of its ports"), |v| set(v, KeyId::CostSwitchWatts), "power of a switch";
            CostLinkUsd "cost.link_usd" PRICE, D::None("assets/costs.toml, by rate"), |v| set(v, KeyId::CostLinkUsd), "price of a link: transceivers at both ends and the fibre";
            CostLinkWatts "cost.link_watts" PRICE, D::None("assets/costs.toml, by rate"), |v| set(v, KeyId::CostLinkWatts), "power of a link's transceivers";
            CostCircuitPortUsd "cost.circuit_port_usd" PRICE, D::None("assets/costs.toml"), |v| topology(v, "optical") && set(v, KeyId::CostCircuitPortUsd), "price of a port of an optical circuit switch; a circuit has two";
            CostCircuitPortWatts "cost.circuit_port_watts" PRICE, D::None("assets/costs.toml"), |v| topology(v, "optical") && set(v, KeyId::CostCircuitPortWatts), "power of a port of an optical circuit switch";
            CostYears "cost.years" stepped(0.001, 1000.0, 0.001), D::Float(4.0), priced, "years over which the price counts in usd_per_mtoken and usd_per_useful_gpu_hour (our choice)";
            CostUsdPerKwh "cost.usd_per_kwh" stepped(0.0, 1000.0, 0.000_001), D::Float(0.1), priced, "price of energy in usd_per_mtoken and usd_per_useful_gpu_hour (our choice)";
        }
    };
}
pub(crate) use for_each_key;
