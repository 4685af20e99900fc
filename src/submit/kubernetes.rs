//! Kubernetes: an Indexed Job with one pod per shard, and a suspended Job that merges them.
//!
//! Layer: submit. It renders a manifest from the same contract as [`super::slurm`], and contacts nothing.

use super::{Shards, SubmitError, quote};

/// Settings of the pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// Container image that contains the program.
    pub image: String,
    /// Persistent volume claim for the sweep and the results. All pods mount it, so it must allow that (ReadWriteMany, or a single node).
    pub claim: String,
    /// Path at which pods mount the claim.
    pub mount: String,
    /// Namespace of the jobs. `None`: the namespace that the manifest is applied to.
    pub namespace: Option<String>,
    /// Number of GPUs of a pod.
    pub gpus: u32,
    pub cpus: Option<u32>,
    /// Memory of a pod as a Kubernetes quantity, such as `16Gi`.
    pub mem: Option<String>,
    /// How often a shard is retried if its pod was lost, its run broke off, or its experiments failed.
    pub retries: u32,
}

impl Kubernetes {
    /// Refuses names that Kubernetes would not accept.
    ///
    /// # Errors
    /// There is such a name, or the output folder is not on the volume.
    pub fn check(&self, shards: &Shards) -> Result<(), SubmitError> {
        shards.check()?;
        quote::check("--image", &self.image)?;
        if self.image.is_empty() || self.image.contains(char::is_whitespace) {
            return Err(SubmitError::bad(
                "--image",
                &self.image,
                "write a container image, for example registry.example/hyperfold:0.1",
            ));
        }
        let names = [("--claim", Some(&self.claim)), ("--namespace", self.namespace.as_ref())];
        for (option, name) in names.into_iter().filter_map(|(o, n)| Some((o, n?))) {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
            if name.is_empty()
                || name.len() > 253
                || !name.chars().all(inner)
                || name.starts_with(['-', '.'])
                || name.ends_with(['-', '.'])
            {
                return Err(SubmitError::bad(
                    option,
                    name,
                    "write lower-case letters, digits, hyphens and dots, as Kubernetes names things",
                ));
            }
        }
        quote::check("--mount", &self.mount)?;
        if !self.mount.starts_with('/') || self.mount.contains(':') {
            return Err(SubmitError::bad(
                "--mount",
                &self.mount,
                "write an absolute path without colons, for example /data",
            ));
        }
        if let Some(mem) = &self.mem {
            let digits = mem.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            if digits.is_empty()
                || !digits.chars().all(|c| c.is_ascii_digit())
                || !["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"].contains(&&mem[digits.len()..])
            {
                return Err(SubmitError::bad("--mem", mem, "write a quantity as Kubernetes does, for example 16Gi"));
            }
        }
        Ok(())
    }

    /// The manifest with both jobs.
    ///
    /// PRECONDITION: [`Kubernetes::check`] has passed.
    pub fn manifest(&self, shards: &Shards) -> String {
        let (name, count) = (shards.job_name(), shards.count);
        // The kubelet replaces `$(NAME)` in arguments. A `$(` in the user's text is escaped by a second dollar sign.
        let run = shards
            .run(&INDEX.to_string())
            .iter()
            .map(|w| literal(w).replace(INDEX, "$(JOB_COMPLETION_INDEX)"))
            .collect::<Vec<_>>();
        let merge = shards.merge(&shards.merged()).iter().map(|w| literal(w)).collect::<Vec<_>>();
        let ns = self.namespace.as_ref().map_or(String::new(), |n| format!(" --namespace {n}"));
        format!(
            "# Written by hyperfold {version} (hyperfold submit --kubernetes). Needs Kubernetes 1.29 or later.\n\
             #\n\
             #   kubectl{ns} apply -f THIS_FILE\n\
             #   until kubectl{ns} get job/{name} -o jsonpath='{{.status.conditions[?(@.status==\"True\")].type}}' | grep -qwE 'Complete|Failed'; do sleep 10; done\n\
             #   kubectl{ns} patch job/{name}-merge --type=strategic -p '{{\"spec\":{{\"suspend\":false}}}}'\n\
             #\n\
             # The job fails if experiments did; merge then as well. A shard's pod may be lost at any moment: --resume carries on from what it has written to the volume.\n\
             apiVersion: batch/v1\n\
             kind: Job\n\
             {meta}\
             spec:\n\
             \x20 completions: {count}\n\
             \x20 parallelism: {count}\n\
             \x20 completionMode: Indexed\n\
             \x20 backoffLimitPerIndex: {retries}\n\
             \x20 podFailurePolicy:\n\
             \x20   rules:\n\
             \x20     # Input that is wrong is wrong on every attempt. 1 is a run that broke off, or experiments that failed: another attempt carries on, or takes seconds.\n\
             \x20     - action: FailIndex\n\
             \x20       onExitCodes:\n\
             \x20         containerName: hyperfold\n\
             \x20         operator: In\n\
             \x20         values: [2, 3]\n\
             \x20     # Pods that the cluster itself takes away do not count.\n\
             \x20     - action: Ignore\n\
             \x20       onPodConditions:\n\
             \x20         - type: DisruptionTarget\n\
             \x20           status: \"True\"\n\
             {run}\
             ---\n\
             apiVersion: batch/v1\n\
             kind: Job\n\
             {merge_meta}\
             spec:\n\
             \x20 # Started by hand when all shards have ended (above): Kubernetes has no jobs that wait for jobs.\n\
             \x20 suspend: true\n\
             \x20 backoffLimit: 0\n\
             {merge}",
            version = env!("CARGO_PKG_VERSION"),
            retries = self.retries,
            meta = self.metadata(&name),
            merge_meta = self.metadata(&format!("{name}-merge")),
            run = self.pod(&shards.program, &run, true),
            merge = self.pod(&shards.program, &merge, false),
        )
    }

    fn metadata(&self, name: &str) -> String {
        let namespace = self.namespace.as_ref().map_or(String::new(), |n| format!("  namespace: {}\n", quote::yaml(n)));
        format!("metadata:\n  name: {}\n{namespace}", quote::yaml(name))
    }

    /// The pod that runs the program with `args`. Only shards need resources.
    fn pod(&self, program: &str, args: &[String], shard: bool) -> String {
        let args: String = args.iter().map(|a| format!("            - {}\n", quote::yaml(a))).collect();
        let mut resources: Vec<String> = Vec::new();
        if shard {
            resources.extend(self.cpus.map(|n| format!("cpu: {n}")));
            resources.extend(self.mem.iter().map(|m| format!("memory: {}", quote::yaml(m))));
            resources.extend((self.gpus > 0).then(|| format!("nvidia.com/gpu: {}", self.gpus)));
        }
        let resources = match resources.is_empty() {
            true => String::new(),
            false => format!(
                "          resources:\n            limits:\n{}",
                resources.iter().map(|r| format!("              {r}\n")).collect::<String>()
            ),
        };
        // The Vulkan part of the driver is mounted into a container only on request.
        let env = match shard && self.gpus > 0 {
            true => "          env:\n            - name: NVIDIA_DRIVER_CAPABILITIES\n              value: \"all\"\n",
            false => "",
        };
        format!(
            "\x20 template:\n\
             \x20   spec:\n\
             \x20     restartPolicy: Never\n\
             \x20     containers:\n\
             \x20       - name: hyperfold\n\
             \x20         image: {image}\n\
             \x20         command: [{program}]\n\
             \x20         args:\n\
             {args}{env}{resources}\
             \x20         volumeMounts:\n\
             \x20           - name: data\n\
             \x20             mountPath: {mount}\n\
             \x20     volumes:\n\
             \x20       - name: data\n\
             \x20         persistentVolumeClaim:\n\
             \x20           claimName: {claim}\n",
            image = quote::yaml(&self.image),
            program = quote::yaml(&literal(program)),
            mount = quote::yaml(&self.mount),
            claim = quote::yaml(&self.claim),
        )
    }
}

/// Placeholder of the shard's number until the words are quoted. No value contains control characters, so it is unique.
const INDEX: char = '\u{1}';

/// Escapes an argument so that the kubelet leaves it unchanged.
fn literal(word: &str) -> String {
    word.replace("$(", "$$(")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submit::contract::example;

    fn asked() -> Kubernetes {
        Kubernetes {
            image: "registry.example/hyperfold:0.1".into(),
            claim: "sweeps".into(),
            mount: "/scratch".into(),
            namespace: Some("research".into()),
            gpus: 1,
            cpus: Some(8),
            mem: Some("16Gi".into()),
            retries: 3,
        }
    }

    #[test]
    fn the_manifest_is_what_was_reviewed() {
        asked().check(&example()).unwrap();
        insta::assert_snapshot!("kubernetes", asked().manifest(&example()));
        let plain = Kubernetes { namespace: None, gpus: 0, cpus: None, mem: None, ..asked() }.manifest(&example());
        for absent in ["namespace", "resources", "nvidia", "env:"] {
            assert!(!plain.contains(absent), "{absent}");
        }
    }

    #[test]
    fn what_kubernetes_would_not_take_is_refused() {
        let wrong = [
            ("--image", Kubernetes { image: "a b".into(), ..asked() }),
            ("--claim", Kubernetes { claim: "My Claim".into(), ..asked() }),
            ("--namespace", Kubernetes { namespace: Some("a\"\nb".into()), ..asked() }),
            ("--mount", Kubernetes { mount: "data".into(), ..asked() }),
            ("--mem", Kubernetes { mem: Some("16 GB".into()), ..asked() }),
        ];
        for (option, bad) in wrong {
            let error = bad.check(&example()).unwrap_err().to_string();
            assert!(error.starts_with(option) && !error.contains('\n'), "{error}");
        }
    }
}
