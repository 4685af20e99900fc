//! Notes for the user about an experiment's hardware: parts that were never measured, or that only this program assumes.
//!
//! Layer: validated. It reads configurations and assets, and simulates nothing.

use super::class::{ExperimentClass, is_amd, measured_gpu};
use super::error::ClassErrors;
use hyperfold_config::spec::{Config, KeyId, SERVERS, Source, TopologyKind, WorkloadSection, find_server, gpu_of};
use hyperfold_host::training;
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
        server_of_nobody(config, &gpu),
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
    let nearest = ClassErrors::built_in().nearest(&class)?;
    if nearest.error.saw(measured_gpu(config).as_deref()) {
        return None;
    }
    Some(format!(
        "no machine with {} was measured in the nearest class, {}, which has {}: validated_error and the columns beside it are empty",
        gpu.name,
        nearest.error.class,
        nearest.error.gpus.join(", ")
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
}
