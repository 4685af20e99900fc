//! `hyperfold watch`: shows the progress of a run, from its folder alone.
//!
//! Layer: cli. It reads the files of the run, so the run may be on another machine with the same file system. It changes nothing there.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use hyperfold_base::printable::printable;
use hyperfold_results::{JournalReader, RunFollower, RunState};

use super::exit::{CliError, Exit};
use super::output::is_closed;
use super::work_left::WorkShare;
use super::{best, resume, say, table, tell};

/// Time between looks, and between lines if the output is no terminal.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LINE_EVERY: Duration = Duration::from_secs(2);
/// How long to wait for a run in a folder where none has begun, and for a folder that does not exist, because its name may be wrong.
const WAIT_FOR_BEGIN: Duration = Duration::from_secs(60);
const WAIT_FOR_FOLDER: Duration = Duration::from_secs(10);
/// A run is taken as killed if nobody holds its journal and nothing was written for this long.
const SILENT_AT_MOST: Duration = Duration::from_secs(30);
/// Reading results to rank them may take at most one part in this many of the time.
const RANKING_SHARE: u32 = 20;
/// Width of the bar, in characters.
const BAR: u64 = 30;

#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Folder of a run, as `hyperfold run --out` names it; may be on a shared file system
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Print the state once and end
    #[arg(long)]
    pub once: bool,
}

/// Follows the run to its end.
///
/// # Errors
/// There is no run in the folder, it cannot be read, or the run was killed.
pub fn execute(args: &WatchArgs) -> Result<Exit, CliError> {
    let mut watch = Watch { dir: &args.dir, follower: RunFollower::new(&args.dir), best: Vec::new(), ranked: None };
    let unreadable = |e: std::io::Error| CliError::bad_input(anyhow!("{}: {e}", args.dir.display()));
    if args.once {
        let state = watch.follower.poll().map_err(unreadable)?.clone();
        if !state.begun {
            return Err(no_run(&args.dir));
        }
        watch.rank(&state);
        watch.lines(&state).iter().for_each(|line| say(line));
        return Ok(Exit::Ok);
    }
    let mut view = View::new();
    let begin = Instant::now();
    let mut announced = false;
    loop {
        let state = watch.follower.poll().map_err(unreadable)?.clone();
        match () {
            () if !state.begun => {
                let (patience, reason) = match args.dir.is_dir() {
                    true => (WAIT_FOR_BEGIN, "no run has begun here yet"),
                    false => (WAIT_FOR_FOLDER, "there is no such folder yet"),
                };
                if begin.elapsed() > patience {
                    return Err(no_run(&args.dir));
                }
                if !std::mem::replace(&mut announced, true) {
                    let patience = table::seconds(patience.as_secs_f64());
                    tell(&format!("{}: {reason}; waiting for {patience} at most", args.dir.display()));
                }
            }
            () => {
                watch.rank_if_cheap(&state);
                let is_over = state.ended.is_some();
                if is_over {
                    watch.rank(&state);
                }
                view.show(&state, || watch.lines(&state), is_over);
                if is_over {
                    return Ok(Exit::Ok);
                }
                if watch.was_killed() {
                    view.close();
                    return Err(CliError::broken(anyhow!(
                        "{}: the run has not ended, nobody holds its journal, and nothing was written for {}: it was killed; carry on by `{}`",
                        args.dir.display(),
                        table::seconds(SILENT_AT_MOST.as_secs_f64()),
                        carry_on(&args.dir)
                    )));
                }
            }
        }
        if is_closed() {
            return Ok(Exit::Ok);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The command that carries on with the run in a folder, as far as its journal tells the selection.
fn carry_on(dir: &Path) -> String {
    let run = JournalReader::open(dir).map(|reader| reader.run().clone()).unwrap_or_default();
    resume::command(&run, dir)
}

fn no_run(dir: &Path) -> CliError {
    if !dir.is_dir() {
        return CliError::bad_input(anyhow!(
            "{}: there is no such folder; name the one that `hyperfold run --out` names",
            dir.display()
        ));
    }
    CliError::bad_input(anyhow!(
        "{}: there is no run here (no events.jsonl); name the folder that `hyperfold run --out` names",
        dir.display()
    ))
}

struct Watch<'a> {
    dir: &'a Path,
    follower: RunFollower,
    /// Lines about the best experiment so far. `ranked` says at how many finished experiments and when they were made, and how long that took.
    best: Vec<String>,
    ranked: Option<(u64, Instant, Duration)>,
}

impl Watch<'_> {
    /// Ranks the results so far.
    fn rank(&mut self, state: &RunState) {
        let start = Instant::now();
        self.best = if state.done() == 0 { Vec::new() } else { best::lines(self.dir, None, &Default::default()) };
        self.ranked = Some((state.done(), Instant::now(), start.elapsed()));
    }

    /// Ranks the results if there are new ones and the last ranking did not take long.
    fn rank_if_cheap(&mut self, state: &RunState) {
        let due = self.ranked.is_none_or(|(done, ranked_at, took)| {
            done != state.done() && ranked_at.elapsed() >= LINE_EVERY.max(took * RANKING_SHARE)
        });
        if due {
            self.rank(state);
        }
    }

    /// Whether the run has not ended, but nobody will write any more.
    fn was_killed(&self) -> bool {
        self.follower.is_written() == Some(false) && self.follower.silent_for() >= SILENT_AT_MOST
    }

    /// Seconds since the session began.
    fn elapsed(&self, state: &RunState) -> f64 {
        let silent_s = if state.ended.is_some() { 0.0 } else { self.follower.silent_for().as_secs_f64() };
        state.last_event_s + silent_s
    }

    /// The state as a table.
    fn lines(&self, state: &RunState) -> Vec<String> {
        let how = match (&state.ended, self.follower.is_written()) {
            (Some(outcome), _) => outcome.clone(),
            (None, Some(false)) => format!(
                "silent for {}, and nobody here holds its journal",
                table::seconds(self.follower.silent_for().as_secs_f64())
            ),
            (None, _) => "running".into(),
        };
        let engine = if state.engine.is_empty() { String::new() } else { format!(", engine {}", state.engine) };
        let mut lines = vec![format!("{} in {}: {how}{engine}", state.name, self.dir.display())];
        let (done, selected) = (state.done(), state.selected.max(state.done()));
        let filled =
            if selected == 0 { BAR } else { (u128::from(done) * u128::from(BAR) / u128::from(selected)) as u64 };
        let bar: String = (0..BAR).map(|i| if i < filled { '#' } else { '-' }).collect();
        lines.push(format!("  [{bar}] {} of {} experiments", table::count(done), table::count(selected)));
        let mut row = table::TextTable::new(["ok", "oom", "failed", "running", "waiting"]);
        let waiting = selected.saturating_sub(done + state.running);
        // It is not known how experiments of earlier sessions ended. Failed ones are run again, so they count as ok.
        let cells = [state.ok + state.known, state.oom, state.failed, state.running, waiting];
        row.row(cells.iter().map(|n| table::count(*n)).collect());
        lines.extend(row.lines().iter().map(|line| format!("  {line}")));
        lines.push(format!("  {}", self.pace(state)));
        if let Some(exp_id) = state.last_failed {
            lines.push(format!("  experiment {exp_id} failed last; failed.csv says why at the end"));
        }
        if state.warnings > 0 {
            lines.push(format!(
                "  {} warning{}; events.jsonl has them",
                state.warnings,
                if state.warnings == 1 { "" } else { "s" }
            ));
        }
        lines.extend(self.best.iter().map(|line| format!("  {line}")));
        lines
    }

    /// Elapsed time, rate, and time left.
    fn pace(&self, state: &RunState) -> String {
        pace(state, self.elapsed(state))
    }
}

fn pace(state: &RunState, elapsed: f64) -> String {
    let mut text = format!("{} elapsed", table::seconds(elapsed));
    let finished = state.finished();
    if finished > 0 && elapsed > 0.0 {
        let rate = finished as f64 / elapsed;
        text += &if rate >= 1.0 {
            format!(", {rate:.1} experiments a second")
        } else {
            format!(", {} an experiment", table::seconds(1.0 / rate))
        };
    }
    let work = WorkShare { done: state.work_done, total: state.work_total };
    let is_open = state.ended.is_none() && state.selected > state.done();
    if let Some(left) = work.seconds_left(state.work_s).filter(|_| is_open) {
        let left = (left - (elapsed - state.work_s).max(0.0)).max(0.0);
        text += &format!(", {}, about {} left", work.percent(), table::seconds(left));
    }
    text
}

/// Output of the state: redrawn in place on a terminal, or an occasional line elsewhere.
enum View {
    Terminal(ProgressBar),
    Lines { said: Option<(RunState, Instant)> },
}

impl View {
    fn new() -> View {
        if !std::io::stdout().is_terminal() {
            return View::Lines { said: None };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
        bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is constant"));
        View::Terminal(bar)
    }

    fn show(&mut self, state: &RunState, lines: impl FnOnce() -> Vec<String>, is_last: bool) {
        match self {
            View::Terminal(bar) if is_last => {
                bar.finish_and_clear();
                lines().iter().for_each(|line| say(line));
            }
            View::Terminal(bar) => {
                let text: Vec<String> = lines().iter().map(|line| printable(line).into_owned()).collect();
                bar.set_message(text.join("\n"));
            }
            View::Lines { .. } if is_last => lines().iter().for_each(|line| say(line)),
            View::Lines { said } => {
                let is_news =
                    said.as_ref().is_none_or(|(before, said_at)| before != state && said_at.elapsed() >= LINE_EVERY);
                if is_news {
                    let elapsed = state.last_event_s;
                    say(&format!(
                        "{} of {} experiments, {} running, {} failed, {}",
                        table::count(state.done()),
                        table::count(state.selected),
                        table::count(state.running),
                        table::count(state.failed),
                        pace(state, elapsed)
                    ));
                    *said = Some((state.clone(), Instant::now()));
                }
            }
        }
    }

    fn close(&self) {
        if let View::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_counts_what_this_session_has_done() {
        let state = RunState { begun: true, selected: 20, known: 10, ok: 4, failed: 1, ..RunState::default() };
        assert_eq!(pace(&state, 10.0), "10.0 s elapsed, 2.0 s an experiment");
        // Half of the experiments took a tenth of the work.
        let state = RunState { work_done: 10, work_total: 100, work_s: 10.0, ..state };
        assert_eq!(pace(&state, 10.0), "10.0 s elapsed, 2.0 s an experiment, 10 % of the work, about 1 min 30 s left");
        let unsaid = RunState { work_total: 0, ..state.clone() };
        assert_eq!(pace(&RunState { ok: 9, ..unsaid.clone() }, 2.0), "2.0 s elapsed, 5.0 experiments a second");
        assert_eq!(pace(&RunState { ok: 0, failed: 0, ..unsaid }, 2.0), "2.0 s elapsed");
        assert_eq!(
            pace(&RunState { ended: Some("interrupted".into()), ..state }, 10.0),
            "10.0 s elapsed, 2.0 s an experiment"
        );
    }

    #[test]
    fn names_do_not_steer_the_terminal() {
        let mut watch = Watch {
            dir: Path::new("o"),
            follower: RunFollower::new(Path::new("o")),
            best: vec!["best: \u{1b}[2J".into()],
            ranked: None,
        };
        let state = RunState {
            begun: true,
            name: "\u{1b}]0;x\u{7}".into(),
            selected: 2,
            ok: 1,
            running: 1,
            ..RunState::default()
        };
        watch.best.push("second".into());
        let lines = watch.lines(&state);
        let shown: Vec<String> = lines.iter().map(|l| printable(l).into_owned()).collect();
        assert!(shown.iter().all(|l| !l.contains(char::is_control)), "{shown:?}");
        assert_eq!(shown[1], format!("  [{}{}] 1 of 2 experiments", "#".repeat(15), "-".repeat(15)));
        assert_eq!(shown[2..4], ["  ok  oom  failed  running  waiting", "   1    0       0        1        0"]);
        assert!(shown[5].starts_with("  best: "), "{shown:?}");
    }
}
