//! `hyperfold fold device`: how many packet-hops of a sweep a GPU would simulate.
//!
//! Layer: cli. `host` simulates the sweep, with cores in the place of the GPU. No files are written.

use anyhow::anyhow;
use clap::Args;

use hyperfold_config::spec::KeyId;
use hyperfold_config::sweep::{self, Experiment, Selection, SetOverrides, Sweep};
use hyperfold_engine::EngineError;
use hyperfold_host::QueuedExperiment;
use hyperfold_host::batches::device_share::{DeviceShare, device_shares};
use hyperfold_session::Interrupt;

use super::args::SweepArgs;
use super::exit::{CliError, Exit};
use super::table::{TextTable, count};
use super::{say, tell};

#[derive(Debug, Args)]
pub struct DeviceArgs {
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Threads for the host's part [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

/// How many experiments are listed.
const LISTED: usize = 10;

/// Simulates the sweep and prints how its packet-hops are shared out.
///
/// # Errors
/// The sweep is wrong, or has no experiment that is simulated packet by packet.
pub fn execute(args: &DeviceArgs, interrupt: &Interrupt) -> Result<Exit, CliError> {
    args.sweep.limit_memory();
    let sets = SetOverrides(args.sweep.set.clone());
    let mut sweep = sweep::load(&args.sweep.sweep, &sets).map_err(CliError::bad_input)?;
    let selection = Selection { limit: args.sweep.limit, shard: args.sweep.shard };
    sweep.select(&selection).map_err(CliError::bad_input)?;
    sweep.notes.iter().for_each(|note| tell(&format!("warning: {note}")));
    let (tasks, left_out) = packet_level(&sweep)?;
    if left_out > 0 {
        tell(&format!("{left_out} experiments are left out: they cannot run, or have no packets"));
    }
    if tasks.is_empty() {
        return Err(CliError::bad_input(anyhow!("{}: no experiment has packets", args.sweep.sweep.display())));
    }
    let threads = args.jobs.map_or_else(rayon::current_num_threads, usize::from);
    tell(&format!("simulating {} experiments, with cores in the place of a GPU", tasks.len()));
    let (mut shares, mut failed) = (Vec::new(), 0);
    let stopped = interrupt.clone();
    let ran = device_shares(tasks.into_iter(), threads, move || stopped.requested(), &mut |exp_id, share| {
        match share {
            Ok(share) => shares.push(share),
            Err(why) => {
                failed += 1;
                tell(&format!("experiment {exp_id}: {why}"));
            }
        }
        Ok::<(), EngineError>(())
    });
    ran.map_err(CliError::broken)?;
    print(&sweep, shares);
    Ok(match (interrupt.requested(), failed) {
        (true, _) => Exit::Interrupted,
        (false, 0) => Exit::Ok,
        (false, _) => Exit::Failed,
    })
}

/// The experiments that are simulated packet by packet, and the number of the others.
fn packet_level(sweep: &Sweep) -> Result<(Vec<QueuedExperiment>, usize), CliError> {
    let mut tasks = Vec::new();
    for experiment in sweep.experiments.iter().filter(|experiment| sweep.cannot_run(experiment).is_none()) {
        let config = sweep.config(experiment).map_err(CliError::bad_input)?;
        if config.values.text(KeyId::Mode) == "packet" && config.cluster_run().is_none() {
            tasks.push(QueuedExperiment { exp_id: experiment.exp_id, config });
        }
    }
    let left_out = sweep.experiments.len() - tasks.len();
    Ok((tasks, left_out))
}

fn print(sweep: &Sweep, mut shares: Vec<DeviceShare>) {
    let sum = |hops: fn(&DeviceShare) -> u64| shares.iter().map(hops).sum::<u64>();
    let (all, skipped, known) = (sum(|s| s.packet_hops), sum(|s| s.skipped), sum(DeviceShare::known));
    let (on_host, on_device) = (sum(|s| s.on_host), sum(|s| s.on_device));
    say(&format!(
        "{} packet-hops: {} looked up, {} skipped, {} simulated",
        count(all),
        percent(known, all),
        percent(skipped, all),
        percent(on_host + on_device, all)
    ));
    let simulated = on_host + on_device;
    say(&format!(
        "of those simulated, a GPU takes {}, the host {}",
        percent(on_device, simulated),
        percent(on_host, simulated)
    ));
    shares.sort_by_key(|share| (std::cmp::Reverse(share.on_host), share.exp_id));
    let axes = |exp_id: u64| -> String {
        let found: Option<&Experiment> = sweep.experiments.iter().find(|experiment| experiment.exp_id == exp_id);
        found.map(|experiment| sweep.axes_text(experiment)).unwrap_or_default()
    };
    let mut table = TextTable::new(["exp_id", "packet-hops", "looked up", "skipped", "host", "GPU", "axes"]);
    for share in shares.iter().take(LISTED).filter(|share| share.on_host > 0) {
        let of_all = |part: u64| percent(part, share.packet_hops);
        table.row(vec![
            share.exp_id.to_string(),
            count(share.packet_hops),
            of_all(share.known()),
            of_all(share.skipped),
            of_all(share.on_host),
            of_all(share.on_device),
            axes(share.exp_id),
        ]);
    }
    let lines = table.lines();
    if lines.len() > 1 {
        say("");
        say("most on the host:");
        lines.iter().for_each(|line| say(line));
    }
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / all.max(1) as f64)
}
