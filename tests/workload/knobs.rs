//! Every key of workloads, end to end: another value gives another result, or the sweep or the run says that the key had no effect.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::support::program::Folder;
use hyperfold_config::spec::KEYS;
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::EngineError;
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_host::{Ending, ExperimentOutcome, QueuedExperiment, RunEvent, RunOptions};

/// A key, the base that it matters in, what else is set (before and after), another value.
type Knob = (&'static str, &'static str, &'static [&'static str], &'static str);

/// Eight GPUs in servers of two, two NICs each, one network of rails.
const NETWORK: &str = "name = \"knobs\"\n[base]\ncluster = { gpus_per_server = 2 }\ntopology = { kind = \"rail-optimized\", link_gbps = 100, uplink_gbps = 100 }\n\
                       transport = { cc = \"dcqcn\" }\n";

/// A transformer of 8 layers that takes a millisecond to simulate.
const DENSE: &str =
    "{ name = \"tiny\", transformer = { layers = 8, hidden = 256, heads = 8, vocab = 512, seq = 128 } }";
const GATED: &str = "workload.model={ name = \"gated\", transformer = { layers = 4, hidden = 256, heads = 8, vocab = 512, ffn = 1024, seq = 128, gated = true } }";
const WIDE: &str =
    "workload.model={ name = \"wide\", transformer = { layers = 8, hidden = 512, heads = 8, vocab = 512, seq = 128 } }";
const EXPERTS: &str = "{ name = \"experts\", transformer = { layers = 4, hidden = 256, heads = 8, vocab = 512, seq = 128, moe = { experts = 4, top_k = 2 } } }";

const BIASED: &str = "workload.model={ name = \"biased\", transformer = { layers = 4, hidden = 256, heads = 8, vocab = 512, seq = 128, biases = true, moe = { experts = 4, top_k = 2, biases = true } } }";

/// A model with an expert that every token visits.
const SHARED: &str = "workload.model={ name = \"shared\", transformer = { layers = 4, hidden = 256, heads = 8, vocab = 512, seq = 128, moe = { experts = 4, top_k = 2, shared_experts = 1 } } }";

/// Eight requests that follow each other closely.
const SERVING: &str = "kind = \"inference\"\nmodel = MODEL\nrequest_count = 8\nrequest_rate = 20000.0\nprompt_tokens = 60\noutput_tokens = 6\n";

/// The tables that keys are tried in.
fn base(name: &str) -> String {
    let workload = match name {
        // So small a model would wait for its host and for nothing else.
        "dense" => {
            format!("kind = \"model\"\nmodel = {DENSE}\ntp = 2\npp = 2\ndp = 2\nglobal_batch = 8\nlaunch_us = 0.0\n")
        }
        "experts" => {
            format!("kind = \"model\"\nmodel = {EXPERTS}\ntp = 1\ndp = 4\nglobal_batch = 4\nlaunch_us = 0.0\n")
        }
        "all-reduce" => "kind = \"collective\"\nop = \"all-reduce\"\nbytes = 200000\n".to_string(),
        "large" => "kind = \"collective\"\nop = \"all-reduce\"\nbytes = 4000000\n".to_string(),
        "all-to-all" => "kind = \"collective\"\nop = \"all-to-all\"\nbytes = 400000\n".to_string(),
        "serving" => SERVING.replace("MODEL", DENSE) + "tp = 2\n",
        "serving-apart" => SERVING.replace("MODEL", DENSE) + "tp = 2\nserving = \"disaggregated\"\n",
        "serving-experts" => SERVING.replace("MODEL", EXPERTS) + "tp = 1\nep = 2\n",
        "dumps" => "kind = \"flight-recorder\"\npath = \"dump_0.json\"\n".to_string(),
        "simai" => "kind = \"simai\"\npath = \"a.txt\"\n".to_string(),
        "flows" => "kind = \"flows\"\npath = \"flows.txt\"\nstart_unit = \"ns\"\n".to_string(),
        pattern => format!("kind = \"traffic\"\npattern = \"{pattern}\"\n"),
    };
    let gpus = if matches!(name, "dense" | "experts") { "" } else { "[base.cluster]\ngpus = 8\n" };
    let network = if gpus.is_empty() {
        NETWORK.to_string()
    } else {
        NETWORK.replace("gpus_per_server", "gpus = 8, gpus_per_server")
    };
    format!("{network}[base.workload]\n{workload}")
}

/// Tokens go to experts without NCCL, once to each server.
const EXCHANGE: &[&str] = &["workload.op=dispatch", "workload.ep_dispatcher=deepep-v2"];
const QPS: &[&str] = &["workload.qps_per_connection=4", "workload.algorithm=ring", "workload.chunk_kib=16"];
const NCCL_QPS: &[&str] =
    &["workload.nccl.NCCL_IB_QPS_PER_CONNECTION=4", "workload.algorithm=ring", "workload.chunk_kib=16"];
/// Packets are lost, so that timeouts matter.
const LOSSY: &[&str] = &[
    "transport.pfc=false",
    "topology.buffer_mib=0.7",
    "workload.algorithm=direct",
    "transport.cc=none",
    "workload.bytes=8000000",
    "cluster.gpus_per_server=1",
    "topology.kind=fat-tree",
];
/// A GPU whose slowdown was measured.
const SLOWED: &[&str] = &["workload.overlap_grad=true", "workload.bucket_mb=4", "cluster.gpu=a800"];
const JITTER: &[&str] = &["workload.compute_jitter=0.1"];
const OVERLAP: &[&str] = &["workload.overlap_grad=true", "workload.bucket_mb=4"];

const FSDP: &[&str] = &["workload.framework=fsdp2", "workload.tp=1", "workload.pp=1", "workload.dp=4"];
const LISTS: &[&str] = &["workload.framework=deepspeed", "workload.pp=1", "workload.zero=3", "workload.launch_us=50"];
const ZERO_3: &[&str] = &["workload.framework=deepspeed", "workload.pp=1", "workload.zero=3"];

/// All eight GPUs of requests that are served.
const ONE_INSTANCE: &[&str] = &["workload.tp=8"];

const KNOBS: &[Knob] = &[
    ("workload.iterations", "all-reduce", &[], "2"),
    ("workload.iterations", "dense", &[], "2"),
    ("workload.warmup", "dense", &[], "1"),
    ("workload.path", "simai", &[], "b.txt"),
    ("workload.pattern", "ring", &[], "permutation"),
    ("workload.bytes", "all-reduce", &[], "300000"),
    ("workload.bytes", "incast", &["workload.fan_in=3"], "300000"),
    ("workload.ranks", "all-reduce", &[], "4"),
    ("workload.fan_in", "incast", &["workload.fan_in=3"], "4"),
    (
        "workload.class",
        "incast",
        &["workload.fan_in=3", "workload.bytes=4000000", "transport.classes=a,b lossy", "topology.buffer_mib=1"],
        "b",
    ),
    ("workload.receivers", "incast", &["workload.fan_in=3"], "2"),
    ("workload.stride", "ring", &[], "3"),
    ("workload.load", "poisson", &[], "0.3"),
    ("workload.cdf", "poisson", &[], "FbHdp"),
    ("workload.duration_ns", "poisson", &[], "500000"),
    ("workload.duration_ns", "storage", &["workload.every_us=100"], "300000"),
    ("workload.storage_ranks", "storage", &[], "3"),
    ("workload.stripes", "storage", &["workload.storage_ranks=4"], "1"),
    ("workload.transfer", "storage", &[], "read"),
    ("workload.every_us", "storage", &["workload.every_us=400"], "100"),
    ("workload.start_unit", "flows", &[], "s"),
    ("workload.seed", "permutation", &[], "7"),
    ("workload.seed", "poisson", &[], "7"),
    ("workload.seed", "dense", JITTER, "7"),
    (
        "workload.flow_weights",
        "dense",
        &["workload.overlap_grad=true", "workload.bucket_mb=4", "fidelity.mode=flow"],
        "dp:8",
    ),
    ("workload.model", "dense", &[], WIDE),
    ("workload.recipe", "dense", &[], "nemo-25.05"),
    ("workload.recipe", "dense", &[], "megatron-bridge-26.06"),
    ("workload.framework", "dense", &["workload.pp=1"], "deepspeed"),
    ("workload.framework", "dense", &["workload.tp=1", "workload.pp=1", "workload.dp=4"], "fsdp"),
    ("workload.framework", "dense", &["workload.tp=1", "workload.pp=1", "workload.dp=4"], "fsdp2"),
    ("workload.framework", "dense", &["workload.tp=1", "workload.pp=1", "workload.dp=4"], "ddp"),
    ("workload.tp", "dense", &[], "4"),
    ("workload.pp", "dense", &["workload.global_batch=16"], "4"),
    ("workload.cp", "dense", &[], "2"),
    ("workload.dp", "dense", &[], "4"),
    ("workload.ep", "experts", &[], "2"),
    ("workload.etp", "experts", &["workload.tp=2", "workload.dp=4", "workload.ep=2"], "1"),
    ("workload.vpp", "dense", &[], "2"),
    ("workload.schedule", "dense", &[], "gpipe"),
    ("workload.schedule", "dense", &[], "zb-h1"),
    ("workload.schedule", "dense", &["workload.schedule=zb-v"], "zb-h1"),
    ("workload.schedule", "dense", &["workload.schedule=zb-v", "workload.global_batch=16"], "v-half"),
    ("workload.schedule", "dense", &["workload.global_batch=16"], "dualpipe"),
    ("workload.schedule", "dense", &["workload.schedule=v-half", "workload.global_batch=16"], "v-min"),
    ("workload.microbatch", "dense", &[], "2"),
    ("workload.global_batch", "dense", &[], "16"),
    ("workload.seq", "dense", &[], "64"),
    ("workload.sequence_parallel", "dense", &[], "false"),
    ("workload.recompute", "dense", &[], "full"),
    ("workload.recompute", "dense", &["workload.flash_attention=false"], "selective"),
    ("workload.recompute", "dense", &[], "selective"),
    ("workload.recompute", "dense", &[], "operations"),
    ("workload.recompute_modules", "dense", &["workload.recompute=selective"], "mlp"),
    ("workload.recompute_modules", "experts", &["workload.recompute=selective"], "layernorm"),
    ("workload.recompute_modules", "experts", &["workload.recompute=selective"], "moe"),
    ("workload.recompute_modules", "experts", &["workload.recompute=selective"], "core_attn,moe_act"),
    ("workload.recompute_layers", "dense", &["workload.recompute=full"], "1"),
    ("workload.zero", "dense", &[], "1"),
    ("workload.zero", "dense", &["workload.framework=fsdp2"], "3"),
    ("workload.zero", "dense", &["workload.framework=deepspeed", "workload.pp=1"], "2"),
    ("workload.zero", "dense", &["workload.framework=deepspeed", "workload.pp=1"], "3"),
    (
        "workload.shard_ranks",
        "dense",
        &["workload.framework=fsdp", "workload.tp=1", "workload.pp=1", "workload.dp=4", "workload.global_batch=8"],
        "2",
    ),
    ("workload.param_bytes", "dense", &["workload.zero=1"], "4"),
    ("workload.grad_bytes", "dense", &[], "2"),
    ("workload.activation_bytes", "dense", &[], "4"),
    ("workload.optimizer_bytes", "dense", &[], "8"),
    ("workload.fp8", "dense", &[], "true"),
    ("workload.precision", "dense", &[], "fp8"),
    ("workload.precision", "dense", &["cluster.gpu=b200"], "mxfp8"),
    ("workload.precision", "dense", &["cluster.gpu=b200"], "nvfp4"),
    ("workload.fp8_scaling", "dense", &["workload.precision=fp8"], "current"),
    ("workload.fp8_scaling", "dense", &["workload.precision=fp8"], "delayed-tensor"),
    (
        "workload.compile",
        "dense",
        &["workload.framework=fsdp2", "workload.tp=1", "workload.pp=1", "workload.dp=4", GATED],
        "true",
    ),
    ("workload.launch_us", "dense", &[], "50"),
    ("workload.cuda_graph", "dense", &["workload.launch_us=50"], "attention"),
    ("workload.cuda_graph", "dense", &["workload.launch_us=50"], "iteration"),
    ("workload.flash_attention", "dense", &[], "false"),
    ("workload.attention", "dense", &[], "flash2"),
    ("workload.attention", "dense", &["cluster.gpu=gb200"], "cudnn-fp8"),
    ("workload.attention", "dense", &["cluster.gpu=b300"], "cudnn-mxfp8"),
    ("workload.unpad_attention", "dense", FSDP, "true"),
    ("workload.fused_loss", "dense", &[], "true"),
    ("workload.fused_grouped_mlp", "experts", &[], "true"),
    ("workload.fused_permute", "experts", &[], "false"),
    ("workload.fused_rope", "dense", &[], "false"),
    ("workload.router_fp32", "experts", &[BIASED], "true"),
    ("workload.loss_metrics", "dense", &[], "2"),
    ("workload.fused_optimizer", "dense", &[], "false"),
    ("workload.offload_layers", "dense", &[], "2"),
    ("workload.overlap_grad", "dense", &["workload.bucket_mb=2"], "true"),
    ("workload.overlap_param", "dense", &["workload.zero=1", "workload.overlap_grad=true"], "true"),
    ("workload.overlap_param", "dense", &["workload.zero=1"], "true"),
    ("workload.align_grad_reduce", "dense", &["workload.overlap_grad=true", "workload.bucket_mb=4"], "false"),
    ("workload.defer_embedding_wgrad", "dense", &[], "true"),
    ("workload.gather_ahead", "dense", FSDP, "0"),
    ("workload.unit_layers", "dense", FSDP, "2"),
    ("workload.prefetch_mparams", "dense", ZERO_3, "0"),
    ("workload.live_mparams", "dense", ZERO_3, "0"),
    ("workload.reuse_mparams", "dense", ZERO_3, "0"),
    ("workload.list_collectives", "dense", LISTS, "true"),
    ("workload.tp_overlap_pieces", "dense", &[], "2"),
    ("workload.overlap_ep", "experts", &["workload.ep=2"], "true"),
    ("workload.overlap_shared_experts", "experts", &["workload.ep=2", SHARED], "true"),
    ("workload.overlap_p2p", "dense", &[], "true"),
    ("workload.scatter_gather", "dense", &["workload.sequence_parallel=false"], "true"),
    ("workload.async_tp", "dense", &[], "false"),
    ("workload.fused_grad_accumulation", "dense", &[], "false"),
    ("workload.bucket_mb", "dense", OVERLAP, "2"),
    ("workload.bucket_mb", "dense", &["workload.framework=deepspeed", "workload.pp=1", "workload.zero=3"], "2"),
    ("workload.expert_skew", "experts", &["workload.ep=2"], "1.5"),
    ("workload.ep_dispatcher", "experts", &["workload.ep=4"], "deepep-low-latency"),
    ("workload.ep_dispatcher", "all-to-all", &["workload.op=dispatch"], "deepep-v2"),
    ("workload.ep_experts", "all-to-all", EXCHANGE, "128"),
    ("workload.ep_top_k", "all-to-all", EXCHANGE, "4"),
    (
        "workload.ep_groups",
        "all-to-all",
        &["workload.op=dispatch", "workload.ep_dispatcher=deepep-v2", "workload.ep_top_groups=1"],
        "2",
    ),
    (
        "workload.ep_top_groups",
        "all-to-all",
        &["workload.op=dispatch", "workload.ep_dispatcher=deepep-v2", "workload.ep_groups=2"],
        "1",
    ),
    ("workload.rank_order", "dense", &[], "pp-dp-ep-cp-tp"),
    ("workload.kernels", "dense", &[], "kernels.csv"),
    ("workload.memory_check", "dense", &["cluster.gpu_memory_gib=0.01"], "false"),
    ("workload.memory_margin", "dense", &["cluster.gpu_memory_gib=0.5"], "10"),
    ("workload.memory_reserve_gib", "dense", &[], "2"),
    ("workload.memory_fragmentation", "dense", &[], "0.2"),
    ("workload.compute_scale", "dense", &[], "2"),
    ("workload.compute_scale", "simai", &[], "2"),
    ("workload.bytes_scale", "simai", &[], "2"),
    ("workload.gemm_scale", "dense", &[], "2"),
    ("workload.gemm_scale", "simai", &[], "2"),
    ("workload.attention_scale", "dense", &[], "2"),
    ("workload.memory_bound_scale", "dense", &[], "2"),
    ("workload.memory_bound_scale", "serving", &[], "2"),
    ("workload.wait_for_calls", "dumps", &[], "true"),
    ("workload.wait_for_calls", "simai", &[], "true"),
    ("workload.slowdown_scale", "dense", SLOWED, "2"),
    ("workload.slowdown_scale", "dense", &["workload.slowdown=none"], "2"),
    ("workload.compute_jitter", "dense", &[], "0.1"),
    ("workload.straggler_ranks", "dense", &[], "\"0\""),
    ("workload.straggler_slowdown", "dense", &["workload.straggler_ranks=\"0\""], "3"),
    ("workload.slowdown", "dense", SLOWED, "none"),
    ("workload.slowdown", "dense", &["workload.slowdown=none"], "gpu"),
    ("workload.slowdown", "dense", OVERLAP, "trees.json"),
    ("workload.slowdown", "simai", &[], "none"),
    ("workload.analytic", "dense", &[], "dp"),
    ("workload.analytic", "dense", &[], "pp"),
    ("workload.analytic", "dense", &["cluster.nvlink_gbps=0"], "tp"),
    ("workload.analytic", "all-reduce", &[], "all"),
    ("workload.analytic", "experts", &["workload.ep=4"], "ep"),
    ("workload.analytic", "dense", &["workload.cp=4", "workload.tp=1"], "cp"),
    ("workload.op", "all-reduce", &[], "all-gather"),
    ("workload.algorithm", "all-reduce", &["workload.algorithm=ring"], "tree"),
    ("workload.algorithm", "all-reduce", &["workload.algorithm=ring"], "halving-doubling"),
    ("workload.algorithm", "all-reduce", &["workload.algorithm=ring"], "direct"),
    ("workload.algorithm", "all-reduce", &["workload.algorithm=ring"], "hierarchical"),
    ("workload.algorithm", "all-reduce", &["workload.algorithm=ring"], "nvls"),
    ("workload.algorithm", "all-reduce", &["workload.algorithm=nvls"], "in-network"),
    ("workload.algorithm", "large", &["workload.algorithm=in-network"], "collnet-chain"),
    (
        "workload.algorithm",
        "dense",
        &["workload.algorithm=ring", "workload.tp=1", "workload.pp=1", "workload.dp=8"],
        "tree",
    ),
    ("workload.protocol", "all-reduce", &["workload.protocol=Simple"], "LL"),
    ("workload.protocol", "all-reduce", &["workload.protocol=Simple"], "LL128"),
    ("workload.channels", "large", &["workload.channels=1"], "4"),
    ("workload.chunk_kib", "large", &["workload.algorithm=ring"], "16"),
    ("workload.qps_per_connection", "large", &["workload.algorithm=ring", "workload.chunk_kib=16"], "4"),
    ("workload.split_data_on_qps", "large", QPS, "true"),
    ("workload.pxn", "all-to-all", &[], "false"),
    ("workload.pxn", "all-to-all", &["workload.algorithm=direct"], "false"),
    ("workload.start_overhead_ns", "all-reduce", &[], "2000"),
    ("workload.start_overhead_ns", "dense", &[], "2000"),
    ("workload.work_queue_latency_ns", "all-reduce", &[], "2000"),
    ("workload.collective_overhead", "all-reduce", &[], "measured"),
    ("workload.collective_overhead", "dense", &[], "measured"),
    ("workload.latency_scale", "all-reduce", &["workload.analytic=all"], "3"),
    ("workload.analytic_cost", "all-reduce", &["workload.analytic=all"], "chunks"),
    ("cluster.nic", "all-reduce", LOSSY, "efa"),
    ("workload.leave_out_run", "all-reduce", &["workload.analytic=all", "cluster.server=aws-p5"], "aws_p5_2n"),
    ("workload.rendezvous_ns", "all-reduce", &[], "3000"),
    ("workload.nccl.NCCL_ALGO", "large", &["workload.nccl.NCCL_ALGO=Ring"], "Tree"),
    ("workload.nccl.NCCL_PROTO", "all-reduce", &["workload.nccl.NCCL_PROTO=Simple"], "LL"),
    ("workload.nccl.NCCL_MIN_NCHANNELS", "all-reduce", &["workload.nccl.NCCL_MIN_NCHANNELS=1"], "16"),
    ("workload.nccl.NCCL_MAX_NCHANNELS", "large", &[], "1"),
    ("workload.nccl.NCCL_MIN_NRINGS", "all-reduce", &["workload.nccl.NCCL_MIN_NRINGS=1"], "16"),
    ("workload.nccl.NCCL_MAX_NRINGS", "large", &[], "1"),
    ("workload.nccl.NCCL_NVLS_ENABLE", "large", &["cluster.gpus_per_server=8", "workload.bytes=400000000"], "0"),
    ("workload.nccl.NCCL_BUFFSIZE", "large", &["workload.algorithm=ring", "workload.protocol=Simple"], "65536"),
    ("workload.nccl.NCCL_IB_QPS_PER_CONNECTION", "large", &["workload.algorithm=ring", "workload.chunk_kib=16"], "4"),
    ("workload.nccl.NCCL_IB_SPLIT_DATA_ON_QPS", "large", NCCL_QPS, "1"),
    ("workload.nccl.NCCL_PXN_DISABLE", "all-to-all", &[], "1"),
    ("workload.nccl.NCCL_P2P_PXN_LEVEL", "all-to-all", &[], "0"),
    ("workload.nccl.NCCL_P2P_DISABLE", "all-reduce", &[], "1"),
    ("workload.nccl.NCCL_P2P_LEVEL", "all-reduce", &[], "LOC"),
    ("workload.nccl.NCCL_IB_TIMEOUT", "all-reduce", LOSSY, "10"),
    ("workload.nccl.NCCL_IB_RETRY_CNT", "all-reduce", LOSSY, "0"),
    ("workload.nccl.NCCL_TOPO_FILE", "all-reduce", &[], "server.xml"),
    ("workload.nccl.NCCL_CROSS_NIC", "large", &["workload.algorithm=ring"], "1"),
    ("workload.nccl.NCCL_CROSS_NIC", "large", &["workload.algorithm=tree"], "1"),
    ("workload.nccl.NCCL_NET_GDR_LEVEL", "all-reduce", &[], "LOC"),
    ("workload.nccl.NCCL_IB_HCA", "large", &["cluster.gpus_per_server=4", "workload.algorithm=auto"], "mlx5_0"),
    ("workload.nccl.NCCL_IB_TC", "all-reduce", &[], "106"),
    ("workload.nccl.NCCL_IB_GID_INDEX", "all-reduce", &[], "3"),
    ("workload.nccl.NCCL_IB_DISABLE", "all-reduce", &[], "1"),
    ("workload.nccl.NCCL_NET", "all-reduce", &[], "Socket"),
    ("workload.nccl.NCCL_NET_SHARED_BUFFERS", "all-reduce", &[], "0"),
    ("workload.nccl.NCCL_P2P_DIRECT_DISABLE", "all-reduce", &[], "1"),
    ("workload.nccl.NCCL_NVB_DISABLE", "all-reduce", &[], "1"),
    ("workload.nccl.NCCL_P2P_NET_CHUNKSIZE", "all-to-all", &[], "8192"),
    ("workload.serving", "serving", &[], "disaggregated"),
    ("workload.prefill_tp", "serving-apart", &[], "4"),
    ("workload.prefill_pp", "serving-apart", &[], "2"),
    ("workload.prefill_dp", "serving-apart", &[], "2"),
    (
        "workload.prefill_ep",
        "serving-experts",
        &["workload.serving=disaggregated", "workload.prefill_dp=2", "workload.prefill_ep=1"],
        "2",
    ),
    ("workload.requests", "serving", &["workload.path=requests.csv"], "trace"),
    ("workload.request_count", "serving", &[], "9"),
    ("workload.request_rate", "serving", &[], "100.0"),
    ("workload.burstiness", "serving", &[], "0.3"),
    ("workload.lengths", "serving", &[], "fixed"),
    ("workload.prompt_tokens", "serving", &[], "90"),
    ("workload.output_tokens", "serving", &[], "9"),
    ("workload.length_spread", "serving", &[], "0.1"),
    ("workload.batching", "serving", ONE_INSTANCE, "prefill-first"),
    (
        "workload.admission",
        "serving",
        &[
            "workload.tp=8",
            "workload.request_count=60",
            "workload.output_tokens=100",
            "workload.memory_reserve_gib=0.0",
            "workload.memory_share=1.0",
            "cluster.gpu_memory_gib=0.030",
        ],
        "reserved",
    ),
    ("workload.clients", "serving", &[], "2"),
    ("workload.prefix_tokens", "serving", &[], "40"),
    ("workload.prefixes", "serving", &["workload.prefix_tokens=40", "workload.request_rate=100.0"], "3"),
    ("workload.prefix_cache", "serving", &["workload.prefix_tokens=40", "workload.request_rate=100.0"], "false"),
    ("workload.request_routing", "serving", &["workload.prefix_tokens=400", "workload.request_rate=2000.0"], "prefix"),
    ("workload.precision", "serving", &[], "int4"),
    ("workload.draft_tokens", "serving", &[], "2"),
    ("workload.draft_acceptance", "serving", &["workload.draft_tokens=2"], "0.1"),
    ("workload.draft_layers", "serving", &["workload.draft_tokens=2"], "2"),
    ("workload.output_spread", "serving", &[], "0.1"),
    ("workload.max_sequences", "serving", ONE_INSTANCE, "1"),
    ("workload.max_batch_tokens", "serving", &["workload.tp=8", "workload.max_sequences=8"], "32"),
    ("workload.chunk_tokens", "serving", &[], "16"),
    ("workload.kv_bytes", "serving", &[], "1"),
    ("workload.kv_block_tokens", "serving", &[], "64"),
    ("workload.memory_share", "serving", &[], "0.5"),
    ("workload.step_overhead_us", "serving", &[], "50.0"),
    ("workload.joined_layers", "serving", ONE_INSTANCE, "1"),
    ("cluster.server", "dense", &[], "dgx-a100"),
    ("cluster.gpus_per_server", "all-reduce", &[], "4"),
    ("cluster.gpus", "all-reduce", &[], "16"),
    ("cluster.gpu", "dense", &[], "a100"),
    ("cluster.gpu_memory_gib", "dense", &[], "0.01"),
    ("cluster.nics_per_server", "large", &["cluster.gpus_per_server=4"], "2"),
    ("cluster.nic_ports", "large", &["workload.algorithm=direct"], "2"),
    ("cluster.nvlink_gbps", "large", &[], "100"),
    ("cluster.nvlink_latency_ns", "large", &["workload.algorithm=ring"], "5000"),
    ("cluster.base_time_ns", "all-reduce", &["cluster.gpus_per_server=8"], "50000"),
    ("cluster.base_time_across_ns", "all-reduce", &["workload.analytic=all"], "200000"),
    ("cluster.nvlink", "large", &["workload.algorithm=ring"], "packet"),
    ("cluster.server_xml", "all-reduce", &[], "server.xml"),
    (
        "transport.fresh_qp",
        "all-to-all",
        &[
            "workload.iterations=3",
            "transport.cc=dcqcn",
            "workload.pxn=false",
            "workload.bytes=8000000",
            "topology.uplink_gbps=25",
        ],
        "true",
    ),
];

/// Keys whose values cannot differ within one base: `workload.kind` is what the bases differ in, `workload.format` has one value. Bounds decide which requests count
/// as good, not how they are served.
const APART: [&str; 4] = ["workload.kind", "workload.format", "workload.ttft_bound_ms", "workload.tpot_bound_ms"];

/// A SimAI workload of four GPUs with overlap, its gradients of so many bytes.
fn simai(bytes: u64) -> String {
    format!(
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n\
         2\nlayer -1 1000 ALLREDUCE 1024 500 ALLREDUCE 1024 500 NONE 0 10\ngrad -1 1 NONE 0 1 NONE 0 1 ALLREDUCE {bytes} 100\n"
    )
}

const KERNELS: &str = "gpu,operation,variant,shape,dtype,value,unit,source\nh100,gemm,,m=128 n=768 k=256,bf16,50,us,ours\nh100,gemm,,m=128 n=512 k=256,bf16,50,us,ours\n\
                       h100,gemm,,m=128 n=384 k=256,bf16,50,us,ours\n";

/// A server of two GPUs that share one NIC behind a PCIe switch, in NCCL's form.
const SERVER: &str = r#"<system version="1"><cpu numaid="0" affinity="ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
<pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
<pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>
<pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="90" rank="1" gdr="1"/></pci>
<pci busid="0000:04:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"><nic><net name="mlx5_0" dev="0" speed="100000" port="1" guid="0x1" maxconn="262144" gdr="1"/></nic></pci>
</pci></cpu></system>"#;

fn folder() -> Folder {
    let trees = include_str!("compute_data/slowdown_model.json");
    let flows = "2\n0 2 3 100 100000 0\n1 3 3 100 100000 1\n";
    Folder::new(&[
        ("a.txt", &simai(40_000)),
        ("b.txt", &simai(90_000)),
        ("flows.txt", flows),
        ("dump_0.json", include_str!("../../experiments/flight-recorder/rank0.json")),
        ("kernels.csv", KERNELS),
        ("trees.json", trees),
        ("server.xml", SERVER),
        ("requests.csv", "arrival_s,prompt_tokens,output_tokens\n0,40,4\n0.0001,70,2\n"),
    ])
}

/// What a configuration came to, and what was said about it.
type Found = (Result<ExperimentOutcome, Ending>, Vec<String>);

/// Simulates a base with settings; a message where there is no such experiment.
fn simulate(folder: &Folder, name: &str, set: &[String]) -> Result<Found, String> {
    folder.write("s.toml", &base(name));
    let sweep = sweep::load(&folder.file("s.toml"), &SetOverrides(set.to_vec())).map_err(|e| format!("{e:#}"))?;
    let mut said = sweep.notes.clone();
    let config = sweep.config(&sweep.experiments[0]).map_err(|e| e.to_string())?;
    let mut result = None;
    let task = QueuedExperiment { exp_id: 0, config };
    hyperfold_host::run::<EngineError>(
        std::iter::once(task),
        Box::new(CpuEngine),
        &RunOptions::default(),
        || false,
        &mut |news| {
            match news {
                RunEvent::Ended(ended) => result = Some(ended.result),
                RunEvent::Note(note) => said.push(note),
                RunEvent::Started(_) | RunEvent::Progress(_) | RunEvent::Lost(_) => {}
            }
            Ok(())
        },
    )
    .map_err(|e| e.to_string())?;
    result.map(|r| (r, said)).ok_or("no result".to_string())
}

/// `key=value` as `--set` takes it.
fn setting(key: &str, value: &str) -> String {
    if value.contains('=') && value.starts_with(key) { value.to_string() } else { format!("{key}={value}") }
}

#[test]
fn every_key_changes_the_result_or_it_is_said_that_it_does_not() {
    let folder = folder();
    let mut known: BTreeMap<(&str, &[&str]), Found> = BTreeMap::new();
    let (mut wrong, mut told) = (Vec::new(), BTreeSet::new());
    for &(key, name, also, value) in KNOBS {
        let set: Vec<String> = also.iter().map(|s| s.to_string()).collect();
        let what = format!("{key} = {value} in {name} with {also:?}");
        if let std::collections::btree_map::Entry::Vacant(e) = known.entry((name, also)) {
            match simulate(&folder, name, &set) {
                Ok(found) => {
                    e.insert(found);
                }
                Err(e) => {
                    wrong.push(format!("{what}: the base is refused: {e}"));
                    continue;
                }
            }
        }
        let before = &known[&(name, also)];
        if let Err(Ending::Failed(why)) = &before.0 {
            wrong.push(format!("{what}: the base fails: {why}"));
            continue;
        }
        let more: Vec<String> = set.iter().cloned().chain([setting(key, value)]).collect();
        match simulate(&folder, name, &more) {
            Err(e) => wrong.push(format!("{what}: refused: {e}")),
            Ok((Err(Ending::Failed(why)), _)) if key != "workload.nccl.NCCL_IB_RETRY_CNT" => {
                wrong.push(format!("{what}: fails: {why}"))
            }
            Ok((after, said)) if after == before.0 => {
                let short = key.trim_start_matches("workload.").trim_start_matches("nccl.");
                match said.iter().any(|s| s.contains(short)) {
                    true => drop(told.insert(key)),
                    false => wrong.push(format!("{what}: changes nothing, and nobody says so ({said:?})")),
                }
            }
            Ok(_) => {}
        }
    }
    let mut report = String::new();
    wrong.iter().for_each(|w| writeln!(report, "{w}").unwrap());
    println!("said to have no effect: {told:?}");
    assert!(wrong.is_empty(), "{report}");
}

#[test]
fn every_key_is_tried() {
    let tried: BTreeSet<&str> = KNOBS.iter().map(|k| k.0).chain(APART).collect();
    let keys = KEYS
        .iter()
        .map(|k| k.name)
        .filter(|n| n.starts_with("workload.") || n.starts_with("cluster.") || *n == "transport.fresh_qp");
    let missed: Vec<&str> = keys.filter(|n| !tried.contains(n)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
