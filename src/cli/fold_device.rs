//! `hyperfold fold device`: how many packet-hops of a sweep a GPU would simulate.
//!
//! Layer: cli. `host` simulates the sweep, with cores in the place of the GPU. No files are written.

use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;

use hyperfold_base::units::counted;
use hyperfold_config::spec::KeyId;
use hyperfold_config::sweep::{self, Experiment, Selection, SetOverrides, Sweep};
use hyperfold_engine::EngineError;
use hyperfold_host::batches::device_share::{DeviceShare, device_shares};
use hyperfold_host::{Ending, QueuedExperiment};
use hyperfold_session::Interrupt;

use super::args::SweepArgs;
use super::exit::{CliError, Exit};
use super::interrupt::may_end_at_once;
use super::table::{TextTable, count, share};
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

/// The experiments of a sweep, by what becomes of them here.
#[derive(Default)]
struct Counts {
    shares: Vec<DeviceShare>,
    /// Experiments that do not fit into their GPUs. That is a result, without packets.
    n_oom: usize,
    n_failed: usize,
    n_cannot_run: usize,
    /// Experiments at another level than packets.
    n_other_level: usize,
}

/// Simulates the sweep and prints how its packet-hops are shared out.
///
/// # Errors
/// The sweep is wrong, has no experiment that is simulated packet by packet, or threads cannot be started.
pub fn execute(args: &DeviceArgs, interrupt: &Interrupt) -> Result<Exit, CliError> {
    args.sweep.limit_memory();
    let path = args.sweep.sweep.display();
    let sets = SetOverrides(args.sweep.set.clone());
    let mut sweep = sweep::load(&args.sweep.sweep, &sets).map_err(CliError::bad_input)?;
    let selection = Selection { limit: args.sweep.limit, shard: args.sweep.shard };
    sweep.select(&selection).map_err(CliError::bad_input)?;
    sweep.notes.iter().for_each(|note| tell(&format!("warning: {note}")));
    let mut counts = Counts::default();
    let tasks = packet_level(&sweep, &mut counts)?;
    if tasks.is_empty() && counts.n_cannot_run == 0 {
        let error = anyhow!("{path}: no experiment has packets; fidelity.mode = \"packet\" would be right");
        return Err(CliError::bad_input(error));
    }
    let n_tasks = tasks.len();
    tell(&format!("simulating {}, with cores in the place of a GPU", counted(n_tasks, "experiment")));
    let threads = args.jobs.map_or_else(rayon::current_num_threads, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(CliError::broken)?;
    // What has ended by then is printed.
    may_end_at_once(false);
    let stopped = interrupt.clone();
    let ran = device_shares(tasks.into_iter(), Arc::new(pool), move || stopped.requested(), &mut |exp_id, ended| {
        match ended {
            Ok(share) => counts.shares.push(share),
            Err(Ending::Oom { .. }) => counts.n_oom += 1,
            Err(Ending::Failed(why) | Ending::MachineLimit(why)) => {
                counts.n_failed += 1;
                tell(&format!("experiment {exp_id}: {why}"));
            }
        }
        Ok::<(), EngineError>(())
    });
    ran.map_err(CliError::broken)?;
    let n_ended = counts.shares.len() + counts.n_oom + counts.n_failed;
    for line in counts.left_out(n_tasks - n_ended) {
        tell(&line);
    }
    if counts.shares.iter().all(|share| share.packet_hops == 0) {
        tell("no packet was counted");
    } else {
        print(&sweep, &mut counts.shares);
    }
    Ok(match (interrupt.requested(), counts.n_failed + counts.n_cannot_run) {
        (true, _) => Exit::Interrupted,
        (false, 0) => Exit::Ok,
        (false, _) => Exit::Failed,
    })
}

impl Counts {
    /// Lines about the experiments that are in no total. `n_stopped`: those that were still to be simulated when the user stopped.
    fn left_out(&self, n_stopped: usize) -> Vec<String> {
        let lines = [
            (self.n_cannot_run, "cannot run"),
            (self.n_other_level, "not simulated as packets"),
            (self.n_oom, "larger than the memory of their GPUs"),
            (self.n_failed, "failed"),
            (n_stopped, "stopped"),
        ];
        let line = |(n, why): (usize, &str)| format!("not counted: {}, {why}", counted(n, "experiment"));
        lines.into_iter().filter(|(n, _)| *n > 0).map(line).collect()
    }
}

/// The experiments that are simulated packet by packet. Counts the others, and tells why they cannot run.
fn packet_level(sweep: &Sweep, counts: &mut Counts) -> Result<Vec<QueuedExperiment>, CliError> {
    let mut tasks = Vec::new();
    for experiment in &sweep.experiments {
        if let Some(why) = sweep.cannot_run(experiment) {
            counts.n_cannot_run += 1;
            tell(&format!("experiment {}: {why}", experiment.exp_id));
            continue;
        }
        let config = sweep.config(experiment).map_err(CliError::bad_input)?;
        if config.values.text(KeyId::Mode) == "packet" && config.cluster_run().is_none() {
            tasks.push(QueuedExperiment { exp_id: experiment.exp_id, config });
        } else {
            counts.n_other_level += 1;
        }
    }
    Ok(tasks)
}

fn print(sweep: &Sweep, shares: &mut [DeviceShare]) {
    let sum = |hops: fn(&DeviceShare) -> u64| shares.iter().map(hops).sum::<u64>();
    let (all, skipped, known) = (sum(|s| s.packet_hops), sum(|s| s.skipped), sum(DeviceShare::known));
    let (on_host, on_device) = (sum(|s| s.on_host), sum(|s| s.on_device));
    let simulated = on_host + on_device;
    say(&format!(
        "{} packet-hops: {} looked up, {} skipped, {} simulated",
        count(all),
        share(known, all),
        share(skipped, all),
        share(simulated, all)
    ));
    say(&format!(
        "of those simulated, a GPU takes {}, the host {}",
        share(on_device, simulated),
        share(on_host, simulated)
    ));
    shares.sort_by_key(|share| (std::cmp::Reverse(share.on_host), share.exp_id));
    let axes = |exp_id: u64| -> String {
        let found: Option<&Experiment> = sweep.experiments.iter().find(|experiment| experiment.exp_id == exp_id);
        found.map(|experiment| sweep.axes_text(experiment)).unwrap_or_default()
    };
    let mut table = TextTable::new(["exp_id", "packet-hops", "looked up", "skipped", "host", "GPU", "axes"]);
    for one in shares.iter().take(LISTED).filter(|share| share.on_host > 0) {
        let of_all = |part: u64| share(part, one.packet_hops);
        table.row(vec![
            one.exp_id.to_string(),
            count(one.packet_hops),
            of_all(one.known()),
            of_all(one.skipped),
            of_all(one.on_host),
            of_all(one.on_device),
            axes(one.exp_id),
        ]);
    }
    let lines = table.lines();
    if lines.len() > 1 {
        say("");
        say("most on the host:");
        lines.iter().for_each(|line| say(line));
    }
}
