//! Notes for the user about an experiment's hardware: parts that were never measured, or that only this program assumes.
//!
//! Layer: validated. It reads configurations and assets, and simulates nothing.

use super::class::{ExperimentClass, is_amd, measured_gpu};
use super::error::ClassErrors;
use super::parts::{SizeClass, WorkloadClass};
use hyperfold_config::spec::{
    Config, KeyId, LinkKind, LinksOfGpu, Named, SERVERS, Source, TopologyKind, WorkloadSection, find_server, gpu_of,
    links_of,
};
use hyperfold_host::programs::training;
use hyperfold_host::setup::servers::generation;
use hyperfold_llm::collective::has_measured_run;
use hyperfold_llm::compute::Gpu;

/// Notes about the hardware of an experiment. A cluster over days reads its hardware only if its jobs' iterations are simulated.
pub fn notes(config: &Config) -> Vec<String> {
    let Ok(gpu) = training::gpu(&config.cluster.gpu) else { return Vec::new() };
    if config.cluster_run().is_some_and(|run| run.iterations.is_none()) {
        return Vec::new();
    }
    [
        unmeasured(config, &gpu),
        kernels_of_another(config, &gpu),
        collectives_of_another(config, &gpu),
        small_collective_of_nobody(config),
        server_of_nobody(config, &gpu),
        gpu_of_another_server(config, &gpu),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Workloads of an experiment and of its jobs.
fn workloads(config: &Config) -> impl Iterator<Item = &WorkloadSection> {
    let of_jobs = config.jobs.iter().flat_map(|jobs| &jobs.jobs).map(|job| &job.workload);
    std::iter::once(&config.workload).chain(of_jobs)
}

fn unmeasured(config: &Config, gpu: &Gpu) -> Option<String> {
    let class = ExperimentClass::of(config)?;
    let errors = ClassErrors::built_in();
    let measured = errors.gpus(class.workload);
    if measured_gpu(config).is_some_and(|name| measured.contains(name.as_str())) {
        return None;
    }
    let tables = match class.workload {
        WorkloadClass::Training => "training",
        WorkloadClass::Collective => "collectives",
        WorkloadClass::Serving => "serving",
    };
    Some(format!(
        "no machine with {} was measured: tables of {tables} have {}; validated_error and the columns beside it are empty",
        gpu.name,
        measured.into_iter().collect::<Vec<_>>().join(", ")
    ))
}

/// A note if times of kernels come from another GPU.
fn kernels_of_another(config: &Config, gpu: &Gpu) -> Option<String> {
    let computes = workloads(config).any(|workload| {
        matches!(workload, WorkloadSection::Program(p) if matches!(p.source, Source::Model(_) | Source::Inference(_)))
    });
    (computes && gpu.baseline != gpu.name).then(|| {
        format!(
            "no kernels of {} were measured: their times are those of {}, scaled by peaks and bandwidths",
            gpu.name, gpu.baseline
        )
    })
}

/// A note if NCCL's model stands for a GPU that NCCL does not run on.
fn collectives_of_another(config: &Config, gpu: &Gpu) -> Option<String> {
    let communicates = workloads(config).any(|workload| matches!(workload, WorkloadSection::Program(_)));
    (communicates && is_amd(gpu)).then(|| {
        format!("no collectives of {} were measured: their times are those of NCCL's model of Ampere GPUs", gpu.name)
    })
}

/// A note if an experiment is a small collective, and nobody measured the smallest ones of its machine.
fn small_collective_of_nobody(config: &Config) -> Option<String> {
    let (base_time_ps, key) = match ExperimentClass::of(config)?.size {
        SizeClass::ServerSmall => (config.cluster.base_time_ps, KeyId::BaseTimeNs),
        SizeClass::ClusterSmall => (config.cluster.base_time_across_ps, KeyId::BaseTimeAcrossNs),
        _ => return None,
    };
    let is_measured = base_time_ps.is_some() || config.cluster.server.is_some_and(has_measured_run);
    (!is_measured).then(|| {
        format!(
            "nobody measured small collectives of this machine: NCCL's constants stand alone, and measured machines take up to three times as long; set {} to what nccl-tests print of 8 bytes",
            key.name()
        )
    })
}

/// Whether collectives of an experiment use links of a named server whose GPU has other links than the experiment's.
pub fn takes_links_of_another(config: &Config) -> bool {
    let communicates = workloads(config).any(|workload| matches!(workload, WorkloadSection::Program(_)));
    communicates && training::gpu(&config.cluster.gpu).is_ok_and(|gpu| gpu_of_another_server(config, &gpu).is_some())
}

/// A note if the links inside the servers are those of a named server, and that server's GPU has other links.
fn gpu_of_another_server(config: &Config, gpu: &Gpu) -> Option<String> {
    let (server, cluster) = (config.cluster.server?, &config.cluster);
    let generated = !matches!(config.topology.kind, TopologyKind::File { .. });
    let takes_links = generated && cluster.gpus_per_server > 1 && cluster.nvlink_bps > 0;
    if !takes_links || cluster.server_xml.is_some() || config.values.given(KeyId::NvlinkGbps) {
        return None;
    }
    let (Named::Asset(own_name) | Named::Table(own_name)) = &cluster.gpu else { return None };
    let server_gpu = Gpu::named(gpu_of(server)?).ok()?;
    if gpu.name == server_gpu.name {
        return None;
    }
    let same = match (links_of(own_name).ok()?, links_of(&server_gpu.name).ok()?) {
        (LinksOfGpu::Elsewhere | LinksOfGpu::Unsaid, _) => return None,
        (LinksOfGpu::Known(own), LinksOfGpu::Known(server)) => match own.kind {
            // A card has the rate of its slot.
            LinkKind::Pcie => server.kind == LinkKind::Pcie,
            kind => {
                let gbps = [own, server].map(|links| links.gbps_in_server(2));
                kind == server.kind && gbps[0] == gbps[1] && generation(gpu) == generation(&server_gpu)
            }
        },
        _ => gpu.kin == server_gpu.kin,
    };
    let own_servers: Vec<&str> =
        SERVERS.into_iter().filter(|name| gpu_of(name).is_some_and(|g| names(g, gpu))).collect();
    let instead = match own_servers.as_slice() {
        [] => "leave out cluster.server".to_string(),
        named => format!("name a server that has it: {}", named.join(", ")),
    };
    (!same).then(|| {
        format!(
            "cluster.gpu = {} is not the GPU of cluster.server = {server}, which has {}: its links inside a server are taken from that server, not from {}; {instead}",
            gpu.name, server_gpu.name, gpu.name
        )
    })
}

/// Whether a name is that of a GPU of the assets.
fn names(name: &str, gpu: &Gpu) -> bool {
    Gpu::named(name).is_ok_and(|found| found.name == gpu.name)
}

/// A note if server keys are defaults although no server with these defaults has the GPU.
fn server_of_nobody(config: &Config, gpu: &Gpu) -> Option<String> {
    let (cluster, topology) = (&config.cluster, &config.topology);
    let generated = !matches!(topology.kind, TopologyKind::File { .. });
    if cluster.server.is_some() || cluster.server_xml.is_some() || !generated || !config.values.given(KeyId::Gpu) {
        return None;
    }
    let keys = [KeyId::GpusPerServer, KeyId::NicsPerServer, KeyId::LinkGbps];
    let open: Vec<String> = keys
        .into_iter()
        .filter(|key| !config.values.given(*key))
        .map(|key| format!("{} = {}", key.name(), config.values.get(key)))
        .collect();
    if open.is_empty() || SERVERS.into_iter().any(|server| is_default(server, gpu)) {
        return None;
    }
    Some(format!(
        "cluster.gpu = {} names no server: {} are this program's defaults, not taken from a machine with that GPU; set them, or a cluster.server",
        gpu.name,
        open.join(", ")
    ))
}

/// Whether a server of the assets has this GPU, in the default number and with the default NICs.
fn is_default(server: &str, gpu: &Gpu) -> bool {
    find_server(server).is_some_and(|s| (s.gpus, s.ports(), s.port_gbps()) == (8, 8, 400.0))
        && gpu_of(server).is_some_and(|name| names(name, gpu))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use hyperfold_config::sweep::{self, SetOverrides};

    fn of(cluster: &str, workload: &str) -> Vec<String> {
        let text =
            format!("name = \"hardware\"\n[base]\ncluster = {{ gpus = 16, {cluster} }}\nworkload = {{ {workload} }}\n");
        let sweep =
            sweep::parse(&text, Path::new("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"));
        notes(&sweep.config(&sweep.experiments[0]).unwrap())
    }

    #[test]
    fn what_was_never_measured_is_told() {
        let model = "kind = \"model\", model = \"gpt3-1.7b\", tp = 2";
        assert_eq!(of("server = \"dgx-h100\"", model), Vec::<String>::new());
        let told = of("gpu = \"l40s\"", model).join("\n");
        for words in [
            "no machine with l40s was measured",
            "no kernels of l40s were measured: their times are those of h100-sxm",
            "gpus_per_server = 8, cluster.nics_per_server = 8, topology.link_gbps = 400 are this program's defaults",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
        let said = "gpu = \"l40s\", gpus_per_server = 8, nics_per_server = 2";
        assert!(of(said, model).join("").contains("names no server: topology.link_gbps = 400 are"));
        assert_eq!(of("gpu = \"b200\"", "kind = \"traffic\", pattern = \"ring\""), Vec::<String>::new());
        let own = of(
            "gpu = { like = \"h100\", bf16_tflops = 2000.0 }",
            "kind = \"collective\", op = \"all-reduce\", analytic = \"all\"",
        );
        assert!(own.iter().any(|n| n.starts_with("no machine with custom was measured")), "{own:?}");
        let amd = of("gpu = \"mi300x\"", "kind = \"collective\", op = \"all-reduce\"").join("\n");
        assert!(amd.contains("no collectives of mi300x were measured"), "{amd}");
        assert!(amd.contains("cluster.gpu = mi300x names no server"), "{amd}");
    }

    #[test]
    fn a_gpu_that_another_server_has_takes_its_links() {
        let collective = "kind = \"collective\", op = \"all-reduce\"";
        let told = |cluster: &str| of(cluster, collective).join("\n").contains("is not the GPU of cluster.server");
        for (server, gpu) in [
            ("dgx-h100", "l40s"),
            ("dgx-h100", "a100"),
            ("dgx-h100", "mi300x"),
            ("dgx-h100", "v100"),
            ("pcie-gen4", "h100"),
            ("dgx-1v", "a100"),
            ("hgx-h800", "a800"),
        ] {
            assert!(told(&format!("server = \"{server}\", gpu = \"{gpu}\"")), "{gpu} in {server}");
        }
        for (server, gpu) in [
            ("dgx-h100", "h100"),
            ("dgx-h100", "h200"),
            ("oci-a100", "a100"),
            ("pcie-gen4", "l40s"),
            ("pcie-gen4", "h100-pcie"),
            ("gb200-tray", "gb300"),
            ("dgx-1v", "v100"),
        ] {
            assert!(!told(&format!("server = \"{server}\", gpu = \"{gpu}\"")), "{gpu} in {server}");
        }
        assert!(!told("server = \"dgx-h100\", gpu = \"l40s\", nvlink_gbps = 256"), "the rate is the user's own");
        let text = of("server = \"dgx-h100\", gpu = \"v100\"", collective).join("\n");
        assert!(text.contains("which has h100-sxm") && text.contains("name a server that has it: dgx-1v"), "{text}");
    }
}
