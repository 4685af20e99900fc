//! `hyperfold fold`. `explain` says why parts of an experiment were simulated and not looked up; `device` is in [`super::fold_device`].
//!
//! Layer: cli. [`hyperfold_session::trace`] finds the experiment, and `host` simulates it again.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};

use hyperfold_config::spec::{Config, KeyId};
use hyperfold_fold::{CauseCount, FoldCause, FoldExplanation, KeyPart};
use hyperfold_host::outcomes::fold_explain::{FoldReport, explain};
use hyperfold_host::{file_loses_packets, unknown_to_folding};
use hyperfold_results::RunColumns;
use hyperfold_session::Interrupt;
use hyperfold_session::trace::experiment;

use super::exit::{CliError, Exit};
use super::fold_device::{self, DeviceArgs};
use super::table::{TextTable, count, share};
use super::{say, tell, tell_losses};

#[derive(Debug, Args)]
pub struct FoldArgs {
    #[command(subcommand)]
    pub command: FoldCommand,
}

#[derive(Debug, Subcommand)]
pub enum FoldCommand {
    /// Say why parts of an experiment were simulated and not looked up
    Explain(ExplainArgs),
    /// Say how many packet-hops of a sweep a GPU would simulate; none is needed for that
    Device(DeviceArgs),
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Folder of results
    pub dir: PathBuf,
    /// The experiment
    pub exp_id: u64,
    /// Stop after so many seconds, and explain what was simulated by then
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seconds: Option<u64>,
}

/// Does what the command asks for.
///
/// # Errors
/// The folder, the experiment, or an input of it does not exist any more; the sweep is wrong.
pub fn execute(args: &FoldArgs, interrupt: &Interrupt) -> Result<Exit, CliError> {
    match &args.command {
        FoldCommand::Explain(args) => explain_again(args, interrupt),
        FoldCommand::Device(args) => fold_device::execute(args, interrupt),
    }
}

/// Simulates the experiment again, folded, and prints why parts were simulated.
fn explain_again(args: &ExplainArgs, interrupt: &Interrupt) -> Result<Exit, CliError> {
    let run = RunColumns::open(&args.dir).map_err(CliError::bad_input)?;
    tell_losses(&args.dir);
    let (_, config) = experiment(&run, args.exp_id)?;
    let level = config.values.text(KeyId::Mode);
    if level != "packet" {
        let why = anyhow!(
            "experiment {} has fidelity.mode = \"{level}\"; only packets are folded, so there is nothing to explain",
            args.exp_id
        );
        return Err(CliError::bad_input(why));
    }
    tell(&format!("simulating experiment {} again, folded, with an empty memo", args.exp_id));
    let longest = args.seconds.map(Duration::from_secs);
    let report = explain(&config, args.exp_id, longest, &|| interrupt.requested()).map_err(CliError::bad_input)?;
    print(&report, &config);
    Ok(if interrupt.requested() { Exit::Interrupted } else { Exit::Ok })
}

fn print(report: &FoldReport, config: &Config) {
    let FoldReport { explanation, stats, packet_hops, .. } = report;
    if let Some(why) = &report.cut {
        say(&format!("it broke off: {why}; the following is of what was done by then"));
    }
    if report.folded_anyway {
        say("fidelity.fast_forward is \"off\" here; it was folded as \"exact\" folds it");
    }
    if stats.partitions == 0 {
        let by_file = || file_loses_packets(config).then_some("links of its topology file lose packets (error rates)");
        let why = unknown_to_folding(config).or_else(by_file).unwrap_or("it has no collectives or programs");
        say(&format!("nothing of it is folded: {why}"));
        return;
    }
    let hops = explanation.hops();
    let all = (*packet_hops).max(hops);
    say(&format!("{} packet-hops, {} of them simulated ({})", count(all), count(hops), share(hops, all)));
    if stats.coupled > 0 {
        say(&format!(
            "switches where a pause or a drop came within reach: {}; it went back to its start {} times for them",
            stats.coupled, stats.couplings
        ));
    }
    if stats.restarts > 0 {
        say("then it started over unfolded: a queue pair gave up, the time limit was reached, or nothing could go on");
    }
    say("");
    causes(explanation, all).lines().iter().for_each(|line| say(line));
    let parts = parts(explanation, all);
    if let Some(parts) = parts {
        say("");
        say("states that were new, held against the most similar known one of the same rows:");
        parts.lines().iter().for_each(|line| say(line));
    }
}

/// Table of causes by their share of packet-hops, largest first.
fn causes(explanation: &FoldExplanation, all: u64) -> TextTable {
    let mut by_words: Vec<([&str; 2], CauseCount)> = Vec::new();
    for (cause, one) in &explanation.causes {
        let words = words(*cause);
        match by_words.iter_mut().find(|x| x.0 == words) {
            Some((_, sum)) => (sum.hops, sum.times) = (sum.hops + one.hops, sum.times + one.times),
            None => by_words.push((words, *one)),
        }
    }
    by_words.sort_by_key(|x| std::cmp::Reverse((x.1.hops, x.1.times)));
    let mut table = TextTable::new(["why it was simulated", "packet-hops", "times", "what helps"]);
    for ([why, helps], sum) in by_words.into_iter().filter(|x| x.1.hops > 0) {
        table.row(vec![why.into(), share(sum.hops, all), count(sum.times), helps.into()]);
    }
    table
}

/// Table of the parts of keys that differed, by their share. `None`: no state was compared with another.
fn parts(explanation: &FoldExplanation, all: u64) -> Option<TextTable> {
    let mut rows: Vec<(KeyPart, [u64; 2])> =
        KeyPart::ALL.iter().map(|&part| (part, explanation.by_part(part))).filter(|x| x.1[0] > 0).collect();
    rows.sort_by_key(|x| std::cmp::Reverse(x.1));
    let mut table = TextTable::new(["what differed", "packet-hops", "nothing else", "what helps"]);
    for &(part, [any, alone]) in &rows {
        let [what, helps] = part_words(part);
        table.row(vec![what.into(), share(any, all), share(alone, all), helps.into()]);
    }
    (!rows.is_empty()).then_some(table)
}

/// A cause and a remedy in words.
fn words(cause: FoldCause) -> [&'static str; 2] {
    match cause {
        FoldCause::NewRows => ["messages met that had not met before", ""],
        FoldCause::NewStart(_) => ["messages met as before, in another state", "see below"],
        FoldCause::NewRowsAtCheckpoint => ["a state of rows that were together for the first time", ""],
        FoldCause::NewSnapshot(_) => ["a state that was new, of rows seen before", "see below"],
        FoldCause::PostAtOtherTime => {
            ["a message came at another time than before", "ranks and layers that take equal times"]
        }
        FoldCause::OtherPost => ["a message of another size or queue pair came", "equal sizes of messages"],
        FoldCause::JoinAtOtherTime => {
            ["others joined at another time than before", "ranks and layers that take equal times"]
        }
        FoldCause::OtherJoin => ["others joined, or in another state than before", ""],
        FoldCause::Merge => ["traffic met that had not met so before", "paths that share fewer links"],
        FoldCause::Random => {
            ["a mark was drawn at random, or packets were lost", "transport.ecn_kmin_kb = ecn_kmax_kb draws nothing"]
        }
        FoldCause::NotRecordable => [
            "plain flows, several paths, or timers that others see",
            "routing.policy = \"ecmp\", no flows beside the job",
        ],
        FoldCause::NoMemo => ["nothing could be remembered", "fidelity.memo = true; more memory"],
        FoldCause::SkipsGainedTooLittle => [
            "skips gained too little, so it went on without folding",
            "fidelity.fast_forward = \"exact\" folds it to its end",
        ],
    }
}

/// A part of keys and a remedy in words.
fn part_words(part: KeyPart) -> [&'static str; 2] {
    match part {
        KeyPart::Rows => ["which links and paths there are", ""],
        KeyPart::Phases => {
            ["phases of telemetry's clock and counters", "fidelity.fast_forward = \"steady\" rounds them"]
        }
        KeyPart::Messages => ["messages that wait, and how far they are sent", "messages of equal sizes"],
        KeyPart::Timers => ["deadlines and timers of queue pairs", ""],
        KeyPart::Rates => {
            ["rates and windows of congestion control", "transport.fresh_qp = true; \"steady\" rounds them"]
        }
        KeyPart::Transmitters => ["when transmitters are free, and whose turn it is", ""],
        KeyPart::Queues => ["packets in queues", ""],
        KeyPart::InFlight => ["packets on links", ""],
        KeyPart::Telemetry => ["telemetry that packets carry", ""],
        KeyPart::Lineages => ["what goes first of events at one time", ""],
        KeyPart::Coupled => ["pauses at coupled switches", "a larger topology.buffer_mib"],
        KeyPart::Skips => ["what the skip before may lead to", ""],
    }
}
