//! Excerpts of `shared_links.csv`, or of `jobs.csv` instead, about links that several jobs share, short enough for a page.
//!
//! Layer: report. Numbers stay the text of the files.

use std::path::Path;

use csv::{ByteRecord, StringRecord};

use super::details::{Excerpt, excerpt, text, value};
use super::error::ReportError;
use hyperfold_base::input;

/// Number of links that are listed.
const NAMED: usize = 8;
/// Number of jobs that are listed for a link, and for an experiment.
const JOBS: usize = 12;

/// Links of an experiment that several jobs share.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedLinksExcerpt {
    /// Number of shared links.
    pub links: usize,
    /// Links that carry most payload: link, job, its bytes, bytes of other jobs, and the other jobs.
    pub busiest: Vec<[String; 5]>,
}

/// Sharing by job, if no file lists the links: job, number of shared links, the busiest of them, and the other jobs with their numbers of links.
pub type SharingJobs = Vec<[String; 4]>;

/// Shared links of the experiments `wanted` (ascending). `None`: there is no `shared_links.csv`.
///
/// # Errors
/// The file cannot be read.
pub fn links(dir: &Path, wanted: &[u64]) -> Result<Option<Excerpt<SharedLinksExcerpt>>, ReportError> {
    excerpt(dir, "shared_links.csv", wanted, |rows| {
        let bytes = |r: &ByteRecord| value(&text(r, 3)) + value(&text(r, 4));
        let mut links: Vec<&[ByteRecord]> = rows.chunk_by(|a, b| a.get(1) == b.get(1)).collect();
        let n = links.len();
        links.sort_by(|a, b| bytes(&b[0]).total_cmp(&bytes(&a[0])));
        let named = links.iter().take(NAMED).flat_map(|link| link.iter().take(JOBS));
        let row = |r: &ByteRecord| [1, 2, 3, 4, 5].map(|column| text(r, column));
        (n > 0).then(|| SharedLinksExcerpt { links: n, busiest: named.map(row).collect() })
    })
}

/// Sharing by job in the experiments `wanted` (ascending). `None`: there is no `jobs.csv`.
///
/// # Errors
/// The file cannot be read.
pub fn jobs(dir: &Path, wanted: &[u64]) -> Result<Option<Excerpt<SharingJobs>>, ReportError> {
    let path = dir.join("jobs.csv");
    if !path.is_file() {
        return Ok(None);
    }
    let wrong = |source| ReportError::Csv { path: path.clone(), source };
    let headers: StringRecord = {
        let file = input::open_table_anywhere(&path).map_err(|e| wrong(e.into()))?;
        csv::Reader::from_reader(file).headers().map_err(wrong)?.clone()
    };
    let place = |name: &str| headers.iter().position(|h| h == name).unwrap_or(usize::MAX);
    let columns = ["job", "shared_links", "busiest_shared_link", "shares_with"].map(place);
    excerpt(dir, "jobs.csv", wanted, |rows| {
        let sharing = rows.iter().filter(|r| value(&text(r, columns[1])) > 0.0).take(JOBS);
        let jobs: SharingJobs = sharing.map(|r| columns.map(|column| text(r, column))).collect();
        (!jobs.is_empty()).then_some(jobs)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_links_that_carry_most_come_first() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!((links(dir.path(), &[1]).unwrap(), jobs(dir.path(), &[1]).unwrap()), (None, None));
        let mut file = "exp_id,link,job,job_bytes,other_bytes,shared_with\n".to_string();
        for link in 0..20 {
            file += &format!("1,a{link}->b,x,{link},5,y\n1,a{link}->b,y,5,{link},x\n");
        }
        fs::write(dir.path().join("shared_links.csv"), file).unwrap();
        let found = links(dir.path(), &[1]).unwrap().unwrap().of[&1].clone();
        assert_eq!((found.links, found.busiest.len()), (20, 2 * NAMED));
        assert_eq!(found.busiest[0], ["a19->b", "x", "19", "5", "y"].map(String::from));

        let rows = "exp_id,job,shares_with,shared_links,busiest_shared_link\n1,x,y:3,3,l\n1,alone,,0,\n1,y,x:3,3,l\n";
        fs::write(dir.path().join("jobs.csv"), rows).unwrap();
        let found = jobs(dir.path(), &[1]).unwrap().unwrap().of[&1].clone();
        assert_eq!(found, [["x", "3", "l", "y:3"], ["y", "3", "l", "x:3"]].map(|row| row.map(String::from)));
    }
}
