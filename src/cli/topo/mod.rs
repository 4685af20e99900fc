//! `hyperfold topo`: shows, checks, writes and draws networks without simulating anything.
//!
//! Layer: cli. Networks come from a sweep file, a topology file, or keys alone.

mod check;
mod circuits;
mod export;
mod facts;
mod failures;
mod show;
mod source;

use clap::{Args, Subcommand};

use super::exit::{CliError, Exit};

#[derive(Debug, Args)]
pub struct TopoArgs {
    #[command(subcommand)]
    pub command: TopoCommand,
}

#[derive(Debug, Subcommand)]
pub enum TopoCommand {
    /// Say what a network is like: switches, links, distances, paths, the rate between its halves, price
    Show(show::ShowArgs),
    /// Look for what is wrong with a network, or may become so
    Check(check::CheckArgs),
    /// Write a network as a file for other simulators
    Export(export::ExportArgs),
    /// Draw a network, as SVG or PNG
    Draw(export::DrawArgs),
}

/// Runs the command.
///
/// # Errors
/// The network cannot be built, or the file cannot be written.
pub fn execute(args: &TopoArgs) -> Result<Exit, CliError> {
    match &args.command {
        TopoCommand::Show(args) => show::execute(args),
        TopoCommand::Check(args) => check::execute(args),
        TopoCommand::Export(args) => export::export(args),
        TopoCommand::Draw(args) => export::draw(args),
    }
}
