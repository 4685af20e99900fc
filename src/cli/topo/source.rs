//! The networks that a `topo` command is about.
//!
//! Layer: cli.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use hyperfold_base::units::counted;
use hyperfold_config::spec::{Config, KeyId, TopologyKind};
use hyperfold_config::sweep::{self, Experiment, SetOverrides, Sweep};
use hyperfold_host::cost::Bill;
use hyperfold_host::{PrepareError, TierChip, cluster_network, failed_before_run, tier_chips};
use hyperfold_network::topology::text::load_head;
use hyperfold_network::topology::{FabricShape, Network, TopologyFormat};

use crate::cli::args::key_value;
use crate::cli::exit::CliError;
use crate::cli::tell;

/// Where the networks come from.
#[derive(Debug, Args)]
pub struct NetworkSource {
    /// A sweep file (.toml) or a topology file; without one: the defaults, and what --set says
    pub file: Option<PathBuf>,
    /// Set a key of the sweep file, by its dotted name (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<String>,
    /// Form of a topology file [default: by its first line]
    #[arg(long, value_enum)]
    pub format: Option<FileForm>,
    /// The experiment of the sweep whose network is meant
    #[arg(long, value_name = "N")]
    pub exp_id: Option<u64>,
}

/// Forms of topology files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileForm {
    /// ns-3, as in HPCC
    Ns3,
    /// SimAI
    Simai,
    /// htsim's fat trees
    Htsim,
    /// InfraGraph, as JSON
    Infragraph,
}

impl FileForm {
    fn guess(text: &str) -> Option<FileForm> {
        TopologyFormat::guess(text).map(|format| match format {
            TopologyFormat::Ns3 => FileForm::Ns3,
            TopologyFormat::Simai => FileForm::Simai,
            TopologyFormat::Htsim => FileForm::Htsim,
            TopologyFormat::InfraGraph => FileForm::Infragraph,
        })
    }

    /// Value of `topology.format`.
    fn key(self) -> &'static str {
        match self {
            FileForm::Ns3 => "ns3",
            FileForm::Simai => "simai",
            FileForm::Htsim => "htsim",
            FileForm::Infragraph => "infragraph",
        }
    }
}

/// One network, of the first experiment that has it.
pub struct FoundNetwork {
    pub exp_id: u64,
    /// Values of the axes, in their order.
    pub values: Vec<String>,
    pub config: Config,
    pub network: Network,
    pub bill: Bill,
    /// Chips of its switches, if the configuration says which.
    pub chips: Vec<TierChip>,
}

impl FoundNetwork {
    /// The kind of the network, or the name of its file.
    pub fn kind(&self) -> String {
        match &self.config.topology.kind {
            TopologyKind::File { path, .. } => path.display().to_string(),
            TopologyKind::Generated { .. } => self.config.values.text(KeyId::TopologyKind).to_string(),
        }
    }

    /// Whether switches of different rails are not joined on purpose.
    pub fn is_rail_only(&self) -> bool {
        matches!(self.config.topology.kind, TopologyKind::Generated { shape: FabricShape::RailOnly(_), .. })
    }
}

/// Different networks, in the order of their first experiments.
pub struct FoundNetworks {
    /// Keys of the axes.
    pub axes: Vec<String>,
    pub networks: Vec<FoundNetwork>,
    /// Networks beyond the most that were asked for.
    pub n_more: usize,
    /// Experiments without a network, each with the reason.
    pub failed: Vec<(u64, String)>,
}

/// A sweep of nothing but a network.
const PLAIN: &str = "name = \"network\"\n[base.workload]\nkind = \"traffic\"\npattern = \"permutation\"\n";

impl NetworkSource {
    /// Builds up to `max` different networks.
    ///
    /// # Errors
    /// The file is wrong, or no experiment has a network.
    pub fn networks(&self, max: usize) -> Result<FoundNetworks, CliError> {
        let sweep = self.sweep()?;
        sweep.notes.iter().for_each(|note| tell(&format!("warning: {note}")));
        let mut found = FoundNetworks { axes: sweep.axes.clone(), networks: Vec::new(), n_more: 0, failed: Vec::new() };
        // Parts of the configuration that decide the network.
        let mut seen: BTreeMap<String, ()> = BTreeMap::new();
        for experiment in sweep.experiments.iter().filter(|e| self.exp_id.is_none_or(|id| e.exp_id == id)) {
            let config = match sweep.config(experiment) {
                Ok(config) => config,
                Err(why) => {
                    found.failed.push((experiment.exp_id, why.to_string()));
                    continue;
                }
            };
            let decides = match config.cluster.gpus {
                Some(_) => format!("{:?} {:?} {:?}", config.cluster, config.topology, config.cost),
                // The workload decides how many GPUs there are.
                None => experiment.exp_id.to_string(),
            };
            if seen.insert(decides, ()).is_some() {
                continue;
            }
            if found.networks.len() == max {
                found.n_more += 1;
                continue;
            }
            found.build(&sweep, experiment, config);
        }
        let first = found.failed.first().map(|(id, why)| format!("experiment {id}: {why}"));
        match (found.networks.is_empty(), self.exp_id) {
            (false, _) => Ok(found),
            (true, Some(id)) if first.is_none() => {
                let n = counted(sweep.experiments.len(), "experiment");
                Err(CliError::bad_input(anyhow!("--exp-id {id}: the sweep has {n}, from 0")))
            }
            (true, _) => {
                Err(CliError::bad_input(anyhow!(first.unwrap_or_else(|| "the sweep has no experiment".into()))))
            }
        }
    }

    /// The one network that is meant.
    ///
    /// # Errors
    /// The file is wrong, or the sweep has several networks.
    pub fn network(&self) -> Result<FoundNetwork, CliError> {
        let mut found = self.networks(2)?;
        if found.networks.len() > 1 {
            let ids: Vec<String> = found.networks.iter().map(|n| format!("--exp-id {}", n.exp_id)).collect();
            let n = found.networks.len() + found.n_more;
            return Err(CliError::bad_input(anyhow!(
                "the sweep has {n} different networks; name one by an experiment, for example {}; `hyperfold topo show` lists them",
                ids.join(" or ")
            )));
        }
        Ok(found.networks.remove(0))
    }

    fn sweep(&self) -> Result<Sweep, CliError> {
        let is_sweep = |path: &Path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"));
        match &self.file {
            Some(path) if is_sweep(path) => {
                sweep::load(path, &SetOverrides(self.set.clone())).map_err(CliError::bad_input)
            }
            Some(path) => {
                let form = self.format.map_or_else(|| guessed(path), Ok)?;
                let path = std::path::absolute(path).map_err(CliError::bad_input)?;
                let quoted = serde_json::Value::from(path.display().to_string());
                let mut set = self.set.clone();
                set.push("topology.kind=file".into());
                set.push(format!("topology.format={}", form.key()));
                set.push(format!("topology.path={quoted}"));
                sweep::parse(PLAIN, Path::new("--set"), &SetOverrides(set)).map_err(CliError::bad_input)
            }
            None => {
                sweep::parse(PLAIN, Path::new("--set"), &SetOverrides(self.set.clone())).map_err(CliError::bad_input)
            }
        }
    }
}

/// The form of a file by its beginning.
fn guessed(path: &Path) -> Result<FileForm, CliError> {
    let head = load_head(path).map_err(CliError::bad_input)?.unwrap_or_default();
    FileForm::guess(&head).ok_or_else(|| {
        let path = path.display();
        CliError::bad_input(anyhow!(
            "{path}: its first line is not that of a topology file; say which with --format ns3|simai|htsim|infragraph (a sweep file ends in .toml)"
        ))
    })
}

/// The network as it is at the beginning, which knows the links that have failed by then.
fn at_beginning(config: &Config, network: &Network) -> Result<Network, PrepareError> {
    // Links are counted, and random ones drawn, among all circuits that there ever are.
    let failed = failed_before_run(config, network)?;
    let dark: BTreeSet<u32> = network.dark.iter().filter(|dark| dark.down_ps.is_none()).map(|dark| dark.link).collect();
    let lit = (0..network.links.len() as u32).filter(|link| !dark.contains(link));
    let failed = (0u32..).zip(lit).filter(|(_, link)| failed.contains(link)).map(|(place, _)| place).collect();
    Ok(Network { failed, ..network.at_beginning().into_owned() })
}

impl FoundNetworks {
    fn build(&mut self, sweep: &Sweep, experiment: &Experiment, config: Config) {
        let built = cluster_network(&config).and_then(|(network, bill)| {
            let network = at_beginning(&config, &network)?;
            let chips = tier_chips(&config, &network)?;
            Ok((network, bill, chips))
        });
        match built {
            Ok((network, bill, chips)) => {
                let values = sweep.axis_values(experiment).iter().map(ToString::to_string).collect();
                self.networks.push(FoundNetwork { exp_id: experiment.exp_id, values, config, network, bill, chips });
            }
            Err(why) => self.failed.push((experiment.exp_id, why.to_string())),
        }
    }
}
