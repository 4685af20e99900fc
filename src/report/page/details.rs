//! Excerpts of `flows.csv`, `links.csv` and `cluster_timeline.csv` for chosen experiments, short enough for a page.
//!
//! Layer: report. Each file is read once, in order, and only up to a size that a reader can wait for. Numbers stay the text of the files.

use std::collections::BTreeMap;
use std::path::Path;

use csv::ByteRecord;

use super::error::ReportError;
use super::sketch::Sketch;
use hyperfold_base::input;
use hyperfold_results::memory_meter;
use hyperfold_results::read::ReadError;
use hyperfold_results::stats::nearest_rank;

/// Most bytes that are read of a file.
const BYTES_UP_TO: u64 = 512 << 20;
/// Percentiles at which a distribution is drawn; 0 is the smallest value.
pub const POINTS: &[usize] =
    &[0, 1, 2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 92, 94, 95, 96, 97, 98, 99, 100];
/// Number of cells in a row of a heat map.
pub const CELLS: usize = 64;
/// Number of links that are listed.
const BUSIEST: usize = 8;

/// Excerpt of a file, and whether the whole file was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Excerpt<T> {
    /// Excerpt of each experiment, by `exp_id`.
    pub of: BTreeMap<u64, T>,
    /// Whether reading stopped at the size limit.
    pub cut: bool,
}

/// Completion times of an experiment's flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Fcts {
    /// Number of flows.
    pub flows: usize,
    /// Number of flows that did not finish.
    pub unfinished: usize,
    /// Completion time at each of [`POINTS`], by nearest rank.
    pub points: Vec<String>,
}

/// Links of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentLinks {
    /// Number of link directions.
    pub links: usize,
    /// Utilisations of the links in descending order, at up to [`CELLS`] evenly spaced ranks.
    pub utilisation: Vec<String>,
    /// Largest queues of the links in descending order, in the same form.
    pub queue: Vec<String>,
    /// The busiest links, with all columns of the file but the names of their ends.
    pub busiest: Vec<Vec<String>>,
    /// Sketch of the network. `None`: it was not asked for, or the links have other names.
    pub sketch: Option<Sketch>,
}

/// Reads a file and calls `digest` with all rows of each wanted experiment. `None`: there is no such file.
pub(super) fn excerpt<T>(
    dir: &Path,
    name: &str,
    wanted: &[u64],
    mut digest: impl FnMut(&[ByteRecord]) -> Option<T>,
) -> Result<Option<Excerpt<T>>, ReportError> {
    let path = dir.join(name);
    if !path.is_file() {
        return Ok(None);
    }
    let bad = |source| ReportError::Csv { path: path.clone(), source };
    let file = input::open_table_anywhere(&path).map_err(|e| bad(e.into()))?;
    let mut reader = csv::ReaderBuilder::new().buffer_capacity(1 << 20).from_reader(file);
    let meter = memory_meter();
    let mut digests = BTreeMap::new();
    let (mut rows, mut current) = (Vec::new(), None);
    let mut record = ByteRecord::new();
    let mut cut = false;
    let mut end = |current: Option<u64>, rows: &mut Vec<ByteRecord>| {
        if let Some((id, digested)) = current.and_then(|id| Some((id, digest(rows)?))) {
            digests.insert(id, digested);
        }
        rows.clear();
    };
    while reader.read_byte_record(&mut record).map_err(bad)? {
        let id = std::str::from_utf8(&record[0]).ok().and_then(|t| t.parse().ok());
        if id != current {
            end(current, &mut rows);
            current = id;
            cut = reader.position().byte() > BYTES_UP_TO;
            if cut || wanted.last().is_none_or(|last| id > Some(*last)) {
                current = None;
                break;
            }
        }
        if id.is_some_and(|id| wanted.binary_search(&id).is_ok()) {
            rows.push(record.clone());
            meter
                .check("rows of an experiment", 0)
                .map_err(|exceeded| ReadError::Memory { path: path.clone(), allowance: exceeded.allowance })?;
        }
    }
    end(current, &mut rows);
    Ok(Some(Excerpt { of: digests, cut }))
}

pub(super) fn text(record: &ByteRecord, column: usize) -> String {
    String::from_utf8_lossy(record.get(column).unwrap_or_default()).into_owned()
}

pub(super) fn value(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

/// Flow completion times of the experiments `wanted` (ascending). `None`: there is no `flows.csv`.
///
/// # Errors
/// The file cannot be read.
pub fn flows(dir: &Path, wanted: &[u64]) -> Result<Option<Excerpt<Fcts>>, ReportError> {
    excerpt(dir, "flows.csv", wanted, |rows| {
        let mut fcts: Vec<String> = rows.iter().map(|r| text(r, 6)).filter(|t| !t.is_empty()).collect();
        fcts.sort_by(|a, b| value(a).total_cmp(&value(b)));
        let percentile = |&percent: &usize| {
            if percent == 0 {
                fcts.first().cloned()
            } else {
                nearest_rank(&fcts.iter().collect::<Vec<_>>(), percent).cloned()
            }
        };
        let points = POINTS.iter().map(percentile).collect::<Option<Vec<String>>>().unwrap_or_default();
        (!rows.is_empty()).then(|| Fcts { flows: rows.len(), unfinished: rows.len() - fcts.len(), points })
    })
}

/// GPUs of the clusters of the experiments `wanted` (ascending) over time: hours, busy, down or drained, spare, all, and asked for by waiting jobs. `None`:
/// there is no `cluster_timeline.csv`.
///
/// # Errors
/// The file cannot be read.
pub fn clusters(dir: &Path, wanted: &[u64]) -> Result<Option<Excerpt<Vec<[f64; 6]>>>, ReportError> {
    /// Largest number of points of a picture.
    const MOST: usize = 240;
    const SECONDS_PER_HOUR: f64 = 3600.0;
    excerpt(dir, "cluster_timeline.csv", wanted, |rows| {
        let point = |r: &ByteRecord| {
            let number = |column: usize| value(&text(r, column));
            let (busy, free, out, spare) = (number(5), number(6), number(8) + number(9), number(10));
            [number(1) / SECONDS_PER_HOUR, busy, out, spare, busy + free + out + spare, number(3)]
        };
        let points: Vec<[f64; 6]> = rows.iter().step_by(rows.len().div_ceil(MOST).max(1)).map(point).collect();
        (points.len() > 1).then_some(points)
    })
}

/// Utilisation and queues of the links of the experiments `wanted` (ascending). For those in `sketched`, the network is included. `None`: there is no
/// `links.csv`.
///
/// # Errors
/// The file cannot be read.
pub fn links(dir: &Path, wanted: &[u64], sketched: &[u64]) -> Result<Option<Excerpt<ExperimentLinks>>, ReportError> {
    const LINK: usize = 1;
    const UTILISATION: usize = 3;
    const QUEUE: usize = 4;
    const DROPS: usize = 8;
    const CAPACITY: usize = 11;
    const PAUSED: usize = 12;
    excerpt(dir, "links.csv", wanted, |rows| {
        let falling = |column: usize| {
            let mut sorted: Vec<(f64, usize)> = rows.iter().map(|r| value(&text(r, column))).zip(0..).collect();
            sorted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            sorted.into_iter().map(|(_, row)| row).collect::<Vec<usize>>()
        };
        let cells = |order: &[usize], column: usize| {
            let n = order.len().min(CELLS);
            (0..n).map(|cell| text(&rows[order[order.len() * cell / n]], column)).collect()
        };
        let (busy, full) = (falling(UTILISATION), falling(QUEUE));
        let shown = (LINK..=DROPS).chain([CAPACITY, PAUSED]);
        let named = |&row: &usize| shown.clone().map(|c| text(&rows[row], c)).collect();
        let sketch = || {
            let named: Vec<(String, f64)> =
                rows.iter().map(|r| (text(r, LINK), value(&text(r, UTILISATION)))).collect();
            Sketch::of(named.iter().map(|(name, busy)| (name.as_str(), *busy)))
        };
        let is_sketched = rows.first().is_some_and(|r| text(r, 0).parse().is_ok_and(|id| sketched.contains(&id)));
        (!rows.is_empty()).then(|| ExperimentLinks {
            sketch: if is_sketched { sketch() } else { None },
            links: rows.len(),
            utilisation: cells(&busy, UTILISATION),
            queue: cells(&full, QUEUE),
            busiest: busy.iter().take(BUSIEST).map(named).collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_wanted_experiments_are_read_and_percentiles_are_values_that_occurred() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(flows(dir.path(), &[1]).unwrap(), None);
        let mut text = String::from("exp_id,flow_id,src,dst,bytes,start_ns,fct_ns\n0,0,1,2,3,0,9\n");
        (0..100).for_each(|f| text += &format!("1,{f},1,2,3,0,{}.5\n", 100 - f));
        text += "1,100,1,2,3,0,\n2,0,1,2,3,0,7\n";
        fs::write(dir.path().join("flows.csv"), text).unwrap();
        let found = flows(dir.path(), &[1]).unwrap().unwrap();
        let one = &found.of[&1];
        assert_eq!((found.of.len(), one.flows, one.unfinished), (1, 101, 1));
        let point_at = |percent| one.points[POINTS.iter().position(|p| *p == percent).unwrap()].as_str();
        assert_eq!(
            (point_at(0), point_at(1), point_at(50), point_at(99), point_at(100)),
            ("1.5", "1.5", "50.5", "99.5", "100.5")
        );
        assert_eq!(flows(dir.path(), &[2]).unwrap().unwrap().of[&2].points[0], "7", "the last one is read to its end");
    }

    #[test]
    fn links_are_ordered_by_what_is_drawn() {
        let dir = tempfile::tempdir().unwrap();
        let mut text =
            String::from("exp_id,link,bytes,utilisation,max_queue_bytes,mean_queue_bytes,ecn_marks,pfc_pauses,drops\n");
        (0..128).for_each(|l| text += &format!("5,host{l}->leaf0,10,0.{l:03},{},0,0,0,0\n", 1000 - l));
        fs::write(dir.path().join("links.csv"), text).unwrap();
        let found = links(dir.path(), &[5], &[5]).unwrap().unwrap();
        let l = &found.of[&5];
        assert_eq!(
            (l.links, l.utilisation.len(), l.utilisation[0].as_str(), l.utilisation[1].as_str()),
            (128, CELLS, "0.127", "0.125")
        );
        assert_eq!(
            (l.queue[0].as_str(), l.busiest.len(), l.busiest[0][0].as_str()),
            ("1000", BUSIEST, "host127->leaf0")
        );
        assert_eq!(l.sketch.as_ref().map(|s| s.tiers[0].1), Some(128));
    }
}
