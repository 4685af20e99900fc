//! Commands of SLURM: `sbatch` submits scripts, and `scontrol` reports their state.
//!
//! Layer: cli. It starts programs without a shell.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use super::exit::Exit;

/// Seconds between two looks at a job, first for short and later for long sweeps.
const LOOKS_S: [u64; 4] = [1, 2, 5, 15];
/// Number of consecutive looks that may fail, for example while a controller restarts, before waiting is given up: about five minutes.
const FAILED_LOOKS: u32 = 20;

/// Submits a script. With `after`, the job starts once that job has ended in any way. Returns the number of the new job.
///
/// # Errors
/// There is no `sbatch`, or it refuses the script.
pub fn submit(script: &Path, after: Option<&str>) -> anyhow::Result<String> {
    let mut command = Command::new("sbatch");
    command.arg("--parsable");
    // The merge also runs after failed tasks: they have left results, and merging says what is missing.
    command.args(after.map(|job| format!("--dependency=afterany:{job}")));
    command.arg(script);
    let output = match command.output() {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            bail!("sbatch: not found; run this where SLURM's commands are, or look at the scripts with --dry-run")
        }
        output => output.context("cannot start sbatch")?,
    };
    if !output.status.success() {
        bail!("sbatch refused {}: {}", script.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    // `--parsable` prints the number, and after a semicolon the cluster's name if there are several clusters.
    let job = printed.trim().split(';').next().unwrap_or_default();
    if job.is_empty() || !job.chars().all(|c| c.is_ascii_digit()) {
        bail!("sbatch printed `{}`, which is no job number", printed.trim());
    }
    Ok(job.to_string())
}

/// Waits until `job`, which writes the folder `merged`, has ended.
///
/// # Errors
/// SLURM does not answer, or the job ended without results.
pub fn wait(job: &str, merged: &Path) -> anyhow::Result<Exit> {
    let mut failed = 0;
    for look in 0.. {
        std::thread::sleep(Duration::from_secs(LOOKS_S[(look / 5).min(LOOKS_S.len() - 1)]));
        match state(job) {
            Ok(State::Going) => failed = 0,
            Ok(State::Ended { code, word }) => {
                return match code {
                    0 => Ok(Exit::Ok),
                    1 if merged.join("manifest.json").exists() => Ok(Exit::Failed),
                    _ => bail!("merge job {job} ended as {word} with exit code {code}; see merge.log"),
                };
            }
            Err(_) if failed < FAILED_LOOKS => failed += 1,
            Err(e) => return Err(e.context(format!("waiting for job {job}; it may well go on"))),
        }
    }
    unreachable!("the loop ends by returning")
}

enum State {
    Going,
    Ended { code: u32, word: String },
}

fn state(job: &str) -> anyhow::Result<State> {
    let output =
        Command::new("scontrol").args(["--oneliner", "show", "job", job]).output().context("cannot start scontrol")?;
    if !output.status.success() {
        bail!("scontrol: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    read(&String::from_utf8_lossy(&output.stdout))
}

/// Parses the output of `scontrol show job`.
fn read(text: &str) -> anyhow::Result<State> {
    let value = |key: &str| text.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let word = value("JobState").context("scontrol did not say JobState")?;
    if matches!(
        word,
        "PENDING"
            | "RUNNING"
            | "COMPLETING"
            | "CONFIGURING"
            | "SUSPENDED"
            | "REQUEUED"
            | "REQUEUE_HOLD"
            | "RESIZING"
            | "SIGNALING"
            | "STAGE_OUT"
            | "STOPPED"
    ) {
        return Ok(State::Going);
    }
    // The format is `code:signal`. A killed job has a signal and the code 0.
    let (code, signal) = value("ExitCode").and_then(|c| c.split_once(':')).context("scontrol did not say ExitCode")?;
    let (code, signal): (u32, u32) = (code.parse()?, signal.parse()?);
    let code = match (word, code) {
        ("COMPLETED", code) => code,
        (_, 0) => 128 + signal,
        (_, code) => code,
    };
    Ok(State::Ended { code, word: word.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(text: &str) -> Option<u32> {
        match read(text).unwrap() {
            State::Going => None,
            State::Ended { code, .. } => Some(code),
        }
    }

    #[test]
    fn what_scontrol_prints_is_understood() {
        assert_eq!(ended("JobId=7 JobName=x JobState=PENDING Reason=Dependency ExitCode=0:0"), None);
        assert_eq!(ended("JobId=7 JobState=COMPLETED ExitCode=0:0"), Some(0));
        assert_eq!(ended("JobId=7 JobState=FAILED ExitCode=1:0"), Some(1));
        assert_eq!(ended("JobId=7 JobState=CANCELLED ExitCode=0:15"), Some(143));
        assert_eq!(ended("JobId=7 JobState=TIMEOUT ExitCode=0:0"), Some(128), "no result, whatever the code");
        assert!(read("nothing of the kind").is_err());
    }
}
