//! Options of `hyperfold submit`.
//!
//! Layer: cli. Parses; decides nothing.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use hyperfold_session::EngineChoice;

use super::args::{ENGINES, key_value, one_of};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("scheduler").required(true))]
pub struct SubmitArgs {
    /// The sweep file (TOML); every machine must see it under the same path
    pub sweep: PathBuf,
    /// Submit a SLURM array job with a task a shard, and a job that merges the results
    #[arg(long, group = "scheduler")]
    pub slurm: bool,
    /// Write a Kubernetes manifest (an Indexed Job) to --manifest; nothing is contacted
    #[arg(long, group = "scheduler")]
    pub kubernetes: bool,
    /// How many shards: jobs that run side by side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub shards: u64,
    /// Folder for shards, logs and merged results, on storage that every machine sees; with --kubernetes a folder on the claim
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Engine of every shard; `gpu` asks the scheduler for a GPU each
    #[arg(long, value_parser = one_of(ENGINES), default_value = "auto")]
    pub engine: EngineChoice,
    /// Set a key of the sweep file, by its dotted name (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<String>,
    /// Only the experiments with exp_id below N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// CPUs of each shard
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cpus: Option<u32>,
    /// Memory of each shard, in the scheduler's words: 16G, 16Gi
    #[arg(long, value_name = "M")]
    pub mem: Option<String>,
    /// How often a shard that was killed, broke off, or ran out of its time is queued again
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub requeues: u32,
    /// The program on the machines that run it [default: this one; with --kubernetes `hyperfold`]
    #[arg(long, value_name = "PATH")]
    pub program: Option<String>,
    /// Print what would be written; write and submit nothing
    #[arg(long)]
    pub dry_run: bool,
    /// SLURM partition
    #[arg(long, value_name = "P", conflicts_with = "kubernetes")]
    pub partition: Option<String>,
    /// SLURM account
    #[arg(long, value_name = "A", conflicts_with = "kubernetes")]
    pub account: Option<String>,
    /// SLURM generic resources of each shard, or `none` [default: gpu:1 with --engine gpu, else none]
    #[arg(long, value_name = "GRES", conflicts_with = "kubernetes")]
    pub gres: Option<String>,
    /// SLURM time limit of each shard; one that runs out of it is queued again and carries on
    #[arg(long, value_name = "T", conflicts_with = "kubernetes")]
    pub time: Option<String>,
    /// Wait until all is merged; the exit code is the merge's
    #[arg(long, conflicts_with_all = ["kubernetes", "dry_run"])]
    pub wait: bool,
    /// Submit the same once more into the DIR of an earlier submission; complete shards cost nothing
    #[arg(long, conflicts_with = "kubernetes")]
    pub resume: bool,
    /// Container image with hyperfold in it
    #[arg(long, value_name = "IMAGE", required_if_eq("kubernetes", "true"), conflicts_with = "slurm")]
    pub image: Option<String>,
    /// Persistent volume claim that holds the sweep and takes the results
    #[arg(long, value_name = "NAME", required_if_eq("kubernetes", "true"), conflicts_with = "slurm")]
    pub claim: Option<String>,
    /// Path at which pods see the claim
    #[arg(long, value_name = "PATH", default_value = "/data", conflicts_with = "slurm")]
    pub mount: String,
    /// Path at which pods find the sweep file [default: its name, in --mount]
    #[arg(long, value_name = "PATH", conflicts_with = "slurm")]
    pub sweep_in_pod: Option<String>,
    /// Kubernetes namespace
    #[arg(long, value_name = "NAME", conflicts_with = "slurm")]
    pub namespace: Option<String>,
    /// File of the manifest; an existing file is kept [default: standard output]
    #[arg(long, value_name = "FILE", conflicts_with = "slurm")]
    pub manifest: Option<PathBuf>,
    /// Further options of `hyperfold run` for every shard, after `--`
    #[arg(last = true, value_name = "RUN OPTIONS")]
    pub run_options: Vec<String>,
}
