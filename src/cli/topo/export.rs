//! `hyperfold topo export` and `hyperfold topo draw`.
//!
//! Layer: cli. One file is written, where `--out` says.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use hyperfold_base::units::counted;
use hyperfold_config::spec::{KeyId, Named};
use hyperfold_network::topology::{to_htsim, to_infragraph, to_ns3, to_simai};
use hyperfold_report::plot::network_picture;

use super::source::NetworkSource;
use crate::cli::exit::{CliError, Exit};
use crate::cli::{say, tell};

#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub source: NetworkSource,
    /// Form to write
    #[arg(long, value_enum)]
    pub to: WrittenForm,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Overwrite what is there
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct DrawArgs {
    #[command(flatten)]
    pub source: NetworkSource,
    /// The file to write: .svg or .png
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Overwrite what is there
    #[arg(long)]
    pub force: bool,
}

/// Forms that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WrittenForm {
    /// ns-3, as in HPCC; servers and NVLink are left out
    Ns3,
    /// SimAI
    Simai,
    /// htsim's fat trees, of two or three tiers; servers and NVLink are left out
    Htsim,
    /// InfraGraph, as JSON
    Infragraph,
}

/// Writes the network as a topology file.
///
/// # Errors
/// The network cannot be built, the form cannot hold it, or something exists at `--out`.
pub fn export(args: &ExportArgs) -> Result<Exit, CliError> {
    let found = args.source.network()?;
    let gpu = match &found.config.cluster.gpu {
        Named::Asset(name) => name.to_uppercase(),
        _ => "GPU".to_string(),
    };
    let text = match args.to {
        WrittenForm::Ns3 => to_ns3(&found.network),
        WrittenForm::Simai => to_simai(&found.network, &gpu),
        WrittenForm::Htsim => to_htsim(&found.network),
        WrittenForm::Infragraph => to_infragraph(&found.network),
    };
    let text = text.map_err(CliError::bad_input)?;
    let form_without_servers = match args.to {
        WrittenForm::Ns3 => Some("ns-3"),
        WrittenForm::Htsim => Some("htsim"),
        WrittenForm::Simai | WrittenForm::Infragraph => None,
    };
    if let Some(form) = form_without_servers.filter(|_| found.network.nvlink.is_some()) {
        tell(&format!(
            "warning: the {form} form has no servers: GPUs of one server will reach each other over the network"
        ));
    }
    let form_without_losses = match args.to {
        WrittenForm::Htsim => Some("htsim"),
        WrittenForm::Infragraph => Some("InfraGraph"),
        WrittenForm::Ns3 | WrittenForm::Simai => None,
    };
    if let Some(form) = form_without_losses.filter(|_| !found.network.lossy_links.is_empty()) {
        let n = counted(found.network.lossy_links.len(), "link");
        tell(&format!(
            "warning: the {form} form has no error rates: {n} of this network would lose packets and lose none there"
        ));
    }
    if found.config.values.has(KeyId::Outages) {
        tell("warning: topology.outages is left out: the file has the network whole");
    }
    write(&args.out, args.force, text.as_bytes())
}

/// Draws the network.
///
/// # Errors
/// The network cannot be built, is too large to be drawn, or something exists at `--out`.
pub fn draw(args: &DrawArgs) -> Result<Exit, CliError> {
    let ending = args.out.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    let is_png = match ending.as_deref() {
        Some("svg") => false,
        Some("png") => true,
        _ => {
            let out = args.out.display();
            return Err(CliError::bad_input(anyhow!("--out {out}: a drawing's file ends in .svg or .png")));
        }
    };
    let found = args.source.network()?;
    let picture = network_picture(&found.network, &found.kind()).map_err(CliError::bad_input)?;
    let bytes = if is_png { picture.to_png().map_err(CliError::broken)? } else { picture.to_svg() };
    write(&args.out, args.force, &bytes)
}

fn write(path: &Path, force: bool, bytes: &[u8]) -> Result<Exit, CliError> {
    if !force && path.exists() {
        let error = anyhow!("{}: exists already; name another --out, or give --force", path.display());
        return Err(CliError::bad_input(error));
    }
    std::fs::write(path, bytes).map_err(|e| CliError::bad_input(anyhow!("{}: {e}", path.display())))?;
    say(&format!("wrote {}", path.display()));
    Ok(Exit::Ok)
}
