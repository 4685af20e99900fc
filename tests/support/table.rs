//! One line of the table that golden tests print: how far a result is from the reference.

use std::fmt;

use super::golden::Golden;

pub const HEADER: &str = "case                          order      flows  max|dFCT| ns   mean err %  mean FCT %   max FCT %  pfc frames got/expected";

/// A case simulated in some way, against the reference.
#[derive(Clone, Debug)]
pub struct Row {
    pub case: String,
    pub how: String,
    pub flows: usize,
    /// Largest difference of a flow's completion time, ns (fractions of a nanosecond count as one).
    pub max_off_ns: u64,
    /// Mean over flows of |FCT - reference| / reference.
    pub mean_error: f64,
    /// Relative error of the mean FCT, and of the largest FCT.
    pub error_of_mean: f64,
    pub error_of_max: f64,
    pub pfc_frames: (u64, u64),
}

impl Row {
    /// PRECONDITION: every flow has finished.
    pub fn new(g: &Golden, how: &str, finish_ps: &[Option<u64>], pfc_frames: u64) -> Row {
        let fct_ps: Vec<u64> = finish_ps
            .iter()
            .zip(&g.case.flows)
            .map(|(finish, flow)| {
                finish.unwrap_or_else(|| panic!("{}: flow {} is unfinished", g.name, flow.id)) - flow.start_ps
            })
            .collect();
        let expected_ps = || g.fct_ns.iter().map(|ns| ns * 1000);
        let off = |got: u64, want: u64| (got as f64 - want as f64).abs() / want as f64;
        let pairs = || fct_ps.iter().copied().zip(expected_ps());
        Row {
            case: g.name.clone(),
            how: how.to_string(),
            flows: fct_ps.len(),
            max_off_ns: pairs().map(|(got, want)| got.abs_diff(want).div_ceil(1000)).max().unwrap_or(0),
            mean_error: pairs().map(|(got, want)| off(got, want)).sum::<f64>() / fct_ps.len() as f64,
            error_of_mean: off(fct_ps.iter().sum(), expected_ps().sum()),
            error_of_max: off(fct_ps.iter().copied().max().unwrap_or(0), expected_ps().max().unwrap_or(1)),
            pfc_frames: (pfc_frames, g.pfc_frames),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:29} {:10} {:5} {:13} {:12.4} {:11.4} {:11.4}  {}/{}",
            self.case,
            self.how,
            self.flows,
            self.max_off_ns,
            self.mean_error * 100.0,
            self.error_of_mean * 100.0,
            self.error_of_max * 100.0,
            self.pfc_frames.0,
            self.pfc_frames.1
        )
    }
}
