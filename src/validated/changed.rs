//! Settings of an experiment that differ from the machine that it names. Such an experiment is not exactly of the class that was measured.
//!
//! Layer: validated. It compares a configuration with the defaults of its server and GPU.

use hyperfold_config::spec::{
    BatchingChoice, Config, KeyId, Named, PrecisionChoice, ProgramSpec, RequestSource, SlowdownChoice, Source,
    TopologyKind, WorkloadSection, find_server, key,
};
use hyperfold_network::topology::FabricShape;

/// Names of the differing settings for messages, in a fixed order. A key that nothing reads makes no difference.
pub(super) fn changed(config: &Config) -> Vec<&'static str> {
    let WorkloadSection::Program(program) = &config.workload else { return Vec::new() };
    let (cluster, topology) = (&config.cluster, &config.topology);
    let server = cluster.server.and_then(find_server);
    let bps = |gbps: f64| (gbps * 1e9).round() as u64;
    let mut differences = Vec::new();
    let mut note = |differs: bool, name: &'static str| differences.extend(differs.then_some(name));
    note(matches!(cluster.gpu, Named::Table(_) | Named::File(_)), "GPU table");
    note(cluster.gpu_memory_bytes.is_some(), "GPU memory");
    let own_rate = server.map_or(!config.values.given(KeyId::NvlinkGbps), |s| cluster.nvlink_bps == bps(s.inside_gbps));
    note(!own_rate, "NVLink rate");
    note(server.is_some_and(|s| topology.link_bps != bps(s.port_gbps())), "link rate");
    let reads = |id: KeyId| key(id).applies(&config.values);
    let narrow = (topology.oversubscription_milli > 1000 && reads(KeyId::Oversubscription))
        || topology.uplink_bps.min(topology.core_bps) < topology.link_bps;
    let shape = match &topology.kind {
        TopologyKind::Generated { shape, .. } => Some(shape),
        TopologyKind::File { .. } => None,
    };
    note(narrow && !matches!(shape, Some(FabricShape::RailOnly(_))), "oversubscription");
    let delays = [
        KeyId::LinkDelayNs,
        KeyId::UplinkDelayNs,
        KeyId::CoreDelayNs,
        KeyId::SwitchLatencyNs,
        KeyId::CutThroughBytes,
        KeyId::StartOverheadNs,
        KeyId::WorkQueueLatencyNs,
        KeyId::RendezvousNs,
    ];
    let own_delays = !delays.iter().any(|&id| config.values.given(id) && reads(id));
    note(!own_delays || program.communication.latency_ppm != ONE, "latencies");
    program_otherwise(program, &reads, &mut note);
    differences
}

/// Whether nobody measured a network like this: measurements come from fabrics of tiers, at one site, in which nothing failed.
pub(super) fn is_unmeasured_network(config: &Config) -> bool {
    if !config.topology.outages.is_empty() || !config.topology.impairments.is_empty() {
        return true;
    }
    let TopologyKind::Generated { shape, sites } = &config.topology.kind else { return false };
    let is_of_tiers = matches!(
        shape,
        FabricShape::FatTree(_)
            | FabricShape::Clos(_)
            | FabricShape::RailOptimized(_)
            | FabricShape::RailOnly(_)
            | FabricShape::Segments(_)
    );
    !is_of_tiers || sites.is_some()
}

/// A factor of one, in millionths.
const ONE: u64 = 1_000_000;

fn program_otherwise(program: &ProgramSpec, reads: &impl Fn(KeyId) -> bool, note: &mut impl FnMut(bool, &'static str)) {
    let compute = &program.compute;
    let [gemm, attention, memory_bound] = compute.class_scales_ppm;
    let scales = [
        (KeyId::ComputeScale, compute.scale_ppm),
        (KeyId::GemmScale, gemm),
        (KeyId::AttentionScale, attention),
        (KeyId::MemoryBoundScale, memory_bound),
    ];
    note(scales.iter().any(|&(id, ppm)| ppm != ONE && reads(id)), "times of kernels");
    note(compute.jitter_ppm > 0 && reads(KeyId::ComputeJitter), "jitter");
    note(!compute.stragglers.is_empty() && reads(KeyId::StragglerRanks), "stragglers");
    let own_slowdown = matches!(compute.slowdown, SlowdownChoice::Own) && compute.slowdown_scale_ppm == ONE;
    note(!own_slowdown && reads(KeyId::Slowdown), "slowdown beside communication");
    match &program.source {
        Source::Model(t) => {
            note(t.expert_skew_ppm != ONE, "expert skew");
            // No measured training of a class had such kernels by a key of its own.
            note(t.dispatcher.is_some(), "dispatcher of experts");
            note(t.schedule.splits_backward(), "split backward passes");
            note(t.list_collectives, "collectives over lists");
        }
        Source::Collective { .. } => {
            let c = &program.communication;
            let chosen = c.protocol.is_some() || c.channels.is_some() || c.chunk_bytes.is_some();
            note(chosen || c.algorithm != hyperfold_config::spec::AlgorithmChoice::Auto, "algorithm");
        }
        Source::Inference(s) => {
            note(s.prefill.is_some(), "pools apart");
            note(s.draft.is_some(), "drafted tokens");
            let prefixes = match s.requests {
                RequestSource::Generated(g) => g.prefix_tokens > 0,
                RequestSource::Trace { .. } => s.to_prefix,
            };
            note(s.prefix_cache && prefixes, "cached prefixes");
            note(s.batching == BatchingChoice::PrefillFirst, "batching");
            note(s.precision == PrecisionChoice::Int4, "weights of 4 bits");
            note(s.expert_skew_ppm != ONE, "expert skew");
            note(s.dispatcher.is_some(), "dispatcher of experts");
        }
        Source::File { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::columns::{NOT_VALIDATED, Worth};
    use hyperfold_config::sweep::{self, SetOverrides};

    /// A training job on 64 GPUs of DGX H100 servers, with further lines of the sweep's base.
    fn config(more: &str) -> Config {
        let text = format!(
            "name = \"changed\"\n[base]\ncluster.server = \"dgx-h100\"\ncluster.gpus = 64\nworkload = {{ kind = \"model\", model = \"gpt3-13b\", tp = 8 }}\n{more}\n"
        );
        let sweep =
            sweep::parse(&text, Path::new("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"));
        sweep.config(&sweep.experiments[0]).unwrap()
    }

    #[test]
    fn an_unmeasured_network_has_no_error() {
        let text = |more: &str| Worth::of(&config(more)).text.unwrap();
        for measured in ["", "topology.kind = \"clos\""] {
            assert!(text(measured).starts_with("9 of 10 within "), "{measured}");
        }
        for unmeasured in [
            "topology.kind = \"dragonfly\"",
            "topology.kind = \"torus\"",
            "topology.sites = 2",
            "topology.outages = \"leaf0\"",
            "topology.outages = \"leaf0 rate 50%\"",
        ] {
            assert_eq!(text(unmeasured), NOT_VALIDATED, "{unmeasured}");
        }
    }

    #[test]
    fn what_a_sweep_sets_otherwise_is_named() {
        let changed_by = |more: &str| changed(&config(more));
        assert_eq!(changed_by(""), Vec::<&str>::new());
        assert_eq!(changed_by("cluster.nvlink_gbps = 100"), ["NVLink rate"]);
        assert_eq!(changed_by("topology.link_gbps = 100"), ["link rate"]);
        assert_eq!(changed_by("\"workload.latency_scale\" = 2"), ["latencies"]);
        assert_eq!(changed_by("\"workload.pp\" = 2\n\"workload.schedule\" = \"zb-v\""), ["split backward passes"]);
        let deepep = "workload.model = \"qwen3-30b-a3b\"\nworkload.ep = 8\nworkload.ep_dispatcher = \"deepep\"";
        let sweep = format!(
            "name = \"changed\"\n[base]\ncluster.server = \"dgx-h100\"\ncluster.gpus = 64\nworkload.kind = \"model\"\n{deepep}\n"
        );
        let sweep =
            sweep::parse(&sweep, Path::new("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(changed(&sweep.config(&sweep.experiments[0]).unwrap()), ["dispatcher of experts"]);
        let serving = |more: &str| {
            let text = format!(
                "name = \"changed\"\n[base]\ncluster.server = \"dgx-h100\"\ncluster.gpus = 16\n[base.workload]\nkind = \"inference\"\nmodel = \"llama3-8b\"\n{more}\n"
            );
            let sweep =
                sweep::parse(&text, Path::new("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"));
            changed(&sweep.config(&sweep.experiments[0]).unwrap())
        };
        assert_eq!(serving(""), Vec::<&str>::new());
        assert_eq!(serving("serving = \"disaggregated\"\nprefill_dp = 8\ndp = 8"), ["pools apart"]);
        assert_eq!(
            serving("prefix_tokens = 100\ndraft_tokens = 2\nmax_batch_tokens = 4096"),
            ["drafted tokens", "cached prefixes"]
        );
        assert_eq!(serving("precision = \"int4\"\nbatching = \"prefill-first\""), ["batching", "weights of 4 bits"]);
        let both = changed_by("topology.oversubscription = 4\ncluster.gpu = { like = \"h100\", bf16_tflops = 2000.0 }");
        assert_eq!(both, ["GPU table", "oversubscription"]);
        let unread = changed_by("topology = { kind = \"fat-tree\", oversubscription = 4 }");
        assert_eq!(unread, [""; 0], "a fat tree has no oversubscription to set");
    }
}
