//! Definition of a shard, for any scheduler: N commands that may run anywhere, in any order and repeatedly, and one command that merges their results.
//!
//! Layer: submit. docs/how-to/clusters.md explains it to users with a scheduler of their own.

use super::{SubmitError, quote};

/// Maximum number of shards. The merge command names them all.
const MAX_SHARDS: u64 = 10_000;

/// A sweep in shards, and the paths on the machines that run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    /// Name of the sweep.
    pub name: String,
    /// Number of shards, at least 1.
    pub count: u64,
    /// Path of the program.
    pub program: String,
    /// Path of the sweep file.
    pub sweep: String,
    /// Folder of all shards (`shard-0`, `shard-1` ...) and of the merged results (`merged`).
    pub out: String,
    /// Options of `hyperfold run` that are the same for every shard, such as `--set`; one word each.
    pub options: Vec<String>,
}

impl Shards {
    /// Refuses values that cannot be passed to other machines.
    ///
    /// # Errors
    /// The number of shards is out of range, or a text has control characters.
    pub fn check(&self) -> Result<(), SubmitError> {
        if !(1..=MAX_SHARDS).contains(&self.count) {
            return Err(SubmitError::bad(
                "--shards",
                &self.count.to_string(),
                format!("write a number from 1 to {MAX_SHARDS}"),
            ));
        }
        quote::check("the program", &self.program)?;
        quote::check("SWEEP", &self.sweep)?;
        quote::check("--out", &self.out)?;
        self.options.iter().try_for_each(|o| quote::check("option", o))
    }

    /// Arguments of the program for the shard `index`, which is a number or a placeholder that a scheduler replaces. The command may be run again: it resumes
    /// where it was stopped, at any moment, and changes nothing if the shard is complete.
    pub fn run(&self, index: &str) -> Vec<String> {
        let mut words =
            vec!["run".to_string(), self.sweep.clone(), "--shard".into(), format!("{index}/{}", self.count)];
        words.extend(["--out".into(), self.folder(index), "--resume".into()]);
        words.extend(self.options.iter().cloned());
        words
    }

    /// Folder of one shard.
    pub fn folder(&self, index: &str) -> String {
        format!("{}/shard-{index}", self.out.trim_end_matches('/'))
    }

    /// Arguments of the program that merge all shards into the folder `target`, after each has ended.
    pub fn merge(&self, target: &str) -> Vec<String> {
        let mut words = vec!["merge".to_string()];
        words.extend((0..self.count).map(|i| self.folder(&i.to_string())));
        words.extend(["--out".into(), target.to_string()]);
        words
    }

    /// Folder of the merged results.
    pub fn merged(&self) -> String {
        format!("{}/merged", self.out.trim_end_matches('/'))
    }

    /// A name that schedulers accept: at most 40 lower-case letters, digits and hyphens.
    pub fn job_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = self.name.chars().map(plain).take(30).collect();
        let name = name.trim_matches('-');
        if name.is_empty() { "hyperfold".into() } else { format!("hyperfold-{name}") }
    }
}

#[cfg(test)]
pub(super) fn example() -> Shards {
    Shards {
        name: "Rail vs. Clos".into(),
        count: 4,
        program: "/opt/hyper fold/hyperfold".into(),
        sweep: "/home/o'neil/rail sweep.toml".into(),
        out: "/scratch/100% mine/$(out)".into(),
        options: ["--engine", "gpu", "--set", "transport.cc=dcqcn"].map(String::from).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_name_their_part_and_their_folder() {
        let run = example().run("2").join(" ");
        assert!(run.contains("--shard 2/4 --out /scratch/100% mine/$(out)/shard-2 --resume --engine gpu"), "{run}");
        let merge = example().merge("m");
        assert_eq!((merge.len(), merge[4].rsplit('/').next()), (7, Some("shard-3")));
    }

    #[test]
    fn names_become_what_schedulers_accept() {
        assert_eq!(example().job_name(), "hyperfold-rail-vs--clos");
        let named = |name: &str| Shards { name: name.into(), ..example() }.job_name();
        assert_eq!(named("\n'; rm"), "hyperfold-rm");
        assert_eq!(named("日本"), "hyperfold");
        assert!(named(&"x".repeat(500)).len() <= 40);
    }

    #[test]
    fn control_characters_and_no_shards_are_refused() {
        assert_eq!(example().check(), Ok(()));
        for bad in [
            Shards { count: 0, ..example() },
            Shards { count: u64::MAX, ..example() },
            Shards { out: "a\nb".into(), ..example() },
            Shards { sweep: "a\nb".into(), ..example() },
            Shards { options: vec!["--set".into(), "name=\"a\nb\"".into()], ..example() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
