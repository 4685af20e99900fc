//! Links that several jobs of an experiment share: their number, the most loaded one, and the jobs that send over it.
//!
//! Layer: compare. `jobs.csv` has a summary. `shared_links.csv` has every link, if a run wrote it.

use super::{CompareError, Section};
use hyperfold_results::read::RunColumns;
use hyperfold_results::{Cell, SharedLinkRecord};

/// An experiment: its name beside another one (`a`), its run and its row.
type Named<'a> = (&'static str, &'a RunColumns, usize);

/// Table of the links that jobs of one or two experiments share. `None`: no job shares a link. Notes name at most `top` jobs of a link.
pub(super) fn section(experiments: &[Named], top: usize) -> Result<Option<Section>, CompareError> {
    let names = ["shared links", "busiest of them", "shared with (links)"];
    let column_names = |name: &'static str| {
        experiments.iter().map(move |(which, _, _)| format!("{name} {which}").trim_end().to_string())
    };
    let columns: Vec<String> =
        std::iter::once("job".to_string()).chain(names.into_iter().flat_map(column_names)).collect();
    let mut section = Section {
        kind: "explain_shared_links",
        title: "links that data of several jobs cross".into(),
        columns,
        rows: Vec::new(),
        notes: Vec::new(),
    };
    let mut sharing = Vec::new();
    for (_, run, row) in experiments {
        sharing.push(run.jobs_of(run.exp_id(*row))?.unwrap_or_default());
    }
    let mut jobs: Vec<&str> = Vec::new();
    for job in sharing.iter().flatten().filter(|job| job.shared_links > 0) {
        if !jobs.contains(&job.job.as_str()) {
            jobs.push(&job.job);
        }
    }
    for name in &jobs {
        let each: Vec<_> = sharing.iter().map(|jobs| jobs.iter().find(|job| job.job == *name)).collect();
        let mut row: Vec<Cell> = vec![(*name).into()];
        row.extend(each.iter().map(|job| Cell::from(job.map(|j| j.shared_links))));
        row.extend(each.iter().map(|job| Cell::from(job.and_then(|j| j.busiest_shared_link.as_deref()))));
        row.extend(each.iter().map(|job| Cell::from(job.map(|j| j.shares_with.as_str()))));
        section.rows.push(row);
    }
    if section.rows.is_empty() {
        return Ok(None);
    }
    for (which, run, row) in experiments {
        let before = if which.is_empty() { String::new() } else { format!("{which}: ") };
        let note = match run.shared_links_of(run.exp_id(*row))? {
            Some(links) => busiest(&links, top).map(|told| format!("{told}; shared_links.csv has every link")),
            None => {
                Some("output.shared_links = true writes shared_links.csv, every link with the bytes of each job".into())
            }
        };
        let note = note.map(|note| before + &note);
        section.notes.extend(note.filter(|note| !section.notes.contains(note)));
    }
    Ok(Some(section))
}

/// A sentence about the link that carries the most payload of all jobs, and the jobs on it. Among equal links it is the first. `None`: no link is shared.
fn busiest(links: &[SharedLinkRecord], top: usize) -> Option<String> {
    let all = |s: &SharedLinkRecord| s.job_bytes + s.other_bytes;
    let busiest_link = links.iter().rev().max_by_key(|s| all(s))?;
    let mut jobs: Vec<&SharedLinkRecord> = links.iter().filter(|s| s.link == busiest_link.link).collect();
    jobs.sort_by_key(|s| std::cmp::Reverse(s.job_bytes));
    let share = |s: &SharedLinkRecord| {
        let percent = if all(s) == 0 { 0.0 } else { 100.0 * s.job_bytes as f64 / all(s) as f64 };
        format!("{} {percent:.1} %", s.job)
    };
    let named: Vec<String> = jobs.iter().take(top).map(|s| share(s)).collect();
    let more = jobs.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{} carries most, {} bytes: {}{more}", busiest_link.link, all(busiest_link), named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};
    use crate::compare::{Study, explain_one};
    use hyperfold_results::JobRecord;

    #[test]
    fn the_busiest_link_and_who_sends_over_it() {
        let row = |link: &str, job: &str, job_bytes, other_bytes, shared_with: &str| SharedLinkRecord {
            link: link.into(),
            job: job.into(),
            job_bytes,
            other_bytes,
            shared_with: shared_with.into(),
        };
        let job = |name: &str, shares_with: &str| JobRecord {
            job: name.into(),
            shares_with: shares_with.into(),
            shared_links: 2,
            busiest_shared_link: Some("y->z".into()),
            ..JobRecord::default()
        };
        let mut one = ok(0, "a", &["x"], 4_000_000);
        one.jobs = vec![
            job("train", "noise:2"),
            job("noise", "train:2"),
            JobRecord { job: "apart".into(), ..JobRecord::default() },
        ];
        let listed = || {
            vec![
                row("x->y", "train", 1, 2, "noise"),
                row("x->y", "noise", 2, 1, "train"),
                row("y->z", "train", 10, 30, "noise"),
                row("y->z", "noise", 30, 10, "train"),
            ]
        };
        let mut two = one.clone();
        (two.record.exp_id, two.shared_links) = (1, listed());
        let told = |finished, pick_text: &str| {
            let folder = Folder::new(&["k"], finished);
            let study = Study::open(&[folder.path()]).unwrap();
            let pick = crate::compare::Pick::parse(&study, pick_text, 0).unwrap();
            let sections = explain_one(&study, pick, 9).unwrap();
            sections.into_iter().find(|s| s.kind == "explain_shared_links").unwrap()
        };
        let short = told(vec![one], "0");
        assert_eq!(short.rows.len(), 2, "a job that shares nothing has no row");
        assert!(short.notes[0].starts_with("output.shared_links = true"), "{:?}", short.notes);
        let long = told(vec![two], "1");
        assert_eq!(
            long.notes[0],
            "y->z carries most, 40 bytes: noise 75.0 %, train 25.0 %; shared_links.csv has every link"
        );
        assert_eq!(busiest(&[], 9), None);
        assert_eq!(busiest(&listed(), 1).unwrap(), "y->z carries most, 40 bytes: noise 75.0 % and 1 more");
    }
}
