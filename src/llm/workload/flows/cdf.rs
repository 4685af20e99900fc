//! Flow-size distributions: how large the flows of a workload are, and how often each size occurs.
//!
//! Layer: workload. A distribution is a list of points of the cumulative distribution, with straight lines between them. The host samples it; the samples are
//! whole bytes.

use std::path::Path;

use super::flow_file::MAX_FLOW_BYTES;
use crate::workload::error::WorkloadError;
use hyperfold_network::topology::text::{Lines, load_text, shown};

/// A cumulative distribution of flow sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Cdf {
    /// Size in bytes and the share of flows up to it, 0 to 1; both ascending, the last share is 1.
    points: Vec<(u64, f64)>,
}

/// Name and text of each built-in distribution.
const BUILT_IN: [(&str, &str); 4] = [
    ("WebSearch", include_str!("../../../../assets/flow_cdf/WebSearch.csv")),
    ("FbHdp", include_str!("../../../../assets/flow_cdf/FbHdp.csv")),
    ("AliStorage2019", include_str!("../../../../assets/flow_cdf/AliStorage2019.csv")),
    ("GoogleRPC2008", include_str!("../../../../assets/flow_cdf/GoogleRPC2008.csv")),
];

impl Cdf {
    /// Names of the built-in distributions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The built-in distribution with this name, in upper or lower case.
    pub fn named(name: &str) -> Option<Cdf> {
        let (file, text) = BUILT_IN.iter().find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        Some(Cdf::parse(file, text).expect("the files that come along are read by a test"))
    }

    /// Reads a distribution from disk.
    pub fn read(path: &Path) -> Result<Cdf, WorkloadError> {
        Cdf::parse(&path.display().to_string(), &load_text(path)?)
    }

    /// Reads one `size_bytes,cumulative_percent` per line (or separated by a space). Both ascend, up to 100 percent. A first line of words and lines with `#`
    /// are ignored. `path` is for messages.
    pub fn parse(path: &str, text: &str) -> Result<Cdf, WorkloadError> {
        let mut lines = Lines::new(path, text);
        let mut points: Vec<(u64, f64)> = Vec::new();
        let mut last = None;
        while let Some(line) = lines.next_line() {
            if last.is_none() && line.text.starts_with(|c: char| c.is_ascii_alphabetic()) {
                last = Some(line);
                continue;
            }
            last = Some(line);
            let mut fields = line.text.split([',', ' ', '\t', ';']).filter(|f| !f.is_empty());
            let (Some(size), Some(percent), None) = (fields.next(), fields.next(), fields.next()) else {
                return Err(line.error("expected `size_bytes,cumulative_percent`").into());
            };
            let size = line.number("size in bytes", size, 0, MAX_FLOW_BYTES)?;
            let share = match percent.parse::<f64>() {
                Ok(p) if (0.0..=100.0).contains(&p) => p / 100.0,
                _ => {
                    let problem = format!("cumulative percent `{}` is not a number from 0 to 100", shown(percent));
                    return Err(line.error(problem).into());
                }
            };
            if points.last().is_some_and(|&(size_before, share_before)| size < size_before || share < share_before) {
                return Err(line.error("sizes and percentages must not fall from line to line").into());
            }
            points.push((size, share));
        }
        let end = match last {
            Some(line) => line,
            None => lines.expect(|| "expected lines of `size_bytes,cumulative_percent`".to_string())?,
        };
        match points.last() {
            None => Err(end.error("no line of `size_bytes,cumulative_percent`").into()),
            Some(&(0, _)) => Err(end.error("the largest size is 0 bytes").into()),
            Some(&(_, share)) if share < 1.0 => {
                Err(end.error(format!("the last percentage is {}, it must be 100", share * 100.0)).into())
            }
            Some(_) => Ok(Cdf { points }),
        }
    }

    /// Mean size in bytes.
    pub fn mean(&self) -> f64 {
        let (size, share) = self.points[0];
        let first = share * size as f64;
        self.points.windows(2).fold(first, |sum, w| sum + (w[1].1 - w[0].1) * (w[0].0 as f64 + w[1].0 as f64) / 2.0)
    }

    /// The smallest size in bytes, at least 1, that a share `u` in (0, 1] of the flows does not exceed.
    pub fn quantile(&self, u: f64) -> u64 {
        let i = self.points.partition_point(|p| p.1 < u).min(self.points.len() - 1);
        let (size, share) = self.points[i];
        let size = match i.checked_sub(1).map(|b| self.points[b]) {
            Some((size_before, share_before)) if share > share_before => {
                let part = ((u - share_before) / (share - share_before)).clamp(0.0, 1.0);
                size_before + libm::round(part * (size - size_before) as f64) as u64
            }
            _ => size,
        };
        size.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_along_reads_and_has_the_known_means() {
        let means: Vec<(&str, u64)> =
            Cdf::names().map(|n| (n, Cdf::named(&n.to_lowercase()).unwrap().mean().round() as u64)).collect();
        insta::assert_debug_snapshot!(means);
        assert_eq!(Cdf::named("Zipf"), None);
    }

    #[test]
    fn quantiles_lie_on_straight_lines() {
        let cdf = Cdf::parse("t", "size_bytes,cum_pct\n100,50\n300 100\n").unwrap();
        assert_eq!([0.1, 0.5, 0.75, 1.0].map(|u| cdf.quantile(u)), [100, 100, 200, 300]);
        assert_eq!(cdf.mean(), 150.0);
        assert_eq!(Cdf::named("WebSearch").unwrap().quantile(1e-12), 1);
    }
}
