//! Tables of several jobs, for one experiment or for two side by side.
//!
//! Layer: compare. It reads the columns `job.NAME.*`, which are those of `jobs.csv`.

use super::metric::available;
use super::pick::Pick;
use super::rank::percent;
use super::{Section, Study};
use hyperfold_config::spec::{JOB, split_job_name};
use hyperfold_results::Cell;

/// Names of the jobs that have a column, in the order of columns. Empty if experiments have a single workload.
fn names(study: &Study) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in available(study) {
        if let Some((job, _)) = split_job_name(&column)
            && !names.iter().any(|n| n == job)
        {
            names.push(job.into());
        }
    }
    names
}

/// Time of a job: of an iteration if it has any, else from its start to its end.
fn time(study: &Study, pick: Pick, job: &str) -> Option<f64> {
    let number = |column: &str| pick.number(study, &format!("{JOB}{job}.{column}"));
    number("iteration_time_ns").or_else(|| number("makespan_ns"))
}

fn slowdown(study: &Study, pick: Pick, job: &str) -> Option<f64> {
    pick.number(study, &format!("{JOB}{job}.slowdown"))
}

/// Table of each job's time and slowdown in one experiment. `None`: no experiment has several jobs.
pub(super) fn of_one(study: &Study, pick: Pick) -> Option<Section> {
    let columns = ["job", "time_ns", "slowdown"];
    let mut section = Section::new("explain_jobs", "jobs: time of an iteration, or of the whole job", columns);
    for job in names(study) {
        let (time, slowdown) = (time(study, pick, &job), slowdown(study, pick, &job));
        section.rows.push(vec![job.into(), time.into(), slowdown.into()]);
    }
    (!section.rows.is_empty()).then_some(section)
}

/// Table of each job's time and slowdown in both experiments. `None`: no experiment has several jobs.
pub(super) fn of_two(study: &Study, a: Pick, b: Pick) -> Option<Section> {
    let columns = ["job", "time_ns a", "time_ns b", "difference %", "slowdown a", "slowdown b"];
    let mut section = Section::new("explain_jobs", "jobs: time of an iteration, or of the whole job", columns);
    for job in names(study) {
        let (x, y) = (time(study, a, &job), time(study, b, &job));
        let relative = x.zip(y).and_then(|(x, y)| percent(y, x));
        let slowdowns = [slowdown(study, a, &job), slowdown(study, b, &job)];
        let mut row = vec![job.into(), x.into(), y.into(), relative.into()];
        row.extend(slowdowns.map(Into::into));
        section.rows.push(row);
    }
    section.notes.push(match section.rows.iter().any(|row| row[4] != Cell::Empty) {
        true => "slowdown is against the same job alone".into(),
        false => "with output.alone = true each job is also simulated alone, and its slowdown is shown".into(),
    });
    (!section.rows.is_empty()).then_some(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};
    use hyperfold_results::{JobRecord, Ps};

    #[test]
    fn jobs_are_columns_of_their_experiment() {
        let job = |name: &str, end: u64, alone: u64| JobRecord {
            job: name.into(),
            end: Some(Ps(end)),
            alone_makespan: Some(Ps(alone)),
            ..JobRecord::default()
        };
        let mut one = ok(0, "a", &["x"], 4_000_000);
        one.jobs = vec![job("train", 4_000_000, 2_000_000), job("noise", 1_000_000, 1_000_000)];
        let mut two = ok(1, "b", &["y"], 3_000_000);
        two.jobs = vec![job("train", 3_000_000, 2_000_000)];
        let folder = Folder::new(&["job.train.placement"], vec![one, two]);
        let study = Study::open(&[folder.path()]).unwrap();
        let [a, b] = ["0", "1"].map(|id| Pick::parse(&study, id, 0).unwrap());
        let section = of_two(&study, a, b).unwrap();
        let slower = [4_000.0, 3_000.0, -25.0, 2.0, 1.5].map(Cell::Real);
        assert_eq!((section.rows[0][0].to_string(), &section.rows[0][1..]), ("train".into(), &slower[..]));
        assert_eq!(section.rows[1][2], Cell::Empty, "b has no such job");
        assert_eq!(of_one(&study, b).unwrap().rows[0][2], Cell::Real(1.5));
        let metric = crate::compare::RankingMetric::named(&study, "--metric", "job.train.slowdown").unwrap();
        assert_eq!(crate::compare::rank(&study, &metric)[0].ranked[0].sample.mean, 1.5);
        let single = Folder::new(&["x"], vec![ok(0, "a", &["x"], 4_000)]);
        assert!(of_one(&Study::open(&[single.path()]).unwrap(), a).is_none());
    }
}
