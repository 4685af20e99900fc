//! SLURM: an array job with one task per shard, and a job that merges them after all have ended.
//!
//! Layer: submit. It renders the two scripts; `cli` passes them to `sbatch`.

use super::{Shards, SubmitError, quote};

/// Requests to SLURM. `None`: the cluster's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slurm {
    pub partition: Option<String>,
    pub account: Option<String>,
    /// Generic resources of a task, such as `gpu:1`.
    pub gres: Option<String>,
    /// Time limit of a task in SLURM's format: minutes, `HH:MM:SS` or `D-HH:MM:SS`.
    pub time: Option<String>,
    /// Memory of a task in SLURM's format, such as `16G`.
    pub mem: Option<String>,
    pub cpus: Option<u32>,
    /// How often a task that was killed or ran out of time is put back into the queue.
    pub requeues: u32,
}

/// Seconds before its time limit at which a task asks to be queued again. SLURM sends signals up to a minute late.
const WARNING_S: u32 = 90;

impl Slurm {
    /// Refuses values that SLURM's directives cannot carry.
    ///
    /// # Errors
    /// A value has characters that are not allowed.
    pub fn check(&self, shards: &Shards) -> Result<(), SubmitError> {
        shards.check()?;
        if shards.out.contains('\\') {
            return Err(SubmitError::bad(
                "--out",
                &shards.out,
                "SLURM gives backslashes in file names a meaning of their own; name a folder without",
            ));
        }
        let words = [
            ("--partition", &self.partition),
            ("--account", &self.account),
            ("--gres", &self.gres),
            ("--time", &self.time),
            ("--mem", &self.mem),
        ];
        for (option, value) in words {
            let Some(value) = value else { continue };
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:,=+".contains(c);
            if value.is_empty()
                || !value.starts_with(|c: char| c.is_ascii_alphanumeric())
                || !value.chars().all(allowed)
            {
                return Err(SubmitError::bad(option, value, "write letters, digits and -_.:,=+ only, as SLURM does"));
            }
        }
        if let Some(time) = self.time.as_ref().filter(|t| !is_time(t)) {
            let forms = "write minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS, as SLURM does, or UNLIMITED";
            return Err(SubmitError::bad("--time", time, forms));
        }
        if let Some(mem) = self.mem.as_ref().filter(|m| !is_size(m)) {
            return Err(SubmitError::bad(
                "--mem",
                mem,
                "write a whole number with K, M, G or T, as SLURM does, for example 16G",
            ));
        }
        Ok(())
    }

    /// The script of the array job.
    ///
    /// PRECONDITION: [`Slurm::check`] has passed.
    pub fn array_script(&self, shards: &Shards) -> String {
        let mut directives = self.directives(shards, &shards.job_name(), "shard-%a");
        directives.push(format!("--array=0-{}", shards.count - 1));
        directives.extend(self.gres.iter().map(|g| format!("--gres={g}")));
        directives.extend(self.mem.iter().map(|m| format!("--mem={m}")));
        directives.extend(self.cpus.iter().map(|n| format!("--cpus-per-task={n}")));
        if let Some(time) = &self.time {
            directives.push(format!("--time={time}"));
            directives.push(format!("--signal=B:USR1@{WARNING_S}"));
        }
        let jobs: &[&str] = if self.cpus.is_some() { &["--jobs", "\"$SLURM_CPUS_PER_TASK\""] } else { &[] };
        let mut words = vec![quote::shell(&shards.program)];
        words.extend(shards.run(&INDEX.to_string()).iter().map(|w| quote::shell_with(w, INDEX, "shard")));
        words.extend(jobs.iter().map(ToString::to_string));
        format!(
            "{head}\
             # Task I of {count} simulates shard I. A task may be killed and queued again at any moment: --resume carries on from what it has written.\n\
             set -u\n\
             shard=$SLURM_ARRAY_TASK_ID\n\
             \n\
             # Back into the queue, a limited number of times: after being killed, after a lost device, shortly before the time limit.\n\
             requeue() {{\n\
             \x20   if [ \"${{SLURM_RESTART_COUNT:-0}}\" -lt {requeues} ]; then\n\
             \x20       echo \"shard $shard: $1; queued again\"\n\
             \x20       scontrol requeue \"${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}\" && sleep 600\n\
             \x20   fi\n\
             \x20   echo \"shard $shard: $1; not queued again\"\n\
             }}\n\
             trap 'requeue \"near its time limit\"' USR1\n\
             \n\
             {command} &\n\
             child=$!\n\
             # A signal ends wait early; the child's own status counts.\n\
             while :; do\n\
             \x20   wait \"$child\"\n\
             \x20   code=$?\n\
             \x20   kill -0 \"$child\" 2>/dev/null || break\n\
             done\n\
             if [ \"$code\" -gt 128 ] && [ \"$code\" -ne 130 ]; then\n\
             \x20   requeue \"killed by signal $((code - 128))\"\n\
             elif [ \"$code\" -eq 1 ] && grep -qs '^  \"outcome\": \"aborted\"' {manifest}; then\n\
             \x20   requeue \"broke off\"\n\
             fi\n\
             exit \"$code\"\n",
            head = head(&directives),
            count = shards.count,
            requeues = self.requeues,
            command = words.join(" "),
            manifest =
                quote::shell_with(&format!("{}/manifest.json", shards.folder(&INDEX.to_string())), INDEX, "shard"),
        )
    }

    /// The script of the merge job, which is submitted with a dependency on the array job.
    ///
    /// PRECONDITION: [`Slurm::check`] has passed.
    pub fn merge_script(&self, shards: &Shards) -> String {
        let directives = self.directives(shards, &format!("{}-merge", shards.job_name()), "merge");
        let mut words = vec![quote::shell(&shards.program)];
        words.extend(shards.merge(&shards.merged()).iter().map(|w| quote::shell(w)));
        format!(
            "{head}\
             # Joins the shards. Started again, it carries on in the folder of an earlier attempt.\n\
             exec {command}\n",
            head = head(&directives),
            command = words.join(" "),
        )
    }

    /// Directives that both jobs have.
    fn directives(&self, shards: &Shards, name: &str, log: &str) -> Vec<String> {
        // SLURM replaces %a and the like in the log's name. In the folder's name, % is doubled, because there is nothing to replace. Quotes are escaped by
        // backslashes.
        let folder = shards.out.trim_end_matches('/').replace('%', "%%").replace('"', "\\\"");
        let mut lines = vec![
            format!("--job-name={name}"),
            format!("--output=\"{folder}/logs/{log}.log\""),
            "--requeue".into(),
            "--open-mode=append".into(),
            "--nodes=1".into(),
            "--ntasks=1".into(),
        ];
        lines.extend(self.partition.iter().map(|p| format!("--partition={p}")));
        lines.extend(self.account.iter().map(|a| format!("--account={a}")));
        lines
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether SLURM accepts a time: minutes or, after days, hours first; then smaller units.
fn is_time(text: &str) -> bool {
    if ["UNLIMITED", "INFINITE"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return true;
    }
    let (days, rest) = text.split_once('-').map_or((None, text), |(days, rest)| (Some(days), rest));
    let parts: Vec<&str> = rest.split(':').collect();
    days.is_none_or(is_number) && parts.len() <= 3 && parts.iter().all(|p| is_number(p))
}

/// Whether SLURM accepts a size of memory.
fn is_size(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    let number = upper.strip_suffix('B').unwrap_or(&upper);
    is_number(number.strip_suffix(['K', 'M', 'G', 'T']).unwrap_or(number))
        && (upper.len() == number.len() || number.ends_with(['K', 'M', 'G', 'T']))
}

/// Placeholder of the shard's number until the words are quoted. No value contains control characters, so it is unique.
const INDEX: char = '\u{1}';

/// The first lines of a script.
fn head(directives: &[String]) -> String {
    let lines: String = directives.iter().map(|d| format!("#SBATCH {d}\n")).collect();
    format!("#!/bin/bash\n{lines}# Written by hyperfold {} (hyperfold submit --slurm).\n", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submit::contract::example;

    fn asked() -> Slurm {
        let some = |text: &str| Some(text.to_string());
        Slurm {
            partition: some("gpu"),
            account: some("net-42"),
            gres: some("gpu:1"),
            time: some("1-00:00:00"),
            mem: some("16G"),
            cpus: Some(8),
            requeues: 3,
        }
    }

    #[test]
    fn scripts_are_what_was_reviewed() {
        asked().check(&example()).unwrap();
        insta::assert_snapshot!("slurm_array", asked().array_script(&example()));
        insta::assert_snapshot!("slurm_merge", asked().merge_script(&example()));
    }

    #[test]
    fn what_was_not_asked_for_is_the_clusters_to_decide() {
        let script = Slurm::default().array_script(&example());
        for absent in ["--partition", "--gres", "--time", "--mem", "--cpus", "--signal", "--jobs"] {
            assert!(!script.contains(absent), "{absent}");
        }
    }

    #[test]
    fn values_that_would_change_a_directive_are_refused() {
        for bad in ["", "a b", "gpu\n#SBATCH --wrap=x", "x;y", "$(id)", "-x", "\"q\""] {
            let asked = Slurm { partition: Some(bad.into()), ..asked() };
            let error = asked.check(&example()).unwrap_err().to_string();
            assert!(error.starts_with("--partition `") && !error.contains('\n'), "{error}");
        }
        for (option, good, bad) in [
            (
                "--time",
                &["10", "0", "90:00", "4:00:00", "1-12", "1-12:30", "1-00:00:00", "UNLIMITED"][..],
                &["banana", "1-", "-5", "4h", "1:2:3:4", "1:", "1-2-3"][..],
            ),
            ("--mem", &["0", "32000", "16G", "16g", "16GB", "512M"], &["lots", "16Gi", "1.5G", "G", "B", "16B", "16X"]),
        ] {
            let slurm_with = |value: &str| match option {
                "--time" => Slurm { time: Some(value.into()), ..asked() },
                _ => Slurm { mem: Some(value.into()), ..asked() },
            };
            good.iter().for_each(|value| slurm_with(value).check(&example()).unwrap());
            for value in bad {
                let error = slurm_with(value).check(&example()).unwrap_err().to_string();
                assert!(error.starts_with(&format!("{option} `{value}`")), "{error}");
            }
        }
        assert!(
            asked().check(&Shards { out: "a\\b".into(), ..example() }).unwrap_err().to_string().contains("backslashes")
        );
    }
}
