//! `[[job]]` tables as types: several jobs on one network, each with its own workload, GPUs and start.
//!
//! Layer: spec. Knows how many GPUs a job asks for, not which it gets: `host` places jobs on the network.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hyperfold_base::index_list::{BadIndexList, parse_once_each};

use super::error::Conflict;
use super::key_id::KeyId;
use super::mix::{exponential, mix, name_hash};
use super::scale::scaled;
use super::sections::WorkloadSection;
use super::traffic_classes::TrafficClasses;
use super::value::{JobValues, Value, Values};
use super::workload::workload;

/// Picoseconds of a microsecond.
const PS_PER_US: f64 = 1e6;
/// Maximum number of GPUs that a list may name.
const MAX_LISTED: u32 = 1 << 20;
/// Placements that have a name.
const NAMED: [(&str, PlacementChoice); 4] = [
    ("packed", PlacementChoice::Packed),
    ("spread", PlacementChoice::Spread),
    ("random", PlacementChoice::Random),
    ("rail", PlacementChoice::Rail),
];
/// Variables of NCCL that affect the whole network, and the key to use instead for all jobs.
const OF_THE_NETWORK: [(KeyId, &str); 6] = [
    (KeyId::NcclHca, "jobs share the NICs; leave it out"),
    (KeyId::NcclP2pDisable, "servers are the same for all jobs; use cluster.nvlink_gbps = 0"),
    (KeyId::NcclP2pLevel, "servers are the same for all jobs; use cluster.nvlink_gbps = 0"),
    (KeyId::NcclTopoFile, "servers are the same for all jobs; use cluster.server_xml"),
    (KeyId::NcclTimeout, "the transport is the same for all jobs; use transport.rto_us"),
    (KeyId::NcclRetries, "the transport is the same for all jobs; use transport.rto_retries"),
];

/// Several jobs on one network.
#[derive(Clone, Debug)]
pub struct JobsSection {
    /// Jobs in the order of the sweep file.
    pub jobs: Vec<JobSection>,
    /// Which of them run. Each keeps the GPUs that it has beside all others.
    pub running: RunningJobs,
}

/// Which of several jobs run, by their index in the order of the sweep file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningJobs {
    /// All jobs run.
    All,
    /// Only this job runs.
    Only(usize),
    /// All jobs but this one run.
    AllBut(usize),
}

impl RunningJobs {
    /// Whether the job with this index runs.
    pub fn has(self, job: usize) -> bool {
        match self {
            RunningJobs::All => true,
            RunningJobs::Only(only) => only == job,
            RunningJobs::AllBut(left_out) => left_out != job,
        }
    }
}

/// One of several jobs.
#[derive(Clone)]
pub struct JobSection {
    /// Name in the sweep file.
    pub name: Arc<str>,
    /// Number of GPUs; `None`: what its file needs, or for a background job all GPUs of the network.
    pub gpus: Option<u32>,
    /// Value of `job.NAME.placement`.
    pub placement: PlacementChoice,
    /// Time of its start, ps.
    pub start_ps: u64,
    /// Whether it is traffic that may share GPUs with other jobs, and that the makespan does not wait for.
    pub background: bool,
    /// Workload that the job runs.
    pub workload: WorkloadSection,
    /// The traffic classes of the network, and that of the job.
    pub classes: TrafficClasses,
    /// All keys, with their values for this job.
    pub values: Values,
    /// Seed of the replica and the job's name; every other seed of the job is derived from it.
    pub seed: u64,
}

/// How the GPUs of a job are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementChoice {
    /// On as few servers as possible.
    Packed,
    /// On as many servers as possible.
    Spread,
    /// Random free GPUs.
    Random,
    /// On as few rails as possible.
    Rail,
    /// These GPUs, by number; the first is rank 0.
    List(Vec<u32>),
}

impl fmt::Debug for JobSection {
    /// Writes what distinguishes experiments, without all keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobSection { name, gpus, placement, start_ps, background, workload, .. } = self;
        let by_chance = (*placement == PlacementChoice::Random).then_some(self.seed);
        write!(f, "{name}({gpus:?}, {placement:?}, {by_chance:?}, {start_ps}, {background}, {workload:?})")
    }
}

impl JobSection {
    fn new(job: &JobValues, dir: &Path, seed: u64) -> Result<JobSection, Conflict> {
        let v = job.values();
        let fail = |key: KeyId, why: String| Err(Conflict { job: None, key, why });
        let placement = placement(v)?;
        let workload = workload(v, dir)?;
        let background = v.bool(KeyId::JobBackground);
        let plain = !matches!(workload, WorkloadSection::Program(_));
        if background && !plain {
            return fail(KeyId::JobBackground, "only workloads of kind traffic or flows can be background".to_string());
        }
        if let Some((key, why)) = OF_THE_NETWORK.into_iter().find(|(key, _)| *v.get(*key) != Value::Unset) {
            return fail(key, why.to_string());
        }
        let gpus = Some(v.int(KeyId::Gpus) as u32).filter(|&gpus| gpus > 0);
        match (&placement, gpus) {
            (PlacementChoice::List(list), Some(gpus)) if list.len() as u32 != gpus => {
                let why = format!("the list names {} GPUs, but the job has {gpus}", list.len());
                return fail(KeyId::JobPlacement, why);
            }
            (_, None) if !background && (plain || v.is(KeyId::WorkloadKind, "collective")) => {
                return fail(
                    KeyId::JobGpus,
                    "say how many GPUs the job has, or list them as its placement".to_string(),
                );
            }
            _ => {}
        }
        let start_ps = scaled(v.float(KeyId::JobStartUs), PS_PER_US);
        let (name, seed) = (Arc::clone(&job.name), mix(seed, name_hash(&job.name), 8));
        let classes = TrafficClasses::new(v)?;
        Ok(JobSection { name, gpus, placement, start_ps, background, workload, classes, values: v.clone(), seed })
    }

    /// Seed of a random placement, from the job's own seed and its `workload.seed`.
    pub fn placement_seed(&self) -> u64 {
        mix(self.seed, self.values.int(KeyId::WorkloadSeed) as u64, 6)
    }
}

impl JobsSection {
    /// Types and checks the jobs of an experiment. `v`: its values; `seed`: its replica's seed. The error names job and key.
    pub(super) fn new(v: &Values, dir: &Path, seed: u64) -> Result<JobsSection, Conflict> {
        if v.is(KeyId::Policy, "file") {
            let why =
                "a routes file names the flows of one workload; with [[job]] tables use a policy of another name, such as ecmp".to_string();
            return Err(Conflict { job: None, key: KeyId::Policy, why });
        }
        let section = |job: &JobValues| JobSection::new(job, dir, seed).map_err(|conflict| conflict.of_job(&job.name));
        let mut jobs: Vec<JobSection> = v.jobs().iter().map(section).collect::<Result<_, _>>()?;
        let mut arrival_ps = 0;
        for job in &mut jobs {
            let mean_us = job.values.float(KeyId::JobArrivalUs);
            if mean_us > 0.0 {
                arrival_ps += scaled(mean_us * exponential(mix(job.seed, 0, 26)), PS_PER_US);
                job.start_ps += arrival_ps;
            }
        }
        Ok(JobsSection { jobs, running: RunningJobs::All })
    }

    /// Returns the same jobs on the same GPUs, of which only some run.
    pub fn with_running(&self, running: RunningJobs) -> JobsSection {
        JobsSection { jobs: self.jobs.clone(), running }
    }

    /// Checks that `gpus` GPUs suffice for the jobs, as far as their numbers tell.
    pub(super) fn check(&self, gpus: Option<u32>) -> Result<(), Conflict> {
        let Some(has) = gpus else {
            let why = "it is required where a job does not say how many GPUs it has".to_string();
            return Err(Conflict { job: None, key: KeyId::Gpus, why });
        };
        for job in &self.jobs {
            let last = match &job.placement {
                PlacementChoice::List(list) => list.iter().copied().max().filter(|last| *last >= has),
                _ => None,
            };
            if let Some(last) = last {
                let why = format!("there is no GPU {last}; cluster.gpus = {has}, counted from 0");
                return Err(Conflict { job: Some(Arc::clone(&job.name)), key: KeyId::JobPlacement, why });
            }
        }
        let foreground = self.jobs.iter().filter(|job| !job.background);
        let needs: u64 = foreground.clone().map(|job| u64::from(job.gpus.unwrap_or(0))).sum();
        if needs > u64::from(has) {
            let each: Vec<String> =
                foreground.map(|job| format!("{} has {}", job.name, job.gpus.unwrap_or(0))).collect();
            let why = format!(
                "the jobs have {needs} GPUs together ({}), {} too many; GPUs are not shared, but by jobs with background = true",
                each.join(", "),
                needs - u64::from(has)
            );
            return Err(Conflict { job: None, key: KeyId::Gpus, why });
        }
        Ok(())
    }
}

fn placement(v: &Values) -> Result<PlacementChoice, Conflict> {
    let text = v.text(KeyId::JobPlacement);
    let conflict = |why: String| Conflict { job: None, key: KeyId::JobPlacement, why };
    match listed_gpus(text) {
        Some(list) => list.map(PlacementChoice::List).map_err(conflict),
        None => NAMED.into_iter().find(|(name, _)| *name == text).map(|(_, choice)| choice).ok_or_else(|| {
            let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            conflict(format!("it must be one of {}, or a list of GPUs such as \"0-7,16-23\"", names.join(", ")))
        }),
    }
}

/// Parses GPUs such as `0-7,16`, in the order written. `None`: the text is no list. The error says what is wrong with the list.
pub(super) fn listed_gpus(text: &str) -> Option<Result<Vec<u32>, String>> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some(parse_once_each(text.split(',').map(str::trim), MAX_LISTED).map_err(|bad| match bad {
        BadIndexList::Part(part) => format!("`{part}` is neither a GPU nor a range of GPUs below {MAX_LISTED}"),
        BadIndexList::Twice(gpu) => format!("GPU {gpu} is listed twice"),
    }))
}

/// Returns what is wrong with a job's name, if anything. Names are used in names of axes.
pub fn wrong_job_name(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let ok = !name.is_empty() && name.len() <= 64 && name.chars().all(fits);
    (!ok).then_some("it must be a text of 1 to 64 letters, digits, `-` and `_`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order_and_name_no_gpu_twice() {
        assert_eq!(listed_gpus("8-10,0"), Some(Ok(vec![8, 9, 10, 0])));
        assert_eq!(listed_gpus("packed"), None);
        assert!(listed_gpus("0-3,2").unwrap().is_err_and(|why| why.contains("GPU 2 is listed twice")));
        for wrong in ["3-1", "0,x", "0,", "0-4294967295"] {
            assert!(listed_gpus(wrong).unwrap().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_of_jobs_can_stand_in_names_of_axes() {
        assert_eq!(wrong_job_name("train-1_b"), None);
        for wrong in ["", "a.b", "a b", "\u{e4}", &"x".repeat(65)] {
            assert!(wrong_job_name(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn the_default_placement_is_one_that_has_a_name() {
        let super::super::key::Default::Text(text) = super::super::lookup::key(KeyId::JobPlacement).default else {
            panic!("a text")
        };
        assert!(NAMED.iter().any(|(name, _)| *name == text));
    }
}
