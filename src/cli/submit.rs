//! `hyperfold submit`: submits the shards of a sweep to SLURM, or writes a manifest of them for Kubernetes.
//!
//! Layer: cli. It checks the sweep as `run` does, writes the files of [`crate::submit`], and for SLURM passes them to `sbatch` ([`super::sbatch`]). It
//! simulates nothing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Parser;
use serde_json::{Value, json};

use crate::submit::{Kubernetes, Shards, Slurm};
use hyperfold_base::input;
use hyperfold_config::sweep::{Selection, Shard};
use hyperfold_results::ResultDir;
use hyperfold_session::{EngineChoice, PlanProgress, Simulator, SweepRequest};

use super::args::ENGINES;
use super::command::Cli;
use super::exit::{CliError, Exit};
use super::sbatch;
use super::submit_args::SubmitArgs;
use super::{say, tell};

/// Checks the sweep, then submits it or writes the manifest.
///
/// # Errors
/// Usage or input is bad (then nothing is written), there is no `sbatch`, or the scheduler refuses a job.
pub fn execute<S: Simulator>(args: &SubmitArgs, simulator: &S) -> Result<Exit, CliError> {
    let selection = Selection { limit: args.limit, shard: None };
    let (path, set, progress) = (args.sweep.clone(), args.set.clone(), PlanProgress::default());
    let request = SweepRequest { path, set, selection, estimates: false, progress };
    let (planned, _) = simulator.load(&request)?;
    let selected = planned.selected.len() as u64;
    if args.shards > selected {
        let error = anyhow!(
            "--shards {}: {} has {selected} experiments, and a shard needs at least one; write at most that",
            args.shards,
            args.sweep.display()
        );
        return Err(CliError::bad_input(error));
    }
    // A shard would refuse, for example, a sweep that cannot be cut into shards. The check here finds that before its job runs.
    let first = Selection { limit: args.limit, shard: Some(Shard { index: 0, of: args.shards }) };
    simulator.load(&SweepRequest { selection: first, ..request })?;
    planned.warnings.iter().for_each(|warning| tell(&format!("warning: {warning}")));
    match args.slurm {
        true => slurm(args, planned.name),
        false => kubernetes(args, planned.name),
    }
}

/// Options of `hyperfold run` that every shard gets.
fn run_options(args: &SubmitArgs) -> Vec<String> {
    let mut options = Vec::new();
    if args.engine != EngineChoice::Auto {
        let (engine, _) = ENGINES.iter().find(|(_, engine)| *engine == args.engine).expect("every engine has its name");
        options.extend(["--engine".to_string(), engine.to_string()]);
    }
    options.extend(args.set.iter().flat_map(|set| ["--set".to_string(), set.clone()]));
    options.extend(args.limit.iter().flat_map(|limit| ["--limit".to_string(), limit.to_string()]));
    options.extend(args.run_options.iter().cloned());
    options
}

/// Refuses a submission if the command of its shards cannot be parsed.
fn check_command(shards: &Shards) -> anyhow::Result<()> {
    let words = std::iter::once("hyperfold".to_string()).chain(shards.run("0"));
    match Cli::try_parse_from(words) {
        Ok(_) => Ok(()),
        Err(e) => bail!(
            "the options after -- do not fit `hyperfold run`: {}",
            e.to_string().lines().next().unwrap_or_default()
        ),
    }
}

fn slurm(args: &SubmitArgs, name: String) -> Result<Exit, CliError> {
    let shards = Shards {
        name,
        count: args.shards,
        program: match &args.program {
            Some(program) => program.clone(),
            None => text(
                "this program",
                &std::env::current_exe()
                    .context("cannot tell where this program is; give --program")
                    .map_err(CliError::bad_input)?,
            )
            .map_err(CliError::bad_input)?,
        },
        sweep: absolute("SWEEP", &args.sweep).map_err(CliError::bad_input)?,
        out: absolute("--out", &args.out).map_err(CliError::bad_input)?,
        options: {
            let mut options = run_options(args);
            let root = input::root().map(|folder| text("--root", &folder)).transpose().map_err(CliError::bad_input)?;
            options.extend(root.into_iter().flat_map(|folder| ["--root".to_string(), folder]));
            options
        },
    };
    let gres = match (args.gres.as_deref(), args.engine) {
        (Some("none"), _) => None,
        (Some(gres), _) => Some(gres.to_string()),
        // `auto` also works with the CPU, so it requests no GPU by itself.
        (None, EngineChoice::Gpu) => Some("gpu:1".to_string()),
        (None, EngineChoice::Auto | EngineChoice::Cpu) => None,
    };
    let asked = Slurm {
        partition: args.partition.clone(),
        account: args.account.clone(),
        gres,
        time: args.time.clone(),
        mem: args.mem.clone(),
        cpus: args.cpus,
        requeues: args.requeues,
    };
    asked.check(&shards).map_err(CliError::bad_input)?;
    check_command(&shards).map_err(CliError::bad_input)?;
    let scripts = [("shards.sbatch", asked.array_script(&shards)), ("merge.sbatch", asked.merge_script(&shards))];
    if args.dry_run {
        for (file, script) in &scripts {
            say(&format!("# {}/{file}", shards.out));
            script.trim_end().lines().for_each(say);
        }
        return Ok(Exit::Ok);
    }

    let dir = Path::new(&shards.out);
    claim(dir, &shards, args.resume).map_err(CliError::bad_input)?;
    let write = |file: &str, text: &str| {
        fs::write(dir.join(file), text).with_context(|| format!("cannot write {}", dir.join(file).display()))
    };
    fs::create_dir_all(dir.join("logs"))
        .with_context(|| format!("--out {}: cannot create it", dir.display()))
        .map_err(CliError::bad_input)?;
    for (file, script) in &scripts {
        write(file, script).map_err(CliError::broken)?;
    }
    let record = |jobs: &[&str]| write(RECORD, &format!("{:#}\n", described(&shards, jobs)));
    record(&[]).map_err(CliError::broken)?;
    let array = sbatch::submit(&dir.join("shards.sbatch"), None).map_err(CliError::bad_input)?;
    let merge = sbatch::submit(&dir.join("merge.sbatch"), Some(&array))
        .with_context(|| format!("array job {array} was submitted, its merge was not; `scancel {array}` ends it"))
        .map_err(CliError::broken)?;
    record(&[&array, &merge]).map_err(CliError::broken)?;
    say(&format!("array job {array}: {} shards, logs in {}/logs", shards.count, shards.out));
    say(&format!("merge job {merge}: results in {}", shards.merged()));
    if !args.wait {
        return Ok(Exit::Ok);
    }
    sbatch::wait(&merge, Path::new(&shards.merged())).map_err(CliError::broken)
}

/// Name of the file that describes the submission of a folder.
const RECORD: &str = "submit.json";

fn described(shards: &Shards, jobs: &[&str]) -> Value {
    json!({
        "hyperfold": env!("CARGO_PKG_VERSION"),
        "sweep": shards.sweep,
        "shards": shards.count,
        "options": shards.options,
        "jobs": jobs,
    })
}

/// Checks that the folder is new or empty or, with `--resume`, belongs to the same submission.
fn claim(dir: &Path, shards: &Shards, resume: bool) -> anyhow::Result<()> {
    if !resume {
        return ResultDir::check(dir, false).with_context(|| "to submit the same again, add --resume");
    }
    let path = dir.join(RECORD);
    let text = input::read_tree_anywhere(&path).with_context(|| {
        format!("--resume: {} cannot be read; is this the folder of an earlier submission?", path.display())
    })?;
    let earlier: Value = serde_json::from_str(&text).with_context(|| format!("--resume: {}", path.display()))?;
    let now = described(shards, &[]);
    for key in ["sweep", "shards", "options"] {
        if earlier[key] != now[key] {
            bail!(
                "--resume: {} was submitted with {key} = {}, this is {}; submit the same, or into another folder",
                dir.display(),
                earlier[key],
                now[key]
            );
        }
    }
    Ok(())
}

fn kubernetes(args: &SubmitArgs, name: String) -> Result<Exit, CliError> {
    let missing = |option: &str| CliError::bad_input(anyhow!("--kubernetes needs {option}"));
    if input::root().is_some() && !args.run_options.iter().any(|option| option.starts_with("--root")) {
        let why = "--root: pods see other paths than this machine; say which folder is meant there, too: -- --root DIR";
        return Err(CliError::bad_input(anyhow!("{why}")));
    }
    let mount = args.mount.trim_end_matches('/');
    // Paths in pods are Unix paths, whatever this machine is.
    let below =
        |path: String| if path.starts_with('/') { path } else { format!("{mount}/{}", path.trim_start_matches("./")) };
    let file = args.sweep.file_name().map(PathBuf::from).unwrap_or_default();
    let out = below(text("--out", &args.out).map_err(CliError::bad_input)?);
    if !out.starts_with(&format!("{mount}/")) || out.split('/').any(|part| part == "..") {
        return Err(CliError::bad_input(anyhow!(
            "--out {out}: pods keep only what is on the volume; name a folder below --mount {}",
            args.mount
        )));
    }
    let shards = Shards {
        name,
        count: args.shards,
        program: args.program.clone().unwrap_or_else(|| "hyperfold".into()),
        sweep: below(match &args.sweep_in_pod {
            Some(path) => path.clone(),
            None => text("SWEEP", &file).map_err(CliError::bad_input)?,
        }),
        out,
        options: run_options(args),
    };
    let asked = Kubernetes {
        image: args.image.clone().ok_or_else(|| missing("--image"))?,
        claim: args.claim.clone().ok_or_else(|| missing("--claim"))?,
        mount: args.mount.clone(),
        namespace: args.namespace.clone(),
        gpus: u32::from(args.engine == EngineChoice::Gpu),
        cpus: args.cpus,
        mem: args.mem.clone(),
        retries: args.requeues,
    };
    asked.check(&shards).map_err(CliError::bad_input)?;
    check_command(&shards).map_err(CliError::bad_input)?;
    let manifest = asked.manifest(&shards);
    match &args.manifest {
        Some(path) if !args.dry_run => {
            if path.exists() {
                return Err(CliError::bad_input(anyhow!(
                    "--manifest {}: exists already; name another file",
                    path.display()
                )));
            }
            fs::write(path, manifest)
                .with_context(|| format!("--manifest {}", path.display()))
                .map_err(CliError::bad_input)?;
            say(&format!("wrote {}; apply it with: kubectl apply -f {}", path.display(), path.display()));
        }
        _ => manifest.trim_end().lines().for_each(say),
    }
    Ok(Exit::Ok)
}

/// A path as text for a script.
fn text(option: &str, path: &Path) -> anyhow::Result<String> {
    path.to_str()
        .map(String::from)
        .ok_or_else(|| anyhow!("{option} {}: this path is not UTF-8, which scripts are; rename it", path.display()))
}

/// An absolute path as text, which means the same in every folder.
fn absolute(option: &str, path: &Path) -> anyhow::Result<String> {
    text(option, &std::path::absolute(path).with_context(|| format!("{option} {}", path.display()))?)
}
