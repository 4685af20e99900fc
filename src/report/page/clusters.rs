//! Excerpts of `cluster_map.csv` and `cluster_congestion.csv` for chosen experiments, short enough for a page.
//!
//! Layer: report. A map has at most 48 groups of servers and 128 bins of time, whatever the size of the cluster. Of congestion, only the periods that cost
//! most time are kept.

use std::collections::BTreeMap;
use std::path::Path;

use csv::ByteRecord;

use super::details::{Excerpt, excerpt, text, value};
use super::error::ReportError;

const SECONDS_PER_HOUR: f64 = 3600.0;
/// Largest number of congested periods, and of links, that are listed.
const NAMED: usize = 10;
/// Largest number of other jobs that are named for one period.
const OTHERS: usize = 6;

/// Use of groups of servers over time.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerMap {
    /// Hours at which bins begin, and the hour at which the last bin ends.
    pub hours: Vec<f64>,
    /// First server of each group, and at the end the number of servers.
    pub servers: Vec<u64>,
    /// Shares of a group's GPUs that are used, down, drained, and spare. Each string has, bin after bin, one base-36 digit per group; 35 means all GPUs.
    pub shares: [String; 4],
}

/// Summary of the periods in which jobs could not fill their NICs.
#[derive(Clone, Debug, PartialEq)]
pub struct CongestionExcerpt {
    /// Number of such periods.
    pub times: usize,
    /// Number of jobs that had any.
    pub jobs: usize,
    /// Time that the work of all jobs together took longer, in hours.
    pub lost_hours: f64,
    /// Periods that cost most time: job, begin and end in hours, link, the job that set it off, slowdown, worst slowdown, share of the NIC's rate, and the
    /// other jobs.
    pub worst: Vec<[String; 9]>,
    /// Links on which most time was lost: name, hours, and number of periods.
    pub links: Vec<(String, f64, usize)>,
}

/// Maps of the experiments `wanted` (ascending). `None`: there is no `cluster_map.csv`.
///
/// # Errors
/// The file cannot be read.
pub fn maps(dir: &Path, wanted: &[u64]) -> Result<Option<Excerpt<ServerMap>>, ReportError> {
    excerpt(dir, "cluster_map.csv", wanted, |rows| {
        let number = |r: &ByteRecord, column: usize| value(&text(r, column));
        let bins: Vec<&[ByteRecord]> = rows.chunk_by(|a, b| a.get(1) == b.get(1)).collect();
        let last = bins.last()?;
        let mut hours: Vec<f64> = bins.iter().map(|bin| number(&bin[0], 1) / SECONDS_PER_HOUR).collect();
        hours.push(number(&last[0], 2) / SECONDS_PER_HOUR);
        let mut servers: Vec<u64> = last.iter().map(|r| number(r, 3) as u64).collect();
        servers.push(last.iter().map(|r| number(r, 4) as u64).sum());
        let digit = |r: &ByteRecord, column: usize| {
            let all: f64 = (5..10).map(|c| number(r, c)).sum();
            let share = if all > 0.0 { number(r, column) / all } else { 0.0 };
            char::from_digit((share * 35.0).round() as u32, 36).unwrap_or('0')
        };
        let shares = [5, 7, 8, 9].map(|column| rows.iter().map(|r| digit(r, column)).collect());
        Some(ServerMap { hours, servers, shares })
    })
}

/// Congestion of the experiments `wanted` (ascending). `None`: there is no `cluster_congestion.csv`.
///
/// # Errors
/// The file cannot be read.
pub fn congestion(dir: &Path, wanted: &[u64]) -> Result<Option<Excerpt<CongestionExcerpt>>, ReportError> {
    excerpt(dir, "cluster_congestion.csv", wanted, |rows| {
        let lost = |r: &ByteRecord| {
            let (hours, slowdown) = ((value(&text(r, 3)) - value(&text(r, 2))) / SECONDS_PER_HOUR, value(&text(r, 6)));
            if slowdown > 0.0 { hours * (1.0 - 1.0 / slowdown) } else { 0.0 }
        };
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|&a, &b| lost(&rows[b]).total_cmp(&lost(&rows[a])).then(a.cmp(&b)));
        let hours = |r: &ByteRecord, column: usize| format!("{:.1}", value(&text(r, column)) / SECONDS_PER_HOUR);
        let others = |r: &ByteRecord| {
            let all = text(r, 9);
            let names: Vec<&str> = all.split(' ').collect();
            let more = names.len().saturating_sub(OTHERS);
            let shown = names[..names.len() - more].join(" ");
            if more == 0 { shown } else { format!("{shown} and {more} more") }
        };
        let row = |&n: &usize| {
            let r = &rows[n];
            let t = |column: usize| text(r, column);
            [t(1), hours(r, 2), hours(r, 3), t(4), t(5), t(6), t(7), t(8), others(r)]
        };
        let mut jobs: Vec<String> = rows.iter().map(|r| text(r, 1)).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let mut by_link: BTreeMap<String, (f64, usize)> = BTreeMap::new();
        for r in rows {
            let sum = by_link.entry(text(r, 4)).or_default();
            *sum = (sum.0 + lost(r), sum.1 + 1);
        }
        let mut links: Vec<(String, f64, usize)> =
            by_link.into_iter().map(|(link, sum)| (link, sum.0, sum.1)).collect();
        links.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        links.truncate(NAMED);
        (!rows.is_empty()).then(|| CongestionExcerpt {
            times: rows.len(),
            jobs: jobs.len(),
            lost_hours: rows.iter().map(lost).sum(),
            worst: order.iter().take(NAMED).map(row).collect(),
            links,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_map_is_digits_and_congestion_is_what_cost_most() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!((maps(dir.path(), &[1]).unwrap(), congestion(dir.path(), &[1]).unwrap()), (None, None));
        let mut text =
            "exp_id,from_s,to_s,first_server,servers,used_gpus,idle_gpus,down_gpus,drained_gpus,spare_gpus\n"
                .to_string();
        for bin in 0..2 {
            for group in 0..2 {
                text += &format!(
                    "1,{},{},{},3,{},{},0,4,0\n",
                    bin * 3600,
                    bin * 3600 + 3600,
                    group * 3,
                    8 * bin,
                    8 - 8 * bin
                );
            }
        }
        fs::write(dir.path().join("cluster_map.csv"), text).unwrap();
        let map = maps(dir.path(), &[1]).unwrap().unwrap().of[&1].clone();
        assert_eq!((map.hours, map.servers), (vec![0.0, 1.0, 2.0], vec![0, 3, 6]));
        assert_eq!(map.shares, ["00nn", "0000", "cccc", "0000"].map(String::from));

        let rows = "1,a,0,7200,x->y,b,1.5,2,0.6,b c d e f g h\n1,b,0,36000,x->y,b,2,2,0.5,a\n1,a,0,36000,z->y,,1.1,1.2,0.9,c\n";
        let header = "exp_id,job,from_s,to_s,link,set_off_by,slowdown,worst_slowdown,nic_share,sharing\n";
        fs::write(dir.path().join("cluster_congestion.csv"), format!("{header}{rows}")).unwrap();
        let found = congestion(dir.path(), &[1]).unwrap().unwrap().of[&1].clone();
        assert_eq!((found.times, found.jobs, found.worst.len()), (3, 2, 3));
        assert_eq!(found.worst[0], ["b", "0.0", "10.0", "x->y", "b", "2", "2", "0.5", "a"].map(String::from));
        assert_eq!(found.worst.iter().find(|w| w[0] == "a" && w[3] == "x->y").unwrap()[8], "b c d e f g and 1 more");
        assert_eq!((found.links[0].0.as_str(), found.links[0].2), ("x->y", 2));
        assert!((found.lost_hours - (5.0 + 2.0 / 3.0 + 10.0 * (1.0 - 1.0 / 1.1))).abs() < 1e-9, "{}", found.lost_hours);
    }
}
