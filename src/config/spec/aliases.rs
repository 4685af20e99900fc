//! Names that people try for keys because other tools, papers or their own scripts use them, with the keys that they mean.
//!
//! Layer: spec. Only the words; `lookup` makes hints from them. A sweep file may not use aliases, so that everything has one name.

/// Keys, each with the names that are tried for it, separated by blanks. If several keys have a name, the section in which it is written decides, if it can. A
/// name with dots counts only as a whole.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("cluster.gpus", "n_gpus num_gpus gpu_count ngpus world_size hosts n_hosts num_hosts nodes servers"),
    ("cluster.gpus_per_server", "gpus_per_node gpus_per_host gpus_per_machine servers nodes local_size"),
    ("cluster.nic", "nic nic_model nic_type adapter hca nic_generation cluster.adapter network_adapter"),
    ("cluster.nics_per_server", "nics nics_per_node nics_per_host nics_per_gpu hcas hcas_per_node"),
    ("cluster.gpu", "gpu_type gpu_model gpu_name accelerator device"),
    ("cluster.server", "server_type machine node_type instance instance_type"),
    ("cluster.gpu_memory_gib", "gpu_memory gpu_memory_gb memory_gb hbm hbm_gb vram"),
    ("cluster.nvlink_gbps", "nvlink_bandwidth nvlink_bw nvlink_rate intra_bandwidth nvlink_speed"),
    ("cluster.nvlink_latency_ns", "nvlink_latency nvlink_delay"),
    ("topology.kind", "topology topo network fabric topology.type topology.name topology_kind topology_type"),
    ("topology.path", "topology_file topology.file"),
    (
        "topology.link_gbps",
        "bandwidth bw bandwidth_gbps link_bandwidth link_rate link_speed rate speed gbps link_bw nic_gbps \
         nic_rate host_gbps link_capacity capacity",
    ),
    ("topology.uplink_gbps", "uplink_bandwidth uplink_rate spine_gbps fabric_gbps uplink_speed uplink"),
    ("topology.core_gbps", "core_bandwidth core_rate core_speed"),
    ("topology.uplink_delay_ns", "uplink_delay uplink_latency spine_delay spine_delay_ns fabric_delay"),
    ("topology.core_delay_ns", "core_delay core_latency"),
    (
        "topology.link_delay_ns",
        "latency delay link_latency link_delay latency_ns link_latency_ns delay_ns propagation_delay \
         latency_us delay_us link_delay_us",
    ),
    ("topology.switch_latency_ns", "switch_latency switch_delay forwarding_latency"),
    (
        "topology.cut_through_bytes",
        "cut_through cutthrough cut_through_switching topology.cut_through store_and_forward switching_mode forwarding_mode switch_mode wormhole",
    ),
    ("topology.oversubscription", "oversub oversubscription_ratio oversubscription_factor"),
    ("topology.switch", "switch_chip switch_asic switch_model switch_name switch_type asic chip"),
    ("topology.leaf_buffer_mib", "leaf_buffer tor_buffer tor_buffer_mib buffer_leaf_mib"),
    ("topology.agg_buffer_mib", "agg_buffer aggregation_buffer aggregation_buffer_mib buffer_agg_mib"),
    ("topology.spine_buffer_mib", "spine_buffer core_buffer core_buffer_mib buffer_spine_mib"),
    ("topology.buffer_mib", "buffer buffer_size buffer_mb switch_buffer switch_buffer_mb buffer_bytes shared_buffer"),
    (
        "topology.outages",
        "link_failures failed_links link_down failures.links failures.link_down topology.failures outage \
         broken_links dead_links failures.outages slow_links degraded_links link_rates packet_loss loss_rate link_loss bit_errors ber",
    ),
    ("routing.reroute_us", "reroute convergence_time failover_us detection_us routing.detection_us reroute_delay"),
    ("topology.k", "ports radix fat_tree_k arity"),
    ("topology.tiers", "layers levels"),
    (
        "routing.policy",
        "routing load_balancing lb multipath multipathing routing.algorithm routing.algo routing.kind \
         routing.mode routing.type",
    ),
    (
        "transport.cc",
        "algo congestion congestion_control cc_algo cc_mode cc_algorithm protocol transport.kind \
         transport.algorithm transport.type transport.name",
    ),
    (
        "transport.payload_bytes",
        "payload payload_size mtu mtu_bytes mss packet_size packet_bytes packet_payload packet_payload_size",
    ),
    (
        "transport.classes",
        "traffic_classes classes priorities queues transport.class_priorities transport.priorities qos ets pfc_classes virtual_lanes",
    ),
    ("workload.class", "traffic_class workload.priority priority_group service_level workload.traffic_class"),
    ("transport.pfc", "priority_flow_control enable_pfc lossless pause"),
    (
        "transport.pfc_watchdog",
        "pfcwd pfc_wd watchdog pause_watchdog deadlock_recovery storm_control pause_timeout pfc.watchdog",
    ),
    (
        "transport.pfc_watchdog_detect_us",
        "detection_time pfcwd_detection_time watchdog_detect_us detect_us pfc.watchdog_detect_us",
    ),
    (
        "transport.pfc_watchdog_restore_us",
        "restoration_time pfcwd_restoration_time watchdog_restore_us restore_us pfc.watchdog_restore_us",
    ),
    ("transport.ecn", "enable_ecn ecn_enabled qcn"),
    ("transport.ecn_kmin_kb", "kmin ecn_kmin ecn_min kmin_kb ecn_threshold threshold"),
    ("transport.ecn_kmax_kb", "kmax ecn_kmax ecn_max kmax_kb ecn_threshold threshold"),
    ("transport.ecn_pmax", "pmax"),
    (
        "transport.ecn_average_weight",
        "wred wred_weight red exponential_weighting_constant weighting_constant ecn_weight ecn.average_weight average_queue ewma",
    ),
    ("transport.wred_drops", "wred_drop red_drop ecn_drop drop_wred random_early_drop early_drop wred.drop"),
    ("transport.window", "has_win windowed cwnd"),
    ("transport.rto_us", "rto timeout timeout_us retransmission_timeout"),
    ("transport.rto_retries", "retries max_retries retry_count"),
    ("transport.hpcc.eta", "eta u_target target_utilisation target_utilization"),
    ("workload.kind", "workload workload.type job task"),
    ("workload.path", "trace trace_file flow_file flows workload_file workload.file"),
    ("workload.pattern", "traffic traffic_pattern workload.traffic"),
    ("workload.op", "collective operation coll collective_op comm_op"),
    (
        "workload.bytes",
        "size size_bytes message_size msg_size flow_size data_size message_bytes flow_bytes collective_size",
    ),
    ("workload.fan_in", "fanin senders incast_degree degree n_senders"),
    ("workload.load", "utilization utilisation offered_load traffic_load"),
    ("workload.cdf", "distribution flow_cdf size_distribution flow_size_distribution"),
    ("workload.duration_ns", "duration simulation_time duration_s duration_us duration_ms"),
    ("workload.algorithm", "algo collective_algorithm coll_algo nccl_algo"),
    ("workload.protocol", "proto nccl_proto nccl_protocol"),
    ("workload.channels", "nchannels n_channels num_channels"),
    ("workload.model", "model_name llm network_model preset"),
    ("workload.framework", "backend engine library"),
    (
        "workload.tp",
        "tensor_parallel tensor_parallel_size tp_size tensor_model_parallel_size tensor_parallelism tp_degree",
    ),
    (
        "workload.pp",
        "pipeline_parallel pipeline_parallel_size pp_size pipeline_model_parallel_size pipeline_parallelism \
         stages pp_degree",
    ),
    ("workload.dp", "data_parallel data_parallel_size dp_size data_parallelism dp_degree"),
    ("workload.cp", "context_parallel context_parallel_size cp_size context_parallelism"),
    ("workload.ep", "expert_parallel expert_parallel_size ep_size expert_model_parallel_size expert_parallelism"),
    ("workload.vpp", "virtual_stages virtual_pipeline interleave num_layers_per_virtual_pipeline_stage"),
    ("workload.microbatch", "micro_batch micro_batch_size microbatch_size mbs"),
    ("workload.global_batch", "batch batch_size global_batch_size gbs"),
    ("workload.seq", "seq_len seq_length sequence_length context_length seqlen"),
    ("workload.recompute", "checkpointing activation_checkpointing recomputation gradient_checkpointing"),
    ("workload.recompute_layers", "recompute_num_layers checkpoint_num_layers"),
    ("workload.recompute_modules", "recompute_module selective_recompute_modules"),
    ("workload.zero", "zero_stage zero_level sharding"),
    ("workload.iterations", "iters steps n_iterations num_iterations epochs"),
    ("workload.compute_jitter", "jitter noise"),
    ("workload.straggler_ranks", "stragglers slow_ranks"),
    ("fidelity.fast_forward", "folding fold memoization memoisation wormhole"),
    ("fidelity.memo", "cache memoize"),
    ("limits.sim_ns", "sim_time max_time stop_time simulator_stop_time max_sim_time"),
    ("limits.wall_s", "wall_time time_limit walltime timeout_s max_wall_time"),
    ("limits.memory_gib", "memory max_memory memory_limit ram"),
    ("output.flows", "write_flows flow_output flows_csv"),
    ("output.links", "write_links link_output links_csv"),
    ("output.series", "time_series timeseries monitor monitoring samples"),
    ("output.trace", "perfetto timeline"),
];

/// Values of keys, each with the words that are tried for it, separated by blanks.
const VALUE_ALIASES: &[(&str, &str, &str)] = &[
    ("workload.kind", "model", "training train pretraining llm transformer megatron"),
    ("workload.kind", "inference", "serving serve decode"),
    ("workload.kind", "collective", "nccl allreduce all-reduce all-to-all"),
    ("workload.kind", "traffic", "synthetic incast permutation ring"),
    ("workload.op", "all-reduce", "allreduce all_reduce"),
    ("workload.op", "all-gather", "allgather all_gather"),
    ("workload.op", "reduce-scatter", "reducescatter reduce_scatter"),
    ("workload.op", "all-to-all", "alltoall all_to_all a2a"),
    ("topology.kind", "multi-plane", "multiplane multi_plane planes"),
    ("topology.kind", "dcn-plus", "dcn+ dcnplus dcn dual-tor"),
    ("topology.kind", "spectrum-x", "spectrumx spectrum_x"),
    ("topology.kind", "dragonfly-plus", "dragonfly+ dragonflyplus dragonfly_plus megafly"),
    ("topology.kind", "slim-fly", "slimfly slim_fly"),
    ("topology.kind", "optical", "ocs optical-circuit optical-circuits circuit-switched rotornet jupiter topoopt"),
    ("topology.kind", "hyperx", "ub-mesh ubmesh full-mesh fullmesh nd-fullmesh flattened-butterfly hypercube"),
    ("topology.kind", "torus", "3d-torus 2d-torus ring"),
    ("topology.kind", "mesh", "2d-mesh 3d-mesh grid"),
    ("topology.kind", "clos", "leaf-spine leaf_spine spine-leaf"),
    ("topology.kind", "fat-tree", "fattree fat_tree"),
    ("topology.kind", "rail-optimized", "rail rails rail_optimized railoptimized"),
    ("fidelity.mode", "packet", "packets ns3"),
    ("fidelity.mode", "flow", "flows fluid max-min"),
    ("fidelity.mode", "job", "jobs cluster"),
];

/// Returns the value of a key that a word may mean.
pub(super) fn meant_value(key: &str, word: &str) -> Option<&'static str> {
    let plain = word.to_ascii_lowercase();
    let means = |(name, _, words): &&(&str, &str, &str)| *name == key && words.split_whitespace().any(|w| w == plain);
    VALUE_ALIASES.iter().find(means).map(|(_, value, _)| *value)
}

/// Returns the keys that a name may mean; empty if it is no alias.
pub(super) fn meant(name: &str) -> Vec<&'static str> {
    let plain = name.to_ascii_lowercase().replace('-', "_");
    let (section, last) = (plain.split('.').next().unwrap_or(""), plain.rsplit('.').next().unwrap_or(""));
    let keys = |word: &str| -> Vec<&'static str> {
        ALIASES.iter().filter(|(_, words)| words.split_whitespace().any(|w| w == word)).map(|(key, _)| *key).collect()
    };
    let whole = keys(&plain);
    if !whole.is_empty() {
        return whole;
    }
    let found = keys(last);
    let here = |key: &&str| key.split('.').next() == Some(section);
    if found.iter().any(here) { found.into_iter().filter(|key| here(key)).collect() } else { found }
}

#[cfg(test)]
mod tests {
    use toml::de::DeValue;

    use super::*;
    use crate::spec::{find, hint};

    #[test]
    fn aliases_mean_keys_and_are_none() {
        for (key, words) in ALIASES {
            assert!(find(key).is_some(), "{key}");
            for word in words.split_whitespace() {
                assert!(find(word).is_none(), "{word} is a key");
                assert!(hint(word).contains(&format!("`{key}`")), "{word}: {}", hint(word));
                assert_eq!(word.to_ascii_lowercase().replace('-', "_"), word, "aliases are plain");
            }
        }
    }

    #[test]
    fn words_for_values_mean_values_and_are_none() {
        for (name, value, words) in VALUE_ALIASES {
            let key = find(name).unwrap_or_else(|| panic!("{name}"));
            assert!(key.read(&DeValue::String((*value).into())).is_ok(), "{name} = {value}");
            for word in words.split_whitespace() {
                let why = key.read(&DeValue::String(word.into())).expect_err(word);
                assert!(why.starts_with(&format!("did you mean \"{value}\"?")), "{name} = {word}: {why}");
            }
        }
    }

    #[test]
    fn the_section_decides_between_keys_of_one_alias() {
        assert_eq!(hint("transport.algo"), "did you mean `transport.cc`?");
        assert_eq!(hint("workload.algo"), "did you mean `workload.algorithm`?");
        assert_eq!(hint("algo"), "did you mean `transport.cc` or `workload.algorithm`?");
        assert_eq!(hint("routing.algo"), "did you mean `routing.policy`?");
        assert_eq!(hint("transport.MTU"), "did you mean `transport.payload_bytes`?");
        assert_eq!(hint("network.bandwidth"), "did you mean `topology.link_gbps`?");
        assert_eq!(hint("topology.link-latency"), "did you mean `topology.link_delay_ns`?");
    }
}
