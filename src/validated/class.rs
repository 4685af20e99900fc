//! Class of an experiment, which decides how large the error of its times may be.
//!
//! Layer: validated. It reads a configuration and simulates nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::parts::{
    MachineClass, NetworkClass, Parallelism, PrecisionClass, ScaleClass, SizeClass, WorkloadClass, word,
};
use hyperfold_config::spec::{
    AdmissionChoice, Analytic, Config, FrameworkChoice, Named, OpChoice, PrecisionChoice, ProgramSpec, Serving, Source,
    TopologyKind, Training, WorkloadSection,
};
use hyperfold_host::programs::training;
use hyperfold_host::setup::servers::generation;
use hyperfold_llm::collective::Arch;
use hyperfold_llm::compute::{Dtype, Gpu};

/// Largest size in bytes that counts as small. The time of small messages is mostly launch and latency.
const SMALL: u64 = 1 << 20;

/// Experiments whose times have errors for the same reasons.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExperimentClass {
    /// Training, inference, or a collective alone.
    pub workload: WorkloadClass,
    /// GPU generation.
    pub gpu: Arch,
    /// Number format of its matrix products.
    pub precision: PrecisionClass,
    /// Name as in `workload.framework`; `nccl` or `deepep` for a collective; `workload.admission` for inference, by which engines differ.
    pub framework: String,
    /// How the work is distributed, or which operation it is.
    pub parallelism: Parallelism,
    /// Size of a collective.
    pub size: SizeClass,
    /// Number of GPUs.
    pub scale: ScaleClass,
    /// Whether anything was measured on the machine of a collective.
    pub machine: MachineClass,
    /// How the time of its communication is found.
    pub network: NetworkClass,
    /// Name as in `cluster.server`. Empty if there is none.
    pub server: String,
}

impl ExperimentClass {
    /// The class of an experiment. `None`: no measured machine ran anything comparable. That holds for flows and traffic, programs of other tools, barriers,
    /// and collectives as packets whose software costs nothing, also those of model-parallel groups across servers. It also holds if Moye's equations give the time of communication, because they are another
    /// model than the one that was compared.
    pub fn of(config: &Config) -> Option<ExperimentClass> {
        let WorkloadSection::Program(program) = &config.workload else { return None };
        if program.communication.cost_by_chunks {
            return None;
        }
        let gpu = training::gpu(&config.cluster.gpu).ok()?;
        // No machine with AMD GPUs was measured; NCCL's model treats them as Ampere.
        if is_amd(&gpu) {
            return None;
        }
        // NCCL's model knows GPUs without NVLink as Ampere. Kernels of a GPU with units for FP4 are Blackwell's.
        let for_kernels = if gpu.supports(Dtype::Nvfp4) { Arch::Blackwell } else { generation(&gpu) };
        let gpu = generation(&gpu);
        match &program.source {
            Source::Model(t) => Self::of_training(config, program, t, gpu),
            Source::Collective { op, bytes, ranks, experts } => {
                let ranks = ranks.or(config.cluster.gpus);
                Self::of_collective(config, program, gpu, *op, experts.is_some(), *bytes, ranks)
            }
            Source::Inference(serving) => Self::of_serving(config, program, serving, for_kernels),
            Source::File { .. } => None,
        }
    }

    fn of_serving(config: &Config, program: &ProgramSpec, s: &Serving, gpu: Arch) -> Option<ExperimentClass> {
        let model = training::model(&s.model).ok()?;
        let pools = || std::iter::once(&s.decode).chain(&s.prefill);
        let parallelism = match () {
            () if model.transformer()?.moe.is_some() => Parallelism::Moe,
            () if pools().any(|pool| pool.tp * pool.pp > 1) => Parallelism::Model,
            () => Parallelism::Data,
        };
        let analytic = &program.communication.analytic;
        // Ranks of an instance follow each other. Instances that share experts do, too.
        let spans = pools().flat_map(|pool| {
            let [tp, pp, ep] = [pool.tp, pool.pp, pool.ep].map(u64::from);
            [(tp, tp, analytic.tp), (ep, tp * pp * ep, analytic.ep)]
        });
        if cross_servers_for_nothing(config, program, spans) {
            return None;
        }
        let one_server = s.gpus() <= u64::from(config.cluster.gpus_per_server);
        Some(ExperimentClass {
            workload: WorkloadClass::Serving,
            gpu,
            precision: precision(s.precision),
            framework: match s.admission {
                AdmissionChoice::Reserved => "reserved",
                AdmissionChoice::OnDemand => "on-demand",
            }
            .to_string(),
            parallelism,
            size: SizeClass::Any,
            scale: ScaleClass::of(s.gpus()),
            machine: MachineClass::Any,
            network: NetworkClass::of(config, one_server, *analytic == Analytic::ALL),
            server: String::new(),
        })
    }

    fn of_training(config: &Config, program: &ProgramSpec, t: &Training, gpu: Arch) -> Option<ExperimentClass> {
        let model = training::model(&t.model).ok()?;
        let parallelism = match () {
            () if model.transformer()?.moe.is_some() => Parallelism::Moe,
            () if t.zero == 3 || matches!(t.framework, FrameworkChoice::Fsdp | FrameworkChoice::Fsdp2) => {
                Parallelism::Sharded
            }
            () if t.tp * t.pp * t.cp > 1 => Parallelism::Model,
            () => Parallelism::Data,
        };
        if across_servers_for_nothing(config, program, t) {
            return None;
        }
        let one_server = t.gpus() <= u64::from(config.cluster.gpus_per_server);
        Some(ExperimentClass {
            workload: WorkloadClass::Training,
            gpu,
            precision: precision(t.precision),
            framework: match t.framework {
                FrameworkChoice::Megatron => "megatron",
                FrameworkChoice::DeepSpeed => "deepspeed",
                FrameworkChoice::Fsdp => "fsdp",
                FrameworkChoice::Fsdp2 => "fsdp2",
                FrameworkChoice::Ddp => "ddp",
            }
            .to_string(),
            parallelism,
            size: SizeClass::Any,
            scale: ScaleClass::of(t.gpus()),
            machine: MachineClass::Any,
            network: NetworkClass::of(config, one_server, program.communication.analytic == Analytic::ALL),
            server: String::new(),
        })
    }

    fn of_collective(
        config: &Config,
        program: &ProgramSpec,
        gpu: Arch,
        op: OpChoice,
        without_nccl: bool,
        bytes: u64,
        ranks: Option<u32>,
    ) -> Option<ExperimentClass> {
        let one_server = ranks.is_some_and(|n| n <= config.cluster.gpus_per_server);
        let network = NetworkClass::of(config, one_server, program.communication.analytic.other);
        if network != NetworkClass::ClosedForm && !program.communication.measured_overhead {
            return None;
        }
        Some(ExperimentClass {
            workload: WorkloadClass::Collective,
            gpu,
            precision: PrecisionClass::Any,
            framework: if without_nccl { "deepep" } else { "nccl" }.to_string(),
            parallelism: match op {
                OpChoice::AllReduce => Parallelism::AllReduce,
                OpChoice::AllGather | OpChoice::ReduceScatter | OpChoice::Broadcast | OpChoice::Reduce => {
                    Parallelism::AllGather
                }
                OpChoice::AllToAll | OpChoice::Dispatch | OpChoice::Combine => Parallelism::AllToAll,
                OpChoice::SendRecv => Parallelism::SendRecv,
                OpChoice::Barrier => return None,
            },
            size: match (one_server, bytes <= SMALL) {
                (true, true) => SizeClass::ServerSmall,
                (true, false) => SizeClass::ServerLarge,
                (false, true) => SizeClass::ClusterSmall,
                (false, false) => SizeClass::ClusterLarge,
            },
            scale: ScaleClass::of(ranks.map_or(u64::MAX, u64::from)),
            machine: MachineClass::of(config, program, one_server),
            network,
            server: config.cluster.server.unwrap_or_default().to_string(),
        })
    }
}

/// Whether tensor-, context- or expert-parallel groups of a training cross servers as packets whose software costs nothing.
fn across_servers_for_nothing(config: &Config, program: &ProgramSpec, t: &Training) -> bool {
    let analytic = &program.communication.analytic;
    let [tp, cp, ep, etp] = [t.tp, t.cp, t.ep, t.etp].map(u64::from);
    let of_experts = if etp == 0 { tp } else { etp };
    let spans = [(tp, tp, analytic.tp), (cp, tp * cp, analytic.cp), (ep, of_experts * ep, analytic.ep)];
    cross_servers_for_nothing(config, program, spans.into_iter())
}

/// Whether groups cross servers as packets whose software costs nothing. A group is its ranks, the consecutive ranks that they lie in, and whether its
/// communication has a closed form.
fn cross_servers_for_nothing(
    config: &Config,
    program: &ProgramSpec,
    mut groups: impl Iterator<Item = (u64, u64, bool)>,
) -> bool {
    let crosses = |(ranks, span, closed_form): (u64, u64, bool)| {
        ranks > 1 && !closed_form && span > u64::from(config.cluster.gpus_per_server)
    };
    let generated = !matches!(config.topology.kind, TopologyKind::File { .. });
    generated && !program.communication.measured_overhead && groups.any(crosses)
}

/// The class of a precision. Products with 4-bit weights are in 16 bit.
fn precision(choice: PrecisionChoice) -> PrecisionClass {
    match choice {
        PrecisionChoice::Bf16 | PrecisionChoice::Int4 => PrecisionClass::Bf16,
        PrecisionChoice::Fp8 => PrecisionClass::Fp8,
        PrecisionChoice::Mxfp8 => PrecisionClass::Mxfp8,
        PrecisionChoice::Nvfp4 => PrecisionClass::Nvfp4,
    }
}

/// Whether AMD makes the GPU, or the one that it is like.
pub(super) fn is_amd(gpu: &Gpu) -> bool {
    gpu.kin.starts_with("mi")
}

/// GPU of an experiment by its name in the assets. `None`: the user's own specification, which belongs to no measured machine.
pub(super) fn measured_gpu(config: &Config) -> Option<String> {
    match &config.cluster.gpu {
        Named::Asset(name) => Gpu::named(name).ok().map(|gpu| gpu.name),
        Named::Table(_) | Named::File(_) => None,
    }
}

impl ExperimentClass {
    /// Names and values of the features that decide the class, in the order in which it is written. A value is empty if it does not matter.
    pub(super) fn features(&self) -> [(&'static str, String); 10] {
        [
            ("workload", word(&self.workload)),
            ("gpu", word(&self.gpu)),
            ("precision", word(&self.precision)),
            ("framework", self.framework.clone()),
            ("parallelism", word(&self.parallelism)),
            ("size", word(&self.size)),
            ("scale", word(&self.scale)),
            ("machine", word(&self.machine)),
            ("network", word(&self.network)),
            ("server", self.server.clone()),
        ]
    }
}

impl fmt::Display for ExperimentClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.features().into_iter().map(|f| f.1).filter(|w| !w.is_empty()).collect();
        f.write_str(&words.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use hyperfold_config::sweep::{self, SetOverrides};

    fn class(base: &str) -> Option<String> {
        let text = format!("name = \"classes\"\n[base]\n{base}\n");
        let sweep =
            sweep::parse(&text, Path::new("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"));
        ExperimentClass::of(&sweep.config(&sweep.experiments[0]).unwrap()).map(|c| c.to_string())
    }

    #[test]
    fn configurations_have_their_class() {
        let model = |more: &str| {
            class(&format!(
                "cluster = {{ server = \"dgx-h100\", gpus = 64 }}\nworkload = {{ kind = \"model\", {more} }}"
            ))
        };
        for (more, expected) in [
            ("model = \"gpt3-13b\", tp = 4, pp = 2", "training/hopper/bf16/megatron/model/up-to-64-gpus/packets"),
            (
                "model = \"gpt3-13b\", tp = 4, fp8 = true, analytic = \"all\"",
                "training/hopper/fp8/megatron/model/up-to-64-gpus/closed-form",
            ),
            ("model = \"gpt3-1.7b\"", "training/hopper/bf16/megatron/data/up-to-64-gpus/packets"),
            (
                "model = \"mpt-7b\", framework = \"fsdp\", zero = 3",
                "training/hopper/bf16/fsdp/sharded/up-to-64-gpus/packets",
            ),
            ("model = \"qwen3-30b-a3b\", ep = 8", "training/hopper/bf16/megatron/moe/up-to-64-gpus/packets"),
        ] {
            assert_eq!(model(more).as_deref(), Some(expected));
        }
        let flows = class(
            "cluster = { server = \"dgx-h100\", gpus = 64 }\nfidelity.mode = \"flow\"\nworkload = { kind = \"model\", model = \"gpt3-1.7b\" }",
        );
        assert_eq!(flows.as_deref(), Some("training/hopper/bf16/megatron/data/up-to-64-gpus/flows"));
        let across = |cluster: &str, more: &str| {
            class(&format!(
                "cluster = {{ gpus = 16, {cluster} }}\nworkload = {{ kind = \"model\", model = \"gpt2-medium\", tp = 8{more} }}"
            ))
        };
        let packets = Some("training/hopper/bf16/megatron/model/up-to-64-gpus/packets");
        assert_eq!(across("gpus_per_server = 2", ""), None, "tensor-parallel groups cross servers for nothing");
        assert_eq!(across("gpus_per_server = 8", "").as_deref(), packets);
        assert_eq!(across("gpus_per_server = 2", ", collective_overhead = \"measured\"").as_deref(), packets);
        assert!(across("gpus_per_server = 2", ", analytic = \"tp\"").is_some());
        let collective = |cluster: &str, more: &str| {
            class(&format!("cluster = {{ {cluster} }}\nworkload = {{ kind = \"collective\", {more} }}"))
        };
        let p4de = "server = \"aws-p4de\", gpus = 16";
        for (cluster, more, expected) in [
            (
                p4de,
                "op = \"all-reduce\"",
                Some("collective/ampere/nccl/all-reduce/cluster-large/up-to-64-gpus/measured-machine/packets/aws-p4de"),
            ),
            (
                p4de,
                "op = \"broadcast\", bytes = 1048576",
                Some("collective/ampere/nccl/all-gather/cluster-small/up-to-64-gpus/measured-machine/packets/aws-p4de"),
            ),
            (
                p4de,
                "op = \"all-reduce\", ranks = 8",
                Some(
                    "collective/ampere/nccl/all-reduce/server-large/up-to-8-gpus/unmeasured-machine/closed-form/aws-p4de",
                ),
            ),
            (p4de, "op = \"barrier\"", None),
            ("gpus = 16", "op = \"all-reduce\"", None),
            (
                "gpus = 16",
                "op = \"all-reduce\", analytic = \"all\"",
                Some("collective/hopper/nccl/all-reduce/cluster-large/up-to-64-gpus/unmeasured-machine/closed-form"),
            ),
        ] {
            assert_eq!(collective(cluster, more).as_deref(), expected, "{cluster} {more}");
        }
        let serving = |gpus: u32, more: &str| {
            class(&format!(
                "cluster = {{ server = \"dgx-h100\", gpus = {gpus} }}\nworkload = {{ kind = \"inference\", {more} }}"
            ))
        };
        for (gpus, more, expected) in [
            (8, "model = \"llama3-8b\"", Some("serving/hopper/bf16/on-demand/data/up-to-8-gpus/closed-form")),
            (
                16,
                "model = \"llama3-70b\", tp = 2, fp8 = true, admission = \"reserved\"",
                Some("serving/hopper/fp8/reserved/model/up-to-64-gpus/packets"),
            ),
            (
                8,
                "model = \"mixtral-8x7b\", tp = 2, ep = 4",
                Some("serving/hopper/bf16/on-demand/moe/up-to-8-gpus/closed-form"),
            ),
            (
                16,
                "model = \"llama3-70b\", tp = 8, pp = 2",
                Some("serving/hopper/bf16/on-demand/model/up-to-64-gpus/packets"),
            ),
            (
                16,
                "model = \"mixtral-8x7b\", tp = 2, ep = 8",
                Some("serving/hopper/bf16/on-demand/moe/up-to-64-gpus/packets"),
            ),
        ] {
            assert_eq!(serving(gpus, more).as_deref(), expected, "{more}");
        }
        // Tensor-parallel groups cross servers, and no server is named, so NCCL costs nothing.
        let unnamed = "cluster = { gpus = 16, gpus_per_server = 2 }\nworkload = { kind = \"inference\", model = \"llama3-8b\", tp = 8 }";
        assert_eq!(class(unnamed), None);
        assert_eq!(class("workload = { kind = \"traffic\", pattern = \"ring\" }\ncluster.gpus = 8"), None);
    }
}
